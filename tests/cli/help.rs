//! The help texts of the commands.

use super::dupflow::dupflow;

#[test]
fn the_help_lists_the_commands_and_a_first_run() {
    let help = dupflow(["--help"]);
    assert_eq!((help.code, help.err.as_str()), (0, ""));
    for part in [
        "Finds near-duplicate documents while the corpus changes",
        "dupflow generate -o feed.jsonl  &&  dupflow replay feed.jsonl",
        "Exit codes:  0 done, 1 failed while running, 2 wrong usage or configuration",
        "\n  replay ",
        "\n  run ",
        "\n  compare ",
        "\n  query ",
        "\n  trace ",
        "\n  plan ",
        "\n  check ",
        "\n  evaluate ",
        "\n  state ",
        "\n  generate ",
    ] {
        assert!(help.out.contains(part), "{part:?} is not in\n{}", help.out);
    }
}

#[test]
fn every_built_in_pipeline_is_named() {
    let help = dupflow(["replay", "--help"]).out;
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/pipelines")).expect("a folder") {
        let name = file.expect("a file").path();
        let name = name.file_stem().and_then(|stem| stem.to_str()).expect("a name");
        assert!(help.contains(&format!(" {name},")) || help.contains(&format!(" {name}. ")), "{name}");
    }
}

#[test]
fn every_command_explains_its_options() {
    let pipeline = [
        "-p, --pipeline <PIPELINE>",
        "[default: minhash]",
        "--set <KEY=VALUE>",
        "-t, --threshold <SIMILARITY>",
    ];
    let replay = [
        "[INPUT]...",
        "-o, --output <PLACE>",
        "--emit <WHAT>",
        "--epoch <RULE>",
        "[default: events:1000]",
        "--workers <N>",
        "as many as the machine has cores",
        "--stats <FILE>",
        "--evidence",
        "--speed <SPEED>",
        "--dead-letter <FILE>",
        "standard input",
    ];
    let generate = [
        "--documents <N>",
        "--seed <SEED>",
        "--truth <FILE>",
        "--near <SHARE>",
        "--scripts <SCRIPT,...>",
        "Try:",
    ];
    let evaluate = [
        "[STUDY]...",
        "filter: ",
        "-o, --output <FOLDER>",
        "--pages <FOLDER>",
        "--seeds <N>",
        "--pairs <N>",
        "--corpus <INPUT>",
        "--truth <FILE>",
        "Try:",
    ];
    let expected: [(&str, &[&str], bool); 10] = [
        ("replay", &replay, true),
        ("run", &["-c, --config <CONFIG>", "config/local.toml"], true),
        ("plan", &["--documents <N>", "--workers <N>", "--format <FORMAT>"], true),
        ("check", &["-c, --config <CONFIG>", "--connect"], true),
        ("compare", &["<A>", "<B>"], true),
        (
            "query",
            &["--corpus <INPUT>", "--lines <FILE>", "--top <N>", "--format <FORMAT>", "[TEXTFILE]..."],
            true,
        ),
        ("trace", &["--doc <ID>", "[INPUT]..."], true),
        ("generate", &generate, false),
        ("evaluate", &evaluate, false),
        ("state", &["inspect", "verify", "compact"], false),
    ];
    for (command, options, takes_pipeline) in expected {
        let help = dupflow([command, "--help"]);
        assert_eq!(help.code, 0, "{help:?}");
        let options = options.iter().chain(pipeline.iter().filter(|_| takes_pipeline));
        for option in options.chain(&["--log-format <FORMAT>"]) {
            assert!(help.out.contains(option), "{option:?} is not in\n{}", help.out);
        }
    }
}

#[test]
fn version_and_no_command() {
    assert_eq!(dupflow(["-V"]).out, concat!("dupflow ", env!("CARGO_PKG_VERSION"), "\n"));
    let nothing = dupflow::<&str>([]);
    assert_eq!((nothing.code, nothing.out.as_str()), (2, ""));
    assert!(nothing.err.contains("Usage: dupflow"), "{nothing:?}");
}

/// An editor reads the schema: it is JSON, and knows the tables.
#[test]
fn schemas_are_printed() {
    for (file, table, key) in [("pipeline", "sketch", "kind"), ("deployment", "source", "topic")] {
        let printed = dupflow(["check", "--schema", file]);
        assert_eq!((printed.code, printed.err.as_str()), (0, ""), "{printed:?}");
        let schema: serde_json::Value = serde_json::from_str(&printed.out).unwrap();
        let described = &schema["properties"][table]["properties"][key]["description"];
        assert!(described.as_str().is_some_and(|text| text.contains("Expected: ")), "{file}: {described}");
    }
    let beside = dupflow(["check", "--schema", "pipeline", "-c", "x.toml"]);
    assert_eq!(beside.code, 2, "{beside:?}");
}
