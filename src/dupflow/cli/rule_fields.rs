//! The fields that `pairs.where` names, and why it rejects a pair.

use super::arguments::problems::Problems;
use super::summary::quoted;
use crate::config::Plan;
use dupflow_core::doc::fields::{FieldRow, FieldRule, FieldRules};
use dupflow_core::pair_rule::PairRule;

/// The rule of a plan, and the fields that it names.
#[derive(Default)]
pub(super) struct RuleFields {
    rule: PairRule,
    pub(super) rules: FieldRules,
}

impl RuleFields {
    /// Of the given fields those that the rule names. Reports those that are not given.
    pub(super) fn new(plan: Option<&Plan>, given: &FieldRules, problems: &mut Problems) -> Self {
        let rule = plan.map(|plan| plan.scheme.pairs.clone()).unwrap_or_default();
        for name in rule.fields().filter(|name| given.place(name).is_none()) {
            problems.note(format_args!("pairs.where: no field {name:?}; name it with --field"));
        }
        let rules = given.only(|name| rule.fields().any(|other| other == name));
        Self { rule, rules }
    }

    /// The hashes of a document's values.
    pub(super) fn hashes(&self, row: &FieldRow) -> Box<[u64]> {
        self.rule.hashes(|name| self.rules.place(name).map_or("", |place| row.get(place)))
    }

    /// The values of a document, one a line.
    pub(super) fn lines(&self, row: &FieldRow) -> Vec<String> {
        self.each(|place, name| format!("{name}: {}", quoted(row.get(place))))
    }

    /// Why the rule rejects a pair; `None` if it allows the pair.
    pub(super) fn rejection(&self, rows: [&FieldRow; 2]) -> Option<String> {
        let hashes = rows.map(|row| self.hashes(row));
        if self.rule.allows(&hashes[0], &hashes[1]) {
            return None;
        }
        let values = self.each(|place, name| {
            let [own, other] = rows.map(|row| quoted(row.get(place)));
            format!("{name} is {own} here and {other} there")
        });
        Some(format!("pairs.where wants {}, and {}", self.rule, values.join(", ")))
    }

    fn each(&self, line: impl Fn(usize, &str) -> String) -> Vec<String> {
        let named = self.rules.rules().iter().map(FieldRule::name).enumerate();
        named.map(|(place, name)| line(place, name)).collect()
    }
}
