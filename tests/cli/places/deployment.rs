//! A deployment with every thing that a run writes, and a run of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::dupflow::{Place, command};

/// Documents of a batch: copies of one text, so that each has a pair with every other, and a notice.
pub(super) const DOCUMENTS: usize = 6;

/// Bad records of a batch.
pub(super) const BAD: usize = 2;

/// The longest wait, which only a defect reaches.
pub(super) const BOUND: Duration = Duration::from_secs(90);

pub(super) fn id(n: usize) -> String {
    // Long, so that a batch does not fit into the rest of a block of the disk.
    format!("d{n:03}-{}", "x".repeat(800))
}

pub(super) fn batch(number: usize) -> String {
    let mut feed = String::new();
    for n in 0..DOCUMENTS {
        let of = number * DOCUMENTS + n;
        let line = json!({ "id": id(of), "s": format!("s{of}-{}", "y".repeat(200)), "text": "the old bridge \
            over the river will be closed in May for repairs of its three arches" });
        writeln!(feed, "{line}").unwrap();
    }
    for n in 0..BAD {
        writeln!(
            feed,
            "{}",
            json!({ "id": format!("bad-{number}-{n}"), "text": 7, "pad": "z".repeat(3000) })
        )
        .unwrap();
    }
    feed
}

/// A deployment in its place; the thing under test is in the folder `own`.
pub(super) struct Deployment {
    pub(super) place: Place,
    pub(super) thing: String,
    pub(super) sink: &'static str,
    pub(super) batches: usize,
}

impl Deployment {
    pub(super) fn new(thing: &str, sink: &'static str) -> Self {
        let place = Place::new();
        fs::create_dir(place.path("own")).unwrap();
        let new = Self { place, thing: thing.to_owned(), sink, batches: 0 };
        new.configure("run.toml", "own/");
        let watch = json!({ "id": "w", "text": "the old bridge over the river will be closed in May for \
            repairs of its three arches" });
        new.place.file(new.path_of("posted"), format!("{watch}\n"));
        new
    }

    /// The path of a file from the place. What is beside the thing lies with it.
    pub(super) fn path_of(&self, name: &str) -> String {
        let (own, other) = (self.thing.split('.').next(), name.split('.').next());
        if own == other { format!("own/{name}") } else { name.to_owned() }
    }

    /// Writes a deployment file. All but the thing itself have other names if `thing` is not `own/`.
    pub(super) fn configure(&self, file: &str, prefix: &str) {
        let is_own = prefix == "own/";
        let path = |name: &str| match self.path_of(name) {
            own if own.starts_with("own/") => own,
            other if is_own => other,
            other => format!("{prefix}{other}"),
        };
        let (feed, out, dead, view) =
            (path("feed.jsonl"), path(self.sink), path("dead.jsonl"), path("v.jsonl"));
        let (notices, posted, state) = (path("notices.jsonl"), path("posted"), path("state"));
        let kind = if self.sink.ends_with(".db") { "sqlite" } else { "lines" };
        self.place.file(file, format!(
            "workers = 1\n[source]\ninputs = [\"{feed}\"]\nfollow = true\nepoch = \"every:20ms\"\nfields = \
            [\"s\"]\n[dead_letter]\npath = \"{dead}\"\n[sink]\nkind = \"{kind}\"\npath = \"{out}\"\n[state]\n\
            path = \"{state}\"\ncommit_every = \"50ms\"\n[[view]]\nname = \"v\"\nof = \"documents\"\ngroup = \
            [\"s\"]\noutput = \"{view}\"\n[watch]\npath = \"{posted}\"\n[notices]\npath = \"{notices}\"\n\
            [monitor]\nlisten = \"127.0.0.1:0\"\n"
        ));
    }

    pub(super) fn append(&mut self) {
        let mut feed =
            OpenOptions::new().create(true).append(true).open(self.place.path("feed.jsonl")).unwrap();
        feed.write_all(batch(self.batches).as_bytes()).unwrap();
        self.batches += 1;
    }

    pub(super) fn start(&self, file: &str, more: &[&str]) -> Running {
        let log = fs::File::create(self.place.path(format!("{file}.log"))).unwrap();
        let child = command(["run", "-c", file].iter().chain(more))
            .current_dir(self.place.path(""))
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Running { child, log: self.place.path(format!("{file}.log")) }
    }

    pub(super) fn own(&self) -> std::path::PathBuf {
        self.place.path("own").join(&self.thing)
    }

