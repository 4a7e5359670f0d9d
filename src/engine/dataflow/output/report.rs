//! What is reported of an epoch: by operators, and, once it is closed, by the dataflow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

#[cfg(doc)]
use crate::dataflow::shared::kept_epochs::KeptEpochs;
#[cfg(doc)]
use crate::dataflow::stages::Stages;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocChange, Letter, Position, UpsertedDoc};
use dupflow_core::pair::{Cause, Delta};
use dupflow_core::time::{LastRecord, Progress, RetentionTime, TableInForce, UnixTime};
use dupflow_core::views::ViewDelta;
use dupflow_run::watch::{Notice, WatchMatch};

/// The results of one epoch, from all workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClosedEpoch {
    /// The number of the epoch, and how far it has read the input.
    pub progress: Progress,
    /// Changes of pairs: sorted by (a, b, diff), distinct, each with diff 1 or -1.
    pub deltas: Vec<Delta>,
    /// Changes of live documents, if [requested](Stages::emits_documents): at most one for each document,
    /// sorted by id.
    pub documents: Vec<DocChange>,
    /// Changes of the rows of [views](Stages::views): sorted by (view, group, id, value, diff), distinct,
    /// each with diff 1 or -1.
    pub views: Vec<ViewDelta>,
    /// Documents with an upsert in the epoch, if [requested](Stages::emits_upserts), sorted by id. Restored
    /// documents are not among them.
    pub upserts: Vec<UpsertedDoc>,
    /// What a later run needs of these changes, if documents are [kept](Stages::keeps). The changes of one
    /// document are in order.
    pub kept: Vec<Changes>,
    /// Bytes of such changes that [other processes](KeptEpochs) have.
    pub kept_by_others: u64,
    /// Invalid records by position, if they are kept with their epoch.
    pub letters: Vec<Letter>,
    /// Where each of several processes reads the whole input: for each process, a hash of what it has read.
    /// The hashes are equal unless the processes have read different inputs.
    pub seen: BTreeMap<usize, u64>,
    /// Changes of what is similar to a watch, if there is a [list](Stages::watches): sorted by (watch, id,
    /// diff), distinct.
    pub notices: Vec<Notice>,
    /// The greatest time of the events, if it is [requested](Stages::times) and one of them has a time.
    pub newest: Option<UnixTime>,
}

/// Receives the closed epochs from the dataflow.
///
/// Contract: called on worker 0 only. A comparison must not block: while worker 0 waits, all workers wait.
pub trait Emit {
    /// An epoch is closed on all workers, with or without deltas. Epochs are passed in order and without
    /// gaps.
    fn closed(&mut self, epoch: ClosedEpoch);

    /// The input has ended, and every epoch of it has been passed to `closed`. The last comparison; not made
    /// if the run ends in another way.
    fn ended(&mut self);
}

/// What operators report of an epoch, except its deltas.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) enum EpochReport {
    /// A batch has been read up to this position.
    Read(Position),
    /// The last record of a batch of this partition.
    Last(u32, LastRecord),
    /// The epoch has made this table of document frequencies.
    Table(TableInForce),
    /// Changes of documents: all changes of one document in an epoch are in one record.
    Documents(Vec<DocChange>),
    /// Documents with an upsert in the epoch, each in one record.
    Upserts(Vec<UpsertedDoc>),
    /// What is kept of the changed documents.
    Kept(Changes),
    /// The process of the worker has so many bytes of that itself.
    KeptByProcess(u64),
    /// An invalid record.
    Letter(Letter),
    /// The time of the retention clock.
    Clock(RetentionTime),
    /// The greatest time of the events of a batch.
    Newest(UnixTime),
    /// Causes by the hash of the document's id.
    Causes(Vec<(u64, Cause)>),
    /// A batch that all processes have read: the index of this process, and a hash of the batch.
    Seen(usize, u64),
    /// Changes of what is similar to a watch.
    Notices(Vec<(WatchMatch, isize)>),
}
