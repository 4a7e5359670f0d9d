//! First bytes.

/// Those of a file, which ends with the first six of them.
pub(super) const FILE: &[u8] = b"ARROW1\0\0";

/// Whether bytes begin as a stream does: a mark of continuation, and the length of the first message, which
/// is below 16 MiB and no end of a stream.
pub(super) fn is_stream(beginning: &[u8]) -> bool {
    matches!(beginning, [0xff, 0xff, 0xff, 0xff, a, b, c, 0, ..] if [*a, *b, *c] != [0; 3])
}
