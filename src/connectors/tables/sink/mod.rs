//! Tables of a database as sink, exactly once: the present pairs, clusters and documents, and the position in
//! the input up to which they are complete.
//!
//! ```text
//!  epochs ─▶ Changes ─▶ one transaction ─┬─▶ pairs, clusters, documents   rows to write and to delete
//!            last state   per commit     ├─▶ deltas                       every delta, if requested
//!                                        ├─▶ decisions                    of each document, if requested
//!            of each row                 └─▶ progress                     the mark
//! ```
//!
//! **Why nothing is lost or doubled.** Every transaction first locks the single row of `progress`. It
//! continues only if the row holds the run's own name and the commit number on which the run builds. It
//! writes its mark there and increments the number. So:
//!
//! 1. A run that takes the tables over writes its name there. The run before finds another name at its next
//!    commit, and ends. While the run before lives, the later one is refused: in a SQLite file by the lock of
//!    a file beside it, on a server by the connection of the run before, which the row of `progress` names.
//! 2. After a commit with an unknown outcome (the connection was lost), the run reads the row again, once its
//!    lock is free. If the number is one higher, everything was written. If it is unchanged, nothing was, and
//!    the run writes it again.
//!
//! **Deltas add up to pairs**, if they are kept. A run that begins to keep them where an earlier run did not
//! is refused, as a run of another pipeline is. If it reconciles, the first correction empties the table and
//! fills it with the pairs of the table of pairs, in its own transaction. So it does where another program
//! has changed pairs, and deltas do not add up to them.
//!
//! **What others change is noticed**, but for values. Each statement says how many rows it has changed, which
//! is compared with what was sent ([`changed_rows`]). Rows are counted ([`progress`]), and the tables have a
//! known shape ([`shape`]): both are looked at at the start, at the end, and by a thread from time to time.
//! Tables with rows and no mark for them are corrected by a run that reconciles, and refused by others.
//!
//! Clusters are written member by member, whatever their size: the views of kept and removed documents need
//! all members.

#![cfg_attr(
    not(any(feature = "sqlite", feature = "postgres")),
    expect(
        dead_code,
        reason = "without a database there are no tables, and a deployment that names some is refused"
    )
)]

mod changed_rows;
mod changes;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod progress;
mod shape;
#[cfg(feature = "sqlite")]
mod sqlite;
mod store;
mod table_sink;

pub use store::TableOutput;
pub use table_sink::TableSink;
