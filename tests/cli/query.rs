//! `dupflow query`: the ranking, by any pipeline, and what it refuses.

use serde_json::Value;

use super::dupflow::{Ended, Place};

/// Twenty words, the first n of which are others.
fn text(n: usize) -> String {
    let words: Vec<_> = (0..20).map(|i| format!("{}{i}", if i < n { "other" } else { "word" })).collect();
    words.join(" ")
}

fn event(id: &str, text: &str) -> String {
    format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n")
}

/// A text in "asked", and a corpus in "feed" with its copy, nearer and farther ones, and nothing.
fn place() -> Place {
    let place = Place::new();
    place.file("asked", text(0));
    let events = [
        event("far", &text(15)),
        event("near", &text(1)),
        event("copy", &text(0)),
        event("copy too", &text(0)),
        event("half", &text(8)),
        event("gone", &text(0)),
        event("nothing", "?"),
        "{\"id\":\"gone\",\"op\":\"delete\"}\n".to_owned(),
    ];
    place.file("feed", events.concat());
    place
}

/// The ids in the answer, best first.
fn ids(run: &Ended) -> Vec<String> {
    assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
    let mut lines = run.out.lines();
    assert_eq!(lines.next(), Some("estimate   exact  id"));
    let id = |line: &str| line[18..].trim_end_matches("  (rejected by the filter)").to_owned();
    lines.map(id).collect()
}

/// Words are shingles, so that n of 20 words leave a similarity far from that of the next text.
#[test]
fn every_pipeline_ranks_by_similarity() {
    let place = place();
    for pipeline in ["minhash", "exact", "weighted", "simhash", "sectional", "onebit", "tour"] {
        let run =
            place.run(&format!("query -p {pipeline} --set text.shingle=words:1 --corpus feed --top 5 asked"));
        assert_eq!(ids(&run), ["copy", "copy too", "near", "half", "far"], "{pipeline}");
        assert!(run.out.contains("\n  1.0000  1.0000  copy\n"), "{run:?}");
        assert!(run.out.ends_with("far  (rejected by the filter)\n"), "{run:?}");
    }
}

/// 19 of 21 words are in common with the near one.
#[test]
fn the_threshold_is_inclusive_and_top_goes_beyond_it() {
    let place = place();
    let ask = |threshold: &str, more: &str| {
        let common = "query -p exact --set text.shingle=words:1 --corpus feed";
        ids(&place.run(&format!("{common} --set threshold={threshold} asked{more}")))
    };
    assert_eq!(ask("0.9047619047619048", ""), ["copy", "copy too", "near"]);
    assert_eq!(ask("0.905", ""), ["copy", "copy too"]);
    assert_eq!(ask("0.905", " --top 3"), ["copy", "copy too", "near"]);
    assert_eq!(ask("0.5", " --top 1"), ["copy"]);
    assert_eq!(ask("0.5", " --top 0"), Vec::<String>::new());
}

#[test]
fn json_says_everything() {
    let place = place();
    let run =
        place.run("query -p exact --set text.shingle=words:1 --corpus feed --top 4 --format json asked");
    assert_eq!(run.code, 0, "{run:?}");
    let found: Vec<Value> = run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(found.len(), 4);
    assert_eq!((found[0]["id"].as_str(), found[0]["accepted"].as_bool()), (Some("copy"), Some(true)));
    assert_eq!((found[3]["id"].as_str(), found[3]["accepted"].as_bool()), (Some("half"), Some(false)));
    for document in &found {
        let [similarity, exact, estimate] =
            ["similarity", "exact", "estimate"].map(|key| document[key].as_f64().unwrap());
        assert!((similarity - exact).abs() < 1e-12 && (estimate - exact).abs() < 0.1, "{document}");
    }
}

#[test]
fn a_folder_several_inputs_and_standard_input() {
    let place = place();
    place.file("docs/one", text(0));
    place.file("docs/two", text(2));
    let common = "query --set text.shingle=words:1 --top 3";
    assert_eq!(ids(&place.run(&format!("{common} --corpus docs asked"))), ["one", "two"]);
    for inputs in ["--corpus feed docs asked", "--corpus feed --corpus docs asked"] {
        assert_eq!(ids(&place.run(&format!("{common} {inputs}"))), ["copy", "copy too", "one"], "{inputs}");
    }
    let asked = text(0);
    let piped = place.run_with(&format!("{common} --corpus docs -"), |input| {
        input.write_all(asked.as_bytes()).unwrap();
    });
    assert_eq!(ids(&piped), ["one", "two"]);
}

#[test]
fn what_cannot_be_asked() {
    let place = place();
    place.file("blank", " ... ");
    let blank = place.run("query --corpus feed blank");
    assert_eq!((blank.code, blank.out.as_str()), (1, ""), "{blank:?}");
    assert_eq!(blank.err, "error: \"blank\" has no token to look for\n");
    let wrong = place.run("query -p none --corpus no --top many neither");
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""), "{wrong:?}");
    let told: Vec<_> = wrong.err.lines().collect();
    assert_eq!(told.len(), 5, "{wrong:?}");
    let problems = [
        "4 problems",
        "invalid value 'many'",
        "no pipeline \"none\"",
        "cannot read \"neither\"",
        "cannot read \"no\"",
    ];
    for (line, problem) in told.iter().zip(problems) {
        assert!(line.contains(problem), "{problem:?} is not in {line:?}");
    }
    let missing = place.run("query asked");
    assert!(missing.code == 2 && missing.err.contains("--corpus <INPUT>"), "{missing:?}");
}
