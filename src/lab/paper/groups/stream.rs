//! 003-X1 and X2: alg.G and alg.H in the stream, and groups that are added and dropped there, by runs of the
//!    program as processes.
//!
//! No block is hot in these runs, so no pair within the radius may be missed with any groups.

use std::path::Path;
use std::process::{Command, Stdio};

use super::super::super::pipelines::{Pipelines, TruthFrom};
use super::super::super::pipelines::{RunCounts, Temporary};
use super::super::super::table::{ResultTable, row};
use super::super::super::{EvaluateError, StudyContext};
use super::super::permuted::grouped;
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::{DOCUMENTS, SURPLUS};
use dupflow_connectors::formats::InputLayout;
use dupflow_core::block::hamming::{Design, DesignKind, MOST_KEYS, radius};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;

/// k and r.
const SIZE: usize = 400;
const SIMILARITY: f64 = 0.7;

/// Number of documents of the feed.
const FEED: usize = 3000;

/// Each with the number of groups beyond the radius.
const BLOCKS: [(&str, usize); 3] = [("groups", 3), ("conjunctions", 1), ("conjunctions", 2)];

pub(super) fn make(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let feed = Temporary::new("003.jsonl");
    let documents = work.size(FEED, 100).to_string();
    let seed = work.bench.seed.to_string();
    let generate = ["generate", "--scripts", "latin", "--documents", &documents, "--seed", &seed, "-q", "-o"];
    run(work, Command::new(work.program).args(generate).arg(&feed.0))?;
    let mut made = conjunctions(work, &feed.0)?;
    made += moved(work, &feed.0)?;
    Ok(made)
}

/// Runs a command that must succeed.
fn run(work: &SectionContext<'_>, command: &mut Command) -> Result<(), EvaluateError> {
    let output = command.stdin(Stdio::null()).output().map_err(EvaluateError::file(work.program))?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(EvaluateError::Pipeline { pipeline: "onebit".to_owned(), message })
}

/// The pairs that a run found, and its statistics.
type RunOutput = (Vec<Pair<DocId>>, RunCounts);

fn replay(
    work: &SectionContext<'_>,
    feed: &Path,
    kind: &str,
    common: usize,
) -> Result<RunOutput, EvaluateError> {
    (work.bench.progress)(&format!("003: {kind}, {common} common, in the stream"));
    let overrides = [
        format!("sketch.size={SIZE}"),
        "blocking.hot=never".to_owned(),
        format!("blocking.kind={kind}"),
        format!("blocking.common={common}"),
    ];
    let study = Pipelines {
        pipelines: Vec::new(),
        overrides: overrides.into(),
        thresholds: vec![SIMILARITY],
        corpus: vec![feed.to_owned()],
        layout: InputLayout::default(),
        truth: TruthFrom::BruteForce,
        limit: 0,
        program: work.program.to_owned(),
    };
    let (mut pairs, counts) =
        study.replay(&StudyContext { threads: 1, ..*work.bench }, "onebit", SIMILARITY)?;
    pairs.sort();
    Ok((pairs, counts))
}

/// 003-X1.
fn conjunctions(work: &SectionContext<'_>, feed: &Path) -> Result<SectionAnswers, EvaluateError> {
    let r_h = radius(SIZE, SIMILARITY);
    let design = |surplus| Design::new(SIZE, r_h, DesignKind::Conjunctions { surplus });
    let whole = design(SURPLUS)?;
    let refused = whole.selections().err().map_or_else(|| "accepted".to_owned(), |error| error.to_string());
    let mut table = ResultTable::new(
        "003_x1_stream",
        "alg.G and alg.H in the stream, k = 400, r = 0.7",
        "Runs of pipeline onebit with 400 components on a generated feed, no block hot, one worker, a \
            process each. Meetings: pairs of documents that share a key; of all: of all pairs of documents. \
            Memory: the peak of the process.",
        "blocks | keys a document | documents | pairs | meetings | of all, % | memory, MiB",
    );
    let mut all: Vec<RunOutput> = Vec::new();
    let (mut keys_of, mut met) = (Vec::new(), Vec::new());
    for (kind, common) in BLOCKS {
        let (pairs, counts) = replay(work, feed, kind, common)?;
        let keys = if kind == "groups" { (r_h + common) as u64 } else { design(common)?.keys() };
        let n = counts.documents as f64;
        let share = counts.candidates as f64 / (0.5 * n * (n - 1.0));
        table.push(row![
            format!("{kind}, common = {common}"),
            keys,
            counts.documents,
            pairs.len(),
            counts.candidates,
            100.0 * share,
            counts.peak_rss_bytes as f64 / f64::from(1 << 20),
        ]);
        keys_of.push(keys as f64);
        met.push(share);
        all.push((pairs, counts));
    }
    let different = all[1..].iter().filter(|(pairs, _)| *pairs != all[0].0).count();
    let memory = |at: usize| all[at].1.peak_rss_bytes as f64 / all[at].1.documents as f64;
    let a_key = (memory(2) - memory(0)) / (keys_of[2] - keys_of[0]);
    let keys = whole.keys() as f64;
    let line = |of: &str, printed: &str| ItemLine::new("003-X1", of, printed);
    let lines = vec![
        line("keys of a document, c = 3", "C(m, r_h), no number")
            .measured(grouped(whole.keys()))
            .judged(Basis::Computed(PrintedClaim::equal(39_711.0, keys, Matters::Any)))
            .because("C(63, 60); each is a posting that the stream keeps for as long as the document lives"),
        line("what check, plan and run say to it", "-")
            .measured(refused)
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::at_least(MOST_KEYS as f64 + 1.0, &[keys])))
            .because("Refused before the start: checked against the most keys that are kept."),
        line("pairs of alg.G with c = 1 and 2 beside those of alg.H with c = 3", "the same results")
            .measured(format!("{} pairs; {different} of 2 runs differ", all[0].0.len()))
            .judged(Basis::Measured(PrintedClaim::none(different)))
            .because("What c changes is which pairs meet, not which are within the radius."),
        line("meetings of alg.H with c = 3 and of alg.G with c = 1 and 2, of all pairs of documents", "-")
            .measured(
                met.iter().map(|share| format!("{:.0} %", 100.0 * share)).collect::<Vec<_>>().join(", "),
            )
            .judged(UnjudgedReason::Shown)
            .because(
                "By groups of 6 or 7 bits most documents meet; keys of two groups make fewer meet, and take \
                    more memory.",
            ),
        line("memory of a key with c = 2, and of 39,711 keys of 300,000 documents by it", "-")
            .measured(format!("{a_key:.1} bytes, {:.0} GB", a_key * keys * DOCUMENTS as f64 / 1e9))
            .judged(UnjudgedReason::Timed)
            .because(
                "Peaks of processes; at 12 bytes, as `plan` counts, 143 GB. alg.G at this setting is for a \
                    batch that drops each choice once it is read.",
            ),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// The changes between two runs that continue one output.
