use std::collections::{BTreeMap, BTreeSet};

use super::*;

fn generate(params: &Params) -> Vec<FeedRecord<'static>> {
    Generator::new(params.clone()).collect()
}

fn shingles(text: &str) -> BTreeSet<[String; 3]> {
    let text = text.to_lowercase();
    let words: Vec<_> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.windows(3).map(|three| [0, 1, 2].map(|n| three[n].to_owned())).collect()
}

fn jaccard(a: &BTreeSet<[String; 3]>, b: &BTreeSet<[String; 3]>) -> f64 {
    let common = a.intersection(b).count();
    common as f64 / (a.len() + b.len() - common) as f64
}

#[test]
fn the_seed_decides_everything() {
    let params = Params { documents: 300, ..Params::default() };
    let feed = generate(&params);
    assert_eq!(feed, generate(&params));
    assert_ne!(feed, generate(&Params { seed: 2, ..params.clone() }));
    let longer = generate(&Params { documents: 400, ..params });
    assert_eq!(feed, longer[..feed.len()], "a longer feed starts with the shorter one");
}

#[test]
fn events_come_in_the_proportions_that_were_asked_for() {
    let params = Params { documents: 5_000, min_words: 5, max_words: 20, ..Params::default() };
    let feed = generate(&params);
    let mut texts: BTreeMap<DocId, Option<String>> = BTreeMap::new();
    let (mut new, mut updates, mut repeats, mut deletes, mut unknown, mut empty) = (0, 0, 0, 0, 0, 0);
    for FeedRecord { event: DocEvent { id, text, .. }, .. } in feed.iter().cloned() {
        let text = text.map(Cow::into_owned);
        empty += u32::from(text.as_ref().is_some_and(|text| !text.contains(char::is_alphanumeric)));
        match (texts.insert(id, text.clone()), text) {
            (None, Some(_)) => new += 1,
            (Some(Some(before)), Some(text)) if before == text => repeats += 1,
            (Some(Some(_)), Some(_)) => updates += 1,
            (Some(Some(_)), None) => deletes += 1,
            (None | Some(None), None) => unknown += 1,
            (Some(None), Some(_)) => panic!("a deleted id does not come back"),
        }
    }
    assert_eq!(new, params.documents);
    let events = feed.len() as f64;
    let check = |count: u32, share: f64| {
        // Five standard deviations of a binomial count.
        let error = f64::from(count) - events * share;
        assert!(error.abs() < 5.0 * (events * share * (1.0 - share)).sqrt(), "{count} of {events}: {share}");
    };
    check(updates, params.updates);
    check(repeats, params.repeats);
    check(deletes + unknown, params.deletes);
    check(unknown, params.deletes / 16.0);
    assert!(empty > 0 && empty < 100);
}

#[test]
fn times_grow_and_are_shared() {
    let times: Vec<f64> = generate(&Params::default()).iter().map(|record| record.ts.unwrap()).collect();
    assert!(times.is_sorted());
    let distinct = times.chunk_by(|a, b| a.to_bits() == b.to_bits()).count();
    assert!(distinct > times.len() / 10 && distinct < times.len() / 6);
}

#[test]
fn edits_have_the_strength_that_was_asked_for() {
    let params = Params { documents: 10, ..Params::default() };
    let mut generator = Generator::new(params);
    let vocabulary = &generator.vocabularies[0];
    let words = WordSequence::sample(vocabulary.law(), 20_000, &mut generator.rng);
    let text = |body: &WordSequence| {
        let mut text = String::new();
        body.write(vocabulary, &mut text);
        text
    };
    for rate in [0.0, 0.01, 0.05, 0.142] {
        let edited = words.edited(rate, vocabulary.law(), &mut generator.rng);
        let kept = (1.0_f64 - rate).powi(2) * (1.0 - 2.0 / 3.0 * rate);
        let similarity = jaccard(&shingles(&text(&words)), &shingles(&text(&edited)));
        assert!((similarity - kept / (2.0 - kept)).abs() < 0.01, "{rate}: {similarity}");
    }
}

#[test]
fn near_duplicates_spread_over_all_similarities() {
    let params = Params { documents: 400, sites: 6, updates: 0.0, deletes: 0.0, ..Params::default() };
    let texts: Vec<_> =
        generate(&params).iter().filter_map(|record| Some(shingles(record.event.text.as_ref()?))).collect();
    let mut bands = [0; 6];
    for (n, a) in texts.iter().enumerate() {
        for b in &texts[..n] {
            let similarity = jaccard(a, b);
            if let Some(band) = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5].iter().position(|&floor| similarity >= floor) {
                bands[band] += 1;
            }
        }
    }
    // Exact copies, 0.9 to 1.0, …, 0.5 to 0.6: 100 of 400 documents are edits, 20 are copies.
    assert!(bands.iter().all(|&pairs| pairs >= 8), "{bands:?}");
    assert!(bands.iter().sum::<i32>() < 600, "boilerplate alone makes no pairs: {bands:?}");
}

