// The first view: whether all is well, what the run does, what comes out of it.

const STAGES = [
  ['Read', (s, c) => [c.events, 'events', 'events'], (s, c) => [['bytes', bytes(c.bytes)], ['bad', count(badRecords(s))], ['unchanged', count(c.unchanged)], ['without a token', count(c.empty)]]],
  ['Documents', (s) => [s.documents, 'alive', 'inserted'], (s, c) => [['came', count(c.inserted)], ['went', count(c.deleted)], ['expired', count(c.expired ?? 0)], ['restored', count(c.restored)]]],
  ['Sketches', (s) => [s.sketches, 'distinct', 'sketches_born'], (s, c) => [['born', count(c.sketches_born)], ['died', count(c.sketches_died)], ['copies', count(Math.max(0, s.documents - s.sketches))]]],
  ['Blocks', (s, c) => [c.candidates, 'candidates', 'candidates'], (s, c) => [['first word', part(c.rejected_at_first_word, c.candidates, 'out')], ['each sketch', c.sketches_born ? `${rate(c.candidates / c.sketches_born)}` : '–'], ['hot blocks', count(s.hot_blocks_total ?? s.hot_blocks.length)]]],
  ['Filter', (s, c) => [c.compared, 'compared', 'compared'], (s, c) => [['before the last look', part(s.compared_by_look.slice(0, -1).reduce((sum, n) => sum + n, 0), c.compared)], ['components', c.compared ? `${rate(c.components_compared / c.compared)} each` : '–'], ['accepted', part(c.accepted, c.compared)]]],
  ['Pairs', (s) => [s.pairs, 'alive', 'accepted'], (s, c) => [['came', count(c.pairs_added)], ['went', count(c.pairs_removed)], ['stars', count(c.starred_groups)]]],
  ['Clusters', (s) => [s.clusters, 'alive', 'clusters_formed'], (s, c) => [...(c.clusters_formed ? [['formed', count(c.clusters_formed)], ['dissolved', count(c.clusters_dissolved)]] : []), ['giants', count(s.giant_clusters)]]],
  ['Output', (s) => [s.epochs.durable, 'epochs', 'epochs_durable'], (s) => [['closed, not durable', count(s.epochs.closed - s.epochs.durable)], ['deltas waiting', count(s.epochs.waiting_deltas)], ['state', bytes(s.state.bytes)]]],
];
const badRecords = (status) => Object.values(status.bad_records).reduce((sum, n) => sum + n, 0);
const part = (n, of, word = '') => (of ? `${share(Math.min(1, n / of))} ${word}`.trim() : '–');

function stagesPanel() {
  const stages = STAGES.map(([name, head, lines]) => {
    const parts = { count: el('span'), unit: el('small'), lines: el('ul') };
    const root = el('li.stage', {}, el('h3', {}, name), el('div.count', {}, parts.count, parts.unit), parts.lines);
    return { root, parts, head, lines };
  });
  const tick = () => {
    const { status } = run;
    if (!status) return;
    for (const { root, parts, head, lines } of stages) {
      const [value, unit, counter] = head(status, status.counts);
      say(parts.count, count(value));
      const speed = countRate(counter);
      say(parts.unit, speed ? `${unit}, ${rate(speed)}/s` : unit);
      const found = lines(status, status.counts);
      if (parts.lines.childElementCount !== found.length) put(parts.lines, found.map(() => el('li', {}, el('span'), el('b'))));
      found.forEach(([word, text], i) => {
        say(parts.lines.children[i].firstChild, word);
        say(parts.lines.children[i].lastChild, text);
      });
      root.classList.toggle('holds', counter === 'epochs_durable' && (lagGrows() || status.epochs.closed - status.epochs.durable > EPOCHS_BEHIND));
    }
  };
  return { root: panel('What goes through', {}, el('ol.stages', {}, stages.map((stage) => stage.root))), tick };
}

