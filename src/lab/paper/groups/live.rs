//! 003-H5: groups are added to and dropped from an index of alg.H that is in use.

use std::time::Duration;

use super::super::super::EvaluateError;
use super::super::super::search::indexes::live::LiveGroups;
use super::super::super::search::indexes::{Fingerprints, index};
use super::super::super::search::measured::{neighbour, random};
use super::super::super::table::{ResultTable, row};
use super::super::permuted::grouped;
use super::super::{Basis, ItemLine, PrintedClaim, SectionAnswers, SectionContext};
use super::DOCUMENTS;
use dupflow_core::block::hamming::{Design, Kind, Selection, radius};
use dupflow_core::hash::mix;

/// r: k / m is about 10 bits.
const SIMILARITY: f64 = 0.9;

/// Bits of a group.
const WIDTH: usize = 10;

/// Total number of groups.
const GROUPS: usize = 12;

/// Queries after each step; each is a neighbour of a document within the radius.
const QUERIES: usize = 200;

/// A change of the index.
#[derive(Clone, Copy)]
enum GroupChange {
    /// Adds the next missing group.
    Add,
    /// Drops the first group.
    Drop,
}

pub(super) fn make(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let n = work.size(DOCUMENTS, 3000);
    let clock = work.bench.clock;
    let whole = random(WIDTH * GROUPS, n, work.bench.seed);
    let selections: Vec<Selection> =
        (0..GROUPS).map(|group| Selection::from(group * WIDTH..(group + 1) * WIDTH)).collect();
    let column =
        |group: usize| -> Vec<u64> { whole.iter().map(|(_, words)| selections[group].key(words)).collect() };
    let mut live = LiveGroups::new(n);
    (0..6).for_each(|group| live.add(WIDTH, column(group)));
    let mut present = 0..6;

    let mut table = ResultTable::new(
        "003_h5_live",
        "Groups added and dropped",
        &format!(
            "{} uniform fingerprints, groups of {WIDTH} bits, r = {SIMILARITY}; after each step {QUERIES} \
                queries are asked, each a document with up to r_h bits flipped. Anew: an index of alg.H \
                built of the same bits.",
            grouped(n as u64)
        ),
        "step | bits | m | r_h | step, ms | anew, ms | entries of a query | candidates | found | same \
            results",
    );
    let (mut different, mut steps, mut took, mut built) = (0usize, 0usize, Duration::ZERO, Duration::ZERO);
    for (name, step) in [
        ("add", GroupChange::Add),
        ("add", GroupChange::Add),
        ("add", GroupChange::Add),
        ("add", GroupChange::Add),
        ("drop the first", GroupChange::Drop),
        ("drop the first", GroupChange::Drop),
        ("add", GroupChange::Add),
        ("drop the first", GroupChange::Drop),
    ] {
        let added = matches!(step, GroupChange::Add).then(|| column(present.end));
        let began = clock.now();
        match added {
            Some(values) => {
                live.add(WIDTH, values);
                present.end += 1;
            }
            None => {
                live.drop_group(0);
                present.start += 1;
            }
        }
        let changed = clock.now();
        let (m, bits) = (present.len(), WIDTH * present.len());
        let r_h = radius(bits, SIMILARITY);
        let part = Selection::from(present.start * WIDTH..present.end * WIDTH);
        let joined = joined(&whole, &part);
        let design = Design::new(bits, r_h, Kind::Groups { surplus: m - r_h })?;
        let ready = clock.now();
        let mut anew = index(&design, &joined)?;
        let (step_took, anew_took) = (changed - began, clock.now() - ready);

        let (mut entries, mut candidates, mut found) = (0, 0, 0);
        let (mut ids, mut others) = (Vec::new(), Vec::new());
        let mut equal = true;
        for query in 0..QUERIES {
            let r = mix(work.bench.seed ^ mix(query as u64));
            let origin = u32::try_from(r % n as u64).unwrap_or(0);
            let near = neighbour(joined.get(origin), bits, query % (r_h + 1), r);
            let values: Vec<u64> = (0..m).map(|group| selections[group].key(&near)).collect();
            let did = live.within(&values, r_h, &mut ids);
            anew.within(&near, &mut others);
            equal &= ids == others && ids.contains(&origin);
            entries += did.entries;
            candidates += did.verified;
            found += ids.len();
        }
        different += usize::from(!equal);
        steps += 1;
        took += step_took;
        built += anew_took;
        let each = |count: u64| count as f64 / QUERIES as f64;
        table.push(row![
            name,
            bits,
            m,
            r_h,
            step_took.as_secs_f64() * 1e3,
            anew_took.as_secs_f64() * 1e3,
            each(entries),
            each(candidates),
            found,
            if equal { "yes" } else { "no" },
        ]);
    }
    let line = ItemLine::new(
        "003-H5",
        "groups added and dropped on a live alg.H index",
        "k/m bits at a time; alg.G has to be rebuilt; no numbers",
    )
    .measured(format!(
        "results different after {different} of {steps} steps, which took {:.0} ms; built anew {:.0} ms",
        took.as_secs_f64() * 1e3,
        built.as_secs_f64() * 1e3
    ))
    .judged(Basis::Measured(PrintedClaim::none(different)))
    .because(
        "evaluate::search::indexes::live: a group is a column with its own lists, up to 64 bits, and no \
            string keys are needed.",
    );
    Ok(SectionAnswers { lines: vec![line], tables: vec![table], plots: Vec::new() })
}

/// Selected bits of each fingerprint, concatenated.
fn joined(whole: &Fingerprints, part: &Selection) -> Fingerprints {
    let mut joined = Fingerprints::new(part.width());
    let ranges = part.ranges();
    for (_, words) in whole.iter() {
        let bits: Vec<u64> = ranges
            .iter()
            .flat_map(|range| {
                (range.start..range.end).step_by(64).map(|start| start..range.end.min(start + 64))
            })
            .map(|piece| Selection::from(piece).key(words))
            .collect();
        joined.push(&bits);
    }
    joined
}
