//! The routes of the watch list and its notices.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::documents::read_record;
use super::pairs::{id, limit};
use super::similar::read_body;
use super::{ErrorAnswer, RouteState};
use crate::guard::refusals::RefusalReason;
use crate::subject::ReadText;
use dupflow_core::pair::SharesBeside;
use dupflow_run::watch::{WatchBook, WatchOrigin, WatchRefusal};

/// Default and maximum number of entries on a page.
const LIMIT: usize = 100;
const MOST: usize = 1000;

/// A watch to add: of a text, or of a document.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WatchToAdd)]
pub(super) struct WatchToAdd {
    /// Its id, 1 to 1024 bytes.
    id: String,
    /// Its text.
    text: Option<String>,
    /// The id of a live document, in place of a text. The watch has the text that the document has now, and
    /// keeps it when the document changes or is deleted.
    document: Option<String>,
}

/// A watch that was added.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchAdded)]
pub(super) struct WatchAdded {
    id: String,
    /// Whether it is new; if not, it has another text now.
    new: bool,
}

/// A query for a page of watches.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchQuery {
    /// The value of `next` of the previous page.
    after: Option<String>,
    /// Maximum number of watches on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// The watch to end.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WatchToEnd {
    /// Its id.
    id: String,
}

/// A page of watches.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchPage)]
pub(super) struct WatchPage {
    /// Watches of the whole list.
    count: u64,
    /// By id, in byte order.
    watches: Vec<WatchShown>,
    /// The last id of the page; null on the last page.
    next: Option<String>,
}

/// A watch.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchShown)]
struct WatchShown {
    id: String,
    /// "input" or "posted".
    origin: &'static str,
    /// The length of its text in bytes.
    bytes: u64,
}

/// A query for a page of notices.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct NoticesQuery {
    /// Only notices with smaller numbers: the value of `next` of the previous page.
    before: Option<u64>,
    /// Maximum number of notices on the page, 1 to 1000; default 100.
    limit: Option<usize>,
}

/// A page of notices.
#[derive(Serialize, ToSchema)]
#[schema(as = NoticesPage)]
pub(super) struct NoticesPage {
    /// Notices in the file, from its beginning.
    count: u64,
    /// The newest first. The last 1000 are held in memory; the file has all.
    notices: Vec<NoticeShown>,
    /// For `before`, to see older ones; null if none are held.
    next: Option<u64>,
    /// The web hook; null if there is none.
    hook: Option<HookShown>,
}

/// A notice.
#[derive(Serialize, ToSchema)]
#[schema(as = NoticeShown)]
struct NoticeShown {
    /// Its number in the file, from 1.
    number: u64,
    /// The epoch that made it.
    epoch: u64,
    /// 1: the document became similar to the watch; -1: it no longer is.
    diff: i8,
    watch: String,
    /// The document.
    id: String,
    similarity: f64,
    /// Of containment, if the two shares differ: the share of the watch's features that this document has.
    #[serde(skip_serializing_if = "Option::is_none")]
    in_id: Option<f64>,
    /// And the share of this document's features that the watch has.
    #[serde(skip_serializing_if = "Option::is_none")]
    of_id: Option<f64>,
}

/// The deliveries to a web hook, since this run began.
#[derive(Serialize, ToSchema)]
#[schema(as = HookShown)]
struct HookShown {
    delivered: u64,
    /// Refused by the receiver: they are in the dead letters.
    refused: u64,
    /// Attempts that failed and were or will be made again.
    retries: u64,
    undelivered: u64,
    /// Age of the oldest undelivered notice, since this run has known of it; 0 if there is none.
    oldest_seconds: f64,
    /// Why the last attempt failed, or why nothing is sent now; null after a success.
    failure: Option<String>,
}

/// The watches.
#[utoipa::path(
    get, path = "/watch",
    params(WatchQuery),
    responses(
        (status = 200, description = "A page of them.", body = WatchPage),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "There is no watch list.", body = ErrorAnswer),
    ),
)]
pub(super) async fn watches(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<WatchQuery>, QueryRejection>,
) -> Result<Json<WatchPage>, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let most = limit(which.limit, LIMIT, MOST)?;
    let book = book(&state)?;
    let (mut page, known) =
        state.read(move || (book.page(which.after.as_deref(), most + 1), book.state())).await?;
    let has_more = page.len() > most;
    page.truncate(most);
    let next = page.last().filter(|_| has_more).map(|entry| entry.id.to_string());
    let shown = page.into_iter().map(|entry| WatchShown {
        id: entry.id.to_string(),
        origin: match entry.origin {
            WatchOrigin::Input => "input",
            WatchOrigin::Posted => "posted",
        },
        bytes: entry.bytes,
    });
    Ok(Json(WatchPage { count: known.watches, watches: shown.collect(), next }))
}

