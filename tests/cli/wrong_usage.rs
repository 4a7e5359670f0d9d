//! Wrong usage and configuration: all problems are reported at once, with exit code 2, and no file is
//! changed.

use super::dupflow::{Place, dupflow};

/// Runs a command that must be refused, and checks which problems it reports, one per line.
fn refused(place: &Place, arguments: &str, problems: &[&str]) {
    let run = place.run(arguments);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    let messages: Vec<_> = run.err.lines().collect();
    let head = format!("error: {} problems", problems.len());
    assert_eq!(messages.first(), Some(&head.as_str()), "{run:?}");
    assert_eq!(messages.len(), 1 + problems.len(), "{run:?}");
    for (line, problem) in messages[1..].iter().zip(problems) {
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
        "replay -p ./wrong.toml --set blocking.cap=0 --epoch hourly --emit=groups --workers none -o result \
        no/such \
         neither",
        &[
            "invalid value 'hourly' for '--epoch <RULE>': expected \"events:N\", \"every:T\" with T as \
            in \"100ms\", \"events:N,every:T\", \"ts\" or \"all\"",
            "invalid value 'groups' for '--emit <WHAT>' [possible values: deltas, pairs, clusters, \
            cluster-deltas, keep, remove, decisions, documents, removed-documents, items]",
            "invalid value 'none' for '--workers <N>': expected a whole number from 1 to 1024",
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
fn a_long_list_is_printed_in_part() {
    let place = Place::new();
    let inputs: Vec<String> = (1..=23).map(|n| format!("none{n}")).collect();
    let run = place.run(&format!("replay {}", inputs.join(" ")));
    let messages: Vec<_> = run.err.lines().collect();
    assert_eq!((run.code, messages.len(), messages[0]), (2, 22, "error: 23 problems"), "{run:?}");
    assert!(messages[20].contains("\"none20\"") && messages[21] == "  and 3 more", "{run:?}");
}

/// Standard error may be closed: `dupflow … 2>&1 | head -1`.
#[test]
fn a_closed_standard_error_keeps_the_exit_code() {
    let place = Place::new();
    place.file("feed", "no event\n{\"id\":\"a\",\"text\":\"t\"}\n");
    for (arguments, code) in [
        ("replay missing", 2),
        ("replay --no-such feed", 2),
        ("replay --set output.on_error=fail feed", 1),
        ("replay feed", 0),
        ("generate --documents 10 -o made --truth truth", 0),
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = super::dupflow::command(arguments.split(' '));
        let ended = command.current_dir(place.path("")).stderr(writer).output().unwrap();
        assert_eq!(ended.status.code(), Some(code), "{arguments}");
    }
    assert!(place.path("truth").exists(), "a warning does not stop the command");
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
    assert!(
        run.err.starts_with("error: an input is missing: ") && run.err.contains("dupflow demo"),
        "{run:?}"
    );
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
    let memory = ["as in 1000000 or 100M", "take --memory and --spill of a replay"];
    refused(&Place::new(), "plan --documents 1T --set memory=8GiB", &memory);
    let plan = |documents: &str| dupflow(["plan", "--documents", documents]).out;
    assert_eq!(plan("3M"), plan("3000000"));
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
        "evaluate pipelines everything --pairs 0 --corpus missing --truth no --labels none -p nothing -p \
        exact --thresholds 0.8,2 \
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

const TABLE: &str =
    "source.kind = \"sqlite\"\nsource.path = \"./x.db\"\nsource.table = \"t\"\nsource.order = \"n\"\n";

/// No file that a command reads, or writes beside its output, is overwritten.
#[test]
fn inputs_are_never_overwritten() {
    let place = Place::new();
    let held = [("x.db", "rows"), ("feed", ""), ("list", "feed\n"), ("own.toml", "threshold = 0.8\n")];
    held.iter().for_each(|(name, text)| place.file(name, text));
    let feed = "source.inputs = [\"feed\"]\n";
    let mut cases = vec![
        (
            format!("{feed}sink.path = \"out\"\ndead_letter.path = \"./out.mark\""),
            "dead_letter.path: \"./out.mark\" is written to by sink.path",
        ),
        (
            format!("{feed}sink.path = \"out\"\ndead_letter.path = \"out.mark.new\""),
            "dead_letter.path: \"out.mark.new\" is written to by sink.path",
        ),
        (
            "source.inputs = [\"out.mark\"]\nsink.path = \"out\"".to_owned(),
            "sink.path: \"out.mark\" is an input and would be lost",
        ),
        (
            "source.files_from = \"list\"\nsink.path = \"list\"".to_owned(),
            "sink.path: \"list\" is the list source.files_from, which is read, and would be lost",
        ),
        (
            format!("{feed}sink.path = \"./here.toml\""),
            "sink.path: \"./here.toml\" is the deployment file, which is read, and would be lost",
        ),
        (
            format!("{feed}dead_letter.path = \"own.toml\""),
            "dead_letter.path: \"own.toml\" is the pipeline file, which is read, and would be lost",
        ),
    ];
    place.file("out.mark", "");
    if cfg!(feature = "sqlite") {
        let lost = "is the database source.path, which is read, and would be lost";
        cases.extend([
            (format!("{TABLE}sink.path = \"x.db\""), "sink.path: \"x.db\" "),
            (format!("{TABLE}sink.path = \"x.db\""), lost),
            (format!("{TABLE}dead_letter.path = \"x.db\""), lost),
            (format!("{TABLE}dead_letter.path = \"x.db-wal\""), lost),
            (
                format!("{TABLE}sink.kind = \"sqlite\"\nsink.path = \"x.db\"\ndead_letter.path = \"x.db\""),
                "dead_letter.path: \"x.db\" is written to by sink.path",
            ),
            (
                format!(
                    "{feed}sink.kind = \"sqlite\"\nsink.path = \"y.db\"\ndead_letter.path = \"y.db-shm\""
                ),
                "dead_letter.path: \"y.db-shm\" is written to by sink.path",
            ),
        ]);
    }
    for (deployment, problem) in &cases {
        place.file("here.toml", deployment);
        for command in ["run", "check"] {
            let ended = place.run(&format!("{command} -p ./own.toml -c here.toml"));
            assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{deployment}: {ended:?}");
            assert!(ended.err.contains(problem), "{problem:?} is not in {ended:?}");
        }
        assert_eq!(&place.read("here.toml"), deployment);
    }
    for (arguments, problem) in [
        ("replay -o list --files-from list", "--output: \"list\" is the list --files-from, which is read"),
        (
            "replay --stats own.toml -p ./own.toml feed",
            "--stats: \"own.toml\" is the pipeline file, which is",
        ),
    ] {
        let ended = place.run(arguments);
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{ended:?}");
        assert!(ended.err.starts_with(&format!("error: {problem}")), "{ended:?}");
    }
    held.iter().for_each(|(name, text)| assert_eq!(place.read(name), *text));
    // Tables may be written into the database that is read.
    if cfg!(feature = "sqlite") {
        place.file("here.toml", format!("{TABLE}sink.kind = \"sqlite\"\nsink.path = \"x.db\""));
        let both = place.run("check -c here.toml");
        assert_eq!(both.code, 0, "{both:?}");
    }
}

#[cfg(feature = "sqlite")]
#[test]
fn tables_accept_only_the_rule_named() {
    let place = Place::new();
    place.file("feed", "");
    place.file("here.toml", "source.inputs = [\"feed\"]\nsink.kind = \"sqlite\"\nsink.path = \"out.db\"\n");
    for (set, instead) in [
        ("output.keep=oldest", Some("\"smallest\" or \"named\"")),
        ("output.keep=longest", Some("\"smallest\" or \"named\"")),
        ("output.clusters=star", Some("\"named\"")),
        ("output.keep=named", None),
        ("output.keep=smallest", None),
        ("output.clusters=star --set output.keep=named", None),
    ] {
        for command in ["check", "run"] {
            let ended = place.run(&format!("{command} --set {set} -c here.toml"));
            assert_eq!(ended.code, if instead.is_some() { 2 } else { 0 }, "{set}: {ended:?}");
            let problem = instead.map(|instead| format!("set it to {instead}\n"));
            assert!(ended.err.contains(&problem.unwrap_or_default()), "{set}: {ended:?}");
            std::fs::remove_file(place.path("out.db")).unwrap_or(());
        }
    }
}

#[test]
fn a_check_that_connects_looks_for_inputs_and_folders() {
    let place = Place::new();
    place.file(
        "here.toml",
        "source.inputs = [\"gone\"]\nsink.path = \"none/out\"\ndead_letter.path = \"out\"\n",
    );
    assert_eq!(place.run("check -c here.toml").code, 0, "what is there is another machine's business");
    refused(
        &place,
        "check --connect -c here.toml",
        &[
            "cannot read \"gone\": No such file or directory",
            "sink.path: there is no folder \"none\" to write \"none/out\" in",
        ],
    );
    place.file("gone", "");
    place.file("none/other", "");
    assert_eq!(place.run("check --connect -c here.toml").code, 0);
    place.file(
        "here.toml",
        "source.inputs = [\"gone\"]\nwatch.path = \"w/posted\"\nwatch.inputs = [\"list\"]\n\
         notices.path = \"n/notices\"\n[[view]]\nname = \"v\"\nof = \"pairs\"\noutput = \"v/rows\"\n",
    );
    refused(
        &place,
        "check --connect -c here.toml",
        &[
            "cannot read \"list\": No such file or directory",
            "view.1.output: there is no folder \"v\" to write \"v/rows\" in",
            "notices.path: there is no folder \"n\" to write \"n/notices\" in",
            "watch.path: there is no folder \"w\" to write \"w/posted\" in",
        ],
    );
}

#[cfg(feature = "sqlite")]
#[test]
fn a_check_that_connects_looks_at_the_database_of_watches() {
    let place = Place::new();
    place.file("gone", "");
    place.file(
        "here.toml",
        "source.inputs = [\"gone\"]\nnotices.path = \"notices\"\n[watch]\ndatabase = \"no.db\"\n\
         table = \"releases\"\norder = \"at\"\n",
    );
    let run = place.run("check --connect -c here.toml");
    assert!(run.code == 1 && run.err.contains("no.db"), "{run:?}");
    assert!(!place.path("no.db").exists());
}

#[test]
fn workers_are_bounded_everywhere() {
    let place = Place::new();
    place.file("feed", "");
    place.file("local.toml", "workers = 99999\n[source]\ninputs = [\"feed\"]\n[sink]\npath = \"deltas\"\n");
    for (command, message) in [
        ("replay --workers 99999 feed", "'--workers <N>': expected a whole number from 1 to 1024"),
        (
            "query --workers 1025 --corpus feed feed",
            "'--workers <N>': expected a whole number from 1 to 1024",
        ),
        ("plan --workers 99999", "'--workers <N>': expected a whole number from 1 to 1024"),
        ("evaluate filter --workers 99999", "'--workers <N>': expected a whole number from 1 to 1024"),
        ("run -c local.toml", "workers: found 99999, expected a whole number from 1 to 1024, or \"cores\""),
        ("check -c local.toml", "workers: found 99999, expected a whole number from 1 to 1024, or \"cores\""),
    ] {
        let run = place.run(command);
        assert!(run.code == 2 && run.err.contains(message), "{command}: {run:?}");
    }
}

/// A file that cannot be written is reported before any input is read, and other outputs stay unchanged.
#[test]
fn outputs_are_tried_before_the_run() {
    let place = Place::new();
    place.file("feed", "{\"id\":\"a\",\"text\":\"one\"}\n");
    place.file("old", "kept");
    std::fs::create_dir(place.path("folder")).unwrap();
    refused(
        &place,
        "replay -o old --stats no/such/stats --dead-letter folder feed",
        &[
            "--stats: \"no/such/stats\" cannot be written: No such file",
            "--dead-letter: \"folder\" cannot be written: is a directory",
        ],
    );
    assert_eq!(place.read("old"), "kept");
    for (command, message) in [
        ("replay -o no/folder/out feed", "--output: \"no/folder/out\" cannot be written: No such file"),
        ("replay --stats feed/stats feed", "--stats: \"feed/stats\" cannot be written: Not a directory"),
        ("generate -o no/feed --truth old", "--output: \"no/feed\" cannot be written: No such file"),
        ("generate -o made --truth folder", "--truth: \"folder\" cannot be written: is a directory"),
        ("generate -o made --labels no/labels", "--labels: \"no/labels\" cannot be written: No such file"),
        ("evaluate filter -o feed", "--output: a folder is to be made, or to be there: File exists"),
        (
            "evaluate --corpus feed --write-idf no/idf",
            "--write-idf: \"no/idf\" cannot be written: No such file",
        ),
    ] {
        let run = place.run(command);
        assert!(run.code == 2 && run.err.contains(message), "{command}: {run:?}");
    }
    assert!(!place.path("made").exists() && place.read("old") == "kept");
}

/// Standard output has one use: a file named "-" is made by nobody.
#[test]
fn standard_output_is_no_file() {
    let place = Place::new();
    place.file("feed", "{\"id\":\"a\",\"text\":\"some text\"}\n");
    place.file("views.toml", "[[view]]\nname = \"v\"\nof = \"pairs\"\noutput = \"-\"\n");
    place.file("here.toml", "source.inputs = [\"feed\"]\nwatch.path = \"w\"\nnotices.path = \"-\"\n");
    for (command, option) in [
        ("replay --watch feed --notices - feed", "--notices"),
        ("replay --views views.toml feed", "view.1.output"),
        ("compare --html - feed feed", "--html"),
        ("run -c here.toml", "notices.path"),
    ] {
        let run = place.run(command);
        let what = format!("{option}: standard output is not possible here: name a file");
        assert!(run.code == 2 && run.err.contains(&what), "{run:?}");
        assert!(!place.path("-").exists(), "{command}");
    }
}

/// Regression: another name of an input, by a hard link or from within a folder, was written to.
#[cfg(unix)]
#[test]
fn an_input_is_not_overwritten_under_another_name() {
    let place = Place::new();
    let row = "{\"id\":\"a\",\"text\":\"one two three\"}\n";
    place.file("a.jsonl", row);
    place.file("in/b.jsonl", row);
    std::fs::create_dir(place.path("links")).unwrap();
    std::fs::hard_link(place.path("a.jsonl"), place.path("h.jsonl")).unwrap();
    std::fs::hard_link(place.path("in/b.jsonl"), place.path("i.jsonl")).unwrap();
    std::os::unix::fs::symlink("../in/b.jsonl", place.path("links/b.jsonl")).unwrap();
    for (arguments, said) in [
        ("a.jsonl -o h.jsonl", "--output: \"h.jsonl\" is an input and would be lost"),
        ("in -o i.jsonl", "--output: \"i.jsonl\" is an input and would be lost"),
        ("links -o i.jsonl", "--output: \"i.jsonl\" is an input and would be lost"),
        ("links --stats in/b.jsonl", "--stats: \"in/b.jsonl\" is an input and would be lost"),
        ("in --stats a.jsonl -o h.jsonl", "--stats: \"a.jsonl\" is written to by --output"),
        ("in --views h.jsonl --stats a.jsonl", "is the file --views, which is read, and would be lost"),
    ] {
        let run = place.run(&format!("replay -q {arguments}"));
        assert!(run.code == 2 && run.err.contains(said), "{arguments}: {run:?}");
    }
    assert_eq!([place.read("a.jsonl"), place.read("in/b.jsonl")], [row, row]);
}

/// Files that the program writes, or keeps for itself, are not read as documents, wherever links lead; and no
/// file is on both sides of a comparison.
#[cfg(unix)]
#[test]
fn what_is_written_or_compared_with_is_no_input() {
    let place = Place::new();
    let row = "{\"id\":\"a\",\"text\":\"one two three\"}\n";
    for name in ["a.jsonl", "in/b.jsonl", "other/c.jsonl", "copies/d.jsonl"] {
        place.file(name, row);
    }
    let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, place.path(name)).unwrap();
    link("../other", "in/link");
    link("../a.jsonl", "copies/a.jsonl");
    std::fs::hard_link(place.path("a.jsonl"), place.path("h.jsonl")).unwrap();
    let in_folder = |key: &str, name: &str| format!("{key}: \"{name}\" is in the folder");
    let both = |name: &str| format!("--against: \"{name}\" is an input, too");
    for (arguments, said) in [
        ("in -o other/out.jsonl", in_folder("--output", "other/out.jsonl")),
        ("in --stats other/stats.json", in_folder("--stats", "other/stats.json")),
        ("in --dead-letter other/bad", in_folder("--dead-letter", "other/bad")),
        ("in -o out.jsonl --resume other/work", in_folder("--resume", "other/work")),
        ("--against h.jsonl --emit keep a.jsonl", both("a.jsonl")),
        ("--against copies --emit keep a.jsonl", both("a.jsonl")),
        ("--against in --emit keep in/b.jsonl", both("in/b.jsonl")),
        ("--against in/b.jsonl --emit keep in", both("in/b.jsonl")),
    ] {
        let run = place.run(&format!("replay -q {arguments}"));
        assert!(run.code == 2 && run.err.contains(&said), "{arguments}: {run:?}");
    }
    for state in ["in/state", "other/state"] {
        place.file(
            "run.toml",
            format!("[source]\ninputs = [\"in\"]\n[sink]\npath = \"out\"\n[state]\npath = \"{state}\"\n"),
        );
        for command in ["run", "check"] {
            let run = place.run(&format!("{command} -c run.toml"));
            let said = in_folder("state.path", state);
            assert!(run.code == 2 && run.err.contains(&said), "{command} {state}: {run:?}");
        }
    }
    assert!(!place.path("out").exists() && !place.path("in/state").exists());
}

#[test]
fn standard_input_is_read_once() {
    let place = Place::new();
    for arguments in
        ["--emit keep --against - -", "--emit keep --files-from -", "--emit keep --against - --files-from -"]
    {
        let run = place.run_with(&format!("replay {arguments}"), |input| {
            // It may end before it has read everything.
            input.write_all(b"-\n").unwrap_or(());
        });
        assert!(run.code == 2 && run.err.contains("\"-\" is named more than once"), "{arguments}: {run:?}");
    }
}

#[test]
fn a_field_is_the_text_or_something_else() {
    let place = Place::new();
    place.file("a.jsonl", "{\"id\":\"a\",\"text\":\"one two three\"}\n");
    for (arguments, said) in [
        ("--text-field id", "the field \"id\" is the id (--id-field)"),
        ("--id-field a.b --text-field a.b", "the field \"a.b\" is the id (--id-field)"),
        ("--text-field ts", "the field \"ts\" is the time (--ts-field)"),
    ] {
        let run = place.run(&format!("replay --emit keep {arguments} a.jsonl"));
        assert!(run.code == 2 && run.err.contains(said), "{run:?}");
    }
    assert_eq!(place.run("replay -q --emit keep --ids file --text-field id a.jsonl").code, 0);
}

#[test]
fn a_wrong_size_is_the_only_problem() {
    let place = Place::new();
    place.file("a.jsonl", "{\"id\":\"a\",\"text\":\"one two three\"}\n");
    for size in ["1KB", "1e3", "1M", "0kB", "0"] {
        let run =
            place.run(&format!("replay --emit documents --shard-size {size} -o out/part.jsonl a.jsonl"));
        assert_eq!((run.code, run.err.lines().count()), (2, 1), "{run:?}");
        assert!(run.err.contains("expected a size, as in \"512MiB\", "), "{run:?}");
    }
}

/// `-t` is a number, and counts more than another threshold.
#[test]
fn a_threshold_is_typed_in_one_way() {
    let place = Place::new();
    for (typed, threshold) in [
        ("-t 0.9", "0.9"),
        ("-t .7", "0.7"),
        ("--threshold=1", "1"),
        ("-t 0.7 -t 0.9", "0.9"),
        ("--set threshold=0.6 -t 0.9", "0.9"),
        ("-t 0.9 --set threshold=0.6", "0.9"),
        ("--set threshold=0.6", "0.6"),
    ] {
        let plan = place.run(&format!("plan {typed}"));
        let said = format!("of similarity {threshold} or more");
        assert!(plan.code == 0 && plan.out.contains(&said), "{typed}: {plan:?}");
    }
    for typed in ["--threshold=", "-t 0", "-t 2", "-t -0.5", "-t NaN", "-t 0,7"] {
        let refused = place.run(&format!("plan {typed}"));
        assert!(
            refused.code == 2 && refused.err.contains("expected a number above 0 and at most 1"),
            "{refused:?}"
        );
        assert!(refused.err.contains("--threshold <SIMILARITY>"), "{refused:?}");
    }
}
