//! `dupflow trace`: prints one document's values at every stage of the main path, and its pairs at the end of
//! the input.
//!
//! It reads the whole input into memory and needs no dataflow, since the pairs of a document are a function
//! of the corpus.

mod neighbourhood;

use std::fmt::Write as _;
use std::process::ExitCode;

use super::PipelineArgs;
use super::arguments::inputs::InputArgs;
use super::arguments::problems::Problems;
use super::corpus::{self, LiveDocuments};
use super::examine::{
    Examiner, SketchComparison, SketchedText, Specimen, shares_text, verdict_text, without_sketch,
};
use super::rule_fields::RuleFields;
use super::summary::quoted;
use crate::config::{BlockingPlan, Plan};
use crate::plural::counted;
use dupflow_connectors::inputs::Input;
use dupflow_core::block::hamming::DesignKind;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::agreement::Agreement;
use dupflow_core::text::{Idf, TextRules, Weights, shingles, tokens};
use neighbourhood::{Neighbour, Neighbourhood};

/// Arguments of `trace`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// The id of the document.
    #[arg(long, value_name = "ID")]
    pub doc: String,

    /// The inputs; they are held in memory.
    #[command(flatten)]
    pub inputs: InputArgs,
}

/// Most values of a list that are printed.
const SHOWN: usize = 12;

/// Prints the trace.
///
/// # Errors
/// All problems of the pipeline; an input that cannot be read; a document that the input does not contain.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let plan = problems.take(args.pipeline.load_without_reference());
    let id = args.inputs.layout.layout().id_of(&args.doc);
    if id.is_none() {
        problems.note(format_args!("--doc: an id has 1 to {} bytes", DocId::MAX_BYTES));
    }
    let inputs = args.inputs.resolve(&mut problems);
    let fields = args.inputs.layout.columns.fields(&mut problems);
    let fields = RuleFields::new(plan.as_ref(), &fields, &mut problems);
    let ((mut plan, id), inputs) = problems.settle(plan.zip(id).zip(inputs))?;
    super::print(&traced(&mut plan, inputs, &fields, &id)?)?;
    Ok(ExitCode::SUCCESS)
}

/// The trace of a document through the inputs.
fn traced(plan: &mut Plan, inputs: Vec<Input>, fields: &RuleFields, id: &DocId) -> anyhow::Result<String> {
    let mut events = Vec::new();
    let alive = corpus::read(inputs, plan, &fields.rules, |position, event| {
        if event.id == *id {
            let text = event.text.as_ref().map(ToString::to_string);
            events.push((position, text, event.fields.row.clone()));
        }
    })?;
    anyhow::ensure!(!events.is_empty(), "the input has no event of document \"{id}\"");
    Ok(report(plan, fields, &events, &alive, id))
}

/// An event of the document: its position; its text, or `None` for a delete; its fields.
type DocumentEvent = (Position, Option<String>, FieldRow);

