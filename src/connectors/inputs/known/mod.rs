//! Continues after the inputs that an earlier run has read.
//!
//! Input: the lists of the output and of the state, and the present inputs. Output: what is read again and
//! what is read on, or why the run is refused.
//!
//! | an input of records | is |
//! |---|---|
//! | listed, and as it was read | not read again, except what lies before the position of the output |
//! | listed, with more behind what was read | read on, after all others that are listed |
//! | not listed, whatever its name | read after those that are listed, in the order of the names |
//! | listed, and missing, shorter or another one | handled as [`GoneInputs`] says |
//! | not listed, with the bytes of one that is missing | that one, unless its name is in its ids |
//!
//! Where files are documents, or an input has no name, positions depend on all files before: if these are
//! still the same, the run continues. Otherwise it reads everything again.

mod found;
mod past;
mod present;

use std::collections::BTreeMap;

use found::Likeness;
pub(crate) use found::{found, is_unended, nanoseconds, size_and_time};

use super::input::Input;
use crate::formats::IdRule;
use crate::intake::{FileOrder, PastInputs, Resumption, SourceError};
use crate::mark::{InputList, InputSpan};
use past::PastList;
use present::{FileSpans, PresentInputs, groups};
pub(crate) use present::{InputKey, PresentInput, is_unnamed};

/// What a run does if an input of records is missing, shorter or another one than was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GoneInputs {
    /// It is refused.
    #[default]
    Refuse,
    /// The documents of what was read stay, as the state has them.
    Keep,
    /// Documents that the present inputs do not give are deleted.
    Delete,
}

/// What an earlier run has read of the present inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct PastReading {
    /// The spans, in the order in which they were read.
    pub(crate) spans: Vec<KnownSpan>,
    /// The present inputs that were read, with what is left of them.
    pub(crate) files: BTreeMap<InputKey, KnownFile>,
}

/// A span that an earlier run has read.
#[derive(Clone, Debug)]
pub(crate) struct KnownSpan {
    /// Its records.
    pub(crate) span: InputSpan,
    /// The input that has them; `None` if none has.
    pub(crate) input: Option<PresentInput>,
    /// Whether the last record is another one now.
    pub(crate) is_completed: bool,
}

/// What is left of an input that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownFile {
    /// The number of records that were read.
    pub(crate) records: u64,
    /// Whether there may be more.
    pub(crate) has_more: bool,
}

/// How the run continues.
pub(crate) struct Continued {
    pub(crate) resumption: Resumption,
    /// `None` if the inputs are read in their order, as many records as were read are skipped.
    pub(crate) known: Option<PastReading>,
    /// The list so far, of which the state has the first.
    pub(crate) spans: Vec<InputSpan>,
    pub(crate) stored: u64,
    /// The files before the position where the run begins.
    pub(crate) files: FileOrder,
}

impl Continued {
    /// Nothing counts that was read.
    fn anew() -> Self {
        let (known, spans) = (None, Vec::new());
        let (resumption, files) = (Resumption::Anew, FileOrder::default());
        Self { resumption, known, spans, stored: 0, files }
    }
}

