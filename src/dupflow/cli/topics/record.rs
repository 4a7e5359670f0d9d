//! `dupflow record`: copies the topic that a deployment reads into a feed, which `replay` can play.
//!
//! Each line is an event of the feed with two additional fields, `partition` and `offset`, which `replay`
//! ignores. Partitions are merged in the order of reading. An invalid record becomes an invalid line: its
//! value without line breaks, or as a JSON string if it would otherwise be a valid event. Only the text is
//! recorded, no additional fields.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, bail};

use crate::cli::arguments::problems::Problems;
use crate::cli::arguments::verbosity::Verbosity;
use crate::config::{Deployment, TopicSource};
use dupflow_connectors::formats::feed::{FeedRecord, Parser, write};
use dupflow_connectors::intake::{
    BadRecords, Batch, Decoder, Dequeued, EpochLimits, OnError, Queue, QueueRoom, Source as _,
};
use dupflow_connectors::kafka::Kafka;
use dupflow_connectors::kafka::broker::{Admin, KafkaFailure};
use dupflow_core::doc::{DocEvent, Letter, Position};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Epoch, Offsets, SystemClock};

/// Arguments of `record`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The deployment file, such as config/kafka.toml.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,

    /// The feed to write; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Stop at the records that the topic holds now [default: continue until a signal].
    #[arg(long)]
    pub until_now: bool,

    /// Stop after this number of records, bad ones included.
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "until_now",
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub records: Option<u64>,
}

/// Capacity of the queue between reader and writer.
const ROOM: QueueRoom = QueueRoom { bytes: 16 << 20, batches: 64 };

/// Records the topic, and prints the counts on standard error.
///
/// # Errors
/// All problems of the deployment; then errors of reading or writing.
pub(in crate::cli) fn run(
    args: &Args,
    mut problems: Problems,
    verbosity: Verbosity,
) -> anyhow::Result<ExitCode> {
    let environment = |name: &str| std::env::var(name).ok();
    let deployment = problems.take(Deployment::load(&args.config, &environment));
    if deployment.as_ref().is_some_and(|place| place.source.as_a::<TopicSource>().is_none()) {
        problems.note("source.kind: the deployment reads no topic, and a topic is to be recorded");
    }
    let deployment = problems.settle(deployment)?;
    if !deployment.fields.is_empty() {
        tracing::warn!("source.fields are not recorded: a feed has ids, times and texts");
    }
    let Some(read) = deployment.source.as_a().cloned() else { bail!("no topic") };
    let TopicSource { topic, start, shape, refresh } = read;
    let ends = args.until_now.then(|| ends(&Admin::new(&deployment.kafka)?, &topic)).transpose()?;
    let out: Box<dyn Write> = match args.output.to_str() {
        Some("-") => Box::new(io::stdout().lock()),
        _ => Box::new(File::create(&args.output).with_context(|| format!("the file {:?}", args.output))?),
    };
    let mut source = Kafka {
        connection: deployment.kafka,
        topic,
        start,
        share: (0, 1),
        shape: Arc::new(shape),
        limits: EpochLimits::default(),
        refresh,
        as_of: Arc::default(),
        backlog: Arc::default(),
    };
    let begin = source.begin(None)?;
    let queue = Arc::new(Queue::new(1, 1, ROOM, EpochLimits::default()));
    let bad = Arc::new(BadRecords::with_epochs(OnError::Count));
    let waiting = thread::current();
    queue.register(Box::new(move || waiting.unpark()));
    let readers = Box::new(source).readers(&begin);
    let threads: Vec<_> = readers
        .into_iter()
        .map(|mut reader| {
            let (queue, bad) = (Arc::clone(&queue), Arc::clone(&bad));
            thread::spawn(move || {
                let ended = reader.read(&queue, &bad, &SystemClock::start());
                // However the reading ended, this ends the writing, which then checks the result.
                queue.stop();
                queue.finish();
                ended
            })
        })
        .collect();

    let mut feed = RecordedFeed {
        out: BufWriter::new(out),
        decoder: Decoder::new(&TextColumns::default()),
        records: 0,
        next: Offsets::new(),
    };
    let is_enough = |written: &RecordedFeed<_>| {
        let is_read =
            |(partition, end): (&u32, &u64)| written.next.get(partition).is_some_and(|next| next >= end);
        ends.as_ref().is_some_and(|all| all.iter().all(is_read))
            || args.records.is_some_and(|records| written.records >= records)
    };
    while !is_enough(&feed) {
        match queue.take(Epoch::MAX) {
            Dequeued::Batch(_, batch) => {
                let left = args.records.map_or(u64::MAX, |records| records - feed.records);
                feed.batch(&batch, &bad, left)?;
                queue.give_back(batch);
            }
            Dequeued::Nothing { .. } => {
                feed.out.flush()?;
                thread::park();
            }
            Dequeued::Done => break,
        }
    }
    feed.out.flush()?;
    queue.stop();
    for thread in threads {
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
    }
    let bad: u64 = bad.counts().values().sum();
    verbosity.print(&format!("{} records, {bad} of them bad\n", feed.records))?;
    Ok(ExitCode::SUCCESS)
}

