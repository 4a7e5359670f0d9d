//! Updates and deletes at a steady rate for a long time: memory, disk and delay should stay constant.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use dupflow::core::hash::mix;
use dupflow::lab::Plot;
use dupflow::lab::plot::{Axis, Series};

use crate::broker::Broker;
use crate::documents::{Documents, id, partition};
use crate::place::{Options, Place, Run};

/// Number of words of a document, 2 KB.
const WORDS: u64 = 360;

/// Seconds between two samples.
const EVERY: u64 = 5;

/// A sample of the run.
#[derive(Clone, Copy)]
struct Sample {
    seconds: f64,
    resident: f64,
    state: f64,
    closed: f64,
    durable: f64,
    documents: f64,
    lag: f64,
}

/// A value of a sample.
type Value = fn(&Sample) -> f64;

const COLUMNS: &str =
    "seconds,resident_bytes,state_bytes,closed_epoch,durable_epoch,in_flight_epochs,documents,lag_records";

impl Sample {
    /// Takes a sample; `produced` is the number of records written so far.
    fn take(run: &Run, state: &Path, begun: Instant, produced: u64) -> Self {
        let metrics = run.metrics();
        let of = |name: &str| metrics.get(&format!("dupflow_{name}")).copied().unwrap_or(f64::NAN);
        #[expect(clippy::cast_precision_loss, reason = "sizes for people")]
        let (state, produced) = (size(state) as f64, produced as f64);
        Self {
            seconds: begun.elapsed().as_secs_f64(),
            resident: of("resident_bytes"),
            state,
            closed: of("closed_epoch"),
            durable: of("durable_epoch"),
            documents: of("documents"),
            lag: produced - of("events_total"),
        }
    }

    fn in_flight(&self) -> f64 {
        self.closed - self.durable
    }

    fn row(&self) -> String {
        let Self { seconds, resident, state, closed, durable, documents, lag } = self;
        let in_flight = self.in_flight();
        format!("{seconds:.1},{resident},{state},{closed},{durable},{in_flight},{documents},{lag}")
    }
}

/// Bytes of all files in a folder.
fn size(folder: &Path) -> u64 {
    let Ok(files) = fs::read_dir(folder) else { return 0 };
    let of = |file: fs::DirEntry| {
        if file.path().is_dir() { size(&file.path()) } else { file.metadata().map_or(0, |found| found.len()) }
    };
    files.filter_map(|file| file.ok().map(of)).sum()
}

/// Plots the samples.
fn plots(folder: &Path, samples: &[Sample]) {
    let minutes = "minutes";
    let series = |name: &str, of: &dyn Fn(&Sample) -> f64| {
        Series::new(name, samples.iter().map(|sample| (sample.seconds / 60.0, of(sample))))
    };
    let mib = f64::from(1 << 20);
    let drawn = [
        (
            "soak-memory",
            "Updates and deletes at a steady rate: memory and state",
            "MiB",
            vec![
                series("resident memory", &|s| s.resident / mib),
                series("state on disk", &|s| s.state / mib),
            ],
        ),
        (
            "soak-epochs",
            "Updates and deletes at a steady rate: what waits",
            "epochs, records",
            vec![
                series("epochs closed and not durable", &Sample::in_flight),
                series("records not yet read", &|s| s.lag),
            ],
        ),
    ];
    for (name, title, up, lines) in drawn {
        let (x, y) = (Axis::linear(minutes), Axis::linear(up));
        let plot = Plot::new(name, title, x, y, lines);
        fs::write(folder.join(format!("{name}.svg")), plot.svg().unwrap()).unwrap();
    }
}

/// Writes one event to the topic: an insert for a document that is not alive; for a live one an update, or in
/// one case of five a delete.
fn step(place: &mut Writing<'_>, produced: u64) {
    let number = mix(produced) % place.documents;
    let version = &mut place.versions[usize::try_from(number).unwrap()];
    let ends = *version > 0 && mix(produced ^ number << 32).is_multiple_of(5);
    let key = id(number);
    if ends {
        *version = 0;
        place.writer.put(place.topic, partition(number), Some(&key), None);
        return;
    }
    *version = produced;
    place.texts.text(number, produced, &mut place.text);
    place.writer.put(place.topic, partition(number), Some(&key), Some(place.text.as_bytes()));
}

