//! What is compared: two texts, and by which pipeline.

use std::sync::Arc;

use crate::config::Plan;
use dupflow_connectors::digest::InputDigest;
use dupflow_core::text::{Featurizer, IdfTable};

/// What is compared, and by what.
#[derive(Debug)]
pub(super) struct Subject {
    /// The pipeline, its weights frozen.
    pub(super) plan: Plan,
    /// What is to be known of the plan, as lines.
    pub(super) notes: Vec<String>,
    /// What `pairs.where` says of the two.
    pub(super) ruling: PairRuling,
    /// The two texts.
    pub(super) texts: [NamedText; 2],
    /// The corpus that they are from.
    pub(super) corpus: Option<CorpusRead>,
}

/// What `pairs.where` says of two texts.
#[derive(Debug)]
pub(super) enum PairRuling {
    /// They may be a pair; so it is without a rule.
    Allowed,
    /// Why they may not.
    Rejected(String),
    /// The texts are of no documents, and have no fields.
    Unknown,
}

/// A text, and where it is from.
#[derive(Debug)]
pub(super) struct NamedText {
    /// The file or the id.
    pub(super) name: String,
    pub(super) text: String,
    /// Where it is in its corpus, as one line.
    pub(super) place: Option<String>,
}

/// What was read of a corpus.
#[derive(Debug)]
pub(super) struct CorpusRead {
    /// The inputs with their digests.
    pub(super) inputs: Vec<InputDigest>,
    /// Numbers of events and bad records, one line each.
    pub(super) counts: Vec<String>,
}

impl Subject {
    /// Two texts with their names, which are no corpus and have no fields.
    pub(super) fn of_texts(mut plan: Plan, named: [(String, String); 2]) -> Self {
        let [(name_a, a), (name_b, b)] = named.map(|(name, text)| (name, plan.scheme.text.alone(text)));
        let is_live = freeze(&mut plan, [&a, &b]);
        let note = "document frequencies are live, and these two texts all the documents here";
        let notes = is_live.then(|| note.to_owned()).into_iter().collect();
        let texts = [(name_a, a), (name_b, b)].map(|(name, text)| NamedText { name, text, place: None });
        let ruling = if plan.scheme.pairs.is_empty() { PairRuling::Allowed } else { PairRuling::Unknown };
        Self { plan, notes, ruling, texts, corpus: None }
    }
}

/// Freezes live weights at the document frequencies of these texts. Returns whether the weights were live.
fn freeze(plan: &mut Plan, texts: [&str; 2]) -> bool {
    if plan.scheme.live().is_none() {
        return false;
    }
    let mut featurizer = Featurizer::new(plan.scheme.text.clone());
    let features = texts.map(|text| featurizer.terms(text).to_owned().ids);
    // Texts without a token are not counted.
    let counted = features.into_iter().filter(|ids| !ids.is_empty());
    plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(counted)));
    true
}