/// The trace, one section per stage of `dataflow::build`.
fn report(
    plan: &Plan,
    fields: &RuleFields,
    events: &[DocumentEvent],
    alive: &LiveDocuments,
    id: &DocId,
) -> String {
    let mut out = format!("pipeline {}, scheme {:016x}\n", plan.name, plan.scheme.fingerprint());
    if let Weights::TfIdf(Idf::Frozen(table), _) = &plan.scheme.text.weights {
        let documents = counted(usize::try_from(table.documents()).unwrap_or(usize::MAX), "document");
        let _ = writeln!(out, "the table of document frequencies in force is of {documents}");
    }
    let mut section = |name: &str, lines: &[String]| {
        let _ = write!(out, "\n{name}\n");
        lines.iter().for_each(|line| {
            let _ = writeln!(out, "  {line}");
        });
    };
    let records = events.iter().map(|(Position { offset: at, .. }, text, _)| match text {
        Some(text) => format!("record {at}: upsert, {} bytes of text", text.len()),
        None => format!("record {at}: delete"),
    });
    section(
        &format!("ingest: events of {}, records counted from 0", shown(id)),
        &records.collect::<Vec<_>>(),
    );
    let mut examiner = Examiner::new(plan);
    let specimen = alive.get(id).map(|own| examiner.examine_with(&own.text, &fields.hashes(&own.fields)));
    if let Some(specimen) = &specimen {
        section("text", &text_lines(&alive[id].text, specimen, &plan.scheme.text));
    }
    if let Some(own) = alive.get(id).filter(|_| !fields.rules.is_empty()) {
        section(&format!("fields, and pairs.where: {}", plan.scheme.pairs), &fields.lines(&own.fields));
    }
    if let Some(traced) = specimen.as_ref().and_then(|specimen| specimen.sketched.as_ref()) {
        section("sketch", &sketch_lines(&examiner, traced));
    }
    let sketched =
        |text: &str, row: &FieldRow| examiner.sketch(text, &fields.hashes(row)).map(|text| text.id);
    section("upsert: what each event changes", &upsert_lines(sketched, events));
    let Some(specimen) = specimen else {
        section("end", &["not alive at the end of the input, so in no pair".to_owned()]);
        return out;
    };
    let Some(traced) = &specimen.sketched else {
        section("end", &[without_sketch(&specimen).to_owned()]);
        return out;
    };
    let texts = alive.iter().map(|(each, own)| (each.clone(), (&*own.text, fields.hashes(&own.fields))));
    let around = Neighbourhood::around(id, traced, &texts.collect(), &mut examiner);
    section("collapse: documents of this sketch", &member_lines(&around, plan));
    section("store", &store_lines(traced));
    section("blocks", &block_lines(&around, plan, &examiner));
    let neighbours = around.neighbours(&examiner);
    let candidates = neighbours.iter().map(|neighbour| candidate_line(neighbour, &examiner));
    section("candidates: documents that share a block", &or_none(candidates));
    let verdicts = neighbours.iter().map(|neighbour| {
        let document = &alive[&neighbour.id];
        let other = examiner.examine(&document.text);
        let exact = examiner.exact(&specimen, &other);
        let line = verdict_line(neighbour, traced.id, exact, &examiner);
        let rejection = fields.rejection([&alive[id].fields, &document.fields]);
        line + &rejection.map(|why| format!("; no pair, since {why}")).unwrap_or_default()
    });
    let verdicts = or_none(verdicts);
    section(&format!("verify, by {} similarity", examiner.measured()), &verdicts);
    let pairs = around.pairs(&neighbours, plan).into_iter();
    let pairs = pairs.map(|(pair, similarity)| {
        let (a, b) = (shown(pair.lo()), shown(pair.hi()));
        let shares = shares_text(similarity, &a, &b).map(|shares| format!(": {shares}"));
        format!("{a} {b} {}{}", similarity.get(), shares.unwrap_or_default())
    });
    section("pairs at the end of the input", &or_none(pairs));
    out
}

/// An id as printed.
fn shown(id: &DocId) -> String {
    quoted(id.as_str())
}

/// The first values of a list, and its length.
fn first<T>(values: &[T], show: impl Fn(&T) -> String) -> String {
    let shown: Vec<String> = values.iter().take(SHOWN).map(show).collect();
    let more = if values.len() > SHOWN { " ..." } else { "" };
    format!("{}{more}", shown.join(" "))
}

fn text_lines(text: &str, specimen: &Specimen, rules: &TextRules) -> Vec<String> {
    let (tokens, shingles, features) = (tokens(text, rules), shingles(text, rules), &specimen.features);
    vec![
        format!("{}: {}", counted(tokens.len(), "token"), first(&tokens, Clone::clone)),
        format!(
            "{}, {} distinct: {}",
            counted(shingles.len(), "shingle"),
            specimen.distinct(),
            first(&shingles, |shingle| quoted(shingle))
        ),
        format!("their features: {}", first(features, |feature| format!("{feature:016x}"))),
    ]
}

