//! A log in memory, as a source: partitions distributed over readers that take turns.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use dupflow::connectors::formats::{KeyedRecord, KeyedRecords, RecordShape, ValueFormat};
use dupflow::connectors::intake::{
    BadRecords, Batch, EpochLimits, Payload, Queue, Refused, Source, SourceError, SourceReader,
};
use dupflow::core::hash;
use dupflow::core::time::{Clock, Offsets};

use crate::data::Event;

/// The events of a partition with their offsets, and the offset after the last one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Partition {
    pub(crate) events: Vec<(u64, Event)>,
    pub(crate) end: u64,
    /// Whether its values are rows with a [time of their own](row_ts).
    pub(crate) rows: bool,
}

/// The `ts` of a partition's row at an offset, if it has one; `written` is the time of its record. The `ts`
/// is not after that, and mostly unrelated to the order of events.
pub(crate) fn row_ts(partition: u32, offset: u64, written: Option<f64>) -> Option<f64> {
    let random = hash::mix(u64::from(partition) << 40 | offset ^ 7);
    let Some(written) = written else { return random.is_multiple_of(2).then_some(980.0) };
    match random % 4 {
        0 => None,
        1 => Some(980f64.min(written)),
        2 => Some(written.min(1030.0)),
        _ => Some(written - f64::from(u32::try_from(random >> 8 & 31).unwrap())),
    }
}

/// A log in memory: partitions distributed over readers, and one more reader that has no partition and never
/// ends by itself.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) partitions: BTreeMap<u32, Partition>,
    pub(crate) readers: usize,
    pub(crate) limits: EpochLimits,
    pub(crate) seed: u64,
    /// Whether an id may be in several partitions.
    pub(crate) ids_move: bool,
    /// The time of the event of a partition at an offset.
    pub(crate) ts: fn(u32, u64) -> Option<f64>,
    /// Signals from each reader that it has read everything.
    pub(crate) read: Sender<()>,
}

/// Reads its partitions in turns of random length.
struct Turns {
    partitions: BTreeMap<u32, Partition>,
    seed: u64,
    ts: fn(u32, u64) -> Option<f64>,
    read: Sender<()>,
}

/// Reads no partition, until it is stopped.
struct Idle;

impl Source for Log {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn ids_move(&self) -> bool {
        self.ids_move
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let begin = |p: &u32| from.and_then(|from| from.get(p)).copied().unwrap_or(0);
        Ok(self.partitions.keys().map(|p| (*p, begin(p))).collect())
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        let mut readers: Vec<Box<dyn SourceReader>> = vec![Box::new(Idle)];
        for reader in 0..self.readers {
            let mine = |(p, _): &(&u32, &Partition)| **p as usize % self.readers == reader;
            let left = |(p, part): (&u32, &Partition)| {
                let mut part = part.clone();
                part.events.retain(|(offset, _)| *offset >= begin[p]);
                (*p, part)
            };
            let partitions = self.partitions.iter().filter(mine).map(left).collect();
            let seed = hash::mix(self.seed ^ reader as u64);
            readers.push(Box::new(Turns { partitions, seed, ts: self.ts, read: self.read.clone() }));
        }
        readers
    }
}

impl SourceReader for Idle {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        while queue.pause(Duration::MAX).is_ok() {}
        Ok(())
    }
}

impl SourceReader for Turns {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        let mut left: Vec<(u32, Partition)> = std::mem::take(&mut self.partitions).into_iter().collect();
        let mut random = |below: u64| {
            self.seed = hash::mix(self.seed.wrapping_add(1));
            usize::try_from(self.seed % below).unwrap()
        };
        while !left.is_empty() {
            let turn = random(left.len() as u64);
            let (partition, part) = &mut left[turn];
            let line = queue.line(*partition).unwrap_or(u64::MAX);
            let this_side = part.events.partition_point(|(offset, _)| *offset < line);
            // The queue holds records from the line on, so that a batch may begin there.
            let may = if this_side > 0 { this_side } else { part.events.len() };
            let count = random(4).min(may);
            let format = if part.rows { ValueFormat::Json } else { ValueFormat::default() };
            let mut records =
                KeyedRecords::with_shape(Arc::new(RecordShape { format, ..RecordShape::default() }));
            for (offset, (id, text)) in &part.events[..count] {
                let (key, ts) = (Some(id.as_str().as_bytes()), (self.ts)(*partition, *offset));
                let row = |content: &String| match row_ts(*partition, *offset, ts) {
                    Some(ts) => serde_json::json!({ "text": content, "ts": ts }).to_string(),
                    None => serde_json::json!({ "text": content }).to_string(),
                };
                let value = if part.rows { text.as_ref().map(row) } else { text.clone() };
                let value = value.as_deref().map(str::as_bytes);
                records.push(KeyedRecord { offset: *offset, ts, key, value });
            }
            let is_last = count == part.events.len();
            // After the last record, and before the line, there may be offsets without records.
            let next = match part.events.get(count) {
                None => part.end,
                Some((offset, _)) if count < this_side || this_side == 0 => *offset,
                Some(_) => line,
            };
            if count == 0 && !is_last && this_side > 0 {
                continue;
            }
            let next = if this_side > 0 { next.min(line) } else { next };
            let batch = Batch {
                input: "log".into(),
                partition: *partition,
                records: records.len() as u64,
                next,
                payload: Payload::Records(records),
                letters: Vec::new(),
                seen: None,
            };
            let pushed = match queue.try_push(batch) {
                Ok(()) => Ok(()),
                // Other partitions must advance first, perhaps those of other readers.
                Err(Refused::Held(_)) => {
                    std::thread::yield_now();
                    continue;
                }
                Err(Refused::Full(batch)) => queue.push(*batch),
                Err(Refused::Closed) => return Ok(()),
            };
            if pushed.is_err() {
                return Ok(());
            }
            part.events.drain(..count);
            if random(3) == 0 {
                queue.cut();
            }
            if is_last && next >= left[turn].1.end {
                left.remove(turn);
            }
        }
        // In tests where the run fails, no thread receives this signal.
        self.read.send(()).unwrap_or(());
        Ok(())
    }
}
