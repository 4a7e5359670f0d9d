//! `dupflow generate`: writes a synthetic feed, and its true similar pairs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::ValueEnum as _;
use indicatif::{BinaryBytes, HumanCount};

use super::documents::{self, DocumentFormat, DocumentWriter, open};
use crate::cli::arguments::problems::Problems;
use crate::cli::arguments::verbosity::Verbosity;
use crate::cli::arguments::written;
use crate::plural::count;
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_connectors::formats::{FileFormat, promised};
use dupflow_core::doc::fields::EventFields;
use dupflow_core::doc::{DocEvent, DocId};
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::text::{Featurizer, TextRules};
use dupflow_lab::generate::labelled::{Labelled, LabelledDocument};
use dupflow_lab::generate::{Generator, Params, Rounds, Script};

/// Options of the usual feed that the other feeds do not have.
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

/// Options of generated feeds, which a labelled corpus does not have.
const OF_FEEDS: [&str; 15] = [
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
    "floor",
    "family",
    "rounds",
    "drop",
];

/// Arguments of `generate`.
#[derive(Debug, clap::Args)]
#[command(after_help = "The same options give the same feed, to the byte.\n\n\
    Try:  dupflow generate --documents 1000 -o feed.jsonl  &&  dupflow replay feed.jsonl")]
pub struct Args {
    /// Number of documents; with updates and deletes there are more events than documents.
    #[arg(long, value_name = "N", default_value_t = Params::default().documents)]
    pub documents: u64,

    /// Another seed makes another feed.
    #[arg(long, value_name = "SEED", default_value_t = Params::default().seed)]
    pub seed: u64,

    /// The file to write the feed to; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// The file format [default: by the extension of the output; jsonl if it is unknown]. JSON Lines and
    /// tables hold the feed; warc, wet and html (a new folder) the documents that are alive at its end.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<DocumentFormat>,

    /// Also write the similar pairs at the end of the feed: lines of two ids and their similarity, separated
    /// by tabs, computed exactly from word 3-grams.
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// Make a labelled corpus, with its labels in this file.
    ///
    /// It has lines of an id and its label, separated by a tab. Documents with the same label are made
    /// from one original. The id names the level: copy; edit-1, -2, -5, -10, -20 (edited words in a
    /// hundred); moved (paragraphs in another order); light (5 words in a hundred, two paragraphs change
    /// places); heavy (25 words in a hundred, paragraphs in another order); mixed (half of the paragraphs
    /// are new); unrelated (with a label of its own).
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_FEEDS)]
    pub labels: Option<PathBuf>,

    /// Make a family instead: texts of one template, each with this number of random words replaced; with 0
    /// all are copies. `--min-words 400 --max-words 401` gives each of them 400 words.
    #[arg(long, value_name = "EDITS", conflicts_with_all = OTHERS)]
    pub family: Option<usize>,

    /// Make rounds instead: every document is sent this number of times, each time with another text, one
    /// second after the previous one.
    #[arg(long, value_name = "N", conflicts_with_all = OTHERS)]
    pub rounds: Option<u64>,

    /// The share of documents that are deleted at the end.
    ///
    /// With --family or --rounds, in random order; from 0 to 1 [default: 0].
    #[arg(long, value_name = "SHARE", conflicts_with_all = OTHERS)]
    pub drop: Option<f64>,

    /// With --labels: number of originals [default: a tenth of the documents].
    #[arg(long, value_name = "N", requires = "labels")]
    pub groups: Option<usize>,

    /// With --labels: number of topics; texts of one topic share words and phrases.
    #[arg(long, value_name = "N", requires = "labels", default_value_t = Labelled::default().topics)]
    pub topics: usize,

    /// The share of documents that are like no others.
    ///
    /// With --labels; from 0 to 1.
    #[arg(long, value_name = "SHARE", requires = "labels", default_value_t = Labelled::default().unrelated)]
    pub unrelated: f64,

    /// The least similarity of a pair in the truth, inclusive; above 0, at most 1.
    #[arg(long, value_name = "SIMILARITY", default_value_t = 0.5)]
    pub floor: f64,

    /// The composition of the feed.
    #[command(flatten)]
    pub shape: FeedArgs,
}

