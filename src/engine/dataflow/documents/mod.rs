//! The documents of one worker: the last event of each id, and which documents retention removes.

pub(super) mod arrival;
pub(super) mod homes;
pub(super) mod kept;
pub(super) mod key;
pub(super) mod order;
pub(super) mod reference;
pub(super) mod retain;
pub(super) mod retaining;
pub(super) mod sketched;
pub(super) mod store;
mod stored;
