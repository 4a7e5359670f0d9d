//! The staged filter on simulated pairs: how much it reads, and how often it differs from the full
//! comparison.
//!
//! Input: similarities from a [`Distribution`]. Each pair has K components that match independently with that
//! probability, as those of MinHash do. The program's own [`Schedule`](dupflow_core::filter::Schedule)
//! compares them. Rules on components of one width see the same pairs, at all thresholds. An error is a
//! verdict that differs from the full comparison, which accepts if and only if at least `ceil(T K)`
//! components match.
//!
//! References: Yuan et al., the staged CWS filter (2019), sections 5 and 6, for the paper's looks and
//! savings.

pub(super) mod pair;
pub(super) mod rules;
mod tally;

use rules::{ERROR, PAPER_LOOKS, Rule, SIZE};
use tally::RuleTally;

use super::distribution::Distribution;
use super::plot::{Axis, Plot, Series};
use super::table::{ResultTable, TableColumn, row};
use super::{EvaluateError, Findings, Study, StudyContext};

/// Thresholds on the similarity of wanted pairs, inclusive.
const THRESHOLDS: [f64; 4] = [0.8, 0.7, 0.5, 0.3];

/// The threshold of the plots.
const PLOTTED: f64 = THRESHOLDS[0];

/// The study of the staged filter.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// Simulated pairs of each distribution, 1 or more.
    pub pairs: usize,
}

/// The results of the rules on pairs of one distribution at one threshold.
struct FilterCell {
    threshold: f64,
    distribution: Distribution,
    rules: Vec<(Rule, RuleTally)>,
}

impl FilterCell {
    fn tally(&self, name: &str) -> &RuleTally {
        let found = self.rules.iter().find(|(rule, _)| rule.name == name);
        found.map(|(_, tally)| tally).expect("every cell has all rules")
    }
}

impl Study for Filter {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let cells = self.simulate(bench)?;
        Ok(Findings {
            name: "filter".to_owned(),
            title: "Staged filter".to_owned(),
            about: format!(
                "{} simulated pairs of each distribution. UNIFORM: J from U(0, 1). GAUSSIAN: N(0.5, 0.15²) \
                    within [0, 1]. FUNDS-like: 93 % Beta(1, 6), 5 % U(0, 1), 2 % Beta(20, 1.5). WEB-like: \
                    99.9 % Beta(0.8, 30), 0.1 % U(0, 1). \"paper\": looks at 100, 200, 400, 600, 800 and \
                    1000 components, binomial bounds of {ERROR:e} a look. \"dense\": looks at 16, 24, 32, \
                    48, 64, 96, 128 and then every 64, exact sequential bounds of {ERROR:e} each way over \
                    all looks together: the fewest components. \"4 bits\" and \"1 bit\": the shipped filter \
                    on components of so many bits, which reads one bit each of the first 64 and then looks \
                    where that pays on candidates of banding, which these pairs are not.",
                self.pairs
            ),
            tables: vec![components(&cells), bytes(&cells), errors(&cells), rates(&cells)],
            plots: Distribution::ALL.map(|distribution| undecided(&cells, distribution)).to_vec(),
        })
    }
}

impl Filter {
    /// By threshold, then by distribution.
    fn simulate(&self, bench: &StudyContext<'_>) -> Result<Vec<FilterCell>, EvaluateError> {
        let all = THRESHOLDS.map(Rule::all).into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut cells = Vec::new();
        for distribution in Distribution::ALL {
            let mut by_threshold: Vec<Vec<(Rule, RuleTally)>> = vec![Vec::new(); THRESHOLDS.len()];
            // Rules on components of one width see the same pairs.
            for width in 0..all[0].len() {
                let rules: Vec<Rule> = all.iter().flat_map(|widths| widths[width].clone()).collect();
                let each = rules.len() / THRESHOLDS.len();
                let tallies = tally::simulate(bench, distribution, self.pairs, &rules);
                for (i, found) in rules.into_iter().zip(tallies).enumerate() {
                    by_threshold[i / each].push(found);
                }
            }
            let cell = |(threshold, rules)| FilterCell { threshold, distribution, rules };
            cells.extend(THRESHOLDS.into_iter().zip(by_threshold).map(cell));
        }
        cells.sort_by(|a, b| b.threshold.total_cmp(&a.threshold));
        Ok(cells)
    }
}

/// The saved fraction of a whole, in percent.
fn saved(mean: f64, of: usize) -> f64 {
    100.0 * (1.0 - mean / of as f64)
}

