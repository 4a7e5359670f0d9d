// All pairs: by recency, by similarity or by their ids; those of some similarity, or with a part of an id.

const ORDERS = { time: 'newest first', similarity: 'most similar first', id: 'by their ids' };

function pairs(_, query) {
  const wanted = Object.fromEntries(['order', 'q', 'min', 'max'].map((name) => [name, query.get(name) ?? '']));
  if (!ORDERS[wanted.order]) wanted.order = 'time';
  const words = el('input', { type: 'search', value: wanted.q, placeholder: 'Part of an id', 'aria-label': 'Part of an id', autocomplete: 'off', spellcheck: false });
  const order = el('select', { 'aria-label': 'Order' }, Object.entries(ORDERS).map(([name, word]) => el('option', { value: name, selected: name === wanted.order }, word)));
  const [min, max] = ['min', 'max'].map((name) => el('input.short', { type: 'number', min: 0, max: 1, step: 0.01, value: wanted[name], 'aria-label': name === 'min' ? 'Similarity from' : 'Similarity to', placeholder: name === 'min' ? '0' : '1' }));
  const open = () => {
    const next = address('pairs', { order: order.value, q: words.value, min: min.value, max: max.value });
    if (next === location.hash) view.show();
    else location.hash = next;
  };
  order.addEventListener('change', open);
  const form = el('form.filters', { onsubmit: (event) => { event.preventDefault(); open(); } }, words, order, el('span', {}, 'similarity ', min, ' to ', max), el('button', { type: 'submit' }, 'Show'));
  /** The rows by their pairs, so that a pair that ends is marked. */
  const rows = new Map();
  const keyOf = ({ a, b }) => JSON.stringify([a, b]);
  let newest = null;
  let newer = 0;
  const fresh = el('button', { type: 'button', hidden: true, onclick: () => { place.keep({ rows: 0, y: 0 }); view.show(); } });
  const list = paged(async (after, least) => {
    const answer = await ask(`/pairs?${new URLSearchParams(Object.entries({ ...wanted, after: after ?? '', limit: String(Math.max(100, Math.min(least, 1000))) }).filter(([, value]) => value !== ''))}`);
    if (!answer.ok) return { error: refusal(answer) };
    newest ??= answer.data.epoch;
    return { rows: answer.data.pairs.map((pair) => {
      const row = pairRow(pair);
      rows.set(keyOf(pair), row);
      return row;
    }), next: answer.data.next };
  }, wanted.q || wanted.min || wanted.max ? 'No pair has such ids and such a similarity.' : 'There are no pairs.');
  const past = el('p.note', { hidden: true });
  return {
    title: 'Pairs',
    root: [el('div.title', {}, el('h1', {}, 'Pairs'), el('span.quiet', {}, ORDERS[wanted.order]), fresh), panel(form, { 'aria-label': 'Pairs', end: saveAs('pairs', { ...wanted, order: '' }) }, past, list)],
    epoch: (frame) => {
      if (newest === null || frame.epoch <= newest) return;
      for (const delta of frame.deltas) {
        rows.get(keyOf(delta))?.classList.toggle('ended', delta.diff < 0);
        if (delta.diff > 0 && (!wanted.q || delta.a.includes(wanted.q) || delta.b.includes(wanted.q))) newer += 1;
      }
    },
    tick: () => {
      fresh.hidden = !newer;
      say(fresh, `${plural(newer, 'newer pair')}: show`);
      const words = pastWords(run.status?.history);
      past.hidden = !words;
      say(past, words);
    },
  };
}

/** From when on it is known since when a pair is there; empty if that is so from the first epoch on. */
function pastWords(known) {
  if (!known) return '';
  const gaps = known.gaps.map((gap) => `${count(gap.after + 1)} to ${count(gap.through)}`).join(', ');
  return [
    known.begins > 0 && `Start times are known from ${epochWords(known.begins, known.begins_at)}; older pairs show that epoch.`,
    gaps && `Not known one by one: epochs ${gaps}.`,
    known.failure && `The history is not stored any more: ${known.failure}`,
  ].filter(Boolean).join(' ');
}

const pairRow = (pair) => el('a.pair-line', { href: at.pair(pair.a, pair.b) }, el('b', {}, similarity(pair.similarity)), bar(pair.similarity), idSpan(pair.a), idSpan(pair.b),
  el('span.since', {}, pair.in_a === undefined ? null : el('span.why', {}, `${within(pair.a, pair.b, pair.in_b, pair.in_a)} `), newChip(pair.since), ' ', causeChip(pair.cause), ' ', el('span.why', {}, epochWords(pair.since, pair.since_at))));
