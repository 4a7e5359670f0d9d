//! `dupflow man`: manual pages, made from the command line.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;

use super::Cli;
use super::arguments::problems::Problems;

/// Arguments of `man`.
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
    let mut command = Cli::command().long_version(None::<&str>).disable_help_subcommand(true);
    command.build();
    if let Some(dir) = &args.dir {
        std::fs::create_dir_all(dir)
            .and_then(|()| write_pages(&command, dir))
            .with_context(|| format!("the manual pages cannot be written to {dir:?}"))?;
    } else {
        let mut page = Vec::new();
        page_of(&command).render(&mut page)?;
        super::print(&String::from_utf8(page).map_err(io::Error::other)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the pages of a command and of all below it.
fn write_pages(command: &Command, dir: &Path) -> io::Result<()> {
    command.get_subcommands().try_for_each(|below| write_pages(below, dir))?;
    page_of(command).generate_to(dir).map(drop)
}

fn page_of(command: &Command) -> Man {
    Man::new(command.clone()).source(concat!("dupflow ", env!("CARGO_PKG_VERSION")))
}
