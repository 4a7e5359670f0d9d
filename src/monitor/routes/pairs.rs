//! The route of pairs, and what pages of all kinds share.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ErrorAnswer, RouteState};
use crate::view::KnownPair;
use crate::view::pairs::PairQuery;
use dupflow_core::doc::DocId;

/// Default and maximum number of pairs on a page.
const LIMIT: usize = 100;
const MOST: usize = 1000;

/// A query for a page of pairs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PairsQuery {
    /// Only pairs of this document.
    document: Option<String>,
    /// Minimum similarity, inclusive; default 0.
    min: Option<f64>,
    /// Maximum similarity, inclusive; default 1.
    max: Option<f64>,
    /// The value of `next` of the previous page.
    after: Option<String>,
    /// Maximum number of pairs on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// A page of pairs.
#[derive(Serialize, ToSchema)]
#[schema(as = PairsPage)]
pub(super) struct PairsPage {
    /// The pairs are those after this epoch.
    epoch: u64,
    /// By (a, b), in byte order.
    pairs: Vec<PairSummary>,
    /// The cursor of the next page; null on the last page. A page may hold fewer pairs than its limit and not
    /// be the last one.
    next: Option<String>,
}

/// A pair.
#[derive(Serialize, ToSchema)]
#[schema(as = PairShown)]
pub(super) struct PairSummary {
    /// The smaller id.
    a: String,
    b: String,
    similarity: f64,
    /// The epoch that added the pair with this similarity. If it was before this run, the output's last epoch
    /// when the run began.
    since: u64,
    /// The cause of that delta.
    cause: &'static str,
}

impl PairSummary {
    pub(super) fn new(pair: &KnownPair) -> Self {
        Self {
            a: pair.a.to_string(),
            b: pair.b.to_string(),
            similarity: pair.held.similarity.get(),
            since: pair.held.since,
            cause: pair.held.cause.name(),
        }
    }
}

/// Pairs by (a, b).
#[utoipa::path(
    get, path = "/pairs",
    params(PairsQuery),
    responses(
        (status = 200, description = "A page of them.", body = PairsPage),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "Pairs are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn pairs(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<PairsQuery>, QueryRejection>,
) -> Result<Json<PairsPage>, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let wanted = PairQuery {
        document: which.document.as_deref().map(id).transpose()?,
        min: which.min.unwrap_or(0.0),
        max: which.max.unwrap_or(1.0),
        after: which.after.as_deref().map(cursor).transpose()?,
        limit: limit(which.limit, LIMIT, MOST)?,
    };
    let view = state.view()?;
    state
        .read_view(view, move |view| {
            let (epoch, (found, next)) = view.pairs(|epoch, pairs| (epoch, pairs.page(&wanted)));
            let next = next.map(|(a, b)| encode(&[a.as_str(), b.as_str()]));
            Json(PairsPage { epoch, pairs: found.iter().map(PairSummary::new).collect(), next })
        })
        .await
}

/// Parses an id.
pub(super) fn id(text: &str) -> Result<DocId, ErrorAnswer> {
    let why = || ErrorAnswer::wrong(format!("an id has 1 to {} bytes", DocId::MAX_BYTES));
    DocId::new(text).ok_or_else(why)
}

/// Checks the limit of a page.
pub(super) fn limit(requested: Option<usize>, usual: usize, most: usize) -> Result<usize, ErrorAnswer> {
    let why = || ErrorAnswer::wrong(format!("limit: expected a whole number from 1 to {most}"));
    Some(requested.unwrap_or(usual)).filter(|limit| (1..=most).contains(limit)).ok_or_else(why)
}

/// Encodes the parts of a cursor as text that needs no escapes in a query.
pub(super) fn encode(parts: &[&str]) -> String {
    use base64::Engine;
    let json = serde_json::to_vec(parts).expect("texts are written to memory");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
}

/// Decodes a cursor.
pub(super) fn decode<const N: usize>(cursor: &str) -> Option<[String; N]> {
    use base64::Engine;
    let json = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(cursor).ok()?;
    serde_json::from_slice::<Vec<String>>(&json).ok()?.try_into().ok()
}

/// The failure of an invalid cursor.
pub(super) fn no_cursor() -> ErrorAnswer {
    ErrorAnswer::wrong("after: expected what `next` said on the page before")
}

fn cursor(text: &str) -> Result<(DocId, DocId), ErrorAnswer> {
    let [a, b] = decode(text).ok_or_else(no_cursor)?;
    Ok((id(&a)?, id(&b)?))
}
