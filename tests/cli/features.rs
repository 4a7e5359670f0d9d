//! Records that bring their own features or fingerprints: formats, bad records, queries, refusals.
//!
//! Bug classes: a list that is read as a text in one of the formats; features that are lowercased; a bad list
//! that is an empty document; settings that silently do not apply.

use serde_json::json;

use super::dupflow::Place;
use super::feeds::lines;

const GIVEN: &str = "--set text.features=given --set threshold=0.5";

fn record(id: &str, text: &serde_json::Value) -> String {
    json!({ "id": id, "text": text }).to_string() + "\n"
}

/// Two near lists, the same in another case, and two of words that a tokenizer would take apart.
fn lists() -> [(&'static str, serde_json::Value); 5] {
    [
        ("a", json!(["for", 1, 2, 3, "x-y"])),
        ("b", json!(["for", "1", 2, 3, "x-z"])),
        ("c", json!(["FOR", "X-Y", "ไทย", 9])),
        ("d", json!(["x", "y", "漢 字"])),
        ("e", json!([])),
    ]
}

const PAIR: &str = "{\"a\":\"a\",\"b\":\"b\",\"similarity\":0.6666666666666666}\n";

#[test]
fn every_format_has_the_features_of_its_lists() {
    let place = Place::new();
    place.file("lists.jsonl", lists().map(|(id, list)| record(id, &list)).concat());
    let nested = lists().map(|(id, list)| json!({ "id": id, "of": { "it": list } }).to_string() + "\n");
    place.file("nested.jsonl", nested.concat());
    let texts = lists().map(|(id, list)| record(id, &json!(list.to_string())));
    place.file("texts.jsonl", texts.concat());
    let cell = |list: &serde_json::Value| format!("\"{}\"", list.to_string().replace('"', "\"\""));
    let rows = lists().map(|(id, list)| format!("{id},{}\n", cell(&list)));
    place.file("rows.csv", format!("id,text\n{}", rows.concat()));
    for (id, list) in lists() {
        place.file(format!("files/{id}"), list.to_string());
    }
    place.file("words.jsonl", record("a", &json!("for 1 2 3 x-y")) + &record("b", &json!(" for 1\n2 3 x-z")));
    for input in
        ["lists.jsonl", "nested.jsonl --text-field of.it", "texts.jsonl", "rows.csv", "files", "words.jsonl"]
    {
        for pipeline in ["minhash", "exact"] {
            let exact = format!("-p {pipeline} {GIVEN} --set filter.verify=exact --emit pairs {input}");
            let found = place.replay(&exact).0.out;
            assert_eq!(found, PAIR, "{exact}");
        }
    }
    let sequences =
        place.replay(&format!("-p exact {GIVEN} --set text.shingle=words:2 --emit pairs lists.jsonl"));
    assert_eq!(sequences.0.out, "{\"a\":\"a\",\"b\":\"b\",\"similarity\":0.6}\n");
}

#[test]
fn weights_count_where_weights_do() {
    let place = Place::new();
    let feed = [
        record("a", &json!([["t", 8], "u", ["v", 1]])),
        record("b", &json!([["t", 6], "t", ["t", 1], "w"])),
        record("c", &json!([["t", 1], "u", ["v", 8]])),
    ];
    place.file("feed.jsonl", feed.concat());
    let set = format!("{GIVEN} --set sketch.kind=dart --set text.weights=count --set filter.verify=exact");
    let set = format!("{set} --set filter.kind=full --set blocking.kind=scan --emit pairs feed.jsonl");
    let found = place.replay(&format!("--set threshold=0.5 {set}")).0.out;
    // min / max: a, b 8 / 11; a, c 3 / 17.
    assert_eq!(found, "{\"a\":\"a\",\"b\":\"b\",\"similarity\":0.7272727272727273}\n");
    let unit = place.replay(&format!("-p exact {GIVEN} --emit pairs feed.jsonl")).0.out;
    assert_eq!(unit, "{\"a\":\"a\",\"b\":\"c\",\"similarity\":1.0}\n", "a set has no weights");
}

#[test]
fn what_is_no_list_is_a_bad_record() {
    let place = Place::new();
    let bad = [
        record("n", &json!([1.5])),
        record("w", &json!([["a", 0]])),
        record("o", &json!({ "a": 1 })),
        record("t", &json!("[1, ")),
        record("x", &json!(7)),
    ];
    place.file("feed.jsonl", lists().map(|(id, list)| record(id, &list)).concat() + &bad.concat());
    let (run, stats) = place
        .replay(&format!("-p exact {GIVEN} --max-bad 1 --dead-letter bad.jsonl --emit pairs feed.jsonl"));
    assert_eq!(run.out, PAIR);
    assert_eq!(stats["bad_records"], json!({ "bad_features": 5 }), "{stats}");
    let letters = lines(&place.read("bad.jsonl"));
    assert_eq!(letters.len(), 5);
    assert!(place.read("bad.jsonl") == bad.concat(), "kept whole: {letters:?}");
    assert!(run.err.contains("16 hexadecimal digits for 64 bits"), "{run:?}");
    let as_texts = place.run("replay --max-bad 1 --emit pairs feed.jsonl");
    assert!(as_texts.err.contains("bad_text"), "without the setting a list is no text: {as_texts:?}");
    let shingles = "-p exact --set text.features=given --set text.shingle=words:2 --max-bad 1 weights.jsonl";
    place.file("weights.jsonl", record("a", &json!([["a", 2]])));
    assert!(place.run(&format!("replay {shingles}")).err.contains("bad_features"), "shingles have no weight");
}

#[test]
fn fingerprints_within_the_distance_are_pairs() {
    let place = Place::new();
    let feed = [
        record("a", &json!("c3d1e0f07f3f1f0f")),
        record("b", &json!("0xC3D1E0F07F3F1F00")),
        record("c", &json!([0xc3d1_e0f0_7f3f_1fff_u64])),
        record("short", &json!("c3d1")),
        record("none", &json!("")),
    ];
    place.file("feed.jsonl", feed.concat());
    let (run, stats) = place.replay("-p fingerprint --max-bad 1 --emit pairs feed.jsonl");
    let expected =
        "{\"a\":\"a\",\"b\":\"b\",\"similarity\":0.9375}\n{\"a\":\"a\",\"b\":\"c\",\"similarity\":0.9375}\n";
    assert_eq!(run.out, expected, "4, 4 and 8 bits");
    assert_eq!(
        (&stats["bad_records"], &stats["empty"]),
        (&json!({ "bad_features": 1 }), &json!(1)),
        "{stats}"
    );
    let further =
        place.replay("-p fingerprint --max-bad 1 --set blocking.distance=8 --emit pairs feed.jsonl").0.out;
    assert_eq!(further, expected.to_owned() + "{\"a\":\"b\",\"b\":\"c\",\"similarity\":0.875}\n");

    place.file("asked", "c3d1e0f07f3f1f0e\n");
    place.file("wrong", "c3d1");
    let asked = place.run("query -p fingerprint --corpus feed.jsonl asked");
    assert!(asked.code == 0 && asked.out.contains("    0.9844          0.0000"), "{asked:?}");
    let wrong = place.run("query -p fingerprint --corpus feed.jsonl wrong");
    assert!(wrong.code != 0 && wrong.err.contains("as text.features = \"given\" reads them"), "{wrong:?}");
    let compared = place.run("compare -p fingerprint --corpus feed.jsonl a b");
    assert!(compared.out.contains("0.9375"), "{compared:?}");
}

/// The pairs that the deltas of a run accumulate to, each as "a b similarity".
#[cfg(feature = "sqlite")]
fn accumulated(deltas: &str) -> Vec<String> {
    let mut pairs = std::collections::BTreeMap::new();
    for delta in lines(deltas) {
        let pair = format!("{} {} {}", delta["a"], delta["b"], delta["similarity"]).replace('"', "");
        *pairs.entry(pair).or_insert(0) += delta["diff"].as_i64().expect("a diff");
    }
    assert!(pairs.values().all(|sum| (0..=1).contains(sum)), "{pairs:?}");
    pairs.into_iter().filter(|(_, sum)| *sum == 1).map(|(pair, _)| pair).collect()
}

/// Features as JSON in a column of texts, through updates, deletes and restarts.
#[cfg(feature = "sqlite")]
#[test]
fn a_table_of_a_database_has_features() {
    let place = Place::new();
    let deployment = format!(
        "workers = 2\n[source]\nkind = \"sqlite\"\npath = {:?}\ntable = \"baskets\"\nid = \"basket\"\n\
         text = \"items\"\norder = \"version\"\ndeleted = \"gone\"\nfollow = false\n\
         [sink]\npath = \"out.jsonl\"\nemit = \"deltas\"\n",
        place.path("in.db")
    );
    place.file("run.toml", deployment.clone() + "[state]\npath = \"state\"\n");
    let table = rusqlite::Connection::open(place.path("in.db")).expect("the database opens");
    let make = "CREATE TABLE baskets (basket TEXT PRIMARY KEY, items TEXT, version INTEGER, gone INTEGER)";
    table.execute_batch(make).expect("a table");
    let put = |version: i64, id: &str, items: Option<serde_json::Value>| {
        let (gone, items) = (items.is_none(), items.map(|items| items.to_string()));
        let sql = "INSERT OR REPLACE INTO baskets VALUES (?1, ?2, ?3, ?4)";
        table.execute(sql, (id, items, version, gone)).expect("a row");
    };
    let run = |expected: &[&str]| {
        let typed = format!("run -c run.toml -p exact {GIVEN}");
        let ended = place.run(&typed);
        assert_eq!(ended.code, 0, "{ended:?}");
        assert_eq!(accumulated(&place.read("out.jsonl")), expected);
        let fresh = Place::new();
        fresh.file("run.toml", &deployment);
        assert_eq!(fresh.run(&typed).code, 0);
        assert_eq!(accumulated(&fresh.read("out.jsonl")), expected, "a fresh run");
        ended.err
    };
    put(1, "a", Some(json!(["bread", 7, "milk", "tea"])));
    put(2, "b", Some(json!(["bread", "7", "milk"])));
    put(3, "c", Some(json!(["BREAD", "MILK"])));
    run(&["a b 0.75"]);
    put(4, "c", Some(json!([7, "bread", "milk"])));
    put(5, "d", Some(json!([-1])));
    let with_bad = run(&["a b 0.75", "a c 0.75", "b c 1.0"]);
    assert!(with_bad.contains("bad_features"), "{with_bad}");
    put(6, "a", None);
    run(&["b c 1.0"]);
    put(7, "b", Some(json!(["tea", "bread"])));
    run(&[]);
}

#[test]
fn settings_that_do_not_apply_are_refused() {
    let place = Place::new();
    place.file("feed.jsonl", record("a", &json!(["a"])));
    for (set, said) in [
        ("sketch.kind=fingerprint", "takes the bits that a record brings; set text.features = \"given\""),
        (
            "text.features=given --set text.stem=english",
            "text.stem: has no effect with text.features = \"given\"",
        ),
        (
            "text.features=given --set text.fields.title=1",
            "text.fields.title: has no effect with text.features",
        ),
        ("text.features=given --set text.shingle=chars:5", "given features have no characters"),
    ] {
        let refused = place.run(&format!("replay --set {set} feed.jsonl"));
        assert!(refused.code == 2 && refused.err.contains(said), "{set}: {refused:?}");
    }
    for (set, said) in [
        ("sketch.size=100", "fingerprint has 64, 128, 192 or 256 places, not 100"),
        ("filter.kind=staged", "a sketch of kind \"fingerprint\" takes \"hamming\""),
        ("filter.verify=exact", "is compared exactly"),
        ("blocking.kind=banding", "takes \"permuted\", \"multi-index\""),
        ("text.weights=count", "this sketch is of sets"),
        ("measure=cosine", "\"cosine\" goes with simhash"),
        ("threshold=0.9", "has no effect with blocking.distance = 6 of 64, which decides what is similar"),
    ] {
        let refused = place.run(&format!("replay -p fingerprint --set {set} feed.jsonl"));
        assert!(refused.code == 2 && refused.err.contains(said), "{set}: {refused:?}");
    }
}

/// A text that has no features as they are read is no empty document.
#[test]
fn compare_refuses_what_is_no_list() {
    let place = Place::new();
    place.file("list", "[\"a\", \"b\"]");
    place.file("wrong", "[1.5, null]");
    place.file("hash", "c3d1e0f07f3f1f0f");
    place.file("digits", "14110306431060090639");
    for (pipeline, right, wrong) in
        [("exact --set text.features=given", "list", "wrong"), ("fingerprint", "hash", "digits")]
    {
        let refused = place.run(&format!("compare -p {pipeline} {right} {wrong}"));
        let said = format!("\"{wrong}\" has no features as text.features");
        assert!(refused.code == 2 && refused.err.contains(&said), "{refused:?}");
        assert_eq!(place.run(&format!("compare -p {pipeline} {right} {right}")).code, 0);
    }
}

/// A feature may have the character that separates fields elsewhere: only white space ends one here.
#[test]
fn a_separator_of_fields_is_part_of_a_feature() {
    let place = Place::new();
    let (own, other) = ("x\u{1e}y z\u{1e}w", "x y z w");
    place.file("lists.jsonl", record("a", &json!(own)) + &record("b", &json!(other)));
    assert_eq!(place.replay(&format!("--emit pairs {GIVEN} lists.jsonl")).0.out, "");
    place.file("a", own);
    place.file("b", other);
    let compared = place.run(&format!("compare {GIVEN} a b")).out;
    assert!(compared.contains("Jaccard, exact              0.0000    0 of 6 distinct"), "{compared}");
    place.file("asked.jsonl", record("own", &json!(own)));
    for asked in ["a", "--lines asked.jsonl"] {
        let lines =
            lines(&place.run(&format!("query --format json --corpus lists.jsonl {GIVEN} {asked}")).out);
        let found: Vec<_> = lines.iter().map(|line| line["id"].clone()).collect();
        assert_eq!(found, ["a"], "{asked}");
    }
}
