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
//! | listed, and missing, shorter or another one | gone: see [`GoneInputs`] |
//! | not listed, with the bytes of one that is missing | that one under another name, unless its name is in its ids |
//!
//! Where files are documents, or an input has no name, positions depend on all files before: if these are
//! still the same, the run goes on. Otherwise it reads everything again.

mod found;
mod past;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use found::{Compared, compare, is_named};
pub(crate) use found::{found, nanoseconds, size_and_time};

use super::folder::{holds_records, in_order, is_hidden};
use super::input::{Input, InputPlace};
use super::open::is_document;
use crate::formats::IdRule;
use crate::intake::{FileOrder, PastInputs, Resumption, SourceError};
use crate::mark::InputSpan;
use past::Past;

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
pub(crate) struct KnownInputs {
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
    /// Whether the last record has become another one since.
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

/// How the run goes on.
pub(crate) struct Continued {
    pub(crate) resumption: Resumption,
    /// `None` if the inputs are read in their order, as many records as were read are skipped.
    pub(crate) known: Option<KnownInputs>,
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

/// What was read of one input, and the present input that has it.
struct Group {
    /// The last of its spans.
    last: InputSpan,
    found: Option<InputKey>,
    compared: Compared,
}

/// Decides how a run goes on; `None` if nothing is known of what was read.
///
/// # Errors
/// If inputs are gone and the run is to be refused then, or cannot keep their documents.
pub(crate) fn resume(
    inputs: &[Input],
    past: &PastInputs,
    rule: GoneInputs,
) -> Result<Option<Continued>, SourceError> {
    let Some(Past { list, resumption, stored }) = Past::join(past) else { return Ok(None) };
    let present = Present::list(inputs);
    let groups = groups(&list.spans, &present);
    let gone: Vec<&Group> = groups.values().filter(|group| group.found.is_none()).collect();
    let keeps = rule == GoneInputs::Keep && !gone.is_empty();
    if !gone.is_empty() {
        let of_names = names(&gone);
        let by_position = list.has_documents || list.is_cut || present.is_unnamed;
        match rule {
            GoneInputs::Refuse if !past.reconcile => return Err(refused(&of_names, past, by_position)),
            GoneInputs::Keep if past.of_state.is_none() || by_position => return Err(not_kept(&of_names)),
            GoneInputs::Keep => tracing::warn!(inputs = of_names, "inputs are gone: their documents are kept"),
            GoneInputs::Refuse | GoneInputs::Delete => {
                tracing::warn!(inputs = of_names, "inputs are gone: all others are read again");
                return Ok(Some(Continued::anew()));
            }
        }
    }
    if list.has_documents || list.is_cut || present.is_unnamed {
        let order = FileOrder { files: list.files, order: list.order, has_documents: list.has_documents };
        let is_grown = groups.values().any(|group| matches!(group.compared, Compared::Grown { .. }));
        if !is_grown && present.order(order.files) == order {
            let files = FileOrder::default();
            return Ok(Some(Continued { resumption, known: None, spans: list.spans, stored, files }));
        }
        if present.is_unnamed {
            return Err(SourceError::Inputs(vec![UNNAMED.to_owned()]));
        }
        tracing::info!("the files are not those that were read: all are read again");
        return Ok(Some(Continued::anew()));
    }
    let known = known(&list.spans, &groups, &present);
    if past.reconcile && !keeps && !known.is_in_order(&present) {
        return Ok(Some(Continued::anew()));
    }
    // The records between the positions of the state and of the output are not those that were read.
    let is_lost = |one: &KnownSpan| {
        (one.input.is_none() || one.is_completed) && one.span.after() > past.begin
    };
    let resumption = if known.spans.iter().any(is_lost) { Resumption::FromState } else { resumption };
    let files = FileOrder { files: list.files, order: list.order, has_documents: false };
    Ok(Some(Continued { resumption, known: Some(known), spans: list.spans, stored, files }))
}

const UNNAMED: &str = "standard input and pipes have no name by which their records are found again, and other \
    inputs than those that were read are before or beside them: name the same ones in the same order, or start \
    over with another sink.path, and another state.path if there is one";

/// The message for inputs that are gone.
fn refused(names: &str, past: &PastInputs, by_position: bool) -> SourceError {
    let keep = match () {
        () if by_position => "",
        () if past.of_state.is_some() => "; source.gone = \"keep\" keeps what was read of them",
        () => "; source.gone = \"keep\" keeps what was read of them, with a state.path",
    };
    SourceError::Inputs(vec![format!(
        "{names}: put them back as they were{keep}; source.gone = \"delete\" deletes the documents that the \
         present inputs do not give"
    )])
}

/// The message for documents that cannot be kept.
fn not_kept(names: &str) -> SourceError {
    SourceError::Inputs(vec![format!(
        "{names}, and source.gone = \"keep\" needs a state that has their documents, and inputs of records \
         only: put them back as they were, or set source.gone = \"delete\""
    )])
}

/// The inputs that are gone, each with how.
fn names(gone: &[&Group]) -> String {
    const SHOWN: usize = 10;
    let how = |group: &&Group| {
        let InputSpan { name, bytes, .. } = &group.last;
        match group.compared {
            Compared::Shorter => format!("\"{name}\" has fewer than the {bytes} bytes that were read"),
            Compared::Other => format!("\"{name}\" has been replaced: other bytes were read"),
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
struct Present {
    /// Those of records, in their order.
    files: Vec<(InputKey, PresentInput)>,
    by_key: BTreeMap<InputKey, usize>,
    /// All, in their order, and whether each is a document.
    all: Vec<(Input, bool)>,
    /// Whether one is standard input or a pipe.
    is_unnamed: bool,
}

impl Present {
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

/// What was read, by input. Where a name was given to another file later, the first one has no group.
fn groups(spans: &[InputSpan], present: &Present) -> BTreeMap<InputKey, Group> {
    let mut groups: BTreeMap<InputKey, Group> = BTreeMap::new();
    for span in spans.iter().filter(|span| is_named(span)) {
        let group = Group { last: span.clone(), found: None, compared: Compared::Same };
        groups.insert((span.name.clone(), span.nth), group);
    }
    let mut taken = BTreeSet::new();
    for (key, group) in &mut groups {
        if let Some(present) = present.get(key) {
            group.compared = compare(&present.input, &group.last);
            if matches!(group.compared, Compared::Same | Compared::Grown { .. }) {
                taken.insert(key.clone());
                group.found = Some(key.clone());
            }
        }
    }
    let new: Vec<_> = present.files.iter().filter(|(key, _)| !taken.contains(key)).collect();
    for group in groups.values_mut().filter(|group| group.found.is_none() && !group.last.is_numbered) {
        let is_it = |(key, one): &&&(InputKey, PresentInput)| {
            one.input.layout.ids != IdRule::File
                && !taken.contains(key)
                && matches!(compare(&one.input, &group.last), Compared::Same | Compared::Grown { .. })
                && group.last.bytes > 0
        };
        if let Some((key, one)) = new.iter().find(is_it) {
            tracing::info!(was = group.last.name, is = key.0, "an input has another name");
            group.compared = compare(&one.input, &group.last);
            group.found = Some(key.clone());
            taken.insert(key.clone());
        }
    }
    groups
}

/// What was read of the present inputs, and what is left of them.
fn known(spans: &[InputSpan], groups: &BTreeMap<InputKey, Group>, present: &Present) -> KnownInputs {
    let mut known = KnownInputs::default();
    // From the last span on: what is before the first one of a later file with the same name is of another.
    let mut begun = BTreeSet::new();
    for span in spans.iter().rev() {
        let key = (span.name.clone(), span.nth);
        let group = groups.get(&key).filter(|_| !begun.contains(&key));
        if span.skipped == 0 {
            begun.insert(key);
        }
        let found = group.and_then(|group| Some((group, group.found.as_ref()?)));
        let mut is_completed = false;
        if let Some((group, key)) = found
            && (span.first, span.skipped) == (group.last.first, group.last.skipped)
        {
            let read_to_end = span.is_broken || span.is_unended;
            is_completed = match group.compared {
                Compared::Grown { ends_line } => read_to_end && !(span.is_unended && ends_line),
                _ => false,
            };
            let records = span.skipped + span.records - u64::from(is_completed);
            // Of an input that was not read to its end there may be more, whatever its size.
            let has_more = !matches!(group.compared, Compared::Same) || span.is_open;
            known.files.insert(key.clone(), KnownFile { records, has_more });
        }
        let input = found.and_then(|(_, key)| present.get(key)).cloned();
        known.spans.push(KnownSpan { span: span.clone(), input, is_completed });
    }
    known.spans.reverse();
    known
}

impl KnownInputs {
    /// Whether a run without a past would read the records in the same order.
    fn is_in_order(&self, present: &Present) -> bool {
        let mut read: Vec<String> = Vec::new();
        for one in &self.spans {
            let Some(present) = &one.input else { return false };
            if one.is_completed {
                return false;
            }
            read.push(present.input.name().to_string());
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
