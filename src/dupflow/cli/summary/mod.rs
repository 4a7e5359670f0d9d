//! The summary of a run as text.

mod items;
mod records;
#[cfg(test)]
mod tests;

use std::fmt::{Display, Write};

use indicatif::{BinaryBytes, HumanCount};

use crate::config::OutputAnswer;
use crate::pipeline::{
    DecisionCounts, FieldCounts, HookCounts, ReferenceCounts, RejectedSummary, ResumedAt, SpillSummary,
    Summary, WatchCounts,
};
use crate::plural::count;

/// Most hot blocks that are listed; `--stats` lists all.
const NAMED_BLOCKS: usize = 5;

/// A few lines, one per topic. Counts of problems are left out if they are zero.
pub(super) fn text(summary: &Summary, answer: OutputAnswer) -> String {
    let mut text = String::new();
    write(&mut text, summary, answer).expect("a string takes what is written to it");
    text
}

fn write(out: &mut String, s: &Summary, answer: OutputAnswer) -> std::fmt::Result {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate is not negative")]
    let rate = |n: u64| (n as f64 / s.seconds.max(1e-9)).round() as u64;
    writeln!(
        out,
        "read        {} with {} of text in {:.2} s, {} and {}: {} events/s, {}/s",
        count(s.events, "event"),
        BinaryBytes(s.bytes),
        s.seconds,
        count(s.epochs, "epoch"),
        count(s.workers as u64, "worker"),
        HumanCount(rate(s.events)),
        BinaryBytes(rate(s.bytes)),
    )?;
    if let Some(ResumedAt { epoch, records }) = s.resumed {
        let records = count(records, "record");
        writeln!(out, "resumed     after epoch {epoch} and {records}, read by an earlier process")?;
    }
    let bad: u64 = s.bad_records.values().sum();
    if bad > 0 {
        let reasons = s.bad_records.iter().map(|(reason, n)| format!("{} {reason}", HumanCount(*n)));
        let (what, reasons) = (count(bad, "record"), list(reasons));
        writeln!(out, "bad         {what}: {reasons}")?;
    }
    if s.unread_files > 0 {
        let files = count(s.unread_files, "file");
        writeln!(out, "unread      {files}, wholly or in part: the number of their records is not known")?;
    }
    let skipped: u64 = s.skipped.values().sum();
    if skipped > 0 {
        let why = s.skipped.iter().map(|(why, n)| format!("{} {why}", HumanCount(*n)));
        let (what, why) = (count(skipped, "record"), list(why));
        writeln!(out, "skipped     {what} without a document: {why}")?;
    }
    let odd = [
        (s.unchanged, "upsert", "that changed nothing"),
        (s.unknown_deletes, "delete", "of an unknown id"),
        (s.empty, "text", "without a token"),
        (s.weightless, "text", "whose features all weigh 0, in no pair"),
        (s.too_short, "text", "with fewer words than filter.least_words"),
        (s.expired, "document", "expired"),
        (s.late, "upsert", "too late"),
        (s.undated, "upsert", "without a time"),
        (s.after_until, "event", "after --until, not applied"),
        (s.undated_until, "event", "without a time, applied whatever --until says"),
        (s.not_read_again, "document", "whose record the input no longer holds, not read again"),
        (s.moved_ids, "event", "that moved an id to another partition"),
        (s.overruled, "event", "older than its id's newest in another partition"),
        (s.replaced_across_files, "document", "replaced by another file's document of the same id"),
    ];
    let odd =
        odd.iter().filter(|(n, ..)| *n > 0).map(|(n, noun, odd)| format!("; {} {odd}", count(*n, noun)));
    let (alive, sketches) = (HumanCount(s.documents), count(s.sketches, "distinct sketch"));
    writeln!(out, "documents   {alive} alive, {sketches}{}", odd.collect::<String>())?;
    if let Some(ReferenceCounts { documents, too_short }) = s.reference {
        let short = match too_short {
            0 => String::new(),
            n => format!("; {} too short to be found except as a copy", HumanCount(n)),
        };
        writeln!(out, "reference   {}{short}", count(documents, "document"))?;
    }
    let causes: Vec<_> =
        s.deltas_by_cause.iter().map(|(cause, n)| format!("{} {cause}", HumanCount(*n))).collect();
    let causes = if causes.is_empty() { String::new() } else { format!(": {}", causes.join(", ")) };
    let written = if answer.is_of_pairs() && answer.is_of_changes() { " written" } else { "" };
    let deltas = count(s.deltas, "delta");
    writeln!(out, "pairs       {} alive, {deltas}{written}{causes}", HumanCount(s.pairs))?;
    results(out, s)?;
    if s.idf_tables > 0 {
        writeln!(
            out,
            "weights     {} of document frequencies made, {} sketched again",
            count(s.idf_tables, "table"),
            count(s.resketched, "document")
        )?;
    }
    if let Some(FieldCounts { missing, too_long, unusable, rejected_by_where }) = &s.fields {
        let [missing, too_long, unusable] = [missing, too_long, unusable].map(|n| HumanCount(*n));
        let rejected = count(*rejected_by_where, "pair");
        writeln!(
            out,
            "fields      {missing} missing, {too_long} too long, {unusable} unusable; {rejected} of sketches \
            rejected by pairs.where"
        )?;
    }
    let compared: u64 = s.compared_by_stage.iter().skip(1).sum();
    writeln!(
        out,
        "candidates  {} from blocks: {} rejected by the first word{}, {} compared ({:.0} components each), \
        {} accepted",
        HumanCount(s.candidates),
        HumanCount(s.compared_by_stage.first().copied().unwrap_or(0)),
        s.rejected_in_blocks.map_or_else(String::new, |n| format!(", {} by all words", HumanCount(n))),
        HumanCount(compared),
        s.components_compared as f64 / compared.max(1) as f64,
        HumanCount(s.accepted)
    )?;
    rejected(out, s)?;
    records::listed(out, s.listed.as_ref())?;
    records::copied(out, s.copied.as_ref())?;
    items::items(out, s.items.as_ref())?;
    hot_blocks(out, s)?;
    if s.starred_groups > 0 {
        writeln!(
            out,
            "copies      {} a group of copies outgrew output.expand_limit: its pairs are those with its \
            smallest id",
            count(s.starred_groups, "time")
        )?;
    }
    if s.clusters > 0 {
        let giants = match s.giant_clusters {
            0 => String::new(),
            n => {
                format!(
                    "; {} of more than output.cluster_limit documents, listed by size only",
                    HumanCount(n)
                )
            }
        };
        writeln!(out, "clusters    {} alive{giants}", HumanCount(s.clusters))?;
    }
    let times = s.epoch_milliseconds;
    writeln!(
        out,
        "latency     {} from an epoch's first event to its deltas, 99th percentile {}, at most {}",
        milliseconds(times.p50),
        milliseconds(times.p99),
        milliseconds(times.max)
    )?;
    if let Some(SpillSummary { rows, reads, writes, file_bytes, seconds_over_budget }) = &s.spill {
        let over = match seconds_over_budget {
            0 => String::new(),
            n => format!("; over the memory budget in {}", count(*n, "second")),
        };
        writeln!(
            out,
            "spilled     {} in files; {} looked up, {} ({:.3} an event), {}{over}",
            BinaryBytes(*file_bytes),
            count(*rows, "row"),
            count(*reads, "read"),
            *reads as f64 / s.events.max(1) as f64,
            count(*writes, "write")
        )?;
    }
    writeln!(out, "memory      {} at most; scheme {}", BinaryBytes(s.peak_rss_bytes), s.scheme)
}

