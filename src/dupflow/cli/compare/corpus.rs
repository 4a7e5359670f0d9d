//! Finds two documents in a corpus: their last texts, and where these are.
//!
//! The inputs are read once, in order. Texts of other documents are held only where weights follow the
//! corpus.
//! The retention of the pipeline is not applied: a document that it would have let expire is found.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use anyhow::{anyhow, ensure};

use super::subject::{CorpusRead, NamedText, PairRuling, Subject};
use crate::cli::rule_fields::RuleFields;
use crate::config::Plan;
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::{Input, for_each_event_until};
use dupflow_connectors::instant;
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::{DocEvent, DocId, Position};
use dupflow_core::text::{Featurizer, IdfTable};
use dupflow_core::time::UnixTime;

/// A document as its events leave it.
#[derive(Default)]
struct FollowedDocument {
    /// The last text, and its fields.
    text: Option<String>,
    fields: FieldRow,
    /// The record of the text, and its time.
    set: (u64, Option<f64>),
    /// The record that deleted the document after its last text, and its time.
    deleted: Option<(u64, Option<f64>)>,
    upserts: u64,
}

/// Numbers of events.
#[derive(Default)]
struct EventCounts {
    events: u64,
    after: u64,
    undated: u64,
}

/// An id as typed.
///
/// # Errors
/// If it is not one.
pub(super) fn id(typed: &Path, layout: &InputLayout) -> anyhow::Result<DocId> {
    let id = typed.to_str().and_then(|typed| layout.id_of(typed));
    id.ok_or_else(|| anyhow!("{typed:?}: an id is UTF-8 and has 1 to {} bytes", DocId::MAX_BYTES))
}

/// Finds the documents of these ids, among the events up to `until`.
///
/// # Errors
/// If an input cannot be read; if it has no text of one of the documents; if both are one document.
pub(super) fn find(
    mut plan: Plan,
    inputs: Vec<Input>,
    ids: [&DocId; 2],
    until: Option<UnixTime>,
    fields: &RuleFields,
) -> anyhow::Result<Subject> {
    ensure!(ids[0] != ids[1], "both ids are \"{}\": two documents are compared", ids[0]);
    let is_live = plan.scheme.live().is_some();
    let bad = BadRecords::new(OnError::Count, None).with_digests();
    let mut followed = [FollowedDocument::default(), FollowedDocument::default()];
    let mut alive = BTreeMap::<DocId, String>::new();
    let mut counts = EventCounts::default();
    for_each_event_until(inputs, &plan.scheme.text.columns(), &fields.rules, &bad, |position, event| {
        let is_undated = event.ts.is_none();
        if until.is_some_and(|until| event.ts.is_some_and(|ts| ts > until.seconds())) {
            counts.after += 1;
            return ControlFlow::Continue(());
        }
        counts.events += 1;
        counts.undated += u64::from(until.is_some() && is_undated);
        for (document, _) in followed.iter_mut().zip(ids).filter(|(_, id)| **id == event.id) {
            document.follow(position, &event);
        }
        if is_live {
            match event.text {
                Some(text) => drop(alive.insert(event.id, text.into_owned())),
                None => drop(alive.remove(&event.id)),
            }
        }
        ControlFlow::Continue(())
    })?;
    crate::cli::arguments::problems::check_demands(&bad.without_document())?;
    let mut notes = Vec::new();
    if is_live {
        let mut featurizer = Featurizer::new(plan.scheme.text.clone());
        let features = alive.values().map(|text| featurizer.terms(text).to_owned().ids);
        plan.scheme = plan.scheme.under(Arc::new(IdfTable::count(features)));
        notes.push("document frequencies are those of the live documents of the corpus".to_owned());
    }
    let [a, b] = followed;
    for (which, id, document) in [("A", ids[0], &a), ("B", ids[1], &b)] {
        notes.extend(document.deletion(which, id));
    }
    let ruling = fields.rejection([&a.fields, &b.fields]).map_or(PairRuling::Allowed, PairRuling::Rejected);
    let texts = [a.named(ids[0], until)?, b.named(ids[1], until)?];
    let corpus = CorpusRead { inputs: bad.digest_table().inputs(), counts: counts.lines(&bad, until) };
    Ok(Subject { plan, notes, ruling, texts, corpus: Some(corpus) })
}

impl FollowedDocument {
    fn follow(&mut self, at: Position, event: &DocEvent<'_>) {
        match &event.text {
            Some(text) => {
                let text = Some(text.to_string());
                let (fields, set) = (event.fields.row.clone(), (at.offset, event.ts));
                *self = Self { text, fields, set, deleted: None, upserts: self.upserts + 1 };
            }
            None => self.deleted = self.deleted.or(Some((at.offset, event.ts))),
        }
    }

    /// The note on a document that is deleted.
    fn deletion(&self, which: &str, id: &DocId) -> Option<String> {
        let deleted = self.text.as_ref().and(self.deleted)?;
        Some(format!(
            "{which} ({id}) was deleted by {}: it is in no pair now, and what follows is of its last text",
            record(deleted)
        ))
    }

    fn named(self, id: &DocId, until: Option<UnixTime>) -> anyhow::Result<NamedText> {
        let by = until.map(|until| format!(" up to {}", date(until.seconds()))).unwrap_or_default();
        let Some(text) = self.text else {
            let what = if self.deleted.is_some() { "only deletes" } else { "no event" };
            return Err(anyhow!("the corpus has {what} of document \"{id}\"{by}"));
        };
        let version = match self.upserts {
            1 => String::new(),
            n => format!(", the last of {n} texts"),
        };
        Ok(NamedText { name: id.to_string(), text, place: Some(record(self.set) + &version) })
    }
}

impl EventCounts {
    fn lines(&self, bad: &BadRecords, until: Option<UnixTime>) -> Vec<String> {
        let mut lines = vec![format!("{} events read", self.events)];
        if let Some(until) = until {
            let until = date(until.seconds());
            lines.push(format!("{} events after {until} left out", self.after));
            lines.push(format!("{} events without a time counted", self.undated));
        }
        lines.extend(bad.counts().iter().map(|(reason, n)| format!("{n} bad records: {reason}")));
        lines.extend(bad.skipped().iter().map(|(why, n)| format!("{n} records without a document: {why}")));
        lines
    }
}

/// A record by its number, with its time if it has one.
fn record((offset, ts): (u64, Option<f64>)) -> String {
    let time = ts.map(|ts| format!(" of {}", date(ts))).unwrap_or_default();
    format!("record {offset}{time}")
}

/// Unix seconds as a date; as a number if they are none.
fn date(seconds: f64) -> String {
    instant::date(seconds).unwrap_or_else(|| seconds.to_string())
}
