//! What is not answered, counted by why: each reason from 0, so that a rise from nothing is one.

use std::sync::atomic::{AtomicU64, Ordering};

/// Why a question, or a request of any kind, is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// More questions than are answered in a second.
    Rate,
    /// Too many bodies at a time.
    Bodies,
    /// Too many questions are with the workers.
    Full,
    /// The run is not live yet.
    NotLive,
    /// The run has ended.
    Ended,
    /// The workers have not answered in time.
    Late,
    /// Too many connections.
    Connections,
    /// Too many streams of deltas.
    Streams,
    /// Too many attempts to log in.
    Logins,
    /// By a name that the monitor does not go by.
    Host,
    /// From the page of another site.
    Site,
    /// Without the token.
    Token,
}

impl Refused {
    /// Of questions.
    const QUESTIONS: [(Self, &str); 6] = [
        (Self::Rate, "rate"),
        (Self::Bodies, "bodies"),
        (Self::Full, "full"),
        (Self::NotLive, "not_live"),
        (Self::Ended, "ended"),
        (Self::Late, "late"),
    ];

    /// Of requests.
    const REQUESTS: [(Self, &str); 6] = [
        (Self::Connections, "connections"),
        (Self::Streams, "streams"),
        (Self::Logins, "logins"),
        (Self::Host, "host"),
        (Self::Site, "site"),
        (Self::Token, "token"),
    ];
}

/// How many were refused so far.
#[derive(Debug, Default)]
pub(super) struct Refusals([AtomicU64; 12]);

/// By reason.
pub(super) type Counted = [(&'static str, u64); 6];

impl Refusals {
    /// One more.
    pub(super) fn add(&self, why: Refused) {
        self.0[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn of(&self, reasons: [(Refused, &'static str); 6]) -> Counted {
        reasons.map(|(why, name)| (name, self.0[why as usize].load(Ordering::Relaxed)))
    }

    /// Questions.
    pub(super) fn questions(&self) -> Counted {
        self.of(Refused::QUESTIONS)
    }

    /// Requests of any kind.
    pub(super) fn requests(&self) -> Counted {
        self.of(Refused::REQUESTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_count_of_its_own_from_zero() {
        let refusals = Refusals::default();
        let reasons = || Refused::QUESTIONS.into_iter().chain(Refused::REQUESTS);
        for (n, (why, _)) in (1..).zip(reasons()) {
            let all = || refusals.questions().into_iter().chain(refusals.requests());
            assert_eq!(all().filter(|(_, count)| *count > 0).count(), n - 1);
            refusals.add(why);
            assert_eq!(all().map(|(_, count)| count).sum::<u64>(), n as u64);
        }
    }
}
