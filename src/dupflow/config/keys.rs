//! Every key of a pipeline file, with what it takes. A range or a list of choices stands here once: the
//! check, the message and the test of the comments in `pipelines/minhash.toml` are made of it.

use std::fmt::Display;
use std::ops::{Bound, RangeBounds};
use std::time::Duration;

use Bound::{Excluded, Included};

use super::described::Described;
use super::value::Value;
use dupflow_connectors::intake::OnError;
use dupflow_core::block::banding::MAX_ROWS;
use dupflow_core::block::{BlockingKind, HotPolicy};
use dupflow_core::cluster::{ClusterKind, KeepRule};
use dupflow_core::doc::retention::{self, RetentionClock};
use dupflow_core::filter::{FilterKind, Verify};
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Field, Growth, Html, IdfForm, Marks, Normalize, Shingle, Spaceless, Stem};

/// A key whose values are of one type.
pub(super) struct Key<T> {
    name: &'static str,
    expected: fn() -> String,
    /// The ends of the range.
    ends: fn() -> Vec<String>,
    /// The choices, by name.
    choices: fn() -> Vec<(&'static str, T)>,
    take: fn(&Value) -> Option<T>,
}

/// A whole number, both ends inclusive.
macro_rules! whole {
    ($name:literal, $from:expr, $to:expr) => {
        Key {
            name: $name,
            expected: || format!("a whole number from {} to {}", end($from), end($to)),
            ends: || vec![end($from), end($to)],
            choices: Vec::new,
            take: |value| value.integer($from..=$to),
        }
    };
}

/// A number between two bounds.
macro_rules! number {
    ($name:literal, $from:expr, $to:expr) => {
        Key {
            name: $name,
            expected: || between($from, $to),
            ends: || [$from, $to].into_iter().filter_map(bound).collect(),
            choices: Vec::new,
            take: |value| value.number().filter(|number| ($from, $to).contains(number)),
        }
    };
}

/// One of a few, by name: pairs, or values that have names.
macro_rules! choice {
    ($name:literal, [$($choice:expr => $value:expr),* $(,)?]) => {
        choice!($name, of vec![$(($choice, $value)),*])
    };
    ($name:literal, $values:expr) => {
        choice!($name, of $values.map(|choice| (choice.name(), choice)).into())
    };
    ($name:literal, of $choices:expr) => {
        Key { name: $name, expected: String::new, ends: Vec::new, choices: || $choices, take: |_| None }
    };
}

/// Anything else.
macro_rules! other {
    ($name:literal, $expected:expr, $take:expr) => {
        Key { name: $name, expected: || $expected, ends: Vec::new, choices: Vec::new, take: $take }
    };
}

/// Most tokens or characters of a shingle.
const LONGEST_SHINGLE: usize = 100;

/// Most components of a sketch.
const MOST: usize = 32_768;

pub(super) const THRESHOLD: Key<f64> = number!("threshold", Excluded(0.0), Included(1.0));
pub(super) const MEASURE: Key<Measure> =
    choice!("measure", [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine]);

pub(super) const SHINGLE: Key<Shingle> = other!(
    "text.shingle",
    format!("\"words:N\" or \"chars:N\" with N from 1 to {LONGEST_SHINGLE}"),
    |value| {
        let (unit, size) = value.text()?.split_once(':')?;
        let size = size.parse().ok().filter(|size| (1..=LONGEST_SHINGLE).contains(size))?;
        match unit {
            "words" => Some(Shingle::Words(size)),
            "chars" => Some(Shingle::Chars(size)),
            _ => None,
        }
    }
);
pub(super) const SPACELESS: Key<Spaceless> =
    choice!("text.spaceless", [Spaceless::Part, Spaceless::Bag, Spaceless::Char, Spaceless::Run]);
pub(super) const MARKS: Key<Marks> = choice!("text.marks", [Marks::Keep, Marks::Split]);
pub(super) const NORMALIZE: Key<Normalize> =
    choice!("text.normalize", [Normalize::None, Normalize::Nfc, Normalize::Nfkc]);
pub(super) const HTML: Key<Html> = choice!("text.html", [Html::None, Html::Text, Html::Article]);
/// Words, or the path of a file.
pub(super) const STOP_WORDS: Key<Result<Vec<String>, String>> = other!(
    "text.stop_words",
    "a list of words, or the path of a file with one word a line".to_owned(),
    |value| match value {
        Value::Text(path, _) => Some(Err(path.clone())),
        list => list.list(|word| word.text().map(str::to_owned)).map(Ok),
    }
);
pub(super) const STEM: Key<Stem> =
    choice!("text.stem", of Stem::ALL.iter().map(|stem| (stem.name(), *stem)).collect());
/// The weight of each field.
pub(super) const FIELDS: Key<u32> = whole!("text.fields.*", 1, Field::MOST);
pub(super) const WEIGHTS: Key<&str> =
    choice!("text.weights", ["unit" => "unit", "count" => "count", "tf" => "tf", "tf-idf" => "tf-idf"]);
pub(super) const IDF: Key<String> =
    other!("text.idf", "\"live\", or the path of a table, of a feed or of a folder".to_owned(), |value| {
        value.text().map(str::to_owned)
    });
pub(super) const IDF_FORM: Key<IdfForm> = choice!("text.idf_form", [IdfForm::Smooth, IdfForm::Paper]);
pub(super) const IDF_GROWTH: Key<Growth> = other!(
    "text.idf_growth",
    format!("a number above 1 and at most {}, of two decimals at most", Growth::MAX),
    |value| Growth::new(value.number()?)
);

pub(super) const KIND: Key<SketchKind> = choice!("sketch.kind", SketchKind::ALL);
pub(super) const SIZE: Key<usize> = whole!("sketch.size", 16, MOST);
pub(super) const BITS: Key<f64> = number!("sketch.bits", Included(1.0), Included(64.0));
pub(super) const SEED: Key<u64> = whole!("sketch.seed", 0, u64::MAX >> 1);
pub(super) const RUN: Key<usize> = whole!("sketch.run", 2, 64);
pub(super) const SECTIONS: Key<usize> = whole!("sketch.sections", 1, 1000);
/// In thousandths.
pub(super) const BOUND: Key<u32> = Key {
    name: "sketch.bound",
    expected: || "a number from 0.001 to 1000000, of three decimals at most".to_owned(),
    ends: || vec!["0.001".to_owned(), "1000000".to_owned()],
    choices: Vec::new,
    take: |value| thousandths(value.number()?),
};
pub(super) const MODE: Key<SectionMode> = choice!("sketch.mode", [SectionMode::Attach, SectionMode::Pair]);
pub(super) const BASE: Key<SectionBase> = choice!("sketch.base", [SectionBase::Fss, SectionBase::MinHash]);

pub(super) const BLOCKING: Key<BlockingKind> = choice!("blocking.kind", of blockings());
pub(super) const BANDS: Key<usize> = whole!("blocking.bands", 1, MOST);
pub(super) const ROWS: Key<usize> = whole!("blocking.rows", 1, MAX_ROWS);
pub(super) const RECALL: Key<f64> = number!("blocking.recall", Excluded(0.0), Excluded(1.0));
/// Documents that blocks are planned for.
pub(super) const DOCUMENTS: Key<u64> = whole!("blocking.documents", 1, 1_000_000_000_000_u64);
pub(super) const BLOCK_SKETCH: Key<SketchKind> = choice!(
    "blocking.sketch",
    [SketchKind::Fss, SketchKind::MinHash, SketchKind::Oph, SketchKind::SuperMinHash]
);
pub(super) const BLOCK_SIZE: Key<usize> = whole!("blocking.size", 16, MOST);
pub(super) const BLOCK_BITS: Key<usize> =
    other!("blocking.bits", "1, 2, 4, 8, 16, 32 or 64".to_owned(), |value| {
        value.integer(1..=64).filter(|bits: &usize| bits.is_power_of_two())
    });
pub(super) const DISTANCE: Key<usize> = whole!("blocking.distance", 0, MOST - 1);
pub(super) const TABLES: Key<usize> = whole!("blocking.tables", 1, 4096);
pub(super) const COMMON: Key<usize> = whole!("blocking.common", 1, 255);
/// The keys of a second blocking.
pub(super) const ALSO: Key<BlockingKind> = choice!(
    "blocking.also.kind",
    // Nothing is left to be found beside every pair.
    of blockings().into_iter().filter(|(_, kind)| *kind != BlockingKind::Scan).collect()
);
pub(super) const ALSO_BANDS: Key<usize> = whole!("blocking.also.bands", 1, MOST);
pub(super) const ALSO_ROWS: Key<usize> = whole!("blocking.also.rows", 1, MAX_ROWS);
pub(super) const ALSO_RECALL: Key<f64> = number!("blocking.also.recall", Excluded(0.0), Excluded(1.0));
pub(super) const ALSO_DISTANCE: Key<usize> = whole!("blocking.also.distance", 0, MOST - 1);
pub(super) const ALSO_TABLES: Key<usize> = whole!("blocking.also.tables", 1, 4096);
pub(super) const ALSO_COMMON: Key<usize> = whole!("blocking.also.common", 1, 255);
pub(super) const CAP: Key<usize> = whole!("blocking.cap", 2, 1_000_000);
pub(super) const HOT: Key<HotPolicy> = choice!("blocking.hot", ["leaders" => HotPolicy::Leaders, "skip" => HotPolicy::Skip, "never" => HotPolicy::Never]);
pub(super) const LEADERS: Key<usize> = whole!("blocking.leaders", 1, 64);

pub(super) const FILTER: Key<FilterKind> = choice!("filter.kind", [
    "staged" => FilterKind::Staged,
    "paper" => FilterKind::Paper,
    "full" => FilterKind::Full,
    "hamming" => FilterKind::Hamming,
]);
pub(super) const ERROR: Key<f64> = number!("filter.error", Excluded(0.0), Included(0.1));
pub(super) const LOOKS: Key<Vec<usize>> =
    other!("filter.looks", format!("a list of whole numbers from 1 to {MOST}"), |value| {
        value.list(|look| look.integer(1..=MOST))
    });
pub(super) const VERIFY: Key<Verify> =
    choice!("filter.verify", ["sketch" => Verify::Sketch, "exact" => Verify::Exact]);

pub(super) const MAX_AGE: Key<Duration> = other!(
    "retention.max_age",
    "an age as in \"30d\", \"12h\", \"5m\" or \"90s\", up to \"36500d\"".to_owned(),
    |value| retention::age(value.text()?)
);
/// More than a worker can hold.
pub(super) const MAX_DOCUMENTS: Key<u64> = whole!("retention.max_documents", 1, u64::from(u32::MAX));
pub(super) const RETENTION_CLOCK: Key<RetentionClock> = choice!("retention.clock", RetentionClock::ALL);
pub(super) const EXPAND_LIMIT: Key<usize> = whole!("output.expand_limit", 1, 1_000_000);
pub(super) const CLUSTERS: Key<ClusterKind> =
    choice!("output.clusters", ["components" => ClusterKind::Components, "star" => ClusterKind::Star]);
pub(super) const CLUSTER_LIMIT: Key<usize> = whole!("output.cluster_limit", 2, 10_000_000);
pub(super) const KEEP: Key<KeepRule> = choice!("output.keep", KeepRule::ALL);
pub(super) const ON_ERROR: Key<OnError> =
    choice!("output.on_error", ["count" => OnError::Count, "fail" => OnError::Fail]);

/// Every key of a pipeline file, in the order of `pipelines/minhash.toml`.
pub(super) const KEYS: &[&dyn Described] = &[
    &THRESHOLD,
    &MEASURE,
    &SHINGLE,
    &SPACELESS,
    &MARKS,
    &HTML,
    &NORMALIZE,
    &STOP_WORDS,
    &STEM,
    &FIELDS,
    &WEIGHTS,
    &IDF,
    &IDF_FORM,
    &IDF_GROWTH,
    &KIND,
    &SIZE,
    &BITS,
    &SEED,
    &RUN,
    &SECTIONS,
    &MODE,
    &BASE,
    &BOUND,
    &BLOCKING,
    &BANDS,
    &ROWS,
    &RECALL,
    &DOCUMENTS,
    &BLOCK_SKETCH,
    &BLOCK_SIZE,
    &BLOCK_BITS,
    &DISTANCE,
    &TABLES,
    &COMMON,
    &CAP,
    &HOT,
    &LEADERS,
    &ALSO,
    &ALSO_BANDS,
    &ALSO_ROWS,
    &ALSO_RECALL,
    &ALSO_DISTANCE,
    &ALSO_TABLES,
    &ALSO_COMMON,
    &FILTER,
    &ERROR,
    &LOOKS,
    &VERIFY,
    &MAX_AGE,
    &MAX_DOCUMENTS,
    &RETENTION_CLOCK,
    &EXPAND_LIMIT,
    &CLUSTERS,
    &CLUSTER_LIMIT,
    &KEEP,
    &ON_ERROR,
];

/// The blockings, by name.
fn blockings() -> Vec<(&'static str, BlockingKind)> {
    vec![
        ("banding", BlockingKind::Banding),
        ("permuted", BlockingKind::Permuted),
        ("multi-index", BlockingKind::MultiIndex),
        ("groups", BlockingKind::Groups),
        ("conjunctions", BlockingKind::Conjunctions),
        ("shingles", BlockingKind::Shingles),
        ("scan", BlockingKind::Scan),
    ]
}

/// The keys of one blocking.
pub(super) struct BlockingKeys {
    pub(super) kind: Key<BlockingKind>,
    pub(super) bands: Key<usize>,
    pub(super) rows: Key<usize>,
    pub(super) recall: Key<f64>,
    pub(super) distance: Key<usize>,
    pub(super) tables: Key<usize>,
    pub(super) common: Key<usize>,
}

/// Those of the table `[blocking]`.
pub(super) const FIRST: &BlockingKeys = &BlockingKeys {
    kind: BLOCKING,
    bands: BANDS,
    rows: ROWS,
    recall: RECALL,
    distance: DISTANCE,
    tables: TABLES,
    common: COMMON,
};

/// Those of the table `[blocking.also]`.
pub(super) const SECOND: &BlockingKeys = &BlockingKeys {
    kind: ALSO,
    bands: ALSO_BANDS,
    rows: ALSO_ROWS,
    recall: ALSO_RECALL,
    distance: ALSO_DISTANCE,
    tables: ALSO_TABLES,
    common: ALSO_COMMON,
};

/// Keys and tables that other versions have.
pub(super) const LATER: &[&str] = &[];

impl<T> Key<T> {
    /// The value, if it is one that the key takes.
    pub(super) fn take(&self, value: &Value) -> Option<T> {
        let chosen = |typed| (self.choices)().into_iter().find(|(name, _)| *name == typed);
        value.text().and_then(chosen).map_or_else(|| (self.take)(value), |(_, choice)| Some(choice))
    }
}

impl<T: PartialEq> Key<T> {
    /// The name of a choice.
    pub(super) fn name_of(&self, choice: &T) -> &'static str {
        (self.choices)().into_iter().find(|(_, known)| known == choice).map_or("", |(name, _)| name)
    }
}

