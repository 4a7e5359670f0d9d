//! Containment from end to end: both shares in rows, tables, decisions and notices, through restarts and
//! corrections; what is removed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Unbounded};

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::{lines, upsert};

/// So that not all of these texts are pairs.
const PIPELINE: &str = "-p contained --set threshold=0.75";

/// Words of one sequence.
fn words(of: std::ops::Range<usize>) -> String {
    of.map(|n| format!("w{n} ")).collect()
}

/// A book of 116 shingles; a chapter of 46 of them, which is edited later, so that 41 of its 46 are the
/// book's; a note of 46, of which the chapter has 36 at first.
fn feed() -> String {
    let with_ts = |ts: u32, event: String| format!("{{\"ts\":{ts},{}", &event[1..]);
    let edited = words(10..35) + "another " + &words(36..60);
    [
        with_ts(1, upsert("book", &words(0..120))),
        with_ts(1, upsert("chapter", &words(10..60))),
        with_ts(1, upsert("apart", &words(500..560))),
        with_ts(2, upsert("note", &words(20..70))),
        with_ts(3, upsert("chapter", &edited)),
    ]
    .concat()
}

const BOOK_AND_CHAPTER: &str = r#""a":"book","b":"chapter","similarity":1.0,"in_a":1.0,"in_b":0.396551724"#;
const BOOK_AND_EDITED: &str =
    r#""a":"book","b":"chapter","similarity":0.891304348,"in_a":0.891304348,"in_b":0.353448276"#;
const BOOK_AND_NOTE: &str = r#""a":"book","b":"note","similarity":1.0,"in_a":1.0,"in_b":0.396551724"#;
const CHAPTER_AND_NOTE: &str =
    r#""a":"chapter","b":"note","similarity":0.782608696,"in_a":0.782608696,"in_b":0.782608696"#;

#[test]
fn golden_shares_of_a_replay() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let expected = [
        format!("{{\"epoch\":1,\"diff\":1,{BOOK_AND_CHAPTER}}}\n"),
        format!("{{\"epoch\":2,\"diff\":1,{BOOK_AND_NOTE}}}\n"),
        format!("{{\"epoch\":2,\"diff\":1,{CHAPTER_AND_NOTE}}}\n"),
        format!("{{\"epoch\":3,\"diff\":-1,{BOOK_AND_CHAPTER}}}\n"),
        format!("{{\"epoch\":3,\"diff\":1,{BOOK_AND_EDITED}}}\n"),
        format!("{{\"epoch\":3,\"diff\":-1,{CHAPTER_AND_NOTE}}}\n"),
    ];
    for workers in [1, 2, 4] {
        let (run, _) = place.replay(&format!("{PIPELINE} --epoch ts --workers {workers} feed.jsonl"));
        assert_eq!(run.out, expected.concat(), "{workers} workers");
    }
    let csv = place.replay(&format!("{PIPELINE} --emit pairs --output-format csv feed.jsonl")).0.out;
    let rows = "book,chapter,0.891304348,0.891304348,0.353448276\r\nbook,note,1.0,1.0,0.396551724\r\n";
    assert_eq!(
        csv.replace('\n', "\r\n").replace("\r\r", "\r"),
        format!("a,b,similarity,in_a,in_b\r\n{rows}")
    );
}

/// The edited chapter has 0.89 of its shingles in the book: it goes at 0.8, and stays at 0.95.
#[test]
fn what_is_contained_in_what_stays_is_removed() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let listed = |words: &str| place.replay(&format!("{PIPELINE} {words} feed.jsonl")).0.out;
    let note = "{\"id\":\"note\",\"kept\":\"book\",\"cluster\":\"book\"}\n";
    assert_eq!(listed("--emit remove"), note);
    let chapter = note.replace("note", "chapter");
    assert_eq!(listed("--emit remove --set output.remove_if=contained:0.8"), chapter + note);
    assert_eq!(listed("--emit keep"), "{\"id\":\"apart\"}\n{\"id\":\"book\"}\n{\"id\":\"chapter\"}\n");
    // What cannot be decided by estimates is refused.
    for (words, expected) in [
        ("--emit remove --set filter.verify=sketch", "set filter.verify = \"exact\""),
        ("--set output.remove_if=contained:0.5", "below threshold"),
        ("--set output.remove_if=within", "\"contained:SHARE\""),
        ("--emit documents -o kept.jsonl --set filter.verify=sketch", "set filter.verify = \"exact\""),
        ("--against feed.jsonl --emit remove", "is an input, too"),
    ] {
        let refused = place.run(&format!("replay {PIPELINE} {words} feed.jsonl"));
        assert!(refused.code == 2 && refused.err.contains(expected), "{words}: {refused:?}");
    }
    let refused = place.run("replay -p minhash --set output.remove_if=contained:0.9 feed.jsonl");
    assert!(refused.code == 2 && refused.err.contains("output.remove_if"), "{refused:?}");
}

