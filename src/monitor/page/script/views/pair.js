// A pair: whether the two are one, by what that was decided, and both texts side by side.

/** Whether it is a pair, as a sentence. "Exactly" only where texts or features were compared, or the texts are equal. */
function verdict(found) {
  const { similarity: estimate, exact, threshold, evidence: by, are_equal: areEqual } = found;
  const texts = areEqual ? 'their texts are equal' : isKnown(exact) ? `exactly ${similarity(exact)} by their texts` : '';
  const asked = `; a pair has ${threshold} or more.`;
  if (!isKnown(estimate)) return `No pair now: ${texts || 'their texts are not compared'}${asked}`;
  const isExact = by && !by.standard_error && (by.look || by.components);
  const decided = isExact ? '' : by && !by.look && !by.components ? 'they have the same sketch' : `${certainty(by, estimate)} by their sketches`;
  return `A pair: ${[decided, texts || (isExact ? certainty(by, estimate) : '')].filter(Boolean).join(', ')}${asked}`;
}

function pair(_, query) {
  const [a, b] = ['a', 'b'].map((name) => query.get(name) ?? '');
  const sentence = el('p.verdict', {}, 'Asking …');
  const known = el('div', {});
  const state = el('span.quiet', { id: 'passage-state', 'aria-live': 'polite' });
  const texts = new TextPair((words) => say(state, words));
  const modes = [['differs', 'What differs'], ['common', 'What is common']].map(([name, word]) => el('button', { type: 'button', 'data-mode': name, onclick: () => setMode(name) }, word));
  const together = el('button', { type: 'button', id: 'scroll-together', onclick: () => setTogether(!texts.isTogether) }, 'Scroll together');
  const legend = el('span.quiet.small', {});
  const setMode = (name, isFirst = false) => {
    for (const button of modes) button.setAttribute('aria-pressed', String(button.dataset.mode === name));
    say(legend, name === 'differs' ? 'Marked: what only one of the texts has. Dotted: in both, in another place.' : 'Marked: what both texts have. A click goes to its partner.');
    texts.setMode(name);
    if (!isFirst) place.address(address('pair', { a, b, show: name === 'common' ? name : '' }));
  };
  const setTogether = (isTogether) => {
    texts.isTogether = isTogether;
    together.setAttribute('aria-pressed', String(isTogether));
  };
  setMode(query.get('show') === 'common' ? 'common' : 'differs', true);
  setTogether(true);
  const showKnown = (found) => put(known, el('p.quiet', {}, [
    found.evidence && evidence(found.evidence, found.similarity),
    within(a, b, found.in_b ?? found.in_id, found.in_a ?? found.of_id),
    isKnown(found.since) && `since ${epochWords(found.since, found.since_at)}`,
  ].filter(Boolean).join('; '), found.cause ? ' ' : null, causeChip(found.cause), ' ', isKnown(found.since) ? newChip(found.since) : null));
  const load = async () => {
    const answer = await ask(`/compare?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`);
    if (!texts.root.isConnected) return;
    if (answer.ok) {
      say(sentence, verdict(answer.data));
      showKnown(answer.data);
      return void texts.show(answer.data);
    }
    // Without the texts, the evidence of the pair is still known.
    const document = await ask(`/document?id=${encodeURIComponent(a)}`);
    if (!texts.root.isConnected) return;
    const found = document.ok ? document.data.pairs.find((one) => one.id === b) : null;
    say(sentence, found ? `A pair: ${certainty(found.evidence, found.similarity)}.` : answer.status === 404 ? 'No pair: at least one of them is not alive.' : 'The texts cannot be compared.');
    if (found) showKnown(found);
    put(texts.root, [a, b].map((id) => el('section.panel', {}, el('div.head', {}, idLink(id)), gone(answer, 'Not compared.'))));
  };
  load();
  let stale = false;
  return {
    title: `${shortId(a)} and ${shortId(b)} – pair`,
    root: [
      el('div', {}, el('h1', {}, 'Pair'), sentence, known),
      el('div.filters', {}, el('span.choice', { role: 'group', 'aria-label': 'What is marked' }, modes), el('button', { type: 'button', id: 'passage-back', onclick: () => texts.step(-1), title: 'key p' }, 'Previous'),
        el('button', { type: 'button', id: 'passage-next', onclick: () => texts.step(1), title: 'key n' }, 'Next'), state, together, legend),
      texts.root,
    ],
    key: (event) => {
      if (event.key === 'n') texts.step(1);
      else if (event.key === 'p') texts.step(-1);
      else if (event.key === 'm') setMode(texts.mode === 'differs' ? 'common' : 'differs');
      else if (event.key === 's') setTogether(!texts.isTogether);
      else return false;
      return true;
    },
    escape: () => {
      if (texts.chosen === null) return false;
      texts.choose(null);
      return true;
    },
    close: () => texts.close(),
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => (delta.a === a && delta.b === b) || (delta.a === b && delta.b === a)); },
    tick: () => { if (stale) { stale = false; load(); } },
  };
}
