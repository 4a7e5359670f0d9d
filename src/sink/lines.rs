//! Deltas and pairs as JSON Lines.
//!
//! ```text
//! {"epoch":7,"diff":1,"a":"…","b":"…","similarity":0.912109375}      DeltaLines: every change
//! {"a":"…","b":"…","similarity":0.912109375}                         PairLines: what is left at the end
//! ```
//!
//! The keys stand in this order; a similarity has the fewest digits that read back to the same f64, and always a
//! fraction. With evidence, a line goes on with `"blocks":3,"look":2,"components":128,"standard_error":0.02`; with causes, a delta ends with
//! `"cause":"insert"`.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, BufRead, Write};

use serde::Deserialize;

use super::{Destination, Sink};
use crate::doc::{DocId, Letter};
use crate::mark::{Mark, Standing};
use crate::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use crate::time::{Epoch, Progress};

/// The standard error of a pair's similarity by the pipeline, a pure function of the pair.
pub type StandardError = Box<dyn Fn(&DocPair) -> f64 + Send>;

/// Writes every delta, epoch by epoch; flushes at each commit, so that a reader sees whole epochs.
pub struct DeltaLines<W> {
    out: W,
    evidence: Option<StandardError>,
    causes: bool,
}

impl<W: Write> DeltaLines<W> {
    /// Writes to `out`, which should be buffered; with evidence if there is a standard error to give, without causes.
    pub fn new(out: W, evidence: Option<StandardError>) -> Self {
        Self { out, evidence, causes: false }
    }

    /// Whether each delta says its cause.
    #[must_use]
    pub fn with_causes(self, causes: bool) -> Self {
        Self { causes, ..self }
    }
}

