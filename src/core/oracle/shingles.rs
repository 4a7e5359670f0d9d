//! Counts the common features of every two documents by sorting.
//!
//! In: documents with their features (in any order, repeats allowed). Out: for every two documents with a
//! common feature, the number of common features. Rule: (feature, document) is sorted, each run of one
//! feature gives its pairs, and the pairs are sorted and counted. Neither sketches nor blocks are used.
//! Quadratic in the number of documents of a feature.
//!
//! References: A. Broder, S. Glassman, M. Manasse and G. Zweig, *Syntactic clustering of the web* (1997),
//! section 4; Yuan et al. (2019), section 3.

/// Two documents by their indices `a < b`, the number of their common distinct features, and its share of
/// their union.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Triplet {
    /// The first document.
    pub a: usize,
    /// The second document.
    pub b: usize,
    /// Number of common features, 1 or more.
    pub common: usize,
    /// `common / (|A| + |B| - common)`.
    pub resemblance: f64,
}

/// The triplets of all documents, sorted.
pub fn shared(documents: &[Vec<u64>]) -> Vec<Triplet> {
    let sets: Vec<Vec<u64>> = documents
        .iter()
        .map(|features| {
            let mut set = features.clone();
            set.sort_unstable();
            set.dedup();
            set
        })
        .collect();
    let mut holders: Vec<(u64, usize)> =
        sets.iter().enumerate().flat_map(|(at, set)| set.iter().map(move |feature| (*feature, at))).collect();
    holders.sort_unstable();
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    for run in holders.chunk_by(|(x, _), (y, _)| x == y) {
        for (i, (_, a)) in run.iter().enumerate() {
            pairs.extend(run[i + 1..].iter().map(|(_, b)| (*a, *b)));
        }
    }
    pairs.sort_unstable();
    let triplet = |run: &[(usize, usize)]| {
        let ((a, b), common) = (run[0], run.len());
        let resemblance = common as f64 / (sets[a].len() + sets[b].len() - common) as f64;
        Triplet { a, b, common, resemblance }
    };
    pairs.chunk_by(PartialEq::eq).map(triplet).collect()
}
