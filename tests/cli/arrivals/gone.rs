//! What an earlier run has read or written and what is gone, replaced, edited or cut since.

use std::collections::BTreeSet;

use super::{ENDS, Setup, accumulated, end, lines, text, with_three};
use crate::dupflow::Place;

#[test]
fn inputs_that_are_gone_are_refused_or_deleted() {
    for setup in Setup::LINES.both() {
        for how in ENDS {
            let place = with_three(setup);
            end(&place, "in/2.jsonl", how);
            let before = (place.read("out"), place.read("out.mark"));
            let refused = setup.run(&place);
            let says = match how {
                "missing" => "\"in/2.jsonl\" was read, and is missing",
                "replaced" => "\"in/2.jsonl\" has been replaced: other bytes were read",
                _ => "\"in/2.jsonl\" has fewer than the ",
            };
            assert!(refused.code == 1 && refused.err.contains(says), "{how}: {refused:?}");
            assert!(refused.err.contains("source.gone = \"delete\""), "{how}: {refused:?}");
            assert_eq!((place.read("out"), place.read("out.mark")), before, "nothing is written");
            let setup = Setup { gone: "delete", ..setup };
            setup.follows(&place, how);
        }
    }
}

/// A document that an earlier file gave is there again when the file that replaced it is not.
#[test]
fn a_document_that_was_replaced_is_there_again() {
    for setup in Setup::LINES.both() {
        let setup = Setup { source: "ids = \"last\"\n", gone: "delete", ..setup };
        let place = Place::new();
        place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "bridge")]));
        place.file("in/2.jsonl", lines(&[("b", "market")]));
        setup.follows(&place, "first");
        assert!(accumulated(&place, "out").is_empty());
        end(&place, "in/2.jsonl", "missing");
        setup.follows(&place, "the first one counts");
        assert_eq!(accumulated(&place, "out").len(), 1);
    }
}

#[test]
fn documents_of_inputs_that_are_gone_can_be_kept() {
    for how in ENDS {
        let setup = Setup { gone: "keep", ..Setup::LINES };
        let place = with_three(setup);
        let before = accumulated(&place, "out");
        end(&place, "in/2.jsonl", how);
        place.file("in/0.jsonl", lines(&[("f", "bridge")]));
        let kept = setup.run(&place);
        assert_eq!(kept.code, 0, "{how}: {kept:?}");
        assert!(kept.err.contains("inputs are gone: their documents are kept"), "{how}: {kept:?}");
        let now = accumulated(&place, "out");
        // f with a and c, and of the file that was replaced two with the three about the bridge, one with
        // three about the market, and these two with each other.
        let more = if how == "replaced" { 2 + 6 + 3 + 1 } else { 2 };
        assert!(before.is_subset(&now) && now.len() == before.len() + more, "{how}: {now:?}");
        let length = place.read("out").len();
        let again = setup.run(&place);
        assert_eq!((again.code, place.read("out").len()), (0, length), "{how}: {again:?}");
    }
    let place = Place::new();
    place.file("in/1.jsonl", "");
    let alone = Setup { gone: "keep", has_state: false, ..Setup::LINES }.run(&place);
    assert!(alone.code == 2 && alone.err.contains("set state.path too"), "{alone:?}");
}

/// Records without ids are numbered: those of a new file would replace some of the old one.
#[test]
fn numbered_records_of_a_replaced_file_are_not_kept() {
    let place = Place::new();
    let unnamed = |topics: &[&str]| {
        let line = |topic: &&str| serde_json::json!({ "text": text(topic) }).to_string() + "\n";
        topics.iter().map(line).collect::<String>()
    };
    place.file("in/1.jsonl", unnamed(&["bridge", "bridge", "market", "market"]));
    Setup::LINES.follows(&place, "first");
    let before = place.read("out");
    place.file("in/1.jsonl", unnamed(&["harbour", "bridge"]));
    let refused = Setup { gone: "keep", ..Setup::LINES }.run(&place);
    assert!(refused.code == 1 && refused.err.contains("its records are numbered"), "{refused:?}");
    assert_eq!(place.read("out"), before);
    Setup { gone: "delete", ..Setup::LINES }.follows(&place, "as the message says");
}