/// A text of fewer words than are compared is counted, and said.
#[test]
fn short_texts_are_counted() {
    let place = Place::new();
    place.file("feed.jsonl", [upsert("book", &words(0..120)), upsert("line", &words(10..35))].concat());
    let (run, stats) = place.replay("-p contained --emit pairs feed.jsonl");
    assert_eq!((&stats["too_short"], run.out.as_str()), (&json!(1), ""));
    assert!(run.err.contains("1 text with fewer words than filter.least_words"), "{}", run.err);
    let (_, of_all) = place.replay("-p contained --set filter.least_words=25 --emit pairs feed.jsonl");
    assert_eq!((&of_all["too_short"], &of_all["pairs"]), (&json!(0), &json!(1)));
}

/// The records of both lists, as they were read; marks; a reference, which stays whatever lies in it.
#[test]
fn records_of_both_lists_are_copied() {
    let place = Place::new();
    let feed = feed();
    place.file("feed.jsonl", &feed);
    let line: Vec<&str> = feed.split_inclusive('\n').collect();
    let set = "--set output.remove_if=contained:0.8";
    let copied = |emit: &str| {
        place.replay(&format!("{PIPELINE} {set} --emit {emit} feed.jsonl -o out.jsonl"));
        place.read("out.jsonl")
    };
    assert_eq!(copied("documents"), [line[0], line[2]].concat());
    assert_eq!(copied("removed-documents"), [line[3], line[4]].concat());
    let marks = lines(&copied("documents --mark m"));
    let marks: Vec<[&Value; 4]> =
        marks.iter().map(|row| ["id", "m_kept", "m_of", "m_cluster"].map(|key| &row[key])).collect();
    let of_book = |id: Value, kept: Value, of: Value| [id, kept, of, json!("book")];
    let expected = [
        of_book(json!("book"), json!(true), Value::Null),
        [json!("apart"), json!(true), Value::Null, Value::Null],
        of_book(json!("note"), json!(false), json!("book")),
        of_book(json!("chapter"), json!(false), json!("book")),
    ];
    assert_eq!(marks, expected.iter().map(|row| row.each_ref()).collect::<Vec<_>>());

    // The old chapter has what lies in it removed, and the book, in which it lies, is kept.
    place.file("old.jsonl", upsert("old", &words(10..60)));
    place.file(
        "new.jsonl",
        [upsert("book", &words(0..120)), upsert("copy", &words(10..60)), upsert("part", &words(12..58))]
            .concat(),
    );
    let listed =
        |emit: &str| place.replay(&format!("{PIPELINE} --against old.jsonl --emit {emit} new.jsonl")).0.out;
    let row = |id: &str, kept: &str, old: bool| {
        format!("{{\"id\":\"{id}\",\"kept\":\"{kept}\",\"cluster\":\"{kept}\",\"old\":{old}}}\n")
    };
    assert_eq!(listed("keep"), "{\"id\":\"book\"}\n");
    assert_eq!(listed("remove"), row("copy", "old", true) + &row("part", "old", true));
    assert_eq!(lines(&listed("pairs")).len(), 6, "three with the old one, three without");
}

/// Texts that are hard on containment: of one word, equal ones, around the least number of words, parts of
/// others, one that consists of all others, and one of a megabyte. Ids are in another order than texts.
fn odd_texts() -> Vec<(String, String)> {
    let part = |range: std::ops::Range<usize>| words(range).trim_end().to_owned();
    let short: Vec<String> = (0..12)
        .flat_map(|n| {
            let start = 1000 * n;
            [
                part(start..start + 29 + n % 3),
                part(start + 5..start + 35 + n % 5),
                part(start..start + 80 + n),
            ]
        })
        .collect();
    let all = short.join(" ");
    let long = part(100_000..230_000) + " " + &short[2] + " " + &short[6];
    assert!(long.len() > 1_000_000);
    let others = ["one", "one", "two", "one two", &short[5], &short[5], &all, &long];
    let texts = short.iter().map(String::as_str).chain(others);
    texts.enumerate().map(|(n, text)| (format!("{:02}", n * 37 % 100), text.to_owned())).collect()
}

