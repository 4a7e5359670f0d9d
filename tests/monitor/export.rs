//! Lists as files: whole, in both formats, and no formulas.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::client::{Answer, ask};
use super::history::{configure, json, until};
use super::run::{Place, Process};

/// Near-duplicates of one page; their ids are formulas of a spreadsheet.
const DOCUMENTS: usize = 50;
const PAIRS: usize = DOCUMENTS * (DOCUMENTS - 1) / 2;

fn file(process: &Process, path: &str, accept: &str) -> Answer {
    // With HTTP/1.0 the body is not chunked.
    ask(process.address, &format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n{accept}\r\n"))
}

#[test]
fn lists_are_whole_files() {
    let place = Place::new();
    configure(&place, "20ms", "");
    let words: Vec<String> = (0..60).map(|word| format!("word{word}")).collect();
    let feed = (0..DOCUMENTS).fold(String::new(), |mut all, n| {
        writeln!(all, "{{\"id\":\"=d{n:02}\",\"text\":\"{} {}\"}}", words.join(" "), n % 3).unwrap();
        all
    });
    place.write("feed.jsonl", &feed);
    let process = place.start("run -c run.toml");
    let mut expected = BTreeMap::new();
    let mut next = String::new();
    until("all pairs", || json(&process, "/status").filter(|status| status["pairs"] == PAIRS).map(drop));
    loop {
        let page = json(&process, &format!("/pairs?limit=100{next}")).unwrap();
        for pair in page["pairs"].as_array().unwrap() {
            expected.insert((pair["a"].to_string(), pair["b"].to_string()), pair.clone());
        }
        let Some(after) = page["next"].as_str() else { break };
        next = format!("&after={after}");
    }
    assert_eq!(expected.len(), PAIRS, "more than are read at once");

    let lines = file(&process, "/pairs?format=jsonl", "");
    assert!(lines.head.contains("content-type: application/x-ndjson"), "{}", lines.head);
    let name = lines.head.split("filename=\"").nth(1).unwrap().split('"').next().unwrap();
    assert!(name.starts_with("dupflow-pairs-") && name.ends_with(".jsonl"), "{name}");
    let found: BTreeMap<_, Value> = lines
        .body
        .lines()
        .map(|line| {
            let pair: Value = serde_json::from_str(line).unwrap();
            ((pair["a"].to_string(), pair["b"].to_string()), pair)
        })
        .collect();
    assert_eq!(found, expected);

    let csv = file(&process, "/pairs", "accept: text/csv\r\n");
    assert!(csv.head.contains("content-type: text/csv; charset=utf-8"), "{}", csv.head);
    let mut rows = csv.body.split_terminator("\r\n");
    assert_eq!(rows.next(), Some("a,b,similarity,since,since_at,since_event_time,since_is_exact,cause"));
    let rows: Vec<&str> = rows.collect();
    assert!(rows.len() == PAIRS && rows.iter().all(|row| row.starts_with("'=d")), "{}", rows[0]);
    let narrow = file(&process, "/pairs?format=csv&document=%3Dd07", "");
    assert_eq!(narrow.body.lines().count(), DOCUMENTS, "a header and its pairs");

    let clusters = file(&process, "/clusters?format=csv", "").body;
    assert_eq!(clusters.lines().count(), 2);
    assert!(clusters.lines().nth(1).unwrap().starts_with("'=d00,50,false,"), "{clusters}");
    let deltas = file(&process, "/deltas?format=jsonl", "").body;
    assert_eq!(deltas.lines().count(), PAIRS);
    for refused in
        ["/pairs?format=csv&limit=3", "/clusters?format=jsonl&after=x", "/deltas?format=csv&tail=1"]
    {
        assert_eq!(file(&process, refused, "").code, 400, "{refused}");
    }
    let page = file(&process, "/pairs?format=json&limit=3", "accept: text/csv\r\n");
    assert!(page.code == 200 && page.body.starts_with("{\"epoch\":"), "{page:?}");
    assert_eq!(process.interrupt().code(), Some(0));
}
