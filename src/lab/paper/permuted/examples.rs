//! 002-E1 to E3: what looking up or storing all neighbours would take, and what equal leading bits leave.

use super::super::super::EvaluateError;
use super::super::super::search::measured::{Row, Setting};
use super::super::{Basis, Claim, Line, Made, Tolerance, Work};
use dupflow_core::block::hamming::{Design, DesignKind, DesignUse, binomial};

/// Pages of the source: 2^34 fingerprints.
const PAGES: u64 = 1 << 34;

/// Bytes of a fingerprint and its id in a table of so many.
const ROW_BYTES: u64 = 8 + 8;

pub(super) fn make(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let bench = work.bench;
    // One block: all values within the radius are looked up.
    let all_near = Design::new(64, 3, DesignKind::MultiIndex { blocks: 1 })?;
    let small = Setting { bits: 64, documents: 1000, queries: 4, seed: bench.seed };
    let rows = small.run(&[all_near], bench.clock)?;
    let Row { work: looked, missed, .. } = &rows[0];
    let (exactly, within) = (binomial(64, 3), looked.probes / small.queries as u64);
    // Of 34 bits 30 lead each table, whichever four do not.
    let leading = Design::new(34, 4, DesignKind::OneLevel { blocks: 34 })?;
    let left = leading.estimate(PAGES, DesignUse::Index).candidates / leading.tables() as f64;
    // The same at a size that is built in moments: 2^14 fingerprints, four tables led by 10 bits.
    let ten = Setting { bits: 40, documents: 1 << 14, queries: 1000, seed: bench.seed };
    let of_ten = ten.run(&[Design::new(40, 3, DesignKind::OneLevel { blocks: 4 })?], bench.clock)?;
    let measured = of_ten[0].work.entries as f64 / of_ten[0].work.probes as f64;
    let entry_deviation = (16.0 / of_ten[0].work.probes as f64).sqrt();

    const PRINTED: f64 = 41_664.0;
    let near = |count: u64| Basis::Exact(Claim::equal(PRINTED, count as f64, Tolerance::Exact));
    let lines = vec![
        Line::new(
            "002-E1",
            "fingerprints at distance 3 of one of 64 bits",
            "C(64, 3), garbled; 41,664",
            grouped(exactly),
            near(exactly),
            "The printed number is that of distance exactly 3.",
        ),
        Line::new(
            "002-E1",
            "look-ups of a query that finds all within 3 in one sorted table",
            "41,664",
            format!("{}; {missed} of {} planted missed", grouped(within), small.queries),
            near(within),
            "Those nearer than 3 have to be looked up too, and the fingerprint itself.",
        ),
        Line::new(
            "002-E1",
            "planted neighbours that these look-ups miss",
            "none",
            missed.to_string(),
            Basis::Measured(Claim::none(*missed)),
            "At distances 0 to 3.",
        ),
        Line::new(
            "002-E2",
            "space of all neighbours within 3 of all fingerprints",
            "4 1664 times",
            format!(
                "{} times, {:.1} PB for 2^34 fingerprints with ids",
                grouped(within),
                (PAGES * ROW_BYTES) as f64 * within as f64 / 1e15
            ),
            near(within),
            "The digits are 41,664, torn apart, and again of distance exactly 3; the bytes are by formula.",
        ),
        Line::new(
            "002-E3",
            "2^34 fingerprints, 30 equal leading bits leave",
            "24",
            format!("{left}"),
            Basis::Exact(Claim::equal(24.0, left, Tolerance::Exact)),
            "2^(34-30) = 2^4 = 16: the exponent is printed as a digit.",
        ),
        Line::new(
            "002-E3",
            "the same at 2^14 with 10 leading bits: entries of a probe",
            "2^4",
            format!("{measured:.2}"),
            Basis::Measured(Claim::equal(16.0, measured, Tolerance::Deviations(5.0, entry_deviation))),
            "1,000 queries of four probes each, read in tables that are built.",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}

/// A count with commas.
pub(in super::super) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let comma = |(i, digit): (usize, char)| {
        let is_first = i == 0 || !(digits.len() - i).is_multiple_of(3);
        (!is_first).then_some(',').into_iter().chain([digit])
    };
    digits.chars().enumerate().flat_map(comma).collect()
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_048_576].map(grouped), ["0", "999", "1,000", "1,048,576"]);
    }
}
