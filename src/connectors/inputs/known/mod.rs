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

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use found::{Likeness, compare, is_named};
pub(crate) use found::{found, is_unended, nanoseconds, size_and_time};

use super::folder::{holds_records, in_order, is_hidden};
use super::input::{Input, InputPlace};
use super::open::is_document;
use crate::formats::IdRule;
use crate::intake::{FileOrder, PastInputs, Resumption, SourceError};
use crate::mark::{InputList, InputSpan};
use past::PastList;

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

/// The name of an input, and the number of earlier ones with that name.
pub(crate) type InputKey = (String, u64);

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

/// A present input of records.
#[derive(Clone, Debug)]
pub(crate) struct PresentInput {
    pub(crate) input: Input,
    /// The folder that it is in, if that is what was named.
    pub(crate) folder: Option<Arc<str>>,
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

/// What was read of one file, and the present input that has it. Where its name was given to another file
/// later, that one has a group of its own.
struct FileSpans {
    /// The numbers of its spans.
    spans: Vec<usize>,
    /// The last of them.
    last: InputSpan,
    /// Records of the file before the first span: they have another group, of an earlier name.
    before: u64,
    found: Option<InputKey>,
    compared: Likeness,
}

impl FileSpans {
    /// The number of its records that were read.
    fn records(&self) -> u64 {
        self.last.skipped + self.last.records
    }

    /// Whether the file is there, and is no input any more. A run that reconciles takes that as meant.
    fn is_left_out(&self) -> bool {
        matches!(self.compared, Likeness::Same) && Path::new(&self.last.name).is_file()
    }

