//! What the records of an output topic hold.

/// What the value of a record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Envelope {
    /// A change: the line that `lines` or `clusters` writes. Values of a pair add up, and so do those of a
    /// document.
    #[default]
    Delta,
    /// The pair as it is now, `{"epoch":…,"a":…,"b":…,"similarity":…}`, or none when it ends (a tombstone):
    /// the last value of a pair counts, so that the topic may be compacted. It must keep its number of
    /// partitions. Of clusters, the one that a document is in: `{"epoch":…,"cluster":…}`, or none when it
    /// leaves.
    Upsert,
}
