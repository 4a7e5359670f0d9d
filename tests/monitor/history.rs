//! The past of pairs and clusters while the run is stopped, killed and restarted.
//!
//! Bug classes: since-when is lost or invented by a restart; a reader of deltas is cut off by one; epochs
//! that a kill took from the history are passed over in silence; a history is required where none was kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::Instant;

use serde_json::Value;

use super::client::{BOUND, get};
use super::deltas::Reader;
use super::run::{Place, Process};

/// Three documents of each of five families; the text of the third one is another version.
fn lines(of: std::ops::Range<usize>) -> String {
    of.fold(String::new(), |mut all, n| {
        let words: Vec<String> = (0..60).map(|word| format!("слово{}", n % 5 * 100 + word)).collect();
        writeln!(
            all,
            "{{\"id\":\"d{n:02}\",\"ts\":{},\"text\":\"{} {}\"}}",
            1000 + n,
            words.join(" "),
            n % 3
        )
        .unwrap();
        all
    })
}

fn delete(n: usize) -> String {
    format!("{{\"id\":\"d{n:02}\",\"op\":\"delete\",\"ts\":2000}}\n")
}

/// A followed file; the state is written at most once per `every`.
pub(crate) fn configure(place: &Place, every: &str, history: &str) {
    place.write(
        "run.toml",
        &format!(
            "workers = 2\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \"every:10ms\"\n\
             follow = true\n[sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n\
             commit_every = \"{every}\"\n{history}[monitor]\nlisten = \"127.0.0.1:0\"\n"
        ),
    );
}

fn append(place: &Place, text: &str) {
    let mut file = OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

pub(crate) fn json(process: &Process, path: &str) -> Option<Value> {
    let answer = get(process.address, path);
    (answer.code == 200).then(|| serde_json::from_str(&answer.body).unwrap())
}

/// Polls until the condition holds; only a defect reaches the bound.
#[expect(clippy::disallowed_methods, reason = "the bound of a wait, which no time is compared with")]
pub(crate) fn until<T>(what: &str, found: impl Fn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begun.elapsed() < BOUND, "{what}");
        std::thread::park_timeout(std::time::Duration::from_millis(5));
    }
}

/// All pairs, once there are this many.
pub(crate) fn pairs(process: &Process, count: usize) -> BTreeMap<String, Value> {
    let page = until("so many pairs", || {
        json(process, "/pairs?limit=1000").filter(|page| page["pairs"].as_array().unwrap().len() == count)
    });
    let each = page["pairs"].as_array().unwrap().iter();
    each.map(|pair| (format!("{} {}", pair["a"], pair["b"]), pair.clone())).collect()
}

fn clusters(process: &Process) -> BTreeMap<String, Value> {
    let page = json(process, "/clusters?limit=1000").unwrap();
    let names =
        page["clusters"].as_array().unwrap().iter().map(|cluster| cluster["cluster"].as_str().unwrap());
    names.map(|name| (name.to_owned(), json(process, &format!("/clusters/{name}")).unwrap())).collect()
}

/// What an answer says without its own epoch.
fn timeless(mut answers: BTreeMap<String, Value>) -> BTreeMap<String, Value> {
    answers.values_mut().for_each(|answer| drop(answer.as_object_mut().unwrap().remove("epoch")));
    answers
}

fn history(process: &Process) -> Value {
    json(process, "/status").unwrap()["history"].clone()
}

#[test]
fn since_when_and_what_became_survive_a_restart() {
    let place = Place::new();
    configure(&place, "20ms", "history = \"30d\"\n");
    place.write("feed.jsonl", &lines(0..10));
    let process = place.start("run -c run.toml");
    pairs(&process, 5);
    let mut reader = Reader::default();
    drop(reader.begin(process.address, 1));
    append(&place, &lines(10..15));
    pairs(&process, 15);
    append(&place, &delete(0));
    let before = pairs(&process, 13);
    let grown = timeless(clusters(&process));
    let ended = json(&process, "/pair?a=d05&b=d00").unwrap();
    assert_eq!((&ended["pair"], &ended["ended"]["cause"]), (&Value::Null, &Value::from("delete")));
    assert!(
        ended["ended"]["at"].as_u64() >= before.values().map(|pair| pair["since_at"].as_u64()).max().unwrap()
    );
    assert_eq!(process.interrupt().code(), Some(0));

    let again = place.start("run -c run.toml");
    assert_eq!(pairs(&again, 13), before, "epochs, times, causes");
    assert!(before.values().all(|pair| pair["since_is_exact"] == true && pair["since_at"].is_u64()));
    assert_eq!(timeless(clusters(&again)), grown, "births, changes, events");
    assert_eq!(json(&again, "/pair?a=d00&b=d05").unwrap()["ended"], ended["ended"]);
    let told = history(&again);
    assert_eq!((&told["begins"], &told["gaps"]), (&Value::from(0), &Value::from(Vec::<Value>::new())));
    assert_eq!(told["kept_seconds"], Value::from(30.0 * 86_400.0));

    // The reader was connected to the run before, and has missed two epochs or more.
    append(&place, &lines(15..16));
    pairs(&again, 15);
    let last = json(&again, "/pairs").unwrap()["epoch"].as_u64().unwrap();
    while reader.last_id.as_ref().unwrap().rsplit_once('-').unwrap().1.parse::<u64>().unwrap() < last {
        drop(reader.begin(again.address, 1).unwrap());
    }
    assert_eq!((reader.pairs.len(), reader.snapshots, reader.dropped.len()), (15, 1, 0));

    // By epoch and by time.
    let newest = before.values().map(|pair| pair["since"].as_u64().unwrap()).max().unwrap();
    let since = |bound: &str| {
        json(&again, &format!("/pairs?since={bound}")).unwrap()["pairs"].as_array().unwrap().len()
    };
    assert_eq!((since("0"), since(&format!("{}", newest + 1))), (15, 2));
    assert_eq!((since("2020-01-01T00:00:00Z"), since("2099-01-01T00:00:00Z")), (15, 0));
    assert_eq!(get(again.address, "/pairs?since=yesterday").code, 400);
    assert_eq!(again.interrupt().code(), Some(0));
    let (code, log) = place.done("state verify state/history");
    assert!(code == Some(0), "{log}");
    let verified = std::process::Command::new(env!("CARGO_BIN_EXE_dupflow"))
        .args(["state", "verify"])
        .arg(place.path("state"))
        .output()
        .unwrap();
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success() && said.starts_with("whole: "), "the history is another state: {said}");
}

