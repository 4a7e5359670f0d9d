//! The stream of deltas: server-sent events for readers that stay connected.
//!
//! | the reader sends | the stream begins with |
//! |---|---|
//! | the id of an event (`after`, or the header `Last-Event-ID`) | the deltas after that epoch |
//! | nothing | a snapshot of all pairs |
//! | `tail` | the next deltas |
//! | `tail=N` | the last deltas, up to N of them |
//!
//! An id of an earlier run is as good as one of this run, where the history of that run is stored. If the
//! deltas after an id are not held, the reader receives `dropped`, which names the missing epochs, and a
//! snapshot replaces them; with `tail` there is no snapshot. So a reader that applies the events accumulates
//! the contents of the output, over any number of connections and restarts of the run.
//!
//! A reader that falls behind receives `dropped` with the number of deltas it missed too, then a snapshot, or
//! with `tail` none. Frames are rendered once and shared. A reader costs a task, its position, and what its
//! connection has in flight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::sleep;

use super::view::render::Dropped;
use super::view::{StreamPosition, View, ViewUnavailable, WalkStep, render, walk};
use dupflow_core::time::Epoch;

/// Maximum time between two frames of a stream.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Bytes of frames that are copied from the view at once, approximately.
const AT_ONCE: usize = 256 << 10;

/// Where a stream begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At a position in the deltas; the reader has everything up to this epoch.
    At(StreamPosition, Epoch),
    /// With a snapshot of all pairs.
    Snapshot,
    /// With what the reader misses after its id; then at a position, or with a snapshot.
    Missed(Dropped, Option<(StreamPosition, Epoch)>),
}

impl Begin {
    /// Where a reader begins. `after` is the run and the epoch of the last event it has; `tail` asks for
    /// deltas only, beginning with up to so many of the last ones.
    ///
    /// # Errors
    /// If the run is not live; if a snapshot would be needed and pairs are not kept.
    pub(super) fn new(
        view: &View,
        after: Option<(&str, Epoch)>,
        tail: Option<u64>,
    ) -> Result<Self, ViewUnavailable> {
        if tail.is_some() {
            view.check_filled()?;
        }
        if after.is_some() {
            // Until the run is live the view may not know the ids of earlier runs.
            view.check_filled()?;
        }
        if let Some((run, epoch)) = after
            && let Some(place) = view.after(run, epoch)
        {
            return Ok(Self::At(place, epoch));
        }
        let end = tail.map(|deltas| view.last(deltas));
        if tail.is_none() {
            view.check_pairs()?;
        }
        match (after, end) {
            (Some((run, epoch)), end) => Ok(Self::Missed(view.missed(run, epoch), end)),
            (None, Some((place, epoch))) => Ok(Self::At(place, epoch)),
            (None, None) => Ok(Self::Snapshot),
        }
    }
}

/// A response body whose frames are sent while it is read.
pub(super) struct BodyStream(mpsc::Receiver<Bytes>);

impl BodyStream {
    /// A body and the sender of its frames. The channel holds one frame: the sender waits for the client.
    pub(super) fn open() -> (mpsc::Sender<Bytes>, Body) {
        let (fill, frames) = mpsc::channel(1);
        (fill, Body::new(Self(frames)))
    }
}

impl HttpBody for BodyStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A reader of the stream, and its connection.
pub(super) struct DeltaReader {
    pub(super) view: Arc<View>,
    /// Whether it receives a snapshot if it falls behind; false with `tail`.
    pub(super) is_resumable: bool,
    pub(super) out: mpsc::Sender<Bytes>,
    /// True once the run ends.
    pub(super) ending: watch::Receiver<bool>,
    /// Its permit of [`MonitorLimits::streams`](super::MonitorLimits).
    pub(super) permit: OwnedSemaphorePermit,
}

/// The client has disconnected.
struct Disconnected;

impl DeltaReader {
    /// Serves the reader until it disconnects or the run ends.
    pub(super) async fn serve(mut self, begin: Begin) {
        // A client that disconnects is not an error.
        drop(self.follow(begin).await);
        drop(self.permit);
    }

    async fn follow(&mut self, mut begin: Begin) -> Result<(), Disconnected> {
        // The first bytes show the client that it is connected, even if there are no deltas yet.
        self.send(Bytes::from_static(render::HEARTBEAT)).await?;
        let mut applied = self.view.applied();
        loop {
            let (place, last) = match begin {
                Begin::At(place, last) => (place, last),
                Begin::Snapshot => self.snapshot().await?,
                Begin::Missed(what, then) => {
                    self.send(render::dropped(what).into()).await?;
                    begin = then.map_or(Begin::Snapshot, |(place, last)| Begin::At(place, last));
                    continue;
                }
            };
            applied.borrow_and_update();
            match self.view.since(place, AT_ONCE) {
                Err((first, through)) => {
                    let (epochs, deltas) = place.until(first);
                    let (epochs, deltas) = (Some(epochs), Some(deltas));
                    let what = Dropped { epochs, deltas, after: Some(last), through };
                    self.send(render::dropped(what).into()).await?;
                    begin = match self.is_resumable {
                        false => Begin::At(first, through.unwrap_or(last)),
                        true if self.view.check_pairs().is_ok() => Begin::Snapshot,
                        // The client can reconnect; the answer then says why there are no pairs.
                        true => return Ok(()),
                    };
                }
                Ok(pieces) if pieces.is_empty() => {
                    begin = Begin::At(place, last);
                    if *self.ending.borrow() {
                        return self.send(render::bye().into()).await;
                    }
                    tokio::select! {
                        changed = applied.changed() => changed.map_err(|_| Disconnected)?,
                        // The run ends, or the sender of `ending` was dropped.
                        _ = self.ending.changed() => {}
                        () = self.out.closed() => return Err(Disconnected),
                        () = sleep(HEARTBEAT) => self.send(Bytes::from_static(render::HEARTBEAT)).await?,
                    }
                }
                Ok(pieces) => {
                    let (mut at, mut last) = (place, last);
                    for piece in pieces {
                        self.send(piece.frame.clone()).await?;
                        at = at.after_piece(&piece);
                        last = if piece.is_last { piece.epoch } else { last };
                    }
                    begin = Begin::At(at, last);
                }
            }
        }
    }

    /// Sends all pairs; returns the position of the deltas that follow, and the epoch of the pairs.
    async fn snapshot(&mut self) -> Result<(StreamPosition, Epoch), Disconnected> {
        let mut walk = self.view.walk();
        loop {
            // Waits for the end of an epoch, so that a snapshot is of the end of one.
            let Ok(guard) = self.view.end_of_epoch().await else { continue };
            let step = self.view.step(&mut walk);
            drop(guard);
            let WalkStep::Chunk { pieces, cursor, is_first, pairs, epoch, end } = step else { continue };
            for piece in pieces {
                let mut needed = walk::needed(&piece, cursor.as_ref()).peekable();
                if needed.peek().is_some() {
                    let frame = render::within(piece.epoch, needed);
                    self.send(frame.into()).await?;
                }
            }
            let ends_at = end.and_then(|(_, is_whole)| is_whole.then_some(epoch));
            let frame = render::snapshot(self.view.run(), epoch, &pairs, is_first, end.is_some(), ends_at);
            self.send(frame.into()).await?;
            if let Some((place, _)) = end {
                return Ok((place, epoch));
            }
        }
    }

    async fn send(&self, frame: Bytes) -> Result<(), Disconnected> {
        self.out.send(frame).await.map_err(|_| Disconnected)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
