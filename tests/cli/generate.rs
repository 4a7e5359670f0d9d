//! `dupflow generate`: the feed, and its true similar pairs.

use std::collections::BTreeMap;
use std::io::Read;

use super::dupflow::Place;
use super::feeds::lines;

#[test]
fn the_same_options_give_the_same_feed() {
    let place = Place::new();
    let first = place.run("generate --documents 200 --seed 7");
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(first.out, place.run("generate --documents 200 --seed 7 -o -").out);
    assert_ne!(first.out, place.run("generate --documents 200 --seed 8").out);
    let filed = place.run("generate --documents 200 --seed 7 -o feed");
    assert_eq!((filed.out.as_str(), place.read("feed")), ("", first.out.clone()));
    let events = lines(&first.out);
    assert!(events.iter().all(|event| event["id"].is_string() && event["ts"].is_number()));
    assert!(first.err.contains(&format!("made        {} events, ", events.len())), "{}", first.err);
}

#[test]
fn options_shape_the_feed() {
    let place = Place::new();
    let run = place.run(
        "generate --documents 100 --scripts greek --updates 0 --repeats 0 --deletes 0 --copies 0 --near 0 \
        --empty 0 --short 1",
    );
    let events = lines(&run.out);
    assert_eq!(events.len(), 100);
    for event in events {
        assert!(event["id"].as_str().is_some_and(|id| id.starts_with("greek/")), "{event}");
        assert!(event["text"].as_str().is_some_and(|text| text.split(' ').count() <= 4), "{event}");
    }
    assert!(run.err.starts_with("made        100 events, 100 upserts with "), "{}", run.err);
    assert!(run.err.ends_with(" and 0 deletes; 100 documents alive at the end\n"), "{}", run.err);
}

#[test]
fn labels_are_written_with_the_corpus() {
    let place = Place::new();
    let options =
        "generate --documents 120 --groups 12 --min-words 20 --max-words 40 --scripts thai -o corpus";
    let made = place.run(&format!("{options} --labels labels"));
    assert_eq!(made.code, 0, "{made:?}");
    let corpus = place.read("corpus");
    let ids: Vec<String> =
        lines(&corpus).iter().map(|line| line["id"].as_str().expect("an id").to_owned()).collect();
    let labels = place.read("labels");
    let labelled: Vec<(&str, &str)> = labels.lines().filter_map(|line| line.split_once('\t')).collect();
    assert!(labelled.iter().map(|(id, _)| *id).eq(ids.iter().map(String::as_str)) && ids.len() == 120);
    assert!(labelled.iter().all(|(id, label)| id.starts_with(&format!("{label}/"))));
    assert!(made.err.starts_with("made        120 documents with "), "{}", made.err);
    let wrong = place.run(&format!("{options} --labels labels --copies 0.5"));
    assert!(wrong.code == 2 && wrong.err.contains("--copies"), "{wrong:?}");
    let few = place.run("generate --documents 10 --groups 9 --labels labels -o corpus");
    assert!(few.code == 2 && few.err.contains("--groups: expected 1 or more, with two"), "{few:?}");
}

#[test]
fn exact_replay_finds_the_truth() {
    let place = Place::new();
    let made =
        place.run("generate --documents 300 --near 0.4 --deletes 0.1 -o feed --truth truth --floor 0.8");
    assert_eq!(made.code, 0, "{made:?}");
    let truth = place.read("truth");
    // All pairs are compared and none is rejected by its sketch, so the result is exact.
    let scan = "--set blocking.kind=scan --set filter.kind=full --emit pairs";
    let (replayed, stats) = place.replay(&format!("-p exact {scan} feed"));
    let found: Vec<_> = lines(&replayed.out)
        .iter()
        .map(|pair| {
            let id = |key: &str| pair[key].as_str().map(str::to_owned).expect("an id");
            format!("{}\t{}\t{:.9}", id("a"), id("b"), pair["similarity"].as_f64().expect("similarity"))
        })
        .collect();
    assert_eq!(found, truth.lines().collect::<Vec<_>>());
    let alive = format!("{} documents alive at the end", stats["documents"]);
    assert!(made.err.contains(&alive), "{alive}: {}", made.err);
    let counted = format!("truth       {} pairs of similarity 0.8 or more; ", found.len());
    assert!(found.len() > 20 && made.err.contains(&counted), "{}", made.err);
    let bands = [" from 1.0; ", " from 0.9; ", " from 0.8\n"];
    assert!(bands.iter().all(|band| made.err.contains(band)), "{}", made.err);
}

