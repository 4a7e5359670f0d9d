//! The route of pairs, and what pages of all kinds share.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::view::KnownPair;
use crate::view::pairs::PairQuery;
use crate::view::ranking::{RankPosition, RankedBy, Ranking};
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
    /// Only pairs of a document whose id contains this text; case matters.
    q: Option<String>,
    /// `id`: by (a, b), in byte order; `time`: last added first; `similarity`: greatest first. The last two
    /// read all pairs for each page. Default `id`.
    order: Option<PairOrderText>,
    /// Minimum similarity, inclusive; default 0.
    min: Option<f64>,
    /// Maximum similarity, inclusive; default 1.
    max: Option<f64>,
    /// The value of `next` of the previous page, which had the same order.
    after: Option<String>,
    /// Maximum number of pairs on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// The order of pairs.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum PairOrderText {
    Time,
    Similarity,
    #[default]
    Id,
}

impl PairOrderText {
    /// The name in a cursor, and by what pairs are ranked; `None` for the order of ids.
    fn ranked(self) -> Option<(&'static str, RankedBy)> {
        match self {
            Self::Time => Some(("time", RankedBy::Time)),
            Self::Similarity => Some(("similarity", RankedBy::Similarity)),
            Self::Id => None,
        }
    }
}

/// A page of pairs.
#[derive(Serialize, ToSchema)]
#[schema(as = PairsPage)]
pub(super) struct PairsPage {
    /// The pairs are those after this epoch.
    epoch: u64,
    /// In the order of the query; pairs of the same epoch or similarity by (a, b), in byte order.
    pairs: Vec<PairSummary>,
    /// The cursor of the next page; null on the last page. By `id`, a page may hold fewer pairs than its
    /// limit and not be the last one.
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

/// Pairs by their ids, by recency or by similarity.
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
    let order = which.order.unwrap_or_default().ranked();
    let after = which.after.as_deref();
    let wanted = PairQuery {
        document: which.document.as_deref().map(id).transpose()?,
        part: which.q.filter(|part| !part.is_empty()),
        min: which.min.unwrap_or(0.0),
        max: which.max.unwrap_or(1.0),
        after: after.filter(|_| order.is_none()).map(cursor).transpose()?,
        limit: limit(which.limit, LIMIT, MOST)?,
    };
    if let Some((name, by)) = order {
        let after = after.map(|text| rank_cursor(name, text)).transpose()?;
        return ranked_page(&state, wanted, (name, by), after).await;
    }
    let view = state.view()?;
    state
        .read_view(view, move |view| {
            let (epoch, (found, next)) = view.pairs(|epoch, pairs| (epoch, pairs.page(&wanted)));
            let next = next.map(|(a, b)| encode(&[a.as_str(), b.as_str()]));
            Json(PairsPage { epoch, pairs: found.iter().map(PairSummary::new).collect(), next })
        })
        .await
}

/// A page in an order other than that of ids.
async fn ranked_page(
    state: &RouteState,
    wanted: PairQuery,
    (name, by): (&'static str, RankedBy),
    after: Option<RankPosition>,
) -> Result<Json<PairsPage>, ErrorAnswer> {
    let ranking = Ranking::new(by, after, wanted.limit);
    let read = move |view: &View| {
        let (found, next) = view.rank(wanted, ranking).page();
        let next = next.map(|position| {
            let (rank, a, b) = position.parts();
            encode(&[name, &rank.to_string(), a.as_str(), b.as_str()])
        });
        let pairs = found.iter().map(PairSummary::new).collect();
        Json(PairsPage { epoch: view.epoch(), pairs, next })
    };
    state.read_view(state.view()?, read).await
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

/// Parses a cursor of a ranked page. One of another order is refused.
fn rank_cursor(order: &str, text: &str) -> Result<RankPosition, ErrorAnswer> {
    let [_, rank, a, b] = decode::<4>(text).filter(|parts| parts[0] == order).ok_or_else(no_cursor)?;
    Ok(RankPosition::new(rank.parse().map_err(|_| no_cursor())?, id(&a)?, id(&b)?))
}
