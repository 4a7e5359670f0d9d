//! Every route, requested from the first accepted connection on, while a run is killed and restarted: an
//! answer with 200 is of the epoch that it names.
//!
//! Bug classes: a view that is empty or partly filled after a restart and is served; a live document that is
//! not found while the state is read; two routes with different epoch numbers; a run that is ready before its
//! answers are right.
//!
//! `DUPFLOW_RESTARTS` sets how often the run is killed; default 3.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::client::{Answer, ask, get};
use super::deltas::Reader;
use super::run::{Place, Process};

/// Families of near-duplicates; a document's number modulo this is its family.
const FAMILIES: usize = 7;
const DOCUMENTS: usize = 61;

/// Pairs with their similarities as text.
type Pairs = BTreeMap<(String, String), String>;

fn id(document: usize) -> String {
    format!("d{document}")
}

fn text(family: usize, version: usize) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("слово{}", family * 100 + word)).collect();
    format!("{} {version}", words.join(" "))
}

/// Documents are inserted, changed and deleted: a hundred events per second.
fn feed(events: usize) -> String {
    let mut feed = String::new();
    for n in 0..events {
        let document = n * 13 % DOCUMENTS;
        let ts = n as f64 / 100.0;
        if n % 5 == 4 {
            writeln!(feed, "{{\"id\":\"{}\",\"op\":\"delete\",\"ts\":{ts}}}", id(document)).unwrap();
        } else {
            let text = text(document % FAMILIES, n % 3);
            writeln!(feed, "{{\"id\":\"{}\",\"ts\":{ts},\"text\":\"{text}\"}}", id(document)).unwrap();
        }
    }
    feed
}

/// The contents of the output after each epoch.
struct Model(BTreeMap<u64, Pairs>);

impl Model {
    fn new(lines: &str) -> Self {
        let (mut by_epoch, mut pairs) = (BTreeMap::from([(0, Pairs::new())]), Pairs::new());
        for line in lines.lines() {
            let delta: Value = serde_json::from_str(line).unwrap();
            let id = |name: &str| delta[name].as_str().unwrap().to_owned();
            let key = (id("a"), id("b"));
            if delta["diff"] == 1 {
                pairs.insert(key, delta["similarity"].to_string());
            } else {
                pairs.remove(&key);
            }
            by_epoch.insert(delta["epoch"].as_u64().unwrap(), pairs.clone());
        }
        Self(by_epoch)
    }

    fn at(&self, epoch: u64) -> &Pairs {
        self.0.range(..=epoch).next_back().unwrap().1
    }

    /// The members of each family that are in a pair: each family is one cluster.
    fn clusters(&self, epoch: u64) -> BTreeMap<usize, BTreeSet<String>> {
        let mut found: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for id in self.at(epoch).keys().flat_map(|(a, b)| [a, b]) {
            found.entry(family(id)).or_default().insert(id.clone());
        }
        found
    }
}

fn family(id: &str) -> usize {
    id[1..].parse::<usize>().unwrap() % FAMILIES
}

/// An answer with 200, to be compared with the model.
enum Said {
    Pairs(Value),
    Clusters(Value),
    Document(usize, Value),
    Similar(usize, Value),
    Compare(usize, usize, Value),
    Status(Value),
    Snapshot(u64, Pairs),
    /// A document that is reported missing.
    Missing(usize, u64),
}

impl Said {
    /// The epoch of the answer, and whether it is an epoch of the output.
    fn epoch(&self) -> (u64, bool) {
        match self {
            Self::Pairs(value) | Self::Clusters(value) => (value["epoch"].as_u64().unwrap(), true),
            Self::Document(_, value) | Self::Similar(_, value) | Self::Compare(_, _, value) => {
                (value["epoch"].as_u64().unwrap(), false)
            }
            Self::Status(value) => (value["epochs"]["shown"].as_u64().unwrap(), true),
            Self::Snapshot(epoch, _) => (*epoch, true),
            Self::Missing(_, epoch) => (*epoch, false),
        }
    }

