//! `compare`, `trace`, `plan` and `check`: each works with every pipeline.

use dupflow::core::sketch::SketchKind;
use serde_json::Value;

use super::dupflow::Place;
use super::feeds::lines;

const PIPELINES: [&str; 11] = [
    "minhash",
    "exact",
    "simhash",
    "sectional",
    "weighted",
    "onebit",
    "assured",
    "contained",
    "decontaminate",
    "paper",
    "tour",
];

fn place() -> Place {
    let place = Place::new();
    place.file("feed", include_str!("../../pipelines/tour.jsonl"));
    place.file("a", "The old stone bridge will be closed for repairs from Monday.");
    place.file("b", "The old stone bridge will be closed for repairs from Tuesday.");
    place.file("blank", "?");
    place
}

#[test]
fn two_texts_by_every_pipeline() {
    let place = place();
    for pipeline in PIPELINES {
        let run = place.run(&format!("compare --all -p {pipeline} a b"));
        assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
        assert!(run.out.contains(&format!("\n\npipeline {pipeline}, scheme ")), "{run:?}");
        for part in
            ["\nevery measure ", "\n  Jaccard ", "\n  probability Jaccard of counts ", "\nevery sketch "]
        {
            assert!(run.out.contains(part), "{part:?} is not in\n{}", run.out);
        }
        let sketches = run.out.split("\nevery sketch ").nth(1).expect("a table");
        for kind in SketchKind::ALL.map(SketchKind::name) {
            let rows = sketches
                .lines()
                .filter(|row| row.get(2..).is_some_and(|row| row.starts_with(&format!("{kind} "))));
            assert_eq!(rows.count(), 1, "{kind}: {}", run.out);
        }
        assert_eq!(run.out.matches("\n> ").count(), 2, "the pipeline's own, and the note: {}", run.out);
        let live = ["weighted", "paper"].contains(&pipeline);
        assert_eq!(run.out.contains("document frequencies are live"), live, "{}", run.out);
        let nothing = place.run(&format!("compare -p {pipeline} a blank"));
        assert_eq!(nothing.code, 0, "{nothing:?}");
        assert!(
            nothing.out.starts_with("a text without a token has no sketch and is in no pair\n"),
            "{nothing:?}"
        );
    }
}

/// A pair of `replay` in the format of `trace`. The similarity is copied from the line, since serde_json may
/// change its last bit.
fn traced_pair((line, pair): (&str, Value)) -> String {
    let similarity = line.split("\"similarity\":").nth(1).and_then(|end| end.split([',', '}']).next());
    let similarity: f64 = similarity.expect("a similarity").parse().expect("a number");
    format!("  {} {} {similarity}\n", pair["a"], pair["b"])
}

#[test]
fn a_document_by_every_pipeline() {
    let place = place();
    let mut found = 0;
    // Without a reference there is nothing to find, which both commands refuse.
    for pipeline in PIPELINES.into_iter().filter(|name| *name != "decontaminate") {
        let replayed = place.run(&format!("replay -p {pipeline} --emit pairs feed"));
        let expected: Vec<_> = replayed.out.lines().zip(lines(&replayed.out)).map(traced_pair).collect();
        let trace = |document: &str| {
            let run = place.run(&format!("trace -p {pipeline} --doc {document} feed"));
            assert_eq!((run.code, run.err.as_str()), (0, ""), "{run:?}");
            run.out
        };
        for document in ["news/bridge", "ja/bridge"] {
            let quoted = format!("{document:?}");
            let mut of_document: Vec<_> =
                expected.iter().filter(|line| line.contains(&quoted)).cloned().collect();
            found += of_document.len();
            if of_document.is_empty() {
                of_document.push("  none\n".to_owned());
            }
            let end = format!("\npairs at the end of the input\n{}", of_document.concat());
            let traced = trace(document);
            assert!(traced.ends_with(&end), "{pipeline}: {traced}\nis not as replay has it: {end}");
        }
        assert!(trace("notes/blank").ends_with("  a text without a token has no sketch and is in no pair\n"));
        assert!(trace("mirror/bridge").ends_with("\n  not alive at the end of the input, so in no pair\n"));
    }
    assert!(found > 3, "only {found} pairs");
}

