//! What is answered at which path: one table, of which the router is made, and which the description
//! (`/openapi.json`) has to agree with.

mod clusters;
mod deltas;
mod description;
mod documents;
mod failure;
mod hot;
mod pairs;
mod plain;
mod similar;
mod standing;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{self, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use self::failure::Failure;
use self::hot::Commons;
use super::access::{Access, Denied};
use super::bucket::Bucket;
use super::refusals::{Refusals, Refused};
use super::samples::Samples;
use super::subject::Subject;
use super::view::Unseen;
use super::{Limits, View};

/// What all routes read.
pub(super) struct Asked {
    pub(super) subject: Subject,
    pub(super) samples: Mutex<Samples>,
    pub(super) ending: watch::Receiver<bool>,
    access: Access,
    limits: Limits,
    /// Room for streams of deltas, for bodies, and for reads.
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    /// Among them those with many questions: half of them, so that one question finds room.
    many: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    slow_reads: Arc<Semaphore>,
    commons: Commons,
    pub(super) refusals: Refusals,
    questions: Bucket,
    logins: Bucket,
}

/// Reads at the same time, each on a thread of its own; so many quick ones, and so many that may take long.
const READS: usize = 4;

/// Attempts to log in in a second.
const LOGINS: u32 = 5;

impl Asked {
    pub(super) fn new(
        subject: Subject,
        access: Access,
        limits: Limits,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let room = |n| Arc::new(Semaphore::new(n));
        Self {
            samples: Mutex::default(),
            ending,
            access,
            streams: room(limits.streams),
            bodies: room(limits.bodies),
            many: room((limits.bodies / 2).max(1)),
            reads: room(READS),
            slow_reads: room(READS),
            commons: Commons::default(),
            refusals: Refusals::default(),
            questions: Bucket::new(limits.questions_per_second),
            logins: Bucket::new(LOGINS),
            subject,
            limits,
        }
    }

    /// The view, where there is one that keeps pairs.
    fn view(&self) -> Result<Arc<View>, Failure> {
        let view = self.subject.view.as_ref().ok_or_else(|| Failure::not_here("pairs"))?;
        view.sees().map_err(|why| Failure::unseen(&why))?;
        Ok(Arc::clone(view))
    }

    /// Whether the run is live: its view holds what its output does, and its workers all documents.
    fn is_live(&self) -> Result<(), Failure> {
        let filled = self.subject.view.as_ref().map_or(Ok(()), |view| view.is_filled());
        let answers = self.subject.queries.as_ref().is_none_or(|queries| queries.is_live());
        let is_live = filled.and(if answers { Ok(()) } else { Err(Unseen::NotFilled) });
        is_live.map_err(|why| Failure::unseen(&why))
    }

    /// Reads pairs and clusters as the end of one epoch has left them, on a thread of its own.
    async fn see<T: Send + 'static>(
        &self,
        view: Arc<View>,
        read: impl FnOnce(&View) -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let whole = view.whole().await.map_err(|why| Failure::unseen(&why))?;
        let seen = move || {
            let seen = read(&view);
            drop(whole);
            seen
        };
        self.read(seen).await
    }

    /// Does what may wait for a lock, on a thread of its own.
    async fn read<T: Send + 'static>(&self, read: impl FnOnce() -> T + Send + 'static) -> Result<T, Failure> {
        Self::read_in(&self.reads, read).await
    }

    /// Does what may take long: nothing that is quick waits for it.
    async fn read_slowly<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        Self::read_in(&self.slow_reads, read).await
    }

    async fn read_in<T: Send + 'static>(
        room: &Arc<Semaphore>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        let failed = |what: &str| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, what);
        let permit = Arc::clone(room).acquire_owned().await.map_err(|_| failed("the monitor ends"))?;
        let read = move || {
            let found = read();
            drop(permit);
            found
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| failed("what was asked for could not be read"))
    }
}

