//! A Kafka topic as sink, exactly once.
//!
//! ```text
//!  epochs ─▶ Outgoing ─▶ one transaction ─┬─▶ topic         key and value: see below
//!            encoded      per commit      ├─▶ dead letters  records that are not valid events
//!                                         └─▶ progress      key: the transactional id, value: the mark
//! ```
//!
//! | result | key | value (delta envelope) | value (upsert envelope) |
//! |---|---|---|---|
//! | pairs | a NUL b; of a document of a reference `["a","b","old"]` | the delta | the pair as it is now |
//! | clusters | the document; of a giant its name | the change | its cluster, or the size, now |
//! | decisions | the document | the decision; none where the document ends | the same |
//!
//! The deltas, the dead letters and the [mark](crate::mark::Mark) of a commit are one transaction. A consumer
//! of committed records (`isolation.level=read_committed`) sees all of them or none. A consumer of
//! uncommitted records also sees aborted ones.
//!
//! **Why no epoch is lost or doubled.** Invariant: *every transaction of a run builds on the last mark in the
//! topic*, which the run has read or written itself; its deltas lead from that mark to its own. This holds in
//! every race:
//!
//! 1. A producer that takes the transactional id fences all earlier producers with it: during
//!    `init_transactions` the broker aborts their open transaction or, if its commit has begun, completes it
//!    before the call returns. So the mark read *after* that call is the last one. It stays the last one
//!    until this producer commits or another one takes the id.
//! 2. A commit has one of three outcomes. It succeeds: its mark is the last one. It fails before the broker
//!    is asked to commit, and is aborted: no consumer of committed records will see it, and the same records
//!    are written again, on the same mark. Or the outcome is unknown (the answer was lost, the transaction
//!    timed out, another producer took the id): then this run drops the producer, takes the id with a new one
//!    (1), and reads the last mark. If that is the mark being written, the commit had succeeded. If it is the
//!    mark before, nothing was written, and the records are written again. If it is any other mark, another
//!    run writes here, and this one ends.
//! 3. Marks of two runs differ, since each has the name of its run. A run that finds a mark writes it again
//!    under its own name before anything else. So if two runs take the id from each other in turn, the first
//!    one to commit wins: the other one then reads a mark that is neither of its two, and ends.
//!
//! **Which of two runs continues.** The later one. A run writes a [claim](claim) before it takes the id.
//! Before and after it takes the id again, it reads the claims, and ends if there is a later one. A run that
//! takes the id while its successor starts writes nothing, because it reads the later claim before or after
//! that. The successor, whose producer is then fenced, finds that its own claim is the last, and takes the id
//! back.
//!
//! A topic of rows beside the pairs is written by one run at a time, whatever its id ([holder](holder)).
//!
//! **Which topics.** Those with which the run began: if one is deleted or created again, the run ends
//! ([owned](owned)).
//!
//! Waiting: an unreachable broker is waited for without limit. Records are kept in memory until they are
//! durable; the committer bounds them by what it passes for one commit.
//!
//! What it does not do: keep a transaction open between commits; clean up the topics.

mod claim;
mod holder;
mod outgoing;
mod output;
mod owned;
mod read;
mod read_back;
mod topic_sink;
mod transaction;

pub use output::{KafkaOutput, output_topic, side_topic};
pub use read_back::unknown_rows;
pub use topic_sink::KafkaSink;
