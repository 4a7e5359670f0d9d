//! What sketches say about similarity: laws of agreement, estimators, and their variance.

pub mod agreement;
pub mod estimate;
mod estimator;
pub mod fractional;
pub mod variance;

pub use estimator::{Estimator, PlaceEstimator};
