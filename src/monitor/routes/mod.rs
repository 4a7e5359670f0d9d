//! What is answered at which path: one table, of which the router is made, and which the description (`/openapi.json`) has to agree with.

mod clusters;
mod deltas;
mod description;
mod documents;
mod failure;
mod pairs;
mod plain;
mod similar;
mod standing;

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use tokio::sync::{Semaphore, watch};
use tower_http::limit::RequestBodyLimitLayer;

use self::failure::Failure;
use super::access::Access;
use super::bucket::Bucket;
use super::samples::Samples;
use super::subject::Subject;
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
    reads: Arc<Semaphore>,
    slow_reads: Arc<Semaphore>,
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
            reads: room(READS),
            slow_reads: room(READS),
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

/// Every path with what answers there.
fn table() -> Vec<(&'static str, MethodRouter<Arc<Asked>>)> {
    vec![
        ("/", get(plain::page)),
        ("/health", get(plain::health)),
        ("/ready", get(plain::ready)),
        ("/metrics", get(plain::metrics)),
        ("/login", post(plain::login)),
        ("/config", get(plain::config)),
        ("/openapi.json", get(description::openapi)),
        ("/status", get(standing::status)),
        ("/pipeline", get(standing::pipeline)),
        ("/history", get(standing::history)),
        ("/documents/{id}", get(documents::document)),
        ("/documents/{id}/text", get(documents::text)),
        ("/compare", get(documents::compare)),
        ("/pairs", get(pairs::pairs)),
        ("/clusters", get(clusters::clusters)),
        ("/clusters/{id}", get(clusters::cluster)),
        ("/deltas", get(deltas::deltas)),
        ("/similar", post(similar::similar)),
    ]
}

pub(super) fn router(asked: Arc<Asked>) -> Router {
    let body_bytes = asked.limits.body_bytes;
    table()
        .into_iter()
        .fold(Router::new(), |router, (path, answers)| router.route(path, answers))
        .fallback(|| async {
            Failure::new(StatusCode::NOT_FOUND, "there is no such path; /openapi.json lists all")
        })
        .method_not_allowed_fallback(|| async {
            Failure::new(StatusCode::METHOD_NOT_ALLOWED, "not by this method; /openapi.json lists all")
        })
        // Another limit of the library, below this one.
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(body_bytes))
        .layer(from_fn_with_state(Arc::clone(&asked), admit))
        .with_state(asked)
}

/// Lets those in who may ask, and says in every answer how it is to be taken.
async fn admit(State(asked): State<Arc<Asked>>, request: Request, next: Next) -> Response {
    let admitted = asked.access.check(request.method(), request.uri().path(), request.headers());
    let mut answer = match admitted {
        Ok(()) => next.run(request).await,
        Err(refused) if refused.status == StatusCode::UNAUTHORIZED && request.uri().path() == "/" => {
            plain::door(None)
        }
        Err(refused) => Failure::new(refused.status, refused.why).into_response(),
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
        let mut paths: Vec<String> = table().iter().map(|(path, _)| (*path).to_owned()).collect();
        paths.sort_unstable();
        assert_eq!(described, paths);
    }
}