/// The composition of a feed: [`Params`] as options. Shares are from 0 to 1.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "What the feed is made of (shares are from 0 to 1)")]
pub struct FeedArgs {
    /// The share of new documents that are copies of another one.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().copies)]
    pub copies: f64,

    /// The share of new documents that are edits of another one: the near-duplicates.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().near)]
    pub near: f64,

    /// The greatest share of words that an edit changes.
    ///
    /// Of a near-duplicate or an update; drawn evenly from 0 to this.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().max_edit_rate)]
    pub max_edit_rate: f64,

    /// The share of events that edit a document in place.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().updates)]
    pub updates: f64,

    /// The share of events that send a document again unchanged.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().repeats)]
    pub repeats: f64,

    /// The share of events that are deletes.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().deletes)]
    pub deletes: f64,

    /// The share of new documents without a word.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().empty)]
    pub empty: f64,

    /// The share of new documents with one to four words.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().short)]
    pub short: f64,

    /// Fewest words of all other documents, inclusive.
    #[arg(long, value_name = "N", default_value_t = Params::default().min_words)]
    pub min_words: usize,

    /// Most words of all other documents, exclusive, without boilerplate.
    #[arg(long, value_name = "N", default_value_t = Params::default().max_words)]
    pub max_words: usize,

    /// Number of sites; each has its own boilerplate and script.
    #[arg(long, value_name = "N", default_value_t = Params::default().sites)]
    pub sites: usize,

    /// The scripts of the sites, in turn; with --labels, of the groups [default: latin to han].
    #[arg(long, value_name = "SCRIPT,...", value_delimiter = ',', value_enum, hide_default_value = true,
        default_values_t = Params::default().scripts)]
    pub scripts: Vec<Script>,

    /// Number of different words of each script.
    #[arg(long, value_name = "N", default_value_t = Params::default().vocabulary)]
    pub vocabulary: usize,

    /// The k-th most frequent word has a share of 1 / k^EXPONENT.
    #[arg(long, value_name = "EXPONENT", default_value_t = Params::default().zipf)]
    pub zipf: f64,

    /// How many recent documents may still change.
    ///
    /// They can be copied, edited, repeated or deleted.
    #[arg(long, value_name = "N", default_value_t = Params::default().window)]
    pub window: usize,
}

impl Args {
    /// The format of the output.
    fn output_format(&self) -> DocumentFormat {
        self.format.unwrap_or_else(|| DocumentFormat::of_name(&self.output))
    }

    /// Reports files that cannot be written, and a name that says another format than is written.
    fn probe(&self, problems: &mut Problems) {
        let unwritten = promised(&self.output).0.map(FileFormat::name);
        let unwritten =
            unwritten.filter(|name| self.format.is_none() && DocumentFormat::from_str(name, true).is_err());
        if let Some(name) = unwritten {
            let of = &self.output;
            problems.note(format_args!("--output: {of:?} is {name} by its name, which is not generated"));
        }
        // A folder of pages is created only when it is written.
        let output = Some(&self.output).filter(|_| self.output_format() != DocumentFormat::Html);
        let files =
            [("--output", output), ("--truth", self.truth.as_ref()), ("--labels", self.labels.as_ref())];
        let files = files.into_iter().filter_map(|(option, path)| Some((option, path?.as_path())));
        written::probe(files.filter(|(_, path)| *path != Path::new("-")), problems);
    }

