//! The data of the tables: runs of `dupflow evaluate pipelines` and `dupflow plan`, each made once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use dupflow::config::BUILT_IN;

use super::Mode;
use super::blocks::Table;

/// Pipelines that take long.
const SLOW: [&str; 2] = ["weighted", "paper"];

/// Pipelines that are compared with every corpus, at [`COMPARED`]; others at [`SHIPPED`], with corpora that
/// have a truth by other programs.
const SWEPT: [&str; 2] = ["minhash", "exact"];
const COMPARED: &[&str] = &["0.5", SHIPPED];

/// A threshold at which every corpus is run.
const SHIPPED: &str = "0.8";

/// A corpus, and the options of its evaluation.
#[derive(Debug)]
pub(crate) struct Corpus {
    pub(crate) name: &'static str,
    from: From,
    thresholds: &'static [&'static str],
    /// Text rules for a truth computed by other programs.
    overrides: &'static [&'static str],
    pipelines: Pipelines,
}

#[derive(Clone, Copy, Debug)]
enum From {
    /// A file of the recorded data, and its truth, if that is not computed.
    Recorded(&'static str, Option<&'static str>),
    /// The output of `dupflow generate` with these arguments.
    Generated(&'static [&'static str]),
    /// The same, with labels.
    Labelled(&'static [&'static str]),
}

#[derive(Clone, Copy, Debug)]
enum Pipelines {
    /// All built-in pipelines except `contained`, `decontaminate` and the tour; `paper` at 0.8 only.
    All,
    /// All except `paper`.
    Most,
    These(&'static [&'static str]),
}

const BY_OTHERS: &[&str] =
    &["text.spaceless=run", "text.marks=split", "text.normalize=none", "text.invisible=keep"];
const PAGES: &str = "static_10k_shared.jsonl.zst";
const FEED: &str = "feed_tldr_half0.jsonl.zst";
const LONG: &str = "feed_psdocs_first8k.jsonl.zst";
const SWEEP: &[&str] = &["0.5", "0.6", "0.7", "0.8", "0.9"];

pub(crate) const CORPORA: [Corpus; 8] = [
    Corpus {
        name: "pages",
        from: From::Recorded(PAGES, Some("static_10k_shared.set_pairs_0.5.tsv.zst")),
        thresholds: SWEEP,
        overrides: BY_OTHERS,
        pipelines: Pipelines::All,
    },
    Corpus {
        name: "feed",
        from: From::Recorded(FEED, Some("feed_tldr_half0.deltas_0.8.tsv.zst")),
        thresholds: &["0.8"],
        overrides: BY_OTHERS,
        pipelines: Pipelines::All,
    },
    Corpus {
        name: "long",
        from: From::Recorded(LONG, Some("feed_psdocs_first8k.deltas_0.8.tsv.zst")),
        thresholds: &["0.8"],
        overrides: BY_OTHERS,
        pipelines: Pipelines::All,
    },
    Corpus {
        name: "pages-default",
        from: From::Recorded(PAGES, None),
        thresholds: &["0.8"],
        overrides: &[],
        pipelines: Pipelines::Most,
    },
    Corpus {
        name: "feed-default",
        from: From::Recorded(FEED, None),
        thresholds: &["0.8"],
        overrides: &[],
        pipelines: Pipelines::Most,
    },
    Corpus {
        name: "long-default",
        from: From::Recorded(LONG, None),
        thresholds: &["0.8"],
        overrides: &[],
        pipelines: Pipelines::Most,
    },
    Corpus {
        name: "labelled",
        from: From::Labelled(&["--documents", "2000"]),
        thresholds: &["0.3", "0.5", "0.8"],
        overrides: &[],
        pipelines: Pipelines::These(&["minhash", "sectional", "weighted"]),
    },
    Corpus {
        name: "generated",
        from: From::Generated(&["--documents", "40000", "--seed", "9"]),
        thresholds: SWEEP,
        overrides: &[],
        pipelines: Pipelines::These(&["minhash", "exact"]),
    },
];

/// A parsed table name: `CORPUS VIEW`, optionally `at T,T`.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) corpus: &'static Corpus,
    pub(crate) view: String,
    /// The thresholds of the rows; empty for all.
    pub(crate) at: Vec<String>,
}

