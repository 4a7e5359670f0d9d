//! A folder in which runs write a group of outputs, and what they hold.

use std::fmt;
use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dupflow::core::hash::mix;
use parking_lot::RwLock;

use crate::broker::Broker;
use crate::cells::{self, Answer, Cell, dupflow};
use crate::disk::Disk;
use crate::feed;
use crate::kills::Kills;
use crate::model::{self, Model, Question};
use crate::places::{Database, File, Place, Tables, Topic, is_of_changes};
use crate::rows::{self, Rows};
use crate::server::Server;
use crate::sides::Sides;

/// Longest duration of any single wait.
pub(crate) const BOUND: Duration = Duration::from_secs(120);

/// Servers that histories share; one of them alone may stop a server.
pub(crate) struct Servers {
    pub(crate) postgres: Option<Arc<Server>>,
    pub(crate) broker: Option<Arc<Broker>>,
    pub(crate) alone: RwLock<()>,
}

/// An output of the group.
pub(crate) struct Output {
    pub(crate) cell: Cell,
    keys: String,
    pub(crate) place: Box<dyn Place>,
    /// The lines and the threshold of the last run that ended well with this output.
    held: Option<(usize, String)>,
}

pub(crate) struct Scene<'a> {
    folder: tempfile::TempDir,
    pub(crate) disk: Option<Disk>,
    pub(crate) servers: &'a Servers,
    model: &'a Model,
    pub(crate) kills: &'a Kills,
    pub(crate) outputs: Vec<Output>,
    sides: Option<Sides>,
    pub(crate) has_state: bool,
    workers: u64,
    pub(crate) pieces: usize,
    pub(crate) threshold: &'static str,
    /// Whether the outputs were corrected to another threshold.
    pub(crate) is_corrected: bool,
    seed: u64,
    turn: u64,
    /// What happened, for a problem.
    pub(crate) history: Vec<String>,
}

/// How a run has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) said: String,
}

/// The problem, if there is one.
pub(crate) type Outcome = Result<(), String>;

impl fmt::Display for Scene<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.outputs.iter().map(|output| output.cell.to_string()).collect();
        f.write_str(&names.join(", "))
    }
}

