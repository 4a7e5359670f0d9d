//! Near-duplicates in a few lines: all parts of this crate put together for a threshold.
//!
//! A threshold -> a [`Detector`], which has the scheme, the blocking and the filter that find the pairs at or
//! above it; inserts, updates and deletes of documents -> a [`LiveCorpus`], which reports the pairs that
//! appear and end. The sketches of a corpus -> the candidates that are rejected, by a [`CandidateSurvey`].
//!
//! Not done here: several workers, files, restarts. That is the crate `dupflow`, whose results are the same.

mod corpus;
mod detector;
mod rejected;
#[cfg(test)]
mod tests;

pub use corpus::LiveCorpus;
pub use detector::{Detector, DetectorError};
pub use rejected::{CandidateSurvey, LiveSketch, RejectedCounts, RejectedPair, RejectedSample};
