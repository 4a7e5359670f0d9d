//! The page in a real browser.
//!
//! Bug classes: a page that works with made-up data and not with a run; that stops after a restart without a
//! notice; that treats an id as markup; that sends requests to another host; that freezes under many deltas;
//! a policy that refuses the page's own script; a view that looks empty, new or exact and is not.
//!
//! The tests need Chromium; without it each prints SKIPPED. No test asserts a duration: it waits for events,
//! with a bound that only a defect reaches, and prints how long that took.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod demo;
mod devtools;
mod flood;
mod hostile;
mod points;
mod report;
mod run;
mod stand_in;
mod tables;
mod watching;
mod wrong;

use std::time::Duration;

/// Number of entries of the navigation that are visible.
pub(crate) const ENTRIES: &str =
    "[...document.querySelectorAll('header nav a')].filter((one) => one.checkVisibility()).length";

/// A timeout that only a defect reaches.
pub(crate) const BOUND: Duration = Duration::from_secs(120);
