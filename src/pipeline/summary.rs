//! What a run amounts to: the numbers of `--stats` and of the summary on standard error.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::dataflow::Stages;
use crate::metrics::Counter;
use crate::source::{BadRecords, Totals};

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
    /// Records that are no event, by reason.
    pub bad_records: BTreeMap<&'static str, u64>,
    /// Epochs read.
    pub epochs: u64,
    /// Deltas written.
    pub deltas: u64,
    /// Pairs alive at the end.
    pub pairs: u64,
    /// Tables of document frequencies made, under live weights.
    pub idf_tables: u64,
    /// Documents sketched again under a new table.
    pub resketched: u64,
    /// Meetings of two sketches in a live block, once for each block that they share.
    pub candidates: u64,
    /// Meetings that the first word ended, then comparisons decided at look 1, 2, and so on.
    pub compared_by_stage: Vec<u64>,
    /// Components that the filter read of the pairs that it compared.
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
    /// From the first event of an epoch pulled to its deltas written, over all epochs.
    pub epoch_milliseconds: Quantiles,
    /// The most memory that the process has held.
    pub peak_rss_bytes: u64,
    /// The fingerprint of the scheme, 16 hexadecimal digits.
    pub scheme: String,
    /// Worker threads.
    pub workers: usize,
}

/// A block above the cap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HotBlock {
    /// Distinct sketches in it.
    pub sketches: usize,
    /// Its band or table, from 0.
    pub table: u16,
    /// Its hash, 8 hexadecimal digits.
    pub hash: String,
    /// A document in it.
    pub example: String,
}

/// Three points of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Quantiles {
    /// Of times, in milliseconds; zeros if there are none.
    fn of(times: &[Duration]) -> Self {
        let mut sorted = times.to_vec();
        sorted.sort_unstable();
        // The nearest rank: the least time that at least this part of all times does not exceed.
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100).max(1) - 1;
            sorted.get(rank).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self { p50: at(50), p99: at(99), max: at(100) }
    }
}

impl Summary {
    pub(super) fn collect(
        stages: &Stages,
        bad: &BadRecords,
        totals: Totals,
        workers: usize,
        latencies: &[Duration],
        elapsed: Duration,
    ) -> Self {
        let count = |counter| stages.metrics.get(counter);
        let mut hot_blocks: Vec<_> = stages
            .hot_blocks()
            .iter()
            .map(|(key, block)| HotBlock {
                sketches: block.sketches,
                table: key.table,
                hash: format!("{:08x}", key.hash),
                example: block
                    .document
                    .as_ref()
                    .map_or_else(|| block.example.to_string(), ToString::to_string),
            })
            .collect();
        hot_blocks.sort_unstable_by(|a, b| b.cmp(a));
        let giant_clusters = count(Counter::GiantsFormed) - count(Counter::GiantsDissolved);
        let mut compared_by_stage = stages.metrics.looks();
        compared_by_stage.insert(0, count(Counter::RejectedAtFirstWord));
        Self {
            events: count(Counter::Events),
            documents: count(Counter::Inserted) - count(Counter::Deleted),
            sketches: count(Counter::SketchesBorn) - count(Counter::SketchesDied),
            bytes: count(Counter::Bytes),
            empty: count(Counter::Empty),
            unchanged: count(Counter::Unchanged),
            unknown_deletes: count(Counter::UnknownDeletes),
            bad_records: bad.counts(),
            epochs: totals.epochs,
            deltas: count(Counter::Added) + count(Counter::Removed),
            pairs: count(Counter::Added) - count(Counter::Removed),
            idf_tables: count(Counter::IdfTables),
            resketched: count(Counter::Resketched),
            candidates: count(Counter::Candidates),
            compared_by_stage,
            components_compared: count(Counter::Components),
            accepted: count(Counter::Accepted),
            starred_groups: count(Counter::Starred),
            clusters: count(Counter::ClustersFormed) - count(Counter::ClustersDissolved) + giant_clusters,
            giant_clusters,
            hot_blocks,
            leaders: stages.blocking.rule().leaders,
            seconds: elapsed.as_secs_f64(),
            epoch_milliseconds: Quantiles::of(latencies),
            peak_rss_bytes: peak_rss_bytes(),
            scheme: format!("{:016x}", stages.scheme.fingerprint()),
            workers,
        }
    }
}

/// The high-water mark of resident memory, from `/proc`; 0 where there is none.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let times: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!(Quantiles::of(&times), Quantiles { p50: 100.0, p99: 198.0, max: 200.0 });
        assert_eq!(Quantiles::of(&times[..1]), Quantiles { p50: 200.0, p99: 200.0, max: 200.0 });
        assert_eq!(Quantiles::of(&[]), Quantiles::default());
    }
}