    fn check(&self, model: &Model) {
        let epoch = self.epoch().0;
        let pairs = model.at(epoch);
        let of_family = |family: usize| model.clusters(epoch).remove(&family).unwrap_or_default();
        match self {
            Self::Pairs(value) => {
                let told = value["pairs"].as_array().unwrap().iter().map(|pair| {
                    let id = |name: &str| pair[name].as_str().unwrap().to_owned();
                    ((id("a"), id("b")), pair["similarity"].to_string())
                });
                assert_eq!(&told.collect::<Pairs>(), pairs, "/pairs at epoch {epoch}");
            }
            Self::Snapshot(_, told) => assert_eq!(told, pairs, "/deltas at epoch {epoch}"),
            Self::Status(value) => {
                assert_eq!(value["pairs"].as_u64(), Some(pairs.len() as u64), "/status at epoch {epoch}");
                let clusters = model.clusters(epoch).len() as u64;
                assert_eq!(value["clusters"].as_u64(), Some(clusters), "/status at epoch {epoch}");
            }
            Self::Clusters(value) => {
                let told = value["clusters"].as_array().unwrap().iter();
                let told = told.map(|cluster| (cluster["cluster"].to_string(), cluster["size"].as_u64()));
                let expected = model.clusters(epoch).into_values().map(|members| {
                    (Value::from(members.first().unwrap().as_str()).to_string(), Some(members.len() as u64))
                });
                let expected: BTreeSet<_> = expected.collect();
                assert_eq!(told.collect::<BTreeSet<_>>(), expected, "/clusters at epoch {epoch}");
            }
            Self::Document(document, value) => {
                let name = id(*document);
                let told = value["pairs"].as_array().unwrap().iter();
                let told = told.map(|pair| (pair["id"].as_str().unwrap(), pair["similarity"].to_string()));
                let expected = pairs.iter().filter_map(|((a, b), similarity)| {
                    let other = if *a == name { b } else { a };
                    [a, b].contains(&&name).then(|| (other.as_str(), similarity.clone()))
                });
                let expected: BTreeSet<_> = expected.collect();
                assert_eq!(told.collect::<BTreeSet<_>>(), expected, "{name} at epoch {epoch}");
            }
            Self::Similar(family, value) => {
                let told = value["documents"].as_array().unwrap().iter();
                let told: BTreeSet<_> = told.map(|near| near["id"].as_str().unwrap().to_owned()).collect();
                let expected = of_family(*family);
                let lone = expected.is_empty() && told.len() <= 1;
                assert!(lone || told == expected, "/similar {family} at {epoch}: {told:?} {expected:?}");
            }
            Self::Compare(a, b, value) => {
                let (a, b) = (id(*a), id(*b));
                let key = if a < b { (a, b) } else { (b, a) };
                let told = Some(value["similarity"].to_string()).filter(|told| told != "null");
                assert_eq!(told.as_ref(), pairs.get(&key), "/compare {key:?} at epoch {epoch}");
            }
            Self::Missing(document, _) => {
                let name = id(*document);
                assert!(!of_family(*document % FAMILIES).contains(&name), "{name} is alive after {epoch}");
            }
        }
    }
}

/// Checks that a refusal is one of the expected ones.
fn refused(path: &str, answer: &Answer) {
    assert_eq!(answer.code, 503, "{path}: {answer:?}");
    assert!(answer.head.contains("retry-after: "), "{path}: {}", answer.head);
    let told: Value = serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("{path}: {answer:?}"));
    assert!(told["error"].is_string() && told.as_object().unwrap().len() == 1, "{path}: {told}");
}