impl<W: Destination> Sink for DeltaLines<W> {
    fn take_over(&mut self) -> io::Result<Standing> {
        self.out.take_over()
    }

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        let mut pairs = BTreeSet::new();
        for line in self.out.lines()?.lines() {
            apply(&line?, &mut pairs)?;
        }
        Ok(pairs)
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        for delta in deltas {
            write_delta(&mut self.out, progress.epoch, delta, self.evidence.as_ref(), self.causes)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.out.commit(mark)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Holds the pairs that the deltas accumulate to, and writes them at the end, sorted.
pub struct PairLines<W> {
    out: W,
    evidence: Option<StandardError>,
    alive: BTreeSet<DocPair>,
}

impl<W: Write> PairLines<W> {
    /// As [`DeltaLines::new`].
    pub fn new(out: W, evidence: Option<StandardError>) -> Self {
        Self { out, evidence, alive: BTreeSet::new() }
    }
}

impl<W: Write> Sink for PairLines<W> {
    fn restored(&mut self, deltas: &[Delta]) {
        for Delta { pair, diff, .. } in deltas {
            let changed = if *diff > 0 { self.alive.insert(pair.clone()) } else { self.alive.remove(pair) };
            debug_assert!(changed, "every pair accumulates to 0 or 1");
        }
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.restored(deltas);
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        for pair in &self.alive {
            self.out.write_all(b"{")?;
            write_pair(&mut self.out, pair, self.evidence.as_ref(), None)?;
            self.out.write_all(b"\n")?;
        }
        self.out.flush()
    }
}

/// The sign of a pair that is there.
fn present() -> i8 {
    1
}

/// A delta as it is read back.
#[derive(Deserialize)]
struct DeltaLine {
    #[serde(default = "present")]
    diff: i8,
    a: DocId,
    b: DocId,
    similarity: f64,
    #[serde(default)]
    blocks: u16,
    #[serde(default)]
    look: u16,
    #[serde(default)]
    components: u32,
}

/// Applies a line that was written before to the pairs that the lines before it accumulate to.
///
/// # Errors
/// If it is no delta, or none that can follow.
pub(super) fn apply(line: &str, pairs: &mut BTreeSet<DocPair>) -> io::Result<()> {
    let (pair, diff) = read_delta(line)?;
    let follows = if diff > 0 { pairs.insert(pair) } else { pairs.remove(&pair) };
    if follows {
        Ok(())
    } else {
        Err(wrong("a delta of the output does not follow from those before it", line))
    }
}

fn wrong(what: &str, line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {line}"))
}

/// A delta as it was written, with its sign; the sign of a line without one is 1.
///
/// # Errors
/// If it is no delta.
pub(super) fn read_delta(line: &str) -> io::Result<(DocPair, i8)> {
    let DeltaLine { diff, a, b, similarity, blocks, look, components } =
        serde_json::from_str(line).map_err(|_| wrong("a line of the output is no delta", line))?;
    let pair = Pair::new(a, b).ok_or_else(|| wrong("a document is no pair with itself", line))?;
    let evidence = Evidence { blocks, look, components };
    Ok((DocPair { pair, similarity: Similarity::clamped(similarity), evidence }, diff))
}

/// `{"epoch":…,"diff":…,"a":…}`, without the end of a line.
pub(super) fn write_delta(
    out: &mut impl Write,
    epoch: Epoch,
    delta: &Delta,
    evidence: Option<&StandardError>,
    causes: bool,
) -> io::Result<()> {
    let Delta { pair, diff, cause } = delta;
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    write_pair(out, pair, evidence, causes.then_some(*cause))
}

/// From the key `a` to the end of the object; with the cause of the pair's last change, if it is to be told.
pub(super) fn write_pair(
    out: &mut impl Write,
    found: &DocPair,
    evidence: Option<&StandardError>,
    cause: Option<Cause>,
) -> io::Result<()> {
    out.write_all(b"\"a\":")?;
    serde_json::to_writer(&mut *out, found.pair.lo().as_str())?;
    out.write_all(b",\"b\":")?;
    serde_json::to_writer(&mut *out, found.pair.hi().as_str())?;
    out.write_all(b",\"similarity\":")?;
    serde_json::to_writer(&mut *out, &found.similarity.get())?;
    if let Some(standard_error) = evidence {
        let Evidence { blocks, look, components } = found.evidence;
        write!(out, ",\"blocks\":{blocks},\"look\":{look},\"components\":{components},\"standard_error\":")?;
        serde_json::to_writer(&mut *out, &standard_error(found))?;
    }
    if let Some(cause) = cause {
        // Of letters and hyphens: nothing in it is to be escaped.
        write!(out, ",\"cause\":\"{}\"", cause.name())?;
    }
    out.write_all(b"}")
}

impl<W> fmt::Debug for DeltaLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaLines").field("evidence", &self.evidence.is_some()).finish_non_exhaustive()
    }
}

