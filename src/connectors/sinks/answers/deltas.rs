//! The answer "deltas": every change of a pair.
//!
//! ```text
//! {"epoch":7,"diff":1,"a":"…","b":"…","similarity":0.912109375}
//! ```
//!
//! As what is in force of a pair, without `diff`.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::str;

use super::answer::{Answer, Subject, Written};
use super::changes::{Changes, EachRecord, ReadBack, RecordForm, RecordKey, RowSink, last_of_each};
use super::pairs;
use crate::sinks::destination::Destination;
use crate::sinks::rows::pair_json::{
    PairStyle, ReadDelta, StandardError, apply, read_delta, write_delta, write_pair,
};
use crate::sinks::rows::{ColumnType, Columns, EachCells, JsonLines, OutputCell, OutputRow, whole};
use dupflow_core::pair::{Delta, DocPair, Evidence};
use dupflow_core::time::{Epoch, EpochTimes};

pub(super) const ANSWER: Answer = Answer {
    name: "deltas",
    help: "The changes of every epoch",
    written: Written::Changes(|of| {
        let deltas = PairDeltas::new(of.evidence()).with_style(of.style());
        Box::new(deltas.with_causes(of.has_causes()).with_times(of.has_times()))
    }),
    columns: |of| columns(of.style(), of.evidence().is_some(), of.has_causes(), of.has_times()),
    sized: None,
    about: Subject::Pairs,
    adds_up: None,
    takes_units: false,
};

/// The columns of every change.
pub(super) const CHANGE: [(&str, ColumnType); 2] =
    [("epoch", ColumnType::Integer), ("diff", ColumnType::Integer)];

/// The columns of the times of an epoch.
pub(super) const TIMES: [(&str, ColumnType); 2] =
    [("event_time", ColumnType::OptionalFloat), ("committed", ColumnType::Float)];

fn columns(style: PairStyle, evidence: bool, causes: bool, times: bool) -> Columns {
    let mut columns = [&CHANGE[..], &pairs::columns(style, evidence)].concat();
    if causes {
        columns.push(("cause", ColumnType::Text));
    }
    if times {
        columns.extend(TIMES);
    }
    columns
}

/// The cells of [`TIMES`].
pub(super) fn timed<'a>(EpochTimes { event, committed }: EpochTimes) -> [OutputCell<'a>; 2] {
    let event = event.map_or(OutputCell::Missing, |event| OutputCell::Float(event.seconds()));
    [event, OutputCell::Float(committed)]
}

/// A change of a pair, or the pair as it is after its epoch.
struct DeltaRow<'a> {
    of: &'a PairDeltas,
    epoch: Epoch,
    delta: &'a Delta,
    is_present: bool,
}

impl OutputRow for DeltaRow<'_> {
    fn write(&self, out: &mut Vec<u8>) -> io::Result<()> {
        let Self { epoch, delta, .. } = *self;
        let PairDeltas { style, evidence, causes, times } = self.of;
        if self.is_present {
            out.extend_from_slice(format!("{{\"epoch\":{epoch},").as_bytes());
            let cause = causes.then_some(delta.cause);
            write_pair(out, &delta.pair, *style, evidence.as_ref(), cause, *times)
        } else {
            write_delta(out, epoch, delta, *style, evidence.as_ref(), *causes, *times)
        }
    }

    fn cells(&self, each: &mut EachCells<'_>) -> io::Result<()> {
        let Self { epoch, delta, .. } = *self;
        let PairDeltas { style, evidence, causes, times } = self.of;
        let mut row = vec![whole(epoch), whole(delta.diff)];
        pairs::cells(&delta.pair, *style, evidence.as_ref(), causes.then_some(delta.cause), &mut row);
        row.extend(times.iter().copied().flat_map(timed));
        each(&row)
    }
}

/// Every change of a pair.
pub struct PairDeltas {
    style: PairStyle,
    evidence: Option<StandardError>,
    causes: bool,
    /// The times of the next epoch, if deltas have them.
    times: Option<EpochTimes>,
}

impl PairDeltas {
    /// Deltas without causes and times; with evidence if there is a standard error.
    pub fn new(evidence: Option<StandardError>) -> Self {
        Self { style: PairStyle::default(), evidence, causes: false, times: None }
    }

    /// Sets what each delta has of its pair.
    #[must_use]
    pub fn with_style(self, style: PairStyle) -> Self {
        Self { style, ..self }
    }

    /// Sets whether each delta has its cause; a pair that is in force has that of its last change.
    #[must_use]
    pub fn with_causes(self, causes: bool) -> Self {
        Self { causes, ..self }
    }

    /// Sets whether each delta has the times of its epoch.
    #[must_use]
    pub fn with_times(self, times: bool) -> Self {
        Self { times: times.then(EpochTimes::default), ..self }
    }

    fn key<'a>(&self, pair: &'a DocPair) -> RecordKey<'a> {
        RecordKey::Pair(pair, self.style)
    }
}

