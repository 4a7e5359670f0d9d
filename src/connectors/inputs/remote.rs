//! Inputs in object stores and behind addresses, through the crate `object_store`.
//!
//! ```text
//! s3://bucket/feed/              all objects below, in the order of the bytes of their keys, except where a
//!                                name below that address begins with a point or `_`
//! s3://bucket/**/*.parquet       all objects that match
//! https://host/pages.warc.gz     one file
//! ```
//!
//! Credentials come from the environment variables that each store's own tools use (`AWS_ACCESS_KEY_ID`,
//! `AWS_SKIP_SIGNATURE=true` for public objects, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …).
//!
//! An object is read in ranges of [`RANGE_BYTES`], a few of them ahead. A failed request is retried. An
//! object that changes while it is read is an error, so that ranges of two versions are never combined.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, Read};
use std::iter::{once, repeat};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fmt};

use backon::{ExponentialBuilder, Retryable};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, parse_url_opts};
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use url::Url;

use super::globs;
use super::table_folder::TableFolder;
use crate::formats::{InputProgress, RandomAccess};

/// Bytes of one request.
const RANGE_BYTES: u64 = 4 << 20;

/// Concurrent requests of one reader: it reads at most 16 MiB ahead.
const AHEAD: usize = 4;

/// How many times a range is requested, with a pause that doubles each time; the store's client retries in
/// addition.
const ATTEMPTS: usize = 5;

/// The pause before the first retry.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// An object in a store.
pub(crate) struct StoredObject {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    meta: ObjectMeta,
    name: Arc<str>,
    /// Number of objects and folders that were skipped beside it and the objects after it.
    hidden: u64,
    /// Number of ranges that have been requested.
    #[cfg(test)]
    requests: std::sync::atomic::AtomicU64,
}

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
    fn ask(&self, range: Range<u64>) -> JoinHandle<object_store::Result<Vec<u8>>> {
        #[cfg(test)]
        self.requests.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (store, path, tag) =
            (Arc::clone(&self.store), self.meta.location.clone(), self.meta.e_tag.clone());
        let get = move || {
            let (store, path, tag, range) = (Arc::clone(&store), path.clone(), tag.clone(), range.clone());
            async move {
                let range = Some(range.into());
                let options = GetOptions { range, if_match: tag, ..GetOptions::default() };
                Ok(store.get_opts(&path, options).await?.bytes().await?.to_vec())
            }
        };
        let pauses = ExponentialBuilder::new().with_min_delay(FIRST_PAUSE).with_max_times(ATTEMPTS - 1);
        let is_final = |error: &object_store::Error| {
            matches!(error, object_store::Error::Precondition { .. } | object_store::Error::NotFound { .. })
        };
        self.runtime.spawn(async move {
            get.retry(pauses)
                .sleep(tokio::time::sleep)
                .when(|error| !is_final(error))
                .notify(|error, _| tracing::debug!(%error, "a range is asked for again"))
                .await
        })
    }

    /// Waits for a requested range.
    fn wait(&self, asked: JoinHandle<object_store::Result<Vec<u8>>>) -> io::Result<Vec<u8>> {
        match self.runtime.block_on(asked) {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(object_store::Error::Precondition { .. })) => {
                Err(io::Error::other(format!("\"{}\" has changed while it was read", self.name)))
            }
            Ok(Err(error)) => Err(io::Error::other(error)),
            Err(error) => Err(io::Error::other(error)),
        }
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

/// Size of the first request where a sequential read continues after what was read before. It doubles with
/// each request up to [`RANGE_BYTES`], so that a column of a row group takes a few requests and not one for
/// each of its pages.
const LEAST_BYTES: u64 = 64 << 10;

/// Parts kept in memory, enough for some columns for each reading thread. Beyond that the least recently used
/// part is dropped, and requested again if it is needed.
const HELD: usize = 24;

/// Random access to an object, with a byte count. Sequential reads are requested ahead, in parts that grow.
#[derive(Debug)]
pub(crate) struct ObjectAccess {
    object: Arc<StoredObject>,
    progress: Arc<InputProgress>,
    /// The parts in memory; the most recently used is the last.
    held: Mutex<Vec<ObjectPart>>,
}

/// A part of an object.
struct ObjectPart {
    from: u64,
    bytes: Arc<[u8]>,
}

