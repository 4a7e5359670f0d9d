//! Features: what sketches are made of.

/// The features of one text.
#[derive(Clone, Copy, Debug)]
pub struct Features<'a> {
    /// For a set: the hashed shingles in text order, repeats included. With weights: distinct, ascending.
    pub ids: &'a [u64],
    /// One for each id, above 0 and finite. Empty for a set, where every feature has weight 1.
    pub weights: &'a [f64],
}

impl<'a> Features<'a> {
    /// A set: hashed shingles in text order, repeats included.
    pub fn set(ids: &'a [u64]) -> Self {
        Self { ids, weights: &[] }
    }
}
