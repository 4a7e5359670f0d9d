//! What a restarted run has to read before it is live: lines.
//!
//! A run that continues an earlier one first restores the stored documents, then repeats the input from there
//! up to the mark of the output. The end of each step is a **line**: no record beyond it is read before
//! everything before it has been, in all partitions and all processes. A line is between two epochs. After
//! the last line the run is live.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use dupflow_core::time::{Epoch, Offsets};

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CatchUpLine {
    /// After all restored documents.
    Restored,
    /// At these offsets, exclusive: each partition is read up to there, and up to the end of what is there if
    /// the offset is [`u64::MAX`]. A partition that is not named has nothing before the line.
    Offsets(Offsets),
}

/// The lines that have not been crossed, and what is still missing before the next one.
#[derive(Clone, Debug, Default)]
pub struct CatchUp {
    lines: VecDeque<CatchUpLine>,
    /// Number of lines crossed.
    crossed: u32,
    /// This process has reached the next line and waits for the others.
    waits: bool,
}

impl CatchUp {
    /// These lines, in this order.
    pub fn new(lines: impl IntoIterator<Item = CatchUpLine>) -> Self {
        Self { lines: lines.into_iter().collect(), crossed: 0, waits: false }
    }

    /// The same lines, restricted to partitions that this process reads.
    #[must_use]
    pub fn here(mut self, is_here: impl Fn(u32) -> bool) -> Self {
        for line in &mut self.lines {
            if let CatchUpLine::Offsets(left) = line {
                left.retain(|partition, _| is_here(*partition));
            }
        }
        self
    }

    /// Whether there is no line left.
    pub fn is_live(&self) -> bool {
        self.lines.is_empty()
    }

    /// The number of the next line, from 0.
    pub(crate) fn number(&self) -> u32 {
        self.crossed
    }

    /// Whether the record before the offset `next` in this partition is beyond the next line.
    pub(crate) fn holds(&self, partition: u32, next: u64) -> bool {
        match self.lines.front() {
            None => false,
            Some(CatchUpLine::Restored) => true,
            Some(CatchUpLine::Offsets(left)) => left.get(&partition).is_none_or(|line| *line < next),
        }
    }

    /// The offset of the next line in this partition, exclusive, if there is one; 0 if the partition has
    /// nothing before it.
    pub(crate) fn of_partition(&self, partition: u32) -> Option<u64> {
        let offsets = self.lines.iter().find_map(|line| match line {
            CatchUpLine::Restored => None,
            CatchUpLine::Offsets(left) => Some(left),
        });
        offsets.map(|left| left.get(&partition).copied().unwrap_or(0))
    }

    /// Notes that a partition has been read up to `next`, exclusive.
    pub(crate) fn read(&mut self, partition: u32, next: u64) {
        if let Some(CatchUpLine::Offsets(left)) = self.lines.front_mut()
            && left.get(&partition).is_some_and(|line| *line <= next)
        {
            left.remove(&partition);
        }
    }

    /// Notes that a partition has been read to the end of what is there.
    pub(crate) fn at_end(&mut self, partition: u32) {
        for line in &mut self.lines {
            if let CatchUpLine::Offsets(left) = line {
                left.retain(|of, up_to| *of != partition || *up_to < u64::MAX);
            }
        }
    }

    /// Notes that all documents have been restored.
    pub(crate) fn restored(&mut self) {
        if let Some(line @ CatchUpLine::Restored) = self.lines.front_mut() {
            *line = CatchUpLine::Offsets(Offsets::new());
        }
    }

    /// Whether this process has just reached the next line; true once for each line.
    pub(crate) fn reaches(&mut self) -> bool {
        let reached = matches!(self.lines.front(), Some(CatchUpLine::Offsets(left)) if left.is_empty());
        reached && !std::mem::replace(&mut self.waits, true)
    }

    /// Removes the next line, which all processes have reached.
    pub(crate) fn cross(&mut self) {
        self.lines.pop_front();
        self.crossed += 1;
        self.waits = false;
    }
}

/// The other processes of a run. Called under the lock of the queue: an implementation must not wait, nor use
/// the queue.
pub trait Peers: Send + Sync {
    /// This process has opened an epoch: the others follow by [`Queue::follow`](super::Queue::follow).
    fn opened(&self, epoch: Epoch);

    /// This process has read everything before a line, with this epoch open. Once all processes have, each
    /// one [crosses](super::Queue::cross) the line at the same epoch.
    fn reached(&self, line: u32, epoch: Epoch);
}
