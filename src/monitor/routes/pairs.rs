//! The route of pairs, and what pages of all kinds share.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::export::{ListCell, ListExport, ListFormat, ListRow, ROWS, check_whole};
use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::view::KnownPair;
use crate::view::pairs::{PairQuery, SinceBound};
use crate::view::ranking::{RankPosition, RankedBy, Ranking};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Pair, SharesBeside};

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
    /// Only pairs that were added with their present similarity in this epoch (`120`) or at this time
    /// (`2026-11-23T04:00:00Z`), or later. By time, pairs whose time is not known are left out.
    since: Option<String>,
    /// The value of `next` of the previous page, which had the same order.
    after: Option<String>,
    /// Maximum number of pairs on the page, 1 to 1000; default 100.
    limit: Option<usize>,
    /// `csv` or `jsonl`: all of them as a file. Default: that of the header `Accept`, else `json`, a page.
    format: Option<ListFormat>,
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
    /// The epoch at which the history begins: what was there then may be older.
    history_begins: u64,
}

/// A pair.
#[derive(Serialize, ToSchema)]
#[schema(as = PairShown)]
pub(super) struct PairSummary {
    /// The smaller id.
    a: String,
    b: String,
    similarity: f64,
    /// Of containment, if the two shares differ: the share of b's features that a has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_a: Option<f64>,
    /// And the share of a's features that b has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_b: Option<f64>,
    /// The epoch that added the pair with this similarity.
    since: u64,
    /// When that epoch was committed, in unix seconds; null if that is not known.
    since_at: Option<u64>,
    /// The greatest time of the events of that epoch, in unix seconds; null if that is not known.
    since_event_time: Option<u64>,
    /// Whether that epoch is known. If not, the pair was there by then and may be older: the history begins
    /// then, or lacks the epochs before.
    since_is_exact: bool,
    /// The cause of that delta.
    cause: &'static str,
}

impl PairSummary {
    pub(super) fn new(pair: &KnownPair) -> Self {
        let SharesBeside { in_id: in_b, of_id: in_a } = SharesBeside::new(pair.held.similarity);
        Self {
            a: pair.a.to_string(),
            b: pair.b.to_string(),
            similarity: pair.held.similarity.get(),
            in_a,
            in_b,
            since: pair.held.since,
            since_at: pair.held.times.committed(),
            since_event_time: pair.held.times.event(),
            since_is_exact: pair.held.is_exact,
            cause: pair.held.cause.name(),
        }
    }
}

/// Pairs by their ids, by recency or by similarity.
#[utoipa::path(
    get, path = "/pairs",
    params(PairsQuery),
    responses(
        (
            status = 200,
            description = "A page of them; with `format` all of them as a file.",
            content(
                (PairsPage = "application/json"), (String = "text/csv"), (String = "application/x-ndjson"),
            ),
        ),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "Pairs are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn pairs(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<PairsQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let file = ListFormat::of_file(which.format, &headers);
    let order = which.order.unwrap_or_default().ranked();
    check_whole(file.is_some() && (which.after.is_some() || which.limit.is_some()))?;
    if file.is_some() && order.is_some() {
        return Err(ErrorAnswer::wrong("order: a file of pairs is in the order of ids"));
    }
    let after = which.after.as_deref();
    let wanted = PairQuery {
        document: which.document.as_deref().map(id).transpose()?,
        part: which.q.filter(|part| !part.is_empty()),
        min: which.min.unwrap_or(0.0),
        max: which.max.unwrap_or(1.0),
        since: which.since.as_deref().map(since).transpose()?,
        after: after.filter(|_| order.is_none()).map(cursor).transpose()?,
        limit: limit(which.limit, LIMIT, MOST)?,
    };
    if let Some((name, by)) = order {
        let after = after.map(|text| rank_cursor(name, text)).transpose()?;
        return ranked_page(&state, wanted, name, by, after).await;
    }
    let view = state.view()?;
    if let Some(format) = file {
        return export_pairs(wanted, format, state.subject.pipeline.shares).answer(&state, view);
    }
    state
        .read_view(view, move |view| {
            let (epoch, (found, next)) = view.pairs(|epoch, pairs| (epoch, pairs.page(&wanted)));
            let next = next.map(|(a, b)| encode(&[a.as_str(), b.as_str()]));
            let pairs = found.iter().map(PairSummary::new).collect();
            Json(PairsPage { epoch, pairs, next, history_begins: view.history().meta.begins }).into_response()
        })
        .await
}

/// A page in an order other than that of ids.
async fn ranked_page(
    state: &RouteState,
    wanted: PairQuery,
    name: &'static str,
    by: RankedBy,
    after: Option<RankPosition>,
) -> Result<Response, ErrorAnswer> {
    let ranking = Ranking::new(by, after, wanted.limit);
    let read = move |view: &View| {
        let (found, next) = view.rank(wanted, ranking).page();
        let next = next.map(|position| {
            let (rank, a, b) = position.parts();
            encode(&[name, &rank.to_string(), a.as_str(), b.as_str()])
        });
        let pairs = found.iter().map(PairSummary::new).collect();
        let history_begins = view.history().meta.begins;
        Json(PairsPage { epoch: view.epoch(), pairs, next, history_begins }).into_response()
    };
    state.read_view(state.view()?, read).await
}

