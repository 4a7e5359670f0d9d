//! `dupflow query`: answers by every pipeline, and refused options.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use serde_json::Value;

use super::dupflow::{Ended, Place};

/// Twenty words, the first n of them replaced.
fn text(n: usize) -> String {
    let words: Vec<_> = (0..20).map(|i| format!("{}{i}", if i < n { "other" } else { "word" })).collect();
    words.join(" ")
}

fn event(id: &str, text: &str) -> String {
    format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n")
}

/// A text in "asked", and a corpus in "feed" with a copy of it, nearer and farther documents, and an empty
/// one.
fn place() -> Place {
    let place = Place::new();
    place.file("asked", text(0));
    let events = [
        event("far", &text(15)),
        event("near", &text(1)),
        event("copy", &text(0)),
        event("copy too", &text(0)),
        event("half", &text(8)),
        event("gone", &text(0)),
        event("nothing", "?"),
        "{\"id\":\"gone\",\"op\":\"delete\"}\n".to_owned(),
    ];
    place.file("feed", events.concat());
    place
}

/// The summary on standard error, without the log.
fn summary_lines(run: &Ended) -> Vec<&str> {
    run.err.lines().skip_while(|line| !line.starts_with("answered")).collect()
}

/// The ids in the answer, best first.
fn ids(run: &Ended) -> Vec<String> {
    assert_eq!(run.code, 0, "{run:?}");
    assert!(summary_lines(run)[0].starts_with("answered    at the end of epoch 1: "), "{run:?}");
    let mut lines = run.out.lines();
    let head = lines.next().unwrap();
    assert_eq!(head, "similarity  standard error  blocks  look  components  id");
    lines.map(|line| line[head.len() - 2..].to_owned()).collect()
}

/// The documents of a JSON answer: the similarity as written, and the evidence.
fn documents(run: &Ended) -> Vec<(String, String)> {
    assert_eq!(run.code, 0, "{run:?}");
    let document = |line: &str| {
        let parsed: Value = serde_json::from_str(line).unwrap();
        let (_, evidence) = line.split_once("\"similarity\":").unwrap();
        (parsed["id"].as_str().unwrap().to_owned(), evidence.trim_end_matches('}').to_owned())
    };
    run.out.lines().map(document).collect()
}

/// Shingles are single words, so the similarity for n of 20 words is far from that of the next text. The
/// answer for a text equals what `replay` reports for a document with that text at the end of the feed,
/// evidence included. (Under live weights that document changes the weights.)
#[test]
fn every_pipeline_answers_what_a_document_of_the_text_would_be_paired_with() {
    let place = place();
    let more = format!("{}{}", place.read("feed"), event("~", &text(0)));
    place.file("more", more);
    for pipeline in ["minhash", "exact", "simhash", "sectional", "onebit", "tour"] {
        let common = format!("-p {pipeline} --set text.shingle=words:1");
        let run = place.run(&format!("query {common} --corpus feed --format json asked"));
        let replayed = place.run(&format!("replay {common} --emit pairs --evidence more"));
        let mut expected: Vec<_> = replayed
            .out
            .lines()
            .filter_map(|line| {
                let pair: Value = serde_json::from_str(line).unwrap();
                let (_, evidence) = line.split_once("\"similarity\":").unwrap();
                let other = pair["a"].as_str().filter(|_| pair["b"] == "~")?;
                Some((other.to_owned(), evidence.trim_end_matches('}').to_owned()))
            })
            .collect();
        let mut found = documents(&run);
        let first: Vec<_> = found.iter().map(|(id, _)| id.as_str()).take(3).collect();
        assert_eq!(first[..2], ["copy", "copy too"], "{pipeline}");
        // One changed word of twenty changes more than 3 of 64 bits, and gives less than the threshold of
        // `onebit`.
        let reaches = !["simhash", "onebit"].contains(&pipeline);
        assert_eq!(first.get(2), Some(&"near").filter(|_| reaches), "{pipeline}");
        let similarity =
            |(_, evidence): &(String, String)| evidence.split(',').next().unwrap().parse::<f64>().unwrap();
        assert!(found.is_sorted_by(|a, b| similarity(a) >= similarity(b)), "{run:?}");
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{pipeline}");
    }
}

