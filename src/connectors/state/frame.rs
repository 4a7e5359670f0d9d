//! The frame of a file: a magic, the version of its format, its contents, and a checksum of all of it.
//!
//! ```text
//! magic, 16 bytes | version u32 LE | contents | xxh3 u64 LE of all before it
//! ```
//!
//! The frame is the same in all versions, so that an undamaged file of another version can be recognized.

use super::error::StateError;
use dupflow_core::hash;

/// Identifies the kind of a file.
pub(super) type Magic = [u8; 16];
/// Version of all formats of stored state.
pub(super) const VERSION: u32 = 1;
/// Bytes before the contents.
pub(super) const HEAD_BYTES: usize = 20;

/// Magic and version.
pub(super) fn head(magic: &Magic) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..16].copy_from_slice(magic);
    head[16..].copy_from_slice(&VERSION.to_le_bytes());
    head
}

/// Appends the checksum. `bytes` must begin with a head.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    let checksum = hash::bytes(0, &bytes);
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// Checks a sealed file and returns its contents.
pub(super) fn open<'b>(magic: &Magic, file: &str, bytes: &'b [u8]) -> Result<&'b [u8], StateError> {
    let damaged = |what: String| StateError::Damaged { file: file.to_owned(), what };
    let (sealed, checksum) =
        bytes
            .split_last_chunk::<8>()
            .filter(|(sealed, _)| sealed.len() >= HEAD_BYTES)
            .ok_or_else(|| damaged(format!("expected a head and a checksum, found {} bytes", bytes.len())))?;
    let (stored, computed) = (u64::from_le_bytes(*checksum), hash::bytes(0, sealed));
    if stored != computed {
        return Err(damaged(format!("expected checksum {stored:016x}, found {computed:016x}")));
    }
    let (head, contents) = sealed.split_at(HEAD_BYTES);
    check_head(magic, file, head)?;
    Ok(contents)
}

/// Checks magic and version of a head whose checksum has been verified.
pub(super) fn check_head(magic: &Magic, file: &str, found: &[u8]) -> Result<(), StateError> {
    let expected = head(magic);
    if found.get(..16) != Some(magic) {
        let [expected, found] = [&expected[..16], &found[..16.min(found.len())]].map(<[u8]>::escape_ascii);
        let what = format!("expected it to begin with \"{expected}\", found \"{found}\"");
        return Err(StateError::Damaged { file: file.to_owned(), what });
    }
    let version = found[16..].try_into().map_or(0, u32::from_le_bytes);
    if version == VERSION {
        Ok(())
    } else {
        Err(StateError::Version { file: file.to_owned(), found: version, expected: VERSION })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAGIC: Magic = *b"dupflow example\n";

    fn sealed() -> Vec<u8> {
        seal([&head(&MAGIC)[..], b"contents"].concat())
    }

    #[test]
    fn golden_bytes() {
        let checksum = hash::bytes(0, b"dupflow example\n\x01\0\0\0contents").to_le_bytes();
        assert_eq!(sealed(), [&b"dupflow example\n\x01\0\0\0contents"[..], &checksum].concat());
        assert_eq!(open(&MAGIC, "x", &sealed()).unwrap(), b"contents");
    }

    #[test]
    fn every_truncation_and_bit_flip_is_detected() {
        let bytes = sealed();
        let damaged = |found: &[u8]| matches!(open(&MAGIC, "x", found), Err(StateError::Damaged { .. }));
        assert!((0..bytes.len()).all(|end| damaged(&bytes[..end])));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(damaged(&flipped), "bit {bit}");
        }
    }

    #[test]
    fn another_version_is_not_damage() {
        let mut later = head(&MAGIC).to_vec();
        later[16] = 2;
        let error = open(&MAGIC, "x", &seal(later)).unwrap_err();
        assert_eq!(error.to_string(), "state file \"x\" has format version 2, expected 1");
        let other = open(&MAGIC, "x", &seal(head(b"dupflow segment\n").to_vec())).unwrap_err();
        let expected = r#"expected it to begin with "dupflow example\n", found "dupflow segment\n""#;
        assert_eq!(other.to_string(), format!("state file \"x\" is damaged: {expected}"));
    }
}
