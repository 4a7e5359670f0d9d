//! Fingerprints that records bring: no sketch is made, the bits are stored.

use crate::sketch::sampler::Sketcher;
use crate::text::Features;

/// Packs the features of a [given](crate::text::Given) fingerprint, 2i + v for the value v of bit i, into
/// words, bit 0 the lowest.
#[derive(Clone, Debug)]
pub(in crate::sketch) struct Fingerprint {
    /// Number of bits.
    pub(in crate::sketch) size: usize,
}

impl Sketcher for Fingerprint {
    fn sketch(&mut self, features: Features<'_>, words: &mut Vec<u64>) {
        let first = words.len();
        words.resize(first + self.size.div_ceil(64), 0);
        for set in features.ids.iter().filter(|id| *id & 1 == 1) {
            let place = (set >> 1) as usize;
            words[first + place / 64] |= 1 << (place % 64);
        }
    }
}
