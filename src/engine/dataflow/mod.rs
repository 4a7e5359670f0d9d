//! The dataflow: events in, pair deltas out. Only this folder uses timely and differential.
//!
//! ```text
//! events   ingest ── upsert ── collapse ┬─── blocks ─ visit ── compare ── pairs ─┬─ output ───▶ emit
//!          decode,   last      members  │    candi-   sketch   filter     of docu│  closed
//!          sketch    event     of each  │    dates    is sent             ments  │  epochs
//!                    of an id  sketch   ├─ members ──────────────────────────┘   │
//!                       ▲               └─ pairs of copies ──────────────────────┤
//! ticks    ingest ──────┘ clock, to all workers
//! progress ingest ───────────────────────────────────────────────────────────────┘
//! queries  ingest ── find ──── enter ─────── blocks ────────── compare ──────────── answer ───▶ reply
//!          sketch    document  sketch        candidates        as of an epoch      counts
//! by       batch     id        sketch        block    x        y          x, y      worker 0
//! ```
//!
//! Where documents are cut into units, `units` takes the place of `upsert`; where weights follow the corpus,
//! `live` does.
//!
//! Time is the epoch. Operators are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function
//! of the corpus before and after the epoch. The index holds distinct sketches, named by their content;
//! documents are members of sketches. Of differential, only the consolidation of changes is used, and in
//! `views` its arrangements; its plain self-join is the reference in the tests.

mod acceptance;
mod blocks;
mod build;
mod collapse;
mod documents;
mod ingest;
mod intake;
mod live;
mod operator;
mod output;
mod pairs;
mod queries;
mod shared;
mod sketches;
mod spill;
mod stages;
mod units;
mod upsert;
mod verify;
#[cfg(feature = "views")]
mod views;
mod watches;
mod workers;

pub use build::build;
pub use documents::kept::{is_kept_slot, kept_position};
pub use documents::reference::{NoReferenceDocument, Reference, ReferenceBuilder};
pub use intake::{BatchEnd, BatchRecord, Intake, Pull};
pub use output::{ClosedEpoch, Emit};
pub use shared::kept_epochs::KeptEpochs;
pub use stages::{HELD_FIELDS, Observers, RunStart, Spill, Stages, described_fields};
pub use workers::link::OnLost;
pub use workers::run::{Cancellation, PeerSockets, WorkerError, Workers};
