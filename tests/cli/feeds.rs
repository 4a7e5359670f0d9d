//! Feeds to replay, and parsers of the outputs.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Artificial words, by number.
pub(crate) fn words(numbers: impl IntoIterator<Item = u32>) -> String {
    numbers.into_iter().map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ")
}

/// A hundred words; those at the positions in `changed` are replaced by words that depend on `by`.
pub(crate) fn page(changed: std::ops::Range<u32>, by: u32) -> String {
    words((0..100).map(|n| if changed.contains(&n) { 1000 * by + n } else { n }))
}

pub(crate) fn upsert(id: &str, text: &str) -> String {
    json!({ "id": id, "text": text }).to_string() + "\n"
}

pub(crate) fn delete(id: &str) -> String {
    json!({ "id": id, "op": "delete" }).to_string() + "\n"
}

/// The lines of an output as JSON.
pub(crate) fn lines(out: &str) -> Vec<Value> {
    each_line(out).collect()
}

fn each_line(out: &str) -> impl Iterator<Item = Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}")))
}

/// Pairs with their similarities.
pub(crate) type Pairs = BTreeMap<(String, String), f64>;

/// The pairs that an output of `--emit deltas` accumulates to. Checks that it is sorted, and that after every
/// line each pair is there 0 or 1 times.
pub(crate) fn accumulated(out: &str) -> Pairs {
    let mut pairs = Pairs::new();
    let mut last = None;
    for line in each_line(out) {
        let ((a, b), similarity) = pair(&line);
        let diff = line["diff"].as_i64().expect("diff");
        let place = Some((line["epoch"].as_u64().expect("epoch"), a.clone(), b.clone(), diff));
        assert!(last < place, "{line} is out of order");
        last = place;
        let before = match diff {
            1 => pairs.insert((a, b), similarity),
            -1 => pairs.remove(&(a, b)).filter(|before| before.to_bits() != similarity.to_bits()),
            _ => panic!("{line}"),
        };
        assert_eq!(before, None, "{line}");
    }
    pairs
}

/// The pairs in an output of `--emit pairs`. Checks that it is sorted.
pub(crate) fn pairs(out: &str) -> Pairs {
    let listed: Vec<_> = each_line(out).map(|line| pair(&line)).collect();
    assert!(listed.windows(2).all(|two| two[0].0 < two[1].0));
    listed.into_iter().collect()
}

fn pair(line: &Value) -> ((String, String), f64) {
    let id = |key: &str| line[key].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
    assert!(id("a") < id("b"), "{line}");
    ((id("a"), id("b")), line["similarity"].as_f64().expect("similarity"))
}

/// Bytes as a file of gzip.
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;

    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).and_then(|()| gzip.finish()).expect("memory takes what is written")
}
