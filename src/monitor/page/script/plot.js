// Small plots over time: one line or two, of what was sampled; a gap where a run ended.

/** Points in runs that can be drawn through: [[x, y], …], cut where there is no value or another run begins. */
function stretches(samples, value) {
  const found = [[]];
  for (let i = 0; i < samples.length; i += 1) {
    const y = value(samples, i);
    const isCut = i > 0 && samples[i].run !== samples[i - 1].run;
    if (isCut || y === null || Number.isNaN(y)) found.push([]);
    if (y !== null && !Number.isNaN(y)) found.at(-1).push([samples[i].at, y]);
  }
  return found.filter((points) => points.length > 1);
}

/** How fast a count grew up to each sample, over about `seconds`. Never negative: null where the run changed. */
const rising = (value, seconds = 3) => (samples, i) => {
  let first = i - 1;
  while (first > 0 && samples[i].at - samples[first].at < seconds && samples[first - 1].run === samples[i].run) first -= 1;
  if (first < 0 || samples[first].run !== samples[i].run || samples[i].at <= samples[first].at) return null;
  const rose = value(samples[i]) - value(samples[first]);
  return rose < 0 ? null : rose / (samples[i].at - samples[first].at);
};
const level = (value) => (samples, i) => value(samples[i]) ?? null;

/** A round number at or above. */
function roundUp(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((round) => round >= most);
}

class Plot {
  /** `lines`: one or two of { name, value, unit }. */
  constructor(title, lines, { round = roundUp, words = count } = {}) {
    Object.assign(this, { title, lines, round, words });
    this.now = lines.map(() => el('b'));
    this.top = el('span.top');
    this.start = el('span.start');
    this.stop = el('span.stop');
    this.hint = el('div.empty', {}, 'Not enough samples yet');
    this.svg = svg('svg', { preserveAspectRatio: 'none', 'aria-hidden': 'true' });
    this.frame = el('div.frame', {}, this.svg, this.top, this.start, this.stop, this.hint);
    const keys = lines.map((line, i) => el(i ? 'span.key.two' : 'span.key', {}, `${line.name} `, this.now[i]));
    this.root = el('figure.plot', { role: 'group', 'aria-label': title }, el('figcaption', {}, keys), this.frame);
    this.frame.addEventListener('pointermove', (event) => {
      const box = this.frame.getBoundingClientRect();
      this.pointed = (event.clientX - box.left) / box.width;
      this.draw(this.samples);
    });
    this.frame.addEventListener('pointerleave', () => {
      this.pointed = null;
      this.draw(this.samples);
    });
  }

  draw(samples) {
    this.samples = samples;
    const all = this.lines.map((line) => stretches(samples, line.value));
    const points = all.flat(2);
    this.hint.hidden = points.length > 0;
    for (const part of [this.top, this.start, this.stop]) part.hidden = !points.length;
    if (!points.length) return void this.svg.replaceChildren();
    const [from, until] = [samples[0].at, samples.at(-1).at];
    const most = this.round(points.reduce((y, point) => Math.max(y, point[1]), 0));
    const width = 600;
    const x = (time) => ((time - from) / (until - from || 1)) * width;
    const y = (value) => 98 - (value / most) * 92;
    const path = (stretch) => stretch.map(([time, value], i) => `${i ? 'L' : 'M'}${x(time).toFixed(1)} ${y(value).toFixed(1)}`).join('');
    const area = (stretch) => `${path(stretch)}L${x(stretch.at(-1)[0]).toFixed(1)} 98L${x(stretch[0][0]).toFixed(1)} 98Z`;
    const shapes = [svg('path', { class: 'rule', d: `M0 98H${width}M0 ${y(most)}H${width}M0 ${y(most / 2)}H${width}` })];
    for (const stretch of all[0]) shapes.push(svg('path', { class: 'area', d: area(stretch) }));
    for (let i = 1; i < samples.length; i += 1) if (samples[i].run !== samples[i - 1].run) shapes.push(svg('path', { class: 'cut', d: `M${x(samples[i].at)} 0V98` }));
    all.forEach((stretch, i) => stretch.forEach((one) => shapes.push(svg('path', { class: i ? 'line-two' : 'line-one', d: path(one) }))));
    const isPointed = this.pointed !== null && this.pointed !== undefined;
    const time = isPointed ? from + this.pointed * (until - from) : until;
    if (isPointed) shapes.push(svg('path', { class: 'rule', d: `M${this.pointed * width} 0V98` }));
    this.svg.setAttribute('viewBox', `0 0 ${width} 100`);
    this.svg.replaceChildren(...shapes);
    all.forEach((stretch, i) => {
      const near = stretch.flat().reduce((best, point) => (best && Math.abs(best[0] - time) < Math.abs(point[0] - time) ? best : point), null);
      say(this.now[i], near ? `${this.words(near[1])}${this.lines[i].unit ?? ''}` : '–');
    });
    say(this.top, this.words(most));
    say(this.start, isPointed ? clock(time) : `${span(until - from)} ago`);
    say(this.stop, 'now');
  }
}
