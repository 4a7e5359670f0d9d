//! Numbers with their nouns.

use indicatif::HumanCount;

/// A number with its noun, in the plural unless it is 1: "1 match", "2,000 matches".
pub(crate) fn count(n: u64, noun: &str) -> String {
    let ending = match noun.as_bytes() {
        _ if n == 1 => "",
        [.., b't', b'c', b'h'] => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", HumanCount(n))
}

/// A count with its noun, without separators: "1 block", "2000 blocks".
pub(crate) fn counted(n: usize, thing: &str) -> String {
    format!("{n} {thing}{}", if n == 1 { "" } else { "s" })
}
