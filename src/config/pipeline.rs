//! A pipeline file to a [`Plan`].

use std::path::Path;
use std::sync::Arc;

use super::problem::{PlanError, What};
use super::raw::{Key, Settings};
use super::value::Value;
use super::{BUILT_IN, read, sketch};
use crate::block::design::{self, Design, DesignError};
use crate::block::{Banding, Blocking, BlockingKind, BlockingParams, Scan};
use crate::filter::{
    Exact, FilterError, FilterKind, FilterParams, PairFilter, Schedule, Staged, Target, Verify, Whole,
};
use crate::sketch::{Scheme, SketchParams, VERSION};
use crate::source::OnError;
use crate::text::{self, Normalize, Shingle, Spaceless, TextRules};

/// Most tokens or characters of a shingle.
const LONGEST_SHINGLE: usize = 100;

/// Every key of a pipeline file.
pub(super) const KEYS: &[Key] = &[
    Key { name: "threshold", expected: "a number above 0 and at most 1" },
    Key { name: "measure", expected: "\"jaccard\"" },
    Key { name: "text.shingle", expected: "\"words:N\" or \"chars:N\" with N from 1 to 100" },
    Key { name: "text.spaceless", expected: "\"char\" or \"run\"" },
    Key { name: "text.normalize", expected: "\"none\", \"nfc\" or \"nfkc\"" },
    Key { name: "text.stop_words", expected: "a list of words, or the path of a file with one word a line" },
    Key {
        name: "sketch.kind",
        expected: "\"fss\", \"minhash\", \"oph\", \"oph-original\", \"superminhash\", \"bottom-k\", \"min-max\", \"odd\", \
                   \"connected\" or \"sectional\"",
    },
    Key { name: "sketch.size", expected: "a whole number from 16 to 32768" },
    Key { name: "sketch.bits", expected: "a number from 1 to 64" },
    Key { name: "sketch.seed", expected: "a whole number from 0 to 2^63 - 1" },
    Key { name: "sketch.run", expected: "a whole number from 2 to 64" },
    Key { name: "sketch.sections", expected: "a whole number from 1 to 1000" },
    Key { name: "sketch.mode", expected: "\"attach\" or \"pair\"" },
    Key { name: "blocking.kind", expected: "\"banding\" or \"scan\"" },
    Key { name: "blocking.bands", expected: "a whole number from 1 to 32768" },
    Key { name: "blocking.rows", expected: "a whole number from 1 to 64" },
    Key { name: "blocking.recall", expected: "a number above 0 and below 1" },
    Key { name: "blocking.sketch", expected: "\"fss\", \"minhash\", \"oph\" or \"superminhash\"" },
    Key { name: "blocking.size", expected: "a whole number from 16 to 32768" },
    Key { name: "blocking.bits", expected: "1, 2, 4, 8, 16, 32 or 64" },
    Key { name: "blocking.cap", expected: "a whole number from 2 to 1000000" },
    Key { name: "filter.kind", expected: "\"staged\", \"paper\" or \"full\"" },
    Key { name: "filter.error", expected: "a number above 0 and at most 0.1" },
    Key { name: "filter.looks", expected: "a list of whole numbers from 1 to 32768" },
    Key { name: "filter.verify", expected: "\"sketch\" or \"exact\"" },
    Key { name: "output.expand_limit", expected: "a whole number from 1 to 1000000" },
    Key { name: "output.on_error", expected: "\"count\" or \"fail\"" },
];

/// Keys and tables that other versions have.
const LATER_KEYS: &[&str] = &["retention", "blocking.tables", "blocking.distance", "text.fields"];

const LATER_MEASURES: &[&str] = &["weighted-jaccard", "cosine"];
const LATER_BLOCKINGS: &[&str] = &["permuted", "multi-index", "groups", "conjunctions", "shingles"];
const LATER_FILTERS: &[&str] = &["hamming"];

/// What a pipeline does, validated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The built-in pipeline's name, or the path as the user typed it.
    pub name: String,
    /// T: a pair counts if its similarity is at least this (inclusive); above 0, at most 1.
    pub threshold: f64,
    /// Text to sketch.
    pub scheme: Scheme,
    /// Sketch to blocks.
    pub blocking: BlockingPlan,
    /// Candidate to verdict.
    pub filter: FilterPlan,
    /// Most copies of one sketch that are expanded to pairs, inclusive; at least 1.
    pub expand_limit: usize,
    /// What a bad record does to the run.
    pub on_error: OnError,
}

