//! `--output-format`, `--emit keep` and `--emit remove`: all formats hold the same rows as JSON Lines, and
//! every live document is in exactly one of the two lists.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{delete, lines, page, upsert, words};

/// Ids that a format might break: with separators, quotes and line ends, in several scripts.
const IDS: [&str; 12] = [
    "a,b",
    "say \"hi\"",
    "two\nlines",
    "cr\r\nlf",
    "\"",
    ",",
    " spaces ",
    "文書/1",
    "เอกสาร",
    "وثيقة",
    "😀🏳️‍🌈",
    "日本語,「引用」",
];

/// A feed with a cluster of five, one of three, and others; one document is deleted, one has no token.
fn feed() -> String {
    let near = |n: u32| page(0..2, 10 + n);
    let far = |n: u32| words((0..100).map(|word| 5000 + word + if word == n { 900 } else { 0 }));
    let mut feed = String::new();
    for (n, id) in (0..).zip(IDS) {
        let text = match n {
            0..5 => near(n),
            5..8 => far(n),
            8 => "!!!".to_owned(),
            _ => words(100_000 * n..100_000 * n + 50),
        };
        feed += &upsert(id, &text);
    }
    feed + &upsert("ended", &near(77)) + &delete("ended")
}

/// A row: texts unchanged, numbers by their digits, missing values empty.
type Row = BTreeMap<String, String>;

/// The rows of JSON Lines, one for each member of a cluster.
fn rows(out: &str) -> Vec<Row> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut rows = Vec::new();
    for line in lines(out) {
        let mut row: Row = Row::new();
        for (key, value) in line.as_object().expect("an object") {
            if !["members", "giant"].contains(&key.as_str()) {
                row.insert(key.clone(), text(value));
            }
        }
        let Some(members) = line["members"].as_array() else {
            rows.push(row);
            continue;
        };
        let member = |member| Row::from([("document".to_owned(), text(member))]);
        rows.extend(members.iter().map(|of| member(of).into_iter().chain(row.clone()).collect::<Row>()));
    }
    rows
}

/// A row of another format. Fractions are read as from JSON Lines, which may change the last digit; another
/// assertion compares the digits.
fn row_of(cells: impl Iterator<Item = (String, String)>) -> Row {
    let read = |(name, cell): (String, String)| match name.as_str() {
        "similarity" | "standard_error" => {
            let number: Value = serde_json::from_str(&cell).unwrap();
            (name, number.to_string())
        }
        _ => (name, cell),
    };
    cells.filter(|(_, cell)| !cell.is_empty()).map(read).collect()
}

fn csv_rows(text: &str) -> Vec<Row> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
    let row = |record: csv::StringRecord| row_of(names.iter().cloned().zip(record.iter().map(str::to_owned)));
    reader.records().map(|record| row(record.unwrap())).collect()
}

#[cfg(feature = "parquet")]
fn parquet_rows(path: &std::path::Path) -> Vec<Row> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let reader = SerializedFileReader::new(std::fs::File::open(path).unwrap()).unwrap();
    for group in reader.metadata().row_groups() {
        assert!(
            group.columns().iter().all(|column| column.statistics().is_some()),
            "readers can pass over groups"
        );
    }
    let cell = |field: &Field| match field {
        Field::Str(text) => text.clone(),
        Field::Long(number) => number.to_string(),
        Field::Double(number) => serde_json::to_string(number).unwrap(),
        Field::Null => String::new(),
        other => panic!("{other:?}"),
    };
    let row = |row: parquet::record::Row| {
        row_of(row.get_column_iter().map(|(name, field)| (name.clone(), cell(field))))
    };
    reader.get_row_iter(None).unwrap().map(|read| row(read.unwrap())).collect()
}

