//! How loud a command is: what it says on standard error beside its errors, and in which form.
//!
//! Two options of every command and `--log-format` -> the log, the summary and the line of progress. What is
//! typed counts before what `RUST_LOG` says, and that before a deployment file. Errors are always said, and
//! data on standard output is never touched.

use std::io::{self, IsTerminal, Write};

use clap::ColorChoice;
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogLevel};

/// What is typed of it.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct VoiceArgs {
    /// How messages are written on standard error [default: text; of "run", what its deployment file says].
    #[arg(long, global = true, value_enum, value_name = "FORMAT")]
    pub log_format: Option<LogFormat>,

    /// Say nothing on standard error but errors: no warnings, no summary, no progress.
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Log how things are done too; -vv every step. The line of progress gives way to the log.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// How loud a command is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voice {
    pub(super) format: LogFormat,
    quiet: bool,
    verbose: u8,
}

impl VoiceArgs {
    /// The voice, in this form unless another one is typed.
    pub(super) fn voice(self, format: LogFormat) -> Voice {
        let Self { log_format, quiet, verbose } = self;
        Voice { format: log_format.unwrap_or(format), quiet, verbose }
    }
}

impl Voice {
    /// Sends messages to standard error: those that were typed for, else those that `RUST_LOG` chooses, else
    /// those of `level` and more severe ones.
    pub(super) fn start_logging(self, level: LogLevel) {
        let messages = tracing_subscriber::fmt()
            .with_env_filter(self.filter(level))
            .with_writer(io::stderr)
            .with_target(false);
        // It would tell on standard error that standard error cannot be written, and panic.
        let messages = messages.log_internal_errors(false);
        // A second call in one process, as in tests, keeps the first.
        drop(match self.format {
            LogFormat::Text => {
                messages.compact().with_ansi(io::stderr().is_terminal() && !colours_declined()).try_init()
            }
            LogFormat::Json => messages.json().flatten_event(true).try_init(),
        });
    }

    fn filter(self, level: LogLevel) -> EnvFilter {
        let typed = match (self.quiet, self.verbose) {
            (true, _) => LogLevel::Error,
            (false, 0) => {
                return EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level.name()));
            }
            (false, 1) => LogLevel::Debug,
            (false, _) => LogLevel::Trace,
        };
        EnvFilter::new(typed.name())
    }

    /// Whether a line of progress may be drawn, where standard error is a terminal.
    pub(super) fn shows_progress(self) -> bool {
        !self.quiet && self.verbose == 0
    }

    /// Tells on standard error what a command came to, as its messages are written. Nobody has to read it.
    pub(super) fn tell(self, lines: &str) -> io::Result<()> {
        match self.format {
            _ if self.quiet => Ok(()),
            LogFormat::Text => match io::stderr().write_all(lines.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                told => told,
            },
            LogFormat::Json => {
                lines.lines().for_each(|line| tracing::info!("{line}"));
                Ok(())
            }
        }
    }
}

/// Whether colours are declined (`NO_COLOR`, `TERM=dumb`).
fn colours_declined() -> bool {
    anstyle_query::no_color() || !anstyle_query::term_supports_ansi_color()
}

/// Colours of clap's messages, which it alone would show on a dumb terminal where the variable `CI` is set.
pub(super) fn colours() -> ColorChoice {
    if colours_declined() { ColorChoice::Never } else { ColorChoice::Auto }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_decides_the_level() {
        let of = |quiet, verbose| {
            let typed = VoiceArgs { log_format: None, quiet, verbose };
            let voice = typed.voice(LogFormat::Text);
            (voice.filter(LogLevel::Warn).to_string(), voice.shows_progress())
        };
        let level = |level: &str, progress| (level.to_owned(), progress);
        assert_eq!(of(true, 0), level("error", false));
        assert_eq!(of(false, 1), level("debug", false));
        assert_eq!([of(false, 2), of(false, 9)], [level("trace", false), level("trace", false)]);
    }

    #[test]
    fn the_form_is_what_is_typed_before_what_is_configured() {
        let of =
            |typed| VoiceArgs { log_format: typed, ..VoiceArgs::default() }.voice(LogFormat::Json).format;
        assert_eq!((of(None), of(Some(LogFormat::Text))), (LogFormat::Json, LogFormat::Text));
    }
}
