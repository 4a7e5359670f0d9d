//! The table `[processes]` of a deployment file.

use std::time::Duration;

use super::values::{path, seconds, secret, secret_in_file};
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_connectors::credential::Credential;

/// How the processes of one run find each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessConfig {
    /// The shared secret; `None`: any process that can connect takes part.
    pub secret: Option<Credential>,
    /// How long a process waits for the others at the start.
    pub connect: Duration,
    /// How long a process may be silent before it counts as lost.
    pub lost: Duration,
}

impl Default for ProcessConfig {
    fn default() -> Self {
        Self { secret: None, connect: Duration::from_secs(60), lost: Duration::from_secs(10) }
    }
}

/// Reads the table `[processes]`: how processes find each other.
pub(super) fn processes(settings: &mut FileSettings) -> ProcessConfig {
    let default = ProcessConfig::default();
    let file = settings.read("processes.secret_file", path).filter(|path| !path.as_os_str().is_empty());
    let typed = secret(settings, "processes.secret").filter(|secret| !secret.reveal().is_empty());
    if file.is_some() && typed.is_some() {
        let what = "processes.secret and processes.secret_file are both set";
        settings.problem("processes.secret_file", ProblemKind::Contradiction(what.to_owned()));
    }
    ProcessConfig {
        secret: typed.or_else(|| secret_in_file(settings, "processes.secret_file")),
        connect: seconds(settings, "processes.connect_seconds", 1, default.connect.as_secs()),
        lost: seconds(settings, "processes.lost_seconds", 1, default.lost.as_secs()),
    }
}