/// A record that is changed in place, before the end of the file, which keeps its size.
#[test]
fn a_file_that_was_edited_in_place_is_another_one() {
    for setup in Setup::LINES.both() {
        let place = Place::new();
        let many: Vec<_> = (0..200).map(|number| (number.to_string(), format!("thing{number}"))).collect();
        let many: Vec<_> = many.iter().map(|(id, topic)| (&**id, &**topic)).collect();
        let first = lines(&[("a", "bridge"), ("b", "bridge")]);
        place.file("in/1.jsonl", first.clone() + &lines(&many));
        setup.follows(&place, "first");
        place.file("in/1.jsonl", first.replacen("bridge", "market", 2) + &lines(&many));
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("has been replaced"), "{refused:?}");
        Setup { gone: "delete", ..setup }.follows(&place, "edited");
        assert_eq!(accumulated(&place, "out").len(), 0);
    }
}

/// The rules of the documents are corrected, and an input has expired: the list lies in the state, whose
/// documents cannot be used.
#[test]
fn an_expired_input_is_not_dropped_by_a_corrected_rule() {
    let place = Place::new();
    place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "bridge")]));
    Setup::LINES.follows(&place, "first");
    let both = lines(&[("c", "market"), ("d", "market")]).replace("\"text\"", "\"body\"");
    place.file("in/2.jsonl", both.replace("\"body\":", "\"text\":\"another\",\"body\":"));
    Setup::LINES.follows(&place, "the list is in the state");
    std::fs::remove_file(place.path("in/1.jsonl")).unwrap();
    let reconcile = |gone: &'static str| {
        Setup { gone, source: "text_path = \"body\"\n", ..Setup::LINES }.write(&place);
        place.run("run -p exact -c here.toml --reconcile")
    };
    for (gone, says) in [("", "source.gone = \"delete\""), ("keep", "the rules by which records become")] {
        let before = place.read("out");
        let refused = reconcile(gone);
        assert!(
            refused.code == 1 && refused.err.contains("in/1.jsonl") && refused.err.contains(says),
            "{refused:?}"
        );
        assert_eq!(place.read("out"), before);
    }
    let deleted = reconcile("delete");
    assert!(deleted.code == 0 && deleted.err.contains("in/1.jsonl"), "{deleted:?}");
    assert_eq!(accumulated(&place, "out"), BTreeSet::from([("c".to_owned(), "d".to_owned())]));
}

/// The list lay in a state that is lost: what is missing is not known by name.
#[test]
fn a_lost_state_does_not_hide_an_expired_input() {
    for gone in ["", "keep"] {
        let place = Place::new();
        let setup = Setup { gone, ..Setup::LINES };
        place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "bridge")]));
        setup.follows(&place, "first");
        place.file("in/2.jsonl", lines(&[("c", "market"), ("d", "market")]));
        setup.follows(&place, "the list is in the state");
        std::fs::remove_dir_all(place.path("state")).unwrap();
        for what in ["all inputs are there", "the list is in the new state"] {
            place.file(format!("in/{what}.jsonl"), lines(&[(what, "harbour")]));
            setup.follows(&place, what);
        }
        std::fs::remove_dir_all(place.path("state")).unwrap();
        std::fs::remove_file(place.path("in/1.jsonl")).unwrap();
        let before = place.read("out");
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("is lost"), "{refused:?}");
        assert_eq!(place.read("out"), before);
        let reconciled = place.run("run -p exact -c here.toml --reconcile");
        assert_eq!(reconciled.code, 0, "as the message says: {reconciled:?}");
        assert_eq!(accumulated(&place, "out"), setup.fresh(&place));
    }
}

