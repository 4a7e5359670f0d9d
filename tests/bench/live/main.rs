//! The live path, measured: `dupflow run` as users run it, between a real broker's topics.
//!
//! `cargo bench --bench live -- rate|delay|recovery|soak [OPTIONS]`
//!
//! | | what | options, with their defaults |
//! |---|---|---|
//! | `rate` | documents that a topic of 4 partitions holds, from start to the last commit: with and without state, beside `replay` of the same from a file and a consumer that only counts | `--documents 150000`, `--rounds 5` |
//! | `delay` | from produce to the delta being readable, at a steady rate | `--seconds 60`, `--mb-per-second` (half of what a first run reaches) |
//! | `recovery` | a state of so many documents: until it is restored, until it is live, bytes of each document, bytes written for each byte changed | `--documents 1000000` |
//! | `soak` | updates and deletes at a steady rate: a table, and plots of it | `--seconds 1800`, `--documents 20000`, `--per-second 200`, `--output target/live` |
//!
//! `rate` and `delay` take `--interval 100ms`, the time between two commits. All take `--broker HOST:PORT`;
//! without it a broker is started, as for the tests in `tests/kafka`. It shares the machine with the program
//! that is measured.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics where it fails, and prints")]
#![expect(clippy::disallowed_methods, reason = "a bench measures time, and waits for it")]

#[path = "../../kafka/broker.rs"]
#[expect(dead_code, reason = "the tests of topics use all of it")]
mod broker;
mod delay;
mod documents;
mod place;
mod rate;
mod recovery;
mod soak;

use std::process::ExitCode;

use place::{Options, Place};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let usage = "cargo bench --bench live -- rate|delay|recovery|soak [OPTIONS]";
    let Some((what, options)) = words.split_first() else {
        println!("{usage}");
        return ExitCode::SUCCESS;
    };
    let options = Options::parse(options);
    if what == "recovery" {
        recovery::run(&options);
        return ExitCode::SUCCESS;
    }
    let place = match Place::start(&options) {
        Ok(place) => place,
        Err(why) => {
            println!("SKIPPED live: {why}");
            return ExitCode::SUCCESS;
        }
    };
    match what.as_str() {
        "rate" => rate::run(&place, &options),
        "delay" => delay::run(&place, &options),
        "soak" => soak::run(&place, &options),
        other => panic!("found {other:?}, expected: {usage}"),
    }
    ExitCode::SUCCESS
}
