//! The route of the stream of deltas.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use super::export::{ListCell, ListExport, ListFormat, ListRow, check_whole};
use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::guard::refusals::RefusalReason;
use crate::stream::{Begin, BodyStream, DeltaReader};
use crate::subject::Pipeline;
use crate::view::{DeltaPiece, render};
use dupflow_core::pair::Delta;

/// Where the stream begins.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeltasQuery {
    /// The id of the last event received, as RUN-EPOCH. The header `Last-Event-ID` takes precedence.
    after: Option<String>,
    /// A number of deltas: the stream begins with up to so many of the last deltas, perhaps within an epoch,
    /// and has no snapshots. An empty value: only deltas from now on.
    tail: Option<String>,
    /// `csv` or `jsonl`: the deltas that are held, as a file that ends. Default: the stream; the header
    /// `Accept` does not matter.
    format: Option<ListFormat>,
}

/// The deltas as they become durable, as server-sent events.
///
/// Without `after`, `Last-Event-ID` and `tail` the stream begins with a snapshot of all pairs.
///
/// - `epoch`: accumulate `deltas`. If `more` is greater than 0, further events of the same epoch follow, and
///   only the last one has an id.
/// - `snapshot`: if `first` is true, discard everything received before. Until an event with `last` true,
///   `epoch` events contain the changes of those pairs of the snapshot that were already sent.
/// - `dropped`: the reader was too slow. A snapshot follows, except with `tail`.
/// - `bye`: the run ends.
#[utoipa::path(
    get, path = "/deltas",
    params(DeltasQuery),
    responses(
        (
            status = 200,
            description = "The stream; with `format` the deltas that are held, as a file.",
            content((String = "text/event-stream"), (String = "text/csv"), (String = "application/x-ndjson")),
        ),
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
    if let Some(format) = ListFormat::of_file(from.format, &HeaderMap::new()) {
        check_whole(from.after.is_some() || from.tail.is_some())?;
        view.check_filled().map_err(|why| ErrorAnswer::unseen(&why))?;
        return export_deltas(&view, format, &state.subject.pipeline).answer(&state, view);
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()).map(str::to_owned);
    let after = last.or(from.after).filter(|id| !id.is_empty());
    let after = after.as_deref().map(|id| {
        render::place(id).ok_or_else(|| ErrorAnswer::wrong("after: expected RUN-EPOCH, the id of an event"))
    });
    let tail = from.tail.as_deref().map(|tail| if tail.is_empty() { Ok(0) } else { tail.parse() });
    let tail = tail.transpose();
    let tail = tail.map_err(|_| ErrorAnswer::wrong("tail: expected a number of deltas, or no value"))?;
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

/// The deltas that are held now, by epoch.
fn export_deltas(
    view: &View,
    format: ListFormat,
    pipeline: &Pipeline,
) -> ListExport<impl FnMut(&View) -> (Vec<ListRow>, bool) + Send + 'static> {
    // What is held is shared, and at most 16 MiB.
    let mut pieces = view.held_deltas().into_iter();
    let (shares, has_reference) = (pipeline.shares, pipeline.has_reference);
    let read = move |_: &View| {
        let piece: Option<Arc<DeltaPiece>> = pieces.next();
        let rows = piece.as_deref().map(|piece| rows(piece, shares, has_reference));
        (rows.unwrap_or_default(), pieces.len() == 0)
    };
    const COLUMNS: &[&str] =
        &["epoch", "at", "event_time", "diff", "a", "b", "similarity", "cause", "old", "in_a", "in_b"];
    ListExport { name: "deltas", columns: &COLUMNS[..if shares { 11 } else { 9 }], format, read }
}

fn rows(piece: &DeltaPiece, shares: bool, has_reference: bool) -> Vec<ListRow> {
    let event_time = piece.times.event.map_or(ListCell::Nothing, |time| ListCell::Number(time.seconds()));
    let row = |delta: &Delta| {
        let [(a, old), (b, _)] =
            [delta.pair.pair.lo(), delta.pair.pair.hi()].map(|id| id.shown(has_reference));
        let [in_b, in_a] = delta.pair.similarity.shares().map(ListCell::Number);
        let mut row = vec![
            ListCell::Whole(piece.epoch),
            ListCell::Number(piece.times.committed),
            event_time.clone(),
            ListCell::Diff(delta.diff),
            ListCell::Text(a.to_owned()),
            ListCell::Text(b.to_owned()),
            ListCell::Number(delta.pair.similarity.get()),
            ListCell::Text(delta.cause.name().to_owned()),
            ListCell::Truth(old.is_some()),
        ];
        row.extend([in_a, in_b].into_iter().filter(|_| shares));
        row
    };
    piece.deltas.iter().map(row).collect()
}
