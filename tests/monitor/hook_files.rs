//! The files of the web hook: its cursor, and the dead letters of what its receiver refuses.
//!
//! Bug classes: a disk that is full for a moment ends the deliveries of a run; two runs that deliver by one
//! cursor; a cursor of another file of notices.

use std::fs;

use serde_json::{Value, json};

use super::client::get;
use super::disk::Disk;
use super::receiver::{Mode, OK, Receiver, until};
use super::run::{Place, Process};
use super::watch::{append, deployment, post, state, text};

fn hooked(place: &Place, receiver: &Receiver, files: &str) {
    let url = format!("http://{}/in", receiver.address);
    deployment(
        place,
        &format!(
            "[notices.hook]\nurl = \"{url}\"\nsecret = \"0123456789abcdef\"\ntimeout = \"300ms\"\n{files}"
        ),
    );
}

fn cursor(place: &Place, name: &str) -> Option<Value> {
    fs::read(place.path(name)).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

fn waits(run: &Process, file: &str) -> bool {
    let ready = get(run.address, "/ready");
    ready.code == 503 && ready.body.contains(&format!("the web hook waits: its {file} cannot be stored"))
}

#[test]
fn the_web_hook_waits_while_the_disk_of_its_files_is_full() {
    let (place, receiver) = (Place::new(), Receiver::start());
    fs::create_dir(place.path("small")).unwrap();
    let Some(disk) = Disk::mount(&place.path("small"), "64k") else {
        println!("SKIPPED: not tried, since nothing may be mounted here");
        return;
    };
    hooked(&place, &receiver, "cursor = \"small/cursor\"\ndead_letter = \"small/refused\"\n");
    let run = place.start("run -c here.toml");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 99) })).code, 201);
    append(&place, 0, 1);
    until(|| cursor(&place, "small/cursor").is_some_and(|cursor| cursor["number"] == 1));
    // The cursor cannot be stored, and no more than one notice is sent before it is.
    disk.fill();
    append(&place, 1, 1);
    until(|| waits(&run, "cursor"));
    append(&place, 2, 1);
    until(|| state(&run, "/notices")["count"] == 3);
    assert!(state(&run, "/notices")["hook"]["failure"].as_str().unwrap().contains("small/cursor"));
    assert_eq!(receiver.accepted(), [1, 2]);
    disk.empty();
    until(|| receiver.accepted() == [1, 2, 3]);
    until(|| get(run.address, "/ready").code == 200);
    // Nor can the dead letter of a notice that is refused.
    disk.fill();
    receiver.set(Mode::Status(404));
    append(&place, 3, 1);
    until(|| waits(&run, "dead letter") || waits(&run, "cursor"));
    disk.empty();
    until(|| state(&run, "/notices")["hook"]["refused"] == 1);
    receiver.set(OK);
    append(&place, 4, 1);
    until(|| receiver.accepted() == [1, 2, 3, 5]);
    assert!(run.interrupt().success());
    assert_eq!(cursor(&place, "small/cursor").unwrap()["number"], 5);
    let refused = place.read("small/refused");
    let refused: Vec<Value> = refused.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(refused.iter().map(|one| &one["number"]).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_cursor_has_one_run_and_one_file_of_notices() {
    let (place, receiver) = (Place::new(), Receiver::start());
    hooked(&place, &receiver, "cursor = \"cursor\"\n");
    let run = place.start("run -c here.toml");
    assert_eq!(post(&run, &json!({ "id": "w", "text": text(1, 99) })).code, 201);
    append(&place, 0, 1);
    until(|| cursor(&place, "cursor").is_some_and(|cursor| cursor["number"] == 1));

    // Another run, with files of its own except the cursor.
    let mut other = place.read("here.toml");
    for name in ["out", "state", "watches", "notices"] {
        other = other.replace(&format!("\"{name}\""), &format!("\"other-{name}\""));
    }
    place.write("other.toml", &other);
    let (code, log) = place.done("run -c other.toml");
    assert!(code == Some(1) && log.contains("cursor: another run writes to it"), "{log}");
    // One that is removed is written again; one that is replaced ends the run, with its name.
    fs::remove_file(place.path("cursor")).unwrap();
    append(&place, 1, 1);
    until(|| cursor(&place, "cursor").is_some_and(|cursor| cursor["number"] == 2));
    fs::remove_file(place.path("cursor")).unwrap();
    place.write("cursor", "{\"number\":0,\"offset\":0}");
    append(&place, 2, 1);
    until(|| receiver.accepted() == [1, 2, 3]);
    append(&place, 3, 1);
    run.wait_for("cursor was replaced while this run had it");
    assert_eq!(run.ended().code(), Some(1));

    // Of other notices, which are longer than what was delivered.
    fs::remove_file(place.path("cursor")).unwrap();
    let again = place.start("run -c here.toml");
    until(|| cursor(&place, "cursor").is_some_and(|cursor| cursor["number"] == 4));
    assert!(again.interrupt().success());
    let notices = place.read("notices").replace("\"similarity\":", "\"similarity\": ");
    place.write("notices", &notices);
    let (ended, refusal) = place.done("run -c here.toml");
    assert!(ended == Some(1) && refusal.contains("remove it to deliver all notices again"), "{refusal}");
}
