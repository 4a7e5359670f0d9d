//! A folder in which several children of the binary run, and their output.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use crate::group::PATIENCE;

/// The standard error of a child, so far.
type Said = Arc<(Mutex<String>, Condvar)>;

/// A pair's documents, with the similarity as it is written.
pub(crate) type Pairs = BTreeMap<(String, String), String>;

/// A child.
pub(crate) struct Process {
    child: Child,
    said: Said,
    /// Signals that standard error is closed: the child has ended.
    ended: Receiver<()>,
}

/// A folder.
pub(crate) struct Place(tempfile::TempDir);

/// Unused addresses: where the system has a whole loopback network, each process of each test has its own
/// host.
pub(crate) fn addresses(count: usize) -> Vec<String> {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let host = || {
        let [_, _, high, low] = NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        let of_this = std::process::id() % 200 + 20;
        if cfg!(target_os = "linux") { format!("127.{of_this}.{high}.{low}") } else { "127.0.0.1".to_owned() }
    };
    let listeners: Vec<_> = (0..count).map(|_| TcpListener::bind((host(), 0)).unwrap()).collect();
    listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect()
}

impl Place {
    /// With a feed of documents in several versions; one record is invalid.
    pub(crate) fn new(documents: usize) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.done(&format!(
            "generate --documents {documents} --seed 5 --near 0.4 --max-words 60 -o feed.jsonl"
        ));
        place.insert("oops", 700);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: &str) {
        std::fs::write(self.path(name), content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Makes this the line of the feed with this number, from 0.
    pub(crate) fn insert(&self, line: &str, at: usize) {
        let feed = self.read("feed.jsonl");
        let mut lines: Vec<&str> = feed.lines().collect();
        lines.insert(at.min(lines.len()), line);
        self.write("feed.jsonl", &(lines.join("\n") + "\n"));
    }

    pub(crate) fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
        command.args(words.split_whitespace()).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::null()).env_remove("RUST_LOG");
        command
    }

    /// One process, to its successful end.
    pub(crate) fn done(&self, words: &str) {
        let (code, said) = start(&mut self.command(words)).end();
        assert_eq!(code, Some(0), "{words}: {said}");
    }

    /// The commands of several processes.
    pub(crate) fn commands(&self, words: &str, count: usize) -> Vec<Command> {
        if count == 1 {
            return vec![self.command(words)];
        }
        self.write("hosts", &addresses(count).join("\n"));
        let of = |i| self.command(&format!("{words} --processes {count} --process {i} --hosts hosts"));
        (0..count).map(of).collect()
    }

    /// Starts several processes.
    pub(crate) fn start(&self, words: &str, count: usize) -> Vec<Process> {
        self.commands(words, count).iter_mut().map(start).collect()
    }

    /// Several processes, to their successful ends.
    pub(crate) fn all_done(&self, words: &str, count: usize) {
        for (code, said) in ends(self.start(words, count)) {
            assert_eq!(code, Some(0), "{words}: {said}");
        }
    }

    /// A deployment of the feed, an output and a state.
    pub(crate) fn deployment(&self, more: &str) {
        self.write(
            "run.toml",
            &format!(
                "workers = 1\nshutdown_seconds = 600\n\
                 [source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \"events:10\"\n\
                 [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\ncommit_every = \"50ms\"\n\
                 [logging]\nlevel = \"debug\"\n{more}"
            ),
        );
    }

    /// What the deltas of the output add up to; each pair is present once or not at all, at all times.
    pub(crate) fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::new();
        for line in self.read("out.jsonl").lines() {
            let (diff, pair, similarity) = delta(line);
            let follows = match diff {
                1 => pairs.insert(pair, similarity).is_none(),
                _ => pairs.remove(&pair) == Some(similarity),
            };
            assert!(follows, "does not follow from what is before: {line}");
        }
        pairs
    }

    /// The pairs that a replay finds.
    pub(crate) fn expected(&self) -> Pairs {
        self.expected_with("")
    }

    /// The pairs that a replay with these options finds.
    pub(crate) fn expected_with(&self, words: &str) -> Pairs {
        self.done(&format!("replay {words} --emit pairs -o expected.jsonl feed.jsonl"));
        let text = self.read("expected.jsonl");
        let pairs: Pairs = text.lines().map(delta).map(|(_, pair, similarity)| (pair, similarity)).collect();
        assert!(pairs.len() > 100, "{} pairs", pairs.len());
        pairs
    }
}

/// A line of deltas or of pairs.
fn delta(line: &str) -> (i64, (String, String), String) {
    let read: serde_json::Value =
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let text = |name: &str| read[name].as_str().unwrap().to_owned();
    (read["diff"].as_i64().unwrap_or(1), (text("a"), text("b")), read["similarity"].to_string())
}

/// Starts a child.
pub(crate) fn start(command: &mut Command) -> Process {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stderr.take().unwrap();
    let said = Said::default();
    let heard = Arc::clone(&said);
    let (end, ended) = channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            heard.0.lock().unwrap().push_str(&String::from_utf8_lossy(&buffer[..count]));
            heard.1.notify_all();
        }
        // After a failed test the receiver is dropped.
        end.send(()).unwrap_or(());
    });
    Process { child, said, ended }
}

/// How they end: the exit code, and the standard error.
pub(crate) fn ends(processes: Vec<Process>) -> Vec<(Option<i32>, String)> {
    processes.into_iter().map(Process::end).collect()
}

/// Checks that all end with 1 and one error, which contains this text.
pub(crate) fn all_fail(processes: Vec<Process>, what: &str) {
    for (code, said) in ends(processes) {
        let errors: Vec<&str> = said.lines().filter(|line| line.starts_with("error:")).collect();
        assert!(
            code == Some(1) && errors.len() == 1 && errors[0].contains(what),
            "{code:?}, {what:?}:\n{said}"
        );
    }
}

impl Process {
    /// Waits until standard error contains this text.
    pub(crate) fn wait_for(&self, what: &str) {
        let lacks = |said: &mut String| !said.contains(what);
        let (said, waited) =
            self.said.1.wait_timeout_while(self.said.0.lock().unwrap(), PATIENCE, lacks).unwrap();
        assert!(!waited.timed_out(), "{what:?} is not said:\n{said}");
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for the end: the exit code, `None` if it was killed, and the standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let ended = self.ended.recv_timeout(PATIENCE);
        assert!(ended.is_ok(), "it does not end:\n{}", self.said.0.lock().unwrap());
        let code = self.child.wait().unwrap().code();
        (code, self.said.0.lock().unwrap().clone())
    }

    /// Its standard output, if it is piped.
    pub(crate) fn close_output(&mut self) {
        drop(self.child.stdout.take());
    }
}

/// Kills children that a test has left.
impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended cannot be killed.
        self.child.kill().unwrap_or(());
        self.child.wait().map(drop).unwrap_or(());
    }
}

/// A copy of the feed in a folder of its own, with this line in it.
pub(crate) fn other_feed(place: &Place, folder: &str, line: &str) -> PathBuf {
    let folder = place.path(folder);
    std::fs::create_dir_all(&folder).unwrap();
    let feed: String = place.read("feed.jsonl");
    let mut lines: Vec<&str> = feed.lines().collect();
    *lines.last_mut().unwrap() = line;
    std::fs::write(folder.join("feed.jsonl"), lines.join("\n") + "\n").unwrap();
    copy(place, "hosts", &folder);
    folder
}

fn copy(place: &Place, name: &str, folder: &Path) {
    std::fs::copy(place.path(name), folder.join(name)).unwrap();
}
