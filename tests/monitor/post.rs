//! Documents that clients post.
//!
//! Bug classes: a document that was answered and is lost, or is there twice; an answer that is of another
//! document, or is sent before the output has it; a body that is taken in part; a body that waits for ever; a
//! file of others that is taken for a journal.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::client::{Answer, connect, get};
#[cfg(target_os = "linux")]
use super::disk::Disk;
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

    // As some editors begin a file.
    let marked = lines(&post(&process, "\u{feff}{\"id\":\"b\",\"op\":\"delete\"}\r\n"));
    assert_eq!(marked[0]["ended"], true);
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["of"], "a");
    // One object over several lines.
    let one = lines(&post(&process, &format!("{{\n \"id\": \"e\",\r\n \"text\": \"{}\"\n}}", text(2, 2))));
    assert_eq!((one.len(), &one[0]["of"]), (1, &"d".into()));
    let ended = lines(&post(&process, "\n{\"id\":\"a\",\"op\":\"delete\"}"));
    assert_eq!((ended.len(), &ended[0]["id"], &ended[0]["ended"]), (1, &"a".into(), &true.into()));
    assert_eq!(pairs(&place, "out.jsonl").len(), 1, "that of d and e is left");
    // The oldest is the one that arrived first, whatever its id, and stays it when it arrives again.
    let ids = ["z", "y", "z", "y"];
    let copies = ids.map(|id| lines(&post(&process, &upsert(id, 7, 1)))[0]["copy"].clone());
    assert_eq!(copies, [false, true, false, true]);
    let given = upsert("x", 7, 1).replace('}', ",\"ts\":5}");
    assert_eq!(lines(&post(&process, &given))[0]["of"], "x", "its own time counts");
    for id in ["x", "y", "z"] {
        post(&process, &format!("{{\"id\":\"{id}\",\"op\":\"delete\"}}"));
    }
    // Sent again, it changes nothing.
    let before = place.read("out.jsonl");
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["copy"], false);
    assert_eq!(place.read("out.jsonl"), before);

    let packed = zstd::encode_all(upsert("f", 3, 1).as_bytes(), 3).unwrap();
    let packed = try_post(process.address, "/documents", "content-encoding: zstd\r\n", &packed).unwrap();
    assert_eq!((packed.code, &lines(&packed)[0]["id"]), (200, &"f".into()));
    let stored = try_post(process.address, "/documents?wait=none", "", upsert("g", 3, 2).as_bytes()).unwrap();
    assert_eq!((stored.code, lines(&stored)), (202, vec![serde_json::json!({"id": "g", "offset": 18})]));
    assert_eq!(lines(&post(&process, &upsert("h", 3, 3)))[0]["pairs"], 2);

    for (body, headers, code, why) in [
        ("", "", 400, "no line"),
        ("\n \n", "", 400, "no line"),
        ("no json", "", 400, "\"line\":1"),
        ("{}", "content-encoding: br\r\n", 415, "gzip, zstd"),
        (&" ".repeat(100_001), "", 413, "100000"),
    ] {
        let refused = try_post(process.address, "/documents", headers, body.as_bytes()).unwrap();
        assert!(refused.code == code && refused.body.contains(why), "{body:.9}: {refused:?}");
    }
    let damaged = try_post(process.address, "/documents", "content-encoding: gzip\r\n", b"\x1f\x8b\x08 ");
    assert!(damaged.is_some_and(|of| of.code == 400 && of.body.contains("cannot be decompressed")));
    // A client reads the answer also if it has sent more than is taken.
    let much = try_post(process.address, "/documents", "", &vec![b'x'; 1_500_000]).unwrap();
    assert_eq!(much.code, 413);
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
    configure(&place, "waiting = 1024\nepoch = \"every:60s\"\n");
    let process = place.start("run -c run.toml");
    thread::scope(|scope| {
        let to = process.address;
        // A body that is alone may have any size; it waits for the end of its epoch.
        let body = upsert("a", 1, 1).repeat(5);
        let waits = scope.spawn(move || try_post(to, "/documents", "", body.as_bytes()));
        until("five lines", || place.read("posted.jsonl").lines().count() == 6);
        let answer = post(&process, &upsert("b", 1, 1));
        assert!(answer.code == 429 && answer.head.contains("retry-after: 1"), "{answer:?}");
        let metrics = get(to, "/metrics").body;
        assert!(metrics.contains("dupflow_requests_refused_total{reason=\"waiting\"} 1\n"), "{metrics}");
        // What has been read is finished; it is answered, or the connection ends with the run.
        assert_eq!(process.interrupt().code(), Some(0));
        assert!(waits.join().unwrap().is_none_or(|told| [200, 503].contains(&told.code)));
    });
    assert_eq!(place.read("posted.jsonl").lines().count(), 6, "nothing of the other was taken");
}

