//! Rules of how records become documents that are changed between two runs, while the topic holds all records
//! or has lost its first ones.

use dupflow::connectors::state::{self, StatePosition, StoredState};
use serde_json::json;

use crate::Test;
use crate::broker::Broker;
use crate::changed::change_mark;
use crate::run::{Output, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("rules::records_are_read_again_under_a_corrected_rule", records_are_read_again_under_a_corrected_rule),
    ("rules::documents_of_expired_records_stay", documents_of_expired_records_stay),
    ("rules::documents_of_another_scheme_are_named", documents_of_another_scheme_are_named),
    (
        "rules::another_start_is_read_from_where_it_is_asked_for",
        another_start_is_read_from_where_it_is_asked_for,
    ),
    ("rules::a_state_of_an_earlier_version_goes_on", a_state_of_an_earlier_version_goes_on),
];

const STATE: &str = "state.path = \"state\"\n";

/// A text; texts of one kind are equal.
fn text(kind: u32) -> String {
    (0..20).map(|n| format!("word{kind}x{n} ")).collect()
}

/// Writes rows: the key `kN`, an id `iN`, and texts of these kinds as title, body and header.
fn rows(scene: &Scene<'_>, partition: u32, rows: &[(u32, [u32; 3])]) {
    let writer = scene.broker.writer();
    for (n, kinds) in rows {
        let [title, body, header] = kinds.map(text);
        let value = json!({ "id": format!("i{n}"), "title": title, "body": body, "ts": n, "date": 100 - n });
        let value = value.to_string();
        let headers = [("extra", &*header)];
        let (key, value) = (format!("k{n}"), Some(value.as_bytes()));
        writer.put_with(&scene.input, partition, Some(&key), value, None, &headers);
    }
    writer.flush();
}

fn scene<'b>(broker: &'b Broker, settings: &str) -> (Scene<'b>, Output) {
    let mut scene = Scene::new(broker, 2);
    scene.more = format!("{STATE}{settings}");
    rows(&scene, 0, &[(1, [1, 5, 7]), (2, [1, 6, 7]), (3, [2, 6, 8])]);
    rows(&scene, 1, &[(4, [2, 5, 9]), (5, [3, 6, 7]), (9, [9, 9, 9]), (0, [9, 9, 9])]);
    let output = scene.output();
    (scene, output)
}

/// Settings before and after, options of both runs, and the pairs under each. With all records there.
/// A rule that was wrong, the right one, and what each gives.
type Change<'a> = (&'a str, &'a str, &'a str, &'a [&'a str], &'a [&'a str], &'a [&'a str]);

fn records_are_read_again_under_a_corrected_rule(broker: &Broker) {
    let body = "source.text_path = \"body\"\n";
    let changes: &[Change<'_>] = &[
        (
            "source.text_path",
            "source.text_path = \"title\"\n",
            body,
            &[],
            &["k0 k9", "k1 k2", "k3 k4"],
            &["k0 k9", "k1 k4", "k2 k3", "k2 k5", "k3 k5"],
        ),
        (
            "source.id_path",
            "source.text_path = \"title\"\n",
            "source.text_path = \"title\"\nsource.id_path = \"id\"\n",
            &[],
            &["k0 k9", "k1 k2", "k3 k4"],
            &["i0 i9", "i1 i2", "i3 i4"],
        ),
        (
            "source.format",
            "source.format = \"text\"\n",
            "source.format = \"json\"\nsource.text_path = \"title\"\n",
            &["--set", "threshold=0.5"],
            &["k0 k9"],
            &["k0 k9", "k1 k2", "k3 k4"],
        ),
        (
            "source.ts_path",
            "source.text_path = \"body\"\nsource.ts_path = \"ts\"\n",
            "source.text_path = \"body\"\nsource.ts_path = \"date\"\n",
            &["--set", "retention.max_age=7s"],
            &["k2 k3", "k2 k5", "k3 k5"],
            &["k1 k4", "k2 k3", "k2 k5", "k3 k5"],
        ),
        (
            "source.headers",
            "source.text_path = \"title\"\nsource.headers = []\n",
            "source.text_path = \"title\"\nsource.headers = [\"extra\"]\n",
            &["--set", "text.fields.extra=1", "--set", "threshold=0.9"],
            &["k0 k9", "k1 k2", "k3 k4"],
            &["k0 k9", "k1 k2"],
        ),
    ];
    for (key, before, after, options, at_first, at_last) in changes {
        let (mut scene, mut output) = scene(broker, before);
        let mut run = scene.run(options);
        output.until(&mut run, at_first);
        run.stop();
        scene.more = format!("{STATE}{after}");
        let error = scene.fails(options);
        assert!(error.contains(key) && error.contains("--reconcile"), "{key}: {error}");
        let mut run = scene.run(&[options, &["--reconcile"][..]].concat());
        output.until(&mut run, at_last);
        run.stop();
        let mut run = scene.run(options);
        let (last, named) = (at_last[0].as_bytes()[0] as char, *key != "source.ts_path");
        let more = format!("{last}7 {last}8");
        if named {
            rows(&scene, 1, &[(7, [4, 4, 4]), (8, [4, 4, 4])]);
        }
        output.until(&mut run, &[at_last, &[&*more][..usize::from(named)]].concat());
        run.stops_live();
    }
}

