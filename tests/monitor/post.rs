//! Documents that clients post.
//!
//! Bug classes: a document that was answered and is lost, or is there twice; an answer that is of another
//! document, or comes before the output has it; a body that is taken in part; a body that waits for ever; a
//! file of others that is taken for a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::client::{Answer, connect, get};
use super::run::{Place, Process};

const WORDS: usize = 40;

/// Two texts of one `family` are near-duplicates.
fn text(family: usize, version: usize) -> String {
    let words: Vec<_> = (0..WORDS).map(|word| format!("w{family}x{word}")).collect();
    format!("{} v{version}", words.join(" "))
}

fn upsert(id: &str, family: usize, version: usize) -> String {
    format!("{{\"id\":\"{id}\",\"text\":\"{}\"}}\n", text(family, version))
}

fn configure(place: &Place, more: &str) {
    place.write(
        "run.toml",
        &format!(
            "workers = 2\n[source]\nkind = \"http\"\njournal = \"posted.jsonl\"\n{more}\
             [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n\
             [monitor]\nlisten = \"127.0.0.1:0\"\nbody_bytes = 100000\n"
        ),
    );
}

/// Posts a body; `None` if the connection ends without an answer.
fn try_post(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> Option<Answer> {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(super::client::BOUND)).ok()?;
    stream.write_all(&[request.as_bytes(), body].concat()).ok()?;
    let mut told = String::new();
    stream.read_to_string(&mut told).ok()?;
    let (head, rest) = told.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    let length = head.to_ascii_lowercase();
    let length = length.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    // A killed process may send a part.
    (rest.len() == length.trim().parse::<usize>().ok()?).then(|| Answer {
        code,
        head: head.to_ascii_lowercase(),
        body: rest.to_owned(),
    })
}

fn post(process: &Process, body: &str) -> Answer {
    try_post(process.address, "/documents", "", body.as_bytes()).unwrap()
}

