// A document: its state, its pairs, its text and where that stands.

function document_([id]) {
  const summary = el('p.quiet', {}, 'Asking …');
  const body = el('div.columns', {});
  const text = el('div', {}, el('p.note', {}, 'Asking …'));
  const placeOf = el('span.place', { dir: 'auto' });
  let stale = false;
  let asking = false;
  const load = async () => {
    if (asking) return;
    asking = true;
    const answer = await ask(`/document?id=${encodeURIComponent(id)}`);
    asking = false;
    stale = false;
    if (!summary.isConnected) return;
    if (!answer.ok) {
      say(summary, answer.status === 404 ? 'It is not alive: it was never inserted, was deleted, or has expired.' : refusal(answer));
      return void put(body);
    }
    const found = answer.data;
    if (found.position && !placeOf.textContent) say(placeOf, `partition ${count(found.position.partition)}, offset ${count(found.position.offset)}`);
    const isLone = !found.pairs.length;
    say(summary, isLone ? `No other document is similar enough, ${asOf(found.epoch)}.` : `Similar to ${plural(found.pairs.length + (found.more ?? 0), 'other document')}, ${asOf(found.epoch)}.`);
    const rows = found.pairs.map((pair) => el('li', {}, el('a.pair-line', pair.old ? {} : { href: at.pair(id, pair.id) },
      el('b', {}, similarity(pair.similarity)), bar(pair.similarity), idSpan(pair.id), el('span.why', {}, [evidence(pair.evidence, pair.similarity), within(id, pair.id, pair.in_id, pair.of_id), pair.old ? 'of the reference' : null].filter(Boolean).join('; ')),
      el('span.since', {}, isKnown(pair.since) ? newChip(pair.since) : null, ' ', causeChip(pair.cause), isKnown(pair.since) ? el('span.why', {}, ` ${epochWords(pair.since, pair.since_at)}`) : null))));
    put(body,
      panel('Its pairs, most similar first', { classes: 'w8' }, isLone ? el('p.note', {}, 'None.') : el('ul.pick', { 'data-list': true }, rows), found.more ? el('p.note', {}, `${plural(found.more, 'more pair')} are not listed.`) : null),
      panel('Details', { classes: 'w4' }, el('div.body', {}, facts([
        ['Cluster', !isKnown(found.cluster) ? 'none' : idLink(found.cluster, at.cluster(found.cluster))],
        ['Last changed', isKnown(found.changed) ? `in ${epochWords(found.changed)}` : 'before this run'],
        ['Its time', isKnown(found.ts) ? moment(found.ts) : 'none'],
        found.position && ['Source', placeOf],
      ]))));
  };
  const loadText = async () => {
    const answer = await ask(`/document/text?id=${encodeURIComponent(id)}`);
    if (!text.isConnected) return;
    put(text, answer.ok ? textOf(answer.data) : gone(answer));
    if (answer.ok && answer.data.place) say(placeOf, visible(answer.data.place));
  };
  load();
  loadText();
  return {
    title: `${shortId(id)} – document`,
    root: [el('div', {}, el('h1', {}, 'Document'), idSpan(id, 'div.id.whole')), summary, body, panel('Its text', {}, text)],
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => delta.a === id || delta.b === id); },
    tick: () => { if (stale) { load(); loadText(); } },
  };
}

function textOf({ text, truncated }) {
  return [el('div.typed', { dir: 'auto', tabIndex: 0, role: 'region', 'aria-label': 'The text' }, text === '' ? el('span.quiet', {}, 'The text is empty.') : visible(text, true)), truncated ? el('p.note', {}, 'The text goes on: only its beginning is shown.') : null];
}

/** Takes the place of a text that is not available. */
function gone(answer, notAlive = 'The document is not alive.') {
  const words = { 404: notAlive, 410: 'Its source does not have this text any more.', 501: 'Its source cannot give texts back.' };
  return el('div.gone', {}, el('b', {}, words[answer.status] ?? 'The text cannot be shown.'), ' ', visible(answer.data?.error ?? '').replace(/[^.]$/, '$&.'), ' ', answer.status === 410 ? 'dupflow keeps no texts: it reads them where they came from.' : '');
}