impl<W> fmt::Debug for PairLines<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairLines").field("alive", &self.alive.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    fn pair(a: &str, b: &str, similarity: f64) -> DocPair {
        let id = |id| DocId::new(id).unwrap();
        let evidence = Evidence { blocks: 3, look: 2, components: 128 };
        DocPair {
            pair: Pair::new(id(a), id(b)).unwrap(),
            similarity: Similarity::clamped(similarity),
            evidence,
        }
    }

    fn at(epoch: u64) -> Progress {
        Progress { epoch, ..Progress::default() }
    }

    fn text(out: Vec<u8>) -> String {
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_delta_is_written_to_the_letter() {
        let mut out = Vec::new();
        let mut sink = DeltaLines::new(&mut out, None);
        sink.epoch(&at(7), &[Delta::by_block(pair("b", "a", 0.912109375), 1)], &[]).unwrap();
        sink.epoch(
            &at(8),
            &[Delta::by_block(pair("a", "b", 0.912109375), -1), Delta::by_block(pair("a", "b", 1.0), 1)],
            &[],
        )
        .unwrap();
        sink.finish().unwrap();
        let expected = r#"{"epoch":7,"diff":1,"a":"a","b":"b","similarity":0.912109375}
{"epoch":8,"diff":-1,"a":"a","b":"b","similarity":0.912109375}
{"epoch":8,"diff":1,"a":"a","b":"b","similarity":1.0}
"#;
        assert_eq!(text(out), expected);
    }

    #[test]
    fn ids_and_similarities_read_back() {
        for similarity in [0.1 + 0.2, 1.0 / 3.0, 0.0, f64::MIN_POSITIVE, 1.0] {
            let mut out = Vec::new();
            let written = pair("q\"\\\n\0", "é\u{7f}😀", similarity);
            DeltaLines::new(&mut out, None)
                .epoch(&at(1), &[Delta::by_block(written.clone(), 1)], &[])
                .unwrap();
            assert_eq!(out.iter().filter(|&&b| b == b'\n').count(), 1);
            let read: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(read["a"], written.pair.lo().as_str());
            assert_eq!(read["b"], written.pair.hi().as_str());
            assert_eq!(read["similarity"].as_f64().map(f64::to_bits), Some(similarity.to_bits()));
        }
    }

    #[test]
    fn evidence_follows() {
        let mut out = Vec::new();
        let mut sink = DeltaLines::new(&mut out, Some(Box::new(|pair| pair.similarity.get() / 10.0)));
        sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap();
        drop(sink);
        let expected = r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.5,"blocks":3,"look":2,"components":128,"standard_error":0.05}"#;
        assert_eq!(text(out).trim_end(), expected);
    }

    #[test]
    fn a_cause_is_the_last_field_and_is_passed_over_when_it_is_read() {
        for cause in Cause::ALL {
            let mut out = Vec::new();
            let delta = Delta { cause, ..Delta::by_block(pair("a", "b", 0.5), 1) };
            let mut sink = DeltaLines::new(&mut out, Some(Box::new(|_| 0.25))).with_causes(true);
            sink.epoch(&at(7), std::slice::from_ref(&delta), &[]).unwrap();
            let line = String::from_utf8(out).unwrap();
            let end = format!(",\"standard_error\":0.25,\"cause\":\"{}\"}}\n", cause.name());
            assert!(line.ends_with(&end), "{line}");
            assert_eq!(serde_json::to_value(cause).unwrap(), cause.name(), "written in one way");
            assert_eq!(read_delta(line.trim_end()).unwrap(), (delta.pair, 1));
        }
    }

    #[test]
    fn pairs_are_those_left_at_the_end_in_order() {
        let mut out = Vec::new();
        let mut sink = PairLines::new(&mut out, None);
        sink.epoch(
            &at(1),
            &[Delta::by_block(pair("b", "c", 0.5), 1), Delta::by_block(pair("x", "y", 0.5), 1)],
            &[],
        )
        .unwrap();
        sink.epoch(
            &at(2),
            &[
                Delta::by_block(pair("a", "z", 0.25), 1),
                Delta::by_block(pair("b", "c", 0.5), -1),
                Delta::by_block(pair("b", "c", 1.0), 1),
            ],
            &[],
        )
        .unwrap();
        sink.epoch(&at(4), &[Delta::by_block(pair("x", "y", 0.5), -1)], &[]).unwrap();
        sink.finish().unwrap();
        drop(sink);
        let expected =
            "{\"a\":\"a\",\"b\":\"z\",\"similarity\":0.25}\n{\"a\":\"b\",\"b\":\"c\",\"similarity\":1.0}\n";
        assert_eq!(text(out), expected);
    }

    #[test]
    fn errors_of_the_destination_are_passed_on() {
        let mut full = [0; 10];
        let mut sink = DeltaLines::new(&mut full[..], None);
        assert_eq!(
            sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap_err().kind(),
            io::ErrorKind::WriteZero
        );
    }

    #[test]
    fn memory_accumulates() {
        let mut sink = Memory::default();
        sink.epoch(&at(1), &[Delta::by_block(pair("a", "b", 0.5), 1)], &[]).unwrap();
        sink.epoch(
            &at(3),
            &[Delta::by_block(pair("a", "b", 0.5), -1), Delta::by_block(pair("a", "b", 0.75), 1)],
            &[],
        )
        .unwrap();
        sink.finish().unwrap();
        let values =
            |epoch| sink.accumulated(epoch).into_iter().map(|((_, s), n)| (s.get(), n)).collect::<Vec<_>>();
        assert_eq!((values(0), values(2), values(3)), (vec![], vec![(0.5, 1)], vec![(0.75, 1)]));
        assert!(sink.finished);
    }
}
