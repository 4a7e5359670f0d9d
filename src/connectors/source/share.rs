//! What one of several processes reads of recorded inputs.

/// What one of several processes reads of recorded inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The process, from 0.
    pub index: usize,
    /// Processes, 1 or more.
    pub count: usize,
    /// Whether each process reads all records, cuts them alike, and hands over every so many-th batch.
    /// Otherwise process 0 reads alone.
    pub reads_all: bool,
}

impl Share {
    /// All, by one process.
    pub const ALL: Self = Self { index: 0, count: 1, reads_all: true };

    /// Whether this process tells of what all find.
    pub(super) fn tells(self) -> bool {
        self.index == 0
    }
}
