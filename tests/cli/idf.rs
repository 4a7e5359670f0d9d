//! `evaluate --write-idf`, and pipelines with the frozen table that it writes.

use super::dupflow::{Ended, Place};

fn place() -> Place {
    let place = Place::new();
    place.file("feed", include_str!("../../pipelines/tour.jsonl"));
    place
}

fn fine(run: Ended) -> Ended {
    assert_eq!(run.code, 0, "{run:?}");
    run
}

#[test]
fn a_frozen_table_is_another_scheme_and_finds_what_the_live_one_does() {
    let place = place();
    let written = fine(place.run("evaluate --write-idf table --corpus feed"));
    assert!(written.out.is_empty() && written.err.contains("documents=8 "), "{written:?}");
    let frozen = " --set text.idf=table";
    let scheme = |settings: &str| {
        let text = fine(place.run(&format!("check -p weighted{settings}"))).out;
        text.split("scheme ").nth(1).expect("it names the scheme").trim_end().to_owned()
    };
    assert_eq!(scheme(frozen), scheme(frozen));
    assert_ne!(scheme(frozen), scheme(""));
    let (run, _) = place.replay(&format!("-p weighted --emit pairs{frozen} feed"));
    assert!(run.err.contains(&scheme(frozen)), "{run:?}");
    let pairs = |out: &str| out.matches("\"similarity\"").count();
    assert_eq!(pairs(&run.out), 1, "{run:?}");
    assert!(run.out.contains("\"news/bridge\"") && run.out.contains("\"paper/bridge\""), "{run:?}");
    let (live, _) = place.replay("-p weighted --emit pairs feed");
    assert_eq!(live.out, run.out, "{live:?}");
    // The frozen table is of the whole corpus, so `compare` prints no note on live frequencies.
    place.file("a", "The old stone bridge");
    place.file("b", "The old stone house");
    let compared = fine(place.run(&format!("compare -p weighted{frozen} a b")));
    assert!(!compared.out.contains("document frequencies are live"), "{compared:?}");
}

#[test]
fn a_table_of_other_rules_is_refused() {
    let place = place();
    fine(place.run("evaluate --write-idf table --corpus feed"));
    for command in ["check", "replay feed", "plan"] {
        let refused =
            place.run(&format!("{command} -p weighted --set text.idf=table --set text.shingle=words:2"));
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{refused:?}");
        let message = "error: --set text.idf=table: text.idf: \"table\": counted under other rules of \
            [text]: shingle is ";
        assert!(refused.err.starts_with(message) && refused.err.lines().count() == 1, "{refused:?}");
    }
    fine(place.run("evaluate --write-idf table --corpus feed --set text.shingle=words:2"));
    fine(place.run("check -p weighted --set text.idf=table --set text.shingle=words:2"));
    let nothing = place.run("evaluate --write-idf table");
    assert!(nothing.code == 2 && nothing.err.contains("--write-idf needs documents"), "{nothing:?}");
}

/// Two identical documents by weights that are 0 for what all documents have: no pair, and counted.
#[test]
fn texts_whose_features_all_weigh_nothing_are_counted() {
    let place = Place::new();
    let same = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"the lamp is lit at dusk\"}}\n");
    let other = |id: &str| format!("{{\"id\":\"{id}\",\"text\":\"{id} more texts {id}{id}\"}}\n");
    let empty = "{\"id\":\"empty\",\"text\":\"?\"}\n";
    let delete = "{\"id\":\"b\",\"op\":\"delete\"}\n";
    place.file("two", same("a") + &same("b") + empty);
    place.file("table", same("a") + &same("b"));
    let many: String = (0..9).map(|n| other(&format!("o{n}"))).collect();
    place.file("more", many);
    place.file("one", delete);
    for (options, inputs, [weightless, without_token, pairs]) in [
        ("", "two", [2, 1, 0]),
        ("", "two more", [0, 1, 1]),
        ("--epoch events:3", "two", [2, 1, 0]),
        ("--workers 3 --epoch events:3", "two one", [1, 1, 0]),
        ("--set text.idf=table", "two", [2, 1, 0]),
        ("--set text.idf=table", "two more", [2, 1, 0]),
        ("--set text.idf_form=smooth", "two", [0, 1, 1]),
    ] {
        let epoch = if options.contains("--epoch") { "" } else { "--epoch all " };
        let (run, stats) =
            place.replay(&format!("-p paper --emit pairs {epoch}{options} {inputs}").replace("  ", " "));
        let found = ["weightless", "empty", "pairs"].map(|count| stats[count].as_u64());
        assert_eq!(found, [weightless, without_token, pairs].map(Some), "{options} {inputs}: {}", run.err);
        let what = match weightless {
            1 => "; 1 text whose features all weigh 0, in no pair",
            _ => "; 2 texts whose features all weigh 0, in no pair",
        };
        assert_eq!(run.err.contains(what), weightless > 0, "{options} {inputs}: {}", run.err);
    }
}
