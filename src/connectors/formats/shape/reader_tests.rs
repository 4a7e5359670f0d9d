//! Each format: valid values, bad values, and values that resemble another format.

use super::*;
use crate::formats::named_path;
use dupflow_core::doc::fields::{FieldRow, FieldRule};

struct ShapeCase {
    shape: RecordShape,
    fields: Vec<String>,
    key: Option<&'static [u8]>,
    headers: Vec<(usize, &'static [u8])>,
}

fn given(format: ValueFormat) -> ShapeCase {
    let shape = RecordShape { format, ..RecordShape::default() };
    ShapeCase { shape, fields: Vec::new(), key: Some(b"k"), headers: Vec::new() }
}

fn path(path: &str) -> Vec<String> {
    named_path(path)
}

impl ShapeCase {
    /// Id, ts and text, a delete as `-`; or the reason.
    fn read(&self, value: impl AsRef<[u8]>) -> String {
        let shape = Arc::new(self.shape.clone());
        let reader = ShapeReader::new(&shape, &self.fields.clone().into(), &FieldRules::default());
        let record = KeyedRecord { offset: 3, ts: Some(7.0), key: self.key, value: Some(value.as_ref()) };
        match reader.read(&record, &self.headers.iter().copied()) {
            Ok(DocEvent { id, ts, text, .. }) => {
                format!(
                    "{id} {} {}",
                    ts.unwrap_or(0.0),
                    text.map_or("-".into(), |text| text.replace('\u{1e}', "|"))
                )
            }
            Err(bad) => bad.reason().to_owned(),
        }
    }