#[test]
fn warnings_on_a_blocking_do_not_fail_the_command() {
    let place = place();
    // One warning about long lists. With hot blocks two more: the promise is lost, and hot blocks are
    // expected.
    for (hot, warnings) in [("", 1), (" --set blocking.hot=leaders", 3), (" --set blocking.hot=skip", 3)] {
        let warned = place.run(&format!("check -p onebit --set threshold=0.7{hot}"));
        assert_eq!((warned.code, warned.err.as_str()), (0, ""), "{warned:?}");
        assert_eq!(warned.out.matches("\n  ! for 1000000 documents: ").count(), warnings, "{warned:?}");
        let lost = "a pair within the distance is missed where each block that it shares has more than cap = \
            96 sketches";
        assert_eq!(warned.out.contains(lost), warnings == 3, "{warned:?}");
    }
    for pipeline in PIPELINES {
        let fine = place.run(&format!("check -p {pipeline}"));
        assert!(fine.code == 0 && !fine.out.contains('!'), "{fine:?}");
    }
}

/// Two thirds of 30 texts are pairs that differ in their last word; the plan finds them, or says why not.
#[test]
fn a_plan_is_measured_on_a_sample() {
    let place = place();
    let text = |n: usize, end: &str| {
        let words: Vec<String> = (0..30).map(|word| format!("w{n}x{word}")).collect();
        format!("{{\"id\":\"{n}{end}\",\"body\":\"{} {end}\"}}\n", words.join(" "))
    };
    let texts = (0..10).flat_map(|n| [text(n, "a"), text(n, "b"), text(n + 10, "c")]);
    place.file("texts.jsonl", texts.collect::<String>());
    place.file("one.jsonl", text(1, "a"));
    let plan = |more: &str| place.run(&format!("plan {more} --sample texts.jsonl --text-field body"));
    for pipeline in PIPELINES {
        let run = plan(&format!("--format json --documents 100 -p {pipeline}"));
        if ["contained", "decontaminate"].contains(&pipeline) {
            assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
            assert!(run.err.contains("--sample: not measured for "), "{run:?}");
            continue;
        }
        let sample = &serde_json::from_str::<Value>(&run.out).expect("JSON")["sample"];
        let of_text = |name: &str| sample[name].as_f64().unwrap_or(-1.0);
        assert!((of_text("documents") - 30.0).abs() < 1e-9 && of_text("shingles") > 28.0, "{sample}");
        // By a distance of 3 of 64 bits they are too far apart.
        let right = if pipeline == "simhash" { 0.0 } else { 10.0 };
        assert!((of_text("right") - right).abs() < 1e-9, "{pipeline}: {sample}");
        assert_eq!(sample["quality"].is_object(), right > 0.0, "{pipeline}: {sample}");
        assert_eq!(sample["lagging"].is_object(), ["weighted", "paper"].contains(&pipeline), "{sample}");
        if ["exact", "tour"].contains(&pipeline) {
            let quality = &sample["quality"];
            assert!(quality["recall"]["mean"].as_f64() > Some(0.95), "{sample}");
            assert!(quality["precision"]["mean"].as_f64() > Some(0.999), "{sample}");
            assert!(sample["standard_error"].is_null(), "{sample}");
        }
    }
    let shown = plan("-p exact");
    for said in [
        "\nOn your sample of 30 documents, 30 distinct sketches, 29 shingles each on average, under 8 other",
        "\n  recall     ",
        "\n  precision  1.0000 (0.9",
    ] {
        assert!(shown.code == 0 && shown.out.contains(said), "{said}: {shown:?}");
    }
    for (typed, code, said) in [
        ("--sample none.jsonl", 2, "none.jsonl"),
        ("--sample one.jsonl --text-field body", 1, "--sample: 1 document(s), expected two or more"),
        ("--sample feed --set text.split=line", 2, "--sample: not measured for text.split"),
        ("--sample feed --set pairs.where=a.x==b.x", 2, "--sample: not measured for pairs.where"),
    ] {
        let run = place.run(&format!("plan {typed}"));
        assert_eq!((run.code, run.out.as_str()), (code, ""), "{run:?}");
        assert!(run.err.contains(said), "{said}: {run:?}");
    }
}
