//! The two parsers of a line agree: a line that the usual parser accepts has the same meaning for serde_json.
//!
//! `DUPFLOW_SEED=7 cargo test --lib feed` draws other lines.

use rand::prelude::*;
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::formats::samples::seed_and_rounds;

/// Number of lines that a test draws.
const LINES: usize = 60_000;

/// The result of serde_json alone.
fn by_library<'a>(parser: &'a mut Parser, line: &'a [u8]) -> Result<FeedRecord<'a>, BadRecord> {
    let found = json::read(line, &parser.names, &mut parser.json, &mut parser.further, &mut parser.standard)?;
    Parser::examine(found, || None, &parser.json.text, &parser.further, &mut parser.joined)
}

fn is_usual(line: &[u8]) -> bool {
    usual::read(line, &FieldNames::default(), &mut usual::UsualBuffers::default(), &mut []).is_some()
}

/// Parsers that are reused, so that state left by one line would show in the next.
struct BothParsers([Parser; 2]);

impl BothParsers {
    fn new(fields: &[&str]) -> Self {
        let names: Vec<String> = fields.iter().map(|&name| name.to_owned()).collect();
        let columns = names.into();
        Self([Parser::with_columns(&columns), Parser::with_columns(&columns)])
    }

    fn agree(&mut self, line: &[u8]) {
        let Self([parser, other]) = self;
        let bits = |record: FeedRecord<'_>| {
            (record.ts.map(f64::to_bits), record.event.id, record.event.text.map(Cow::into_owned))
        };
        let (found, expected) = (parser.parse(line).map(bits), by_library(other, line).map(bits));
        assert_eq!(found, expected, "{line:?}\n{}", String::from_utf8_lossy(line));
    }
}

fn one_of<'t>(rng: &mut ChaCha8Rng, all: &[&'t str]) -> &'t str {
    all[rng.random_range(0..all.len())]
}

/// White space between two tokens, some of it invalid.
fn space(rng: &mut ChaCha8Rng) -> &'static str {
    if rng.random_ratio(29, 30) { "" } else { one_of(rng, &[" ", "\t", "\r\n", "  ", "\u{b}", "\u{a0}"]) }
}

/// A string with its quotes: plain, escaped, in several scripts, and sometimes invalid.
fn string(rng: &mut ChaCha8Rng, longest: usize) -> String {
    const PIECES: [&str; 33] = [
        "a",
        "word ",
        "thirty-two plain characters, or a few more ",
        "é",
        "你好世界",
        "สวัสดี",
        "😀",
        "\u{7f}",
        "\u{1e}",
        "Ж",
        " ",
        r"\n",
        r"\n\n",
        r#"\""#,
        r"\\",
        r"\/",
        r"\t\r\b\f",
        r"\u0000",
        r"\u001e",
        r"\u4f60\u597d",
        r"\u0e2a\u0E27",
        r"\ud83d\ude00",
        r"\uFFFF",
        r"\u00e9",
        "</",
        "{",
        "]",
        ":",
        ",",
        "'",
        "\u{2028}",
        "\u{feff}",
        "0",
    ];
    const BAD: [&str; 12] = [
        r"\ud83d",
        r"\ude00",
        r"\ud83d\ud83d",
        r"\ud83dx\ude00",
        r"\u12g4",
        r"\u12",
        r"\x",
        r"\",
        "\n",
        "\u{1f}",
        "\0",
        r"\U0041",
    ];
    let mut out = "\"".to_owned();
    for _ in 0..rng.random_range(0..=longest) {
        let bad = rng.random_ratio(1, 400);
        out.push_str(if bad { one_of(rng, &BAD) } else { one_of(rng, &PIECES) });
    }
    out.push('"');
    out
}

/// Any value.
fn value(rng: &mut ChaCha8Rng, depth: usize) -> String {
    const NUMBERS: [&str; 24] = [
        "0",
        "-0",
        "1",
        "-1",
        "1700000000",
        "1700000000.5",
        "1e3",
        "1E+3",
        "1.5e-7",
        "18446744073709551615",
        "18446744073709551616",
        "999999999999999999",
        "9007199254740993",
        "-9223372036854775809",
        "0.1",
        "1e999",
        "01",
        "1.",
        ".5",
        "+1",
        "-",
        "1e",
        "1_0",
        "123456789012345678901234567890",
    ];
    match rng.random_range(0..10) {
        0..4 => string(rng, 6),
        4..7 => one_of(rng, &NUMBERS).to_owned(),
        7 => one_of(rng, &["true", "false", "null", "nul", "True", "NaN"]).to_owned(),
        8 if depth > 0 => {
            let values: Vec<_> = (0..rng.random_range(0..4)).map(|_| value(rng, depth - 1)).collect();
            format!("[{}]", values.join(","))
        }
        _ if depth > 0 => object(rng, depth - 1),
        _ => "{}".to_owned(),
    }
}