const STEPS: [(&str, &str, bool); 4] = [
    ("63 groups", "blocking.common=3", true),
    ("a group added: 64", "blocking.common=4", true),
    ("three groups dropped: 61", "blocking.common=1", true),
    ("20 bits more, and 3 groups: 66", "sketch.size=420", false),
];

/// 003-X2: one output, continued by runs with other groups.
fn moved(work: &SectionContext<'_>, feed: &Path) -> Result<SectionAnswers, EvaluateError> {
    let (deployment, output) = (Temporary::new("003.toml"), Temporary::new("003.out.jsonl"));
    let _mark = Temporary::new("003.out.jsonl.mark");
    let quoted = |path: &Path| toml_string(&path.display().to_string());
    let text = format!(
        "[source]\nkind = \"files\"\ninputs = [{}]\n[sink]\nkind = \"lines\"\npath = {}\n",
        quoted(feed),
        quoted(&output.0)
    );
    std::fs::write(&deployment.0, text).map_err(EvaluateError::file(&deployment.0))?;
    let mut table = ResultTable::new(
        "003_x2_moved",
        "One output, continued by runs with other groups",
        "Pipeline onebit, 400 components, r = 0.7, no block hot. Each run continues the output of the one \
            before with --reconcile, which writes what differs as corrections.",
        "groups | setting | deltas written",
    );
    let mut before = 0;
    let (mut same, mut longer) = (Vec::new(), 0);
    for (n, (name, setting, is_same)) in STEPS.into_iter().enumerate() {
        (work.bench.progress)(&format!("003: {name}, in the stream"));
        let mut command = Command::new(work.program);
        command.args(["run", "-q", "-p", "onebit", "--reconcile", "-c"]).arg(&deployment.0);
        for set in [
            &format!("sketch.size={SIZE}"),
            &format!("threshold={SIMILARITY}"),
            "blocking.hot=never",
            setting,
        ] {
            command.args(["--set", set]);
        }
        run(work, &mut command)?;
        let written = std::fs::read_to_string(&output.0).map_err(EvaluateError::file(&output.0))?;
        let lines = written.lines().count();
        table.push(row![name, setting, lines - before]);
        match (n, is_same) {
            (0, _) => {}
            (_, true) => same.push(lines - before),
            (_, false) => longer = lines - before,
        }
        before = lines;
    }
    let lines = vec![
        ItemLine::new(
            "003-X2",
            "deltas that differ once a group is added, and once three are dropped, k = 400",
            "groups can be added and dropped; no numbers",
        )
        .measured(same.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and "))
        .judged(Basis::Measured(PrintedClaim::each(
            same.iter().map(|count| (0.0, *count as f64)),
            Matters::Any,
        )))
        .because(
            "The next run continues the output with other groups of the same bits (--reconcile); its \
                sketches are the same, so a kept state serves it too.",
        ),
        ItemLine::new("003-X2", "the same for three groups of further bits, k = 420", "k/m bits at a time")
            .measured(longer.to_string())
            .judged(UnjudgedReason::Shown)
            .because(
                "Longer fingerprints are another scheme: everything is sketched again, and estimates of \
                    pairs move a little. In the stream a group of further bits is no small step.",
            ),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// A string of TOML.
fn toml_string(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
