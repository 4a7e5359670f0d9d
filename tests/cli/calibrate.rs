//! `dupflow calibrate`: drawn pairs, answers, and the threshold they give.
//!
//! Bug classes: an answer that is lost or counted twice; a draw that depends on the number of workers; a
//! share that is not that of the corpus; a pipeline file that is another pipeline.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeMap;
use std::io::Write;

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{lines, upsert, words};

fn corpus(place: &Place) {
    let made =
        "generate --documents 1500 --groups 150 --min-words 30 --max-words 60 --seed 4 -o corpus.jsonl";
    assert_eq!(place.run(&format!("{made} --labels groups")).code, 0);
}

/// The answer for a pair with these ids and a similarity: yes for similar ones, by chance for others.
fn is_duplicate(pair: &Value) -> bool {
    let bytes = |member: &str| pair[member].as_str().unwrap().bytes().map(u32::from).sum::<u32>();
    pair["similarity"].as_f64().unwrap() >= 0.6 || (bytes("a") + bytes("b")) % 2 == 0
}

/// Writes the answers for drawn pairs.
fn judge(place: &Place, options: &str) -> Vec<Value> {
    let run = place.run(&format!("calibrate corpus.jsonl --from 0.2 --unjudged open.jsonl {options}"));
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.contains("no estimate yet: each band needs a judged pair"), "{run:?}");
    let drawn = lines(&place.read("open.jsonl"));
    let line = |pair: &Value| {
        assert!(
            pair["duplicate"].is_null() && pair["text_a"].is_string() && pair["text_b"].is_string(),
            "{pair}"
        );
        format!("{{\"a\":{},\"b\":{},\"duplicate\":{}}}\n", pair["a"], pair["b"], is_duplicate(pair))
    };
    place.file("judged.jsonl", drawn.iter().map(line).collect::<String>());
    drawn
}

/// The rows of the last table, as text.
fn thresholds(out: &str) -> Vec<Vec<f64>> {
    let (_, table) = out.split_once("F1\n").unwrap_or_else(|| panic!("no table in {out}"));
    let row = |line: &str| line.split_whitespace().map(|cell| cell.parse().ok()).collect();
    table.lines().map_while(row).filter(|row: &Vec<f64>| !row.is_empty()).collect()
}

/// All pairs are judged, so that shares are exact: they are counted here once more.
#[test]
fn shares_are_those_of_the_corpus() {
    let place = Place::new();
    corpus(&place);
    let drawn = judge(&place, "--pairs 1000000");
    let run =
        place.run("calibrate corpus.jsonl --from 0.2 --pairs 1000000 --labels judged.jsonl -o mine.toml");
    assert_eq!(run.code, 0, "{run:?}");
    let (pairs, _) = place.replay("--emit pairs --epoch all --set threshold=0.2 corpus.jsonl");
    let pairs = lines(&pairs.out);
    assert_eq!(pairs.len(), drawn.len());
    let from = |threshold: f64, only: bool| {
        let is = |pair: &&Value| {
            pair["similarity"].as_f64().unwrap() >= threshold && (!only || is_duplicate(pair))
        };
        pairs.iter().filter(is).count() as f64
    };
    let rows = thresholds(&run.out);
    assert!(
        rows.len() > 8 && rows.iter().any(|row| row[2] < 0.999) && rows.iter().any(|row| row[5] < 0.999),
        "{rows:?}"
    );
    let mut best = (0.0, 0.0);
    for row in &rows {
        let [threshold, found, precision, low, high, recall, ..] = row[..] else { panic!("{row:?}") };
        let (right, possible) = (from(threshold, true), from(0.0, true));
        assert!((found - from(threshold, false)).abs() < 0.5, "{row:?}");
        for (printed, exact) in [
            (precision, right / found),
            (low, right / found),
            (high, right / found),
            (recall, right / possible),
        ] {
            assert!((printed - exact).abs() < 6e-4, "{row:?}: {exact}");
        }
        let f1 = 2.0 * right / (found + possible);
        if f1 >= best.0 {
            best = (f1, threshold);
        }
    }
    // The pipeline file is the built-in one with the threshold of the greatest F1.
    let of = |pipeline: &str, set: &str| {
        let plan: Value =
            serde_json::from_str(&place.run(&format!("plan --format json -p {pipeline}{set}")).out).unwrap();
        plan["scheme"].clone()
    };
    let file = place.read("mine.toml");
    assert!(file.starts_with(&format!("# threshold {}: precision ", best.1)), "{file} {best:?}");
    assert!(file.contains(&format!("\nthreshold = {}\n", best.1)), "{file}");
    assert_eq!(of("./mine.toml", ""), of("minhash", &format!(" --set threshold={}", best.1)));
}