#[test]
fn unwritable_outputs_are_named() {
    let place = Place::new();
    let run = place.run("generate --documents 10 -o no/such/folder");
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.err.starts_with("error: --output: \"no/such/folder\" cannot be written: No such file"),
        "{run:?}"
    );
}

#[test]
fn the_extension_decides_the_output_format() {
    let place = Place::new();
    let options = "generate --documents 20 --seed 3";
    for (name, format) in [
        ("a.csv", "csv"),
        ("a.tsv", "tsv"),
        ("a.warc", "warc"),
        ("a.warc.gz", "warc"),
        ("a.wet", "wet"),
        ("a.warc.wet.gz", "wet"),
        ("a.jsonl", "jsonl"),
        ("a", "jsonl"),
    ] {
        let named = place.run(&format!("{options} -o {name}"));
        let ending = if name.ends_with(".gz") { ".gz" } else { "" };
        let explicit = place.run(&format!("{options} --format {format} -o explicit{ending}"));
        assert_eq!((named.code, explicit.code), (0, 0), "{name}: {named:?}");
        let bytes = |file: &str| std::fs::read(place.path(file)).unwrap();
        assert!(bytes(name) == bytes(&format!("explicit{ending}")), "{name} is no {format}");
    }
    let chosen = place.run(&format!("{options} --format jsonl -o chosen.csv"));
    assert!(chosen.code == 0 && place.read("chosen.csv") == place.read("a.jsonl"), "{chosen:?}");
}

#[test]
fn uncompressed_formats_with_a_compressed_name_are_refused() {
    let place = Place::new();
    for arguments in [
        "-o a.jsonl.gz",
        "-o a.jsonl.zst",
        "-o a.csv.gz",
        "-o a.parquet.zst",
        "-o a.warc.zst",
        "-o a.wet.ZST",
        "-o a.warc.gz --format csv",
        "-o a.gz --labels labels",
    ] {
        let run = place.run(&format!("generate --documents 20 {arguments}"));
        assert_eq!(run.code, 2, "{arguments}: {run:?}");
        assert!(
            run.err.starts_with("error: --output: ") && run.err.contains("would not be compressed"),
            "{run:?}"
        );
        assert_eq!(std::fs::read_dir(place.path("")).unwrap().count(), 0, "{arguments}: nothing is written");
    }
}

#[test]
fn pages_are_not_mixed_with_others() {
    let place = Place::new();
    std::fs::create_dir(place.path("pages")).unwrap();
    let pages = "generate --documents 20 --format html -o pages";
    assert_eq!(place.run(pages).code, 0, "an empty folder");
    let count = || walkdir::WalkDir::new(place.path("pages")).into_iter().count();
    let before = count();
    let again = place.run(&format!("{pages} --seed 4"));
    assert_eq!((again.code, count()), (2, before), "{again:?}");
    assert!(again.err.contains("expected a new or an empty folder; \"pages\" holds something"), "{again:?}");
}

/// The events of a feed as rows of a table.
fn rows(feed: &str) -> Vec<[String; 4]> {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let row = |event: serde_json::Value| {
        let ts = event["ts"].as_f64().map(|ts| ts.to_string()).unwrap_or_default();
        [text(&event["id"]), text(&event["op"]), ts, text(&event["text"])]
    };
    lines(feed).into_iter().map(row).collect()
}

const FEED: &str = "generate --documents 150 --seed 3";

#[test]
fn tables_hold_the_feed() {
    let place = Place::new();
    let expected = rows(&place.run(FEED).out);
    assert!(expected.iter().any(|row| row[1] == "delete"));
    for (format, delimiter) in [("csv", b','), ("tsv", b'\t')] {
        let made = place.run(&format!("{FEED} --format {format}"));
        assert_eq!(made.code, 0, "{made:?}");
        let mut reader = csv::ReaderBuilder::new().delimiter(delimiter).from_reader(made.out.as_bytes());
        assert_eq!(reader.headers().unwrap(), vec!["id", "op", "ts", "text"]);
        let found: Vec<_> = reader.deserialize::<[String; 4]>().map(Result::unwrap).collect();
        assert_eq!(found, expected, "{format}");
    }
}

