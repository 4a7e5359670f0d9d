//! `source.fields` and `pairs.where`: which documents may form a pair, from the columns of every format to a
//! restart.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::dupflow::{Place, command};
use super::feeds::{accumulated, page, pairs};

/// Documents of one text: an id, an address, a language.
const DOCUMENTS: [(&str, &str, &str); 5] = [
    ("a", "https://one.example/a", "de"),
    ("b", "https://One.example:443/b", "de"),
    ("c", "https://two.example/c", "de"),
    ("d", "https://two.example/d", "fr"),
    ("e", "", "fr"),
];

/// The pairs of these documents on different hosts.
const ACROSS: [&str; 8] = ["a c", "a d", "a e", "b c", "b d", "b e", "c e", "d e"];

const OPTIONS: &str = "--emit pairs --field host(url) --field lang --set pairs.where=a.host!=b.host";

fn text(n: usize) -> String {
    let changed = u32::try_from(n).expect("few documents");
    page(50..51, changed)
}

fn feed() -> String {
    let line = |(n, (id, url, lang)): (usize, (&str, &str, &str))| {
        json!({ "id": id, "url": url, "lang": lang, "text": text(n) }).to_string() + "\n"
    };
    DOCUMENTS.into_iter().enumerate().map(line).collect()
}

fn found(out: &str) -> Vec<String> {
    pairs(out).into_keys().map(|(a, b)| format!("{a} {b}")).collect()
}

#[test]
fn pairs_are_restricted_in_every_format() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let nested = feed().replace("\"url\":", "\"page\":{\"url\":").replace("\"}\n", "\"}}\n");
    place.file("nested.jsonl", nested);
    let row = |(n, (id, url, lang)): (usize, (&str, &str, &str))| format!("{id},{url},{lang},{}\n", text(n));
    let rows: String = DOCUMENTS.into_iter().enumerate().map(row).collect();
    place.file("table.csv", format!("id,url,lang,text\n{rows}"));
    place.file("table.tsv", format!("id,url,lang,text\n{rows}").replace(',', "\t"));
    // An address and a header of the record.
    let record = |(n, (id, url, lang)): (usize, (&str, &str, &str))| {
        let address = if url.is_empty() { String::new() } else { format!("WARC-Target-URI: {url}\r\n") };
        let text = text(n);
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n\
             {address}lang: {lang}\r\n\
             Content-Type: text/plain\r\nContent-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    place.file("pages.warc", DOCUMENTS.into_iter().enumerate().map(record).collect::<String>());
    let by_language = "--emit pairs --field lang --set pairs.where=a.lang==b.lang";
    assert_eq!(pairs(&place.replay("--emit pairs feed.jsonl").0.out).len(), 10);
    for input in ["feed.jsonl", "table.csv", "table.tsv", "pages.warc"] {
        assert_eq!(
            found(&place.replay(&format!("{by_language} {input}")).0.out),
            ["a b", "a c", "b c", "d e"]
        );
        let (run, stats) = place.replay(&format!("{OPTIONS} {input}"));
        assert_eq!(found(&run.out), ACROSS, "{input}");
        assert_eq!(stats["fields"]["missing"], json!(1), "{input}: {stats}");
        assert_eq!(stats["fields"]["rejected_by_where"], json!(2), "{input}: {stats}");
    }
    let by_id = "--emit pairs --id-field url --field host(url) --set pairs.where=a.host!=b.host";
    let four: String = feed().lines().take(4).map(|line| line.to_owned() + "\n").collect();
    place.file("four.jsonl", four);
    assert_eq!(found(&place.replay(&format!("{by_id} four.jsonl")).0.out).len(), 4);
    let by_prefix = "--emit pairs --field prefix(id,\":\",1) --set pairs.where=a.prefix==b.prefix";
    assert_eq!(found(&place.replay(&format!("{by_prefix} feed.jsonl")).0.out).len(), 0);
}

/// Values of every type, each counted as what it is.
#[test]
fn values_are_texts_and_flaws_are_counted() {
    let place = Place::new();
    let values =
        [json!("de"), json!(1), json!(1.0), json!(true), Value::Null, json!([1]), json!("x".repeat(257))];
    let line = |(n, value): (usize, &Value)| {
        json!({ "id": n.to_string(), "v": value, "text": text(n) }).to_string() + "\n"
    };
    place.file("feed", values.iter().enumerate().map(line).collect::<String>());
    let (run, stats) = place.replay("--emit pairs --field v --set pairs.where=a.v==b.v feed");
    // 1 and 1.0 are equal, and so are the three empty values.
    assert_eq!(found(&run.out), ["1 2", "4 5", "4 6", "5 6"]);
    let counts = ["missing", "unusable", "too_long"].map(|name| &stats["fields"][name]);
    assert_eq!(counts, [&json!(1); 3]);
}

