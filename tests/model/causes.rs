//! Causes: each one by a small history, and that they do not affect the pairs.
//!
//! Bug classes: a delta with a block as its cause although its document has changed, or the reverse; a cause
//! that depends on which worker had the document.

use std::collections::BTreeSet;
use std::time::Duration;

use dupflow::config::Plan;
use dupflow::core::doc::DocId;
use dupflow::core::pair::Cause;

use crate::live::LIVE;
use crate::pipelines::{CROWDED, plan};
use crate::script::{Epoched, Past, Run, Stamped, closed};

/// A line: `id text` or `id` for a delete, each with a time after an `@` if it has one.
fn epoch(lines: &[&str]) -> Epoched {
    let event = |line: &&str| {
        let (event, ts) = line.split_once('@').map_or((*line, None), |(event, ts)| (event, ts.parse().ok()));
        let (id, text) =
            event.split_once(' ').map_or((event, None), |(id, text)| (id, Some(text.to_owned())));
        Stamped::new(DocId::new(id).unwrap(), text, ts)
    };
    Epoched { events: lines.iter().map(event).collect(), at: None }
}

/// The deltas of each epoch, as `+a b cause`.
fn told(plan: &Plan, epochs: &[&[&str]], workers: usize) -> Vec<Vec<String>> {
    let mut stages = dupflow::pipeline::stages(plan, false);
    stages.retention = plan.retention;
    let epochs: Vec<Epoched> = epochs.iter().map(|lines| epoch(lines)).collect();
    let run = Run { workers, serialized: workers > 1, seed: 5 };
    let told = closed(&stages, &epochs, &Past::default(), run);
    let mut lines = vec![Vec::new(); epochs.len()];
    for closed in told {
        for delta in closed.deltas {
            let (sign, pair) = (if delta.diff > 0 { '+' } else { '-' }, delta.pair.pair);
            let at = usize::try_from(closed.progress.epoch).unwrap() - 1;
            lines[at].push(format!("{sign}{} {} {}", pair.lo(), pair.hi(), delta.cause.name()));
        }
    }
    let counted: Vec<_> = stages.observers.metrics.counts().causes().filter(|(_, n)| *n > 0).collect();
    for (cause, n) in counted {
        let all = lines.iter().flatten().filter(|line| line.ends_with(&format!(" {}", cause.name())));
        assert_eq!(all.count() as u64, n, "{cause:?}");
    }
    lines
}

const A: &str = "a the quick brown fox jumps over the lazy dog again";
const B: &str = "b the quick brown fox jumps over the lazy dog again";

fn assert_scene(plan: &Plan, epochs: &[&[&str]], expected: &[&[&str]]) {
    for workers in [1, 2, 4] {
        assert_eq!(told(plan, epochs, workers), expected, "{workers} workers");
    }
}

#[test]
fn documents_that_come_change_and_go() {
    let plan = Plan::load("exact", &["threshold=0.3".to_owned()]).unwrap();
    let edited = "b the quick brown fox jumps over the lazy cat again";
    assert_scene(
        &plan,
        &[&[A, B], &[edited], &["b"], &[B], &["a", "b"], &[A, B], &[B, "b", edited], &["a", A]],
        &[
            &["+a b insert"],
            &["-a b update", "+a b update"],
            &["-a b delete"],
            &["+a b insert"],
            &["-a b delete"],
            &["+a b insert"],
            &["-a b update", "+a b update"],
            &[],
        ],
    );
}

#[test]
fn documents_that_expire() {
    let text = |line: &str, ts: u32| format!("{line}@{ts}");
    let plan = Plan::load("exact", &["retention.max_age=10s".to_owned()]).unwrap();
    assert_eq!(plan.retention.max_age, Some(Duration::from_secs(10)));
    let (a, b, late) = (text(A, 100), text(B, 105), text(B, 1));
    assert_scene(
        &plan,
        &[&[&a, &b], &["x other@111"], &[&text(A, 112)], &[&late]],
        &[&["+a b insert"], &["-a b expire"], &["+a b insert"], &["-a b expire"]],
    );
    let few = Plan::load("exact", &["retention.max_documents=2".to_owned()]).unwrap();
    assert_scene(
        &few,
        &[&[A, B], &["c other words that are none of theirs"], &["b"]],
        &[&["+a b insert"], &["-a b expire"], &[]],
    );
}

/// A group of copies becomes a star and stops being one, although neither `b` nor `c` has an event; then it
/// gets another centre, `0`.
#[test]
fn groups_that_pass_the_limit() {
    let plan = Plan::load("exact", &["output.expand_limit=3".to_owned()]).unwrap();
    let copy = |id: &str| A.replacen('a', id, 1);
    let (b, c, d, e, zero) = (copy("b"), copy("c"), copy("d"), copy("e"), copy("0"));
    assert_scene(
        &plan,
        &[&[A, &b, &c], &[&d], &["d"], &[&d, &e], &[&zero]],
        &[
            &["+a b insert", "+a c insert", "+b c insert"],
            &["+a d insert", "-b c re-grouped"],
            &["-a d delete", "+b c re-grouped"],
            &["+a d insert", "+a e insert", "-b c re-grouped"],
            &[
                "+0 a insert",
                "+0 b insert",
                "+0 c insert",
                "+0 d insert",
                "+0 e insert",
                "-a b re-grouped",
                "-a c re-grouped",
                "-a d re-grouped",
                "-a e re-grouped",
            ],
        ],
    );
}

