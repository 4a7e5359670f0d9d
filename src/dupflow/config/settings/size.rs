//! Sizes in bytes as they are written, everywhere alike: `150000000`, "500MB", "8GiB".

/// The units, each with its bytes; the longer names first.
const UNITS: [(&str, f64); 9] = [
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("B", 1.0),
];

/// The size in bytes, at most 2^53: digits, with a decimal point or not, and a unit; without one, bytes.
pub fn size(written: &str) -> Option<u64> {
    let unit = UNITS.iter().find_map(|(unit, bytes)| Some((written.strip_suffix(unit)?, *bytes)));
    let (digits, bytes) = unit.unwrap_or((written, 1.0));
    let size = plain_number(digits)? * bytes;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 2^53")]
    (size <= 9_007_199_254_740_992.0).then_some(size as u64)
}

/// A number of digits, with a point or without.
pub(in crate::config) fn plain_number(digits: &str) -> Option<f64> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse().ok().filter(|_| is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_a_unit_or_is_in_bytes() {
        for (written, bytes) in [
            ("150000000", 150_000_000),
            ("0", 0),
            ("17B", 17),
            ("8GiB", 8 << 30),
            ("0.5GiB", 512 << 20),
            ("70000KiB", 70_000 << 10),
            ("1TiB", 1 << 40),
            ("500MB", 500_000_000),
            ("2GB", 2_000_000_000),
            ("1.5TB", 1_500_000_000_000),
            ("100000kB", 100_000_000),
            ("9007199254740992", 1 << 53),
        ] {
            assert_eq!(size(written), Some(bytes), "{written}");
        }
        for wrong in ["", "8 GiB", "8G", "-1GiB", "infGiB", "1e9GiB", "99999TB", "GiB", ".", "9e3", "0x10"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
