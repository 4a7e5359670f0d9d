//! How answers are written: the same whoever has answered.

use std::fmt::Write as _;

use serde::Serialize;

use super::super::ReportFormat;
use super::ask;
use crate::config::Plan;
use dupflow_core::pair::Evidence;
use dupflow_core::run::query::{Answer, SimilarDocument};

/// An answer, of a run in this process or of another one.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) epoch: u64,
    /// Whether the text has no feature to look for.
    pub(super) empty: bool,
    /// The most similar ones first.
    documents: Vec<Document>,
    /// Further ones that are left out.
    pub(super) more: usize,
}

/// A document that was found.
#[derive(Debug, Serialize)]
struct Document {
    id: String,
    similarity: f64,
    blocks: u16,
    look: u16,
    components: u32,
    standard_error: f64,
}

/// A document as a line of JSON.
#[derive(Serialize)]
struct Line<'a> {
    /// What was asked about.
    asked: &'a str,
    #[serde(flatten)]
    document: &'a Document,
}

impl Told {
    /// By a run in this process.
    pub(super) fn here(plan: &Plan, answer: &Answer) -> Self {
        let document = |similar: &SimilarDocument| {
            let Evidence { blocks, look, components } = similar.evidence;
            Document {
                id: similar.id.to_string(),
                similarity: similar.similarity.get(),
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

    /// By another one.
    pub(super) fn there(answer: ask::Answered) -> Self {
        let document = |near: ask::Near| {
            let ask::Weighed { blocks, look, components, standard_error } = near.evidence;
            Document { id: near.id, similarity: near.similarity, blocks, look, components, standard_error }
        };
        Self {
            epoch: answer.epoch,
            empty: answer.empty,
            documents: answer.documents.into_iter().map(document).collect(),
            more: answer.more,
        }
    }

    /// As text or as lines of JSON; as text under its name, if there are several answers.
    pub(super) fn written(&self, name: &str, several: bool, format: ReportFormat) -> anyhow::Result<String> {
        let mut out = String::new();
        if let ReportFormat::Text = format {
            if several {
                let _ = writeln!(out, "{name}");
            }
            out.push_str("similarity  standard error  blocks  look  components  id\n");
        }
        for document in &self.documents {
            let Document { id, similarity, blocks, look, components, standard_error } = document;
            match format {
                ReportFormat::Json => {
                    out += &serde_json::to_string(&Line { asked: name, document })?;
                    out.push('\n');
                }
                // Nothing has been compared: they have the same sketch.
                ReportFormat::Text if *look == 0 => {
                    let _ = writeln!(
                        out,
                        "{similarity:>10.4}  {:>14}  {:>6}  {:>4}  {:>10}  {id}",
                        "-", "-", "-", "-"
                    );
                }
                ReportFormat::Text => {
                    let _ = writeln!(
                        out,
                        "{similarity:>10.4}  {standard_error:>14.4}  {blocks:>6}  {look:>4}  {components:>10}  {id}"
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