/// Intervals of a draw hold the exact shares, and a goal is reached. The seed is pinned.
#[test]
fn a_draw_is_enough_and_is_the_same_with_any_workers() {
    let place = Place::new();
    corpus(&place);
    let whole = judge(&place, "--pairs 1000000");
    let few = judge(&place, "--pairs 120 --workers 1");
    assert_eq!(few, judge(&place, "--pairs 120 --workers 3"));
    assert!(few.len() == 120 && few.iter().all(|pair| whole.contains(pair)));
    let run =
        place.run("calibrate corpus.jsonl --from 0.2 --pairs 120 --labels judged.jsonl --precision 0.95");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.out.contains("120 of 120 drawn pairs judged")
            && run.out.contains("it has a precision of 0.95 or more")
            && run.out.contains(") of the duplicates from 0.2 on"),
        "{run:?}"
    );
    for row in thresholds(&run.out) {
        let [threshold, _, precision, low, high, recall, lowest, highest, _] = row[..] else {
            panic!("{row:?}")
        };
        assert!(low <= precision && precision <= high && lowest <= recall && recall <= highest, "{row:?}");
        let from =
            |least: f64| whole.iter().filter(move |pair| pair["similarity"].as_f64().unwrap() >= least);
        let right = from(threshold).filter(|pair| is_duplicate(pair)).count() as f64;
        let shares = [
            right / from(threshold).count() as f64,
            right / from(0.0).filter(|pair| is_duplicate(pair)).count() as f64,
        ];
        // One interval of twenty does not hold its share; with this seed each does within 0.03.
        assert!(low - 0.03 <= shares[0] && shares[0] <= high + 0.03, "{row:?}: {shares:?}");
        assert!(lowest - 0.03 <= shares[1] && shares[1] <= highest + 0.03, "{row:?}: {shares:?}");
    }
    let fewer = place.run("calibrate corpus.jsonl --from 0.2 --pairs 20 --labels judged.jsonl --recall 0.5");
    assert!(fewer.out.contains("were not drawn and do not count"), "{fewer:?}");
}

#[test]
fn answers_are_kept_as_they_are_given() {
    let place = Place::new();
    corpus(&place);
    let ask = |typed: &'static str| {
        place.run_with(
            "calibrate corpus.jsonl --pairs 30 --labels judged.jsonl --ask",
            move |input: &mut dyn Write| {
                input.write_all(typed.as_bytes()).unwrap();
            },
        )
    };
    let run = ask("y\nperhaps\nn\nu\ny\ns\nq\n");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.out.contains("── pair 1 of 30 ──") && run.out.contains("── pair 4 of 30 ──"), "{run:?}");
    assert!(run.out.contains("2 of 30 drawn pairs judged"), "{run:?}");
    let mut judged = BTreeMap::new();
    for line in lines(&place.read("judged.jsonl")) {
        judged.insert((line["a"].to_string(), line["b"].to_string()), line["duplicate"].clone());
    }
    assert_eq!(judged.values().collect::<Vec<_>>(), [&Value::Bool(true); 2]);
    // The next call asks for the others, and the end of the input is as "q".
    let again = ask("n\n");
    assert!(
        again.out.contains("── pair 1 of 28 ──") && again.out.contains("3 of 30 drawn pairs judged"),
        "{again:?}"
    );
    let page = place.run("calibrate corpus.jsonl --pairs 30 --labels judged.jsonl --page page.html");
    assert_eq!(page.code, 0, "{page:?}");
    assert_eq!(place.read("page.html").matches("data-yes=").count(), 27);
}

