//! The counts of a run, for `--stats` and for the summary on standard error.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use super::measures::{HotBlockReport, Measures, Quantiles};
use super::rejected::RejectedSummary;
use dupflow_connectors::digest::InputDigest;
use dupflow_connectors::rewrite::CopiedDocuments;
use dupflow_connectors::sinks::{ItemCounts, ListCounts};
use dupflow_core::pair_rule::PairRule;
use dupflow_core::time::Epoch;
use dupflow_engine::dataflow::Stages;
use dupflow_run::metrics::Counter;
use dupflow_run::watch::{HookState, WatchState};

/// The counts of one run. Times are wall-clock.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Valid records.
    pub events: u64,
    /// Live documents at the end, including those without a token.
    pub documents: u64,
    /// Documents of the frozen reference, which are not among `documents`; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceCounts>,
    /// Distinct live sketches at the end.
    pub sketches: u64,
    /// Bytes of text read.
    pub bytes: u64,
    /// Upserts whose text has no token.
    pub empty: u64,
    /// Texts whose features all weigh 0, which are in no pair: upserts under frozen weights, live documents
    /// under live ones.
    pub weightless: u64,
    /// Upserts whose text has fewer words than `filter.least_words`.
    pub too_short: u64,
    /// Upserts that repeat the document in force.
    pub unchanged: u64,
    /// Deletes of ids without a live document.
    pub unknown_deletes: u64,
    /// Documents that expired by retention.
    pub expired: u64,
    /// Upserts that were already expired when they were read.
    pub late: u64,
    /// Upserts without a time, where documents expire by age.
    pub undated: u64,
    /// Events after the time of `--until`, which were not applied.
    pub after_until: u64,
    /// Events without a time under `--until`, which were applied.
    pub undated_until: u64,
    /// Documents whose record the input no longer holds, where all others were read again by other rules.
    pub not_read_again: u64,
    /// Events that moved an id to another partition.
    pub moved_ids: u64,
    /// Events without effect, since their id has a newer event in another partition.
    pub overruled: u64,
    /// Upserts that replaced the text of a live document.
    pub replaced: u64,
    /// Documents replaced by another file's document of the same id.
    pub replaced_across_files: u64,
    /// Invalid records by reason.
    pub bad_records: BTreeMap<String, u64>,
    /// Files that were not read, or only in part, so that the number of their records is not known.
    pub unread_files: u64,
    /// Valid records without a document, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Counts of fields; `None` if the run holds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fields: Option<FieldCounts>,
    /// Where a replay was gone on with, if an earlier process began it: other counts, but those of bad
    /// records and of documents replaced across files, are of this process.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resumed: Option<ResumedAt>,
    /// Epochs closed.
    pub epochs: u64,
    /// Durable epochs; fewer than `epochs` only if the pipe at the output was closed.
    pub durable_epochs: u64,
    /// Deltas that were written.
    pub deltas: u64,
    /// Deltas that were written, by what caused them.
    pub deltas_by_cause: BTreeMap<&'static str, u64>,
    /// Live pairs at the end.
    pub pairs: u64,
    /// Counts of decisions; `None` if the output has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decisions: Option<DecisionCounts>,
    /// Counts of the watch list; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watches: Option<WatchCounts>,
    /// Tables of document frequencies made under live weights.
    pub idf_tables: u64,
    /// Documents sketched again under a new table.
    pub resketched: u64,
    /// Pairs of sketches that share a block, once for each block.
    pub candidates: u64,
    /// Number of candidates rejected by the first word, then of comparisons decided at look 1, 2, and so on.
    pub compared_by_stage: Vec<u64>,
    /// Number of candidates of blocks by distance that all words of their sketches rejected there; none of
    /// them is compared. If there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_in_blocks: Option<u64>,
    /// Components that the filter read before it decided, over all comparisons.
    pub components_compared: u64,
    /// Pairs of sketches accepted during the run.
    pub accepted: u64,
    /// The candidates at the end, if rejected ones are emitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<RejectedSummary>,
    /// The records that were copied, if records of documents are emitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copied: Option<CopiedDocuments>,
    /// The counts of a list of documents or of units, if one is emitted, or their records.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub listed: Option<ListCounts>,
    /// The counts of the items of a reference, if these are what is found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<ItemCounts>,
    /// How often a group of copies grew beyond the expand limit.
    pub starred_groups: u64,
    /// Live clusters, giants included, if clusters are emitted.
    pub clusters: u64,
    /// Clusters beyond the cluster limit at the end.
    pub giant_clusters: u64,
    /// The inputs with their digests, if these are computed; part of the provenance.
    #[serde(skip)]
    pub inputs: Vec<InputDigest>,
    /// Hot blocks at the end, the largest first.
    pub hot_blocks: Vec<HotBlockReport>,
    /// Leaders of a hot block; 0 if its sketches are no candidates of each other.
    #[serde(skip)]
    pub leaders: usize,
    /// Which pairs are allowed: what a hot block counts, and what it takes no account of.
    #[serde(skip)]
    pub rule: PairRule,
    /// From the start of the run to its end.
    pub seconds: f64,
    /// From the first event of an epoch taken by a worker to its deltas written, over all epochs.
    pub epoch_milliseconds: Quantiles,
    /// Peak resident memory of the process, in bytes.
    pub peak_rss_bytes: u64,
    /// What was spilled; `None` without a memory budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillSummary>,
    /// The fingerprint of the scheme, 16 hexadecimal digits.
    pub scheme: String,
    /// Worker threads.
    pub workers: usize,
    /// The demands that are not met. If there are any, the run has failed and an output that is written at
    /// the end was not published.
    #[serde(skip)]
    pub unmet: Vec<String>,
}

