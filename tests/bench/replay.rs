//! Replays one feed with the default pipeline, and prints rates, times and memory.
//!
//! `cargo bench --bench replay -- [FEED] [PIPELINE] [WORKERS]`: a feed file, or a number of documents to
//! generate (default 100,000); `minhash`; as many workers as cores. The floor is the time to read the file
//! and to count its newlines.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics where it fails, and prints")]

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use dupflow::config::Plan;
use dupflow::connectors::formats::InputLayout;
use dupflow::connectors::formats::feed;
use dupflow::connectors::inputs::{Files, Input};
use dupflow::connectors::intake::EpochRule;
use dupflow::lab::generate::{Generator, Params};
use dupflow::pipeline::{self, RunJob};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn generate(documents: u64, folder: &tempfile::TempDir) -> PathBuf {
    let path = folder.path().join("feed.jsonl");
    let mut out = BufWriter::new(File::create(&path).unwrap());
    Generator::new(Params { documents, ..Params::default() })
        .for_each(|r| feed::write(&mut out, &r).unwrap());
    out.flush().unwrap();
    path
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn floor(path: &PathBuf) -> (u64, f64) {
    let start = Instant::now();
    let (mut file, mut buffer, mut bytes, mut lines) = (File::open(path).unwrap(), vec![0; 1 << 18], 0, 0);
    loop {
        let read = file.read(&mut buffer).unwrap();
        if read == 0 {
            break;
        }
        bytes += read as u64;
        lines += buffer[..read].iter().map(|b| u64::from(*b == b'\n')).sum::<u64>();
    }
    assert!(lines > 0);
    (bytes, start.elapsed().as_secs_f64())
}

fn main() {
    let mut args = std::env::args().skip(1).filter(|arg| arg != "--bench");
    let folder = tempfile::tempdir().unwrap();
    let feed = args.next().unwrap_or_else(|| "100000".to_owned());
    let path = feed.parse().map_or_else(|_| PathBuf::from(&feed), |documents| generate(documents, &folder));
    let plan = Plan::load(&args.next().unwrap_or_else(|| "minhash".to_owned()), &[]).unwrap();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = args.next().map_or(cores, |n| n.parse().unwrap());

    // Twice: the first reading brings the file into memory.
    floor(&path);
    let (bytes, floor) = floor(&path);
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::default(), plan.scheme.text.field_names());
    let s = pipeline::run(RunJob::new(&plan, workers, Box::new(files), pipeline::nowhere())).unwrap();

    let per = |amount: u64, of: u64| amount as f64 / of.max(1) as f64;
    println!(
        "pipeline {}, {workers} workers, {} events, {} documents alive",
        plan.name, s.events, s.documents
    );
    println!("{:>12.0} events/s", s.events as f64 / s.seconds);
    println!(
        "{:>12.1} MB/s of input; reading and counting newlines alone: {:.0} MB/s",
        bytes as f64 / 1e6 / s.seconds,
        bytes as f64 / 1e6 / floor
    );
    println!("{:>12.3} candidates an event", per(s.candidates, s.events));
    let total: u64 = s.compared_by_stage.iter().sum();
    for (look, decided) in s.compared_by_stage.iter().enumerate() {
        let name = if look == 0 { "first words in the blocks".to_owned() } else { format!("look {look}") };
        println!("{:>11.2}% of candidates decided by {name}", 100.0 * per(*decided, total));
    }
    println!(
        "{:>12.1} components read of a compared pair",
        per(s.components_compared, total - s.compared_by_stage[0])
    );
    println!(
        "{:>12.0} bytes a document at most, all memory of the process",
        per(s.peak_rss_bytes, s.documents)
    );
    let epochs = s.epoch_milliseconds;
    println!(
        "{:>12.2} ms median epoch of 1,000 events, {:.2} the 99th percentile (four in flight)",
        epochs.p50, epochs.p99
    );
}
