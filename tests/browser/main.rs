//! The page in a real browser.
//!
//! Bug classes: a page that works by itself and not beside a run; that stops after a restart and does not say
//! so; that takes an id for markup; that asks another host for something; that freezes once many deltas come;
//! a policy that refuses the page's own script.
//!
//! Needs Chromium; without one each test says SKIPPED. Nothing here is timed: what has to happen is waited
//! for, with a bound that only a defect reaches, and how long it took is printed.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod demo;
mod devtools;
mod flood;
mod hostile;
mod run;
mod stand_in;
mod watching;
mod wrong;

use std::time::Duration;

/// Only a defect takes so long.
pub(crate) const BOUND: Duration = Duration::from_secs(120);
