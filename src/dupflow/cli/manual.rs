//! `dupflow man`: manual pages, made from the command line.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::CommandFactory;

use super::Cli;
use super::problems::Problems;

/// What `man` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "Try:  dupflow man | man -l -\n      dupflow man --dir ~/.local/share/man/man1")]
pub struct Args {
    /// Write a page for each command into this folder, which is created if it is missing [default: the first
    /// page to standard output].
    #[arg(long, value_name = "FOLDER")]
    pub dir: Option<PathBuf>,
}

/// Writes the pages.
///
/// # Errors
/// Problems of the command line; an output that cannot be written.
pub(super) fn run(args: &Args, problems: Problems) -> anyhow::Result<ExitCode> {
    problems.settle(Some(()))?;
    let command = Cli::command();
    if let Some(dir) = &args.dir {
        let pages = std::fs::create_dir_all(dir).and_then(|()| clap_mangen::generate_to(command, dir));
        pages.with_context(|| format!("the manual pages cannot be written to {dir:?}"))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        super::print(&String::from_utf8(page).map_err(io::Error::other)?)?;
    }
    Ok(ExitCode::SUCCESS)
}
