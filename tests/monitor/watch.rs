//! Watches that are posted, their notices, and the web hook that delivers them.
//!
//! Bug classes: a watch that a crash loses after it was confirmed; a notice that is lost, or delivered out of
//! order, or again with another key; a receiver that is slow or down and holds the run back.

use std::io::Write;

use serde_json::{Value, json};

use super::client::{Answer, ask, get};
use super::receiver::{Mode, OK, Receiver, until};
use super::run::{Place, Process};

/// Posts a watch, again while the run has not begun.
pub(crate) fn post(run: &Process, body: &Value) -> Answer {
    let body = body.to_string();
    let head = "POST /watch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    let mut answer = None;
    until(|| answer.insert(ask(run.address, &request)).code != 503);
    answer.unwrap()
}

fn end(run: &Process, id: &str) -> Answer {
    ask(
        run.address,
        &format!("DELETE /watch?id={id} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    )
}

fn delete(run: &Process, id: &str) -> u16 {
    end(run, id).code
}

pub(crate) fn state(run: &Process, path: &str) -> Value {
    let answer = get(run.address, path);
    assert_eq!(answer.code, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

/// A text of a family of near-duplicates.
pub(crate) fn text(family: usize, version: usize) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("word{}", family * 100 + word)).collect();
    format!("{} version{version}", words.join(" "))
}

pub(crate) fn append(place: &Place, document: usize, family: usize) {
    let mut feed = std::fs::OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
    let line = json!({ "id": format!("d{document}"), "text": text(family, document) });
    feed.write_all(format!("{line}\n").as_bytes()).unwrap();
}

pub(crate) fn deployment(place: &Place, hook: &str) {
    place.write("feed.jsonl", "");
    let settings = "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"every:20ms\"\nfollow = true\n\
        [sink]\npath = \"out\"\n[state]\npath = \"state\"\ncommit_every = \"10ms\"\n\
        [monitor]\nlisten = \"127.0.0.1:0\"\n[watch]\npath = \"watches\"\n[notices]\npath = \"notices\"\n";
    place.write("here.toml", &format!("{settings}{hook}"));
}

#[test]
fn posted_watches_are_durable_and_noticed() {
    let place = Place::new();
    deployment(&place, "");
    let mut run = place.start("run -c here.toml");
    let added = post(&run, &json!({ "id": "w", "text": text(1, 99) }));
    assert_eq!((added.code, added.body.contains("\"new\":true")), (201, true), "{added:?}");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 98) })).code, 200);
    append(&place, 0, 1);
    until(|| state(&run, "/notices")["count"] == 1);
    append(&place, 1, 1);
    append(&place, 2, 2);
    until(|| state(&run, "/notices")["count"] == 2);
    let notices = state(&run, "/notices?limit=1");
    assert_eq!(
        (&notices["notices"][0]["id"], &notices["notices"][0]["watch"], &notices["next"], &notices["hook"]),
        (&"d1".into(), &"w".into(), &2.into(), &Value::Null)
    );
    assert_eq!(state(&run, "/notices?before=2")["notices"][0]["id"], "d0");
    for (body, code) in [
        (json!({ "id": "e", "text": "?!" }), 422),
        (json!({ "id": "", "text": "text" }), 400),
        (json!({ "id": "e" }), 400),
        (json!({ "id": "e", "text": "text", "more": 1 }), 400),
    ] {
        assert_eq!(post(&run, &body).code, code, "{body}");
    }
    assert_eq!(
        (delete(&run, "none"), post(&run, &json!({ "id": "v", "text": text(2, 9) })).code),
        (404, 201)
    );
    // Confirmed, so it survives what comes at once.
    run.kill();

    run = place.start("run -c here.toml");
    until(|| state(&run, "/notices")["count"] == 3);
    let list = state(&run, "/watch");
    assert_eq!(
        (&list["count"], &list["watches"][0]["id"], &list["watches"][1]["origin"]),
        (&2.into(), &"v".into(), &"posted".into())
    );
    assert_eq!(state(&run, "/watch?limit=1")["next"], "v");
    assert_eq!(get(run.address, "/watch?id=v").code, 400, "a list has no id");
    assert_eq!(state(&run, "/watch?after=v")["watches"][0]["id"], "w");
    assert_eq!(delete(&run, "w"), 204);
    until(|| state(&run, "/notices")["count"] == 5);
    let ended = state(&run, "/notices")["notices"].clone();
    let last: Vec<_> = (0..2).map(|n| (ended[n]["diff"].clone(), ended[n]["watch"].clone())).collect();
    assert_eq!(last, vec![((-1).into(), "w".into()); 2]);
    let metrics = get(run.address, "/metrics").body;
    assert!(metrics.contains("dupflow_watches 1") && metrics.contains("dupflow_notices_total"), "{metrics}");
    assert!(run.interrupt().success());
    // No pair is of a watch.
    let pairs = place.read("out");
    assert!(pairs.lines().all(|line| !line.contains("\"w\"") && !line.contains("\"v\"")), "{pairs}");
}

