//! Environment variables in a deployment file.

use std::path::Path;

use crate::config::Deployment;

const LOCAL: &str = include_str!("../../../../../config/local.toml");

#[test]
fn a_deployment_takes_variables() {
    let none = |_: &str| None;
    let local = Deployment::parse("local.toml", LOCAL, &none).unwrap();
    assert_eq!((local.workers, local.output_file()), (None, None));
    assert_eq!(local.inputs(), [Path::new("-")]);
    let some = |name: &str| match name {
        "DUPFLOW_WORKERS" => Some("2".to_owned()),
        "DUPFLOW_INPUT" => Some("a b.jsonl".to_owned()),
        _ => Some(String::new()),
    };
    let set = Deployment::parse("local.toml", LOCAL, &some).unwrap();
    assert_eq!((set.workers.map(usize::from), set.output_file()), (Some(2), None));
    assert_eq!(set.inputs(), [Path::new("a b.jsonl")]);
}

#[test]
fn values_of_variables_are_never_printed() {
    let text = "workers = \"${SECRET}\"\nstate.paths = \"x\"\n[source]\ninputs = [\"${MISSING}\"]\nkind \
        = \"queue\"\n\
                epoch = \"${SECRET}\"\n[sink]\nemit = \"${SECRET}\"\npath = \"${SECRET\"\n";
    let secret = |name: &str| (name == "SECRET").then(|| "hunter2".to_owned());
    let error = Deployment::parse("l.toml", text, &secret).unwrap_err().to_string();
    let reported: Vec<&str> = error.lines().collect();
    assert_eq!(
        reported,
        [
            "l.toml:1: workers: found \"${SECRET}\", expected a whole number from 1 to 1024, or \"cores\"",
            "l.toml:2: state.paths: unknown key; did you mean \"state.path\"?",
            "l.toml:4: source.inputs: the variable MISSING of the environment is not \
            set; \"${MISSING:-default}\" gives a \
             default",
            "l.toml:5: source.kind: found \"queue\", expected \"files\", \"kafka\", \"sqlite\", \
             \"postgres\" or \"http\"",
            "l.toml:6: source.epoch: found \"${SECRET}\", expected \"events:N\", \"every:T\" with T as \
            in \"100ms\", \
             \"events:N,every:T\", \"ts\" or \"all\"",
            "l.toml:8: sink.emit: found \"${SECRET}\", \
            expected \"deltas\", \"pairs\", \"clusters\", \"cluster-deltas\", \"keep\", \"remove\" or \
            \"decisions\"",
            "l.toml:9: sink.path: \"${\" without a \"}\"",
        ]
    );
    let empty = Deployment::parse("l.toml", "", &secret).unwrap_err().to_string();
    assert_eq!(
        empty,
        "l.toml: source.inputs: found nothing, expected a list of paths, at least one; \"-\" is standard \
        input"
    );
}