fn sketch_lines(examiner: &Examiner, traced: &SketchedText) -> Vec<String> {
    let places = examiner.shape().map(|shape| {
        let places: Vec<u64> = (0..shape.size).map(|j| Examiner::place(shape, &traced.sketch, j)).collect();
        let digits = shape.bits.div_ceil(4);
        let (size, bits) = (shape.size, shape.bits);
        let what = match shape.agreement {
            Agreement::Bits(_) => "components",
            Agreement::Run { .. } | Agreement::Odd(_) | Agreement::Angle => "places",
            Agreement::Bit => "bits",
        };
        let bits = counted(bits, "bit");
        format!("{size} {what} of {bits}: {}", first(&places, |place| format!("{place:0digits$x}")))
    });
    let words = format!(
        "{}: {}",
        counted(traced.sketch.words.len(), "word"),
        first(&traced.sketch.words, |word| format!("{word:016x}"))
    );
    std::iter::once(format!("id {}", traced.id)).chain(places).chain([words]).collect()
}

/// The blocks that hold other documents too, and the number of all others.
fn block_lines(around: &Neighbourhood, plan: &Plan, examiner: &Examiner) -> Vec<String> {
    let blockings: Vec<_> = plan.blockings().collect();
    let (company, alone): (Vec<_>, Vec<_>) = around.blocks.iter().partition(|(_, block)| block.len() > 1);
    let mut lines: Vec<String> = company
        .iter()
        .map(|(key, block)| {
            let is_of = |(_, first): &&(&BlockingPlan, usize)| *first <= usize::from(key.table);
            let (blocking, first) =
                blockings.iter().rev().find(is_of).expect("the first begins with table 0");
            let (table, hash) = (usize::from(key.table) - first, key.hash());
            let place = match blocking {
                BlockingPlan::Banding { .. } => format!("band {table:>2}, hash {hash:010x}"),
                BlockingPlan::Hamming { design, .. }
                    if matches!(design.kind(), DesignKind::Groups { .. }) =>
                {
                    format!("group {table:>2}, hash {hash:010x}")
                }
                BlockingPlan::Hamming { .. } => format!("table {table:>2}, hash {hash:010x}"),
                BlockingPlan::Reference => format!("shingle of the reference, hash {hash:010x}"),
                BlockingPlan::Scan => "the block of all".to_owned(),
                BlockingPlan::Shingles { .. } if examiner.is_scaled() => {
                    format!("kept value, hash {hash:010x}")
                }
                BlockingPlan::Shingles { .. } => format!("shingle, hash {hash:010x}"),
            };
            let note = if block.len() > examiner.rule(key.table).cap { ", hot" } else { "" };
            format!("{place}: {} sketches{note}", block.len())
        })
        .collect();
    if !alone.is_empty() {
        lines.push(format!("alone in {}", counted(alone.len(), "block")));
    }
    lines
}

fn candidate_line(neighbour: &Neighbour, examiner: &Examiner) -> String {
    let Neighbour { id, sketch, compared, live, is_copy, first_word } = neighbour;
    let what = if *is_copy {
        "the same sketch".to_owned()
    } else if examiner.is_scaled() {
        format!("sketch {sketch}")
    } else {
        format!("sketch {sketch}, {first_word} of 64 bits agree in the first words")
    };
    format!("{}: {}, {live} live; {what}", shown(id), counted(compared.shared.len(), "block"))
}

/// The verdict, and which sketch is sent: that with the smaller id.
fn verdict_line(neighbour: &Neighbour, traced: SketchId, exact: f64, examiner: &Examiner) -> String {
    let Neighbour { id, sketch, compared, live, is_copy, .. } = neighbour;
    let verdict = match (is_copy, live) {
        (true, _) => "the same sketch, never compared".to_owned(),
        (false, 0) => "never compared, they meet in no block".to_owned(),
        (false, _) => {
            let [from, to] = if traced < *sketch { ["this", "the other"] } else { ["the other", "this"] };
            let verdict = verdict_text(&compared.verdict, ["this", "the other"], examiner);
            format!("{verdict}; {from} sketch travels to {to}")
        }
    };
    let SketchComparison { estimate, standard_error, .. } = compared;
    format!(
        "{}: exact {exact:.4}, estimate {estimate:.4} (standard error {standard_error:.4}); {verdict}",
        shown(id)
    )
}