impl Wanted {
    pub(crate) fn named(name: &str) -> Option<Self> {
        let (name, at) = name.split_once(" at ").unwrap_or((name, ""));
        let (corpus, view) = name.split_once(' ')?;
        let corpus = CORPORA.iter().find(|known| known.name == corpus)?;
        let at = at.split(',').filter(|at| !at.is_empty()).map(str::to_owned).collect();
        Some(Self { corpus, view: view.to_owned(), at })
    }
}

/// The tables that a run prints, by title.
pub(crate) type Tables = BTreeMap<String, Table>;

/// The results so far.
pub(crate) struct Computed {
    program: PathBuf,
    folder: Option<PathBuf>,
    scratch: tempfile::TempDir,
    runs: BTreeMap<&'static str, Option<Tables>>,
}

impl Computed {
    pub(crate) fn new(program: PathBuf, folder: Option<PathBuf>) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        Self { program, folder, scratch, runs: BTreeMap::new() }
    }

    /// The tables of a corpus; `None` if it is missing, or if it is large and not requested.
    pub(crate) fn tables(&mut self, corpus: &'static Corpus, mode: Mode) -> Option<&Tables> {
        if !self.runs.contains_key(corpus.name) {
            let tables = self.evaluate(corpus, mode);
            self.runs.insert(corpus.name, tables);
        }
        self.runs[corpus.name].as_ref()
    }

    fn evaluate(&self, corpus: &Corpus, mode: Mode) -> Option<Tables> {
        let input = match corpus.from {
            From::Recorded(file, truth) => {
                let folder = self.folder.as_ref()?;
                let truth = truth.map(|truth| ["--truth".into(), folder.join(truth)]);
                [["--corpus".into(), folder.join(file)]].into_iter().chain(truth).flatten().collect()
            }
            From::Generated(_) if mode == Mode::Compare => return None,
            From::Generated(arguments) => self.generate(arguments, false),
            From::Labelled(arguments) => self.generate(arguments, true),
        };
        let mut tables = Tables::new();
        for (pipelines, thresholds) in corpus.parts(mode) {
            let more = self.run(corpus, &input, &pipelines, thresholds);
            for (title, table) in more {
                let known =
                    tables.entry(title).or_insert_with(|| Table { rows: Vec::new(), ..table.clone() });
                assert_eq!(
                    known.columns, table.columns,
                    "{}: runs of one corpus have the same columns",
                    corpus.name
                );
                known.rows.extend(table.rows);
            }
        }
        for table in tables.values_mut() {
            // The parts have the same pairs, so rows are sorted by pipeline.
            let place = |row: &Vec<String>| BUILT_IN.iter().position(|(name, _)| row[0] == *name);
            table.rows.sort_by_key(|row| place(row).unwrap_or(BUILT_IN.len()));
            table.rows.dedup();
        }
        Some(tables)
    }

    fn generate(&self, arguments: &[&str], labels: bool) -> Vec<PathBuf> {
        let at = |name: &str| self.scratch.path().join(name);
        let mut command = Command::new(&self.program);
        command.args(["-q", "generate"]).args(arguments).arg("-o").arg(at("corpus.jsonl"));
        let mut input =
            vec!["--corpus".into(), at("corpus.jsonl"), "--brute-force-limit".into(), "50000".into()];
        if labels {
            command.arg("--labels").arg(at("labels.tsv"));
            input.extend(["--labels".into(), at("labels.tsv")]);
        }
        stdout(&mut command);
        input
    }

    fn run(&self, corpus: &Corpus, input: &[PathBuf], pipelines: &[&str], thresholds: &[&str]) -> Tables {
        let mut command = Command::new(&self.program);
        command.args(["-q", "evaluate", "pipelines", "--format", "markdown", "--workers", "2"]).args(input);
        command.arg("--thresholds").arg(thresholds.join(","));
        command.args(pipelines.iter().flat_map(|pipeline| ["-p", pipeline]));
        command.args(corpus.overrides.iter().flat_map(|set| ["--set", set]));
        let printed = stdout(&mut command);
        let table = |part: &str| {
            let title = part.lines().next().unwrap_or_default().to_owned();
            let lines: Vec<&str> = part.lines().filter(|line| line.starts_with('|')).collect();
            (title, Table::parsed(&lines))
        };
        printed.split("\n### ").skip(1).map(table).collect()
    }

    /// The feed of short pages in many languages.
    pub(crate) fn feed(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(FEED))
    }

    /// The number of pairs that `exact` finds among all documents.
    pub(crate) fn pairs(&self, documents: &[(&str, &str)], overrides: &[String]) -> usize {
        let input = self.scratch.path().join("documents.jsonl");
        let line = |(id, text): &(&str, &str)| serde_json::json!({"id": id, "text": text}).to_string() + "\n";
        std::fs::write(&input, documents.iter().map(line).collect::<String>()).unwrap();
        let mut command = Command::new(&self.program);
        command.args(["-q", "replay", "-p", "exact", "--emit", "pairs", "--set", "blocking.kind=scan"]);
        command.args(overrides.iter().flat_map(|set| ["--set", set])).arg(&input);
        stdout(&mut command).lines().count()
    }

    /// What `dupflow plan` computes for a pipeline at a threshold and a number of documents.
    pub(crate) fn plan(&self, pipeline: &str, threshold: &str, documents: &str) -> serde_json::Value {
        let mut command = Command::new(&self.program);
        command.args(["-q", "plan", "--format", "json", "-p", pipeline, "--documents", documents]);
        command.arg("--set").arg(format!("threshold={threshold}"));
        serde_json::from_str(&stdout(&mut command)).unwrap()
    }
}

