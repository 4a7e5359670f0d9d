//! Takes the place of `monitor` in a build without the feature `monitor`. A deployment or a command line that
//! asks for a monitor is refused before this is called.

use std::convert::Infallible;
use std::net::SocketAddr;

use crate::config::{Deployment, Plan};
use crate::pipeline::RunJob;

/// A monitor that does not exist in this build.
pub(in crate::cli) struct Monitor(Infallible);

impl Monitor {
    pub(in crate::cli) fn address(&self) -> SocketAddr {
        match self.0 {}
    }
}

/// Starts no monitor.
pub(in crate::cli) fn start(_: &Plan, _: &Deployment, _: &mut RunJob) -> anyhow::Result<Option<Monitor>> {
    Ok(None)
}
