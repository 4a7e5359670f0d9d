//! `dupflow completions`: a script that completes the command line in a shell.

use std::io;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::Cli;
use super::arguments::problems::Problems;

/// Arguments of `completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Try, in a folder that exists:\n  \
    dupflow completions bash > ~/.local/share/bash-completion/completions/dupflow\n  \
    dupflow completions zsh > ~/.zfunc/_dupflow          with fpath+=~/.zfunc before compinit\n  \
    dupflow completions fish > ~/.config/fish/completions/dupflow.fish")]
pub struct Args {
    /// The shell.
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: Shell,
}

/// Writes the script to standard output.
///
/// # Errors
/// Problems of the command line; an output that cannot be written.
pub(super) fn run(args: &Args, problems: Problems) -> anyhow::Result<ExitCode> {
    problems.settle(Some(()))?;
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "dupflow", &mut script);
    super::print(&String::from_utf8(script).map_err(io::Error::other)?)?;
    Ok(ExitCode::SUCCESS)
}