#[test]
#[cfg(target_os = "linux")]
fn nothing_is_acknowledged_while_the_disk_of_the_journal_is_full() {
    let place = Place::new();
    configure(&place, "");
    place.write("run.toml", &place.read("run.toml").replace("posted.jsonl", "own/posted.jsonl"));
    std::fs::create_dir(place.path("own")).unwrap();
    let Some(disk) = Disk::mount(&place.path("own"), "256k") else {
        println!("SKIPPED a full disk of a journal: nothing may be mounted here");
        return;
    };
    let process = place.start("run -c run.toml");
    assert_eq!(post(&process, &upsert("a", 1, 1)).code, 200);
    let before = place.read("own/posted.jsonl");
    disk.fill();
    // More than the rest of a block: a part of it can be written.
    let body: String = (0..40).map(|n| upsert(&format!("b{n}"), 1, n + 2)).collect();
    for _ in 0..3 {
        let refused = post(&process, &body);
        assert!(refused.code == 503 && refused.body.contains("cannot be stored"), "{refused:?}");
        assert_eq!(place.read("own/posted.jsonl"), before);
    }
    disk.empty();
    // Other bytes than those that were cut off.
    let answers = lines(&post(&process, &(upsert("c", 1, 1) + &body)));
    assert!(answers.len() == 41 && answers.iter().all(|told| told["of"] == "a"), "{answers:?}");
    assert_eq!(process.interrupt().code(), Some(0));
    let (code, log) = place.done("replay --emit pairs -o expected.jsonl own/posted.jsonl");
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(pairs(&place, "out.jsonl"), pairs(&place, "expected.jsonl"));
}

