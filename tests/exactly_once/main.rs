//! Exactly once, by killing: a run is ended by SIGKILL again and again, at random moments or at every point between two steps that are durable;
//! what its output holds in the end must be what a replay of the same feed gives, and hold nothing twice on the way.
//!
//! `cargo test --release --test exactly_once -- [OPTIONS]`, one command that prints each kill and the verdict:
//!
//! | option | |
//! |---|---|
//! | `--sink lines\|kafka` | a feed into a file (the default), or a topic into a topic, on a real broker |
//! | `--kills N` | SIGKILLs (default 6) |
//! | `--points` | each kill at a failpoint, in turn, instead of at random moments; needs the feature `failpoints` |
//! | `--seed N` | of the random moments (default 1) |
//! | `--feed FILE` | a feed; by default a generated one |
//! | `--processes` | one process, then three, then two |
//! | `--lose-state` | what was kept is deleted once, on the way |
//! | `--reconcile` | afterwards the threshold falls to 0.6, then the pipeline is `exact`, each killed on the way |
//! | `--pipeline NAME` | default minhash |
//!
//! Without options it is what `cargo test` runs: a small feed into a file.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics where it fails, and tells what it does"
)]
#![expect(clippy::disallowed_methods, reason = "a kill comes at a moment of real time")]

#[cfg(feature = "kafka")]
#[expect(dead_code, reason = "what the tests of topics need besides")]
#[path = "../kafka/broker.rs"]
mod broker;
#[cfg(feature = "kafka")]
mod kafka;
mod lines;
mod options;
mod place;

use std::process::ExitCode;

use options::{Options, Sink};

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            println!("{error}");
            return ExitCode::from(2);
        }
    };
    if options.passed_by {
        return ExitCode::SUCCESS;
    }
    let verdict = match options.sink {
        Sink::Lines => lines::run(&options),
        #[cfg(feature = "kafka")]
        Sink::Kafka => match kafka::run(&options) {
            Some(verdict) => verdict,
            None => return ExitCode::SUCCESS,
        },
        #[cfg(not(feature = "kafka"))]
        Sink::Kafka => {
            println!("SKIPPED exactly_once: built without the feature kafka");
            return ExitCode::SUCCESS;
        }
    };
    println!("{verdict}");
    println!(
        "test result: {}. {} passed; {} failed; 0 ignored",
        if verdict.is_good() { "ok" } else { "FAILED" },
        u8::from(verdict.is_good()),
        u8::from(!verdict.is_good())
    );
    if verdict.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
