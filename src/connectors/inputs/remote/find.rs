//! The objects that an address names.

use std::collections::BTreeSet;
use std::fmt;
use std::iter::{once, repeat};
use std::sync::Arc;

use object_store::http::HttpBuilder;
use object_store::path::Path;
use object_store::{Error, GetOptions, ObjectMeta, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::runtime::{Builder, Runtime};

use super::super::globs;
use super::super::table_folder::TableFolder;
use super::advice::{help, is_in_cloud, without_credentials};
use super::object::StoredObject;
use super::web::WebAddress;
use crate::store_address::{error_chain, settings, store_at, url_of};

/// A store in which objects are found.
struct Finder {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<Runtime>,
    /// The part of an object's name before its key.
    root: String,
    web: Option<Arc<WebAddress>>,
}

impl Finder {
    /// An object of the store, beside which so many were skipped.
    fn object(&self, meta: ObjectMeta, hidden: u64) -> Arc<StoredObject> {
        let name = match &self.web {
            Some(web) if web.is_file() => web.shown().into(),
            _ => format!("{}/{}", self.root, meta.location).into(),
        };
        Arc::new(StoredObject {
            store: Arc::clone(&self.store),
            runtime: Arc::clone(&self.runtime),
            meta,
            name,
            hidden,
            web: self.web.clone(),
            #[cfg(test)]
            requests: std::sync::atomic::AtomicU64::default(),
        })
    }
}

/// The file at a web address, which is requested as it is written: the only object of a store.
pub(super) fn web_object(
    web: &Arc<WebAddress>,
    runtime: &Arc<Runtime>,
    retry: RetryConfig,
) -> object_store::Result<Arc<StoredObject>> {
    let set = |builder: HttpBuilder, (name, value): (String, String)| match name.to_ascii_lowercase().parse()
    {
        Ok(key) => builder.with_config(key, value),
        Err(_) => builder,
    };
    let builder = HttpBuilder::new().with_url(web.url().as_str()).with_retry(retry);
    let store = Arc::new(settings(web.url()).fold(builder, set).build()?);
    let meta = runtime.block_on(head(&*store, &Path::ROOT, true))?;
    let (runtime, web) = (Arc::clone(runtime), Some(Arc::clone(web)));
    Ok(Finder { store, runtime, root: String::new(), web }.object(meta, 0))
}

/// What a store knows of an object. An address that is signed for reading admits no other request, and some
/// servers know the size of a part only.
async fn head(store: &dyn ObjectStore, path: &Path, is_web: bool) -> object_store::Result<ObjectMeta> {
    match store.head(path).await {
        Err(error) if is_web && !matches!(error, Error::NotFound { .. }) => {
            let first = GetOptions { range: Some((0..1).into()), ..GetOptions::default() };
            store.get_opts(path, first).await.map(|answer| answer.meta).map_err(|_| error)
        }
        found => found,
    }
}

/// The objects that an address names.
///
/// # Errors
/// What is wrong with the address or the connection, in one line.
pub(crate) fn resolve(typed: &str) -> Result<Vec<Arc<StoredObject>>, String> {
    let missing = without_credentials(typed.split_once("://").map_or("", |(scheme, _)| scheme));
    let (base, is_pattern) = fixed(typed);
    let url = url_of(base);
    let web = url.as_ref().ok().filter(|url| url.scheme().starts_with("http"));
    let web = web.map(WebAddress::new).map(Arc::new);
    // The query of an address that is no URL may have a secret too.
    let unparsed =
        if typed.starts_with("http") { typed.split('?').next().unwrap_or_default() } else { typed };
    let shown = web.as_ref().map_or(unparsed, |web| web.shown());
    let message = |error: &dyn fmt::Display| {
        let text = error.to_string();
        let text = web.as_ref().map_or(text.clone(), |web| web.redacted(&text));
        let help = help(&text).map(str::to_owned).or_else(|| missing.clone());
        let help = help.map_or_else(String::new, |help| format!("; {help}"));
        format!("cannot read \"{shown}\": {text}{help}")
    };
    let url = url.map_err(|error| message(&error))?;
    let threads = Builder::new_multi_thread().worker_threads(1).thread_name("inputs").enable_all().build();
    let runtime = Arc::new(threads.map_err(|error| message(&error))?);
    if let Some(missing) = missing.as_ref().filter(|_| !is_in_cloud()) {
        return Err(format!("cannot read \"{shown}\": {missing}"));
    }
    if let Some(web) = web.as_ref().filter(|web| web.is_file()) {
        return match web_object(web, &runtime, RetryConfig::default()) {
            Ok(object) => Ok(vec![object]),
            Err(Error::NotFound { .. }) => Err(message(&"not found")),
            Err(error) => Err(message(&error_chain(&error))),
        };
    }
    let (connected, path) = store_at(&url).map_err(|error| message(&error_chain(&error)))?;
    let base = web.as_ref().map_or(base, |web| web.shown());
    // The part of the address before the object's path.
    let before =
        base.trim_end_matches('/').strip_suffix(path.as_ref()).unwrap_or(&url[..url::Position::BeforePath]);
    let finder = Finder {
        store: connected,
        runtime: Arc::clone(&runtime),
        root: before.strip_suffix('/').unwrap_or(before).to_owned(),
        web: web.clone(),
    };
    let (store, root) = (&*finder.store, &finder.root);
    let is_web = web.is_some();
    if !is_web && let Some(table) = runtime.block_on(table_above(store, &path)) {
        let folder = format!("{root}/{}", table.folder());
        return Err(table.named(folder).refusal());
    }
    // An empty object that has a folder's name marks the folder. A bucket is no object.
    let mut marker = None;
    if !is_pattern && !base.ends_with('/') && !path.is_root() {
        match runtime.block_on(head(store, &path, is_web)) {
            Ok(meta) if meta.size == 0 && !is_web => marker = Some(meta),
            Ok(meta) => return Ok(vec![finder.object(meta, 0)]),
            Err(Error::NotFound { .. }) if !is_web => {}
            Err(error) => return Err(message(&error_chain(&error))),
        }
    }
    let found = runtime.block_on(listed(store, &path)).map_err(|error| message(&error_chain(&error)))?;
    if found.is_empty()
        && let Some(empty) = marker
    {
        return Ok(vec![finder.object(empty, 0)]);
    }
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
        objects.into_iter().zip(hidden).map(|(meta, hidden)| finder.object(meta, hidden)).collect();
    if objects.is_empty() { Err(format!("no object matches \"{shown}\"")) } else { Ok(objects) }
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
pub(super) fn fixed(typed: &str) -> (&str, bool) {
    let Some(at) = typed.find(['*', '?', '[', '{']) else { return (typed, false) };
    // Web addresses have no patterns.
    if typed.starts_with("http") {
        return (typed, false);
    }
    (typed[..at].rfind('/').map_or(typed, |slash| &typed[..=slash]), true)
}