/// Counts of a frozen reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReferenceCounts {
    /// Its documents.
    pub documents: u64,
    /// Those without a token, which are in no pair, or with fewer words than are compared, which are in pairs
    /// with their copies only.
    pub too_short: u64,
}

/// What a memory budget did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpillSummary {
    /// Rows that were looked up.
    pub rows: u64,
    /// Pages that were read.
    pub reads: u64,
    /// Pages and rows that were written.
    pub writes: u64,
    /// Bytes of the files.
    pub file_bytes: u64,
    /// Seconds in which a process took more than its budget.
    pub seconds_over_budget: u64,
}

/// Where a replay is gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ResumedAt {
    /// The last epoch before.
    pub epoch: Epoch,
    /// Records up to there.
    pub records: u64,
}

/// Counts of the fields of upserts that are empty, and what a rule on fields did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldCounts {
    /// Records without a value.
    pub missing: u64,
    /// Values that are too long.
    pub too_long: u64,
    /// Values of a type that no field has.
    pub unusable: u64,
    /// Pairs of sketches that `pairs.where` rejected before the filter.
    pub rejected_by_where: u64,
}

/// Counts of the decisions that a run has written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DecisionCounts {
    /// Decisions: one for each document that an epoch upserts.
    pub written: u64,
    /// Of these, documents with an older one in their cluster.
    pub copies: u64,
    /// Documents in no pair.
    pub unique: u64,
    /// Documents that were not alive at the end of their epoch.
    pub ended: u64,
    /// Records that were written besides, since a decision had changed.
    pub changed: u64,
}

/// Counts of a watch list and its notices.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WatchCounts {
    /// Watches at the end.
    pub watches: u64,
    /// Notices that are written, of both signs; in a run that goes on, with those of the runs before.
    pub notices: u64,
    /// What the web hook has delivered; `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<HookCounts>,
}

/// Counts of the notices of a web hook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookCounts {
    /// Notices that the receiver has accepted.
    pub delivered: u64,
    /// Notices that it has refused, which are in the dead letters.
    pub refused: u64,
    /// Notices that are left for the next run.
    pub undelivered: u64,
}

impl From<WatchState> for WatchCounts {
    fn from(WatchState { watches, notices, hook }: WatchState) -> Self {
        let counts = |HookState { delivered, refused, undelivered, .. }| HookCounts {
            delivered,
            refused,
            undelivered,
        };
        Self { watches, notices, hook: hook.map(counts) }
    }
}