#[test]
fn what_cannot_be_meant_is_a_problem_at_the_start() {
    let place = Place::new();
    place.file("feed", feed());
    place.file("rule.toml", "threshold = 0.8\n[pairs]\nwhere = \"a.host != b.lang\"\n");
    place.file(
        "here.toml",
        "[source]\ninputs = [\"feed\"]\nfields = [\"lang\", \"x = lower(lang)\", \"text\"]\n",
    );
    for (arguments, message) in [
        ("replay --set pairs.where=a.host!=b.host feed", "pairs.where: no field \"host\" in source.fields"),
        ("replay -p ./rule.toml --field lang feed", "at character 11: expected b.host, the same field"),
        ("replay --field lower(x) feed", "at character 1: expected host, prefix or day before ("),
        ("replay --field host --field host(url) feed", "--field: two fields are named \"host\""),
        ("replay --field text feed", "--field: \"text\" is the text of the documents"),
        ("check -c here.toml", "source.fields: \"x = lower(lang)\", at character 5: expected host"),
        ("check -c here.toml", "source.fields: \"text\" is the text of the documents"),
        ("trace --doc a --set pairs.where=a.host!=b.host feed", "pairs.where: no field \"host\"; name it"),
    ] {
        let run = place.run(arguments);
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        assert!(run.err.contains(message), "{arguments}: {}", run.err);
    }
}

#[test]
fn a_trace_says_that_the_rule_rejects_a_pair() {
    let place = Place::new();
    place.file("feed", feed());
    let run = place.run("trace --doc a --field host(url) --set pairs.where=a.host!=b.host feed");
    let reason = "\"b\": exact 0.9406, estimate ";
    let line =
        run.out.lines().find(|line| line.trim().starts_with(reason)).unwrap_or_else(|| panic!("{run:?}"));
    assert!(line.contains("rejected by pairs.where, before the filter"), "{line}");
    assert!(
        line.ends_with(
            "no pair, since pairs.where wants a.host != b.host, and host is \"one.example\" here and \
            \"one.example\" there"
        ),
        "{line}"
    );
    assert!(run.out.contains("  host: \"one.example\"\n"), "{}", run.out);
    assert!(run.out.contains("\npairs at the end of the input\n  \"a\" \"c\" "), "{}", run.out);
}

/// Fields are kept in the state; an update of a field alone changes the pairs; another rule is another
/// pipeline.
#[test]
fn fields_are_kept_between_runs() {
    let place = Place::new();
    let deployment = "[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"events:2\"\n\
        fields = [\"lang\", \"host(url)\"]\n\
        [sink]\npath = \"out.jsonl\"\n[state]\npath = \"kept\"\n";
    place.file("here.toml", deployment);
    let rule = "--set pairs.where=a.host!=b.host";
    let run = |arguments: &str| {
        let run = place.run(format!("run -c here.toml {arguments}").trim());
        (run.code, run.err)
    };
    let present = || -> Vec<String> {
        accumulated(&place.read("out.jsonl")).into_keys().map(|(a, b)| format!("{a} {b}")).collect()
    };
    place.file("feed.jsonl", feed());
    assert_eq!(run(rule).0, 0);
    assert_eq!(present(), ACROSS);
    // The same text from another host.
    let moved = json!({ "id": "b", "url": "https://two.example/b", "lang": "de", "text": text(1) });
    place.file("feed.jsonl", feed() + &moved.to_string() + "\n");
    assert_eq!(run(rule).0, 0);
    assert_eq!(present(), ["a b", "a c", "a d", "a e", "b e", "c e", "d e"]);
    // Without a rule the run holds the fields of the state.
    for (other, has_other_fields) in [("", false), ("--set pairs.where=a.lang==b.lang", true)] {
        let (code, err) = run(other);
        assert_eq!(code, 1, "{err}");
        assert!(err.contains("pairs.where is \"a.host != b.host\" there"), "{err}");
        assert_eq!(err.contains("source.fields"), has_other_fields, "{err}");
    }
    let (code, err) = run("--reconcile --set pairs.where=a.lang==b.lang");
    assert_eq!(code, 0, "{err}");
    assert_eq!(present(), ["a b", "a c", "b c", "d e"]);
}

