//! A decision as a record: its content, and its line of JSON.
//!
//! ```text
//! {"id":"…","partition":0,"offset":17,"epoch":7,"at":"…","copy":true,"of":"…","repeats":[{"id":"…",
//!  "similarity":0.9}],"pairs":1,"cluster":"…"}
//! {"id":"…","partition":0,"offset":17,"epoch":7,"at":"…","ended":true}  an upsert, not alive after its epoch
//! {"id":"…","epoch":9,"at":"…","ended":true}                            ended later
//! ```
//!
//! The keys are always in this order; `"giant":true` follows `cluster` for a document of a giant.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use serde::Deserialize;

use crate::sinks::rows::cluster_json::write_id;
use crate::sinks::rows::{ColumnType, OutputCell, whole};
use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::{SharesBeside, Similarity};
use dupflow_core::time::Epoch;

/// When records of a document are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DecisionMode {
    /// For each upsert.
    #[default]
    First,
    /// Also whenever the content changes later, and when the document ends.
    Current,
}

/// What a run says of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decision {
    /// The document.
    pub id: DocId,
    /// The position of its last event; `None` for a document that has ended without an upsert in its last
    /// epoch.
    pub position: Option<Position>,
    /// What it repeats; `None` if it is not alive.
    pub repetition: Option<Repetition>,
}

/// What a live document repeats.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Repetition {
    /// The oldest document of its cluster, perhaps itself; `None` if it is in no cluster. In a giant, the
    /// oldest of itself and the documents that it is in a pair with.
    pub of: Option<DocId>,
    /// The name of its cluster; `None` also in a giant.
    pub cluster: Option<DocId>,
    /// Whether it is in a component above the cluster limit.
    pub is_giant: bool,
    /// The other documents of its pairs: the most similar first, equal ones by id, at most
    /// [`Repetition::MOST`].
    pub repeats: Vec<(DocId, Similarity)>,
    /// Number of its pairs.
    pub pairs: usize,
}

impl DecisionMode {
    /// All modes.
    pub const ALL: [Self; 2] = [Self::First, Self::Current];

    /// The name in configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Current => "current",
        }
    }
}

impl FromStr for DecisionMode {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|mode| mode.name() == typed);
        found.ok_or_else(|| "expected \"first\" or \"current\"".to_owned())
    }
}

impl fmt::Display for DecisionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Repetition {
    /// Most documents in [`Self::repeats`], inclusive: enough for a page of results. A document in a group of
    /// copies may have a thousand pairs, and under [`DecisionMode::Current`] each of the group is written
    /// again when one is added.
    pub const MOST: usize = 20;
}

impl Decision {
    /// Whether an older document is in its cluster.
    pub fn is_copy(&self) -> bool {
        let of = self.repetition.as_ref().and_then(|repetition| repetition.of.as_ref());
        of.is_some_and(|of| *of != self.id)
    }

    /// Writes the record without a line break.
    pub(crate) fn write(&self, out: &mut impl Write, epoch: Epoch, at: &str) -> io::Result<()> {
        out.write_all(b"{\"id\":")?;
        write_id(out, &self.id)?;
        if let Some(Position { partition, offset }) = self.position {
            write!(out, ",\"partition\":{partition},\"offset\":{offset}")?;
        }
        write!(out, ",\"epoch\":{epoch},\"at\":\"{at}\",")?;
        match &self.repetition {
            None => out.write_all(b"\"ended\":true}"),
            Some(repetition) => {
                write!(out, "\"copy\":{},", self.is_copy())?;
                repetition.write(out)
            }
        }
    }

    /// The columns of a decision in a format that has columns.
    pub const COLUMNS: [(&str, ColumnType); 12] = [
        ("id", ColumnType::Text),
        ("partition", ColumnType::OptionalInteger),
        ("offset", ColumnType::OptionalInteger),
        ("epoch", ColumnType::Integer),
        ("at", ColumnType::Text),
        ("copy", ColumnType::Flag),
        ("of", ColumnType::OptionalText),
        ("repeats", ColumnType::OptionalText),
        ("pairs", ColumnType::OptionalInteger),
        ("cluster", ColumnType::OptionalText),
        ("giant", ColumnType::Flag),
        ("ended", ColumnType::Flag),
    ];

