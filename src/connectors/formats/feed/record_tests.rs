use super::*;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::{EventFields, FieldRow, FieldRule, FieldRules};

fn bad(line: &[u8]) -> BadRecord {
    Parser::new().parse(line).unwrap_err()
}

/// Id, text and ts of a good line.
fn good(line: &str) -> (String, Option<String>, Option<f64>) {
    let mut parser = Parser::new();
    let FeedRecord { event, ts } = parser.parse(line.as_bytes()).unwrap();
    (event.id.to_string(), event.text.map(Cow::into_owned), ts)
}

#[test]
fn every_form_of_an_event() {
    let text = Some("b c".to_owned());
    assert_eq!(good(r#"{"id":"a","text":"b c"}"#), ("a".to_owned(), text.clone(), None));
    assert_eq!(
        good("{\"ts\":1.5,\"text\":\"b c\",\"op\":\"upsert\",\"id\":\"a\"}\r\n"),
        ("a".to_owned(), text.clone(), Some(1.5))
    );
    assert_eq!(good(r#"{"id":"a","op":"delete","ts":7}"#), ("a".to_owned(), None, Some(7.0)));
    assert_eq!(good(r#"{"id":"a","op":"delete","text":null}"#), ("a".to_owned(), None, None));
    assert_eq!(
        good(r#" { "x" : {"id":[1,{"text":2}]}, "id" : "a" , "text" : "b c" , "y":null } "#),
        ("a".to_owned(), text, None)
    );
    assert_eq!(good(r#"{"id":"a","text":""}"#), ("a".to_owned(), Some(String::new()), None));
}

/// As in Parquet and CSV. The last of repeated fields counts, also if it is null.
#[test]
fn null_is_absent() {
    let text = Some("b".to_owned());
    for line in [
        r#"{"id":"a","op":null,"ts":null,"text":"b"}"#,
        r#"{"id":"a","op":"delete","op": null ,"ts":5,"ts":null,"text":"b"}"#,
        r#"{"id":"a","op":"\n","op":null,"text":"b"}"#,
    ] {
        assert_eq!(good(&line.replace(r"\\n", r"\n")), ("a".to_owned(), text.clone(), None), "{line}");
    }
    let deleted = r#"{"id":"a","op":"delete","ts":null,"text":null}"#;
    assert_eq!(good(deleted), ("a".to_owned(), None, None));
}

/// Python's `json` writes them. In a field that is not read they do not matter; nor does a lone surrogate.
#[test]
fn values_beyond_the_standard_are_skipped() {
    for value in ["NaN", "Infinity", "-Infinity", "1e999", "[NaN,{\"a\":-Infinity}]", r#""\ud83d""#] {
        for line in [
            format!(r#"{{"id":"a","x":{value},"text":"b \"NaN\" c"}}"#),
            format!(r#"{{"text":"b \"NaN\" c","id":"a","x" : {value} }}"#),
            format!(r#"{{"id":"a","x":{value},"\udc00":{value},"text":"b \"NaN\" c"}}"#),
        ] {
            assert_eq!(good(&line), ("a".to_owned(), Some("b \"NaN\" c".to_owned()), None), "{line}");
        }
        assert_eq!(timestamp(format!(r#"{{"x":{value},"ts":7}}"#).as_bytes()), Some(7.0), "{value}");
    }
    let names = FieldNames { surrogates: SurrogateRule::Replace, ..FieldNames::default() };
    let mut parser = Parser::with_names(names, &TextColumns::default(), &FieldRules::default());
    let line = br#"{"id":"a\udc00","text":"\ud83dx\ud83d\ude00\n"}"#;
    let event = parser.parse(line).unwrap().event;
    assert_eq!((event.id.as_str(), event.text.as_deref()), ("a\u{fffd}", Some("\u{fffd}x😀\n")));
}

/// However long, and a double by its value as long as it is one number.
#[test]
fn whole_numbers_are_ids_by_their_digits() {
    let names = FieldNames { whole_ids: true, ..FieldNames::default() };
    let mut parser = Parser::with_names(names, &TextColumns::default(), &FieldRules::default());
    let long = "9".repeat(1024);
    for (written, id) in [
        ("0", "0"),
        ("-0", "0"),
        ("-7", "-7"),
        ("18446744073709551615", "18446744073709551615"),
        ("18446744073709551617", "18446744073709551617"),
        ("-18446744073709551617", "-18446744073709551617"),
        ("340282366920938463463374607431768211457", "340282366920938463463374607431768211457"),
        (&*long, &*long),
        ("1.0", "1"),
        ("-1.50e1", "-15"),
        ("-0.0", "0"),
        ("9007199254740991.0", "9007199254740991"),
    ] {
        for line in
            [format!(r#"{{"id":{written},"text":"b"}}"#), format!(r#"{{"text":"b","id": {written} }}"#)]
        {
            assert_eq!(
                parser.parse(line.as_bytes()).map(|record| record.event.id.to_string()),
                Ok(id.to_owned())
            );
        }
    }
    let longer = "9".repeat(1025);
    for written in ["9007199254740992.0", "1e16", "1.5", "1e400", "-1e400", "NaN", "true", &longer] {
        let line = format!(r#"{{"id":{written},"text":"b"}}"#);
        assert_eq!(parser.parse(line.as_bytes()), Err(BadRecord::BadId), "{written}");
    }
}

#[test]
fn the_operation_is_read_from_the_field_of_its_name() {
    let named = |op: &str, line: &str| {
        let names = FieldNames { op: op.to_owned(), ..FieldNames::default() };
        let mut parser = Parser::with_names(names, &TextColumns::default(), &FieldRules::default());
        parser.parse(line.as_bytes()).map(|record| record.event.text.is_some())
    };
    let line = r#"{"id":"a","op":"u/someone","action":"delete","":"delete","text":"t"}"#;
    assert_eq!(named("op", line), Err(BadRecord::UnknownOp));
    assert_eq!(named("action", line), Ok(false));
    assert_eq!(named("", line), Ok(true));
}

#[test]
fn ids_and_texts_are_kept_verbatim() {
    let (id, text, _) =
        good(r#"{"\u0069d":"q\"\\\u0000\n\ud83d\ude00é","t\u0065xt":"\t\u0416\/","o\u0070":"up\u0073ert"}"#);
    assert_eq!((id.as_str(), text.as_deref()), ("q\"\\\0\n😀é", Some("\tЖ/")));
}

#[test]
fn texts_without_escapes_are_borrowed_from_the_line() {
    let line = r#"{"id":"a","text":"no escapes"}"#;
    let mut parser = Parser::new();
    let text = parser.parse(line.as_bytes()).unwrap().event.text.unwrap();
    assert!(line.as_bytes().as_ptr_range().contains(&text.as_ptr()));
}

#[test]
fn buffers_do_not_leak_into_the_next_record() {
    let mut parser = Parser::new();
    assert!(parser.parse(br#"{"id":"a\n","text":"long\nlong"}"#).is_ok());
    let next = parser.parse(br#"{"id":"b\n","text":"x\n"}"#).unwrap().event;
    assert_eq!((next.id.as_str(), next.text.as_deref()), ("b\n", Some("x\n")));
    assert_eq!(parser.parse(br#"{"id":"b"}"#), Err(BadRecord::MissingText));
}

#[test]
fn the_last_of_repeated_fields_counts() {
    assert_eq!(good(r#"{"id":"a","id":"b","text":"x\n","text":"y"}"#).0, "b");
    assert_eq!(good(r#"{"id":7,"text":"x\n","text":"y","id":"b"}"#).1.as_deref(), Some("y"));
    assert_eq!(bad(br#"{"id":"a","text":"x","text":7}"#), BadRecord::BadText);
}

#[test]
fn every_reason_of_a_line() {
    use BadRecord::*;
    let cases: [(&[u8], BadRecord); 44] = [
        (b"{\"id\":\"a\",\"text\":\"\xff\"}", NotUtf8),
        (b"\xff", NotUtf8),
        (b"{\"id\":\"a\",\"other\":\"\xe9\",\"text\":\"x\"}", NotUtf8),
        (b"hello", NotJson),
        (br#"{"id":"a","text":"x""#, NotJson),
        (br#"{"id":"a","text":"x"} {"#, NotJson),
        (br#"{"id":"a","text":"x"}{"id":"b","text":"y"}"#, NotJson),
        (br#"{"id":"a","text":"x",}"#, NotJson),
        (b"{\"id\":\"a\",\"text\":\"raw\ttab\"}", NotJson),
        (br#"{"id":"a","text":"lone \ud800 surrogate"}"#, LoneSurrogate),
        (br#"{"id":"a","text":"x","ts":1e999}"#, BadTs),
        (br#"[1,"#, NotJson),
        (b"[1, {}]", NotAnObject),
        (b"\"a\"", NotAnObject),
        (b"1", NotAnObject),
        (b"-1", NotAnObject),
        (b"1.5", NotAnObject),
        (b"true", NotAnObject),
        (b"null", NotAnObject),
        (br#"{"text":"x"}"#, MissingId),
        (b"{}", MissingId),
        (br#"{"id":"","text":"x"}"#, BadId),
        (br#"{"id":7,"text":"x"}"#, BadId),
        (br#"{"id":null,"op":7}"#, BadId),
        (br#"{"id":["a"],"text":"x"}"#, BadId),
        (br#"{"id":"a","op":7,"text":"x"}"#, BadOp),
        (br#"{"id":"a","op":"insert","text":"x"}"#, UnknownOp),
        (br#"{"id":"a","ts":"x","text":"x"}"#, BadTs),
        (br#"{"id":"a","ts":NaN,"text":"x"}"#, BadTs),
        (br#"{"id":"a","text":Infinity}"#, BadText),
        (br#"{"id":"a","op":NaN,"text":"x"}"#, BadOp),
        (br#"{"id":NaN,"text":"x"}"#, BadId),
        (br#"{"id":"a","text":"x","n":NaNs}"#, NotJson),
        (br#"{"id":"a","text":"x","n":-NaN}"#, NotJson),
        (br#"{"id":"\udc00","text":"x","n":1}"#, LoneSurrogate),
        (br#"{"id":"a","text":"\ud800","n":[}"#, NotJson),
        // Milliseconds, the year 2100, before 1970.
        (br#"{"id":"a","ts":1700000000000,"text":"x"}"#, BadTs),
        (br#"{"id":"a","ts":4102444800,"text":"x"}"#, BadTs),
        (br#"{"id":"a","op":"delete","ts":-0.5}"#, BadTs),
        (br#"{"id":"a","ts":1e300,"text":7}"#, BadTs),
        (br#"{"id":"a"}"#, MissingText),
        (br#"{"id":"a","text":null}"#, BadText),
        (br#"{"id":"a","text":{"x":1}}"#, BadText),
        (br#"{"id":"a","text":5}"#, BadText),
    ];
    for (line, reason) in cases {
        assert_eq!(bad(line), reason, "{}", String::from_utf8_lossy(line));
    }
}

/// The text of a line with the fields "b" and "a", in this order.
fn joined(line: &str) -> Result<String, BadRecord> {
    let mut parser = Parser::with_columns(&vec!["b".to_owned(), "a".to_owned()].into());
    // Values of one line must not appear in the next.
    parser.parse(br#"{"id":"0","text":"old","a":7,"b":"old\n"}"#).unwrap_err();
    let record = parser.parse(line.as_bytes())?;
    Ok(record.event.text.expect("an upsert").into_owned())
}

#[test]
fn further_fields_follow_the_text() {
    for line in [
        r#"{"id":"i","text":"t","a":"x","b":"y"}"#,
        r#"{"b":"y","a":"x","text":"t","id":"i","c":7}"#,
        r#"{"a":"\u0078","b":7,"id":"i","text":"\u0074","b":"\u0079"}"#,
        r#"{"\u0061":"x","b":"y","id":"i","text":"t"}"#,
    ] {
        assert_eq!(joined(line).as_deref(), Ok("t\u{1e}y\u{1e}x"), "{line}");
    }
    assert_eq!(joined(r#"{"id":"i","text":"t"}"#).as_deref(), Ok("t\u{1e}\u{1e}"));
    assert_eq!(joined(r#"{"id":"i","text":"","a":"x"}"#).as_deref(), Ok("\u{1e}\u{1e}x"));
    // A separator within a part becomes a space.
    let line = r#"{"id":"i","text":"t\u001e","a":"\u001ex\u001ey","b":"\u001e"}"#;
    assert_eq!(joined(line).as_deref(), Ok("t \u{1e} \u{1e} x y"));
    // Without further fields a text is verbatim.
    assert_eq!(good(r#"{"id":"i","text":"t\u001e","a":"x"}"#).1.as_deref(), Some("t\u{1e}"));
}

#[test]
fn a_further_field_is_a_string() {
    for value in ["null", "7", "[\"x\"]", "{}", "true"] {
        let line = format!(r#"{{"id":"i","text":"t","a":{value},"b":"y"}}"#);
        assert_eq!(joined(&line), Err(BadRecord::BadField), "{value}");
        assert!(Parser::new().parse(line.as_bytes()).is_ok());
    }
    assert_eq!(joined(r#"{"id":"i","text":"t","a":"x","a":7}"#), Err(BadRecord::BadField));
    // The text is checked first.
    assert_eq!(joined(r#"{"id":"i","a":"x"}"#), Err(BadRecord::MissingText));
    assert_eq!(joined(r#"{"id":"i","a":7,"text":7}"#), Err(BadRecord::BadText));
    let mut parser = Parser::with_columns(&vec!["a".to_owned()].into());
    assert_eq!(parser.parse(br#"{"id":"i","op":"delete","a":7}"#).unwrap().event.text, None);
}

#[test]
fn ids_may_have_1024_bytes_and_no_more() {
    let line = |n| format!(r#"{{"id":"{}","op":"delete"}}"#, "i".repeat(n));
    assert_eq!(good(&line(1024)).0.len(), 1024);
    assert_eq!(bad(line(1025).as_bytes()), BadRecord::BadId);
}

#[test]
fn deep_nesting_is_rejected_without_overflow() {
    let deep = format!(r#"{{"x":{}1{},"id":"a","text":"t"}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(good(&deep).0, "a");
    let deep_id = format!(r#"{{"id":{}1{},"text":"t"}}"#, "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(bad(deep_id.as_bytes()), BadRecord::BadId);
    assert_eq!(bad("[".repeat(100_000).as_bytes()), BadRecord::NotJson);
}

#[test]
fn a_timestamp_is_read_alone() {
    assert_eq!(timestamp(br#"{"id":"a","text":"\n","ts":12.5,"z":[]}"#), Some(12.5));
    assert_eq!(timestamp(br#"{"ts":1700000000}"#), Some(1.7e9));
    assert_eq!(timestamp(br#"{"ts":"2024-05-06T07:08:09Z"}"#), Some(1_714_979_289.0));
    assert_eq!(timestamp(br#"{"ts":"1"}"#), Some(1.0));
    for none in [
        &br#"{"id":"a"}"#[..],
        br#"{"ts":"soon"}"#,
        br#"{"ts":[1]}"#,
        br#"{"ts":null}"#,
        br#"{"ts":1"#,
        b"[1]",
        b"\xff",
    ] {
        assert_eq!(timestamp(none), None);
    }
}

#[test]
fn written_lines_can_be_parsed() {
    let cases = [
        ("a", Some("text with \"quotes\"\n\0 and Ж😀"), Some(1_700_000_000.25)),
        ("q\"\\\n\0", Some(""), None),
        ("b", None, Some(4_102_444_799.5)),
        ("c", None, Some(0.0)),
    ];
    for (id, text, ts) in cases {
        let record = FeedRecord {
            event: DocEvent {
                id: DocId::new(id).unwrap(),
                ts,
                written: None,
                text: text.map(Cow::from),
                fields: EventFields::default(),
            },
            ts,
        };
        let mut line = Vec::new();
        write(&mut line, &record).unwrap();
        assert_eq!(Parser::new().parse(&line), Ok(record));
    }
}

#[test]
fn a_written_line_has_this_form() {
    let fields = EventFields::default();
    let id = DocId::new("a").unwrap();
    let event = DocEvent { id, ts: None, written: None, text: Some("x\n".into()), fields };
    let mut lines = Vec::new();
    write(&mut lines, &FeedRecord { event, ts: Some(1_700_000_000.0) }).unwrap();
    write(
        &mut lines,
        &FeedRecord {
            event: DocEvent {
                id: DocId::new("a").unwrap(),
                ts: None,
                written: None,
                text: None,
                fields: EventFields::default(),
            },
            ts: None,
        },
    )
    .unwrap();
    let expected = "{\"id\":\"a\",\"op\":\"upsert\",\"ts\":1700000000,\"text\":\"x\\n\"}\n\
        {\"id\":\"a\",\"op\":\"delete\"}\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
}

/// Fields of documents, by both parsers: a repeated text is left to the library.
#[test]
fn fields_of_documents() {
    let rules = ["v", "host(url)", "prefix(id,\"/\",1)", "day(ts)", "title"];
    let rules = rules.map(|rule| FieldRule::parse(rule).unwrap());
    let rules = FieldRules::new(rules.into()).unwrap();
    let names = FieldNames { ts: "at".to_owned(), ..FieldNames::default() };
    let mut parser = Parser::with_names(names, &vec!["title".to_owned()].into(), &rules);
    for (value, expected) in [
        ("\"d\\u0065\"", "de"),
        ("7", "7"),
        ("0", "0"),
        ("-7", "-7"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("18446744073709551615", "18446744073709551615"),
        ("true", "true"),
        ("false", "false"),
        ("null", ""),
        ("[1]", ""),
        ("{\"v\":1}", ""),
    ] {
        let line = r#"{"id":"a/b","title":"T","url":"http://X/","v":VALUE,"at":86400,"text":"t"}"#
            .replace("VALUE", value);
        let row = FieldRow::new([expected, "x", "a", "1970-01-02", "T"]);
        let twice = line.replace("{\"id\"", "{\"text\":\"u\",\"id\"");
        for written in [line, twice] {
            let DocEvent { text, fields, .. } = parser.parse(written.as_bytes()).unwrap().event;
            assert_eq!((text.as_deref(), &fields.row), (Some("t\u{1e}T"), &row), "{written}");
        }
    }
    let delete = parser.parse(br#"{"id":"a","op":"delete","v":1}"#).unwrap().event;
    assert_eq!(delete.fields, EventFields::default());
    let bare = parser.parse(br#"{"id":"a","text":"t"}"#).unwrap().event.fields;
    assert_eq!((bare.row.get(0), bare.flaws.missing), ("", 4), "nothing stays from the line before");
    assert!(matches!(parser.parse(br#"{"id":"a","text":"t","title":1}"#), Err(BadRecord::BadField)));
    // The column of ids may be a field too.
    let host = FieldRules::new(vec![FieldRule::parse("host(url)").unwrap()]).unwrap();
    let by_address = FieldNames { id: "url".to_owned(), ..FieldNames::default() };
    let mut by_url = Parser::with_names(by_address, &TextColumns::default(), &host);
    let event = by_url.parse(br#"{"url":"http://x.org/1","text":"t"}"#).unwrap().event;
    assert_eq!((event.id.as_str(), event.fields.row.get(0)), ("http://x.org/1", "x.org"));
}
