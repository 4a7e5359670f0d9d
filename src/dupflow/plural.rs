//! Numbers with their nouns.

use indicatif::HumanCount;

/// A number with its noun, in the plural unless it is 1: "1 match", "2,000 matches", "2 copies".
pub(crate) fn count(n: u64, noun: &str) -> String {
    let (stem, ending) = match noun.as_bytes() {
        _ if n == 1 => (noun, ""),
        [.., b't', b'c', b'h'] => (noun, "es"),
        [.., b'p', b'y'] => (&noun[..noun.len() - 1], "ies"),
        _ => (noun, "s"),
    };
    format!("{} {stem}{ending}", HumanCount(n))
}

/// A count with its noun, without separators: "1 block", "2000 blocks".
pub(crate) fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
