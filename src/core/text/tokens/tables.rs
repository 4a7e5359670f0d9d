//! Whether this build reads characters as other builds do.
//!
//! What a character is (alphanumeric, a mark), its lowercase and its composition come from the tables of
//! Unicode in `std` and in `unicode-normalization`. Another compiler, or another version of that crate, may
//! have other tables; then two builds could give one text different features under one scheme. So the tables
//! are compared with those of the first version: the blocks that differ are part of the scheme's
//! [description](crate::description), and a state of other tables is refused with their names.
//!
//! A block has 4,096 characters. Blocks are compared by a hash of all properties of their characters, up to
//! the last ideographs and at the beginning of plane 14, where characters are assigned.

use std::sync::OnceLock;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{canonical_combining_class, is_combining_mark};

use crate::hash::mix;

/// Characters of a block.
const BLOCK: u32 = 0x1000;

/// The blocks, by their first characters.
fn blocks() -> impl Iterator<Item = u32> {
    (0..0x34).chain([0xe0]).map(|block| block * BLOCK)
}

/// The versions of Unicode in `std` and in `unicode-normalization` that the first version had.
const FIRST_VERSIONS: [(u8, u8, u8); 2] = [(17, 0, 0), (18, 0, 0)];

/// The hashes of the [blocks] under these versions.
#[rustfmt::skip]
const FIRST: [u32; 53] = [
    0xceca_656f, 0xa7f6_bd2a, 0xf54b_a7ac, 0x33ec_93cc, 0x441a_853a, 0xc647_be09, 0x0ef1_27aa,
    0xc950_35e1, 0x2adf_4f26, 0x3515_17c2, 0x257f_b8cc, 0xbc05_bd87, 0x540e_9457, 0x9aaf_427c,
    0x0000_0000, 0x68d9_ca88, 0xc709_2e73, 0x6f2b_ac3e, 0xb66a_632d, 0xf583_9b8d, 0x14c6_c9e2,
    0x0000_0000, 0xbff8_99d0, 0x9b10_be11, 0x2d58_6ff0, 0x0000_0000, 0xf997_be86, 0xff85_6846,
    0xac56_8a0c, 0x317a_24bb, 0x77a4_5531, 0x4e60_f8ad, 0x6ee9_70fc, 0x2f72_42ef, 0x0e54_ba2a,
    0x8410_c3ff, 0x4834_0dfa, 0x8602_7b5a, 0x792f_2af7, 0x54ee_706b, 0xbd46_fb80, 0x7301_c97c,
    0xaf60_b39f, 0xafdb_9304, 0x667b_bf3a, 0xc614_5619, 0x43b2_3841, 0x9ff6_7427, 0x4d96_465e,
    0x5ffe_bb10, 0xd6f5_bd6f, 0x64bb_8091, 0x8162_5713,
];

/// The blocks that this build reads otherwise than the first version, with their hashes.
pub(in crate::text) fn different() -> &'static [String] {
    static DIFFERENT: OnceLock<Vec<String>> = OnceLock::new();
    // To compare them takes 80 ms.
    let is_first = [char::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION] == FIRST_VERSIONS;
    DIFFERENT.get_or_init(|| if is_first { Vec::new() } else { compared(&FIRST) })
}

fn compared(with: &[u32]) -> Vec<String> {
    let here = blocks().map(|first| (first, hash(first)));
    let differ = here.zip(with).filter(|((_, here), there)| here != *there);
    let name = |((first, hash), _)| format!("U+{first:04X} to U+{:04X}: {hash:08x}", first + BLOCK - 1);
    differ.map(name).collect()
}

/// A hash of what decides about the characters of a block.
fn hash(first: u32) -> u32 {
    let mut state = 0;
    let mut add = |value: u64| state = mix(state ^ value);
    for c in (first..first + BLOCK).filter_map(char::from_u32) {
        let class = canonical_combining_class(c);
        let kind =
            u64::from(c.is_alphanumeric()) | u64::from(is_combining_mark(c)) << 1 | u64::from(class) << 2;
        let (lower, composed) = (c.to_lowercase(), [c].into_iter().nfkc());
        // Nearly all characters beyond the first blocks have no properties but these.
        if kind > 1 || !lower.clone().eq([c]) || !composed.clone().eq([c]) {
            add(u64::from(c) << 32 | kind);
            lower.for_each(|part| add(u64::from(part)));
            composed.for_each(|part| add(u64::from(part) | 1 << 32));
            [c].into_iter().nfc().for_each(|part| add(u64::from(part) | 1 << 33));
        } else if kind == 1 {
            add(u64::from(c));
        }
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this fails, the tables of `std` or of `unicode-normalization` differ from those by which stored
    /// sketches were made: never change the expected hashes.
    #[test]
    fn tables_are_those_of_the_first_version() {
        let versions = [char::UNICODE_VERSION, unicode_normalization::UNICODE_VERSION];
        if versions == FIRST_VERSIONS {
            assert_eq!(compared(&FIRST), [""; 0]);
        } else {
            println!("SKIPPED: this build has other versions of Unicode, {versions:?}: {:?}", different());
        }
        assert_eq!(blocks().count(), FIRST.len());
    }

    #[test]
    fn other_tables_are_named() {
        let mut other = FIRST;
        other[1] ^= 1;
        let named = compared(&other);
        assert!(named.iter().any(|name| name.starts_with("U+1000 to U+1FFF: ")), "{named:?}");
        assert_eq!(named.len(), 1 + different().len());
    }
}
