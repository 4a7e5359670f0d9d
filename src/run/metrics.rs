//! The counters of a run: one table, updated by all threads.

use std::ops::AddAssign;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use dupflow_core::pair::{Cause, Delta};

/// Declares the counters, each with its variant, name and help text.
macro_rules! counters {
    ($($variant:ident $name:literal $help:literal,)*) => {
        /// One of the counters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $(#[doc = $help] $variant,)*
        }

        impl Counter {
            /// All counters with their names and help texts, in the order of their declaration.
            pub const TABLE: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $help),)*];
        }
    };
}

counters! {
    Events "events" "Records read that are events.",
    Bytes "bytes" "Bytes of text read.",
    Empty "empty" "Upserts whose text has no token.",
    Weightless "weightless"
        "Texts whose features all weigh 0: they are in no pair. Upserts under frozen weights; under live \
        ones documents for which that begins, by an event or by a new table.",
    WeightlessEnded "weightless_ended" "Documents under live weights for which that ends.",
    TooShort "too_short"
        "Upserts whose text has fewer words than filter.least_words: they are in pairs with their copies \
        only.",
    FieldsMissing "fields_missing" "Fields of upserts without a value: absent, null or an empty text.",
    FieldsTooLong "fields_too_long" "Fields of upserts whose value is longer than 256 bytes: they are empty.",
    FieldsUnusable "fields_unusable"
        "Fields of upserts whose value is no text, number or truth value, or no address where a host is \
        wanted: they are empty.",
    Unchanged "unchanged" "Upserts that repeat what is in force.",
    UnknownDeletes "unknown_deletes" "Deletes of ids that are not alive.",
    Restored "restored" "Documents taken from the state of an earlier run.",
    Reference "reference_documents" "Documents of the reference, which are live from the start.",
    ReferenceTooShort "reference_too_short"
        "Documents of the reference without a token, which are in no pair, or with fewer words than \
        filter.least_words, which are in pairs with their copies only.",
    Inserted "inserted" "Documents that became live.",
    Deleted "deleted" "Documents that were deleted.",
    Expired "expired" "Documents that ended by the retention.",
    Late "late" "Upserts that were too old for the retention when they came.",
    Undated "undated" "Upserts without a time, where documents expire by age: they do not.",
    AfterUntil "after_until" "Events after the time of --until, which are not applied.",
    UndatedUntil "undated_until" "Events without a time under --until, which are applied.",
    LostRecords "lost_records"
        "Offsets of the input that had expired before they were read, where a run goes on without them \
        (--reconcile).",
    NotReadAgain "not_read_again"
        "Documents whose record the input no longer holds, where --reconcile reads all others again by other \
        rules: they stay as they were read before, or under another scheme are dropped.",
    MovedIds "moved_ids" "Events that moved an id to another partition.",
    Overruled "overruled" "Events that changed nothing, since their id has a newer one in another partition.",
    Remembered "ids_remembered"
        "Deleted ids that are remembered from then on: where ids may move between partitions, or have slots.",
    Forgotten "ids_forgotten" "Remembered ids that are alive again, or that retention forgot.",
    Replaced "replaced" "Upserts that replaced the text of a live document.",
    ReplacedInReference "replaced_in_reference"
        "Those of them in a reference, which a replay compares with (--against).",
    ReplacedAcrossFiles "replaced_across_files"
        "Upserts that replaced the document of the same id of another input file.",
    SketchesBorn "sketches_born" "Distinct sketches that became live.",
    SketchesDied "sketches_died" "Distinct sketches whose last document ended.",
    IdfTables "idf_tables" "Tables of document frequencies made.",
    Resketched "resketched" "Documents sketched again under a new table of document frequencies.",
    Candidates "candidates"
        "Pairs of sketches that share a block, once for each block, counted when they become candidates.",
    RejectedAtFirstWord "rejected_at_first_word" "Candidates that the first word ruled out.",
    RejectedInBlocks "rejected_in_blocks" "Candidates of blocks by distance that all words ruled out there.",
    Heated "blocks_heated" "Blocks that became hot.",
    Cooled "blocks_cooled" "Blocks that are hot no more.",
    RejectedByWhere "rejected_by_where" "Pairs of sketches that pairs.where rejected before the filter.",
    Compared "compared" "Pairs of sketches that the filter compared.",
    Components "components_compared"
        "Components that the filter read before it decided, first words included.",
    Accepted "accepted" "Pairs of sketches that the filter accepted.",
    Starred "starred_groups" "Groups of copies that grew beyond the expand limit.",
    Epochs "epochs" "Epochs closed: computed on all workers.",
    Durable "epochs_durable" "Epochs written to where the results go.",
    StateCommits "state_commits" "Times that the state was published.",
    StateBytes "state_bytes_written"
        "Bytes of changes that were published, also of those that were replaced before.",
    StateFailures "state_failures" "Times that the state could not be written, and was tried again.",
    HistoryFailures "history_failures" "Times that the history could not be written, and was tried again.",
    Formed "pairs_formed" "Pairs that began, those of documents that were restored or read again included.",
    Dissolved "pairs_dissolved" "Pairs that ended.",
    Added "pairs_added" "Deltas of diff 1 that were written.",
    Removed "pairs_removed" "Deltas of diff -1 that were written.",
    ClustersFormed "clusters_formed" "Clusters that came up, by their ids; giants are counted apart.",
    ClustersDissolved "clusters_dissolved" "Clusters that ceased to be.",
    GiantsFormed "giant_clusters_formed" "Clusters that grew beyond the limit, by their ids.",
    GiantsDissolved "giant_clusters_dissolved" "Clusters that ceased to be beyond the limit.",
    Decisions "decisions" "Decisions written: one for each document that an epoch upserts.",
    DecidedCopies "decisions_copies" "Decisions of documents with an older one in their cluster.",
    DecidedUnique "decisions_unique" "Decisions of documents that are in no pair.",
    DecidedEnded "decisions_ended"
        "Decisions of documents that were not alive at the end of their epoch: deleted in it, too old, or \
        expired.",
    DecisionsChanged "decisions_changed"
        "Records that replace a decision later, ends included (sink.decisions), and those that correct an \
        output.",
    OutputsLeft "outputs_left"
        "Times that an output beside the first one was left behind, since it could not be written \
        (on_failure = \"wait\").",
    OutputsBack "outputs_back" "Times that an output that was left behind was corrected.",
    Notices "notices" "Notices of watches that were written, of both signs.",
    SpillRows "spill_rows" "Rows of sketches and documents that were looked up, under a memory budget.",
    SpillReads "spill_reads" "Pages of rows that were read from spill files: they were not in the cache.",
    SpillWrites "spill_writes" "Pages and rows that were written to spill files.",
    SpillBytes "spill_file_bytes" "Bytes of spill files.",
    SpillPages "spill_pages" "Pages in the caches of spill files.",
    OverBudget "memory_over_budget"
        "Seconds in which the process took more memory than its budget: what must be in memory has outgrown \
        it.",
}