/// How pairs become candidates.
#[derive(Clone, Debug)]
pub enum BlockingPlan {
    /// Bands of rows.
    Banding {
        /// How many, and why.
        design: Design,
        /// Most sketches of a live block, inclusive; at least 2.
        cap: usize,
    },
    /// Every pair.
    Scan,
}

/// What decides about candidates.
#[derive(Clone, Debug)]
pub enum FilterPlan {
    /// The sketches alone.
    Sketch(FilterKind, Staged),
    /// The exact similarity of the features.
    Exact(FilterKind, Exact),
    /// The estimate from sketches that are compared as a whole.
    Whole(Whole),
}

impl Plan {
    /// Loads a pipeline, by the bare name of a built-in one or from a path, with `key=value` overrides.
    ///
    /// # Errors
    /// If there is no such pipeline, and everything that is wrong with it.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, PlanError> {
        let is_path = pipeline.contains(['/', std::path::MAIN_SEPARATOR]) || pipeline.ends_with(".toml");
        if is_path {
            let path = Path::new(pipeline);
            return Self::parse(pipeline, &read(path)?, path.parent().unwrap_or(Path::new("")), overrides);
        }
        let (name, text) = BUILT_IN.iter().find(|(name, _)| *name == pipeline).ok_or_else(|| {
            let available: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let distance = |name: &&str| strsim::damerau_levenshtein(name, pipeline);
            let nearest = available.iter().copied().min_by_key(distance).filter(|name| distance(name) <= 3);
            PlanError::UnknownPipeline { name: pipeline.to_owned(), nearest, available }
        })?;
        Self::parse(name, text, Path::new(""), overrides)
    }

    /// Reads a pipeline's text; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        let mut settings = Settings::new(KEYS, LATER_KEYS);
        settings.add_file(name, text, folder);
        overrides.iter().for_each(|typed| settings.add_override(typed));
        settings.reject_unknown();

        let threshold =
            settings.read("threshold", |v| v.number().filter(|t| *t > 0.0 && *t <= 1.0)).unwrap_or(0.8);
        settings.choose("measure", &[("jaccard", ())], LATER_MEASURES);
        let verify = [("sketch", Verify::Sketch), ("exact", Verify::Exact)];
        let verify = settings.choose("filter.verify", &verify, &[]).unwrap_or_default();
        let mut scheme = scheme(&mut settings, verify == Verify::Exact);
        let params = filter_params(&mut settings, &scheme.sketch, verify);
        let blocking = blocking(&mut settings, &scheme, threshold);
        if matches!(blocking, Some(BlockingPlan::Scan)) {
            scheme.blocks = None;
        }
        let filter = filter(&mut settings, &scheme, threshold, &params);
        let expand_limit = settings.read("output.expand_limit", |v| v.integer(1..=1_000_000)).unwrap_or(1000);
        let on_error = [("count", OnError::Count), ("fail", OnError::Fail)];
        let on_error = settings.choose("output.on_error", &on_error, &[]).unwrap_or_default();
        match (settings.finish(), blocking, filter) {
            (problems, Some(blocking), Some(filter)) if problems.is_empty() => Ok(Self {
                name: name.to_owned(),
                threshold,
                scheme,
                blocking,
                filter,
                expand_limit,
                on_error,
            }),
            (problems, ..) => Err(PlanError::Problems(problems)),
        }
    }

    /// Makes the blocking.
    ///
    /// # Panics
    /// If bands were designed for a sketch that has no planes, which [`parse`](Self::parse) does not do.
    pub fn blocking(&self) -> Arc<dyn Blocking> {
        match &self.blocking {
            BlockingPlan::Banding { design, cap } => {
                let planes = self.scheme.block_sketch().planes().expect("bands were designed for planes");
                let banding = Banding::new(planes.size, design.curve.bands, design.curve.rows, *cap);
                Arc::new(banding.of(self.scheme.block_words()))
            }
            BlockingPlan::Scan => Arc::new(Scan),
        }
    }

    /// Makes the filter.
    pub fn filter(&self) -> Arc<dyn PairFilter> {
        match &self.filter {
            FilterPlan::Sketch(_, filter) => Arc::new(filter.clone()),
            FilterPlan::Exact(_, filter) => Arc::new(filter.clone()),
            FilterPlan::Whole(filter) => Arc::new(filter.clone()),
        }
    }

    /// Where the filter looks, and its bounds; `None` for one that compares sketches as a whole.
    pub fn schedule(&self) -> Option<&Schedule> {
        match &self.filter {
            FilterPlan::Sketch(_, filter) => Some(filter.schedule()),
            FilterPlan::Exact(_, filter) => Some(filter.schedule()),
            FilterPlan::Whole(_) => None,
        }
    }
}