/// Waits for a condition; the bound is reached by a defect only.
#[expect(clippy::disallowed_methods, reason = "the bound of a wait, which no time is compared with")]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < super::client::BOUND, "{what}");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// Where runs are killed: anywhere; in a program with failpoints at each point between two durable steps.
fn points() -> Vec<String> {
    let durable = ["journal-synced", "journal-appended", "lines-written", "lines-stored", "mark-written"];
    let durable = durable.into_iter().chain(["mark-renamed", "folder-synced", "commit", "state"]);
    let each = durable.flat_map(|point| [0, 1, 5].map(|passes| format!("{point}:{passes}")));
    if cfg!(feature = "failpoints") { each.collect() } else { vec!["none:0".to_owned(); 6] }
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
                    let path = if n % 3 == 0 { "/documents?wait=closed" } else { "/documents" };
                    let key = format!("idempotency-key: c{client}-{n}\r\n");
                    let key = if client % 2 == 0 { &*key } else { "" };
                    let mut told = None;
                    until("an answer", || {
                        told = address().and_then(|to| try_post(to, path, key, body.as_bytes()));
                        told.as_ref().is_some_and(|told| told.code == 200)
                    });
                    assert_eq!(lines(&told.unwrap())[0]["id"], *id);
                    answered.lock().unwrap().insert(id, body);
                }
            });
        }
        let points = points();
        for (kill, point) in points.iter().enumerate() {
            // Each time some documents more are answered.
            let wanted = (kill + 1) * CLIENTS * DOCUMENTS / 3 / points.len();
            until("more answers", || {
                answered.lock().unwrap().len() >= wanted
                    || process.lock().unwrap().as_mut().is_none_or(Process::has_ended)
            });
            let running = process.lock().unwrap().take();
            running.into_iter().for_each(Process::kill);
            let next = place.start_at("run -c run.toml", point);
            *process.lock().unwrap() = next;
        }
        let running = process.lock().unwrap().take();
        running.into_iter().for_each(Process::kill);
        *process.lock().unwrap() = Some(place.start("run -c run.toml"));
    });
    let running = process.into_inner().unwrap().unwrap();
    assert_eq!(running.interrupt().code(), Some(0));
    // Of each document with a key one line for each of its two texts, however often they were sent.
    let journal = place.read("posted.jsonl");
    let keys: Vec<_> = journal.lines().filter_map(|line| line.split_once(",\"idempotency-key\":")).collect();
    let distinct: BTreeSet<_> = keys.iter().map(|(_, key)| *key).collect();
    assert_eq!((keys.len(), distinct.len()), (CLIENTS / 2 * DOCUMENTS, CLIENTS / 2 * DOCUMENTS));
    let last: String = answered.into_inner().unwrap().into_values().collect();
    place.write("last.jsonl", &last);
    for feed in ["last.jsonl", "posted.jsonl"] {
        let (code, log) = place.done(&format!("replay --emit pairs -o expected.jsonl {feed}"));
        assert_eq!(code, Some(0), "{log}");
        assert_eq!(pairs(&place, "out.jsonl"), pairs(&place, "expected.jsonl"), "{feed}");
    }
}

#[test]
fn a_body_with_a_key_is_stored_once() {
    let place = Place::new();
    configure(&place, "");
    let process = place.start("run -c run.toml");
    let send = |to, key: &str, body: &str| {
        let header = format!("idempotency-key: {key}\r\n");
        try_post(to, "/documents", &header, body.as_bytes()).unwrap()
    };
    let (first, second) = (upsert("a", 1, 1), upsert("a", 2, 1));
    assert_eq!(lines(&send(process.address, "k 1", &first))[0]["document"], "new");
    assert_eq!(lines(&post(&process, &second))[0]["document"], "changed");
    assert_eq!(lines(&post(&process, &second))[0]["document"], "unchanged");
    // Two events and a bad record between them.
    let several = upsert("b", 2, 2) + "{\"id\":\"x\"}\n" + &upsert("c", 3, 1);
    let answers = lines(&send(process.address, "k 2", &several));
    assert_eq!((answers.len(), &answers[0]["of"], &answers[1]["line"]), (3, &"a".into(), &2.into()));
    let stored = place.read("posted.jsonl");
    // The client has had no answer, and others have changed the document since.
    let again = |to| {
        let told = lines(&send(to, "k 1", &first));
        assert_eq!((&told[0]["cluster"], &told[0]["document"]), (&"a".into(), &Value::Null), "{told:?}");
        let all = lines(&send(to, "k 2", &several));
        assert_eq!((all.len(), &all[0]["of"], &all[1]["bad"]), (3, &"a".into(), &"missing_text".into()));
        let other = send(to, "k 2", &first);
        assert!(other.code == 422 && other.body.contains("Idempotency-Key"), "{other:?}");
        assert_eq!(place.read("posted.jsonl"), stored);
    };
    again(process.address);
    process.kill();
    let next = place.start("run -c run.toml");
    again(next.address);
    // Where the lines of an earlier body are is not known.
    let header = "idempotency-key: k 2\r\n";
    let stored_before = try_post(next.address, "/documents?wait=none", header, several.as_bytes()).unwrap();
    assert_eq!(lines(&stored_before)[0], serde_json::json!({"id": "b", "offset": null}));
    for key in ["", &"k".repeat(256), "\u{e4}", "k\r\nidempotency-key: l"] {
        assert_eq!(send(next.address, key, &first).code, 400, "{key}");
    }
    assert_eq!(next.interrupt().code(), Some(0));

    // A crash has left a part of the second body.
    let torn = Place::new();
    configure(&torn, "");
    let part: String = stored.split_inclusive('\n').take(5).collect();
    torn.write("posted.jsonl", &(part + "{\"id\""));
    let after = torn.start("run -c run.toml");
    assert_eq!(lines(&send(after.address, "k 2", &several)).len(), 3);
    assert_eq!(after.interrupt().code(), Some(0));
    let ids = |text: &str| {
        let id = |line: &str| serde_json::from_str::<Value>(line).unwrap()["id"].clone();
        text.lines().skip(1).map(id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&torn.read("posted.jsonl")), ids(&stored));
}

