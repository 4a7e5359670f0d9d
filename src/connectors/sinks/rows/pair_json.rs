//! Deltas and pairs as JSON: writing and reading back.
//!
//! ```text
//! {"epoch":7,"diff":1,"a":"…","b":"…","similarity":0.912109375}
//! ```
//!
//! The keys are always in this order. A similarity has the fewest digits that parse to the same f64, and
//! always a decimal point. Of containment, `"in_a":0.25,"in_b":0.9` follow: the share of b's features that a
//! has, and of a's that b has. The greater one is the similarity. With evidence, the keys
//! `"blocks":3,"look":2,"components":128,"standard_error":0.02` follow. In a corpus that is compared with a
//! reference `"old":true` follows, where a is of the reference, or `"old":false`. With causes,
//! `"cause":"insert"` follows in a delta, and with times `"event_time":1700000000.0,
//! "committed":1700000007.25`; an epoch without a dated event has `"event_time":null`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Deserialize;

use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::{Epoch, EpochTimes, UnixTime};

/// Standard error of a pair's similarity under the sketch of the pipeline; a pure function of the pair.
pub type StandardError = Box<dyn Fn(&DocPair) -> f64 + Send>;

/// A delta as parsed.
#[derive(Deserialize)]
struct DeltaLine {
    diff: Option<i8>,
    a: DocId,
    b: DocId,
    similarity: f64,
    in_a: Option<f64>,
    in_b: Option<f64>,
    old: Option<bool>,
    #[serde(default)]
    blocks: u16,
    #[serde(default)]
    look: u16,
    #[serde(default)]
    components: u32,
}

/// What is written of a pair besides its ids and its similarity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairStyle {
    /// Both shares of the similarity.
    pub shares: bool,
    /// Whether the first document is of the reference with which the corpus is compared.
    pub sides: bool,
}

impl PairStyle {
    /// The ids as they are written and, if it is, whether the first document is of the reference.
    pub(crate) fn ids(self, pair: &Pair<DocId>) -> ([&str; 2], Option<bool>) {
        let ids = [pair.lo(), pair.hi()];
        if self.sides {
            // Ids of a reference sort first.
            (ids.map(DocId::without_side), Some(ids[0].is_of_reference()))
        } else {
            (ids.map(DocId::as_str), None)
        }
    }
}

/// A delta that was read back.
#[derive(Clone, Debug)]
pub(crate) struct ReadDelta {
    pub(crate) pair: DocPair,
    /// `None` in a line of final pairs, and in a record of the upsert envelope.
    pub(crate) diff: Option<i8>,
    /// Whether the line says if the first document is of a reference.
    pub(crate) has_sides: bool,
}

/// Applies a line read back from the output to the pairs that the earlier lines accumulate to. Evidence is
/// ignored when a pair is removed: runs with and without evidence may have written to the same output.
/// Returns whether the line says if the first document is of a reference.
///
/// # Errors
/// If the line is no delta, or removes a pair that is not in `pairs`, or adds one that is.
pub(crate) fn apply(line: &str, pairs: &mut BTreeSet<DocPair>) -> io::Result<bool> {
    let ReadDelta { pair: found, diff, has_sides } = read_delta(line)?;
    let diff = diff.unwrap_or(1);
    let least = DocPair { evidence: Evidence::default(), ..found.clone() };
    let is_same = |known: &&DocPair| known.pair == found.pair && known.similarity == found.similarity;
    let known = pairs.range(least..).next().filter(is_same).cloned();
    let follows = match known {
        None => diff > 0 && pairs.insert(found),
        Some(known) => diff <= 0 && pairs.remove(&known),
    };
    if follows {
        Ok(has_sides)
    } else {
        Err(invalid_data("a delta of the output does not follow from those before it", line))
    }
}

fn invalid_data(what: &str, line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {line}"))
}

