//! The watch list of a run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::given::GivenList;
use super::journal::WatchJournal;
use super::notice_board::NoticeBoard;
use crate::intake::{Batch, Closed, Queue};
use dupflow_core::doc::{DocId, without_separators};
use dupflow_core::hash;
use dupflow_core::text::{Featurizer, TextRules};
use dupflow_run::watch::{
    DurableNotice, WatchBook, WatchChange, WatchEntry, WatchOrigin, WatchRefusal, WatchState,
};

/// Texts of one batch, in bytes, approximately.
const BATCH_BYTES: usize = 256 << 10;

/// The watch list of a run: posted watches and those of inputs. Texts are not held in memory.
pub struct WatchList {
    /// Serializes changes: numbers ascend in the order in which the queue gets the changes.
    changing: Mutex<Changing>,
    entries: Mutex<BTreeMap<DocId, Listed>>,
    board: Arc<NoticeBoard>,
    has_fields: bool,
    /// Whether an input has a watch that the list lacks, since the posted one of its id has ended.
    is_uncovered: AtomicBool,
}

struct Changing {
    journal: Option<WatchJournal>,
    /// Posted watches whose ids inputs give too.
    shadowed: BTreeSet<DocId>,
    /// The whole list, until the run begins.
    unsent: VecDeque<(DocId, String)>,
    /// Takes the changes, once the run has begun.
    queue: Option<Arc<Queue>>,
    /// The number of the last change.
    number: u64,
    /// Finds texts without a token.
    featurizer: Featurizer,
}

#[derive(Clone, Copy)]
struct Listed {
    origin: WatchOrigin,
    bytes: u64,
    /// Of the text: an input that is read again usually has the same.
    hash: u64,
}

/// What a run has of its list: the list itself and the inputs that are read again.
#[derive(Debug)]
pub struct WatchedRun {
    /// The list.
    pub list: Arc<WatchList>,
    /// What is read again, if anything is.
    pub again: Option<GivenList>,
}

impl WatchList {
    /// A list of the posted watches of a journal, if there is one, for texts under these rules.
    pub fn new(
        journal: Option<(WatchJournal, BTreeMap<DocId, String>)>,
        rules: &TextRules,
        board: Arc<NoticeBoard>,
    ) -> Self {
        let (journal, posted) = journal.unzip();
        let posted = posted.unwrap_or_default();
        let listed = |(id, text): (&DocId, &String)| (id.clone(), Listed::new(WatchOrigin::Posted, text));
        let entries = posted.iter().map(listed).collect();
        let changing = Changing {
            journal,
            shadowed: BTreeSet::new(),
            unsent: posted.into_iter().collect(),
            queue: None,
            number: 0,
            featurizer: Featurizer::new(rules.clone()),
        };
        let has_fields = !rules.field_names().is_empty();
        let is_uncovered = AtomicBool::new(false);
        Self { changing: Mutex::new(changing), entries: Mutex::new(entries), board, has_fields, is_uncovered }
    }

    /// The notices of the list.
    pub fn board(&self) -> &Arc<NoticeBoard> {
        &self.board
    }

    /// Checks that the file of posted watches is still this run's.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&self) -> io::Result<()> {
        self.changing.lock().journal.as_ref().map_or(Ok(()), WatchJournal::check)
    }

    /// Whether the inputs are to be read again at once: since the last call a posted watch has ended that hid
    /// one of theirs.
    pub fn take_uncovered(&self) -> bool {
        self.is_uncovered.swap(false, Ordering::SeqCst)
    }

    /// Replaces the watches of inputs by these, which are all that the inputs hold. Posted watches of the
    /// same ids stay. Returns how many watches began, changed or ended.
    ///
    /// # Errors
    /// [`Closed`] if the run has ended.
    pub fn give(&self, given: BTreeMap<DocId, String>) -> Result<usize, Closed> {
        let mut changing = self.changing.lock();
        let mut changes = Vec::new();
        let mut empty = 0_u64;
        let before = std::mem::take(&mut changing.shadowed);
        {
            let mut entries = self.entries.lock();
            let gone = entries
                .iter()
                .filter(|(id, listed)| listed.origin == WatchOrigin::Input && !given.contains_key(*id));
            let gone: Vec<DocId> = gone.map(|(id, _)| id.clone()).collect();
            for id in gone {
                entries.remove(&id);
                changes.push((id, None));
            }
            for (id, text) in given {
                let listed = Listed::new(WatchOrigin::Input, &text);
                match entries.get(&id) {
                    Some(known) if known.origin == WatchOrigin::Posted => {
                        changing.shadowed.insert(id);
                    }
                    Some(known) if known.hash == listed.hash && known.bytes == listed.bytes => {}
                    _ => {
                        empty += u64::from(changing.is_empty(&text));
                        entries.insert(id.clone(), listed);
                        changes.push((id, Some(text)));
                    }
                }
            }
        }
        if changing.shadowed != before && !changing.shadowed.is_empty() {
            let watches = changing.shadowed.len();
            tracing::warn!(watches, "watches of inputs have the ids of posted ones, which count");
        }
        if empty > 0 {
            tracing::warn!(watches = empty, "watches of inputs have no token: nothing is similar to them");
        }
        let count = changes.len();
        changing.send(changes)?;
        Ok(count)
    }

    /// Begins a run, before anything is read: puts the whole list into the first epoch of its queue, and
    /// pushes every later change. So no document is older than the list, whichever thread is faster.
    pub fn begin(&self, queue: &Arc<Queue>) {
        let mut changing = self.changing.lock();
        let unsent = std::mem::take(&mut changing.unsent);
        queue.put_first(changing.batches(unsent.into_iter().map(|(id, text)| (id, Some(text)))));
        changing.queue = Some(Arc::clone(queue));
    }
}

