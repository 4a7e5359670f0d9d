//! Tables of document frequencies as files.
//!
//! ```text
//! {"dupflow_idf":1,"documents":2,"features":3,"rules":{"shingle":{"Words":3},"spaceless":"part",…}}
//! 0123456789abcdef⇥2
//! …
//! ```
//!
//! UTF-8. A line of JSON with the version of the format, N, the number of lines that follow, and the text
//! rules that the features are of; then each feature as 16 hexadecimal digits, a tab, its df, 1 or more;
//! ascending. Features under other rules are other features, so such a table is refused; one that does not
//! say what it does with `marks` was counted when all of them split words. The version is raised when the
//! format changes, or the hashes of features.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::{Field, IdfTable, Marks, TextRules, Weights};

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// The longest line that is read of a file that may be anything.
const LONGEST_LINE: u64 = 1 << 20;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
    dupflow_idf: u64,
    documents: u64,
    features: u64,
    rules: Map<String, Value>,
}

/// Why a table cannot be read.
#[derive(Debug, Error)]
pub enum IdfError {
    /// The file.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It begins otherwise.
    #[error("no table of document frequencies: it begins with {0:?}")]
    Header(String),
    /// Of another version.
    #[error("version {0} of the format, expected {VERSION}")]
    Version(u64),
    /// Counted under other rules.
    #[error("counted under other rules of [text]: {}", .0.join("; "))]
    Rules(Vec<String>),
    /// A line that is none of the format.
    #[error(
        "line {number}: found {found:?}, expected a feature after the last one, a tab, and the number of its holders"
    )]
    Line {
        /// From 1.
        number: u64,
        /// The line.
        found: String,
    },
    /// It ends too early, or too late.
    #[error("found {found} features, expected {expected}")]
    Length {
        /// Lines after the first.
        found: u64,
        /// As the first line says.
        expected: u64,
    },
}

impl IdfTable {
    /// How every file of a table begins.
    pub const MAGIC: &[u8] = b"{\"dupflow_idf\":";

    /// Writes the table, its features being of texts under `rules`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, rules: &TextRules, out: &mut impl Write) -> io::Result<()> {
        let header = Header {
            dupflow_idf: VERSION,
            documents: self.documents(),
            features: self.len() as u64,
            rules: said(rules),
        };
        serde_json::to_writer(&mut *out, &header)?;
        out.write_all(b"\n")?;
        self.iter().try_for_each(|(feature, holders)| writeln!(out, "{feature:016x}\t{holders}"))
    }

    /// Reads a table of features under `rules`.
    ///
    /// # Errors
    /// Those of `file`, and whatever is not as [`Self::write`] writes it.
    pub fn read(rules: &TextRules, mut file: impl BufRead) -> Result<Self, IdfError> {
        let mut first = String::new();
        io::Read::take(&mut file, LONGEST_LINE).read_line(&mut first)?;
        let header: Header = serde_json::from_str(&first).map_err(|_| IdfError::Header(beginning(&first)))?;
        if header.dupflow_idf != VERSION {
            return Err(IdfError::Version(header.dupflow_idf));
        }
        let mut there = header.rules;
        // Tables of before there was a choice.
        there.entry("marks").or_insert_with(|| Marks::Split.name().into());
        let differences = differences(&there, &said(rules));
        if !differences.is_empty() {
            return Err(IdfError::Rules(differences));
        }
        let mut entries: Vec<(u64, u32)> = Vec::new();
        for (line, number) in file.lines().zip(2..) {
            let line = line?;
            let entry = entry(&line).filter(|(id, _)| entries.last().is_none_or(|(last, _)| last < id));
            entries.push(entry.ok_or_else(|| IdfError::Line { number, found: beginning(&line) })?);
        }
        let (found, expected) = (entries.len() as u64, header.features);
        if found != expected {
            return Err(IdfError::Length { found, expected });
        }
        Ok(Self::new(header.documents, entries))
    }
}

fn entry(line: &str) -> Option<(u64, u32)> {
    let (feature, holders) = line.split_once('\t')?;
    let feature = (feature.len() == 16).then(|| u64::from_str_radix(feature, 16).ok())??;
    Some((feature, holders.parse().ok().filter(|holders| *holders > 0)?))
}

fn beginning(line: &str) -> String {
    line.chars().take(40).collect()
}

/// The rules that decide features: what they weigh, or the fields that they stand in, does not.
fn said(rules: &TextRules) -> Map<String, Value> {
    let one = |field: &Field| Field { weight: 1, ..field.clone() };
    let fields = rules.fields.iter().map(one).collect();
    let rules = TextRules { fields, weights: Weights::Unit, ..rules.clone() };
    match serde_json::to_value(rules) {
        Ok(Value::Object(keys)) => keys,
        other => unreachable!("rules are an object of texts and numbers, not {other:?}"),
    }
}

