// The stream of deltas: one connection of this tab, closed while the tab is hidden; the last 10,000 deltas in a ring. It begins
// with the deltas from before the page was opened that the run still holds.

const KEPT_DELTAS = 10000;

const stream = {
  source: null,
  /** connecting, live, lost, hidden, ended. */
  state: 'connecting',
  tries: 0,
  /** The id of the last frame, from where to go on. */
  last: null,
  /** Deltas, and notes between them, oldest first; the first of them is number `first`. */
  rows: [],
  first: 0,
  /** The deltas of an epoch of several frames, until its last frame: after a reconnect all of them are sent again. */
  begun: [],
  /** All deltas received; and how many of them were committed after the page was opened. */
  came: 0,
  fresh: 0,
  /** When this page was opened, in unix seconds of the browser's clock. */
  opened: Date.now() / 1000,
  /** The times of the epochs in the ring, in unix seconds. */
  times: new Map(),
  /** When the run said that it ends. */
  endedAt: null,
  /** Deltas that the run did not send because this page was too slow. */
  skipped: { epochs: 0, deltas: 0, at: -Infinity, recent() { return performance.now() - this.at < 60000; } },
  listeners: new Set(),
  timer: null,
  /** Before the first connection. */
  isFirst: true,
  /** The visit that has a row. */
  marked: null,

  /** The number after the last row. */
  get end() {
    return this.first + this.rows.length;
  },

  words() {
    const states = { connecting: 'deltas: connecting', live: 'deltas are shown when they are committed', lost: 'deltas: no connection, tried again', hidden: 'deltas: paused while this tab is hidden', ended: 'the run has ended' };
    return states[this.state];
  },

  open() {
    this.close();
    if (document.hidden) {
      this.state = 'hidden';
      return;
    }
    this.state = 'connecting';
    this.begun = [];
    const source = new EventSource(this.last ? `./deltas?tail&after=${encodeURIComponent(this.last)}` : `./deltas?tail=${this.isFirst ? KEPT_DELTAS : 0}`);
    this.source = source;
    source.onopen = () => {
      this.isFirst = false;
      this.endedAt = null;
      this.state = 'live';
      this.tries = 0;
      showFrame();
    };
    source.addEventListener('epoch', (event) => {
      const frame = JSON.parse(event.data);
      this.came += frame.deltas.length;
      if (frame.at >= this.opened) this.fresh += frame.deltas.length;
      this.last = event.lastEventId || this.last;
      this.take(frame);
    });
    source.addEventListener('dropped', (event) => this.drop(JSON.parse(event.data)));
    // The run does not hold the deltas after the last one received. A snapshot is not needed here: the stream continues at its end.
    source.addEventListener('snapshot', () => {
      this.last = null;
      this.note('some epochs between are not shown');
      this.open();
    });
    source.addEventListener('bye', () => {
      this.endedAt = Date.now() / 1000;
      this.retry('ended');
    });
    source.onerror = () => this.retry('lost');
  },

  close() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  },

  /** Connects again, later and later. */
  retry(state) {
    this.close();
    this.state = state;
    this.tries += 1;
    this.timer = setTimeout(() => this.open(), Math.min(500 * 2 ** Math.min(this.tries, 4), 8000));
    showFrame();
  },

  take(frame) {
    const deltas = [...this.begun, ...frame.deltas].slice(-KEPT_DELTAS);
    this.begun = frame.more ? deltas : [];
    if (frame.more) return;
    this.noteVisit(frame);
    for (const delta of deltas) this.rows.push({ ...delta, epoch: frame.epoch, at: frame.at });
    if (deltas.length && isKnown(frame.at)) this.times.set(frame.epoch, frame.at);
    this.trim();
    for (const listener of this.listeners) listener({ epoch: frame.epoch, deltas });
  },

  /** Adds a row between the last visit and what is newer. */
  noteVisit(frame) {
    if (!visit.isNew(frame.epoch) || this.marked === visit.before || !frame.deltas.length) return;
    this.marked = visit.before;
    if (this.rows.length) this.note(`your last visit ended at ${clock(visit.before.at)}; above is newer`);
  },

  drop({ epochs, deltas, after, through }) {
    if (deltas === null) {
      // This page was away, and the run does not hold what followed its last frame.
      const missing = isKnown(after) ? `deltas after epoch ${count(after)}` : 'deltas from before this connection';
      if (after !== through) this.note(`${missing} are not shown: the run does not hold them`);
      return;
    }
    this.skipped.epochs += epochs;
    this.skipped.deltas += deltas;
    this.skipped.at = performance.now();
    this.note(`${plural(deltas, 'delta')} of ${plural(epochs, 'epoch')} were skipped: this page was too slow`);
  },

  /** Adds a row of words between the deltas. */
  note(words) {
    this.rows.push({ note: words });
    this.trim();
    for (const listener of this.listeners) listener(null);
  },

  trim() {
    // Removed at once when the ring is a quarter too long, since each removal from the front moves all rows.
    if (this.rows.length < KEPT_DELTAS * 1.25) return;
    const gone = this.rows.length - KEPT_DELTAS;
    this.rows.splice(0, gone);
    this.first += gone;
    const oldest = this.rows.find((row) => isKnown(row.epoch))?.epoch ?? 0;
    for (const epoch of this.times.keys()) if (epoch < oldest) this.times.delete(epoch);
  },
};

/** A tab that was hidden for longer begins another visit. */
const A_VISIT_MS = 60000;
let hiddenSince = 0;
window.addEventListener('pagehide', () => visit.note(run.status, true));
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    visit.note(run.status, true);
    hiddenSince = performance.now();
    stream.close();
    stream.state = 'hidden';
    clearTimeout(timer);
    timer = null;
  } else {
    if (run.status && performance.now() - hiddenSince > A_VISIT_MS) visit.begin(run.status.run);
    stream.open();
    asked = 0;
    tick();
  }
});
