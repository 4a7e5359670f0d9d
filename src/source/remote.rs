//! Inputs in object stores and behind addresses, by the crate `object_store`.
//!
//! ```text
//! s3://bucket/feed/              all objects below, in the order of their names' bytes, but those whose names begin with a point or `_`
//! s3://bucket/**/*.parquet       those that match
//! https://host/pages.warc.gz     one file
//! ```
//!
//! Who may read is taken from the environment, as the tools of each store take it (`AWS_ACCESS_KEY_ID`, `AWS_SKIP_SIGNATURE=true` for what everybody may
//! read, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …).
//!
//! An object is read in ranges of [`RANGE_BYTES`], a few of them ahead. What fails is asked for again. An object that changes while it is
//! read is an error: ranges of two versions never meet.

use std::collections::VecDeque;
use std::env;
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use object_store::path::Path;
use object_store::{GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, parse_url_opts};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;
use url::Url;

use super::formats::Stored;
use super::globs;
use super::metered::InputProgress;

/// Bytes of one request.
const RANGE_BYTES: u64 = 4 << 20;

/// Requests under way for one reader: 16 MiB are read ahead at most.
const AHEAD: usize = 4;

/// How often a range is asked for again, each time after twice the pause, besides what the store's client does by itself.
const ATTEMPTS: usize = 5;

/// The first pause.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// An object.
pub(super) struct Object {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    meta: ObjectMeta,
    name: Arc<str>,
}