fn lines(answer: &Answer) -> Vec<Value> {
    answer.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The pairs that the lines of an output add up to.
fn pairs(place: &Place, file: &str) -> BTreeSet<(String, String)> {
    let mut left = BTreeSet::new();
    for line in place.read(file).lines() {
        let told: Value = serde_json::from_str(line).unwrap();
        let pair = (told["a"].to_string(), told["b"].to_string());
        assert!(if told["diff"] == -1 { left.remove(&pair) } else { left.insert(pair) }, "{line}");
    }
    left
}

#[test]
fn each_line_is_answered_when_it_is_in_the_output() {
    let place = Place::new();
    configure(&place, "");
    let process = place.start("run -c run.toml");
    let answer =
        post(&process, &(upsert("a", 1, 1) + &upsert("b", 1, 2) + "{\"id\":\"c\"}\n" + &upsert("d", 2, 1)));
    assert_eq!(answer.code, 200, "{answer:?}");
    let told = lines(&answer);
    assert_eq!(place.read("out.jsonl").lines().count(), 1, "the pair is there");
    assert_eq!(told.len(), 4);
    assert_eq!(
        (&told[0]["id"], &told[0]["copy"], &told[0]["offset"]),
        (&"a".into(), &false.into(), &0.into())
    );
    assert_eq!((&told[1]["id"], &told[1]["copy"], &told[1]["of"]), (&"b".into(), &true.into(), &"a".into()));
    assert_eq!(told[2], serde_json::json!({"line": 3, "bad": "missing_text"}));
    assert_eq!((&told[3]["pairs"], &told[3]["offset"]), (&0.into(), &3.into()));

    // One object over several lines.
    let one = lines(&post(&process, &format!("{{\n \"id\": \"e\",\r\n \"text\": \"{}\"\n}}", text(2, 2))));
    assert_eq!((one.len(), &one[0]["of"]), (1, &"d".into()));
    let ended = lines(&post(&process, "\n{\"id\":\"a\",\"op\":\"delete\"}"));
    assert_eq!((ended.len(), &ended[0]["id"], &ended[0]["ended"]), (1, &"a".into(), &true.into()));
    assert_eq!(pairs(&place, "out.jsonl").len(), 1, "that of d and e is left");
    // Sent again, it changes nothing.
    let before = place.read("out.jsonl");
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["copy"], false);
    assert_eq!(place.read("out.jsonl"), before);

    let packed = zstd::encode_all(upsert("f", 3, 1).as_bytes(), 3).unwrap();
    let packed = try_post(process.address, "/documents", "content-encoding: zstd\r\n", &packed).unwrap();
    assert_eq!((packed.code, &lines(&packed)[0]["id"]), (200, &"f".into()));
    let stored = try_post(process.address, "/documents?wait=none", "", upsert("g", 3, 2).as_bytes()).unwrap();
    assert_eq!((stored.code, lines(&stored)), (202, vec![serde_json::json!({"id": "g", "offset": 8})]));
    assert_eq!(lines(&post(&process, &upsert("h", 3, 3)))[0]["pairs"], 2);

    for (body, headers, code, why) in [
        ("", "", 400, "no line"),
        ("\n \n", "", 400, "no line"),
        ("no json", "", 400, "\"line\":1"),
        ("\u{1f}\u{8b} ", "", 400, "\"line\":1"),
        ("{}", "content-encoding: br\r\n", 415, "gzip, zstd"),
        (&" ".repeat(100_001), "", 413, "100000"),
    ] {
        let refused = try_post(process.address, "/documents", headers, body.as_bytes()).unwrap();
        assert!(refused.code == code && refused.body.contains(why), "{body:.9}: {refused:?}");
    }
    let bomb = zstd::encode_all(&*vec![b' '; 1 << 20], 3).unwrap();
    assert_eq!(try_post(process.address, "/documents", "", &bomb).unwrap().code, 413);
    let again = try_post(process.address, "/documents?wait=long", "", b"{}").unwrap();
    assert_eq!(again.code, 400, "{again:?}");
    assert_eq!(get(process.address, "/documents").code, 405);
    assert_eq!(process.interrupt().code(), Some(0));

    let (code, log) = place.done("replay --emit pairs -o expected.jsonl posted.jsonl");
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(pairs(&place, "out.jsonl"), pairs(&place, "expected.jsonl"));
}

#[test]
fn too_many_bytes_that_wait_are_refused() {
    let place = Place::new();
    configure(&place, "waiting = 1024\n");
    let process = place.start("run -c run.toml");
    let body = upsert("a", 1, 1).repeat(5);
    let answer = post(&process, &body);
    assert!(answer.code == 429 && answer.head.contains("retry-after: 1"), "{answer:?}");
    assert_eq!(post(&process, &upsert("a", 1, 1)).code, 200, "nothing of the other waits");
    assert_eq!(place.read("posted.jsonl").lines().count(), 2);
}

