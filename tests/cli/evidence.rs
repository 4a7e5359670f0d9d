//! What is written beside a similarity, of documents whose sketches are equal.
//!
//! Bug class: texts that differ in one word, and whose sketches are equal by chance, have the evidence of
//! copies.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{lines, upsert, words};

/// Documents a and b have equal sketches of `texts` and do not have equal texts; c is a copy of a.
fn place(texts: [&str; 2]) -> Place {
    let place = Place::new();
    let [a, b] = texts;
    place.file("in.jsonl", upsert("a", a) + &upsert("b", b) + &upsert("c", a));
    place.file("a", a);
    place.file("b", b);
    place
}

/// A long text, and the same with one other word, whose sketches of 448 components are equal.
fn long() -> [String; 2] {
    let changed = |by: u32| words((0..4000).map(|n| if n == 2000 { 9000 + by } else { n }));
    let place = Place::new();
    place.file("in.jsonl", (0..40).map(|by| upsert(&by.to_string(), &changed(by))).collect::<String>());
    let found = lines(&place.replay("--evidence --emit pairs in.jsonl").0.out);
    let equal = found.iter().find(|pair| pair["look"] == 0).unwrap();
    ["a", "b"].map(|end| changed(equal[end].as_str().unwrap().parse().unwrap()))
}

fn errors(rows: &[Value]) -> Vec<f64> {
    rows.iter().map(|row| row["standard_error"].as_f64().unwrap()).collect()
}

/// With an estimate the error is that of sketches that agree; where features are compared copies have none.
#[test]
fn equal_sketches_have_the_error_of_an_estimate() {
    let [long, changed] = long();
    // 3 of 448 components, of which one in sixteen agrees by accident.
    let of_minhash = 3.0 / 448.0 / (1.0 - 1.0 / 16.0);
    let short = ["0000 0000 0000 alpha", "0000 0000 0000 zulu"];
    let of_simhash = 1.0 - (std::f64::consts::PI * 3.0 / 64.0).cos();
    for (texts, pipeline, expected) in
        [([&*long, &*changed], "minhash", of_minhash), (short, "simhash", of_simhash)]
    {
        let place = place(texts);
        for (epoch, workers) in [("all", 1), ("events:1", 2)] {
            let set = format!("-p {pipeline} --epoch {epoch} --workers {workers} --evidence");
            let rows = lines(&place.replay(&format!("{set} --emit pairs in.jsonl")).0.out);
            assert!(rows.len() == 3 && rows.iter().all(|row| row["look"] == 0), "{rows:?}");
            assert!(errors(&rows).iter().all(|error| (error - expected).abs() < 1e-12), "{rows:?}");
            let deltas = lines(&place.replay(&format!("{set} in.jsonl")).0.out);
            assert!(errors(&deltas).iter().all(|error| (error - expected).abs() < 1e-12), "{deltas:?}");
        }
        let asked = format!("query -p {pipeline} --corpus in.jsonl a");
        let found = lines(&place.run(&asked.replace("query", "query --format json")).out);
        assert!(found.len() == 3 && errors(&found).iter().all(|error| (error - expected).abs() < 1e-12));
        let printed = place.run(&asked).out;
        assert!(printed.contains(&format!(" {expected:.4} ")), "{printed}");
        let compared = place.run(&format!("compare -p {pipeline} a b")).out;
        assert!(compared.contains(&format!("standard error {expected:.4}\n")), "{compared}");
        let answer = "1.000: a pair by estimate: two texts that differ have one sketch\n";
        assert!(compared.starts_with(answer), "{compared}");
        place.file("c", texts[0]);
        let copies = place.run(&format!("compare -p {pipeline} a c")).out;
        assert!(copies.starts_with("1.000: a pair, of copies\n"), "{copies}");
    }
    let place = place([&long, &changed]);
    for pipeline in ["exact", "contained"] {
        let rows = lines(&place.replay(&format!("-p {pipeline} --evidence --emit pairs in.jsonl")).0.out);
        let is_exact = |row: &Value| {
            let is_copy = row["a"] == "a" && row["b"] == "c";
            is_copy == (row["look"] == 0) && is_copy == (row["similarity"] == 1.0)
        };
        assert!(rows.len() == 3 && rows.iter().all(is_exact), "{rows:?}");
        assert!(errors(&rows).iter().all(|error| *error < 1e-15), "{rows:?}");
    }
}