/// What is written beside deltas: decisions and notices.
fn results(out: &mut String, s: &Summary) -> std::fmt::Result {
    if let Some(DecisionCounts { written, copies, unique, ended, changed }) = &s.decisions {
        let oldest = written.saturating_sub(copies + unique + ended);
        let rare = [(*ended, "not alive at the end of their epoch"), (*changed, "changed later")];
        let rare =
            rare.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!(", {} {what}", HumanCount(*n)));
        writeln!(
            out,
            "decisions   {} written: {}, {} the oldest of a cluster, {} unique{}",
            HumanCount(*written),
            count(*copies, "copy"),
            HumanCount(oldest),
            HumanCount(*unique),
            rare.collect::<String>()
        )?;
    }
    let Some(WatchCounts { watches, notices, hook }) = &s.watches else { return Ok(()) };
    let hook = hook.as_ref().map(|HookCounts { delivered, refused, undelivered }| {
        let [delivered, refused, undelivered] = [delivered, refused, undelivered].map(|n| HumanCount(*n));
        format!("; {delivered} delivered, {refused} refused, {undelivered} left for the next run")
    });
    let watches = count(*watches, "watch");
    writeln!(out, "notices     {} of {watches}{}", HumanCount(*notices), hook.unwrap_or_default())
}

