//! The model: what a fresh replay of the surviving documents gives, in another order than that of the feed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;

use crate::cells::{Answer, dupflow};
use crate::feed;
use crate::rows::{self, Keeping, Row, Rows, Written};

/// The fields of documents: a document is `site/number`.
pub(crate) const FIELD: &str = "site = prefix(id, \"/\", 1)";

/// Views of all kinds, without a place.
const VIEWS: [&str; 3] = [
    "name = \"sites\"\nof = \"pairs\"\ngroup = [\"site\"]\n",
    "name = \"copied\"\nof = \"documents\"\nmeasure = \"top:3\"\n",
    "name = \"sizes\"\nof = \"clusters\"\ngroup = [\"cluster.size\"]\n",
];

/// The tables of the views, with this place.
pub(crate) fn views(place: &str) -> String {
    VIEWS.iter().map(|view| format!("[[view]]\n{view}{place}\n")).collect()
}

/// What the model computes of the documents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    Answer(Answer),
    /// What a replay with these options writes.
    Replay(String),
    /// The rows of the views.
    Views,
    Notices,
    /// The live documents: id and bytes of the text.
    Documents,
}

/// The results of replays, each computed once.
pub(crate) struct Model {
    folder: tempfile::TempDir,
    replays: AtomicUsize,
    known: Mutex<BTreeMap<(Question, usize, String), Arc<Rows>>>,
}

impl Model {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, replays: AtomicUsize::new(0), known: Mutex::new(BTreeMap::new()) }
    }

    /// The rows in force after so many lines of the feed.
    pub(crate) fn rows(&self, question: &Question, lines: usize, threshold: &str) -> Arc<Rows> {
        let key = (question.clone(), lines, threshold.to_owned());
        if let Some(known) = self.known.lock().unwrap().get(&key) {
            return Arc::clone(known);
        }
        let rows = Arc::new(self.compute(question, lines, threshold));
        Arc::clone(self.known.lock().unwrap().entry(key).or_insert(rows))
    }

    fn compute(&self, question: &Question, count: usize, threshold: &str) -> Rows {
        let number = self.replays.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let lines = feed::lines(count.div_ceil(feed::EVENTS + 1));
        let lines = &lines[..count];
        let survivors = feed::survivors(lines);
        let all: String = lines.iter().map(|line| format!("{line}\n")).collect();
        std::fs::write(folder.join("feed.jsonl"), all).unwrap();
        let of_survivor = |(id, live): (&String, &feed::Live)| {
            json!({ "id": id, "ts": live.ts, "text": live.text }).to_string() + "\n"
        };
        let text: String = survivors.iter().rev().map(of_survivor).collect();
        std::fs::write(folder.join("survivors.jsonl"), text).unwrap();
        let replay = |words: &str, input: &str, output: &str| {
            self.replay(&folder, &format!("{words} --set threshold={threshold} {input}"), output)
        };
        let written = |lines: Vec<BTreeMap<String, String>>| -> Vec<Written> {
            lines.into_iter().map(|cells| Written { key: None, cells: Some(cells) }).collect()
        };
        match question {
            Question::Documents => survivors
                .iter()
                .map(|(id, live)| {
                    let bytes = rows::cell(&live.text.len().to_string());
                    (Row::from([("id".to_owned(), id.clone()), ("bytes".to_owned(), bytes)]), 1)
                })
                .collect(),
            Question::Views => {
                std::fs::write(folder.join("views.toml"), views("output = \"rows.jsonl\"")).unwrap();
                let words = "--views views.toml -o x --field";
                let lines =
                    replay(&format!("{words} {}", FIELD.replace(' ', "")), "survivors.jsonl", "rows.jsonl");
                rows::in_force(written(lines), Keeping::Sum).unwrap()
            }
            Question::Notices => {
                std::fs::write(folder.join("watches.jsonl"), feed::watches()).unwrap();
                let words = "--watch watches.jsonl --notices found.jsonl -o x";
                let lines = replay(words, "survivors.jsonl", "found.jsonl");
                rows::in_force(written(lines), Keeping::Sum).unwrap()
            }
            Question::Replay(words) => {
                std::fs::write(folder.join("items.jsonl"), feed::watches()).unwrap();
                let lines = replay(&format!("{words} -o rows.jsonl"), "survivors.jsonl", "rows.jsonl");
                rows::in_force(written(lines), Keeping::All).unwrap()
            }
            Question::Answer(Answer { name, mode }) => {
                let mode = mode.as_deref();
                let (emit, input) = match (&**name, mode) {
                    // The sums of changes are what there is in the end.
                    ("deltas", None) => ("pairs".to_owned(), "survivors.jsonl"),
                    ("cluster-deltas", None) => ("clusters".to_owned(), "survivors.jsonl"),
                    // Each upsert has one, so it depends on what is an epoch.
                    ("decisions", Some("first")) => ("decisions".to_owned(), "feed.jsonl"),
                    ("decisions", Some("current")) => {
                        // Of each document the last one.
                        ("decisions --decisions current".to_owned(), "survivors.jsonl")
                    }
                    ("pairs" | "clusters" | "keep" | "remove", None) => (name.clone(), "survivors.jsonl"),
                    other => panic!("the suite has no answer {other:?}: write what gives its rows"),
                };
                let words = format!("--emit {emit} --max-bad 1 --epoch {} -o rows.jsonl", feed::EPOCH);
                let mut lines = replay(&words, input, "rows.jsonl");
                if mode == Some("current") {
                    for cells in &mut lines {
                        let offset = survivors[&cells["id"]].offset.to_string();
                        cells.insert("offset".to_owned(), rows::cell(&offset));
                    }
                }
                let is_current = mode == Some("current");
                let keeping = if is_current { Keeping::Last } else { Keeping::All };
                rows::in_force(written(lines), keeping).unwrap()
            }
        }
    }

    /// The cells of the lines of an output.
    fn replay(&self, folder: &Path, words: &str, output: &str) -> Vec<BTreeMap<String, String>> {
        let ended = dupflow(folder, &format!("replay -q --workers 1 {words}")).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success() || said.contains("no document"), "{words}: {said}");
        let text = std::fs::read_to_string(folder.join(output)).unwrap_or_default();
        text.lines().flat_map(rows::line).collect()
    }
}
