//! The summary of a run, for people.

use std::fmt::Write;

use indicatif::{BinaryBytes, HumanCount, HumanFloatCount};

use crate::pipeline::Summary;

/// Hot blocks that are named; the stats have them all.
const NAMED_BLOCKS: usize = 5;

/// A few lines, each about one thing; what is zero and would be bad news is left out.
pub(super) fn text(summary: &Summary) -> String {
    let mut text = String::new();
    write(&mut text, summary).expect("a string takes what is written to it");
    text
}

fn write(out: &mut String, s: &Summary) -> std::fmt::Result {
    let n = HumanCount;
    let rate = |amount: u64| amount as f64 / s.seconds.max(1e-9);
    writeln!(
        out,
        "read        {} events in {:.2} s: {} a second, {:.0} MB/s of text; {} epochs, {} workers",
        n(s.events),
        s.seconds,
        HumanFloatCount(rate(s.events).round()),
        rate(s.bytes) / 1e6,
        n(s.epochs),
        s.workers
    )?;
    let bad: u64 = s.bad_records.values().sum();
    if bad > 0 {
        let reasons: Vec<_> =
            s.bad_records.iter().map(|(reason, count)| format!("{} {reason}", n(*count))).collect();
        writeln!(out, "bad         {} records are no events: {}", n(bad), reasons.join(", "))?;
    }
    let counted = [
        (s.unchanged, "upserts that changed nothing"),
        (s.unknown_deletes, "deletes of unknown ids"),
        (s.empty, "texts without a token"),
    ];
    let counted: Vec<_> = counted
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("; {} {what}", n(*count)))
        .collect();
    writeln!(
        out,
        "documents   {} alive, {} distinct sketches{}",
        n(s.documents),
        n(s.sketches),
        counted.concat()
    )?;
    writeln!(out, "pairs       {} alive, {} deltas", n(s.pairs), n(s.deltas))?;
    let compared: u64 = s.compared_by_stage.iter().skip(1).sum();
    writeln!(
        out,
        "candidates  {} ({:.2} an event), {} ended by the first word; {} pairs compared, {:.0} components each, {} accepted",
        n(s.candidates),
        s.candidates as f64 / (s.events.max(1)) as f64,
        n(s.compared_by_stage.first().copied().unwrap_or(0)),
        n(compared),
        s.components_compared as f64 / compared.max(1) as f64,
        n(s.accepted)
    )?;
    if let Some(largest) = s.hot_blocks.first() {
        writeln!(
            out,
            "hot blocks  {} dead (more sketches than blocking.cap); the largest has {}. Pairs in them are found through other \
             blocks or not at all:",
            n(s.hot_blocks.len() as u64),
            n(largest.sketches as u64)
        )?;
        for block in s.hot_blocks.iter().take(NAMED_BLOCKS) {
            writeln!(
                out,
                "            block {}:{}, {} sketches, such as that of {:?}",
                block.table,
                block.hash,
                n(block.sketches as u64),
                block.example
            )?;
        }
    }
    if s.starred_groups > 0 {
        writeln!(
            out,
            "copies      {} times a group of copies outgrew output.expand_limit and became a star about its smallest id",
            n(s.starred_groups)
        )?;
    }
    let times = s.epoch_milliseconds;
    writeln!(
        out,
        "epochs      {:.2} ms median, {:.2} ms 99th percentile, {:.2} ms at most",
        times.p50, times.p99, times.max
    )?;
    writeln!(out, "memory      {} at most; scheme {}", BinaryBytes(s.peak_rss_bytes), s.scheme)
}
