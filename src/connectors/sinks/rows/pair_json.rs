//! Deltas and pairs as JSON: writing and reading back.
//!
//! ```text
//! {"epoch":7,"diff":1,"a":"…","b":"…","similarity":0.912109375}
//! ```
//!
//! The keys are always in this order. A similarity has the fewest digits that parse to the same f64, and
//! always a decimal point. Of containment, `"in_a":0.25,"in_b":0.9` follow: the share of b's features that a
//! has, and of a's that b has. The greater one is the similarity. With evidence, the keys
//! `"blocks":3,"look":2,"components":128,"standard_error":0.02` follow. With causes, `"cause":"insert"`
//! follows in a delta, and with times `"event_time":1700000000.0,"committed":1700000007.25`; an epoch without
//! a dated event has `"event_time":null`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Deserialize;

use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::{Epoch, EpochTimes, UnixTime};

/// Standard error of a pair's similarity under the sketch of the pipeline; a pure function of the pair.
pub type StandardError = Box<dyn Fn(&DocPair) -> f64 + Send>;

/// Default of `diff` in a line without one: a line of final pairs.
fn default_diff() -> i8 {
    1
}

/// A delta as parsed.
#[derive(Deserialize)]
struct DeltaLine {
    #[serde(default = "default_diff")]
    diff: i8,
    a: DocId,
    b: DocId,
    similarity: f64,
    in_a: Option<f64>,
    in_b: Option<f64>,
    #[serde(default)]
    blocks: u16,
    #[serde(default)]
    look: u16,
    #[serde(default)]
    components: u32,
}

/// Applies a line read back from the output to the pairs that the earlier lines accumulate to. Evidence is
/// ignored when a pair is removed: runs with and without evidence may have written to the same output.
///
/// # Errors
/// If the line is no delta, or removes a pair that is not in `pairs`, or adds one that is.
pub(crate) fn apply(line: &str, pairs: &mut BTreeSet<DocPair>) -> io::Result<()> {
    let (found, diff) = read_delta(line)?;
    let least = DocPair { evidence: Evidence::default(), ..found.clone() };
    let is_same = |known: &&DocPair| known.pair == found.pair && known.similarity == found.similarity;
    let known = pairs.range(least..).next().filter(is_same).cloned();
    let follows = match known {
        None => diff > 0 && pairs.insert(found),
        Some(known) => diff <= 0 && pairs.remove(&known),
    };
    if follows {
        Ok(())
    } else {
        Err(invalid_data("a delta of the output does not follow from those before it", line))
    }
}

fn invalid_data(what: &str, line: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}: {line}"))
}

/// Parses a delta: its pair and its diff, which is 1 if the line has none.
///
/// # Errors
/// If the line is no delta.
pub(crate) fn read_delta(line: &str) -> io::Result<(DocPair, i8)> {
    let DeltaLine { diff, a, b, similarity, in_a, in_b, blocks, look, components } =
        serde_json::from_str(line).map_err(|_| invalid_data("a line of the output is no delta", line))?;
    let pair = Pair::new(a, b).ok_or_else(|| invalid_data("a document is no pair with itself", line))?;
    let evidence = Evidence { blocks, look, components };
    let similarity = Similarity::read_beside(similarity, in_b, in_a);
    Ok((DocPair { pair, similarity, evidence }, diff))
}

/// Writes `{"epoch":…,"diff":…,"a":…}` without a line break.
pub(crate) fn write_delta(
    out: &mut impl Write,
    epoch: Epoch,
    delta: &Delta,
    shares: bool,
    evidence: Option<&StandardError>,
    causes: bool,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    let Delta { pair, diff, cause } = delta;
    write!(out, "{{\"epoch\":{epoch},\"diff\":{diff},")?;
    write_pair(out, pair, shares, evidence, causes.then_some(*cause), times)
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

/// A pair of a corpus that is compared with a reference. `old`: its first document is of the reference.
pub(super) fn write_pair_beside(
    out: &mut impl Write,
    found: &DocPair,
    shares: bool,
    evidence: Option<&StandardError>,
    old: bool,
) -> io::Result<()> {
    let mut line = b"{".to_vec();
    write_ids(&mut line, found.pair.lo().without_side(), found.pair.hi().without_side())?;
    write_similarity(&mut line, found, shares, evidence)?;
    write!(line, ",\"old\":{old}}}")?;
    out.write_all(&line)
}

/// Writes from the key `a` to the end of the object, with `cause` and `times` as the last keys if given.
pub(crate) fn write_pair(
    out: &mut impl Write,
    found: &DocPair,
    shares: bool,
    evidence: Option<&StandardError>,
    cause: Option<Cause>,
    times: Option<EpochTimes>,
) -> io::Result<()> {
    write_ids(out, found.pair.lo().as_str(), found.pair.hi().as_str())?;
    write_similarity(out, found, shares, evidence)?;
    if let Some(cause) = cause {
        // Cause names are letters and hyphens: no escaping is needed.
        write!(out, ",\"cause\":\"{}\"", cause.name())?;
    }
    write_times(out, times)?;
    out.write_all(b"}")
}