/// Three processes that read the same file find the same pairs as one.
#[test]
fn three_processes_carry_fields() {
    let place = Place::new();
    place.file("feed.jsonl", feed().repeat(3));
    let alone = place.replay(&format!("{OPTIONS} feed.jsonl")).0.out;
    let listeners: Vec<_> = (0..3).map(|_| std::net::TcpListener::bind("127.0.0.1:0").unwrap()).collect();
    let hosts: BTreeSet<String> =
        listeners.iter().map(|listener| listener.local_addr().unwrap().to_string() + "\n").collect();
    drop(listeners);
    place.file("hosts", hosts.into_iter().collect::<String>());
    let children: Vec<_> = (0..3)
        .map(|process| {
            let options =
                format!("replay {OPTIONS} --workers 2 --processes 3 --process {process} --hosts hosts");
            let arguments = options.split(' ').chain(["feed.jsonl"]).map(str::to_owned).collect::<Vec<_>>();
            let mut child = command(arguments);
            child.current_dir(place.path("")).stdout(std::process::Stdio::piped());
            child.stderr(std::process::Stdio::piped()).spawn().expect("the binary runs")
        })
        .collect();
    let ended: Vec<_> = children.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
    assert!(ended.iter().all(|one| one.status.success()), "{ended:?}");
    assert_eq!(String::from_utf8(ended[0].stdout.clone()).unwrap(), alone);
    assert_eq!(found(&alone), ACROSS);
}

/// Hosts with two near copies of one common text each: `from` and up to `to`.
fn hosts(numbers: std::ops::Range<u32>) -> String {
    let line = |(host, copy): (u32, u32)| {
        let text = page(copy..copy + 1, 2 * host + copy);
        json!({ "id": format!("{host}/{copy}"), "host": host, "text": text }).to_string() + "\n"
    };
    numbers.flat_map(|host| [(host, 0), (host, 1)]).map(line).collect()
}

fn of_one_host(pairs: &super::feeds::Pairs) -> bool {
    pairs.keys().all(|(a, b)| a.split('/').next() == b.split('/').next())
}

/// A block counts the documents of a host on their own: each host has its pair, whatever the others are, with
/// any rule for hot blocks. Hosts that appear and vanish change no pair of others.
#[test]
fn a_host_has_its_pairs_however_many_hosts_share_a_text() {
    let rule = "--field host --set pairs.where=a.host==b.host";
    for hosts_in_all in [10, 100, 1000] {
        let place = Place::new();
        place.file("feed", hosts(0..hosts_in_all));
        for pipeline in ["exact", "minhash", "onebit"] {
            let (run, stats) =
                place.replay(&format!("-p {pipeline} --set threshold=0.8 {rule} --emit pairs feed"));
            let found = pairs(&run.out);
            assert!(
                of_one_host(&found) && found.len() == hosts_in_all as usize,
                "{pipeline}: {}",
                found.len()
            );
            assert_eq!(stats["hot_blocks"], json!([]), "{pipeline}");
        }
    }
    let place = Place::new();
    let vanished: String = (0..150)
        .flat_map(|host| [0, 1].map(|copy| (host, copy)))
        .fold(String::new(), |all, (host, copy)| all + &super::feeds::delete(&format!("{host}/{copy}")));
    place.file("feed", hosts(150..153) + &hosts(0..150) + &vanished);
    for options in [
        "--workers 1",
        "--workers 3 --set blocking.hot=skip",
        "--set blocking.cap=2 --set blocking.leaders=1",
    ] {
        let (run, _) = place.replay(&format!("-p minhash {rule} {options} --epoch events:7 feed"));
        let kept =
            |line: &&str| ["150", "151", "152"].iter().any(|host| line.contains(&format!("\"{host}/")));
        let of_those_that_stay: Vec<&str> = run.out.lines().filter(kept).collect();
        assert_eq!(of_those_that_stay.len(), 3, "{options}: {of_those_that_stay:?}");
        assert_eq!(accumulated(&run.out).len(), 3, "{options}");
    }
}