impl Corpus {
    /// Groups of pipelines that are run together, with their thresholds.
    fn parts(&self, mode: Mode) -> Vec<(Vec<&'static str>, &'static [&'static str])> {
        let is_studied = |name: &&str| !["contained", "decontaminate", "fingerprint", "tour"].contains(name);
        let built_in = || BUILT_IN.iter().map(|(name, _)| *name).filter(is_studied);
        let is_all = mode != Mode::Compare;
        match self.pipelines {
            Pipelines::These(names) => vec![(names.to_vec(), self.thresholds)],
            Pipelines::Most if is_all => {
                vec![(built_in().filter(|name| *name != "paper").collect(), self.thresholds)]
            }
            Pipelines::All if is_all => vec![
                (built_in().filter(|name| *name != "paper").collect(), self.thresholds),
                (vec!["paper"], &[SHIPPED]),
            ],
            Pipelines::All | Pipelines::Most => {
                let swept = if self.thresholds == SWEEP { COMPARED } else { &[SHIPPED] };
                let (named, others): (Vec<_>, Vec<_>) = built_in()
                    .filter(|name| !self.leaves_out(name, SHIPPED))
                    .partition(|name| SWEPT.contains(name));
                let mut parts = vec![(named, swept), (others, &[SHIPPED])];
                parts.retain(|(names, _)| !names.is_empty());
                parts
            }
        }
    }

    /// Whether a comparison leaves out the rows of a pipeline at a threshold.
    pub(crate) fn leaves_out(&self, pipeline: &str, threshold: &str) -> bool {
        let is_swept = SWEPT.contains(&pipeline);
        let compared = if is_swept { COMPARED } else { &[SHIPPED] };
        match self.pipelines {
            Pipelines::These(_) => false,
            Pipelines::Most if !is_swept => true,
            _ => SLOW.contains(&pipeline) || (SWEEP.contains(&threshold) && !compared.contains(&threshold)),
        }
    }

    /// Whether pipelines are run at this threshold.
    pub(crate) fn has(&self, threshold: &str) -> bool {
        self.thresholds.contains(&threshold)
    }

    /// The number of documents of the plans.
    pub(crate) fn documents(&self) -> &'static str {
        match self.from {
            From::Generated(_) => "40000",
            From::Labelled(_) => "2000",
            From::Recorded(FEED, _) => "19237",
            From::Recorded(LONG, _) => "1979",
            From::Recorded(..) => "10000",
        }
    }
}

fn stdout(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every recorded corpus named here exists.
#[test]
fn every_corpus_is_there() {
    let Some(folder) = super::data::folder("the files of recorded corpora") else { return };
    for corpus in &CORPORA {
        if let From::Recorded(file, truth) = corpus.from {
            for name in [Some(file), truth].into_iter().flatten() {
                assert!(Path::new(&folder).join(name).is_file(), "{name}");
            }
        }
    }
}
