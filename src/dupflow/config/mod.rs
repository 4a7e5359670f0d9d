//! Configuration: checks the pipeline and deployment files as a whole, and turns them into plans without open
//! choices.
//!
//! There are two kinds of TOML files. A **pipeline** says what is computed and becomes a [`Plan`]. It is
//! built in and chosen by its bare name, or read from a path; `key=value` overrides replace its settings. A
//! **deployment** says where: inputs, outputs, workers, logging. Only deployment files use environment
//! variables.
//!
//! Invariants: all problems of a configuration are reported together, each with its place and the expected
//! values. An unknown key is a problem, and so is a key without effect. Every [`Plan`] can be run.
//!
//! Keys and ranges of a pipeline are defined once, in `pipeline/keys`. `pipelines/minhash.toml` documents
//! them for users, `config/kafka.toml` those of a deployment. A test checks that both files name every key,
//! and the first every range and choice.
//!
//! Parsing a pipeline reads only its file and a list of stop words. A table of document frequencies that a
//! pipeline names is read by a separate step ([`Draft::read`]), and once for any number of plans
//! ([`FrozenTables`]).

mod deployment;
mod pipeline;
mod schema;
mod settings;

pub use deployment::{
    AuditConfig, DatabaseSource, DeadLetterConfig, Deployment, DocumentsConfig, FilePlace, FilesSource,
    HookConfig, LogFormat, LogLevel, MOST_WORKERS, MemoryBudget, MonitorConfig, NoticesConfig, OpenError,
    OpenedOutput, OutputAnswer, OutputConfig, OutputFormat, OutputPlace, OutputSettings, Place,
    ProcessConfig, ProvenancePlace, ReferenceConfig, SOURCE_DATABASE, SOURCE_START, SourceConfig,
    SourcePlace, SourceSettings, SpillConfig, StateConfig, TablesPlace, TopicPlace, TopicSource, ViewConfig,
    WatchConfig, fields_of, without_monitor,
};
pub use pipeline::{BUILT_IN, BlockingPlan, Draft, FilterPlan, FrozenTables, Plan};
pub use schema::ConfigFile;
pub use settings::{ConfigError, Origin, Problem, ProblemKind, size};
