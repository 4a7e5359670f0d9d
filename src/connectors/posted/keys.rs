//! Idempotency keys: which bodies the journal holds, so that one that is posted again is not stored again.
//!
//! Each event of a body that has a key has it too, at the end of its line:
//! `,"idempotency-key":["key","hash of the body"]}`. So the journal alone says after a crash how much of the
//! body is stored. A line without a key that has such a member gets another one behind it, of null, so that
//! none is taken for a key. A bad record carries none: those of a body are stored again while none of its
//! events is, and those behind its last event may be lost with a crash.

use std::collections::{HashMap, VecDeque};

use memchr::memmem;

use dupflow_core::hash;

/// Most keys that are remembered, the newest ones: about 120 MB.
const MOST: usize = 1_000_000;

/// The name of the member of an event that has the key of its body.
pub(super) const MEMBER: &str = "idempotency-key";
const BEGIN: &str = ",\"idempotency-key\":";

/// The end of a line without a key whose own member would be taken for one.
pub(super) const NO_KEY: &str = ",\"idempotency-key\":null";

/// A key, and a hash of the body that was posted with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BodyKey {
    pub(super) key: String,
    body: u64,
}

/// What is stored of a body.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StoredBody {
    /// Hash of the body.
    body: u64,
    /// How many of its events are stored: the first ones.
    pub(super) events: usize,
    /// The number of the last line of them.
    pub(super) last: u64,
}

/// The bodies that were posted with a key.
#[derive(Debug, Default)]
pub(super) struct StoredBodies {
    bodies: HashMap<u128, StoredBody>,
    /// From the oldest on.
    order: VecDeque<u128>,
}

impl BodyKey {
    pub(super) fn new(key: String, lines: &[u8]) -> Self {
        Self { key, body: hash::bytes(0, lines) }
    }

    /// The member of a line.
    pub(super) fn member(&self) -> String {
        format!("{BEGIN}{}", serde_json::json!([self.key, format!("{:016x}", self.body)]))
    }

    /// Whether a line without a key ends as one with a key does.
    pub(super) fn is_feigned(line: &[u8]) -> bool {
        Self::of_line(line).is_some()
    }

    /// The key at the end of a stored line.
    fn of_line(line: &[u8]) -> Option<Self> {
        let member = line.trim_ascii_end().strip_suffix(b"}").filter(|line| line.ends_with(b"\"]"))?;
        let at = memmem::rfind(member, BEGIN.as_bytes())? + BEGIN.len();
        let (key, body) = serde_json::from_slice::<(String, String)>(&member[at..]).ok()?;
        Some(Self { key, body: u64::from_str_radix(&body, 16).ok()? })
    }

    /// What it is found by.
    fn name(&self) -> u128 {
        let half = |seed| u128::from(hash::bytes(seed, self.key.as_bytes()));
        half(1) << 64 | half(2)
    }

    /// Whether these are the body that was posted with it.
    pub(super) fn is_of(&self, stored: &StoredBody) -> bool {
        self.body == stored.body
    }
}

impl StoredBody {
    /// A further event of the body is stored, in this line.
    pub(super) fn add(&mut self, key: &BodyKey, line: u64) {
        *self = Self { body: key.body, events: self.events + 1, last: line };
    }
}

impl StoredBodies {
    /// Learns from a line of the journal.
    pub(super) fn read(&mut self, line: &[u8], number: u64) {
        if let Some(key) = BodyKey::of_line(line) {
            let mut body = self.find(&key).unwrap_or_default();
            if body.events == 0 || key.is_of(&body) {
                body.add(&key, number);
                self.put(&key, body);
            }
        }
    }

    /// This is stored of the body with this key.
    pub(super) fn put(&mut self, key: &BodyKey, body: StoredBody) {
        if body.events > 0 && self.bodies.insert(key.name(), body).is_none() {
            self.order.push_back(key.name());
        }
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.bodies.remove(&oldest);
        }
    }

    /// What is stored of the body that was posted with this key.
    pub(super) fn find(&self, key: &BodyKey) -> Option<StoredBody> {
        self.bodies.get(&key.name()).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_of_a_body_is_read_from_its_lines() {
        let key = BodyKey::new("a \"key\", 你".to_owned(), b"{}\n{}\n");
        let line = format!("{{\"id\":\"a\"{}}}\n", key.member());
        serde_json::from_str::<serde_json::Value>(&line).unwrap();
        let mut bodies = StoredBodies::default();
        for (number, stored) in
            [(3, &*line), (5, "{\"id\":\"b\",\"idempotency-key\":[\"k\",\"x\"]}"), (6, &*line)]
        {
            bodies.read(stored.as_bytes(), number);
        }
        let stored = bodies.find(&key).unwrap();
        assert_eq!((stored.events, stored.last, bodies.bodies.len()), (2, 6, 1));
        assert!(key.is_of(&stored) && !BodyKey::new(key.key, b"{}").is_of(&stored));
    }
}
