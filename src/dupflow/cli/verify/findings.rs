//! What `verify` has compared and found, as text.

use std::collections::BTreeSet;
use std::fmt::{Display, Write as _};
use std::path::Path;

use super::compared::{Compared, Different, RecordRule};
use crate::cli::summary::quoted;
use crate::pipeline::{CountsRecord, PipelineRecord, ProgramRecord};
use crate::plural::count;
use dupflow_connectors::digest::InputDigest;

/// Most differing records that are listed.
const MOST_RECORDS: usize = 10;

/// Reasons for which a run skips files of a folder that are no inputs: another number of them is a note.
const FILES_BESIDE: [&str; 3] = ["hidden", "special", "circular"];

/// What was compared, and what differs.
#[derive(Debug, Default)]
pub(super) struct VerifyFindings {
    compared: Vec<String>,
    notes: Vec<String>,
    different: Vec<String>,
}

impl VerifyFindings {
    /// Whether nothing differs.
    pub(super) fn holds(&self) -> bool {
        self.different.is_empty()
    }

    /// Adds a difference.
    pub(super) fn differs(&mut self, what: impl Display) {
        self.different.push(what.to_string());
    }

    /// Adds what was compared, if nothing of it has differed since `before`.
    fn equal_since(&mut self, before: usize, what: impl Display) {
        if self.different.len() == before {
            self.compared.push(what.to_string());
        }
    }

    /// Compares the inputs in order: sizes, then digests.
    pub(super) fn inputs(&mut self, there: &[InputDigest], here: &[InputDigest]) {
        let before = self.different.len();
        if there.len() != here.len() {
            self.differs(format_args!("inputs: {} there, {} here", there.len(), here.len()));
        }
        let size = |input: &InputDigest| {
            let files = input.files.map(|n| format!("{}, ", count(n, "file"))).unwrap_or_default();
            let bytes = input.bytes.map_or_else(|| "an unknown size".to_owned(), |n| count(n, "byte"));
            files + &bytes
        };
        for (number, (theirs, ours)) in (1..).zip(there.iter().zip(here)) {
            let input = format!("input {number}, {}", quoted(&ours.name));
            if theirs.name != ours.name {
                self.notes.push(format!("{input} is named {} there", quoted(&theirs.name)));
            }
            if (theirs.bytes, theirs.files) != (ours.bytes, ours.files) {
                self.differs(format_args!("{input}: {} there, {} here", size(theirs), size(ours)));
            }
            match (&theirs.sha256, &ours.sha256) {
                (Some(theirs), Some(ours)) if theirs == ours => {}
                (Some(theirs), Some(ours)) => {
                    self.differs(format_args!("{input}: SHA-256 {theirs} there, {ours} here"));
                }
                (None, _) => self.differs(format_args!("{input}: the report has no digest of it")),
                (_, None) => self.differs(format_args!("{input}: it was not read as a whole here")),
            }
        }
        let bytes: u64 = here.iter().filter_map(|input| input.bytes).sum();
        let what = format!("inputs     {} of {}", count(here.len() as u64, "input"), count(bytes, "byte"));
        self.equal_since(before, what);
    }

    /// Compares the programs. Features do not change results, and are a note.
    pub(super) fn program(&mut self, there: &ProgramRecord, here: &ProgramRecord) {
        let before = self.different.len();
        if there.version != here.version {
            self.differs(format_args!("program: version {} there, {} here", there.version, here.version));
        }
        if let (Some(theirs), Some(ours)) = (&there.commit, &here.commit)
            && theirs != ours
        {
            self.differs(format_args!("program: commit {theirs} there, {ours} here"));
        } else if there.commit != here.commit {
            self.notes.push("one of the two programs does not know its commit".to_owned());
        }
        if there.features != here.features {
            let (theirs, ours) = (there.features.join(" "), here.features.join(" "));
            self.notes.push(format!("the features are {theirs} there and {ours} here"));
        }
        self.equal_since(before, format_args!("program    dupflow {}", here.version));
    }

