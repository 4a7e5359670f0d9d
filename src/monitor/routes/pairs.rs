//! Pairs, page by page.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Asked, Failure};
use crate::view::Told;
use crate::view::pairs::Wanted;
use dupflow_core::doc::DocId;

/// Pairs on a page, unless it says how many, and the most.
const LIMIT: usize = 100;
const MOST: usize = 1000;

/// Which pairs.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only those of this document.
    document: Option<String>,
    /// The least similarity, inclusive; 0 if absent.
    min: Option<f64>,
    /// The greatest similarity, inclusive; 1 if absent.
    max: Option<f64>,
    /// `next` of the page before.
    after: Option<String>,
    /// Most pairs on the page, from 1 to 1000; 100 if absent.
    limit: Option<usize>,
}

/// Some pairs.
#[derive(Serialize, ToSchema)]
#[schema(as = PairsPage)]
pub(super) struct Page {
    /// The page is of the pairs after this epoch.
    epoch: u64,
    /// By (a, b), in the order of bytes.
    pairs: Vec<Shown>,
    /// Where the next page begins; null if this is the last one. A page may hold fewer pairs than its limit
    /// and not be the last one.
    next: Option<String>,
}

/// A pair.
#[derive(Serialize, ToSchema)]
#[schema(as = PairShown)]
pub(super) struct Shown {
    /// The lesser id.
    a: String,
    b: String,
    similarity: f64,
    /// The epoch that brought it with this similarity. If that was before this run, the epoch at which the
    /// output stood when the run began.
    since: u64,
    /// What did.
    cause: &'static str,
}

impl Shown {
    pub(super) fn of(told: &Told) -> Self {
        Self {
            a: told.a.to_string(),
            b: told.b.to_string(),
            similarity: told.held.similarity.get(),
            since: told.held.since,
            cause: told.held.cause.name(),
        }
    }
}

/// Pairs by (a, b).
#[utoipa::path(get, path = "/pairs", params(Which), responses((status = 200, description = "A page of them.", body = Page),
    (status = 400, description = "The query is wrong.", body = Failure), (status = 501, description = "Pairs are not kept.", body = Failure),
    (status = 503, description = "The run is not live yet.", body = Failure)))]
pub(super) async fn pairs(
    State(asked): State<Arc<Asked>>,
    which: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Page>, Failure> {
    let Query(which) = which.map_err(|error| Failure::wrong(error.body_text()))?;
    let wanted = Wanted {
        document: which.document.as_deref().map(id).transpose()?,
        min: which.min.unwrap_or(0.0),
        max: which.max.unwrap_or(1.0),
        after: which.after.as_deref().map(cursor).transpose()?,
        limit: limit(which.limit, LIMIT, MOST)?,
    };
    let view = asked.view()?;
    asked
        .see(view, move |view| {
            let (epoch, (found, next)) = view.pairs(|epoch, pairs| (epoch, pairs.page(&wanted)));
            let next = next.map(|(a, b)| encode(&[a.as_str(), b.as_str()]));
            Json(Page { epoch, pairs: found.iter().map(Shown::of).collect(), next })
        })
        .await
}

/// An id as it was typed.
pub(super) fn id(text: &str) -> Result<DocId, Failure> {
    let why = || Failure::wrong(format!("an id has 1 to {} bytes", DocId::MAX_BYTES));
    DocId::new(text).ok_or_else(why)
}

/// How many on a page.
pub(super) fn limit(asked: Option<usize>, usual: usize, most: usize) -> Result<usize, Failure> {
    let why = || Failure::wrong(format!("limit: expected a whole number from 1 to {most}"));
    Some(asked.unwrap_or(usual)).filter(|limit| (1..=most).contains(limit)).ok_or_else(why)
}

/// Parts of a cursor as text that needs no escapes in a query.
pub(super) fn encode(parts: &[&str]) -> String {
    use base64::Engine;
    let json = serde_json::to_vec(parts).expect("texts are written to memory");
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(json)
}

/// The parts of a cursor.
pub(super) fn decode<const N: usize>(cursor: &str) -> Option<[String; N]> {
    use base64::Engine;
    let json = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(cursor).ok()?;
    serde_json::from_slice::<Vec<String>>(&json).ok()?.try_into().ok()
}

/// What is wrong with a cursor.
pub(super) fn no_cursor() -> Failure {
    Failure::wrong("after: expected what `next` said on the page before")
}

fn cursor(text: &str) -> Result<(DocId, DocId), Failure> {
    let [a, b] = decode(text).ok_or_else(no_cursor)?;
    Ok((id(&a)?, id(&b)?))
}