/// Parses a delta.
///
/// # Errors
/// If the line is no delta.
pub(crate) fn read_delta(line: &str) -> io::Result<ReadDelta> {
    let DeltaLine { diff, a, b, similarity, in_a, in_b, old, blocks, look, components } =
        serde_json::from_str(line).map_err(|_| invalid_data("a line of the output is no delta", line))?;
    let (a, b) = match old {
        None => (a, b),
        Some(true) => (a.in_reference(), b.beside_reference()),
        Some(false) => (a.beside_reference(), b.beside_reference()),
    };
    let pair = Pair::new(a, b).ok_or_else(|| invalid_data("a document is no pair with itself", line))?;
    let evidence = Evidence { blocks, look, components };
    let similarity = Similarity::read_beside(similarity, in_b, in_a);
    Ok(ReadDelta { pair: DocPair { pair, similarity, evidence }, diff, has_sides: old.is_some() })
}

/// Writes `{"epoch":…,"diff":…,"a":…}` without a line break.
pub(crate) fn write_delta(
    out: &mut impl Write,
    epoch: Epoch,
    delta: &Delta,
    style: PairStyle,
    evidence: Option<&StandardError>,
    causes: bool,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    let Delta { pair, diff, cause } = delta;
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    write_pair(out, pair, style, evidence, causes.then_some(*cause), times)
}

/// Writes the keys of times, each after a comma.
pub(crate) fn write_times(out: &mut impl Write, times: Option<EpochTimes>) -> io::Result<()> {
    let Some(EpochTimes { event, committed }) = times else { return Ok(()) };
    out.write_all(b",\"event_time\":")?;
    serde_json::to_writer(&mut *out, &event.map(UnixTime::seconds))?;
    out.write_all(b",\"committed\":")?;
    Ok(serde_json::to_writer(&mut *out, &committed)?)
}

/// Writes the keys of the shares of a similarity of a and b, each after a comma.
fn write_shares(out: &mut impl Write, similarity: Similarity) -> io::Result<()> {
    let [in_b, in_a] = similarity.shares();
    out.write_all(b",\"in_a\":")?;
    serde_json::to_writer(&mut *out, &in_a)?;
    out.write_all(b",\"in_b\":")?;
    Ok(serde_json::to_writer(&mut *out, &in_b)?)
}

fn write_ids(out: &mut impl Write, a: &str, b: &str) -> io::Result<()> {
    out.write_all(b"\"a\":")?;
    serde_json::to_writer(&mut *out, a)?;
    out.write_all(b",\"b\":")?;
    Ok(serde_json::to_writer(out, b)?)
}

fn write_similarity(
    out: &mut impl Write,
    found: &DocPair,
    shares: bool,
    evidence: Option<&StandardError>,
) -> io::Result<()> {
    out.write_all(b",\"similarity\":")?;
    serde_json::to_writer(&mut *out, &found.similarity.get())?;
    // A pair of another pipeline, whose output is corrected, is removed with its shares.
    if shares || found.similarity.is_directed() {
        write_shares(out, found.similarity)?;
    }
    if let Some(standard_error) = evidence {
        let Evidence { blocks, look, components } = found.evidence;
        write!(out, ",\"blocks\":{blocks},\"look\":{look},\"components\":{components},\"standard_error\":")?;
        serde_json::to_writer(&mut *out, &standard_error(found))?;
    }
    Ok(())
}

/// Writes from the key `a` to the end of the object, with `cause` and `times` as the last keys if given.
pub(crate) fn write_pair(
    out: &mut impl Write,
    found: &DocPair,
    style: PairStyle,
    evidence: Option<&StandardError>,
    cause: Option<Cause>,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    let ([a, b], old) = style.ids(&found.pair);
    write_ids(out, a, b)?;
    write_similarity(out, found, style.shares, evidence)?;
    if let Some(old) = old {
        write!(out, ",\"old\":{old}")?;
    }
    if let Some(cause) = cause {
        // Cause names are letters and hyphens: no escaping is needed.
        write!(out, ",\"cause\":\"{}\"", cause.name())?;
    }
    write_times(out, times)?;
    out.write_all(b"}")
}