function tiles() {
  const tile = (what, fill) => {
    const parts = { value: el('div.value'), under: el('div.under') };
    return { root: el('div.tile', {}, el('div.what', {}, what), parts.value, parts.under), ...parts, fill };
  };
  const all = [
    tile('Documents', (s) => {
      const outgrown = s.planned_sketches && s.sketches > s.planned_sketches;
      return [count(s.documents), `${count(s.sketches)} distinct sketches${outgrown ? `, planned for ${count(s.planned_sketches)}` : ''}`, outgrown ? 'warn' : ''];
    }),
    tile('Pairs', (s) => [count(s.pairs), run.pipeline ? `of ${run.pipeline.threshold} or more` : '']),
    tile('Clusters', (s) => [count(s.clusters), s.giant_clusters ? plural(s.giant_clusters, 'giant') : 'no giants']),
    tile('Events a second', () => [rate(countRate('events')), `${count(run.status.counts.events)} so far`]),
    tile('Deltas a second', () => [rate(rateOf(deltasOf)), `${count(run.status.counts.pairs_added)} came, ${count(run.status.counts.pairs_removed)} went`]),
    tile('Lag of the output', (s) => {
      const behind = Math.max(0, s.epochs.closed - s.epochs.durable);
      return [behind ? span(lagSeconds()) : 'none', `closed ${count(s.epochs.closed)}, durable ${count(s.epochs.durable)}`, behind > EPOCHS_BEHIND ? 'bad' : lagGrows() ? 'warn' : ''];
    }),
    tile('Lag of the input', (s) => {
      if (!s.input) return ['none', 'not a topic'];
      const { behind_records: behind, undecided_records: undecided, oldest_unread_seconds: oldest } = s.input;
      const what = undecided ? `${count(undecided)} wait for a transaction` : `${count(behind)} not read`;
      return [behind + undecided ? span(oldest) : 'none', what, oldest > UNREAD_SECONDS ? 'bad' : ''];
    }),
    tile('Memory', (s) => [bytes(s.resident_bytes), s.peak_resident_bytes ? `${bytes(s.peak_resident_bytes)} at most` : '']),
    tile('Bad records', (s) => [count(badRecords(s)), Object.entries(s.bad_records).sort((x, y) => y[1] - x[1])[0]?.[0] ?? 'none so far', badRecords(s) ? 'warn' : '']),
  ];
  const tick = () => {
    if (!run.status) return;
    for (const { root, value, under, fill } of all) {
      const [text, below, state = ''] = fill(run.status);
      say(value, text);
      say(under, visible(below));
      under.title = under.textContent;
      root.className = `tile ${state}`;
    }
  };
  return { root: el('section.tiles', { 'aria-label': 'Figures' }, all.map((one) => one.root)), tick };
}

function plotsPanel() {
  const binary = (most) => 2 ** Math.ceil(Math.log2(Math.max(most, 1)));
  const plots = [
    new Plot('Events and deltas a second', [{ name: 'events', value: rising((s) => s.events), unit: '/s' }, { name: 'deltas', value: rising(deltasOf), unit: '/s' }], { words: rate }),
    new Plot('Epochs closed and not durable', [{ name: 'epochs waiting', value: level((s) => Math.max(0, s.closed - s.durable)) }], { round: (most) => roundUp(Math.max(most, 5)) }),
    new Plot('How long a commit takes', [{ name: 'a commit', value: level((s) => s.commit_ms), unit: ' ms' }], { words: rate }),
    new Plot('Memory', [{ name: 'memory', value: level((s) => s.resident_bytes) }], { round: binary, words: bytes }),
    new Plot('Documents and pairs', [{ name: 'documents', value: level((s) => s.documents) }, { name: 'pairs', value: level((s) => s.pairs) }]),
  ];
  let day = false;
  const buttons = ['10 minutes', '24 hours'].map((word, i) => el('button', { type: 'button', onclick: () => { day = i === 1; tick(); } }, word));
  const tick = () => {
    buttons.forEach((button, i) => button.setAttribute('aria-pressed', String((i === 1) === day)));
    plots.forEach((plot) => plot.draw(day ? run.coarse : run.samples));
  };
  return { root: panel('Over time', { end: buttons }, el('div.plots', {}, plots.map((plot) => plot.root))), tick };
}

