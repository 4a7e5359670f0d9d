//! Lines of JSON and tables that are valid and hostile: every form of numbers, escapes, nulls, quotes and
//! line ends, read whole and compared with independent readers.
//!
//! The oracle of lines reads values as `serde_json` leaves them, as bytes; that of tables with quotes is the
//! crate `csv`; of tables without quotes the generator knows what it has escaped. `DUPFLOW_SEED=7` draws
//! other inputs, `DUPFLOW_ROUNDS=1000` a thousand rounds.

use serde_json::value::RawValue;

use super::*;
use crate::formats::CsvQuote;
use crate::formats::samples::seed_and_rounds;
use crate::inputs::for_each_event;

/// Id, time and text of an event; no text: a delete.
type Read = (String, Option<f64>, Option<String>);

/// The events of a file, and the numbers of bad records by reason.
fn all(name: &str, bytes: Vec<u8>, layout: &InputLayout) -> (Vec<Read>, BTreeMap<&'static str, u64>) {
    let (mut events, bad) = (Vec::new(), BadRecords::default());
    let input = Input::of_bytes(name, bytes, layout.clone());
    for_each_event(vec![input], &NO_FIELDS, &bad, |_, event| {
        events.push((event.id.to_string(), event.ts, event.text.map(Into::into)));
    })
    .unwrap();
    (events, bad.counts())
}

fn one_of<'t>(rng: &mut ChaCha8Rng, all: &[&'t str]) -> &'t str {
    all[rng.random_range(0..all.len())]
}

const PIECES: [&str; 22] = [
    "word ", "é", "你好", "😀", "\"", "\"\"", "'", "\\", "\\n", "\\N", "\n", "\r\n", "\t", ",", ";", "{",
    "}", "NaN", "null", "\u{1e}", "\u{2028}", " ",
];

fn text(rng: &mut ChaCha8Rng, most: usize) -> String {
    (0..rng.random_range(0..=most)).map(|_| one_of(rng, &PIECES)).collect()
}

/// A JSON string, each character escaped or not.
fn string(rng: &mut ChaCha8Rng, text: &str) -> String {
    let mut out = "\"".to_owned();
    for one in text.chars() {
        if rng.random_ratio(1, 4) {
            let mut units = [0; 2];
            one.encode_utf16(&mut units).iter().for_each(|unit| out += &format!("\\u{unit:04x}"));
        } else {
            let quoted = serde_json::to_string(&one).unwrap();
            out += &quoted[1..quoted.len() - 1];
        }
    }
    out + "\""
}