fn documents_of_expired_records_stay(broker: &Broker) {
    let (mut scene, mut output) = scene(broker, "source.text_path = \"title\"\n");
    let mut run = scene.run(&[]);
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k4"]);
    run.stop();
    // The first two records of partition 0 expire: k1 and k2.
    broker.admin().truncate(&scene.input, 0, 2).unwrap();
    scene.more = format!("{STATE}source.text_path = \"body\"\n");
    let error = scene.fails(&[]);
    assert!(error.contains("source.text_path is \"title\" there and \"body\" here"), "{error}");
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k5"]);
    let log = run.stop();
    assert!(log.contains("stay as they were read before documents=2"), "{log}");
    assert!(log.contains("k1") && log.contains("k2"), "{log}");
    assert!(log.contains("2 documents whose record the input no longer holds"), "{log}");
    let mut run = scene.run(&[]);
    rows(&scene, 0, &[(1, [0, 6, 0])]);
    output.until(&mut run, &["k0 k9", "k1 k3", "k1 k5", "k3 k5"]);
    run.stop();
    // Once more, with a state of both rules, and a run that is killed when it has taken documents out of it.
    scene.more = format!("{STATE}source.text_path = \"title\"\n");
    let mut run = scene.run(&["--reconcile"]);
    run.says("stay as they were read before documents=1");
    run.kill();
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["k0 k9", "k3 k4"]);
    run.stop();
}

fn documents_of_another_scheme_are_named(broker: &Broker) {
    let (scene, mut output) = scene(broker, "source.text_path = \"title\"\n");
    let mut run = scene.run(&[]);
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k4"]);
    run.stop();
    broker.admin().truncate(&scene.input, 0, 2).unwrap();
    let mut run = scene.run(&["--set", "text.shingle=words:2", "--reconcile"]);
    output.until(&mut run, &["k0 k9", "k3 k4"]);
    let log = run.stop();
    assert!(log.contains("they are no longer in the corpus documents=2"), "{log}");
}

fn another_start_is_read_from_where_it_is_asked_for(broker: &Broker) {
    let (mut scene, mut output) =
        scene(broker, "source.text_path = \"title\"\nsource.start = \"offsets:0=2,1=0\"\n");
    let mut run = scene.run(&[]);
    output.until(&mut run, &["k0 k9", "k3 k4"]);
    run.stop();
    scene.more = format!("{STATE}source.text_path = \"title\"\nsource.start = \"earliest\"\n");
    let mut run = scene.run(&[]);
    run.says("source.start has changed");
    run.stop();
    let mut run = scene.run(&["--reconcile"]);
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k4"]);
    run.stop();
    // From the end on there would be nothing to read again.
    scene.more = format!("{STATE}source.text_path = \"title\"\nsource.start = \"latest\"\n");
    let mut run = scene.run(&["--reconcile"]);
    rows(&scene, 0, &[(6, [3, 0, 0])]);
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k4", "k5 k6"]);
    run.stop();
}

/// A mark and a state of a version that did not note `source.headers`.
fn a_state_of_an_earlier_version_goes_on(broker: &Broker) {
    let settings = "source.text_path = \"title\"\nsource.headers = [\"extra\"]\n";
    let options = ["--set", "text.fields.extra=1", "--set", "threshold=0.9"];
    let (mut scene, mut output) = scene(broker, settings);
    let mut run = scene.run(&options);
    output.until(&mut run, &["k0 k9", "k1 k2"]);
    run.stop();
    change_mark(&scene, |mark| {
        let removed = mark.as_object_mut().unwrap().remove("source");
        assert!(removed.is_some(), "{mark}");
    });
    let path = scene.path("state");
    let mut kept = StoredState::open(state::at(path.to_str().unwrap()).unwrap()).unwrap();
    let found = kept.latest(u64::MAX).unwrap().unwrap();
    let mut saved: StatePosition = found.saved().clone();
    saved.mark.source.clear();
    kept.publish(&saved, &[]).unwrap();
    drop(kept);
    let mut run = scene.run(&options);
    run.says("the state is of an earlier version, which did not note how the source is read");
    run.says("documents restored from the state");
    run.stop();
    // Where a change cannot be known, the advice reads again.
    scene.more = "source.text_path = \"title\"\nstate.path = \"other\"\n".to_owned();
    let mut run = scene.run(&[&options[..], &["--reconcile"]].concat());
    output.until(&mut run, &["k0 k9", "k1 k2", "k3 k4"]);
    run.stop();
}
