//! The file format of tables of document frequencies.
//!
//! ```text
//! {"dupflow_idf":1,"documents":2,"features":3,"rules":{"shingle":{"Words":3},"spaceless":"part",…}}
//! 0123456789abcdef⇥2
//! …
//! ```
//!
//! A file is UTF-8. Its first line is JSON: the version of the format, N, the number of lines that follow,
//! and the text rules under which the features were counted. Each further line is a feature as 16 hexadecimal
//! digits, a tab, and its df, 1 or more; features ascend.
//!
//! Features under other rules are different features, so a table with other rules is rejected. A table
//! without `marks` in its rules was written when marks always split words. The version is raised when the
//! format or the hashes of features change.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::fields::Field;
use super::rules::TextRules;
use super::tokens::{Invisible, Marks};
use super::weights::{IdfTable, Weights};

/// The version that is written, and the only one that is read.
const VERSION: u64 = 1;

/// Limit for the first line, in bytes: the file may be anything.
const LONGEST_LINE: u64 = 1 << 20;

/// The first line.
#[derive(Serialize, Deserialize)]
struct IdfHeader {
    dupflow_idf: u64,
    documents: u64,
    features: u64,
    rules: Map<String, Value>,
}

/// Why a table cannot be read.
#[derive(Debug, Error)]
pub enum IdfError {
    /// Reading the file failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The first line is not a header.
    #[error("no table of document frequencies: it begins with {0:?}")]
    Header(String),
    /// The format has another version.
    #[error("version {0} of the format, expected {VERSION}")]
    Version(u64),
    /// The features were counted under other rules.
    #[error(
        "counted under other rules of [text]: {}; set them as they are there, or count again",
        .0.join("; ")
    )]
    Rules(Vec<String>),
    /// A line is not a feature with its holders.
    #[error(
        "line {number}: found {found:?}, expected a feature after the last one, a tab, and the number of \
         its holders"
    )]
    Line {
        /// Line number, from 1.
        number: u64,
        /// The first 40 characters of the line.
        found: String,
    },
    /// The number of lines differs from the header's.
    #[error("found {found} features, expected {expected}")]
    Length {
        /// Number of lines after the first.
        found: u64,
        /// Number of features in the header.
        expected: u64,
    },
}

impl IdfTable {
    /// The first bytes of every table file.
    pub const MAGIC: &[u8] = b"{\"dupflow_idf\":";

    /// Writes the table; its features are those of texts under `rules`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, rules: &TextRules, out: &mut impl Write) -> io::Result<()> {
        let header = IdfHeader {
            dupflow_idf: VERSION,
            documents: self.documents(),
            features: self.len() as u64,
            rules: feature_rules(rules),
        };
        serde_json::to_writer(&mut *out, &header)?;
        out.write_all(b"\n")?;
        self.iter().try_for_each(|(feature, holders)| writeln!(out, "{feature:016x}\t{holders}"))
    }

    /// Reads a table of features under `rules`.
    ///
    /// # Errors
    /// Those of `file`, and an [`IdfError`] for anything that is not written by [`Self::write`] under the
    /// same rules.
    pub fn read(rules: &TextRules, mut file: impl BufRead) -> Result<Self, IdfError> {
        let mut first = String::new();
        io::Read::take(&mut file, LONGEST_LINE).read_line(&mut first)?;
        let header: IdfHeader =
            serde_json::from_str(&first).map_err(|_| IdfError::Header(beginning(&first)))?;
        if header.dupflow_idf != VERSION {
            return Err(IdfError::Version(header.dupflow_idf));
        }
        let mut there = header.rules;
        // Tables written before `marks` could be chosen.
        there.entry("marks").or_insert_with(|| Marks::Split.name().into());
        let mut here = feature_rules(rules);
        for of_side in [&mut there, &mut here] {
            of_side.entry("invisible").or_insert_with(|| Invisible::Keep.name().into());
        }
        let differences = differences(&there, &here);
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

/// The rules that decide features. Weights, also those of fields, do not, and are set to their defaults.
fn feature_rules(rules: &TextRules) -> Map<String, Value> {
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
    use crate::text::{Normalize, Shingle, Spaceless};

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
            // Weights do not change document frequencies.
            let read = IdfTable::read(&TextRules::default(), file.as_bytes()).unwrap();
            assert_eq!((read.documents(), read.fingerprint()), (3, table.fingerprint()));
        }
    }

    #[test]
    fn fields_are_compared_by_name() {
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
        let of = |rules: &str| {
            format!(
                "{{\"dupflow_idf\":1,\"documents\":3,\"features\":2,\"rules\":{{\"html\":\"text\",{rules},\
                 \"shingle\":{{\"Words\":3}},\"spaceless\":\"part\",\"stop_words\":[]}}}}\n\
                 0000000000000001\t3\n0000000000000abc\t2\n"
            )
        };
        let table = IdfTable::new(3, [(0xabc, 2), (1, 3)]);
        let present = "\"invisible\":\"ignore\",\"marks\":\"keep\",\"normalize\":\"nfc\"";
        assert_eq!(written(&table, &TextRules::default()), of(present));
        // As an earlier version wrote it by its defaults.
        let earlier = of("\"marks\":\"keep\",\"normalize\":\"none\"");
        let (normalize, invisible) = (Normalize::None, Invisible::Keep);
        let rules = TextRules { normalize, invisible, ..TextRules::default() };
        assert_eq!(written(&table, &rules), earlier);
        assert_eq!(
            IdfTable::read(&TextRules::default(), earlier.as_bytes()).unwrap_err().to_string(),
            "counted under other rules of [text]: invisible is \"keep\" there and \"ignore\" here; \
             normalize is \"none\" there and \"nfc\" here; set them as they are there, or count again"
        );
        assert!(IdfTable::read(&rules, earlier.as_bytes()).is_ok());
    }

    /// Also for a table that was written before `marks` was in the header: its words were split.
    #[test]
    fn table_of_split_words_is_rejected_for_whole_words() {
        let split = TextRules { marks: Marks::Split, ..TextRules::default() };
        let file = written(&IdfTable::new(3, [(1, 3)]), &split);
        let old = file.replace("\"marks\":\"split\",", "");
        assert_ne!(file, old);
        for of_split in [file, old] {
            assert!(IdfTable::read(&split, of_split.as_bytes()).is_ok());
            assert_eq!(
                IdfTable::read(&TextRules::default(), of_split.as_bytes()).unwrap_err().to_string(),
                "counted under other rules of [text]: marks is \"split\" there and \"keep\" here; set them \
                 as they are there, or count again"
            );
        }
    }

    #[test]
    fn other_files_and_rules_are_rejected() {
        let rules = TextRules::default();
        let file = written(&IdfTable::new(3, [(1, 3), (2, 1)]), &rules);
        let refused =
            |by: &TextRules, table: &str| IdfTable::read(by, table.as_bytes()).unwrap_err().to_string();
        let others = TextRules { shingle: Shingle::Words(2), spaceless: Spaceless::Run, ..rules.clone() };
        assert_eq!(
            refused(&others, &file),
            "counted under other rules of [text]: shingle is {\"Words\":3} there and {\"Words\":2} here; \
             spaceless is \"part\" there and \"run\" here; set them as they are there, or count again"
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
            let message = refused(&rules, &file.replace(from, to));
            assert!(message.starts_with("line 3: found \"0"), "{message}");
        }
    }
}
