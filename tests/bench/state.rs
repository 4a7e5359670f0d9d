//! Stored state: publishing epochs of 5,000 changed documents of about 300 bytes, and reading a state back;
//! in a folder, synced.
//!
//! With `DUPFLOW_STATE_DOCUMENTS=1000000` it instead loads this number of documents, replaces each of them
//! ten times, and prints rates, bytes written and stored, and the time to read them back.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]

use std::fs;
use std::path::Path;
use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::state::{Folder, StateError, StatePosition, StoredState};
use dupflow::core::doc::changes::Changes;
use dupflow::core::hash::mix;
use dupflow::core::time::Progress;

const EPOCH: u64 = 5_000;
const VALUE_BYTES: usize = 254;

fn saved(epoch: u64) -> StatePosition {
    let progress = Progress { epoch, ..Progress::default() };
    StatePosition { mark: Mark { progress, ..Mark::default() }, ..StatePosition::default() }
}

/// Changes of the documents with these numbers; the values depend on the epoch.
fn changes(epoch: u64, numbers: impl Iterator<Item = u64>) -> Changes {
    let mut changes = Changes::default();
    for number in numbers {
        let id = format!("https://www.example.com/articles/{number:018}");
        changes.put_with(id.as_bytes(), |bytes| {
            let words = (0..).map(|word| mix(epoch << 40 ^ number << 8 ^ word));
            let value: Vec<u8> = words.flat_map(u64::to_le_bytes).take(VALUE_BYTES).collect();
            bytes.extend(value);
        });
    }
    changes
}

fn read(state: &mut StoredState) -> u64 {
    let snapshot = state.latest(u64::MAX).expect("it is whole").expect("it was published");
    let mut documents = 0;
    let each = |slice: Changes| {
        documents += slice.iter().count() as u64;
        Ok::<_, StateError>(())
    };
    snapshot.read(1 << 20, each).expect("it is whole");
    documents
}

fn state(c: &mut Criterion) {
    if let Some(documents) = std::env::var("DUPFLOW_STATE_DOCUMENTS").ok().and_then(|n| n.parse().ok()) {
        return once(documents);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let mut owner = StoredState::open(Box::new(Folder::new(folder.path()))).expect("it is new");
    let documents = 100_000;
    let mut epoch = 0;
    let mut group = c.benchmark_group("state");
    group.sample_size(20).throughput(Throughput::Elements(EPOCH));
    group.bench_function("publish 5,000 of 100,000", |b| {
        b.iter(|| {
            epoch += 1;
            let numbers = (0..EPOCH).map(|n| (epoch * EPOCH + n) % documents);
            owner.publish(&saved(epoch), &[changes(epoch, numbers)]).expect("there is room");
        });
    });
    for later in epoch + 1..=epoch + documents / EPOCH {
        let numbers = (0..EPOCH).map(|n| (later * EPOCH + n) % documents);
        owner.publish(&saved(later), &[changes(later, numbers)]).expect("there is room");
    }
    group.throughput(Throughput::Elements(documents));
    group.bench_function("read 100,000", |b| b.iter(|| assert_eq!(read(&mut owner), documents)));
}

/// Bytes that this process has written so far.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let bytes = io.lines().find_map(|line| line.strip_prefix("wchar: ")?.parse().ok());
    bytes.unwrap_or(0)
}

/// CPU seconds of this process so far, all threads.
fn cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat.split(' ').skip(13).take(2).filter_map(|field| field.parse().ok()).collect();
    fields.iter().sum::<f64>() / 100.0
}

/// A line of `/proc/self/status`, in MB.
fn memory(line: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let found =
        status.lines().find_map(|found| found.strip_prefix(line)?.trim().strip_suffix(" kB")?.parse().ok());
    found.map_or(0.0, |kib: f64| kib * 1024.0 / 1e6)
}

fn on_disk(folder: &Path) -> f64 {
    let files = fs::read_dir(folder).expect("it is there").flatten();
    let bytes: u64 = files.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum();
    bytes as f64 / 1e6
}

#[expect(clippy::print_stdout, clippy::disallowed_methods, reason = "a measurement that is printed")]
fn once(documents: u64) {
    let folder = tempfile::tempdir_in(std::env::var_os("DUPFLOW_STATE_FOLDER").unwrap_or("/tmp".into()))
        .expect("a folder");
    let store = || Box::new(Folder::new(folder.path()));
    let mut owner = StoredState::open(store()).expect("it is new");
    let mut epoch = 0;
    let one = changes(1, 0..1).len_bytes() as f64;
    for round in 0..=10 {
        let (started, before, cpu_before) = (Instant::now(), written(), cpu());
        let mut publishes = Vec::new();
        let (mut disk, mut making) = (0.0_f64, 0.0);
        for first in (0..documents).step_by(usize::try_from(EPOCH).expect("it is small")) {
            epoch += 1;
            let made = Instant::now();
            // Another order in each round: multiples of a factor without a common divisor with the number of
            // documents (a power of ten) reach all of them.
            let number = |n: u64| (n.wrapping_mul(1_000_003 * (10 * round + 1))) % documents;
            let buffer = changes(epoch, (first..documents.min(first + EPOCH)).map(number));
            let start = Instant::now();
            making += (start - made).as_secs_f64();
            owner.publish(&saved(epoch), &[buffer]).expect("there is room");
            publishes.push(start.elapsed().as_secs_f64() * 1e3);
            if epoch % 10 == 0 {
                disk = disk.max(on_disk(folder.path()));
            }
        }
        publishes.sort_by(f64::total_cmp);
        let seconds = started.elapsed().as_secs_f64() - making;
        let at = |percent: usize| publishes[(publishes.len() - 1) * percent / 100];
        println!(
            "round {round}: {:.0} documents/s, CPU {:.2} s, written {:.2} of logical, publish p50 {:.1} p99 \
            {:.1} max {:.1} ms, \
             disk at most {disk:.0} MB of {:.0} alive",
            documents as f64 / seconds,
            cpu() - cpu_before - making,
            (written() - before) as f64 / (documents as f64 * one),
            at(50),
            at(99),
            at(100),
            documents as f64 * one / 1e6,
        );
    }
    drop(owner);
    println!("peak memory {:.0} MB, of it anonymous now {:.0}", memory("VmHWM:"), memory("RssAnon:"));
    for _ in 0..3 {
        let (started, cpu_before) = (Instant::now(), cpu());
        let mut reader = StoredState::open(store()).expect("it is whole");
        assert_eq!(read(&mut reader), documents);
        println!(
            "read back in {:.2} s, CPU {:.2} s, disk {:.0} MB, anonymous {:.0} MB",
            started.elapsed().as_secs_f64(),
            cpu() - cpu_before,
            on_disk(folder.path()),
            memory("RssAnon:"),
        );
    }
    let started = Instant::now();
    let mut last = StoredState::open(store()).expect("it is whole");
    last.compact().expect("there is room");
    println!("compacted in {:.2} s, disk {:.0} MB", started.elapsed().as_secs_f64(), on_disk(folder.path()));
}

criterion_group!(benches, state);
criterion_main!(benches);
