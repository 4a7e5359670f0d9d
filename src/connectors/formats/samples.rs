//! Sample texts in several scripts, and damaged copies of files, for the tests of all formats.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::format::RawReader;
use super::rows::{Damage, FileRow, NextRow, RowReader, RowText, WantedColumns};

const WORDS: &[&str] = &[
    "corpus",
    "the",
    "of",
    "near",
    "Straße",
    "naïve",
    "重复",
    "检测",
    "文档",
    "近い",
    "文書",
    "を",
    "探す",
    "ค้นหา",
    "เอกสาร",
    "مستند",
    "مكرر",
    "документ",
    "поиск",
    "🦀",
    "👩‍🔬",
    "\u{2028}",
    "\"quoted\"",
    "a,b",
    "tab\there",
    "new\nline",
    "WARC/1.0",
    "C:\\path",
];

/// The seed of a generator, `DUPFLOW_SEED` or 7, which it prints; and its number of rounds, `DUPFLOW_ROUNDS`
/// or `usual`.
pub(crate) fn seed_and_rounds(usual: u64) -> (u64, u64) {
    let number = |name: &str, otherwise| {
        std::env::var(name).map_or(otherwise, |typed| typed.parse().expect("a whole number"))
    };
    let seed = number("DUPFLOW_SEED", 7);
    println!("DUPFLOW_SEED={seed}");
    (seed, number("DUPFLOW_ROUNDS", usual))
}

/// Texts of up to 200 words, the same in every run.
pub(super) fn texts(count: usize, seed: u64) -> Vec<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut text = |number| {
        let words = rng.random_range(3..200);
        let words: Vec<_> = (0..words).map(|_| WORDS[rng.random_range(0..WORDS.len())]).collect();
        format!("{number} {}", words.join(" "))
    };
    (0..count).map(&mut text).collect()
}

/// Kinds of damage to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    /// The file is truncated.
    Truncated,
    /// One bit is flipped.
    Flipped,
    /// Up to 2,000 bytes are zeros.
    Zeroed,
}

/// Damaged copies of a file, each in one place, with the offset of the damage.
pub(super) fn harmed(
    file: &[u8],
    count: usize,
    seed: u64,
) -> impl Iterator<Item = (Harm, usize, Vec<u8>)> + '_ {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..count).map(move |number| {
        let at = rng.random_range(0..file.len());
        let mut bytes = file.to_vec();
        let harm = [Harm::Truncated, Harm::Flipped, Harm::Zeroed][number % 3];
        match harm {
            Harm::Truncated => bytes.truncate(at),
            Harm::Flipped => bytes[at] ^= 1 << rng.random_range(0..8),
            Harm::Zeroed => {
                let end = (at + rng.random_range(1..=2000)).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
        (harm, at, bytes)
    })
}

/// Everything that a reader returns.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ReadResult {
    pub(super) rows: Vec<FileRow>,
    pub(super) skipped: Vec<&'static str>,
    pub(super) damages: Vec<Damage>,
    pub(super) cut: u64,
}

impl ReadResult {
    /// Reads to the end, which must be reached within `most` calls.
    pub(super) fn read_all(mut rows: impl RowReader, most: usize) -> Self {
        let mut found = Self::default();
        let mut row = FileRow::default();
        for _ in 0..most {
            match rows.next(&mut row) {
                Ok(NextRow::Row) => found.rows.push(std::mem::take(&mut row)),
                Ok(NextRow::Skipped(why)) => found.skipped.push(why),
                Ok(NextRow::End) => {
                    found.cut = rows.cut();
                    return found;
                }
                Err(damage) => {
                    let ends = damage.ends;
                    found.damages.push(damage);
                    if ends {
                        return found;
                    }
                }
            }
        }
        panic!("no end within {most} steps: {found:?}");
    }

    pub(super) fn texts(&self) -> Vec<&str> {
        let texts = self.rows.iter().map(|row| match &row.text {
            RowText::Is(text) => std::str::from_utf8(text).unwrap(),
            other => panic!("{other:?}"),
        });
        texts.collect()
    }

    pub(super) fn ids(&self) -> Vec<&str> {
        let ids = self.rows.iter().map(|row| row.id.as_deref().unwrap_or_default());
        ids.map(|id| std::str::from_utf8(id).unwrap()).collect()
    }
}

/// The columns of a feed's names, with these fields.
pub(super) fn columns(fields: &[&str]) -> WantedColumns {
    let [id, text, ts, op] = ["id", "text", "ts", "op"].map(str::to_owned);
    let fields = fields.iter().map(|field| (*field).to_owned()).collect();
    WantedColumns { id: Some(id), text, ts, op, fields, given: None, part: None }
}

/// All records as they are written.
pub(super) fn raw_records(reader: &mut dyn RawReader) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        found.push(String::from_utf8(record.to_vec()).unwrap());
    }
    assert!(reader.next().unwrap().is_none(), "the end is the end");
    found
}
