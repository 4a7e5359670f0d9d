//! The route of the stream of deltas.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{ErrorAnswer, RouteState};
use crate::guard::refusals::RefusalReason;
use crate::stream::{Begin, BodyStream, DeltaReader};
use crate::view::render;

/// Where the stream begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeltasQuery {
    /// The id of the last event received, as RUN-EPOCH. The header `Last-Event-ID` takes precedence.
    after: Option<String>,
    /// A number of deltas: the stream begins with up to so many of the last deltas, perhaps within an epoch,
    /// and has no snapshots. Any other value: only deltas from now on.
    tail: Option<String>,
}

/// The deltas as they become durable, as server-sent events.
///
/// Without `after`, `Last-Event-ID` and `tail` the stream begins with a snapshot of all pairs.
///
/// - `epoch`: accumulate `deltas`. If `more` is greater than 0, further events of the same epoch follow, and
///   only the last one has an id.
/// - `snapshot`: if `first` is true, discard everything received before. Until an event whose `last` is true,
///   `epoch` events contain the changes of those pairs of the snapshot that were already sent.
/// - `dropped`: the reader was too slow. A snapshot follows, except with `tail`.
/// - `bye`: the run ends.
#[utoipa::path(
    get, path = "/deltas",
    params(DeltasQuery),
    responses(
        (status = 200, description = "The stream.", content_type = "text/event-stream"),
        (status = 400, description = "The query is wrong.", body = ErrorAnswer),
        (
            status = 501, description = "It would begin with a snapshot, and pairs are not kept.",
            body = ErrorAnswer,
        ),
        (
            status = 503, description = "Too many streams are open, or the run is not live yet.",
            body = ErrorAnswer,
        ),
    ),
)]
pub(super) async fn deltas(
    State(state): State<Arc<RouteState>>,
    from: Result<Query<DeltasQuery>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, ErrorAnswer> {
    let Query(from) = from.map_err(|error| ErrorAnswer::wrong(error.body_text()))?;
    let view = state.subject.view.clone().ok_or_else(|| ErrorAnswer::not_here("deltas"))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = last.or(from.after).filter(|id| !id.is_empty());
    let after = after.as_deref().map(|id| {
        render::place(id).ok_or_else(|| ErrorAnswer::wrong("after: expected RUN-EPOCH, the id of an event"))
    });
    let tail = from.tail.as_ref().map(|tail| tail.parse().unwrap_or(0));
    let begin = Begin::new(&view, after.transpose()?, tail).map_err(|why| ErrorAnswer::unseen(&why))?;
    let room = Arc::clone(&state.streams).try_acquire_owned();
    let permit = room.map_err(|_| {
        state.refusals.add(RefusalReason::Streams);
        ErrorAnswer::busy("too many streams of deltas are open", 5)
    })?;
    let (out, body) = BodyStream::open();
    let ending = state.ending.clone();
    let reader = DeltaReader { view, is_resumable: from.tail.is_none(), out, ending, permit };
    tokio::spawn(reader.serve(begin));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}