    /// The cells of [`Self::COLUMNS`]. `repeats` is [`Self::repeats`].
    pub(crate) fn cells<'a>(
        &'a self,
        epoch: Epoch,
        at: &'a str,
        repeats: Option<&'a str>,
    ) -> [OutputCell<'a>; 12] {
        let repetition = self.repetition.as_ref();
        let id = |id: Option<&'a DocId>| id.map_or(OutputCell::Missing, |id| OutputCell::Text(id.as_str()));
        let number = |number: Option<u64>| number.map_or(OutputCell::Missing, whole);
        [
            OutputCell::Text(self.id.as_str()),
            number(self.position.map(|position| position.partition.into())),
            number(self.position.map(|position| position.offset)),
            whole(epoch),
            OutputCell::Text(at),
            OutputCell::Flag(self.is_copy()),
            id(repetition.and_then(|repetition| repetition.of.as_ref())),
            repeats.map_or(OutputCell::Missing, OutputCell::Text),
            number(repetition.map(|repetition| repetition.pairs as u64)),
            id(repetition.and_then(|repetition| repetition.cluster.as_ref())),
            OutputCell::Flag(repetition.is_some_and(|repetition| repetition.is_giant)),
            OutputCell::Flag(repetition.is_none()),
        ]
    }

    /// The list of documents and similarities as JSON; `None` if the document is not alive.
    pub(crate) fn repeats(&self) -> io::Result<Option<String>> {
        let Some(repetition) = &self.repetition else { return Ok(None) };
        let mut list = Vec::new();
        repetition.write_repeats(&mut list)?;
        Ok(Some(String::from_utf8_lossy(&list).into_owned()))
    }

    /// Parses a line written by [`Self::write`].
    ///
    /// # Errors
    /// If the line is no decision.
    pub(crate) fn read(line: &[u8]) -> io::Result<Self> {
        let found = serde_json::from_slice(line).ok().and_then(DecisionLine::decision);
        found.ok_or_else(|| {
            let what = format!("a record of the output is no decision: {}", String::from_utf8_lossy(line));
            io::Error::new(io::ErrorKind::InvalidData, what)
        })
    }
}

impl Repetition {
    /// Writes from the key `of` to the end of the object.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"\"of\":")?;
        write_maybe(out, self.of.as_ref())?;
        out.write_all(b",\"repeats\":")?;
        self.write_repeats(out)?;
        write!(out, ",\"pairs\":{},\"cluster\":", self.pairs)?;
        write_maybe(out, self.cluster.as_ref())?;
        out.write_all(if self.is_giant { b",\"giant\":true}" } else { b"}" })
    }

    /// Writes the list of documents and similarities.
    pub(crate) fn write_repeats(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"[")?;
        let mut before: &[u8] = b"{\"id\":";
        for (id, similarity) in &self.repeats {
            out.write_all(std::mem::replace(&mut before, b",{\"id\":"))?;
            write_id(out, id)?;
            out.write_all(b",\"similarity\":")?;
            serde_json::to_writer(&mut *out, &similarity.get())?;
            let SharesBeside { in_id, of_id } = SharesBeside::new(*similarity);
            if let (Some(in_id), Some(of_id)) = (in_id, of_id) {
                write!(out, ",\"in_id\":{in_id:?},\"of_id\":{of_id:?}")?;
            }
            out.write_all(b"}")?;
        }
        out.write_all(b"]")
    }

    /// Parses a list written by [`Self::write_repeats`].
    pub(crate) fn read_repeats(list: &str) -> Option<Vec<(DocId, Similarity)>> {
        serde_json::from_str(list).ok().map(repeats)
    }
}

fn write_maybe(out: &mut impl Write, id: Option<&DocId>) -> io::Result<()> {
    match id {
        Some(id) => write_id(out, id),
        None => out.write_all(b"null"),
    }
}

/// A record as parsed.
#[derive(Deserialize)]
struct DecisionLine {
    id: DocId,
    partition: Option<u32>,
    offset: Option<u64>,
    epoch: Epoch,
    #[serde(default)]
    ended: bool,
    copy: Option<bool>,
    of: Option<DocId>,
    #[serde(default)]
    repeats: Vec<RepeatLine>,
    #[serde(default)]
    pairs: usize,
    cluster: Option<DocId>,
    #[serde(default)]
    giant: bool,
}

#[derive(Deserialize)]
struct RepeatLine {
    id: DocId,
    similarity: f64,
    #[serde(flatten)]
    shares: SharesBeside,
}

impl DecisionLine {
    fn decision(self) -> Option<Decision> {
        let Self { id, partition, offset, ended, copy, of, cluster, giant: is_giant, pairs, .. } = self;
        let position = partition.zip(offset).map(|(partition, offset)| Position { partition, offset });
        let repeats = repeats(self.repeats);
        let repetition = copy.map(|_| Repetition { of, cluster, is_giant, repeats, pairs });
        let decision = Decision { id, position, repetition };
        // Of a live document the position and the outcome are known; of any other, that it has ended.
        let is_whole = match copy {
            Some(copy) => !ended && position.is_some() && copy == decision.is_copy(),
            None => ended,
        };
        (is_whole && self.epoch > 0).then_some(decision)
    }
}

