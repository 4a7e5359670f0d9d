//! The documents of one sketch, and how a change of them in an epoch changes the pairs of copies.
//!
//! A group of more than `limit` copies is a star: its pairs are those with its smallest member, which also
//! represents the whole group in pairs with other sketches. The form is a function of the group's present
//! members, so crossing the limit in either direction retracts one form and emits the other.

use crate::dataflow::sketches::small_map::SmallMap;
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;
use dupflow_core::time::Epoch;

/// The documents of one sketch.
#[derive(Debug)]
pub(in crate::dataflow) enum SketchMembers {
    /// No members since this epoch.
    Empty(Epoch),
    One(DocId),
    /// Two or more. Boxed, since groups are few and every sketch has an entry.
    Many(Box<SmallMap<DocId, ()>>),
}

impl SketchMembers {
    pub(in crate::dataflow) fn len(&self) -> usize {
        match self {
            Self::Empty(_) => 0,
            Self::One(_) => 1,
            Self::Many(documents) => documents.len(),
        }
    }

    /// The smallest member.
    pub(in crate::dataflow) fn first(&self) -> Option<&DocId> {
        self.iter().next()
    }

    /// All members, in ascending order.
    pub(in crate::dataflow) fn iter(&self) -> impl Iterator<Item = &DocId> {
        let (one, many) = match self {
            Self::Empty(_) => (None, None),
            Self::One(document) => (Some(document), None),
            Self::Many(documents) => (None, Some(documents.iter().map(|(document, ())| document))),
        };
        one.into_iter().chain(many.into_iter().flatten())
    }

    /// Whether a document is a member.
    pub(in crate::dataflow) fn contains(&self, document: &DocId) -> bool {
        match self {
            Self::Empty(_) => false,
            Self::One(only) => only == document,
            Self::Many(documents) => documents.get(document).is_some(),
        }
    }

    /// Adds a document that is not a member.
    fn insert(&mut self, document: DocId) {
        match self {
            Self::Empty(_) => *self = Self::One(document),
            Self::One(other) => {
                let mut documents = Box::<SmallMap<DocId, ()>>::default();
                documents.insert(other.clone(), ());
                documents.insert(document, ());
                *self = Self::Many(documents);
            }
            Self::Many(documents) => drop(documents.insert(document, ())),
        }
    }

    /// Removes a member, in this epoch.
    ///
    /// # Panics
    /// If the document is not a member: a broken promise upstream.
    fn remove(&mut self, document: &DocId, epoch: Epoch) {
        let removed = match self {
            Self::Empty(_) => false,
            Self::One(only) => only == document,
            Self::Many(documents) => documents.remove(document).is_some(),
        };
        assert!(removed, "{document:?} leaves a sketch that it is not a member of");
        match self {
            Self::Many(documents) if documents.len() > 1 => {}
            Self::Many(_) => {
                if let Some(last) = self.first().cloned() {
                    *self = Self::One(last);
                }
            }
            Self::One(_) | Self::Empty(_) => *self = Self::Empty(epoch),
        }
    }

    /// The members that represent the sketch in pairs with other sketches: all of them if there are at most
    /// `limit`, else the smallest.
    pub(in crate::dataflow) fn visible(&self, limit: usize) -> impl Iterator<Item = &DocId> {
        self.iter().take(if self.len() <= limit { usize::MAX } else { 1 })
    }

    /// The pairs of copies: all pairs if there are at most `limit` members, else those with the smallest.
    fn copies(&self, limit: usize, mut emit: impl FnMut(Pair<DocId>)) {
        for (i, a) in self.visible(limit).enumerate() {
            for b in self.iter().skip(i + 1) {
                emit(pair_of(a, b));
            }
        }
    }

    /// The pairs between `document`, which is not a member, and all members.
    fn copies_with(&self, document: &DocId, mut emit: impl FnMut(Pair<DocId>)) {
        for other in self.iter() {
            emit(pair_of(other, document));
        }
    }

    /// Applies the documents that leave and join in an epoch; no document does both. Emits the changes of
    /// [visible](Self::visible) members and, if `pair` is given, of pairs of copies.
    ///
    /// # Panics
    /// If a document leaves that is not a member, or joins that is one: a broken promise upstream.
    pub(in crate::dataflow) fn change<'d>(
        &mut self,
        leave: impl ExactSizeIterator<Item = &'d DocId> + Clone,
        join: impl ExactSizeIterator<Item = &'d DocId> + Clone,
        epoch: Epoch,
        limit: usize,
        mut member: impl FnMut(&DocId, i8),
        mut pair: Option<impl FnMut(Pair<DocId>, isize)>,
    ) {
        let before = self.len();
        let after = before + join.len() - leave.len();
        if before.max(after) <= limit {
            for document in leave {
                self.remove(document, epoch);
                member(document, -1);
                // Where copies are no pairs, a large group is not read for each of them.
                if let Some(pair) = &mut pair {
                    self.copies_with(document, |p| pair(p, -1));
                }
            }
            for document in join {
                if let Some(pair) = &mut pair {
                    self.copies_with(document, |p| pair(p, 1));
                }
                member(document, 1);
                self.insert(document.clone());
            }
            return;
        }
        let mut pair = |copies: Pair<DocId>, diff| {
            if let Some(pair) = &mut pair {
                pair(copies, diff);
            }
        };
        let before_first = self.first().cloned();
        let stays = |first: &DocId| {
            before.min(after) > limit && leave.clone().all(|d| d != first) && join.clone().all(|d| d > first)
        };
        match before_first.filter(stays) {
            // A star before and after, with the same centre: only the edges of the changed members change.
            Some(centre) => {
                for document in leave {
                    self.remove(document, epoch);
                    pair(pair_of(&centre, document), -1);
                }
                for document in join {
                    pair(pair_of(&centre, document), 1);
                    self.insert(document.clone());
                }
            }
            None => {
                self.visible(limit).for_each(|d| member(d, -1));
                self.copies(limit, |p| pair(p, -1));
                leave.for_each(|d| self.remove(d, epoch));
                join.for_each(|d| self.insert(d.clone()));
                self.visible(limit).for_each(|d| member(d, 1));
                self.copies(limit, |p| pair(p, 1));
            }
        }
    }
}

/// Two documents as a pair.
///
/// # Panics
/// If they are equal: a document is a member of a sketch at most once.
fn pair_of(a: &DocId, b: &DocId) -> Pair<DocId> {
    Pair::new(a.clone(), b.clone()).expect("two different documents")
}

#[cfg(test)]
#[path = "members_tests.rs"]
mod tests;
