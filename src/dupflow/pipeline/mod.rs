//! A run: source, dataflow and sink put together. This is the only place where dataflow meets I/O.
//!
//! ```text
//!  readers ── Queue ──┬─▶ worker 0: decode ─ dataflow ── Commits ──▶ committer ── Sink
//!                     └─▶ worker n: decode ─ dataflow
//! ```
//!
//! Each reader cuts its input into batches, and workers take the batches as they can. Worker 0 collects the
//! closed epochs, and the committer writes them. No stage waits for the next one, except the readers, which
//! wait for room in the queue.
//!
//! A run ends in one of three ways. At the end of the input everything is written and the sink is finished. A
//! [stop](Stopper) does the same with what has been read so far. A failure (`failure`) ends all threads at
//! once.

mod assemble;
mod commit;
mod continuity;
mod document_rules;
mod error;
mod fit;
mod outcome;
mod outputs;
mod past;
mod past_error;
mod provenance;
mod publisher;
mod read_again;
mod restart;
mod run;

pub use assemble::{
    AssembleError, Mode, budget_bytes, check_spill, check_writable, held_fields, missing_fields, spill_to,
    stages,
};
pub use commit::Follower;
pub use continuity::Continuity;
pub use error::{RunError, chain};
pub use outcome::{
    DecisionCounts, Demands, EndOutput, FieldCounts, HookCounts, HotBlockReport, Latencies, Measures,
    Quantiles, ReferenceCounts, RejectedOutput, RejectedSummary, ResumedAt, SpillSummary, Summary,
    UnitExample, WatchCounts, fields_of_reference,
};
pub use outputs::{OtherOutput, SideOutputs};
pub use past_error::PastError;
pub use provenance::{CountsRecord, PipelineRecord, ProgramRecord, Provenance};
pub use publisher::{Published, Publisher, PublisherSettings, PublisherStop};
pub use run::{FailureSender, ProcessGroup, RunJob, Running, Stopper, nowhere, run, start};
