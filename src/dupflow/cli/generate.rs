//! `dupflow generate`: a synthetic feed, and the truth about it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use indicatif::{BinaryBytes, HumanCount};

use super::documents::{self, Documents, Format, open};
use super::problems::Problems;
use super::summary::count;
use super::voice::Voice;
use super::written;
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_core::doc::{DocEvent, DocId};
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::text::{Featurizer, TextRules};
use dupflow_lab::generate::labelled::{Labelled, LabelledDocument};
use dupflow_lab::generate::{Generator, Params, Rounds, Script};

/// What shapes the usual feed, and nothing else does.
const OTHERS: [&str; 12] = [
    "labels",
    "copies",
    "near",
    "max_edit_rate",
    "updates",
    "repeats",
    "deletes",
    "empty",
    "short",
    "sites",
    "window",
    "truth",
];

/// What `generate` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "The same options give the same feed, to the byte.\n\n\
    Try:  dupflow generate --documents 1000 -o feed.jsonl --truth truth.tsv  &&  dupflow replay feed.jsonl")]
pub struct Args {
    /// Documents that the feed brings; with updates and deletes there are more events than documents.
    #[arg(long, value_name = "N", default_value_t = Params::default().documents)]
    pub documents: u64,

    /// Another seed makes another feed.
    #[arg(long, value_name = "SEED", default_value_t = Params::default().seed)]
    pub seed: u64,

    /// Where the feed goes; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// What the file is [default: as its name ends; jsonl if that says nothing]. JSON Lines and tables hold
    /// the feed; warc, wet and html (a new folder) what is alive at its end.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<Format>,

    /// Also write which documents are similar at the end of the feed: a line holds two ids and their
    /// similarity, separated by tabs, exactly computed from the texts' word 3-grams.
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Make a labelled corpus instead, and write its labels into this file: a line holds an id and its label,
    /// separated by a tab; documents of one label come from one original. Levels, in the ids: copy; edit-1,
    /// -2, -5, -10, -20 (so many words in a hundred are edited); moved (paragraphs in another order); light
    /// (5 words in a hundred, two paragraphs change places); heavy (25 words in a hundred, paragraphs in
    /// another order); mixed (half of the paragraphs are new); unrelated (of a label of its own).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["copies", "near", "max_edit_rate", "updates", "repeats", "deletes", "empty", "short", "sites", "window", "truth", "floor", "family", "rounds", "drop"])]
    pub labels: Option<PathBuf>,

    /// Make a family instead: texts of one template, in each of which so many words, at random, are replaced
    /// by others; with 0 all are copies. `--min-words 400 --max-words 401` gives all of them 400 words.
    #[arg(long, value_name = "EDITS", conflicts_with_all = OTHERS)]
    pub family: Option<usize>,

    /// Make rounds instead: every document is sent so often, each time with another text, a second after the
    /// one before.
    #[arg(long, value_name = "N", conflicts_with_all = OTHERS)]
    pub rounds: Option<u64>,

    /// With --family or --rounds: the share of the documents that is deleted at the end, in random order;
    /// from 0 to 1 [default: 0].
    #[arg(long, value_name = "SHARE", conflicts_with_all = OTHERS)]
    pub drop: Option<f64>,

    /// With --labels: originals that others come from [default: a tenth of the documents].
    #[arg(long, value_name = "N", requires = "labels")]
    pub groups: Option<usize>,

    /// With --labels: topics; texts of one topic have words and phrases in common.
    #[arg(long, value_name = "N", requires = "labels", default_value_t = Labelled::default().topics)]
    pub topics: usize,

    /// With --labels: the share of the documents that are unrelated to any other, from 0 to 1.
    #[arg(long, value_name = "SHARE", requires = "labels", default_value_t = Labelled::default().unrelated)]
    pub unrelated: f64,