    /// Lines of a file whose ends are there.
    pub(super) fn lines(&self, name: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.place.path(self.path_of(name))).unwrap_or_default();
        text.split_inclusive('\n')
            .filter(|line| line.ends_with('\n'))
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// What the changes of a file add up to, by these keys.
    pub(super) fn sums(&self, name: &str, keys: &[&str]) -> BTreeMap<String, i64> {
        let mut sums = BTreeMap::new();
        for line in self.lines(name) {
            let key = keys.iter().map(|key| line[*key].to_string()).collect::<Vec<_>>().join(" ");
            *sums.entry(key).or_default() += line["diff"].as_i64().unwrap_or(1);
        }
        sums.retain(|_, n| *n != 0);
        sums
    }

    pub(super) fn pairs(&self) -> BTreeMap<String, i64> {
        if self.sink.ends_with(".jsonl") {
            return self.sums(self.sink, &["a", "b"]);
        }
        #[cfg(feature = "sqlite")]
        if let Ok(database) = rusqlite::Connection::open(self.place.path(self.path_of(self.sink))) {
            let read = |row: &rusqlite::Row<'_>| {
                Ok((format!("{} {}", json!(row.get::<_, String>(0)?), json!(row.get::<_, String>(1)?)), 1))
            };
            let rows = database.prepare("SELECT a, b FROM pairs");
            return rows.and_then(|mut rows| rows.query_map([], read)?.collect()).unwrap_or_default();
        }
        BTreeMap::new()
    }

    /// The letters, those that were taken away too, by their offsets; each is there once.
    pub(super) fn letters(&self) -> BTreeSet<u64> {
        let mut all = BTreeSet::new();
        for name in ["dead.jsonl", "dead.jsonl.taken"] {
            for line in self.lines(name) {
                assert!(all.insert(line["offset"].as_u64().unwrap()), "a letter is there twice: {line}");
            }
        }
        all
    }

    /// Whether everything accumulates to the result of the documents.
    pub(super) fn is_exact(&self) -> bool {
        let documents = self.batches * DOCUMENTS;
        let once =
            |sums: &BTreeMap<String, i64>, count| sums.len() == count && sums.values().all(|n| *n == 1);
        once(&self.pairs(), documents * (documents - 1) / 2)
            && once(&self.sums("notices.jsonl", &["watch", "id"]), documents)
            && once(&self.sums("v.jsonl", &["group", "value"]), documents)
            && self.letters().len() == self.batches * BAD
    }

    /// Whether the newest manifest of the state stands for all that was read.
    pub(super) fn is_stored(&self) -> bool {
        let records = self.batches * (DOCUMENTS + BAD);
        let folder = self.place.path(self.path_of("state"));
        let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let newest = names.filter(|path| path.to_string_lossy().contains("manifest-")).max();
        let bytes = newest.and_then(|path| fs::read(path).ok()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).contains(&format!("\"next\":{{\"0\":{records}}}"))
    }

    pub(super) fn wait(&self, cell: &str, running: &mut Running) {
        until(|| {
            let ended = running.child.try_wait().unwrap();
            assert!(ended.is_none(), "{cell}: {ended:?}: {}", running.said());
            self.is_exact() && self.is_stored()
        })
        .unwrap_or_else(|()| {
            panic!(
                "{cell}: pairs {}, letters {:?}, {}, stored {}: {}",
                self.pairs().len(),
                self.letters(),
                self.is_exact(),
                self.is_stored(),
                running.said()
            )
        });
    }
}

/// A process that is ended when a test fails.
pub(super) struct Running {
    pub(super) child: Child,
    pub(super) log: std::path::PathBuf,
}

impl Running {
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(super) fn signal(&self) {
        let sent = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(sent.success());
    }

    /// The exit code and the log.
    pub(super) fn end(mut self) -> (Option<i32>, String) {
        let ended = until(|| self.child.try_wait().unwrap().is_some());
        assert!(ended.is_ok(), "it does not end: {}", self.said());
        (self.child.wait().unwrap().code(), self.said())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Polls until the condition holds; an error after the bound, which only a defect reaches.
#[expect(clippy::disallowed_methods, reason = "the bound of a wait, which no time is compared with")]
pub(super) fn until(mut is_so: impl FnMut() -> bool) -> Result<(), ()> {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() > BOUND {
            return Err(());
        }
        std::thread::park_timeout(Duration::from_millis(40));
    }
    Ok(())
}
