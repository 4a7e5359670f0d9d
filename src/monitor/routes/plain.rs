//! Lines, the page, and the door to it.

use std::sync::Arc;

use axum::Extension;
use axum::Json;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use serde::Deserialize;

use super::{Asked, Failure, Unslashed};
use crate::families::{self, Held, Scrape};
use crate::refusals::Refused;
use crate::{memory, page};

/// A form that holds a token, in bytes.
const FORM_BYTES: usize = 8 << 10;

/// The page.
#[utoipa::path(get, path = "/", responses((status = 200, description = "The page.", content_type = "text/html"),
    (status = 401, description = "A form for the token.", content_type = "text/html")))]
pub(super) async fn page(
    State(asked): State<Arc<Asked>>,
    unslashed: Option<Extension<Unslashed>>,
) -> Response {
    if unslashed.is_some() {
        return Redirect::permanent(asked.access.home()).into_response();
    }
    ([(header::CONTENT_SECURITY_POLICY, page::policy())], Html(page::html())).into_response()
}

/// A form for the token.
pub(super) fn door(note: Option<&str>) -> Response {
    let note = note.unwrap_or("This run shows itself to those who have its token.");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>dupflow</title>\
         <main><h1>dupflow</h1><p>{note}</p><form method=\"post\" action=\"login\">\
         <label>Token <input type=\"password\" name=\"token\" autocomplete=\"current-password\" required autofocus></label> \
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

/// Sets the cookie of whoever knows the token.
#[utoipa::path(post, path = "/login", request_body(content = String, content_type = "application/x-www-form-urlencoded",
    description = "token=TOKEN"), responses((status = 303, description = "The cookie is set; the page is at `./`."),
    (status = 401, description = "A form for the token.", content_type = "text/html"),
    (status = 404, description = "No token is needed here.", body = Failure)))]
pub(super) async fn login(State(asked): State<Arc<Asked>>, body: Body) -> Response {
    if !asked.access.needs_token() {
        return Failure::missing("no token is needed here").into_response();
    }
    if asked.logins.take(asked.subject.clock.now()).is_err() {
        asked.refusals.add(Refused::Logins);
        return Failure::busy("too many attempts in a second", 1).into_response();
    }
    let read = tokio::time::timeout(asked.limits.body, axum::body::to_bytes(body, FORM_BYTES)).await;
    let form = read.ok().and_then(Result::ok).and_then(|bytes| String::from_utf8(bytes.to_vec()).ok());
    let uri = form.and_then(|form| format!("/?{form}").parse::<Uri>().ok());
    let login = uri.and_then(|uri| Query::<Login>::try_from_uri(&uri).ok());
    match login.and_then(|Query(login)| asked.access.login(&login.token)) {
        Some(cookie) => {
            (StatusCode::SEE_OTHER, [(header::SET_COOKIE, cookie), (header::LOCATION, "./".to_owned())])
                .into_response()
        }
        None => door(Some("That is not the token of this run.")),
    }
}

/// Every metric, for Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "The text format of OpenMetrics 1.0.",
    content_type = "application/openmetrics-text")))]
pub(super) async fn metrics(State(asked): State<Arc<Asked>>) -> Result<Response, Failure> {
    let held = Arc::clone(&asked);
    let text = asked.read(move || families::text(held.scrape())).await?;
    let text =
        text.map_err(|_| Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the metrics cannot be written"))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

impl Asked {
    /// The numbers as they are.
    fn scrape(&self) -> Scrape {
        let subject = &self.subject;
        let seen = subject.view.as_ref().filter(|view| view.sees().is_ok());
        let held = seen.map(|view| {
            let sums = view.sums();
            Held { clusters: sums.clusters - sums.giants, giants: sums.giants }
        });
        Scrape {
            counts: subject.metrics.counts(),
            status: Arc::clone(&subject.status),
            now: subject.clock.now(),
            resident: memory::resident_bytes(),
            refused: (self.refusals.questions(), self.refusals.requests()),
            streams: self.limits.streams - self.streams.available_permits(),
            held,
            planned: subject.planned_here(),
        }
    }
}

/// Whether the process works.
#[utoipa::path(get, path = "/health", responses((status = 200, description = "It works.", content_type = "text/plain"),
    (status = 503, description = "The run has failed, and why.", content_type = "text/plain")))]
pub(super) async fn health(State(asked): State<Arc<Asked>>) -> Response {
    line(asked.subject.status.health(asked.subject.clock.now()), "ok")
}

/// Whether the run is live and keeps up.
#[utoipa::path(get, path = "/ready", responses((status = 200, description = "It does.", content_type = "text/plain"),
    (status = 503, description = "What it waits for.", content_type = "text/plain")))]
pub(super) async fn ready(State(asked): State<Arc<Asked>>) -> Response {
    let ready = asked.subject.status.readiness(asked.subject.clock.now());
    line(ready.and_then(|()| asked.is_live().map_err(|failure| failure.line().to_owned())), "ready")
}

/// The settings of the run, secrets masked.
#[utoipa::path(get, path = "/config", responses((status = 200, description = "`deployment` and `pipeline`.", body = serde_json::Value)))]
pub(super) async fn config(State(asked): State<Arc<Asked>>) -> Response {
    Json(&asked.subject.config).into_response()
}

/// A line: 200, or 503 with what is wrong.
fn line(found: Result<(), String>, well: &str) -> Response {
    let (code, line) = match found {
        Ok(()) => (StatusCode::OK, well.to_owned()),
        Err(what) => (StatusCode::SERVICE_UNAVAILABLE, what),
    };
    (code, line + "\n").into_response()
}
