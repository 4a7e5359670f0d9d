//! The cells: each answer at each place that the program accepts, asked of the program itself, so that a new
//! answer, place, format or mode is a cell of the suite at once.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

/// An answer, as it is typed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Answer {
    pub(crate) name: String,
    /// The kind of decisions.
    pub(crate) mode: Option<String>,
}

/// An answer at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) answer: Answer,
    /// As in `output.kind`.
    pub(crate) kind: String,
    /// The format of a file, or the envelope of a topic.
    pub(crate) form: Option<String>,
    /// Whether it can be the first output, with one of changes beside it.
    pub(crate) leads: bool,
    /// Whether it can be an output beside the first.
    pub(crate) follows: bool,
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.mode.iter().try_for_each(|mode| write!(f, " ({mode})"))
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { answer, kind, form, .. } = self;
        write!(
            f,
            "{answer} in {}{kind}",
            form.as_ref().map_or_else(String::new, |form| format!("{form} of "))
        )
    }
}

/// A command of the program.
pub(crate) fn dupflow(folder: &Path, words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    command.args(words.split_whitespace()).current_dir(folder).stdin(Stdio::null());
    command.env_remove("DUPFLOW_FAILPOINT").env_remove("RUST_LOG");
    command
}

/// Whether a deployment file with these outputs is accepted, and what is said of it.
fn check(folder: &Path, outputs: &[&str]) -> (bool, String) {
    let tables: String = outputs.iter().map(|output| format!("[[output]]\n{output}")).collect();
    let text = format!("source.inputs = [\"feed.jsonl\"]\n{tables}[kafka]\nbrokers = \"127.0.0.1:9\"\n");
    let text = if tables.contains("kafka") { text } else { text.replace("[kafka]\nbrokers", "#") };
    std::fs::write(folder.join("check.toml"), text).unwrap();
    let ended = dupflow(folder, "check -c check.toml").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!([Some(0), Some(2)].contains(&ended.status.code()), "{outputs:?}: {said}");
    (ended.status.success(), said)
}

/// The values of a key of an output, as the refusal of another one lists them.
fn values(folder: &Path, key: &str, more: &str) -> Vec<String> {
    let (_, said) = check(folder, &[&format!("{more}{key} = \"?\"\n")]);
    let line = said.lines().find(|line| line.contains(&format!("output.1.{key}: found \"?\", expected")));
    let expected = line.and_then(|line| line.split("expected").nth(1)).unwrap_or_else(|| panic!("{said}"));
    let values: Vec<_> = expected.split('"').skip(1).step_by(2).map(str::to_owned).collect();
    assert!(values.len() > 1, "{said}");
    values
}

/// The keys of an output: what is written there, and where.
pub(crate) fn keys(answer: &Answer, kind: &str, form: Option<&str>, name: &str) -> String {
    let decisions = answer.mode.as_ref().map_or_else(String::new, |mode| format!("decisions = \"{mode}\"\n"));
    let place = match kind {
        "lines" => {
            let format = form.unwrap();
            format!("path = \"mnt/disk/{name}.{format}\"\nformat = \"{format}\"\n")
        }
        "sqlite" => format!("path = \"mnt/disk/{name}.db\"\n"),
        "postgres" => format!("url = \"postgres://postgres@127.0.0.1:9/postgres\"\nprefix = \"{name}_\"\n"),
        "kafka" => format!("topic = \"{name}\"\nenvelope = \"{}\"\n", form.unwrap()),
        other => panic!("the suite has no place {other:?}: write how it is configured and read back"),
    };
    format!("answer = \"{}\"\n{decisions}kind = \"{kind}\"\n{place}", answer.name)
}

/// All cells of a run.
pub(crate) fn of_runs(folder: &Path) -> Vec<Cell> {
    let modes = values(folder, "decisions", "answer = \"decisions\"\n");
    let answer = |name: String| -> Vec<Answer> {
        let mode = |mode: &String| Answer { name: name.clone(), mode: Some(mode.clone()) };
        match &*name {
            "decisions" => modes.iter().map(mode).collect(),
            _ => vec![Answer { name, mode: None }],
        }
    };
    let answers: Vec<_> = values(folder, "answer", "").into_iter().flat_map(answer).collect();
    let mut cells = Vec::new();
    // What goes nowhere is not read back.
    for kind in values(folder, "kind", "").into_iter().filter(|kind| kind != "null") {
        let forms = match &*kind {
            "lines" => values(folder, "format", "path = \"x\"\n").into_iter().map(Some).collect(),
            "kafka" => values(folder, "envelope", "kind = \"kafka\"\ntopic = \"x\"\n")
                .into_iter()
                .map(Some)
                .collect(),
            _ => vec![None],
        };
        for form in forms {
            for answer in &answers {
                let own = keys(answer, &kind, form.as_deref(), "x");
                if !check(folder, &[&own]).0 {
                    continue;
                }
                let deltas = "path = \"deltas.jsonl\"\n";
                cells.push(Cell {
                    answer: answer.clone(),
                    kind: kind.clone(),
                    form: form.clone(),
                    leads: check(folder, &[&own, deltas]).0,
                    follows: check(folder, &[deltas, &own]).0,
                });
            }
        }
    }
    cells
}
