//! Protection of the monitor: access control, rate limits, and counts of refused requests.

pub(crate) mod access;
pub(crate) mod proxies;
pub(crate) mod rate_limit;
pub(crate) mod refusals;
