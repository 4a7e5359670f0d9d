// Clusters, by size and by recency; one cluster with its members and its history.

function clusterList(clusters, most = Math.max(1, ...clusters.map((cluster) => cluster.size))) {
  if (!clusters.length) return el('p.note', {}, 'No clusters: no two documents are similar enough.');
  return el('ul.pick', { 'data-list': true }, clusters.map((cluster) => el('li', {},
    el('a.cluster-line', { href: at.cluster(cluster.cluster) },
      idSpan(cluster.cluster), bar(Math.log2(cluster.size) / Math.log2(Math.max(most, 2))), el('span.size', {}, cluster.giant ? `${plural(cluster.size, 'document')}, giant` : plural(cluster.size, 'document')),
      el('span.when', {}, when(cluster))))));
}
const when = ({ born, changed }) => [born !== null && born !== undefined && `born in epoch ${count(born)}`, changed !== null && changed !== undefined && changed !== born && `changed in ${count(changed)}`].filter(Boolean).join(', ');

/** A list that goes on where it ends: `more(after)` gives { rows, next } or { error }. */
function paged(more, none) {
  const rows = el('ul.pick', { 'data-list': true });
  const note = el('p.note', { hidden: true });
  let next = null;
  const button = el('button', { type: 'button', hidden: true, onclick: () => load() }, 'More');
  const load = async () => {
    button.disabled = true;
    const found = await more(next);
    button.disabled = false;
    note.hidden = !found.error && (rows.childElementCount > 0 || found.rows.length > 0);
    if (!note.hidden) say(note, found.error ?? none);
    if (found.error) return;
    rows.append(...found.rows.map((row) => el('li', {}, row)));
    next = found.next;
    button.hidden = !next;
  };
  const root = el('div', {}, rows, note, el('div.body', {}, button));
  button.parentElement.className = 'note';
  new MutationObserver(() => { button.parentElement.hidden = button.hidden; }).observe(button, { attributes: true });
  button.parentElement.hidden = true;
  load();
  return root;
}

function clusters(_, query) {
  const order = query.get('order') === 'recent' ? 'recent' : 'size';
  const links = [['size', 'By size'], ['recent', 'By recency']].map(([name, word]) => el('a', { href: `#/clusters?order=${name}`, 'aria-current': order === name ? 'true' : null }, word));
  const shown = el('div', {}, el('p.note', {}, 'Asking …'));
  const summary = el('span.quiet', {});
  const button = el('button', { type: 'button', hidden: true }, 'More');
  let known = [];
  let next = null;
  let pages = 1;
  const load = async (after) => {
    const answer = await ask(`/clusters?order=${order}&limit=50${after ? `&after=${encodeURIComponent(after)}` : ''}`);
    if (!shown.isConnected) return;
    if (!answer.ok) return void put(shown, el('p.note', {}, refusal(answer)));
    known = after ? [...known, ...answer.data.clusters] : answer.data.clusters;
    next = answer.data.next;
    button.hidden = !next;
    const focused = [...shown.querySelectorAll('a')].indexOf(document.activeElement);
    put(shown, clusterList(known));
    if (focused >= 0) shown.querySelectorAll('a')[focused]?.focus({ preventScroll: true });
  };
  button.addEventListener('click', () => { pages += 1; load(next); });
  let ticks = 0;
  const tick = () => {
    const { status } = run;
    if (status) say(summary, `${plural(status.clusters, 'cluster')}${status.giant_clusters ? `, ${plural(status.giant_clusters, 'giant')}` : ''}`);
    // What one has turned the pages of stays as it is.
    if (pages === 1 && ticks % 3 === 0) load(null);
    ticks += 1;
  };
  return {
    title: 'Clusters',
    root: [
      el('div.title', {}, el('h1', {}, 'Clusters'), summary),
      panel(el('nav', { 'aria-label': 'Order' }, links), { 'aria-label': 'Clusters' }, shown, el('div', {}, button)),
    ],
    tick,
  };
}

