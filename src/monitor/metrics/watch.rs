//! The metrics of the watch list and its web hook; no samples without a list, or without a hook.

use super::MetricScrape;
use super::encoder::{MetricKind, SampleWriter};
use super::families::{Family, family, gauge};
use dupflow_core::run::watch::HookState;

/// Every metric of watches.
pub(super) fn watches() -> Vec<Family> {
    let counter = |name, help, of: fn(&HookState) -> u64| {
        family(name, MetricKind::Counter, None, help, move |s, out| hook(s, out, of))
    };
    vec![
        gauge("watches", "Watches of the list.", |s, out| {
            if let Some(watch) = &s.watch {
                out.one(watch.watches);
            }
        }),
        counter("hook_delivered_total", "Notices that the web hook's receiver has accepted.", |hook| {
            hook.delivered
        }),
        counter(
            "hook_refused_total",
            "Notices that the web hook's receiver has refused; they are in its dead letters.",
            |hook| hook.refused,
        ),
        counter("hook_retries_total", "Attempts of the web hook that failed and are made again.", |hook| {
            hook.retries
        }),
        gauge("hook_undelivered", "Notices that the web hook has not delivered yet.", |s, out| {
            hook(s, out, |hook| hook.undelivered);
        }),
        gauge(
            "hook_oldest_seconds",
            "Age of the oldest notice that the web hook has not delivered yet, since this run has known of it; 0 \
                if there is none.",
            |s, out| {
                if let Some(hook) = s.watch.as_ref().and_then(|watch| watch.hook.as_ref()) {
                    out.one(hook.oldest_seconds);
                }
            },
        ),
    ]
}

fn hook(scrape: &MetricScrape, out: &mut SampleWriter<'_>, of: impl Fn(&HookState) -> u64) {
    if let Some(hook) = scrape.watch.as_ref().and_then(|watch| watch.hook.as_ref()) {
        out.one(of(hook));
    }
}
