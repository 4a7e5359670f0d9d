//! The table `[logging]` of a deployment file.

use crate::config::settings::FileSettings;

/// The least severe messages that are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogLevel {
    /// Failures.
    Error,
    /// Also what may need attention.
    Warn,
    /// Also what the run does.
    #[default]
    Info,
    /// Also how it does it.
    Debug,
    /// Also every single step.
    Trace,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines of text.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogLevel {
    /// The name in a deployment file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// The least severe messages that are logged.
pub(super) fn level(settings: &mut FileSettings) -> LogLevel {
    let levels = [LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace]
        .map(|level| (level.name(), level));
    settings.choose("logging.level", &levels, &[]).unwrap_or_default()
}

/// How log messages are written.
pub(super) fn format(settings: &mut FileSettings) -> LogFormat {
    let formats = [("text", LogFormat::Text), ("json", LogFormat::Json)];
    settings.choose("logging.format", &formats, &[]).unwrap_or_default()
}
