//! The law: after every epoch of any history, the accumulated deltas equal what the oracle finds in the
//! corpus.
//!
//! Families:
//!
//! | module | tests |
//! |---|---|
//! | [`pipelines`] | random histories, for each kind of text rule, sketch, blocking and filter |
//! | [`properties`] | what follows from the law without an oracle |
//! | [`reference`] | delta by delta against a plain differential dataflow |
//! | [`recorded`] | recorded history |
//! | [`clusters`], [`keep`] | what is derived from the pairs |
//! | [`contained`] | texts that are parts of other texts |
//! | [`units`] | paragraphs and lines of documents |
//! | [`decisions`] | the records of each document, also through ends and restarts |
//! | [`truth`] | the oracle of true similarities against its definition |
//! | [`retention`] | documents that expire |
//! | [`until`] | events after a time, and the times of epochs |
//! | [`fields`] | pairs that a rule on fields allows |
//! | [`against`] | a corpus that is compared with a reference |
//! | [`arrivals`] | files that arrive, grow and go between runs |
//! | [`items`] | documents that have the items of a reference |
//! | [`causes`] | the causes of deltas |
//! | [`queries`] | queries during the run |
//! | [`sources`] | partitions, readers and cuts of any kind |
//! | [`flow`] | backpressure and failures |
//! | [`views`] | views against a recomputation |
//! | [`distance`] | that no pair within a distance is missed |
//! | [`watch`] | the notices of a watch list |
//! | [`rejected`] | the candidates that the filter rejects |
//! | [`spill`] | memory budgets |
//!
//! [`history`] describes how seeds are set and regressions are recorded.
//!
//! Random histories are short, so that they shrink to readable ones. Limits are small, so that blocks and
//! groups of copies cross them often, in both directions. Bug classes: a retraction that is not the exact
//! negative of what was emitted; a result that depends on the order of arrival, on the cut into epochs, on
//! the number of workers or on the codec; a sketch or block that is removed and added again within the epochs
//! in flight.

#![cfg(test)]

mod against;
mod arrivals;
mod causes;
mod clusters;
mod contained;
#[path = "../data/mod.rs"]
mod data;
mod decisions;
mod distance;
mod fields;
mod flow;
mod frozen;
mod given;
mod history;
mod items;
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
mod rejected;
mod restart;
mod retention;
mod script;
mod sources;
mod spill;
mod truth;
mod units;
mod until;
mod views;
mod watch;