/// The change by each event, as if it were the only one of its epoch; in an epoch with several, only the last
/// one counts.
fn upsert_lines(
    mut sketched: impl FnMut(&str, &FieldRow) -> Option<SketchId>,
    events: &[DocumentEvent],
) -> Vec<String> {
    let mut in_force: Option<Option<SketchId>> = None;
    let line = |(Position { offset: at, .. }, text, row): &DocumentEvent| {
        let next = text.as_ref().map(|text| sketched(text, row));
        let what = match (in_force, next) {
            (None, None) => "an unknown delete, counted",
            (None, Some(_)) => "inserted",
            (Some(_), None) => "deleted",
            (Some(old), Some(new)) if old == new => "unchanged",
            (Some(_), Some(_)) => "updated",
        };
        let (old, new) = (in_force.flatten(), next.flatten());
        in_force = next;
        let leaves = old.filter(|_| old != new).map(|sketch| format!(", leaves sketch {sketch}"));
        let joins = new.filter(|_| old != new).map(|sketch| format!(", joins sketch {sketch}"));
        format!("record {at}: {what}{}{}", leaves.unwrap_or_default(), joins.unwrap_or_default())
    };
    events.iter().map(line).collect()
}

fn member_lines(around: &Neighbourhood, plan: &Plan) -> Vec<String> {
    let (expand_limit, are_pairs) = (plan.expand_limit, plan.scheme.pairs.allows_equal());
    let members: Vec<_> = around.members().into_iter().collect();
    let count = counted(members.len(), "member");
    let star = (members.len() > expand_limit).then(|| {
        let first = shown(members[0]);
        let what = if are_pairs { format!("each is paired with {first} only, which") } else { first };
        format!("more than {expand_limit}: {what} alone is paired with others")
    });
    let no_pairs =
        (members.len() > 1 && !are_pairs).then(|| "none of them form a pair, by pairs.where".to_owned());
    [format!("{count}: {}", first(&members, |id| shown(id)))]
        .into_iter()
        .chain(no_pairs)
        .chain(star)
        .collect()
}

fn store_lines(traced: &SketchedText) -> Vec<String> {
    let (words, features) = (traced.sketch.words.len(), traced.sketch.features.len());
    let kept = (features > 0).then(|| format!(", {} of features", counted(8 * features, "byte")));
    vec![format!(
        "held once for all members: {} of components{}",
        counted(8 * words, "byte"),
        kept.unwrap_or_default()
    )]
}