/// Without a duplicate no threshold is chosen; what the answers say of the corpus is printed.
#[test]
fn no_duplicates_leave_an_upper_bound() {
    let place = Place::new();
    corpus(&place);
    let drawn = judge(&place, "--pairs 60");
    let no = |pair: &Value| format!("{{\"a\":{},\"b\":{},\"duplicate\":false}}\n", pair["a"], pair["b"]);
    place.file("judged.jsonl", drawn.iter().map(no).collect::<String>());
    for goal in ["", " --precision 0.9", " --recall 0.9"] {
        let run =
            place.run(&format!("calibrate corpus.jsonl --from 0.2 --pairs 60 --labels judged.jsonl{goal}"));
        assert_eq!(run.code, 1, "{run:?}");
        // Recall is unknown, so the first row has fewer numbers than others.
        let (_, table) = run.out.split_once("F1\n").unwrap();
        let all: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
        let high: f64 = all[4].parse().unwrap();
        let share = format!("from 0.2 on at most the share {high:.3} is (95 %)");
        assert!(0.0 < high && high < 0.2 && run.err.contains(&share), "{run:?}");
        assert!(run.err.contains("no threshold: none of 60 judged pairs is a duplicate; of "), "{run:?}");
        assert!(run.err.contains("--pairs") && run.err.contains("--from"), "{run:?}");
    }
}

/// A pipeline is judged by the answers alone: pairs without one are neither right nor wrong.
#[test]
fn an_evaluation_takes_the_answers() {
    let place = Place::new();
    corpus(&place);
    let drawn = judge(&place, "--pairs 200");
    let run = place.run(
        "evaluate pipelines --corpus corpus.jsonl --judged judged.jsonl -p exact --thresholds 0.2,0.9 -o out",
    );
    assert_eq!(run.code, 0, "{run:?}");
    let table = place.read("out/pipelines_quality.csv");
    let rows: Vec<Vec<&str>> = table.lines().skip(1).map(|line| line.split(',').collect()).collect();
    let duplicates = drawn.iter().filter(|pair| is_duplicate(pair)).count().to_string();
    assert_eq!(
        (rows.len(), rows[0][3], rows[1][3]),
        (2, duplicates.as_str(), duplicates.as_str()),
        "{table}"
    );
    let found: Vec<usize> = rows.iter().map(|row| row[2].parse().unwrap()).collect();
    assert!(found[0] > found[1] && found[0] <= 200, "{table}");
    assert!(!place.path("out/pipelines_own.csv").exists());
    assert!(run.out.contains("Of the judged pairs alone, each counted once"), "{run:?}");
}

#[test]
fn what_cannot_be_calibrated_is_refused() {
    let place = Place::new();
    corpus(&place);
    for (arguments, why) in [
        (
            "corpus.jsonl -p simhash --page p",
            "decides by a distance (blocking.distance) and has no threshold",
        ),
        ("corpus.jsonl --ask", "--labels: name a file for the answers"),
        ("- --page p", "a corpus is read twice here"),
        ("corpus.jsonl --from 0 --page p", "expected a number above 0, at most 1"),
        ("corpus.jsonl --labels groups --page p", "\"groups\", line 1"),
        ("corpus.jsonl -o corpus.jsonl --page p", "is an input and would be lost"),
        ("corpus.jsonl --precision 0.9 --recall 0.9", "cannot be used with"),
    ] {
        let run = place.run(&format!("calibrate {arguments}"));
        assert!(run.code == 2 && run.err.contains(why), "{arguments}: {run:?}");
        assert!(!place.path("p").exists());
    }
    place.file(
        "far.jsonl",
        "{\"id\":\"a\",\"text\":\"one two three four\"}\n{\"id\":\"b\",\"text\":\"five six seven eight\"}\n",
    );
    let early = place.run("calibrate corpus.jsonl --unjudged p -o mine.toml");
    assert!(early.code == 1 && early.err.contains("no estimate yet"), "{early:?}");
    assert!(!place.path("mine.toml").exists());
    let run = place.run("calibrate far.jsonl --page p");
    assert!(
        run.code == 1 && run.err.contains("no pair of the corpus has a similarity of 0.3 or more"),
        "{run:?}"
    );
}

