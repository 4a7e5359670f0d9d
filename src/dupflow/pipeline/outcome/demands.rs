//! Conditions that a run must meet after it has read all input. If it does not, it fails, and an output that
//! is written at the end is not published.

use std::fmt::Write as _;
use std::sync::Arc;

use super::measures::{Latencies, Measures};
use crate::plural::count;
use dupflow_connectors::formats::BadRecord;
use dupflow_connectors::intake::BadRecords;
use dupflow_engine::dataflow::Stages;
use dupflow_run::metrics::Counter;
use dupflow_run::origins::Origins;

/// The conditions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demands {
    /// The greatest share of records that may be bad, from 0 to 1, inclusive; `None`: any.
    pub max_bad: Option<f64>,
    /// The greatest number of files that may be unread, wholly or in part; `None`: none where the output is a
    /// list or `max_bad` is set, else any.
    pub max_unread: Option<u64>,
    /// Whether the output is a list of documents to keep or remove. Then no record may be bad unless
    /// `max_bad` is set.
    pub is_list: bool,
    /// Whether the output is of items of a reference, each of which is looked for.
    pub lists_items: bool,
    /// Whether an id may be in several files, and its last document counts. If false, a list fails for such
    /// an id.
    pub last_of_id: bool,
    /// Bad records of items, which have a bound of their own.
    pub bad_items: u64,
    /// Events that an earlier process has read of a replay.
    pub before: u64,
    /// The inputs of a reference, one of which has to hold a document.
    pub reference: Vec<Arc<str>>,
}

impl Demands {
    /// The conditions that are not met, one line each.
    pub(in crate::pipeline) fn unmet(&self, measures: &Measures, origins: Option<&Origins>) -> Vec<String> {
        let (mut unmet, mut named) = (Vec::new(), self.bad_items);
        for (name, tally) in &measures.inputs {
            let Some(what) = tally.no_document(name) else { continue };
            let fields = if self.reference.contains(name) { fields_of_reference(&what) } else { "" };
            unmet.push(what + fields);
            named += tally.bad;
        }
        unmet.extend(self.empty_reference(measures, origins));
        let bad = measures.bad_records.values().sum::<u64>().saturating_sub(named);
        let all = bad + self.before + measures.counts.get(Counter::Events);
        let allowed = self.max_bad.or(self.is_list.then_some(0.0));
        if let Some(allowed) = allowed
            && bad > 0
            && share(bad, all) > allowed
        {
            let mut line = format!("{bad} of {all} records are bad (");
            let reasons = measures.bad_records.iter().map(|(reason, count)| format!("{count} {reason}"));
            line += &reasons.collect::<Vec<_>>().join(", ");
            let least = (share(bad, all) * 1e6).ceil() / 1e6;
            let list = if self.is_list { ", and the list would leave their documents out" } else { "" };
            let first = measures.inputs.values().find_map(|tally| tally.first.as_deref());
            let first = first.map_or_else(String::new, |first| format!("; {first}"));
            let allows = format!(", --max-bad {least} (source.max_bad) allows them");
            let allows = if bad < all { &*allows } else { "" };
            write!(
                line,
                "{first}), more than the allowed share of {allowed}{list}: dead letters keep them{allows}"
            )
            .expect("a string takes what is written to it");
            unmet.push(line);
        }
        let unread = &measures.unread;
        let most = self.max_unread.or((self.is_list || self.max_bad.is_some()).then_some(0));
        if most.is_some_and(|most| unread.count > most) {
            let first = unread.first.as_deref().map_or_else(String::new, |first| format!(" ({first})"));
            unmet.push(format!(
                "{} not read, or only in part{first}: how many records that hides is not known, so that no \
                 share of bad records allows it: --max-unread {} (source.max_unread) allows as many files",
                if unread.count == 1 {
                    "1 file is".to_owned()
                } else {
                    format!("{} files are", unread.count)
                },
                unread.count
            ));
        }
        let replaced = measures.counts.get(Counter::ReplacedAcrossFiles);
        if replaced > 0 && self.is_list && !self.last_of_id {
            let example = origins.and_then(Origins::example);
            let such = example.map_or_else(String::new, |example| format!(" ({example})"));
            let are = if replaced == 1 { "is" } else { "are" };
            unmet.push(format!(
                "{} {are} replaced by another file's document of the same id{such}, and the list would name \
                one for several: --ids file (source.ids) names documents by their files, --ids last says \
                that the last one is meant",
                count(replaced, "document")
            ));
        }
        let items = measures.counts.get(Counter::ReplacedInReference);
        if items > 0 && self.lists_items && !self.last_of_id {
            unmet.push(format!(
                "{} of --against {} by another one of the same id, and would not be looked for: name a field \
                 whose values are unique (--id-field), --ids file names items by their files and numbers, \
                 --ids last says that the last one is meant",
                count(items, "item"),
                if items == 1 { "is replaced" } else { "are replaced" }
            ));
        }
        unmet
    }

    /// Whether what has been read so far meets them.
    pub(in crate::pipeline) fn are_met(&self, stages: &Stages, bad: &BadRecords) -> bool {
        let measures = Measures::collect(stages, bad, Latencies::default());
        self.unmet(&measures, stages.observers.origins.as_deref()).is_empty()
    }

