//! What a command prints on standard error besides its errors, and in which format.
//!
//! Input: two options of every command, and `--log-format`. Output: log messages, the summary and the
//! progress line. The options have precedence over `RUST_LOG`, and that over a deployment file. Errors are
//! always printed, and data on standard output is never affected.

use std::io::{self, IsTerminal, Write};

use clap::ColorChoice;
use tracing::Dispatch;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogLevel};

/// The options.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct VerbosityArgs {
    /// The format of messages: text or json.
    ///
    /// Messages are on standard error [default: text; for "run" as in its deployment file].
    #[arg(long, global = true, display_order = 900, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Print no warnings, no summary and no progress, only errors.
    #[arg(short, long, global = true, display_order = 901, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print help: -h the usual options, --help all.
    #[arg(short, long, global = true, display_order = 903, action = clap::ArgAction::Help)]
    pub help: Option<bool>,

    /// Log more details; -vv logs every step. The log replaces the progress line.
    #[arg(short, long, global = true, display_order = 902, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// What a command prints on standard error.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Verbosity {
    pub(in crate::cli) format: LogFormat,
    quiet: bool,
    verbose: u8,
}

impl VerbosityArgs {
    /// The settings with this format, unless the options set another one.
    pub(in crate::cli) fn verbosity(self, format: LogFormat) -> Verbosity {
        let Self { log_format, quiet, verbose, .. } = self;
        Verbosity { format: log_format.unwrap_or(format), quiet, verbose }
    }
}

impl Verbosity {
    /// Writes log messages to standard error: at the level of the options, else by `RUST_LOG`, else at
    /// `level` and above.
    pub(in crate::cli) fn messages(self, level: LogLevel) -> Dispatch {
        let messages = tracing_subscriber::fmt()
            .with_env_filter(self.filter(level))
            .with_writer(io::stderr)
            .with_target(false);
        // By default the subscriber reports a failed write by writing to standard error again, and panics.
        let messages = messages.log_internal_errors(false);
        match self.format {
            LogFormat::Text => {
                messages.compact().with_ansi(io::stderr().is_terminal() && !colours_declined()).into()
            }
            LogFormat::Json => messages.json().flatten_event(true).into(),
        }
    }

    fn filter(self, level: LogLevel) -> EnvFilter {
        let asked_level = match (self.quiet, self.verbose) {
            (true, _) => LogLevel::Error,
            (false, 0) => {
                return EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.name()));
            }
            (false, 1) => LogLevel::Debug,
            (false, _) => LogLevel::Trace,
        };
        EnvFilter::new(asked_level.name())
    }

    /// Whether a progress line may be drawn if standard error is a terminal.
    pub(in crate::cli) fn shows_progress(self) -> bool {
        !self.quiet && self.verbose == 0
    }

    /// Prints the result of a command on standard error, in the format of the log: as text, or a JSON
    /// object for each line. With `--quiet` it prints nothing. A closed standard error is ignored.
    pub(in crate::cli) fn print(self, lines: &str) -> io::Result<()> {
        match self.format {
            _ if self.quiet => Ok(()),
            LogFormat::Text => match io::stderr().write_all(lines.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                result => result,
            },
            LogFormat::Json => {
                lines.lines().for_each(|line| tracing::info!("{line}"));
                Ok(())
            }
        }
    }
}

/// Whether the environment declines colours (`NO_COLOR`, `TERM=dumb`).
fn colours_declined() -> bool {
    anstyle_query::no_color() || !anstyle_query::term_supports_ansi_color()
}

/// Whether output to a terminal may have colours.
pub(in crate::cli) fn has_colours() -> bool {
    !colours_declined()
}

/// The colours of clap's messages. On its own, clap would use them on a dumb terminal if `CI` is set.
pub(in crate::cli) fn colours() -> ColorChoice {
    if colours_declined() { ColorChoice::Never } else { ColorChoice::Auto }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_decide_the_log_level() {
        let of = |quiet, verbose| {
            let typed = VerbosityArgs { quiet, verbose, ..VerbosityArgs::default() };
            let verbosity = typed.verbosity(LogFormat::Text);
            (verbosity.filter(LogLevel::Warn).to_string(), verbosity.shows_progress())
        };
        let level = |level: &str, progress| (level.to_owned(), progress);
        assert_eq!(of(true, 0), level("error", false));
        assert_eq!(of(false, 1), level("debug", false));
        assert_eq!([of(false, 2), of(false, 9)], [level("trace", false), level("trace", false)]);
    }

    #[test]
    fn the_option_overrides_the_configured_format() {
        let of = |typed| {
            VerbosityArgs { log_format: typed, ..VerbosityArgs::default() }.verbosity(LogFormat::Json).format
        };
        assert_eq!((of(None), of(Some(LogFormat::Text))), (LogFormat::Json, LogFormat::Text));
    }
}
