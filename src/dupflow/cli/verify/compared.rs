//! Compares the records of two outputs.
//!
//! Records are compared in order while they are equal. From the first difference on, what is left of both is
//! compared without order, which takes memory for the rest. Times of day are left out of the comparison.
//! Where epochs were cut by the clock, changes are added up, and what they add up to is compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::records::Record;
use crate::config::{Deployment, Plan};

/// Keys by which the records of two outputs belong together.
const IDENTITY: [&str; 7] = ["epoch", "diff", "a", "b", "document", "cluster", "id"];

/// Keys of times of day: that of a delta, and that of a decision.
const TIMES: [&str; 2] = ["committed", "at"];

/// Keys of a change that depend on where epochs are cut.
const BY_EPOCH: [&str; 4] = ["epoch", "diff", "cause", "event_time"];

/// How records are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordRule {
    /// One by one.
    Each,
    /// Changes are added up.
    Sums,
}

/// What two outputs have in common, and how they differ.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// Records that are in both.
    pub(super) equal: u64,
    /// Whether equal records are in another order.
    pub(super) is_in_other_order: bool,
    /// Records that are in one output only, by what they are about, in the order in which they were found.
    pub(super) different: Vec<Different>,
}

/// Records about the same, in one output or in both.
#[derive(Debug, Default)]
pub(super) struct Different {
    pub(super) there: Vec<String>,
    pub(super) here: Vec<String>,
}

impl RecordRule {
    /// How the records of such a replay are compared.
    pub(super) fn new(_: &Plan, deployment: &Deployment) -> Self {
        if is_by_clock(deployment) && deployment.output.answer.is_of_changes() {
            Self::Sums
        } else {
            Self::Each
        }
    }
}

/// Whether epochs end by the time of day.
pub(super) fn is_by_clock(deployment: &Deployment) -> bool {
    deployment.source.is_cut_by_clock()
}

/// Number of times that a record is in one output more than in the other, and when it was first found.
#[derive(Default)]
struct Surplus {
    count: i64,
    first: usize,
}

/// Compares two outputs.
pub(super) fn compare(
    mut there: impl Iterator<Item = Record>,
    mut here: impl Iterator<Item = Record>,
    rule: RecordRule,
) -> anyhow::Result<Compared> {
    let mut compared = Compared::default();
    let mut rest: BTreeMap<String, Surplus> = BTreeMap::new();
    let mut found = 0;
    let mut put = |record: &str, count: i64| {
        let surplus = rest.entry(record.to_owned()).or_insert(Surplus { count: 0, first: found });
        surplus.count += count;
        found += 1;
    };
    let mut in_order = rule == RecordRule::Each;
    loop {
        let (theirs, ours) = (there.next(), here.next());
        if theirs.is_none() && ours.is_none() {
            break;
        }
        let [(theirs, n), (ours, m)] = [theirs, ours].map(|record| counted(record, rule));
        if in_order && theirs == ours {
            compared.equal += 1;
            continue;
        }
        in_order = false;
        theirs.iter().for_each(|record| put(record, n));
        ours.iter().for_each(|record| put(record, -m));
    }
    let others = rest.values().filter(|surplus| surplus.count == 0).count() as u64;
    compared.equal += others;
    compared.different = by_identity(rest.into_iter().filter(|(_, surplus)| surplus.count != 0));
    compared.is_in_other_order = rule == RecordRule::Each && !in_order && compared.different.is_empty();
    Ok(compared)
}

/// A record as it is compared, and how often it counts.
fn counted(record: Option<Record>, rule: RecordRule) -> (Option<String>, i64) {
    let mut record = match record {
        None => return (None, 0),
        Some(Ok(record)) => record,
        Some(Err(what)) => return (Some(what), 1),
    };
    TIMES.iter().for_each(|key| drop(record.remove(*key)));
    let mut count = 1;
    if rule == RecordRule::Sums {
        // In a table of comma-separated values numbers are texts.
        let diff =
            record.get("diff").map(|diff| diff.as_str().map_or_else(|| diff.to_string(), str::to_owned));
        count = diff.and_then(|diff| diff.parse().ok()).unwrap_or(1);
        BY_EPOCH.iter().for_each(|key| drop(record.remove(*key)));
    }
    (Some(Json::Object(record).to_string()), count)
}

