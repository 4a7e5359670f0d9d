//! One bucket: entries of a few bytes each, in ascending order, without gaps.

/// The entries of a range of hashes. An entry is a *remainder*, the bits of a hash that the range does not
/// determine, in the low bits, and a value in those above.
#[derive(Debug, Default)]
pub(super) struct PackedBucket {
    /// `len` entries of `width` bytes each, little-endian, and room for more.
    bytes: Box<[u8]>,
    len: u32,
    /// Bytes of an entry; 0 while the bucket has no entry.
    width: u8,
}

impl PackedBucket {
    /// A bucket of these entries, which ascend by remainder.
    pub(super) fn from_entries(
        entries: impl ExactSizeIterator<Item = (u64, u32)> + Clone,
        remainder_bits: u32,
    ) -> Self {
        let greatest = entries.clone().map(|(_, value)| value).max();
        let mut bucket = Self::default();
        let Some(greatest) = greatest else { return bucket };
        bucket.width = width(greatest, remainder_bits);
        bucket.bytes = vec![0; allocated(entries.len() * usize::from(bucket.width))].into();
        for (at, (remainder, value)) in entries.enumerate() {
            bucket.write(at, remainder, value, remainder_bits);
            bucket.len += 1;
        }
        work(bucket.len());
        bucket
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Bytes on the heap.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// All entries.
    pub(super) fn entries(
        &self,
        remainder_bits: u32,
    ) -> impl ExactSizeIterator<Item = (u64, u32)> + Clone + '_ {
        (0..self.len()).map(move |at| (self.remainder(at, remainder_bits), self.value(at, remainder_bits)))
    }

    /// The remainder of an entry.
    #[inline]
    pub(super) fn remainder(&self, at: usize, remainder_bits: u32) -> u64 {
        self.load(at * usize::from(self.width)) & low_bits(remainder_bits)
    }

    /// The value of an entry.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a value has at most 32 bits")]
    pub(super) fn value(&self, at: usize, remainder_bits: u32) -> u32 {
        let word = self.load(at * usize::from(self.width) + (remainder_bits / 8) as usize);
        (word >> (remainder_bits % 8) & low_bits(self.value_bits(remainder_bits))) as u32
    }

    /// The bytes that a search for a remainder and an insert there read: from the place where the search
    /// begins to the end of the entries, which are shifted.
    #[inline]
    pub(super) fn searched(&self, remainder: u64, remainder_bits: u32) -> &[u8] {
        let width = usize::from(self.width);
        let start = self.guess(remainder, remainder_bits) * width;
        self.bytes.get(start..self.len() * width).unwrap_or_default()
    }

    /// The first entry whose remainder is not less. Remainders are uniform, so it is near the place that is
    /// proportional to the remainder; where they are not, the search is binary.
    #[inline]
    pub(super) fn search(&self, remainder: u64, remainder_bits: u32) -> usize {
        let is_less = |at| self.remainder(at, remainder_bits) < remainder;
        // A sorted batch fills an empty bucket from its front.
        if self.len == 0 || is_less(self.len() - 1) {
            return self.len();
        }
        let guess = self.guess(remainder, remainder_bits);
        let (mut start, mut end) = (guess.saturating_sub(NEAR), (guess + NEAR).min(self.len()));
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
        (start, end) = if at == end { (at, self.len()) } else { (0, at) };
        while start < end {
            let middle = usize::midpoint(start, end);
            work(1);
            (start, end) = if is_less(middle) { (middle + 1, end) } else { (start, middle) };
        }
        start
    }

    /// Inserts an entry at the result of [`search`](Self::search).
    pub(super) fn insert(&mut self, at: usize, remainder: u64, value: u32, remainder_bits: u32) {
        self.widen(value, remainder_bits);
        let width = usize::from(self.width);
        let used = self.len() * width;
        if used + width > self.bytes.len() {
            self.resize(used + width);
        }
        self.bytes.copy_within(at * width..used, (at + 1) * width);
        work(self.len() - at);
        self.write(at, remainder, value, remainder_bits);
        self.len += 1;
    }

    /// Sets the value of an entry.
    pub(super) fn set(&mut self, at: usize, value: u32, remainder_bits: u32) {
        self.widen(value, remainder_bits);
        self.write(at, self.remainder(at, remainder_bits), value, remainder_bits);
    }