fn scheme(settings: &mut Settings, exact: bool) -> Scheme {
    let sketch = sketch::sketch(settings);
    Scheme {
        version: VERSION,
        text: text_rules(settings),
        blocks: sketch::companion(settings, sketch.seed),
        sketch,
        exact,
    }
}

fn text_rules(settings: &mut Settings) -> TextRules {
    let default = TextRules::default();
    let spaceless = [("char", Spaceless::Char), ("run", Spaceless::Run)];
    let normalize = [("none", Normalize::None), ("nfc", Normalize::Nfc), ("nfkc", Normalize::Nfkc)];
    let mut rules = TextRules {
        shingle: settings.read("text.shingle", |v| shingle(v.text()?)).unwrap_or(default.shingle),
        spaceless: settings.choose("text.spaceless", &spaceless, &[]).unwrap_or(default.spaceless),
        normalize: settings.choose("text.normalize", &normalize, &[]).unwrap_or(default.normalize),
        stop_words: Vec::new(),
    };
    rules.stop_words = stop_words(settings, &rules);
    rules
}

/// `words:N` or `chars:N`.
fn shingle(typed: &str) -> Option<Shingle> {
    let (unit, size) = typed.split_once(':')?;
    let size = size.parse().ok().filter(|size| (1..=LONGEST_SHINGLE).contains(size))?;
    match unit {
        "words" => Some(Shingle::Words(size)),
        "chars" => Some(Shingle::Chars(size)),
        _ => None,
    }
}

