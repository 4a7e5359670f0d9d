// The stream of deltas: one connection a tab, closed while nobody looks; the last 10,000 deltas in a ring.

const KEPT_DELTAS = 10000;

const stream = {
  source: null,
  /** connecting, live, lost, hidden, ended. */
  state: 'connecting',
  tries: 0,
  /** The id of the last frame, from where to go on. */
  last: null,
  /** Deltas, and what is told between them, oldest first; the first of them is number `first`. */
  rows: [],
  first: 0,
  /** Of an epoch that comes in several frames those that have come, until the last one: after a reconnect all of them come again. */
  begun: [],
  /** All deltas that came to this page. */
  came: 0,
  /** What the run did not send because this page was too slow. */
  skipped: { epochs: 0, deltas: 0, at: -Infinity, recent() { return performance.now() - this.at < 60000; } },
  listeners: new Set(),
  timer: null,

  /** The number after the last row. */
  get end() {
    return this.first + this.rows.length;
  },

  words() {
    const states = { connecting: 'deltas: connecting', live: 'deltas come as they are committed', lost: 'deltas: no connection, tried again', hidden: 'deltas wait until this tab is looked at', ended: 'the run has ended' };
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
    const source = new EventSource(this.last ? `./deltas?tail&after=${encodeURIComponent(this.last)}` : './deltas?tail');
    this.source = source;
    source.onopen = () => {
      this.state = 'live';
      this.tries = 0;
      showFrame();
    };
    source.addEventListener('epoch', (event) => {
      const frame = JSON.parse(event.data);
      this.came += frame.deltas.length;
      this.last = event.lastEventId || this.last;
      this.take(frame);
    });
    source.addEventListener('dropped', (event) => this.drop(JSON.parse(event.data)));
    // What this page saw last is not held any more. It wants what comes, not what there is.
    source.addEventListener('snapshot', () => {
      this.last = null;
      this.tell('some epochs between are not shown');
      this.open();
    });
    source.addEventListener('bye', () => this.retry('ended'));
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
    for (const delta of deltas) this.rows.push({ ...delta, epoch: frame.epoch, at: frame.at });
    this.trim();
    for (const listener of this.listeners) listener({ epoch: frame.epoch, deltas });
  },

  drop({ epochs, deltas }) {
    this.skipped.epochs += epochs;
    this.skipped.deltas += deltas;
    this.skipped.at = performance.now();
    this.tell(`${plural(deltas, 'delta')} of ${plural(epochs, 'epoch')} were skipped: this page was too slow`);
  },

  tell(words) {
    this.rows.push({ told: words });
    this.trim();
    for (const listener of this.listeners) listener(null);
  },

  trim() {
    // In one go, once it is a quarter too long: to take rows off the front one epoch after another moves all of them each time.
    if (this.rows.length < KEPT_DELTAS * 1.25) return;
    const gone = this.rows.length - KEPT_DELTAS;
    this.rows.splice(0, gone);
    this.first += gone;
  },
};

document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    stream.close();
    stream.state = 'hidden';
    clearTimeout(timer);
    timer = null;
  } else {
    stream.open();
    asked = 0;
    tick();
  }
});