fn rejected(out: &mut String, s: &Summary) -> std::fmt::Result {
    let Some(RejectedSummary { counts, written }) = &s.rejected else { return Ok(()) };
    let by = counts.by.iter().map(|(by, n)| format!("{} {}", HumanCount(*n), by.name()));
    let by = if counts.by.is_empty() { String::new() } else { format!(": {}", list(by)) };
    writeln!(
        out,
        "rejected    {} of {} at the end{by}; {} written",
        HumanCount(counts.rejected),
        count(counts.candidates, "candidate"),
        HumanCount(*written)
    )
}

fn hot_blocks(out: &mut String, s: &Summary) -> std::fmt::Result {
    if s.hot_blocks.is_empty() {
        return Ok(());
    }
    let blocks = count(s.hot_blocks.len() as u64, "block");
    writeln!(
        out,
        "hot blocks  {blocks} of more sketches{} than blocking.cap, whose members meet {}:",
        match s.rule.equal_fields().collect::<Vec<_>>() {
            fields if fields.is_empty() => String::new(),
            fields => format!(" of one {}", fields.join(" and ")),
        },
        match s.leaders {
            0 => "none in them".to_owned(),
            1 => "only their leader in them".to_owned(),
            n => format!("only their {n} leaders in them"),
        }
    )?;
    for block in s.hot_blocks.iter().take(NAMED_BLOCKS) {
        let sketches = count(block.sketches as u64, "sketch");
        let (band, hash, example) = (block.table, &block.hash, quoted(&block.example));
        let of = match &block.unit {
            Some(unit) if unit.occurrence == 0 => format!("unit {} of {example}", unit.hash),
            Some(unit) => format!("unit {}, {} before it, of {example}", unit.hash, unit.occurrence),
            None => example,
        };
        writeln!(out, "            band {band}, block {hash}: {sketches}, such as that of {of}")?;
    }
    match s.hot_blocks.len().saturating_sub(NAMED_BLOCKS) as u64 {
        0 => {}
        more => writeln!(out, "            and {} more, which --stats lists", HumanCount(more))?,
    }
    match s.rule.different_fields().collect::<Vec<_>>().join(" and ") {
        fields if fields.is_empty() => Ok(()),
        fields => writeln!(
            out,
            "            pairs.where: a hot block takes no account of {fields}: where its leaders have the \
            {fields} of a member,\n            it meets none there"
        ),
    }
}

/// The text in quotes. Terminal control characters, quotes and backslashes are escaped; all scripts are kept.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        if character.is_control() || matches!(character, '"' | '\\') {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out.push('"');
    out
}

fn list(parts: impl Iterator<Item = impl Display>) -> String {
    parts.map(|part| part.to_string()).collect::<Vec<_>>().join(", ")
}

/// A time in the unit that suits it.
fn milliseconds(ms: f64) -> String {
    if ms < 1000.0 { format!("{ms:.2} ms") } else { format!("{:.2} s", ms / 1000.0) }
}
