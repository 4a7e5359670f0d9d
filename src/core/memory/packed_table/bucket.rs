//! One bucket: entries of a few bytes each, in ascending order, without gaps.

/// The entries of a range of hashes. An entry is a *remainder*, the bits of a hash that the range does not
/// determine, in the low bits, and a value in those above.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedBucket<'a> {
    /// `len` entries of `width` bytes each, little-endian, and any bytes behind them.
    bytes: &'a [u8],
    len: usize,
    width: usize,
    remainder_bits: u32,
}

impl<'a> PackedBucket<'a> {
    /// The first `len` entries of some bytes.
    #[inline]
    pub(super) fn new(bytes: &'a [u8], len: usize, width: usize, remainder_bits: u32) -> Self {
        Self { bytes, len, width, remainder_bits }
    }

    #[inline]
    pub(super) fn len(self) -> usize {
        self.len
    }

    /// All entries.
    pub(super) fn entries(self) -> impl ExactSizeIterator<Item = (u64, u32)> + Clone + 'a {
        (0..self.len).map(move |at| (self.remainder(at), self.value(at)))
    }

    /// The remainder of an entry.
    #[inline]
    pub(super) fn remainder(self, at: usize) -> u64 {
        self.load(at * self.width) & low_bits(self.remainder_bits)
    }

    /// The value of an entry.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a value has at most 32 bits")]
    pub(super) fn value(self, at: usize) -> u32 {
        let word = self.load(at * self.width + (self.remainder_bits / 8) as usize);
        (word >> (self.remainder_bits % 8) & low_bits(self.value_bits())) as u32
    }

    /// The bytes that a search for a remainder and an insert there read: from the place where the search
    /// begins to the end of the entries, which are shifted.
    #[inline]
    pub(super) fn searched(self, remainder: u64) -> &'a [u8] {
        let start = self.guess(remainder) * self.width;
        self.bytes.get(start..self.len * self.width).unwrap_or_default()
    }

    /// The first entry whose remainder is not less. Remainders are uniform, so it is near the place that is
    /// proportional to the remainder; where they are not, the search is binary.
    #[inline]
    pub(super) fn search(self, remainder: u64) -> usize {
        let is_less = |at| self.remainder(at) < remainder;
        // A sorted batch fills an empty bucket from its front.
        if self.len == 0 || is_less(self.len - 1) {
            return self.len;
        }
        let guess = self.guess(remainder);
        let (mut start, mut end) = (guess.saturating_sub(NEAR), (guess + NEAR).min(self.len));
        let mut at = guess;
        if is_less(at) {
            at += 1;
            while at < end && is_less(at) {
                at += 1;
            }
        } else {
            while at > start && !is_less(at - 1) {
                at -= 1;
            }
        }
        work(at.abs_diff(guess));
        if start < at && at < end {
            return at;
        }
        (start, end) = if at == end { (at, self.len) } else { (0, at) };
        while start < end {
            let middle = usize::midpoint(start, end);
            work(1);
            (start, end) = if is_less(middle) { (middle + 1, end) } else { (start, middle) };
        }
        start
    }

    /// The eight bytes from an index on, zero beyond the end.
    #[inline]
    fn load(self, start: usize) -> u64 {
        if let Some(bytes) = self.bytes.get(start..start + 8) {
            return u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let tail = self.bytes.get(start..).unwrap_or_default();
        tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// The place proportional to a remainder.
    #[inline]
    fn guess(self, remainder: u64) -> usize {
        // Below `len`, and a remainder has at most 40 bits: the product does not overflow.
        usize::try_from((remainder >> self.remainder_bits.saturating_sub(32)) * self.len as u64)
            .map_or(0, |product| product >> self.remainder_bits.min(32))
    }

    fn value_bits(self) -> u32 {
        (u32::try_from(self.width).unwrap_or_default() * 8).saturating_sub(self.remainder_bits).min(u32::BITS)
    }
}

/// Writes an entry of `width` bytes to its place.
#[inline]
pub(super) fn write_entry(
    place: &mut [u8],
    width: usize,
    (remainder, value): (u64, u32),
    remainder_bits: u32,
) {
    let entry = u128::from(remainder) | u128::from(value) << remainder_bits;
    if width < 8
        && let Some(word) = place.first_chunk_mut()
    {
        // Eight bytes at once, of which those behind the entry stay. A copy of variable length is a call.
        let behind = u64::from_le_bytes(*word) & !low_bits(u32::try_from(width).unwrap_or_default() * 8);
        *word = (behind | low(entry)).to_le_bytes();
    } else {
        place[..width].copy_from_slice(&entry.to_le_bytes()[..width]);
    }
}

/// Entries on either side of the proportional place among which the searched one usually is: more than four
/// standard deviations in a bucket of 64.
const NEAR: usize = 16;

/// Bytes of an entry with this value.
pub(super) fn entry_width(value: u32, remainder_bits: u32) -> u8 {
    let bits = remainder_bits + (u32::BITS - value.leading_zeros()).max(1);
    u8::try_from(bits.div_ceil(8)).expect("at most 9 bytes")
}

#[inline]
fn low_bits(bits: u32) -> u64 {
    !(u64::MAX.checked_shl(bits).unwrap_or(0))
}

#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the low half is meant")]
fn low(entry: u128) -> u64 {
    entry as u64
}

#[cfg(test)]
thread_local! {
    /// Entries moved or passed.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts moved or passed entries, in tests only.
pub(super) fn work(_entries: usize) {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + _entries));
}
