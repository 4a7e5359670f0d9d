//! What is said over a control connection, and how it is written.
//!
//! Message <-> bytes: a letter, then what belongs to it; numbers are little-endian. On the wire each is a
//! frame: its length in bytes as a `u32`, then the bytes. A frame of length 0 is a beat: it says that its
//! sender is alive, and nothing else.

use dupflow_core::time::Epoch;

/// The longest frame, in bytes, inclusive. The largest that is sent, a run's measures, is far below.
pub(super) const FRAME_BYTES: u32 = 64 << 20;

/// What processes tell each other: each of them process 0, and process 0 all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The run begins; what belongs to it is the caller's.
    Go(Vec<u8>),
    /// An epoch is open.
    Opened(Epoch),
    /// A line has been reached in an epoch.
    Reached {
        /// Which line.
        line: u32,
        /// In this epoch.
        epoch: Epoch,
    },
    /// A line has been crossed in an epoch.
    Crossed {
        /// Which line.
        line: u32,
        /// In this epoch.
        epoch: Epoch,
    },
    /// Epochs up to this one are durable.
    Durable(Epoch),
    /// The run is to end as if its input had ended.
    Stop,
    /// The run has failed, and why. Ends all.
    Failed(String),
    /// What a process has counted; the encoding is the caller's.
    Measures(Vec<u8>),
    /// To process 0: this process has done its share, and said all. From process 0: all have, connections may
    /// end.
    Done,
}

/// What a frame says: a message, or what only the start of a run needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// To process 0: this process has all its connections.
    Ready,
    /// From process 0: all have.
    Start,
    Message(Message),
}

impl Said {
    pub(super) fn encode(&self) -> Vec<u8> {
        let line = |letter, line: &u32, epoch: &Epoch| {
            [&[letter][..], &line.to_le_bytes(), &epoch.to_le_bytes()].concat()
        };
        let with = |letter, bytes: &[u8]| [&[letter][..], bytes].concat();
        match self {
            Self::Ready => vec![b'y'],
            Self::Start => vec![b's'],
            Self::Message(message) => match message {
                Message::Go(bytes) => with(b'g', bytes),
                Message::Opened(epoch) => with(b'o', &epoch.to_le_bytes()),
                Message::Reached { line: at, epoch } => line(b'r', at, epoch),
                Message::Crossed { line: at, epoch } => line(b'c', at, epoch),
                Message::Durable(epoch) => with(b'u', &epoch.to_le_bytes()),
                Message::Stop => vec![b'p'],
                Message::Failed(text) => with(b'f', text.as_bytes()),
                Message::Measures(bytes) => with(b'm', bytes),
                Message::Done => vec![b'd'],
            },
        }
    }

    /// `None` if the bytes are nothing that [`Self::encode`] gives.
    pub(super) fn decode(frame: &[u8]) -> Option<Self> {
        let (letter, rest) = frame.split_first()?;
        let line = || {
            let (line, epoch) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*line), Epoch::from_le_bytes(epoch.try_into().ok()?)))
        };
        let message = match letter {
            b'g' => Message::Go(rest.to_vec()),
            b'o' => Message::Opened(Epoch::from_le_bytes(rest.try_into().ok()?)),
            b'r' => line().map(|(line, epoch)| Message::Reached { line, epoch })?,
            b'c' => line().map(|(line, epoch)| Message::Crossed { line, epoch })?,
            b'u' => Message::Durable(Epoch::from_le_bytes(rest.try_into().ok()?)),
            b'p' if rest.is_empty() => Message::Stop,
            b'f' => Message::Failed(String::from_utf8(rest.to_vec()).ok()?),
            b'm' => Message::Measures(rest.to_vec()),
            b'd' if rest.is_empty() => Message::Done,
            b'y' if rest.is_empty() => return Some(Self::Ready),
            b's' if rest.is_empty() => return Some(Self::Start),
            _ => return None,
        };
        Some(Self::Message(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let said = [
            Said::Ready,
            Said::Start,
            Said::Message(Message::Go(vec![])),
            Said::Message(Message::Go(vec![0, 255])),
            Said::Message(Message::Opened(Epoch::MAX)),
            Said::Message(Message::Reached { line: 7, epoch: 1 << 40 }),
            Said::Message(Message::Crossed { line: u32::MAX, epoch: 0 }),
            Said::Message(Message::Durable(3)),
            Said::Message(Message::Stop),
            Said::Message(Message::Failed("bad record in \"ä\"".to_owned())),
            Said::Message(Message::Measures(vec![1; 1000])),
            Said::Message(Message::Done),
        ];
        let encoded: Vec<_> = said.iter().map(Said::encode).collect();
        for (one, bytes) in said.iter().zip(&encoded) {
            assert_eq!(Said::decode(bytes).as_ref(), Some(one));
            assert_eq!(encoded.iter().filter(|other| *other == bytes).count(), 1);
        }
        assert_eq!(encoded[5], [b'r', 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn anything_else_is_refused() {
        let wrong: [&[u8]; 8] =
            [b"", b"x", b"d ", b"y1", b"o1234567", b"o123456789", b"r12345678901", b"f\xff"];
        assert_eq!(wrong.map(Said::decode), [const { None }; 8]);
    }
}