/// Several bodies with one key at once, and a client's own member of that name.
#[test]
fn a_key_is_of_one_body_and_none_is_feigned() {
    const CLIENTS: usize = 24;
    let place = Place::new();
    configure(&place, "");
    let process = place.start("run -c run.toml");
    let own = |id: &str, key: &str| {
        let text = text(9, 1);
        format!(
            "{{\"id\":\"{id}\",\"ts\":1,\"text\":\"{text}\",\
             \"idempotency-key\":[\"{key}\",\"00000000000000aa\"]}}\n"
        )
    };
    let send = |to, key: &str, body: &str| {
        let header = format!("idempotency-key: {key}\r\n");
        try_post(to, "/documents", &header, body.as_bytes()).unwrap().code
    };
    let codes: Vec<u16> = thread::scope(|scope| {
        let to = process.address;
        let client = |n| scope.spawn(move || send(to, "one", &upsert(&format!("c{n}"), n, 1)));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(codes.iter().filter(|code| **code == 200).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 422).count(), CLIENTS - 1, "{codes:?}");
    assert_eq!(place.read("posted.jsonl").matches("[\"one\"").count(), 1);
    assert_eq!(post(&process, &own("x", "later")).code, 200);
    process.kill();
    let next = place.start("run -c run.toml");
    assert_eq!(send(next.address, "later", &upsert("y", 1, 1)), 200, "no body had this key");
    assert_eq!(next.interrupt().code(), Some(0));
    configure(&place, "text_path = \"idempotency-key\"\n");
    let (code, log) = place.done("run -c run.toml");
    assert!(code == Some(1) && log.contains("\"idempotency-key\" has the key of a body"), "{log}");
}

#[test]
fn answers_say_no_more_than_is_known() {
    // The texts of live weights are not held; what has expired is not alive.
    for (more, said) in [("-p weighted", Value::Null), ("--set retention.max_documents=1", "changed".into())]
    {
        let place = Place::new();
        configure(&place, "");
        let process = place.start(&format!("run -c run.toml {more}"));
        assert_eq!(lines(&post(&process, &upsert("a", 1, 1)))[0]["document"], "new", "{more}");
        assert_eq!(lines(&post(&process, &upsert("a", 2, 1)))[0]["document"], said, "{more}");
        let all = lines(&post(&process, &(upsert("b", 3, 1) + &upsert("c", 4, 1))));
        for told in all.iter().filter(|told| told["ended"] == true) {
            assert_eq!(told["document"], Value::Null, "{told}");
        }
        assert_eq!(all[0]["ended"] == true, more.contains("retention"), "{all:?}");
        assert_eq!(process.interrupt().code(), Some(0));
    }
}

#[test]
fn answers_say_what_became_of_a_document() {
    let place = Place::new();
    configure(&place, "");
    let process = place.start("run -c run.toml");
    let closed = |body: &str| {
        let answer = try_post(process.address, "/documents?wait=closed", "", body.as_bytes()).unwrap();
        assert_eq!(answer.code, 200, "{answer:?}");
        lines(&answer)
    };
    let first = closed(&upsert("a", 1, 1));
    assert_eq!((&first[0]["document"], &first[0]["copy"]), (&"new".into(), &false.into()));
    let short = &closed("{\"id\":\"s\",\"text\":\"—\"}")[0];
    assert_eq!((&short["document"], &short["too_short"]), (&"new".into(), &true.into()));
    let repeat = &closed(&upsert("b", 1, 2))[0];
    assert_eq!((&repeat["document"], &repeat["of"]), (&"new".into(), &"a".into()));
    let ended = &closed("{\"id\":\"b\",\"op\":\"delete\"}")[0];
    assert_eq!((&ended["ended"], &ended["document"]), (&true.into(), &Value::Null));
    assert_eq!(closed(&upsert("b", 1, 2))[0]["document"], "new");
    let both = closed(&(upsert("b", 1, 3) + &upsert("b", 1, 2)));
    assert!(both.iter().all(|told| told["document"] != "new" && told["copy"] == true), "{both:?}");
    // What is computed is durable a moment later.
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["document"], "unchanged");
    assert_eq!(pairs(&place, "out.jsonl").len(), 1);
    assert_eq!(process.interrupt().code(), Some(0));
}

