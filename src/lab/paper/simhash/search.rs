//! All documents similar to one, and all similar pairs: by tables and by brute force.

use std::time::Duration;

use crate::EvaluateError;
use crate::paper::{ItemLine, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::plot::{Axis, Plot, Series};
use crate::search::indexes::batch::{NeighbourPair, pairs};
use crate::search::indexes::{Fingerprints, index};
use crate::search::measured::{SearchSetting, neighbour, random};
use crate::table::{ResultTable, row};
use dupflow_core::block::hamming::{Design, Kind, distance};
use dupflow_core::hash::mix;

/// Bits and radius, as in the project's program.
const SHAPE: (usize, usize) = (64, 3);

/// Documents of the corpora for brute force.
const COMPARED: usize = 100_000;

fn design(blocks: usize) -> Result<Design, EvaluateError> {
    Ok(Design::new(SHAPE.0, SHAPE.1, Kind::OneLevel { blocks })?)
}

fn micros(time: Duration, queries: usize) -> f64 {
    time.as_secs_f64() * 1e6 / queries as f64
}

/// 001-P2.
pub(super) fn one_against_all(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "001_p2",
        "One query, by tables and by comparing with every document",
        "Uniform fingerprints of 64 bits, distance 3, one thread; 4 tables below ten million documents, 10 \
            from there on. Half of the queries are neighbours of a document, none of which is missed.",
        "documents | by tables, µs | by comparing, µs | times as fast | missed | the same ids",
    );
    let mut lines: [Vec<(f64, f64)>; 2] = Default::default();
    let mut answers = Vec::new();
    for full in [10_000, 100_000, 1_000_000, 10_000_000] {
        let documents = work.size(full, 1000);
        let queries = (200_000_000 / documents).clamp(20, 2000);
        let setting = SearchSetting { bits: SHAPE.0, documents, queries, seed: work.bench.seed };
        let by_tables = design(if full < 10_000_000 { 4 } else { 5 })?;
        let scan = Design::new(SHAPE.0, SHAPE.1, Kind::Scan)?;
        let rows = setting.run(&[by_tables, scan], work.bench.clock)?;
        let times = [0, 1].map(|form: usize| micros(rows[form].time, queries));
        let is_same = rows[0].results == rows[1].results;
        let missed = rows[0].missed + rows[1].missed;
        let ratio = times[1] / times[0];
        table.push(row![documents, times[0], times[1], ratio, missed, if is_same { "yes" } else { "no" }]);
        for (line, time) in lines.iter_mut().zip(times) {
            line.push((documents as f64, time));
        }
        answers.push((documents, ratio, missed + usize::from(!is_same)));
    }
    let wrong: usize = answers.iter().map(|(_, _, wrong)| wrong).sum();
    let (documents, ratio, _) = answers[answers.len() - 1];
    let line = ItemLine::new(
        "001-P2",
        "all documents similar to a given one",
        "of millions, in memory; no time",
    )
    .measured(format!(
        "{ratio:.0} times as fast as comparing with each of {documents}; {wrong} answers missed or different"
    ))
    .judged(UnjudgedReason::Timed.checked(PrintedClaim::none(wrong)))
    .because(
        "the time is not judged, the answers are: the same ids, none missed; `query` and `POST /similar` \
            answer by the run's own blocks",
    );
    let [tables, comparing] = lines;
    let plot = Plot::new(
        "001_p2",
        "One query",
        Axis::log("documents"),
        Axis::log("µs"),
        vec![Series::new("by tables", tables), Series::new("by comparing", comparing)],
    );
    Ok(SectionAnswers { lines: vec![line], tables: vec![table], plots: vec![plot] })
}

