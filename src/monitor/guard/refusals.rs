//! Counts of refused requests by reason. All reasons are exported from 0, so that the first increase is
//! visible.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a query or another request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalReason {
    /// More queries in a second than the limit.
    Rate,
    /// Too many bodies at the same time.
    Bodies,
    /// Too many queries are waiting for the workers.
    Full,
    /// The run is not live yet.
    NotLive,
    /// The run has ended.
    Ended,
    /// The workers did not answer in time.
    Late,
    /// Too many connections.
    Connections,
    /// Too many streams of deltas.
    Streams,
    /// Too many attempts to log in.
    Logins,
    /// The value of `Host` is not accepted.
    Host,
    /// A page of another site sends the request.
    Site,
    /// The token is missing or wrong.
    Token,
    /// The token only permits to read.
    ReadOnly,
    /// Too many bytes of posted documents wait.
    Waiting,
    /// What was posted cannot be stored.
    NotStored,
}

impl RefusalReason {
    /// The reasons for queries, with their labels.
    const QUESTIONS: [(Self, &str); 6] = [
        (Self::Rate, "rate"),
        (Self::Bodies, "bodies"),
        (Self::Full, "full"),
        (Self::NotLive, "not_live"),
        (Self::Ended, "ended"),
        (Self::Late, "late"),
    ];

    /// The reasons for all other requests, with their labels.
    const REQUESTS: [(Self, &str); 9] = [
        (Self::Connections, "connections"),
        (Self::Streams, "streams"),
        (Self::Logins, "logins"),
        (Self::Host, "host"),
        (Self::Site, "site"),
        (Self::Token, "token"),
        (Self::ReadOnly, "read_only"),
        (Self::Waiting, "waiting"),
        (Self::NotStored, "not_stored"),
    ];
}

/// The counts, indexed by [`RefusalReason`].
#[derive(Debug, Default)]
pub(crate) struct RefusalCounts([AtomicU64; 15]);

/// Counts with the labels of their reasons.
pub(crate) type CountsByReason = Vec<(&'static str, u64)>;

impl RefusalCounts {
    /// Counts one refusal.
    pub(crate) fn add(&self, why: RefusalReason) {
        self.0[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self, reasons: &[(RefusalReason, &'static str)]) -> CountsByReason {
        let count = |why: RefusalReason| self.0[why as usize].load(Ordering::Relaxed);
        reasons.iter().map(|(why, name)| (*name, count(*why))).collect()
    }

    /// Refused queries.
    pub(crate) fn questions(&self) -> CountsByReason {
        self.counts(&RefusalReason::QUESTIONS)
    }

    /// Refused requests other than queries.
    pub(crate) fn requests(&self) -> CountsByReason {
        self.counts(&RefusalReason::REQUESTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_of_its_own_from_zero() {
        let refusals = RefusalCounts::default();
        let reasons = || RefusalReason::QUESTIONS.into_iter().chain(RefusalReason::REQUESTS);
        for (n, (why, _)) in (1..).zip(reasons()) {
            let all = || refusals.questions().into_iter().chain(refusals.requests());
            assert_eq!(all().filter(|(_, count)| *count > 0).count(), n - 1);
            refusals.add(why);
            assert_eq!(all().map(|(_, count)| count).sum::<u64>(), n as u64);
        }
    }
}
