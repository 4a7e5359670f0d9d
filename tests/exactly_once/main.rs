//! Exactly once, tested by killing: a run is ended by SIGKILL again and again, at random moments or at every
//! failpoint between two durable steps. The final output must equal that of a replay of the same feed, and
//! must contain nothing twice at any time.
//!
//! `cargo test --release --test exactly_once -- [OPTIONS]` prints each kill and the verdict:
//!
//! | option | |
//! |---|---|
//! | `--sink lines\|sqlite\|kafka\|postgres` | one of the sinks below; default: all but `kafka` |
//! | `--kills N` | SIGKILLs (default 6) |
//! | `--points` | kills at each failpoint in turn, not at random moments; needs the feature `failpoints` |
//! | `--seed N` | seed of the random moments (default 1) |
//! | `--feed FILE` | a feed; default: a generated one |
//! | `--processes` | one process, then three, then two (files and topics) |
//! | `--lose-state` | deletes the stored state once, in between |
//! | `--reconcile` | then sets the threshold to 0.6, then the pipeline to `exact`, with kills during each |
//! | `--compacted` | of a topic: compacts the input, writes each document several times, adds partitions |
//! | `--pipeline NAME` | default minhash |
//! | `--reference` | with a frozen reference, of files; then `--reconcile` with another one, with kills |
//! | `--decisions first\|current` | writes decisions in place of deltas: `lines` (default with it) or `kafka` |
//!
//! | sink | from | to |
//! |---|---|---|
//! | `lines` | a feed | a file; of deltas without a reference also four files and a database beside it |
//! | `sqlite` | a feed, then a table | tables of a SQLite file |
//! | `postgres` | a feed, then a table | tables on a real server |
//! | `kafka` | a topic | a topic, on a real broker |
//!
//! Without options, as run by `cargo test`: a small feed into files, as deltas, as deltas beside a reference,
//! as deltas of several processes that are corrected, and as decisions, and the feed and a table into tables
//! of a SQLite file and, if one is installed, of a PostgreSQL server.
//! Anything missing is reported with SKIPPED.
//!
//! Where pairs are written, views and the notices of a watch list are too: in the transaction of a topic or
//! of tables, or to files of their own. In a transaction the rows of views are those of the pairs at each
//! look. Those in files and all notices are right in the end.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test panics on failure, and prints its progress"
)]
#![expect(clippy::disallowed_methods, reason = "a kill comes at a moment of real time")]

#[cfg(feature = "kafka")]
#[expect(dead_code, reason = "what the tests of topics need besides")]
#[path = "../kafka/broker.rs"]
mod broker;
#[cfg(feature = "kafka")]
#[path = "../kafka/committed.rs"]
mod committed;
#[cfg(feature = "kafka")]
mod compacted;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod databases;
mod decisions;
#[cfg(feature = "kafka")]
mod kafka;
mod lines;
mod options;
mod others;
mod place;
#[cfg(feature = "postgres")]
#[expect(dead_code, reason = "used by another test")]
mod server;
mod sides;
#[cfg(any(feature = "sqlite", feature = "postgres"))]
mod tables;

use std::process::ExitCode;

use dupflow::connectors::sinks::DecisionMode;
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
    let sinks = match options.sink {
        Some(sink) => vec![sink],
        None if options.decisions.is_some() => vec![Sink::Lines],
        None => vec![Sink::Lines, Sink::Sqlite, Sink::Postgres],
    };
    let mut verdicts: Vec<_> = sinks.into_iter().filter_map(|sink| run(sink, &options)).collect();
    if options.sink.is_none() && options.decisions.is_none() {
        let sink = Some(Sink::Lines);
        verdicts.extend(run(
            Sink::Lines,
            &Options { sink, reference: true, processes: false, ..options.clone() },
        ));
        verdicts
            .extend(run(Sink::Lines, &Options { sink, reconcile: true, processes: true, ..options.clone() }));
        for mode in DecisionMode::ALL {
            let decisions = Some(mode);
            verdicts.extend(run(Sink::Lines, &Options { decisions, ..options.clone() }));
        }
    }
    let failed = verdicts.iter().filter(|verdict| !verdict.is_good()).count();
    verdicts.iter().for_each(|verdict| println!("{verdict}"));
    println!(
        "test result: {}. {} passed; {failed} failed; 0 ignored",
        if failed == 0 { "ok" } else { "FAILED" },
        verdicts.len() - failed,
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The verdict on a sink; `None` if a requirement is missing.
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
