//! `dupflow generate`: a synthetic feed with planted near-duplicates, and the truth about it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;

use super::{PipelineArgs, Usage};
use crate::doc::DocId;
use crate::feed::generate::{Generator, Params};
use crate::oracle;
use crate::pair::{DocPair, Evidence, Similarity};
use crate::sink::{PairLines, Sink};
use crate::text::Featurizer;

/// What `generate` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Documents that the feed brings; updates, repeats and deletes come on top.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub documents: u64,

    /// The same seed makes the same feed.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,

    /// Share of new documents that are edits of an earlier one, from 0 to 0.9.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().near, value_parser = share)]
    pub near: f64,

    /// Share of new documents that are exact copies of an earlier one, from 0 to 0.9.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().copies, value_parser = share)]
    pub copies: f64,

    /// Share of events that edit a document in place, from 0 to 0.9.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().updates, value_parser = share)]
    pub updates: f64,

    /// Share of events that are deletes, from 0 to 0.9.
    #[arg(long, value_name = "SHARE", default_value_t = Params::default().deletes, value_parser = share)]
    pub deletes: f64,

    /// Where the feed goes; "-" is standard output.
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub output: PathBuf,

    /// Also write all pairs of documents alive at the end whose exact similarity is at least --floor, one JSON object a
    /// line.
    #[arg(long, value_name = "FILE")]
    pub truth: Option<PathBuf>,

    /// The least similarity of a pair in the truth, above 0 and at most 1.
    #[arg(long, value_name = "J", default_value_t = 0.5, value_parser = similarity)]
    pub floor: f64,

    /// The pipeline whose rules make texts into shingles, for the truth.
    #[command(flatten)]
    pub pipeline: PipelineArgs,
}

/// The largest share, inclusive: the rest is new texts, without which a feed would not end.
const MOST: f64 = 0.9;

fn share(typed: &str) -> Result<f64, String> {
    let found = typed.parse().ok().filter(|share| (0.0..=MOST).contains(share));
    found.ok_or_else(|| "expected a number from 0 to 0.9".to_owned())
}

fn similarity(typed: &str) -> Result<f64, String> {
    let found = typed.parse().ok().filter(|similarity| *similarity > 0.0 && *similarity <= 1.0);
    found.ok_or_else(|| "expected a number above 0 and at most 1".to_owned())
}

/// Writes the feed, and the truth if it is asked for.
///
/// # Errors
/// If a file cannot be written, and everything that is wrong with the pipeline.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let plan = args.pipeline.load()?;
    let Args { documents, seed, near, copies, updates, deletes, floor, .. } = *args;
    for (names, sum) in
        [("--near and --copies", near + copies), ("--updates and --deletes", updates + deletes)]
    {
        if sum > MOST {
            return Err(Usage(format!("{names} are {sum} together, at most {MOST} is left for them")).into());
        }
    }
    let params = Params { documents, seed, near, copies, updates, deletes, ..Params::default() };

    let mut featurizer = Featurizer::new(plan.scheme.text);
    let mut alive: BTreeMap<DocId, Vec<u64>> = BTreeMap::new();
    let mut out = create(&args.output)?;
    let told = |path: &Path| format!("cannot write \"{}\"", path.display());
    for record in Generator::new(params) {
        crate::feed::write(&mut out, &record).with_context(|| told(&args.output))?;
        if args.truth.is_some() {
            let features = record.event.text.map(|text| featurizer.features(&text).to_vec());
            match features {
                Some(features) => drop(alive.insert(record.event.id, features)),
                None => drop(alive.remove(&record.event.id)),
            }
        }
    }
    out.flush().with_context(|| told(&args.output))?;
    if let Some(path) = &args.truth {
        write_truth(create(path)?, alive, floor).with_context(|| told(path))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_truth(out: impl Write, alive: BTreeMap<DocId, Vec<u64>>, floor: f64) -> io::Result<()> {
    let mut lines = PairLines::new(out, None);
    let found = |(pair, similarity)| {
        let similarity = Similarity::clamped(similarity);
        (DocPair { pair, similarity, evidence: Evidence::default() }, 1)
    };
    let pairs: Vec<_> = oracle::pairs(alive, floor).into_iter().map(found).collect();
    lines.epoch(1, &pairs)?;
    lines.finish()
}

/// A file, or standard output for "-".
fn create(path: &Path) -> anyhow::Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(io::stdout().lock())));
    }
    let file = File::create(path).with_context(|| format!("cannot create \"{}\"", path.display()))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::BUILT_IN;

    #[test]
    fn the_truth_is_about_the_documents_alive() {
        let folder = tempfile::tempdir().unwrap();
        let (feed, truth) = (folder.path().join("feed.jsonl"), folder.path().join("truth.jsonl"));
        let args = Args {
            documents: 300,
            seed: 7,
            near: 0.3,
            copies: 0.1,
            updates: 0.1,
            deletes: 0.1,
            output: feed.clone(),
            truth: Some(truth.clone()),
            floor: 0.5,
            pipeline: PipelineArgs { pipeline: BUILT_IN[0].0.to_owned(), overrides: Vec::new() },
        };
        run(&args).unwrap();
        let feed = std::fs::read_to_string(feed).unwrap();
        let last_of = |id: &str| feed.lines().rfind(|line| line.starts_with(&format!("{{\"id\":\"{id}\",")));
        let truth = std::fs::read_to_string(truth).unwrap();
        assert!(truth.lines().count() > 30, "{truth}");
        for line in truth.lines() {
            let pair: serde_json::Value = serde_json::from_str(line).unwrap();
            for id in ["a", "b"] {
                let last = last_of(pair[id].as_str().unwrap()).unwrap();
                assert!(last.contains("\"op\":\"upsert\""), "{last}");
            }
            assert!(pair["similarity"].as_f64().unwrap() >= 0.5, "{line}");
        }
        let refused = run(&Args { near: 0.6, copies: 0.6, ..args }).unwrap_err();
        assert_eq!(super::super::exit_code(&refused), 2);
    }
}
