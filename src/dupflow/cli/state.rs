//! `dupflow state`: describes, verifies or compacts stored state.

use std::error::Error;
use std::fmt::{self, Write as _};
use std::process::ExitCode;

use indicatif::{BinaryBytes, HumanCount};

use super::arguments::problems::Problems;
use crate::plural::count;
use dupflow_connectors::state::{self, Inspection, StoredState, Verification};

/// Arguments of `state`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Inspecting and verifying may go on beside a run; compacting may not.")]
pub struct Args {
    /// The action.
    #[command(subcommand)]
    pub action: Action,
}

/// Actions on stored state.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Describe what it holds: epoch, positions, documents, bytes, scheme.
    Inspect {
        /// A folder or a URL.
        #[arg(value_name = "PATH")]
        location: String,
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Read all of it, and name everything that is damaged; exits with 1 if anything is.
    Verify {
        /// A folder or a URL.
        #[arg(value_name = "PATH")]
        location: String,
    },
    /// Rewrite it without replaced records; refused while a run has the folder open.
    Compact {
        /// A folder or a URL. In an object store an open state cannot be detected: a run that has it open
        /// ends.
        #[arg(value_name = "PATH")]
        location: String,
    },
}

/// Runs the action.
///
/// # Errors
/// If there is no state, or it cannot be read or written.
pub(super) fn run(args: &Args, mut problems: Problems) -> anyhow::Result<ExitCode> {
    let (Action::Inspect { location, .. } | Action::Verify { location } | Action::Compact { location }) =
        &args.action;
    let store = problems.take(state::at(location));
    let store = problems.settle(store)?;
    let report = match &args.action {
        Action::Inspect { json: false, .. } => inspection(&state::inspect(store)?)?,
        Action::Inspect { json: true, .. } => serde_json::to_string_pretty(&state::inspect(store)?)? + "\n",
        Action::Verify { .. } => {
            let found = state::verify(store)?;
            super::print(&verification(&found)?)?;
            return Ok(if found.damages.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        Action::Compact { .. } => {
            let before = state::inspect(state::at(location)?)?;
            StoredState::open_alone(store)?.compact()?;
            let after = state::inspect(state::at(location)?)?;
            format!("before  {}\nafter   {}\n", size(&before), size(&after))
        }
    };
    super::print(&report)?;
    Ok(ExitCode::SUCCESS)
}

fn size(found: &Inspection) -> String {
    let files = count((found.bases + found.deltas) as u64, "file");
    format!("{}, {files}", BinaryBytes(found.base_bytes + found.delta_bytes))
}

fn inspection(found: &Inspection) -> Result<String, fmt::Error> {
    let mut out = String::new();
    let next = found.progress.next.iter().map(|(partition, offset)| format!(" {partition}:{offset}"));
    let each = found.bytes_per_document.map_or(String::new(), |bytes| format!(", {bytes:.0} bytes for each"));
    writeln!(out, "state       {}", found.place)?;
    writeln!(out, "epoch       {}", found.progress.epoch)?;
    writeln!(out, "positions  {}", if next.len() == 0 { " none".to_owned() } else { next.collect() })?;
    writeln!(
        out,
        "documents   {} alive, {} of ids and values",
        HumanCount(found.documents),
        BinaryBytes(found.document_bytes)
    )?;
    writeln!(out, "stored      {}{each}", size(found))?;
    writeln!(out, "  bases     {}, {}", BinaryBytes(found.base_bytes), count(found.bases as u64, "file"))?;
    writeln!(out, "  deltas    {}, {}", BinaryBytes(found.delta_bytes), count(found.deltas as u64, "file"))?;
    writeln!(out, "  records   {}, {} of them ended", HumanCount(found.records), HumanCount(found.ended))?;
    writeln!(out, "table       {}", found.table.as_deref().unwrap_or("none"))?;
    writeln!(out, "scheme")?;
    let width = found.scheme.keys().map(String::len).max().unwrap_or(0);
    for (name, value) in &found.scheme {
        writeln!(out, "  {name:width$}  {value}")?;
    }
    writeln!(out, "manifests")?;
    for manifest in &found.manifests {
        let epoch = manifest.epoch.map_or("nothing yet".to_owned(), |epoch| format!("epoch {epoch}"));
        let owner = manifest.owner.as_deref().unwrap_or_default();
        match &manifest.damage {
            Some(damage) => writeln!(out, "  {}  {damage}", manifest.number)?,
            None => writeln!(out, "  {}  {epoch}, by owner {owner}", manifest.number)?,
        }
    }
    Ok(out)
}

fn verification(found: &Verification) -> Result<String, fmt::Error> {
    let mut out = String::new();
    for damage in &found.damages {
        let cause = damage.source().map_or(String::new(), |cause| format!(": {cause}"));
        writeln!(out, "damaged: {damage}{cause}")?;
    }
    for name in &found.unnamed {
        writeln!(out, "no manifest names \"{name}\": of a publish under way, or left over")?;
    }
    let read = format!("{} read, {}", count(found.files, "file"), BinaryBytes(found.bytes));
    let documents = found.documents.map_or(String::new(), |n| format!(", {} alive", count(n, "document")));
    let verdict = match found.damages.len() as u64 {
        0 => "whole".to_owned(),
        n => count(n, "damage"),
    };
    writeln!(out, "{verdict}: {read}, {}{documents}", count(found.records, "record"))?;
    Ok(out)
}
