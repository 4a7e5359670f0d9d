//! The routes: one table of paths, from which the router is made. A test compares it with `/openapi.json`.

mod clusters;
mod compare;
mod deltas;
mod description;
mod documents;
mod export;
mod failure;
mod hot;
mod pairs;
mod plain;
mod posted;
mod similar;
mod status;
mod views;
mod watches;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, Request, State};
use axum::http::{self, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch};

use self::failure::ErrorAnswer;
use self::hot::CommonPassages;
use super::guard::access::{Access, Denied};
use super::guard::proxies::{RequestClient, TrustedProxies};
use super::guard::rate_limit::RateLimit;
use super::guard::refusals::{RefusalCounts, RefusalReason};
use super::metrics::samples::SampleHistory;
use super::subject::MonitoredRun;
use super::view::ViewUnavailable;
use super::{MonitorLimits, View};

/// The state that all routes share.
pub(super) struct RouteState {
    pub(super) subject: MonitoredRun,
    pub(super) samples: Mutex<SampleHistory>,
    pub(super) ending: watch::Receiver<bool>,
    access: Access,
    proxies: TrustedProxies,
    /// Requests with headers that only a trusted proxy may set.
    pub(super) untrusted: AtomicU64,
    limits: MonitorLimits,
    /// Permits for streams of deltas, for bodies, and for reads.
    streams: Arc<Semaphore>,
    bodies: Arc<Semaphore>,
    /// Permits for bodies with many queries: half of `bodies`, so that single queries are still answered.
    many: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    slow_reads: Arc<Semaphore>,
    passages: CommonPassages,
    pub(super) refusals: RefusalCounts,
    questions: RateLimit,
    logins: RateLimit,
}

/// Threads for quick reads, and for slow reads.
const READS: usize = 4;

/// Login attempts per second.
const LOGINS: u32 = 5;

impl RouteState {
    pub(super) fn new(
        subject: MonitoredRun,
        access: Access,
        proxies: TrustedProxies,
        limits: MonitorLimits,
        ending: watch::Receiver<bool>,
    ) -> Self {
        let room = |n| Arc::new(Semaphore::new(n));
        Self {
            samples: Mutex::default(),
            ending,
            access,
            proxies,
            untrusted: AtomicU64::new(0),
            streams: room(limits.streams),
            bodies: room(limits.bodies),
            many: room((limits.bodies / 2).max(1)),
            reads: room(READS),
            slow_reads: room(READS),
            passages: CommonPassages::default(),
            refusals: RefusalCounts::default(),
            questions: RateLimit::new(limits.questions_per_second),
            logins: RateLimit::new(LOGINS),
            subject,
            limits,
        }
    }

    /// The view, if it keeps pairs and is filled.
    fn view(&self) -> Result<Arc<View>, ErrorAnswer> {
        let view = self.subject.view.as_ref().ok_or_else(|| ErrorAnswer::not_here("pairs"))?;
        view.check_pairs().map_err(|why| ErrorAnswer::unseen(&why))?;
        Ok(Arc::clone(view))
    }

    /// Whether the run is live: its view holds what the output holds, and its workers hold all documents.
    fn is_live(&self) -> Result<(), ErrorAnswer> {
        let filled = self.subject.view.as_ref().map_or(Ok(()), |view| view.check_filled());
        let answers = self.subject.queries.as_ref().is_none_or(|queries| queries.is_live());
        let is_live = filled.and(if answers { Ok(()) } else { Err(ViewUnavailable::NotFilled) });
        is_live.map_err(|why| ErrorAnswer::unseen(&why))
    }

    /// Reads the view at the end of an epoch, on a separate thread.
    async fn read_view<T: Send + 'static>(
        &self,
        view: Arc<View>,
        read: impl FnOnce(&View) -> T + Send + 'static,
    ) -> Result<T, ErrorAnswer> {
        let guard = view.end_of_epoch().await.map_err(|why| ErrorAnswer::unseen(&why))?;
        let seen = move || {
            let seen = read(&view);
            drop(guard);
            seen
        };
        self.read(seen).await
    }

    /// Runs `read`, which may wait for a lock, on a separate thread.
    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorAnswer> {
        Self::read_in(&self.reads, read).await
    }

    /// Runs `read`, which may take seconds, without blocking quick reads.
    async fn read_slowly<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorAnswer> {
        Self::read_in(&self.slow_reads, read).await
    }

    async fn read_in<T: Send + 'static>(
        room: &Arc<Semaphore>,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ErrorAnswer> {
        let failed = |what: &str| ErrorAnswer::new(StatusCode::INTERNAL_SERVER_ERROR, what);
        let permit = Arc::clone(room).acquire_owned().await.map_err(|_| failed("the monitor ends"))?;
        let read = move || {
            let found = read();
            drop(permit);
            found
        };
        tokio::task::spawn_blocking(read).await.map_err(|_| failed("what was asked for could not be read"))
    }
}

