//! Takes the place of `watch` in a build without the feature `monitor`. A deployment or a command line that asks
//! for a monitor is refused before this is called.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::config::{Deployment, Plan};
use crate::pipeline::RunJob;

/// A monitor that does not exist in this build.
pub(super) struct Monitor(Infallible);

impl Monitor {
    pub(super) fn address(&self) -> SocketAddr {
        match self.0 {}
    }
}

/// Starts no monitor.
pub(super) fn start(_: &Plan, _: &Deployment, _: &mut RunJob) -> anyhow::Result<Option<Monitor>> {
    Ok(None)
}
