//! The description of all this, made from the code.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use utoipa::OpenApi;

use super::{clusters, deltas, documents, pairs, plain, similar, standing};

/// A run of dupflow: its pairs of near-duplicate documents, its clusters, its numbers.
#[derive(OpenApi)]
#[openapi(
    info(title = "dupflow", license(name = "MIT OR Apache-2.0")),
    paths(
        plain::page,
        plain::health,
        plain::ready,
        plain::metrics,
        plain::login,
        plain::config,
        openapi,
        standing::status,
        standing::pipeline,
        standing::history,
        documents::document,
        documents::text,
        documents::compare,
        pairs::pairs,
        clusters::clusters,
        clusters::cluster,
        deltas::deltas,
        similar::similar
    )
)]
struct Described;

/// This description, as OpenAPI.
#[utoipa::path(get, path = "/openapi.json", responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json")))]
pub(super) async fn openapi() -> Response {
    let text = Described::openapi().to_json().unwrap_or_default();
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The paths that are described, in order.
#[cfg(test)]
pub(super) fn paths() -> Vec<String> {
    Described::openapi().paths.paths.into_keys().collect()
}
