//! Topics as source and as sink, on a real broker.
//!
//! The tests use the broker of `KAFKA_BOOTSTRAP`, or one that `broker.sh` starts for them. Where there is
//! none, all tests are skipped with a message. They cover what only a broker can show: fencing, transaction
//! timeouts, aborted records, retention, topics deleted and created again.
//!
//! No test sleeps for a fixed time: each waits for a condition, with a bound that only a failure reaches.
//! Since tests mostly wait, several run at once, each with its own topics. Those that kill the broker run one
//! by one beside them, on a broker of their own.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics on failure, and prints its progress"
)]
#![expect(clippy::disallowed_methods, reason = "every wait has a bound, and measurements take the time")]
#![expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]

mod broker;
mod changed;
mod clusters;
mod commands;
mod decisions;
mod faults;
mod features;
mod lost;
mod measure;
mod moving;
mod operation;
mod read;
mod rules;
mod run;
mod sides;
mod sink;
mod source;
mod tls;
mod upgrade;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use broker::Broker;

/// Name and function of a test.
type Test = (&'static str, fn(&Broker));

/// The tests that kill the broker; no other test may.
const KILLING: [&str; 7] = [
    "source::the_broker_restarts",
    "sink::the_broker_restarts",
    "operation::the_backlog_is_unknown_without_a_broker",
    "operation::an_unreachable_broker_is_waited_for",
    "faults::the_broker_is_down_longer_than_a_transaction",
    "faults::the_broker_of_an_output_is_away",
    "lost::a_broker_is_restored_from_a_copy",
];

/// Number of tests that run at the same time.
const AT_ONCE: usize = 6;

/// Runs tests, up to `at_once` at the same time. Returns the names of those that failed.
fn run_all(tests: &[Test], at_once: usize, broker: &Broker) -> Vec<&'static str> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut failed = Vec::new();
        while let Some((name, test)) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ended = catch_unwind(AssertUnwindSafe(|| test(broker)));
            println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
            failed.extend(ended.is_err().then_some(*name));
        }
        failed
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|typed| !typed.starts_with('-')).collect();
    // Measurements only run when named.
    let measures = wanted.iter().any(|part| part.starts_with("measure"));
    let tests: Vec<Test> = if measures {
        measure::TESTS.to_vec()
    } else {
        [
            source::TESTS,
            sink::TESTS,
            sides::TESTS,
            clusters::TESTS,
            commands::TESTS,
            decisions::TESTS,
            features::TESTS,
            operation::TESTS,
            faults::TESTS,
            changed::TESTS,
            lost::TESTS,
            rules::TESTS,
            moving::TESTS,
            tls::TESTS,
            upgrade::TESTS,
        ]
        .concat()
    };
    let chosen =
        |(name, _): &&Test| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let chosen: Vec<Test> = tests.iter().filter(chosen).copied().collect();
    if std::env::args().any(|typed| typed == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let (killing, beside): (Vec<Test>, Vec<Test>) =
        chosen.iter().partition(|(name, _)| KILLING.contains(name));
    let brokers = Broker::start().and_then(|broker| Ok((broker, Broker::start()?)));
    let (broker, mortal) = match brokers {
        Ok(brokers) => brokers,
        Err(why) => {
            println!("SKIPPED kafka: {} tests: {why}", chosen.len());
            return ExitCode::SUCCESS;
        }
    };
    println!("\nrunning {} tests against {}", chosen.len(), broker.address());
    broker.lives_on();
    // Measurements run one at a time.
    let at_once = if measures { 1 } else { AT_ONCE };
    let failed: Vec<&str> = thread::scope(|scope| {
        let killing = scope.spawn(|| run_all(&killing, 1, &mortal));
        let mut failed = run_all(&beside, at_once, &broker);
        failed.extend(killing.join().unwrap());
        failed
    });
    failed.iter().for_each(|name| println!("failed: {name}"));
    let result = if failed.is_empty() { "ok" } else { "FAILED" };
    println!("\ntest result: {result}. {} passed; {} failed", chosen.len() - failed.len(), failed.len());
    // Ends even if a client hangs on drop.
    drop((broker, mortal));
    std::process::exit(i32::from(!failed.is_empty()))
}