/// A value that nothing reads; at times one that JSON does not have.
fn skipped(rng: &mut ChaCha8Rng, depth: usize) -> String {
    const VALUES: [&str; 14] = [
        "null",
        "true",
        "0",
        "-0",
        "1e5",
        "-1.5E-3",
        "1e999",
        "123456789012345678901234567890",
        "NaN",
        "Infinity",
        "-Infinity",
        r#""\ud83d""#,
        r#""\\\" NaN""#,
        "[]",
    ];
    match rng.random_range(0..6) {
        0 if depth > 0 => format!("[{},{}]", skipped(rng, depth - 1), skipped(rng, depth - 1)),
        1 if depth > 0 => {
            let name = one_of(rng, &["\"id\"", "\"text\"", r#""\udc00""#, "\"op\"", "\"\""]);
            format!("{{{name}: {}}}", skipped(rng, depth - 1))
        }
        2 => {
            let text = text(rng, 5);
            string(rng, &text)
        }
        _ => one_of(rng, &VALUES).to_owned(),
    }
}

const WHOLE: [&str; 12] = [
    "7",
    "0",
    "-0",
    "-12",
    "18446744073709551615",
    "18446744073709551617",
    "9223372036854775808",
    "340282366920938463463374607431768211457",
    "12.0",
    "1.5e1",
    "9007199254740991.0",
    "1",
];

/// An object with fields of a record in any order, some null, and others that are not read.
fn line(rng: &mut ChaCha8Rng, is_nested: bool, are_numbers: bool) -> String {
    let (own, many) = (text(rng, 3), text(rng, 12));
    let id = if are_numbers { one_of(rng, &WHOLE).to_owned() } else { string(rng, &format!("i{own}")) };
    let ts = one_of(rng, &["null", "5", "1.7e9", "\"2024-05-06\"", "0.5", "\"7\"", "-0.0"]);
    let op = one_of(rng, &["null", "\"upsert\"", "\"delete\"", r#""\u0064elete""#]);
    let mut fields = vec![("id", id), ("text", string(rng, &many))];
    if rng.random_ratio(1, 2) {
        fields.push(("ts", ts.to_owned()));
    }
    if rng.random_ratio(1, 2) {
        fields.push(("op", op.to_owned()));
    }
    for name in ["x", "yy", "TEXT", "ids"] {
        if rng.random_ratio(1, 3) {
            fields.push((name, skipped(rng, 2)));
        }
    }
    fields.shuffle(rng);
    let mut blank = || one_of(rng, &["", "", "", " ", "\t"]);
    let fields: Vec<_> = fields
        .into_iter()
        .map(|(name, value)| format!("{}\"{name}\"{}:{}{value}", blank(), blank(), blank()))
        .collect();
    let object = format!("{{{}}}", fields.join(","));
    if is_nested { format!("{{\"a\":NaN,\"m\": {object},\"z\":[{object}]}}") } else { object }
}

/// A number as an id, by its decimal digits alone.
fn digits(written: &str) -> String {
    let (sign, number) = written.strip_prefix('-').map_or(("", written), |number| ("-", number));
    let (number, power) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let power: usize = power.parse().unwrap();
    let part = format!("{part:0<power$}");
    assert!(part[power..].bytes().all(|digit| digit == b'0'), "{written} is a whole number");
    let digits = format!("{whole}{}", &part[..power]);
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() { "0".to_owned() } else { format!("{sign}{digits}") }
}

/// What a line means, by the bytes of its values.
fn meaning(line: &str, is_nested: bool) -> Read {
    // What no parser reads stands only in values that are not read, outside of strings.
    let (mut out, mut rest, mut is_inside) = (String::new(), line, false);
    while let Some(one) = rest.chars().next() {
        is_inside ^= one == '"';
        let word =
            ["NaN", "-Infinity", "Infinity"].iter().find(|word| !is_inside && rest.starts_with(**word));
        let length = match word {
            Some(word) => word.len(),
            None if one == '\\' => 2,
            None => one.len_utf8(),
        };
        out.push_str(if word.is_some() { "0" } else { &rest[..length] });
        rest = &rest[length..];
    }
    let mut fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(&out).unwrap();
    if is_nested {
        fields = serde_json::from_str(fields["m"].get()).unwrap();
    }
    let get = |name: &str| fields.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null");
    let text = |raw: &str| -> String { serde_json::from_str(raw).unwrap() };
    let id = get("id").unwrap();
    let ts = get("ts").map(|raw| match raw {
        "\"2024-05-06\"" => 1_714_953_600.0,
        "\"7\"" => 7.0,
        number => number.parse().unwrap(),
    });
    let is_delete = get("op").is_some_and(|op| text(op) == "delete");
    (
        if id.starts_with('"') { text(id) } else { digits(id) },
        ts,
        get("text").map(text).filter(|_| !is_delete),
    )
}

#[test]
fn hostile_lines_mean_what_an_independent_reader_finds() {
    let (seed, rounds) = seed_and_rounds(200);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..rounds {
        let (is_nested, are_numbers) = (rng.random(), rng.random());
        let lines: Vec<_> = (0..40).map(|_| line(&mut rng, is_nested, are_numbers)).collect();
        let expected: Vec<_> = lines.iter().map(|line| meaning(line, is_nested)).collect();
        let end = one_of(&mut rng, &["\n", "\r\n", "\n\n"]);
        let file: String = lines.iter().map(|line| format!("{line}{end}")).collect();
        let path = |name: &str| if is_nested { format!("m.{name}") } else { name.to_owned() };
        let layout = InputLayout {
            id: path("id"),
            text: path("text"),
            ts: path("ts"),
            op: path("op"),
            ..InputLayout::default()
        };
        let mark = if rng.random_ratio(1, 4) { "\u{feff}" } else { "" };
        let bytes = packed(&mut rng, format!("{mark}{file}").as_bytes());
        let (events, bad) = all("h.jsonl", bytes, &layout);
        assert_eq!(bad, BTreeMap::new(), "DUPFLOW_SEED={seed}\n{file}");
        for (place, (found, event)) in events.iter().zip(&expected).enumerate() {
            assert_eq!(found, event, "DUPFLOW_SEED={seed}\n{}", lines[place]);
        }
        assert_eq!(events.len(), expected.len());
    }
}

/// As it is, with gzip, or with zstd.
fn packed(rng: &mut ChaCha8Rng, bytes: &[u8]) -> Vec<u8> {
    match rng.random_range(0..3) {
        0 => bytes.to_vec(),
        1 => zstd::encode_all(bytes, 1).unwrap(),
        _ => {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap()
        }
    }
}

/// A row: id, text, time and operation.
fn cells(rng: &mut ChaCha8Rng, number: usize) -> [String; 4] {
    let ts = one_of(rng, &["", "5", "2024-05-06", "0.5"]).to_owned();
    let op = one_of(rng, &["", "", "upsert", "delete"]).to_owned();
    [format!("{number}{}", text(rng, 2)), text(rng, 12), ts, op]
}

/// What the cells of a row mean; `None` for a text that is NULL.
fn row([id, text, ts, op]: [&str; 4], is_null: bool) -> Option<Read> {
    let ts = match ts {
        "" => None,
        "2024-05-06" => Some(1_714_953_600.0),
        number => number.parse().ok(),
    };
    let text = (op != "delete").then(|| text.to_owned());
    if is_null && text.is_some() { None } else { Some((id.to_owned(), ts, text)) }
}

/// With quotes: the crate reads what the crate has written, and so does this reader.
#[test]
fn hostile_tables_are_read_as_another_reader_does() {
    let (seed, rounds) = seed_and_rounds(200);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    for _ in 0..rounds {
        let delimiter = *[b',', b'\t', b';'].choose(&mut rng).unwrap();
        let escape = rng.random_ratio(1, 3).then_some(b'\\');
        let style = *[csv::QuoteStyle::Always, csv::QuoteStyle::NonNumeric].choose(&mut rng).unwrap();
        let end = if rng.random() { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut out = csv::WriterBuilder::new();
        out.delimiter(delimiter).quote_style(style).terminator(end);
        out.double_quote(escape.is_none()).escape(escape.unwrap_or(b'"'));
        let mut out = out.from_writer(Vec::new());
        out.write_record(["id", "text", "ts", "op"]).unwrap();
        for number in 0..40 {
            let mut cells = cells(&mut rng, number);
            if escape.is_some() {
                // That writer leaves an escape alone.
                cells.iter_mut().for_each(|cell| *cell = cell.replace('\\', "/"));
            }
            out.write_record(cells).unwrap();
        }
        let file = out.into_inner().unwrap();
        let mut oracle = csv::ReaderBuilder::new();
        oracle.delimiter(delimiter).escape(escape);
        let expected: Vec<_> = oracle
            .from_reader(&file[..])
            .into_records()
            .map(|found| {
                let found = found.unwrap();
                row([0, 1, 2, 3].map(|at| &found[at]), false).unwrap()
            })
            .collect();
        let layout = InputLayout {
            csv_delimiter: Some(delimiter),
            csv_escape: escape,
            csv_quote: if rng.random() { CsvQuote::Named(b'"') } else { CsvQuote::Usual },
            ..InputLayout::default()
        };
        let shown = String::from_utf8_lossy(&file).into_owned();
        let (events, bad) = all("h.csv", packed(&mut rng, &file), &layout);
        if layout.csv_quote == CsvQuote::Usual && delimiter == b'\t' && !bad.is_empty() {
            // A text may look like rows; then it is said, and the word of the user reads it.
            assert_eq!(bad.keys().collect::<Vec<_>>(), [&"open_quote"], "DUPFLOW_SEED={seed}\n{shown}");
            continue;
        }
        assert_eq!((bad, &events), (BTreeMap::new(), &expected), "DUPFLOW_SEED={seed}\n{shown}");
    }
}

/// Without quotes: each line is a row, and what a cell cannot hold is escaped, as databases write it.
#[test]
fn hostile_tables_without_quotes_are_read_as_they_were_written() {
    let (seed, rounds) = seed_and_rounds(200);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let escaped = |random: &mut ChaCha8Rng, cell: &str| -> String {
        let mut escape = |one: char| match one {
            '\\' => "\\\\".to_owned(),
            '\t' => one_of(random, &["\\t", "\\\t", "\\x09", "\\011"]).to_owned(),
            '\n' => one_of(random, &["\\n", "\\\n", "\\x0a"]).to_owned(),
            '\r' => one_of(random, &["\\r", "\\x0D"]).to_owned(),
            '\'' => one_of(random, &["\\'", "'"]).to_owned(),
            other => other.to_string(),
        };
        cell.chars().map(&mut escape).collect()
    };
    for _ in 0..rounds {
        let end = one_of(&mut rng, &["\n", "\r\n"]);
        let has_escapes: bool = rng.random();
        let (mut file, mut expected) = (format!("id\ttext\tts\top{end}"), Vec::new());
        let mut nulls = 0_u64;
        for number in 0..40 {
            let is_null = rng.random_ratio(1, 8);
            let cells = cells(&mut rng, number)
                .map(|cell| if has_escapes { cell } else { cell.replace(['\t', '\n', '\r'], " ") });
            let [id, text, ts, op] = &cells;
            let is_word = !has_escapes && text == "\\N";
            let read = row([id, text, ts, op], is_null || is_word);
            nulls += u64::from(read.is_none());
            expected.extend(read);
            let mut written = if has_escapes { cells.map(|cell| escaped(&mut rng, &cell)) } else { cells };
            if is_null {
                written[1] = one_of(&mut rng, &["\\N", "NULL"]).to_owned();
            }
            file += &format!("{}{end}", written.join("\t"));
        }
        // The last row may lack its line end, or have an escape before it, which is no operation.
        let is_open = has_escapes && end == "\n" && rng.random();
        if is_open {
            file += "last\ttext\t\t\\\n";
        } else if rng.random() {
            file.truncate(file.len() - end.len());
        }
        let layout = InputLayout {
            csv_escape: has_escapes.then_some(b'\\'),
            csv_quote: CsvQuote::None,
            ..InputLayout::default()
        };
        let (events, bad) = all("h.tsv", packed(&mut rng, file.as_bytes()), &layout);
        assert_eq!(events, expected, "DUPFLOW_SEED={seed}\n{file}");
        assert_eq!(bad.get("missing_text").copied().unwrap_or(0), nulls, "DUPFLOW_SEED={seed}\n{file}");
        let open = bad.get("unknown_op").copied().unwrap_or(0);
        assert_eq!(open, u64::from(is_open), "DUPFLOW_SEED={seed}\n{file}");
        assert!(bad.len() <= 2, "{bad:?}");
    }
}