/// A path, its query parameters, and its handler.
type Route = (&'static str, &'static [&'static str], MethodRouter<Arc<RouteState>>);

/// Every path.
fn table() -> Vec<Route> {
    vec![
        ("/", &[], get(plain::page)),
        ("/health", &[], get(plain::health)),
        ("/ready", &[], get(plain::ready)),
        ("/metrics", &[], get(plain::metrics)),
        ("/login", &[], post(plain::login)),
        ("/logout", &[], post(plain::logout)),
        ("/config", &[], get(plain::config)),
        ("/openapi.json", &[], get(description::openapi)),
        ("/status", &[], get(status::status)),
        ("/pipeline", &[], get(status::pipeline)),
        ("/history", &[], get(status::history)),
        ("/document", &["id"], get(documents::document_by)),
        ("/document/text", &["id", "most"], get(documents::text_by)),
        ("/documents", &["wait"], post(posted::post)),
        ("/documents/{id}", &[], get(documents::document)),
        ("/documents/{id}/text", &[], get(documents::text)),
        ("/compare", &["a", "b"], get(compare::compare)),
        (
            "/pairs",
            &["document", "q", "order", "min", "max", "since", "after", "limit", "format"],
            get(pairs::pairs),
        ),
        ("/pair", &["a", "b"], get(pairs::pair)),
        ("/clusters", &["order", "after", "limit", "format"], get(clusters::clusters)),
        ("/cluster", &["id", "after", "limit"], get(clusters::cluster_by)),
        ("/clusters/{id}", &["after", "limit"], get(clusters::cluster)),
        ("/deltas", &["after", "tail", "format"], get(deltas::deltas)),
        ("/similar", &[], post(similar::similar)),
        ("/views", &[], get(views::views)),
        ("/views/{name}", &["order", "offset", "limit"], get(views::view)),
        (
            "/watch",
            &["after", "limit", "id"],
            get(watches::watches).post(watches::add).delete(watches::remove),
        ),
        ("/notices", &["before", "limit"], get(watches::notices)),
    ]
}

/// Refuses a query with an unknown parameter, which would otherwise be ignored.
async fn check_parameters(
    path: &'static str,
    names: &'static [&'static str],
    request: Request,
    next: Next,
) -> Result<Response, ErrorAnswer> {
    let given: Result<Query<Vec<(String, String)>>, _> = Query::try_from_uri(request.uri());
    let Query(given) = given.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    // `/` accepts any parameter, since other sites may add some to links.
    let mut unknown = given.iter().filter(|(name, _)| path != "/" && !names.contains(&name.as_str()));
    if let Some((name, _)) = unknown.next() {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(ErrorAnswer::wrong(format!("the query has a parameter {name:?}; {path} takes {known}")));
    }
    Ok(next.run(request).await)
}

pub(super) fn router(state: Arc<RouteState>) -> Router {
    table()
        .into_iter()
        .fold(Router::new(), |router, (path, names, answers)| {
            let check_parameters = from_fn(move |request, next| check_parameters(path, names, request, next));
            router.route(path, answers.layer(check_parameters))
        })
        .fallback(|| async {
            ErrorAnswer::new(StatusCode::NOT_FOUND, "there is no such path; /openapi.json lists all")
        })
        .method_not_allowed_fallback(|| async {
            ErrorAnswer::new(StatusCode::METHOD_NOT_ALLOWED, "not by this method; /openapi.json lists all")
        })
        // Handlers limit bodies themselves, and answer with a [`ErrorAnswer`].
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(Arc::clone(&state), secure))
        .with_state(state)
}

/// Removes the base path from a request that a proxy forwards with it.
pub(super) fn strip_base_path<B>(base_path: &str, mut request: http::Request<B>) -> http::Request<B> {
    let uri = request.uri().clone();
    let Some(rest) = uri.path().strip_prefix(base_path).filter(|_| !base_path.is_empty()) else {
        return request;
    };
    if rest.is_empty() {
        // The paths in the page are relative to a folder.
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

/// The path was the base path without a trailing slash.
#[derive(Clone, Copy, Debug)]
struct Unslashed;

/// The address of the other end of the connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub(super) IpAddr);

/// Logs a request with its user, except those that machines send all the time.
fn log_access(client: &RequestClient, peer: Option<IpAddr>, asked: &str, status: StatusCode) {
    let path = asked.split_once(' ').map_or(asked, |(_, path)| path);
    if !["/health", "/ready", "/metrics"].contains(&path) {
        let user = client.user.as_deref().unwrap_or_default();
        let peer = peer.map(|peer| peer.to_string()).unwrap_or_default();
        tracing::info!(?user, peer, asked = ?asked, status = status.as_u16(), "request");
    }
}

/// Checks access, and adds security headers to every answer.
async fn secure(State(state): State<Arc<RouteState>>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<PeerAddress>().map(|peer| peer.0);
    let client = state.proxies.client(peer, request.headers());
    if client.is_ignored {
        state.untrusted.fetch_add(1, Ordering::Relaxed);
    }
    let logged = state.proxies.names_users().then(|| format!("{} {}", request.method(), request.uri()));
    request.extensions_mut().insert(client.clone());
    let admitted = state.access.check(request.method(), request.uri().path(), request.headers());
    let mut answer = match admitted {
        Ok(()) => next.run(request).await,
        Err(Denied { reason, status, why }) => {
            state.refusals.add(reason);
            match reason {
                RefusalReason::Token if request.uri().path() == "/" => plain::login_form(None),
                _ => ErrorAnswer::new(status, why).into_response(),
            }
        }
    };
    if let Some(asked) = logged {
        log_access(&client, peer, &asked, answer.status());
    }
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