impl fmt::Debug for ObjectPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectPart").field("from", &self.from).field("bytes", &self.bytes.len()).finish()
    }
}

impl ObjectPart {
    fn end(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    /// At most `most` bytes from `from` on, if the part has the first of them.
    fn get(&self, from: u64, most: usize) -> Option<&[u8]> {
        let at = usize::try_from(from.checked_sub(self.from)?).ok().filter(|at| *at < self.bytes.len())?;
        Some(&self.bytes[at..self.bytes.len().min(at + most)])
    }
}

impl ObjectAccess {
    /// Random access to this object.
    pub(crate) fn new(object: Arc<StoredObject>, progress: Arc<InputProgress>) -> Self {
        Self { object, progress, held: Mutex::default() }
    }

    /// Copies at least one byte from `from` on into `out`; returns the number of bytes.
    fn read_some(&self, from: u64, out: &mut [u8]) -> io::Result<usize> {
        let mut held = self.held.lock();
        if let Some(at) = held.iter().position(|part| part.get(from, 1).is_some()) {
            let part = held.remove(at);
            let found = part.get(from, out.len()).unwrap_or_default();
            let length = found.len();
            out[..length].copy_from_slice(found);
            held.push(part);
            return Ok(length);
        }
        // The read continues after a part: that part has been consumed.
        let before = held.iter().position(|part| part.end() == from).map(|at| held.remove(at));
        drop(held);
        let ahead = before.map_or(LEAST_BYTES, |part| (2 * part.bytes.len() as u64).min(RANGE_BYTES));
        let end = self.object.meta.size.min(from + ahead.max(out.len() as u64));
        let bytes = self.object.wait(self.object.ask(from..end))?;
        if bytes.len() as u64 != end - from {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let length = bytes.len().min(out.len());
        out[..length].copy_from_slice(&bytes[..length]);
        let mut parts = self.held.lock();
        if parts.len() == HELD {
            parts.remove(0);
        }
        parts.push(ObjectPart { from, bytes: bytes.into() });
        Ok(length)
    }
}

impl RandomAccess for ObjectAccess {
    fn bytes(&self) -> u64 {
        self.object.meta.size
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = from.checked_add(buffer.len() as u64).filter(|end| *end <= self.object.meta.size);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut done = 0;
        while done < buffer.len() {
            done += self.read_some(from + done as u64, &mut buffer[done..])?;
        }
        self.progress.add(done as u64);
        Ok(())
    }
}

/// Reads an object in order.
struct ObjectReader {
    object: Arc<StoredObject>,
    /// The first byte that has not been requested.
    next: u64,
    ahead: VecDeque<JoinHandle<object_store::Result<Vec<u8>>>>,
    here: Vec<u8>,
    from: usize,
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.from == self.here.len() {
            while self.ahead.len() < AHEAD && self.next < self.object.meta.size {
                let end = self.object.meta.size.min(self.next + RANGE_BYTES);
                self.ahead.push_back(self.object.ask(self.next..end));
                self.next = end;
            }
            let Some(first) = self.ahead.pop_front() else { return Ok(0) };
            self.here = self.object.wait(first)?;
            self.from = 0;
            if self.here.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
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

/// The objects that an address names.
///
/// # Errors
/// What is wrong with the address or the connection, in one line.
pub(crate) fn resolve(typed: &str) -> Result<Vec<Arc<StoredObject>>, String> {
    let missing = without_credentials(typed.split_once("://").map_or("", |(scheme, _)| scheme));
    let message = |error: &dyn fmt::Display| {
        let text = error.to_string();
        let help = help(&text).map(str::to_owned).or_else(|| missing.clone());
        let help = help.map_or_else(String::new, |help| format!("; {help}"));
        format!("cannot read \"{typed}\": {text}{help}")
    };
    let threads = Builder::new_multi_thread().worker_threads(1).thread_name("inputs").enable_all().build();
    let runtime = Arc::new(threads.map_err(|error| message(&error))?);
    let (base, is_pattern) = fixed(typed);
    let url = url_of(base).map_err(|error| message(&error))?;
    if let Some(missing) = missing.as_ref().filter(|_| !is_in_cloud()) {
        return Err(format!("cannot read \"{typed}\": {missing}"));
    }
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let plain = (url.scheme() == "http").then(|| ("allow_http".to_owned(), "true".to_owned()));
    let (store, path) =
        parse_url_opts(&url, variables.chain(plain)).map_err(|error| message(&error_chain(&error)))?;
    let store: Arc<dyn ObjectStore> = store.into();
    // The part of the address before the object's path.
    let root =
        base.trim_end_matches('/').strip_suffix(path.as_ref()).unwrap_or(&url[..url::Position::BeforePath]);
    let root = root.strip_suffix('/').unwrap_or(root).to_owned();
    let object = |meta: ObjectMeta, hidden: u64| {
        let name = format!("{root}/{}", meta.location).into();
        Arc::new(StoredObject {
            store: Arc::clone(&store),
            runtime: Arc::clone(&runtime),
            meta,
            name,
            hidden,
            #[cfg(test)]
            requests: std::sync::atomic::AtomicU64::default(),
        })
    };
    if !url.scheme().starts_with("http")
        && let Some(table) = runtime.block_on(table_above(&*store, &path))
    {
        let folder = format!("{root}/{}", table.folder());
        return Err(table.named(folder).refusal());
    }
    if !is_pattern && !base.ends_with('/') {
        match runtime.block_on(store.head(&path)) {
            Ok(meta) => return Ok(vec![object(meta, 0)]),
            Err(object_store::Error::NotFound { .. }) if !url.scheme().starts_with("http") => {}
            Err(error) => return Err(message(&error_chain(&error))),
        }
    }
    let found = runtime.block_on(listed(&*store, &path)).map_err(|error| message(&error_chain(&error)))?;
    let keys = found.iter().map(|meta| meta.location.as_ref());
    if let Some((folder, table)) = TableFolder::in_keys(keys) {
        return Err(table.named(format!("{root}/{folder}")).refusal());
    }
    let matcher = is_pattern.then(|| globs::matcher(typed)).transpose()?;
    let names_points = is_pattern && typed[base.len()..].split('/').any(|part| part.starts_with('.'));
    let below = path.as_ref().len();
    let mut hidden = BTreeSet::new();
    let mut objects: Vec<_> = found
        .into_iter()
        .filter(|meta| {
            let key = meta.location.as_ref();
            let end = hidden_part(key, below, if is_pattern { &['.'] } else { &['.', '_'] });
            match &matcher {
                Some(matcher) => matcher.is_match(format!("{root}/{key}")) && (names_points || end.is_none()),
                None => {
                    hidden.extend(end.map(|end| key[..end].to_owned()));
                    end.is_none()
                }
            }
        })
        .filter(|meta| meta.size > 0)
        .collect();
    objects.sort_unstable_by(|a, b| a.location.as_ref().cmp(b.location.as_ref()));
    let hidden = once(hidden.len() as u64).chain(repeat(0));
    let objects: Vec<_> =
        objects.into_iter().zip(hidden).map(|(meta, hidden)| object(meta, hidden)).collect();
    if objects.is_empty() { Err(format!("no object matches \"{typed}\"")) } else { Ok(objects) }
}

/// Where the first name of a key that begins with one of these characters ends, behind the first `below`
/// bytes: it is skipped, with all below it.
fn hidden_part(key: &str, below: usize, begins: &[char]) -> Option<usize> {
    let mut at = below;
    for part in key.get(below..)?.split('/') {
        if part.starts_with(begins) {
            return Some(at + part.len());
        }
        at += part.len() + 1;
    }
    None
}

/// The table that a path of a store is in. A folder that may not be listed is none.
async fn table_above(store: &dyn ObjectStore, path: &Path) -> Option<TableFolder> {
    let mut above = path.as_ref();
    loop {
        for marker in TableFolder::markers() {
            let log = if above.is_empty() { marker.to_owned() } else { format!("{above}/{marker}") };
            let log = Path::parse(log).ok()?;
            let Ok(found) = store.list_with_delimiter(Some(&log)).await else { continue };
            let found = found.objects;
            let keys = found.iter().map(|meta| meta.location.as_ref());
            if let Some((_, table)) = TableFolder::in_keys(keys) {
                return Some(table);
            }
        }
        above = match above.rsplit_once('/') {
            Some((folder, _)) => folder,
            None if above.is_empty() => return None,
            None => "",
        };
    }
}

/// Parses an address as a URL. A key of a store is taken literally: `%20` is no blank there, and `#` begins
/// no fragment.
///
/// # Errors
/// Why it is no URL.
fn url_of(address: &str) -> Result<Url, String> {
    let (scheme, rest) = address.split_once("://").unwrap_or((address, ""));
    if scheme.starts_with("http") {
        return Url::parse(address).map_err(|error| error.to_string());
    }
    let key = rest.split_once('/').map_or("", |(_, key)| key);
    if key.contains("//") {
        return Err(
            "a name in its key is empty (\"//\"), which is not read: copy the object under another key"
                .to_owned(),
        );
    }
    let encoded = rest.replace('%', "%25").replace('#', "%23").replace('?', "%3F");
    Url::parse(&format!("{scheme}://{encoded}")).map_err(|error| error.to_string())
}

/// An error with its causes, each one once.
fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        let more = next.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = next.source();
    }
    text
}

/// Advice for an error message of a store's client.
fn help(text: &str) -> Option<&'static str> {
    [
        (
            "URL scheme is not allowed",
            "its endpoint is plain http, which has to be allowed: set AWS_ALLOW_HTTP=true (AZURE_ALLOW_HTTP, \
             GOOGLE_ALLOW_HTTP)",
        ),
        (
            "contained empty path segment",
            "below it is a key with an empty name (\"//\"), which is not read: name objects or folders \
             beside it",
        ),
    ]
    .into_iter()
    .find_map(|(part, help)| text.contains(part).then_some(help))
}

/// Which credentials are missing in the environment to read a store with this URL scheme.
fn without_credentials(scheme: &str) -> Option<String> {
    const NAMES: [&str; 13] = [
        "ACCESS_KEY",
        "SKIP_SIGNATURE",
        "WEB_IDENTITY",
        "CONTAINER_",
        "SERVICE_ACCOUNT",
        "APPLICATION_CREDENTIALS",
        "ACCOUNT_KEY",
        "SAS_",
        "TOKEN",
        "CLIENT_",
        "METADATA_ENDPOINT",
        "MSI_ENDPOINT",
        "AZURE_CLI",
    ];
    let (prefix, names, skip) = match scheme {
        "s3" | "s3a" => ("AWS", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_SKIP_SIGNATURE=true"),
        "gs" => ("GOOGLE", "GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SKIP_SIGNATURE=true"),
        "az" | "adl" | "azure" | "abfs" | "abfss" => {
            ("AZURE", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY", "AZURE_SKIP_SIGNATURE=true")
        }
        _ => return None,
    };
    let is_credential = |name: &str| name.starts_with(prefix) && NAMES.iter().any(|part| name.contains(part));
    let mut variables = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let home = || env::var_os("HOME").map(std::path::PathBuf::from);
    let is_logged_in = scheme == "gs"
        && home()
            .is_some_and(|home| home.join(".config/gcloud/application_default_credentials.json").exists());
    if variables.any(|name| is_credential(&name)) || is_logged_in {
        return None;
    }
    Some(format!("there are no credentials: set {names}, or {skip} for what everybody may read"))
}

/// Whether the metadata service that gives credentials to machines in clouds can be reached. Without it, a
/// store's client would retry the request for minutes.
fn is_in_cloud() -> bool {
    let machine = std::net::SocketAddr::from(([169, 254, 169, 254], 80));
    std::net::TcpStream::connect_timeout(&machine, Duration::from_secs(1)).is_ok()
}

/// All objects below a path.
async fn listed(store: &dyn ObjectStore, path: &Path) -> object_store::Result<Vec<ObjectMeta>> {
    let mut found = Vec::new();
    let mut folders = vec![path.clone()];
    while let Some(folder) = folders.pop() {
        let here = store.list_with_delimiter(Some(&folder)).await?;
        found.extend(here.objects);
        folders.extend(here.common_prefixes);
    }
    Ok(found)
}

/// The part of an address before its first pattern, and whether it has a pattern.
fn fixed(typed: &str) -> (&str, bool) {
    let Some(at) = typed.find(['*', '?', '[', '{']) else { return (typed, false) };
    // Web addresses have no patterns.
    if typed.starts_with("http") {
        return (typed, false);
    }
    (typed[..at].rfind('/').map_or(typed, |slash| &typed[..=slash]), true)
}

#[cfg(test)]
#[path = "remote_tests.rs"]
mod tests;
