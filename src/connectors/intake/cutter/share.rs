//! Which part of recorded inputs one of several processes reads.

/// Which part of recorded inputs one of several processes reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The process, from 0.
    pub index: usize,
    /// Number of processes, at least 1.
    pub count: usize,
    /// Whether each process reads all records, cuts them at the same places, and pushes every `count`-th
    /// batch. Otherwise process 0 reads alone.
    pub reads_all: bool,
}

impl Share {
    /// Everything, in a single process.
    pub const ALL: Self = Self { index: 0, count: 1, reads_all: true };

    /// Whether this process reports what all processes find.
    pub(crate) fn reports(self) -> bool {
        self.index == 0
    }
}
