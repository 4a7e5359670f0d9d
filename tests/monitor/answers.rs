//! Answers compared with the OpenAPI description and with the output.
//!
//! Bug classes: an answer that does not match its schema for some ids or texts; a page that loses or repeats
//! elements at its ends; an answer that disagrees with the output.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::Value;

use super::client::{Answer, ask, get};
use super::history::until;
use super::run::{Place, Process};

/// Ids with characters that some encoding must escape; the last one has 1,024 bytes.
fn ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "<script>alert(1)</script>",
        "a/b?c=d&e#f%2F+ g",
        "\u{202e}evil",
        "\n\ndata: {}",
        "\0",
        "文",
        "ไทย",
        "👩‍👩‍👧",
        "\"\\",
    ]
    .map(str::to_owned)
    .into();
    ids.push("é".repeat(512));
    ids
}

/// Percent-encodes everything except letters and digits.
fn encoded(id: &str) -> String {
    id.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").unwrap();
        }
        out
    })
}

fn text(n: usize) -> String {
    let words: Vec<String> = (0..80).map(|word| format!("word{}", n / 4 * 1000 + word)).collect();
    words.join(" ")
}

/// A run that has read all its documents, which form families of four near-duplicates.
fn run(place: &Place) -> Process {
    let mut feed = String::new();
    for (n, id) in ids().iter().cloned().chain((0..40).map(|n| format!("id{n}"))).enumerate() {
        let line = serde_json::json!({"id": id, "ts": 1.7e9 + n as f64, "text": text(n)});
        writeln!(feed, "{line}").unwrap();
    }
    place.write("feed.jsonl", &feed);
    let process = place.start("replay -o out.jsonl --epoch events:10 --monitor 127.0.0.1:0 feed.jsonl");
    process.wait_for("all is read");
    // Waits until the last epoch is in the view.
    while json(&get(process.address, "/pairs"))["epoch"].as_u64() < Some(5) {}
    process
}

fn json(answer: &Answer) -> Value {
    serde_json::from_str(&answer.body).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
}

/// Collects the violations of a schema by a value, for the features of schemas that the description uses.
fn check(root: &Value, schema: &Value, value: &Value, at: &str, problems: &mut Vec<String>) {
    if let Some(name) = schema["$ref"].as_str() {
        let found = root.pointer(name.trim_start_matches('#')).unwrap_or_else(|| panic!("no {name}"));
        return check(root, found, value, at, problems);
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        // A part of an `allOf` does not describe the fields of the others.
        check(root, part, value, &format!("{at}+"), problems);
    }
    if let Some(one) = schema["oneOf"].as_array() {
        let fits = |choice: &Value| {
            let mut found = Vec::new();
            check(root, choice, value, at, &mut found);
            found.is_empty()
        };
        if !one.iter().any(fits) {
            problems.push(format!("{at}: none of the choices fits {value}"));
        }
    }
    let names = match &schema["type"] {
        Value::String(name) => vec![name.as_str()],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other}"),
    };
    if !names.is_empty() && !names.iter().any(is) {
        problems.push(format!("{at}: {value} is none of {names:?}"));
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if value.is_object() && value.get(name).is_none() {
            problems.push(format!("{at}: {name} is missing"));
        }
    }
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, field) in fields {
            if let Some(described) = properties.get(name) {
                check(root, described, field, &format!("{at}.{name}"), problems);
            } else if schema["allOf"].is_null() && !at.ends_with('+') {
                problems.push(format!("{at}: {name} is not described"));
            }
        }
    }
    for (n, item) in value.as_array().into_iter().flatten().enumerate() {
        if !schema["items"].is_null() {
            check(root, &schema["items"], item, &format!("{at}[{n}]"), problems);
        }
    }
}

