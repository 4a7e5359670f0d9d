//! `replay --dry-run`: prints how the first records of each input are read.

use std::fmt::Write as _;
use std::num::NonZeroU64;
use std::ops::ControlFlow;

use indicatif::{BinaryBytes, HumanCount};

use crate::cli::summary::quoted;
use crate::config::Plan;
use crate::plural::count;
use dupflow_connectors::inputs::{Input, described, folder_kinds, for_each_event_until};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::{DocEvent, DocId};
use dupflow_core::text::{self, TextColumns};

/// Most characters of a text that are printed.
const SHOWN: usize = 72;

/// What is shown of a record besides its text.
struct ShownFields {
    /// Further fields, read with the text.
    in_text: TextColumns,
    /// Fields of documents.
    own: FieldRules,
}

/// Describes up to `events` events of each input with these fields, one paragraph per input.
///
/// # Errors
/// Errors of the inputs.
pub(in crate::cli) fn look(
    plan: &Plan,
    inputs: Vec<Input>,
    own: FieldRules,
    events: NonZeroU64,
) -> anyhow::Result<String> {
    let fields = ShownFields { in_text: plan.scheme.text.columns(), own };
    let mut out = String::new();
    for input in inputs {
        let name = input.name();
        if input.is_folder() {
            writeln!(out, "{name}: a folder")?;
            for kind in folder_kinds(&input) {
                let (format, files) = (kind.format.name(), count(kind.files, "file"));
                writeln!(out, " {format}: {files}, such as {}", kind.first.name())?;
                let root = kind.is_document().then(|| format!("{}/", name.trim_end_matches('/')));
                if let Err(error) = records(&mut out, plan, &fields, kind.first, events, root.as_deref()) {
                    writeln!(out, "  {error}")?;
                }
            }
            continue;
        }
        if input.is_stdin() {
            writeln!(out, "standard input")?;
        } else {
            let bytes = input.bytes().map_or_else(String::new, |bytes| format!(", {}", BinaryBytes(bytes)));
            let what = described(&input).unwrap_or_else(|error| format!("cannot be read: {error}"));
            writeln!(out, "{name}: {what}{bytes}")?;
        }
        records(&mut out, plan, &fields, input, events, None)?;
    }
    Ok(out)
}

/// The first records of an input. For a folder, ids are printed without its name, `root`.
fn records(
    out: &mut String,
    plan: &Plan,
    fields: &ShownFields,
    input: Input,
    events: NonZeroU64,
    root: Option<&str>,
) -> anyhow::Result<()> {
    let bad = BadRecords::new(OnError::Count, None);
    let mut seen = 0;
    for_each_event_until(vec![input], &fields.in_text, &fields.own, &bad, |_, mut event| {
        seen += 1;
        if let Some(below) = root.and_then(|root| event.id.as_str().strip_prefix(root)).and_then(DocId::new) {
            event.id = below;
        }
        shown(out, plan, fields, &event).unwrap_or_default();
        if seen < events.get() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    if seen == 0 {
        writeln!(out, "  no document")?;
    }
    for (why, n) in bad.skipped() {
        writeln!(out, "  {} without a document: {why}", count(n, "record"))?;
    }
    for (reason, n) in bad.counts() {
        writeln!(out, "  {} bad: {reason}", count(n, "record"))?;
    }
    for tally in bad.tallies().values().filter(|tally| tally.documents == 0) {
        writeln!(out, "  {}", tally.first.as_deref().unwrap_or_default())?;
    }
    Ok(())
}

/// One event in two lines, and a line for each field.
fn shown(out: &mut String, plan: &Plan, fields: &ShownFields, event: &DocEvent<'_>) -> std::fmt::Result {
    let ts = event.ts.map_or_else(String::new, |ts| format!(", ts {ts}"));
    let Some(text) = &event.text else { return writeln!(out, "  delete {}{ts}", quoted(event.id.as_str())) };
    // A text alone may have any character.
    let has_parts = !fields.in_text.is_empty();
    let mut parts = plan.scheme.text.parts(text);
    let own = parts.next().filter(|_| has_parts).unwrap_or(text);
    let says = text::readable(own, &plan.scheme.text);
    let page = if matches!(&says, std::borrow::Cow::Owned(_)) { " of a page" } else { "" };
    let id = quoted(event.id.as_str());
    writeln!(out, "  {id}{ts}, {} bytes{page}", HumanCount(says.len() as u64))?;
    writeln!(out, "    {}", beginning(&says))?;
    for (place, rule) in fields.own.rules().iter().enumerate() {
        writeln!(out, "    field {}: {}", rule.name(), quoted(event.fields.row.get(place)))?;
    }
    for (field, content) in fields.in_text.iter().zip(parts).filter(|(_, content)| !content.is_empty()) {
        writeln!(out, "    {field}: {}", beginning(content))?;
    }
    Ok(())
}

/// The first characters of a text, in quotes.
fn beginning(text: &str) -> String {
    let start: String = text.chars().take(SHOWN).collect();
    let more = if start.len() < text.len() { " …" } else { "" };
    format!("{}{more}", quoted(&start))
}