/// Uniform fingerprints; each tenth is a neighbour of an earlier one, at distance 0 to 4.
fn planted(documents: usize, seed: u64) -> Fingerprints {
    let strangers = random(SHAPE.0, documents, seed);
    let mut corpus = Fingerprints::new(SHAPE.0);
    for (id, words) in strangers.iter() {
        if id % 10 == 9 {
            let draw = mix(seed ^ u64::from(id));
            #[expect(clippy::cast_possible_truncation, reason = "below an id, which has 32 bits")]
            let origin = (draw % u64::from(id)) as u32;
            corpus.push(&neighbour(strangers.get(origin), SHAPE.0, id as usize / 10 % 5, draw));
        } else {
            corpus.push(words);
        }
    }
    corpus
}

/// The pairs of a corpus by brute force.
fn compared(corpus: &Fingerprints) -> Vec<NeighbourPair> {
    let mut found = Vec::new();
    for (a, words) in corpus.iter() {
        for (b, others) in corpus.iter().skip(a as usize + 1) {
            let bits = distance(words, others);
            if bits <= SHAPE.1 {
                found.push(NeighbourPair { a, b, distance: bits });
            }
        }
    }
    found
}

/// The pairs of a corpus by queries, each for the fingerprints before it.
fn asked(corpus: &Fingerprints) -> Result<Vec<NeighbourPair>, EvaluateError> {
    let mut index = index(&design(4)?, corpus)?;
    let (mut found, mut ids) = (Vec::new(), Vec::new());
    for (b, words) in corpus.iter() {
        index.within(words, &mut ids);
        let before = ids.iter().filter(|a| **a < b);
        found.extend(before.map(|a| NeighbourPair { a: *a, b, distance: distance(corpus.get(*a), words) }));
    }
    found.sort_unstable();
    Ok(found)
}

/// 001-P3.
pub(super) fn all_pairs(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "001_p3",
        "All pairs, by tables and by comparing everything",
        "Uniform fingerprints of 64 bits, each tenth a neighbour of another one at distance 0 to 4; distance \
            3, 4 tables sorted one after the other, one thread. \"asked\" is the union of the answers to one \
            query for each document about those before it.",
        "documents | by tables, s | by comparing, s | times as fast | pairs | the same pairs | the same as \
            asked",
    );
    let (mut wrong, mut last) = (0, String::new());
    let clock = work.bench.clock;
    for full in [10_000, 30_000, COMPARED, 1_000_000] {
        let documents = work.size(full, 1000);
        let corpus = planted(documents, work.bench.seed);
        let began = clock.now();
        let mut by_tables = Vec::new();
        pairs(&design(4)?, &corpus, |near| by_tables.push(near))?;
        let tables = (clock.now() - began).as_secs_f64();
        by_tables.sort_unstable();
        let is_asked = asked(&corpus)? == by_tables;
        let mut row = row![documents, tables];
        if full <= COMPARED {
            let start = clock.now();
            let all = compared(&corpus);
            let comparing = (clock.now() - start).as_secs_f64();
            let is_same = all == by_tables;
            row.extend(row![
                comparing,
                comparing / tables,
                by_tables.len(),
                if is_same { "yes" } else { "no" }
            ]);
            wrong += usize::from(!is_same);
            last = format!("{:.0} times as fast as comparing all of {documents}", comparing / tables);
        } else {
            row.extend(row![None::<f64>, None::<f64>, by_tables.len(), "-"]);
        }
        row.extend(row![if is_asked { "yes" } else { "no" }]);
        table.push(row);
        wrong += usize::from(!is_asked);
    }
    let line = ItemLine::new("001-P3", "all near-duplicate pairs", "of millions, in memory; no time")
    .measured(format!("{last}; {wrong} lists of pairs different"))
    .judged(UnjudgedReason::Timed.checked(PrintedClaim::none(wrong)))
    .because(
        "the time is not judged, the pairs are: the same pairs, and the union of the answers to one query a \
            document: what a stream does",
    );
    Ok(SectionAnswers { lines: vec![line], tables: vec![table], plots: Vec::new() })
}
