//! The settings of a web hook.

use std::path::PathBuf;
use std::time::Duration;

use crate::credential::Credential;

/// Where notices are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookSettings {
    /// The receiver: `http://` or `https://`.
    pub url: String,
    /// The key of signatures.
    pub secret: Credential,
    /// How long an attempt may take, from the connection to the end of the answer.
    pub timeout: Duration,
    /// How long an orderly stop of the run may take. Deliveries get half of it.
    pub shutdown: Duration,
    /// The file of notices.
    pub notices: PathBuf,
    /// The file of the cursor.
    pub cursor: PathBuf,
    /// The file of notices that the receiver has refused.
    pub dead_letter: PathBuf,
}
