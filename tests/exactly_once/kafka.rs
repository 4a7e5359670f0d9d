//! From a topic to a topic, on a real broker.

use std::collections::BTreeMap;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use dupflow::core::doc::DocId;
use dupflow::core::hash::mix;

use crate::broker::Broker;
use crate::committed::{Committed, committed, ends};
use crate::compacted;
use crate::decisions;
use crate::options::Options;
use crate::place::{self, BOUND, Pairs, Place, Verdict};
use crate::sides;

/// Failpoints between two durable steps.
const POINTS: &[&str] = &["transaction-sent", "transaction-committed", "commit", "state", "writer-stored"];

/// Number of partitions of the input.
const PARTITIONS: i32 = 3;

/// All committed values of a topic, partition by partition, in order.
fn values(broker: &Broker, topic: &str) -> Vec<Option<String>> {
    committed(broker, topic).into_iter().map(|record| record.value).collect()
}

/// The accumulated pairs of the output; an error if a pair is added twice, or removed while absent.
fn output(broker: &Broker, topic: &str) -> Result<Pairs, String> {
    let mut pairs = Pairs::new();
    let lines: Vec<String> = values(broker, topic).into_iter().flatten().collect();
    place::apply(lines.iter().map(String::as_str), &mut pairs)?;
    Ok(pairs)
}

/// The last mark of the output: offsets, whether it is in correction, and the pipeline.
fn mark(broker: &Broker, topic: &str) -> Option<(BTreeMap<String, u64>, bool, String)> {
    let records = values(broker, topic).into_iter().flatten();
    let mut records = records.map(|record| serde_json::from_str::<serde_json::Value>(&record).unwrap());
    // The topic also holds claims of runs.
    let mark = records.rfind(|record| record.get("progress").is_some())?;
    let next = mark["progress"]["next"].as_object().unwrap();
    let next = next.iter().map(|(partition, next)| (partition.clone(), next.as_u64().unwrap())).collect();
    let in_correction = mark["in_correction"].as_bool().unwrap_or(false);
    Some((next, in_correction, mark["pipeline"].as_str().unwrap_or_default().to_owned()))
}

struct Scene<'a> {
    options: &'a Options,
    place: Place,
    broker: &'a Broker,
    input: String,
    output: String,
    verdict: Verdict,
    /// Runs so far.
    runs: usize,
}