#[test]
fn real_answers_are_as_they_are_described() {
    let place = Place::new();
    let process = run(&place);
    let description = json(&get(process.address, "/openapi.json"));
    let id = encoded(&ids()[0]);
    for (path, described, code) in [
        ("/status".to_owned(), "/status", 200),
        ("/history".to_owned(), "/history", 200),
        ("/pipeline".to_owned(), "/pipeline", 200),
        ("/config".to_owned(), "/config", 200),
        ("/pairs?limit=7".to_owned(), "/pairs", 200),
        ("/pairs?limit=0".to_owned(), "/pairs", 400),
        ("/pairs?order=time&q=id&limit=3".to_owned(), "/pairs", 200),
        ("/pairs?order=size".to_owned(), "/pairs", 400),
        ("/clusters?order=recent".to_owned(), "/clusters", 200),
        ("/clusters?order=other".to_owned(), "/clusters", 400),
        ("/clusters/nothing".to_owned(), "/clusters/{id}", 404),
        (format!("/documents/{id}"), "/documents/{id}", 200),
        ("/documents/nothing".to_owned(), "/documents/{id}", 404),
        (format!("/documents/{id}/text"), "/documents/{id}/text", 200),
        (format!("/compare?a={id}&b=id0"), "/compare", 200),
    ] {
        let answer = get(process.address, &path);
        assert_eq!(answer.code, code, "{path}: {answer:?}");
        let responses = &description["paths"][described]["get"]["responses"];
        let schema = &responses[code.to_string()]["content"]["application/json"]["schema"];
        let mut problems = Vec::new();
        check(&description, schema, &json(&answer), described, &mut problems);
        assert!(problems.is_empty(), "{path}: {problems:?}");
        for header in [
            "cache-control: no-store",
            "x-content-type-options: nosniff",
            "content-security-policy: default-src 'none'",
        ] {
            assert!(answer.head.contains(header), "{path} {header}: {}", answer.head);
        }
    }
    assert_eq!(process.interrupt().code(), Some(0));
}

