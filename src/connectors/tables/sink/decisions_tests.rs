//! The table of decisions as a reader of the database finds it.

use std::time::Duration;

use super::*;
use crate::sinks::BookMetrics;
use crate::sinks::{Decision, Repetition};
use crate::tables::database::Address;
use dupflow_core::doc::{Position, UpsertEffect};
use dupflow_core::pair::{Cause, Evidence, Pair, Similarity};
use dupflow_run::metrics::Metrics;

fn doc(text: &str) -> DocId {
    DocId::new(text).unwrap()
}

/// An upsert at an offset, or an end.
fn change(text: &str, offset: Option<u64>) -> DocChange {
    let now = offset.map(|offset| Facts { ts: None, bytes: 1, position: Position { partition: 3, offset } });
    DocChange { now, ..DocChange::end(doc(text)) }
}

/// Writes one epoch and commits it.
fn step(sink: &mut TableSink, epoch: Epoch, changes: &[DocChange], deltas: &[Delta]) {
    sink.documents(changes, false).unwrap();
    let upsert = |DocChange { id, now, .. }: &DocChange| {
        let position = now.as_ref()?.position;
        let effect = UpsertEffect::New;
        Some(UpsertedDoc { id: id.clone(), position, effect, is_too_short: false })
    };
    sink.upserts(&changes.iter().filter_map(upsert).collect::<Vec<_>>()).unwrap();
    let progress = Progress { epoch, ..Progress::default() };
    sink.epoch(&progress, deltas, &[]).unwrap();
    sink.commit(&Mark { run: sink.output.run.clone(), progress, ..Mark::default() }).unwrap();
}

/// Two similar documents with ids that are hard to store, and a unique one; then the first one is deleted.
pub(super) fn decisions_are_kept(address: &Address) {
    let (nul, quotes, lone) = ("a\0\u{1a}0", "a'b\"c", "重複");
    for mode in DecisionMode::ALL {
        let output = TableOutput {
            anew: false,
            address: address.clone(),
            schema: "of decisions".to_owned(),
            prefix: format!("{mode} \""),
            deltas: false,
            causes: false,
            shares: false,
            decisions: Some(mode),
            patience: Duration::from_secs(5),
            run: "first".to_owned(),
        };
        let metrics = Arc::new(Metrics::new(0));
        let mut sink = TableSink::new(&output, None, ClusterKind::Components, BookMetrics::new(&metrics));
        assert_eq!(sink.take_over().unwrap(), Standing::New);
        sink.live(0);
        let similarity = Similarity::clamped(0.912109375);
        let pair = Pair::new(doc(nul), doc(quotes)).unwrap();
        let pair = DocPair { pair, similarity, evidence: Evidence::default() };
        let delta = |diff| Delta { pair: pair.clone(), diff, cause: Cause::Insert };
        let changes = [change(nul, Some(1)), change(quotes, Some(u64::MAX)), change(lone, Some(5))];
        step(&mut sink, 1, &changes, &[delta(1)]);
        let decision = |id: &str, offset, repetition| {
            let position = Some(Position { partition: 3, offset });
            (doc(id), Decision { id: doc(id), position, repetition: Some(repetition) })
        };
        let of = |other: &str| Repetition {
            of: Some(doc(nul)),
            cluster: Some(doc(nul)),
            is_giant: false,
            repeats: vec![(doc(other), similarity)],
            pairs: 1,
        };
        let unique = Repetition::default;
        let first =
            [decision(nul, 1, of(quotes)), decision(quotes, u64::MAX, of(nul)), decision(lone, 5, unique())];
        assert_eq!(sink.store.decisions().unwrap().0, first.clone().into(), "{mode}");
        step(&mut sink, 2, &[change(nul, None)], &[delta(-1)]);
        let later = match mode {
            DecisionMode::First => first.into(),
            DecisionMode::Current => {
                [decision(quotes, u64::MAX, unique()), decision(lone, 5, unique())].into()
            }
        };
        assert_eq!(sink.store.decisions().unwrap().0, later, "{mode}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn sqlite_keeps_decisions() {
    let folder = tempfile::tempdir().unwrap();
    decisions_are_kept(&Address::Sqlite(folder.path().join("out.db")));
}