/// The last notices, oldest first, each as its diff, watch, document and similarity.
fn notices(run: &Process, count: usize) -> Vec<(i64, String, String, f64)> {
    let mut found = Value::Null;
    until(|| {
        found = state(run, "/notices");
        assert!(found["count"].as_u64() <= Some(count as u64), "{found}");
        found["count"] == count
    });
    let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let notice = |one: &Value| {
        let similarity = one["similarity"].as_f64().unwrap();
        (one["diff"].as_i64().unwrap(), text(one, "watch"), text(one, "id"), similarity)
    };
    found["notices"].as_array().unwrap().iter().rev().map(notice).collect()
}

/// A watch of a document has the text that the document had when it was posted, with its markup and its
/// further fields.
#[test]
fn a_document_is_watched_by_its_text_at_that_moment() {
    let place = Place::new();
    deployment(&place, "");
    place.write("given.jsonl", &json!({ "id": "given", "text": text(7, 1) }).to_string());
    let settings = place.read("here.toml");
    let inputs = "[watch]\ninputs = [\"given.jsonl\"]\n";
    place.write("here.toml", &settings.replace("[watch]\n", inputs));
    let arguments = "run -p exact --set text.fields.title=1 -c here.toml";
    let put = |id: &str, title: &str, text: &str| {
        let mut feed = std::fs::OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
        writeln!(feed, "{}", json!({ "id": id, "title": title, "text": text })).unwrap();
    };
    let title = "a title of six different words";
    let page = format!("<!doctype html><p>{} <b>1 &lt; 2</b>", text(1, 0));
    let mut run = place.start(arguments);
    let at_the_page = json!({ "id": "w", "document": "page" });
    assert_eq!(post(&run, &at_the_page).code, 404, "there is no document yet");
    put("page", title, &page);
    until(|| get(run.address, "/document?id=page").code == 200);
    for (body, code) in [
        (json!({ "id": "w", "document": "page", "text": "both" }), 400),
        (json!({ "id": "w" }), 400),
        (json!({ "id": "w", "document": "" }), 400),
        (json!({ "id": "given", "document": "page" }), 409),
        (json!({ "id": "w", "document": "none" }), 404),
    ] {
        let answer = post(&run, &body);
        assert_eq!(answer.code, code, "{body}: {answer:?}");
    }
    let added = post(&run, &at_the_page);
    assert_eq!((added.code, added.body.contains("\"new\":true")), (201, true), "{added:?}");
    let notice = |diff, id: &str, similarity| (diff, "w".to_owned(), id.to_owned(), similarity);
    assert_eq!(notices(&run, 1), [notice(1, "page", 1.0)], "the same sketch");
    // Another text ends the match; the watch stays that of the text before.
    put("page", "", &text(2, 0));
    assert_eq!(notices(&run, 2)[1], notice(-1, "page", 1.0));
    put("copy", title, &page);
    assert_eq!(notices(&run, 3)[2], notice(1, "copy", 1.0));
    // Posted again, it has the text of now.
    assert_eq!(post(&run, &at_the_page).code, 200);
    let turned = notices(&run, 5);
    assert_eq!(turned[3..], [notice(-1, "copy", 1.0), notice(1, "page", 1.0)]);
    let refused = end(&run, "given");
    assert_eq!(refused.code, 409, "{refused:?}");
    assert!(refused.body.contains("an input of the list gives this watch: change it there"), "{refused:?}");
    run.kill();

    // It is durable without the document.
    let mut feed = std::fs::OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
    writeln!(feed, "{}", json!({ "id": "page", "op": "delete" })).unwrap();
    run = place.start(arguments);
    assert_eq!(notices(&run, 6)[5], notice(-1, "page", 1.0));
    put("again", "", &text(2, 0));
    assert_eq!(notices(&run, 7)[6], notice(1, "again", 1.0));
    assert_eq!(state(&run, "/watch")["count"], 2);
    assert!(run.interrupt().success());
}

