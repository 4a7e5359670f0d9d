//! Lists as files: all rows of a list as CSV or JSON Lines, sent while they are read.
//!
//! A client asks by `format=csv` or `format=jsonl`, or by `Accept: text/csv` or `application/x-ndjson`. The
//! answer is the whole list, not a page. It is read in pieces, each of the end of one epoch; rows that change
//! meanwhile are as in the piece that has them. An export that cannot be completed is cut off: the client
//! sees an error of the connection, never a list that looks complete.
//!
//! CSV: RFC 4180, the first line has the names of the columns. A text that begins with `=`, `+`, `-`, `@`, a
//! tab, a carriage return or a line feed has an apostrophe before it: spreadsheets would take it for a
//! formula. JSON Lines has every text unchanged.

mod format;
mod rows;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hyper::body::Frame;
use tokio::sync::mpsc;

use super::{ErrorAnswer, RouteState};
use crate::View;
use crate::guard::refusals::RefusalReason;

pub(super) use format::ListFormat;
pub(super) use rows::{ListCell, ListRow};

/// Rows that are read at once, at most.
pub(super) const ROWS: usize = 1000;

/// A list that is read piece by piece.
pub(super) struct ListExport<R> {
    /// The name of the list, in the name of the file.
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    pub(super) format: ListFormat,
    /// Reads the next rows, at most [`ROWS`], and says whether they are the last ones.
    pub(super) read: R,
}

impl<R> ListExport<R>
where
    R: FnMut(&View) -> (Vec<ListRow>, bool) + Send + 'static,
{
    /// The answer, which is filled while it is sent.
    pub(super) fn answer(self, state: &Arc<RouteState>, view: Arc<View>) -> Result<Response, ErrorAnswer> {
        let room = Arc::clone(&state.streams).try_acquire_owned();
        let permit = room.map_err(|_| {
            state.refusals.add(RefusalReason::Streams);
            ErrorAnswer::busy("too many streams are open", 5)
        })?;
        let Self { name, columns, format, read } = self;
        let file = format!("dupflow-{name}-{}.{}", view.epoch(), format.extension());
        let (out, pieces) = mpsc::channel(1);
        let state = Arc::clone(state);
        tokio::spawn(async move {
            fill(&state, &view, columns, format, read, out).await;
            drop(permit);
        });
        let disposition = format!("attachment; filename=\"{file}\"");
        let headers =
            [(header::CONTENT_TYPE, format.kind().to_owned()), (header::CONTENT_DISPOSITION, disposition)];
        Ok((headers, Body::new(ExportBody(pieces))).into_response())
    }
}

/// Sends all rows. The sender of an export that fails sends an error before it is dropped.
async fn fill<R>(
    state: &RouteState,
    view: &Arc<View>,
    columns: &'static [&'static str],
    format: ListFormat,
    mut read: R,
    out: mpsc::Sender<Result<Bytes, ExportFailed>>,
) where
    R: FnMut(&View) -> (Vec<ListRow>, bool) + Send + 'static,
{
    let mut head = if format == ListFormat::Csv { rows::csv_header(columns) } else { Vec::new() };
    loop {
        let mut rendered = std::mem::take(&mut head);
        let piece = move |locked: &View| {
            let (found, is_last) = read(locked);
            found.iter().for_each(|row| rows::write(row, columns, format, &mut rendered));
            (read, rendered, is_last)
        };
        let Ok((again, filled, is_last)) = state.read_view(Arc::clone(view), piece).await else {
            drop(out.send(Err(ExportFailed)).await);
            return;
        };
        read = again;
        if (!filled.is_empty() && out.send(Ok(filled.into())).await.is_err()) || is_last {
            return;
        }
    }
}

/// The rest of an export cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the export could not be completed")]
struct ExportFailed;

/// A body that is sent while it is filled.
struct ExportBody(mpsc::Receiver<Result<Bytes, ExportFailed>>);

impl HttpBody for ExportBody {
    type Data = Bytes;
    type Error = ExportFailed;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}

/// Refuses parameters of a page beside a format of a file.
pub(super) fn check_whole(is_page: bool) -> Result<(), ErrorAnswer> {
    let why = "a file has the whole list: after, limit and tail are for pages and streams";
    if is_page { Err(ErrorAnswer::wrong(why)) } else { Ok(()) }
}
