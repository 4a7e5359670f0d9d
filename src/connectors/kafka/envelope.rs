//! The two forms of records in an output topic.

/// What the value of a record stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutputEnvelope {
    /// A change: the same line as `lines` or `clusters` writes. The diffs under a key add up.
    #[default]
    Delta,
    /// The present state of the key; the last value counts, so the topic may be compacted. The topic must
    /// keep its number of partitions.
    ///
    /// - Pairs: `{"epoch":…,"a":…,"b":…,"similarity":…}`, or no value (a tombstone) when the pair ends.
    /// - Clusters: the cluster that a document is in, `{"epoch":…,"document":…,"cluster":…}`, or no value
    ///   when it leaves.
    Upsert,
}

impl OutputEnvelope {
    /// Both, by their names.
    pub const ALL: [Self; 2] = [Self::Delta, Self::Upsert];

    /// Its name in a deployment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Delta => "delta",
            Self::Upsert => "upsert",
        }
    }
}