impl<T> Described for Key<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expected(&self) -> String {
        match self.bounds().split_last() {
            Some((last, others)) if (self.ends)().is_empty() => format!("{} or {last}", others.join(", ")),
            _ => (self.expected)(),
        }
    }

    fn bounds(&self) -> Vec<String> {
        let choices = (self.choices)().into_iter().map(|(name, _)| format!("\"{name}\""));
        (self.ends)().into_iter().chain(choices).collect()
    }
}

/// A number from 0.001 to 1,000,000, if it is a whole number of thousandths.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn thousandths(number: f64) -> Option<u32> {
    let exact = number * 1000.0;
    let is_whole = (exact - exact.round()).abs() < 1e-6;
    (is_whole && (1.0..=1e9).contains(&exact.round())).then(|| exact.round() as u32)
}

/// The end of a range, as people write it.
fn end(number: impl Display) -> String {
    let digits = number.to_string();
    if digits == i64::MAX.to_string() { "2^63 - 1".to_owned() } else { digits }
}

fn bound(bound: Bound<f64>) -> Option<String> {
    if let Included(number) | Excluded(number) = bound { Some(number.to_string()) } else { None }
}

fn between(from: Bound<f64>, to: Bound<f64>) -> String {
    match (from, to) {
        (Included(least), Included(most)) => format!("a number from {least} to {most}"),
        (Excluded(above), Included(most)) => format!("a number above {above} and at most {most}"),
        (Excluded(above), Excluded(below)) => format!("a number above {above} and below {below}"),
        other => format!("a number within {other:?}"),
    }
}
