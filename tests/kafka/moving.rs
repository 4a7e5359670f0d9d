//! Ids that move between partitions. Partitions are added while documents have events in the old ones, and
//! the producer's hash puts later events of some ids in others. The accumulated result equals that of a fresh
//! run, with or without state.

use crate::Test;
use crate::broker::Broker;
use crate::run::{Run, Scene};

pub(crate) const TESTS: &[Test] = &[
    ("moving::ids_move_when_partitions_are_added", ids_move_when_partitions_are_added),
    ("moving::a_deleted_id_is_not_brought_back", a_deleted_id_is_not_brought_back),
    ("moving::times_in_rows_do_not_move_ids", times_in_rows_do_not_move_ids),
];

/// Logged once by a run that sees an id move.
const SAID: &str = "an id has events in two partitions";

/// A text. Texts of the same kind are equal.
fn text(kind: u32) -> String {
    (0..20).map(|n| format!("word{kind}x{n} ")).collect()
}

/// Writes upserts by kind, and deletes, with the record time `second`.
fn put(scene: &Scene<'_>, second: i64, changes: &[(u32, &str, Option<u32>)]) {
    put_as(scene, second, changes, &|text| text);
}

/// As `put`, with rows whose own `ts` is in 2001 whatever their record time.
fn put_rows(scene: &Scene<'_>, second: i64, changes: &[(u32, &str, Option<u32>)]) {
    let row = |text| serde_json::json!({ "text": text, "ts": 1_000_000_000 }).to_string();
    put_as(scene, second, changes, &row);
}

fn put_as(
    scene: &Scene<'_>,
    second: i64,
    changes: &[(u32, &str, Option<u32>)],
    value: &dyn Fn(String) -> String,
) {
    let writer = scene.broker.writer();
    for (partition, id, kind) in changes {
        let value = kind.map(|kind| value(text(kind)));
        let value = value.as_deref().map(str::as_bytes);
        let ms = Some(1_700_000_000_000 + second * 1000);
        writer.put_with(&scene.input, *partition, Some(id), value, ms, &[]);
    }
    writer.flush();
}

fn forget(scene: &Scene<'_>) {
    std::fs::remove_dir_all(scene.path("state")).unwrap();
}

/// Stops a run and checks how often it has logged a move.
fn stop(run: Run, times: usize) {
    let log = run.stop();
    assert_eq!(log.matches(SAID).count(), times, "{log}");
}

fn scene(broker: &Broker, partitions: u32) -> Scene<'_> {
    let mut scene = Scene::new(broker, partitions);
    scene.more = "state.path = \"state\"\n".to_owned();
    scene
}

fn ids_move_when_partitions_are_added(broker: &Broker) {
    let mut scene = scene(broker, 3);
    let (one, two, three) = (Some(1), Some(2), Some(3));
    put(
        &scene,
        0,
        &[(2, "a", one), (2, "b", one), (2, "c", one), (1, "d", two), (1, "e", two), (0, "f", three)],
    );
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c", "d e"]);
    broker.grow(&scene.input, 5);
    // Other partitions, lower and higher: an update, a delete, a new document.
    put(&scene, 10, &[(0, "a", two), (0, "b", None), (3, "d", three), (4, "g", three)]);
    output.until(&mut run, &["a e", "d f", "d g", "f g"]);
    stop(run, 1);
    // From the state.
    let mut run = scene.run(&[]);
    put(&scene, 20, &[(1, "h", one)]);
    output.until(&mut run, &["a e", "c h", "d f", "d g", "f g"]);
    stop(run, 0);
    // Without state: old and new partitions are read at the same time.
    forget(&scene);
    let mut run = scene.run(&[]);
    put(&scene, 30, &[(0, "i", two)]);
    output.until(&mut run, &["a e", "a i", "c h", "d f", "d g", "e i", "f g"]);
    stop(run, 1);
    // Without state and output: a fresh run on the same topic.
    forget(&scene);
    scene.output = Broker::name("pairs");
    let mut fresh = scene.output();
    let mut run = scene.run(&[]);
    fresh.until(&mut run, &["a e", "a i", "c h", "d f", "d g", "e i", "f g"]);
    assert_eq!(fresh.pairs.values().filter(|times| **times == 1).count(), 7);
    stop(run, 1);
}

/// An update keeps the `ts` of its row; a tombstone has the record time. An update in a lower partition
/// counts, and so does an upsert after a delete.
fn times_in_rows_do_not_move_ids(broker: &Broker) {
    let mut scene = scene(broker, 3);
    let (one, two) = (Some(1), Some(2));
    put_rows(&scene, 0, &[(2, "a", one), (2, "b", one), (1, "c", one), (2, "d", one)]);
    put_rows(&scene, 1, &[(2, "d", None)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    broker.grow(&scene.input, 5);
    put_rows(&scene, 10, &[(0, "a", two), (0, "d", two), (4, "b", None)]);
    output.until(&mut run, &["a d"]);
    stop(run, 1);
    // From the state: an event with an earlier record time changes nothing.
    let mut run = scene.run(&[]);
    put_rows(&scene, 2, &[(1, "a", one), (1, "b", one), (1, "d", None)]);
    put_rows(&scene, 11, &[(3, "e", two), (3, "f", one)]);
    output.until(&mut run, &["a d", "a e", "c f", "d e"]);
    stop(run, 1);
    // Without state; then also without output.
    forget(&scene);
    let mut run = scene.run(&[]);
    put_rows(&scene, 12, &[(3, "g", one)]);
    output.until(&mut run, &["a d", "a e", "c f", "c g", "d e", "f g"]);
    stop(run, 1);
    forget(&scene);
    scene.output = Broker::name("pairs");
    let mut fresh = scene.output();
    let mut run = scene.run(&[]);
    fresh.until(&mut run, &["a d", "a e", "c f", "c g", "d e", "f g"]);
    stop(run, 1);
}

/// A producer that knows only the old partitions writes an older event after the delete has been read.
fn a_deleted_id_is_not_brought_back(broker: &Broker) {
    let scene = scene(broker, 2);
    let one = Some(1);
    put(&scene, 0, &[(1, "a", one), (1, "b", one), (0, "c", one)]);
    let mut output = scene.output();
    let mut run = scene.run(&[]);
    output.until(&mut run, &["a b", "a c", "b c"]);
    put(&scene, 10, &[(0, "a", None)]);
    output.until(&mut run, &["b c"]);
    put(&scene, 5, &[(1, "a", one)]);
    put(&scene, 11, &[(1, "d", one)]);
    output.until(&mut run, &["b c", "b d", "c d"]);
    stop(run, 1);
    for (is_kept, id, expected) in [
        (true, "e", &["b c", "b d", "b e", "c d", "c e", "d e"][..]),
        (false, "f", &["b c", "b d", "b e", "b f", "c d", "c e", "c f", "d e", "d f", "e f"]),
    ] {
        if !is_kept {
            forget(&scene);
        }
        let mut run = scene.run(&[]);
        // Another event older than the delete, and a later one that shows that it has been read.
        put(&scene, 6, &[(1, "a", one)]);
        put(&scene, 12, &[(1, id, one)]);
        output.until(&mut run, expected);
        stop(run, 1);
    }
}
