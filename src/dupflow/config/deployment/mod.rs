//! Deployment files: inputs, outputs, workers and logging.
//!
//! A [`Deployment`] is a checked file. Each module reads one table of it, or a few; `values` reads the values
//! that several tables have.

mod broker;
#[expect(clippy::module_inception, reason = "the type of the room, apart from the list of its modules")]
mod deployment;
mod keys;
mod kind;
mod logging;
mod monitor;
mod outputs;
mod processes;
mod source;
mod storage;
mod tables;
#[cfg(test)]
mod tests;
mod values;
mod views;
mod watch;

pub use deployment::{Deployment, MOST_WORKERS};
pub(in crate::config) use keys::KEYS;
pub use logging::{LogFormat, LogLevel};
pub use monitor::{MonitorConfig, without_monitor};
pub use outputs::{
    AuditConfig, DocumentsConfig, FilePlace, OpenError, OpenedOutput, OutputAnswer, OutputConfig,
    OutputFormat, OutputPlace, OutputSettings, Place, ProvenancePlace, TablesPlace, TopicPlace,
};
pub use processes::ProcessConfig;
pub use source::reference::ReferenceConfig;
pub use source::{
    DatabaseSource, FilesSource, SOURCE_DATABASE, SOURCE_START, SourceConfig, SourcePlace, SourceSettings,
    TopicSource, fields_of,
};
pub use storage::{DeadLetterConfig, MemoryBudget, SpillConfig, StateConfig};
pub use views::ViewConfig;
pub use watch::{HookConfig, NoticesConfig, WatchConfig};