impl Object {
    /// Its address.
    pub(super) fn name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    /// Its size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.meta.size
    }

    /// Its bytes from the first on.
    pub(super) fn read(self: &Arc<Self>) -> impl Read + Send + use<> {
        Reading { object: Arc::clone(self), next: 0, ahead: VecDeque::new(), here: Vec::new(), from: 0 }
    }

    /// Asks for a range, on a thread of the runtime.
    fn ask(&self, range: Range<u64>) -> JoinHandle<object_store::Result<Vec<u8>>> {
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

    /// Waits for a range.
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

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("name", &self.name)
            .field("bytes", &self.meta.size)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Object {}

/// An object that is read at any place, and counted.
#[derive(Debug)]
pub(super) struct Anywhere(pub(super) Arc<Object>, pub(super) Arc<InputProgress>);

impl Stored for Anywhere {
    fn bytes(&self) -> u64 {
        self.0.meta.size
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = from.checked_add(buffer.len() as u64).filter(|end| *end <= self.0.meta.size);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        if buffer.is_empty() {
            return Ok(());
        }
        let bytes = self.0.wait(self.0.ask(from..end))?;
        if bytes.len() != buffer.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer.copy_from_slice(&bytes);
        self.1.add(bytes.len() as u64);
        Ok(())
    }
}

/// Reads an object in order.
struct Reading {
    object: Arc<Object>,
    /// The first byte that has not been asked for.
    next: u64,
    ahead: VecDeque<JoinHandle<object_store::Result<Vec<u8>>>>,
    here: Vec<u8>,
    from: usize,
}

impl Read for Reading {
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

impl Drop for Reading {
    fn drop(&mut self) {
        self.ahead.iter().for_each(JoinHandle::abort);
    }
}

/// The objects that an address names.
///
/// # Errors
/// What is wrong with it, or with the way there, in one line.
pub(super) fn resolve(typed: &str) -> Result<Vec<Arc<Object>>, String> {
    let told = |error: &dyn fmt::Display| format!("cannot read \"{typed}\": {error}");
    let threads = Builder::new_multi_thread().worker_threads(1).thread_name("inputs").enable_all().build();
    let runtime = Arc::new(threads.map_err(|error| told(&error))?);
    let (base, is_pattern) = fixed(typed);
    let url = Url::parse(base).map_err(|error| told(&error))?;
    let variables = env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let plain = (url.scheme() == "http").then(|| ("allow_http".to_owned(), "true".to_owned()));
    let (store, path) = parse_url_opts(&url, variables.chain(plain)).map_err(|error| told(&error))?;
    let store: Arc<dyn ObjectStore> = store.into();
    // What stands before the path of an object in its address.
    let root = base.trim_end_matches('/').strip_suffix(path.as_ref()).unwrap_or(base);
    let root = root.strip_suffix('/').unwrap_or(root).to_owned();
    let object = |meta: ObjectMeta| {
        let name = format!("{root}/{}", meta.location).into();
        Arc::new(Object { store: Arc::clone(&store), runtime: Arc::clone(&runtime), meta, name })
    };
    if !is_pattern && !base.ends_with('/') {
        match runtime.block_on(store.head(&path)) {
            Ok(meta) => return Ok(vec![object(meta)]),
            Err(object_store::Error::NotFound { .. }) if !url.scheme().starts_with("http") => {}
            Err(error) => return Err(told(&error)),
        }
    }
    let found = runtime.block_on(listed(&*store, &path)).map_err(|error| told(&error))?;
    let matcher = is_pattern.then(|| globs::matcher(typed)).transpose()?;
    let is_wanted = |one: &Arc<Object>| match &matcher {
        Some(matcher) => matcher.is_match(&*one.name),
        None => !one.meta.location.filename().is_some_and(|name| name.starts_with(['.', '_'])),
    };
    let mut objects: Vec<_> = found.into_iter().map(object).filter(is_wanted).collect();
    objects.retain(|one| one.meta.size > 0);
    objects.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if objects.is_empty() { Err(format!("no object matches \"{typed}\"")) } else { Ok(objects) }
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

/// The part of an address before the first name that is a pattern, and whether there is one.
fn fixed(typed: &str) -> (&str, bool) {
    let Some(at) = typed.find(['*', '?', '[', '{']) else { return (typed, false) };
    // In an address of the web these are no patterns.
    if typed.starts_with("http") {
        return (typed, false);
    }
    (typed[..at].rfind('/').map_or(typed, |slash| &typed[..=slash]), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(typed: &str) -> Result<Vec<String>, String> {
        let objects = resolve(typed)?;
        Ok(objects
            .iter()
            .map(|object| object.name.rsplit('/').next().unwrap_or_default().to_owned())
            .collect())
    }

    #[test]
    fn folders_and_patterns_name_objects_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.x", "a.x", "_SUCCESS", ".hidden", "sub/日本.x", "a.y", "empty.x"] {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, if name == "empty.x" { "" } else { name }).unwrap();
        }
        let at = |rest: &str| names(&format!("file://{}/{rest}", folder.path().display()));
        let some = |names: &[&str]| Ok(names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>());
        assert_eq!(at(""), some(&["a.x", "a.y", "b.x", "日本.x"]));
        assert_eq!(at("*.x"), some(&["a.x", "b.x"]));
        assert_eq!(at("**/*.x"), some(&["a.x", "b.x", "日本.x"]));
        assert_eq!(at("a.y"), some(&["a.y"]));
        assert!(at("*.z").unwrap_err().starts_with("no object matches \"file://"));
        assert!(names("gopher://host/a").unwrap_err().starts_with("cannot read \"gopher://host/a\": "));
        assert_eq!(fixed("s3://b/p/**/*.x"), ("s3://b/p/", true));
        assert_eq!(fixed("https://h/a?b=c"), ("https://h/a?b=c", false));
    }

    #[test]
    fn objects_are_read_whole_ahead_and_at_any_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let bytes: Vec<u8> = (0..2 * RANGE_BYTES + 12_345).map(|n| (n * n % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let objects = resolve(&format!("file://{}", path.display())).unwrap();
        let mut read = Vec::new();
        objects[0].read().read_to_end(&mut read).unwrap();
        assert!(read == bytes);
        let progress = Arc::<InputProgress>::default();
        let anywhere = Anywhere(Arc::clone(&objects[0]), Arc::clone(&progress));
        let mut part = [0; 1000];
        anywhere.read_at(RANGE_BYTES - 500, &mut part).unwrap();
        let from = usize::try_from(RANGE_BYTES).unwrap() - 500;
        assert!(part == bytes[from..from + 1000] && progress.read() == 1000);
        assert!(anywhere.read_at(anywhere.bytes() - 999, &mut part).is_err());
        // Another one of the same size in its place.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, vec![b'x'; bytes.len()]).unwrap();
        let mut changed = Vec::new();
        let error = objects[0].read().read_to_end(&mut changed).unwrap_err().to_string();
        assert!(error.contains("has changed while it was read"), "{error}");
    }
}