const isKnown = (one) => one !== null && one !== undefined;
const named = (id) => (isKnown(id) ? idLink(id) : null);
/** What two documents of a block share, with a way to see both side by side. */
const shared = ({ document, beside, common }) => (isKnown(document) && isKnown(beside)
  ? [isKnown(common) ? `\u201c${visible(common)}\u201d ` : null, el('a', { href: at.pair(document, beside) }, 'side by side')] : null);

function hotPanel() {
  const body = el('div');
  let shown = '';
  const tick = () => {
    const blocks = run.status?.hot_blocks ?? [];
    const total = run.status?.hot_blocks_total ?? blocks.length;
    const key = JSON.stringify([total, blocks]);
    if (key === shown || !run.status) return;
    shown = key;
    if (!blocks.length) return void put(body, el('p.note', {}, 'No block is hot: each sketch meets all others of its blocks.'));
    const most = Math.max(...blocks.map((block) => block.sketches));
    put(body, el('div.scroll', {}, el('table', {},
      el('thead', {}, el('tr', {}, el('th', {}, 'Documents in it'), el('th', {}, 'They have in common'), el('th', {}, 'Table'), el('th.number', {}, 'Sketches'))),
      el('tbody', {}, blocks.map((block) => el('tr', {},
        el('td', {}, named(block.document), named(block.beside) && [' ', named(block.beside)]),
        el('td', { dir: 'auto' }, shared(block)),
        el('td', { title: `hash ${block.hash}` }, String(block.table)),
        el('td.number', {}, bar(block.sketches / most), ' ', count(block.sketches))))))), total > blocks.length ? el('p.note.small', {}, `${plural(blocks.length, 'block')} of ${count(total)}, the largest.`) : null);
  };
  return { root: panel('Hot blocks', { classes: 'w6' }, body), tick };
}

function badPanel() {
  const body = el('div');
  let shown = '';
  const tick = () => {
    const found = Object.entries(run.status?.bad_records ?? {}).sort((x, y) => y[1] - x[1]);
    const key = JSON.stringify(found);
    if (key === shown || !run.status) return;
    shown = key;
    if (!found.length) return void put(body, el('p.note', {}, 'Every record so far was an event.'));
    put(body, el('table', {}, el('tbody', {}, found.map(([reason, n]) => el('tr', {}, el('td', {}, visible(reason)), el('td.number', {}, count(n)))))),
      el('p.note.small', {}, 'Bad records are left out and counted. With a dead-letter file they are kept whole, and the log names the first of each reason.'));
  };
  return { root: panel('Bad records, by reason', { classes: 'w6' }, body), tick };
}

function overview() {
  const parts = [tiles(), plotsPanel(), stagesPanel()];
  const list = new DeltaList();
  const clusters = el('div', {}, el('p.note', {}, 'Asking …'));
  const hot = hotPanel();
  const bad = badPanel();
  parts.push(hot, bad);
  let asking = 0;
  const showClusters = async () => {
    const answer = await ask('/clusters?order=size&limit=8');
    if (!clusters.isConnected) return;
    put(clusters, answer.ok ? clusterList(answer.data.clusters) : el('p.note', {}, refusal(answer)));
  };
  const tick = () => {
    parts.forEach((one) => one.tick());
    if (asking % 5 === 0) showClusters();
    asking += 1;
  };
  return {
    title: 'Overview',
    root: [
      el('h1.unseen', {}, 'Overview'), parts[0].root, parts[1].root, parts[2].root,
      el('div.columns', {},
        panel('Deltas as they come', { classes: 'w8', end: el('a', { href: '#/deltas' }, 'all, with filters') }, list.box),
        panel('Largest clusters', { classes: 'w4', end: el('a', { href: '#/clusters' }, 'all') }, clusters),
        hot.root, bad.root),
    ],
    tick,
    close: () => list.close(),
  };
}