fn components(cells: &[FilterCell]) -> ResultTable {
    let mut table = ResultTable::new(
        "filter_components",
        "Components read",
        &format!(
            "Mean over all pairs, of {SIZE}; \"certain\" is where the rest can no longer change the answer, \
                the least that a filter without any error reads."
        ),
        "T | pairs | certain | paper | paper saves, % | dense | dense saves, % | 4 bits | 1 bit",
    );
    for cell in cells {
        let mean = |name: &str| {
            let tally = cell.tally(name);
            tally.mean(tally.components)
        };
        let (paper, dense) = (mean("paper"), mean("dense"));
        let certain = cell.tally("dense");
        table.push(row![
            cell.threshold,
            cell.distribution.name(),
            certain.mean(certain.certain),
            paper,
            saved(paper, SIZE),
            dense,
            saved(dense, SIZE),
            mean("4 bits"),
            mean("1 bit"),
        ]);
    }
    table
}

fn bytes(cells: &[FilterCell]) -> ResultTable {
    let mut table = ResultTable::new(
        "filter_bytes",
        "Bytes read",
        "Of each of the two sketches, mean over all pairs. The full comparison reads 8000, 500 with 4 bits \
            and 125 with 1 bit.",
        "T | pairs",
    );
    let names = cells.iter().take(1).flat_map(|cell| &cell.rules).map(|(rule, _)| rule.name);
    table.columns.extend(names.map(|name| TableColumn { name: name.to_owned(), unit: "bytes" }));
    for cell in cells {
        let mut row = row![cell.threshold, cell.distribution.name()];
        row.extend(cell.rules.iter().map(|(_, tally)| (tally.mean(tally.bits) / 8.0).into()));
        table.push(row);
    }
    table
}

fn errors(cells: &[FilterCell]) -> ResultTable {
    let mut table = ResultTable::new(
        "filter_errors",
        "Wrong decisions",
        "Against the full comparison of the same components. The bound is for every pair, whatever its \
            similarity, so at most that share is expected; the paper's is for one look, relative to the true \
            similarity.",
        "T | pairs | rule | pairs to accept | rejected of them | pairs to reject | accepted of them | bound, \
            each way",
    );
    for cell in cells {
        for (rule, tally) in &cell.rules {
            table.push(row![
                cell.threshold,
                cell.distribution.name(),
                rule.name,
                tally.acceptable,
                tally.wrongly_rejected,
                tally.pairs - tally.acceptable,
                tally.wrongly_accepted,
                ERROR,
            ]);
        }
    }
    table
}

fn rates(cells: &[FilterCell]) -> ResultTable {
    const AT: [usize; 8] = [16, 32, 64, 128, 200, 400, 600, 800];
    let mut table = ResultTable::new(
        "filter_rates",
        "Pairs decided by the first components",
        "In percent of all pairs; one-bit components are counted as components.",
        "T | pairs | rule",
    );
    table.columns.extend(AT.map(|k| TableColumn { name: k.to_string(), unit: "%" }));
    for cell in cells {
        for (rule, tally) in &cell.rules {
            let mut row = row![cell.threshold, cell.distribution.name(), rule.name];
            row.extend(AT.map(|k| {
                let looks = rule.looks.iter().take_while(|look| **look as usize <= k).count();
                (100.0 * tally.share_decided(looks)).into()
            }));
            table.push(row);
        }
    }
    table
}

/// A step function: a value after a look stays until the next look. A rule of two looks is a line too, not a
/// point.
fn stairs(after: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let up_to_next = |two: &[(f64, f64)]| [two[0], (two[1].0, two[0].1)];
    after.windows(2).flat_map(up_to_next).chain(after.last().copied()).collect()
}

/// The fraction of undecided pairs, by components read.
fn undecided(cells: &[FilterCell], distribution: Distribution) -> Plot {
    let cell = cells
        .iter()
        .find(|cell| cell.distribution == distribution && cell.threshold.total_cmp(&PLOTTED).is_eq())
        .expect("there is a cell for each");
    let series = cell.rules.iter().map(|(rule, tally)| {
        let after =
            |(look, components): (usize, &u32)| (f64::from(*components), 1.0 - tally.share_decided(look + 1));
        let after: Vec<_> = rule.looks.iter().enumerate().map(after).collect();
        Series::new(rule.name.to_owned(), stairs(&after))
    });
    Plot::new(
        format!("filter_undecided_{}", distribution.name().to_lowercase()),
        format!(
            "Pairs not decided yet, {}, T = {PLOTTED}; paper's looks {PAPER_LOOKS:?}",
            distribution.name()
        ),
        Axis::log("components read"),
        Axis::linear("share of pairs"),
        series.collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_undecided_is_so_up_to_the_next_look() {
        assert_eq!(stairs(&[(64.0, 0.25), (448.0, 0.0)]), [(64.0, 0.25), (448.0, 0.25), (448.0, 0.0)]);
        let three = stairs(&[(1.0, 0.9), (2.0, 0.5), (4.0, 0.0)]);
        assert_eq!(three, [(1.0, 0.9), (2.0, 0.9), (2.0, 0.5), (4.0, 0.5), (4.0, 0.0)]);
    }
}
