//! Hot blocks and large groups of copies: no quadratic work, the right pairs after every change, and a
//! message that names what is left out.
//!
//! `DUPFLOW_HOT_BLOCKS=50000` runs the tests with that many documents; a release build needs a few seconds.

use std::fmt::Write;

use dupflow::core::hash::mix;

use super::dupflow::Place;
use super::feeds::{Pairs, accumulated, delete, page, pairs, upsert, words};

/// Number of documents of a test: large enough that quadratic work is noticed.
fn size() -> u32 {
    std::env::var("DUPFLOW_HOT_BLOCKS").map_or(2_000, |n| n.parse().expect("a number of documents"))
}

/// The pairs that a fresh run finds in a corpus.
fn fresh(place: &Place, options: &str, corpus: impl IntoIterator<Item = (String, String)>) -> Pairs {
    place.file("fresh", corpus.into_iter().map(|(id, text)| upsert(&id, &text)).collect::<String>());
    pairs(&place.replay(&format!("{options} --emit pairs --epoch all fresh")).0.out)
}

#[test]
fn identical_texts_become_a_star() {
    let place = Place::new();
    let n = size();
    let text = page(0..0, 0);
    let mut feed: String = (0..n).map(|i| upsert(&format!("{i:06}"), &text)).collect();
    let options = "--set output.expand_limit=100";
    place.file("feed", &feed);
    let (run, stats) = place.replay(&format!("{options} feed"));
    let found = accumulated(&run.out);
    assert_eq!(found.len(), n as usize - 1);
    assert!(found.keys().all(|(a, _)| a == "000000"), "all with the smallest");
    assert_eq!((&stats["sketches"], &stats["candidates"]), (&1.into(), &0.into()));
    assert!(
        run.err.contains("copies      1 time a group of copies outgrew output.expand_limit"),
        "{}",
        run.err
    );
    // Bounded by the expand limit, not by the size of the group.
    assert!(stats["deltas"].as_u64() < Some(u64::from(n) + 2 * 100 * 100), "{stats}");

    // Deletes the centre of the star first, and at last shrinks the group below the limit.
    for i in 0..n - 50 {
        write!(feed, "{}", delete(&format!("{i:06}"))).unwrap();
    }
    place.file("feed", &feed);
    let rest = (n - 50..n).map(|i| (format!("{i:06}"), text.clone()));
    let left = accumulated(&place.replay(&format!("{options} feed")).0.out);
    assert_eq!(left, fresh(&place, options, rest));
    assert_eq!(left.len(), 50 * 49 / 2);
}

#[test]
fn a_block_is_hot_while_it_has_many_different_texts() {
    let place = Place::new();
    let n = size();
    // One word of a long page differs: nearly all pages have most of their bands in common. Features are
    // kept, so that all pages differ.
    let document = |i: u32| (format!("{i:06}"), words(0..300) + &format!(" u{i}"));
    let feed: String = (0..n).map(document).map(|(id, text)| upsert(&id, &text)).collect();
    let options = "-p exact --set blocking.bands=18 --set blocking.cap=100 --set blocking.hot=skip";
    place.file("feed", &feed);
    let (run, stats) = place.replay(&format!("{options} --epoch events:30 feed"));
    assert_eq!(accumulated(&run.out), fresh(&place, options, (0..n).map(document)));
    assert_eq!(stats["sketches"], n);
    let hot = stats["hot_blocks"].as_array().unwrap();
    assert!(hot.len() >= 18 && hot[0]["sketches"].as_u64() > Some(u64::from(n) * 9 / 10), "{stats}");
    let example = hot[0]["example"].as_str().unwrap();
    assert!(
        example.len() == 6 && example.parse::<u32>().is_ok_and(|i| i < n),
        "the id of a document: {example}"
    );
    let message =
        format!("            band {}, block {}: ", hot[0]["table"], hot[0]["hash"].as_str().unwrap());
    assert!(run.err.contains("hot blocks  ") && run.err.contains(&message), "{message}: {}", run.err);
    // All pairs in each of the 18 bands' blocks until they are hot, then a few candidates for each of the few
    // that differ in a band.
    let most = 18 * 100 * 100 / 2 + 8 * u64::from(n);
    assert!(stats["candidates"].as_u64() < Some(most), "{stats}");
    let retracted = stats["deltas"].as_u64() > stats["pairs"].as_u64();
    assert!(retracted, "pairs that only blocks had that got hot: {stats}");
    assert!(run.err.contains(" whose members meet none in them:\n"), "{}", run.err);

    // Deletes documents until no block is hot.
    let feed = feed + &(0..n - 60).map(|i| delete(&format!("{i:06}"))).collect::<String>();
    place.file("feed", &feed);
    let (emptied, stats_emptied) = place.replay(&format!("{options} --epoch events:30 feed"));
    let found = accumulated(&emptied.out);
    assert_eq!(found, fresh(&place, options, (n - 60..n).map(document)));
    assert_eq!(found.len(), 60 * 59 / 2, "all are similar, and none is left out any more");
    assert_eq!(stats_emptied["hot_blocks"], serde_json::json!([]));
    assert!(!emptied.err.contains("hot blocks"), "{}", emptied.err);
}