/// Requests every route once; returns whether the run was ready before, so that it had to answer.
fn poll(process: &Process, round: usize, said: &mut Vec<Said>, refusals: &mut usize) -> bool {
    let address = process.address;
    let is_ready = get(address, "/ready").code == 200;
    let document = round * 5 % DOCUMENTS;
    let other = (document + FAMILIES) % DOCUMENTS;
    let family = round % FAMILIES;
    let mut take = |path: &str, answer: &Answer, what: &mut dyn FnMut(Value) -> Option<Said>| {
        if answer.code == 200 {
            said.extend(what(serde_json::from_str(&answer.body).unwrap()));
        } else {
            refused(path, answer);
            assert!(!is_ready, "{path} is refused by a run that is ready: {answer:?}");
            *refusals += 1;
        }
    };
    let mut got = |path: &str, what: &mut dyn FnMut(Value) -> Option<Said>| {
        let answer = get(address, path);
        if answer.code == 404 {
            let error =
                serde_json::from_str::<Value>(&answer.body).unwrap()["error"].as_str().unwrap().to_owned();
            let (_, epoch) = error.rsplit_once(' ').unwrap();
            let epoch = epoch.parse().unwrap_or_else(|_| panic!("{path} names no epoch: {answer:?}"));
            let missing = if error.contains(&format!("{:?} ", id(other))) { other } else { document };
            take(path, &Answer { code: 200, head: String::new(), body: "0".to_owned() }, &mut |_| {
                Some(Said::Missing(missing, epoch))
            });
        } else {
            take(path, &answer, what);
        }
    };
    got("/pairs?limit=1000", &mut |value| Some(Said::Pairs(value)));
    got("/clusters?limit=1000", &mut |value| Some(Said::Clusters(value)));
    got(&format!("/documents/{}", id(document)), &mut |value| Some(Said::Document(document, value)));
    got(&format!("/compare?a={}&b={}", id(document), id(other)), &mut |value| {
        Some(Said::Compare(document, other, value))
    });
    got("/status", &mut |value| (!value["pairs"].is_null()).then_some(Said::Status(value)));
    let body = text(family, 0);
    let request = format!(
        "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    take("/similar", &ask(address, &request), &mut |value| Some(Said::Similar(family, value)));
    let mut reader = Reader::default();
    match reader.begin(address, 1) {
        Ok(stream) => {
            drop(stream);
            let id = reader.last_id.expect("a snapshot ends with an id");
            said.push(Said::Snapshot(id.rsplit_once('-').unwrap().1.parse().unwrap(), reader.pairs));
        }
        Err(answer) => {
            refused("/deltas", &answer);
            assert!(!is_ready, "a run that is ready has no deltas: {answer:?}");
            *refusals += 1;
        }
    }
    is_ready
}

fn restarts() -> usize {
    std::env::var("DUPFLOW_RESTARTS").ok().map_or(3, |n| n.parse().expect("DUPFLOW_RESTARTS is a number"))
}

fn through_restarts(state: &str) {
    let place = Place::new();
    let restarts = restarts();
    place.write("feed.jsonl", &feed(1500 + 300 * restarts));
    // The file is followed, so that the run does not end while it is polled.
    let config = |speed: &str, follow: bool| {
        format!(
            "workers = 2\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \
                \"events:20\"\nspeed = \"{speed}\"\n\
             follow = {follow}\n[sink]\npath = \"out.jsonl\"\n{state}[monitor]\nlisten = \"127.0.0.1:0\"\n"
        )
    };
    place.write("run.toml", &config("2x", true));
    let (mut runs, mut refusals) = (Vec::new(), 0);
    for _ in 0..=restarts {
        let process = place.start("run -c run.toml");
        let mut said = Vec::new();
        let (mut ready, mut round) = (0, 0);
        while ready < 4 {
            ready += usize::from(poll(&process, round, &mut said, &mut refusals));
            round += 1;
        }
        process.kill();
        runs.push(said);
    }
    place.write("run.toml", &config("max", false));
    assert_eq!(place.start("run -c run.toml").ended().code(), Some(0));
    let model = Model::new(&place.read("out.jsonl"));
    assert!(model.0.len() > 20, "{} epochs have deltas", model.0.len());

    let mut checked = 0;
    for said in runs {
        // An epoch that was computed and not made durable is not in the output; the next run uses its number
        // again.
        let durable = said.iter().map(Said::epoch).filter(|(_, is_durable)| *is_durable);
        let durable = durable.map(|(epoch, _)| epoch).max().expect("each run has answered");
        let held = said.iter().filter(|one| one.epoch().0 <= durable);
        held.for_each(|one| {
            one.check(&model);
            checked += 1;
        });
    }
    println!(
        "{restarts} restarts: {checked} answers are right, {refusals} were refused until the run was live"
    );
}

#[test]
fn every_answer_is_of_the_epoch_that_it_names_through_restarts_with_a_state() {
    through_restarts("[state]\npath = \"state\"\ncommit_every = \"20ms\"\n");
}

#[test]
fn every_answer_is_of_the_epoch_that_it_names_through_restarts_without_a_state() {
    through_restarts("");
}
