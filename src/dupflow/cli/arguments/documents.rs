//! Options for records of documents.

use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use super::problems::Problems;
use crate::config::{DocumentsConfig, OutputAnswer, size};
use dupflow_connectors::inputs::Input;
use dupflow_connectors::rewrite::{self, CopySettings, CopyTarget};
use dupflow_connectors::sinks::DocumentList;

/// How records of documents are written.
#[derive(Clone, Debug, clap::Args)]
pub struct DocumentArgs {
    /// With --emit documents: write the records of all documents, kept and removed, with three more columns:
    /// NAME_cluster, the cluster of the document; NAME_kept, whether it is kept; NAME_of, the document that
    /// is kept for it. With text.split: one more column, NAME, the repeated parts of the text.
    #[arg(long, value_name = "NAME", value_parser = mark)]
    pub mark: Option<String>,

    /// With --emit documents and removed-documents: write several files, each of about this size before
    /// compression (Parquet: as stored), as in 512MiB. "-o clean/part.jsonl.zst" then writes
    /// clean/part-00000.jsonl.zst, ...
    #[arg(long, value_name = "SIZE", value_parser = shard_size)]
    pub shard_size: Option<NonZeroU64>,
}

impl DocumentArgs {
    /// The options as settings of a deployment.
    pub(in crate::cli) fn config(&self) -> DocumentsConfig {
        DocumentsConfig { mark: self.mark.clone(), shard_bytes: self.shard_size, resume: None }
    }

    /// Whether the output is one file or a stream.
    pub(in crate::cli) fn is_file(&self, answer: OutputAnswer, output: &Path) -> bool {
        let target = answer.copied().map(|_| CopyTarget::new(Some(output), self.shard_size));
        target.is_none_or(|target| matches!(target, Ok(CopyTarget::File(_) | CopyTarget::Stream(_))))
    }

    /// The folder of records that is written, if the output is one.
    pub(in crate::cli) fn folder(&self, answer: OutputAnswer, output: &Path) -> Option<PathBuf> {
        answer.copied()?;
        CopyTarget::new(Some(output), self.shard_size).ok()?.folder().map(ToOwned::to_owned)
    }

    /// Reports options that exclude each other or have no effect, and inputs whose records cannot be copied.
    pub(in crate::cli) fn note_conflicts(
        &self,
        (answer, output): (OutputAnswer, &Path),
        (inputs, reference): (&[Input], &[Input]),
        (are_several, of_units): (bool, bool),
        problems: &mut Problems,
    ) {
        let Some(listed) = answer.copied() else {
            if self.mark.is_some() {
                problems.note("--mark: has an effect with --emit documents only");
            }
            if self.shard_size.is_some() {
                problems.note("--shard-size: has an effect with --emit documents and removed-documents only");
            }
            return;
        };
        if are_several {
            problems.note("--processes: records are copied by one process: leave it out");
        }
        if self.mark.is_some() && listed == DocumentList::Removed {
            problems.note("--mark: writes the records of all documents: take --emit documents");
        }
        let path = Some(output).filter(|path| *path != Path::new("-"));
        match CopyTarget::new(path, self.shard_size) {
            Err(what) => problems.note(format_args!("--shard-size: {what}")),
            Ok(target) => {
                let settings = CopySettings { resume: None, mark: self.mark.clone(), of_units, target };
                rewrite::problems(&settings, inputs, reference)
                    .into_iter()
                    .for_each(|what| problems.note(what));
            }
        }
    }
}

/// The name of a mark.
fn mark(typed: &str) -> Result<String, String> {
    let is_name = |name: &str| name.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_short = (1..=100).contains(&typed.len());
    (is_short && is_name(typed))
        .then(|| typed.to_owned())
        .ok_or_else(|| "expected 1 to 100 bytes of letters, digits and underscores".to_owned())
}

/// The size of a file.
fn shard_size(typed: &str) -> Result<NonZeroU64, String> {
    let size = size(typed).and_then(NonZeroU64::new);
    size.ok_or_else(|| "expected a size, as in \"512MiB\", \"500MB\" or 500000000".to_owned())
}