/// The present end of each partition; empty partitions are left out.
fn ends(admin: &Admin, topic: &str) -> anyhow::Result<Offsets> {
    let found = admin.find(topic)?.ok_or_else(|| KafkaFailure::no_topic(topic))?;
    let mut ends = Offsets::new();
    for partition in 0..found.partitions {
        let (first, end) = admin.offset_range(topic, partition)?;
        if first < end {
            ends.insert(partition, end);
        }
    }
    Ok(ends)
}

/// The feed that is written.
struct RecordedFeed<W: Write> {
    out: BufWriter<W>,
    decoder: Decoder,
    records: u64,
    next: Offsets,
}

impl<W: Write> RecordedFeed<W> {
    /// Writes the records of a batch, at most `left`.
    fn batch(&mut self, batch: &Batch, bad: &BadRecords, left: u64) -> anyhow::Result<()> {
        let mut lines: Vec<(u64, Vec<u8>)> = Vec::new();
        let mut letters = Vec::new();
        self.decoder
            .decode(batch, bad, &mut letters, |at, event| lines.push((at.offset, line(at, event))))?;
        lines.extend(letters.iter().map(|letter| (letter.position.offset, bad_line(letter))));
        lines.sort_by_key(|(offset, _)| *offset);
        for (_, line) in lines.iter().take(usize::try_from(left).unwrap_or(usize::MAX)) {
            self.out.write_all(line)?;
            self.records += 1;
        }
        self.next.insert(batch.partition, batch.next);
        Ok(())
    }
}

/// An event as a line, with its partition and offset.
fn line(at: Position, event: DocEvent<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    // Writing to a `Vec` cannot fail.
    write(&mut line, &FeedRecord { ts: event.ts, event }).unwrap_or_default();
    line.truncate(line.len().saturating_sub(b"}\n".len()));
    line.extend_from_slice(
        format!(",\"partition\":{},\"offset\":{}}}\n", at.partition, at.offset).as_bytes(),
    );
    line
}

/// An invalid record as an invalid line.
fn bad_line(letter: &Letter) -> Vec<u8> {
    let raw = letter.raw.as_deref().unwrap_or_default();
    let mut line: Vec<u8> =
        raw.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    if line.trim_ascii().is_empty() || Parser::new().parse(&line).is_ok() {
        line = serde_json::Value::from(String::from_utf8_lossy(&line)).to_string().into_bytes();
    }
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::doc::DocId;
    use dupflow_core::doc::fields::EventFields;

    #[test]
    fn a_line_reads_back_with_its_position() {
        let event = DocEvent {
            id: DocId::new("é").unwrap(),
            ts: Some(1.5),
            written: None,
            text: Some("a\n\"b\"".into()),
            fields: EventFields::default(),
        };
        let at = Position { partition: 2, offset: 17 };
        let line = line(at, event.clone());
        let expected = "{\"id\":\"é\",\"op\":\"upsert\",\"ts\":1.5,\"text\":\"a\\n\\\"b\\\"\",\
            \"partition\":2,\"offset\":17}\n";
        assert_eq!(str::from_utf8(&line).unwrap(), expected);
        assert_eq!(Parser::new().parse(&line).unwrap().event, event);
    }

    #[test]
    fn bad_records_stay_bad_after_a_restart() {
        for raw in [
            None,
            Some(&b""[..]),
            Some(b" \n"),
            Some(b"{\"id\":\"a\",\"text\":\"t\"}"),
            Some(b"\xff\n{"),
            Some(b"null"),
            Some(b"text"),
        ] {
            let letter = Letter {
                input: "t".into(),
                position: Position::default(),
                reason: "missing_id".into(),
                key: None,
                raw: raw.map(<[u8]>::to_vec),
                hides_records: false,
            };
            let line = bad_line(&letter);
            assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
            assert!(!line.trim_ascii().is_empty() && Parser::new().parse(&line).is_err(), "{raw:?}");
        }
    }
}