impl Summary {
    /// The summary of `measures`, for a run of duration `elapsed` with `workers` threads.
    pub(in crate::pipeline) fn new(
        measures: &Measures,
        stages: &Stages,
        workers: usize,
        elapsed: Duration,
    ) -> Self {
        let counts = &measures.counts;
        let count = |counter| counts.get(counter);
        let mut hot_blocks = measures.hot_blocks.clone();
        hot_blocks.sort_unstable_by(|a, b| b.cmp(a));
        let giant_clusters = counts.balance(Counter::GiantsFormed, Counter::GiantsDissolved);
        let clusters = counts.balance(Counter::ClustersFormed, Counter::ClustersDissolved);
        Self {
            events: count(Counter::Events),
            documents: counts.documents(),
            reference: Some(count(Counter::Reference))
                .filter(|n| *n > 0)
                .map(|documents| ReferenceCounts { documents, too_short: count(Counter::ReferenceTooShort) }),
            sketches: counts.balance(Counter::SketchesBorn, Counter::SketchesDied),
            bytes: count(Counter::Bytes),
            empty: count(Counter::Empty),
            weightless: counts.balance(Counter::Weightless, Counter::WeightlessEnded),
            too_short: count(Counter::TooShort),
            unchanged: count(Counter::Unchanged),
            unknown_deletes: count(Counter::UnknownDeletes),
            expired: count(Counter::Expired),
            late: count(Counter::Late),
            not_read_again: count(Counter::NotReadAgain),
            undated: count(Counter::Undated),
            after_until: count(Counter::AfterUntil),
            undated_until: count(Counter::UndatedUntil),
            moved_ids: count(Counter::MovedIds),
            overruled: count(Counter::Overruled),
            replaced: count(Counter::Replaced),
            replaced_across_files: count(Counter::ReplacedAcrossFiles),
            bad_records: measures.bad_records.clone(),
            unread_files: measures.unread.count,
            skipped: measures.skipped.clone(),
            fields: (!stages.fields.is_empty()).then(|| FieldCounts {
                missing: count(Counter::FieldsMissing),
                too_long: count(Counter::FieldsTooLong),
                unusable: count(Counter::FieldsUnusable),
                rejected_by_where: count(Counter::RejectedByWhere),
            }),
            epochs: count(Counter::Epochs),
            durable_epochs: count(Counter::Durable),
            deltas: counts.deltas(),
            deltas_by_cause: counts
                .causes()
                .filter(|(_, n)| *n > 0)
                .map(|(cause, n)| (cause.name(), n))
                .collect(),
            pairs: counts.pairs(),
            decisions: stages.emits_upserts.then(|| DecisionCounts {
                written: count(Counter::Decisions),
                copies: count(Counter::DecidedCopies),
                unique: count(Counter::DecidedUnique),
                ended: count(Counter::DecidedEnded),
                changed: count(Counter::DecisionsChanged),
            }),
            watches: None,
            idf_tables: count(Counter::IdfTables),
            resketched: count(Counter::Resketched),
            candidates: count(Counter::Candidates),
            compared_by_stage: [&[count(Counter::RejectedAtFirstWord)], counts.looks()].concat(),
            rejected_in_blocks: Some(count(Counter::RejectedInBlocks)).filter(|n| *n > 0),
            components_compared: count(Counter::Components),
            accepted: count(Counter::Accepted),
            rejected: None,
            copied: None,
            items: None,
            listed: None,
            starred_groups: count(Counter::Starred),
            clusters: clusters + giant_clusters,
            giant_clusters,
            inputs: measures.digests.inputs(),
            hot_blocks,
            leaders: stages.blocking.hot_rule().map_or(0, |rule| rule.leaders),
            rule: stages.scheme.pairs.clone(),
            seconds: elapsed.as_secs_f64(),
            epoch_milliseconds: measures.latencies.quantiles(),
            peak_rss_bytes: measures.peak_rss_bytes,
            spill: stages.spill.as_ref().map(|_| SpillSummary {
                rows: count(Counter::SpillRows),
                reads: count(Counter::SpillReads),
                writes: count(Counter::SpillWrites),
                file_bytes: count(Counter::SpillBytes),
                seconds_over_budget: count(Counter::OverBudget),
            }),
            scheme: format!("{:016x}", stages.scheme.fingerprint()),
            workers,
            unmet: Vec::new(),
            resumed: None,
        }
    }
}
