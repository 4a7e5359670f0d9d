//! Distinguishes a read that failed from damaged content.
//!
//! Decoders report both as errors of their own, or as an early end. So the first read error is kept beside
//! the stored bytes, and is asked for before a bad record is counted: what a disk or a store fails to
//! bring is no bad record, since another run may get it.

use std::fmt;
use std::io::{self, Read};
use std::sync::{Arc, OnceLock};

use super::random_access::RandomAccess;

/// The first read error of the inputs of one reader.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadFailure(Arc<OnceLock<FailedRead>>);

/// A read that failed.
#[derive(Clone, Debug)]
pub(crate) struct FailedRead {
    /// The name of the input.
    pub(crate) input: Arc<str>,
    /// The error.
    pub(crate) what: String,
}

impl ReadFailure {
    /// The first error so far.
    pub(crate) fn get(&self) -> Option<&FailedRead> {
        self.0.get()
    }

    /// Keeps an error of this input, unless an earlier one is kept.
    pub(crate) fn note(&self, input: &Arc<str>, error: &io::Error) {
        if error.kind() != io::ErrorKind::Interrupted {
            self.0.get_or_init(|| FailedRead { input: Arc::clone(input), what: error.to_string() });
        }
    }

    /// Stored bytes of this input, of which the first error is kept.
    pub(crate) fn guard<S>(&self, input: &Arc<str>, stored: S) -> Guarded<S> {
        Guarded { stored, input: Arc::clone(input), failure: self.clone() }
    }
}

/// Stored bytes whose first read error is kept.
pub(crate) struct Guarded<S> {
    stored: S,
    input: Arc<str>,
    failure: ReadFailure,
}

impl<S: Read> Read for Guarded<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.stored.read(out).inspect_err(|error| self.failure.note(&self.input, error))
    }
}

impl RandomAccess for Guarded<Arc<dyn RandomAccess>> {
    fn bytes(&self) -> u64 {
        self.stored.bytes()
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.stored.read_at(from, buffer).inspect_err(|error| {
            // A place beyond the end is one that damaged content names.
            if from.checked_add(buffer.len() as u64).is_some_and(|end| end <= self.bytes()) {
                self.failure.note(&self.input, error);
            }
        })
    }
}

impl<S> fmt::Debug for Guarded<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded").field("input", &self.input).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::super::random_access::InMemory;
    use super::*;

    #[test]
    fn the_first_failed_read_is_kept_and_a_place_beyond_the_end_is_content() {
        struct Broken(&'static str);
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other(self.0))
            }
        }
        let failure = ReadFailure::default();
        let bytes: Arc<dyn RandomAccess> = Arc::new(InMemory::new(Arc::from(&b"0123"[..])));
        let guarded = failure.guard(&"a".into(), bytes);
        assert!(guarded.read_at(2, &mut [0; 3]).is_err() && failure.get().is_none());
        for (input, what) in [("b", "one"), ("c", "two")] {
            assert!(failure.guard(&input.into(), Broken(what)).read(&mut [0]).is_err());
        }
        let FailedRead { input, what } = failure.get().unwrap();
        assert_eq!((&**input, &**what), ("b", "one"));
    }
}