    /// Whether it is known where its records were, and they are not there.
    fn is_gone(&self) -> bool {
        self.found.is_none() && is_named(&self.last)
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
    let Some(PastList { list, resumption, stored }) = PastList::join(past) else { return Ok(None) };
    let present = PresentInputs::list(inputs);
    let is_state_lost =
        past.of_state.is_none() && past.of_output.as_ref().is_some_and(|output| output.stored > 0);
    if is_state_lost && !present.is_unnamed {
        // Equal names do not say that the files are those that were read, and there is nothing to compare.
        tracing::info!("the state that listed the inputs is lost: all are read again");
        return Ok(Some(Continued::anew()));
    }
    let groups = groups(&list.spans, &present);
    let gone: Vec<&FileSpans> = groups.iter().filter(|group| group.is_gone()).collect();
    let keeps = rule == GoneInputs::Keep && !gone.is_empty();
    if !gone.is_empty() {
        let of_names = names(&gone);
        let by_position = list.has_documents || list.is_cut || present.is_unnamed;
        match rule {
            GoneInputs::Refuse if !past.reconcile || !gone.iter().all(|group| group.is_left_out()) => {
                return Err(refused(&of_names, past, by_position));
            }
            GoneInputs::Keep if past.of_state.is_none() || by_position => return Err(not_kept(&of_names)),
            GoneInputs::Keep => {
                tracing::warn!(inputs = of_names, "inputs are gone: their documents are kept");
            }
            GoneInputs::Refuse | GoneInputs::Delete => {
                tracing::warn!(inputs = of_names, "inputs are gone: all others are read again");
                return Ok(Some(Continued::anew()));
            }
        }
    }
    if list.has_documents || list.is_cut || present.is_unnamed {
        let order = order_of(&list);
        let is_grown = groups.iter().any(|group| matches!(group.compared, Likeness::Grown { .. }));
        if !is_grown && present.order(order.files) == order {
            let files = past.of_state.as_ref().map(order_of).unwrap_or_default();
            return Ok(Some(Continued { resumption, known: None, spans: list.spans, stored, files }));
        }
        if present.is_unnamed {
            return Err(SourceError::Changed(UNNAMED.to_owned()));
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

const UNNAMED: &str = "standard input and pipes have no name by which their records are found again, and \
    other inputs than those that were read are before or beside them: name the same ones in the same order, \
    or start over with another sink.path, and another state.path if there is one";

/// The order of the files of a list.
fn order_of(list: &InputList) -> FileOrder {
    FileOrder { files: list.files, order: list.order, has_documents: list.has_documents }
}

/// The message for inputs that are missing or replaced.
fn refused(names: &str, past: &PastInputs, by_position: bool) -> SourceError {
    let keep = match () {
        () if by_position => "",
        () if past.of_state.is_some() => "; source.gone = \"keep\" keeps what was read of them",
        () => "; source.gone = \"keep\" keeps what was read of them, with a state.path",
    };
    SourceError::Changed(format!(
        "{names}: put them back as they were{keep}; source.gone = \"delete\" deletes the documents that the \
         present inputs do not give"
    ))
}

/// The message for documents that cannot be kept.
fn not_kept(names: &str) -> SourceError {
    SourceError::Changed(format!(
        "{names}, and source.gone = \"keep\" needs a state that has their documents, and inputs of records \
         only: put them back as they were, or set source.gone = \"delete\""
    ))
}

/// The inputs that are missing or replaced, each with how.
fn names(gone: &[&FileSpans]) -> String {
    const SHOWN: usize = 10;
    let how = |group: &&FileSpans| {
        let InputSpan { name, bytes, .. } = &group.last;
        match group.compared {
            Likeness::Shorter => format!("\"{name}\" has fewer than the {bytes} bytes that were read"),
            Likeness::Other => format!("\"{name}\" has been replaced: other bytes were read"),
            _ => format!("\"{name}\" was read, and is missing"),
        }
    };
    let mut all: Vec<_> = gone.iter().take(SHOWN).map(how).collect();
    if gone.len() > SHOWN {
        all.push(format!("{} more", gone.len() - SHOWN));
    }
    all.join("; ")
}

/// The present inputs.
struct PresentInputs {
    /// Those of records, in their order.
    files: Vec<(InputKey, PresentInput)>,
    by_key: BTreeMap<InputKey, usize>,
    /// All, in their order, and whether each is a document.
    all: Vec<(Input, bool)>,
    /// Whether one is standard input or a pipe.
    is_unnamed: bool,
}

impl PresentInputs {
    fn list(inputs: &[Input]) -> Self {
        let mut present =
            Self { files: Vec::new(), by_key: BTreeMap::new(), all: Vec::new(), is_unnamed: false };
        let mut names: BTreeMap<String, u64> = BTreeMap::new();
        let mut add = |input: Input, folder: Option<Arc<str>>| {
            let is_document = match &input.place {
                InputPlace::File(path) if folder.is_some() => !holds_records(path, &input.layout),
                _ => is_document(&input),
            };
            present.all.push((input.clone(), is_document));
            present.is_unnamed |= is_unnamed(&input);
            if is_document {
                return;
            }
            let name = input.name().to_string();
            let nth = names.entry(name.clone()).or_default();
            let key = (name, *nth);
            *nth += 1;
            present.by_key.insert(key.clone(), present.files.len());
            present.files.push((key, PresentInput { input, folder }));
        };
        for input in inputs {
            let InputPlace::Folder(root) = &input.place else {
                add(input.clone(), None);
                continue;
            };
            let found = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
            for entry in found.filter(|entry| entry.file_type().is_file()) {
                let place = InputPlace::File(entry.into_path());
                add(Input { place, layout: Arc::clone(&input.layout) }, Some(input.name()));
            }
        }
        present
    }

    fn get(&self, key: &InputKey) -> Option<&PresentInput> {
        self.by_key.get(key).map(|at| &self.files[*at].1)
    }

    /// The first files, in the order in which a run without a past reads them.
    fn order(&self, files: u64) -> FileOrder {
        let mut order = FileOrder::default();
        for (input, is_document) in self.all.iter().take(usize::try_from(files).unwrap_or(usize::MAX)) {
            let name = input.name();
            if *is_document {
                let (bytes, modified) = size_and_time(input);
                order.add_document(&name, bytes, modified);
            } else {
                order.add(&name);
            }
        }
        order
    }
}

/// Whether a later run does not find the records of an input again.
fn is_unnamed(input: &Input) -> bool {
    match &input.place {
        InputPlace::Stdin => true,
        InputPlace::File(path) => path.metadata().is_ok_and(|found| !found.is_file()),
        InputPlace::Folder(_) | InputPlace::Memory(..) => false,
        #[cfg(feature = "object-store")]
        InputPlace::Object(_) => false,
    }
}

/// What was read, by file, and where it is now: under its name, or under another one.
fn groups(spans: &[InputSpan], present: &PresentInputs) -> Vec<FileSpans> {
    let mut groups: Vec<FileSpans> = Vec::new();
    let mut latest: BTreeMap<InputKey, usize> = BTreeMap::new();
    for (number, span) in spans.iter().enumerate() {
        let key = (span.name.clone(), span.nth);
        match latest.get(&key).filter(|_| span.skipped > 0) {
            Some(&of) => {
                groups[of].spans.push(number);
                groups[of].last = span.clone();
            }
            None => {
                latest.insert(key, groups.len());
                groups.push(FileSpans {
                    spans: vec![number],
                    last: span.clone(),
                    before: span.skipped,
                    found: None,
                    compared: Likeness::Same,
                });
            }
        }
    }
    // Which present inputs are taken, each with the records before its group.
    let mut taken: BTreeMap<InputKey, u64> = BTreeMap::new();
    for (key, &of) in &latest {
        let group = &mut groups[of];
        if let Some(present) = present.get(key).filter(|_| is_named(&group.last)) {
            group.compared = compare(&present.input, &group.last);
            if group.compared.has_what_was_read() {
                taken.insert(key.clone(), group.before);
                group.found = Some(key.clone());
            }
        }
    }
    // From the last on: what follows under another name takes the file first.
    for group in groups.iter_mut().rev().filter(|group| group.is_gone() && !group.last.is_numbered) {
        let is_it = |(key, one): &&(InputKey, PresentInput)| {
            let is_free = taken.get(key).is_none_or(|before| *before > 0 && *before == group.records());
            is_free
                && group.last.bytes > 0
                && one.input.layout.ids != IdRule::File
                && compare(&one.input, &group.last).has_what_was_read()
        };
        if let Some((key, one)) = present.files.iter().find(is_it) {
            tracing::info!(was = group.last.name, is = key.0, "an input has another name");
            group.compared = compare(&one.input, &group.last);
            group.found = Some(key.clone());
            taken.insert(key.clone(), group.before);
        }
    }
    groups
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
