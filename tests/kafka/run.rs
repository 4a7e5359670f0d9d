//! `dupflow run` as users run it: the process, its log, and the pairs in its output.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use dupflow::connectors::kafka::broker::Consumer;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::message::Message as _;
use rdkafka::topic_partition_list::Offset;
use serde_json::Value;

use crate::broker::{BOUND, Broker};

/// Pause between two polls of a process.
const STEP: Duration = Duration::from_millis(10);

/// A folder for runs from one topic to another.
pub(crate) struct Scene<'b> {
    pub(crate) broker: &'b Broker,
    pub(crate) folder: tempfile::TempDir,
    pub(crate) input: String,
    pub(crate) output: String,
    /// Further lines of the deployment file: top-level keys, then tables.
    pub(crate) more: String,
}

impl<'b> Scene<'b> {
    /// Creates the input topic.
    pub(crate) fn new(broker: &'b Broker, partitions: u32) -> Self {
        let (input, output) = (broker.topic(partitions), Broker::name("pairs"));
        Self { broker, folder: tempfile::tempdir().unwrap(), input, output, more: String::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the deployment file.
    fn deploy(&self) {
        let text = format!(
            "workers = 2\nkafka.brokers = \"{}\"\nsource.kind = \"kafka\"\nsource.topic = \
             \"{}\"\nsource.refresh_seconds = 1\n\
             sink.kind = \"kafka\"\nsink.topic = \"{}\"\n{}",
            self.broker.address(),
            self.input,
            self.output,
            self.more
        );
        std::fs::write(self.path("run.toml"), text).unwrap();
    }

    /// Starts a run with further arguments.
    pub(crate) fn run(&self, words: &[&str]) -> Run {
        self.deploy();
        Run::start(self.folder.path(), &[&["run", "-p", "exact", "-c", "run.toml"], words].concat())
    }

    /// Runs until failure. Returns the error.
    pub(crate) fn fails(&self, words: &[&str]) -> String {
        self.run(words).failure()
    }

    pub(crate) fn output(&self) -> Output {
        Output::new(self.broker, &self.output)
    }
}

/// A process.
pub(crate) struct Run {
    child: Child,
    log: PathBuf,
}

impl Run {
    pub(crate) fn start(folder: &Path, words: &[&str]) -> Self {
        let log = folder.join("log");
        let file = std::fs::File::create(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_dupflow"))
            .args(words)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits for a line in the log.
    pub(crate) fn says(&mut self, what: &str) {
        self.says_often(what, 1);
    }

    /// Waits until the log contains a text `times` times.
    pub(crate) fn says_often(&mut self, what: &str, times: usize) {
        self.until_log(what, |log| log.matches(what).count() >= times);
    }

    /// Waits until the run is live in a topic. A topic of watches has such a line of its own, before the run
    /// has begun.
    pub(crate) fn until_live(&mut self, topic: &str) {
        self.until_log("live", |log| {
            log.lines().any(|line| line.contains("live from offset") && line.contains(topic))
        });
    }

    fn until_log(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let end = Instant::now() + BOUND;
        while !is_there(&self.log()) {
            assert!(
                Instant::now() < end && self.child.try_wait().unwrap().is_none(),
                "{what}: {}",
                self.log()
            );
            std::thread::sleep(STEP);
        }
    }

    /// Waits until a file holds what is wanted.
    pub(crate) fn until_file(&mut self, path: &Path, is_there: impl Fn(&str) -> bool) {
        self.until_log("a file", |_| std::fs::read_to_string(path).is_ok_and(|text| is_there(&text)));
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let end = Instant::now() + BOUND;
        loop {
            if let Some(ended) = self.child.try_wait().unwrap() {
                return ended;
            }
            assert!(Instant::now() < end, "it goes on: {}", self.log());
            std::thread::sleep(STEP);
        }
    }

    /// Waits until the run fails by itself. Returns its error, a single line.
    pub(crate) fn failure(mut self) -> String {
        assert_eq!(self.wait().code(), Some(1), "{}", self.log());
        let log = self.log();
        let line = log.lines().find(|line| line.starts_with("error: "));
        line.unwrap_or_else(|| panic!("no error in {log}")).to_owned()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Whether the process has not ended.
    pub(crate) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Waits until the run is live, and stops it.
    pub(crate) fn stops_live(mut self) {
        self.says("live from offset");
        self.stop();
    }

    /// Stops the run with a signal. Returns the log.
    pub(crate) fn stop(mut self) -> String {
        self.signal(rustix::process::Signal::TERM);
        assert!(self.wait().success(), "{}", self.log());
        self.log()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // It is still running only if a test fails.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The committed records of a topic with one partition.
pub(crate) struct Output {
    reader: Consumer,
    pub(crate) pairs: BTreeMap<(String, String), i64>,
}

impl Output {
    pub(crate) fn new(broker: &Broker, topic: &str) -> Self {
        if broker.admin().find(topic).unwrap().is_none() {
            broker.make(topic, 1);
        }
        let own = [("group.id", "reader"), ("isolation.level", "read_committed")];
        let reader = broker.connection().consumer("reader", &own).unwrap();
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(topic, 0, Offset::Beginning).unwrap();
        reader.assign(&list).unwrap();
        Self { reader, pairs: BTreeMap::new() }
    }

    /// The next value, with the headers of its record.
    pub(crate) fn next(&self, run: &mut Run) -> (Option<Vec<u8>>, BTreeMap<String, String>) {
        use rdkafka::message::Headers as _;
        let end = Instant::now() + BOUND;
        loop {
            if let Some(Ok(message)) = self.reader.poll(Duration::from_millis(100)) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
                let headers = headers.map(|h| (h.key.to_owned(), h.value.map(text).unwrap_or_default()));
                return (message.payload().map(<[u8]>::to_vec), headers.collect());
            }
            assert!(Instant::now() < end && run.child.try_wait().unwrap().is_none(), "{}", run.log());
        }
    }

    /// Reads until the accumulated pairs are `expected`, written `a b`. Fails if a pair is added twice, or
    /// removed while it is not present.
    pub(crate) fn until<S: AsRef<str>>(&mut self, run: &mut Run, expected: &[S]) {
        let is_there = |pairs: &BTreeMap<(String, String), i64>| {
            let there = pairs.iter().filter(|(_, times)| **times == 1);
            there.map(|((a, b), _)| format!("{a} {b}")).eq(expected.iter().map(AsRef::as_ref))
        };
        while self.pairs.len() < expected.len() || !is_there(&self.pairs) {
            let (value, _) = self.next(run);
            let delta: Value = serde_json::from_slice(&value.unwrap()).unwrap();
            let id = |name: &str| delta[name].as_str().unwrap().to_owned();
            let times = self.pairs.entry((id("a"), id("b"))).or_default();
            *times += delta["diff"].as_i64().unwrap();
            assert!((0..=1).contains(times), "{delta}");
        }
    }
}