/// The counters of one process while it runs, with the comparisons of the filter by the look that decided.
#[derive(Debug)]
pub struct Metrics {
    counters: Vec<AtomicU64>,
    looks: Vec<AtomicU64>,
    /// Written deltas, in the order of [`Cause::ALL`].
    causes: Vec<AtomicU64>,
}

impl Metrics {
    /// Counters at zero, for a filter with `looks` looks.
    pub fn new(looks: usize) -> Self {
        let zeros = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self { counters: zeros(Counter::TABLE.len()), looks: zeros(looks), causes: zeros(Cause::ALL.len()) }
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Counts a comparison that was decided by look `look`, from 1.
    pub fn add_look(&self, look: u16) {
        self.looks[usize::from(look) - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts deltas that were written, by sign and cause.
    pub fn add_written(&self, deltas: &[Delta]) {
        let added = deltas.iter().filter(|delta| delta.diff > 0).count();
        self.add(Counter::Added, added as u64);
        self.add(Counter::Removed, (deltas.len() - added) as u64);
        let mut counts = [0; Cause::ALL.len()];
        deltas.iter().for_each(|delta| counts[delta.cause as usize] += 1);
        for (count, n) in self.causes.iter().zip(counts).filter(|(_, n)| *n > 0) {
            count.fetch_add(n, Ordering::Relaxed);
        }
    }

    /// The current counts. They are read one by one, so in a live run two of them may be of different times.
    pub fn counts(&self) -> Counts {
        let values = |counters: &[AtomicU64]| counters.iter().map(|n| n.load(Ordering::Relaxed)).collect();
        Counts { counters: values(&self.counters), looks: values(&self.looks), causes: values(&self.causes) }
    }
}

/// The values of the counters, which can be sent, stored, and added to those of another process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// In the order of [`Counter::TABLE`].
    counters: Vec<u64>,
    /// Comparisons decided at look 1, 2, and so on.
    looks: Vec<u64>,
    /// Written deltas by cause.
    #[serde(default)]
    causes: Vec<u64>,
}

impl Counts {
    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters.get(counter as usize).copied().unwrap_or(0)
    }

    /// The difference of two counters, for a number of present things: those that entered minus those that
    /// left. 0 where it would be negative, because the two were read at different times.
    pub fn balance(&self, came: Counter, went: Counter) -> u64 {
        self.get(came).saturating_sub(self.get(went))
    }

    /// Number of live documents.
    pub fn documents(&self) -> u64 {
        self.balance(Counter::Inserted, Counter::Deleted).saturating_sub(self.get(Counter::Expired))
    }

    /// Comparisons decided at look 1, 2, and so on.
    pub fn looks(&self) -> &[u64] {
        &self.looks
    }

    /// Number of live pairs.
    pub fn pairs(&self) -> u64 {
        self.balance(Counter::Formed, Counter::Dissolved)
    }

    /// Number of deltas that were written.
    pub fn deltas(&self) -> u64 {
        self.get(Counter::Added) + self.get(Counter::Removed)
    }

    /// Number of written deltas of each cause.
    pub fn causes(&self) -> impl Iterator<Item = (Cause, u64)> {
        Cause::ALL.into_iter().zip(self.causes.iter().copied().chain(std::iter::repeat(0)))
    }
}

impl AddAssign<&Self> for Counts {
    /// Adds the counts of another process of the same run.
    fn add_assign(&mut self, other: &Self) {
        add(&mut self.counters, &other.counters);
        add(&mut self.looks, &other.looks);
        add(&mut self.causes, &other.causes);
    }
}

/// Adds element by element; the shorter list is extended with zeros.
fn add(to: &mut Vec<u64>, more: &[u64]) {
    to.resize(to.len().max(more.len()), 0);
    to.iter_mut().zip(more).for_each(|(n, more)| *n += more);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_processes() {
        let process = |documents, gone, looks: &[u16]| {
            let metrics = Metrics::new(3);
            metrics.add(Counter::Inserted, documents);
            metrics.add(Counter::Deleted, gone);
            looks.iter().for_each(|look| metrics.add_look(*look));
            metrics.counts()
        };
        let mut all = Counts::default();
        all += &process(10, 2, &[1, 3]);
        all += &process(5, 5, &[3]);
        assert_eq!((all.get(Counter::Inserted), all.get(Counter::Events)), (15, 0));
        assert_eq!(all.documents(), 8);
        assert_eq!(all.looks(), [1, 0, 2]);
    }

    #[test]
    fn a_balance_of_counts_that_race_is_never_negative() {
        let metrics = Metrics::new(0);
        metrics.add(Counter::Deleted, 1);
        assert_eq!(metrics.counts().documents(), 0);
    }
}
