//! What a replay writes at each place: into a new file and over an old one, killed while it is written, on a
//! full disk, with another threshold. The rows are those of a replay of the survivors to lines; a file that
//! is written at the end is there as a whole, the old one or the new one.

use std::path::Path;
use std::process::Stdio;

use dupflow::core::hash::mix;

use crate::cells::{Answer, dupflow};
use crate::disk::Disk;
use crate::feed;
use crate::model::{Model, Question};
use crate::places::{Database, Place, Tables, is_of_changes, read_file};
use crate::rows::{self, Keeping, Written};
use crate::scene::{BOUND, Servers};

/// What an answer needs beside its name: other answers need nothing.
const OPTIONS: [(&str, &str); 2] =
    [("items", " -p decontaminate --against items.jsonl"), ("rejected:40", " --set filter.looks=[448]")];

/// An answer of a replay at a place.
#[derive(Clone, Debug)]
pub(crate) struct ReplayCell {
    pub(crate) name: String,
    /// The options that make the answer.
    words: String,
    answer: Answer,
    output: String,
}

/// All cells of a replay, asked of the program.
pub(crate) fn cells(folder: &Path) -> Vec<ReplayCell> {
    std::fs::write(folder.join("feed.jsonl"), feed::lines(1).join("\n")).unwrap();
    std::fs::write(folder.join("items.jsonl"), feed::watches()).unwrap();
    let said = |words: &str| {
        let ended = dupflow(folder, words).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    };
    let values = |option: &str| -> Vec<String> {
        let (_, said) = said(&format!("replay {option} ? feed.jsonl"));
        let listed = said.split("possible values: ").nth(1).and_then(|rest| rest.split(']').next());
        match (listed, said.split("expected ").nth(1)) {
            (Some(listed), _) => listed.split(", ").map(str::to_owned).collect(),
            (None, Some(quoted)) => quoted.split('"').skip(1).step_by(2).map(str::to_owned).collect(),
            (None, None) => panic!("{said}"),
        }
    };
    let mut answers: Vec<(String, String, Option<String>)> = Vec::new();
    for name in values("--emit").into_iter().chain(["rejected:40".to_owned()]) {
        let options = OPTIONS.iter().find(|(of, _)| *of == name).map_or("", |(_, options)| options);
        let words = format!("--emit {name}{options}");
        if name == "decisions" {
            for mode in values("--decisions") {
                answers.push((name.clone(), format!("{words} --decisions {mode}"), Some(mode)));
            }
            continue;
        }
        if name == "remove" {
            answers.push(("units".to_owned(), format!("{words} --set text.split=line"), None));
        }
        answers.push((name, words, None));
    }
    let files = values("--output-format").into_iter().map(|format| format!("mnt/out.{format}"));
    let outputs: Vec<String> = files.chain(["sqlite:mnt/out.db".to_owned()]).collect();
    let mut cells = Vec::new();
    for (name, words, mode) in answers {
        for output in &outputs {
            let (code, said) = said(&format!("replay --dry-run=1 {words} -o {output} feed.jsonl"));
            assert!([Some(0), Some(2)].contains(&code), "{words} {output}: {said}");
            if code == Some(0) {
                let answer = Answer { name: name.clone(), mode: mode.clone() };
                cells.push(ReplayCell {
                    name: format!("replay of {answer} in {output}"),
                    words: words.clone(),
                    answer,
                    output: output.clone(),
                });
            }
        }
    }
    cells
}