impl<'a> Scene<'a> {
    pub(crate) fn new(
        (number, cells): (usize, &[Cell]),
        servers: &'a Servers,
        model: &'a Model,
        kills: &'a Kills,
        seed: u64,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("mnt")).unwrap();
        std::fs::write(folder.path().join("watches.jsonl"), feed::watches()).unwrap();
        let disk = Disk::mount(&folder.path().join("mnt"), "16m");
        std::fs::create_dir(folder.path().join("mnt/disk")).unwrap();
        let output = |(at, cell): (usize, &Cell)| {
            let name = format!("c{}g{number}o{at}", std::process::id());
            let (answer, path) = (cell.answer.clone(), folder.path().join("mnt/disk"));
            let place: Box<dyn Place> = match &*cell.kind {
                "lines" => {
                    let format = cell.form.clone().unwrap();
                    Box::new(File { path: path.join(format!("{name}.{format}")), format, answer })
                }
                "sqlite" => Box::new(Tables {
                    database: Database::Sqlite(path.join(format!("{name}.db"))),
                    prefix: String::new(),
                    answer,
                }),
                "postgres" => Box::new(Tables {
                    database: Database::Postgres(Arc::clone(servers.postgres.as_ref().unwrap())),
                    prefix: format!("{name}_"),
                    answer,
                }),
                _ => Box::new(Topic {
                    broker: Arc::clone(servers.broker.as_ref().unwrap()),
                    topic: name.clone(),
                    is_upsert: cell.form.as_deref() == Some("upsert"),
                    answer,
                }),
            };
            let mut keys = cells::keys(&cell.answer, &cell.kind, cell.form.as_deref(), &name);
            if let Some(server) = &servers.postgres {
                keys = keys.replace("postgres://postgres@127.0.0.1:9/postgres", &server.url());
            }
            Output { cell: cell.clone(), keys, place, held: None }
        };
        let outputs: Vec<_> = cells.iter().enumerate().map(output).collect();
        let first = &outputs[0].cell;
        let random = mix(seed);
        Self {
            sides: first
                .leads
                .then(|| Sides::new(first, &format!("c{}g{number}", std::process::id()), random)),
            folder,
            disk,
            servers,
            model,
            kills,
            outputs,
            has_state: random.is_multiple_of(4),
            workers: 1 + random / 4 % 2,
            pieces: 8,
            threshold: "0.8",
            is_corrected: false,
            seed,
            turn: 0,
            history: Vec::new(),
        }
    }

    /// A random number below `below`.
    pub(crate) fn random(&mut self, below: usize) -> usize {
        self.turn += 1;
        usize::try_from(mix(self.seed ^ mix(self.turn))).unwrap() % below
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn uses(&self, kind: &str) -> bool {
        self.outputs.iter().any(|output| output.cell.kind == kind)
    }

    pub(crate) fn lines(&self) -> usize {
        self.pieces * (feed::EVENTS + 1)
    }

    /// Adds events to the feed.
    pub(crate) fn grow(&mut self, pieces: usize) {
        self.pieces += pieces;
        let lines = feed::lines(self.pieces).into_iter().map(|line| line + "\n");
        let old = std::fs::metadata(self.path("feed.jsonl")).map_or(0, |found| found.len());
        let text = lines.collect::<String>();
        let mut file = OpenOptions::new().create(true).append(true).open(self.path("feed.jsonl")).unwrap();
        std::io::Write::write_all(&mut file, &text.as_bytes()[usize::try_from(old).unwrap()..]).unwrap();
    }

    /// Writes the deployment file, without one output if its number is given.
    pub(crate) fn configure(&self, follows: bool, without: Option<usize>) {
        let tables = self.outputs.iter().enumerate().filter(|(at, _)| Some(*at) != without);
        let tables: String = tables.map(|(_, output)| format!("[[output]]\n{}", output.keys)).collect();
        let brokers = self.servers.broker.as_ref().filter(|_| self.uses("kafka"));
        let brokers = brokers
            .map_or_else(String::new, |broker| format!("[kafka]\nbrokers = \"{}\"\n", broker.address()));
        let state = "[state]\npath = \"state\"\ncommit_every = \"1ms\"\n";
        let text = format!(
            "workers = {}\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \"{}\"\n\
             follow = {follows}\nmax_bad = 1.0\nfields = [{:?}]\n{tables}{brokers}{}{}",
            self.workers,
            feed::EPOCH,
            model::FIELD,
            if self.has_state { state } else { "" },
            self.sides.as_ref().map_or_else(String::new, Sides::tables)
        );
        std::fs::write(self.path("run.toml"), text).unwrap();
    }

    /// Starts a run, whose messages go to a file of this name.
    pub(crate) fn start(&self, options: &str, log: &str, point: Option<&str>) -> Child {
        let words = format!("run -c run.toml --set threshold={}{options}", self.threshold);
        let mut command = dupflow(self.folder.path(), &words);
        if let Some(point) = point {
            command.env("DUPFLOW_FAILPOINT", point);
        }
        let log = std::fs::File::create(self.path(log)).unwrap();
        command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    pub(crate) fn ended(&self, mut child: Child, log: &str) -> Result<Ended, String> {
        let said = || std::fs::read_to_string(self.path(log)).unwrap_or_default();
        let until = Instant::now() + BOUND;
        loop {
            if let Some(status) = child.try_wait().unwrap() {
                return Ok(Ended { code: status.code(), said: said() });
            }
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                return Err(format!("a run does not end: {}", said()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    pub(crate) fn run(&self, options: &str) -> Result<Ended, String> {
        self.ended(self.start(options, "log", None), "log")
    }

    /// A run that ends well, after which the outputs hold what the documents give.
    pub(crate) fn complete(&mut self, options: &str, without: Option<usize>) -> Outcome {
        self.configure(false, without);
        let ended = self.run(options)?;
        if ended.code != Some(0) {
            return Err(format!("a run does not end well: {ended:?}"));
        }
        self.hold(without);
        for at in (0..self.outputs.len()).filter(|at| Some(*at) != without) {
            self.check(at, self.lines(), self.threshold)?;
        }
        if let Some(sides) = &self.sides {
            sides.check(
                self.folder.path(),
                self.servers,
                self.model,
                &feed::lines(self.pieces),
                self.threshold,
            )?;
        }
        Ok(())
    }

    /// Notes that a run has ended well, with all outputs but one if its number is given.
    pub(crate) fn hold(&mut self, without: Option<usize>) {
        let held = Some((self.lines(), self.threshold.to_owned()));
        let outputs = self.outputs.iter_mut().enumerate().filter(|(at, _)| Some(*at) != without);
        outputs.for_each(|(_, output)| output.held.clone_from(&held));
    }

    /// Compares an output with the model.
    pub(crate) fn check(&self, at: usize, lines: usize, threshold: &str) -> Outcome {
        let Output { cell, place, .. } = &self.outputs[at];
        let found = place.rows().map_err(|problem| format!("{cell}: {problem}"))?;
        if found.is_empty() {
            return Err(format!("{cell}: there is nothing"));
        }
        for (question, rows) in found {
            let expected = self.model.rows(&question, lines, threshold);
            let (found, expected) = self.comparable(cell, &question, rows, &expected);
            if let Some(other) = rows::difference(&found, &expected) {
                return Err(format!("{cell}: {question:?} of {lines} lines at {threshold}: {other}"));
            }
        }
        Ok(())
    }

    /// Both as far as this place and this history define them.
    fn comparable(&self, cell: &Cell, question: &Question, found: Rows, expected: &Rows) -> (Rows, Rows) {
        let is_of_tables = ["sqlite", "postgres"].contains(&&*cell.kind);
        let Question::Answer(Answer { name, mode }) = question else { return (found, expected.clone()) };
        let columns = |rows: &Rows, names: &[&str]| {
            let mut all = Rows::new();
            rows.iter().for_each(|(row, count)| *all.entry(rows::columns(row, names)).or_default() += count);
            all
        };
        if name == "remove" && is_of_tables {
            return (found, columns(expected, &["id", "kept"]));
        }
        if mode.as_deref() == Some("first") {
            let mut expected = expected.clone();
            if is_of_tables {
                // The last one of each document.
                let offset = |row: &rows::Row| row["offset"].parse::<f64>().unwrap();
                let mut last: std::collections::BTreeMap<String, rows::Row> = Default::default();
                for row in expected.into_keys() {
                    let there = last.entry(row["id"].clone()).or_insert_with(|| row.clone());
                    if offset(there) < offset(&row) {
                        *there = row;
                    }
                }
                expected = last.into_values().map(|row| (row, 1)).collect();
            }
            if self.is_corrected {
                // A decision stays as it was when it was made, under another threshold.
                let which = ["id", "partition", "offset"];
                return (columns(&found, &which), columns(&expected, &which));
            }
            return (found, expected);
        }
        (found, expected.clone())
    }

    /// What is durable after a run has ended early: what the mark says, or what was there before.
    pub(crate) fn check_durable(&self) -> Outcome {
        for at in 0..self.outputs.len() {
            let Output { cell, place, held, .. } = &self.outputs[at];
            match place.mark() {
                Some(mark) if mark.in_correction => {}
                Some(mark) => self.check(at, mark.lines, self.threshold)?,
                None if is_of_changes(&cell.answer) || cell.kind != "lines" => {}
                // Written at the end, as a whole.
                None => {
                    let now = self.check(at, self.lines(), self.threshold);
                    let before = match held {
                        Some((lines, threshold)) => self.check(at, *lines, threshold),
                        None if place.rows().is_ok_and(|rows| rows.is_empty()) => Ok(()),
                        None => Err("it holds rows of a run that has not ended".to_owned()),
                    };
                    if let (Err(now), Err(before)) = (now, before) {
                        return Err(format!("neither the old nor the new: {now}; {before}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// The first run.
    pub(crate) fn begin(&mut self) -> Outcome {
        self.pieces = 0;
        let pieces = 4 + self.random(8);
        self.grow(pieces);
        self.complete("", None)
    }
}