#[test]
fn pages_of_pairs_and_clusters_are_what_the_output_says_whatever_ids_hold() {
    let place = Place::new();
    let process = run(&place);
    let mut written = BTreeSet::new();
    for line in place.read("out.jsonl").lines() {
        let delta: Value = serde_json::from_str(line).unwrap();
        written.insert((delta["a"].to_string(), delta["b"].to_string(), delta["similarity"].to_string()));
    }
    let pages = |path: &str, list: &str| -> Vec<Value> {
        let mut found = Vec::new();
        let mut next = String::new();
        loop {
            let page = json(&get(process.address, &format!("{path}limit=3{next}")));
            let items = page[list].as_array().unwrap_or_else(|| panic!("{page}"));
            assert!(items.len() <= 3);
            found.extend(items.iter().cloned());
            match page["next"].as_str() {
                None => return found,
                Some(cursor) => next = format!("&after={cursor}"),
            }
        }
    };
    let pairs: Vec<_> = pages("/pairs?", "pairs")
        .iter()
        .map(|pair| (pair["a"].to_string(), pair["b"].to_string(), pair["similarity"].to_string()))
        .collect();
    assert_eq!(pairs.len(), written.len());
    assert_eq!(pairs.into_iter().collect::<BTreeSet<_>>(), written);
    let similarities: Vec<_> = {
        let page = json(&get(process.address, "/pairs?order=similarity&limit=1000"));
        page["pairs"].as_array().unwrap().iter().map(|pair| pair["similarity"].as_f64().unwrap()).collect()
    };
    assert!(similarities.is_sorted_by(|a, b| a >= b), "{similarities:?}");
    for order in ["time", "similarity"] {
        let ranked = pages(&format!("/pairs?order={order}&"), "pairs");
        let key =
            |pair: &Value| (pair["a"].to_string(), pair["b"].to_string(), pair["similarity"].to_string());
        assert_eq!(ranked.len(), written.len());
        assert_eq!(ranked.iter().map(key).collect::<BTreeSet<_>>(), written);
        let page = json(&get(process.address, &format!("/pairs?order={order}&limit=1")));
        let other = format!("/pairs?order=id&after={}", page["next"].as_str().unwrap());
        assert_eq!(get(process.address, &other).code, 400, "a cursor of another order");
    }
    for id in ids() {
        let with_part = pages(&format!("/pairs?q={}&", encoded(&id)), "pairs");
        let has_part =
            |pair: &&Value| ["a", "b"].iter().any(|side| pair[side].as_str().unwrap().contains(&*id));
        let all = pages("/pairs?", "pairs");
        assert_eq!(with_part, all.iter().filter(has_part).cloned().collect::<Vec<_>>(), "{id:?}");
        let shown = Value::from(id.as_str()).to_string();
        let of_it = pages(&format!("/pairs?document={}&", encoded(&id)), "pairs").len();
        assert_eq!(of_it, written.iter().filter(|(a, b, _)| [a, b].contains(&&shown)).count(), "{id:?}");
        let document = json(&get(process.address, &format!("/documents/{}", encoded(&id))));
        assert_eq!(
            (document["id"].as_str(), document["pairs"].as_array().unwrap().len()),
            (Some(id.as_str()), of_it)
        );
    }
    for order in ["size", "recent"] {
        let clusters = pages(&format!("/clusters?order={order}&"), "clusters");
        let mut members = 0;
        for cluster in &clusters {
            let name = encoded(cluster["cluster"].as_str().unwrap());
            members += pages(&format!("/clusters/{name}?"), "members").len();
        }
        let documents: BTreeSet<_> = written.iter().flat_map(|(a, b, _)| [a, b]).collect();
        assert_eq!(members, documents.len(), "{order}");
        let names: BTreeSet<String> = clusters.iter().map(|cluster| cluster["cluster"].to_string()).collect();
        assert_eq!(names.len(), clusters.len());
    }
    let status = json(&get(process.address, "/status"));
    let counted: u64 = status["similarities"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    assert_eq!((counted, status["pairs"].as_u64()), (written.len() as u64, Some(written.len() as u64)));
    assert_eq!(process.interrupt().code(), Some(0));
}

#[test]
fn a_text_is_told_what_it_is_similar_to() {
    let place = Place::new();
    let process = run(&place);
    let post = |kind: &str, body: &str| {
        let length = body.len();
        let request = format!(
            "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
                {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        ask(process.address, &request)
    };
    let answer = json(&post("text/plain", &text(0)));
    assert_eq!((answer["empty"].as_bool(), answer["more"].as_u64()), (Some(false), Some(0)));
    let found: BTreeSet<&str> =
        answer["documents"].as_array().unwrap().iter().filter_map(|near| near["id"].as_str()).collect();
    let ids = ids();
    assert_eq!(found, ids[..4].iter().map(String::as_str).collect());
    let asked = serde_json::json!({"text": text(0), "top": 2}).to_string();
    let best = json(&post("application/json", &asked));
    assert_eq!((best["documents"].as_array().unwrap().len(), best["more"].as_u64()), (2, Some(2)));
    assert_eq!(json(&post("text/plain", "\u{3002} !"))["empty"], true);

    let lines = format!(
        "{{\"id\":7,\"text\":\"none\"}}\n\nnonsense\n{{\"id\":\"文\",\"text\":{}}}\n",
        Value::from(text(0))
    );
    let streamed = post("application/x-ndjson", &lines);
    let unchunked = streamed
        .body
        .lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let [none, nonsense, near] = &unchunked.collect::<Vec<_>>()[..] else { panic!("{streamed:?}") };
    assert_eq!((none["id"].as_u64(), none["documents"].as_array().unwrap().len()), (Some(7), 0));
    assert!(nonsense["error"].is_string());
    assert_eq!((near["id"].as_str(), near["documents"].as_array().unwrap().len()), (Some("文"), 4));

    assert_eq!(post("image/png", "x").code, 415);
    assert_eq!(post("application/json", "{\"text\":\"a\",\"top\":0}").code, 400);
    assert_eq!(post("text/plain", "\u{e9}").code, 200);
    let broken = b"POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: \
        2\r\n\r\n\xff\xfe";
    let mut stream = super::client::connect(process.address);
    std::io::Write::write_all(&mut stream, broken).unwrap();
    assert!(super::client::rest(&mut stream).starts_with(b"HTTP/1.1 400 "));
    assert_eq!(process.interrupt().code(), Some(0));
}

#[test]
fn without_pairs_there_are_numbers_deltas_and_questions() {
    let place = Place::new();
    place.write(
        "run.toml",
        "[source]\nkind = \"files\"\ninputs = [\"pipe\"]\n[monitor]\nlisten = \
        \"127.0.0.1:0\"\npairs = false\n",
    );
    std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    let process = place.start("run -c run.toml");
    for path in ["/pairs", "/clusters", "/clusters/a", "/deltas"] {
        let answer = get(process.address, path);
        assert!(answer.code == 501 && answer.body.contains("monitor.pairs = false"), "{path}: {answer:?}");
    }
    let status = get(process.address, "/status");
    assert_eq!((status.code, json(&status)["similarities"].as_array().map(Vec::len)), (200, Some(0)));
    process.kill();
}

/// A client with many queries leaves capacity for single queries.
#[test]
fn one_question_is_answered_beside_many() {
    let place = Place::new();
    place.write(
        "feed.jsonl",
        &(0..8).map(|n| format!("{{\"id\":\"id{n}\",\"text\":\"{}\"}}\n", text(n))).collect::<String>(),
    );
    std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    place.write(
        "run.toml",
        "[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\", \"pipe\"]\nepoch = \"events:4\"\n[sink]\npath \
            = \"out.jsonl\"\n\
         [monitor]\nlisten = \"127.0.0.1:0\"\nquestions_per_second = 40\n",
    );
    let process = place.start("run -c run.toml");
    while get(process.address, "/ready").code != 200 {}
    let request = |kind: &str, body: &str| {
        let length = body.len();
        format!(
            "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
                {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    };
    // More queries than are answered in many seconds, from more clients than there are threads.
    let many: String = (0..2000).map(|n| format!("{{\"id\":{n},\"text\":\"a b c\"}}\n")).collect();
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let mut stream = super::client::connect(process.address);
            std::io::Write::write_all(&mut stream, request("application/x-ndjson", &many).as_bytes())
                .unwrap();
            // After the first answers the initial tokens of the rate limit are used up.
            let mut begin = [0; 600];
            std::io::Read::read_exact(&mut stream, &mut begin).unwrap();
            stream
        })
        .collect();
    for n in 0..10 {
        let answer = ask(process.address, &request("text/plain", "a b c"));
        assert_eq!(answer.code, 200, "question {n}: {answer:?}");
    }
    drop(clients);
    let metrics = get(process.address, "/metrics").body;
    assert!(metrics.contains("dupflow_questions_refused_total{reason=\"rate\"} 0"), "{metrics}");
    process.kill();
}

#[test]
fn a_document_of_any_name_is_found_by_a_query() {
    let place = Place::new();
    let names = ["..", ".", "a/../b", "..%2F", "text", "?"];
    let feed: String =
        names.iter().map(|name| format!("{}\n", serde_json::json!({"id": name, "text": text(0)}))).collect();
    place.write("feed.jsonl", &feed);
    let process = place.start("replay -o out.jsonl --monitor 127.0.0.1:0 feed.jsonl");
    process.wait_for("all is read");
    while json(&get(process.address, "/pairs"))["epoch"].as_u64() < Some(1) {}
    for name in names {
        let id = encoded(name).replace('.', "%2E");
        for path in [
            format!("/document?id={id}"),
            format!("/document/text?id={id}"),
            format!("/document?id={}", encoded(name)),
        ] {
            let answer = get(process.address, &path);
            assert_eq!((answer.code, json(&answer)["id"].as_str()), (200, Some(name)), "{path}: {answer:?}");
        }
        assert_eq!(get(process.address, &format!("/compare?a={id}&b=text")).code, 200, "{name}");
    }
    let cluster =
        json(&get(process.address, "/clusters"))["clusters"][0]["cluster"].as_str().unwrap().to_owned();
    let found = get(process.address, &format!("/cluster?id={}", encoded(&cluster)));
    assert_eq!(json(&found)["members"].as_array().map(Vec::len), Some(names.len()), "{found:?}");
    assert_eq!(get(process.address, "/document?id=none").code, 404);
    assert_eq!(process.interrupt().code(), Some(0));
}

/// Hot blocks are counted, and listed with their documents and common passage.
#[test]
fn hot_blocks_are_named_and_counted() {
    let place = Place::new();
    let feed: String = (0..40)
        .map(|n| {
            let own: Vec<String> = (0..6).map(|word| format!("own{n}x{word}")).collect();
            let shared: Vec<String> = (0..60).map(|word| format!("shared{word}")).collect();
            format!("{{\"id\":\"d{n}\",\"text\":\"{} {}\"}}\n", shared.join(" "), own.join(" "))
        })
        .collect();
    place.write("feed.jsonl", &feed);
    let process = place.start(
        "replay -o out.jsonl --epoch events:10 --set blocking.cap=4 --set blocking.documents=30 \
            --monitor 127.0.0.1:0 feed.jsonl",
    );
    process.wait_for("all is read");
    let status = || json(&get(process.address, "/status"));
    let is_told = |block: &Value| block["common"].as_str().is_some_and(|common| common.contains("shared"));
    let told = until("each hot block that is shown has examples", || {
        let now = status();
        let blocks = now["hot_blocks"].as_array().unwrap();
        (!blocks.is_empty() && blocks.iter().all(is_told)).then_some(now.clone())
    });
    for block in told["hot_blocks"].as_array().unwrap() {
        let of = |name: &str| block[name].as_str().unwrap_or_else(|| panic!("{name} of {block}")).to_owned();
        assert_ne!(of("document"), of("beside"));
    }
    let gauge = get(process.address, "/metrics").body;
    let gauge = gauge.lines().find_map(|line| line.strip_prefix("dupflow_hot_blocks ")).unwrap();
    assert_eq!(told["hot_blocks_total"].as_u64(), gauge.trim().parse().ok());
    assert_eq!((told["sketches"].as_u64(), told["planned_sketches"].as_u64()), (Some(40), Some(30)));
    assert_eq!(process.interrupt().code(), Some(0));
}