/// Decides how a run continues; `None` if nothing is known of what was read.
///
/// # Errors
/// If inputs are missing or replaced and the run is to be refused then, or cannot keep their documents.
pub(crate) fn resume(
    inputs: &[Input],
    past: &PastInputs,
    rule: GoneInputs,
) -> Result<Option<Continued>, SourceError> {
    let present = PresentInputs::list(inputs);
    let Some(PastList { list, resumption, stored }) = PastList::join(past) else {
        return Ok(None);
    };
    if list.is_cut && !present.is_unnamed {
        // Equal names do not say that the files are those that were read, and there is nothing to compare.
        let is_state_lost = past.of_output.as_ref().is_some_and(|output| output.stored > 0);
        let order = order_of(&list);
        let all = present.order(u64::MAX);
        let are_there =
            (all.files, all.names) == (order.files, order.names) || present.order(order.files) == order;
        if rule != GoneInputs::Delete && !past.reconcile && !(is_state_lost && are_there) {
            return Err(SourceError::Changed(if is_state_lost { LOST } else { UNLISTED }.to_owned()));
        }
        tracing::info!("what was read of the inputs is not listed any more: all are read again");
        return Ok(Some(Continued::anew()));
    }
    let groups = groups(&list.spans, &present);
    let gone: Vec<&FileSpans> = groups.iter().filter(|group| group.is_gone()).collect();
    let keeps = rule == GoneInputs::Keep && !gone.is_empty();
    if !gone.is_empty() {
        let of_names = names(&gone);
        let by_position = list.has_documents || present.is_unnamed;
        match rule {
            GoneInputs::Refuse if !past.reconcile || !gone.iter().all(|group| group.is_left_out()) => {
                return Err(refused(&of_names, past, by_position));
            }
            GoneInputs::Keep if !past.has_documents || by_position => {
                return Err(not_kept(&of_names, past));
            }
            GoneInputs::Keep if gone.iter().any(|group| group.last.is_numbered && group.is_replaced()) => {
                return Err(SourceError::Changed(format!("{of_names}{NUMBERED}")));
            }
            GoneInputs::Keep if gone.iter().any(|group| group.last.after() > past.begin) => {
                return Err(SourceError::Changed(format!("{of_names}{NOT_STORED}")));
            }
            GoneInputs::Keep => {
                tracing::warn!(inputs = of_names, "inputs are gone: their documents are kept");
            }
            GoneInputs::Refuse | GoneInputs::Delete => {
                tracing::warn!(inputs = of_names, "inputs are gone: all others are read again");
                return Ok(Some(Continued::anew()));
            }
        }
    }
    if list.has_documents || present.is_unnamed {
        let order = order_of(&list);
        let is_grown = groups.iter().any(|group| matches!(group.compared, Likeness::Grown { .. }));
        if !is_grown && present.order(order.files) == order {
            let of_state = past.of_state.as_ref().filter(|_| past.has_documents);
            let files = of_state.map(order_of).unwrap_or_default();
            return Ok(Some(Continued { resumption, known: None, spans: list.spans, stored, files }));
        }
        if present.is_unnamed {
            return Err(SourceError::Changed(UNNAMED.to_owned()));
        }
        if present.all.is_empty() && list.files > 0 && rule != GoneInputs::Delete {
            return Err(SourceError::Changed(format!(
                "no input is there any more, of {} that were read: put them back, or set source.gone = \
                 \"delete\", which deletes all documents",
                list.files
            )));
        }
        tracing::info!("the files are not those that were read: all are read again");
        return Ok(Some(Continued::anew()));
    }
    let known = known(&list.spans, &groups, &present);
    let is_in_order = known.is_in_order(&present);
    if past.reconcile && !keeps && !is_in_order {
        return Ok(Some(Continued::anew()));
    }
    if !is_in_order && present.files.iter().any(|(_, one)| one.input.layout.ids == IdRule::Last) {
        tracing::info!(
            "inputs are read behind others that sort after them: of an id in several inputs the document \
             that is read last counts"
        );
    }
    // The records between the positions of the state and of the output are not those that were read.
    let is_lost =
        |one: &KnownSpan| (one.input.is_none() || one.is_completed) && one.span.after() > past.begin;
    let resumption = if known.spans.iter().any(is_lost) { Resumption::FromState } else { resumption };
    let files = order_of(&list);
    Ok(Some(Continued { resumption, known: Some(known), spans: list.spans, stored, files }))
}

/// Where a lost state had the list.
const LOST: &str = "the state that listed the inputs is lost, and the present inputs are not those that were \
    read, or others sort before them: put back what is missing, or start with --reconcile, which reads the \
    present ones and corrects the output";

/// Where the output has no place for the list.
const UNLISTED: &str = "more inputs were read than the mark of this output can list, so it is not known \
    whether they are as they were read: set state.path, which keeps the list from now on, and start once \
    with --reconcile, which reads all inputs again and corrects the output";

const NOT_STORED: &str = ", and the state has not stored all of what was read of it: put it back as it was, \
    or set source.gone = \"delete\"";

const NUMBERED: &str = ", and its records are numbered, so that those of the new one would replace some of \
    the old: put it back as it was, or set source.gone = \"delete\"";

pub(crate) const UNNAMED: &str = "standard input and pipes have no name by which their records are found \
    again, and other inputs than those that were read are before or beside them: name the same ones in the \
    same order, or start over with another sink.path, and another state.path if there is one";

