// What is known of the run: asked once a second, kept over restarts of the run and while the page is out of sight.

const run = {
  /** The last answer of /status, and of /pipeline. */
  status: null,
  pipeline: null,
  /** By the second, of this run and of those before it that this page has seen; by the minute, as the run has it. */
  samples: [],
  coarse: [],
  /** When a run began that took the place of another, in seconds by the run's own clock. */
  restarts: [],
  /** While it does not answer: since when by this browser's clock, in milliseconds, and how often it was asked. */
  lost: null,
  locked: false,
};
const KEPT_SECONDS = 660;

/** An answer of the run: its status, 0 if none came, and its data. */
async function ask(path, options = {}) {
  try {
    // Below whatever path a proxy shows the page at.
    const answer = await fetch(`.${path}`, { signal: AbortSignal.timeout(15000), ...options });
    if (answer.status === 401) run.locked = true;
    const text = await answer.text();
    let data;
    try {
      data = JSON.parse(text);
    } catch {
      data = { error: text.trim() };
    }
    return { ok: answer.ok, status: answer.status, data, after: answer.headers.get('retry-after') };
  } catch (error) {
    return { ok: false, status: 0, data: { error: `no answer: ${error.message}` } };
  }
}

/** Why there is no answer, in a sentence. */
const refusal = (answer) => (answer.status === 0 ? 'The run does not answer.' : answer.data?.error || `The run answers ${answer.status}.`);

function sampleOf(status) {
  const { counts } = status;
  return {
    run: status.run, at: status.now, events: counts.events, bytes: counts.bytes, added: counts.pairs_added, removed: counts.pairs_removed,
    documents: status.documents, pairs: status.pairs, resident_bytes: status.resident_bytes, closed: status.epochs.closed,
    durable: status.epochs.durable, commit_ms: null, counts,
  };
}

/** Takes the run's own history, and keeps what this page saw before it. */
function takeHistory(history) {
  const of = run.status?.run;
  const theirs = (history.samples ?? []).map((sample) => ({ ...sample, run: of }));
  const first = theirs.length ? theirs[0].at : Infinity;
  const last = theirs.length ? theirs.at(-1).at : -Infinity;
  const counted = new Map(run.samples.filter((sample) => sample.counts).map((sample) => [Math.round(sample.at), sample.counts]));
  for (const sample of theirs) sample.counts ??= counted.get(Math.round(sample.at));
  run.samples = [...run.samples.filter((sample) => sample.at < first - 0.5), ...theirs, ...run.samples.filter((sample) => sample.at > last + 0.5)];
  run.coarse = (history.coarse ?? []).map((sample) => ({ ...sample, run: of }));
}

function takeStatus(status) {
  const before = run.status;
  run.status = status;
  const isOther = before && (before.run !== status.run || status.uptime_seconds < before.uptime_seconds - 1);
  // What was asked for before had no answer.
  if (before && before.phase !== 'live' && status.phase === 'live') isLive = true;
  if (isOther) {
    run.restarts.push(status.now);
    run.pipeline = null;
  }
  const last = run.samples.at(-1);
  if (!last || status.now - last.at > 0.5) run.samples.push(sampleOf(status));
  while (run.samples.length && run.samples[0].at < status.now - KEPT_SECONDS) run.samples.shift();
  return isOther;
}

/** How fast a count grows, a second, over the last `seconds`; null while that is not known. Never negative. */
function rateOf(value, seconds = 5) {
  const now = run.samples.at(-1);
  if (!now) return null;
  let first = null;
  for (let i = run.samples.length - 2; i >= 0; i -= 1) {
    const sample = run.samples[i];
    if (sample.run !== now.run || value(sample) === undefined) break;
    first = sample;
    if (now.at - sample.at >= seconds) break;
  }
  const came = first && value(now) - value(first);
  return first && now.at > first.at ? Math.max(0, came / (now.at - first.at)) : null;
}
const countRate = (name) => rateOf((sample) => sample.counts?.[name]);
const deltasOf = (sample) => sample.added + sample.removed;

/** How long the oldest closed epoch has waited to be durable, in seconds, to the second. */
function lagSeconds() {
  const now = run.samples.at(-1);
  if (!now || now.closed <= now.durable) return 0;
  const since = run.samples.find((sample) => sample.run === now.run && sample.closed > now.durable);
  return since ? Math.max(0, now.at - since.at) : 0;
}

const EPOCHS_BEHIND = 32;

/** For how long records may wait to be read before the page says so; /ready has a bound of its own. */
const UNREAD_SECONDS = 60;

/** Whether the output has fallen behind further and further over the last 15 seconds. */
function lagGrows() {
  const now = run.samples.at(-1);
  const then = run.samples.findLast((sample) => sample.run === now.run && sample.at <= now.at - 15);
  const behind = (sample) => sample.closed - sample.durable;
  return Boolean(then) && behind(now) >= 8 && behind(now) >= behind(then) + 6;
}

const PHASES = {
  starting: 'The run is starting: it takes its output over and finds out where to go on.',
  restoring: 'The run takes documents from its state.',
  catching_up: 'The run is catching up: it reads again, without writing, what the output holds already.',
  stopping: 'The run is stopping: what has been read is finished and written.',
};

