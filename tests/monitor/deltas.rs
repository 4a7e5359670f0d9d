//! A reader of deltas while the run is killed and restarted.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::client::{Answer, connect, get};
use super::run::Place;

/// Pairs with their similarities as text.
type Pairs = BTreeMap<(String, String), String>;

/// A reader that only applies the events, and reconnects with the last id received.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) pairs: Pairs,
    pending: Vec<Value>,
    pub(crate) last_id: Option<String>,
    pub(crate) snapshots: usize,
    /// What it was told that it has missed.
    pub(crate) dropped: Vec<Value>,
    said_bye: bool,
}

impl Reader {
    /// Reads until `ids` events had an id or the stream ends. Connects again while the run is not live.
    fn read(&mut self, address: SocketAddr, ids: usize) -> TcpStream {
        loop {
            match self.begin(address, ids) {
                Ok(stream) => return stream,
                Err(refused) => assert_eq!(refused.code, 503, "{refused:?}"),
            }
        }
    }

    /// Reads until `ids` events had an id or the stream ends.
    ///
    /// # Errors
    /// The answer, if it is not a stream.
    pub(crate) fn begin(&mut self, address: SocketAddr, ids: usize) -> Result<TcpStream, Answer> {
        let mut stream = connect(address);
        let last = self.last_id.as_ref().map_or(String::new(), |id| format!("last-event-id: {id}\r\n"));
        // With HTTP/1.0 the body is not chunked.
        write!(stream, "GET /deltas HTTP/1.0\r\nhost: localhost\r\n{last}\r\n").unwrap();
        self.pending.clear();
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        let first = lines.next().expect("an answer begins");
        let head: Vec<String> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        if !first.ends_with("200 OK") {
            let code = first.split(' ').nth(1).unwrap().parse().unwrap();
            let head = head.join("\r\n").to_ascii_lowercase();
            return Err(Answer { code, head, body: lines.collect::<Vec<_>>().join("\n") });
        }
        let mut seen = 0;
        let mut event: BTreeMap<String, String> = BTreeMap::new();
        for line in lines {
            if let Some((field, value)) = line.split_once(": ") {
                event.insert(field.to_owned(), value.to_owned());
                continue;
            }
            let event = std::mem::take(&mut event);
            if !event.contains_key("event") {
                continue;
            }
            self.take(&event);
            seen += usize::from(event.contains_key("id"));
            if seen == ids {
                break;
            }
        }
        Ok(stream)
    }

    fn take(&mut self, event: &BTreeMap<String, String>) {
        let data: Value = serde_json::from_str(&event["data"]).unwrap();
        let list = |name: &str| data[name].as_array().unwrap().clone();
        match event["event"].as_str() {
            "epoch" => {
                self.pending.extend(list("deltas"));
                if data["more"] == 0 {
                    std::mem::take(&mut self.pending)
                        .iter()
                        .for_each(|told| self.apply(told, told["diff"] == 1));
                }
            }
            "snapshot" => {
                if data["first"] == true {
                    self.pairs.clear();
                    self.snapshots += 1;
                }
                list("pairs").iter().for_each(|told| self.apply(told, true));
            }
            "dropped" => {
                self.pending.clear();
                self.dropped.push(data);
            }
            "bye" => self.said_bye = true,
            other => panic!("{other}"),
        }
        self.last_id = event.get("id").cloned().or(self.last_id.take());
    }

    fn apply(&mut self, told: &Value, comes: bool) {
        let text = |name: &str| told[name].as_str().unwrap().to_owned();
        let (key, similarity) = ((text("a"), text("b")), told["similarity"].to_string());
        if comes {
            assert_eq!(self.pairs.insert(key.clone(), similarity), None, "{key:?} is doubled");
        } else {
            assert_eq!(self.pairs.remove(&key), Some(similarity), "{key:?} was not there");
        }
    }
}