/// The pairs by the definition: copies, and texts of at least 30 words of which the smaller has enough of its
/// shingles in the other.
fn brute_force(texts: &[(String, String)], threshold: f64) -> BTreeMap<[&str; 2], [f64; 2]> {
    let sets: BTreeMap<&str, (&str, BTreeSet<Vec<&str>>)> = texts
        .iter()
        .map(|(id, text)| {
            let words: Vec<&str> = text.split(' ').collect();
            let of_text = words.windows(5.min(words.len())).map(<[_]>::to_vec).collect();
            (&**id, (&**text, of_text))
        })
        .collect();
    let mut pairs = BTreeMap::new();
    for (a, (text, of_a)) in &sets {
        for (b, (other, of_b)) in sets.range::<str, _>((Excluded(*a), Unbounded)) {
            let shared = of_a.intersection(of_b).count() as f64;
            let shares = [shared / of_b.len() as f64, shared / of_a.len() as f64];
            let is_compared = [text, other].iter().all(|text| text.split(' ').count() >= 30);
            if text == other || is_compared && shared > 0.0 && shares[0].max(shares[1]) >= threshold {
                pairs.insert([*a, *b], shares.map(|share| (share * 1e9).round() / 1e9));
            }
        }
    }
    pairs
}

#[test]
fn odd_texts_are_paired_by_the_definition() {
    let place = Place::new();
    let texts = odd_texts();
    place.file("feed.jsonl", texts.iter().map(|(id, text)| upsert(id, text)).collect::<String>());
    let listed = |words: &str| lines(&place.replay(&format!("-p contained {words} feed.jsonl")).0.out);
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    for threshold in ["0.1", "0.5", "1.0"] {
        let share: f64 = threshold.parse().expect("a number");
        let remove_if = share.max(0.95);
        let settings = format!("--set threshold={threshold} --set output.remove_if=contained:{remove_if}");
        let expected = brute_force(&texts, share);
        for (scale, workers) in [(1, 1), (1, 3), (8, 2), (65_536, 2)] {
            let emit = format!("{settings} --set sketch.scale={scale} --workers {workers} --emit pairs");
            let found = listed(&emit);
            for row in &found {
                let ids = [&row["a"], &row["b"]].map(text);
                let shares = expected.get(&ids.each_ref().map(String::as_str));
                let written = [&row["in_a"], &row["in_b"]].map(|number| number.as_f64().expect("a number"));
                assert_eq!(shares, Some(&written), "1 of {scale}: {row}");
            }
            // With 1 of 65,536 only the least values have blocks, which two texts of one size share.
            let all = if scale == 1 { expected.len() } else { 4 };
            assert!(found.len() >= all, "{threshold}, 1 of {scale}: {} of {all}", found.len());
        }
        // From the largest down, each that lies in one that stays goes.
        let removed = listed(&format!("{settings} --set sketch.scale=1 --emit remove"));
        let removed: BTreeMap<String, String> =
            removed.iter().map(|row| (text(&row["id"]), text(&row["kept"]))).collect();
        let share_in = |small: &str, large: &str| match expected.get(&[small.min(large), small.max(large)]) {
            Some([in_a, in_b]) => {
                if small < large {
                    *in_b
                } else {
                    *in_a
                }
            }
            None => 0.0,
        };
        assert!(
            removed.iter().all(|(id, kept)| share_in(id, kept) >= remove_if && !removed.contains_key(kept))
        );
        let kept: Vec<&str> =
            texts.iter().map(|(id, _)| &**id).filter(|id| !removed.contains_key(*id)).collect();
        let both = kept.iter().flat_map(|a| kept.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b);
        let left: Vec<_> = both.filter(|(a, b)| share_in(a, b) >= remove_if).collect();
        assert!(left.is_empty() && removed.len() > 20, "{threshold}: {left:?}, {} removed", removed.len());
    }
}