#[test]
fn every_form_holds_the_same_rows() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let emits = [
        "deltas --epoch events:3 --evidence --causes",
        "deltas --epoch events:5",
        "pairs --evidence",
        "pairs",
        "clusters",
        "clusters --set output.cluster_limit=3",
        "cluster-deltas --epoch events:2 --set output.cluster_limit=3",
        "keep",
        "remove",
    ];
    for emit in emits {
        let json = place.replay(&format!("--emit {emit} feed.jsonl")).0.out;
        let expected = rows(&json);
        assert!(expected.len() >= 3, "{emit}: {expected:?}");
        let printed = place.replay(&format!("--emit {emit} --output-format csv feed.jsonl")).0.out;
        assert_eq!(csv_rows(&printed), expected, "{emit}");
        for digits in printed.split([',', '\n']).filter(|cell| cell.starts_with("0.")) {
            assert!(json.contains(&format!(":{digits}")), "{emit}: {digits}");
        }
        place.replay(&format!("--emit {emit} -o out.csv feed.jsonl"));
        assert_eq!(place.read("out.csv"), printed, "{emit}: the name says it");
        place.replay(&format!("--emit {emit} --output-format jsonl -o out.csv feed.jsonl"));
        assert_eq!(rows(&place.read("out.csv")), expected, "{emit}: the extension decides");
        #[cfg(feature = "parquet")]
        {
            place.replay(&format!("--emit {emit} -o out.parquet feed.jsonl"));
            assert_eq!(parquet_rows(&place.path("out.parquet")), expected, "{emit}");
        }
    }
}

#[test]
fn csv_is_written_to_the_letter_and_has_a_header_without_rows_too() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a,\"b\"", &page(0..0, 0)) + &upsert("ง", &page(0..0, 0)));
    let csv = |emit: &str| place.replay(&format!("--emit {emit} --output-format csv feed.jsonl")).0.out;
    assert_eq!(csv("deltas"), "epoch,diff,a,b,similarity\n1,1,\"a,\"\"b\"\"\",ง,1.0\n");
    assert_eq!(csv("remove"), "id,kept,cluster\nง,\"a,\"\"b\"\"\",\"a,\"\"b\"\"\"\n");
    assert_eq!(csv("keep"), "id\n\"a,\"\"b\"\"\"\n");
    assert_eq!(
        csv("clusters --set output.cluster_limit=2"),
        "document,cluster,size\n\"a,\"\"b\"\"\",\"a,\"\"b\"\"\",\nง,\"a,\"\"b\"\"\",\n"
    );
    place.file("feed.jsonl", "");
    assert_eq!(csv("deltas --causes"), "epoch,diff,a,b,similarity,cause\n");
    assert_eq!(csv("pairs --evidence"), "a,b,similarity,blocks,look,components,standard_error\n");
}

/// Kept and removed documents agree with the counts by cluster.
#[test]
fn every_live_document_is_kept_or_removed() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let ids =
        |out: &str| lines(out).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    for set in ["", "--set output.keep=longest", "--set output.clusters=star --set output.keep=named"] {
        let list = |emit: &str| {
            place.replay(format!("--emit {emit} {set} feed.jsonl").replace("  ", " ").as_str()).0.out
        };
        let (kept, removed) = (ids(&list("keep")), ids(&list("remove")));
        assert!(kept.is_sorted() && removed.is_sorted());
        assert_eq!((kept.len(), removed.len()), (IDS.len() - 6, 6), "four of five go, and two of three");
        let both: BTreeSet<_> = kept.iter().chain(&removed).map(String::as_str).collect();
        assert_eq!(both, IDS.into(), "the two lists part the documents alive, the one without a token too");
        let mut by_cluster: BTreeMap<String, usize> = BTreeMap::new();
        for line in lines(&list("remove")) {
            let of = |key: &str| line[key].as_str().unwrap().to_owned();
            assert!(kept.contains(&of("kept")) && !kept.contains(&of("id")), "{line}");
            *by_cluster.entry(of("cluster")).or_default() += 1;
        }
        assert_eq!(by_cluster.into_values().collect::<BTreeSet<_>>(), [2, 4].into(), "{set}");
    }
    let (run, _) = place.replay("--emit keep --workers 4 --epoch events:1 feed.jsonl");
    assert_eq!(run.out, place.replay("--emit keep --epoch all feed.jsonl").0.out, "whatever the cut");
}

