//! What the members of a hot block have in common: the longest passage that the texts of its first two share.
//!
//! Texts are read again for it, so it is found once for two documents, beside the answers, and stands in the
//! next one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Semaphore;

use super::documents::{read, whereabouts};
use super::{Asked, Failure};
use dupflow_core::doc::DocId;

/// Characters of a passage that are shown, at most.
const CHARACTERS: usize = 200;

/// Two documents of a block.
type Two = (DocId, DocId);

/// What has been found.
#[derive(Debug)]
pub(super) struct Commons {
    /// None: they have nothing in common that could be found.
    known: Mutex<BTreeMap<Two, Option<String>>>,
    /// One is looked for at a time.
    room: Arc<Semaphore>,
}

impl Default for Commons {
    fn default() -> Self {
        Self { known: Mutex::default(), room: Arc::new(Semaphore::new(1)) }
    }
}

impl Commons {
    /// What is known of two documents.
    pub(super) fn of(&self, two: &Two) -> Option<String> {
        self.known.lock().get(two).cloned().flatten()
    }

    /// Forgets all but these, and lists those of which nothing is known.
    fn missing(&self, wanted: &BTreeSet<Two>) -> Vec<Two> {
        let mut known = self.known.lock();
        known.retain(|two, _| wanted.contains(two));
        wanted.iter().filter(|two| !known.contains_key(*two)).cloned().collect()
    }

    fn add(&self, two: Two, common: Option<String>) {
        self.known.lock().insert(two, common);
    }
}

impl Asked {
    /// Begins to find what these have in common, if that is not known and nothing is being looked for.
    pub(super) fn look_for_commons(self: &Arc<Self>, wanted: &BTreeSet<Two>) {
        if self.subject.texts.is_none() || self.is_live().is_err() {
            return;
        }
        let missing = self.commons.missing(wanted);
        if missing.is_empty() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.commons.room).try_acquire_owned() else { return };
        let asked = Arc::clone(self);
        tokio::spawn(async move {
            for two in missing {
                match common(&asked, &two).await {
                    Ok(common) => asked.commons.add(two, common),
                    // It is tried again with the next answer.
                    Err(failure) if failure.is_temporary() => {}
                    Err(_) => asked.commons.add(two, None),
                }
            }
            drop(permit);
        });
    }
}

/// The longest passage of two documents.
async fn common(asked: &Arc<Asked>, (a, b): &Two) -> Result<Option<String>, Failure> {
    let compare = asked.subject.compare.clone().ok_or_else(|| Failure::not_here("texts"))?;
    let (at_a, at_b) = (whereabouts(asked, a).await?, whereabouts(asked, b).await?);
    let (a, _) = read(asked, a.clone(), at_a).await?;
    let (b, _) = read(asked, b.clone(), at_b).await?;
    let compared = asked.read_slowly(move || compare(&a, &b)).await?;
    let passages = compared.a.into_iter().filter_map(|(text, passage)| passage.map(|_| text));
    let longest = passages.max_by_key(String::len);
    Ok(longest.map(|text| text.trim().chars().take(CHARACTERS).collect()))
}
