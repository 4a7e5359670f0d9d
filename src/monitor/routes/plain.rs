//! Routes of the page, the login, health and readiness, metrics and settings.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{ErrorAnswer, RouteState, Unslashed};
use crate::guard::proxies::RequestClient;
use crate::guard::refusals::RefusalReason;
use crate::metrics::{self, MetricScrape, ViewCounts, process};
use crate::page;
use dupflow_run::view_tables::ViewTables;

/// Maximum size of the login form in bytes.
const FORM_BYTES: usize = 8 << 10;

/// The page.
#[utoipa::path(
    get, path = "/",
    responses(
        (status = 200, description = "The page.", content_type = "text/html"),
        (status = 401, description = "A form for the token.", content_type = "text/html"),
    ),
)]
pub(super) async fn page(
    State(state): State<Arc<RouteState>>,
    unslashed: Option<Extension<Unslashed>>,
) -> Response {
    if unslashed.is_some() {
        return Redirect::permanent(state.access.home()).into_response();
    }
    ([(header::CONTENT_SECURITY_POLICY, page::policy())], Html(page::html())).into_response()
}

/// The login form.
pub(super) fn login_form(note: Option<&str>) -> Response {
    let note = note.unwrap_or("This run shows itself to those who have its token.");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
            content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" \
         href=\"data:,\"><title>dupflow</title>\
         <main><h1>dupflow</h1><p>{note}</p><form method=\"post\" action=\"login\">\
         <label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" required \
         autofocus></label> \
         <button>Log in</button></form></main></html>\n"
    );
    let policy =
        "default-src 'none'; form-action 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'";
    (StatusCode::UNAUTHORIZED, [(header::CONTENT_SECURITY_POLICY, policy)], Html(page)).into_response()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    token: String,
}

/// Sets the cookie, given the token.
#[utoipa::path(
    post, path = "/login",
    request_body(
        content = String, content_type = "application/x-www-form-urlencoded", description = "token=TOKEN",
    ),
    responses(
        (status = 303, description = "The cookie is set; the page is at `./`."),
        (status = 401, description = "A form for the token.", content_type = "text/html"),
        (status = 404, description = "No token is needed here.", body = ErrorAnswer),
    ),
)]
pub(super) async fn login(
    State(state): State<Arc<RouteState>>,
    Extension(client): Extension<RequestClient>,
    body: Body,
) -> Response {
    if !state.access.needs_token() {
        return ErrorAnswer::missing("no token is needed here").into_response();
    }
    if state.logins.take(state.subject.clock.now()).is_err() {
        state.refusals.add(RefusalReason::Logins);
        return ErrorAnswer::busy("too many attempts in a second", 1).into_response();
    }
    let read = tokio::time::timeout(state.limits.body, axum::body::to_bytes(body, FORM_BYTES)).await;
    let form = read.ok().and_then(Result::ok).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    let uri = form.and_then(|form| format!("/?{form}").parse::<Uri>().ok());
    let login = uri.and_then(|uri| Query::<Login>::try_from_uri(&uri).ok());
    match login.and_then(|Query(login)| state.access.login(&login.token, client.is_encrypted)) {
        Some(cookie) => {
            (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, "./".to_owned())])
                .into_response()
        }
        None => login_form(Some("That is not the token of this run.")),
    }
}

/// Removes the cookie of this browser. The token stays as it is.
#[utoipa::path(
    post, path = "/logout",
    responses(
        (status = 303, description = "The cookie is removed; the form for the token is at `./`."),
        (status = 404, description = "No token is needed here.", body = ErrorAnswer),
    ),
)]
pub(super) async fn logout(
    State(state): State<Arc<RouteState>>,
    Extension(client): Extension<RequestClient>,
) -> Response {
    if !state.access.needs_token() {
        return ErrorAnswer::missing("no token is needed here").into_response();
    }
    let cookie = state.access.logout(client.is_encrypted);
    (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, "./".to_owned())])
        .into_response()
}