    fn reads(&self, cases: &[(&str, &str)]) {
        for (value, expected) in cases {
            assert_eq!(self.read(value), *expected, "{:?} {value}", self.shape.format);
        }
    }
}

/// Texts in many scripts, with characters that JSON has to escape or may escape.
const TEXTS: &[&str] = &[
    "近似重複文書の検出",
    "近似重复检测",
    "การตรวจจับ",
    "كشف التكرار",
    "👩‍👩‍👧‍👦 🇺🇳 é",
    "a \"b\" \\ / \u{8}\u{c}\n\r\t\u{1}",
    "\u{feff}bom",
    "\u{2028}\u{0}",
];

#[test]
fn a_page_need_not_be_utf_8_where_a_value_may_be_a_text() {
    let page = [&b"<html><meta charset=gbk>"[..], b"\xd6\xd0\xce\xc4"].concat();
    for format in [ValueFormat::Text, ValueFormat::Auto] {
        assert_eq!(given(format).read(&page), "k 7 <html><meta charset=gbk>中文");
        let with_title = ShapeCase { fields: vec!["title".to_owned()], ..given(format) };
        assert_eq!(with_title.read(&page), "k 7 <html><meta charset=gbk>中文");
        assert_eq!(given(format).read(b"<html>\xe9t\xe9"), "k 7 <html>été");
        assert_eq!(given(format).read(b"\xd6\xd0\xce\xc4"), "not_utf8");
        assert_eq!(given(format).read(b"{\"text\":\"<html>\xd6\"}"), "not_utf8");
    }
    for format in [ValueFormat::Json, ValueFormat::Debezium] {
        assert_eq!(given(format).read(&page), "not_utf8");
    }
}

#[test]
fn texts_are_unchanged_in_every_format() {
    for text in TEXTS {
        let expected = format!("k 7 {text}");
        let quoted = serde_json::to_string(text).unwrap();
        let escaped: String = quoted[1..quoted.len() - 1]
            .encode_utf16()
            .map(|unit| {
                if unit < 128 {
                    char::from(u8::try_from(unit).unwrap()).to_string()
                } else {
                    format!("\\u{unit:04X}")
                }
            })
            .collect();
        assert_eq!(given(ValueFormat::Text).read(text), expected);
        assert_eq!(given(ValueFormat::Auto).read(text), expected);
        for json in [quoted.clone(), format!("\"{escaped}\"")] {
            for format in [ValueFormat::Json, ValueFormat::Auto] {
                assert_eq!(given(format).read(format!("{{\"text\":{json}}}")), expected);
                assert_eq!(
                    given(format).read(format!("\u{feff} {{\"insert\":{{\"text\":{json}}}}}")),
                    expected
                );
            }
            for format in [ValueFormat::Debezium, ValueFormat::Auto] {
                let envelope = format!(r#"{{"before":null,"after":{{"text":{json}}},"op":"c"}}"#);
                assert_eq!(given(format).read(&envelope), expected);
                assert_eq!(
                    given(format).read(format!(r#"{{"schema":{{}},"payload":{envelope}}}"#)),
                    expected
                );
            }
        }
    }
}

#[test]
fn a_missing_value_is_a_delete_and_the_word_null_is_bad() {
    for format in [ValueFormat::Text, ValueFormat::Auto, ValueFormat::Json, ValueFormat::Debezium] {
        let given = given(format);
        assert_eq!(given.read(""), "k 7 -");
        let shape = Arc::new(given.shape.clone());
        let none = KeyedRecord { offset: 3, ts: None, key: Some(b"k"), value: None };
        let event = ShapeReader::new(&shape, &TextColumns::default(), &FieldRules::default())
            .read(&none, &[].into_iter())
            .unwrap();
        assert_eq!((event.ts, event.text), (None, None));
        let no_key = KeyedRecord { key: None, ..none };
        assert_eq!(
            ShapeReader::new(&shape, &TextColumns::default(), &FieldRules::default())
                .read(&no_key, &[].into_iter()),
            Err(BadRecord::MissingId)
        );
        let is_text = matches!(format, ValueFormat::Text | ValueFormat::Auto);
        for null in ["null", " null\n"] {
            assert_eq!(given.read(null), if is_text { "bad_text" } else { "not_an_object" });
        }
        assert_eq!(given.read(b"\xff"), "not_utf8");
        assert_eq!(given.read(vec![b' '; MAX_RECORD_BYTES + 1]), "too_long");
    }
}

#[test]
fn json_rows() {
    given(ValueFormat::Json).reads(&[
        (r#"{"text":"t","ts":9.5}"#, "k 9.5 t"),
        (r#"{"text":"first","text":"last","id":"ignored"}"#, "k 7 last"),
        (r#"{"text":"t","op":"upsert"}"#, "k 7 t"),
        (r#"{"op":"delete","ts":1}"#, "k 1 -"),
        (r#"{"insert":{"text":"t","ts":8}}"#, "k 8 t"),
        (r#"{"insert":"t"}"#, "k 7 t"),
        (r#"{"insert":null,"delete":{"ts":2}}"#, "k 2 -"),
        (r#"{"delete":{"text":"t"},"insert":null}"#, "k 7 -"),
        (r#"{"delete":"k"}"#, "k 7 -"),
        (r#"{"text":""}"#, "k 7 "),
        ("plain", "not_json"),
        (r#"{"text":"t"}{}"#, "not_json"),
        (r#"["t"]"#, "not_an_object"),
        (r#""t""#, "not_an_object"),
        ("{}", "missing_text"),
        (r#"{"insert":{}}"#, "missing_text"),
        (r#"{"insert":null}"#, "missing_text"),
        (r#"{"insert":5}"#, "bad_text"),
        (r#"{"text":null}"#, "bad_text"),
        (r#"{"text":5}"#, "bad_text"),
        (r#"{"text":"t","ts":"now"}"#, "bad_ts"),
        (r#"{"text":"t","ts":null,"op":null}"#, "k 7 t"),
        (r#"{"op":"delete","ts":null,"text":null}"#, "k 7 -"),
        (r#"{"text":"t","n":[NaN,-Infinity,1e999,"\ud83d"],"\ud83d":1}"#, "k 7 t"),
        (r#"{"text":NaN}"#, "bad_text"),
        (r#"{"text":"t","ts":NaN}"#, "bad_ts"),
        (r#"{"text":"\ud83d"}"#, "lone_surrogate"),
        (r#"{"text":"t","ts":1700000000000}"#, "bad_ts"),
        (r#"{"delete":{"ts":-1}}"#, "bad_ts"),
        (r#"{"text":"t","op":"insert"}"#, "unknown_op"),
        (r#"{"text":"t","op":1}"#, "bad_op"),
        (r#"{"insert":{"text":"t"},"delete":{}}"#, "unknown_op"),
    ]);
}

#[test]
fn texts_deep_in_a_row_and_ids_in_it() {
    let mut given = given(ValueFormat::Json);
    given.shape.text = path("page.body");
    given.shape.id = Some(path("page.id"));
    given.reads(&[
        (r#"{"page":{"body":"t","id":"doc"}}"#, "doc 7 t"),
        (r#"{"insert":{"page":{"id":42,"body":"t"}}}"#, "42 7 t"),
        (r#"{"delete":{"page":{"id":-42}}}"#, "-42 7 -"),
        (r#"{"page":{"body":"t"}}"#, "k 7 t"),
        (r#"{"page":{"body":"t","id":null}}"#, "k 7 t"),
        (r#"{"page":{"body":"t","id":""}}"#, "bad_id"),
        (r#"{"page":{"body":"t","id":1.5}}"#, "bad_id"),
        (r#"{"page":{"body":"t","id":1.0}}"#, "1 7 t"),
        (r#"{"page":{"body":"t","id":9007199254740992.0}}"#, "bad_id"),
        (r#"{"page":{"body":"t","id":18446744073709551617}}"#, "18446744073709551617 7 t"),
        (
            r#"{"page":{"body":"t","id":-340282366920938463463374607431768211457}}"#,
            "-340282366920938463463374607431768211457 7 t",
        ),
        (r#"{"text":"t"}"#, "missing_text"),
        (r#"{"page":"t"}"#, "missing_text"),
    ]);
    // If the row has no id, the key is read in the same way.
    for (key, id) in [
        (&br#"{"page":{"id":"d"}}"#[..], "d"),
        (br#"{"payload":{"page":{"id":7}}}"#, "7"),
        (
            br#"{"page":{"id":340282366920938463463374607431768211457}}"#,
            "340282366920938463463374607431768211457",
        ),
        (b"42", "42"),
        (br#"{"other":1}"#, r#"{"other":1}"#),
    ] {
        given.key = Some(key);
        assert_eq!(given.read(""), format!("{id} 7 -"));
        assert_eq!(given.read(r#"{"page":{"body":"t"}}"#), format!("{id} 7 t"));
    }
    given.key = None;
    given.reads(&[
        (r#"{"page":{"body":"t","id":"doc"}}"#, "doc 7 t"),
        (r#"{"page":{"body":"t"}}"#, "missing_id"),
    ]);
}

#[test]
fn debezium_envelopes() {
    let mut given = given(ValueFormat::Debezium);
    given.reads(&[
        (r#"{"op":"c","before":null,"after":{"text":"t"},"source":{"ts_ms":1500},"ts_ms":9000}"#, "k 1.5 t"),
        (r#"{"op":"u","before":{"text":"o"},"after":{"text":"t"},"ts_ms":9000}"#, "k 9 t"),
        (r#"{"op":"r","after":{"text":"t"}}"#, "k 7 t"),
        (r#"{"op":"r","after":{"text":null}}"#, "k 7 "),
        (r#"{"op":"d","before":{"text":"t"},"after":null}"#, "k 7 -"),
        (r#"{"op":"d","before":null,"after":null}"#, "k 7 -"),
        (r#"{"schema":{"op":"x"},"payload":{"op":"u","after":{"text":"t"}}}"#, "k 7 t"),
        (r#"{"schema":null,"payload":null}"#, "k 7 -"),
        (r#"{"op":"u","after":{"text":"__debezium_unavailable_value"}}"#, "missing_text"),
        (r#"{"op":"u","after":{"other":"t"}}"#, "missing_text"),
        (r#"{"op":"u","after":null}"#, "missing_text"),
        (r#"{"op":"c","after":{"text":5}}"#, "bad_text"),
        (r#"{"op":"t"}"#, "unknown_op"),
        (r#"{"op":5}"#, "bad_op"),
        (r#"{"text":"t"}"#, "bad_op"),
        ("[]", "not_an_object"),
        ("t", "not_json"),
    ]);
    given.shape.id = Some(path("id"));
    given.key = Some(br#"{"schema":{},"payload":{"id":3}}"#);
    given.reads(&[
        (r#"{"op":"c","after":{"id":3,"text":"t"}}"#, "3 7 t"),
        (r#"{"op":"d","before":{"id":3,"text":"t"}}"#, "3 7 -"),
        (r#"{"op":"d","before":null}"#, "3 7 -"),
        ("", "3 7 -"),
    ]);
}

#[test]
fn values_of_no_known_form_are_texts() {
    let given = given(ValueFormat::Auto);
    for text in ["plain", "[1]", "5", "\"quoted\"", "nullify", "NaN", r#"["\ud83d"]"#] {
        assert_eq!(given.read(text), format!("k 7 {text}"));
    }
    given.reads(&[
        (r#" {"text":"t"} "#, "k 7 t"),
        (r#"{"op":"delete"}"#, "k 7 -"),
        (r#"{"delete":{}}"#, "k 7 -"),
        (r#"{"op":"d","before":null}"#, "k 7 -"),
        (r#"{"op":"c","after":{"text":"t"}}"#, "k 7 t"),
        // An object is no text.
        ("{}", "missing_text"),
        (r#"{"a":"b"}"#, "missing_text"),
        (r#"{"text":5}"#, "bad_text"),
        (r#"{"text":null}"#, "bad_text"),
        (r#"{"text":["a","b"]}"#, "bad_text"),
        (r#"{"op":"c"}"#, "unknown_op"),
        (r#"{"insert":null}"#, "missing_text"),
        (r#"{"op":"upsert"}"#, "missing_text"),
        // The value has a format, and its error is reported.
        (r#"{"op":"x","after":{"text":"t"}}"#, "unknown_op"),
        (r#"{"insert":{"text":5}}"#, "bad_text"),
        (r#"{"text":"t","ts":"now"}"#, "bad_ts"),
    ]);
}

/// What other writers of changes than Debezium's connectors for tables write.
#[test]
fn changes_of_other_writers() {
    for format in [ValueFormat::Auto, ValueFormat::Json] {
        let mut given = given(format);
        given.shape.id = Some(path("id"));
        given.key = Some(br#"{"id":1}"#);
        given.reads(&[
            // ExtractNewRecordState in rewrite mode: with REPLICA IDENTITY FULL, without, with a schema.
            (r#"{"id":1,"text":"t","__deleted":"false"}"#, "1 7 t"),
            (r#"{"id":1,"text":"t","__deleted":"true"}"#, "1 7 -"),
            (r#"{"id":1,"text":null,"url":null,"__deleted":"true"}"#, "1 7 -"),
            (r#"{"id":1,"text":null,"__deleted":true,"__op":"d"}"#, "1 7 -"),
            (r#"{"schema":{},"payload":{"id":2,"text":"t","__deleted":"false"}}"#, "2 7 t"),
            (r#"{"schema":{},"payload":{"id":2,"text":null,"__deleted":"true"}}"#, "2 7 -"),
        ]);
        given.shape.text = path("data.text");
        given.shape.id = Some(path("data.id"));
        let maxwell = |kind: &str, data: &str| {
            let of = r#""database":"d","table":"t","ts":5,"xid":9,"commit":true"#;
            given.read(format!(r#"{{{of},"type":"{kind}","data":{data},"old":{{"text":"o"}}}}"#))
        };
        for kind in ["insert", "update", "bootstrap-insert"] {
            assert_eq!(maxwell(kind, r#"{"id":1,"text":"t"}"#), "1 5 t");
        }
        assert_eq!(maxwell("delete", r#"{"id":1,"text":"t"}"#), "1 5 -");
        assert_eq!(maxwell("bootstrap-start", "{}"), "missing_text");
        // A row may have a type of its own.
        given.shape.text = path("text");
        given.shape.id = Some(path("id"));
        given.reads(&[(r#"{"id":1,"type":"delete","text":"t"}"#, "1 7 t")]);
    }
}

#[test]
fn documents_of_mongodb_are_strings() {
    for format in [ValueFormat::Auto, ValueFormat::Debezium] {
        let mut given = given(format);
        given.key = Some(br#"{"id":"{\"$oid\":\"5f\"}"}"#);
        given.shape.id = Some(path("_id.$oid"));
        let envelope = |op: &str, after: &str| {
            let after = serde_json::to_string(after).unwrap();
            given.read(format!(r#"{{"op":"{op}","before":null,"after":{after},"source":{{"ts_ms":1500}}}}"#))
        };
        let document = r#"{"_id":{"$oid":"5f"},"text":"t\n","n":{"$numberLong":"1"}}"#;
        assert_eq!(envelope("c", document), "5f 1.5 t\n");
        assert_eq!(envelope("u", "{"), "not_json");
        assert_eq!(envelope("u", "[]"), "missing_text");
        given.reads(&[
            (r#"{"op":"d","before":null,"after":null}"#, "5f 7 -"),
            (r#"{"op":"u","before":null,"after":null}"#, "missing_text"),
            ("", "5f 7 -"),
        ]);
        given.key = Some(br#"{"id":"7"}"#);
        given.shape.id = Some(path("_id"));
        given.reads(&[(r#"{"op":"d","before":null}"#, "7 7 -")]);
    }
}

/// Neither is a change of a row: one is counted as skipped, the other is a bad record that says what it is.
#[test]
fn messages_and_truncates_are_no_documents() {
    let truncate = br#"{"before":null,"after":null,"op":"t","source":{"table":"x"}}"#;
    let message = br#"{"op":"m","ts_ms":9,"message":{"prefix":"p","content":"YQ=="}}"#;
    for format in [ValueFormat::Auto, ValueFormat::Debezium] {
        let given = given(format);
        let shape = Arc::new(given.shape.clone());
        let reader = ShapeReader::new(&shape, &TextColumns::default(), &FieldRules::default());
        for (value, skipped) in [(&truncate[..], None), (message, Some("message"))] {
            assert_eq!((given.read(value), reader.skipped(value)), ("unknown_op".to_owned(), skipped));
        }
        let cause = reader.cause(BadRecord::UnknownOp, truncate).unwrap();
        assert_eq!(cause, "\"t\" empties a table, and the documents of its rows stay");
        let missing = reader.cause(BadRecord::MissingText, br#"{"url":1,"n":NaN}"#).unwrap();
        assert!(missing.starts_with("no text at \"text\" among \"n\", \"url\""), "{missing}");
        assert_eq!(missing.contains("source.format"), format == ValueFormat::Auto, "{missing}");
    }
    // In other formats it is a row, whose operation is none.
    let row = br#"{"op":"m","text":"t"}"#;
    for (format, value) in
        [(ValueFormat::Json, &message[..]), (ValueFormat::Json, row), (ValueFormat::Auto, row)]
    {
        let given = given(format);
        let shape = Arc::new(given.shape.clone());
        let reader = ShapeReader::new(&shape, &TextColumns::default(), &FieldRules::default());
        assert_eq!((given.read(value), reader.skipped(value)), ("unknown_op".to_owned(), None), "{format:?}");
    }
}

#[test]
fn the_operation_may_have_another_name_or_none() {
    for format in [ValueFormat::Auto, ValueFormat::Json] {
        let mut given = given(format);
        given.shape.op = path("meta.op");
        given.reads(&[
            (r#"{"text":"t","op":5,"meta":{"op":"delete"}}"#, "k 7 -"),
            (r#"{"text":"t","op":"u/someone"}"#, "k 7 t"),
        ]);
        given.shape.op = Vec::new();
        given.reads(&[(r#"{"text":"t","op":"delete","":"delete"}"#, "k 7 t")]);
    }
}

#[test]
fn broken_json_and_schema_ids_are_bad_records() {
    for broken in
        ["{not json", " \n\t{\"text\":\"t\"", "\u{feff}{\"text\":\"t\"}}", "{\"text\":'t'}", "{", "{}{}"]
    {
        assert_eq!(given(ValueFormat::Auto).read(broken), "not_json", "{broken}");
        assert_eq!(given(ValueFormat::Text).read(broken), format!("k 7 {broken}"));
    }
    // A zero byte, a schema id, and a body: Avro, and JSON.
    for framed in [&b"\0\0\0\0\x07\x0atexts"[..], b"\0\0\0\0\x01{\"text\":\"t\"}", b"\0", b"\0\xff\xfe"] {
        assert_eq!(given(ValueFormat::Auto).read(framed), "framed", "{framed:?}");
    }
    assert_eq!(given(ValueFormat::Text).read("\0one"), "k 7 \0one");
    assert_eq!(given(ValueFormat::Json).read(b"\0\0\0\0\x01{}"), "not_json");
}

#[test]
fn a_record_of_an_impossible_time_is_a_document_where_no_time_is_needed() {
    for (format, value) in [
        (ValueFormat::Text, "t"),
        (ValueFormat::Auto, "t"),
        (ValueFormat::Json, r#"{"text":"t"}"#),
        (ValueFormat::Debezium, r#"{"op":"c","after":{"text":"t"}}"#),
        (ValueFormat::Text, ""),
    ] {
        for ts in [UnixTime::END, 1_700_000_000_000.0, -0.001, f64::INFINITY] {
            let record =
                KeyedRecord { offset: 3, ts: Some(ts), key: Some(b"k"), value: Some(value.as_bytes()) };
            let read = |needs_time| {
                let shape = Arc::new(RecordShape { format, needs_time, ..RecordShape::default() });
                let event = ShapeReader::new(&shape, &TextColumns::default(), &FieldRules::default())
                    .read(&record, &[].into_iter());
                event.map(|event| (event.ts, event.text.map(Cow::into_owned)))
            };
            assert_eq!(
                read(false),
                Ok((None, (!value.is_empty()).then(|| "t".to_owned()))),
                "{format:?} {ts}"
            );
            assert_eq!(read(true), Err(BadRecord::BadTs), "{format:?} {ts}");
        }
    }
}

#[test]
fn further_fields_of_rows_and_of_headers() {
    let mut given = given(ValueFormat::Json);
    given.fields = vec!["author".into(), "title".into()];
    given.shape.headers = vec!["title".into(), "unasked".into()];
    given.reads(&[
        (r#"{"text":"a\u001eb","title":"T\u001e","author":"A"}"#, "k 7 a b|A|T "),
        (r#"{"insert":{"text":"t","title":"T"}}"#, "k 7 t||T"),
        (r#"{"text":"t"}"#, "k 7 t"),
        (r#"{"text":"t","title":5}"#, "bad_field"),
        (r#"{"op":"delete","title":5}"#, "k 7 -"),
    ]);
    given.headers = vec![(1, b"no"), (0, b"first"), (0, "見出し".as_bytes())];
    given.reads(&[
        (r#"{"text":"t","title":5,"author":"A"}"#, "k 7 t|A|見出し"),
        (r#"{"text":"t"}"#, "k 7 t||見出し"),
    ]);
    given.shape.format = ValueFormat::Text;
    given.reads(&[("a\u{1e}b", "k 7 a b||見出し")]);
    given.headers = vec![(0, b"\xff")];
    given.reads(&[("t", "bad_field")]);
    given.shape.format = ValueFormat::Debezium;
    given.headers.clear();
    given.reads(&[(r#"{"op":"c","after":{"text":"t","title":null,"author":"A"}}"#, "k 7 t|A|")]);
}

/// Fields of documents: from headers that the shape names, else from the row of any format.
#[test]
fn fields_of_documents() {
    let rules =
        ["lang", "n", "host(page.url)", "prefix(id,\"-\",1)"].map(|rule| FieldRule::parse(rule).unwrap());
    let rules = FieldRules::new(rules.into()).unwrap();
    let headers = vec!["other".to_owned(), "lang".to_owned()];
    let row = r#"{"text":"t","lang":"de","n":2.50,"page":{"url":"http://X.org:1/"}}"#;
    let lang: &[(usize, &[u8])] = &[(1, b"fr")];
    let broken: &[(usize, &[u8])] = &[(1, b"\xff")];
    for (format, value, headers_of, expected) in [
        (ValueFormat::Json, row.to_owned(), &[][..], ["de", "2.5", "x.org", "k"]),
        (ValueFormat::Auto, row.to_owned(), lang, ["fr", "2.5", "x.org", "k"]),
        (ValueFormat::Json, format!("{{\"insert\":{row}}}"), broken, ["", "2.5", "x.org", "k"]),
        (
            ValueFormat::Debezium,
            format!("{{\"op\":\"c\",\"after\":{row}}}"),
            &[],
            ["de", "2.5", "x.org", "k"],
        ),
        (ValueFormat::Text, "a text".to_owned(), lang, ["fr", "", "", "k"]),
        (ValueFormat::Row, "a text".to_owned(), lang, ["fr", "", "", "k"]),
    ] {
        let shape = Arc::new(RecordShape { format, headers: headers.clone(), ..RecordShape::default() });
        let reader = ShapeReader::new(&shape, &TextColumns::default(), &rules);
        let record = KeyedRecord { offset: 3, ts: None, key: Some(b"k-1"), value: Some(value.as_bytes()) };
        let event = reader.read(&record, &headers_of.iter().copied()).unwrap();
        assert_eq!(event.fields.row, FieldRow::new(expected), "{format:?}");
        assert_eq!(event.fields.flaws.unusable, u32::from(headers_of == broken));
        let tombstone = KeyedRecord { value: None, ..record };
        let deleted = reader.read(&tombstone, &headers_of.iter().copied()).unwrap();
        assert_eq!((deleted.text, deleted.fields), (None, EventFields::default()));
    }
}
