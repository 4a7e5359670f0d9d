//! Rejected settings with their messages.

use std::time::Duration;

use super::{plan, problems};
use dupflow_core::doc::retention::{Retention, RetentionClock};

#[test]
fn values_out_of_range_or_of_the_wrong_type() {
    for (typed, expected) in [
        ("threshold = 0", "threshold: found 0, expected a number above 0 and at most 1"),
        ("threshold = 1.01", "threshold: found 1.01, expected a number above 0 and at most 1"),
        ("threshold = nan", "threshold: found nan, expected a number above 0 and at most 1"),
        ("threshold = \"0.8\"", "threshold: found \"0.8\", expected a number above 0 and at most 1"),
        ("threshold = 2020-01-01", "threshold: found 2020-01-01, expected a number above 0 and at most 1"),
        ("sketch.size = 15", "sketch.size: found 15, expected a whole number from 16 to 32768"),
        ("sketch.size = 32769", "sketch.size: found 32769, expected a whole number from 16 to 32768"),
        ("sketch.size = 448.0", "sketch.size: found 448.0, expected a whole number from 16 to 32768"),
        ("sketch.bits = 0.5", "sketch.bits: found 0.5, expected a number from 1 to 64"),
        ("sketch.seed = -1", "sketch.seed: found -1, expected a whole number from 0 to 2^63 - 1"),
        ("blocking.rows = 65", "blocking.rows: found 65, expected a whole number from 1 to 64"),
        ("blocking.recall = 1.0", "blocking.recall: found 1.0, expected a number above 0 and below 1"),
        ("blocking.cap = 1", "blocking.cap: found 1, expected a whole number from 2 to 1000000"),
        (
            "blocking.hot = \"dead\"",
            "blocking.hot: found \"dead\", expected \"leaders\", \"skip\" or \"never\"",
        ),
        ("blocking.leaders = 65", "blocking.leaders: found 65, expected a whole number from 1 to 64"),
        ("filter.error = 0.2", "filter.error: found 0.2, expected a number from 1e-200 to 0.1"),
        ("filter.error = 1e-300", "filter.error: found 1e-300, expected a number from 1e-200 to 0.1"),
        ("filter.looks = 64", "filter.looks: found 64, expected a list of whole numbers from 1 to 32768"),
        (
            "text.shingle = 3",
            "text.shingle: found 3, expected \"words:N\" or \"chars:N\" with N from 1 to 100",
        ),
        (
            "text.shingle = \"words:0\"",
            "text.shingle: found \"words:0\", expected \"words:N\" or \"chars:N\" with N from 1 to 100",
        ),
        ("text.normalize = \"NFC\"", "text.normalize: found \"NFC\", expected \"none\", \"nfc\" or \"nfkc\""),
        (
            "output.clusters = \"stars\"",
            "output.clusters: found \"stars\", expected \"components\" or \"star\"",
        ),
        (
            "output.cluster_limit = 1",
            "output.cluster_limit: found 1, expected a whole number from 2 to 10000000",
        ),
        ("output.on_error = true", "output.on_error: found true, expected \"count\" or \"fail\""),
        (
            "text.stop_words = [\"the\", \"don't\", \"two words\"]",
            "text.stop_words: found \"don't\" and 1 more, expected words that are one token each by the \
            rules of [text]",
        ),
    ] {
        assert_eq!(problems(typed, &[]), [format!("p.toml:1: {expected}")]);
    }
}