impl Scene<'_> {
    fn processes(&self) -> usize {
        if self.options.processes { [1, 3, 2][(self.runs / 6) % 3] } else { 1 }
    }

    fn progress(&self) -> String {
        format!("{}-progress", self.output)
    }

    fn problem(&mut self, problem: String) {
        println!("PROBLEM {problem}");
        self.verdict.problems.push(problem);
    }

    /// Starts a run, lets it work for a while, then kills it or the broker.
    fn kill(&mut self, words: &str, kill: usize) {
        let count = self.processes();
        let point = place::point(POINTS, kill, count);
        let passes = self.place.random(8);
        let at_point = self.options.points && kill.is_multiple_of(2);
        let point = at_point.then(|| format!("{point}:{passes}"));
        let mut children = self.place.start(words, count, point.as_deref());
        self.runs += 1;
        let moment = Duration::from_millis(300 + self.place.random(2200));
        let restarts = kill % (self.options.kills / 3).max(1) == 2;
        if restarts && self.broker.kill() {
            place::wait(&mut children, moment);
            self.broker.restart();
            println!("kill {kill}: the broker was killed and started again");
        }
        let time = if at_point { Duration::from_secs(15) } else { moment };
        match place::wait(&mut children, time) {
            None => {
                let which = usize::try_from(self.place.random(64)).unwrap();
                self.verdict.problems.extend(place::kill(children, which));
                println!("kill {kill}: {count} processes, one killed after {} ms", moment.as_millis());
            }
            Some(_) if at_point => println!("kill {kill}: {count} processes, killed at {}", point.unwrap()),
            Some(well) => {
                let log = self.place.log();
                self.problem(format!("kill {kill}: it ended by itself, {well}:\n    {log}"));
            }
        }
        self.verdict.kills += 1;
    }

    /// A second run takes over from the first, which must notice it.
    fn zombie(&mut self, words: &str) {
        let mut first = self.place.start(words, 1, None);
        place::wait(&mut first, Duration::from_secs(3));
        let second = self.place.start(words, 1, None);
        // The first run notices at its next commit; this event changes nothing, and gives it one to make.
        let writer = self.broker.writer();
        writer.put(&self.input, 0, Some("no document"), None);
        writer.flush();
        let ended = place::wait(&mut first, BOUND);
        println!("zombie: the first run ended {ended:?} after another one took over");
        if ended != Some(false) {
            self.problem("a run whose output was taken over goes on, or ends well".to_owned());
            first.iter_mut().for_each(|child| child.kill().unwrap_or(()));
        }
        place::kill(second, 0);
    }

    /// Lets a run work until the output covers all input, and stops it. `before` is the pipeline of the
    /// output that is corrected, if any.
    fn finish(&mut self, words: &str, before: Option<&str>) {
        let count = self.processes();
        let mut children = self.place.start(words, count, None);
        self.runs += 1;
        let ends = ends(self.broker, &self.input);
        let until = Instant::now() + BOUND;
        loop {
            let stands = mark(self.broker, &self.progress()).is_some_and(|(next, in_correction, of)| {
                !in_correction && next == ends && Some(&*of) != before
            });
            if stands {
                break;
            }
            let ended = place::wait(&mut children, Duration::from_millis(200));
            if ended.is_some() || Instant::now() > until {
                let (log, at) = (self.place.log(), mark(self.broker, &self.progress()));
                self.problem(format!(
                    "the last run ended {ended:?} at {at:?}, the input ends at {ends:?}:\n    {log}"
                ));
                children.iter_mut().for_each(|child| child.kill().unwrap_or(()));
                return;
            }
        }
        terminate(&children[0]);
        if place::wait(&mut children, BOUND) != Some(true) {
            let log = self.place.log();
            self.problem(format!("a run that is terminated does not end well:\n    {log}"));
            children.iter_mut().for_each(|child| child.kill().unwrap_or(()));
        }
    }

    fn look(&mut self) -> Option<Pairs> {
        self.verdict.commits_seen += 1;
        if self.options.decisions.is_some() {
            let problems = self.decisions();
            let is_good = problems.is_empty();
            problems.into_iter().for_each(|problem| self.problem(problem));
            return is_good.then(Pairs::new);
        }
        // The broker may still complete the transaction of a run that was killed.
        let until = Instant::now() + Duration::from_secs(10);
        let found = loop {
            let found =
                output(self.broker, &self.output).and_then(|pairs| match self.rows(&pairs, None)? {
                    None => Ok(pairs),
                    Some(problem) => Err(problem),
                });
            if found.is_ok() || Instant::now() > until {
                break found;
            }
        };
        found.map_err(|problem| self.problem(problem)).ok()
    }

    /// How the rows of views differ from those of the pairs, and of this number of documents if it is known.
    fn rows(&self, pairs: &Pairs, documents: Option<usize>) -> Result<Option<String>, String> {
        let lines: Vec<String> =
            values(self.broker, &format!("{}-rows", self.output)).into_iter().flatten().collect();
        let found = sides::accumulated(lines.iter().map(String::as_str))?;
        let held = || {
            let values = found.iter().map(|row| serde_json::from_str::<serde_json::Value>(row).unwrap());
            let mut held = values.filter(|row| row["view"] == "documents");
            held.next().and_then(|row| row["value"].as_u64()).and_then(|n| usize::try_from(n).ok())
        };
        let documents = documents.or_else(held).unwrap_or_default();
        let expected = sides::expected(pairs.keys().map(|(a, b)| (a.as_str(), b.as_str())), documents);
        Ok(sides::compare(&found, &expected))
    }

    /// The problems of the decisions up to the last mark.
    fn decisions(&mut self) -> Vec<String> {
        let number = |value: &serde_json::Value| value.as_u64().unwrap();
        let mut moments: Vec<decisions::Moment> = Vec::new();
        for value in values(self.broker, &self.progress()).into_iter().flatten() {
            let mark: serde_json::Value = serde_json::from_str(&value).unwrap();
            let Some(next) = mark["progress"]["next"].as_object() else { continue };
            let next = next.iter().map(|(p, next)| (p.parse().unwrap(), number(next))).collect();
            let moment = (number(&mark["progress"]["epoch"]), next);
            // A run that takes over writes the mark that it found again.
            if moments.last() != Some(&moment) {
                moments.push(moment);
            }
        }
        let read = |Committed { key, value, .. }| {
            (key, value.map(|text: String| serde_json::from_str(&text).unwrap()))
        };
        let records: Vec<_> = committed(self.broker, &self.output).into_iter().map(read).collect();
        self.verdict.decisions = records.len();
        let event = |Committed { position, key, value, ts }| {
            let id = DocId::new(&key).unwrap();
            let row = |raw: &str| Some(serde_json::from_str::<serde_json::Value>(raw).ok()?["text"].clone());
            // A text that looks like JSON is written as a row.
            let text = |raw: String| match row(&raw) {
                Some(serde_json::Value::String(text)) => text,
                _ => raw,
            };
            decisions::Event { position, id, text: value.map(text), ts }
        };
        let events: Vec<_> = committed(self.broker, &self.input).into_iter().map(event).collect();
        decisions::problems(self.options, &events, &moments, &records)
    }

    /// Kills the run as often as asked. In between it changes what the options ask for: added partitions, a
    /// deleted state, a second run that takes over.
    fn kill_repeatedly(&mut self, words: &str, partitions: &AtomicU32) {
        for kill in 0..self.options.kills {
            self.kill(words, kill);
            if kill % 5 == 4 && self.look().is_none() {
                break;
            }
            if self.options.compacted && [self.options.kills / 4, self.options.kills / 2].contains(&kill) {
                let grown = partitions.load(Ordering::SeqCst) + 1;
                self.broker.grow(&self.input, grown);
                println!("the input has {grown} partitions");
                partitions.store(grown, Ordering::SeqCst);
            }
            if self.options.lose_state && kill == self.options.kills / 2 {
                println!("the state is deleted");
                std::fs::remove_dir_all(self.place.path("state")).unwrap_or(());
            }
            if kill == self.options.kills / 3 {
                self.zombie(words);
            }
        }
    }

    /// Lets runs of each pipeline end, and compares the output with a replay.
    fn check_pipelines(&mut self, feed: &std::path::Path) {
        let mut pipelines = vec![(format!("-p {}", self.options.pipeline), "")];
        if self.options.reconcile {
            pipelines.push((format!("-p {} --set threshold=0.6", self.options.pipeline), " --reconcile"));
            pipelines.push(("-p exact".to_owned(), " --reconcile"));
        }
        for (pipeline, reconcile) in pipelines {
            let again = format!("run {pipeline} -c run.toml{reconcile}");
            println!("dupflow {again}");
            let mut before = None;
            if !reconcile.is_empty() {
                before = mark(self.broker, &self.progress()).map(|(.., of)| of);
                (0..3).for_each(|kill| self.kill(&again, kill));
            }
            self.finish(&again, before.as_deref());
            if let Some(found) = self.look().filter(|_| self.options.decisions.is_none()) {
                self.verdict.pairs = found.len();
                let problem = place::compare(&found, &self.place.expected(feed, &pipeline));
                let of_views = self.rows(&found, Some(sides::alive(feed))).unwrap_or_else(Some);
                let notices = values(self.broker, &format!("{}-notices", self.output));
                let notices = sides::accumulated(notices.iter().flatten().map(String::as_str));
                let fresh = sides::fresh_notices(&self.place, feed, &pipeline);
                let of_watches = notices.map_or_else(Some, |noticed| sides::compare(&noticed, &fresh));
                problem
                    .into_iter()
                    .chain(of_views)
                    .chain(of_watches)
                    .for_each(|problem| self.problem(problem));
            }
        }
    }
}