/** What is wrong, the worst first: level, what it is, what to do. */
function alarms() {
  const found = [];
  const { status } = run;
  if (run.locked) found.push(['bad', 'This page is locked out.', 'The token is missing or has changed: load the page again and enter it.']);
  else if (run.lost && run.lost.tries > 1) {
    const since = new Date(run.lost.since).toLocaleTimeString('en-GB');
    found.push(['bad', `The run has not answered since ${since}.`, 'What is shown is of then. If the process is gone, the last lines of its log say why. This page goes on asking, and comes back by itself.']);
  }
  if (!status) return found;
  if (status.failure) found.push(['bad', `The run has failed: ${visible(status.failure).replace(/[^.]$/, '$&.')}`, 'Nothing more is written. Mend what the message names and start it again: it goes on where it stopped.']);
  else if (PHASES[status.phase]) found.push(['info', PHASES[status.phase], status.phase === 'stopping' ? 'Then it ends.' : 'Deltas come once it is live.']);
  const behind = status.epochs.closed - status.epochs.durable;
  const slow = 'Look at how long a commit takes, and at where the results go: readers wait once it is too far behind.';
  if (behind > EPOCHS_BEHIND) found.push(['bad', `Not ready: the output is more than ${EPOCHS_BEHIND} epochs behind.`, slow]);
  else if (lagGrows()) found.push(['warn', 'The output falls behind: epochs are computed faster than they are written.', slow]);
  const input = status.input;
  if (input && input.oldest_unread_seconds > UNREAD_SECONDS) {
    found.push(input.behind_records ?
      ['warn', `The input is ${plural(input.behind_records, 'record')} behind, in partition ${input.partition} for ${span(input.oldest_unread_seconds)}.`, 'Look at the lag of the output; if there is none, the workers are behind.'] :
      ['bad', `${plural(input.undecided_records, 'record')} of the input wait for an open transaction, in partition ${input.partition} for ${span(input.oldest_unread_seconds)}.`, 'Their producer has to commit or abort it; kafka-transactions.sh finds and ends one that hangs.']);
  }
  if (stream.skipped.recent()) found.push(['warn', `This page could not keep up: ${plural(stream.skipped.deltas, 'delta')} are not shown.`, 'Nothing is missing in the output. Filter less, or close other tabs of the run.']);
  if (!run.lost && status.phase === 'live' && stream.state === 'lost' && stream.tries > 2) found.push(['warn', 'Deltas do not come through, though the run answers.', 'Other tabs may hold all the connections that a browser makes to one host, or too many readers are connected: close some.']);
  return found;
}

let alarmShown = '';
function showAlarms() {
  const found = alarms();
  const key = JSON.stringify(found);
  if (key === alarmShown) return;
  alarmShown = key;
  put(document.getElementById('alarm'), found.map(([level, what, todo]) => el(`div.alarm.${level}`, {}, el('div', {}, el('b', {}, what), ' ', todo))));
}

function showFrame() {
  const { status, pipeline } = run;
  const live = document.getElementById('live');
  const state = run.lost || run.locked ? 'lost' : status?.failure ? 'failed' : status?.phase === 'live' ? 'live' : 'waiting';
  live.dataset.state = state;
  const words = { lost: 'no answer', failed: 'failed', live: 'live', waiting: status?.phase?.replace('_', ' ') ?? 'connecting' };
  say(document.getElementById('live-text'), words[state]);
  live.title = stream.words();
  document.title = state === 'live' || state === 'waiting' ? 'dupflow' : `(!) ${words[state]} – dupflow`;
  showAlarms();
  if (!status) return;
  const [process, processes] = status.process;
  say(document.getElementById('footer'), [
    pipeline && `${pipeline.name}, similar from ${pipeline.threshold} on`, `epoch ${count(status.epochs.durable)}`, `up ${span(status.uptime_seconds)}`,
    plural(status.workers, 'worker'), processes > 1 && `process ${process} of ${processes}`, `run ${status.run}`, `dupflow ${status.version}`,
  ].filter(Boolean).join('  ·  '));
}

let asked = 0;
let timer = null;
/** The run has become live since it was asked last. */
let isLive = false;

/** Asks once, and again in a second; rarer and rarer while there is no answer. */
async function tick() {
  clearTimeout(timer);
  timer = null;
  if (document.hidden) return;
  const answer = await ask('/status', { signal: AbortSignal.timeout(5000) });
  let wait = 1000;
  if (answer.ok) {
    const wasLost = run.lost;
    run.lost = null;
    run.locked = false;
    const isOther = takeStatus(answer.data);
    if (isOther) stream.tell('the run was started again');
    if (isOther || wasLost || isLive) stream.open();
    if (isLive) view.show();
    isLive = false;
    if (!run.pipeline) {
      const found = await ask('/pipeline');
      if (found.ok) run.pipeline = found.data;
    }
    if (asked % 10 === 0 || isOther || wasLost) {
      const found = await ask('/history');
      if (found.ok) takeHistory(found.data);
    }
    asked += 1;
  } else if (!run.locked) {
    run.lost = { since: run.lost?.since ?? Date.now(), tries: (run.lost?.tries ?? 0) + 1 };
    wait = Math.min(500 * 2 ** Math.min(run.lost.tries, 5), 8000);
  }
  showFrame();
  view.current?.tick?.();
  if (!timer && !document.hidden) timer = setTimeout(tick, wait);
}