/// Of many documents of one host a block is hot, and of each host on its own; `!=` has no part in that.
#[test]
fn a_hot_block_is_of_one_host() {
    let place = Place::new();
    let line = |n: u32| {
        let text = page(n % 60..n % 60 + 1, n);
        json!({ "id": n.to_string(), "host": n % 3, "text": text }).to_string() + "\n"
    };
    place.file("feed", (0..360).map(line).collect::<String>());
    let found = |rule: &str| {
        let (run, stats) = place.replay(&format!(
            "--field host --set pairs.where={rule} --set blocking.cap=20 --emit clusters feed"
        ));
        let sizes = stats["hot_blocks"].as_array().unwrap().iter().map(|block| block["sketches"].as_u64());
        (run, sizes.max().flatten())
    };
    let (of_each, largest) = found("a.host==b.host");
    // Three words in a hundred differ from most others, so a band has four in five of them.
    assert_eq!(of_each.out.lines().count(), 3, "{}", of_each.err);
    assert!(largest > Some(80) && largest <= Some(120), "{largest:?}");
    assert!(of_each.err.contains("of more sketches of one host than blocking.cap"), "{}", of_each.err);
    let (across, largest) = found("a.host!=b.host");
    assert!(largest > Some(240), "{largest:?}");
    let said = "pairs.where: a hot block takes no account of host";
    assert!(across.err.contains(said) && !of_each.err.contains(said), "{}", across.err);
    let plan = |rule: &str| place.run(&format!("plan --set pairs.where={rule}"));
    assert!(plan("a.host!=b.host").out.contains(said));
    let of_one = "a block counts the documents of each host on their own";
    assert!(plan("a.host==b.host").out.contains(of_one));
    let described = place.run("plan --format json --set pairs.where=a.host==b.host").out;
    let described: Value = serde_json::from_str(&described).unwrap();
    assert_eq!(described["rule"], json!({ "counted_for_each": ["host"], "not_counted": [] }));
}

/// A trace says why two hosts share no pair, in a block that is not hot for either.
#[test]
fn a_trace_knows_the_blocks_of_a_host() {
    let place = Place::new();
    place.file("feed", hosts(0..60));
    let rule = "--field host --set pairs.where=a.host==b.host";
    let traced = place.run(&format!("trace --doc 7/0 {rule} feed")).out;
    assert!(
        traced.contains("never compared, they meet in no block; no pair, since pairs.where wants"),
        "{traced}"
    );
    assert!(traced.contains("\npairs at the end of the input\n  \"7/0\" \"7/1\" "), "{traced}");
}

/// Columns that are names of folders, as Spark and Hive write them.
#[test]
fn partitions_give_their_columns() {
    let place = Place::new();
    let text = crate::feeds::page(0..0, 0);
    for (id, folder) in [
        ("a", "lang=en"),
        ("b", "lang=en"),
        ("c", "lang=x%2Fy"),
        ("d", "lang=x%2Fy"),
        ("e", "lang=__HIVE_DEFAULT_PARTITION__"),
    ] {
        place.file(format!("csv/{folder}/{id}.csv"), format!("id,text\n{id},{text}\n"));
        place.file(format!("own/{folder}/{id}.csv"), format!("id,text,lang\n{id},{text},same\n"));
        place.file(format!("lines/{folder}/{id}.jsonl"), crate::feeds::upsert(id, &text));
        // The name is elsewhere in the line, behind much else.
        let late = format!(
            "{{\"id\":\"{id}\",\"x\":\"{}\",\"m\":{{\"lang\":0}},\"text\":\"{text}\"}}\n",
            "x".repeat(70_000)
        );
        place.file(format!("late/{folder}/{id}.jsonl"), late);
        let line = format!("{{\"id\":\"{id}\",\"text\":\"{text}\",\"lang\":\"same\"}}\n");
        place.file(format!("full/{folder}/{id}.jsonl"), line);
    }
    let run = |input: &str| {
        place.run(&format!("replay --emit pairs --field lang --set pairs.where=a.lang==b.lang {input}"))
    };
    let pairs = |run: &crate::dupflow::Ended| crate::feeds::pairs(&run.out).len();
    let folders = "csv/lang=en csv/lang=x%2Fy csv/lang=__HIVE_DEFAULT_PARTITION__";
    for input in ["csv", "csv/*/*.csv", folders, "lines", "late"] {
        let found = run(input);
        assert_eq!((found.code, pairs(&found)), (0, 2), "{input}: {found:?}");
    }
    // The value of a record counts more.
    for input in ["own", "full"] {
        let found = run(input);
        assert_eq!((found.code, pairs(&found)), (0, 10), "{input}: {found:?}");
    }
}
