// A document: what is known of it, its pairs, its text.

function document_([id]) {
  const summary = el('p.quiet', {}, 'Asking …');
  const body = el('div.columns', {});
  const text = el('div', {}, el('p.note', {}, 'Asking …'));
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
      say(summary, answer.status === 404 ? 'It is not alive: it never came, was deleted, or has expired.' : refusal(answer));
      return void put(body);
    }
    const found = answer.data;
    const isLone = !found.pairs.length;
    say(summary, isLone ? `No other document is similar enough, as of epoch ${count(found.epoch)}.` : `Similar to ${plural(found.pairs.length + (found.more ?? 0), 'other document')}, as of epoch ${count(found.epoch)}.`);
    const rows = found.pairs.map((pair) => el('li', {}, el('a.pair-line', { href: at.pair(id, pair.id) },
      el('b', {}, similarity(pair.similarity)), bar(pair.similarity), idSpan(pair.id), el('span.why', {}, evidence(pair.evidence, pair.similarity)),
      el('span', {}, causeChip(pair.cause), pair.since !== null && pair.since !== undefined ? el('span.why', {}, ` since ${count(pair.since)}`) : null))));
    put(body,
      panel('Its pairs, most similar first', { classes: 'w8' }, isLone ? el('p.note', {}, 'None.') : el('ul.pick', { 'data-list': true }, rows), found.more ? el('p.note', {}, `${plural(found.more, 'more pair')} are not listed.`) : null),
      panel('What is known of it', { classes: 'w4' }, el('div.body', {}, facts([
        ['Cluster', found.cluster === null || found.cluster === undefined ? 'none' : idLink(found.cluster, at.cluster(found.cluster))],
        ['Last changed', found.changed === null || found.changed === undefined ? 'before this run' : `in epoch ${count(found.changed)}`],
        ['Its time', found.ts === null || found.ts === undefined ? 'none' : moment(found.ts)],
        found.position && ['Where it stands', `partition ${count(found.position.partition)}, offset ${count(found.position.offset)}`],
      ]))));
  };
  const loadText = async () => {
    const answer = await ask(`/document/text?id=${encodeURIComponent(id)}`);
    if (!text.isConnected) return;
    put(text, answer.ok ? textOf(answer.data) : gone(answer));
  };
  load();
  loadText();
  return {
    title: 'Document',
    root: [el('div', {}, el('h1', {}, 'Document'), idSpan(id, 'div.id.whole')), summary, body, panel('Its text', {}, text)],
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => delta.a === id || delta.b === id); },
    tick: () => { if (stale) { load(); loadText(); } },
  };
}

function textOf({ text, truncated }) {
  return [el('div.typed', { dir: 'auto', tabIndex: 0 }, text === '' ? el('span.quiet', {}, 'The text is empty.') : visible(text, true)), truncated ? el('p.note', {}, 'The text goes on: only its beginning is shown.') : null];
}

/** Where a text would be. */
function gone(answer, notAlive = 'The document is not alive.') {
  const words = { 404: notAlive, 410: 'Its source does not have this text any more.', 501: 'Its source cannot give texts back.' };
  return el('div.gone', {}, el('b', {}, words[answer.status] ?? 'The text cannot be shown.'), ' ', visible(answer.data?.error ?? '').replace(/[^.]$/, '$&.'), ' ', answer.status === 410 ? 'dupflow keeps no texts: it reads them where they came from.' : '');
}
