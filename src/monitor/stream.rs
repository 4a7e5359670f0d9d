//! The deltas as they become durable, to readers who stay: server-sent events.
//!
//! A reader says from where: behind an epoch that it knows (`after`, or the header `Last-Event-ID`), from a
//! snapshot of all pairs (nothing), or from now on (`tail`). What is held of the deltas after that epoch is
//! sent at once; where some of it is gone, or the id is of another run, a snapshot takes its place. So what a
//! reader accumulates, over any number of connections and restarts of the run, is what the output holds, if
//! it does what the events say.
//!
//! A reader that falls behind what is held is told how much it has missed (`dropped`), and gets a snapshot
//! unless it asked for the tail. Frames are rendered once and shared; a reader costs a task, its place, and
//! what its connection has in flight.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::time::sleep;

use super::view::{Place, Step, Unseen, View, render, walk};
use dupflow_core::time::Epoch;

/// How long a stream is silent at most.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Bytes of frames that are taken from the view at once, about.
const AT_ONCE: usize = 256 << 10;

/// Where a reader begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Begin {
    /// At a place that it knows, or where the deltas are now.
    At(Place),
    /// With all pairs.
    Snapshot,
}

impl Begin {
    /// Where a reader begins that has had the events of a run up to an epoch, or none, and wants everything
    /// or just what comes.
    ///
    /// # Errors
    /// If the run is not live; if that would be a snapshot, and there is none.
    pub(super) fn of(view: &View, after: Option<(&str, Epoch)>, is_tail: bool) -> Result<Self, Unseen> {
        if is_tail {
            view.is_filled()?;
        }
        let known = after.filter(|(run, _)| *run == view.run());
        match known.and_then(|(_, epoch)| view.after(epoch)) {
            Some(place) => Ok(Self::At(place)),
            None if is_tail => Ok(Self::At(view.end())),
            None => view.sees().map(|()| Self::Snapshot),
        }
    }
}

/// A body that is made while it is sent.
pub(super) struct Flow(mpsc::Receiver<Bytes>);

impl Flow {
    /// A body, and what fills it: that waits while nobody takes more.
    pub(super) fn open() -> (mpsc::Sender<Bytes>, Body) {
        let (fill, frames) = mpsc::channel(1);
        (fill, Body::new(Self(frames)))
    }
}

impl HttpBody for Flow {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A reader.
pub(super) struct Reader {
    pub(super) view: Arc<View>,
    /// Whether it is to have everything, and not just what comes.
    pub(super) is_resumable: bool,
    pub(super) out: mpsc::Sender<Bytes>,
    /// True once the run ends.
    pub(super) ending: watch::Receiver<bool>,
    /// Its room among the streams.
    pub(super) permit: OwnedSemaphorePermit,
}

/// The reader is gone.
struct Gone;

impl Reader {
    /// Serves the reader until it is gone or the run ends.
    pub(super) async fn serve(mut self, begin: Begin) {
        // That the reader is gone is no news to anyone.
        drop(self.tell(begin).await);
        drop(self.permit);
    }

    async fn tell(&mut self, mut begin: Begin) -> Result<(), Gone> {
        // So that whoever connects sees that it has, whatever lies between.
        self.send(Bytes::from_static(render::HEARTBEAT)).await?;
        let mut taken = self.view.taken();
        loop {
            let place = match begin {
                Begin::At(place) => place,
                Begin::Snapshot => self.snapshot().await?,
            };
            taken.borrow_and_update();
            match self.view.since(place, AT_ONCE) {
                Err(first) => {
                    let (epochs, deltas) = place.until(first);
                    self.send(render::dropped(epochs, deltas).into()).await?;
                    begin = match self.is_resumable {
                        false => Begin::At(first),
                        true if self.view.sees().is_ok() => Begin::Snapshot,
                        // It can come again, and is told why there are no pairs.
                        true => return Ok(()),
                    };
                }
                Ok(pieces) if pieces.is_empty() => {
                    begin = Begin::At(place);
                    if *self.ending.borrow() {
                        return self.send(render::bye().into()).await;
                    }
                    tokio::select! {
                        changed = taken.changed() => changed.map_err(|_| Gone)?,
                        // Whether it has been said or its sender is gone.
                        _ = self.ending.changed() => {}
                        () = self.out.closed() => return Err(Gone),
                        () = sleep(HEARTBEAT) => self.send(Bytes::from_static(render::HEARTBEAT)).await?,
                    }
                }
                Ok(pieces) => {
                    let mut at = place;
                    for piece in pieces {
                        self.send(piece.frame.clone()).await?;
                        at = at.behind(&piece);
                    }
                    begin = Begin::At(at);
                }
            }
        }
    }

    /// Tells all pairs; returns from where deltas follow.
    async fn snapshot(&mut self) -> Result<Place, Gone> {
        let mut walk = self.view.walk();
        loop {
            // Between two epochs, so that a snapshot is of the end of one.
            let Ok(whole) = self.view.whole().await else { continue };
            let step = self.view.step(&mut walk);
            drop(whole);
            let Step::Told { pieces, cursor, is_first, pairs, epoch, end } = step else { continue };
            for piece in pieces {
                let mut needed = walk::needed(&piece, cursor.as_ref()).peekable();
                if needed.peek().is_some() {
                    let frame = render::within(piece.epoch, needed);
                    self.send(frame.into()).await?;
                }
            }
            let ends_at = end.and_then(|(_, is_whole)| is_whole.then_some(epoch));
            let frame = render::snapshot(self.view.run(), epoch, &pairs, (is_first, end.is_some()), ends_at);
            self.send(frame.into()).await?;
            if let Some((place, _)) = end {
                return Ok(place);
            }
        }
    }

    async fn send(&self, frame: Bytes) -> Result<(), Gone> {
        self.out.send(frame).await.map_err(|_| Gone)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
