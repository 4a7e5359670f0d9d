//! Probability distributions: [`Binomial`], normal and Poisson.

mod binomial;
mod normal;

pub(crate) use binomial::GUARD;
pub use binomial::{Binomial, least_count};
pub use normal::{normal, poisson_at_most};
