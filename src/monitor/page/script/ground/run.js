// The state of the run: fetched once a second; kept over restarts of the run and while the tab is hidden.

const run = {
  /** The last answer of /status, and of /pipeline. */
  status: null,
  pipeline: null,
  /** Samples by the second, of this run and of earlier ones that this page has seen; samples by the minute, as the run has them. */
  samples: [],
  coarse: [],
  /** When another run took the place of one, in seconds of its clock. */
  restarts: [],
  /** While the run does not answer: since when, in milliseconds of the browser's clock, and how often it was asked. */
  lost: null,
  locked: false,
};
const KEPT_SECONDS = 660;

/** An answer of the run: its status, 0 if none came, and its data. */
async function ask(path, options = {}) {
  try {
    // Relative, since a proxy may serve the page below a path.
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

/** The reason why there is no answer, as a sentence. */
const refusal = (answer) => (answer.status === 0 ? 'The run does not answer.' : answer.data?.error || `The run answers ${answer.status}.`);

function sampleOf(status) {
  const { counts } = status;
  return {
    run: status.run, at: status.now, events: counts.events, bytes: counts.bytes, added: counts.pairs_added, removed: counts.pairs_removed,
    documents: status.documents, pairs: status.pairs, resident_bytes: status.resident_bytes, closed: status.epochs.closed,
    durable: status.epochs.durable, commit_ms: null, event_time: status.reading?.event_time ?? null, counts,
  };
}

/** Takes the history that the run has, and keeps older samples of this page. */
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
  // Requests before this moment had no answer.
  if (before && before.phase !== 'live' && status.phase === 'live') isLive = true;
  if (isOther) {
    run.restarts.push(status.now);
    run.pipeline = null;
  }
  if (visit.run !== status.run) visit.begin(status.run);
  const last = run.samples.at(-1);
  if (!last || status.now - last.at > 0.5) run.samples.push(sampleOf(status));
  while (run.samples.length && run.samples[0].at < status.now - KEPT_SECONDS) run.samples.shift();
  return isOther;
}

/** The growth of a count per second, over the last `seconds`; null while it is not known. Never negative. */
function rateOf(value, seconds = 5) {
  const now = run.samples.at(-1);
  if (!now) return null;
  let first = null;
  for (let i = run.samples.length - 2; i >= 0; i -= 1) {
    const sample = run.samples[i];
    if (sample.run !== now.run || !isKnown(value(sample))) break;
    first = sample;
    if (now.at - sample.at >= seconds) break;
  }
  const came = first && value(now) - value(first);
  return first && now.at > first.at ? Math.max(0, came / (now.at - first.at)) : null;
}
const countRate = (name) => rateOf((sample) => sample.counts?.[name]);
const deltasOf = (sample) => sample.added + sample.removed;

/** For how many seconds the oldest closed epoch is not durable. */
function lagSeconds() {
  const now = run.samples.at(-1);
  if (!now || now.closed <= now.durable) return 0;
  const since = run.samples.find((sample) => sample.run === now.run && sample.closed > now.durable);
  return since ? Math.max(0, now.at - since.at) : 0;
}

const EPOCHS_BEHIND = 32;

/** Records that wait longer than this are an alarm; /ready has a bound of its own. */
const UNREAD_SECONDS = 60;

/** Whether the number of epochs that are not durable has grown over the last 15 seconds. */
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

/** Alarms, the worst first: level, problem, what to do. */
function alarms() {
  const found = [];
  const { status } = run;
  if (run.locked) found.push(['bad', 'This page is locked out.', 'The token is missing or has changed: load the page again and enter it.']);
  else if (run.lost && run.lost.tries > 1 && stream.endedAt !== null) {
    found.push(['info', `The run has ended, at ${clock(stream.endedAt)}.`, 'All that it read is written. What is shown is of then; this page goes on asking, and shows the next run when there is one.']);
  } else if (run.lost && run.lost.tries > 1) {
    const since = new Date(run.lost.since).toLocaleTimeString('en-GB');
    found.push(['bad', `The run has not answered since ${since}.`, 'What is shown is of then. If the process is gone, the last lines of its log say why. This page goes on asking, and comes back by itself.']);
  }
  if (!status) return found;
  if (status.failure) found.push(['bad', `The run has failed: ${visible(status.failure).replace(/[^.]$/, '$&.')}`, 'Nothing more is written. Mend what the message names and start it again: it goes on where it stopped.']);
  else if (PHASES[status.phase]) found.push(['info', PHASES[status.phase], status.phase === 'stopping' ? 'Then it ends.' : 'Deltas are shown once it is live.']);
  else if (!run.lost && isKnown(status.reading?.ended_at)) found.push(['info', `The feed has ended: all of it was read at ${clock(status.reading.ended_at)}.`, 'Nothing new will come. The run stays open until you stop it.']);
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
  const isOver = run.lost && stream.endedAt !== null;
  const state = isOver ? 'ended' : run.lost || run.locked ? 'lost' : status?.failure ? 'failed' : status?.phase === 'live' ? 'live' : 'waiting';
  live.dataset.state = state;
  const words = { lost: 'no answer', ended: 'ended', failed: 'failed', live: isKnown(status?.reading?.ended_at) ? 'feed ended' : 'live', waiting: status?.phase?.replace('_', ' ') ?? 'connecting' };
  say(document.getElementById('live-text'), words[state]);
  live.title = stream.words();
  const trouble = state === 'lost' || state === 'failed' ? `(!) ${words[state]} – ` : '';
  const title = [view.current?.title, 'dupflow', run.pipeline?.name].filter(Boolean).join(' – ');
  if (document.title !== trouble + title) document.title = trouble + title;
  showAlarms();
  if (!status) return;
  for (const [tab, number] of [['views', status.views], ['watch', status.watches]]) document.querySelector(`header nav [data-view=${tab}]`).hidden = !isKnown(number);
  const [process, processes] = status.process;
  say(document.getElementById('footer'), [
    pipeline && `${pipeline.name}, similar from ${pipeline.threshold} on`, epochWords(status.epochs.durable), isKnown(status.reading?.event_time) && `corpus of ${moment(status.reading.event_time)}`, `up ${span(status.uptime_seconds)}`,
    plural(status.workers, 'worker'), processes > 1 && `process ${process} of ${processes}`, `run ${status.run}`, `dupflow ${status.version}`,
  ].filter(Boolean).join('  ·  '));
}

let asked = 0;
let timer = null;
/** The run has become live since it was asked last. */
let isLive = false;

/** Fetches the status, and again in a second; less often while there is no answer. */
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
    // The stream is opened once the run is known: the last visit is by its name.
    const isFirst = run.status === null;
    const isOther = takeStatus(answer.data);
    if (isOther) stream.note('the run was started again');
    if (isFirst || isOther || wasLost || isLive) stream.open();
    if (isLive) view.show();
    visit.note(answer.data);
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
