//! Functions that read all vector files.

use serde_json::Value;

/// The cases of a file.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let path = format!("{}/tests/vectors/{name}.json", env!("CARGO_MANIFEST_DIR"));
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let cases = file["cases"].as_array().unwrap().clone();
    assert!(!cases.is_empty());
    cases
}

pub(crate) fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

pub(crate) fn counts(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(count).collect()
}

/// A number, or a string that holds a decimal or a fraction.
pub(crate) fn number(value: &Value) -> f64 {
    let Some(text) = value.as_str() else { return value.as_f64().unwrap() };
    match text.split_once('/') {
        Some((p, q)) => p.parse::<f64>().unwrap() / q.parse::<f64>().unwrap(),
        None => text.parse().unwrap(),
    }
}

#[track_caller]
pub(crate) fn relative(found: f64, expected: &Value, tolerance: f64) {
    let expected = number(expected);
    assert!((found - expected).abs() <= tolerance * expected.abs(), "{found:e}, expected {expected:e}");
}

#[track_caller]
pub(crate) fn absolute(found: f64, expected: &Value, tolerance: f64) {
    let expected = number(expected);
    assert!((found - expected).abs() <= tolerance, "{found:e}, expected {expected:e}");
}