fn differences(there: &Map<String, Value>, here: &Map<String, Value>) -> Vec<String> {
    let fields: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
    let value = |rules: &Map<String, Value>, field: &str| {
        rules.get(field).map_or("nothing".to_owned(), |value| beginning(&value.to_string()))
    };
    fields
        .into_iter()
        .filter(|field| there.get(*field) != here.get(*field))
        .map(|field| format!("{field} is {} there and {} here", value(there, field), value(here, field)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Field, Shingle, Spaceless};

    fn written(table: &IdfTable, rules: &TextRules) -> String {
        let mut file = Vec::new();
        table.write(rules, &mut file).unwrap();
        String::from_utf8(file).unwrap()
    }

    #[test]
    fn reads_what_it_writes() {
        let rules = TextRules { weights: Weights::Tf, ..TextRules::default() };
        for entries in [vec![], vec![(1, 2), (u64::MAX, 1), (77, u32::MAX)]] {
            let table = IdfTable::new(3, entries);
            let file = written(&table, &rules);
            assert!(file.as_bytes().starts_with(IdfTable::MAGIC));
            // What a feature weighs has no part in how many have it.
            let read = IdfTable::read(&TextRules::default(), file.as_bytes()).unwrap();
            assert_eq!((read.documents(), read.fingerprint()), (3, table.fingerprint()));
        }
    }

    #[test]
    fn fields_are_told_by_their_names() {
        let rules = |name: &str, weight| TextRules {
            fields: vec![Field { name: name.to_owned(), weight }],
            ..TextRules::default()
        };
        let file = written(&IdfTable::new(3, [(1, 3)]), &rules("title", 3));
        assert!(IdfTable::read(&rules("title", 5), file.as_bytes()).is_ok());
        for other in [rules("head", 3), TextRules::default()] {
            let refused = IdfTable::read(&other, file.as_bytes()).unwrap_err().to_string();
            assert!(
                refused.contains("fields is [{\"name\":\"title\",\"weight\":1}] there and "),
                "{refused}"
            );
        }
    }

    #[test]
    fn the_format() {
        let file = written(&IdfTable::new(3, [(0xabc, 2), (1, 3)]), &TextRules::default());
        assert_eq!(
            file,
            "{\"dupflow_idf\":1,\"documents\":3,\"features\":2,\"rules\":{\"html\":\"text\",\"marks\":\"keep\",\"normalize\":\"none\",\"shingle\":{\"Words\":3},\
             \"spaceless\":\"part\",\"stop_words\":[]}}\n0000000000000001\t3\n0000000000000abc\t2\n"
        );
    }

    /// Also one of before the rule was written into it: its words were split.
    #[test]
    fn a_table_of_split_words_is_none_of_whole_ones() {
        let split = TextRules { marks: Marks::Split, ..TextRules::default() };
        let file = written(&IdfTable::new(3, [(1, 3)]), &split);
        let old = file.replace("\"marks\":\"split\",", "");
        assert_ne!(file, old);
        for of_split in [file, old] {
            assert!(IdfTable::read(&split, of_split.as_bytes()).is_ok());
            assert_eq!(
                IdfTable::read(&TextRules::default(), of_split.as_bytes()).unwrap_err().to_string(),
                "counted under other rules of [text]: marks is \"split\" there and \"keep\" here"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_table_of_these_rules() {
        let rules = TextRules::default();
        let file = written(&IdfTable::new(3, [(1, 3), (2, 1)]), &rules);
        let refused =
            |by: &TextRules, table: &str| IdfTable::read(by, table.as_bytes()).unwrap_err().to_string();
        let others = TextRules { shingle: Shingle::Words(2), spaceless: Spaceless::Run, ..rules.clone() };
        assert_eq!(
            refused(&others, &file),
            "counted under other rules of [text]: shingle is {\"Words\":3} there and {\"Words\":2} here; \
             spaceless is \"part\" there and \"run\" here"
        );
        assert!(refused(&rules, "{\"id\":1}\n").starts_with("no table of document frequencies"));
        assert!(refused(&rules, "").starts_with("no table of document frequencies"));
        assert_eq!(
            refused(&rules, &file.replace("_idf\":1", "_idf\":9")),
            "version 9 of the format, expected 1"
        );
        assert_eq!(
            refused(&rules, file.trim_end_matches("0000000000000002\t1\n")),
            "found 1 features, expected 2"
        );
        for (from, to) in
            [("2\t1", "2\t0"), ("2\t1", "1\t1"), ("2\t1", "2 1"), ("0002\t", "002\t"), ("\t1", "\t-1")]
        {
            let said = refused(&rules, &file.replace(from, to));
            assert!(said.starts_with("line 3: found \"0"), "{said}");
        }
    }
}