/// 19 of 21 words are in common with the near one.
#[test]
fn the_threshold_is_inclusive_and_the_best_come_first() {
    let place = place();
    let ask = |threshold: &str, more: &str| {
        let common = "query -p exact --set text.shingle=words:1 --corpus feed";
        ids(&place.run(&format!("{common} --set threshold={threshold} asked{more}")))
    };
    assert_eq!(ask("0.9047619047619048", ""), ["copy", "copy too", "near"]);
    assert_eq!(ask("0.905", ""), ["copy", "copy too"]);
    assert_eq!(ask("0.5", " --top 1"), ["copy"]);
    assert_eq!(ask("0.5", " --top 0"), Vec::<String>::new());
}

/// The corpus is one epoch and is weighted by its own frequencies, for any number of events.
#[test]
fn live_weights_are_those_of_the_corpus() {
    let place = place();
    let fill: String = (0..1500).map(|n| event(&format!("fill {n}"), &format!("filler{n}"))).collect();
    place.file("more", place.read("feed") + &fill);
    let run = place.run("query -p weighted --set text.shingle=words:1 --corpus more asked");
    assert_eq!(ids(&run)[..2], ["copy", "copy too"]);
}

#[test]
fn the_summary_names_epoch_and_corpus() {
    let place = place();
    place.file("more", place.read("feed") + "no event\n");
    let run = place.run("query --set text.shingle=words:1 --corpus more --top 1 --workers 1 asked");
    assert_eq!(ids(&run), ["copy"]);
    let lines = summary_lines(&run);
    assert!(
        lines[0]
            .starts_with("answered    at the end of epoch 1: 6 documents alive, 4 distinct sketches, in ")
    );
    assert_eq!(lines[1..], ["bad         1 record of no event", "left out    2 less similar"]);
}

#[test]
fn a_folder_several_inputs_and_standard_input() {
    let place = place();
    place.file("docs/one", text(0));
    place.file("docs/two", text(2));
    let common = "query -p exact --set text.shingle=words:1 --top 3";
    assert_eq!(ids(&place.run(&format!("{common} --corpus docs asked"))), ["one", "two"]);
    for inputs in ["--corpus feed docs asked", "--corpus feed --corpus docs asked"] {
        assert_eq!(ids(&place.run(&format!("{common} {inputs}"))), ["copy", "copy too", "one"], "{inputs}");
    }
    let asked = text(0);
    let piped = place.run_with(&format!("{common} --corpus docs -"), |input| {
        input.write_all(asked.as_bytes()).unwrap();
    });
    assert_eq!(ids(&piped), ["one", "two"]);
}

/// The documents of a JSON answer: the name of the query, and the id.
fn found(run: &Ended) -> Vec<(String, String)> {
    let document = |line: &str| {
        let parsed: Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| parsed[key].as_str().unwrap().to_owned();
        (of("asked"), of("id"))
    };
    run.out.lines().map(document).collect()
}

fn line(text: &str, rest: &str) -> String {
    format!("{{\"text\":\"{text}\"{rest}}}\n")
}

