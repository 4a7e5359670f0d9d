//! What a run has to read before it is live: its own past.
//!
//! A run that goes on where another one ended first takes the documents that were kept, then repeats the
//! input from there up to where the output stands. Each is a **line**: no record from beyond it is read
//! before everything this side of it has been, in all partitions and all processes; and it lies between two
//! epochs. Behind the last one the run is live.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use dupflow_core::time::{Epoch, Offsets};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// Behind all documents that are restored.
    Restored,
    /// Behind these offsets: each partition is read up to there, exclusive. One that is not named has nothing
    /// this side of it.
    Offsets(Offsets),
}

/// The lines that are ahead, with what is still missing this side of the next one.
#[derive(Clone, Debug, Default)]
pub struct Ahead {
    lines: VecDeque<Line>,
    /// Lines crossed.
    crossed: u32,
    /// The next line has been reached here, and others are waited for.
    waits: bool,
}

impl Ahead {
    /// These, in this order.
    pub fn of(lines: impl IntoIterator<Item = Line>) -> Self {
        Self { lines: lines.into_iter().collect(), crossed: 0, waits: false }
    }

    /// Of these lines what concerns partitions that are read here.
    #[must_use]
    pub fn here(mut self, is_here: impl Fn(u32) -> bool) -> Self {
        for line in &mut self.lines {
            if let Line::Offsets(left) = line {
                left.retain(|partition, _| is_here(*partition));
            }
        }
        self
    }

    /// Whether no line is ahead.
    pub fn is_live(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of the next line, from 0.
    pub(super) fn number(&self) -> u32 {
        self.crossed
    }

    /// Whether a record of this partition, the one before the offset `next`, lies beyond the next line.
    pub(super) fn holds(&self, partition: u32, next: u64) -> bool {
        match self.lines.front() {
            None => false,
            Some(Line::Restored) => true,
            Some(Line::Offsets(left)) => left.get(&partition).is_none_or(|line| *line < next),
        }
    }

    /// The offset of the line in this partition, exclusive, if one is ahead; 0 if nothing of it lies this
    /// side.
    pub(super) fn of_partition(&self, partition: u32) -> Option<u64> {
        let offsets = self.lines.iter().find_map(|line| match line {
            Line::Restored => None,
            Line::Offsets(left) => Some(left),
        });
        offsets.map(|left| left.get(&partition).copied().unwrap_or(0))
    }

    /// A partition has been read up to `next`, exclusive.
    pub(super) fn read(&mut self, partition: u32, next: u64) {
        if let Some(Line::Offsets(left)) = self.lines.front_mut()
            && left.get(&partition).is_some_and(|line| *line <= next)
        {
            left.remove(&partition);
        }
    }

    /// All documents have been restored.
    pub(super) fn restored(&mut self) {
        if let Some(line @ Line::Restored) = self.lines.front_mut() {
            *line = Line::Offsets(Offsets::new());
        }
    }

    /// Whether the next line has just been reached here; true once for each.
    pub(super) fn reaches(&mut self) -> bool {
        let reached = matches!(self.lines.front(), Some(Line::Offsets(left)) if left.is_empty());
        reached && !std::mem::replace(&mut self.waits, true)
    }

    /// Everybody has reached it.
    pub(super) fn cross(&mut self) {
        self.lines.pop_front();
        self.crossed += 1;
        self.waits = false;
    }
}

/// Who else takes part in a run: other processes. Called under the queue's lock: it must not wait, nor use
/// the queue.
pub trait Peers: Send + Sync {
    /// An epoch has been opened here: the others are to follow, by [`Queue::follow`](super::Queue::follow).
    fn opened(&self, epoch: Epoch);

    /// Here all this side of a line has been read, with this epoch open. Once all have, all are told to
    /// [cross](super::Queue::cross) it, at one epoch.
    fn reached(&self, line: u32, epoch: Epoch);
}