fn terminate(child: &Child) {
    let killed = std::process::Command::new("kill").args(["-s", "TERM", &child.id().to_string()]).status();
    assert!(killed.unwrap().success());
}

pub(crate) fn run(options: &Options) -> Option<Verdict> {
    let broker = match Broker::start() {
        Ok(broker) => broker,
        Err(why) => {
            println!("SKIPPED exactly_once: {why}");
            return None;
        }
    };
    let name = format!("exactly-once-{:x}", mix(options.seed ^ u64::from(std::process::id())));
    let place = Place::new(options);
    let feed = if options.compacted { compacted::feed(&place, options.seed) } else { place.feed(options) };
    let (input, output) = (format!("{name}-in"), format!("{name}-out"));
    sides::watches(&place, &feed);
    let list = format!("inputs = [\"{}\"]", sides::WATCHES);
    let topics = ["rows", "notices"].map(|suffix| format!("topic = \"{output}-{suffix}\""));
    let sides = sides::tables(&list, &topics[0], &topics[1]);
    let config = format!(
        "workers = 1\n[source]\nkind = \"kafka\"\ntopic = \"{input}\"\nrefresh_seconds = 1\n{}[sink]\nkind = \
         \"kafka\"\ntopic = \"{output}\"\n{}\
         [kafka]\nbrokers = \"{}\"\n[state]\npath = \"state\"\ncommit_every = \"200ms\"\n\
         [logging]\nlevel = \"info\"\n{}",
        sides::FIELDS,
        options.emit(),
        broker.address(),
        if options.decisions.is_none() { sides } else { String::new() }
    );
    std::fs::write(place.path("run.toml"), config).unwrap();
    let partitions = Arc::new(AtomicU32::new(u32::try_from(PARTITIONS).unwrap()));
    let settings = if options.compacted { compacted::SETTINGS } else { &[] };
    broker.make_with(&input, PARTITIONS, settings);
    let events = std::fs::read_to_string(&feed).unwrap().lines().count();
    // At this rate writing lasts about as long as the kills.
    let rate = (events / (options.kills + 2)).max(50);
    let (mut writer, mut own_writer) = (Vec::new(), None);
    if options.compacted {
        let partitions = Arc::clone(&partitions);
        own_writer = Some(compacted::write(&broker, &input, &feed, rate, partitions));
    } else {
        let mut produce = place.command(&format!("produce -c run.toml --rate {rate}/s {}", feed.display()));
        let log = std::fs::File::create(place.path("writer")).unwrap();
        writer.push(produce.stdout(std::process::Stdio::null()).stderr(log).spawn().unwrap());
    }
    println!("{events} events into 3 partitions at {rate} a second");

    let mut scene =
        Scene { options, place, broker: &broker, input, output, verdict: Verdict::default(), runs: 0 };
    let words = format!("run -p {} -c run.toml", options.pipeline);
    scene.kill_repeatedly(&words, &partitions);
    if own_writer.take().is_some_and(|thread| thread.join().is_err()) {
        scene.problem("the writer did not end well".to_owned());
    }
    if options.compacted {
        let left = values(&broker, &scene.input).len();
        println!("{left} of {events} records have not been compacted away");
    }
    if place::wait(&mut writer, Duration::from_secs(600)) != Some(true) {
        let log = std::fs::read_to_string(scene.place.path("writer")).unwrap_or_default();
        scene.problem(format!("the writer did not end well: {log}"));
    }
    scene.check_pipelines(&feed);
    Some(scene.verdict)
}
