//! Features to sketches.
//!
//! A **sketch** has K components. Under random hashing two texts agree in a component with a probability that
//! is their similarity. The low b bits of each component are stored as **bit planes**: 64 components are a
//! group of b words, and word p of a group holds bit p of each of them. So `words[g * b + p]` holds bit p of
//! components `64 g .. 64 g + 64`, the first component in the lowest bit. A look at the first k components
//! reads the first `b k / 64` words and no cache line after them.
//!
//! Components of 64 bits are stored as one word each, `words[1 + j]`, so that a look may begin anywhere. In
//! both layouts `words[0]` is the **first word**: the lowest bits of components 0 to 63.
//!
//! Some kinds of sketches have no components. [`SketchParams`] describes a kind: its
//! [`shape`](SketchParams::shape) if it is compared place by place, its [`planes`](SketchParams::planes) if
//! bands can be cut from it, and its [`estimator`](SketchParams::estimator) in any case.

mod bits;
pub mod kernel;
mod kind;
mod maker;
mod params;
mod sampler;
mod scheme;
mod sets;
mod stored;
#[cfg(test)]
mod tests;
mod theory;
mod weighted;
mod words;

pub use kind::SketchKind;
pub use maker::SketchMaker;
pub use params::SketchParams;
pub use sampler::{Sampler, Sketcher};
pub use scheme::{Scheme, VERSION};
pub use sets::{
    BottomK, Fss, MinHash, MinMax, Odd, Oph, OphOriginal, Scaled, SectionBase, SectionMode, Sectional,
    SuperMinHash, bottom_k, oph, scaled, sectional,
};
pub use stored::{Sketch, SketchRef};
pub use theory::{Estimator, PlaceEstimator, agreement, estimate, fractional, variance};
pub use weighted::{Cws, Dart, Icws, Rejection, SimHash, Ties, simhash};
