//! A list of fingerprints of one length.

/// A corpus of fingerprints; an id is a position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprints {
    bits: usize,
    stride: usize,
    words: Vec<u64>,
}

impl Fingerprints {
    /// An empty list of fingerprints of `bits` bits, at least 1.
    ///
    /// # Panics
    /// If `bits` is 0.
    pub fn new(bits: usize) -> Self {
        assert!(bits > 0, "fingerprints without a bit");
        Self { bits, stride: bits.div_ceil(64), words: Vec::new() }
    }

    /// Appends a fingerprint: its `ceil(bits / 64)` words, with unused bits 0.
    ///
    /// # Panics
    /// If the number of words is wrong, or if there are already 2^32 - 1 fingerprints.
    pub fn push(&mut self, words: &[u64]) {
        assert_eq!(words.len(), self.stride, "words of a fingerprint of {} bits", self.bits);
        debug_assert!(self.bits.is_multiple_of(64) || words[self.stride - 1] >> (self.bits % 64) == 0);
        assert!(u32::try_from(self.len() + 1).is_ok(), "ids have 32 bits");
        self.words.extend_from_slice(words);
    }

    /// f.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// Words of one fingerprint.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// Number of fingerprints.
    pub fn len(&self) -> usize {
        self.words.len() / self.stride
    }

    /// Whether there is no fingerprint.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The words of a fingerprint.
    ///
    /// # Panics
    /// If there is no such id.
    #[inline]
    pub fn get(&self, id: u32) -> &[u64] {
        let start = id as usize * self.stride;
        &self.words[start..start + self.stride]
    }

    /// All fingerprints with their ids.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, &[u64])> + Clone {
        // Ids have 32 bits, see `push`.
        (0..u32::MAX).zip(self.words.chunks_exact(self.stride))
    }
}