/// Adds a watch, or replaces the text of one that was posted. It is durable when the answer is sent.
#[utoipa::path(
    post, path = "/watch",
    request_body(content = WatchToAdd),
    responses(
        (status = 200, description = "It has another text now.", body = WatchAdded),
        (status = 201, description = "It is new.", body = WatchAdded),
        (status = 400, description = "The body is wrong.", body = ErrorAnswer),
        (status = 404, description = "The document is not alive.", body = ErrorAnswer),
        (status = 409, description = "An input of the list gives a watch of this id.", body = ErrorAnswer),
        (status = 410, description = "The document's source has its text no more.", body = ErrorAnswer),
        (status = 413, description = "The body is too large.", body = ErrorAnswer),
        (
            status = 422,
            description = "The text has no token, or that of the document is too long to be read again.",
            body = ErrorAnswer,
        ),
        (
            status = 501,
            description = "There is no file for posted watches, or the source cannot give texts.",
            body = ErrorAnswer,
        ),
        (
            status = 503,
            description = "The run takes no watches now, or the source cannot be read at this moment.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn add(State(state): State<Arc<RouteState>>, body: Body) -> Result<Response, ErrorAnswer> {
    let book = book(&state)?;
    // Taken before the body is read, since it takes memory.
    let _permit = Arc::clone(&state.bodies).try_acquire_owned().map_err(|_| {
        state.refusals.add(RefusalReason::Bodies);
        ErrorAnswer::busy("too many bodies are being read", 1)
    })?;
    let bytes = read_body(&state, body).await?;
    let watch: WatchToAdd =
        serde_json::from_slice(&bytes).map_err(|error| ErrorAnswer::wrong(error.to_string()))?;
    let of = id(&watch.id)?;
    // A change waits for the disk and for room in the queue.
    let added = match (watch.text, watch.document) {
        (Some(text), None) => state.read_slowly(move || book.add(&of, &text)).await?,
        (None, Some(document)) => {
            let ReadText { text, truncated, .. } = read_record(&state, id(&document)?).await?;
            if truncated {
                let what = format!("the text of {document:?} is too long to be read again as a whole");
                return Err(ErrorAnswer::new(StatusCode::UNPROCESSABLE_ENTITY, what));
            }
            state.read_slowly(move || book.add_document(&of, &text)).await?
        }
        _ => return Err(ErrorAnswer::wrong("a watch has either a \"text\" or a \"document\"")),
    };
    let new = added.map_err(|why| refused(&why))?;
    let status = if new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(WatchAdded { id: watch.id, new })).into_response())
}

/// Ends a watch that was posted. The end is durable when the answer is sent.
#[utoipa::path(
    delete, path = "/watch",
    params(WatchToEnd),
    responses(
        (status = 204, description = "It has ended."),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 404, description = "There is no such watch.", body = ErrorAnswer),
        (status = 409, description = "An input of the list gives it.", body = ErrorAnswer),
        (status = 501, description = "There is no watch list.", body = ErrorAnswer),
        (status = 503, description = "The run takes no watches now.", body = ErrorAnswer),
    ),
)]
pub(super) async fn remove(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<WatchToEnd>, QueryRejection>,
) -> Result<Response, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let book = book(&state)?;
    let of = id(&which.id)?;
    state.read_slowly(move || book.remove(&of)).await?.map_err(|why| refused(&why))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The last notices, and the web hook.
#[utoipa::path(
    get, path = "/notices",
    params(NoticesQuery),
    responses(
        (status = 200, description = "A page of them.", body = NoticesPage),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (status = 501, description = "There is no watch list.", body = ErrorAnswer),
    ),
)]
pub(super) async fn notices(
    State(state): State<Arc<RouteState>>,
    which: Result<Query<NoticesQuery>, QueryRejection>,
) -> Result<Json<NoticesPage>, ErrorAnswer> {
    let Query(which) = which.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let most = limit(which.limit, LIMIT, MOST)?;
    let book = book(&state)?;
    let (mut page, known) = state.read(move || (book.notices(which.before, most + 1), book.state())).await?;
    let has_more = page.len() > most;
    page.truncate(most);
    let next = page.last().filter(|_| has_more).map(|notice| notice.number);
    let shown = page.into_iter().map(|one| {
        let SharesBeside { in_id, of_id } = SharesBeside::new(one.notice.of.similarity);
        NoticeShown {
            number: one.number,
            epoch: one.epoch,
            diff: one.notice.diff,
            watch: one.notice.of.watch.to_string(),
            id: one.notice.of.id.to_string(),
            similarity: one.notice.of.similarity.get(),
            in_id,
            of_id,
        }
    });
    let hook = known.hook.map(|hook| HookShown {
        delivered: hook.delivered,
        refused: hook.refused,
        retries: hook.retries,
        undelivered: hook.undelivered,
        oldest_seconds: hook.oldest_seconds,
        failure: hook.unstored.or(hook.failure),
    });
    Ok(Json(NoticesPage { count: known.notices, notices: shown.collect(), next, hook }))
}

/// The list of the run.
fn book(state: &RouteState) -> Result<Arc<dyn WatchBook>, ErrorAnswer> {
    let what = "this process has no watch list; process 0 of a run with watch.path, watch.inputs, \
        watch.topic or watch.table has one";
    state.subject.watch.clone().ok_or_else(|| ErrorAnswer::new(StatusCode::NOT_IMPLEMENTED, what))
}

fn refused(why: &WatchRefusal) -> ErrorAnswer {
    let status = match why {
        WatchRefusal::Empty => StatusCode::UNPROCESSABLE_ENTITY,
        WatchRefusal::OfInput => StatusCode::CONFLICT,
        WatchRefusal::Unknown => StatusCode::NOT_FOUND,
        WatchRefusal::NotKept => StatusCode::NOT_IMPLEMENTED,
        WatchRefusal::Ended | WatchRefusal::NotDurable(_) => return ErrorAnswer::busy(why.to_string(), 1),
    };
    ErrorAnswer::new(status, why.to_string())
}