/// Every metric, in the format of OpenMetrics.
#[utoipa::path(
    get, path = "/metrics",
    responses(
        (
            status = 200, description = "The text format of OpenMetrics 1.0.",
            content_type = "application/openmetrics-text",
        ),
    ),
)]
pub(super) async fn metrics(State(state): State<Arc<RouteState>>) -> Result<Response, ErrorAnswer> {
    let held = Arc::clone(&state);
    let text = state.read(move || metrics::text(held.scrape())).await?;
    let text = text
        .map_err(|_| ErrorAnswer::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

impl RouteState {
    /// Reads all values for a scrape.
    fn scrape(&self) -> MetricScrape {
        let subject = &self.subject;
        let seen = subject.view.as_ref().filter(|view| view.check_pairs().is_ok());
        let held = seen.map(|view| {
            let sums = view.sums();
            ViewCounts { clusters: sums.clusters - sums.giants, giants: sums.giants }
        });
        let history_failed = subject.view.as_ref().is_some_and(|view| view.history().failure.is_some());
        MetricScrape {
            history_failed,
            counts: subject.metrics.counts(),
            status: Arc::clone(&subject.status),
            now: subject.clock.now(),
            resident: process::resident_bytes(),
            refused: (self.refusals.questions(), self.refusals.requests()),
            untrusted: self.untrusted.load(Ordering::Relaxed),
            streams: self.limits.streams - self.streams.available_permits(),
            held,
            watch: self.subject.watch.as_ref().map(|watch| watch.state()),
            planned: subject.planned_here(),
            memory_budget: subject.memory_budget,
            view_rows: view_rows(subject.views.as_deref()),
        }
    }
}

/// Whether the process is healthy.
#[utoipa::path(
    get, path = "/health",
    responses(
        (status = 200, description = "It works.", content_type = "text/plain"),
        (status = 503, description = "The run has failed, and why.", content_type = "text/plain"),
    ),
)]
pub(super) async fn health(State(state): State<Arc<RouteState>>) -> Response {
    line(state.subject.status.health(state.subject.clock.now()), "ok")
}

/// Whether the run is live and its output is up to date.
#[utoipa::path(
    get, path = "/ready",
    responses(
        (status = 200, description = "It does.", content_type = "text/plain"),
        (status = 503, description = "What it waits for.", content_type = "text/plain"),
    ),
)]
pub(super) async fn ready(State(state): State<Arc<RouteState>>) -> Response {
    let ready = state.subject.status.readiness(state.subject.clock.now());
    let ready = ready.and_then(|()| state.is_live().map_err(|failure| failure.line().to_owned()));
    let hook = state.subject.watch.as_ref().and_then(|watch| watch.state().hook);
    let unstored = hook.and_then(|hook| hook.unstored).map(|why| format!("the web hook waits: {why}"));
    line(ready.and(unstored.map_or(Ok(()), Err)), "ready")
}

/// The settings of the run, with secrets masked.
#[utoipa::path(
    get, path = "/config",
    responses((status = 200, description = "`deployment` and `pipeline`.", body = serde_json::Value)),
)]
pub(super) async fn config(State(state): State<Arc<RouteState>>) -> Response {
    Json(&state.subject.config).into_response()
}

/// One line: 200, or 503 with what is wrong.
fn line(found: Result<(), String>, well: &str) -> Response {
    let (code, line) = match found {
        Ok(()) => (StatusCode::OK, well.to_owned()),
        Err(what) => (StatusCode::SERVICE_UNAVAILABLE, what),
    };
    (code, line + "\n").into_response()
}

/// The views by name, each with its number of rows.
fn view_rows(views: Option<&ViewTables>) -> Vec<(String, usize)> {
    let named = |tables: &ViewTables| {
        let names = tables.plans().iter().map(|plan| plan.name.to_string());
        names.zip(tables.lengths().1).collect()
    };
    views.map(named).unwrap_or_default()
}
