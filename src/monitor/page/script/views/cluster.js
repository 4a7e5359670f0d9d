// A cluster: its members with the beginnings of their texts, how similar they are to its centre, its history; two members compared.

const EVENTS = { born: 'born', grew: 'grew', shrank: 'shrank', merged: 'merged', split: 'split', renamed: 'renamed' };
const EXCERPT = 240;
/** Texts that are read at the same time. */
const EXCERPTS_AT_ONCE = 2;

function eventWords({ event, others }) {
  const links = (others ?? []).map((id, i) => [i ? ', ' : '', idLink(id, at.cluster(id))]);
  if (!links.length) return '';
  const words = { merged: 'with ', split: 'parts are now ', renamed: 'before: ' };
  return [words[event] ?? '', links];
}

/** Reads the beginnings of texts, those of visible members only, a few at a time. */
class Excerpts {
  constructor() {
    this.waiting = [];
    this.reading = 0;
    this.seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        this.seen.unobserve(target);
        this.waiting.push(target);
      }
      this.read();
    });
  }

  add(id) {
    const element = el('span.excerpt', { dir: 'auto' }, '…');
    element.member = id;
    this.seen.observe(element);
    return element;
  }

  async read() {
    if (this.reading >= EXCERPTS_AT_ONCE || !this.waiting.length) return;
    this.reading += 1;
    const element = this.waiting.shift();
    const answer = await ask(`/document/text?id=${encodeURIComponent(element.member)}&most=${EXCERPT}`);
    this.reading -= 1;
    if (!element.isConnected) return void this.read();
    const text = answer.ok ? visible(answer.data.text.replace(/\s+/g, ' ').trim()) : '';
    element.classList.toggle('quiet', !text);
    say(element, answer.ok ? (text ? `${text}${answer.data.truncated ? ' …' : ''}` : 'The text is empty.') : `No text: ${visible(answer.data?.error ?? '')}`);
    if (answer.ok && answer.data.place) element.after(el('span.place', { title: visible(answer.data.place), dir: 'auto' }, visible(answer.data.place)));
    this.read();
  }

  close() {
    this.seen.disconnect();
    this.waiting = [];
  }
}

function cluster([id]) {
  const body = el('div.columns', {});
  const summary = el('p.quiet', {}, 'Asking …');
  const excerpts = new Excerpts();
  const chosen = new Set();
  const compare = el('a.button', { id: 'compare-members', 'aria-disabled': 'true' }, 'Compare two members');
  const showChoice = () => {
    const two = [...chosen];
    if (two.length === 2) compare.setAttribute('href', at.pair(...two));
    else compare.removeAttribute('href');
    compare.setAttribute('aria-disabled', String(two.length !== 2));
    say(compare, two.length === 2 ? 'Compare the two' : two.length === 1 ? 'Choose one more to compare' : 'Choose two members to compare');
    for (const box of body.querySelectorAll('input[type=checkbox]')) box.disabled = two.length === 2 && !box.checked;
  };
  const memberRow = (page, member, i) => {
    const box = el('input', { type: 'checkbox', 'aria-label': `choose ${idText(member)}`, onchange: () => { if (box.checked) chosen.add(member); else chosen.delete(member); showChoice(); } });
    const estimate = page.similarities?.[i];
    const isCentre = member === page.centre;
    return el('div.member', {}, box, el('b', { title: isCentre ? 'the centre' : 'similarity to the centre' }, isCentre ? 'centre' : similarity(estimate)),
      el('div.about', {}, idLink(member), excerpts.add(member)), isCentre || !isKnown(page.centre) ? null : el('a.small', { href: at.pair(page.centre, member) }, 'with the centre'));
  };
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
    say(summary, `${[plural(found.size, 'document'), found.giant && 'a giant: only its size is known', when(found)].filter(Boolean).join(', ')}; ${asOf(found.epoch)}.`);
    const rows = (page) => ({ rows: page.members.map((member, i) => memberRow(page, member, i)), next: page.next });
    let first = found;
    const members = paged(async (after) => {
      const page = first ?? (await ask(`/cluster?id=${encodeURIComponent(id)}&limit=100&after=${encodeURIComponent(after)}`));
      if (first) {
        first = null;
        return rows(page);
      }
      return page.ok ? rows(page.data) : { error: refusal(page) };
    }, 'No members are listed.');
    chosen.clear();
    const history = [...(found.history ?? [])].reverse();
    put(body,
      panel('Members', { classes: 'w8', end: found.members.length > 1 ? compare : null }, found.centre ? el('p.note.small', {}, 'The number is the similarity to the centre, which forms a pair with the most members; “–”: similar to others, not to the centre.') : null, members),
      panel('History, latest first', { classes: 'w4' }, history.length
        ? el('ul.pick', {}, history.map((one) => el('li', {}, el('span.line.event-line', {}, el('b', {}, EVENTS[one.event] ?? one.event), el('span', {}, plural(one.size, 'document'), ' ', el('span.why', {}, eventWords(one))), el('span.quiet.small', {}, epochWords(one.epoch, one.at))))))
        : el('p.note', {}, 'Nothing is held of its history.')));
    showChoice();
  };
  load();
  return {
    title: `${shortId(id)} – cluster`,
    root: [el('div', {}, el('h1', {}, 'Cluster'), idSpan(id, 'div.id.whole')), summary, body],
    // The name of a cluster is the id of a member. A change of that document's pairs may be a change of the cluster.
    epoch: (frame) => { stale ||= frame.deltas.some((delta) => delta.a === id || delta.b === id); },
    tick: () => { if (stale && !chosen.size) load(); },
    close: () => excerpts.close(),
  };
}
