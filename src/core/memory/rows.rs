//! Rows of values at fixed addresses. The storage grows by one chunk at a time and is never copied, so growth
//! causes neither a long epoch nor a peak of memory.

/// Approximate bytes of a chunk: few chunks, little unused memory.
const CHUNK_BYTES: usize = 1 << 20;

/// Rows of `width` values each, by place: 0, 1, 2, …
#[derive(Debug)]
pub struct Rows<T> {
    /// Chunks of the same capacity, a power of two of rows, which is never exceeded.
    chunks: Vec<Vec<T>>,
    width: usize,
    /// log2 of the number of rows of a chunk.
    shift: u32,
    len: usize,
}

impl<T> Rows<T> {
    /// No rows; a row will have `width` values, 1 or more.
    pub fn new(width: usize) -> Self {
        let bytes = (width * size_of::<T>()).max(1);
        Self { chunks: Vec::new(), width, shift: (CHUNK_BYTES / bytes).max(1).ilog2(), len: 0 }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The row at a place below `len`.
    #[inline]
    pub fn row(&self, place: usize) -> &[T] {
        let at = (place & ((1 << self.shift) - 1)) * self.width;
        &self.chunks[place >> self.shift][at..][..self.width]
    }

    /// The row at a place below `len`, mutable.
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
            self.chunks.push(Vec::with_capacity(self.width << self.shift));
        }
        if let Some(chunk) = self.chunks.last_mut() {
            chunk.extend(row);
        }
        self.len += 1;
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

    #[test]
    #[should_panic(expected = "a row has the width of all rows")]
    fn a_row_of_another_width_is_refused() {
        Rows::new(2).push([1, 2, 3].into_iter());
    }
}
