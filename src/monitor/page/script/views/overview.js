// The first view: new copies and clusters, then the state of the run.

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
/** The part of the input that is read; null if it is not known. A small input is read ahead as a whole, long before its events are due. */
const READ_AHEAD = 2 ** 20;
function partRead({ reading }) {
  if (isKnown(reading?.ended_at)) return 1;
  return isKnown(reading?.total_bytes) && isKnown(reading.bytes) && reading.total_bytes > READ_AHEAD ? Math.min(1, reading.bytes / reading.total_bytes) : null;
}
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
  return { root: panel('Pipeline stages', {}, el('ol.stages', {}, stages.map((stage) => stage.root))), tick };
}

function tiles() {
  const tile = (what, fill) => {
    const parts = { value: el('div.value'), under: el('div.under') };
    return { root: el('div.tile', {}, el('div.what', {}, what), parts.value, parts.under), ...parts, fill };
  };
  const all = [
    tile('Corpus', (s) => {
      const { event_time: time, bytes: read, ended_at: ended } = s.reading ?? {};
      const done = partRead(s);
      const part = isKnown(done) ? `${share(done)} read` : isKnown(read) ? `${bytes(read)} read` : '';
      const speed = pace(rateOf((sample) => sample.event_time, 10));
      return [isKnown(time) ? day(time) : part || '–', [isKnown(time) && part, isKnown(ended) ? 'the feed has ended' : speed].filter(Boolean).join(', ') || 'events have no time', '', isKnown(time) ? `events up to ${moment(time)}` : ''];
    }),
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
    tile('Memory', (s) => {
      const budget = s.memory_budget_bytes;
      const peak = s.peak_resident_bytes ? `${bytes(s.peak_resident_bytes)} at most` : '';
      if (!budget) return [bytes(s.resident_bytes), peak];
      const { events, spill_reads: reads, spill_rows: rows } = s.counts;
      const cached = rows ? `, ${((100 * (rows - reads)) / rows).toFixed(0)} % from the cache` : '';
      const disk = `of ${bytes(budget)}; ${(reads / Math.max(events, 1)).toFixed(2)} reads an event${cached}`;
      return [bytes(s.resident_bytes), disk, s.resident_bytes > budget ? 'bad' : '', `${disk}; ${bytes(s.counts.spill_file_bytes)} in files, ${peak}`];
    }),
    tile('Bad records', (s) => [count(badRecords(s)), Object.entries(s.bad_records).sort((x, y) => y[1] - x[1])[0]?.[0] ?? 'none so far', badRecords(s) ? 'warn' : '']),
  ];
  const tick = () => {
    if (!run.status) return;
    for (const { root, value, under, fill } of all) {
      const [text, below, state = '', title = ''] = fill(run.status);
      say(value, text);
      say(under, visible(below));
      under.title = title || under.textContent;
      root.className = `tile ${state}`;
    }
  };
  return { root: el('section.tiles', { 'aria-label': 'Figures' }, all.map((one) => one.root)), tick };
}

