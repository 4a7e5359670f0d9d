//! Exactly once, by killing: a run is ended by SIGKILL again and again, at random moments or at every point
//! between two steps that are durable; what its output holds in the end must be what a replay of the same
//! feed gives, and hold nothing twice on the way.
//!
//! `cargo test --release --test exactly_once -- [OPTIONS]`, one command that prints each kill and the
//! verdict:
//!
//! | option | |
//! |---|---|
//! | `--sink lines\|sqlite\|kafka\|postgres` | a feed into a file; a feed, and then a table, into tables of a file; a topic into a topic, on a real broker; a feed and a table into tables, on a real server. By default all but `kafka` |
//! | `--kills N` | SIGKILLs (default 6) |
//! | `--points` | each kill at a failpoint, in turn, instead of at random moments; needs the feature `failpoints` |
//! | `--seed N` | of the random moments (default 1) |
//! | `--feed FILE` | a feed; by default a generated one |
//! | `--processes` | one process, then three, then two (files and topics) |
//! | `--lose-state` | what was kept is deleted once, on the way |
//! | `--reconcile` | afterwards the threshold falls to 0.6, then the pipeline is `exact`, each killed on the way |
//! | `--compacted` | of topics: the input is compacted all the time, each document is written several times, and partitions are added on the way |
//! | `--pipeline NAME` | default minhash |
//!
//! Without options it is what `cargo test` runs: a small feed into files, it and a table into tables of a
//! file, and of a server if one is installed. Nothing else has to be there: what is not is told with SKIPPED.

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
mod compacted;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod databases;
#[cfg(feature = "kafka")]
mod kafka;
mod lines;
mod options;
mod place;
#[cfg(feature = "postgres")]
mod server;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tables;

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
    let sinks =
        options.sink.map_or_else(|| vec![Sink::Lines, Sink::Sqlite, Sink::Postgres], |sink| vec![sink]);
    let verdicts: Vec<_> = sinks.into_iter().filter_map(|sink| run(sink, &options)).collect();
    let failed = verdicts.iter().filter(|verdict| !verdict.is_good()).count();
    verdicts.iter().for_each(|verdict| println!("{verdict}"));
    println!(
        "test result: {}. {} passed; {failed} failed; 0 ignored",
        if failed == 0 { "ok" } else { "FAILED" },
        verdicts.len() - failed,
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What came of a sink; nothing if what it needs is not here.
fn run(sink: Sink, options: &Options) -> Option<place::Verdict> {
    match sink {
        Sink::Lines => Some(lines::run(options)),
        #[cfg(feature = "kafka")]
        Sink::Kafka => kafka::run(options),
        #[cfg(feature = "sqlite")]
        Sink::Sqlite => {
            let folder = tempfile::tempdir().unwrap();
            Some(tables::run(options, &databases::Sqlite { folder }))
        }
        #[cfg(feature = "postgres")]
        Sink::Postgres => match server::Server::start() {
            Ok(server) => Some(tables::run(options, &server)),
            Err(why) => {
                println!("SKIPPED exactly_once in PostgreSQL: {why}");
                None
            }
        },
        #[cfg(not(all(feature = "kafka", feature = "sqlite", feature = "postgres")))]
        other => {
            println!("SKIPPED exactly_once: built without the feature `{}`", other.name());
            None
        }
    }
}
