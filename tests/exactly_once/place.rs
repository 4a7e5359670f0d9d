//! A folder with a feed, and the runs in it.

use std::collections::BTreeMap;
use std::fmt;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dupflow::core::hash::mix;

use crate::options::Options;

/// Longest duration of any single wait.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// Failpoints between two durable steps. A random number of passes precedes the kill.
pub(crate) const POINTS: &[&str] = &[
    "letters",
    "lines-written",
    "lines-stored",
    "mark-written",
    "mark-renamed",
    "commit",
    "output",
    "state",
    WRITER,
];

/// The failpoint of a process that has written its share of the state, where process 0 does not know yet.
const WRITER: &str = "writer-stored";

/// The failpoint of a kill of so many processes.
pub(crate) fn point(points: &[&'static str], kill: usize, processes: usize) -> &'static str {
    let is_reached = |point: &&&str| **point != WRITER || processes > 1;
    points.iter().cycle().skip(kill % points.len()).find(is_reached).expect("all reach other points")
}

/// The documents of each pair, with the similarity as written.
pub(crate) type Pairs = BTreeMap<(String, String), String>;

/// The result of a test.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) kills: usize,
    pub(crate) commits_seen: usize,
    pub(crate) pairs: usize,
    /// Decisions at the end, in place of pairs.
    pub(crate) decisions: usize,
    pub(crate) problems: Vec<String>,
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        self.problems.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kills, commits_seen, pairs, decisions, problems } = self;
        let (n, what) = if *decisions > 0 { (decisions, "decisions") } else { (pairs, "pairs") };
        write!(f, "{kills} kills, {commits_seen} outputs looked at on the way, {n} {what} at the end: ")?;
        if problems.is_empty() {
            return f.write_str("0 lost, 0 doubled");
        }
        problems.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

/// A folder for the runs.
pub(crate) struct Place {
    folder: tempfile::TempDir,
    seed: u64,
    turn: u64,
}

impl Place {
    pub(crate) fn new(options: &Options) -> Self {
        Self { folder: tempfile::tempdir().unwrap(), seed: options.seed, turn: 0 }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A random number below `below`.
    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.turn += 1;
        mix(self.seed ^ mix(self.turn)) % below
    }

    /// A command of the program under test.
    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        command.stdin(Stdio::null()).env_remove("DUPFLOW_FAILPOINT");
        command
    }

    /// Runs a command to its end and checks that it succeeds.
    pub(crate) fn done(&self, words: &str) {
        let ended = self.command(words).output().unwrap();
        assert!(ended.status.success(), "{words}: {}", String::from_utf8_lossy(&ended.stderr));
    }

    /// The path of the feed.
    pub(crate) fn feed(&self, options: &Options) -> PathBuf {
        options.feed.as_ref().map_or_else(
            || {
                self.done("generate --documents 3000 --seed 5 --near 0.4 --max-words 60 -o good.jsonl");
                let good = std::fs::read_to_string(self.path("good.jsonl")).unwrap();
                let bad = |n: usize| if n % 40 == 7 { format!("oops {n}\n") } else { String::new() };
                let lines = good.lines().enumerate().map(|(n, line)| format!("{line}\n{}", bad(n)));
                std::fs::write(self.path("feed.jsonl"), lines.collect::<String>()).unwrap();
                self.path("feed.jsonl")
            },
            |feed| feed.canonicalize().unwrap(),
        )
    }

    /// The pairs that a replay finds.
    pub(crate) fn expected(&self, feed: &Path, pipeline: &str) -> Pairs {
        self.done(&format!("replay {pipeline} --emit pairs -o expected.jsonl {}", feed.display()));
        let text = std::fs::read_to_string(self.path("expected.jsonl")).unwrap();
        let lines = text.lines().map(|line| delta(line).1);
        lines.collect()
    }

    /// Starts a run of several processes, with a failpoint if one is given.
    pub(crate) fn start(&self, words: &str, processes: usize, point: Option<&str>) -> Vec<Child> {
        let mut commands: Vec<Command> = if processes == 1 {
            vec![self.command(words)]
        } else {
            let hosts: Vec<String> =
                free_ports(processes).map(|port| format!("127.0.0.1:{port}\n")).collect();
            std::fs::write(self.path("hosts"), hosts.concat()).unwrap();
            let of = |index| {
                self.command(&format!("{words} --processes {processes} --process {index} --hosts hosts"))
            };
            (0..processes).map(of).collect()
        };
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.path("log")).unwrap();
        let start = |command: &mut Command| {
            if let Some(point) = point {
                command.env("DUPFLOW_FAILPOINT", point);
            }
            command.stdout(Stdio::null()).stderr(log.try_clone().unwrap()).spawn().unwrap()
        };
        commands.iter_mut().map(start).collect()
    }

    /// The end of the log, for a problem.
    pub(crate) fn log(&self) -> String {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(6)..].join("\n    ")
    }
}

/// Ports that no program uses now.
pub(crate) fn free_ports(count: usize) -> impl Iterator<Item = u16> {
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let ports: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
    ports.into_iter()
}

/// Waits until all have ended, for up to `time`. `None` if they have not; otherwise whether all succeeded.
pub(crate) fn wait(children: &mut [Child], time: Duration) -> Option<bool> {
    let end = Instant::now() + time;
    loop {
        let ended: Option<Vec<_>> = children.iter_mut().map(|child| child.try_wait().unwrap()).collect();
        if let Some(ended) = ended {
            return Some(ended.iter().all(std::process::ExitStatus::success));
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills one process at random; the others must end by themselves. Those that do not are killed too and
/// reported.
pub(crate) fn kill(mut children: Vec<Child>, which: usize) -> Option<String> {
    let count = children.len();
    let mut first = children.remove(which % count);
    first.kill().unwrap();
    first.wait().unwrap();
    let hangs = wait(&mut children, Duration::from_secs(20)).is_none();
    for child in &mut children {
        child.kill().unwrap_or(());
        child.wait().unwrap();
    }
    hangs.then(|| format!("{} of {count} processes did not end when one was killed", count - 1))
}

/// Parses a line of deltas or of pairs: the diff (1 for a pair), and the pair with its similarity.
pub(crate) fn delta(line: &str) -> (i64, ((String, String), String)) {
    let read: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let text = |name: &str| read[name].as_str().unwrap().to_owned();
    (read["diff"].as_i64().unwrap_or(1), ((text("a"), text("b")), read["similarity"].to_string()))
}

/// Applies deltas in order. A pair must be present once or not at all.
pub(crate) fn apply<'l>(lines: impl Iterator<Item = &'l str>, pairs: &mut Pairs) -> Result<(), String> {
    for line in lines {
        let (diff, (pair, similarity)) = delta(line);
        let follows = match diff {
            1 => pairs.insert(pair, similarity).is_none(),
            _ => pairs.remove(&pair) == Some(similarity),
        };
        if !follows {
            return Err(format!("does not follow from what is before: {line}"));
        }
    }
    Ok(())
}

/// Describes missing and unexpected pairs.
pub(crate) fn compare(found: &Pairs, expected: &Pairs) -> Option<String> {
    let lost = expected.iter().filter(|(pair, similarity)| found.get(*pair) != Some(*similarity)).count();
    let more = found.iter().filter(|(pair, similarity)| expected.get(*pair) != Some(*similarity)).count();
    (lost + more > 0).then(|| format!("{lost} pairs of {} are lost, {more} are too much", expected.len()))
}