    /// The labelled corpus that these options describe.
    fn labelled(&self) -> Labelled {
        let documents = usize::try_from(self.documents).unwrap_or(usize::MAX);
        let FeedArgs { min_words, max_words, vocabulary, zipf, ref scripts, .. } = self.shape;
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

/// Writes a labelled corpus and its labels.
fn run_labelled(
    args: &Args,
    labels: &Path,
    mut problems: Problems,
    verbosity: Verbosity,
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
    let (mut out, mut of_labels) =
        (DocumentWriter::create(&args.output, args.output_format())?, open(labels)?);
    let (mut documents, mut bytes) = (0, 0);
    for LabelledDocument { id, label, text, .. } in of.corpus() {
        writeln!(of_labels, "{id}\t{label}").context("the labels cannot be written")?;
        (documents, bytes) = (documents + 1, bytes + text.len() as u64);
        let (text, fields) = (Some(text.into()), EventFields::default());
        let event = DocEvent { id, ts: None, written: None, text, fields };
        out.write(&FeedRecord { event, ts: None }).context("the corpus cannot be written")?;
    }
    out.finish().context("the corpus cannot be written")?;
    of_labels.flush().context("the labels cannot be written")?;
    let made = format!("made        {} with {} of text\n", count(documents, "document"), BinaryBytes(bytes));
    verbosity.print(&made)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the feed, then the truth if requested; a summary goes to standard error.
///
/// # Errors
/// All options out of range; then files that cannot be written.
pub(in crate::cli) fn run(
    args: &Args,
    mut problems: Problems,
    verbosity: Verbosity,
) -> anyhow::Result<ExitCode> {
    if let Some(labels) = &args.labels {
        return run_labelled(args, labels, problems, verbosity);
    }
    if args.family.is_some() || args.rounds.is_some() {
        return run_rounds(args, problems, verbosity);
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

    let out = DocumentWriter::create(&args.output, args.output_format())?;
    let mut truth = args.truth.as_ref().map(|path| open(path)).transpose()?;
    let made = write_feed(out, Generator::new(params), truth.is_some())?;
    verbosity.print(&made.summary())?;
    if let Some(truth) = &mut truth {
        let pairs = oracle::pairs(made.alive, args.floor);
        write_truth(truth, &pairs).context("the truth cannot be written")?;
        verbosity.print(&by_band(&pairs, args.floor))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a family or rounds.
fn run_rounds(args: &Args, mut problems: Problems, verbosity: Verbosity) -> anyhow::Result<ExitCode> {
    let FeedArgs { min_words, max_words, vocabulary, zipf, ref scripts, .. } = args.shape;
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
    let out = DocumentWriter::create(&args.output, args.output_format())?;
    verbosity.print(&write_feed(out, rounds.feed(), false)?.summary())?;
    Ok(ExitCode::SUCCESS)
}

/// Writes a feed, and counts its events.
fn write_feed(
    mut out: DocumentWriter,
    feed: impl Iterator<Item = FeedRecord<'static>>,
    with_features: bool,
) -> anyhow::Result<FeedCorpus> {
    let mut made = FeedCorpus::new(with_features);
    for record in feed {
        out.write(&record).context("the feed cannot be written")?;
        made.apply(record);
    }
    out.finish().context("the feed cannot be written")?;
    Ok(made)
}

fn params(args: &Args) -> Params {
    let FeedArgs {
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

/// The live documents, and the counts of events.
struct FeedCorpus {
    /// Present only if the features are needed.
    featurizer: Option<Featurizer>,
    alive: BTreeMap<DocId, Vec<u64>>,
    upserts: u64,
    deletes: u64,
    bytes: u64,
}

impl FeedCorpus {
    /// An empty corpus, with the features of its texts or without.
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

/// Writes one pair per line, sorted by ids. Generated ids hold no tab and no newline.
fn write_truth(out: &mut impl Write, pairs: &[(Pair<DocId>, f64)]) -> io::Result<()> {
    for (pair, similarity) in pairs {
        writeln!(out, "{}\t{}\t{similarity:.9}", pair.lo(), pair.hi())?;
    }
    out.flush()
}

/// The number of pairs per tenth of similarity; the last band is exactly 1.0.
fn by_band(pairs: &[(Pair<DocId>, f64)], floor: f64) -> String {
    let mut bands = BTreeMap::<u32, u64>::new();
    for (_, similarity) in pairs {
        // The margin keeps a decimal tenth, such as 0.3, from falling below itself as a float.
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