/// A path, the parameters that its query may have, and what answers there.
type Row = (&'static str, &'static [&'static str], MethodRouter<Arc<Asked>>);

/// Every path.
fn table() -> Vec<Row> {
    vec![
        ("/", &[], get(plain::page)),
        ("/health", &[], get(plain::health)),
        ("/ready", &[], get(plain::ready)),
        ("/metrics", &[], get(plain::metrics)),
        ("/login", &[], post(plain::login)),
        ("/config", &[], get(plain::config)),
        ("/openapi.json", &[], get(description::openapi)),
        ("/status", &[], get(standing::status)),
        ("/pipeline", &[], get(standing::pipeline)),
        ("/history", &[], get(standing::history)),
        ("/document", &["id"], get(documents::document_by)),
        ("/document/text", &["id"], get(documents::text_by)),
        ("/documents/{id}", &[], get(documents::document)),
        ("/documents/{id}/text", &[], get(documents::text)),
        ("/compare", &["a", "b"], get(documents::compare)),
        ("/pairs", &["document", "min", "max", "after", "limit"], get(pairs::pairs)),
        ("/clusters", &["order", "after", "limit"], get(clusters::clusters)),
        ("/cluster", &["id", "after", "limit"], get(clusters::cluster_by)),
        ("/clusters/{id}", &["after", "limit"], get(clusters::cluster)),
        ("/deltas", &["after", "tail"], get(deltas::deltas)),
        ("/similar", &[], post(similar::similar)),
    ]
}

/// Refuses a query that has a parameter which the path does not take: it would be done as if it were not
/// there.
async fn only(
    path: &'static str,
    names: &'static [&'static str],
    request: Request,
    next: Next,
) -> Result<Response, Failure> {
    let given: Result<Query<Vec<(String, String)>>, _> = Query::try_from_uri(request.uri());
    let Query(given) = given.map_err(|error| Failure::wrong(error.body_text()))?;
    // The page is opened by links that others make.
    let mut unknown = given.iter().filter(|(name, _)| path != "/" && !names.contains(&name.as_str()));
    if let Some((name, _)) = unknown.next() {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::wrong(format!("the query has a parameter {name:?}; {path} takes {known}")));
    }
    Ok(next.run(request).await)
}

pub(super) fn router(asked: Arc<Asked>) -> Router {
    table()
        .into_iter()
        .fold(Router::new(), |router, (path, names, answers)| {
            let only = from_fn(move |request, next| only(path, names, request, next));
            router.route(path, answers.layer(only))
        })
        .fallback(|| async {
            Failure::new(StatusCode::NOT_FOUND, "there is no such path; /openapi.json lists all")
        })
        .method_not_allowed_fallback(|| async {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "not by this method; /openapi.json lists all")
        })
        // Whatever reads a body bounds it, and says so as everything else is said.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&asked), admit))
        .with_state(asked)
}

/// A request whose path has the base path in front, as from a proxy that leaves it on, without that.
pub(super) fn below<B>(base_path: &str, mut request: http::Request<B>) -> http::Request<B> {
    let uri = request.uri().clone();
    let Some(rest) = uri.path().strip_prefix(base_path).filter(|_| !base_path.is_empty()) else {
        return request;
    };
    if rest.is_empty() {
        // The page's own paths are relative to a folder.
        request.extensions_mut().insert(Unslashed);
    } else if !rest.starts_with('/') {
        return request;
    }
    let query = uri.query().map_or(String::new(), |query| format!("?{query}"));
    let rest = if rest.is_empty() { "/" } else { rest };
    if let Ok(shorter) = format!("{rest}{query}").parse() {
        *request.uri_mut() = shorter;
    }
    request
}

/// The path was the base path without a slash at its end.
#[derive(Clone, Copy, Debug)]
struct Unslashed;

/// Lets those in who may ask, and says in every answer how it is to be taken.
async fn admit(State(asked): State<Arc<Asked>>, request: Request, next: Next) -> Response {
    let admitted = asked.access.check(request.method(), request.uri().path(), request.headers());
    let mut answer = match admitted {
        Ok(()) => next.run(request).await,
        Err(Denied { reason, status, why }) => {
            asked.refusals.add(reason);
            match reason {
                Refused::Token if request.uri().path() == "/" => plain::door(None),
                _ => Failure::new(status, why).into_response(),
            }
        }
    };
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let nothing = "default-src 'none'; frame-ancestors 'none'";
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(HeaderValue::from_static(nothing));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_has_the_paths_of_the_table() {
        let described = description::paths();
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let paths = table().into_iter().map(|(path, parameters, _)| (path.to_owned(), names(parameters)));
        assert_eq!(described, paths.collect());
    }
}
