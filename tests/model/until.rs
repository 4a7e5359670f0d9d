//! Events after a time, and the times of epochs.
//!
//! A run up to a time has the deltas, causes included, of a run whose input lacks the later events, with
//! every rule of retention. Each closed epoch has the greatest time of the events that were applied in it.
//!
//! Bug classes: a later event that moves the clock of retention, takes a slot or ends an earlier one of its
//! id; an event without a time that is left out; a time of another epoch.

use dupflow::core::doc::retention::{Retention, RetentionClock};
use dupflow::core::pair::Delta;
use dupflow::core::run::metrics::Counter;
use dupflow::core::time::{Epoch, UnixTime};
use dupflow::engine::dataflow::ClosedEpoch;
use proptest::option;

use crate::history::{check, runs, sizes};
use crate::pipelines::{CROWDED, plan};
use crate::retention::{cut, rules, stamped};
use crate::script::{Epoched, Past, Stamped, closed};

#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn deltas(closed: &[ClosedEpoch]) -> Vec<(Epoch, Delta)> {
    let of_epoch = |closed: &ClosedEpoch| {
        let epoch = closed.progress.epoch;
        closed.deltas.iter().map(move |delta| (epoch, delta.clone())).collect::<Vec<_>>()
    };
    closed.iter().flat_map(of_epoch).collect()
}

#[test]
fn later_events_are_as_if_they_were_not_in_the_input() {
    let plan = plan(CROWDED);
    let until = option::weighted(0.9, 980.0..1200.0f64);
    check(150, (stamped(), rules(), until, sizes(), runs()), |(events, retention, until, sizes, run)| {
        let stages = || {
            let mut stages = dupflow::pipeline::stages(&plan, false);
            stages.retention = Retention { clock: RetentionClock::Event, ..retention };
            stages.times = true;
            stages
        };
        let mut limited = stages();
        limited.until = until.and_then(UnixTime::new);
        let epochs = cut(&events, &sizes, false);
        let is_applied = |event: &Stamped| event.ts.zip(until).is_none_or(|(ts, until)| ts <= until);
        let applied: Vec<_> = (epochs.iter())
            .map(|epoch| Epoched {
                events: epoch.events.iter().filter(|event| is_applied(event)).cloned().collect(),
                at: epoch.at,
            })
            .collect();
        let found = closed(&limited, &epochs, &Past::default(), run);
        let expected = closed(&stages(), &applied, &Past::default(), run);
        assert_eq!(deltas(&found), deltas(&expected), "until {until:?}, {run:?}");
        for closed in &found {
            let epoch = usize::try_from(closed.progress.epoch).unwrap() - 1;
            let times = applied[epoch].events.iter().filter_map(|event| event.ts);
            assert_eq!(closed.newest.map(UnixTime::seconds), times.reduce(f64::max), "epoch {epoch}");
        }
        let left_out = events.iter().filter(|event| !is_applied(event)).count() as u64;
        assert_eq!(limited.observers.metrics.get(Counter::AfterUntil), left_out);
    });
}
