//! `dupflow replay --emit clusters` and `--emit cluster-deltas`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::dupflow::Place;
use super::feeds::{lines, pairs, upsert, words};

/// A folder with the tour's feed and a generated feed of 400 documents.
fn with_feeds() -> Place {
    let place = Place::new();
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("pipelines/tour.jsonl");
    place.file("tour.jsonl", std::fs::read(tour).expect("the tour's feed"));
    let made = place.run("generate --documents 400 --seed 3 --near 0.5 --max-words 80 -o feed.jsonl");
    assert_eq!(made.code, 0, "{made:?}");
    place
}

fn text(line: &Value, key: &str) -> String {
    line[key].as_str().unwrap_or_else(|| panic!("{key} of {line}")).to_owned()
}

/// Clusters with their members and sizes; giants have no members, only their size.
type Found = BTreeMap<String, (BTreeSet<String>, u64)>;

/// The clusters in an output of `--emit clusters`.
fn listed(out: &str) -> Found {
    let cluster = |line: &Value| {
        let members: Vec<_> =
            line["members"].as_array().into_iter().flatten().map(Value::to_string).collect();
        assert!(members.is_sorted(), "{line}");
        (text(line, "cluster"), (members.into_iter().collect(), line["size"].as_u64().unwrap_or(0)))
    };
    lines(out).iter().map(cluster).collect()
}

/// The clusters that an output of `--emit cluster-deltas` accumulates to.
fn accumulated(out: &str) -> Found {
    let mut counts: BTreeMap<(String, String, u64), i64> = BTreeMap::new();
    let mut epoch = 0;
    for line in lines(out) {
        assert!(line["epoch"].as_u64() >= Some(epoch), "{line}");
        epoch = line["epoch"].as_u64().expect("epoch");
        let is_giant = line["giant"] == true;
        let document = if is_giant { String::new() } else { line["document"].to_string() };
        let size = line["size"].as_u64().unwrap_or(0);
        *counts.entry((text(&line, "cluster"), document, size)).or_default() +=
            line["diff"].as_i64().expect("diff");
    }
    let mut found = Found::new();
    for ((cluster, document, size), count) in counts {
        assert!((0..=1).contains(&count), "{document} is {count} times in {cluster}");
        if count == 1 {
            let (members, giant) = found.entry(cluster).or_default();
            *giant = size;
            members.extend(Some(document).filter(|document| !document.is_empty()));
        }
    }
    found
}

#[test]
fn the_clusters_of_the_tour() {
    let place = with_feeds();
    let (run, stats) = place.replay("-p tour --emit clusters tour.jsonl");
    let expected = r#"{"cluster":"ja/bridge","members":["ja/bridge","ja/notice"]}
{"cluster":"news/bridge","members":["news/bridge","paper/bridge"]}
"#;
    assert_eq!(run.out, expected);
    assert_eq!((&stats["clusters"], &stats["giant_clusters"]), (&2.into(), &0.into()));
    // Deleting the mirror also removes its pair with "news", so "news" leaves the cluster that the mirror
    // named.
    let changes = place.replay("-p tour --emit cluster-deltas --epoch ts tour.jsonl").0.out;
    assert!(
        changes.contains(
            "{\"epoch\":1,\"diff\":1,\"document\":\"news/bridge\",\"cluster\":\"mirror/bridge\"}\n"
        ),
        "{changes}"
    );
    assert_eq!(accumulated(&changes), listed(expected));
}

