//! Values that are stored as rows of words.

/// A value of which most is a row of 64-bit words. The row can be written to a file, the rest stays in
/// memory.
pub trait RowValue: Sized {
    /// What does not fit into a row.
    type Rest;

    /// Whether the value must stay in memory as a whole for now.
    fn stays(&self) -> bool;

    /// Writes the row, all words of it.
    fn store(&self, row: &mut [u64]);

    /// What the row does not have, if there is any.
    fn rest(self) -> Option<Self::Rest>;

    /// The value of a row and its rest.
    fn load(row: &[u64], rest: Option<Self::Rest>) -> Self;
}