/// The histories of a cell; the problem, if there is one.
pub(crate) fn history(cell: &ReplayCell, servers: &Servers, model: &Model, seed: u64) -> Result<(), String> {
    let _shared = servers.alone.read();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    std::fs::create_dir(at.join("mnt")).unwrap();
    let disk = Disk::mount(&at.join("mnt"), "16m");
    std::fs::write(at.join("items.jsonl"), feed::watches()).unwrap();
    let write = |pieces: usize| {
        std::fs::write(at.join("feed.jsonl"), feed::lines(pieces).join("\n") + "\n").unwrap();
        pieces * (feed::EVENTS + 1)
    };
    let words = |threshold: &str| {
        let ReplayCell { words, output, .. } = cell;
        let epoch = feed::EPOCH;
        format!(
            "replay -q --max-bad 1 --epoch {epoch} --set threshold={threshold} {words} -o {output} feed.jsonl"
        )
    };
    let run = |threshold: &str| {
        let ended = dupflow(at, &words(threshold)).output().unwrap();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let well = |lines: usize, threshold: &str| match run(threshold) {
        (Some(0), _) => check(cell, at, model, lines, threshold),
        other => Err(format!("it does not end well: {other:?}")),
    };
    let first = write(5 + usize::try_from(mix(seed) % 8).unwrap());
    for workers in 0..2 {
        well(first, "0.8").map_err(|problem| format!("written, {workers}: {problem}"))?;
    }
    // Lines that follow the corpus are written as they come, and begin anew with each replay.
    let is_whole = !is_of_changes(&cell.answer) || cell.output.starts_with("sqlite:");
    let second = write(22);
    let is_killed = kill(at, &words("0.8"));
    let one_of = |when: &str| {
        let (old, new) = (check(cell, at, model, first, "0.8"), check(cell, at, model, second, "0.8"));
        let (Err(old), Err(new)) = (old, new) else { return Ok(()) };
        Err(format!("{when}, it holds neither the old nor the new: {old}; {new}"))
    };
    if is_whole && !cell.output.starts_with("sqlite:") {
        one_of(&format!("killed: {is_killed}"))?;
    }
    if let Some(disk) = &disk {
        disk.fill();
        let ended = run("0.8");
        disk.empty();
        if ended.0 != Some(1) || ended.1.contains("panicked") {
            return Err(format!("a full disk is no failure: {ended:?}"));
        }
        if is_whole && !cell.output.starts_with("sqlite:") {
            one_of("after a full disk")?;
        }
    }
    well(second, "0.8").map_err(|problem| format!("after a kill and a full disk: {problem}"))?;
    well(second, "0.6").map_err(|problem| format!("with another threshold: {problem}"))?;
    let third = write(3);
    well(third, "0.6").map_err(|problem| format!("with fewer documents: {problem}"))
}

/// Kills a replay when something has changed in the folder of the output; whether it was in time.
fn kill(at: &Path, words: &str) -> bool {
    let look = || -> Vec<_> {
        let files = std::fs::read_dir(at.join("mnt")).unwrap().map(Result::unwrap);
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), file.metadata().map_or(0, |found| found.len()))).collect();
        files.sort_unstable();
        files
    };
    let before = look();
    let mut child = dupflow(at, words).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = std::time::Instant::now() + BOUND;
    while child.try_wait().unwrap().is_none() {
        if look() != before || std::time::Instant::now() > until {
            child.kill().unwrap();
            child.wait().unwrap();
            return true;
        }
    }
    false
}

/// Compares the output with the model.
fn check(cell: &ReplayCell, at: &Path, model: &Model, lines: usize, threshold: &str) -> Result<(), String> {
    let compare = |question: &Question, found: &rows::Rows| {
        let expected = model.rows(question, lines, threshold);
        let different = rows::difference(found, &expected);
        different
            .map_or(Ok(()), |other| Err(format!("{question:?} of {lines} lines at {threshold}: {other}")))
    };
    if let Some(path) = cell.output.strip_prefix("sqlite:") {
        let tables = Tables {
            database: Database::Sqlite(at.join(path)),
            prefix: String::new(),
            answer: Answer { name: "pairs".to_owned(), mode: None },
        };
        for (question, found) in tables.rows()? {
            let of_pairs = matches!(&question, Question::Answer(Answer { name, .. }) if name != "remove");
            if of_pairs || question == Question::Documents {
                compare(&question, &found)?;
            }
        }
        return Ok(());
    }
    let path = at.join(&cell.output);
    let format = path.extension().unwrap().to_str().unwrap();
    let bytes = std::fs::read(&path).map_err(|error| error.to_string())?;
    let keeping = match &*cell.answer.name {
        "deltas" | "cluster-deltas" => Keeping::Sum,
        "decisions" if cell.answer.mode.as_deref() == Some("current") => Keeping::Last,
        _ => Keeping::All,
    };
    let cells = read_file(format, bytes)?;
    let written = cells.into_iter().map(|cells| Written { key: None, cells: Some(cells) }).collect();
    let found = rows::in_force(written, keeping)?;
    let known = ["deltas", "pairs", "cluster-deltas", "clusters", "keep", "remove", "decisions"];
    let question = match known.contains(&&*cell.answer.name) {
        true => Question::Answer(cell.answer.clone()),
        false => Question::Replay(cell.words.clone()),
    };
    compare(&question, &found)
}
