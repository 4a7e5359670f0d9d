use dupflow_core::pair_rule::PairRule;
use std::collections::BTreeMap;

use super::*;
use crate::pipeline::{HotBlockReport, Quantiles};

fn summary() -> Summary {
    Summary {
        events: 1,
        documents: 1,
        reference: None,
        sketches: 1,
        bytes: 2_000_000,
        empty: 0,
        weightless: 0,
        too_short: 0,
        unchanged: 0,
        unknown_deletes: 0,
        expired: 0,
        late: 0,
        not_read_again: 0,
        undated: 0,
        after_until: 0,
        undated_until: 0,
        moved_ids: 0,
        overruled: 0,
        replaced: 0,
        replaced_across_files: 0,
        deltas_by_cause: BTreeMap::from([("insert", 1)]),
        bad_records: BTreeMap::new(),
        unread_files: 0,
        skipped: BTreeMap::new(),
        fields: None,
        resumed: None,
        epochs: 1,
        durable_epochs: 1,
        deltas: 1,
        pairs: 0,
        candidates: 1,
        compared_by_stage: vec![0, 1],
        rejected_in_blocks: None,
        components_compared: 64,
        accepted: 0,
        decisions: None,
        watches: None,
        rejected: None,
        copied: None,
        items: None,
        listed: None,
        idf_tables: 0,
        resketched: 0,
        starred_groups: 0,
        clusters: 0,
        giant_clusters: 0,
        inputs: vec![],
        hot_blocks: vec![],
        leaders: 4,
        rule: PairRule::default(),
        seconds: 0.5,
        epoch_milliseconds: Quantiles { p50: 1.5, p99: 20.0, max: 1500.0 },
        peak_rss_bytes: 10 << 20,
        spill: None,
        scheme: "0123456789abcdef".to_owned(),
        workers: 1,
        unmet: Vec::new(),
    }
}

#[test]
fn one_is_singular() {
    let expected = "\
read        1 event with 1.91 MiB of text in 0.50 s, 1 epoch and 1 worker: 2 events/s, 3.81 MiB/s
documents   1 alive, 1 distinct sketch
pairs       0 alive, 1 delta written: 1 insert
candidates  1 from blocks: 0 rejected by the first word, 1 compared (64 components each), 0 accepted
latency     1.50 ms from an epoch's first event to its deltas, 99th percentile 20.00 ms, at most 1.50 s
memory      10.00 MiB at most; scheme 0123456789abcdef
";
    assert_eq!(text(&summary(), OutputAnswer::default()), expected);
    assert!(
        text(&summary(), OutputAnswer::named("keep")).contains("pairs       0 alive, 1 delta: 1 insert\n")
    );
}

#[test]
fn a_memory_budget_has_its_line() {
    let spill = SpillSummary { rows: 9000, reads: 1, writes: 2, file_bytes: 8 << 20, seconds_over_budget: 3 };
    let text = text(&Summary { spill: Some(spill), ..summary() }, OutputAnswer::default());
    let line = "spilled     8.00 MiB in files; 9,000 rows looked up, 1 read (1.000 an event), 2 writes; \
        over the memory budget in 3 seconds\n";
    assert!(text.contains(line), "{line}\nis not in\n{text}");
}

#[test]
fn decisions_and_notices_have_their_lines() {
    let hook = HookCounts { delivered: 2, refused: 1, undelivered: 1200 };
    let decisions = DecisionCounts { written: 10, copies: 1, unique: 6, ended: 1, changed: 3 };
    let watches = WatchCounts { watches: 2, notices: 1203, hook: Some(hook) };
    let summary = Summary { decisions: Some(decisions), watches: Some(watches), ..summary() };
    let text = text(&summary, OutputAnswer::named("decisions"));
    for line in [
        "pairs       0 alive, 1 delta: 1 insert\n",
        "decisions   10 written: 1 copy, 2 the oldest of a cluster, 6 unique, 1 not alive at the end of \
         their epoch, 3 changed later\n",
        "notices     1,203 of 2 watches; 2 delivered, 1 refused, 1,200 left for the next run\n",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn the_summary_lists_problems() {
    let block = |sketches| HotBlockReport {
        sketches,
        table: 3,
        hash: "0badcafe".to_owned(),
        example: format!("of {sketches}"),
        unit: None,
    };
    let summary = Summary {
        events: 3000,
        epochs: 2,
        sketches: 2,
        bad_records: BTreeMap::from([("bad_id".to_owned(), 1), ("not_json".to_owned(), 1200)]),
        unchanged: 2,
        unknown_deletes: 1,
        expired: 1500,
        late: 1,
        undated: 2,
        moved_ids: 3,
        overruled: 2,
        replaced: 2,
        replaced_across_files: 2,
        deltas_by_cause: BTreeMap::from([("expire", 1001), ("insert", 2)]),
        hot_blocks: (0..7).map(|n| block(600 - n)).collect(),
        idf_tables: 9,
        resketched: 1234,
        starred_groups: 2,
        clusters: 1001,
        giant_clusters: 1,
        ..summary()
    };
    let text = text(&summary, OutputAnswer::default());
    for line in [
        "read        3,000 events with",
        " 2 epochs and 1 worker: ",
        "bad         1,201 records: 1 bad_id, 1,200 not_json\n",
        "documents   1 alive, 2 distinct sketches; 2 upserts that changed nothing; 1 delete of an \
        unknown id; \
         1,500 documents expired; 1 upsert too late; 2 upserts without a time; 3 events that \
         moved an id to another partition; 2 events older than its id's newest in another partition; \
         2 documents replaced by another file's document of the same id\n",
        "1 delta written: 1,001 expire, 2 insert\n",
        "weights     9 tables of document frequencies made, 1,234 documents sketched again\n",
        "hot blocks  7 blocks of more",
        "            band 3, block 0badcafe: 600 sketches, such as that of \"of 600\"\n",
        "            and 2 more, which --stats lists\n",
        "copies      2 times a group",
        "clusters    1,001 alive; 1 of more than output.cluster_limit documents, listed by size only\n",
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    assert_eq!(text.matches("0badcafe").count(), NAMED_BLOCKS);
}