    /// Compares pipelines key by key; `whose` says of which pipeline `here` is.
    pub(super) fn pipeline(&mut self, there: &PipelineRecord, here: &PipelineRecord, whose: &str) {
        let before = self.different.len();
        let names: BTreeSet<_> = there.keys.keys().chain(here.keys.keys()).collect();
        let value = |value: Option<&String>| value.map_or_else(|| "not set".to_owned(), Clone::clone);
        for name in &names {
            let (theirs, ours) = (there.keys.get(*name), here.keys.get(*name));
            if theirs != ours {
                let (theirs, ours) = (value(theirs), value(ours));
                self.differs(format_args!("pipeline key {name}: {theirs} there, {ours} {whose}"));
            }
        }
        if there.fingerprint != here.fingerprint {
            let (theirs, ours) = (&there.fingerprint, &here.fingerprint);
            self.differs(format_args!("pipeline fingerprint: {theirs} there, {ours} {whose}"));
        }
        self.equal_since(before, format_args!("pipeline   {} keys, {}", names.len(), here.name));
    }

    /// Adds how the records compare.
    pub(super) fn records(&mut self, compared: &Compared, rule: RecordRule) {
        let before = self.different.len();
        let Compared { equal, is_in_other_order, different } = compared;
        if *is_in_other_order {
            self.differs("records: the same in another order");
        }
        let (mut there, mut here) = (0, 0);
        for Different { there: theirs, here: ours } in different {
            there += theirs.len();
            here += ours.len();
        }
        if !different.is_empty() {
            let (there, here) = (count(there as u64, "record"), count(here as u64, "record"));
            let mut lines = format!("records: {there} only in the report, {here} only in the replay");
            for group in different.iter().take(MOST_RECORDS) {
                for (where_, records) in [("report", &group.there), ("replay", &group.here)] {
                    for record in records {
                        let _ = write!(lines, "\n    {where_}  {record}");
                    }
                }
            }
            if let Some(more @ 1..) = different.len().checked_sub(MOST_RECORDS) {
                let _ = write!(lines, "\n    and {} more", count(more as u64, "difference"));
            }
            self.differs(lines);
        }
        let how = match rule {
            RecordRule::Each => "",
            RecordRule::Sums => ", changes added up, since the clock cut the epochs",
        };
        self.equal_since(before, format_args!("records    {}{how}", count(*equal, "record")));
    }

    /// Compares the counts.
    pub(super) fn counts(
        &mut self,
        there: Option<&CountsRecord>,
        here: Option<&CountsRecord>,
        rule: RecordRule,
    ) {
        let before = self.different.len();
        // A report without counts is cut short, which has been said.
        let (Some(there), Some(here)) = (there, here) else { return };
        let single = |counts: &CountsRecord| {
            let CountsRecord { events, documents, deltas, pairs, after_until, undated_until, .. } = *counts;
            [
                ("events", events),
                ("documents", documents),
                ("deltas", deltas),
                ("pairs", pairs),
                ("after_until", after_until),
                ("undated_until", undated_until),
            ]
        };
        let mut different = Vec::new();
        for ((name, theirs), (_, ours)) in single(there).into_iter().zip(single(here)) {
            // Where the clock cuts, a pair may come up and end within one epoch.
            if theirs != ours && (name, rule) != ("deltas", RecordRule::Sums) {
                different.push(format!("count of {name}: {theirs} there, {ours} here"));
            }
        }
        for (what, theirs, ours) in
            [("bad records", &there.bad, &here.bad), ("skipped records", &there.skipped, &here.skipped)]
        {
            for name in theirs.keys().chain(ours.keys()).collect::<BTreeSet<_>>() {
                let (theirs, ours) =
                    [theirs, ours].map(|counts| counts.get(name).copied().unwrap_or(0)).into();
                if theirs != ours {
                    let found = format!("count of {what}, {name}: {theirs} there, {ours} here");
                    let is_beside = FILES_BESIDE.contains(&name.as_str());
                    let side = if is_beside { &mut self.notes } else { &mut different };
                    side.push(found);
                }
            }
        }
        self.different.append(&mut different);
        let (events, pairs) = (count(here.events, "event"), count(here.pairs, "pair"));
        let documents = count(here.documents, "document");
        self.equal_since(before, format_args!("counts     {events}, {documents}, {pairs}"));
    }

    /// The findings as text.
    pub(super) fn text(&self, report: &Path) -> String {
        let mut out = String::new();
        for equal in &self.compared {
            let _ = writeln!(out, "equal    {equal}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "note     {note}");
        }
        for different in &self.different {
            let _ = writeln!(out, "differs  {different}");
        }
        let report = quoted(&report.to_string_lossy());
        let _ = match self.different.len() as u64 {
            0 => writeln!(out, "the report {report} holds"),
            n => writeln!(out, "the report {report} does not hold: {}", count(n, "difference")),
        };
        out
    }
}
