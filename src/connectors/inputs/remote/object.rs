//! An object in a store, and its bytes in order.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use object_store::{Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use super::web::WebAddress;
use crate::store_address::error_chain;

/// Bytes of one request.
pub(super) const RANGE_BYTES: u64 = 4 << 20;

/// Requests of one reader beside the range that it reads: it holds at most 16 MiB. The first range is read
/// alone, since its beginning often suffices.
const AHEAD: usize = 3;

/// How many times a range is requested of which the answer has fewer bytes than it says. All other retries
/// are those of the store's client.
const ATTEMPTS: usize = 5;

/// The pause before the first retry; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// An object in a store.
pub(crate) struct StoredObject {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) meta: ObjectMeta,
    pub(super) name: Arc<str>,
    /// Number of objects and folders that were skipped beside it and the objects after it.
    pub(super) hidden: u64,
    /// Its address, if it is no key of a store.
    pub(super) web: Option<Arc<WebAddress>>,
    /// Number of ranges that have been requested.
    #[cfg(test)]
    pub(super) requests: std::sync::atomic::AtomicU64,
}

/// Why a range is not there.
#[derive(Debug)]
pub(super) enum NoRange {
    /// The answer has another number of bytes than it says, or breaks off.
    Short(String),
    /// The object is another one now.
    Changed,
    /// The store's answer, after the retries of its client.
    Refused(Error),
}

/// A range that is being requested.
type Asked = JoinHandle<Result<Vec<u8>, NoRange>>;

impl StoredObject {
    /// Its address.
    pub(crate) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Number of objects and folders whose names begin with a point or `_`, which were skipped; the first
    /// object of an address has it.
    pub(crate) fn hidden(&self) -> u64 {
        self.hidden
    }

    /// Its size in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.meta.size
    }

    /// When it was modified: nanoseconds since 1970.
    pub(crate) fn modified(&self) -> Option<u64> {
        self.meta.last_modified.timestamp_nanos_opt().and_then(|time| u64::try_from(time).ok())
    }

    /// Its entity tag, if the store has them.
    pub(crate) fn tag(&self) -> Option<&str> {
        self.meta.e_tag.as_deref()
    }

    /// Its bytes, from the first on.
    pub(crate) fn read(self: &Arc<Self>) -> impl Read + Send + use<> {
        ObjectReader { object: Arc::clone(self), next: 0, ahead: VecDeque::new(), here: Vec::new(), from: 0 }
    }

    /// Requests a range, on a thread of the runtime.
    pub(super) fn ask(&self, range: Range<u64>) -> Asked {
        #[cfg(test)]
        self.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (store, meta) = (Arc::clone(&self.store), self.meta.clone());
        let get = move || {
            let (store, meta, range) = (Arc::clone(&store), meta.clone(), range.clone());
            async move { get(&*store, &meta, range).await }
        };
        let pauses = ExponentialBuilder::new().with_min_delay(FIRST_PAUSE).with_max_times(ATTEMPTS - 1);
        self.runtime.spawn(async move {
            get.retry(pauses)
                .sleep(tokio::time::sleep)
                .when(|error| matches!(error, NoRange::Short(_)))
                .notify(|error, _| tracing::debug!(?error, "a range is asked for again"))
                .await
        })
    }

    /// Waits for a requested range, which has all of its bytes.
    pub(super) fn wait(&self, asked: Asked) -> io::Result<Vec<u8>> {
        let error = match self.runtime.block_on(asked).map_err(io::Error::other)? {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error,
        };
        let what = match error {
            NoRange::Changed => "it has changed while it was read".to_owned(),
            NoRange::Refused(Error::NotFound { .. }) => "it was deleted while it was read".to_owned(),
            NoRange::Refused(error) => error_chain(&error),
            NoRange::Short(what) => what,
        };
        Err(io::Error::other(self.web.as_ref().map_or(what.clone(), |web| web.redacted(&what))))
    }
}

/// Whether two answers are of the same object: its size, and its entity tag, or the second in which it was
/// modified where an answer has no tag. Stores write the same tag with quotes and without.
fn is_same(listed: &ObjectMeta, now: &ObjectMeta) -> bool {
    let bare = |tag: &str| tag.trim_start_matches("W/").trim_matches('"').to_owned();
    let is_of_tag = match (&listed.e_tag, &now.e_tag) {
        (Some(listed), Some(now)) => bare(listed) == bare(now),
        _ => listed.last_modified.timestamp() == now.last_modified.timestamp(),
    };
    listed.size == now.size && is_of_tag
}

/// A range of an object, if it is still the one that was listed. A store may ignore the condition of a
/// request.
async fn get(store: &dyn ObjectStore, listed: &ObjectMeta, range: Range<u64>) -> Result<Vec<u8>, NoRange> {
    let length = range.end - range.start;
    // A weak tag meets no condition.
    let if_match = listed.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
    let options = GetOptions { range: Some(range.into()), if_match, ..GetOptions::default() };
    let answer = match store.get_opts(&listed.location, options).await {
        Ok(answer) => answer,
        Err(Error::Precondition { .. }) => return Err(NoRange::Changed),
        Err(error @ Error::NotFound { .. }) => return Err(NoRange::Refused(error)),
        // Of an object that is shorter now, a store that ignores the condition has no such range.
        Err(error) => match store.head(&listed.location).await {
            Ok(now) if !is_same(listed, &now) => return Err(NoRange::Changed),
            _ => return Err(NoRange::Refused(error)),
        },
    };
    if !is_same(listed, &answer.meta) {
        return Err(NoRange::Changed);
    }
    match answer.bytes().await {
        Ok(bytes) if bytes.len() as u64 == length => Ok(bytes.to_vec()),
        Ok(bytes) => Err(NoRange::Short(format!("a range has {} of its {length} bytes", bytes.len()))),
        // The client repeats the rest of an object that has a tag.
        Err(error) if listed.e_tag.is_some() => Err(NoRange::Refused(error)),
        Err(error) => Err(NoRange::Short(error_chain(&error))),
    }
}

impl fmt::Debug for StoredObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredObject")
            .field("name", &self.name)
            .field("bytes", &self.meta.size)
            .finish_non_exhaustive()
    }
}

impl PartialEq for StoredObject {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for StoredObject {}

/// Reads an object in order.
struct ObjectReader {
    object: Arc<StoredObject>,
    /// The first byte that has not been requested.
    next: u64,
    ahead: VecDeque<Asked>,
    here: Vec<u8>,
    from: usize,
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let most = if self.next == 0 { 1 } else { AHEAD };
        while self.ahead.len() < most && self.next < self.object.meta.size {
            let end = self.object.meta.size.min(self.next + RANGE_BYTES);
            self.ahead.push_back(self.object.ask(self.next..end));
            self.next = end;
        }
        if self.from == self.here.len() {
            let Some(first) = self.ahead.pop_front() else { return Ok(0) };
            self.here = self.object.wait(first)?;
            self.from = 0;
        }
        let part = &self.here[self.from..];
        let length = part.len().min(out.len());
        out[..length].copy_from_slice(&part[..length]);
        self.from += length;
        Ok(length)
    }
}

impl Drop for ObjectReader {
    fn drop(&mut self) {
        self.ahead.iter().for_each(JoinHandle::abort);
    }
}