#[test]
fn unknown_keys_name_the_nearest_known_one() {
    for (typed, expected) in [
        ("treshold = 0.8", "treshold: unknown key; did you mean \"threshold\"?"),
        ("size = 448", "size: unknown key; did you mean \"sketch.size\"?"),
        ("[blocking]\nrow = 7", "blocking.row: unknown key; did you mean \"blocking.rows\"?"),
        ("[filter]\nseed = 7", "filter.seed: unknown key; did you mean \"sketch.seed\"?"),
        ("[blocks]", "blocks: unknown key"),
        ("colour = 1", "colour: unknown key"),
        (
            "sketch = 448",
            "sketch: found 448, expected a table with the keys kind, size, bits, seed, run, sections, mode, \
            base, bound, ties, scale, least",
        ),
        ("threshold.value = 1", "threshold.value: unknown key"),
    ] {
        let line = typed.lines().count();
        assert_eq!(problems(typed, &[]), [format!("p.toml:{line}: {expected}")]);
    }
}

#[test]
fn retention_is_parsed_and_invalid_ages_are_refused() {
    let read =
        plan("[retention]\nmax_age = \"30d\"\nmax_documents = 4294967295\nclock = \"wall\"", &[]).unwrap();
    let (max_age, clock) = (Some(Duration::from_secs(30 * 24 * 60 * 60)), RetentionClock::Wall);
    assert_eq!(read.retention, Retention { max_age, max_documents: Some(u64::from(u32::MAX)), clock });
    assert_eq!(
        plan("", &["retention.max_age=90s"]).unwrap().retention.max_age,
        Some(Duration::from_secs(90))
    );
    assert_eq!(
        problems("retention.max_age = 30", &[]),
        ["p.toml:1: retention.max_age: found 30, expected an age as in \"30d\", \"12h\", \"5m\" \
            or \"90s\", up to \"36500d\""]
    );
    assert_eq!(
        problems("retention.max_documents = 0", &[]),
        ["p.toml:1: retention.max_documents: found 0, expected a whole number from 1 to 4294967295"]
    );
}

#[test]
fn an_unknown_choice_is_reported_with_the_choices() {
    assert_eq!(
        problems("measure = \"color\"", &[]),
        ["p.toml:1: measure: found \"color\", expected \"jaccard\", \"weighted-jaccard\", \"cosine\", \
          \"containment\" or \"hamming\""]
    );
}