impl Changes for PairDeltas {
    fn read_back(&mut self, form: RecordForm, records: &mut ReadBack<'_>) -> io::Result<BTreeSet<DocPair>> {
        let (pairs, have_sides) = match form {
            RecordForm::Rows => applied(records),
            RecordForm::Deltas => summed(records),
            RecordForm::Present => last(records),
        }?;
        // Corrections are written as the records are.
        self.style.sides |= have_sides;
        Ok(pairs)
    }

    fn times(&mut self, times: EpochTimes) {
        self.times = self.times.map(|_| times);
    }

    fn epoch(
        &mut self,
        form: RecordForm,
        epoch: Epoch,
        deltas: &[Delta],
        each: &mut EachRecord<'_>,
    ) -> io::Result<()> {
        let row = |delta, is_present| DeltaRow { of: self, epoch, delta, is_present };
        if form != RecordForm::Present {
            return deltas.iter().try_for_each(|delta| each(self.key(&delta.pair), Some(&row(delta, false))));
        }
        // Deltas are sorted, so that those of a pair are adjacent.
        for changes in deltas.chunk_by(|one, next| one.pair.pair == next.pair.pair) {
            let Some(first) = changes.first() else { continue };
            let key = self.key(&first.pair);
            match changes.iter().find(|delta| delta.diff > 0) {
                Some(delta) => each(key, Some(&row(delta, true)))?,
                None => each(key, None)?,
            }
        }
        Ok(())
    }
}

/// The pairs of lines, each of which follows from those before it, and whether lines say if the first
/// document is of a reference.
fn applied(records: &mut ReadBack<'_>) -> io::Result<(BTreeSet<DocPair>, bool)> {
    let (mut pairs, mut have_sides) = (BTreeSet::new(), false);
    records(&mut |_, line| {
        have_sides |= apply(text(line)?, &mut pairs)?;
        Ok(())
    })?;
    Ok((pairs, have_sides))
}

/// The pairs that deltas add up to, in any order.
fn summed(records: &mut ReadBack<'_>) -> io::Result<(BTreeSet<DocPair>, bool)> {
    // A pair is removed whatever evidence it was added with.
    let mut counts: BTreeMap<_, (i64, Evidence)> = BTreeMap::new();
    let mut have_sides = false;
    records(&mut |_, value| {
        let ReadDelta { pair: found, diff, has_sides } = read_delta(text(value)?)?;
        let diff = diff.ok_or_else(|| invalid_data(OF_UPSERTS.to_owned()))?;
        have_sides |= has_sides;
        let (count, evidence) = counts.entry((found.pair, found.similarity)).or_default();
        *count += i64::from(diff);
        if diff > 0 {
            *evidence = found.evidence;
        }
        Ok(())
    })?;
    counts.retain(|_, (count, _)| *count != 0);
    if let Some(((pair, _), (count, _))) = counts.iter().find(|(_, (count, _))| *count != 1) {
        return Err(invalid_data(format!(
            "the deltas of {} and {} add up to {count}: some have expired, or were not written here",
            pair.lo(),
            pair.hi()
        )));
    }
    let pair = |((pair, similarity), (_, evidence))| DocPair { pair, similarity, evidence };
    Ok((counts.into_iter().map(pair).collect(), have_sides))
}

/// The pairs that are in force by the last record of each key.
fn last(records: &mut ReadBack<'_>) -> io::Result<(BTreeSet<DocPair>, bool)> {
    let mut have_sides = false;
    let now = last_of_each(records, |_, value| {
        let ReadDelta { pair, diff, has_sides } = read_delta(text(Some(value))?)?;
        if diff.is_some() {
            return Err(invalid_data(OF_DELTAS.to_owned()));
        }
        have_sides |= has_sides;
        Ok(pair)
    })?;
    Ok((now.into_values().collect(), have_sides))
}

const OF_UPSERTS: &str =
    "it holds records of sink.envelope = \"upsert\": set that, or name another sink.topic";
const OF_DELTAS: &str = "it holds records of sink.envelope = \"delta\": set that, or name another sink.topic";

fn text(value: Option<&[u8]>) -> io::Result<&str> {
    str::from_utf8(value.unwrap_or_default())
        .map_err(|_| invalid_data("it holds a value that is no delta".to_owned()))
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Deltas as JSON Lines.
pub type DeltaLines<W> = RowSink<Box<PairDeltas>, JsonLines<W>>;

impl<W: Destination> DeltaLines<W> {
    /// Writes to `out`, which should be buffered. Evidence is written if there is a standard error; causes
    /// are not.
    pub fn new(out: W, evidence: Option<StandardError>) -> Self {
        Self::with_rows(Box::new(PairDeltas::new(evidence)), JsonLines(out))
    }
}

impl std::fmt::Debug for PairDeltas {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PairDeltas").field("evidence", &self.evidence.is_some()).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests/pairs.rs"]
mod tests;