fn or_none(lines: impl Iterator<Item = String>) -> Vec<String> {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() { vec!["none".to_owned()] } else { lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_of_an_updated_and_a_deleted_document() {
        let folder = tempfile::tempdir().unwrap();
        let feed = folder.path().join("feed.jsonl");
        let lines = [
            r#"{"id":"a","text":"the quick brown fox jumps over the lazy dog"}"#,
            r#"{"id":"b","text":"something else entirely"}"#,
            r#"{"id":"b","text":"The quick brown fox jumps over a lazy dog!"}"#,
            r#"{"id":"c","text":"?"}"#,
            r#"{"id":"d","text":"the quick brown fox"}"#,
            r#"{"id":"d","op":"delete"}"#,
        ];
        std::fs::write(&feed, lines.join("\n")).unwrap();
        let trace_of = |id: &str| {
            let mut plan = Plan::load("tour", &[]).unwrap();
            traced(&mut plan, vec![Input::at(&feed)], &RuleFields::default(), &DocId::new(id).unwrap())
                .unwrap()
        };
        let b = trace_of("b");
        assert!(
            b.contains("  record 1: upsert, 23 bytes of text\n  record 2: upsert, 42 bytes of text\n"),
            "{b}"
        );
        assert!(b.contains("  9 tokens: the quick brown fox jumps over a lazy dog\n"), "{b}");
        assert!(b.contains("\nverify, by Jaccard similarity\n  \"a\": exact 0.6000, estimate "), "{b}");
        assert!(b.ends_with("pairs at the end of the input\n  \"a\" \"b\" 0.6\n"), "{b}");
        let changes = "\nupsert: what each event changes\n  record 1: inserted, joins sketch ";
        assert!(b.contains(changes) && b.contains("\n  record 2: updated, leaves sketch "), "{b}");
        assert!(trace_of("c").contains("\n  record 3: inserted\n"), "{}", trace_of("c"));
        assert!(trace_of("d").contains("\n  record 5: deleted, leaves sketch "), "{}", trace_of("d"));
        assert!(trace_of("c").ends_with("a text without a token has no sketch and is in no pair\n"));
        assert!(trace_of("d").ends_with("not alive at the end of the input, so in no pair\n"));
    }

    /// Combining vowel signs join what precedes them: ids and texts with them are printed unchanged. Terminal
    /// control characters are escaped.
    #[test]
    fn ids_and_texts_are_written_as_they_read() {
        let folder = tempfile::tempdir().unwrap();
        let feed = folder.path().join("feed.jsonl");
        let line = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"हिन्दी में एक पाठ\"}}\n");
        std::fs::write(&feed, line("हिन्दी/पृष्ठ") + &line("தமிழ்\\u001b[31m")).unwrap();
        let mut plan = Plan::load("tour", &[]).unwrap();
        let id = DocId::new("हिन्दी/पृष्ठ").unwrap();
        let text = traced(&mut plan, vec![Input::at(&feed)], &RuleFields::default(), &id).unwrap();
        assert!(text.contains("ingest: events of \"हिन्दी/पृष्ठ\", "), "{text}");
        assert!(text.contains("  2 members: \"हिन्दी/पृष्ठ\" \"தமிழ்\\u{1b}[31m\"\n"), "{text}");
        assert!(text.contains("distinct: \"हिन्दी में\" "), "{text}");
        assert!(!text.contains("\\u{9"), "{text}");
    }

    /// Two texts that differ by one word, and one of other words.
    #[test]
    fn every_pipeline_in_its_own_words() {
        let folder = tempfile::tempdir().unwrap();
        let feed = folder.path().join("feed.jsonl");
        let words: Vec<String> = (0..99).map(|i| format!("w{i}")).collect();
        let texts = [words.join(" "), format!("{} more", words.join(" ")), "something else".to_owned()];
        let lines: Vec<_> = texts
            .iter()
            .zip(["a", "b", "c"])
            .map(|(t, id)| format!(r#"{{"id":"{id}","text":"{t}"}}"#))
            .collect();
        std::fs::write(&feed, lines.join("\n")).unwrap();
        for (pipeline, setting, block, measure) in [
            ("minhash", "threshold=0.8", "\n  band ", "Jaccard"),
            ("minhash", "blocking.kind=scan", "\n  the block of all: 3 sketches\n", "Jaccard"),
            ("minhash", "blocking.kind=shingles", "\n  shingle, hash ", "Jaccard"),
            ("simhash", "blocking.tables=4", "\n  table ", "cosine"),
            ("sectional", "threshold=0.7", "\n  band ", "sectional"),
            ("weighted", "threshold=0.7", "\n  band ", "weighted Jaccard"),
            ("onebit", "threshold=0.9", "\n  group ", "Jaccard"),
            ("assured", "threshold=0.9", "\n  band ", "Jaccard"),
            ("contained", "threshold=0.75", "\n  kept value, hash ", "containment"),
            ("paper", "text.idf_form=smooth", "\n  band ", "weighted Jaccard"),
        ] {
            let mut plan = Plan::load(pipeline, &[setting.to_owned()]).unwrap();
            let text =
                traced(&mut plan, vec![Input::at(&feed)], &RuleFields::default(), &DocId::new("a").unwrap())
                    .unwrap();
            assert!(text.contains(block), "{pipeline}: {text}");
            let heading = format!("\nverify, by {measure} similarity\n  \"b\": ");
            assert!(text.contains(&heading), "{pipeline}: {text}");
            let end = "\npairs at the end of the input\n  \"a\" \"b\" ";
            assert!(text.contains(end), "{pipeline}: {text}");
            assert_eq!(
                text.contains("document frequencies in force is of 3 documents\n"),
                measure == "weighted Jaccard",
                "{text}"
            );
        }
    }
}