/// Ids with marks, quotes, tags and control characters: what the page saves is what was drawn.
#[test]
fn a_page_answers_for_every_id() {
    let place = Place::new();
    let text = |n: usize| format!("one two three four five six seven eight nine ten w{n}");
    let ids = [
        "plain",
        "\u{200e}left",
        "a\u{200f}\u{61c}b",
        "\u{202e}x\u{2066}y\u{2069}",
        "c1\u{85}\u{9f}\u{7f}",
        "c0\u{0}\u{1}\n\t",
        "</div>\"&quot;'",
        "\\u200e",
        "U+200E [U+200E]",
    ];
    place.file("in.jsonl", ids.iter().enumerate().map(|(n, id)| upsert(id, &text(n))).collect::<String>());
    let all = "calibrate -p exact in.jsonl";
    assert_eq!(place.run(&format!("{all} --page pairs.html")).code, 0);
    let page = place.read("pairs.html");
    let unescaped = |attribute: &str| {
        let plain = attribute.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
        plain.replace("&#39;", "'").replace("&amp;", "&")
    };
    let saved = page.split(" data-yes=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
    let answers: String = saved.map(|line| unescaped(line) + "\n").collect();
    assert!(!answers.is_empty() && !page.contains(['\u{200e}', '\u{202e}', '\u{85}', '\u{7f}']), "{page}");
    place.file("judged.jsonl", &answers);
    let judged = place.run(&format!("{all} --labels judged.jsonl"));
    assert!(
        judged.out.contains("36 of 36 drawn pairs judged") && !judged.out.contains("not drawn"),
        "{judged:?}"
    );
    let named = lines(&answers).into_iter().flat_map(|line| ["a", "b"].map(|end| line[end].to_string()));
    assert_eq!(named.collect::<std::collections::BTreeSet<_>>().len(), ids.len());
}

/// Stop words, a table and names of fields, from a file or an override, into every folder: the file that is
/// written is the same pipeline, wherever it lies.
#[test]
fn a_pipeline_file_finds_what_the_other_one_names() {
    let place = Place::new();
    let text = |n: u32| format!("the {} der w{n}", words(0..20));
    place.file("in.jsonl", (0..6).map(|n| upsert(&n.to_string(), &text(n))).collect::<String>());
    let made = place.run("calibrate -p exact in.jsonl --unjudged open.jsonl");
    assert_eq!(made.code, 0, "{made:?}");
    place.file("judged.jsonl", place.read("open.jsonl").replace("\"duplicate\":null", "\"duplicate\":true"));
    place.file("conf/stop.txt", "the\nder\n");
    place.file("out/conf/stop.txt", "other\n");
    // The name of a table may be the word for none.
    place.file("conf/live", place.read("in.jsonl"));
    place.file("live", upsert("x", "another corpus"));
    let exact = "threshold = 0.5\nfilter.verify = \"exact\"\ntext.stop_words = \"stop.txt\"\n";
    place.file("conf/exact.toml", exact);
    let weighted = "[text]\nweights = \"tf-idf\"\nstop_words = \"./stop.txt\"\nidf = \"./live\"\n\
        fields = { \"ti tle.x\" = 2 }\n[sketch]\nkind = \"dart\"\n";
    place.file("conf/weighted.toml", weighted);
    let live = weighted.replace("idf = \"./live\"", "idf = \"live\"");
    place.file("conf/followed.toml", &live);
    place.file("folder/deeper/keep", "");
    let absolute = place.path("conf/stop.txt");
    let sets = [
        "",
        " --set text.stop_words=conf/stop.txt",
        &format!(" --set text.stop_words={}", absolute.display()),
    ];
    for (pipeline, set) in
        ["exact", "weighted", "followed"].into_iter().flat_map(|p| sets.map(|set| (p, set)))
    {
        let scheme = |pipeline: &str| {
            let checked = place.run(&format!("check -p {pipeline}"));
            assert_eq!(checked.code, 0, "{checked:?}");
            let (_, scheme) = checked.out.split_once("scheme ").unwrap();
            scheme.trim().to_owned()
        };
        let expected = scheme(&format!("conf/{pipeline}.toml{set}"));
        for file in ["mine.toml", "out/mine.toml", "conf/mine.toml", "folder/deeper/mine.toml"] {
            let run = place.run(&format!(
                "calibrate -p conf/{pipeline}.toml{set} in.jsonl --labels judged.jsonl -o {file}"
            ));
            assert_eq!(run.code, 0, "{run:?}");
            let found = scheme(&format!("./{file}"));
            assert_eq!(found, expected, "{pipeline}{set} {file}: {}", place.read(file));
        }
    }
}
