//! What is counted while a pipeline runs: one table of counters, added to by any thread.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the counters: variant, name and help, once.
macro_rules! counters {
    ($($variant:ident $name:literal $help:literal,)*) => {
        /// One of the counters.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $(#[doc = $help] $variant,)*
        }

        impl Counter {
            /// All counters with their names and what they count, in the order of their declaration.
            pub const TABLE: &[(Self, &str, &str)] = &[$((Self::$variant, $name, $help),)*];
        }
    };
}

counters! {
    Events "events" "Records read that are events.",
    Bytes "bytes" "Bytes of text read.",
    Empty "empty" "Upserts whose text has no token.",
    Unchanged "unchanged" "Upserts that repeat what is in force.",
    UnknownDeletes "unknown_deletes" "Deletes of ids that are not alive.",
    Inserted "inserted" "Documents that came alive.",
    Deleted "deleted" "Documents that ended.",
    SketchesBorn "sketches_born" "Distinct sketches that came alive.",
    SketchesDied "sketches_died" "Distinct sketches whose last document ended.",
    IdfTables "idf_tables" "Tables of document frequencies made.",
    Resketched "resketched" "Documents sketched again under a new table of document frequencies.",
    Candidates "candidates" "Meetings of two sketches in a live block, counted when they begin.",
    RejectedAtFirstWord "rejected_at_first_word" "Meetings that the first word ruled out.",
    Compared "compared" "Pairs of sketches that the filter compared.",
    Components "components_compared" "Components that the filter read, first words included.",
    Accepted "accepted" "Pairs of sketches that the filter accepted.",
    Starred "starred_groups" "Groups of copies that grew beyond the expand limit.",
    Epochs "epochs" "Epochs closed.",
    Added "pairs_added" "Deltas of diff 1 written.",
    Removed "pairs_removed" "Deltas of diff -1 written.",
    ClustersFormed "clusters_formed" "Clusters that came up, by their ids; giants are counted apart.",
    ClustersDissolved "clusters_dissolved" "Clusters that ceased to be.",
    GiantsFormed "giant_clusters_formed" "Clusters that grew beyond the limit, by their ids.",
    GiantsDissolved "giant_clusters_dissolved" "Clusters that ceased to be beyond the limit.",
}

/// The counters of one run, with the comparisons of the filter by the look that decided.
#[derive(Debug)]
pub struct Metrics {
    counters: Vec<AtomicU64>,
    looks: Vec<AtomicU64>,
}

impl Metrics {
    /// All at zero; for a filter of `looks` looks.
    pub fn new(looks: usize) -> Self {
        let zeros = |n| (0..n).map(|_| AtomicU64::new(0)).collect();
        Self { counters: zeros(Counter::TABLE.len()), looks: zeros(looks) }
    }

    /// Adds to a counter.
    pub fn add(&self, counter: Counter, n: u64) {
        self.counters[counter as usize].fetch_add(n, Ordering::Relaxed);
    }

    /// A counter's value.
    pub fn get(&self, counter: Counter) -> u64 {
        self.counters[counter as usize].load(Ordering::Relaxed)
    }

    /// Counts a comparison that look `look`, from 1, decided.
    pub fn add_look(&self, look: u16) {
        self.looks[usize::from(look) - 1].fetch_add(1, Ordering::Relaxed);
    }

    /// Comparisons decided at look 1, 2, and so on.
    pub fn looks(&self) -> Vec<u64> {
        self.looks.iter().map(|n| n.load(Ordering::Relaxed)).collect()
    }
}
