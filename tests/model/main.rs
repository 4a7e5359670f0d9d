//! The law: after every epoch of any history, the accumulated deltas are what the oracle makes of the corpus.
//!
//! Thirteen families. [`pipelines`]: random histories, for each kind of text rule, sketch, blocking and
//! filter. [`properties`]: what follows from the law without an oracle. [`reference`]: delta by delta against
//! a plain differential dataflow.
//! [`recorded`]: real history. [`clusters`] and [`keep`]: what is made of the pairs. [`truth`]: the oracle of true similarities against its
//! definition. [`retention`]: documents that expire. [`causes`]: why deltas are. [`queries`]: questions
//! asked meanwhile. [`sources`]: partitions, readers and cuts of any kind.
//! [`flow`]: where a run waits, and how it fails. [`distance`]: that no pair within a distance is missed. How seeds are
//! set and found regressions kept is told in [`history`].
//!
//! Random histories are short, so that they shrink to something one can read, and the caps are small, so that
//! blocks and groups of copies cross them often, both ways. Bug classes: a retraction that is not the exact
//! negative of what was emitted; a result that depends on the order of arrival, on the cut into epochs, on
//! the number of workers or on the codec; what dies and comes back within the epochs in flight.

#![cfg(test)]

mod causes;
mod clusters;
#[path = "../data/mod.rs"]
mod data;
mod distance;
mod flow;
mod history;
mod keep;
mod law;
mod live;
mod log;
mod moving;
mod pipelines;
mod properties;
mod queries;
mod recorded;
mod reference;
mod restart;
mod retention;
mod script;
mod sources;
mod truth;
