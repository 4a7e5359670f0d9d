//! The outputs of a deployment: what is written, in which format, and to which place.

mod others;
mod results;
mod sink;
mod typed;

pub use others::OutputConfig;
pub(super) use others::{KEYS, SINK_KEYS, check_places, first, others};
pub use results::{AuditConfig, DocumentsConfig, EmitKind, OutputFormat, ProvenancePlace, ResultPlace};
pub use sink::SinkConfig;
pub(super) use sink::{check_side, check_side_names};
