// The pipeline: its settings, the promise of its blocks as a curve, the similarities of live pairs beside it, all counters.

function curve(pipeline, observed, width) {
  const [height, left, right, top, bottom] = [width < 600 ? 280 : 360, 46, 60, 34, 40];
  const x = (s) => left + s * (width - left - right);
  const y = (p) => top + (1 - p) * (height - top - bottom);
  const most = Math.max(1, ...observed);
  const powers = Math.max(1, Math.ceil(Math.log10(most + 1)));
  // A bar of one pair is visible.
  const tall = (n) => (n > 0 ? (Math.log10(n) + 0.3) / (powers + 0.3) : 0);
  const parts = [];
  for (const p of [0, 0.25, 0.5, 0.75, 1]) {
    parts.push(svg('path', { class: 'grid', d: `M${x(0)} ${y(p)}H${x(1)}` }), svg('text', { x: left - 8, y: y(p) + 4, 'text-anchor': 'end' }, `${p * 100}%`));
  }
  for (let s = 0; s <= 10; s += 2) parts.push(svg('text', { x: x(s / 10), y: height - bottom + 18, 'text-anchor': 'middle' }, String(s / 10)));
  observed.forEach((n, i) => {
    if (!n) return;
    const shape = svg('rect', { class: 'observed', x: x(i / 100) + 0.5, y: y(tall(n)), width: x(0.01) - x(0) - 1, height: y(0) - y(tall(n)) });
    shape.append(svg('title', {}, `${plural(n, 'pair')} of ${(i / 100).toFixed(2)} to ${((i + 1) / 100).toFixed(2)}`));
    parts.push(shape);
  });
  for (let power = 0; power <= powers; power += 1) parts.push(svg('text', { x: x(1) + 8, y: y(tall(10 ** power)) + 4 }, count(10 ** power)));
  parts.push(svg('path', { class: 'promise', d: (pipeline.curve ?? []).map(([s, p], i) => `${i ? 'L' : 'M'}${x(s).toFixed(1)} ${y(p).toFixed(1)}`).join('') || 'M0 0' }));
  parts.push(svg('path', { class: 'asked', d: `M${x(pipeline.threshold)} ${y(1) - 8}V${y(0)}` }),
    svg('text', { class: 'asked-word', x: x(pipeline.threshold) - 6, y: y(0) - 8, 'text-anchor': pipeline.threshold < 0.1 ? 'start' : 'end' }, `asked: ${pipeline.threshold}`));
  parts.push(svg('text', { x: x(0.5), y: height - 4, 'text-anchor': 'middle' }, 'similarity'),
    svg('text', { x: left, y: 14 }, width < 600 ? 'chance to meet' : 'chance to become a candidate (line)'),
    svg('text', { x: width - 4, y: 14, 'text-anchor': 'end' }, width < 600 ? 'pairs, log scale' : 'pairs alive (bars, log scale)'));
  return svg('svg', { viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `The chance of two documents to meet in a block, by their similarity; ${similarity(pipeline.threshold)} is asked. Bars: how many pairs alive have which similarity.` }, ...parts);
}

function pipelineView() {
  const drawing = el('div.curve', {}, el('p.note', {}, 'Asking …'));
  const known = el('div.body', {});
  const counters = el('ul.counters', {});
  const looks = el('tbody', {});
  const hot = hotPanel();
  const bad = badPanel();
  let shown = '';
  let described = null;
  const tick = () => {
    hot.tick();
    bad.tick();
    const { pipeline, status } = run;
    if (pipeline && described !== pipeline) {
      described = pipeline;
      const { retention } = pipeline;
      const kept = retention && [retention.max_age_seconds && `${span(retention.max_age_seconds)} by the ${retention.clock} clock`, retention.max_documents && plural(retention.max_documents, 'document')].filter(Boolean);
      put(known, facts([
        ['Name', visible(pipeline.name)], ['Threshold', `${pipeline.threshold}, inclusive`], ['Measure', pipeline.measure], ['Sketch', pipeline.sketch], ['Blocking', pipeline.blocking],
        ['Filter', pipeline.filter], ['Scheme', el('code', {}, pipeline.scheme)], ['Retention', kept?.length ? kept.join(', ') : 'documents stay until they are deleted'],
      ]));
    }
    if (!status) return;
    const key = JSON.stringify([status.similarities, Boolean(pipeline), drawing.clientWidth]);
    if (pipeline && key !== shown) {
      shown = key;
      put(drawing, curve(pipeline, status.similarities, Math.max(320, drawing.clientWidth - 28)));
    }
    const names = Object.keys(status.counts);
    if (counters.childElementCount !== names.length) put(counters, names.map((name) => el('li', {}, el('span', {}, name.replaceAll('_', ' ')), el('b', {}), el('span.quiet', {}))));
    names.forEach((name, i) => {
      const speed = countRate(name);
      const words = name.includes('bytes') ? bytes : count;
      say(counters.children[i].children[1], words(status.counts[name]));
      say(counters.children[i].children[2], speed ? `${name.includes('bytes') ? bytes(speed) : rate(speed)}/s` : '');
    });
    const most = Math.max(1, ...status.compared_by_look);
    if (looks.childElementCount !== status.compared_by_look.length) put(looks, status.compared_by_look.map((_, i) => el('tr', {}, el('td', {}, `look ${i + 1}`), el('td', {}, bar(0)), el('td.number', {}))));
    status.compared_by_look.forEach((n, i) => {
      looks.children[i].children[1].firstChild.firstChild.style.width = `${(n / most) * 100}%`;
      say(looks.children[i].children[2], count(n));
    });
  };
  return {
    title: 'Pipeline',
    root: [
      el('h1', {}, 'Pipeline'),
      el('div.columns', {},
        panel('What the blocks promise, and what was found', { classes: 'w8' }, drawing), el('div.stack.w4', {}, panel('Settings', {}, known), panel('Comparisons decided per stage', {}, el('table', {}, looks))),
        hot.root, bad.root, panel('Counters', {}, counters)),
    ],
    tick,
  };
}