#[test]
fn archives_hold_what_is_alive() {
    let place = Place::new();
    let mut alive = BTreeMap::new();
    for [id, op, _, text] in rows(&place.run(FEED).out) {
        if op == "delete" {
            alive.remove(&id)
        } else {
            alive.insert(id, text)
        };
    }
    let wet = place.run(&format!("{FEED} --format wet"));
    assert_eq!((wet.code, wet.out.matches("WARC-Type: conversion\r\n").count()), (0, alive.len()));
    let warc = place.run(&format!("{FEED} --format warc"));
    assert_eq!((warc.code, warc.out.matches("\r\n\r\nHTTP/1.1 200 OK\r\n").count()), (0, alive.len()));
    assert_eq!(place.run(&format!("{FEED} --format html -o pages")).code, 0);
    for (id, text) in &alive {
        let block = format!("Content-Length: {}\r\n\r\n{text}\r\n\r\n", text.len());
        assert!(
            wet.out.contains(&format!("WARC-Record-ID: <urn:uuid:{id}>\r\n")) && wet.out.contains(&block)
        );
        let page = place.read(&format!("pages/{id}.html"));
        assert!(page.starts_with("<!doctype html>\n") && warc.out.contains(&page), "{id}");
    }
    assert_eq!(place.run(&format!("{FEED} --format wet -o made.warc.wet.gz")).code, 0);
    let mut unpacked = String::new();
    let packed = std::fs::File::open(place.path("made.warc.wet.gz")).unwrap();
    flate2::read::MultiGzDecoder::new(packed).read_to_string(&mut unpacked).unwrap();
    assert_eq!(unpacked, wet.out);
    let nowhere = place.run(&format!("{FEED} --format html"));
    assert!(nowhere.code == 2 && nowhere.err.contains("--format html: expected a folder"), "{nowhere:?}");
}

#[cfg(feature = "parquet")]
#[test]
fn columns_hold_the_feed() {
    use parquet::file::reader::{FileReader, SerializedFileReader};

    let place = Place::new();
    let feed = "generate --documents 1200 --seed 3 --max-words 60";
    let expected = rows(&place.run(feed).out);
    assert_eq!(place.run(&format!("{feed} --format parquet -o made.parquet")).code, 0);
    let file = std::fs::File::open(place.path("made.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    assert!(expected.len() > 1000 && reader.num_row_groups() == expected.len().div_ceil(1000));
    let cell = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => String::new(),
        number => number.as_f64().unwrap().to_string(),
    };
    let found: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            let mut cells = row.unwrap().into_columns().into_iter().map(|(_, field)| match field {
                parquet::record::Field::Str(text) => serde_json::Value::from(text),
                parquet::record::Field::Double(ts) => serde_json::Value::from(ts),
                parquet::record::Field::Null => serde_json::Value::Null,
                other => panic!("{other:?}"),
            });
            [0; 4].map(|_| cell(&cells.next().unwrap()))
        })
        .collect();
    assert_eq!(found, expected);
}

/// A family of 200 is one cluster; copies are paired with the smallest id; rounds leave the texts of the last
/// round.
#[test]
fn feeds_of_one_shape() {
    let place = Place::new();
    let words = "--min-words 100 --max-words 101 --seed 5";
    for (options, documents, clusters) in [
        (format!("--family 2 {words}"), 200, 1),
        (format!("--family 0 {words}"), 200, 1),
        (format!("--family 2 --rounds 3 --drop 0.5 {words}"), 100, 1),
        (format!("--rounds 2 {words}"), 200, 0),
    ] {
        let made = place.run(&format!("generate --documents 200 {options} -o feed"));
        assert_eq!(made.code, 0, "{made:?}");
        assert!(made.err.contains(&format!("; {documents} documents alive at the end")), "{made:?}");
        let (_, stats) = place.replay("--emit clusters feed");
        assert_eq!(
            (&stats["documents"], &stats["clusters"]),
            (&documents.into(), &clusters.into()),
            "{options}"
        );
    }
    for wrong in
        ["--family 2 --near 0.5", "--drop 0.5", "--rounds 0", "--family 41", "--rounds 2 --truth truth"]
    {
        let run = place.run(&format!("generate {wrong} -o feed"));
        assert!(run.code == 2 && run.err.contains("--"), "{wrong}: {run:?}");
    }
}
