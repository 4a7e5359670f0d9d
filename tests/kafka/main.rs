//! Topics as source and as sink, against a real broker.
//!
//! The broker is that of `KAFKA_BOOTSTRAP`, or one that `broker.sh` starts for the time of the tests. Where there is none, all of them
//! are skipped, and say so. What a broker alone can show is here: fencing, transactions that time out, aborted records, retention,
//! topics that are deleted and made anew.
//!
//! Nothing waits for a time: each waits for what it waits for, with a bound that only a failure meets.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics where it fails, and tells")]
#![expect(clippy::disallowed_methods, reason = "every wait has a bound, and measurements take the time")]
#![expect(clippy::shadow_unrelated, reason = "a test is a row of small cases")]

mod broker;
mod changed;
mod clusters;
mod commands;
mod faults;
mod measure;
mod moving;
mod operation;
mod read;
mod run;
mod sink;
mod source;
mod tls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use broker::Broker;

/// A test and its name.
type Test = (&'static str, fn(&Broker));

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|typed| !typed.starts_with('-')).collect();
    // Measurements are run by name only.
    let measures = wanted.iter().any(|part| part.starts_with("measure"));
    let tests: Vec<Test> = if measures {
        measure::TESTS.to_vec()
    } else {
        [
            source::TESTS,
            sink::TESTS,
            clusters::TESTS,
            commands::TESTS,
            operation::TESTS,
            faults::TESTS,
            changed::TESTS,
            moving::TESTS,
            tls::TESTS,
        ]
        .concat()
    };
    let chosen =
        |(name, _): &&Test| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let chosen: Vec<&Test> = tests.iter().filter(chosen).collect();
    if std::env::args().any(|typed| typed == "--list") {
        tests.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let broker = match Broker::start() {
        Ok(broker) => broker,
        Err(why) => {
            println!("SKIPPED kafka: {} tests: {why}", chosen.len());
            return ExitCode::SUCCESS;
        }
    };
    println!("\nrunning {} tests against {}", chosen.len(), broker.address());
    let mut failed: Vec<&str> = Vec::new();
    for (name, test) in chosen {
        let ended = catch_unwind(AssertUnwindSafe(|| test(&broker)));
        println!("test {name} ... {}", if ended.is_ok() { "ok" } else { "FAILED" });
        failed.extend(ended.is_err().then_some(*name));
    }
    println!("\n{}", if failed.is_empty() { "all ok".to_owned() } else { format!("failed: {failed:?}") });
    // A client that hangs in its end must not keep the tests from theirs.
    drop(broker);
    std::process::exit(i32::from(!failed.is_empty()))
}