function plotsPanel() {
  const binary = (most) => 2 ** Math.ceil(Math.log2(Math.max(most, 1)));
  const plots = [
    new Plot('Events and deltas a second', [{ name: 'events', value: rising((s) => s.events), unit: '/s' }, { name: 'deltas', value: rising(deltasOf), unit: '/s' }], { words: rate }),
    new Plot('Epochs closed and not durable', [{ name: 'epochs waiting', value: level((s) => Math.max(0, s.closed - s.durable)) }], { round: (most) => roundUp(Math.max(most, 4)) }),
    new Plot('How long a commit takes', [{ name: 'a commit', value: level((s) => s.commit_ms), unit: ' ms' }], { words: rate }),
    new Plot('Text read a second', [{ name: 'text', value: rising((s) => s.bytes), unit: '/s' }], { round: binary, words: bytes }),
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

const named = (id) => (isKnown(id) ? idLink(id) : null);
/** The passage that two documents of a block share, and a link to both side by side. */
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
      el('thead', {}, el('tr', {}, el('th', {}, 'Documents in it'), el('th', {}, 'Shared text'), el('th', {}, 'Table'), el('th.number', {}, 'Sketches'))),
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

/** What is new since the last visit; at the first visit, what there is. */
function newsPanel() {
  const sentence = el('p.news', {}, 'Asking …');
  const reading = el('div.reading', { hidden: true }, el('progress', { max: 1, 'aria-label': 'How much of the input is read' }), el('span'));
  const [progress, words] = reading.children;
  let found = null;
  const load = async () => {
    if (!run.status || run.status.phase !== 'live' || !visit.before) return;
    const [pairs, clusters] = await Promise.all([ask('/pairs?order=time&limit=1000'), ask('/clusters?order=recent&limit=1000')]);
    if (!pairs.ok || !clusters.ok) return;
    const many = (list, isNew) => {
      const fresh = list.filter(isNew).length;
      return [fresh, fresh === list.length && fresh === 1000 ? 'more than ' : ''];
    };
    found = { pairs: many(pairs.data.pairs, (pair) => visit.isNew(pair.since)), clusters: many(clusters.data.clusters, (cluster) => visit.isNew(cluster.born)) };
    show();
  };
  const show = () => {
    const { status } = run;
    if (!status) return;
    const { reading: input } = status;
    const part = partRead(status);
    const isReplay = isKnown(part) || isKnown(input?.event_time);
    reading.hidden = !isReplay;
    if (isReplay) {
      progress.hidden = !isKnown(part);
      if (isKnown(part)) progress.value = part;
      const speed = pace(rateOf((sample) => sample.event_time, 10));
      say(words, [isKnown(input.event_time) && `The corpus as of ${moment(input.event_time)}`, isKnown(part) && `${share(part)} of ${bytes(input.total_bytes)} read`,
        isKnown(input.ended_at) ? `all read at ${clock(input.ended_at)}` : speed].filter(Boolean).join(' · '));
    }
    if (!visit.before) return void say(sentence, status.pairs === null ? 'Pairs are shown once the run is live.' : `${plural(status.pairs, 'pair')} in ${plural(status.clusters ?? 0, 'cluster')}, as of ${clock(status.now)}. Your next visit shows what is new since this one.`);
    if (found) say(sentence, `Since your last visit, at ${clock(visit.before.at)}: ${found.pairs[1]}${plural(found.pairs[0], 'new pair')}, ${found.clusters[1]}${plural(found.clusters[0], 'new cluster')}.`);
  };
  let ticks = 0;
  const tick = () => {
    if (ticks % 5 === 0) load();
    ticks += 1;
    show();
  };
  return { root: el('div.lead', {}, sentence, reading), tick };
}

function overview() {
  const news = newsPanel();
  const health = [tiles(), plotsPanel(), stagesPanel(), hotPanel(), badPanel()];
  const [figures, plots, stages, hot, bad] = health;
  const list = new DeltaList();
  const clusters = el('div', {}, el('p.note', {}, 'Asking …'));
  let asking = 0;
  let shown = '';
  const showClusters = async () => {
    const answer = await ask('/clusters?order=recent&limit=7');
    if (!clusters.isConnected) return;
    const key = JSON.stringify(answer.data?.clusters ?? answer);
    if (key === shown) return;
    shown = key;
    put(clusters, answer.ok ? clusterList(answer.data.clusters) : el('p.note', {}, refusal(answer)));
  };
  const tick = () => {
    news.tick();
    health.forEach((one) => one.tick());
    if (asking % 3 === 0) showClusters();
    asking += 1;
  };
  return {
    title: 'Overview',
    root: [
      el('h1.unseen', {}, 'Overview'), news.root,
      el('div.columns', {},
        panel('Latest pairs, new and ended', { classes: 'w8', end: [el('a', { href: '#/deltas' }, 'all deltas'), el('a', { href: '#/pairs' }, 'all pairs')] }, list.box),
        panel('Clusters, last changed first', { classes: 'w4', end: el('a', { href: '#/clusters' }, 'all') }, clusters)),
      figures.root, plots.root, stages.root, el('div.columns', {}, hot.root, bad.root),
    ],
    tick,
    close: () => list.close(),
  };
}