/// Groups records by what they are about.
fn by_identity(records: impl Iterator<Item = (String, Surplus)>) -> Vec<Different> {
    let mut groups: BTreeMap<String, (usize, Different)> = BTreeMap::new();
    for (record, Surplus { count, first }) in records {
        let (at, group) = groups.entry(identity(&record)).or_insert((first, Different::default()));
        *at = first.min(*at);
        let side = if count > 0 { &mut group.there } else { &mut group.here };
        let times = if count.abs() == 1 { String::new() } else { format!(" ({} times)", count.abs()) };
        side.push(record + &times);
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|(first, _)| *first);
    groups.into_iter().map(|(_, group)| group).collect()
}

/// What a record is about, as text.
fn identity(record: &str) -> String {
    let Ok(values) = serde_json::from_str::<Map<String, Json>>(record) else { return record.to_owned() };
    let named = IDENTITY.iter().filter_map(|key| Some(format!("{key} {}", values.get(*key)?)));
    named.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[&str]) -> impl Iterator<Item = Record> + use<> {
        let record = |line: &&str| serde_json::from_str(line).map_err(|error| error.to_string());
        lines.iter().map(record).collect::<Vec<_>>().into_iter()
    }

    const A: &str = r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.9,"committed":5.0}"#;
    const A_LATER: &str = r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.9,"committed":6.5}"#;
    const A_OTHER: &str = r#"{"epoch":1,"diff":1,"a":"a","b":"b","similarity":0.8}"#;
    const C: &str = r#"{"epoch":2,"diff":1,"a":"c","b":"d","similarity":1.0}"#;
    const C_ENDS: &str = r#"{"epoch":3,"diff":-1,"a":"c","b":"d","similarity":1.0}"#;

    fn compared(there: &[&str], here: &[&str], rule: RecordRule) -> (u64, bool, Vec<(usize, usize)>) {
        let found = compare(records(there), records(here), rule).unwrap();
        let sides = |group: &Different| (group.there.len(), group.here.len());
        (found.equal, found.is_in_other_order, found.different.iter().map(sides).collect())
    }

    #[test]
    fn each_record_is_in_both_or_a_difference() {
        let each = |there: &[&str], here: &[&str]| compared(there, here, RecordRule::Each);
        assert_eq!(each(&[A, C], &[A_LATER, C]), (2, false, vec![]), "the time of day does not count");
        assert_eq!(each(&[A, C], &[A]), (1, false, vec![(1, 0)]));
        assert_eq!(each(&[C], &[A, C]), (1, false, vec![(0, 1)]));
        assert_eq!(each(&[A, C], &[A_OTHER, C]), (1, false, vec![(1, 1)]), "one pair, two similarities");
        assert_eq!(each(&[C, A], &[A, C]), (2, true, vec![]));
        assert_eq!(each(&[A, A], &[A]), (1, false, vec![(1, 0)]));
        assert_eq!(each(&["{"], &[A]), (0, false, vec![(1, 0), (0, 1)]));
    }

    #[test]
    fn changes_add_up_where_the_clock_cuts() {
        let sums = |there: &[&str], here: &[&str]| compared(there, here, RecordRule::Sums);
        assert_eq!(sums(&[A, C, C_ENDS], &[A]), (2, false, vec![]), "what ends is in neither");
        assert_eq!(sums(&[A, C], &[C, A]), (2, false, vec![]));
        assert_eq!(sums(&[A, C, C_ENDS], &[A, C]), (1, false, vec![(0, 1)]));
    }
}