/// An object with some fields of a record, some of them twice, and other fields.
fn object(rng: &mut ChaCha8Rng, depth: usize) -> String {
    const NAMES: [&str; 12] =
        ["id", "text", "op", "ts", "title", r"\u0069d", r"te\u0078t", "é", "other", "TEXT", "", "id "];
    let mut fields = Vec::new();
    for _ in 0..rng.random_range(0..6) {
        let name = one_of(rng, &NAMES);
        let value = match name {
            "op" => {
                one_of(rng, &["\"upsert\"", "\"delete\"", "\"insert\"", r#""\u0075psert""#, "1"]).to_owned()
            }
            "ts" => value(rng, 0),
            "text" => string(rng, 20),
            _ => value(rng, depth),
        };
        fields.push(format!("{}\"{name}\"{}:{}{value}{}", space(rng), space(rng), space(rng), space(rng)));
    }
    if rng.random_ratio(9, 10) && depth == 2 {
        fields.insert(rng.random_range(0..=fields.len()), format!("\"id\":{}", string(rng, 3)));
        fields.insert(rng.random_range(0..=fields.len()), format!("\"text\":{}", string(rng, 40)));
    }
    format!("{{{}}}", fields.join(","))
}

fn around(rng: &mut ChaCha8Rng, often: u32) -> &'static str {
    const AROUND: [&str; 7] = ["\n", "\r\n", " ", "\u{feff}", "\0", "x", "}"];
    if rng.random_ratio(often, 40) { one_of(rng, &AROUND) } else { "" }
}

fn line(rng: &mut ChaCha8Rng) -> Vec<u8> {
    format!("{}{}{}", around(rng, 1), object(rng, 2), around(rng, 10)).into_bytes()
}

/// Replaces some bytes.
fn damage(rng: &mut ChaCha8Rng, line: &mut Vec<u8>) {
    const BYTES: &[u8] = b"\"\\{}[]:,u0d\n\x00\x1f\x7f\x80\xbf\xc3\xe4\xed\xf0\xff e-.";
    for _ in 0..rng.random_range(1..4) {
        let at = rng.random_range(0..=line.len());
        let byte = BYTES[rng.random_range(0..BYTES.len())];
        match rng.random_range(0..4) {
            0 => line.truncate(at),
            1 => line.insert(at, byte),
            _ if at == line.len() => {}
            2 => line[at] = byte,
            _ => drop(line.remove(at)),
        }
    }
}

#[test]
fn both_parsers_agree_on_valid_and_damaged_lines() {
    let (seed, _) = seed_and_rounds(1);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut plain, mut further) = (BothParsers::new(&[]), BothParsers::new(&["title", "é"]));
    let mut usual = 0;
    for _ in 0..LINES {
        let mut line = line(&mut rng);
        usual += usize::from(is_usual(&line));
        for _ in 0..2 {
            plain.agree(&line);
            further.agree(&line);
            damage(&mut rng, &mut line);
        }
    }
    // Otherwise the test would prove little.
    assert!((LINES / 10..LINES).contains(&usual), "{usual} lines of {LINES} are usual");
}

#[test]
fn every_cut_and_every_changed_byte_of_a_line() {
    let line = "{\"id\": \"a\\u00e9/é\", \"ts\": 1700000000.25, \
     \"op\":\"upsert\",\"x\":[1,{\"y\":null}],\"text\": \"你好\\n\\ud83d\\ude00 สวัสดี and 32 plain characters \
     or so\"}\n";
    let mut both = BothParsers::new(&[]);
    for at in 0..line.len() {
        both.agree(&line.as_bytes()[..at]);
        for byte in 0..=u8::MAX {
            let mut changed = line.as_bytes().to_vec();
            changed[at] = byte;
            both.agree(&changed);
        }
    }
}

#[test]
fn usual_lines_are_read_by_hand() {
    for line in [
        r#"{"id":"a","text":"b"}"#,
        r##"{"id": "pages/cp.md", "ts": 1393936109, "op": "upsert", "text": "# cp\n\u4f60"}"##,
        "{\"id\":\"a\\/b\",\"op\":\"delete\",\"ts\":1.5}\r\n",
        " {\"text\":\"你好 สวัสดี \
         😀\",\n\"id\":\"é\",\"url\":\"http:\\/\\/x\",\"more\":{\"a\":[1,2]},\"ok\":true,\"n\":-1} ",
    ] {
        assert!(is_usual(line.as_bytes()), "{line}");
    }
    // Left to serde_json: a second text, and everything that may be bad in form.
    for line in [
        r#"{"id":"a","text":"x","text":"y"}"#,
        r#"{"id":7,"text":"b"}"#,
        r#"{"id":"a","text":null}"#,
        "[]",
        "{}",
        "",
    ] {
        assert!(!is_usual(line.as_bytes()), "{line}");
    }
}
