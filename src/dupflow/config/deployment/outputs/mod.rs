//! The outputs of a deployment: what is written, in which format, and to which place.

mod answer;
mod audit;
mod format;
mod output;
mod places;
mod sides;

pub use answer::OutputAnswer;
pub use audit::{AuditConfig, DocumentsConfig, ProvenancePlace};
pub use format::OutputFormat;
pub use output::OutputConfig;
pub(super) use output::{KEYS, SINK_KEYS, check_places, first, others};
pub use places::{
    FilePlace, OpenError, OpenedOutput, OutputPlace, OutputSettings, Place, TablesPlace, TopicPlace,
};
pub(super) use sides::{check_side, check_side_names};
