//! `dupflow demo`: a small feed, played in real time, with explanations in the terminal and a page.
//!
//! It needs no arguments and no files. The feed is written to a temporary file, which is removed at the end,
//! and is replayed by pipeline `exact` at the speed of its time stamps. Standard output has a line for each
//! change; the page shows the same. Ctrl-C ends the demo, with exit code 0.

mod narrator;
mod story;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::Context;

use super::arguments::problems::Problems;
use super::arguments::verbosity::Verbosity;
use super::run::monitor;
use super::{print, replay};
use crate::config::{
    AuditConfig, Deployment, DocumentsConfig, FilesSource, LogLevel, MonitorConfig, OutputConfig,
    OutputPlace, Plan, ProcessConfig, SourceConfig, without_monitor,
};
use crate::pipeline::{Mode, RunJob};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::{FollowedTables, GoneInputs, Input, Staying};
use dupflow_connectors::intake::{EpochLimits, EpochRule, Speed};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::time::SystemClock;
use narrator::Narrator;

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The port of the page, on this machine alone [default: one that is free].
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

/// The commands to try after the demo.
const NEXT: &str = "\
The demo has ended. Try next (in the source folder: `cargo run --quiet --` in place of `dupflow`):

  dupflow replay feed.jsonl             your documents, one per line: {\"id\":\"a\",\"text\":\"some words\"}
  dupflow replay --emit keep folder/    which files of a folder to keep
  dupflow compare a.txt b.txt           how similar two texts are, and whether they would be found
  dupflow plan -p exact                 what a pipeline finds, misses and costs
  dupflow replay --monitor 127.0.0.1:9600 feed.jsonl    this page for your documents
";

/// A feed in a temporary file, which is removed when this is dropped.
struct FeedFile(PathBuf);

impl FeedFile {
    /// # Errors
    /// A temporary folder that cannot be written.
    fn create() -> io::Result<Self> {
        let name = format!("dupflow-demo-{}-{:08x}.jsonl", std::process::id(), rand::random::<u32>());
        let path = std::env::temp_dir().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        let feed = Self(path);
        file.write_all(story::feed().as_bytes())?;
        Ok(feed)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for FeedFile {
    fn drop(&mut self) {
        // A file that is already removed needs no removal.
        fs::remove_file(&self.0).unwrap_or(());
    }
}

/// Plays the feed until a signal.
///
/// # Errors
/// A port without a monitor in this build; a port that is taken; what the run fails with.
pub(super) fn run(args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    let has_page = cfg!(feature = "monitor");
    if args.port.is_some() && !has_page {
        problems.note(format_args!("--port: {}", without_monitor()));
    }
    problems.settle(Some(()))?;
    let feed = FeedFile::create().context("the feed of the demo cannot be written")?;
    let plan = Plan::load("exact", &[])?;
    let page = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
    let deployment = deployment(feed.path(), has_page.then_some(page), verbosity);
    let inputs = vec![Input::at(feed.path())];
    let mut job =
        RunJob::assemble(&plan, &deployment, &Mode::Replay, inputs, None, Arc::new(SystemClock::start()))?;
    let last = Arc::new(OnceLock::new());
    job.sink = Box::new(Narrator::new(io::stdout(), Arc::clone(&last)));
    let page_server = monitor::start(&plan, &deployment, &mut job)?;
    let page_address = page_server.as_ref().map(|server| server.address());
    print(&heading(page_address))?;
    if page_address.is_some() {
        // It is set once.
        let (status, clock) = (Arc::clone(&job.status), Arc::clone(&job.clock));
        job.source = Box::new(Staying::new(job.source, move |epoch| {
            status.reading().end(clock.unix());
            last.set(epoch).unwrap_or(());
        }));
    }
    replay::run_until_signalled(job, true)??;
    print(&format!("\n{NEXT}"))?;
    Ok(ExitCode::SUCCESS)
}

/// The first lines of the demo.
fn heading(page: Option<SocketAddr>) -> String {
    let page = match page {
        Some(address) => format!("Page: http://{address}/"),
        None => format!("No page: {}", without_monitor()),
    };
    format!(
        "A feed of short articles plays for two minutes: some are copied, edited, rewritten or deleted.\n\
         + is a pair that appears, - one that ends, = a cluster. Ctrl-C ends the demo.\n{page}\n\n"
    )
}

/// A replay of the feed at the speed of its time stamps.
fn deployment(feed: &Path, page: Option<SocketAddr>, verbosity: Verbosity) -> Deployment {
    Deployment {
        workers: None,
        spill: None,
        shutdown: Duration::ZERO,
        source: SourceConfig::new(FilesSource {
            inputs: vec![feed.to_owned()],
            files_from: None,
            layout: InputLayout::default(),
            epoch: EpochRule::Ts,
            speed: Speed::REAL,
            follow: false,
            tables: FollowedTables::default(),
            gone: GoneInputs::default(),
            posted: None,
        }),
        fields: FieldRules::default(),
        commit: EpochLimits::default(),
        dead_letter: None,
        max_bad: None,
        max_unread: None,
        output: OutputConfig::at(OutputPlace::stdout()),
        others: Vec::new(),
        evidence: false,
        audit: AuditConfig::default(),
        documents: DocumentsConfig::default(),
        reference: None,
        against: 0,
        benchmark: None,
        kafka: Connection::default(),
        state: None,
        views: Vec::new(),
        monitor: page.map(MonitorConfig::at),
        watch: None,
        processes: ProcessConfig::default(),
        level: LogLevel::Warn,
        format: verbosity.format,
        shown: BTreeMap::new(),
    }
}
