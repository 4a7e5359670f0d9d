//! The passage that the documents of a hot block have in common: the longest one that two of them share.
//!
//! Finding it reads texts again. So it is computed once for each two documents, in the background, and
//! included in later answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::documents::{position_of, read};
use super::{ErrorAnswer, RouteState};
use dupflow_core::doc::DocId;

/// Maximum length of a passage in characters.
const CHARACTERS: usize = 200;

/// Two documents of a block.
type DocIdPair = (DocId, DocId);

/// The passages found so far.
#[derive(Debug)]
pub(super) struct CommonPassages {
    /// `None`: no common passage could be found.
    known: Mutex<BTreeMap<DocIdPair, Option<String>>>,
    /// One passage is searched at a time.
    room: Arc<Semaphore>,
}

impl Default for CommonPassages {
    fn default() -> Self {
        Self { known: Mutex::default(), room: Arc::new(Semaphore::new(1)) }
    }
}

impl CommonPassages {
    /// The passage of two documents, if it is known.
    pub(super) fn get(&self, two: &DocIdPair) -> Option<String> {
        self.known.lock().get(two).cloned().flatten()
    }

    /// Removes all entries except the wanted ones, and lists those that are missing.
    fn missing(&self, wanted: &BTreeSet<DocIdPair>) -> Vec<DocIdPair> {
        let mut known = self.known.lock();
        known.retain(|two, _| wanted.contains(two));
        wanted.iter().filter(|two| !known.contains_key(*two)).cloned().collect()
    }

    fn add(&self, two: DocIdPair, common: Option<String>) {
        self.known.lock().insert(two, common);
    }
}

impl RouteState {
    /// Starts to search the missing passages, unless a search is running.
    pub(super) fn search_passages(self: &Arc<Self>, wanted: &BTreeSet<DocIdPair>) {
        if self.subject.texts.is_none() || self.is_live().is_err() {
            return;
        }
        let missing = self.passages.missing(wanted);
        if missing.is_empty() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.passages.room).try_acquire_owned() else { return };
        let state = Arc::clone(self);
        tokio::spawn(async move {
            for two in missing {
                match common(&state, &two).await {
                    Ok(common) => state.passages.add(two, common),
                    // The next answer tries it again.
                    Err(failure) if failure.is_temporary() => {}
                    Err(_) => state.passages.add(two, None),
                }
            }
            drop(permit);
        });
    }
}

/// The longest passage that two documents share.
async fn common(state: &Arc<RouteState>, (a, b): &DocIdPair) -> Result<Option<String>, ErrorAnswer> {
    let compare = state.subject.compare.clone().ok_or_else(|| ErrorAnswer::not_here("texts"))?;
    let (at_a, at_b) = (position_of(state, a).await?, position_of(state, b).await?);
    let a = read(state, a.clone(), at_a).await?.text;
    let b = read(state, b.clone(), at_b).await?.text;
    let compared = state.read_slowly(move || compare(&a, &b)).await?;
    let passages = compared.a.into_iter().filter_map(|(text, passage)| passage.map(|_| text));
    let longest = passages.max_by_key(String::len);
    Ok(longest.map(|text| text.trim().chars().take(CHARACTERS).collect()))
}