/// The pairs to which the lines of an output accumulate, as they are written.
fn pairs(out: &str) -> Vec<Value> {
    let mut pairs: Vec<Value> = Vec::new();
    for mut line in lines(out) {
        let of = line.as_object_mut().expect("an object");
        drop(of.remove("epoch"));
        let diff = of.remove("diff").map_or(1, |diff| diff.as_i64().expect("a number"));
        if diff > 0 {
            pairs.push(line);
        } else {
            let at = pairs.iter().position(|pair| *pair == line).expect("what is removed is there");
            pairs.remove(at);
        }
    }
    pairs.sort_by_key(|pair| [pair["a"].to_string(), pair["b"].to_string()]);
    pairs
}

fn deployment(place: &Place, sink: &str) {
    let text = format!(
        "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"ts\"\n[state]\npath = \"state\"\n\
         [sink]\n{sink}\n[watch]\ninputs = [\"list.jsonl\"]\n[notices]\npath = \"notices.jsonl\"\n"
    );
    place.file("run.toml", text);
    place.file("list.jsonl", upsert("leak", &words(30..80)));
}

/// Runs with the first three events, then with all.
fn run_twice(place: &Place) {
    let whole = feed();
    let cut = whole.lines().take(3).map(|line| format!("{line}\n")).collect::<String>();
    for part in [cut, whole] {
        place.file("feed.jsonl", part);
        let run = place.run(&format!("run -c run.toml {PIPELINE}"));
        assert_eq!(run.code, 0, "{run:?}");
    }
}

/// A file through a restart, and corrected to another measure and back.
#[test]
fn shares_through_restarts_and_corrections() {
    let place = Place::new();
    deployment(&place, "path = \"out.jsonl\"");
    run_twice(&place);
    let fresh = |pipeline: &str| pairs(&place.replay(&format!("{pipeline} --emit pairs feed.jsonl")).0.out);
    let contained = fresh(PIPELINE);
    assert_eq!(contained.len(), 2);
    assert_eq!(pairs(&place.read("out.jsonl")), contained);
    // The leak has 46 shingles: 46 are the book's, and 26 and 36 are those of the two others.
    let notices: Vec<Value> = lines(&place.read("notices.jsonl"));
    assert_eq!(notices.len(), 2, "{notices:?}");
    let expected = json!({
        "epoch": 1, "diff": 1, "watch": "leak", "id": "book", "similarity": 1.0,
        "in_id": 1.0, "of_id": 0.396551724,
    });
    assert_eq!(notices[0], expected);
    assert_eq!((&notices[1]["id"], &notices[1]["similarity"]), (&json!("note"), &json!(0.782608696)));
    assert!(notices[1].get("in_id").is_none(), "of texts of one size both shares are the similarity");
    for pipeline in ["-p exact", PIPELINE] {
        let refused = place.run(&format!("run -c run.toml {pipeline}"));
        assert!(refused.code == 1 && refused.err.contains("--reconcile"), "{refused:?}");
        let corrected = place.run(&format!("run -c run.toml {pipeline} --reconcile"));
        assert_eq!(corrected.code, 0, "{corrected:?}");
        assert_eq!(pairs(&place.read("out.jsonl")), fresh(pipeline), "{pipeline}");
    }
}

#[test]
fn decisions_have_shares() {
    let place = Place::new();
    deployment(&place, "path = \"out.jsonl\"\nemit = \"decisions\"\ndecisions = \"current\"");
    run_twice(&place);
    let read = place.read("out.jsonl");
    let last = |id: &str| lines(&read).into_iter().rfind(|line| line["id"] == id).expect("a decision");
    let chapter =
        json!([{"id": "book", "similarity": 0.891304348, "in_id": 0.891304348, "of_id": 0.353448276}]);
    assert_eq!(last("chapter")["repeats"], chapter);
    let book = json!([
        {"id": "note", "similarity": 1.0, "in_id": 0.396551724, "of_id": 1.0},
        {"id": "chapter", "similarity": 0.891304348, "in_id": 0.353448276, "of_id": 0.891304348},
    ]);
    assert_eq!(last("book")["repeats"], book);
    // Nothing is decided again.
    assert_eq!(place.run(&format!("run -c run.toml {PIPELINE}")).code, 0);
    assert_eq!(place.read("out.jsonl"), read);
}

