//! The arguments of `dupflow replay`, and the deployment that they stand for.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::report;
use crate::cli::PipelineArgs;
use crate::cli::arguments;
use crate::cli::arguments::documents::DocumentArgs;
use crate::cli::arguments::inputs::InputArgs;
use crate::cli::arguments::memory::MemoryArgs;
use crate::cli::arguments::processes::ProcessArgs;
use crate::cli::arguments::reference::ReferenceArgs;
use crate::cli::arguments::resume::ResumeArgs;
use crate::cli::audit;
use crate::config::{
    AuditConfig, DeadLetterConfig, Deployment, FilesSource, LogFormat, LogLevel, MonitorConfig, OutputAnswer,
    OutputConfig, OutputFormat, ProcessConfig, ProvenancePlace, SourceConfig, WatchConfig,
};
use dupflow_connectors::inputs::{FollowedTables, GoneInputs};
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::sinks::DecisionMode;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::time::UnixTime;

/// Arguments of `replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    dupflow replay feed.jsonl                                      changes of pairs\n  \
    dupflow replay --emit keep -t 0.7 -o keep.jsonl pages.parquet  one document of each cluster\n  \
    dupflow replay --emit pairs -o pairs.csv 'crawl/*.warc.gz'     all pairs, as a table")]
pub struct Args {
    /// The pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Where the result goes: a file, a database, a topic [default: -].
    ///
    /// "-" is standard output. A database is "sqlite:FILE" or "postgres://…", a topic "kafka:TOPIC". Tables
    /// of a database, and a topic, are corrected to what the inputs give. May be given several times: the
    /// result goes to each of them.
    #[arg(short, long, value_name = "PLACE", default_value = "-")]
    pub output: Vec<PathBuf>,

    /// The brokers of a topic as --output.
    #[arg(long, value_name = "ADDRESSES", default_value_t = Connection::default().brokers)]
    pub brokers: String,

    /// What the result is: deltas, pairs, clusters, keep, remove, …
    ///
    /// "deltas", the changes of pairs in every epoch, or "pairs", all pairs at the end of the input;
    /// "cluster-deltas" and "clusters" are the same for clusters; "keep", one document of each cluster and
    /// all that are in none, and "remove", all others; "decisions", what every epoch finds of each document
    /// that it upserts; "documents", the records of the documents that are kept, as they were read, in a file
    /// or, as in "clean/", in a folder with a file for each input, and "removed-documents", those of all
    /// others; "items", with -p decontaminate, what is found of each item of --against; "rejected:N", at most
    /// N of the candidates that the filter rejects, chosen by a hash of their sketches, with why.
    #[arg(long, value_parser = arguments::AnswerParser, default_value_t, value_name = "WHAT")]
    pub emit: OutputAnswer,

    /// With --emit decisions: "first", a record for each upsert, or "current", also whenever a document's
    /// record changes later [default: first].
    #[arg(long, value_name = "WHEN")]
    pub decisions: Option<DecisionMode>,

    /// The format of the result [default: by the name of the output].
    ///
    /// A name as .csv, .parquet or .arrow says it, else it is JSON Lines. A Parquet file is complete only at
    /// the end of the run.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub output_format: Option<OutputFormat>,

    /// Options for records of documents.
    #[command(flatten)]
    pub documents: DocumentArgs,

    /// When changes are written, as in "events:1000" or "every:1s".
    ///
    /// The input is cut into epochs: "events:N" after every N events, "every:T" that long after its
    /// first event (as in 100ms), "events:N,every:T" at the first of both, "ts" whenever the time stamp
    /// changes, or "all". Only the last event of a document in an epoch counts.
    #[arg(long, value_name = "RULE", default_value_t)]
    pub epoch: EpochRule,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N", value_parser = arguments::workers)]
    pub workers: Option<NonZeroUsize>,

    /// How much memory the replay may take.
    #[command(flatten)]
    pub memory: MemoryArgs,

    /// Write the counts of the run and its provenance to this JSON file.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Write a page about the result to this file: shares, clusters, texts.
    ///
    /// It shows how many documents repeat others, the similarities of the pairs, the largest clusters, pairs
    /// at the threshold with what differs in their texts, and what was not compared; it needs no network and
    /// no script. The inputs are read once more for the texts.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Record in the output how it was made, for "dupflow verify".
    ///
    /// The record has the program, the pipeline, the inputs with digests, and counts.
    /// JSON Lines have it in their first and last line, a Parquet file in its metadata, CSV in a file beside
    /// it (.provenance.json). "dupflow verify" repeats the run by it.
    #[arg(long)]
    pub provenance: bool,

    /// Add to each change when it was: the greatest time of the events of its epoch, and the time of day of
    /// its commit.
    #[arg(long)]
    pub times: bool,

    /// Leave out events after this time, which is still included.
    ///
    /// In unix seconds, or a date such as
    /// 2026-11-02T12:00:00Z. Events without a time are applied, and counted.
    #[arg(long, value_name = "TIME", value_parser = audit::until)]
    pub until: Option<UnixTime>,

    /// Add to each pair why it was accepted.
    ///
    /// The blocks that its documents share, the components that were read, the look that decided, the
    /// standard error.
    #[arg(long)]
    pub evidence: bool,

    /// Add to each delta its cause: an insert, an update, a delete, an expiry, …
    #[arg(long)]
    pub causes: bool,

    /// How fast the feed is played by its time stamps: "max", "real" or "Nx", as in 10x.
    #[arg(long, default_value_t)]
    pub speed: Speed,

