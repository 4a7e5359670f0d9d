//! Prints answers in one format, for both kinds of query.

use std::fmt::Write as _;

use serde::Serialize;

use super::ask;
use crate::cli::ReportFormat;
use crate::config::Plan;
use dupflow_core::pair::{Evidence, SharesBeside};
use dupflow_run::query::{Answer, SimilarDocument};

/// An answer of a run in this process or of another one.
#[derive(Debug)]
pub(super) struct QueryAnswer {
    pub(super) epoch: u64,
    /// Whether the text has no feature.
    pub(super) empty: bool,
    /// The similar documents, the most similar first.
    documents: Vec<AnswerDocument>,
    /// Number of further documents that were left out.
    pub(super) more: usize,
}

/// A similar document.
#[derive(Debug, Serialize)]
struct AnswerDocument {
    id: String,
    /// Whether it is of the reference of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<bool>,
    similarity: f64,
    /// Of the query and this document.
    #[serde(flatten)]
    shares: SharesBeside,
    blocks: u16,
    look: u16,
    components: u32,
    standard_error: f64,
}

/// A document as a line of JSON.
#[derive(Serialize)]
struct AnswerLine<'a> {
    /// The name of the query.
    asked: &'a str,
    #[serde(flatten)]
    document: &'a AnswerDocument,
}

impl QueryAnswer {
    /// From a run in this process.
    pub(super) fn here(plan: &Plan, answer: &Answer) -> Self {
        let document = |similar: &SimilarDocument| {
            let Evidence { blocks, look, components } = similar.evidence;
            AnswerDocument {
                id: similar.id.to_string(),
                old: None,
                similarity: similar.similarity.get(),
                shares: SharesBeside::new(similar.similarity),
                blocks,
                look,
                components,
                standard_error: plan.scheme.standard_error(similar.similarity, similar.evidence),
            }
        };
        Self {
            epoch: answer.epoch,
            empty: !answer.sketched,
            documents: answer.similar.iter().map(document).collect(),
            more: answer.more,
        }
    }

    /// From a run in another process.
    pub(super) fn there(answer: ask::RemoteAnswer) -> Self {
        let document = |near: ask::RemoteDocument| {
            let ask::RemoteEvidence { blocks, look, components, standard_error } = near.evidence;
            AnswerDocument {
                id: near.id,
                old: near.old,
                similarity: near.similarity,
                shares: near.shares,
                blocks,
                look,
                components,
                standard_error,
            }
        };
        Self {
            epoch: answer.epoch,
            empty: answer.empty,
            documents: answer.documents.into_iter().map(document).collect(),
            more: answer.more,
        }
    }

    /// Whether a document has two shares: of the query's features those that it has, and of its features
    /// those that the query has.
    fn has_shares(&self) -> bool {
        self.documents.iter().any(|document| document.shares.in_id.is_some())
    }

    /// The answer as text or as lines of JSON. If there are several answers, the text begins with the query's
    /// name.
    pub(super) fn written(&self, name: &str, several: bool, format: ReportFormat) -> anyhow::Result<String> {
        let mut out = String::new();
        if let ReportFormat::Text = format {
            if several {
                let _ = writeln!(out, "{name}");
            }
            let shares = if self.has_shares() { "in document  of document  " } else { "" };
            let _ = writeln!(out, "similarity  {shares}standard error  blocks  look  components  id");
        }
        for document in &self.documents {
            let AnswerDocument {
                id, similarity, shares, blocks, look, components, standard_error, old, ..
            } = document;
            let side = if *old == Some(true) { " (of the reference)" } else { "" };
            // Equal shares are the similarity.
            let share = |share: Option<f64>| share.unwrap_or(*similarity);
            let shares = match self.has_shares() {
                true => format!("{:>11.4}  {:>11.4}  ", share(shares.in_id), share(shares.of_id)),
                false => String::new(),
            };
            match format {
                ReportFormat::Json => {
                    out += &serde_json::to_string(&AnswerLine { asked: name, document })?;
                    out.push('\n');
                }
                ReportFormat::Text => {
                    // Look 0: nothing was compared, since the sketches are equal.
                    let counts = [u32::from(*blocks), u32::from(*look), *components];
                    let [in_blocks, at_look, read] =
                        counts.map(|count| if *look == 0 { "-".to_owned() } else { count.to_string() });
                    let _ = writeln!(
                        out,
                        "{similarity:>10.4}  {shares}{standard_error:>14.4}  {in_blocks:>6}  {at_look:>4}  \
                         {read:>10}  {id}{side}"
                    );
                }
            }
        }
        if several && matches!(format, ReportFormat::Text) {
            out.push('\n');
        }
        Ok(out)
    }
}
