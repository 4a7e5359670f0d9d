// A list of rows that is loaded page by page. How many rows were loaded is kept with the place.

/** `more(after, least)` returns { rows, next } or { error }; `least`: how many rows the page should have at least. */
function paged(more, none) {
  const rows = el('ul.pick', { 'data-list': true });
  const note = el('p.note', { hidden: true });
  const button = el('button', { type: 'button', onclick: () => load(0) }, 'More');
  const foot = el('div.note', { hidden: true }, button);
  let next = null;
  const load = async (least) => {
    button.disabled = true;
    const found = await more(next, least);
    button.disabled = false;
    const isEmpty = !rows.childElementCount && !found.rows?.length;
    note.hidden = !found.error && !isEmpty;
    if (!note.hidden) say(note, found.error ?? (found.next ? 'None among the first ones: the search goes on with “More”.' : none));
    if (found.error) return;
    rows.append(...found.rows.map((row) => el('li', {}, row)));
    next = found.next;
    foot.hidden = !next;
    if (rows.childElementCount < least && next) return void (await load(least));
    if (root.isConnected && rows.childElementCount !== (place.kept.rows ?? 0)) place.keep({ rows: rows.childElementCount });
  };
  const root = el('div', {}, rows, note, foot);
  load(Math.min(place.kept.rows ?? 0, 5000));
  return root;
}

/** Links that save all rows of a list, not only those that are loaded. */
const saveAs = (path, parameters = {}) => el('span.quiet', {}, 'Save all as ', [['csv', 'CSV'], ['jsonl', 'JSON Lines']].flatMap(([format, word], i) =>
  [i ? ', ' : '', el('a', { href: `./${asking(path, { ...parameters, format })}`, download: `${path}.${format}` }, word)]));