/// Accumulates lines of deltas, or lines of pairs.
fn add_up(text: &str) -> Pairs {
    let mut pairs = Pairs::new();
    for line in text.lines() {
        let told: Value = serde_json::from_str(line).unwrap();
        let id = |name: &str| told[name].as_str().unwrap().to_owned();
        let (key, similarity) = ((id("a"), id("b")), told["similarity"].to_string());
        if told["diff"] == -1 {
            assert_eq!(pairs.remove(&key), Some(similarity));
        } else {
            assert_eq!(pairs.insert(key, similarity), None);
        }
    }
    pairs
}

/// Copies and near-duplicates in several scripts that are inserted, updated and deleted; 100 events per
/// second.
fn feed(events: usize) -> String {
    let mut feed = String::new();
    for n in 0..events {
        let (family, document) = (n * 7 % 11, n * 13 % 97);
        let ts = n as f64 / 100.0;
        if n % 17 == 16 {
            writeln!(feed, "{{\"id\":\"文/{document}\",\"op\":\"delete\",\"ts\":{ts}}}").unwrap();
            continue;
        }
        let words: Vec<String> = (0..60).map(|word| format!("слово{}", family * 100 + word)).collect();
        let text = format!("{} {}", words.join(" "), n % 3);
        writeln!(feed, "{{\"id\":\"文/{document}\",\"ts\":{ts},\"text\":\"{text}\"}}").unwrap();
    }
    feed
}

/// The run is killed and restarted while a reader is connected. What the reader accumulates equals the
/// output, and what an undisturbed run finds.
#[test]
fn a_reader_loses_and_doubles_nothing_through_kills() {
    let place = Place::new();
    place.write("feed.jsonl", &feed(1500));
    let config = |speed: &str| {
        format!(
            "workers = 2\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \
                \"events:20\"\nspeed = \"{speed}\"\n\
             [sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\ncommit_every = \
             \"20ms\"\n[monitor]\nlisten = \"127.0.0.1:0\"\n"
        )
    };
    place.write("run.toml", &config("4x"));
    let mut reader = Reader::default();
    for kill in 0..5 {
        let process = place.start("run -c run.toml");
        let stream = reader.read(process.address, 3 + kill);
        process.kill();
        drop(stream);
        assert!(!reader.said_bye && reader.snapshots <= kill + 1);
    }
    // The same reader, until the run ends.
    let process = place.start("run -c run.toml");
    drop(reader.read(process.address, usize::MAX));
    assert_eq!(process.ended().code(), Some(0));
    assert!(reader.said_bye, "the run has said that it ends");
    assert!(reader.snapshots > 1, "it has come back to another run");

    let (code, log) = place.done("replay --emit pairs -o expected.jsonl feed.jsonl");
    assert_eq!(code, Some(0), "{log}");
    let expected = add_up(&place.read("expected.jsonl"));
    assert!(expected.len() > 100, "{}", expected.len());
    assert_eq!(add_up(&place.read("out.jsonl")), expected);
    assert_eq!(reader.pairs, expected);
}

/// A reader that reconnects to the same run receives exactly the deltas it missed.
#[test]
fn a_reader_that_comes_back_goes_on_where_it_was() {
    let place = Place::new();
    place.write("feed.jsonl", &feed(400));
    let process = place.start("replay --epoch events:20 --monitor 127.0.0.1:0 -o out.jsonl feed.jsonl");
    let mut reader = Reader::default();
    drop(reader.read(process.address, 1));
    process.wait_for("all is read");
    let out = add_up(&place.read("out.jsonl"));
    while reader.pairs != out {
        drop(reader.read(process.address, 1));
    }
    assert_eq!(reader.snapshots, 1);
    for wrong in ["after=nonsense", "tail=1O", "tail=-1", "tail=true"] {
        assert_eq!(get(process.address, &format!("/deltas?{wrong}")).code, 400, "{wrong}");
    }
    assert_eq!(process.interrupt().code(), Some(0));
}
