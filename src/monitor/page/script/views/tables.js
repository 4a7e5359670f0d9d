// Views: the rows of a kept aggregate, by value or by group; for groups of two values a matrix.

/** Most rows and columns of a matrix: those with the greatest sums. */
const MATRIX = 24;

const ofView = ({ of, measure }) => (measure === 'count' ? of : of === 'clusters' ? 'documents' : 'pairs');
const viewText = (value) => (value === '' ? '(none)' : visible(value));

function rowTable(view, rows, order) {
  const sorted = (name, wanted) => el('a', { href: `#/views/${view.name}?order=${wanted}`, 'aria-current': order === wanted ? 'true' : null }, name);
  const id = view.measure === 'count' ? null : view.of === 'clusters' ? 'cluster' : 'document';
  const headers = [
    ...view.columns.map((name) => el('th', { scope: 'col', 'aria-sort': order === 'group' ? 'ascending' : 'none' }, sorted(visible(name), 'group'))),
    id && el('th', { scope: 'col' }, id),
    el('th.number', { scope: 'col', 'aria-sort': order === 'value' ? 'descending' : 'none' }, sorted(ofView(view), 'value')),
  ];
  const row = (one) => el('tr', {},
    one.group.map((value) => el('td', { dir: 'auto' }, viewText(value))),
    id && el('td', {}, idLink(one.id, id === 'cluster' ? at.cluster(one.id) : at.document(one.id))),
    el('td.number', {}, count(one.value)));
  return el('div.scroll', {}, el('table.rows', {}, el('thead', {}, el('tr', {}, headers)), el('tbody', {}, rows.map(row))));
}

/** The values of two columns against each other. Of pairs, which have no direction, both halves are shown. */
function matrix(view, rows) {
  const both = view.of === 'pairs';
  const [down, across] = [new Map(), new Map()];
  const cells = new Map();
  const add = (a, b, value) => {
    down.set(a, (down.get(a) ?? 0) + value);
    across.set(b, (across.get(b) ?? 0) + value);
    cells.set(JSON.stringify([a, b]), value);
  };
  for (const { group: [a, b], value } of rows) {
    add(a, b, value);
    if (both && a !== b) add(b, a, value);
  }
  const greatest = (sums) => [...sums].sort((x, y) => y[1] - x[1] || (x[0] < y[0] ? -1 : 1)).slice(0, MATRIX).map(([name]) => name);
  const [names, heads] = [greatest(down), greatest(across)];
  const most = Math.max(1, ...rows.map((row) => row.value));
  const cell = (a, b) => {
    const value = cells.get(JSON.stringify([a, b]));
    const shown = el('td.number', { title: value ? `${viewText(a)}, ${viewText(b)}: ${count(value)}` : null }, value ? count(value) : '');
    if (value) shown.style.setProperty('--part', `${Math.round(12 + 60 * Math.log1p(value) / Math.log1p(most))}%`);
    return shown;
  };
  const left = down.size > names.length || across.size > heads.length;
  return [
    el('div.scroll', {}, el('table.matrix', { 'aria-label': `${view.name}: ${view.columns.join(' by ')}` },
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, view.columns.map(visible).join(' \\ ')), heads.map((b) => el('th', { scope: 'col', dir: 'auto' }, viewText(b))))),
      el('tbody', {}, names.map((a) => el('tr', {}, el('th', { scope: 'row', dir: 'auto' }, viewText(a)), heads.map((b) => cell(a, b))))))),
    left && el('p.note', {}, `The ${MATRIX} values with the greatest sums of ${count(Math.max(down.size, across.size))}.`),
  ];
}

function viewTables([name], query) {
  const order = query.get('order') === 'group' ? 'group' : 'value';
  const links = el('nav', { 'aria-label': 'Views of the corpus' });
  const shown = el('div', {}, el('p.note', {}, 'Asking …'));
  const drawing = el('div', {});
  const summary = el('span.quiet', {});
  const button = el('button', { type: 'button', hidden: true }, 'More');
  let rows = [];
  let next = null;
  let known = null;
  let is_first = true;
  const refuse = (answer) => put(shown, el('p.note', {}, refusal(answer)));
  const load = async (offset) => {
    if (!known) {
      const answer = await ask('/views');
      if (!answer.ok) return void refuse(answer);
      known = answer.data.views;
      put(links, known.map((view) => el('a', { href: `#/views/${view.name}`, 'aria-current': view.name === (name || known[0].name) ? 'true' : null }, visible(view.name))));
    }
    const answer = await ask(`/views/${encodeURIComponent(name || known[0].name)}?order=${order}&limit=100&offset=${offset}`);
    if (!shown.isConnected) return;
    if (!answer.ok) return void refuse(answer);
    const view = answer.data;
    rows = offset ? [...rows, ...view.page] : view.page;
    next = view.next;
    button.hidden = next === null;
    say(summary, `${plural(view.rows, 'row')}, after epoch ${count(view.epoch)}`);
    put(shown, rows.length ? rowTable(view, rows, order) : el('p.note', {}, 'No rows.'));
    if (view.columns.length === 2 && view.measure === 'count' && !offset) {
      const all = await ask(`/views/${encodeURIComponent(view.name)}?limit=1000`);
      if (all.ok && drawing.isConnected) put(drawing, panel('Against each other', {}, all.data.page.length ? matrix(view, all.data.page) : el('p.note', {}, 'No rows.')));
    }
  };
  button.addEventListener('click', () => { is_first = false; load(next); });
  let ticks = 0;
  return {
    title: 'Views',
    root: [
      el('div.title', {}, el('h1', {}, 'Views'), summary),
      panel(links, { 'aria-label': 'Views' }, shown, el('div', {}, button)),
      drawing,
    ],
    tick() {
      // Rows beyond the first page stay as they are.
      if (is_first && ticks % 5 === 0) load(0);
      ticks += 1;
    },
  };
}