#[test]
fn components_are_what_pairs_join() {
    let place = with_feeds();
    // The cluster of a document is named by the smallest id that it can reach.
    let all = pairs(&place.replay("--emit pairs feed.jsonl").0.out);
    let mut smallest: BTreeMap<&String, &String> = BTreeMap::new();
    for (a, b) in all.keys() {
        smallest.insert(a, a);
        smallest.insert(b, b);
    }
    loop {
        let before = smallest.clone();
        for (a, b) in all.keys() {
            let least = smallest[a].min(smallest[b]);
            smallest.insert(a, least);
            smallest.insert(b, least);
        }
        if smallest == before {
            break;
        }
    }
    let mut expected = Found::new();
    for (document, cluster) in smallest {
        expected.entry(cluster.clone()).or_default().0.insert(Value::from(document.as_str()).to_string());
    }
    let (run, stats) = place.replay("--emit clusters feed.jsonl");
    assert_eq!(listed(&run.out), expected);
    assert!(expected.len() > 20 && stats["clusters"] == expected.len(), "{stats}");
    assert!(run.err.contains(&format!("clusters    {} alive\n", expected.len())), "{}", run.err);
}

#[test]
fn changes_accumulate_to_the_clusters() {
    let place = with_feeds();
    for set in ["", "--set output.clusters=star ", "--set output.cluster_limit=3 "] {
        let (run, stats) = place.replay(&format!("{set}--emit clusters --epoch all feed.jsonl"));
        let expected = listed(&run.out);
        let giants = expected.values().filter(|(members, _)| members.is_empty()).count();
        assert_eq!(giants > 0, set.contains("limit"), "{expected:?}");
        assert_eq!(stats["giant_clusters"], giants);
        assert_eq!(
            run.err.contains("of more than output.cluster_limit documents"),
            giants > 0,
            "{}",
            run.err
        );
        for options in ["--epoch events:7 --workers 1", "--epoch events:100 --workers 4", "--epoch ts"] {
            let changes = place.replay(&format!("{set}--emit cluster-deltas {options} feed.jsonl")).0.out;
            assert_eq!(accumulated(&changes), expected, "{set}{options}");
            let left = place.replay(&format!("{set}--emit clusters {options} feed.jsonl")).0.out;
            assert_eq!(listed(&left), expected, "{set}{options}");
        }
    }
}

/// A chain a - b - c - d - e, whose component is a giant. As clusters it is written by its size; lists cut it
/// into stars like any other, so that each removed document is similar to the one that is kept.
#[test]
fn lists_cut_giants_into_stars() {
    let place = Place::new();
    let page = |n: u32| words(5 * n..5 * n + 20);
    let ids = ["a", "b", "c", "d", "e"];
    place.file("in.jsonl", ids.iter().zip(0..).map(|(id, n)| upsert(id, &page(n))).collect::<String>());
    let set = "-p exact --set threshold=0.5 --set blocking.kind=scan --set output.clusters=star \
        --set output.keep=named";
    let written = |emit: &str, limit: usize| {
        place.replay(&format!("{set} --set output.cluster_limit={limit} --emit {emit} in.jsonl")).0.out
    };
    let similar = pairs(&written("pairs", 2));
    let giant = "{\"cluster\":\"a\",\"size\":5,\"giant\":true}\n";
    assert_eq!((written("clusters", 2).as_str(), similar.len()), (giant, 4));
    for (emit, count) in [("remove", 3), ("keep", 2)] {
        assert_eq!(written(emit, 2), written(emit, 100), "the limit has no part in lists");
        assert_eq!(lines(&written(emit, 2)).len(), count);
    }
    for row in lines(&written("remove", 2)) {
        let [id, kept, cluster] = ["id", "kept", "cluster"].map(|key| text(&row, key));
        let pair = if id < kept { (id, kept.clone()) } else { (kept.clone(), id) };
        assert!(similar.contains_key(&pair) && cluster == kept, "{row}");
    }
    place.replay(&format!(
        "{set} --set output.cluster_limit=2 --emit documents --mark m in.jsonl -o marked.jsonl"
    ));
    let named =
        lines(&place.read("marked.jsonl")).iter().map(|row| text(row, "m_cluster")).collect::<Vec<_>>();
    assert_eq!(named, ["b", "b", "b", "d", "d"]);
}
