// A pair side by side, the common passages marked.

/** Whether it is a pair, in a sentence. */
function verdict(found) {
  const { similarity: estimate, exact, threshold } = found;
  const exactly = exact === null || exact === undefined ? '' : `exactly ${similarity(exact)}`;
  if (estimate === null || estimate === undefined) return `No pair now: ${exactly || 'they are not compared'}; ${threshold} is asked.`;
  return `A pair: ${similarity(estimate)} by their sketches${exactly && `, ${exactly} by their texts`}; ${threshold} is asked.`;
}

function pair(_, query) {
  const a = query.get('a') ?? '';
  const b = query.get('b') ?? '';
  const sentence = el('p.verdict', {}, 'Asking …');
  const known = el('div', {});
  const body = el('div.sides', {});
  const state = el('span.quiet', { id: 'passage-state' });
  let chosen = null;
  let passages = 0;

  const mark = (side, number) => body.children[side]?.querySelectorAll(`mark[data-passage="${number}"]`) ?? [];

  /** Chooses a passage; `from`: the mark that was clicked, whose partner comes to its height. */
  const choose = (number, from = null) => {
    for (const old of body.querySelectorAll('mark.chosen')) old.classList.remove('chosen');
    chosen = number;
    if (number === null) return void say(state, passages ? plural(passages, 'passage') : '');
    for (const side of [0, 1]) for (const one of mark(side, number)) one.classList.add('chosen');
    const side = from ? Number(from.closest('.typed').dataset.side) : 0;
    const here = from ?? mark(0, number)[0];
    const there = mark(1 - side, number)[0];
    if (!here || !there) return;
    const box = here.closest('.typed');
    if (!from) box.scrollTop = here.offsetTop - box.clientHeight / 3;
    const other = there.closest('.typed');
    other.scrollTop = there.offsetTop - Math.max(8, Math.min(here.offsetTop - box.scrollTop, other.clientHeight - 40));
    say(state, `passage ${count(number + 1)} of ${count(passages)}`);
  };
  const step = (by) => passages && choose(chosen === null ? (by > 0 ? 0 : passages - 1) : (chosen + by + passages) % passages);
  body.addEventListener('click', (event) => {
    const one = event.target.closest('mark');
    if (one) choose(Number(one.dataset.passage), one);
  });
  body.addEventListener('keydown', (event) => {
    if (event.target.matches('mark') && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      choose(Number(event.target.dataset.passage), event.target);
    }
  });

  const side = (nth, { id, pieces }, shared, other) => {
    const text = el('div.typed', { dir: 'auto', tabIndex: 0, role: 'region', 'data-side': String(nth), 'aria-label': nth ? 'The second text' : 'The first text' },
      pieces.length ? null : el('span.quiet', {}, 'The text is empty.'));
    const parts = document.createDocumentFragment();
    for (const piece of pieces) {
      const shown = visible(piece.text, true);
      if (piece.passage === null || piece.passage === undefined) parts.append(shown);
      else parts.append(el(`mark.p${piece.passage % 6}`, { 'data-passage': String(piece.passage), tabIndex: -1, title: `passage ${piece.passage + 1}` }, shown));
    }
    text.append(parts);
    return el('section.panel', { 'aria-label': nth ? 'Second document' : 'First document' },
      el('div.head', {}, idLink(id), el('span.end.quiet', {}, `${share(shared)} of it is in ${other}`)), text);
  };

  const load = async () => {
    const answer = await ask(`/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
    if (!body.isConnected) return;
    if (answer.ok) {
      const found = answer.data;
      say(sentence, verdict(found));
      showKnown(found);
      passages = new Set(found.a.pieces.map((piece) => piece.passage).filter((number) => number !== null && number !== undefined)).size;
      put(body, side(0, { ...found.a, id: a }, found.shared_a, 'the other'), side(1, { ...found.b, id: b }, found.shared_b, 'the other'));
      return void choose(null);
    }
    // Without the texts there is still what the run knows of the pair.
    const document = await ask(`/document?id=${encodeURIComponent(a)}`);
    if (!body.isConnected) return;
    const found = document.ok ? document.data.pairs.find((one) => one.id === b) : null;
    say(sentence, found ? `A pair: ${similarity(found.similarity)} by their sketches.` : answer.status === 404 ? 'No pair: at least one of them is not alive.' : 'The texts cannot be compared.');
    if (found) showKnown(found);
    put(body, [a, b].map((id) => el('section.panel', {}, el('div.head', {}, idLink(id)), gone(answer, 'Not compared.'))));
  };
  const showKnown = (found) => put(known, el('p.quiet', {}, [
    found.evidence && evidence(found.evidence, found.similarity),
    found.since !== null && found.since !== undefined && `since epoch ${count(found.since)}`,
  ].filter(Boolean).join('; '), found.cause ? ' ' : null, causeChip(found.cause)));
  load();
  let stale = false;
  return {
    title: 'Pair',
    root: [
      el('div', {}, el('h1', {}, 'Pair'), sentence, known),
      el('div.filters', {}, el('button', { type: 'button', id: 'passage-back', onclick: () => step(-1), title: 'key p' }, 'Previous passage'),
        el('button', { type: 'button', id: 'passage-next', onclick: () => step(1), title: 'key n' }, 'Next passage'), state,
        el('span.quiet.small', {}, 'What both texts have in common is marked; a click goes to its partner.')),
      body,
    ],
    key: (event) => {
      if (event.key === 'n') step(1);
      else if (event.key === 'p') step(-1);
      else return false;
      return true;
    },
    escape: () => {
      if (chosen === null) return false;
      choose(null);
      return true;
    },
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => (delta.a === a && delta.b === b) || (delta.a === b && delta.b === a)); },
    tick: () => { if (stale) { stale = false; load(); } },
  };
}
