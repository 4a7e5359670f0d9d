//! `dupflow replay`: a recorded feed in, the changes of its near-duplicate pairs out.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use super::PipelineArgs;
use crate::config::EmitKind;
use crate::source::{EpochRule, Speed};

/// What `replay` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which pipeline.
    #[command(flatten)]
    pub pipeline: PipelineArgs,

    /// Where the result goes; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// What the result is: "deltas", the changes of every epoch, or "pairs", all pairs at the end of the input.
    #[arg(long, value_enum, default_value_t)]
    pub emit: EmitKind,

    /// Where the input is cut into epochs: "events:N" after every N events, "ts" whenever the time stamp changes, or "all".
    /// Inside an epoch only the last event of a document counts.
    #[arg(long, value_name = "RULE", default_value_t)]
    pub epoch: EpochRule,

    /// Worker threads [default: as many as the machine has cores].
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,

    /// Write the counts of the run to this file, as one JSON object.
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,

    /// Say for each pair why it was accepted: blocks shared, components read, the look that decided, the standard error.
    #[arg(long)]
    pub evidence: bool,

    /// How fast the feed is played by its time stamps: "max", "real" or "Nx", as in 10x.
    #[arg(long, default_value_t)]
    pub speed: Speed,

    /// Keep records that are no events in this file, whole; otherwise they are only counted.
    #[arg(long, value_name = "FILE")]
    pub dead_letter: Option<PathBuf>,

    /// Feed files (.jsonl, also compressed with zstd or gzip), folders whose files are documents, or "-" for standard input;
    /// several are read in order.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<PathBuf>,
}

/// Runs a feed.
///
/// # Errors
/// Always, until the run is connected.
pub fn run(_: &Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("replay is not part of this build")
}
