//! Wrong usage and configuration: every problem at once, exit code 2, and nothing touched.

use super::dupflow::Place;

/// Runs a command that must be refused, and checks which problems it names, one a line.
fn refused(place: &Place, arguments: &str, problems: &[&str]) {
    let run = place.run(arguments);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    let told: Vec<_> = run.err.lines().collect();
    let head = format!("error: {} problems", problems.len());
    assert_eq!(told.first(), Some(&head.as_str()), "{run:?}");
    assert_eq!(told.len(), 1 + problems.len(), "{run:?}");
    for (line, problem) in told[1..].iter().zip(problems) {
        assert!(line.starts_with("  ") && line.contains(problem), "{problem:?} is not in {line:?}");
    }
}

#[test]
fn a_pipeline_inputs_and_options_are_judged_together() {
    let place = Place::new();
    place.file(
        "wrong.toml",
        "threshold = 1.5\n[sketch]\nkind = \"simhsah\"\nsiez = 10\n[filter]\nlooks = \"often\"\n",
    );
    place.file("result", "kept");
    refused(
        &place,
        "replay -p ./wrong.toml --set blocking.cap=0 --epoch hourly --emit=groups --workers none -o result no/such \
         neither",
        &[
            "invalid value 'hourly' for '--epoch <RULE>': expected \"events:N\", \"every:T\" with T as in \"100ms\", \"ts\" or \"all\"",
            "invalid value 'groups' for '--emit <WHAT>' [possible values: deltas, pairs, clusters, cluster-deltas, keep, remove]",
            "invalid value 'none' for '--workers <N>': expected a whole number, 1 or more",
            "./wrong.toml:1: threshold: found 1.5, expected a number above 0 and at most 1",
            "./wrong.toml:3: sketch.kind: found \"simhsah\", expected \"fss\", ",
            "./wrong.toml:4: sketch.siez: unknown key; did you mean \"sketch.size\"?",
            "./wrong.toml:6: filter.looks: found \"often\", expected a list of whole numbers",
            "--set blocking.cap=0: blocking.cap: found 0, expected a whole number from 2 to 1000000",
            "cannot read \"no/such\": No such file or directory",
            "cannot read \"neither\": No such file or directory",
        ],
    );
    assert_eq!(place.read("result"), "kept", "refused before the output is opened");
}

#[test]
fn one_problem_needs_no_list() {
    let place = Place::new();
    place.file("feed", "");
    for (arguments, problem) in [
        ("replay -p minhsah feed", "no pipeline \"minhsah\", did you mean \"minhash\"?"),
        ("replay -p ./none.toml feed", "cannot read \"./none.toml\": No such file or directory"),
        ("replay --evidence --emit clusters feed", "--evidence: only pairs have evidence"),
        ("replay --set threshold feed", "--set threshold: "),
        (
            "replay --worker 2 feed",
            "unexpected argument '--worker' found; tip: a similar argument exists: '--workers'",
        ),
        (
            "replay --speed 0x feed",
            "invalid value '0x' for '--speed <SPEED>': expected \"max\", \"real\" or \"Nx\"",
        ),
        ("replay feed - -", "standard input \"-\" is named more than once"),
        ("trace --doc x missing", "cannot read \"missing\": No such file or directory"),
        ("compare feed missing", "cannot read \"missing\": No such file or directory"),
        ("compare - -", "only one of the two texts can be \"-\""),
        ("replay missing", "cannot read \"missing\": No such file or directory"),
        ("check -c none.toml", "cannot read \"none.toml\": No such file or directory"),
        (
            "generate --scripts latin,runes",
            "invalid value 'runes' for '--scripts <SCRIPT,...>' [possible values: latin",
        ),
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{arguments}: {run:?}");
        assert!(run.err.starts_with(&format!("error: {problem}")), "{arguments}: {run:?}");
        assert_eq!(run.err.lines().count(), 1, "{arguments}: {run:?}");
    }
    let run = place.run("replay");
    assert_eq!(run.code, 2);
    assert!(run.err.contains("required arguments were not provided:\n  <INPUT>..."), "{run:?}");
}

#[test]
fn pipeline_and_deployment_are_checked_together() {
    let place = Place::new();
    place.file("here.toml", "workers = 0\n[source]\ninputs = []\n");
    refused(
        &place,
        "check --set sketch.bits=0 --set nonsense=1 -c here.toml",
        &[
            "sketch.bits: found 0",
            "nonsense: unknown key",
            "here.toml:1: workers: found 0",
            "here.toml:3: source.inputs",
        ],
    );
    place.file("here.toml", "[source]\ninputs = [\"-\"]\n");
    let fine = place.run("check -p exact -c here.toml");
    assert_eq!((fine.code, fine.err.as_str()), (0, ""), "{fine:?}");
    assert!(
        fine.out.contains("pipeline exact: ok, scheme ") && fine.out.contains("here.toml: ok, 1 input"),
        "{fine:?}"
    );
}

#[test]
fn plan_names_all_problems() {
    let wrong = ["--documents <N>", "threshold: found 2", "sketch.size: found 1"];
    refused(&Place::new(), "plan --documents many --set threshold=2 --set sketch.size=1", &wrong);
}

#[test]
fn compare_and_trace_name_all_problems() {
    let place = Place::new();
    let wrong = ["no pipeline \"none\"", "cannot read \"a\": ", "cannot read \"b\": "];
    refused(&place, "compare -p none a b", &wrong);
    refused(&place, "trace -p none --doc x a b", &wrong);
}

#[test]
fn a_feed_that_cannot_be_made() {
    let place = Place::new();
    refused(
        &place,
        "generate --near 0.9 --copies 0.2 --deletes 1 --min-words 0 --floor 0 -o same --truth same",
        &[
            "--min-words: found 0, expected a whole number from 1 to 1000000",
            "--near: found 0.9, expected at most 1 together with the copies",
            "--deletes: found 1, expected less than 1 together with updates and repeats",
            "--floor: found 0, expected a number above 0 and at most 1",
            "--truth: the feed itself goes to \"same\"",
        ],
    );
    assert!(!place.path("same").exists());
}

#[test]
fn an_evaluation_that_cannot_be_made() {
    let place = Place::new();
    refused(
        &place,
        "evaluate pipelines everything --pairs 0 --corpus missing --truth no --labels none -p nothing -p exact --thresholds 0.8,2 \
         -o out",
        &[
            "invalid value 'everything' for '[STUDY]...': expected one of filter, estimators, ",
            "invalid value '0' for '--pairs <N>': expected a whole number, 1 or more",
            "no pipeline \"nothing\"",
            "--set threshold=2: threshold: found 2, expected a number above 0 and at most 1",
            "cannot read \"missing\": No such file or directory",
            "--labels: the truth is named by --truth already",
            "--truth: cannot read \"no\": No such file or directory",
            "--labels: cannot read \"none\": No such file or directory",
        ],
    );
    assert!(!place.path("out").exists());
    let run = place.run("evaluate pipelines");
    assert!(
        run.code == 2 && run.err.starts_with("error: the study \"pipelines\" needs documents"),
        "{run:?}"
    );
}