/// Rows of a query as words; numbers as they are in JSON Lines, which databases write in other ways.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn read_rows(rows: impl IntoIterator<Item = String>) -> Vec<String> {
    let word = |word: &str| word.parse().map_or(word.to_owned(), |number: f64| json!(number).to_string());
    rows.into_iter().map(|row| row.split(' ').map(word).collect::<Vec<_>>().join(" ")).collect()
}

/// Pairs and deltas in tables, through a restart, and corrected to another measure and back from what is read
/// of them. `views` selects the names of views.
#[cfg(any(feature = "sqlite", feature = "postgres"))]
fn have_shares(place: &Place, sink: &str, views: &str, rows: impl Fn(&str) -> Vec<String>) {
    deployment(place, &format!("{sink}\nemit = \"deltas\""));
    run_twice(place);
    let rows = |sql: &str| read_rows(rows(sql));
    let of_pairs = "SELECT concat_ws(' ', a, b, similarity, in_a, in_b) FROM pairs ORDER BY a, b";
    let expected = ["book chapter 0.891304348 0.891304348 0.353448276", "book note 1.0 1.0 0.396551724"];
    assert_eq!(rows(of_pairs), expected);
    let of_deltas = "SELECT concat_ws(' ', a, b, max(similarity), in_a, in_b) FROM deltas
                     GROUP BY a, b, in_a, in_b HAVING sum(diff) = 1 ORDER BY a, b";
    assert_eq!(rows(of_deltas), expected, "deltas add up to the pairs");
    assert!(rows(views).is_empty(), "clusters do not say what may be removed");
    let deltas = || rows("SELECT concat_ws(' ', count(*), '') FROM deltas");
    let before = deltas();
    let same = place.run(&format!("run -c run.toml {PIPELINE} --set output.expand_limit=999 --reconcile"));
    assert_eq!(same.code, 0, "{same:?}");
    assert_eq!(deltas(), before, "pairs are read back as they are");
    let corrected = place.run("run -c run.toml -p exact --set threshold=0.3 --reconcile");
    assert_eq!(corrected.code, 0, "{corrected:?}");
    assert_eq!(rows(views), ["kept", "removed"]);
    let read = rows(of_pairs);
    assert!(read.len() == 3 && read.iter().all(|row| !expected.contains(&row.as_str())), "{read:?}");
    let back = place.run(&format!("run -c run.toml {PIPELINE} --reconcile"));
    assert_eq!(back.code, 0, "{back:?}");
    assert_eq!(rows(of_pairs), expected);
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_have_shares() {
    let place = Place::new();
    let views = "SELECT name FROM sqlite_schema WHERE type = 'view' ORDER BY name";
    have_shares(&place, "kind = \"sqlite\"\npath = \"out.db\"", views, |sql| {
        let connection = rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
        let mut query = connection.prepare(sql).expect("the table is there");
        let rows = query.query_map([], |row| row.get::<_, String>(0)).expect("rows");
        rows.collect::<Result<_, _>>().expect("rows")
    });
}

#[cfg(feature = "postgres")]
#[test]
fn tables_of_a_server_have_shares() {
    let server = match crate::server::Server::start() {
        Ok(server) => server,
        Err(why) => {
            // Past the capture of test output.
            let line = format!("SKIPPED tables_of_a_server_have_shares: {why}\n");
            return std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes()).expect("it is open");
        }
    };
    let place = Place::new();
    let sink = format!("kind = \"postgres\"\nurl = {:?}", server.url());
    let views =
        "SELECT table_name::text FROM information_schema.views WHERE table_schema = 'dupflow' ORDER BY 1";
    have_shares(&place, &sink, views, |sql| {
        let mut client = server.client();
        client.batch_execute("SET search_path = dupflow, public").expect("the server answers");
        client.query(sql, &[]).expect("the table is there").iter().map(|row| row.get(0)).collect()
    });
}

/// The table of a query has both shares, where they differ from the similarity.
#[test]
fn a_query_prints_both_shares() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    place.file("asked", words(20..70));
    let run = place.run(&format!("query {PIPELINE} --corpus feed.jsonl asked"));
    assert!(run.out.starts_with("similarity  in document  of document  standard error"), "{run:?}");
    let row = run.out.lines().find(|line| line.ends_with("  book")).unwrap_or_default();
    assert!(row.starts_with("    1.0000       1.0000       0.3966"), "{run:?}");
}
