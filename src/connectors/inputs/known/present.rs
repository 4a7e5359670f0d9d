//! The present inputs, and which of them have what was read: under the same name, or under another one.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::super::folder::{holds_records, in_order, is_hidden};
use super::super::input::{Input, InputPlace};
use super::super::open::is_document;
use super::found::{Likeness, compare, end_of, file_number, is_named, size_and_time};
use crate::formats::IdRule;
use crate::intake::FileOrder;
use crate::mark::InputSpan;

/// The name of an input, and the number of earlier ones with that name.
pub(crate) type InputKey = (String, u64);

/// A present input of records.
#[derive(Clone, Debug)]
pub(crate) struct PresentInput {
    pub(crate) input: Input,
    /// The folder that it is in, if that is what was named.
    pub(crate) folder: Option<Arc<str>>,
}

/// What was read of one file, and the present input that has it. Where its name was given to another file
/// later, that one has a group of its own.
pub(super) struct FileSpans {
    /// The numbers of its spans.
    pub(super) spans: Vec<usize>,
    /// The last of them.
    pub(super) last: InputSpan,
    /// Records of the file before the first span: they have another group, of an earlier name.
    pub(super) before: u64,
    pub(super) found: Option<InputKey>,
    pub(super) compared: Likeness,
}

impl FileSpans {
    /// The number of its records that were read.
    pub(super) fn records(&self) -> u64 {
        self.last.skipped + self.last.records
    }

    /// Whether only a part of its first record was read, so that all of it is read again.
    fn has_no_whole_record(&self) -> bool {
        (self.last.is_broken || self.last.is_unended) && self.records() == 1
    }

    /// Whether the file is there, and is no input any more. A run that reconciles takes that as meant.
    pub(super) fn is_left_out(&self) -> bool {
        matches!(self.compared, Likeness::Same) && Path::new(&self.last.name).is_file()
    }

    /// Whether there is another file of its name.
    pub(super) fn is_replaced(&self) -> bool {
        matches!(self.compared, Likeness::Shorter | Likeness::Other)
    }

    /// Whether it is known where its records were, and they are not there.
    pub(super) fn is_gone(&self) -> bool {
        self.found.is_none() && is_named(&self.last)
    }
}

/// The present inputs.
pub(super) struct PresentInputs {
    /// Those of records, in their order.
    pub(super) files: Vec<(InputKey, PresentInput)>,
    by_key: BTreeMap<InputKey, usize>,
    /// All, in their order, and whether each is a document.
    pub(super) all: Vec<(Input, bool)>,
    /// Whether one is standard input or a pipe.
    pub(super) is_unnamed: bool,
}

impl PresentInputs {
    pub(super) fn list(inputs: &[Input]) -> Self {
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
                add(Input { place, layout: Arc::clone(&input.layout), part: None }, Some(input.name()));
            }
        }
        present
    }

    pub(super) fn get(&self, key: &InputKey) -> Option<&PresentInput> {
        self.by_key.get(key).map(|at| &self.files[*at].1)
    }

    /// The first files, in the order in which a run without a past reads them.
    pub(super) fn order(&self, files: u64) -> FileOrder {
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
pub(crate) fn is_unnamed(input: &Input) -> bool {
    match &input.place {
        InputPlace::Stdin => true,
        InputPlace::File(path) => path.metadata().is_ok_and(|found| !found.is_file()),
        InputPlace::Folder(_) | InputPlace::Memory(..) => false,
        #[cfg(feature = "object-store")]
        InputPlace::Object(_) => false,
    }
}

/// What was read, by file, and where it is now: under its name, or under another one.
pub(super) fn groups(spans: &[InputSpan], present: &PresentInputs) -> Vec<FileSpans> {
    let mut groups: Vec<FileSpans> = Vec::new();
    let mut latest: BTreeMap<InputKey, usize> = BTreeMap::new();
    for (number, span) in spans.iter().enumerate() {
        let key = (span.name.clone(), span.nth);
        match latest.get(&key).filter(|of| span.skipped > 0 || groups[**of].has_no_whole_record()) {
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
    let mut index = ContentIndex::new(present);
    // From the last on: what follows under another name takes the file first.
    for group in groups.iter_mut().rev().filter(|group| group.is_gone() && !group.last.is_numbered) {
        for at in index.like(&group.last) {
            let (key, one) = &present.files[at];
            let is_free = taken.get(key).is_none_or(|before| *before > 0 && *before == group.records());
            let compared = compare(&one.input, &group.last);
            if is_free && one.input.layout.ids != IdRule::File && compared.has_what_was_read() {
                tracing::info!(was = group.last.name, is = key.0, "an input has another name");
                group.compared = compared;
                group.found = Some(key.clone());
                taken.insert(key.clone(), group.before);
                break;
            }
        }
    }
    groups
}

/// The present inputs by their content. Each is looked at once, however many inputs are gone.
struct ContentIndex<'p> {
    present: &'p PresentInputs,
    /// By size; filled by the first search.
    sizes: Option<BTreeMap<u64, Vec<usize>>>,
    /// By device and number: a file that has another name and has grown.
    numbers: HashMap<(u64, u64), usize>,
    /// By the hash of the last bytes, for each size and number of bytes that was asked for.
    ends: HashMap<(u64, u64), HashMap<u64, Vec<usize>>>,
}

impl<'p> ContentIndex<'p> {
    fn new(present: &'p PresentInputs) -> Self {
        Self { present, sizes: None, numbers: HashMap::new(), ends: HashMap::new() }
    }

    /// The inputs that may have what was read, in their order.
    fn like(&mut self, read: &InputSpan) -> Vec<usize> {
        if read.bytes == 0 {
            return Vec::new();
        }
        let files = &self.present.files;
        let sizes = self.sizes.get_or_insert_with(|| {
            let mut sizes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for (at, (_, one)) in files.iter().enumerate() {
                sizes.entry(size_and_time(&one.input).0).or_default().push(at);
                self.numbers.extend(file_number(&one.input).map(|number| (number, at)));
            }
            sizes
        });
        let of_size = sizes.get(&read.bytes).map(Vec::as_slice).unwrap_or_default();
        let Some((hashed, end)) = read.end else { return of_size.to_vec() };
        let of_ends = self.ends.entry((read.bytes, hashed)).or_insert_with(|| {
            let mut ends: HashMap<u64, Vec<usize>> = HashMap::new();
            for at in of_size {
                if let Some(found) = end_of(&files[*at].1.input, read.bytes, hashed) {
                    ends.entry(found).or_default().push(*at);
                }
            }
            ends
        });
        let mut like = of_ends.get(&end).cloned().unwrap_or_default();
        like.extend(read.file.and_then(|number| self.numbers.get(&number)));
        like
    }
}
