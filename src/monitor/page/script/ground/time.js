// Times: the clock, the time of an epoch, the date of the corpus, the last visit.

const HOUR_MINUTE_SECOND = { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false };

/** A time of the browser's clock; with the date if it is not of today. `unix` is in seconds. */
function clock(unix, parts = HOUR_MINUTE_SECOND) {
  const time = new Date(unix * 1000);
  const words = time.toLocaleTimeString('en-GB', parts);
  if (time.toDateString() === new Date().toDateString()) return words;
  const isThisYear = time.getFullYear() === new Date().getFullYear();
  return `${time.toLocaleDateString('en-GB', { day: 'numeric', month: 'short', ...(!isThisYear && { year: 'numeric' }) })} ${words}`;
}

/** An event time: of the corpus, not of the clock; in UTC. */
const moment = (unix) => `${new Date(unix * 1000).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
const day = (unix) => new Date(unix * 1000).toISOString().slice(0, 10);

function span(seconds) {
  if (seconds < 1) return 'under 1 s';
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  if (seconds < 86400 * 800) return `${Math.round(seconds / 86400)} days`;
  return `${(seconds / 31557600).toFixed(1)} years`;
}

/** Event time that passes in a second of the clock: "12 days a second", "3.0 times real time". */
function pace(perSecond) {
  if (perSecond === null || perSecond <= 0) return '';
  if (perSecond < 100) return `${perSecond < 9.95 ? perSecond.toFixed(1) : perSecond.toFixed(0)} times real time`;
  return `${span(perSecond)} a second`;
}

/** When an epoch became durable, in unix seconds: exact while its deltas are held, then to the sample; null if it is older. */
function timeOf(epoch) {
  const exact = stream.times.get(epoch);
  if (exact !== undefined) return exact;
  for (const samples of [run.samples, run.coarse]) {
    const after = samples.find((sample) => sample.run === run.status?.run && sample.durable >= epoch);
    // The first sample of all may be long after the epoch.
    if (after && after !== samples[0]) return after.at;
  }
  return null;
}

/** "epoch 12, 14:03:22"; without the time if that is not known. `at`: the time, if the run gave one. */
function epochWords(epoch, at = null) {
  const time = at ?? timeOf(epoch);
  return `epoch ${count(epoch)}${time === null ? '' : `, ${clock(time)}`}`;
}
const asOf = (epoch, at) => `as of ${epochWords(epoch, at)}`;

const MOST_VISITS = 20;
const VISITS = 'dupflow.visits';

/** The last visit of this browser to this run: in local storage, by the name of the run. */
const visit = {
  /** The run whose visit is `before`. */
  run: null,
  /** Where the visit before this one ended: { epoch, at }; null at the first visit. */
  before: null,
  kept: {},
  written: 0,

  all() {
    try {
      return JSON.parse(localStorage.getItem(VISITS)) ?? {};
    } catch {
      return this.kept;
    }
  },

  /** The run is known, or the tab is looked at again. */
  begin(name) {
    this.run = name;
    const before = this.all()[name];
    this.before = typeof before?.epoch === 'number' && typeof before?.at === 'number' ? before : null;
  },

  /** Notes what has been seen, at most every five seconds. */
  note(status, isLast = false) {
    if (!status || status.phase === 'starting' || (!isLast && performance.now() - this.written < 5000)) return;
    this.written = performance.now();
    const visits = Object.entries({ ...this.all(), [status.run]: { epoch: status.epochs.durable, at: status.now } });
    this.kept = Object.fromEntries(visits.sort((x, y) => y[1].at - x[1].at).slice(0, MOST_VISITS));
    try {
      localStorage.setItem(VISITS, JSON.stringify(this.kept));
    } catch {
      // Without storage the visit ends with the page.
    }
  },

  /** Whether something of this epoch is new since the last visit. */
  isNew(epoch) {
    return this.before !== null && epoch > this.before.epoch;
  },
};
const newChip = (epoch) => (visit.isNew(epoch) ? el('span.chip.new', { title: `since your last visit, ${clock(visit.before.at)}` }, 'new') : null);