/// The topic, its writer, and the documents that are written.
struct Writing<'w> {
    topic: &'w str,
    writer: &'w crate::broker::Writer,
    texts: Documents,
    text: String,
    documents: u64,
    /// The present version of each document; 0 if it is not alive.
    versions: Vec<u64>,
}

pub(crate) fn run(place: &Place, options: &Options) {
    let (seconds, documents) = (options.count("seconds", 1800), options.count("documents", 20_000));
    let per_second = options.number("per-second").unwrap_or(200.0);
    let folder = Path::new(options.text("output").unwrap_or("target/live"));
    fs::create_dir_all(folder).unwrap();
    let mut csv = File::create(folder.join("soak.csv")).unwrap();
    writeln!(csv, "{COLUMNS}").unwrap();
    let (topic, output) = (place.broker.topic(4), Broker::name("pairs"));
    let writer = place.broker.writer();
    let texts = Documents::new(WORDS);
    let versions = vec![0; usize::try_from(documents).unwrap()];
    let mut writing =
        Writing { topic: &topic, writer: &writer, texts, text: String::new(), documents, versions };
    // The corpus has its final size from the beginning: the number of live documents stays about the same.
    let mut produced = 0;
    while produced < documents * 3 {
        produced += 1;
        step(&mut writing, produced);
    }
    writer.flush();
    let filled = produced;
    let mut run = place.run(&topic, &output, Some("state"));
    let started = Instant::now();
    while Sample::take(&run, Path::new("-"), started, filled).lag != 0.0 {
        assert!(started.elapsed() < Duration::from_secs(300) && !run.has_ended(), "{}", run.log());
        std::thread::sleep(Duration::from_millis(100));
    }
    let (begun, state) = (Instant::now(), place.path("state"));
    let mut samples: Vec<Sample> = Vec::new();
    while begun.elapsed().as_secs() < seconds {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of records")]
        let due = filled + (begun.elapsed().as_secs_f64() * per_second) as u64;
        while produced < due {
            produced += 1;
            step(&mut writing, produced);
        }
        writer.0.poll(Duration::from_millis(5));
        let next =
            samples.last().map_or(0.0, |sample| sample.seconds) + f64::from(u32::try_from(EVERY).unwrap());
        if begun.elapsed().as_secs_f64() >= next {
            let sample = Sample::take(&run, &state, begun, produced);
            writeln!(csv, "{}", sample.row()).unwrap();
            samples.push(sample);
            assert!(!run.has_ended(), "{}", run.log());
        }
    }
    writer.flush();
    let cpu = run.cpu();
    run.stop();
    plots(folder, &samples);
    // The first minute is left out, because buffers still grow.
    let settled: Vec<_> = samples.iter().filter(|sample| sample.seconds >= 60.0).collect();
    let (first, last) = settled.split_at(settled.len() / 2);
    let mean = |of: &[&Sample], value: Value| {
        of.iter().map(|sample| value(sample)).sum::<f64>() / of.iter().map(|_| 1.0).sum::<f64>()
    };
    println!(
        "{per_second} events a second of {documents} ids for {seconds} s, CPU {cpu:.1} s; means of both \
        halves after a minute:"
    );
    let told: [(&str, Value); 5] = [
        ("resident MB", |sample| sample.resident / 1e6),
        ("state MB", |sample| sample.state / 1e6),
        ("epochs closed and not durable", Sample::in_flight),
        ("records not yet read", |sample| sample.lag),
        ("documents", |sample| sample.documents),
    ];
    for (name, value) in told {
        println!("{name}: {:.2}, {:.2}", mean(first, value), mean(last, value));
    }
}
