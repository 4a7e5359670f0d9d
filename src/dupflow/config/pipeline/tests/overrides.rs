//! What `--set` does to a pipeline file: later values win, a new kind drops the file's settings of the old
//! kind, and an empty value unsets a key.

use super::{MINHASH, plan, problems};
use crate::config::{BUILT_IN, BlockingPlan};
use dupflow_core::sketch::SketchKind;
use dupflow_core::sketch::agreement::Agreement;
use dupflow_core::text::{Shingle, Spaceless};

#[test]
fn overrides_are_toml_or_bare_words() {
    let plan = plan(
        MINHASH,
        &[
            "threshold=0.70",
            "text.shingle=chars:5",
            "text={spaceless=\"run\"}",
            "text.stop_words=[\"The\", \"of\", \"the\"]",
            " filter.verify = exact ",
            "sketch.size=0x200",
            "sketch.size=512",
        ],
    )
    .unwrap();
    assert_eq!(plan.threshold.to_string(), "0.7");
    assert_eq!((plan.scheme.sketch.size, plan.scheme.exact), (512, true));
    assert_eq!((plan.scheme.text.shingle, plan.scheme.text.spaceless), (Shingle::Chars(5), Spaceless::Run));
    assert_eq!(plan.scheme.text.stop_words, ["of", "the"]);
}

#[test]
fn another_kind_drops_what_the_file_says_about_the_old_one() {
    assert!(matches!(plan(MINHASH, &["blocking.kind=scan"]).unwrap().blocking, BlockingPlan::Scan));
    assert!(plan(MINHASH, &["filter.kind=full"]).is_ok());
    assert_eq!(
        problems(MINHASH, &["blocking.cap=9", "blocking.kind=scan"]),
        ["--set blocking.cap=9: blocking.cap: has no effect with blocking.kind = \"scan\""]
    );
}

#[test]
fn two_blockings_in_one_pipeline() {
    let simhash = "sketch.kind = \"simhash\"\nfilter.kind = \"hamming\"\nblocking.distance = 3\n";
    let both = plan(&format!("{simhash}[blocking.also]\nkind = \"permuted\"\ntables = 10"), &[]).unwrap();
    let BlockingPlan::Banding { design: bands, .. } = &both.blocking else { panic!("{both:?}") };
    let Some(BlockingPlan::Hamming { design, .. }) = &both.also else { panic!("{both:?}") };
    // The distance of the filter is that of the first table.
    assert_eq!((design.radius(), design.keys()), (3, 10));
    assert_eq!(both.blocking().tables(), bands.curve.bands + 10);
    let firsts: Vec<_> = both.blockings().map(|(_, first)| first).collect();
    assert_eq!(firsts, [0, bands.curve.bands]);
    // The same by `--set` on top of a file, and with the two kinds exchanged.
    let set = plan(simhash, &["blocking.also.kind=permuted", "blocking.also.tables=10"]).unwrap();
    assert_eq!(set.description().encode(), both.description().encode());
    let other = ["blocking.kind=permuted", "blocking.also.kind=banding", "blocking.sketch=fss"];
    assert!(plan(simhash, &other).unwrap().scheme.blocks.is_some());
    assert!(plan(MINHASH, &["blocking.also.kind=shingles"]).unwrap().scheme.exact);
    assert!(plan(MINHASH, &["blocking.also.kind=shingles", "blocking.also="]).unwrap().also.is_none());
    for (typed, expected) in [
        (
            "blocking.also.kind = \"scan\"",
            "blocking.also.kind: found \"scan\", \
            expected \"banding\", \"permuted\", \"multi-index\", \"groups\", \"conjunctions\" \
            or \"shingles\"",
        ),
        ("blocking.also.bands = 4", "blocking.also.bands: has no effect without blocking.also.kind"),
        (
            "blocking.also = { kind = \"banding\", tables = 4 }",
            "blocking.also.tables: has no effect with blocking.also.kind = \"banding\"",
        ),
        (
            "blocking.also = { kind = \"banding\", bands = 64, rows = 8 }",
            "blocking.also.rows: bands = 64 and rows = 8 do not fit: a band has 1 to 64 rows, and all of \
            them at most 448 components",
        ),
        (
            "blocking.also.kind = \"permuted\"",
            "blocking.also.kind: is for sketches of one bit a component; set sketch.bits = 1, or sketch.kind \
            = \"simhash\"",
        ),
        (
            "blocking = { kind = \"scan\", also = { kind = \"banding\" } }",
            "blocking.also.kind: has no effect with blocking.kind = \"scan\"",
        ),
    ] {
        assert_eq!(problems(typed, &[]), [format!("p.toml:1: {expected}")]);
    }
}

