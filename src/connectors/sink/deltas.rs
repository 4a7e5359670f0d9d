//! A delta and a pair as JSON: how they are written, and read back.
//!
//! ```text
//! {"epoch":7,"diff":1,"a":"…","b":"…","similarity":0.912109375}
//! ```
//!
//! The keys stand in this order; a similarity has the fewest digits that read back to the same f64, and
//! always a fraction. With evidence, it goes on with
//! `"blocks":3,"look":2,"components":128,"standard_error":0.02`; with causes, a delta ends with
//! `"cause":"insert"`.

use std::collections::BTreeSet;
use std::io::{self, Write};

use serde::Deserialize;

use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::Epoch;

/// The standard error of a pair's similarity by the pipeline, a pure function of the pair.
pub type StandardError = Box<dyn Fn(&DocPair) -> f64 + Send>;

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

/// Applies a line that was written before to the pairs that the lines before it accumulate to. A pair goes
/// with whatever evidence it came: lines of a run that told it may stand beside those of one that did not.
///
/// # Errors
/// If it is no delta, or none that can follow.
pub(super) fn apply(line: &str, pairs: &mut BTreeSet<DocPair>) -> io::Result<()> {
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