#[test]
fn the_window_bounds_what_is_kept() {
    let params = Params { documents: 2_000, window: 50, min_words: 5, max_words: 10, ..Params::default() };
    let mut generator = Generator::new(params);
    while generator.next().is_some() {
        assert!(generator.window.len() <= 50);
    }
    assert_eq!(generator.made, 2_000);
}

#[test]
fn params_out_of_range_are_named_all_of_them() {
    assert_eq!(Params::default().problems(), []);
    let wrong = Params {
        vocabulary: 0,
        sites: 0,
        scripts: vec![],
        min_words: 10,
        max_words: 10,
        zipf: f64::NAN,
        near: 1.5,
        deletes: -0.1,
        ..Params::default()
    };
    let fields = |params: &Params| params.problems().into_iter().map(|(field, _)| field).collect::<Vec<_>>();
    assert_eq!(fields(&wrong), ["vocabulary", "max_words", "zipf", "sites", "scripts", "near", "deletes"]);
    // Fractions that are each in range.
    let wrong = Params {
        copies: 0.5,
        near: 0.6,
        empty: 0.5,
        short: 0.6,
        updates: 0.9,
        deletes: 0.1,
        repeats: 0.0,
        ..wrong
    };
    assert_eq!(fields(&wrong)[5..], ["near", "short", "deletes"]);
}

#[test]
fn sites_write_in_the_scripts_that_were_asked_for() {
    let params = Params { documents: 50, scripts: vec![Script::Han, Script::Greek], ..Params::default() };
    let ids: Vec<_> = generate(&params).iter().map(|record| record.event.id.to_string()).collect();
    assert!(ids.iter().all(|id| id.starts_with("han/") || id.starts_with("greek/")), "{ids:?}");
    assert!(ids.iter().any(|id| id.starts_with("han/")) && ids.iter().any(|id| id.starts_with("greek/")));
}

/// A family of 30 texts in three rounds, half of them deleted: two texts differ in at most twice the number
/// of edits.
#[test]
fn rounds_of_one_template() {
    let rounds = Rounds {
        documents: 30,
        seed: 3,
        rounds: 3,
        family: Some(4),
        drop: 0.5,
        vocabulary: 500,
        zipf: 1.0,
        min_words: 60,
        max_words: 61,
        script: Script::Latin,
    };
    assert_eq!(rounds.problems(), []);
    let feed: Vec<_> = rounds.feed().collect();
    assert!(feed == rounds.feed().collect::<Vec<_>>() && feed.len() == 105);
    let ids = |from: usize, to: usize| feed[from..to].iter().map(|record| record.event.id.clone()).collect();
    let of_round: [Vec<DocId>; 3] = [ids(0, 30), ids(30, 60), ids(60, 90)];
    assert!(of_round[0].is_sorted() && of_round.iter().all(|round| *round == of_round[0]));
    let dropped: Vec<DocId> = ids(90, 105);
    assert!(!dropped.is_sorted() && dropped.iter().collect::<BTreeSet<_>>().len() == 15);
    assert!(feed[90..].iter().all(|record| record.event.text.is_none()));
    let words = |record: &FeedRecord<'_>| -> Vec<String> {
        let text = record.event.text.as_ref().unwrap().to_lowercase();
        text.split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let texts: Vec<_> = feed[..90].iter().map(words).collect();
    for (n, a) in texts.iter().enumerate() {
        for b in &texts[..n] {
            let differ = a.iter().zip(b).filter(|(x, y)| x != y).count();
            assert!(a.len() == 60 && b.len() == 60 && (1..=8).contains(&differ), "{differ}");
        }
    }
    assert!(feed.windows(2).all(|two| two[0].ts < two[1].ts));
    // Copies, and texts with words of their own.
    let first = |family| Rounds { family, ..rounds.clone() }.feed().take(30).map(|r| r.event.text).collect();
    let copies: BTreeSet<_> = first(Some(0));
    let own: BTreeSet<_> = first(None);
    assert_eq!((copies.len(), own.len()), (1, 30));
    let wrong = Rounds { rounds: 0, family: Some(61), drop: 1.5, zipf: -1.0, ..rounds };
    let fields: Vec<_> = wrong.problems().into_iter().map(|(field, _)| field).collect();
    assert_eq!(fields, ["zipf", "rounds", "drop", "family"]);
}