#[test]
fn bits_between_powers_of_two_work_with_every_pipeline() {
    let whole = |text: &str, overrides: &[&str]| {
        let plan = plan(text, overrides).unwrap_or_else(|error| panic!("{overrides:?}: {error}"));
        assert!(plan.scheme.sketch.wide > 0 && plan.schedule().is_none(), "{overrides:?}");
        match plan.blocking {
            BlockingPlan::Banding { design, .. } => (design.curve.agreement, design.recall),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(whole("sketch.bits = 1.5", &[]).0, Agreement::Bits(1));
    for (name, text) in BUILT_IN
        .iter()
        .filter(|(name, _)| !["simhash", "contained", "decontaminate", "fingerprint"].contains(name))
    {
        let overrides = ["sketch.bits=1.5", "sketch.size=1024"];
        if ["exact", "tour"].contains(name) {
            // In these pipelines the exact features decide.
            assert!(plan(text, &overrides).unwrap().scheme.exact, "{name}");
        } else {
            let (agreement, recall) = whole(text, &overrides);
            assert!(agreement == Agreement::Bits(1) && recall >= 0.99, "{name}");
        }
    }
    assert_eq!(whole(MINHASH, &["sketch.bits=3"]).0, Agreement::Bits(2));
    let typed = ["sketch.bits=1.5", "filter.kind=staged", "filter.looks=[64]"];
    assert_eq!(
        problems(MINHASH, &typed),
        [
            "--set filter.kind=staged: filter.kind: a sketch of two widths of bits is compared as a whole; \
            leave it out, or filter.kind = \"full\"",
            "--set filter.looks=[64]: filter.looks: has no effect with sketch.bits = \"of two widths\"",
        ]
    );
}

#[test]
fn an_override_without_a_value_unsets_a_key_or_a_table() {
    let same = |overrides: &[&str], others: &[&str]| {
        let text = "threshold = 0.7\ntext.fields = { a = 1, b = 1 }\nblocking.bands = 9\nsketch.size = 400";
        assert_eq!(
            plan(text, overrides).unwrap().description().encode(),
            plan(text, others).unwrap().description().encode(),
            "{overrides:?}"
        );
    };
    same(&["threshold="], &["threshold=0.8"]);
    same(&[" sketch.size = ", "sketch.size=64", "sketch.size="], &["sketch.size=448"]);
    same(&["sketch="], &["sketch.size=448"]);
    same(&["blocking.bands=", "blocking.distance="], &["blocking.recall=0.99", "blocking.bands="]);
    // Unsetting the kind also drops the file's settings of that kind, as choosing another kind does.
    let wide = "sketch.kind = \"sectional\"\nsketch.sections = 3\nblocking.kind = \"scan\"";
    assert_eq!(plan(wide, &["sketch.kind="]).unwrap().scheme.sketch.kind, SketchKind::Fss);
    let fields = |overrides: &[&str]| {
        let text = "text.fields = { a = 1, \"b.c\" = 1 }";
        let fields = plan(text, overrides).unwrap().scheme.text.fields;
        fields.into_iter().map(|field| field.name).collect::<Vec<_>>()
    };
    assert_eq!(fields(&["text.fields="]), Vec::<String>::new());
    assert_eq!(fields(&["text.fields.a="]), ["b.c"]);
    assert_eq!(fields(&["text.fields.b.c=", "text.fields.d=1"]), ["a", "d"]);
    assert_eq!(
        problems("", &["sketch.sise="]),
        ["--set sketch.sise=: sketch.sise: unknown key; did you mean \"sketch.size\"?"]
    );
    // An empty text needs its quotes; without them the key is unset.
    assert_eq!(problems("", &["filter.kind=\"\""]).len(), 1);
}