/// The history of the first epochs is stored; then the run is killed before more of it is.
#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn epochs_that_a_kill_took_from_the_history_are_said() {
    let place = Place::new();
    configure(&place, "1ms", "history = \"30d\"\n");
    place.write("feed.jsonl", &lines(0..10));
    let process = place.start("run -c run.toml");
    let first = pairs(&process, 5);
    let mut reader = Reader::default();
    drop(reader.begin(process.address, 1));
    assert_eq!(process.interrupt().code(), Some(0));
    configure(&place, "3600s", "history = \"30d\"\n");
    let process = place.start("run -c run.toml");
    append(&place, &lines(10..15));
    append(&place, &delete(4));
    pairs(&process, 13);
    let mut lost = Reader::default();
    drop(lost.begin(process.address, 1));
    process.kill();

    let again = place.start("run -c run.toml");
    let found = pairs(&again, 13);
    for (name, pair) in &found {
        match first.get(name) {
            Some(same) => assert_eq!(pair, same),
            None => assert!(pair["since_is_exact"] == false && pair["since_at"].is_null(), "{pair}"),
        }
    }
    let told = history(&again);
    let gap = &told["gaps"][0];
    assert_eq!(told["gaps"].as_array().unwrap().len(), 1);
    assert_eq!(found.values().map(|pair| pair["since"].as_u64()).max().unwrap(), gap["through"].as_u64());
    let ended = json(&again, "/pair?a=d04&b=d09").unwrap()["ended"].clone();
    assert_eq!((&ended["is_exact"], &ended["was"]["since_is_exact"]), (&false.into(), &true.into()));
    // A reader from before the gap gets the difference; one from within it gets `dropped` and a snapshot.
    append(&place, &lines(15..16));
    pairs(&again, 16);
    let last = json(&again, "/pairs").unwrap()["epoch"].as_u64().unwrap();
    for (reader, snapshots, dropped) in [(&mut reader, 1, 0), (&mut lost, 2, 1)] {
        while reader.last_id.as_ref().unwrap().rsplit_once('-').unwrap().1.parse::<u64>().unwrap() < last {
            drop(reader.begin(again.address, 1).unwrap());
        }
        assert_eq!((reader.pairs.len(), reader.snapshots, reader.dropped.len()), (16, snapshots, dropped));
    }
    assert_eq!(again.interrupt().code(), Some(0));
}

#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn a_state_without_history_begins_one_and_says_so() {
    let place = Place::new();
    configure(&place, "20ms", "");
    place.write("feed.jsonl", &lines(0..10));
    let process = place.start("run -c run.toml");
    let exact = pairs(&process, 5);
    assert!(exact.values().all(|pair| pair["since_is_exact"] == true), "in memory it is known");
    assert_eq!(history(&process)["kept_seconds"], Value::Null);
    assert_eq!(process.interrupt().code(), Some(0));

    configure(&place, "20ms", "history = \"30d\"\n");
    let process = place.start("run -c run.toml");
    let begun = pairs(&process, 5);
    let begins = history(&process)["begins"].clone();
    assert!(begins.as_u64() > Some(0));
    assert!(begun.values().all(|pair| pair["since"] == begins && pair["since_is_exact"] == false));
    assert_eq!(process.interrupt().code(), Some(0));
    let process = place.start("run -c run.toml");
    assert_eq!((pairs(&process, 5), &history(&process)["begins"]), (begun, &begins), "it begins once");
    assert_eq!(process.interrupt().code(), Some(0));
}

#[test]
fn a_history_needs_a_state_and_a_monitor_with_pairs() {
    let place = Place::new();
    place.write("feed.jsonl", &lines(0..1));
    configure(&place, "20ms", "history = \"30d\"\n");
    let config = place.read("run.toml");
    for (from, to, why) in [
        ("path = \"state\"", "path = \"\"", "needs state.path"),
        ("listen = \"127.0.0.1:0\"", "listen = \"\"", "needs monitor.listen"),
        ("listen = \"127.0.0.1:0\"", "listen = \"127.0.0.1:0\"\npairs = false", "needs monitor.pairs"),
        ("\"30d\"", "\"a month\"", "expected an age"),
    ] {
        place.write("run.toml", &config.replace(from, to));
        let (code, log) = place.done("run -c run.toml");
        assert!(code == Some(2) && log.contains("state.history") && log.contains(why), "{log}");
    }
}