impl Listed {
    fn new(origin: WatchOrigin, text: &str) -> Self {
        Self { origin, bytes: text.len() as u64, hash: hash::bytes(0, text.as_bytes()) }
    }
}

impl Changing {
    fn is_empty(&mut self, text: &str) -> bool {
        self.featurizer.terms(text).ids.is_empty()
    }

    /// Sends changes to the queue; before the run begins they are kept for it.
    fn send(&mut self, changes: impl IntoIterator<Item = (DocId, Option<String>)>) -> Result<(), Closed> {
        let Some(queue) = self.queue.clone() else {
            // Before a run begins nothing ends.
            self.unsent.extend(changes.into_iter().filter_map(|(id, text)| Some((id, text?))));
            return Ok(());
        };
        self.batches(changes).into_iter().try_for_each(|batch| queue.push(batch))
    }

    /// Changes in batches, numbered in this order.
    fn batches(&mut self, changes: impl IntoIterator<Item = (DocId, Option<String>)>) -> Vec<Batch> {
        let (mut batches, mut batch, mut bytes) = (Vec::new(), Vec::new(), 0);
        for (id, text) in changes {
            self.number += 1;
            bytes += id.as_bytes().len() + text.as_ref().map_or(0, String::len);
            batch.push(WatchChange { number: self.number, id, text: text.map(Into::into) });
            if bytes >= BATCH_BYTES {
                batches.push(Batch::watched(std::mem::take(&mut batch)));
                bytes = 0;
            }
        }
        if !batch.is_empty() {
            batches.push(Batch::watched(batch));
        }
        batches
    }

    /// Stores and sends one change of a posted watch.
    fn post(&mut self, id: &DocId, text: Option<&str>) -> Result<(), WatchRefusal> {
        let not_durable = |error: io::Error| WatchRefusal::NotDurable(error.to_string());
        self.journal.as_mut().ok_or(WatchRefusal::NotKept)?.append(id, text).map_err(not_durable)?;
        self.send([(id.clone(), text.map(str::to_owned))]).map_err(|Closed| WatchRefusal::Ended)?;
        if let Some(queue) = &self.queue {
            // The epoch of the change closes although nothing may follow.
            queue.cut_if_not_by_clock();
        }
        Ok(())
    }
}

impl WatchBook for WatchList {
    fn add(&self, id: &DocId, text: &str) -> Result<bool, WatchRefusal> {
        let text = if self.has_fields { without_separators(text) } else { text.into() };
        self.add_document(id, &text)
    }

    fn add_document(&self, id: &DocId, text: &str) -> Result<bool, WatchRefusal> {
        let mut changing = self.changing.lock();
        if changing.queue.is_none() {
            return Err(WatchRefusal::Ended);
        }
        if changing.is_empty(text) {
            return Err(WatchRefusal::Empty);
        }
        let known = self.entries.lock().get(id).map(|listed| listed.origin);
        if known == Some(WatchOrigin::Input) {
            return Err(WatchRefusal::OfInput);
        }
        changing.post(id, Some(text))?;
        self.entries.lock().insert(id.clone(), Listed::new(WatchOrigin::Posted, text));
        Ok(known.is_none())
    }

    fn remove(&self, id: &DocId) -> Result<(), WatchRefusal> {
        let mut changing = self.changing.lock();
        let known = self.entries.lock().get(id).map(|listed| listed.origin);
        match known {
            None => Err(WatchRefusal::Unknown),
            Some(WatchOrigin::Input) => Err(WatchRefusal::OfInput),
            Some(WatchOrigin::Posted) => {
                changing.post(id, None)?;
                self.entries.lock().remove(id);
                if changing.shadowed.remove(id) {
                    self.is_uncovered.store(true, Ordering::SeqCst);
                    changing.queue.iter().for_each(|queue| queue.wake_readers());
                }
                Ok(())
            }
        }
    }

