//! Rows of values at fixed addresses. The storage grows by one chunk at a time and is never copied, so growth
//! causes neither a long epoch nor a peak of memory. A chunk whose rows are all free is given back.

/// Approximate bytes of a chunk: few chunks, little unused memory.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of `width` values each, by place: 0, 1, 2, …
#[derive(Debug)]
pub struct Rows<T> {
    /// Chunks of the same capacity, a power of two of rows, which is never exceeded. One whose rows are all
    /// free is empty, except the last.
    chunks: Vec<Vec<T>>,
    /// By chunk, the number of rows that are not free.
    used: Vec<usize>,
    /// The chunk that was emptied last, for the next that is needed: rows that are freed and set again in
    /// turn cost no allocation.
    spare: Vec<T>,
    width: usize,
    /// log2 of the number of rows of a chunk.
    shift: u32,
    len: usize,
}

impl<T> Rows<T> {
    /// No rows; a row will have `width` values, 1 or more.
    pub fn new(width: usize) -> Self {
        let bytes = (width * size_of::<T>()).max(1);
        let shift = (CHUNK_BYTES / bytes).max(1).ilog2();
        Self { chunks: Vec::new(), used: Vec::new(), spare: Vec::new(), width, shift, len: 0 }
    }

    /// Number of rows, free ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row at a place; `None` if there is none. A free row has any values.
    #[inline]
    pub fn get(&self, place: usize) -> Option<&[T]> {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        self.chunks.get(place >> self.shift)?.get(at..at + self.width)
    }

    /// The row at a place below `len` that is not free.
    #[inline]
    pub fn row(&self, place: usize) -> &[T] {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &self.chunks[place >> self.shift][at..][..self.width]
    }

    /// The row at a place below `len` that is not free, mutable.
    #[inline]
    pub fn row_mut(&mut self, place: usize) -> &mut [T] {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &mut self.chunks[place >> self.shift][at..][..self.width]
    }

    /// Adds a row at the place `len`.
    ///
    /// # Panics
    /// If `row` does not have `width` values.
    pub fn push(&mut self, row: impl ExactSizeIterator<Item = T>) {
        assert_eq!(row.len(), self.width, "a row has the width of all rows");
        if self.len == self.chunks.len() << self.shift {
            let mut chunk = std::mem::take(&mut self.spare);
            chunk.clear();
            chunk.reserve_exact(self.width << self.shift);
            self.chunks.push(chunk);
            self.used.push(0);
        }
        if let (Some(chunk), Some(used)) = (self.chunks.last_mut(), self.used.last_mut()) {
            chunk.extend(row);
            *used += 1;
        }
        self.len += 1;
    }

    /// Frees the row at a place. It must not be read until it is [set](Self::set) again.
    pub fn free(&mut self, place: usize) {
        let chunk = place >> self.shift;
        self.used[chunk] -= 1;
        if self.used[chunk] == 0 && chunk + 1 < self.chunks.len() {
            self.spare = std::mem::take(&mut self.chunks[chunk]);
        }
    }
}

impl<T: Default> Rows<T> {
    /// Sets the row at a place that is free, or adds it at the place `len`.
    ///
    /// # Panics
    /// If `row` does not have `width` values.
    pub fn set(&mut self, place: usize, row: impl ExactSizeIterator<Item = T>) {
        if place == self.len {
            return self.push(row);
        }
        assert_eq!(row.len(), self.width, "a row has the width of all rows");
        let chunk = place >> self.shift;
        if self.chunks[chunk].is_empty() {
            self.chunks[chunk] = std::mem::take(&mut self.spare);
            self.chunks[chunk].resize_with(self.width << self.shift, T::default);
        }
        self.used[chunk] += 1;
        self.row_mut(place).iter_mut().zip(row).for_each(|(value, new)| *value = new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_where_they_are() {
        for width in [1, 3, 200_000] {
            let mut rows = Rows::new(width);
            let count = if width == 200_000 { 5 } else { 2 * CHUNK_BYTES / (8 * width) };
            for n in 0..count as u64 {
                rows.push((0..width).map(|i| n + i as u64));
            }
            assert_eq!(rows.len(), count);
            let first = rows.row(0).as_ptr();
            rows.push((0..width).map(|i| 7 * i as u64));
            assert_eq!(rows.row(0).as_ptr(), first);
            rows.row_mut(1)[0] = 9;
            for n in [0, 1, 2, count / 2, count - 1] {
                let value = if n == 1 { 9 } else { n as u64 };
                assert_eq!(rows.row(n)[0], value);
                assert!(rows.row(n).iter().zip(0..).skip(1).all(|(other, i)| *other == n as u64 + i));
            }
        }
    }

    /// Rows are added, freed from the front, and set again at the least free place.
    #[test]
    fn chunks_of_free_rows_are_given_back() {
        let mut rows = Rows::new(3);
        let count = 5 * CHUNK_BYTES / 24;
        let row = |n: usize| [n, n + 1, n + 2].map(|n| n as u64).into_iter();
        let chunks = |all: &Rows<u64>| all.chunks.iter().filter(|chunk| chunk.capacity() > 0).count();
        (0..count).for_each(|n| rows.set(n, row(n)));
        let (all, each) = (chunks(&rows), 1 << rows.shift);
        let place = 2 * each + 7;
        (0..2 * each).chain(2 * each..place).for_each(|n| rows.free(n));
        assert_eq!((chunks(&rows), rows.spare.len()), (all - 2, 3 * each));
        assert_eq!((rows.get(0), rows.get(2 * each - 1), rows.get(rows.len())), (None, None, None));
        assert_eq!(rows.get(place), Some(&[place, place + 1, place + 2].map(|n| n as u64)[..]));
        (0..each + 1).for_each(|n| rows.set(n, row(n + 9)));
        assert_eq!((chunks(&rows), rows.spare.len(), rows.len()), (all, 0, count));
        for n in (0..=each).chain(place..count) {
            let first = if n <= each { n + 9 } else { n };
            assert!(rows.row(n).iter().copied().eq(row(first)));
        }
        // A row at a boundary that is freed and set in turn costs no allocation.
        rows.free(each);
        let spare = rows.spare.as_ptr();
        for _ in 0..10 {
            rows.set(each, row(1));
            assert_eq!(rows.row(each).as_ptr(), spare);
            rows.free(each);
        }
        (0..each).chain(place..count).for_each(|n| rows.free(n));
        assert_eq!((chunks(&rows), rows.len()), (1, count), "the last one stays");
        rows.set(count, row(5));
        assert!(rows.row(count).iter().copied().eq(row(5)));
    }

    #[test]
    #[should_panic(expected = "a row has the width of all rows")]
    fn a_row_of_another_width_is_refused() {
        Rows::new(2).push([1, 2, 3].into_iter());
    }
}
