// The watch list: what is watched for, the last notices, and the web hook.

function watchList() {
  const state = el('p.quiet', { role: 'status' }, 'Asking …');
  const hook = el('p.note', { hidden: true });
  const notices = el('div', {});
  const watches = el('div', {});
  const sign = (notice) => el('b', { title: notice.diff > 0 ? 'became similar' : 'is similar no more' }, notice.diff > 0 ? '+' : '−');
  let shown = null;
  const showNotices = ({ count: all, notices: last, hook: deliveries }) => {
    say(state, all ? `${plural(all, 'notice')} so far.` : 'No notice yet: no document has resembled a watch.');
    hook.hidden = !deliveries;
    if (deliveries) {
      const late = deliveries.undelivered ? `, ${count(deliveries.undelivered)} not delivered, the oldest for ${span(deliveries.oldest_seconds)}` : '';
      const refused = deliveries.refused ? `, ${count(deliveries.refused)} refused` : '';
      say(hook, `Web hook: ${count(deliveries.delivered)} delivered in this run${refused}${late}.${deliveries.failure ? ` The last attempt failed: ${deliveries.failure}` : ''}`);
    }
    if (shown === all) return;
    shown = all;
    put(notices, last.length ? panel('Last notices', {}, el('ul.pick', { 'data-list': true }, last.map((notice) => el('li', {}, el('a.answer-line', { href: at.document(notice.id) },
      sign(notice), el('b', {}, similarity(notice.similarity)), idSpan(notice.id), el('span.why', {}, [`resembles the watch ${idText(notice.watch)}, epoch ${count(notice.epoch)}`, within(notice.watch, notice.id, notice.in_id, notice.of_id)].filter(Boolean).join('; '))))))) : null);
  };
  const showWatches = ({ count: all, watches: first, next }) => put(watches, panel(plural(all, 'watch').replace(/watchs$/, 'watches'), {},
    first.length ? el('ul.pick', {}, first.map((watch) => el('li', {}, el('span.line', {}, idSpan(watch.id), el('span.why', {}, `${watch.origin === 'input' ? 'of an input' : 'posted'}, ${bytes(watch.bytes)}`))))) : el('p.note', {}, 'The list is empty.'),
    next === null ? null : el('p.note', {}, 'These are the first; GET /watch lists all.')));
  let asking = false;
  const tick = async () => {
    if (asking) return;
    asking = true;
    const [of, list] = await Promise.all([ask('/notices?limit=50'), ask('/watch?limit=50')]);
    asking = false;
    if (!of.ok || !list.ok) return say(state, refusal(of.ok ? list : of));
    showNotices(of.data);
    showWatches(list.data);
  };
  return {
    title: 'Watches',
    root: [
      el('div.title', {}, el('h1', {}, 'Watches'), el('span.quiet', {}, 'Texts that are watched for, and the documents that resemble them.')),
      state, hook, notices, watches,
    ],
    tick,
  };
}