    fn page(&self, after: Option<&str>, most: usize) -> Vec<WatchEntry> {
        let entries = self.entries.lock();
        let after = after.and_then(DocId::new).map_or(Bound::Unbounded, Bound::Excluded);
        let entry = |(id, listed): (&DocId, &Listed)| WatchEntry {
            id: id.clone(),
            origin: listed.origin,
            bytes: listed.bytes,
        };
        entries.range((after, Bound::Unbounded)).take(most).map(entry).collect()
    }

    fn notices(&self, before: Option<u64>, most: usize) -> Vec<DurableNotice> {
        self.board.last(before, most)
    }

    fn state(&self) -> WatchState {
        let watches = self.entries.lock().len() as u64;
        WatchState { watches, notices: self.board.count(), hook: self.board.hook() }
    }
}

impl fmt::Debug for WatchList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchList").field("watches", &self.entries.lock().len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intake::{Dequeued, EpochLimits, Payload, QueueRoom};

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    fn given(list: &[(&str, &str)]) -> BTreeMap<DocId, String> {
        list.iter().map(|(name, text)| (id(name), (*text).to_owned())).collect()
    }

    /// The changes that the queue has got.
    fn taken(queue: &Queue) -> Vec<(String, Option<String>)> {
        let mut changes = Vec::new();
        while let Dequeued::Batch(_, batch) = queue.take(u64::MAX) {
            let Payload::Watched(of_batch) = batch.payload else { panic!("changes of the list only") };
            changes.extend(of_batch);
        }
        assert!(changes.is_sorted_by(|a, b| a.number < b.number));
        changes
            .into_iter()
            .map(|change| (change.id.to_string(), change.text.map(|t| t.to_string())))
            .collect()
    }

    #[test]
    fn the_list_is_that_of_its_inputs_and_what_was_posted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("watches");
        let (mut journal, _) = WatchJournal::open(&path).unwrap();
        journal.append(&id("p"), Some("posted before")).unwrap();
        drop(journal);
        let opened = WatchJournal::open(&path).unwrap();
        let list = WatchList::new(Some(opened), &TextRules::default(), Arc::default());
        assert_eq!(list.give(given(&[("a", "one"), ("b", "two"), ("p", "shadowed")])), Ok(2));
        assert_eq!(list.add(&id("x"), "early"), Err(WatchRefusal::Ended), "the run has not begun");

        let room = QueueRoom { bytes: 1 << 20, batches: 100 };
        let queue = Arc::new(Queue::new(1, 1, room, EpochLimits::default()));
        list.begin(&queue);
        let change = |id: &str, text: Option<&str>| (id.to_owned(), text.map(str::to_owned));
        let began = [("p", "posted before"), ("a", "one"), ("b", "two")];
        assert_eq!(taken(&queue), began.map(|(id, text)| change(id, Some(text))));

        let of_inputs = [("b", "two"), ("c", "three"), ("p", "shadowed")];
        assert_eq!(list.give(given(&of_inputs)), Ok(2), "a has ended, c is new");
        assert_eq!(list.add(&id("q"), "later"), Ok(true));
        assert_eq!(list.add(&id("q"), "later still"), Ok(false));
        assert_eq!(list.add(&id("c"), "other"), Err(WatchRefusal::OfInput));
        assert_eq!(list.add(&id("r"), " ?! "), Err(WatchRefusal::Empty));
        assert_eq!(list.remove(&id("q")), Ok(()));
        assert!(!list.take_uncovered(), "no input has q");
        assert_eq!(list.add(&id("q"), "later still"), Ok(true));
        assert_eq!(list.remove(&id("p")), Ok(()));
        assert_eq!(list.remove(&id("p")), Err(WatchRefusal::Unknown));
        assert!(list.take_uncovered() && !list.take_uncovered(), "the input's p begins now");
        assert_eq!(list.give(given(&of_inputs)), Ok(1));
        assert_eq!(list.give(given(&of_inputs[..2])), Ok(1), "and ends with its record");
        assert_eq!(list.remove(&id("b")), Err(WatchRefusal::OfInput));
        let expected = [
            change("a", None),
            change("c", Some("three")),
            change("q", Some("later")),
            change("q", Some("later still")),
            change("q", None),
            change("q", Some("later still")),
            change("p", None),
            change("p", Some("shadowed")),
            change("p", None),
        ];
        assert_eq!(taken(&queue), expected);
        let ids =
            |after| list.page(after, 2).into_iter().map(|entry| entry.id.to_string()).collect::<Vec<_>>();
        assert_eq!((ids(None), ids(Some("c"))), (vec!["b".into(), "c".into()], vec!["q".to_owned()]));
        assert_eq!(list.state().watches, 3);

        queue.stop();
        assert_eq!(list.add(&id("z"), "too late"), Err(WatchRefusal::Ended));
        drop(list);
        let (_, posted) = WatchJournal::open(&path).unwrap();
        assert_eq!(
            posted.keys().map(DocId::as_str).collect::<Vec<_>>(),
            ["q", "z"],
            "the last is durable too"
        );
    }
}
