//! The input of a record, by its offset: the inputs of a partition are consecutive ranges of offsets.
//!
//! In: the first offset of each input, recorded by the reader before it sends any record of that input. Out:
//! whether an event replaces a document of another input, for the dataflow. Nothing is stored for a document;
//! its position identifies its input. Where one of several processes reads for all, the beginnings of inputs
//! are sent with its batches, so that each process has all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use dupflow_core::doc::DocId;

/// The inputs in order, and an example of a document of one input that an event of another replaced.
#[derive(Debug, Default)]
pub struct Origins {
    known: RwLock<KnownInputs>,
    /// Called with the first replaced document, if it is to be logged as a warning.
    warn: Option<fn(&str)>,
    /// Whether beginnings are sent to other processes.
    are_sent: bool,
    /// The offset at which the records of a reference end; `u64::MAX` while they are read, 0 if there is
    /// none.
    reference_end: AtomicU64,
}

/// The beginning of an input, to be sent to a process that does not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputBeginning {
    /// Number of beginnings recorded before it.
    place: usize,
    offset: u64,
    name: String,
}

#[derive(Debug, Default)]
struct KnownInputs {
    /// Each input with the offset of its first record.
    begins: Vec<(u64, Arc<str>)>,
    /// All recorded beginnings, if they are sent.
    noted: Vec<(u64, Arc<str>)>,
    example: Option<String>,
}

impl KnownInputs {
    fn begin(&mut self, offset: u64, name: &Arc<str>, is_sent: bool) {
        if is_sent {
            self.noted.push((offset, Arc::clone(name)));
        }
        // An input that begins at the same offset has no records.
        while self.begins.last().is_some_and(|(begin, _)| *begin == offset) {
            self.begins.pop();
        }
        if self.begins.last().is_none_or(|(_, last)| last != name) {
            self.begins.push((offset, Arc::clone(name)));
        }
    }
}

impl Origins {
    /// No inputs.
    pub fn new(warn: Option<fn(&str)>, are_sent: bool) -> Self {
        Self { warn, are_sent, ..Self::default() }
    }

    /// The same, where the first inputs are a reference, until [`Self::end_reference`].
    #[must_use]
    pub fn with_reference(self) -> Self {
        Self { reference_end: AtomicU64::new(u64::MAX), ..self }
    }

    /// Whether the first inputs are a reference.
    pub fn have_reference(&self) -> bool {
        self.reference_end.load(Ordering::Acquire) > 0
    }

    /// Records that the reference ends before this offset. Called before any later record is sent.
    pub fn end_reference(&self, offset: u64) {
        self.reference_end.store(offset, Ordering::Release);
    }

    /// Whether the record at an offset is of the reference.
    pub fn is_of_reference(&self, offset: u64) -> bool {
        offset < self.reference_end.load(Ordering::Acquire)
    }

    /// Records that an input, or the rest of one, begins at this offset.
    pub fn begin(&self, offset: u64, name: &Arc<str>) {
        self.known.write().begin(offset, name, self.are_sent);
    }

    /// The beginnings recorded since the index `from`, which is advanced to their end; none if beginnings are
    /// not sent.
    pub fn noted(&self, from: &mut usize) -> Vec<InputBeginning> {
        if !self.are_sent {
            return Vec::new();
        }
        let known = self.known.read();
        let first = std::mem::replace(from, known.noted.len());
        let rest = (first..).zip(known.noted.iter().skip(first));
        rest.map(|(place, (offset, name))| InputBeginning { place, offset: *offset, name: name.to_string() })
            .collect()
    }

    /// Records a beginning received from another process. Each sender sends all of them in order; known ones
    /// are ignored.
    pub fn learn(&self, InputBeginning { place, offset, name }: InputBeginning) {
        let mut known = self.known.write();
        if place == known.noted.len() {
            known.begin(offset, &name.into(), true);
        }
    }

    /// Records that an event replaced a document of the same id. Returns whether they are of different
    /// inputs.
    pub fn replaced(&self, id: &DocId, before: u64, after: u64) -> bool {
        let known = self.known.read();
        let name = |offset| {
            let at = known.begins.partition_point(|(begin, _)| *begin <= offset).checked_sub(1)?;
            known.begins.get(at).map(|(_, name)| name)
        };
        let Some((old, new)) = name(before).zip(name(after)).filter(|(old, new)| old != new) else {
            return false;
        };
        if known.example.is_none() {
            let id = if self.have_reference() { id.without_side() } else { id.as_str() };
            let example = format!("{id:?} is in \"{old}\" and in \"{new}\"");
            drop(known);
            self.note(example);
        }
        true
    }

    fn note(&self, example: String) {
        let mut known = self.known.write();
        if known.example.is_some() {
            return;
        }
        if let Some(warn) = self.warn {
            warn(&example);
        }
        known.example = Some(example);
    }

    /// An example of a document that is in two inputs, with their names.
    pub fn example(&self) -> Option<String> {
        self.known.read().example.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_name_inputs() {
        let origins = Origins::new(None, false);
        let id = DocId::new("文書").unwrap();
        assert!(!origins.replaced(&id, 0, 7), "of inputs that are not known nothing is said");
        for (offset, name) in [(0, "a"), (5, "empty"), (5, "b"), (9, "a"), (12, "a")] {
            origins.begin(offset, &name.into());
        }
        assert!(!origins.replaced(&id, 0, 4) && !origins.replaced(&id, 5, 8));
        assert!(!origins.replaced(&id, 4, 20), "a file that is named again");
        assert_eq!(origins.example(), None);
        assert!(origins.replaced(&id, 4, 5) && origins.replaced(&id, 8, 9));
        assert_eq!(origins.example().unwrap(), "\"文書\" is in \"a\" and in \"b\"");
    }

    #[test]
    fn what_is_sent_is_learned_once_in_its_order() {
        let (reader, other) = (Origins::new(None, true), Origins::new(None, true));
        let id = DocId::new("a").unwrap();
        let (mut one, mut two) = (0, 0);
        reader.begin(0, &"a".into());
        reader.begin(5, &"empty".into());
        reader.noted(&mut one).into_iter().for_each(|begin| other.learn(begin));
        reader.begin(5, &"b".into());
        assert!(!other.replaced(&id, 0, 4));
        let all = reader.noted(&mut two);
        assert_eq!((all.len(), reader.noted(&mut one).len(), reader.noted(&mut two).len()), (3, 1, 0));
        // The same beginnings from two workers, one after the other.
        all.iter().chain(&all).cloned().for_each(|begin| other.learn(begin));
        assert!(other.replaced(&id, 4, 5) && !other.replaced(&id, 5, 9));
        assert_eq!(other.example().unwrap(), "\"a\" is in \"a\" and in \"b\"");
        assert!(Origins::new(None, false).noted(&mut 0).is_empty(), "one process keeps none for others");
    }
}