#[test]
fn a_torn_line_is_cut_off_and_a_file_of_others_is_left_alone() {
    let place = Place::new();
    configure(&place, "");
    let torn = format!("\n{}{{\"id\":\"torn\",\"te", upsert("a", 1, 1).replace('}', ",\"ts\":1}"));
    place.write("posted.jsonl", &torn);
    let process = place.start("run -c run.toml");
    assert_eq!(lines(&post(&process, &upsert("b", 1, 2)))[0]["of"], "a");
    // Each has the time of its arrival.
    let stored: Vec<Value> =
        place.read("posted.jsonl").lines().skip(1).map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&stored[0]["ts"], &stored[0]["id"], &stored[1]["id"]), (&1.into(), &"a".into(), &"b".into()));
    assert!(stored[1]["ts"].as_f64().unwrap() > 1.7e9 && stored[1]["text"] == text(1, 2), "{stored:?}");
    place.write(
        "other.toml",
        &place.read("run.toml").replace("out.jsonl", "other.jsonl").replace("\"state\"", "\"s2\""),
    );
    let (code, log) = place.done("run -c other.toml");
    assert!(code == Some(1) && log.contains("posted.jsonl") && log.contains("another run"), "{log}");
    place.write("same.toml", &place.read("run.toml").replace("out.jsonl", "posted.jsonl"));
    let (same, why) = place.done("run -c same.toml");
    assert!(same == Some(2) && why.contains("source.journal"), "{why}");
    drop(process);

    for others in [upsert("a", 1, 1), "{\"id\":\"x\"".to_owned()] {
        let other = Place::new();
        configure(&other, "");
        other.write("posted.jsonl", &others);
        let (ended, no_journal) = other.done("run -c run.toml");
        assert!(ended == Some(1) && no_journal.contains("empty line: name another file"), "{no_journal}");
        assert_eq!(other.read("posted.jsonl"), others);
    }
}

