//! Every key of a pipeline file with its accepted values. Each range and list of choices is defined once
//! here: the check, the error message and the test of the comments in `pipelines/minhash.toml` are derived
//! from it.

use std::ops::Bound::{Excluded, Included};
use std::ops::RangeBounds;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::config::settings::{ConfigKey, ConfigValue, TypedKey, between, bound, end};
use dupflow_connectors::intake::OnError;
use dupflow_core::block::banding::MAX_ROWS;
use dupflow_core::block::{BlockingKind, HotPolicy, LeadersBy};
use dupflow_core::cluster::{ClusterKind, KeepRule};
use dupflow_core::doc::retention::{self, RetentionClock};
use dupflow_core::doc::units::Split;
use dupflow_core::filter::{FilterKind, LEAST_ERROR, Verify};
use dupflow_core::hash::TokenHash;
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind, Ties};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{
    Field, Fold, Folds, Growth, Html, IdfForm, Invisible, Marks, Normalize, Shingle, Spaceless, Stem,
};

/// A whole number from `$from` to `$to`, both inclusive.
macro_rules! whole {
    ($name:literal, $from:expr, $to:expr) => {
        TypedKey {
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
        TypedKey {
            name: $name,
            expected: || between($from, $to),
            ends: || [$from, $to].into_iter().filter_map(bound).collect(),
            choices: Vec::new,
            take: |value| value.number().filter(|number| ($from, $to).contains(number)),
        }
    };
}

/// One of a few choices: a list of `name => value`, or values with a `name()`.
macro_rules! choice {
    ($name:literal, [$($choice:expr => $value:expr),* $(,)?]) => {
        choice!($name, of vec![$(($choice, $value)),*])
    };
    ($name:literal, $values:expr) => {
        choice!($name, of $values.map(|choice| (choice.name(), choice)).into())
    };
    ($name:literal, of $choices:expr) => {
        TypedKey { name: $name, expected: String::new, ends: Vec::new, choices: || $choices, take: |_| None }
    };
}

/// A value that `$take` reads; `$expected` describes it.
macro_rules! other {
    ($name:literal, $expected:expr, $take:expr) => {
        TypedKey { name: $name, expected: || $expected, ends: Vec::new, choices: Vec::new, take: $take }
    };
}

/// Most tokens or characters of a shingle, inclusive.
const LONGEST_SHINGLE: usize = 100;

/// Fewest characters of a secret, inclusive.
const LEAST_SECRET: usize = 20;

/// Most components of a sketch, inclusive.
const MOST: usize = 32_768;

pub(in crate::config) const THRESHOLD: TypedKey<f64> = number!("threshold", Excluded(0.0), Included(1.0));
pub(in crate::config) const MEASURE: TypedKey<Measure> =
    choice!("measure", of MEASURES.iter().map(|measure| (measure.name(), *measure)).collect());
const MEASURES: [Measure; 5] =
    [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine, Measure::Containment, Measure::Hamming];

/// Whether a record brings its own features.
pub(in crate::config) const FEATURES: TypedKey<bool> =
    choice!("text.features", ["shingles" => false, "given" => true]);

pub(in crate::config) const SHINGLE: TypedKey<Shingle> = other!(
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
pub(in crate::config) const SPACELESS: TypedKey<Spaceless> =
    choice!("text.spaceless", [Spaceless::Part, Spaceless::Bag, Spaceless::Char, Spaceless::Run]);
pub(in crate::config) const MARKS: TypedKey<Marks> = choice!("text.marks", [Marks::Keep, Marks::Split]);
pub(in crate::config) const NORMALIZE: TypedKey<Normalize> =
    choice!("text.normalize", [Normalize::None, Normalize::Nfc, Normalize::Nfkc]);
pub(in crate::config) const INVISIBLE: TypedKey<Invisible> =
    choice!("text.invisible", [Invisible::Ignore, Invisible::Keep]);
pub(in crate::config) const FOLD: TypedKey<Folds> = other!(
    "text.fold",
    format!("a list of {}", Fold::ALL.map(|fold| format!("{:?}", fold.name())).join(", ")),
    |value| {
        let named = |name: &ConfigValue| Fold::ALL.into_iter().find(|fold| Some(fold.name()) == name.text());
        value.list(named).map(Folds::new)
    }
);
/// The keys of the token hash, and their name.
pub(in crate::config) const SECRET: TypedKey<TokenHash> =
    other!("text.secret", format!("at least {LEAST_SECRET} characters, chosen at random"), |value| value
        .text()
        .filter(|secret| secret.chars().count() >= LEAST_SECRET)
        .map(token_hash));
pub(in crate::config) const HTML: TypedKey<Html> =
    choice!("text.html", [Html::None, Html::Text, Html::Fragments, Html::Article]);
/// A list of words (`Ok`), or the path of a file (`Err`).
pub(in crate::config) const STOP_WORDS: TypedKey<Result<Vec<String>, String>> = other!(
    "text.stop_words",
    "a list of words, or the path of a file with one word a line".to_owned(),
    |value| match value {
        ConfigValue::Text(path, _) => Some(Err(path.clone())),
        list => list.list(|word| word.text().map(str::to_owned)).map(Ok),
    }
);
pub(in crate::config) const STEM: TypedKey<Stem> =
    choice!("text.stem", of Stem::ALL.iter().map(|stem| (stem.name(), *stem)).collect());
pub(in crate::config) const SPLIT: TypedKey<Option<Split>> = choice!(
    "text.split",
    ["document" => None, "paragraph" => Some(Split::Paragraph), "line" => Some(Split::Line)]
);
pub(in crate::config) const SPLIT_LEAST: TypedKey<usize> = whole!("text.split_least", 1, 1000);
/// The weight of one field.
pub(in crate::config) const FIELDS: TypedKey<u32> = whole!("text.fields.*", 1, Field::MOST);
pub(in crate::config) const WEIGHTS: TypedKey<&str> =
    choice!("text.weights", ["unit" => "unit", "count" => "count", "tf" => "tf", "tf-idf" => "tf-idf"]);
pub(in crate::config) const IDF: TypedKey<String> =
    other!("text.idf", "\"live\", or the path of a table, of a feed or of a folder".to_owned(), |value| {
        value.text().map(str::to_owned)
    });
pub(in crate::config) const IDF_FORM: TypedKey<IdfForm> =
    choice!("text.idf_form", [IdfForm::Smooth, IdfForm::Paper]);
pub(in crate::config) const IDF_GROWTH: TypedKey<Growth> = other!(
    "text.idf_growth",
    format!("a number above 1 and at most {}, of two decimals at most", Growth::MAX),
    |value| Growth::new(value.number()?)
);

pub(in crate::config) const KIND: TypedKey<SketchKind> = choice!("sketch.kind", of sketches());
pub(in crate::config) const SIZE: TypedKey<usize> = whole!("sketch.size", 16, MOST);
pub(in crate::config) const BITS: TypedKey<f64> = number!("sketch.bits", Included(1.0), Included(64.0));
pub(in crate::config) const SEED: TypedKey<u64> = whole!("sketch.seed", 0, u64::MAX >> 1);
pub(in crate::config) const RUN: TypedKey<usize> = whole!("sketch.run", 2, 64);
pub(in crate::config) const SECTIONS: TypedKey<usize> = whole!("sketch.sections", 1, 1000);
/// In thousandths of the typed number.
pub(in crate::config) const BOUND: TypedKey<u32> = TypedKey {
    name: "sketch.bound",
    expected: || "a number from 0.001 to 1000000, of three decimals at most".to_owned(),
    ends: || vec!["0.001".to_owned(), "1000000".to_owned()],
    choices: Vec::new,
    take: |value| thousandths(value.number()?),
};
pub(in crate::config) const MODE: TypedKey<SectionMode> =
    choice!("sketch.mode", [SectionMode::Attach, SectionMode::Pair]);
pub(in crate::config) const BASE: TypedKey<SectionBase> =
    choice!("sketch.base", [SectionBase::Fss, SectionBase::MinHash]);
pub(in crate::config) const TIES: TypedKey<Ties> = choice!("sketch.ties", [Ties::Hash, Ties::One]);
pub(in crate::config) const SCALE: TypedKey<u32> = whole!("sketch.scale", 1, 65_536_u32);
pub(in crate::config) const LEAST: TypedKey<u32> = whole!("sketch.least", 1, 32_768_u32);

pub(in crate::config) const BLOCKING: TypedKey<BlockingKind> = choice!("blocking.kind", of blockings());
pub(in crate::config) const BANDS: TypedKey<usize> = whole!("blocking.bands", 1, MOST);
pub(in crate::config) const ROWS: TypedKey<usize> = whole!("blocking.rows", 1, MAX_ROWS);
pub(in crate::config) const RECALL: TypedKey<f64> = number!("blocking.recall", Excluded(0.0), Excluded(1.0));
/// The number of documents that the blocks are planned for.
pub(in crate::config) const DOCUMENTS: TypedKey<u64> = whole!("blocking.documents", 1, 1_000_000_000_000_u64);
pub(in crate::config) const BLOCK_SKETCH: TypedKey<SketchKind> = choice!(
    "blocking.sketch",
    [SketchKind::Fss, SketchKind::MinHash, SketchKind::Oph, SketchKind::SuperMinHash]
);
pub(in crate::config) const BLOCK_SIZE: TypedKey<usize> = whole!("blocking.size", 16, MOST);
pub(in crate::config) const BLOCK_BITS: TypedKey<usize> =
    other!("blocking.bits", "1, 2, 4, 8, 16, 32 or 64".to_owned(), |value| {
        value.integer(1..=64).filter(|bits: &usize| bits.is_power_of_two())
    });
pub(in crate::config) const DISTANCE: TypedKey<usize> = whole!("blocking.distance", 0, MOST - 1);
pub(in crate::config) const TABLES: TypedKey<usize> = whole!("blocking.tables", 1, 4096);
pub(in crate::config) const COMMON: TypedKey<usize> = whole!("blocking.common", 1, 255);
/// The keys of a second blocking; see [`SECOND`].
pub(in crate::config) const ALSO: TypedKey<BlockingKind> = choice!(
    "blocking.also.kind",
    // A scan already makes every pair a candidate, and a reference every one that can be a pair.
    of blockings().into_iter().filter(|(_, kind)| !is_alone(*kind)).collect()
);
pub(in crate::config) const ALSO_BANDS: TypedKey<usize> = whole!("blocking.also.bands", 1, MOST);
pub(in crate::config) const ALSO_ROWS: TypedKey<usize> = whole!("blocking.also.rows", 1, MAX_ROWS);
pub(in crate::config) const ALSO_RECALL: TypedKey<f64> =
    number!("blocking.also.recall", Excluded(0.0), Excluded(1.0));
pub(in crate::config) const ALSO_DISTANCE: TypedKey<usize> = whole!("blocking.also.distance", 0, MOST - 1);
pub(in crate::config) const ALSO_TABLES: TypedKey<usize> = whole!("blocking.also.tables", 1, 4096);
pub(in crate::config) const ALSO_COMMON: TypedKey<usize> = whole!("blocking.also.common", 1, 255);
pub(in crate::config) const CAP: TypedKey<usize> = whole!("blocking.cap", 2, 1_000_000);
pub(in crate::config) const HOT: TypedKey<HotPolicy> = choice!(
    "blocking.hot",
    ["leaders" => HotPolicy::Leaders, "skip" => HotPolicy::Skip, "never" => HotPolicy::Never]
);
pub(in crate::config) const LEADERS: TypedKey<usize> = whole!("blocking.leaders", 1, 64);
pub(in crate::config) const LEADERS_BY: TypedKey<LeadersBy> =
    choice!("blocking.leaders_by", ["id" => LeadersBy::Id, "size" => LeadersBy::Size]);

pub(in crate::config) const FILTER: TypedKey<FilterKind> = choice!("filter.kind", [
    "staged" => FilterKind::Staged,
    "paper" => FilterKind::Paper,
    "full" => FilterKind::Full,
    "hamming" => FilterKind::Hamming,
]);
pub(in crate::config) const ERROR: TypedKey<f64> =
    number!("filter.error", Included(LEAST_ERROR), Included(0.1));
pub(in crate::config) const LOOKS: TypedKey<Vec<usize>> =
    other!("filter.looks", format!("a list of whole numbers from 1 to {MOST}"), |value| {
        value.list(|look| look.integer(1..=MOST))
    });
pub(in crate::config) const VERIFY: TypedKey<Verify> =
    choice!("filter.verify", ["sketch" => Verify::Sketch, "exact" => Verify::Exact]);
pub(in crate::config) const LEAST_WORDS: TypedKey<usize> = whole!("filter.least_words", 1, 1_000_000);

/// A rule, parsed later, so that the position of an error can be reported.
pub(in crate::config) const WHERE: TypedKey<String> = other!(
    "pairs.where",
    "conditions as in \"a.host != b.host and a.lang == b.lang\", or \"\" for all pairs".to_owned(),
    |value| value.text().map(str::to_owned)
);
pub(in crate::config) const MAX_AGE: TypedKey<Duration> = other!(
    "retention.max_age",
    "an age as in \"30d\", \"12h\", \"5m\" or \"90s\", up to \"36500d\"".to_owned(),
    |value| retention::age(value.text()?)
);
/// The upper end is more than one worker can hold.
pub(in crate::config) const MAX_DOCUMENTS: TypedKey<u64> =
    whole!("retention.max_documents", 1, u64::from(u32::MAX));
pub(in crate::config) const RETENTION_CLOCK: TypedKey<RetentionClock> =
    choice!("retention.clock", RetentionClock::ALL);
pub(in crate::config) const EXPAND_LIMIT: TypedKey<usize> = whole!("output.expand_limit", 1, 1_000_000);
pub(in crate::config) const CLUSTERS: TypedKey<ClusterKind> =
    choice!("output.clusters", ["components" => ClusterKind::Components, "star" => ClusterKind::Star]);
pub(in crate::config) const CLUSTER_LIMIT: TypedKey<usize> = whole!("output.cluster_limit", 2, 10_000_000);
pub(in crate::config) const KEEP: TypedKey<KeepRule> =
    other!("output.keep", KeepRule::EXPECTED.to_owned(), |value| value.text()?.parse().ok());
/// The least share of a document in another one that stays.
pub(in crate::config) const REMOVE_IF: TypedKey<f64> = other!(
    "output.remove_if",
    "\"contained:SHARE\" with a share above 0 and at most 1".to_owned(),
    |value| {
        let share = value.text()?.strip_prefix("contained:")?.parse().ok();
        share.filter(|share: &f64| *share > 0.0 && *share <= 1.0)
    }
);
pub(in crate::config) const ITEM_LIMIT: TypedKey<u64> = whole!("output.item_limit", 1, 1_000_000_000_u64);
pub(in crate::config) const ON_ERROR: TypedKey<OnError> =
    choice!("output.on_error", ["count" => OnError::Count, "fail" => OnError::Fail]);

/// Every key of a pipeline file, in the order of `pipelines/minhash.toml`.
pub(in crate::config) const KEYS: &[&dyn ConfigKey] = &[
    &THRESHOLD,
    &MEASURE,
    &FEATURES,
    &SHINGLE,
    &SPACELESS,
    &MARKS,
    &HTML,
    &NORMALIZE,
    &INVISIBLE,
    &FOLD,
    &SECRET,
    &STOP_WORDS,
    &STEM,
    &SPLIT,
    &SPLIT_LEAST,
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
    &TIES,
    &SCALE,
    &LEAST,
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
    &LEADERS_BY,
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
    &LEAST_WORDS,
    &WHERE,
    &MAX_AGE,
    &MAX_DOCUMENTS,
    &RETENTION_CLOCK,
    &EXPAND_LIMIT,
    &CLUSTERS,
    &CLUSTER_LIMIT,
    &KEEP,
    &REMOVE_IF,
    &ITEM_LIMIT,
    &ON_ERROR,
];

/// The kinds of sketches by name.
fn sketches() -> Vec<(&'static str, SketchKind)> {
    let others = [SketchKind::Fingerprint, SketchKind::SCALED];
    SketchKind::ALL.into_iter().chain(others).map(|kind| (kind.name(), kind)).collect()
}

/// Whether a kind takes no second one, and is none.
pub(in crate::config) fn is_alone(kind: BlockingKind) -> bool {
    matches!(kind, BlockingKind::Scan | BlockingKind::Reference)
}

/// The kinds of blocking by name.
fn blockings() -> Vec<(&'static str, BlockingKind)> {
    vec![
        ("banding", BlockingKind::Banding),
        ("permuted", BlockingKind::Permuted),
        ("multi-index", BlockingKind::MultiIndex),
        ("groups", BlockingKind::Groups),
        ("conjunctions", BlockingKind::Conjunctions),
        ("shingles", BlockingKind::Shingles),
        ("reference", BlockingKind::Reference),
        ("scan", BlockingKind::Scan),
    ]
}

/// The keys of one blocking table.
pub(in crate::config) struct BlockingKeys {
    pub(in crate::config) kind: TypedKey<BlockingKind>,
    pub(in crate::config) bands: TypedKey<usize>,
    pub(in crate::config) rows: TypedKey<usize>,
    pub(in crate::config) recall: TypedKey<f64>,
    pub(in crate::config) distance: TypedKey<usize>,
    pub(in crate::config) tables: TypedKey<usize>,
    pub(in crate::config) common: TypedKey<usize>,
}

/// The keys of `[blocking]`.
pub(in crate::config) const FIRST: &BlockingKeys = &BlockingKeys {
    kind: BLOCKING,
    bands: BANDS,
    rows: ROWS,
    recall: RECALL,
    distance: DISTANCE,
    tables: TABLES,
    common: COMMON,
};

/// The keys of `[blocking.also]`.
pub(in crate::config) const SECOND: &BlockingKeys = &BlockingKeys {
    kind: ALSO,
    bands: ALSO_BANDS,
    rows: ALSO_ROWS,
    recall: ALSO_RECALL,
    distance: ALSO_DISTANCE,
    tables: ALSO_TABLES,
    common: ALSO_COMMON,
};

/// Keys and tables that only other versions of the program have; none at present.
pub(in crate::config) const LATER: &[&str] = &[];

/// The token hash under the keys of a secret, with a name from which it cannot be derived.
fn token_hash(secret: &str) -> TokenHash {
    let digest = Sha256::digest(secret.as_bytes());
    let word = |at: usize| digest[8 * at..].first_chunk().map_or(1, |bytes| u64::from_le_bytes(*bytes));
    TokenHash::keyed([word(0), word(1)], word(2).max(1))
}

/// A number from 0.001 to 1,000,000 in thousandths; `None` if it has more than three decimals.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the range")]
fn thousandths(number: f64) -> Option<u32> {
    let exact = number * 1000.0;
    let is_whole = (exact - exact.round()).abs() < 1e-6;
    (is_whole && (1.0..=1e9).contains(&exact.round())).then(|| exact.round() as u32)
}