#[test]
fn contradictions() {
    for (typed, expected) in [
        (
            "blocking.bands = 64\nblocking.rows = 8",
            "p.toml:2: blocking.rows: bands = 64 and rows = 8 do not fit: ",
        ),
        (
            "blocking.recall = 0.99\nblocking.bands = 18\nblocking.rows = 9",
            "p.toml:1: blocking.recall: bands = 18 and rows = 9 reach a recall of only 0.9511 at similarity \
            0.8, not 0.99; ",
        ),
        (
            "blocking.kind = \"scan\"\nblocking.cap = 9",
            "p.toml:2: blocking.cap: has no effect with blocking.kind = \"scan\"",
        ),
        (
            "sketch.bits = 1\nblocking.kind = \"groups\"\nblocking.cap = 9",
            "p.toml:3: blocking.cap: has no effect with blocking.kind = \"groups\", of which no block is hot \
            unless blocking.hot is set",
        ),
        (
            "blocking.hot = \"skip\"\nblocking.leaders = 2",
            "p.toml:2: blocking.leaders: has no effect with blocking.hot = \"skip\"",
        ),
        (
            "[filter]\nkind = \"full\"\nlooks = [64]",
            "p.toml:3: filter.looks: has no effect with filter.kind = \"full\"",
        ),
        (
            "filter.verify = \"exact\"\nfilter.kind = \"paper\"",
            "p.toml:1: filter.verify: filter kind \"paper\" decides by the sketches alone; ",
        ),
        (
            "sketch.kind = \"odd\"",
            "p.toml: blocking.kind: \"odd\" has no components to cut bands from; set blocking.kind \
            = \"scan\", or blocking.sketch = \
             \"fss\" for bands of a second sketch",
        ),
        (
            "sketch.kind = \"bottom-k\"\nblocking.kind = \"scan\"\nfilter.kind = \"staged\"",
            "p.toml:3: filter.kind: a sketch of kind \"bottom-k\" is compared as a whole; ",
        ),
        (
            "sketch.kind = \"oph\"\nfilter.kind = \"staged\"\nfilter.verify = \"exact\"",
            "p.toml:2: filter.kind: a sketch of kind \"oph\" promises nothing about exact similarity when ",
        ),
        (
            "sketch.kind = \"bottom-k\"\nsketch.bits = 64\nblocking.kind = \"scan\"",
            "p.toml:2: sketch.bits: has no effect with sketch.kind = \"bottom-k\"",
        ),
        ("sketch.run = 2", "p.toml:1: sketch.run: has no effect with sketch.kind = \"fss\""),
        (
            "sketch.kind = \"sectional\"\nsketch.run = 2",
            "p.toml:2: sketch.run: has no effect with sketch.kind = \"sectional\"",
        ),
        (
            "sketch = { kind = \"connected\", run = 5 }",
            "p.toml:1: sketch.run: size = 448 is no multiple of run = 5",
        ),
        (
            "sketch = { kind = \"connected\", bits = 32, run = 4 }",
            "p.toml:1: sketch.run: run = 4 times bits = 32 is more than 64",
        ),
        (
            "sketch = { kind = \"odd\", bits = 64, size = 1000 }\nblocking.kind = \"scan\"",
            "p.toml:1: sketch.size: an odd sketch has size * bits = 64000 bits, more than 32768",
        ),
        (
            "sketch = { kind = \"odd\", bits = 1.5 }\nblocking.kind = \"scan\"",
            "p.toml:1: sketch.bits: \"odd\" takes 1, 2, 4, 8, 16, 32 or 64",
        ),
        (
            "sketch = { size = 64, bits = 1.5 }",
            "p.toml:1: sketch.bits: bits between two powers of two take a size above 64",
        ),
        ("blocking.size = 64", "p.toml:1: blocking.size: has no effect without blocking.sketch"),
        ("filter.looks = [128, 64]", "p.toml:1: filter.looks: filter looks [128, 64] must ascend, "),
    ] {
        let reported = problems(typed, &[]);
        assert!(reported.len() == 1 && reported[0].starts_with(expected), "{reported:?}");
    }
}

#[test]
fn all_problems_at_once_in_the_order_of_their_places() {
    let text =
        "threshold = 2\n[sketch]\nkind = \"simsketch\"\nsise = 4\n[blocking]\nrows = 0\nbands = 1000000\n";
    let reported = problems(text, &["sketch.bits=65", "output.onerror=fail", "nonsense"]);
    assert_eq!(
        reported,
        [
            "p.toml:1: threshold: found 2, expected a number above 0 and at most 1",
            "p.toml:3: sketch.kind: found \"simsketch\", \
            expected \"fss\", \"minhash\", \"oph\", \"oph-original\", \"superminhash\", \
            \"bottom-k\", \"min-max\", \"odd\", \"connected\", \"sectional\", \"dart\", \
            \"icws\", \"cws\", \"rejection\", \"simhash\", \"fingerprint\" or \"scaled\"",
            "p.toml:4: sketch.sise: unknown key; did you mean \"sketch.size\"?",
            "p.toml:6: blocking.rows: found 0, expected a whole number from 1 to 64",
            "p.toml:7: blocking.bands: found 1000000, expected a whole number from 1 to 32768",
            "--set sketch.bits=65: sketch.bits: found 65, expected a number from 1 to 64",
            "--set output.onerror=fail: output.onerror: unknown key; did you mean \"output.on_error\"?",
            "--set nonsense: expected key=value",
        ]
    );
}

#[test]
fn broken_toml_has_a_line_too() {
    let lines = problems("threshold = 0.8\n[sketch\nsize = = 4\n", &[]);
    assert!(lines.len() >= 2, "{lines:?}");
    assert!(lines[0].starts_with("p.toml:2: "), "{lines:?}");
    assert!(lines[1].starts_with("p.toml:3: "), "{lines:?}");
}