/// What was posted is only in the journal, and in a state.
#[test]
fn a_journal_that_is_not_as_it_was_is_refused_kept_or_deleted() {
    for change in ["missing", "another", "cut"] {
        let place = Place::new();
        configure(&place, "");
        let process = place.start("run -c run.toml");
        post(&process, &(upsert("a", 1, 1) + &upsert("b", 1, 2)));
        post(&process, &(upsert("c", 2, 1) + &upsert("d", 2, 2)));
        assert_eq!(process.interrupt().code(), Some(0));
        let journal = place.path("posted.jsonl");
        let spoil = || {
            std::fs::copy(&journal, place.path("away")).unwrap();
            match change {
                "missing" => std::fs::remove_file(&journal).unwrap(),
                "another" => place.write("posted.jsonl", &format!("\n{}", upsert("x", 9, 1))),
                _ => place.write("posted.jsonl", &format!("\n{}{}", upsert("a", 1, 1), upsert("b", 1, 2))),
            }
        };
        spoil();
        let (refused, why) = place.done("run -c run.toml");
        assert!(
            refused == Some(1) && why.contains("put them back as they were; source.gone"),
            "{change}: {why}"
        );
        assert_eq!(journal.exists(), change != "missing", "it leaves things as they are");
        std::fs::copy(place.path("away"), &journal).unwrap();
        let again = place.start("run -c run.toml");
        assert_eq!(lines(&post(&again, &upsert("e", 1, 3)))[0]["pairs"], 2, "{change}");
        assert_eq!(again.interrupt().code(), Some(0));

        spoil();
        let before = place.read("out.jsonl");
        configure(&place, "gone = \"keep\"\n");
        let kept = place.start("run -c run.toml");
        assert_eq!(lines(&post(&kept, &upsert("f", 1, 4)))[0]["pairs"], 3, "{change}");
        assert!(place.read("out.jsonl").starts_with(&before), "{change}");
        assert_eq!(kept.interrupt().code(), Some(0));
        let kept_twice = place.start("run -c run.toml");
        assert_eq!(lines(&post(&kept_twice, &upsert("g", 1, 5)))[0]["pairs"], 4, "{change}");
        // Other clients' lines become durable meanwhile: each is answered when it is itself.
        thread::scope(|scope| {
            for client in 0..8 {
                let to = kept_twice.address;
                scope.spawn(move || {
                    for n in 0..20 {
                        let body = upsert(&format!("k{client}-{n}"), 20 + client, n);
                        let told = &lines(&try_post(to, "/documents", "", body.as_bytes()).unwrap())[0];
                        assert!(told["pairs"] == n && told["ended"].is_null(), "{told}");
                    }
                });
            }
        });
        let stored = try_post(kept_twice.address, "/documents?wait=none", "", upsert("l", 9, 1).as_bytes());
        let stored = lines(&stored.unwrap())[0]["offset"].as_u64().unwrap();
        assert_eq!(lines(&post(&kept_twice, &upsert("m", 9, 2)))[0]["offset"], stored + 1, "{change}");
        assert_eq!(kept_twice.interrupt().code(), Some(0));

        configure(&place, "gone = \"delete\"\n");
        std::fs::remove_file(&journal).unwrap();
        let anew = place.start("run -c run.toml");
        assert_eq!(lines(&post(&anew, &upsert("h", 1, 6)))[0]["pairs"], 0, "{change}");
        // No line makes the journal look like an archive.
        post(&anew, &format!("{}{}", upsert("n", 30, 1), "ustar".repeat(90)));
        assert_eq!(anew.interrupt().code(), Some(0));
        assert_eq!(place.start("run -c run.toml").interrupt().code(), Some(0));
        assert_eq!(pairs(&place, "out.jsonl").len(), 0, "{change}");
    }
}

#[test]
fn another_source_takes_no_documents_and_posting_needs_an_address() {
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
    configure(&place, "");
    place.write("run.toml", &(place.read("run.toml") + "[reference]\ninputs = [\"feed.jsonl\"]\n"));
    let (refused, problems) = place.done("run -c run.toml --set output.on_error=fail");
    assert_eq!(refused, Some(2), "{problems}");
    for why in ["source.kind: does not go with reference.inputs", "output.on_error: \"fail\" does not go"] {
        assert!(problems.contains(why), "{why}: {problems}");
    }
    configure(&place, "epoch = \"events:10\"\ngone = \"keep\"\n");
    let (endless, never) = place.done("run -c run.toml");
    assert!(endless == Some(2) && never.contains("say after which time too"), "{never}");
}

/// A client that closes its connection leaves nothing behind.
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
