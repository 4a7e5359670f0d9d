//! The OpenAPI description, generated from the code.

use std::sync::LazyLock;

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use utoipa::OpenApi;

use super::{
    clusters, compare, deltas, documents, export, pairs, plain, posted, similar, status, views, watches,
};
use crate::guard::access::{COOKIE, is_open};

/// A run of dupflow: its pairs of near-duplicate documents, its clusters, its counters.
#[derive(OpenApi)]
#[openapi(
    info(title = "dupflow", license(name = "MIT OR Apache-2.0")),
    paths(
        plain::page,
        plain::health,
        plain::ready,
        plain::metrics,
        plain::login,
        plain::logout,
        plain::config,
        openapi,
        status::status,
        status::pipeline,
        status::history,
        documents::document,
        documents::document_by,
        documents::text,
        documents::text_by,
        compare::compare,
        pairs::pairs,
        pairs::pair,
        clusters::clusters,
        clusters::cluster,
        clusters::cluster_by,
        deltas::deltas,
        similar::similar,
        posted::post,
        views::views,
        views::view,
        watches::watches,
        watches::add,
        watches::remove,
        watches::notices
    ),
    components(schemas(
        similar::SimilarQuery,
        clusters::OrderText,
        export::ListFormat,
        pairs::PairOrderText,
        views::RowOrderText,
        watches::WatchToAdd
    ))
)]
struct ApiDescription;

/// This description, as OpenAPI.
#[utoipa::path(
    get, path = "/openapi.json",
    responses((status = 200, description = "OpenAPI 3.1.", content_type = "application/json")),
)]
pub(super) async fn openapi() -> Response {
    Json(&*DESCRIPTION).into_response()
}

/// The description with what applies to all paths.
static DESCRIPTION: LazyLock<Value> = LazyLock::new(|| {
    let mut description = serde_json::to_value(ApiDescription::openapi()).unwrap_or_default();
    // Either of them, or neither on a loopback address without a token.
    description["security"] = json!([{"token": []}, {"cookie": []}, {}]);
    description["components"]["securitySchemes"] = json!({
        "token": {"type": "http", "scheme": "bearer", "description": "monitor.token or monitor.token_file, \
            if one is set."},
        "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "What POST /login sets."},
    });
    let refused = |text: &str| {
        let schema = json!({"$ref": "#/components/schemas/Failure"});
        json!({"description": text, "content": {"application/json": {"schema": schema}}})
    };
    for (path, operations) in description["paths"].as_object_mut().into_iter().flatten() {
        for operation in operations.as_object_mut().into_iter().flat_map(|of| of.values_mut()) {
            if is_open(path) {
                operation["security"] = json!([]);
            } else if operation["responses"]["401"].is_null() {
                operation["responses"]["401"] = refused("A token is needed.");
            }
            operation["responses"]["403"] = refused("Unknown Host header, or the page of another site asks.");
            if operation["responses"]["400"].is_null() && path != "/" {
                operation["responses"]["400"] = refused("The query has a parameter that is not taken here.");
            }
        }
    }
    description
});

/// The described paths with the names of their query parameters.
#[cfg(test)]
pub(super) fn paths() -> std::collections::BTreeMap<String, std::collections::BTreeSet<String>> {
    let described = &*DESCRIPTION;
    let paths = described["paths"].as_object().unwrap().iter().map(|(path, operations)| {
        let of_all = operations.as_object().unwrap().values();
        let all = of_all.flat_map(|operation| operation["parameters"].as_array().into_iter().flatten());
        let of_query = all.filter(|parameter| parameter["in"] == "query");
        (path.clone(), of_query.map(|parameter| parameter["name"].as_str().unwrap().to_owned()).collect())
    });
    paths.collect()
}
