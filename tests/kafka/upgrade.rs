//! A run from topic to topic that an earlier program has left: its broker's data, topic ids included, and its
//! state. This program runs on, also where the input has expired.
//!
//! The fixture was made by `produce` and `run -p exact --set threshold=0.6` of the program that its folder
//! names, from topic `documents` (two partitions) to `pairs`, in a store of `broker.sh` that was then
//! stopped.

use std::path::Path;

use crate::Test;
use crate::broker::Broker;
use crate::commands::dupflow;
use crate::run::Scene;

pub(crate) const TESTS: &[Test] = &[
    ("upgrade::the_input_is_still_there", the_input_is_still_there),
    ("upgrade::the_input_has_expired", the_input_has_expired),
];

fn the_input_is_still_there(_: &Broker) {
    runs_on(false);
}

fn the_input_has_expired(_: &Broker) {
    runs_on(true);
}

fn runs_on(has_expired: bool) {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/broker/2d3b2454");
    let Ok(broker) = Broker::restored(&fixture.join("data.tar.gz")) else {
        println!("SKIPPED: this broker keeps no data of its own");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("state")).unwrap();
    for file in std::fs::read_dir(fixture.join("state")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), folder.path().join("state").join(file.file_name())).unwrap();
    }
    let (input, output) = ("documents".to_owned(), "pairs".to_owned());
    let scene = Scene { broker: &broker, folder, input, output, more: "state.path = \"state\"\n".to_owned() };
    if has_expired {
        let admin = broker.admin();
        for partition in 0..2 {
            let (_, end) = admin.offset_range(&scene.input, partition).unwrap();
            admin.truncate(&scene.input, partition, end).unwrap();
        }
    }
    let mut pairs = scene.output();
    // Defaults have changed since: a start says how to go on by the earlier ones.
    let refused = scene.run(&["--set", "threshold=0.6"]).failure();
    assert!(refused.contains("(--set text.normalize=none --set text.invisible=keep)"), "{refused}");
    let settings = ["threshold=0.6", "text.normalize=none", "text.invisible=keep"];
    let settings: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let mut run = scene.run(&settings);
    pairs.until(&mut run, &["bread copy", "edited news"]);
    let feed = fixture.join("later.jsonl");
    let produced = dupflow(scene.folder.path(), &["produce", "-c", "run.toml", feed.to_str().unwrap()]);
    assert!(produced.2, "{produced:?}");
    pairs.until(&mut run, &["again edited", "bread copy", "bread late", "copy late"]);
    run.stop();
    let mut again = scene.run(&settings);
    again.says("live from");
    again.stop();
}