fn repeats(lines: Vec<RepeatLine>) -> Vec<(DocId, Similarity)> {
    lines.into_iter().map(|line| (line.id, line.shares.similarity(line.similarity))).collect()
}

/// The last record of each document in an output, as it is read back.
#[derive(Debug, Default)]
pub(crate) struct LastDecisions(pub(crate) BTreeMap<DocId, Decision>);

impl LastDecisions {
    /// Applies a line; those of a document in their order.
    ///
    /// # Errors
    /// If the line is no decision.
    pub(crate) fn add(&mut self, line: &[u8]) -> io::Result<()> {
        let decision = Decision::read(line)?;
        // The end of a document without a position leaves nothing that a correction needs.
        if decision.position.is_some() {
            self.0.insert(decision.id.clone(), decision);
        } else {
            self.0.remove(&decision.id);
        }
        Ok(())
    }

    /// Applies the end of a document, by the bytes of its id.
    pub(crate) fn end(&mut self, id: &[u8]) {
        if let Ok(id) = std::str::from_utf8(id) {
            self.0.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    fn line(decision: &Decision) -> String {
        let mut out = Vec::new();
        decision.write(&mut out, 7, "2026-01-31T23:59:59.125Z").unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn golden_records_are_read_back() {
        let position = Some(Position { partition: 3, offset: u64::MAX });
        let copy = Repetition {
            of: Some(id("\"")),
            cluster: Some(id("a")),
            is_giant: false,
            repeats: vec![(id("b"), Similarity::ONE), (id("你"), Similarity::clamped(0.8))],
            pairs: 2,
        };
        let giant = Repetition { of: Some(id("x")), is_giant: true, pairs: 40, ..Repetition::default() };
        let placed = "\"partition\":3,\"offset\":18446744073709551615,";
        let unique = "\"copy\":false,\"of\":null,\"repeats\":[],\"pairs\":0,\"cluster\":null}";
        let cases = [
            (
                Some(copy),
                position,
                concat!(
                    r#""copy":true,"of":"\"","repeats":[{"id":"b","similarity":1.0},"#,
                    r#"{"id":"你","similarity":0.8}],"pairs":2,"cluster":"a"}"#
                ),
            ),
            (Some(Repetition::default()), position, unique),
            (
                Some(giant),
                position,
                r#""copy":false,"of":"x","repeats":[],"pairs":40,"cluster":null,"giant":true}"#,
            ),
            (None, position, r#""ended":true}"#),
            (None, None, r#""ended":true}"#),
        ];
        for (repetition, at, rest) in cases {
            let place = at.map_or("", |_| placed);
            let expected = format!(r#"{{"id":"x",{place}"epoch":7,"at":"2026-01-31T23:59:59.125Z",{rest}"#);
            let decision = Decision { id: id("x"), position: at, repetition };
            assert_eq!(line(&decision), expected);
            assert_eq!(Decision::read(expected.as_bytes()).unwrap(), decision);
        }
    }

    #[test]
    fn other_records_are_rejected() {
        for line in [
            r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.5}"#,
            r#"{"epoch":1,"diff":1,"document":"a","cluster":"b"}"#,
            r#"{"id":"a","epoch":1,"at":""}"#,
            r#"{"id":"a","epoch":1,"at":"","copy":true,"of":"b","ended":true}"#,
            r#"{"id":"a","epoch":1,"at":"","copy":false}"#,
            r#"{"id":"a","partition":1,"offset":1,"epoch":1,"at":"","copy":false,"of":"b"}"#,
            r#"{"id":"a"}"#,
            "",
        ] {
            let error = Decision::read(line.as_bytes()).unwrap_err().to_string();
            assert!(error.ends_with(&format!("is no decision: {line}")), "{error}");
        }
    }

    #[test]
    fn the_last_record_of_a_document_counts() {
        let mut last = LastDecisions::default();
        let decision = |name, offset: Option<u64>, repetition| Decision {
            id: id(name),
            position: offset.map(|offset| Position { partition: 0, offset }),
            repetition,
        };
        let unique = || Some(Repetition::default());
        let expected = [decision("a", Some(3), unique()), decision("c", Some(5), None)];
        let records = [
            decision("a", Some(1), unique()),
            decision("b", Some(2), unique()),
            expected[0].clone(),
            decision("b", None, None),
            expected[1].clone(),
        ];
        records.iter().for_each(|record| last.add(line(record).as_bytes()).unwrap());
        assert!(last.0.into_values().eq(expected));
    }
}
