//! Answers: which pairs are duplicates.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::path::Path;

use dupflow_connectors::formats::open;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use serde::Deserialize;

use crate::EvaluateError;

/// A line of a file of judged pairs, as in `{"a":"x","b":"y","duplicate":true}`. Other members are passed
/// over.
#[derive(Debug, Deserialize)]
struct JudgedLine {
    a: DocId,
    b: DocId,
    /// `None`: not judged. Without this member a line is none: its name may be misspelt.
    #[serde(deserialize_with = "Option::deserialize")]
    duplicate: Option<bool>,
}

/// Judged pairs. Of several answers for a pair the last one counts, and `null` takes it back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JudgedPairs(BTreeMap<Pair<DocId>, bool>);

/// What a line is to be.
const EXPECTED: &str =
    "expected {\"a\":\"…\",\"b\":\"…\",\"duplicate\":true}, or false, or null for a pair that is not judged";

impl JudgedPairs {
    /// Reads a file of JSON Lines, which may be compressed.
    ///
    /// # Errors
    /// If the file cannot be read, or at the first line that is no judged pair.
    pub fn read(path: &Path) -> Result<Self, EvaluateError> {
        let mut judged = Self::default();
        for (n, line) in open(path).map_err(EvaluateError::file(path))?.lines().enumerate() {
            let line = line.map_err(EvaluateError::file(path))?;
            if !line.trim().is_empty() && judged.add(&line).is_none() {
                return Err(EvaluateError::Truth { path: path.to_owned(), line: n + 1, expected: EXPECTED });
            }
        }
        Ok(judged)
    }

    /// Adds the answer of a line; `None` if it is none.
    fn add(&mut self, line: &str) -> Option<()> {
        let JudgedLine { a, b, duplicate } = serde_json::from_str(line).ok()?;
        self.judge(Pair::new(a, b)?, duplicate);
        Some(())
    }

    /// Notes an answer, or takes it back.
    pub fn judge(&mut self, pair: Pair<DocId>, is_duplicate: Option<bool>) {
        match is_duplicate {
            Some(is_duplicate) => drop(self.0.insert(pair, is_duplicate)),
            None => drop(self.0.remove(&pair)),
        }
    }

    /// The line of an answer, without its end.
    pub fn line(pair: &Pair<DocId>, is_duplicate: Option<bool>) -> String {
        serde_json::json!({"a": pair.lo(), "b": pair.hi(), "duplicate": is_duplicate}).to_string()
    }

    /// Keeps the pairs that fulfil a condition; returns how many there were.
    pub fn retain(&mut self, mut keeps: impl FnMut(&Pair<DocId>) -> bool) -> usize {
        let all = self.0.len();
        self.0.retain(|pair, _| keeps(pair));
        all
    }

    /// Whether a pair is a duplicate; `None` if it is not judged.
    pub fn get(&self, pair: &Pair<DocId>) -> Option<bool> {
        self.0.get(pair).copied()
    }

    /// All answers, by pair.
    pub fn iter(&self) -> impl Iterator<Item = (&Pair<DocId>, bool)> {
        self.0.iter().map(|(pair, is_duplicate)| (pair, *is_duplicate))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<JudgedPairs, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        JudgedPairs::read(file.path()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_last_answer_counts() {
        let pair = |a: &str, b: &str| Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
        let lines =
            [(pair("y", "x"), Some(true)), (pair("x", "z"), Some(false)), (pair("x", "w"), Some(true))];
        let mut content: String =
            lines.iter().map(|(one, answer)| JudgedPairs::line(one, *answer) + "\n").collect();
        content += "\n{\"b\":\"w\",\"a\":\"x\",\"duplicate\":null,\"texts\":[]}\n";
        content += "{\"a\":\"z\",\"b\":\"x\",\"duplicate\":true}\n";
        let judged = read(&content).unwrap();
        let all: Vec<_> = judged.iter().map(|(one, is)| (one.lo().as_str(), one.hi().as_str(), is)).collect();
        assert_eq!(all, [("x", "y", true), ("x", "z", true)]);
        assert_eq!((judged.get(&pair("x", "y")), judged.get(&pair("w", "x"))), (Some(true), None));
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for line in [
            "a\tb\tyes",
            "{\"a\":\"x\",\"b\":\"z\",\"duplicated\":true}",
            "{\"a\":\"x\",\"b\":\"x\",\"duplicate\":true}",
            "{\"a\":\"x\",\"duplicate\":1}",
        ] {
            let error =
                read(&format!("{{\"a\":\"x\",\"b\":\"y\",\"duplicate\":true}}\n{line}\n")).unwrap_err();
            assert!(error.contains("line 2") && error.contains("expected {\"a\":"), "{error}");
        }
    }
}
