//! What a run amounts to: the numbers of `--stats` and of the summary on standard error.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::{HotBlock, Measures, Quantiles};
use dupflow_core::run::metrics::Counter;
use dupflow_engine::dataflow::Stages;

/// The counts of one run. Times are wall-clock.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Records that are events.
    pub events: u64,
    /// Documents alive at the end, those without a token included.
    pub documents: u64,
    /// Distinct sketches alive at the end.
    pub sketches: u64,
    /// Bytes of text read.
    pub bytes: u64,
    /// Upserts whose text has no token.
    pub empty: u64,
    /// Upserts that repeat what is in force.
    pub unchanged: u64,
    /// Deletes of ids that are not alive.
    pub unknown_deletes: u64,
    /// Documents that ended by the retention.
    pub expired: u64,
    /// Upserts that were too old for it when they came.
    pub late: u64,
    /// Upserts without a time, where documents expire by age.
    pub undated: u64,
    /// Events that moved an id to another partition.
    pub moved_ids: u64,
    /// Events that changed nothing, since their id has a newer one in another partition.
    pub overruled: u64,
    /// Documents replaced by another file's document of the same id.
    pub replaced_across_files: u64,
    /// Records that are no event, by reason.
    pub bad_records: BTreeMap<String, u64>,
    /// Sound records that hold no document, by why.
    pub skipped: BTreeMap<String, u64>,
    /// Epochs closed.
    pub epochs: u64,
    /// Epochs that are where the results go; fewer only if nobody reads them on.
    pub durable_epochs: u64,
    /// Deltas of all epochs closed.
    pub deltas: u64,
    /// Deltas by what caused them.
    pub deltas_by_cause: BTreeMap<&'static str, u64>,
    /// Pairs alive at the end.
    pub pairs: u64,
    /// Tables of document frequencies made, under live weights.
    pub idf_tables: u64,
    /// Documents sketched again under a new table.
    pub resketched: u64,
    /// Pairs of sketches that share a block, once for each block.
    pub candidates: u64,
    /// Candidates that the first word ruled out, then comparisons decided at look 1, 2, and so on.
    pub compared_by_stage: Vec<u64>,
    /// Components that the filter read of the pairs that it compared, before it decided.
    pub components_compared: u64,
    /// Pairs of sketches accepted, whenever they came.
    pub accepted: u64,
    /// Groups of copies that grew beyond the expand limit, each time that one did.
    pub starred_groups: u64,
    /// Clusters alive, giants included, where clusters are what is emitted.
    pub clusters: u64,
    /// Clusters that are beyond the limit at the end.
    pub giant_clusters: u64,
    /// The blocks that are hot at the end, the largest first.
    pub hot_blocks: Vec<HotBlock>,
    /// Leaders of a hot block; 0 if nobody meets in one.
    #[serde(skip)]
    pub leaders: usize,
    /// From the start of the run to its end.
    pub seconds: f64,
    /// From the first event of an epoch taken by a worker to its deltas written, over all epochs.
    pub epoch_milliseconds: Quantiles,
    /// The most memory that the process has held.
    pub peak_rss_bytes: u64,
    /// The fingerprint of the scheme, 16 hexadecimal digits.
    pub scheme: String,
    /// Worker threads.
    pub workers: usize,
    /// What was demanded of the run and is not met: then it has failed, and what is written at its end is
    /// not there.
    #[serde(skip)]
    pub unmet: Vec<String>,
}

impl Summary {
    /// What measures come to, of a run that took `elapsed` with so many worker threads.
    pub(super) fn of(measures: &Measures, stages: &Stages, workers: usize, elapsed: Duration) -> Self {
        let counts = &measures.counts;
        let count = |counter| counts.get(counter);
        let mut hot_blocks = measures.hot_blocks.clone();
        hot_blocks.sort_unstable_by(|a, b| b.cmp(a));
        let giant_clusters = counts.balance(Counter::GiantsFormed, Counter::GiantsDissolved);
        let clusters = counts.balance(Counter::ClustersFormed, Counter::ClustersDissolved);
        Self {
            events: count(Counter::Events),
            documents: counts.documents(),
            sketches: counts.balance(Counter::SketchesBorn, Counter::SketchesDied),
            bytes: count(Counter::Bytes),
            empty: count(Counter::Empty),
            unchanged: count(Counter::Unchanged),
            unknown_deletes: count(Counter::UnknownDeletes),
            expired: count(Counter::Expired),
            late: count(Counter::Late),
            undated: count(Counter::Undated),
            moved_ids: count(Counter::MovedIds),
            overruled: count(Counter::Overruled),
            replaced_across_files: count(Counter::ReplacedAcrossFiles),
            bad_records: measures.bad_records.clone(),
            skipped: measures.skipped.clone(),
            epochs: count(Counter::Epochs),
            durable_epochs: count(Counter::Durable),
            deltas: count(Counter::Added) + count(Counter::Removed),
            deltas_by_cause: counts
                .causes()
                .filter(|(_, n)| *n > 0)
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            pairs: counts.balance(Counter::Added, Counter::Removed),
            idf_tables: count(Counter::IdfTables),
            resketched: count(Counter::Resketched),
            candidates: count(Counter::Candidates),
            compared_by_stage: [&[count(Counter::RejectedAtFirstWord)], counts.looks()].concat(),
            components_compared: count(Counter::Components),
            accepted: count(Counter::Accepted),
            starred_groups: count(Counter::Starred),
            clusters: clusters + giant_clusters,
            giant_clusters,
            hot_blocks,
            leaders: stages.blocking.hot_rule().map_or(0, |rule| rule.leaders),
            seconds: elapsed.as_secs_f64(),
            epoch_milliseconds: measures.latencies.quantiles(),
            peak_rss_bytes: measures.peak_rss_bytes,
            scheme: format!("{:016x}", stages.scheme.fingerprint()),
            workers,
            unmet: Vec::new(),
        }
    }
}
