//! A run beside a frozen reference: its answers name documents of both sides, and say which is which.
//!
//! Bug classes: a document of the reference that is counted among the live ones, or answered for; an item
//! that a query does not find; a pair of documents whose side is not said; a page that shows pairs without
//! sides.

use serde_json::{Value, json};

use super::client::{ask, get};
use super::run::Place;

fn event(id: &str, text: &str) -> String {
    json!({ "id": id, "text": text }).to_string() + "\n"
}

fn similar(address: std::net::SocketAddr, text: &str) -> Vec<Value> {
    let length = text.len();
    let request = format!(
        "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
            text/plain\r\ncontent-length: {length}\r\n\r\n{text}"
    );
    let answer = ask(address, &request);
    assert_eq!(answer.code, 200, "{answer:?}");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    body["documents"].as_array().unwrap().clone()
}

#[test]
fn answers_name_documents_of_both_sides() {
    let item = "what is the sum of the first ten odd numbers";
    for (pipeline, of_text) in
        [("minhash", vec![("page", false), ("q", true), ("q", false)]), ("decontaminate", vec![("q", true)])]
    {
        let place = Place::new();
        place.write("items.jsonl", &(event("q", item) + &event("r", "name the largest lake of the land")));
        // The id of an item is that of a page too.
        place.write("feed.jsonl", &(event("q", item) + &event("page", item)));
        std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
        place.write(
            "run.toml",
            "[source]\ninputs = [\"feed.jsonl\", \"pipe\"]\nepoch = \"events:1\"\n[reference]\ninputs = \
             [\"items.jsonl\"]\n[sink]\npath = \"out.jsonl\"\n[monitor]\nlisten = \"127.0.0.1:0\"\n",
        );
        let process = place.start(&format!("run -p {pipeline} -c run.toml"));
        let read = |path: &str| -> Value { serde_json::from_str(&get(process.address, path).body).unwrap() };
        while get(process.address, "/ready").code != 200 {}
        while read("/status")["documents"] != 2 {}
        let status = read("/status");
        assert_eq!(status["counts"]["reference_documents"], 2, "{status}");
        assert_eq!((&status["pairs"].is_u64(), &status["clusters"]), (&true, &Value::Null), "{status}");
        while similar(process.address, item).len() < of_text.len() {}
        let mut found: Vec<_> = similar(process.address, item)
            .iter()
            .map(|one| (one["id"].as_str().unwrap().to_owned(), one["old"] == true))
            .collect();
        found.sort_by_key(|(id, is_old)| (id.clone(), !is_old));
        let expected: Vec<_> = of_text.iter().map(|(id, is_old)| ((*id).to_owned(), *is_old)).collect();
        assert_eq!(found, expected, "{pipeline}");
        // A document that is asked for is a live one.
        let document = read("/documents/q");
        let pairs: Vec<_> = document["pairs"].as_array().unwrap().iter().collect();
        assert!(pairs.iter().any(|pair| pair["id"] == "q" && pair["old"] == true), "{document}");
        assert_eq!(pairs.len(), of_text.len() - usize::from(pipeline == "minhash"), "{document}");
        assert_eq!(get(process.address, "/documents/r").code, 404);
        assert_eq!(get(process.address, "/documents/%00oq").code, 404);
        let none = get(process.address, "/pairs");
        assert!(none.code == 501 && none.body.contains("there is a reference"), "{none:?}");
        let deltas = || get(process.address, "/deltas?format=csv").body;
        // They are shown once they are durable.
        while !deltas().contains(",q,q,") {}
        let deltas = deltas();
        assert!(deltas.contains("epoch,at,event_time,diff,a,b,similarity,cause,old"), "{deltas}");
        assert!(deltas.lines().any(|row| row.contains(",q,q,") && row.contains(",true")), "{deltas}");
        let metrics = get(process.address, "/metrics").body;
        assert!(metrics.contains("dupflow_reference_documents_total 2"), "{metrics}");
        assert!(metrics.contains("\ndupflow_documents 2"), "{metrics}");
        process.kill();
    }
}