    /// Copy bad records to this file; they are counted anyway.
    #[arg(long, value_name = "FILE")]
    pub dead_letter: Option<PathBuf>,

    /// The greatest share of bad records, from 0 to 1.
    ///
    /// It is inclusive. With more the run fails, and a result that
    /// is written at the end is not published [default: any; for "keep" and "remove" 0].
    #[arg(long, value_name = "SHARE", value_parser = arguments::share)]
    pub max_bad: Option<f64>,

    /// The greatest number of files that may not be read, or only in part, since the number of
    /// records in them is not known [default: any; for "keep" and "remove", and with --max-bad, 0].
    #[arg(long, value_name = "FILES")]
    pub max_unread: Option<u64>,

    /// Watch for documents that resemble those of this file, or folder; may be given several times.
    #[arg(long, value_name = "FILE", requires = "notices")]
    pub watch: Vec<PathBuf>,

    /// Write the matches of the watches to this file: a line for each that begins or ends.
    #[arg(long, value_name = "FILE", requires = "watch")]
    pub notices: Option<PathBuf>,

    /// Show the run in a browser, at an address as 127.0.0.1:9600.
    ///
    /// It must be a loopback address; port 0 is any free port. The page stays until Ctrl-C, and a result that
    /// is written at the end is written then.
    #[arg(long, value_name = "ADDRESS")]
    pub monitor: Option<SocketAddr>,

    /// Print how the first records of each input are read, and stop.
    ///
    /// Nothing is compared [default of N: 3].
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3")]
    pub dry_run: Option<NonZeroU64>,

    /// Keep the views that this TOML file names in `[[view]]` tables: their changes or their final rows
    /// (.csv) are written to the files named there, and shown with --monitor.
    #[arg(long, value_name = "FILE")]
    pub views: Option<PathBuf>,

    /// Options for several processes.
    #[command(flatten)]
    pub processes: ProcessArgs,

    /// Where the replay notes how far it is.
    #[command(flatten)]
    pub resume: ResumeArgs,

    /// The corpus that the inputs are compared with.
    #[command(flatten)]
    pub reference: ReferenceArgs,

    /// The inputs.
    #[command(flatten)]
    pub inputs: InputArgs,
}

impl Args {
    /// The outputs, or why there is no such place. Those that are corrected are first: one of them decides
    /// how much is read before anything is written.
    pub(super) fn outputs(&self) -> Result<Vec<OutputConfig>, String> {
        let mut outputs: Vec<_> =
            self.output.iter().map(|typed| self.output_at(typed)).collect::<Result<_, String>>()?;
        outputs.sort_by_key(|output| !output.place.is_corrected());
        if let [only] = &mut outputs[..] {
            "sink".clone_into(&mut only.table);
        }
        OutputConfig::conflict(&outputs, self.emit).map_or(Ok(outputs), Err)
    }

    /// Whether a file beside the output has its provenance: with it, a replay writes a file beside a table of
    /// comma-separated values.
    pub(super) fn has_companion(&self, deployment: &Deployment) -> bool {
        self.provenance && !deployment.output.format.holds_provenance
    }

    /// The options as a deployment.
    pub(in crate::cli) fn deployment(&self, fields: FieldRules, format: LogFormat) -> Deployment {
        // An address that is wrong, which may have a password, is no name of a file.
        let outputs = self.outputs().unwrap_or_else(|_| vec![self.standard_output()]);
        let (first, others) = outputs.split_first().expect("there is an output");
        Deployment {
            workers: self.workers,
            spill: self.memory.config(),
            shutdown: Duration::ZERO,
            source: SourceConfig::new(FilesSource {
                inputs: self.inputs.inputs.clone(),
                files_from: self.inputs.files_from.clone(),
                layout: self.inputs.layout.layout(),
                epoch: self.epoch,
                speed: self.speed,
                follow: false,
                tables: FollowedTables::default(),
                gone: GoneInputs::default(),
                posted: None,
            }),
            fields,
            commit: EpochLimits::default(),
            dead_letter: self.dead_letter.clone().map(DeadLetterConfig::File),
            max_bad: self.max_bad,
            max_unread: self.max_unread,
            output: first.clone(),
            others: others.iter().cloned().chain(self.report.iter().map(|_| report::output())).collect(),
            documents: self.documents.config(),
            reference: None,
            against: 0,
            benchmark: self.reference.benchmark.clone(),
            evidence: self.evidence,
            audit: AuditConfig {
                provenance: match (self.provenance, &self.stats) {
                    (true, _) => ProvenancePlace::Output,
                    (false, Some(_)) => ProvenancePlace::Stats,
                    (false, None) => ProvenancePlace::Nowhere,
                },
                until: self.until,
            },
            kafka: Connection { brokers: self.brokers.clone(), ..Connection::default() },
            state: None,
            views: Vec::new(),
            monitor: self.monitor.map(MonitorConfig::at),
            watch: self.notices.clone().map(|path| WatchConfig::of_files(self.watch.clone(), path)),
            processes: ProcessConfig::default(),
            level: LogLevel::default(),
            format,
            shown: BTreeMap::new(),
        }
    }

    /// Standard output as the place of the result.
    fn standard_output(&self) -> OutputConfig {
        self.output_at(Path::new("-")).expect("standard output is a place")
    }

    fn output_at(&self, typed: &Path) -> Result<OutputConfig, String> {
        let output = OutputConfig::from_typed(typed, self.emit, self.decisions, self.output_format)?;
        Ok(OutputConfig { causes: self.causes, times: self.times, ..output })
    }
}