    /// Removes an entry. Memory is given back when less than half of it is used.
    pub(super) fn remove(&mut self, at: usize) {
        let width = usize::from(self.width);
        self.bytes.copy_within((at + 1) * width..self.len() * width, at * width);
        work(self.len() - at);
        self.len -= 1;
        if self.len() * width * 2 < self.bytes.len() {
            self.resize(self.len() * width);
        }
        if self.len == 0 {
            self.width = 0;
        }
    }

    /// Makes room for `n` entries; `value` is a large one of their values.
    pub(super) fn reserve(&mut self, n: usize, value: u32, remainder_bits: u32) {
        if self.len == 0 {
            self.width = width(value, remainder_bits);
        }
        if n * usize::from(self.width) > self.bytes.len() {
            self.resize(n * usize::from(self.width));
        }
    }

    /// Makes entries wide enough for a value.
    fn widen(&mut self, value: u32, remainder_bits: u32) {
        let wide = width(value, remainder_bits);
        if self.len == 0 {
            self.width = self.width.max(wide);
        } else if wide > self.width {
            let room = self.bytes.len() / usize::from(self.width);
            let mut wider = Self {
                bytes: vec![0; allocated(room * usize::from(wide))].into(),
                len: self.len,
                width: wide,
            };
            for (at, (remainder, old)) in self.entries(remainder_bits).enumerate() {
                wider.write(at, remainder, old, remainder_bits);
            }
            work(self.len());
            *self = wider;
        }
    }

    fn resize(&mut self, used: usize) {
        let mut bytes: Box<[u8]> = vec![0; allocated(used)].into();
        let kept = self.len() * usize::from(self.width);
        bytes[..kept].copy_from_slice(&self.bytes[..kept]);
        work(self.len());
        self.bytes = bytes;
    }

    fn write(&mut self, at: usize, remainder: u64, value: u32, remainder_bits: u32) {
        let width = usize::from(self.width);
        let entry = u128::from(remainder) | u128::from(value) << remainder_bits;
        let place = at * width;
        if width < 8
            && let Some(bytes) = self.bytes.get_mut(place..place + 8)
            && let Ok(word) = <&mut [u8; 8]>::try_from(bytes)
        {
            // Eight bytes at once, of which those behind the entry stay. A copy of variable length is a call.
            let behind = u64::from_le_bytes(*word) & !low_bits(u32::from(self.width) * 8);
            *word = (behind | low(entry)).to_le_bytes();
        } else {
            self.bytes[place..][..width].copy_from_slice(&entry.to_le_bytes()[..width]);
        }
    }

    /// The eight bytes from an index on, zero beyond the end.
    #[inline]
    fn load(&self, start: usize) -> u64 {
        if let Some(bytes) = self.bytes.get(start..start + 8) {
            return u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        }
        let tail = self.bytes.get(start..).unwrap_or_default();
        tail.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
    }

    /// The place proportional to a remainder.
    #[inline]
    fn guess(&self, remainder: u64, remainder_bits: u32) -> usize {
        // Below `len`, and a remainder has at most 40 bits: the product does not overflow.
        usize::try_from((remainder >> remainder_bits.saturating_sub(32)) * u64::from(self.len))
            .map_or(0, |product| product >> remainder_bits.min(32))
    }

    fn value_bits(&self, remainder_bits: u32) -> u32 {
        (u32::from(self.width) * 8).saturating_sub(remainder_bits).min(u32::BITS)
    }
}

/// Entries on either side of the proportional place among which the searched one usually is: more than four
/// standard deviations in a bucket of 64.
const NEAR: usize = 16;

/// Bytes of an entry with this value.
fn width(value: u32, remainder_bits: u32) -> u8 {
    let bits = remainder_bits + (u32::BITS - value.leading_zeros()).max(1);
    u8::try_from(bits.div_ceil(8)).expect("at most 12 bytes")
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

/// `n` bytes, at least 64, rounded up to the next size class of an allocator with four to a power of two.
fn allocated(n: usize) -> usize {
    let words = n.div_ceil(8);
    let step = words.next_power_of_two().max(8) / 8;
    words.next_multiple_of(step).max(8) * 8
}

#[cfg(test)]
thread_local! {
    /// Entries moved or passed.
    pub(super) static WORK: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts moved or passed entries, in tests only.
fn work(_entries: usize) {
    #[cfg(test)]
    WORK.with(|work| work.set(work.get() + _entries));
}
