//! The stream of deltas.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Asked, Failure};
use crate::refusals::Refused;
use crate::stream::{Begin, Flow, Reader};
use crate::view::render;

/// From where.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct From {
    /// The last id that the reader has had, as RUN-EPOCH; the header `Last-Event-ID` counts more.
    after: Option<String>,
    /// Anything: only what comes from now on, and no snapshots.
    tail: Option<String>,
}

/// The deltas as they become durable, as server-sent events.
///
/// Without `after`, `Last-Event-ID` and `tail` it begins with a snapshot of all pairs. `epoch` events: add up
/// `deltas`; where `more` is greater than 0 further ones of the same epoch follow, and only the last one has
/// an id. `snapshot` events: one whose `first` is true makes all that was known void; until the one whose
/// `last` is true, `epoch` events tell what has changed meanwhile of the pairs told so far. `dropped`: the
/// reader was too slow; a snapshot follows, unless it asked for the tail. `bye`: the run ends.
#[utoipa::path(get, path = "/deltas", params(From), responses((status = 200, description = "The stream.", content_type = "text/event-stream"),
    (status = 400, description = "The query is wrong.", body = Failure), (status = 501, description = "It would begin with a snapshot, and pairs are not kept.", body = Failure),
    (status = 503, description = "Too many streams are open, or the run is not live yet.", body = Failure)))]
pub(super) async fn deltas(
    State(asked): State<Arc<Asked>>,
    from: Result<Query<From>, QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let Query(from) = from.map_err(|error| Failure::wrong(error.body_text()))?;
    let view = asked.subject.view.clone().ok_or_else(|| Failure::not_here("deltas"))?;
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = last.or(from.after).filter(|id| !id.is_empty());
    let after = after.as_deref().map(|id| {
        render::place(id).ok_or_else(|| Failure::wrong("after: expected RUN-EPOCH, the id of an event"))
    });
    let begin =
        Begin::of(&view, after.transpose()?, from.tail.is_some()).map_err(|why| Failure::unseen(&why))?;
    let room = Arc::clone(&asked.streams).try_acquire_owned();
    let permit = room.map_err(|_| {
        asked.refusals.add(Refused::Streams);
        Failure::busy("too many streams of deltas are open", 5)
    })?;
    let (out, body) = Flow::open();
    let ending = asked.ending.clone();
    let reader = Reader { view, is_resumable: from.tail.is_none(), out, ending, permit };
    tokio::spawn(reader.serve(begin));
    Ok(([(header::CONTENT_TYPE, "text/event-stream")], body).into_response())
}
