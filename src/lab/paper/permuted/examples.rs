//! 002-E1 to E3: the cost of looking up or storing all neighbours, and what equal leading bits leave.

use super::super::super::EvaluateError;
use super::super::super::search::measured::{SearchRow, SearchSetting};
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use dupflow_core::block::hamming::{Design, DesignKind, DesignUse, binomial};

/// Number of pages of the source: 2^34 fingerprints.
const PAGES: u64 = 1 << 34;

/// Bytes of a fingerprint and its id in a table of this size.
const ROW_BYTES: u64 = 8 + 8;

pub(super) fn make(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let bench = work.bench;
    // One block: all values within the radius are looked up.
    let all_near = Design::new(64, 3, DesignKind::MultiIndex { blocks: 1 })?;
    let small = SearchSetting { bits: 64, documents: 1000, queries: 4, seed: bench.seed };
    let rows = small.run(&[all_near], bench.clock)?;
    let SearchRow { work: looked, missed, .. } = &rows[0];
    let (exactly, within) = (binomial(64, 3), looked.probes / small.queries as u64);
    // Each table is led by 30 of 34 bits, for every choice of four others.
    let leading = Design::new(34, 4, DesignKind::OneLevel { blocks: 34 })?;
    let left = leading.estimate(PAGES, DesignUse::Index).candidates / leading.tables() as f64;
    // The same at a size that is built in moments: 2^14 fingerprints, four tables led by 10 bits.
    let ten = SearchSetting { bits: 40, documents: 1 << 14, queries: 1000, seed: bench.seed };
    let of_ten = ten.run(&[Design::new(40, 3, DesignKind::OneLevel { blocks: 4 })?], bench.clock)?;
    let measured = of_ten[0].work.entries as f64 / of_ten[0].work.probes as f64;

    const PRINTED: f64 = 41_664.0;
    let lines = vec![
        ItemLine::new("002-E1", "fingerprints at distance 3 of one of 64 bits", "C(64, 3), garbled; 41,664")
            .measured(grouped(exactly))
            .judged(Basis::Computed(PrintedClaim::equal(PRINTED, exactly as f64, Matters::Any)))
            .because("The printed number is that of distance exactly 3."),
        ItemLine::new("002-E1", "look-ups of a query that finds all within 3 in one sorted table", "41,664")
            .measured(grouped(within))
            .judged(UnjudgedReason::Reading.checked(PrintedClaim::equal(
                43_745.0,
                within as f64,
                Matters::Any,
            )))
            .because(
                "Right of distance exactly 3. Those nearer have to be looked up too, and the fingerprint \
                    itself: checked, 43,745.",
            ),
        ItemLine::new("002-E1", "planted neighbours that these look-ups miss", "none")
            .measured(format!("{missed} of {}", small.queries))
            .judged(Basis::Measured(PrintedClaim::none(*missed)))
            .because("At distances 0 to 3."),
        ItemLine::new("002-E2", "space of all neighbours within 3 of all fingerprints", "4 1664 times")
            .measured(format!(
                "{} times, {:.1} PB for 2^34 fingerprints with ids",
                grouped(within),
                (PAGES * ROW_BYTES) as f64 * within as f64 / 1e15
            ))
            .judged(UnjudgedReason::LostSymbols)
            .because(
                "The digits may be 41,664, torn apart: of distance exactly 3. The bytes are by formula.",
            ),
        ItemLine::new("002-E3", "2^34 fingerprints, 30 equal leading bits leave", "24")
            .measured(format!("{left}"))
            .judged(UnjudgedReason::LostSymbols.checked(PrintedClaim::equal(16.0, left, Matters::Any)))
            .because("2^(34-30) = 2^4 = 16, checked: the stored text has lost the exponent."),
        ItemLine::new("002-E3", "the same at 2^14 with 10 leading bits: entries of a probe", "2^4")
            .measured(format!("{measured:.2}"))
            .judged(Basis::Measured(PrintedClaim::equal(16.0, measured, Matters::From(0.5))))
            .because("1,000 queries of four probes each, read in tables that are built."),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// A count with commas between thousands.
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