/// All wanted pairs, by (a, b); `shares` says whether they have two shares.
fn export_pairs(
    wanted: PairQuery,
    format: ListFormat,
    shares: bool,
) -> ListExport<impl FnMut(&View) -> (Vec<ListRow>, bool) + Send + 'static> {
    let mut wanted = PairQuery { after: None, limit: ROWS, ..wanted };
    let read = move |view: &View| {
        let (found, next) = view.pairs(|_, pairs| pairs.page(&wanted));
        wanted.after = next;
        let row = |pair: &KnownPair| {
            let summary = PairSummary::new(pair);
            let [in_b, in_a] = pair.held.similarity.shares().map(ListCell::Number);
            let mut row = vec![
                ListCell::Text(summary.a),
                ListCell::Text(summary.b),
                ListCell::Number(summary.similarity),
                ListCell::Whole(summary.since),
                ListCell::optional(summary.since_at),
                ListCell::optional(summary.since_event_time),
                ListCell::Truth(summary.since_is_exact),
                ListCell::Text(summary.cause.to_owned()),
            ];
            row.extend([in_a, in_b].into_iter().filter(|_| shares));
            row
        };
        (found.iter().map(row).collect(), wanted.after.is_none())
    };
    const COLUMNS: &[&str] = &[
        "a",
        "b",
        "similarity",
        "since",
        "since_at",
        "since_event_time",
        "since_is_exact",
        "cause",
        "in_a",
        "in_b",
    ];
    ListExport { name: "pairs", columns: &COLUMNS[..if shares { 10 } else { 8 }], format, read }
}

/// A query for a pair.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PairQueryOfTwo {
    /// One document.
    a: String,
    /// The other one.
    b: String,
}

/// What is known of a pair, now and before.
#[derive(Serialize, ToSchema)]
#[schema(as = PairKnown)]
pub(super) struct PairAnswer {
    /// The pair is as it was after this epoch.
    epoch: u64,
    /// The pair; null if the two are none now.
    pair: Option<PairSummary>,
    /// How the pair ended last; null if it is one now, and if no end is known.
    ended: Option<PairEnd>,
    /// The epoch at which the history begins.
    history_begins: u64,
}

/// The end of a pair.
#[derive(Serialize, ToSchema)]
#[schema(as = PairEnd)]
struct PairEnd {
    /// The pair as it was.
    was: PairSummary,
    /// The epoch that removed it.
    epoch: u64,
    /// When that epoch was committed, in unix seconds; null if that is not known. If the pair ended in a gap
    /// of the history: when the gap was found.
    at: Option<u64>,
    /// The greatest time of the events of that epoch, in unix seconds; null if that is not known.
    event_time: Option<u64>,
    /// Whether that epoch is known. If not, the pair had ended by then.
    is_exact: bool,
    /// The cause of that delta.
    cause: &'static str,
}

/// Since when two documents are a pair, or how they ceased to be one.
#[utoipa::path(
    get, path = "/pair",
    params(PairQueryOfTwo),
    responses(
        (status = 200, description = "What is known.", body = PairAnswer),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "Pairs are not kept.", body = ErrorAnswer),
        (status = 503, description = "The run is not live yet.", body = ErrorAnswer),
    ),
)]
pub(super) async fn pair(
    State(state): State<Arc<RouteState>>,
    two: Result<Query<PairQueryOfTwo>, QueryRejection>,
) -> Result<Json<PairAnswer>, ErrorAnswer> {
    let Query(two) = two.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let pair = Pair::new(id(&two.a)?, id(&two.b)?);
    let pair = pair.ok_or_else(|| ErrorAnswer::wrong("a and b: expected two documents, found one"))?;
    let read = move |view: &View| {
        let (epoch, held, ended) = view.pair(&pair);
        let known = |details| KnownPair { a: pair.lo().clone(), b: pair.hi().clone(), held: details };
        let ended = ended.map(|end| PairEnd {
            was: PairSummary::new(&known(end.was)),
            epoch: end.ended.epoch,
            at: end.ended.times.committed(),
            event_time: end.ended.times.event(),
            is_exact: end.ended.is_exact,
            cause: end.cause.name(),
        });
        let history_begins = view.history().meta.begins;
        Json(PairAnswer {
            epoch,
            pair: held.map(|details| PairSummary::new(&known(details))),
            ended,
            history_begins,
        })
    };
    state.read_view(state.view()?, read).await
}

/// Parses the beginning of a period: an epoch, or a time of RFC 3339.
pub(super) fn since(text: &str) -> Result<SinceBound, ErrorAnswer> {
    let why = || {
        ErrorAnswer::wrong(format!(
            "since: expected an epoch such as 120, or a time such as 2026-11-23T04:00:00Z, found {text:?}"
        ))
    };
    if let Ok(epoch) = text.parse() {
        return Ok(SinceBound::Epoch(epoch));
    }
    let time: jiff::Timestamp = text.parse().map_err(|_| why())?;
    // Times are known in whole seconds.
    u64::try_from(time.as_second()).map(SinceBound::Time).map_err(|_| why())
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
