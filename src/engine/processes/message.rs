//! The messages of a control connection, and their encoding.
//!
//! Message <-> bytes: a letter, then the fields; numbers are little-endian. On the wire each message is a
//! frame, in pieces: of each its length in bytes as a `u32`, with the highest bit set if another piece of the
//! frame follows, then the bytes. A frame of length 0 is a beat: it shows that its sender is alive.

use dupflow_core::time::Epoch;

/// The longest piece of a frame, in bytes, inclusive.
pub(super) const PIECE_BYTES: u32 = 1 << 20;

/// The longest frame, in bytes, inclusive. The largest one sent has a table of document frequencies: 22 bytes
/// for each feature of the corpus.
pub(super) const FRAME_BYTES: usize = u32::MAX as usize;

/// Set in the length of a piece that another one follows.
pub(super) const MORE: u32 = 1 << 31;

/// Messages between each process and process 0, in both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlMessage {
    /// The run begins; the caller encodes what it needs.
    Go(Vec<u8>),
    /// To process 0: this process has opened everything that it needs, and could begin.
    Prepared,
    /// To process 0: whether this process restores its share of the stored documents itself.
    Restores(bool),
    /// From process 0: a task for what this process stores; the caller encodes it.
    StateTask(Vec<u8>),
    /// To process 0: the reply to such a task.
    StateReply(Vec<u8>),
    /// An epoch is open.
    Opened(Epoch),
    /// A line has been reached in an epoch.
    Reached {
        /// The number of the line.
        line: u32,
        /// The epoch.
        epoch: Epoch,
    },
    /// A line has been crossed in an epoch.
    Crossed {
        /// The number of the line.
        line: u32,
        /// The epoch.
        epoch: Epoch,
    },
    /// Epochs up to this one are durable.
    Durable(Epoch),
    /// The run should end as if its input had ended.
    Stop,
    /// The run has failed, for this reason. All processes end.
    Failed(String),
    /// The counters of a process; the caller encodes them.
    Measures(Vec<u8>),
    /// To process 0: this process has finished and sends nothing more. From process 0: all have finished,
    /// connections may end.
    Done,
}

/// The content of a frame: a message, or one of the two frames used only at the start of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// To process 0: this process has all its connections.
    Ready,
    /// From process 0: all have.
    Start,
    Message(ControlMessage),
}

impl Frame {
    pub(super) fn encode(&self) -> Vec<u8> {
        let line = |letter, line: &u32, epoch: &Epoch| {
            [&[letter][..], &line.to_le_bytes(), &epoch.to_le_bytes()].concat()
        };
        let with = |letter, bytes: &[u8]| [&[letter][..], bytes].concat();
        match self {
            Self::Ready => vec![b'y'],
            Self::Start => vec![b's'],
            Self::Message(message) => match message {
                ControlMessage::Go(bytes) => with(b'g', bytes),
                ControlMessage::Prepared => vec![b'e'],
                ControlMessage::Restores(itself) => vec![b'k', u8::from(*itself)],
                ControlMessage::StateTask(bytes) => with(b't', bytes),
                ControlMessage::StateReply(bytes) => with(b'a', bytes),
                ControlMessage::Opened(epoch) => with(b'o', &epoch.to_le_bytes()),
                ControlMessage::Reached { line: at, epoch } => line(b'r', at, epoch),
                ControlMessage::Crossed { line: at, epoch } => line(b'c', at, epoch),
                ControlMessage::Durable(epoch) => with(b'u', &epoch.to_le_bytes()),
                ControlMessage::Stop => vec![b'p'],
                ControlMessage::Failed(text) => with(b'f', text.as_bytes()),
                ControlMessage::Measures(bytes) => with(b'm', bytes),
                ControlMessage::Done => vec![b'd'],
            },
        }
    }

    /// `None` if the bytes are not an output of [`Self::encode`].
    pub(super) fn decode(frame: &[u8]) -> Option<Self> {
        let (letter, rest) = frame.split_first()?;
        let line = || {
            let (line, epoch) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(*line), Epoch::from_le_bytes(epoch.try_into().ok()?)))
        };
        let message = match letter {
            b'g' => ControlMessage::Go(rest.to_vec()),
            b'e' if rest.is_empty() => ControlMessage::Prepared,
            b'k' if matches!(rest, [0 | 1]) => ControlMessage::Restores(rest == [1]),
            b't' => ControlMessage::StateTask(rest.to_vec()),
            b'a' => ControlMessage::StateReply(rest.to_vec()),
            b'o' => ControlMessage::Opened(Epoch::from_le_bytes(rest.try_into().ok()?)),
            b'r' => line().map(|(line, epoch)| ControlMessage::Reached { line, epoch })?,
            b'c' => line().map(|(line, epoch)| ControlMessage::Crossed { line, epoch })?,
            b'u' => ControlMessage::Durable(Epoch::from_le_bytes(rest.try_into().ok()?)),
            b'p' if rest.is_empty() => ControlMessage::Stop,
            b'f' => ControlMessage::Failed(String::from_utf8(rest.to_vec()).ok()?),
            b'm' => ControlMessage::Measures(rest.to_vec()),
            b'd' if rest.is_empty() => ControlMessage::Done,
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
    fn frames_are_decoded_as_encoded() {
        let frames = [
            Frame::Ready,
            Frame::Start,
            Frame::Message(ControlMessage::Go(vec![])),
            Frame::Message(ControlMessage::Go(vec![0, 255])),
            Frame::Message(ControlMessage::Opened(Epoch::MAX)),
            Frame::Message(ControlMessage::Reached { line: 7, epoch: 1 << 40 }),
            Frame::Message(ControlMessage::Crossed { line: u32::MAX, epoch: 0 }),
            Frame::Message(ControlMessage::Durable(3)),
            Frame::Message(ControlMessage::Stop),
            Frame::Message(ControlMessage::Failed("bad record in \"ä\"".to_owned())),
            Frame::Message(ControlMessage::Measures(vec![1; 1000])),
            Frame::Message(ControlMessage::Done),
            Frame::Message(ControlMessage::Prepared),
            Frame::Message(ControlMessage::Restores(false)),
            Frame::Message(ControlMessage::Restores(true)),
            Frame::Message(ControlMessage::StateTask(b"{}".to_vec())),
            Frame::Message(ControlMessage::StateReply(b"{}".to_vec())),
        ];
        let encoded: Vec<_> = frames.iter().map(Frame::encode).collect();
        for (one, bytes) in frames.iter().zip(&encoded) {
            assert_eq!(Frame::decode(bytes).as_ref(), Some(one));
            assert_eq!(encoded.iter().filter(|other| *other == bytes).count(), 1);
        }
        assert_eq!(encoded[5], [b'r', 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn other_bytes_are_no_frame() {
        let wrong: [&[u8]; 10] =
            [b"", b"x", b"d ", b"y1", b"o1234567", b"o123456789", b"r12345678901", b"f\xff", b"k", b"k\x02"];
        assert_eq!(wrong.map(Frame::decode), [const { None }; 10]);
    }
}