    /// The least similarity in the truth, inclusive; above 0, at most 1.
    #[arg(long, value_name = "SIMILARITY", default_value_t = 0.5)]
    pub floor: f64,

    /// What the feed is made of.
    #[command(flatten)]
    pub shape: Shape,
}

/// What a feed is made of: [`Params`] as options. Shares are from 0 to 1.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What the feed is made of (shares are from 0 to 1)")]
pub struct Shape {
    /// Of new documents, those that copy another one.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().copies)]
    pub copies: f64,

    /// Of new documents, those that edit another one: the near-duplicates.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().near)]
    pub near: f64,

    /// Near-duplicates and updates change a share of the words, drawn evenly between 0 and this.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().max_edit_rate)]
    pub max_edit_rate: f64,

    /// Of events, those that edit a document in place.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().updates)]
    pub updates: f64,

    /// Of events, those that send a document again as it is.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().repeats)]
    pub repeats: f64,

    /// Of events, deletes.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().deletes)]
    pub deletes: f64,

    /// Of new documents, those without a word.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().empty)]
    pub empty: f64,

    /// Of new documents, those of one to four words.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().short)]
    pub short: f64,

    /// The fewest words of other documents, inclusive.
    #[arg(long, value_name = "N", default_value_t = Params::default().min_words)]
    pub min_words: usize,

    /// The most words of other documents, exclusive; boilerplate comes on top.
    #[arg(long, value_name = "N", default_value_t = Params::default().max_words)]
    pub max_words: usize,

    /// Sites, each with boilerplate and a script of its own.
    #[arg(long, value_name = "N", default_value_t = Params::default().sites)]
    pub sites: usize,

    /// The scripts that sites are written in, in turn; with --labels, groups [default: latin to han].
    #[arg(long, value_name = "SCRIPT,...", value_delimiter = ',', value_enum, hide_default_value = true,
        default_values_t = Params::default().scripts)]
    pub scripts: Vec<Script>,

    /// Different words of each script.
    #[arg(long, value_name = "N", default_value_t = Params::default().vocabulary)]
    pub vocabulary: usize,

    /// The k-th most frequent word occurs in proportion to 1 / k^EXPONENT.
    #[arg(long, value_name = "EXPONENT", default_value_t = Params::default().zipf)]
    pub zipf: f64,

    /// Documents that can still be copied, edited, repeated or deleted; others stay as they are.
    #[arg(long, value_name = "N", default_value_t = Params::default().window)]
    pub window: usize,
}

impl Args {
    /// What the output is written in.
    fn output_format(&self) -> Format {
        self.format.unwrap_or_else(|| Format::of_name(&self.output))
    }

    /// Notes files that cannot be written.
    fn probe(&self, problems: &mut Problems) {
        // A folder of pages is made as it is written.
        let output = Some(&self.output).filter(|_| self.output_format() != Format::Html);
        let files =
            [("--output", output), ("--truth", self.truth.as_ref()), ("--labels", self.labels.as_ref())];
        let files = files.into_iter().filter_map(|(option, path)| Some((option, path?.as_path())));
        written::probe(files.filter(|(_, path)| *path != Path::new("-")), problems);
    }

    /// The corpus with labels that these options ask for.
    fn labelled(&self) -> Labelled {
        let documents = usize::try_from(self.documents).unwrap_or(usize::MAX);
        let Shape { min_words, max_words, vocabulary, zipf, ref scripts, .. } = self.shape;
        Labelled {
            seed: self.seed,
            documents,
            groups: self.groups.unwrap_or((documents / 10).max(1)),
            topics: self.topics,
            unrelated: self.unrelated,
            vocabulary,
            zipf,
            min_words,
            max_words,
            scripts: scripts.clone(),
        }
    }
}

