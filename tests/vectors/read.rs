//! What the files have in common.

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