/// The stop words as tokens, sorted and distinct. A word that is not one token could never be met, so it is a problem.
fn stop_words(settings: &mut Settings, rules: &TextRules) -> Vec<String> {
    const KEY: &str = "text.stop_words";
    let typed = settings.read(KEY, |value| match value {
        Value::Text(path, _) => Some(Err(path.clone())),
        list => list.list(|word| word.text().map(str::to_owned)).map(Ok),
    });
    let words = match typed {
        None => return Vec::new(),
        Some(Ok(words)) => words,
        Some(Err(path)) => match read(&settings.folder(KEY).join(path)) {
            Ok(text) => {
                text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
            }
            Err(error) => {
                let cause =
                    std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
                settings.problem(KEY, What::Contradiction(format!("{error}{cause}")));
                return Vec::new();
            }
        },
    };
    let (mut tokens, mut strange) = (Vec::new(), Vec::new());
    for word in words {
        match <[String; 1]>::try_from(text::tokens(&word, rules)) {
            Ok([token]) => tokens.push(token),
            Err(_) => strange.push(word),
        }
    }
    if let Some(word) = strange.first() {
        let more = if strange.len() > 1 { format!(" and {} more", strange.len() - 1) } else { String::new() };
        let expected = "words that are one token each by the rules of [text]".to_owned();
        settings.problem(KEY, What::Unexpected { found: format!("{word:?}{more}"), expected });
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

/// Notes keys that a kind has no use for. Where only the kind was overridden, the file's keys for the other kind are dropped.
pub(super) fn without_effect(
    settings: &mut Settings,
    kind: &'static str,
    named: &str,
    keys: &[&'static str],
) {
    for key in keys {
        if settings.is_set_beside(key, kind) {
            settings.problem(key, What::Contradiction(format!("has no effect with {kind} = \"{named}\"")));
        }
        settings.forget(key);
    }
}

fn blocking(settings: &mut Settings, scheme: &Scheme, threshold: f64) -> Option<BlockingPlan> {
    let kinds = [("banding", BlockingKind::Banding), ("scan", BlockingKind::Scan)];
    let kind = settings.choose("blocking.kind", &kinds, LATER_BLOCKINGS).unwrap_or_default();
    if kind == BlockingKind::Scan {
        let useless = [
            "blocking.bands",
            "blocking.rows",
            "blocking.recall",
            "blocking.cap",
            "blocking.sketch",
            "blocking.size",
            "blocking.bits",
        ];
        without_effect(settings, "blocking.kind", "scan", &useless);
        return Some(BlockingPlan::Scan);
    }
    let Some(planes) = scheme.block_sketch().planes() else {
        let what = format!(
            "\"{}\" has no components to cut bands from; set blocking.kind = \"scan\", or blocking.sketch = \"fss\" for bands of a \
             second sketch",
            scheme.sketch.kind.name()
        );
        settings.problem("blocking.kind", What::Contradiction(what));
        return None;
    };
    let params = BlockingParams {
        kind,
        bands: settings.read("blocking.bands", |v| v.integer(1..=32_768)),
        rows: settings.read("blocking.rows", |v| v.integer(1..=design::MAX_ROWS)),
        recall: settings
            .read("blocking.recall", |v| v.number().filter(|recall| *recall > 0.0 && *recall < 1.0)),
        cap: settings
            .read("blocking.cap", |v| v.integer(2..=1_000_000))
            .unwrap_or(BlockingParams::default().cap),
    };
    let inputs =
        ["threshold", "blocking.size", "blocking.bits", "blocking.bands", "blocking.rows", "blocking.recall"];
    if !settings.sound(&inputs) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    match design::design(planes, threshold, &params) {
        Ok(design) => Some(BlockingPlan::Banding { design, cap: params.cap }),
        Err(error) => {
            let key = match error {
                DesignError::Size { .. } if params.rows.is_some() => "blocking.rows",
                DesignError::Size { .. } => "blocking.bands",
                DesignError::Recall { .. } | DesignError::Unreachable { .. } => "blocking.recall",
            };
            settings.problem(key, What::Contradiction(error.to_string()));
            None
        }
    }
}

fn filter_params(settings: &mut Settings, sketch: &SketchParams, verify: Verify) -> FilterParams {
    let kinds = [("staged", FilterKind::Staged), ("paper", FilterKind::Paper), ("full", FilterKind::Full)];
    let mut kind = settings.choose("filter.kind", &kinds, LATER_FILTERS).unwrap_or_default();
    let needs_full = match verify {
        Verify::Sketch if sketch.shape().is_none() => Some("is compared as a whole"),
        Verify::Exact if sketch.shape().is_none() || !sketch.is_concentrated() => {
            Some("promises nothing about exact similarity when it is looked at in part")
        }
        _ => None,
    };
    if let Some(reason) = needs_full.filter(|_| kind != FilterKind::Full) {
        if settings.is_set_beside("filter.kind", "sketch.kind") {
            let subject = match sketch.wide {
                0 => format!("a sketch of kind \"{}\"", sketch.kind.name()),
                _ => "a sketch of two widths of bits".to_owned(),
            };
            let what = format!("{subject} {reason}; leave it out, or filter.kind = \"full\"");
            settings.problem("filter.kind", What::Contradiction(what));
        }
        without_effect(settings, "sketch.kind", sketch.kind.name(), &["filter.error", "filter.looks"]);
        kind = FilterKind::Full;
    } else if kind == FilterKind::Full {
        without_effect(settings, "filter.kind", "full", &["filter.error", "filter.looks"]);
    }
    FilterParams {
        kind,
        error: settings.read("filter.error", |v| v.number().filter(|error| *error > 0.0 && *error <= 0.1)),
        looks: settings.read("filter.looks", |v| v.list(|look| look.integer(1..=32_768))),
        verify,
    }
}

fn filter(
    settings: &mut Settings,
    scheme: &Scheme,
    threshold: f64,
    params: &FilterParams,
) -> Option<FilterPlan> {
    let inputs = ["threshold", "filter.kind", "filter.error", "filter.looks"];
    if !settings.sound(&inputs) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    let sketch = &scheme.sketch;
    let made = match (sketch.shape(), params.verify) {
        (Some(shape), Verify::Sketch) => Target::of(threshold, shape)
            .and_then(|target| Ok(FilterPlan::Sketch(params.kind, Staged::new(target, params)?))),
        (Some(shape), Verify::Exact) if sketch.is_concentrated() => Target::of(threshold, shape)
            .and_then(|target| Ok(FilterPlan::Exact(params.kind, Exact::new(target, params)?))),
        (None, Verify::Sketch) => Whole::new(threshold, sketch).map(FilterPlan::Whole),
        (_, Verify::Exact) => {
            Exact::of_features(threshold).map(|exact| FilterPlan::Exact(params.kind, exact))
        }
    };
    made.map_err(|error| {
        let key = match error {
            FilterError::Threshold { .. } => "threshold",
            FilterError::Error { .. } => "filter.error",
            FilterError::Looks { .. } => "filter.looks",
            FilterError::PaperExact => "filter.verify",
        };
        settings.problem(key, What::Contradiction(error.to_string()));
    })
    .ok()
}