/// The run warns when there are more sketches than planned for; `pipeline/commit/growth` tests the warning at
/// each doubling.
#[test]
fn a_corpus_beyond_its_plan_gives_a_warning() {
    let place = Place::new();
    let feed: String = (0..50).map(|i| upsert(&format!("{i}"), &words(i * 100..i * 100 + 60))).collect();
    place.file("feed", &feed);
    let warnings = |documents: u32| {
        let (run, _) = place.replay(&format!("--set blocking.documents={documents} --epoch events:5 feed"));
        run.err.matches("there are more documents than the blocks are planned for").count()
    };
    assert_eq!([50, 49].map(warnings), [0, 1]);
    assert!(warnings(10) > 0);
}

/// Too few keys for the planned documents: the warning precedes all reading, and names a remedy.
#[test]
fn a_plan_that_loses_pairs_gives_a_warning_at_the_start() {
    let place = Place::new();
    place.file("feed", upsert("1", "some text"));
    let options = "--set threshold=0.3 --set blocking.documents=10000000";
    let (run, _) = place.replay(&format!("{options} feed"));
    let expected =
        ["for 10000000 documents: ", " are hot: of the pairs at the threshold ", "set sketch.size = "];
    assert!(expected.iter().all(|part| run.err.contains(part)), "{}", run.err);
    let checked = place.run(&format!("check {options}"));
    assert!(expected.iter().all(|part| checked.out.contains(part)), "{}", checked.out);
    let (quiet, _) = place.replay("--set threshold=0.5 feed");
    assert!(!quiet.err.contains(expected[1]), "{}", quiet.err);
}

/// Texts of one template with a few different words each, as in real corpora.
#[test]
fn a_family_larger_than_the_cap_is_one_cluster_at_a_bounded_cost() {
    let place = Place::new();
    let n = size();
    // Six random words of 400 differ from the template.
    let document = |i: u32| {
        let mut text: Vec<String> = (0..400).map(|w| format!("w{}", mix(w) % 5000)).collect();
        for edit in 0..6 {
            let random = mix(u64::from(i) << 8 | edit);
            text[usize::try_from(random % 400).unwrap()] = format!("w{}", (random >> 32) % 5000);
        }
        (format!("{i:06}"), text.join(" "))
    };
    let all: String = (0..n).map(document).map(|(id, text)| upsert(&id, &text)).collect();
    place.file("feed", &all);
    let (run, stats) = place.replay("--set blocking.cap=16 feed");
    let found = accumulated(&run.out);
    assert!(found.len() < 40 * n as usize, "{} pairs", found.len());
    assert!(run.err.contains(" whose members meet only their "), "{}", run.err);
    // Candidates stay below 100 per document, a few times the number of its pairs, even if leaders change
    // often.
    assert!(stats["candidates"].as_u64() < Some(100 * u64::from(n)), "{stats}");
    assert_eq!(place.replay("--set blocking.cap=16 --emit clusters feed").0.out.lines().count(), 1);

    // Half of the documents are deleted, in random order.
    let mut order: Vec<u32> = (0..n).collect();
    order.sort_unstable_by_key(|i| mix(u64::from(*i)));
    let (gone, left) = order.split_at(n as usize / 2);
    place.file("feed", all + &gone.iter().map(|i| delete(&format!("{i:06}"))).collect::<String>());
    let (after, after_stats) = place.replay("--set blocking.cap=16 --epoch events:300 feed");
    assert_eq!(
        accumulated(&after.out),
        fresh(&place, "--set blocking.cap=16", left.iter().map(|i| document(*i)))
    );
    let [of_all, of_both] = [&stats, &after_stats].map(|stats| stats["deltas"].as_u64().unwrap());
    assert!(of_both < 6 * of_all, "{of_all} deltas for all, {of_both} with half deleted");
}

#[test]
fn a_document_near_two_groups_of_copies_is_inserted_and_deleted() {
    // Groups that are expanded, and groups that are stars.
    for (n, limit) in [(200, 1000), (size() / 2, 100)] {
        bridge(n, limit);
    }
}

