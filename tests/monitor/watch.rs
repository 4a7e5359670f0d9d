//! Watches that are posted, their notices, and the web hook that delivers them.
//!
//! Bug classes: a watch that a crash loses after it was confirmed; a notice that is lost, or delivered out of
//! order, or again with another key; a receiver that is slow or down and holds the run back.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::client::{Answer, ask, get};
use super::run::{Place, Process};

/// How the receiver answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Status(u16),
    /// Reads the request and never answers.
    Hang,
    /// Closes the connection without an answer.
    Close,
}

const OK: Mode = Mode::Status(204);

/// A request that was received.
#[derive(Clone, Debug)]
struct Received {
    mode: Mode,
    key: String,
    signature: String,
    body: Value,
}

/// A server that answers as its mode says.
struct Receiver {
    mode: Arc<Mutex<Mode>>,
    received: Arc<Mutex<Vec<Received>>>,
    address: SocketAddr,
}

impl Receiver {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Self { mode: Arc::new(Mutex::new(OK)), received: Arc::default(), address };
        let (mode, received) = (Arc::clone(&receiver.mode), Arc::clone(&receiver.received));
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (mode, received) = (Arc::clone(&mode), Arc::clone(&received));
                thread::spawn(move || serve(stream.unwrap(), &mode, &received));
            }
        });
        receiver
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The accepted notices by number, in the order of their requests.
    fn accepted(&self) -> Vec<u64> {
        let all = self.received();
        all.iter().filter(|one| one.mode == OK).map(|one| one.body["number"].as_u64().unwrap()).collect()
    }

    /// Waits until a request has been answered in this mode.
    fn wait_for(&self, mode: Mode) {
        until(|| self.received().iter().any(|one| one.mode == mode));
    }
}

/// Answers the requests of one connection.
fn serve(mut stream: TcpStream, mode: &Mutex<Mode>, received: &Mutex<Vec<Received>>) {
    let mut bytes = Vec::new();
    loop {
        let Some((head, rest)) = split(&bytes) else {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(n) => bytes.extend_from_slice(&buffer[..n]),
            }
            continue;
        };
        let value = |name: &str| {
            let line = head
                .lines()
                .find_map(|line| line.split_once(": ").filter(|(key, _)| key.eq_ignore_ascii_case(name)));
            line.map(|(_, value)| value.to_owned()).unwrap_or_default()
        };
        let length: usize = value("content-length").parse().unwrap();
        if rest.len() < length {
            let mut more = vec![0; length - rest.len()];
            if stream.read_exact(&mut more).is_err() {
                return;
            }
            bytes.extend(more);
            continue;
        }
        let body = serde_json::from_slice(&rest[..length]).unwrap();
        let (key, signature) = (value("idempotency-key"), value("dupflow-signature"));
        bytes.clear();
        let now = *mode.lock().unwrap();
        received.lock().unwrap().push(Received { mode: now, key, signature, body });
        match now {
            Mode::Status(status) => {
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 3\r\nretry-after: 0\r\n\r\nwhy");
                let answer = if status == 204 { "HTTP/1.1 204 x\r\n\r\n".to_owned() } else { answer };
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            }
            // Until the client gives up.
            Mode::Hang => drop(stream.read(&mut [0])),
            Mode::Close => return,
        }
        if now == Mode::Hang {
            return;
        }
    }
}

/// The head of a request and what follows it.
fn split(bytes: &[u8]) -> Option<(String, &[u8])> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    Some((String::from_utf8(bytes[..end].to_vec()).unwrap(), &bytes[end + 4..]))
}

/// Asks again and again until it is so; the bound is reached by a defect only.
fn until(mut is_so: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if is_so() {
            return;
        }
        thread::park_timeout(Duration::from_millis(2));
    }
    panic!("it never is so");
}

/// Posts a watch, again while the run has not begun.
fn post(run: &Process, body: &Value) -> Answer {
    let body = body.to_string();
    let head = "POST /watch HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length:";
    let request = format!("{head} {}\r\n\r\n{body}", body.len());
    let mut answer = None;
    until(|| answer.insert(ask(run.address, &request)).code != 503);
    answer.unwrap()
}

fn delete(run: &Process, id: &str) -> u16 {
    ask(
        run.address,
        &format!("DELETE /watch?id={id} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"),
    )
    .code
}

fn state(run: &Process, path: &str) -> Value {
    let answer = get(run.address, path);
    assert_eq!(answer.code, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

/// A text of a family of near-duplicates.
fn text(family: usize, version: usize) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("word{}", family * 100 + word)).collect();
    format!("{} version{version}", words.join(" "))
}

fn append(place: &Place, document: usize, family: usize) {
    let mut feed = std::fs::OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
    let line = json!({ "id": format!("d{document}"), "text": text(family, document) });
    feed.write_all(format!("{line}\n").as_bytes()).unwrap();
}

fn deployment(place: &Place, hook: &str) {
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
    assert!(state(&run, "/notices")["hook"]["retries"].as_u64().unwrap() >= 4);
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
