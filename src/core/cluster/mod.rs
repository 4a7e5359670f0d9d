//! Clusters: exact changes of cluster memberships from changes of pairs, epoch by epoch.
//!
//! In: the [`Delta`](crate::pair::Delta)s of an epoch. Out: changes of [`ClusterReport`]s, each with diff 1
//! or -1.
//!
//! Documents are the vertices and accepted pairs the edges of a graph; a document without a pair is in no
//! cluster. By [`ClusterKind`] a cluster is
//! - a connected component (single link: a chain of pairs is one cluster), named by its smallest member in
//!   byte order; or
//! - a star, cut from a component (`star`) and named by its centre. A centre whose neighbours are all in
//!   other stars would be alone, and is in no cluster.
//!
//! A component of more than `limit` documents is a *giant*: it is reported by its smallest member and its
//! size only, not by its members or stars, so that a new smallest member does not rewrite all of it. When a
//! component crosses the limit, in either direction, its reports of one form are retracted and those of the
//! other form are added.
//!
//! The reports of a component are a function of its pairs alone. Changes are found by reporting all
//! components that an epoch touches, before it (-1) and after it (+1); equal reports cancel. So the sum of
//! all reports is a function of the present pairs, independent of history.
//!
//! Costs: O(log² n) amortised for each change of a pair, for n documents in its component (`forest`); a
//! small component (`graph`) is searched instead. Each touched component is reported twice: O(m log m) for m
//! members (at most `limit`), for stars also the pairs of their centres; O(log n) for a giant. Memory: every
//! pair, and every document in a pair, once.
//!
//! [`Components`] labels documents without a limit, and without reporting the rest of a component.
//! [`KeepRule`] selects one document of a cluster.

mod clusters;
mod components;
mod forest;
mod graph;
mod keep;
mod neighbours;
mod report;
mod star;
mod tours;

#[cfg(test)]
mod tests;

pub use clusters::{ClusterKind, Clusters};
pub use components::Components;
pub use keep::{Age, KeepFacts, KeepRule};
pub use report::ClusterReport;