#[test]
fn a_web_hook_delivers_each_notice_in_order_whatever_the_receiver_does() {
    let place = Place::new();
    let receiver = Receiver::start();
    let url = format!("http://{}/in", receiver.address);
    deployment(
        &place,
        &format!("[notices.hook]\nurl = \"{url}\"\nsecret = \"0123456789abcdef\"\ntimeout = \"300ms\"\n"),
    );
    receiver.set(Mode::Hang);
    let mut run = place.start("run -c here.toml");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 99) })).code, 201);
    append(&place, 0, 1);
    receiver.wait_for(Mode::Hang);
    // The receiver hangs, and the run goes on: notices become durable, and pairs are written.
    for document in 1..8 {
        append(&place, document, 1);
        until(|| state(&run, "/notices")["count"] == document + 1);
    }
    assert!(place.read("out").lines().count() >= 7 * 8 / 2);
    let hook = state(&run, "/notices")["hook"].clone();
    assert_eq!((&hook["delivered"], &hook["undelivered"]), (&0.into(), &8.into()), "{hook}");
    for mode in [Mode::Status(500), Mode::Close, Mode::Status(429)] {
        receiver.set(mode);
        receiver.wait_for(mode);
    }
    assert_eq!(receiver.accepted(), [] as [u64; 0]);
    // The last answer is counted after the receiver has given it.
    until(|| state(&run, "/notices")["hook"]["retries"].as_u64().unwrap() >= 4);
    receiver.set(OK);
    until(|| receiver.accepted().len() >= 3);
    receiver.set(Mode::Hang);
    run.kill();

    receiver.set(OK);
    run = place.start("run -c here.toml");
    // Not by what the receiver has: it may have all of them from before the kill, and gets some again.
    until(|| {
        let now = state(&run, "/notices");
        now["count"] == 8 && now["hook"]["undelivered"] == 0
    });
    // What the receiver refuses goes to the dead letters, and the rest is delivered.
    receiver.set(Mode::Status(404));
    append(&place, 8, 1);
    until(|| state(&run, "/notices")["hook"]["refused"] == 1);
    receiver.set(OK);
    append(&place, 9, 1);
    until(|| receiver.accepted().last() == Some(&10));
    // The receiver has it before its answer is counted.
    let expected =
        ["dupflow_hook_refused_total 1", "dupflow_hook_undelivered 0", "dupflow_hook_oldest_seconds 0"];
    until(|| {
        let metrics = get(run.address, "/metrics").body;
        expected.iter().all(|line| metrics.contains(line))
    });
    assert!(run.interrupt().success());

    let notices: Vec<Value> =
        place.read("notices").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // First deliveries are in order; after the kill, those since the stored cursor are repeated.
    let mut distinct: Vec<u64> = Vec::new();
    for number in receiver.accepted() {
        if !distinct.contains(&number) {
            distinct.push(number);
        }
    }
    assert_eq!(distinct, [1, 2, 3, 4, 5, 6, 7, 8, 10], "all but the refused one");
    let refused: Value = serde_json::from_str(place.read("notices.refused").trim()).unwrap();
    assert_eq!((&refused["number"], refused["reason"].as_str()), (&9.into(), Some("404 Not Found: why")));
    let received = receiver.received();
    for one in &received {
        let number = one.body["number"].as_u64().unwrap();
        let line = &notices[usize::try_from(number).unwrap() - 1];
        for key in ["epoch", "diff", "watch", "id", "similarity"] {
            assert_eq!(one.body[key], line[key], "{one:?}");
        }
        let (seconds, proof) = one.signature.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        assert!(seconds.parse::<u64>().unwrap() > 1_600_000_000 && proof.len() == 64, "{one:?}");
        let same = received.iter().filter(|other| other.body["number"] == one.body["number"]);
        assert!(same.clone().all(|other| other.key == one.key), "one notice has one key");
        let others = received.iter().filter(|other| other.key == one.key);
        assert_eq!(others.count(), same.count(), "one key is of one notice");
    }
}