/// A document that is paired with two groups of `n` copies.
fn bridge(n: u32, limit: u32) {
    let place = Place::new();
    let (left, right, bridge) = (page(10..14, 1), page(60..64, 2), page(0..0, 0));
    let mut corpus: Vec<_> = (0..n).map(|i| (format!("left {i:06}"), left.clone())).collect();
    corpus.extend((0..n).map(|i| (format!("right {i:06}"), right.clone())));
    let groups: String = corpus.iter().map(|(id, text)| upsert(id, text)).collect();
    let (come, go) = (upsert("bridge", &bridge), delete("bridge"));
    let options = format!("-p exact --set output.expand_limit={limit}");
    let without = fresh(&place, &options, corpus.clone());
    let with = fresh(&place, &options, corpus.iter().cloned().chain([("bridge".to_owned(), bridge)]));
    // Pairs with all members of both groups, or with the smallest of each.
    let of_bridge = if n <= limit { 2 * n } else { 2 };
    assert_eq!(with.len() - without.len(), of_bridge as usize);
    assert!(!without.keys().any(|(a, b)| a.starts_with("left") && b.starts_with("right")), "too alike");

    for (feed, expected) in [
        ([&*groups, &come, &go].concat(), &without),
        ([&*groups, &come, &go, &come].concat(), &with),
        ([&*come, &groups, &go, &come, &go].concat(), &without),
    ] {
        place.file("feed", feed);
        for epoch in ["events:1", "events:1000"] {
            let run = place.replay(&format!("{options} --epoch {epoch} feed")).0;
            assert_eq!(&accumulated(&run.out), expected, "{n} copies, limit {limit}, --epoch {epoch}");
        }
    }
}

/// Ids of examples are those of the feeds, in a run against a reference and of units.
#[test]
fn examples_are_named_as_they_were_read() {
    let place = Place::new();
    let ids = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let feed = |name: &str| {
        let texts = (0..).map(|n| page(n..n + 1, n));
        let feed = ids.iter().zip(texts).map(|(id, text)| upsert(id, &text)).collect::<String>();
        place.file(name, feed);
    };
    feed("old");
    feed("new");
    for options in ["--emit keep --against old", "--emit remove --set text.split=paragraph"] {
        let (run, stats) = place.replay(&format!("--epoch all --set blocking.cap=2 {options} new"));
        let hot = stats["hot_blocks"].as_array().unwrap();
        assert!(!hot.is_empty() && run.err.contains(", such as that of "), "{run:?}");
        for block in hot {
            assert!(ids.iter().any(|id| block["example"] == *id), "{options}: {block}");
            let is_unit = options.contains("split");
            assert_eq!(block["unit"]["hash"].as_str().map(str::len), is_unit.then_some(16), "{block}");
            assert_eq!(block["unit"]["occurrence"].as_u64(), is_unit.then_some(0), "{block}");
        }
        assert!(!run.err.contains("\\u{0}") && !run.err.contains('\0'), "{run:?}");
    }
}

/// The figures of `docs/choosing.md`: down to which threshold blocking misses 1 pair in 1,000.
#[test]
fn recall_of_blocking_falls_at_low_thresholds() {
    let place = Place::new();
    let plan = |threshold: &str| {
        place.run(&format!("plan -p exact --set blocking.documents=1000000 --set threshold={threshold}")).out
    };
    let compares = |share: &str| format!("compares {share} of the pairs at the threshold");
    for (threshold, share, reaches) in [
        ("0.8", "0.9990", true),
        ("0.47", "0.9990", true),
        ("0.45", "0.9970", false),
        ("0.4", "0.9824", false),
        ("0.3", "0.7850", false),
    ] {
        let printed = plan(threshold);
        assert!(printed.contains(&compares(share)), "{threshold}: {printed}");
        assert_eq!(printed.contains("none reach recall 0.999"), !reaches, "{threshold}: {printed}");
    }
    let docs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/choosing.md")).expect("docs");
    for figure in ["where that is 0.47 or more", "0.982 of the pairs at 0.4", "0.785 of those"] {
        assert!(docs.contains(figure), "{figure}");
    }
}

/// By distance no block is hot: nearly all texts of a template meet, and those that are no pair end in their
/// blocks, before they take memory. The pairs are those of a scan.
#[test]
fn meetings_of_one_template_end_in_their_blocks() {
    let place = Place::new();
    let text = |n: u64| {
        let is_changed = |word: u32| (0..5).any(|edit| mix(n << 8 | edit) % 400 == u64::from(word));
        let by = 1000 * (u32::try_from(n).unwrap() + 1);
        words((0..400).map(|word| if is_changed(word) { by + word } else { word }))
    };
    let count = 300;
    place.file("feed", (0..count).map(|n| upsert(&format!("{n:03}"), &text(n))).collect::<String>());
    let ran = |options: &str| place.replay(&format!("-p onebit --emit pairs {options} feed"));
    let expected = pairs(&ran("--set blocking.kind=scan").0.out);
    assert!(!expected.is_empty() && expected.len() < 3000, "{}", expected.len());
    for options in ["--workers 1", "--workers 3 --epoch events:50"] {
        let (run, stats) = ran(options);
        assert_eq!(pairs(&run.out), expected, "{options}");
        let looks = stats["compared_by_stage"].as_array().unwrap()[1..].iter();
        let compared: u64 = looks.map(|look| look.as_u64().unwrap()).sum();
        // What is left is within the distance.
        assert!(compared < 2 * expected.len() as u64, "{options}: {compared} compared, {stats}");
        assert!(stats["rejected_in_blocks"].as_u64() > Some(count * count / 2), "{stats}");
        assert!(run.err.contains(" by all words, "), "{}", run.err);
    }
}