/// A CSV output continues after a restart, with one header, and without a line that was cut off.
#[test]
fn csv_goes_on_where_another_run_ended() {
    let place = Place::new();
    let deployment = |sink: &str| {
        place.file(
            "here.toml",
            format!("source.inputs = [\"feed.jsonl\"]\nsource.epoch = \"events:3\"\n{sink}"),
        );
    };
    deployment("sink.path = \"out.csv\"");
    let all = feed();
    let (first, _) = all.split_at(all.match_indices('\n').nth(3).unwrap().0 + 1);
    place.file("feed.jsonl", first);
    let run = |more: &str| place.run(&format!("run -c here.toml{more}"));
    assert_eq!(run("").code, 0);
    place.file("feed.jsonl", &all);
    assert_eq!(run("").code, 0);
    let text = place.read("out.csv");
    place.file("out.csv", format!("{text}9,1,\"torn"));
    assert_eq!(run("").code, 0);
    assert_eq!(place.read("out.csv"), text);
    assert_eq!(text.matches("epoch,diff,a,b,similarity").count(), 1);
    let mut pairs = BTreeSet::new();
    for row in csv_rows(&text) {
        let pair = (row["a"].clone(), row["b"].clone(), row["similarity"].clone());
        assert!(if row["diff"] == "1" { pairs.insert(pair) } else { pairs.remove(&pair) }, "{row:?}");
    }
    let expected = rows(&place.replay("--emit pairs feed.jsonl").0.out);
    let expected = expected.iter().map(|row| (row["a"].clone(), row["b"].clone(), row["similarity"].clone()));
    assert_eq!(pairs, expected.collect());

    let corrected = run(" --set threshold=0.5 --reconcile");
    assert!(
        corrected.code == 1 && corrected.err.contains("comma-separated values is not read back"),
        "{corrected:?}"
    );
    deployment("sink.path = \"out.csv\"\nsink.format = \"jsonl\"");
    let other = run("");
    assert!(other.code == 1 && other.err.contains("sink.format"), "{other:?}");
    assert_eq!(place.read("out.csv"), text);
    for sink in ["sink.path = \"out.parquet\"", "sink.format = \"parquet\""] {
        deployment(sink);
        let refused = run("");
        assert_eq!(refused.code, 2, "{refused:?}");
        let why = if cfg!(feature = "parquet") {
            "a Parquet file is whole at its end only"
        } else {
            "the feature `parquet`"
        };
        assert!(refused.err.contains(why), "{refused:?}");
    }
}

/// Rows of one CSV file have the same columns; a file of JSON Lines may have both kinds, and is still read
/// back.
#[test]
fn json_lines_may_mix_pairs_with_and_without_evidence() {
    let place = Place::new();
    let deployment = |sink: &str| {
        let source = "source.inputs = [\"feed.jsonl\"]\nsource.epoch = \"events:3\"\n";
        place.file("here.toml", format!("{source}{sink}"));
    };
    let run = |more: &str| place.run(&format!("run -c here.toml{more}"));
    let all = feed();
    let (first, _) = all.split_at(all.match_indices('\n').nth(3).unwrap().0 + 1);
    place.file("feed.jsonl", first);
    deployment("sink.path = \"out.csv\"");
    assert_eq!(run("").code, 0);
    let text = place.read("out.csv");
    place.file("feed.jsonl", &all);
    for key in ["sink.evidence", "sink.causes"] {
        deployment(&format!("sink.path = \"out.csv\"\n{key} = true"));
        let refused = run("");
        assert!(refused.code == 1 && refused.err.contains(&format!("{key} is not set there")), "{refused:?}");
        assert_eq!(place.read("out.csv"), text);
    }

    // Pairs are added without evidence, removed with it, and added without it again.
    place.file("feed.jsonl", first);
    deployment("sink.path = \"out\"");
    assert_eq!(run("").code, 0);
    place.file("feed.jsonl", format!("{all}{}", delete(IDS[0])));
    deployment("sink.path = \"out\"\nsink.evidence = true");
    assert_eq!(run("").code, 0);
    deployment("sink.path = \"out\"");
    let corrected = run(" --set threshold=0.5 --reconcile");
    assert_eq!(corrected.code, 0, "{corrected:?}");
    let mut pairs = BTreeSet::new();
    for row in rows(&place.read("out")) {
        let pair = (row["a"].clone(), row["b"].clone(), row["similarity"].clone());
        assert!(if row["diff"] == "1" { pairs.insert(pair) } else { pairs.remove(&pair) }, "{row:?}");
    }
    let expected = rows(&place.replay("--emit pairs --set threshold=0.5 feed.jsonl").0.out);
    let expected = expected.iter().map(|row| (row["a"].clone(), row["b"].clone(), row["similarity"].clone()));
    assert_eq!(pairs, expected.collect());
}