/// Pairs of restored documents are inserted; then each event has its own cause.
#[test]
fn pairs_of_restored_documents() {
    let plan = Plan::load("exact", &["threshold=0.3".to_owned()]).unwrap();
    let copy = |id: &str| A.replacen('a', id, 1);
    let (c, d, edited) = (copy("c"), copy("d"), "b the quick brown fox jumps over the lazy cat again");
    let before = [epoch(&[A, B]), epoch(&[&c])];
    let after = [epoch(&[edited]), epoch(&["c", &d])];
    for workers in [1, 2, 3] {
        let run = Run { workers, serialized: workers > 1, seed: 5 };
        let mut stages = dupflow::pipeline::stages(&plan, false);
        stages.keeps = true;
        let mut past = Past { epochs: 2, events: 3, ..Past::default() };
        for changes in closed(&stages, &before, &Past::default(), run).iter().flat_map(|told| &told.kept) {
            past.kept.extend(changes.iter().filter_map(|(id, value)| Some((id.into(), value?.into()))));
        }
        stages = dupflow::pipeline::stages(&plan, false);
        stages.start.past.epoch = 2;
        let epochs = closed(&stages, &after, &past, run);
        let expected = [vec![Cause::Insert], vec![Cause::Update], vec![Cause::Insert, Cause::Delete]];
        for (told, causes) in epochs.iter().zip(expected) {
            let found: BTreeSet<Cause> = told.deltas.iter().map(|delta| delta.cause).collect();
            assert_eq!(found, BTreeSet::from_iter(causes), "{workers} workers: {told:?}");
        }
        assert_eq!(epochs.len(), 3);
    }
}

/// Members that no longer represent their group lose their pairs with other texts; the document of such a
/// text has no event.
#[test]
fn pairs_of_a_group_with_others() {
    let settings = ["threshold=0.3", "output.expand_limit=2"].map(str::to_owned);
    let plan = Plan::load("exact", &settings).unwrap();
    let copy = |id: &str| A.replacen('a', id, 1);
    let (b, c) = (copy("b"), copy("c"));
    assert_scene(
        &plan,
        &[&[A, &b, "x the quick brown fox jumps over the lazy cat again"], &[&c], &["c"]],
        &[
            &["+a b insert", "+a x insert", "+b x insert"],
            &["+a c insert", "-b x re-grouped"],
            &["-a c delete", "+b x re-grouped"],
        ],
    );
}

/// A new table of document frequencies changes the weights of documents without an event.
#[test]
fn documents_that_are_weighed_otherwise() {
    let plan = plan(LIVE);
    let text = |id: &str| format!("{id} alpha beta gamma delta {}", if id == "b" { "one" } else { "two" });
    let (a, b) = (text("a"), text("b"));
    let more = (0..20).map(|n| format!("m{n} alpha beta one w{n} v{n} u{n}"));
    let more: Vec<String> = more.chain([a.replacen('a', "z", 1)]).collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let lines = told(&plan, &[&[&a, &b], &more], 2);
    let of_pair = |line: &&String| line[1..].starts_with("a b ");
    let causes: Vec<_> = lines[1].iter().filter(of_pair).collect();
    assert!(!causes.is_empty(), "{lines:?}");
    assert!(causes.iter().all(|line| line.ends_with(Cause::Reweighed.name())), "{causes:?}");
    assert!(lines[1].contains(&"+a z insert".to_owned()), "{lines:?}");
}

/// With crowded blocks, leaders change: neither document of such a pair has an event.
#[test]
fn whoever_has_no_event_is_not_blamed() {
    let plan = plan(CROWDED);
    let lines: Vec<String> =
        (0..60).map(|n| format!("d{n} alpha beta gamma delta w{} v{}", n % 9, n % 4)).collect();
    let epochs: Vec<Vec<&str>> = lines.iter().map(|line| vec![line.as_str()]).collect();
    let epochs: Vec<&[&str]> = epochs.iter().map(Vec::as_slice).collect();
    let mut blocks = 0;
    for (told, line) in told(&plan, &epochs, 2).iter().zip(&lines) {
        let id = line.split(' ').next().unwrap();
        for delta in told {
            let mut words = delta[1..].split(' ');
            let touched = [words.next(), words.next()].contains(&Some(id));
            let cause = words.next().unwrap();
            let expected = match (touched, &delta[..1]) {
                (true, _) => "insert",
                (false, "+") => "block-revived",
                (false, _) => "block-died",
            };
            assert_eq!(cause, expected, "{delta} when {id} comes");
            blocks += usize::from(!touched);
        }
    }
    assert!(blocks > 0, "no block has got hot");
}