    /// Logs what is no error of a feed, and loses documents of a table.
    pub(in crate::pipeline) fn warn(&self, measures: &Measures) {
        let across = measures.counts.get(Counter::ReplacedAcrossFiles);
        let replaced = measures.counts.get(Counter::Replaced).saturating_sub(across);
        if replaced > 0 && self.is_list && !self.last_of_id {
            tracing::warn!(
                replaced,
                "records have the id of an earlier record of the same file, and replace it, as in a feed \
                 with updates; if they are other documents, name a field whose values are unique \
                 (--id-field), or name documents by their files and numbers (--ids file)"
            );
        }
    }

    /// An error message for a reference that holds neither a document nor a bad record.
    fn empty_reference(&self, measures: &Measures, origins: Option<&Origins>) -> Option<String> {
        let is_empty = if self.before == 0 {
            let mut counted = self.reference.iter().filter_map(|name| measures.inputs.get(name));
            counted.all(|of| of.documents == 0 && of.bad == 0)
        } else {
            // The inputs of a replay that is continued are not counted.
            !origins?.is_of_reference(0)
        };
        (is_empty && !self.reference.is_empty())
            .then(|| "--against holds no document, so nothing was compared with it".to_owned())
    }
}

/// What helps against a reference whose records lack a field, as `what` says.
pub fn fields_of_reference(what: &str) -> &'static str {
    let lacks = [BadRecord::MissingText, BadRecord::MissingId].iter().any(|bad| what.contains(bad.reason()));
    if lacks {
        "; --against-text-field and --against-id-field (reference.text_path, reference.id_path) name the \
         fields of a reference"
    } else {
        ""
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share needs no more than a float's 53 bits")]
fn share(part: u64, all: u64) -> f64 {
    part as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use dupflow_connectors::intake::{InputTally, UnreadFiles};
    use dupflow_run::metrics::Metrics;

    fn measures(events: u64, bad: u64) -> Measures {
        let metrics = Metrics::new(0);
        metrics.add(Counter::Events, events);
        let bad_records = BTreeMap::from([("not_json".to_owned(), bad)]);
        Measures { counts: metrics.counts(), bad_records, ..Measures::default() }
    }

    #[test]
    fn shares_are_inclusive_and_lists_allow_none() {
        let of = |max_bad, is_list| Demands { max_bad, is_list, ..Demands::default() };
        let unmet = |demands: Demands, events, bad| !demands.unmet(&measures(events, bad), None).is_empty();
        assert!(!unmet(of(None, false), 1, 9));
        assert!(unmet(of(None, true), 9, 1) && !unmet(of(None, true), 9, 0));
        assert!(!unmet(of(Some(0.1), true), 9, 1) && unmet(of(Some(0.099), true), 9, 1));
        assert!(unmet(of(Some(0.0), false), 1_000_000, 1) && !unmet(of(Some(1.0), true), 0, 5));
        let line = &of(None, true).unmet(&measures(2, 1), None)[0];
        assert!(
            line.contains("1 of 3 records are bad (1 not_json)") && line.contains("--max-bad 0.333334"),
            "{line}"
        );
    }

    #[test]
    fn an_unread_file_is_more_than_a_record() {
        let unmet = |max_bad, max_unread, is_list, count| {
            let unread = UnreadFiles { count, first: Some("why".to_owned()) };
            let demands = Demands { max_bad, max_unread, is_list, ..Demands::default() };
            demands.unmet(&Measures { unread, ..measures(1_000, count) }, None).join("; ")
        };
        assert_eq!(unmet(None, None, false, 3), "", "of other outputs none is bounded");
        for (max_bad, is_list) in [(Some(1.0), true), (Some(0.5), false), (Some(1.0), false)] {
            assert!(
                unmet(max_bad, None, is_list, 1).starts_with("1 file is not read, or only in part (why)")
            );
            assert!(unmet(max_bad, Some(1), is_list, 2).contains("--max-unread 2"));
            assert_eq!(unmet(max_bad, Some(2), is_list, 2), "");
        }
        assert!(unmet(None, Some(0), false, 1).contains("1 file is"), "it was asked for");
    }

    #[test]
    fn an_input_without_a_document_is_named() {
        let tally = |documents, bad| InputTally { documents, bad, first: Some("why".to_owned()) };
        let inputs = [("a", tally(1, 5)), ("b", tally(0, 2)), ("c", tally(0, 0))];
        let inputs = inputs.into_iter().map(|(name, of)| (name.into(), of)).collect();
        let unmet = Demands::default().unmet(&Measures { inputs, ..measures(1, 7) }, None);
        assert_eq!(unmet, ["\"b\" holds 2 records and no document: why"]);
    }

    #[test]
    fn a_reference_without_a_document_is_reported() {
        let unmet = |names: &[&str], documents, bad, before| {
            let tally = InputTally { documents, bad, first: None };
            let reference = names.iter().map(|name| (*name).into()).collect();
            let inputs = [("a".into(), tally)].into();
            let demands = Demands { before, reference, max_bad: Some(1.0), ..Demands::default() };
            let origins = Origins::new(None, false).with_reference();
            origins.end_reference(0);
            demands.unmet(&Measures { inputs, ..measures(1, bad) }, Some(&origins)).len()
        };
        assert_eq!([unmet(&["a", "b"], 1, 0, 0), unmet(&[], 0, 0, 0), unmet(&["b"], 1, 0, 0)], [0, 0, 1]);
        assert_eq!([unmet(&["a"], 0, 0, 0), unmet(&["a"], 0, 1, 0), unmet(&["a"], 1, 0, 7)], [1, 1, 1]);
    }
}
