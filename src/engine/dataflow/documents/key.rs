//! Keys: the order of the slots where the number of documents is limited, and of events where an id's
//! [home](super::homes) is decided. The key of an id is the greatest key of its events. The time in a key is
//! the `ts` of the event; where ids move, the time of its record.

use serde::{Deserialize, Serialize};

use dupflow_core::doc::Position;
use dupflow_core::time::UnixTime;

/// A (`ts`, position), ordered by both; no `ts` sorts before any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::dataflow) struct EventKey {
    /// 0 without a `ts`, else one more than the bits of its f64, which ascend with it.
    when: u64,
    position: Position,
}

impl EventKey {
    /// Bytes of a key.
    pub(in crate::dataflow) const BYTES: usize = 20;

    /// The key of an event at a time.
    pub(in crate::dataflow) fn new(ts: Option<f64>, position: Position) -> Self {
        let time = ts.and_then(UnixTime::new);
        Self { when: time.map_or(0, |time| time.seconds().to_bits() + 1), position }
    }

    /// The time, if there is one.
    pub(in crate::dataflow) fn ts(self) -> Option<f64> {
        self.when.checked_sub(1).map(f64::from_bits)
    }

    /// The position of the event.
    pub(in crate::dataflow) fn position(self) -> Position {
        self.position
    }

    /// The partition of the event.
    pub(in crate::dataflow) fn partition(self) -> u32 {
        self.position.partition
    }

    /// As it is stored, see [`kept`](super::kept).
    pub(in crate::dataflow) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&self.when.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.position.partition.to_le_bytes());
        bytes[12..].copy_from_slice(&self.position.offset.to_le_bytes());
        bytes
    }

    /// Decodes a key, and returns the bytes behind it.
    pub(in crate::dataflow) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (when, rest) = bytes.split_first_chunk()?;
        let (partition, rest) = rest.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let position =
            Position { partition: u32::from_le_bytes(*partition), offset: u64::from_le_bytes(*offset) };
        Some((Self { when: u64::from_le_bytes(*when), position }, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_with_the_time_and_then_with_the_position_and_come_back_from_bytes() {
        let at = |ts, partition, offset| EventKey::new(ts, Position { partition, offset });
        let keys = [
            at(None, 0, 7),
            at(None, 3, 1),
            at(Some(0.0), 0, 0),
            at(Some(0.0), 0, 1),
            at(Some(0.5), 0, 0),
            at(Some(1_700_000_000.25), 9, 9),
            at(Some(1_700_000_001.0), 0, u64::MAX),
        ];
        assert!(keys.is_sorted_by(|a, b| a < b));
        assert_eq!(keys.map(EventKey::ts)[1..5], [None, Some(0.0), Some(0.0), Some(0.5)]);
        assert_eq!(keys.map(EventKey::partition), [0, 3, 0, 0, 0, 9, 0]);
        for key in keys {
            let bytes = [&key.to_bytes()[..], b"rest"].concat();
            assert_eq!(EventKey::read(&bytes), Some((key, &b"rest"[..])));
            assert_eq!(EventKey::read(&bytes[..EventKey::BYTES - 1]), None);
        }
    }
}
