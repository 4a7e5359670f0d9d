//! Which input a record is of, by its offset: the inputs of one partition follow each other.
//!
//! Noted by the reader before it hands over any record of an input; asked by the dataflow, which finds out
//! whether the document that an event replaces is of another input. Per document nothing is kept: a
//! position says it. Where one of several processes reads for all, the beginnings of inputs travel with its
//! batches: each process then holds the same ones.

use std::sync::Arc;

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::doc::DocId;

/// The inputs, in order, and the first document that one of them has replaced of another.
#[derive(Debug, Default)]
pub struct Origins {
    known: RwLock<Known>,
    /// Whether the first document that is replaced is a warning.
    warns: bool,
    /// Whether other processes have to be sent them.
    are_sent: bool,
}

/// The beginning of an input, on its way to a process that does not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Beginning {
    /// How many were noted before it.
    place: usize,
    offset: u64,
    name: String,
}

#[derive(Debug, Default)]
struct Known {
    /// Each input with the offset of its first record.
    begins: Vec<(u64, Arc<str>)>,
    /// All that were noted, as they were, if they are sent.
    noted: Vec<(u64, Arc<str>)>,
    example: Option<String>,
}

impl Known {
    fn begin(&mut self, offset: u64, name: &Arc<str>, is_sent: bool) {
        if is_sent {
            self.noted.push((offset, Arc::clone(name)));
        }
        // One without a record holds none.
        while self.begins.last().is_some_and(|(begin, _)| *begin == offset) {
            self.begins.pop();
        }
        if self.begins.last().is_none_or(|(_, last)| last != name) {
            self.begins.push((offset, Arc::clone(name)));
        }
    }
}

impl Origins {
    /// None yet.
    pub fn new(warns: bool, are_sent: bool) -> Self {
        Self { warns, are_sent, ..Self::default() }
    }

    /// The next input, or the rest of one, begins with the record of this offset.
    pub fn begin(&self, offset: u64, name: &Arc<str>) {
        self.known.write().begin(offset, name, self.are_sent);
    }

    /// The beginnings that were noted from a place on, which is moved to their end; none where no other
    /// process needs them.
    pub fn noted(&self, from: &mut usize) -> Vec<Beginning> {
        if !self.are_sent {
            return Vec::new();
        }
        let known = self.known.read();
        let first = std::mem::replace(from, known.noted.len());
        let rest = (first..).zip(known.noted.iter().skip(first));
        rest.map(|(place, (offset, name))| Beginning { place, offset: *offset, name: name.to_string() })
            .collect()
    }

    /// Notes what another process has noted. Each sender sends all of them in order; one that is known is
    /// passed over.
    pub fn learn(&self, Beginning { place, offset, name }: Beginning) {
        let mut known = self.known.write();
        if place == known.noted.len() {
            known.begin(offset, &name.into(), true);
        }
    }

    /// Takes the replacement of a document by an event of the same id, if they are of different inputs;
    /// whether they are.
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
            let example = format!("{:?} is in \"{old}\" and in \"{new}\"", id.as_str());
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
        if self.warns {
            tracing::warn!(
                "one id in several files: {example}; the later document replaces the earlier one, and further ones are only counted (--ids file \
                 names documents by their files, --ids last says that this is meant)"
            );
        }
        known.example = Some(example);
    }

    /// A document that one input has replaced of another, and which they are.
    pub fn example(&self) -> Option<String> {
        self.known.read().example.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_name_inputs() {
        let origins = Origins::new(false, false);
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
        let (reader, other) = (Origins::new(false, true), Origins::new(false, true));
        let id = DocId::new("a").unwrap();
        let (mut one, mut two) = (0, 0);
        reader.begin(0, &"a".into());
        reader.begin(5, &"empty".into());
        reader.noted(&mut one).into_iter().for_each(|begin| other.learn(begin));
        reader.begin(5, &"b".into());
        assert!(!other.replaced(&id, 0, 4));
        let all = reader.noted(&mut two);
        assert_eq!((all.len(), reader.noted(&mut one).len(), reader.noted(&mut two).len()), (3, 1, 0));
        // From two workers, one after the other.
        all.iter().chain(&all).cloned().for_each(|begin| other.learn(begin));
        assert!(other.replaced(&id, 4, 5) && !other.replaced(&id, 5, 9));
        assert_eq!(other.example().unwrap(), "\"a\" is in \"a\" and in \"b\"");
        assert!(Origins::new(true, false).noted(&mut 0).is_empty(), "one process keeps none for others");
    }
}
