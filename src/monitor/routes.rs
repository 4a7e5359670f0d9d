//! What is answered at which path.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::families::{self, Family, Scrape};
use super::memory;
use super::status::Status;
use crate::metrics::Metrics;
use crate::time::Clock;

/// What all routes read.
struct Asked {
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    clock: Arc<dyn Clock>,
    families: Vec<Family>,
}

pub(super) fn router(metrics: Arc<Metrics>, status: Arc<Status>, clock: Arc<dyn Clock>) -> Router {
    let asked = Asked { metrics, status, clock, families: families::all() };
    Router::new()
        .route("/metrics", get(metrics_text))
        .route("/health", get(health))
        .route("/ready", get(ready))
        .fallback(nowhere)
        .with_state(Arc::new(asked))
}

/// Of all families, their samples.
async fn metrics_text(State(asked): State<Arc<Asked>>) -> Response {
    let scrape = Scrape {
        counts: asked.metrics.counts(),
        status: &asked.status,
        now: asked.clock.now(),
        resident: memory::resident_bytes(),
    };
    let text = families::text(&asked.families, &scrape);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-store")], text).into_response()
}

async fn health(State(asked): State<Arc<Asked>>) -> Response {
    answer(asked.status.health(), "ok")
}

async fn ready(State(asked): State<Arc<Asked>>) -> Response {
    answer(asked.status.readiness(), "ready")
}

async fn nowhere() -> Response {
    (StatusCode::NOT_FOUND, "there are /metrics, /health and /ready\n").into_response()
}

/// A line: 200, or 503 with what is wrong.
fn answer(found: Result<(), String>, well: &str) -> Response {
    let (code, line) = match found {
        Ok(()) => (StatusCode::OK, well.to_owned()),
        Err(what) => (StatusCode::SERVICE_UNAVAILABLE, what),
    };
    (code, [(header::CACHE_CONTROL, "no-store")], line + "\n").into_response()
}