/// A run may write tables without deltas; the deltas of later runs still add up to the pairs.
#[cfg(feature = "sqlite")]
#[test]
fn deltas_in_tables_add_up_to_the_pairs_whatever_was_kept_before() {
    let place = Place::new();
    let all = feed();
    let ends: Vec<usize> = all.match_indices('\n').map(|(at, _)| at + 1).collect();
    let run = |events: usize, emit: &str, more: &str| {
        place.file("feed.jsonl", &all[..ends[events - 1]]);
        let source = "source.inputs = [\"feed.jsonl\"]\nsource.epoch = \"events:2\"\n";
        let sink = format!("sink.kind = \"sqlite\"\nsink.path = \"out.db\"\nsink.emit = \"{emit}\"\n");
        place.file("here.toml", format!("{source}{sink}"));
        place.run(&format!("run -c here.toml{more}"))
    };
    let column = |sql: &str| -> Vec<String> {
        let read = rusqlite::Connection::open(place.path("out.db")).unwrap();
        let mut statement = read.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let sums = || {
        column(
            "SELECT a || ' ' || b || ' ' || similarity || ' ' || sum(diff) FROM deltas
             GROUP BY a, b, similarity HAVING sum(diff) <> 0 ORDER BY 1",
        )
    };
    let pairs = || column("SELECT a || ' ' || b || ' ' || similarity || ' 1' FROM pairs ORDER BY 1");
    assert_eq!(run(4, "deltas", "").code, 0);
    assert!(!pairs().is_empty() && sums() == pairs());
    let refused = run(6, "pairs", "");
    assert!(refused.code == 1 && refused.err.contains("sink.emit is \"deltas\" there"), "{refused:?}");
    assert_eq!(run(6, "pairs", " --reconcile").code, 0);
    assert_eq!(sums(), [""; 0], "what is not kept is not there");
    assert_eq!(run(8, "pairs", "").code, 0);
    let again = run(ends.len() - 1, "deltas", "");
    assert!(again.code == 1 && again.err.contains("sink.emit is not set there"), "{again:?}");
    assert_eq!(run(ends.len() - 1, "deltas", " --reconcile").code, 0);
    assert!(!pairs().is_empty());
    assert_eq!(sums(), pairs());
    assert_eq!(run(ends.len(), "deltas", "").code, 0);
    assert_eq!(sums(), pairs());
}

/// By fields: numbers, values in order, the order of the input; documents without a value last, ties by id.
#[test]
fn the_kept_document_is_chosen_by_a_field() {
    let place = Place::new();
    let row = |id: &str, more: &str| {
        let text = words(0..40);
        format!("{{\"id\":\"{id}\",\"text\":\"{text}\"{more}}}\n")
    };
    let feed = [
        row("e", ""),
        row("d", ",\"q\":9.5,\"source\":\"web\""),
        row("c", ",\"q\":10,\"source\":\"wiki\""),
        row("b", ",\"q\":\"10\",\"source\":\"wiki\""),
        row("a", ",\"q\":-3,\"source\":\"books\""),
    ];
    place.file("feed", feed.concat());
    place.file("reversed", feed.iter().rev().cloned().collect::<String>());
    for (keep, kept) in [
        ("max:q", "b"),
        ("min:q", "a"),
        ("priority:web>wiki", "d"),
        ("priority:source:wiki>web", "b"),
        ("priority:q:9.5", "d"),
        ("priority:books>web", "a"),
        ("source-order", "e"),
    ] {
        let run = format!("--emit keep --field q --field source --set output.keep={keep} --epoch events:2");
        let rows = |name: &str| place.replay(&format!("{run} {name}")).0.out;
        assert_eq!(rows("feed"), format!("{{\"id\":\"{kept}\"}}\n"), "{keep}");
        let kept = if keep == "source-order" { "a" } else { kept };
        assert_eq!(rows("reversed"), format!("{{\"id\":\"{kept}\"}}\n"), "{keep}");
    }
    for (set, what) in [
        ("output.keep=max:q", "output.keep: no field \"q\" in source.fields (or --field)"),
        ("output.keep=best", "\"priority:FIELD:A>B>C\""),
    ] {
        let ended = place.run(&format!("replay --emit keep --set {set} feed"));
        assert!(ended.code == 2 && ended.err.contains(what), "{ended:?}");
    }
    // A rule that no document has a value for selects by ids alone.
    for (keep, what) in [
        ("oldest", "no document has a time (--ts-field)"),
        ("max:source", "no document has a number in field \"source\""),
        ("priority:source:Web>Wiki", "no document has one of its values in field \"source\""),
    ] {
        for list in ["keep -o list", "documents -o list.jsonl"] {
            let run = format!("replay --emit {list} --field source --set output.keep={keep} feed");
            let ended = place.run(&run);
            assert!(ended.code == 1 && ended.err.contains(what), "{run}: {ended:?}");
            assert!(!place.path("list").exists() && !place.path("list.jsonl").exists(), "{run}");
        }
    }
    let ended = place.run("replay --emit pairs --set output.keep=max:q feed");
    assert_eq!(ended.code, 0, "no list asks for the field: {ended:?}");
}

/// A name that says another format or a compression is refused before anything is read, for rows and for
/// copied records.
#[test]
fn a_name_says_what_is_in_the_file() {
    let place = Place::new();
    place.file("a.jsonl", "{\"id\":\"a\",\"text\":\"one two three\"}\n");
    place.file("a.csv", "id,text\na,one two three\n");
    for emit in ["deltas", "pairs", "clusters", "cluster-deltas", "keep", "remove", "decisions", "rejected:3"]
    {
        for (name, why) in [
            ("k.jsonl.zst", "is compressed by its name, and rows are written as they are: leave .zst out"),
            ("k.csv.gz", "is compressed by its name"),
            ("k.jsonl.xz", "is compressed by its name"),
            ("k.tsv", "is tsv by its name: rows are \"jsonl\", \"csv\", \"parquet\" or \"arrow\""),
            ("k.warc", "is warc by its name"),
        ] {
            let run = place.run(&format!("replay --emit {emit} a.jsonl -o {name}"));
            assert!(run.code == 2 && run.err.contains(why), "{emit} {name}: {run:?}");
            assert!(!place.path(name).exists(), "{emit} {name}");
        }
    }
    for emit in ["documents", "removed-documents"] {
        for (input, name, why) in [
            ("a.csv", "k.parquet", "is parquet by its name, and records are written as they are read"),
            ("a.csv", "k.jsonl.gz", "is jsonl by its name"),
            ("a.jsonl", "k.csv", "\"a.jsonl\" is jsonl"),
            ("a.jsonl", "k.jsonl.bz2", "ends in .bz2: records are compressed as .gz or .zst"),
            ("a.jsonl", "k.xz", "ends in .xz"),
        ] {
            let run = place.run(&format!("replay --emit {emit} {input} -o {name}"));
            assert!(run.code == 2 && run.err.contains(why), "{emit} {name}: {run:?}");
            assert!(!place.path(name).exists(), "{emit} {name}");
        }
    }
    // A format that is set counts more than that of the name; names without a format are free.
    place.replay("--emit keep --output-format jsonl a.jsonl -o k.tsv");
    place.replay("--emit keep a.jsonl -o k.txt");
    assert_eq!(place.read("k.tsv"), place.read("k.txt"));
    place.replay("--emit documents a.jsonl -o k.zstd");
    let packed = std::fs::read(place.path("k.zstd")).unwrap();
    assert_eq!(zstd::decode_all(&*packed).unwrap(), std::fs::read(place.path("a.jsonl")).unwrap());
}

/// What the headers of the inputs show is refused before anything is read.
#[test]
fn headers_are_checked_before_the_first_record() {
    let place = Place::new();
    place.file("a.csv", "id,text,m_of\na,one two three,x\n");
    place.file("texts/a.txt", "one two three");
    place.file("texts/b.txt", "one two three");
    for (arguments, why) in [
        ("a.csv --mark m -o k.csv", "--mark: \"a.csv\": there is a column \"m_of\" already"),
        (
            "texts -o k",
            "\"texts/a.txt\" and 1 more: it is one document and has no records: --emit keep names",
        ),
        ("texts -o k --set text.split=line", "and with text.split --emit remove the parts to cut"),
    ] {
        let run = place.run(&format!("replay --emit documents {arguments}"));
        assert!(run.code == 2 && run.err.contains(why), "{arguments}: {run:?}");
        assert!(!place.path("k").exists() && !place.path("k.csv").exists());
    }
    #[cfg(feature = "parquet")]
    {
        place.run("generate --documents 5 -o x.parquet");
        place.replay("--emit documents --mark m x.parquet -o y.parquet");
        for (arguments, why) in [
            ("x.parquet y.parquet --ids last -o k.parquet", "have different columns: name a folder"),
            ("y.parquet --mark m -o k.parquet", "--mark: \"y.parquet\": there is a column \"m_cluster\""),
        ] {
            let run = place.run(&format!("replay --emit documents {arguments}"));
            assert!(run.code == 2 && run.err.contains(why), "{arguments}: {run:?}");
        }
    }
}

/// The summary and the stats say what was listed, and that no delta was written.
#[test]
fn a_list_is_summed_up() {
    let place = Place::new();
    let (first, second) = (words(0..40), words(100..140));
    let feed = [("a", &first), ("b", &first), ("c", &second)];
    place.file("f.jsonl", feed.iter().map(|(id, text)| upsert(id, text)).collect::<String>());
    for emit in ["keep", "remove", "documents", "removed-documents"] {
        let (run, stats) = place.replay(&format!("--emit {emit} f.jsonl -o out.jsonl"));
        assert!(run.err.contains("list        2 documents kept, 1 removed (rule: smallest)\n"), "{run:?}");
        assert!(run.err.contains("pairs       1 alive, 1 delta: 1 insert\n"), "{run:?}");
        assert_eq!(
            stats["listed"],
            serde_json::json!({ "of": "documents", "kept": 2, "removed": 1, "rule": "smallest" })
        );
    }
    for emit in ["remove", "documents"] {
        let (run, stats) = place.replay(&format!("--emit {emit} --set text.split=line f.jsonl -o out.jsonl"));
        let bytes = first.len();
        assert!(
            run.err.contains(&format!("list        2 units kept, 1 removed with {bytes} B (rule: ")),
            "{run:?}"
        );
        assert_eq!(stats["listed"]["removed_bytes"], bytes);
    }
    let (run, stats) = place.replay("f.jsonl -o out.jsonl");
    assert!(run.err.contains("1 delta written") && stats["listed"].is_null(), "{run:?}");
}

/// What goes nowhere is counted, and views have it.
#[test]
fn nowhere_is_a_place() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", &page(0..0, 0)) + &upsert("b", &page(0..0, 0)));
    for emit in ["deltas", "pairs", "cluster-deltas", "clusters", "keep", "remove", "decisions"] {
        let replayed = place.run(&format!("replay --emit {emit} -o null: --stats s.json feed.jsonl"));
        assert_eq!((replayed.code, replayed.out.as_str()), (0, ""), "{emit}: {replayed:?}");
        assert!(replayed.err.contains("1 alive, 1 delta"), "{emit}: {replayed:?}");
    }
    let config = "source.inputs = [\"feed.jsonl\"]\nsink.kind = \"null\"\n[[output]]\npath = \"p.jsonl\"\n";
    place.file("run.toml", config.to_owned() + "answer = \"pairs\"\n");
    let ran = place.run("run -c run.toml");
    assert!(ran.code == 0 && ran.out.is_empty(), "{ran:?}");
    assert_eq!(place.read("p.jsonl").lines().count(), 1);
    place.file("run.toml", config);
    let refused = place.run("check -c run.toml");
    assert!(refused.code == 2 && refused.err.contains("has no mark there"), "{refused:?}");
}
