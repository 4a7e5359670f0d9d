//! What is found of the items of a reference, as text.

use std::fmt::Write;

use indicatif::HumanCount;

use crate::plural::count;
use dupflow_connectors::sinks::{BenchmarkCounts, ItemCounts};

/// Most benchmarks, and most items above the limit, that are listed; `--stats` lists all.
const NAMED: usize = 10;

/// A line for all items, one for each benchmark, and one for each item above the limit.
pub(super) fn items(out: &mut String, counts: Option<&ItemCounts>) -> std::fmt::Result {
    let Some(ItemCounts { limit, pages, benchmarks, above_limit }) = counts else { return Ok(()) };
    let sum = |of: fn(&BenchmarkCounts) -> u64| benchmarks.iter().map(of).sum::<u64>();
    let all = count(sum(|one| one.items), "item");
    let (found, short) = (HumanCount(sum(|one| one.found)), sum(|one| one.too_short));
    let short = match short {
        0 => String::new(),
        n => format!("; {} too short to be found", HumanCount(n)),
    };
    writeln!(out, "items       {found} of {all} found, {} with one of them{short}", count(*pages, "page"))?;
    for one in benchmarks.iter().take(NAMED) {
        let rare = [(one.too_short, "too short"), (one.above_limit, "above the limit")];
        let rare =
            rare.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {} {what}", HumanCount(*n)));
        writeln!(
            out,
            "            {:?}: {} of {} found, {}{}",
            one.benchmark,
            HumanCount(one.found),
            count(one.items, "item"),
            count(one.pages, "page"),
            rare.collect::<String>()
        )?;
    }
    further(out, benchmarks.len(), "benchmark")?;
    if !above_limit.is_empty() {
        writeln!(
            out,
            "limit       {} in more than {} (output.item_limit), written in no pair, and no page is removed \
            for them:",
            count(above_limit.len() as u64, "item"),
            count(*limit, "page")
        )?;
    }
    for one in above_limit.iter().take(NAMED) {
        writeln!(out, "            {:?} of {:?}: {}", one.id, one.benchmark, count(one.pages, "page"))?;
    }
    further(out, above_limit.len(), "item")
}

/// How many of a list are not named.
fn further(out: &mut String, all: usize, what: &str) -> std::fmt::Result {
    match all.saturating_sub(NAMED) {
        0 => Ok(()),
        more => {
            writeln!(out, "            and {} in --stats", count(more as u64, &format!("further {what}")))
        }
    }
}