/// The order of the files of a list.
fn order_of(list: &InputList) -> FileOrder {
    let InputList { files, order, names, has_documents, .. } = *list;
    FileOrder { files, order, names, has_documents }
}

/// The message for inputs that are missing or replaced.
fn refused(names: &str, past: &PastInputs, by_position: bool) -> SourceError {
    let keep = match () {
        () if by_position || !past.has_documents && past.of_state.is_some() => "",
        () if past.of_state.is_some() => "; source.gone = \"keep\" keeps what was read of them",
        () => "; source.gone = \"keep\" keeps what was read of them, with a state.path",
    };
    SourceError::Changed(format!(
        "{names}: put them back as they were{keep}; source.gone = \"delete\" deletes the documents that the \
         present inputs do not give"
    ))
}

/// The message for documents that cannot be kept.
fn not_kept(names: &str, past: &PastInputs) -> SourceError {
    let why = match () {
        () if past.has_documents => "source.gone = \"keep\" needs inputs of records only",
        () if past.of_state.is_some() => {
            "the rules by which records become documents are others, so that source.gone = \"keep\" cannot \
             keep what was read of them"
        }
        () => "source.gone = \"keep\" needs a state that has their documents",
    };
    SourceError::Changed(format!(
        "{names}, and {why}: put them back as they were, or set source.gone = \"delete\""
    ))
}

/// The inputs that are missing or replaced, each with how.
fn names(gone: &[&FileSpans]) -> String {
    const SHOWN: usize = 10;
    let how = |group: &&FileSpans| {
        let InputSpan { name, bytes, .. } = &group.last;
        match group.compared {
            _ if group.last.is_of_table() => format!(
                "\"{name}\" is no file of its table any more, or with other columns, values or deleted rows"
            ),
            Likeness::Shorter => format!(
                "\"{name}\" has fewer than the {bytes} bytes that were read, and no other input has them"
            ),
            Likeness::Other => {
                format!("\"{name}\" has been replaced: other bytes were read, which no other input has")
            }
            _ => format!("\"{name}\" was read, and is missing or not named any more"),
        }
    };
    let mut all: Vec<_> = gone.iter().take(SHOWN).map(how).collect();
    if gone.len() > SHOWN {
        all.push(format!("{} more", gone.len() - SHOWN));
    }
    all.join("; ")
}

/// What was read of the present inputs, and what is left of them.
fn known(spans: &[InputSpan], groups: &[FileSpans], present: &PresentInputs) -> PastReading {
    let mut known = PastReading::default();
    let span = |span: &InputSpan| KnownSpan { span: span.clone(), input: None, is_completed: false };
    known.spans.extend(spans.iter().map(span));
    for group in groups {
        let Some(key) = &group.found else { continue };
        for number in &group.spans {
            known.spans[*number].input = present.get(key).cloned();
        }
        let InputSpan { is_broken, is_unended, is_open, .. } = group.last;
        let is_completed = match group.compared {
            Likeness::Grown { ends_line } => is_broken || is_unended && !ends_line,
            _ => false,
        };
        if let Some(last) = group.spans.last() {
            known.spans[*last].is_completed = is_completed;
        }
        let records = group.records() - u64::from(is_completed);
        // Of an input that was not read to its end there may be more, whatever its size.
        let has_more = is_open || group.compared != Likeness::Same;
        let file = known.files.entry(key.clone()).or_insert(KnownFile { records, has_more });
        if file.records < records {
            *file = KnownFile { records, has_more };
        }
    }
    known
}

impl PastReading {
    /// Whether a run without a past would read the records in the same order.
    fn is_in_order(&self, present: &PresentInputs) -> bool {
        let mut read: Vec<String> = Vec::new();
        for one in &self.spans {
            let Some(found) = &one.input else { return false };
            if one.is_completed {
                return false;
            }
            read.push(found.input.name().to_string());
        }
        for (key, _) in &present.files {
            if self.files.get(key).is_none_or(|file| file.has_more) {
                read.push(key.0.clone());
            }
        }
        read.dedup();
        read.iter().eq(present.files.iter().map(|(key, _)| &key.0))
    }
}