/// A folder of texts that is empty, as one whose disk is not mounted.
#[test]
fn an_empty_folder_does_not_delete_everything() {
    for setup in (Setup { inputs: "\"in\"", ..Setup::LINES }).both() {
        let place = Place::new();
        place.file("in/a.txt", text("bridge"));
        place.file("in/b.txt", text("bridge"));
        setup.follows(&place, "first");
        for name in ["in/a.txt", "in/b.txt"] {
            std::fs::remove_file(place.path(name)).unwrap();
        }
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("no input is there any more"), "{refused:?}");
        Setup { gone: "delete", ..setup }.follows(&place, "as the message says");
    }
}

/// What is written anew at the end of each run has nothing that must be corrected.
#[test]
fn a_list_with_a_state_follows_every_change() {
    let place = Place::new();
    let run = |gone: &str, source: &str, more: &str| {
        place.file(
            "here.toml",
            format!(
                "[source]\nkind = \"files\"\ninputs = [\"in/*.jsonl\"]\n{gone}{source}[state]\npath = \
                 \"state\"\n[sink]\nkind = \"lines\"\npath = \"list\"\nemit = \"pairs\"\n"
            ),
        );
        place.run(format!("run -p exact -c here.toml {more}").trim())
    };
    place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "bridge")]));
    let both = lines(&[("c", "market"), ("d", "market")]).replace("\"text\"", "\"body\"");
    place.file("in/2.jsonl", both.replace("\"body\":", "\"text\":\"the market of this town\",\"body\":"));
    let first = run("", "", "");
    assert_eq!((first.code, place.read("list").lines().count()), (0, 2), "{first:?}");
    std::fs::remove_file(place.path("in/1.jsonl")).unwrap();
    assert_eq!(run("", "", "").code, 1);
    let deleted = run("gone = \"delete\"\n", "", "");
    assert_eq!((deleted.code, place.read("list").lines().count()), (0, 1), "{deleted:?}");
    let refused = run("", "text_path = \"body\"\n", "");
    assert!(refused.code == 1 && refused.err.contains("--reconcile"), "{refused:?}");
    let reconciled = run("", "text_path = \"body\"\n", "--reconcile");
    assert_eq!((reconciled.code, place.read("list").lines().count()), (0, 1), "{reconciled:?}");
}

/// Lines of another program are not cut off.
#[test]
fn what_others_have_appended_is_refused() {
    for (name, remedy) in [("out", "take it out of the file"), ("dead", "move it away")] {
        let place = Place::new();
        let setup = Setup { source: "[dead_letter]\npath = \"dead\"\n", ..Setup::LINES };
        place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "bridge")]) + "oops\n");
        assert_eq!(setup.run(&place).code, 0);
        let own = place.read(name);
        place.file(name, own.clone() + "# a note\n");
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains(remedy), "{refused:?}");
        assert_eq!(place.read(name), own.clone() + "# a note\n");
        // As a crash leaves it, in a commit.
        place.file(name, own.clone() + &own[..own.len() / 2]);
        assert_eq!(setup.run(&place).code, 0);
        assert_eq!(place.read(name), own);
    }
}

/// Letters that were taken away stay away; a part of one is no letter.
#[test]
fn letters_that_end_in_the_middle_are_refused() {
    let place = Place::new();
    let setup = Setup { source: "[dead_letter]\npath = \"dead\"\n", ..Setup::LINES };
    place.file("in/1.jsonl", lines(&[("a", "bridge")]) + "oops\noops\n");
    assert_eq!(setup.run(&place).code, 0);
    let letters = place.read("dead");
    place.file("dead", &letters[..letters.len() - 9]);
    place.file("in/2.jsonl", "oops\n");
    let refused = setup.run(&place);
    assert!(refused.code == 1 && refused.err.contains("in the middle of a letter"), "{refused:?}");
    place.file("dead", "");
    assert_eq!(setup.run(&place).code, 0);
    assert_eq!(place.read("dead").lines().count(), 1);
}
