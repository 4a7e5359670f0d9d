//! Which input a record is of, by its offset: the inputs of one partition follow each other.
//!
//! Noted by the reader before it hands over any record of an input; asked by the dataflow, which finds out
//! whether the document that an event replaces is of another input. Per document nothing is kept: a
//! position says it.

use std::sync::Arc;

use parking_lot::RwLock;

use crate::doc::DocId;

/// The inputs, in order, and the first document that one of them has replaced of another.
#[derive(Debug, Default)]
pub struct Origins {
    known: RwLock<Known>,
    /// Whether the first document that is replaced is a warning.
    warns: bool,
}

#[derive(Debug, Default)]
struct Known {
    /// Each input with the offset of its first record.
    begins: Vec<(u64, Arc<str>)>,
    example: Option<String>,
}

impl Origins {
    /// None yet.
    pub fn new(warns: bool) -> Self {
        Self { warns, ..Self::default() }
    }

    /// The next input, or the rest of one, begins with the record of this offset.
    pub fn begin(&self, offset: u64, name: &Arc<str>) {
        let mut known = self.known.write();
        // One without a record holds none.
        while known.begins.last().is_some_and(|(begin, _)| *begin == offset) {
            known.begins.pop();
        }
        if known.begins.last().is_none_or(|(_, last)| last != name) {
            known.begins.push((offset, Arc::clone(name)));
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
        let origins = Origins::new(false);
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
}
