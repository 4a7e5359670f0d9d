//! Known answers of this program for everything that a stored sketch depends on: hashes, features, schemes,
//! sketches, block keys.
//!
//! A changed value means that sketches of older and newer programs are incompatible. Raise the scheme's
//! version and add the new values; never only update them.
#![cfg(test)]

use std::collections::BTreeMap;
use std::sync::Arc;

use dupflow::config::{BUILT_IN, Plan};
use dupflow::core::Detector;
use dupflow::core::block::hamming::{Design, DesignKind, HammingTables};
use dupflow::core::block::{Banding, Blocking, HotRule};
use dupflow::core::hash::{TokenHash, bytes, fold, mix, token};
use dupflow::core::sketch::{
    Scheme, SectionBase, SectionMode, SketchKind, SketchMaker, SketchParams, SketchRef, Ties, VERSION,
};
use dupflow::core::text::measures::Measure;
use dupflow::core::text::{
    Featurizer, Field, Fold, Folds, Html, Idf, IdfForm, IdfTable, Invisible, Language, Marks, Normalize,
    Shingle, Spaceless, Stem, TextRules, Weights, readable,
};

/// Values by name, in hexadecimal, since JSON has no integers of 64 bits.
type Answers = BTreeMap<String, String>;

/// Texts from one token to more features than a sketch has components, in several scripts.
fn texts() -> [(&'static str, String); 4] {
    let long: Vec<_> = (0..500_u64).map(|i| format!("w{}", mix(i) % 1000)).collect();
    [
        ("one token", "Word".to_owned()),
        ("a sentence", "The quick brown fox jumps over the lazy dog, twice: 3.14 and a_b.".to_owned()),
        ("scripts", "Ünïcode ΑΣ Straße ﬁn 日本語の文 ภาษาไทย مرحبا नमस्ते İstanbul".to_owned()),
        ("500 words", long.join(" ")),
    ]
}

fn hex(words: impl IntoIterator<Item = u64>) -> String {
    words.into_iter().map(|word| format!("{word:016x}")).collect::<Vec<_>>().join(" ")
}

fn hashes() -> Answers {
    let key: Vec<u8> = (0..40).map(|i| i * 6 + 1).collect();
    let tokens =
        [0, 1, 7, 8, 9, 15, 16, 17, 32, 40].map(|n| (format!("token of {n} bytes"), token(&key[..n])));
    let words = [0, 1, 0xdead_beef, u64::MAX];
    let mixed = words.map(|w| (format!("mix {w:x}"), mix(w)));
    let folded = words.map(|w| (format!("fold {w:x}"), fold(w, 0x9e37_79b9_7f4a_7c15)));
    let data = [("bytes, seed 0", bytes(0, &key)), ("bytes, seed 1", bytes(1, &key))]
        .map(|(n, h)| (n.to_owned(), h));
    tokens
        .into_iter()
        .chain(mixed)
        .chain(folded)
        .chain(data)
        .map(|(name, hash)| (name, hex([hash])))
        .collect()
}

/// The readable text of a page.
fn pages() -> Answers {
    let page = "<!DOCTYPE html><title>T</title><nav>N</nav><main><header><h1>日本語 &amp; ภาษาไทย</h1></header>\
        <p>caf&eacute;<br>na&#239;ve <i>in</i>line&nbsp;&#x1F389;<aside>A</aside><ul><li>a<li>b</ul>\
        <script>s</script></main>after";
    [("a page", page.to_owned()), ("its second half", page.replacen("<!DOCTYPE html>", "", 1))]
        .map(|(name, page)| (name.to_owned(), readable(&page, &TextRules::default()).into_owned()))
        .into()
}

/// The defaults of `[text]` when the golden values were recorded.
fn earlier() -> TextRules {
    TextRules { normalize: Normalize::None, invisible: Invisible::Keep, ..TextRules::default() }
}

fn features() -> Answers {
    let default = earlier();
    let rules = [
        ("words:3", default.clone()),
        ("words:3 split", TextRules { marks: Marks::Split, ..default.clone() }),
        ("words:3 char", TextRules { spaceless: Spaceless::Char, ..default.clone() }),
        (
            "words:1 run",
            TextRules { shingle: Shingle::Words(1), spaceless: Spaceless::Run, ..default.clone() },
        ),
        ("words:5", TextRules { shingle: Shingle::Words(5), ..default.clone() }),
        (
            "chars:5 nfkc",
            TextRules { shingle: Shingle::Chars(5), normalize: Normalize::Nfkc, ..default.clone() },
        ),
        (
            "words:1 bag",
            TextRules { shingle: Shingle::Words(1), spaceless: Spaceless::Bag, ..default.clone() },
        ),
        ("english stems", TextRules { stem: Stem::Language(Language::English), ..default.clone() }),
        ("stop words", TextRules { stop_words: vec!["over".into(), "the".into()], ..default }),
        ("by default", TextRules::default()),
        ("folded", TextRules { folds: Folds::new(Fold::ALL), ..TextRules::default() }),
        ("under a secret", TextRules { hash: TokenHash::keyed([1, 2], 3), ..TextRules::default() }),
    ];
    let of = |(name, text_rules): (&str, TextRules)| {
        let mut featurizer = Featurizer::new(text_rules);
        texts().map(|(text_name, text)| {
            let features = featurizer.features(&text);
            // The sum represents the other features.
            let sum = features.iter().fold(0, |sum: u64, feature| sum.wrapping_add(mix(*feature)));
            let few = features.iter().copied().take(3).chain([sum]);
            (format!("{name}, {text_name}, {}", features.len()), hex(few))
        })
    };
    rules.into_iter().flat_map(of).collect()
}

/// The canonical bytes and the fingerprint of the scheme of each shipped pipeline, and of schemes that
/// together use every option.
fn schemes() -> Answers {
    let plan = |pipeline: &str, html: &str| {
        let mut set: Vec<_> = ["text.normalize=none", "text.invisible=keep"].map(str::to_owned).into();
        set.push(format!("text.html={html}"));
        set.extend((pipeline == "simhash").then(|| "sketch.ties=one".to_owned()));
        Plan::load(pipeline, &set).unwrap().scheme
    };
    // `none` is how pages were treated before `text.html` existed. A fingerprint is no page.
    let mut all: Vec<(String, Scheme)> = BUILT_IN
        .iter()
        .filter(|(name, _)| *name != "fingerprint")
        .map(|(name, _)| ((*name).to_owned(), plan(name, "none")))
        .collect();
    all.push(("fingerprint".to_owned(), Plan::load("fingerprint", &[]).unwrap().scheme));
    all.push(("minhash, pages read".to_owned(), plan("minhash", "text")));
    let set = ["text.fold=[\"ё\", \"arabic\"]", "text.secret=twenty characters, at least"].map(str::to_owned);
    all.extend([
        ("minhash, by default".to_owned(), Plan::load("minhash", &[]).unwrap().scheme),
        ("simhash, by default".to_owned(), Plan::load("simhash", &[]).unwrap().scheme),
        ("minhash, folded, under a secret".to_owned(), Plan::load("minhash", &set).unwrap().scheme),
    ]);
    let field = |name: &str, weight| Field { name: name.to_owned(), weight };
    let table = IdfTable::new(3, [(1, 3), (2, 1)]);
    let full = TextRules {
        given: None,
        html: Html::None,
        shingle: Shingle::Chars(5),
        spaceless: Spaceless::Run,
        marks: Marks::Split,
        normalize: Normalize::Nfkc,
        invisible: Invisible::Keep,
        folds: Folds::default(),
        hash: TokenHash::default(),
        stop_words: vec!["of".into(), "thé".into()],
        stem: Stem::None,
        fields: vec![field("sub.title", 2), field("title", 3)],
        weights: Weights::TfIdf(Idf::Frozen(Arc::new(table)), IdfForm::Paper),
    };
    let dart = Scheme { text: full, ..scheme(SketchKind::Dart, 100, 4, true) };
    let fss = SketchParams { kind: SketchKind::Fss, size: 256, bits: 4, wide: 0, seed: 8 };
    let odd = Scheme { blocks: Some(fss), ..scheme(SketchKind::Odd, 100, 4, false) };
    all.extend([("frozen, with fields".to_owned(), dart), ("blocks of a second sketch".to_owned(), odd)]);
    all.extend(
        [SketchKind::Connected { run: 2 }, OTHERS[7], OTHERS[8]]
            .map(|kind| (format!("{kind:?}"), scheme(kind, 100, 4, false))),
    );
    let said = |of: &Scheme| String::from_utf8(of.description().encode()).unwrap();
    all.iter().map(|(name, of)| (name.clone(), format!("{} {}", hex([of.fingerprint()]), said(of)))).collect()
}

/// [`Description::differences`](dupflow::description::Description::differences) names each differing field of
/// two schemes.
#[test]
fn differences_between_schemes_are_named() {
    let plan = |overrides: &[&str]| {
        let overrides: Vec<_> = overrides.iter().map(|&typed| typed.to_owned()).collect();
        Plan::load("minhash", &overrides).unwrap()
    };
    let stored = plan(&[]).scheme.description().encode();
    let said = |overrides: &[&str]| -> Vec<String> {
        let differences = plan(overrides).scheme.description().differences(&stored).unwrap();
        differences.iter().map(ToString::to_string).collect()
    };
    assert_eq!(said(&[]), [""; 0]);
    assert_eq!(said(&["threshold=0.5"]), [""; 0], "no part of the scheme");
    assert_eq!(
        said(&["sketch.size=512", "text.spaceless=char", "filter.verify=exact", "text.stop_words=[\"of\"]"]),
        [
            "scheme.features is \"dropped\" there and \"kept\" here",
            "sketch.size is 448 there and 512 here",
            "text.spaceless is \"part\" there and \"char\" here",
            "text.stop_words is [] there and [\"of\"] here",
        ]
    );
}

/// State of an older program is rejected, and the differences are named: `minhash` under scheme 4, whose
/// block keys had 32 bits, and under scheme 3, which split words at their marks.
#[test]
fn older_scheme_is_named() {
    let now = Plan::load("minhash", &[]).unwrap().scheme.description();
    let encoded = String::from_utf8(now.encode()).unwrap();
    let said = |before: &str| -> Vec<String> {
        now.differences(before.as_bytes()).unwrap().iter().map(ToString::to_string).collect()
    };
    let fourth = encoded.replace("14:scheme.version,2:n5,", "14:scheme.version,2:n4,");
    assert_eq!(said(&fourth), ["scheme.version is 4 there and 5 here"]);
    let third = encoded
        .replace("14:scheme.version,2:n5,", "14:scheme.version,2:n3,")
        .replace("10:text.marks,5:tkeep,", "");
    assert_eq!(
        said(&third),
        ["scheme.version is 3 there and 5 here", "text.marks is not set there and \"keep\" here"]
    );
}

/// An embedder that takes the defaults of the library has the sketches and blocks of the shipped pipelines.
#[test]
fn detectors_equal_the_pipelines() {
    for (pipeline, detector) in [("minhash", Detector::new(0.8)), ("exact", Detector::exact(0.8))] {
        let (plan, detector) = (Plan::load(pipeline, &[]).unwrap(), detector.unwrap());
        assert_eq!(plan.scheme, *detector.scheme(), "{pipeline}");
        let mut maker = detector.maker();
        let sketches = texts().map(|(_, text)| maker.sketch(&text).unwrap().1);
        for sketch in &sketches {
            let mut keys = Vec::new();
            plan.blocking().keys(sketch.view(), &mut keys);
            assert_eq!(keys, detector.keys(sketch.view()), "{pipeline}");
            assert_eq!(plan.blocking().rule(0), detector.blocking().rule(0), "{pipeline}");
            for other in &sketches {
                let verdict = plan.filter().decide(sketch.view(), other.view());
                assert_eq!(verdict, detector.filter().decide(sketch.view(), other.view()), "{pipeline}");
            }
        }
    }
}

fn scheme(kind: SketchKind, size: usize, bits: usize, exact: bool) -> Scheme {
    let sketch = SketchParams { kind, size, bits, wide: 0, seed: 7 };
    let weights = if kind.measure() == Measure::Jaccard { Weights::Unit } else { Weights::Count };
    let text = TextRules { html: Html::None, weights, ..earlier() };
    Scheme { version: VERSION, text, sketch, exact, ..Scheme::default() }
}

/// The kinds of which sketches of one size only are recorded.
const OTHERS: [SketchKind; 12] = [
    SketchKind::Oph,
    SketchKind::OphOriginal,
    SketchKind::SuperMinHash,
    SketchKind::BottomK,
    SketchKind::MinMax,
    SketchKind::Odd,
    SketchKind::Connected { run: 2 },
    SketchKind::Sectional { sections: 3, mode: SectionMode::Attach, base: SectionBase::Fss },
    SketchKind::Sectional { sections: 3, mode: SectionMode::Pair, base: SectionBase::Fss },
    SketchKind::Dart,
    SketchKind::Icws,
    SketchKind::Cws,
];

/// For each sketch the id, which covers all its words, and the first word.
fn sketches() -> Answers {
    let mut answers = Answers::new();
    for kind in OTHERS {
        let mut maker = SketchMaker::new(&scheme(kind, 100, 4, false));
        for (name, text) in texts() {
            let (id, sketch) = maker.sketch(&text).unwrap();
            answers
                .insert(format!("{kind:?}, K 100, b 4, {name}"), format!("{id} {}", hex([sketch.words[0]])));
        }
    }
    for (rule, ties) in [("", Ties::One), (", ties by hash", Ties::Hash)] {
        for size in [32, 64, 128] {
            let mut maker = SketchMaker::new(&scheme(SketchKind::SimHash { ties }, size, 1, false));
            for (name, text) in texts() {
                let (_, sketch) = maker.sketch(&text).unwrap();
                answers.insert(format!("SimHash, {size} bits{rule}, {name}"), hex(sketch.words));
            }
        }
    }
    for kind in [SketchKind::Fss, SketchKind::MinHash] {
        for (size, bits, exact) in [1, 2, 4, 8, 16, 32, 64]
            .map(|bits| (100, bits, false))
            .into_iter()
            .chain([(448, 4, false), (448, 4, true)])
        {
            let mut maker = SketchMaker::new(&scheme(kind, size, bits, exact));
            for (name, text) in texts() {
                let (id, sketch) = maker.sketch(&text).unwrap();
                let verify = if exact { ", exact" } else { "" };
                answers.insert(
                    format!("{kind:?}, K {size}, b {bits}{verify}, {name}"),
                    format!("{id} {}", hex([sketch.words[0]])),
                );
            }
        }
    }
    answers
}

fn blocks() -> Answers {
    let mut answers = Answers::new();
    for (size, bits, bands, rows) in [(448, 4, 18, 7), (64, 1, 8, 8), (200, 64, 3, 64), (100, 8, 33, 3)] {
        let mut maker = SketchMaker::new(&scheme(SketchKind::Fss, size, bits, false));
        let (_, sketch) = maker.sketch(&texts()[1].1).unwrap();
        let mut keys = Vec::new();
        let banding = Banding::new(size, bands, rows, HotRule::NEVER).by_word(bits == 64);
        banding.keys(sketch.view(), &mut keys);
        let keys: Vec<_> = keys.iter().map(|key| format!("{}:{:010x}", key.table, key.hash())).collect();
        answers.insert(format!("K {size}, b {bits}, {bands} x {rows}"), keys.join(" "));
    }
    let words = [mix(1), mix(2)];
    let kinds = [
        DesignKind::OneLevel { blocks: 5 },
        DesignKind::TwoLevel { sub_blocks: 4 },
        DesignKind::MultiIndex { blocks: 2 },
        DesignKind::Groups { surplus: 3 },
        DesignKind::Conjunctions { surplus: 2 },
    ];
    for (kind, bits) in kinds.into_iter().flat_map(|kind| [(kind, 64), (kind, 100)]) {
        let mut keys = Vec::new();
        let design = Design::new(bits, 3, kind).unwrap();
        HammingTables::new(&design, HotRule::NEVER)
            .unwrap()
            .keys(SketchRef { words: &words, features: &[] }, &mut keys);
        let few = keys.iter().take(3).chain(keys.last());
        let few: Vec<_> = few.map(|key| format!("{}:{:010x}", key.table, key.hash())).collect();
        answers.insert(format!("{bits} bits, distance 3, {design}"), few.join(" "));
    }
    answers
}

/// Inverse document frequencies, to the last bit.
fn weights() -> Answers {
    let forms = [IdfForm::Smooth, IdfForm::Paper];
    let frequencies = [(1, 0), (1, 1), (10, 3), (1000, 999), (1_000_000, 17)];
    let idf = |(form, (documents, holders)): (IdfForm, (u64, u32))| {
        (format!("{form:?} {holders} of {documents}"), hex([form.idf(documents, holders).to_bits()]))
    };
    forms.into_iter().flat_map(|form| frequencies.map(|counts| (form, counts))).map(idf).collect()
}

#[test]
fn known_answers() {
    let expected: BTreeMap<String, Answers> =
        serde_json::from_str(include_str!("golden/scheme_5.json")).unwrap();
    let found: BTreeMap<String, Answers> = [
        ("hashes", hashes()),
        ("features", features()),
        ("pages", pages()),
        ("schemes", schemes()),
        ("sketches", sketches()),
        ("blocks", blocks()),
        ("weights", weights()),
    ]
    .map(|(family, answers)| (family.to_owned(), answers))
    .into();
    for (family, answers) in &found {
        for (name, answer) in answers {
            let known = expected.get(family).and_then(|known| known.get(name));
            assert_eq!(
                known,
                Some(answer),
                "{family}, {name}: a change means a new scheme version; all that was found:\n{}",
                serde_json::to_string_pretty(&found).unwrap()
            );
        }
    }
    assert_eq!(found, expected, "a known answer that is asked for no more");
}