/// Runs are killed while clients post, and post again what was not answered.
#[test]
fn what_was_answered_is_never_lost_or_twice() {
    const CLIENTS: usize = 4;
    const DOCUMENTS: usize = 40;
    let place = Place::new();
    configure(&place, "");
    let process = Mutex::new(Some(place.start("run -c run.toml")));
    let address = || process.lock().unwrap().as_ref().map(|process| process.address);
    let answered = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (answered, address) = (&answered, &address);
            scope.spawn(move || {
                for n in 0..DOCUMENTS {
                    let id = format!("c{client}-{}", n % (DOCUMENTS / 2));
                    let body = upsert(&id, n % 7, client * DOCUMENTS + n);
                    let told = loop {
                        let told = address().and_then(|to| try_post(to, "/documents", "", body.as_bytes()));
                        match told {
                            Some(told) if told.code == 200 => break told,
                            _ => thread::park_timeout(Duration::from_millis(5)),
                        }
                    };
                    assert_eq!(lines(&told)[0]["id"], *id);
                    answered.lock().unwrap().insert(id, body);
                }
            });
        }
        for kill in 1..=6 {
            // Each time some documents more are answered.
            let wanted = kill * CLIENTS * DOCUMENTS / 20;
            while answered.lock().unwrap().len() < wanted.min(CLIENTS * DOCUMENTS / 4) {
                thread::park_timeout(Duration::from_millis(5));
            }
            let running = process.lock().unwrap().take();
            running.unwrap().kill();
            let next = place.start("run -c run.toml");
            *process.lock().unwrap() = Some(next);
        }
    });
    let running = process.into_inner().unwrap().unwrap();
    assert_eq!(running.interrupt().code(), Some(0));
    let last: String = answered.into_inner().unwrap().into_values().collect();
    place.write("last.jsonl", &last);
    for feed in ["last.jsonl", "posted.jsonl"] {
        let (code, log) = place.done(&format!("replay --emit pairs -o expected.jsonl {feed}"));
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(pairs(&place, "out.jsonl"), pairs(&place, "expected.jsonl"), "{feed}");
    }
}

#[test]
fn a_torn_line_is_cut_off_and_a_file_of_others_is_left_alone() {
    let place = Place::new();
    configure(&place, "");
    place.write("posted.jsonl", &format!("\n{}{{\"id\":\"torn\",\"te", upsert("a", 1, 1)));
    let process = place.start("run -c run.toml");
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["of"], "a");
    assert_eq!(place.read("posted.jsonl"), format!("\n{}{}", upsert("a", 1, 1), upsert("b", 1, 2)));
    place.write(
        "other.toml",
        &place.read("run.toml").replace("out.jsonl", "other.jsonl").replace("\"state\"", "\"s2\""),
    );
    let (code, log) = place.done("run -c other.toml");
    assert!(code == Some(1) && log.contains("posted.jsonl") && log.contains("another run"), "{log}");
    drop(process);

    for others in [upsert("a", 1, 1), "{\"id\":\"x\"".to_owned()] {
        let other = Place::new();
        configure(&other, "");
        other.write("posted.jsonl", &others);
        let (ended, why) = other.done("run -c run.toml");
        assert!(ended == Some(1) && why.contains("begins with an empty line: name another file"), "{why}");
        assert_eq!(other.read("posted.jsonl"), others);
    }
}

#[test]
fn another_source_takes_no_documents_and_a_door_needs_an_address() {
    let place = Place::new();
    place.write("feed.jsonl", &upsert("a", 1, 1));
    place.write(
        "run.toml",
        "[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nfollow = true\nepoch = \"every:20ms\"\n\
         [sink]\npath = \"out.jsonl\"\n[monitor]\nlisten = \"127.0.0.1:0\"\n",
    );
    let process = place.start("run -c run.toml");
    assert_eq!(post(&process, &upsert("b", 1, 2)).code, 501);
    drop(process);
    place.write("run.toml", "[source]\nkind = \"http\"\nformat = \"csv\"\n[sink]\npath = \"out.jsonl\"\n");
    let (code, log) = place.done("run -c run.toml");
    assert_eq!(code, Some(2), "{log}");
    for why in ["source.journal", "set monitor.listen", "source.format"] {
        assert!(log.contains(why), "{why}: {log}");
    }
}

/// A client that goes away leaves nothing behind.
#[test]
fn half_a_body_is_not_taken() {
    let place = Place::new();
    configure(&place, "");
    let process = place.start("run -c run.toml");
    let mut stream = connect(process.address);
    stream
        .write_all(b"POST /documents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99\r\n\r\n{\"id\"")
        .unwrap();
    drop(stream);
    assert_eq!(post(&process, &upsert("a", 1, 1)).code, 200);
    assert_eq!(place.read("posted.jsonl").lines().count(), 2);
}
