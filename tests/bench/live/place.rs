//! A broker, a folder, and runs in it.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dupflow::connectors::kafka::broker::Consumer;
use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::topic_partition_list::Offset;

use crate::broker::Broker;

/// The arguments of the bench.
pub(crate) struct Options(BTreeMap<String, String>);

impl Options {
    pub(crate) fn parse(words: &[String]) -> Self {
        let pairs = words.chunks(2).map(|pair| match pair {
            [name, value] if name.starts_with("--") => (name[2..].to_owned(), value.clone()),
            other => panic!("found {other:?}, expected an option and its value"),
        });
        Self(pairs.collect())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.text(name).map(|text| text.parse().unwrap())
    }

    pub(crate) fn count(&self, name: &str, usual: u64) -> u64 {
        self.text(name).map_or(usual, |text| text.parse().unwrap())
    }
}

/// A folder beside a broker.
pub(crate) struct Place {
    pub(crate) broker: Broker,
    folder: tempfile::TempDir,
    /// The least time between two commits, as in a deployment file.
    pub(crate) interval: String,
}

impl Place {
    pub(crate) fn start(options: &Options) -> Result<Self, String> {
        let broker = match options.text("broker") {
            Some(address) => Broker::at(address),
            None => Broker::start()?,
        };
        let interval = options.text("interval").unwrap_or("100ms").to_owned();
        Ok(Self { broker, folder: tempfile::tempdir().unwrap(), interval })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a run from a topic to a topic; with state if a folder is given.
    pub(crate) fn run(&self, input: &str, output: &str, state: Option<&str>) -> Run {
        self.broker.make(output, 1);
        let state = state.map_or(String::new(), |state| format!("[state]\npath = \"{state}\"\n"));
        let text = format!(
            "[kafka]\nbrokers = \"{}\"\n[source]\nkind = \"kafka\"\ntopic = \"{input}\"\nformat = \"text\"\n\
             [sink]\nkind = \"kafka\"\ntopic = \"{output}\"\n[commit]\ninterval = \"{}\"\n{state}",
            self.broker.address(),
            self.interval
        );
        Run::start(self.folder.path(), &text)
    }

    /// A consumer of the committed records in these partitions of a topic, from the beginning.
    pub(crate) fn reader(&self, topic: &str, partitions: u32) -> Consumer {
        let own = [
            ("isolation.level", "read_committed"),
            ("group.id", "reader"),
            ("auto.offset.reset", "earliest"),
            ("fetch.wait.max.ms", "100"),
        ];
        let reader = self.broker.connection().consumer("reader", &own).unwrap();
        let mut list = TopicPartitionList::new();
        for partition in 0..partitions {
            list.add_partition_offset(topic, partition.cast_signed(), Offset::Beginning).unwrap();
        }
        reader.assign(&list).unwrap();
        reader
    }
}

/// A process of `dupflow run`.
pub(crate) struct Run {
    child: Child,
    monitor: SocketAddr,
    log: PathBuf,
}

impl Run {
    /// Starts a run with this deployment, to which the monitor is added.
    pub(crate) fn start(folder: &Path, deployment: &str) -> Self {
        let monitor = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let config = folder.join("live.toml");
        fs::write(&config, format!("{deployment}[monitor]\nlisten = \"{monitor}\"\n")).unwrap();
        let log = folder.join("live.log");
        let child = Command::new(env!("CARGO_BIN_EXE_dupflow"))
            .args(["run", "-p", "minhash", "-c", "live.toml"])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        Self { child, monitor, log }
    }

    /// The body of a response with status 200.
    pub(crate) fn ask(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect_timeout(&self.monitor, Duration::from_secs(1)).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: here\r\nconnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        head.starts_with("HTTP/1.1 200").then(|| body.to_owned())
    }

    /// The samples of all metrics by name; none before the run answers.
    pub(crate) fn metrics(&self) -> BTreeMap<String, f64> {
        let text = self.ask("/metrics").unwrap_or_default();
        let samples = text.lines().filter_map(|line| line.rsplit_once(' '));
        samples.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?))).collect()
    }

    /// CPU seconds so far.
    pub(crate) fn cpu(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap_or_default();
        ticks(&stat, 11)
    }

    /// Whether the run has ended; the bench fails if the run has failed.
    pub(crate) fn has_ended(&mut self) -> bool {
        match self.child.try_wait().unwrap() {
            Some(ended) => {
                assert!(ended.success(), "{}", self.log());
                true
            }
            None => false,
        }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Ends the process by SIGTERM, as a service manager does.
    pub(crate) fn stop(mut self) {
        let process = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(process, rustix::process::Signal::TERM).unwrap();
        let ended = self.child.wait().unwrap();
        assert!(ended.success(), "{}", self.log());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // The process has ended already, except if the bench panics.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The sum of two adjacent fields of `/proc/PID/stat`, in seconds; `field` counts from 0 after the name.
fn ticks(stat: &str, field: usize) -> f64 {
    let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    let two = behind.split(' ').skip(field).take(2);
    two.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// CPU seconds of all child processes that have ended.
pub(crate) fn cpu_of_ended() -> f64 {
    ticks(&fs::read_to_string("/proc/self/stat").unwrap_or_default(), 13)
}

/// Bytes written by this process and by its child processes that have ended.
pub(crate) fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok()).unwrap_or(0)
}

/// The median, the least and the greatest value, with `places` decimals.
pub(crate) fn spread(mut values: Vec<f64>, places: usize) -> String {
    values.sort_by(f64::total_cmp);
    let (first, last) = (values[0], values[values.len() - 1]);
    format!("{:.places$} ({first:.places$} to {last:.places$})", values[values.len() / 2])
}