/// Writes a corpus and its labels.
fn run_labelled(
    args: &Args,
    labels: &Path,
    mut problems: Problems,
    voice: Voice,
) -> anyhow::Result<ExitCode> {
    let of = args.labelled();
    for (field, problem) in of.problems() {
        problems.note(format_args!("--{}: {problem}", field.replace('_', "-")));
    }
    if *labels == args.output {
        problems.note(format_args!("--labels: the corpus itself goes to {:?}", args.output));
    }
    if let Some(problem) = documents::problem(&args.output, args.output_format()) {
        problems.note(problem);
    }
    args.probe(&mut problems);
    problems.settle(Some(()))?;
    let (mut out, mut of_labels) = (Documents::create(&args.output, args.output_format())?, open(labels)?);
    let (mut documents, mut bytes) = (0, 0);
    for LabelledDocument { id, label, text, .. } in of.corpus() {
        writeln!(of_labels, "{id}\t{label}").context("the labels cannot be written")?;
        (documents, bytes) = (documents + 1, bytes + text.len() as u64);
        let event = DocEvent { id, ts: None, written: None, text: Some(text.into()) };
        out.write(&FeedRecord { event, ts: None }).context("the corpus cannot be written")?;
    }
    out.finish().context("the corpus cannot be written")?;
    of_labels.flush().context("the labels cannot be written")?;
    let made = format!("made        {} with {} of text\n", count(documents, "document"), BinaryBytes(bytes));
    voice.tell(&made)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the feed, then the truth if it is asked for; a summary goes to standard error.
///
/// # Errors
/// Everything that is out of its range, together; then what cannot be written.
pub(super) fn run(args: &Args, mut problems: Problems, voice: Voice) -> anyhow::Result<ExitCode> {
    if let Some(labels) = &args.labels {
        return run_labelled(args, labels, problems, voice);
    }
    if args.family.is_some() || args.rounds.is_some() {
        return run_rounds(args, problems, voice);
    }
    if args.drop.is_some() {
        problems.note("--drop: of which documents a share is deleted is said by --family or --rounds");
    }
    let params = params(args);
    for (field, problem) in params.problems() {
        problems.note(format_args!("--{}: {problem}", field.replace('_', "-")));
    }
    if !(args.floor > 0.0 && args.floor <= 1.0) {
        problems.note(format_args!("--floor: found {}, expected a number above 0 and at most 1", args.floor));
    }
    if args.truth.as_ref() == Some(&args.output) {
        problems.note(format_args!("--truth: the feed itself goes to {:?}", args.output));
    }
    if let Some(problem) = documents::problem(&args.output, args.output_format()) {
        problems.note(problem);
    }
    args.probe(&mut problems);
    problems.settle(Some(()))?;

    let out = Documents::create(&args.output, args.output_format())?;
    let mut truth = args.truth.as_ref().map(|path| open(path)).transpose()?;
    let made = write_feed(out, Generator::new(params), truth.is_some())?;
    voice.tell(&made.summary())?;
    if let Some(truth) = &mut truth {
        let pairs = oracle::pairs(made.alive, args.floor);
        write_truth(truth, &pairs).context("the truth cannot be written")?;
        voice.tell(&by_band(&pairs, args.floor))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a feed of one shape.
fn run_rounds(args: &Args, mut problems: Problems, voice: Voice) -> anyhow::Result<ExitCode> {
    let Shape { min_words, max_words, vocabulary, zipf, ref scripts, .. } = args.shape;
    let rounds = Rounds {
        documents: args.documents,
        seed: args.seed,
        rounds: args.rounds.unwrap_or(1),
        family: args.family,
        drop: args.drop.unwrap_or_default(),
        vocabulary,
        zipf,
        min_words,
        max_words,
        script: scripts.first().copied().unwrap_or(Script::Latin),
    };
    for (field, problem) in rounds.problems() {
        problems.note(format_args!("--{}: {problem}", field.replace('_', "-")));
    }
    if let Some(problem) = documents::problem(&args.output, args.output_format()) {
        problems.note(problem);
    }
    args.probe(&mut problems);
    problems.settle(Some(()))?;
    let out = Documents::create(&args.output, args.output_format())?;
    voice.tell(&write_feed(out, rounds.feed(), false)?.summary())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a feed, and counts what is in it.
fn write_feed(
    mut out: Documents,
    feed: impl Iterator<Item = FeedRecord<'static>>,
    with_features: bool,
) -> anyhow::Result<Made> {
    let mut made = Made::new(with_features);
    for record in feed {
        out.write(&record).context("the feed cannot be written")?;
        made.apply(record);
    }
    out.finish().context("the feed cannot be written")?;
    Ok(made)
}

fn params(args: &Args) -> Params {
    let Shape {
        copies,
        near,
        max_edit_rate,
        updates,
        repeats,
        deletes,
        empty,
        short,
        min_words,
        max_words,
        sites,
        ref scripts,
        vocabulary,
        zipf,
        window,
    } = args.shape;
    Params {
        documents: args.documents,
        seed: args.seed,
        vocabulary,
        zipf,
        min_words,
        max_words,
        sites,
        scripts: scripts.clone(),
        window,
        max_edit_rate,
        copies,
        near,
        empty,
        short,
        updates,
        repeats,
        deletes,
    }
}

/// The documents alive, and counts of the events.
struct Made {
    /// Only where the features are of use.
    featurizer: Option<Featurizer>,
    alive: BTreeMap<DocId, Vec<u64>>,
    upserts: u64,
    deletes: u64,
    bytes: u64,
}

impl Made {
    /// Empty; with the features of its texts or without.
    fn new(with_features: bool) -> Self {
        let featurizer = with_features.then(|| Featurizer::new(TextRules::default()));
        Self { featurizer, alive: BTreeMap::new(), upserts: 0, deletes: 0, bytes: 0 }
    }

    fn apply(&mut self, FeedRecord { event: DocEvent { id, text, .. }, .. }: FeedRecord<'_>) {
        let Some(text) = text else {
            self.deletes += 1;
            self.alive.remove(&id);
            return;
        };
        self.upserts += 1;
        self.bytes += text.len() as u64;
        let features = self.featurizer.as_mut().map_or(&[][..], |featurizer| featurizer.features(&text));
        self.alive.insert(id, features.to_vec());
    }

    fn summary(&self) -> String {
        format!(
            "made        {}, {} with {} of text and {}; {} alive at the end\n",
            count(self.upserts + self.deletes, "event"),
            count(self.upserts, "upsert"),
            BinaryBytes(self.bytes),
            count(self.deletes, "delete"),
            count(self.alive.len() as u64, "document")
        )
    }
}

/// One pair a line, sorted by ids. Ids that are generated hold no tab and no newline.
fn write_truth(out: &mut impl Write, pairs: &[(Pair<DocId>, f64)]) -> io::Result<()> {
    for (pair, similarity) in pairs {
        writeln!(out, "{}\t{}\t{similarity:.9}", pair.lo(), pair.hi())?;
    }
    out.flush()
}

/// How many pairs there are from each tenth of similarity to the next; the last band is 1.0 itself.
fn by_band(pairs: &[(Pair<DocId>, f64)], floor: f64) -> String {
    let mut bands = BTreeMap::<u32, u64>::new();
    for (_, similarity) in pairs {
        // What a tenth is as a decimal must not fall below it as a float.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 10")]
        let tenths = (similarity * 10.0 + 1e-9) as u32;
        *bands.entry(tenths).or_default() += 1;
    }
    let bands: Vec<_> = bands
        .iter()
        .rev()
        .map(|(tenths, n)| format!("; {} from {}.{}", HumanCount(*n), tenths / 10, tenths % 10))
        .collect();
    format!(
        "truth       {} of similarity {floor} or more{}\n",
        count(pairs.len() as u64, "pair"),
        bands.concat()
    )
}