/// Each line gets the same answer as its text alone, in the order of the lines. Inputs may follow the corpus
/// as they do before a text.
#[test]
fn many_texts_are_answered_each() {
    let place = place();
    place.file("half", text(8));
    place.file("none", text(20));
    place.file("docs/one", text(8));
    let common =
        "query -p exact --set text.shingle=words:1 --set threshold=0.8 --format json --corpus feed docs";
    let alone = |file: &str| {
        let run = place.run(&format!("{common} {file}"));
        assert_eq!(run.code, 0, "{run:?}");
        found(&run).into_iter().map(|(_, id)| id).collect::<Vec<_>>()
    };
    assert_eq!(alone("half"), ["half", "one"]);
    assert_eq!(alone("asked"), ["copy", "copy too", "near"]);
    assert_eq!(alone("none"), Vec::<String>::new());

    let (half, none, asked) = (text(8), text(20), text(0));
    let lines = [
        line(&half, ""),
        "\n".to_owned(),
        line(&none, ",\"id\":null"),
        line(&asked, ",\"top\":1,\"id\":\"me\""),
    ]
    .concat();
    place.file("lines", &lines);
    let expected = |name: &str| {
        let first = format!("{name}:1");
        let pairs = [(first.as_str(), "half"), (first.as_str(), "one"), ("me", "copy")];
        pairs.map(|(by, id)| (by.to_owned(), id.to_owned())).to_vec()
    };
    let of_file = place.run(&format!("{common} --lines lines"));
    assert_eq!((of_file.code, found(&of_file)), (0, expected("lines")), "{of_file:?}");
    assert!(
        summary_lines(&of_file)[0].starts_with("answered    3 texts, at the end of epoch 1: "),
        "{of_file:?}"
    );
    assert_eq!(summary_lines(&of_file)[1..], ["left out    2 less similar"]);
    let piped = place.run_with(&format!("{common} --lines -"), |input| {
        input.write_all(lines.as_bytes()).unwrap();
    });
    assert_eq!((piped.code, found(&piped)), (0, expected("-")), "{piped:?}");

    // More queries than may be in progress at a time.
    let nth = |i: usize| if i.is_multiple_of(2) { (text(0), "copy") } else { (text(8), "half") };
    let many: String = (0..1000_usize).map(|i| line(&nth(i).0, &format!(",\"id\":{i},\"top\":1"))).collect();
    place.file("many", many);
    let run = place.run(&format!("{common} --lines many"));
    let all: Vec<_> = (0..1000).map(|i| (i.to_string(), nth(i).1.to_owned())).collect();
    assert_eq!((run.code, found(&run)), (0, all));
}

#[test]
fn as_text_each_answer_stands_under_its_name() {
    let place = place();
    place.file("lines", line(&text(0), "") + &line(" ... ", "") + &line(&text(20), ""));
    let run = place.run("query -p exact --set text.shingle=words:1 --corpus feed --top 1 --lines lines");
    let blocks: Vec<_> = run.out.split_terminator("\n\n").collect();
    assert_eq!(blocks.len(), 2, "{run:?}");
    assert!(blocks[0].starts_with("lines:1\nsimilarity ") && blocks[0].ends_with(" copy"), "{run:?}");
    assert!(blocks[1].starts_with("lines:3\nsimilarity ") && blocks[1].lines().count() == 2, "{run:?}");
    assert_eq!(run.code, 1);
    assert!(run.err.ends_with("error: \"lines:2\" has no token to look for\n"), "{run:?}");
}

#[test]
fn refused_queries() {
    let place = place();
    place.file("blank", " ... ");
    let blank = place.run("query --corpus feed blank");
    assert_eq!((blank.code, blank.out.as_str()), (1, ""), "{blank:?}");
    assert_eq!(blank.err, "error: \"blank\" has no token to look for\n");
    // The run fails before the query is sent, or while it waits.
    place.file("bad", place.read("feed") + "no event\n");
    let failed = place.run("query --set output.on_error=fail --corpus bad asked");
    assert_eq!((failed.code, failed.out.as_str()), (1, ""), "{failed:?}");
    assert!(failed.err.contains("bad record in \"bad\", line 9"), "{failed:?}");
    let wrong = place.run("query -p none --corpus no --top many neither");
    assert_eq!((wrong.code, wrong.out.as_str()), (2, ""), "{wrong:?}");
    let messages: Vec<_> = wrong.err.lines().collect();
    assert_eq!(messages.len(), 5, "{wrong:?}");
    let problems = [
        "4 problems",
        "invalid value 'many'",
        "no pipeline \"none\"",
        "cannot read \"neither\"",
        "cannot read \"no\"",
    ];
    for (line, problem) in messages.iter().zip(problems) {
        assert!(line.contains(problem), "{problem:?} is not in {line:?}");
    }
    place.file("lines", "{\"text\":\"one\"}\nno\n");
    let misread = place.run("query --corpus feed --lines lines");
    assert_eq!((misread.code, misread.out.as_str()), (2, ""), "{misread:?}");
    assert!(misread.err.contains("\"lines\", line 2: expected {\"text\":"), "{misread:?}");
    let missing = place.run("query asked");
    assert!(missing.code == 2 && missing.err.contains("--corpus <INPUT>"), "{missing:?}");
}