/** All pairs of some similarity, in the order of their ids. */
function pairs(_, query) {
  const [min, max] = ['min', 'max'].map((name) => query.get(name) ?? '');
  const box = (name, value) => {
    const input = el('input', { type: 'number', min: 0, max: 1, step: 0.01, value, name, 'aria-label': name === 'min' ? 'Similarity from' : 'Similarity to', placeholder: name === 'min' ? '0' : '1' });
    input.style.width = '90px';
    return input;
  };
  const boxes = [box('min', min), box('max', max)];
  const form = el('form.filters', {
    onsubmit: (event) => {
      event.preventDefault();
      const wanted = boxes.filter((input) => input.value !== '').map((input) => `${input.name}=${encodeURIComponent(input.value)}`);
      location.hash = `#/pairs${wanted.length ? `?${wanted.join('&')}` : ''}`;
    },
  }, 'similarity from ', boxes[0], ' to ', boxes[1], el('button', { type: 'submit' }, 'Show'));
  const list = paged(async (after) => {
    const parts = [min && `min=${encodeURIComponent(min)}`, max && `max=${encodeURIComponent(max)}`, after && `after=${encodeURIComponent(after)}`, 'limit=100'];
    const answer = await ask(`/pairs?${parts.filter(Boolean).join('&')}`);
    if (!answer.ok) return { error: refusal(answer) };
    const row = (pair) => el('a.pair-line', { href: at.pair(pair.a, pair.b) }, el('b', {}, similarity(pair.similarity)), bar(pair.similarity), idSpan(pair.a), idSpan(pair.b),
      el('span', {}, causeChip(pair.cause), el('span.why', {}, ` since ${count(pair.since)}`)));
    return { rows: answer.data.pairs.map(row), next: answer.data.next };
  }, 'No pair has such a similarity.');
  return { title: 'Pairs', root: [el('div.title', {}, el('h1', {}, 'Pairs'), el('span.quiet', {}, 'In the order of their ids.')), panel(form, { 'aria-label': 'Pairs' }, list)] };
}

const EVENTS = { born: 'born', grew: 'grew', shrank: 'shrank', merged: 'merged', split: 'split', renamed: 'renamed' };
function eventWords({ event, others }) {
  const links = (others ?? []).map((id, i) => [i ? ', ' : '', idLink(id, at.cluster(id))]);
  if (!links.length) return '';
  const words = { merged: 'with ', split: 'off came ', renamed: 'it was ' };
  return [words[event] ?? '', links];
}

function cluster([id]) {
  const body = el('div.columns', {});
  const summary = el('p.quiet', {}, 'Asking …');
  let stale = false;
  let asking = false;
  const load = async () => {
    if (asking) return;
    asking = true;
    const answer = await ask(`/cluster?id=${encodeURIComponent(id)}&limit=100`);
    asking = false;
    stale = false;
    if (!summary.isConnected) return;
    if (!answer.ok) {
      say(summary, answer.status === 404 ? `There is no cluster of this id now: ${visible(refusal(answer))}.` : refusal(answer));
      return void put(body);
    }
    const found = answer.data;
    say(summary, `${[plural(found.size, 'document'), found.giant && 'a giant: told by its size only', when(found)].filter(Boolean).join(', ')}; as of epoch ${count(found.epoch)}.`);
    const rows = (page) => ({ rows: page.members.map((member) => el('a', { href: at.document(member) }, idSpan(member))), next: page.next });
    let first = found;
    const members = paged(async (after) => {
      const page = first ?? (await ask(`/cluster?id=${encodeURIComponent(id)}&limit=100&after=${encodeURIComponent(after)}`));
      if (first) {
        first = null;
        return rows(page);
      }
      return page.ok ? rows(page.data) : { error: refusal(page) };
    }, 'No members are listed.');
    const history = [...(found.history ?? [])].reverse();
    put(body,
      panel('Members', { classes: 'w7' }, members),
      panel('History, latest first', { classes: 'w5' }, history.length
        ? el('ul.pick', {}, history.map((one) => el('li', {}, el('span.line.event-line', {}, el('span.quiet', {}, `epoch ${count(one.epoch)}`), el('b', {}, EVENTS[one.event] ?? one.event), el('span', {}, plural(one.size, 'document'), ' ', el('span.why', {}, eventWords(one)))))))
        : el('p.note', {}, 'Nothing is held of its history.')));
  };
  load();
  return {
    title: 'Cluster',
    root: [el('div', {}, el('h1', {}, 'Cluster'), idSpan(id, 'div.id.whole')), summary, body],
    // Its id is that of a member: what happens to that document may well happen to the cluster.
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => delta.a === id || delta.b === id); },
    tick: () => { if (stale) load(); },
  };
}