/// A backlog that takes longer than a stop may.
#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_slow_web_hook_does_not_hold_a_stop() {
    let place = Place::new();
    let receiver = Receiver::start();
    receiver.set(Mode::Slow);
    let url = format!("http://{}/in", receiver.address);
    deployment(&place, &format!("[notices.hook]\nurl = \"{url}\"\nsecret = \"0123456789abcdef\"\n"));
    place.write("here.toml", &format!("shutdown_seconds = 4\n{}", place.read("here.toml")));
    let run = place.start("run -c here.toml");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 99) })).code, 201);
    (0..80).for_each(|document| append(&place, document, 1));
    until(|| state(&run, "/notices")["count"] == 80);
    assert!(run.interrupt().success());
    let cursor: Value = serde_json::from_str(&place.read("notices.cursor")).unwrap();
    let delivered = cursor["number"].as_u64().unwrap();
    assert_eq!(receiver.accepted(), (1..=delivered).collect::<Vec<_>>(), "the cursor is behind the last one");
    assert!((1..80).contains(&delivered), "{delivered}");

    receiver.set(OK);
    let run = place.start("run -c here.toml");
    until(|| state(&run, "/notices")["hook"]["undelivered"] == 0);
    assert!(run.interrupt().success());
    assert_eq!(receiver.accepted(), (1..=80).collect::<Vec<_>>(), "none is lost, none is sent again");

    // Of a file that was lost the cursor says nothing.
    std::fs::remove_file(place.path("notices")).unwrap();
    let (code, log) = place.done("run -c here.toml");
    let why = "the web hook cannot start: notices.cursor: it is beyond the end of the file of notices";
    assert!(code == Some(1) && log.contains(why) && !log.contains("cannot be written"), "{log}");
}

#[test]
fn the_watch_of_an_input_begins_when_the_posted_one_of_its_id_ends() {
    let place = Place::new();
    deployment(&place, "");
    let mut run = place.start("run -c here.toml");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 99) })).code, 201);
    assert!(run.interrupt().success());
    place.write("list.jsonl", &format!("{}\n", json!({ "id": "w", "text": text(2, 99) })));
    let inputs = "[watch]\ninputs = [\"list.jsonl\"]\nrefresh = \"3600s\"\n";
    place.write("here.toml", &place.read("here.toml").replace("[watch]\n", inputs));
    run = place.start("run -c here.toml");
    append(&place, 1, 1);
    append(&place, 2, 2);
    until(|| state(&run, "/watch")["watches"][0]["origin"] == "posted");
    until(|| state(&run, "/notices")["count"] == 1);
    assert_eq!(delete(&run, "w"), 204);
    until(|| state(&run, "/notices")["count"] == 3);
    let notices = state(&run, "/notices")["notices"].clone();
    let found = [0, 1, 2].map(|n| (notices[n]["diff"].clone(), notices[n]["id"].clone()));
    assert_eq!(found, [(1.into(), "d2".into()), ((-1).into(), "d1".into()), (1.into(), "d1".into())]);
    assert_eq!(state(&run, "/watch")["watches"][0]["origin"], "input");
    assert!(run.interrupt().success());
}
