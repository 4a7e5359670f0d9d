mod valid;

use std::io;
use std::sync::Arc;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::super::super::rows::{FileRow, RowText};
use super::super::super::samples::{self, Harm, ReadResult, harmed, texts};
use super::*;
use dupflow_core::text::Given;

/// A file in memory.
struct MemoryFile(Vec<u8>);

impl fmt::Debug for MemoryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl RandomAccess for MemoryFile {
    fn bytes(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, from: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(from).map_err(io::Error::other)?;
        let bytes = self.0.get(from..).and_then(|rest| rest.get(..buffer.len()));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

pub(super) fn columns(text: &str, id: &str, fields: &[&str]) -> WantedColumns {
    WantedColumns { id: Some(id.to_owned()), text: text.to_owned(), ..samples::columns(fields) }
}

fn open(bytes: &[u8], columns: &WantedColumns) -> Result<ParquetFile, Damage> {
    ParquetFile::open(Arc::new(MemoryFile(bytes.to_vec())), columns)
}

/// Reads all groups, one after another.
pub(super) fn read(bytes: &[u8], columns: &WantedColumns) -> ReadResult {
    let mut found = ReadResult::default();
    let file = match open(bytes, columns) {
        Ok(file) => file,
        Err(damage) => {
            found.damages.push(damage);
            return found;
        }
    };
    for place in 0..file.groups().len() {
        match file.group(place) {
            Ok(group) => {
                let part = ReadResult::read_all(group, 100_000);
                found.rows.extend(part.rows);
                found.damages.extend(part.damages);
            }
            Err(damage) => found.damages.push(damage),
        }
    }
    found
}

pub(super) type RowGroupWriter<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// A file with this schema; `write` writes its groups.
fn file(
    schema: &str,
    codec: Compression,
    groups: usize,
    write: impl Fn(usize, &mut RowGroupWriter<'_>),
) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let properties = WriterProperties::builder().set_compression(codec).set_data_page_size_limit(4000);
    let properties = properties.set_write_batch_size(16).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties)).unwrap();
    for place in 0..groups {
        let mut group = writer.next_row_group().unwrap();
        write(place, &mut group);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// Writes the next column.
pub(super) fn put<T: DataType>(
    group: &mut RowGroupWriter<'_>,
    values: &[T::T],
    defs: Option<&[i16]>,
    reps: Option<&[i16]>,
) {
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<T>().write_batch(values, defs, reps).unwrap();
    column.close().unwrap();
}

pub(super) fn bytes(texts: &[impl AsRef<str>]) -> Vec<ByteArray> {
    texts.iter().map(|text| text.as_ref().into()).collect()
}

/// Five groups of documents with integer ids.
fn documents(texts: &[String], codec: Compression) -> Vec<u8> {
    let schema = "message m { required int64 id; required binary text (UTF8); }";
    let size = texts.len() / 5;
    file(schema, codec, 5, |place, group| {
        let ids: Vec<_> = (place * size..(place + 1) * size).map(|id| i64::try_from(id).unwrap()).collect();
        put::<Int64Type>(group, &ids, None, None);
        put::<ByteArrayType>(group, &bytes(&texts[place * size..][..size]), None, None);
    })
}

const CODECS: [Compression; 3] = [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW];

#[test]
fn rows_are_documents_of_all_groups() {
    let texts = texts(3000, 5);
    let packed = [Compression::GZIP(GzipLevel::default()), Compression::ZSTD(ZstdLevel::default())];
    for codec in [&CODECS[..], &packed].concat() {
        let file = documents(&texts, codec);
        let columns = columns("text", "id", &["absent"]);
        assert_eq!(open(&file, &columns).unwrap().groups(), [600; 5]);
        let found = read(&file, &columns);
        assert_eq!(found.texts(), texts, "{codec:?}");
        assert_eq!((found.ids()[2999], found.damages.len()), ("2999", 0), "{codec:?}");
        assert_eq!(found.rows[0].fields, [b""]);
    }
}

#[test]
fn values_of_all_types_are_text_or_time() {
    let schema = "message m {
        optional group document { required binary text (UTF8); optional binary op (UTF8); }
        optional int32 id (INTEGER(32,false));
        required int64 ts (TIMESTAMP(MICROS,true));
        required fixed_len_byte_array(16) uuid (UUID);
        required double score;
        required int32 day (DATE);
        required boolean flag;
        required int64 big (INTEGER(64,false));
        required fixed_len_byte_array(3) fixed;
    }";
    let file = file(schema, Compression::SNAPPY, 1, |_, group| {
        // The second row has no document, the third is deleted.
        put::<ByteArrayType>(group, &bytes(&["文 Straße", "gone"]), Some(&[1, 0, 1]), None);
        put::<ByteArrayType>(group, &bytes(&["delete"]), Some(&[1, 0, 2]), None);
        put::<Int32Type>(group, &[-1, 7], Some(&[1, 0, 1]), None);
        put::<Int64Type>(group, &[1_500_000, -500_000, 0], None, None);
        let id = (0..16).collect::<Vec<u8>>();
        let uuid = FixedLenByteArray::from(ByteArray::from(id));
        put::<FixedLenByteArrayType>(group, &[uuid.clone(), uuid.clone(), uuid], None, None);
        put::<DoubleType>(group, &[0.5, f64::NAN, 3.0], None, None);
        put::<Int32Type>(group, &[1, 2, 3], None, None);
        put::<BoolType>(group, &[true, false, true], None, None);
        put::<Int64Type>(group, &[-1, 0, 1], None, None);
        let fixed = FixedLenByteArray::from(ByteArray::from("abc"));
        put::<FixedLenByteArrayType>(group, &[fixed.clone(), fixed.clone(), fixed], None, None);
    });
    let fields = ["uuid", "score", "day", "flag", "big", "fixed"];
    let columns = WantedColumns { op: "document.op".to_owned(), ..columns("document.text", "id", &fields) };
    let found = read(&file, &columns);
    let ([first, third], [second]) = (&found.rows[..], &found.damages[..]) else { panic!("{found:?}") };
    assert_eq!(first.text, RowText::Is("文 Straße".as_bytes().to_vec()));
    assert_eq!((first.id.as_deref(), first.ts), (Some(&b"4294967295"[..]), Some(1.5)));
    let expected = [
        &b"00010203-0405-0607-0809-0a0b0c0d0e0f"[..],
        b"0.5",
        b"86400",
        b"true",
        b"18446744073709551615",
        b"abc",
    ];
    assert_eq!(first.fields, expected);
    assert_eq!((second.reason, second.place), (BadRecord::BadTs, RecordPlace::Record(1)), "before 1970");
    assert_eq!((&third.text, third.id.as_deref()), (&RowText::Deleted, Some(&b"7"[..])));
    let bad_times = read(&file, &WantedColumns { ts: "flag".to_owned(), ..columns.clone() });
    assert_eq!((bad_times.rows.len(), bad_times.damages.len()), (0, 3));
    assert_eq!(
        (bad_times.damages[2].reason, bad_times.damages[2].place),
        (BadRecord::BadTs, RecordPlace::Record(2))
    );
    let by_score = read(&file, &WantedColumns { ts: "score".to_owned(), ..columns.clone() });
    assert_eq!((by_score.rows.len(), by_score.damages.len()), (2, 1), "a time that is no number");
    let by_day = read(&file, &WantedColumns { ts: "day".to_owned(), ..columns });
    assert_eq!(by_day.rows[1].ts, Some(259_200.0));
    assert_eq!((by_day.damages.len(), by_day.damages[0].reason), (1, BadRecord::MissingText));
}

#[test]
fn a_double_is_an_id_if_it_is_one_whole_number() {
    let schema = "message m { optional double id; required float single; required binary text (UTF8); }";
    let ids = [1.0, -0.0, 1.5, 9_007_199_254_740_991.0, 9_007_199_254_740_992.0, -1.7e38, f64::NAN];
    let singles = [1.0, -0.0, 1.5, 16_777_215.0, 16_777_216.0, -1.7e38, f32::NAN, 0.0];
    let file = file(schema, Compression::UNCOMPRESSED, 1, |_, group| {
        put::<DoubleType>(group, &ids, Some(&[1, 1, 1, 1, 1, 1, 1, 0]), None);
        put::<FloatType>(group, &singles, None, None);
        put::<ByteArrayType>(group, &bytes(&["t"; 8]), None, None);
    });
    let found = read(&file, &columns("text", "id", &[]));
    assert_eq!(found.ids(), ["1", "0", "1.5", "9007199254740991", ""]);
    let bad: Vec<_> = found.damages.iter().map(|damage| (damage.reason, damage.place)).collect();
    assert_eq!(bad, [4, 5, 6].map(|row| (BadRecord::BadId, RecordPlace::Record(row))));
    let cause = found.damages[0].cause.as_deref().unwrap();
    assert!(cause.starts_with("the ids are DOUBLE, and 9007199254740992 stands for several"), "{cause}");
    let by_single = read(&file, &columns("text", "single", &[]));
    assert_eq!((by_single.ids(), by_single.damages.len()), (vec!["1", "0", "1.5", "16777215", "0"], 3));
    assert!(by_single.damages[0].cause.as_deref().unwrap().starts_with("the ids are FLOAT"));
}

/// A name is compared as a whole, with its points; an empty name of the operation is that of no column.
#[test]
fn names_with_points_and_the_operation() {
    let schema = "message m { required binary id (UTF8); required binary text. (UTF8); \
        required binary op (UTF8); required binary action (UTF8); }";
    let file = file(schema, Compression::UNCOMPRESSED, 1, |_, group| {
        for column in [["a", "b"], ["one", "two"], ["u/someone", "delete"], ["delete", "upsert"]] {
            put::<ByteArrayType>(group, &bytes(&column), None, None);
        }
    });
    let named = |op: &str| read(&file, &WantedColumns { op: op.to_owned(), ..columns("text.", "id", &[]) });
    assert_eq!(named("").texts(), ["one", "two"]);
    assert_eq!((&named("action").rows[0].text, named("action").rows.len()), (&RowText::Deleted, 2));
    assert_eq!(named("op").damages[0].reason, BadRecord::UnknownOp);
    let missing = named("absent").damages.remove(0);
    assert!(missing.ends && missing.lack().is_some_and(|lack| lack.contains("no column \"absent\"")));
}

#[test]
fn elements_of_lists_are_lines() {
    let schema = "message m {
        optional group messages (LIST) { repeated group list {
            optional group element { optional binary content (UTF8); } } }
    }";
    let mut expected = Vec::new();
    let file = file(schema, Compression::SNAPPY, 1, |_, group| {
        // Two elements; one and an absent one; an empty list; null; and many rows, so that lists cross pages.
        let (mut defs, mut reps) = (vec![4, 4, 4, 3, 1, 0], vec![0, 1, 0, 1, 0, 0]);
        let mut values = bytes(&["eins", "二", "three"]);
        for row in 0..1000 {
            for element in 0..=row % 3 {
                values.push(format!("{row} {element}").as_str().into());
                defs.push(4);
                reps.push(i16::from(element > 0));
            }
        }
        put::<ByteArrayType>(group, &values, Some(&defs), Some(&reps));
    });
    expected.extend(["eins\n二".to_owned(), "three".to_owned()]);
    expected.extend(
        (0..1000).map(|row| {
            (0..=row % 3).map(|element| format!("{row} {element}")).collect::<Vec<_>>().join("\n")
        }),
    );
    for path in ["messages.content", "messages.list.element.content"] {
        let found = read(&file, &columns(path, "id", &[]));
        let texts: Vec<_> = found
            .rows
            .iter()
            .map(|row| match &row.text {
                RowText::Is(text) => String::from_utf8(text.clone()).unwrap(),
                _ => String::new(),
            })
            .collect();
        assert_eq!(texts, expected, "{path}");
        let bad: Vec<_> = found.damages.iter().map(|damage| (damage.reason, damage.place)).collect();
        assert_eq!(bad, [2, 3].map(|row| (BadRecord::MissingText, RecordPlace::Record(row))), "{path}");
    }
}

/// Elements that are missing count, unlike in a text, and a list without elements is not null.
#[test]
fn lists_are_given_features() {
    let given = Given::Features { weighted: true };
    let wanted = |of| WantedColumns { given: Some(of), ..columns("f", "id", &[]) };
    let list = |element: &str| {
        format!("message m {{ optional group f (LIST) {{ repeated group list {{ {element}; }} }} }}")
    };
    let texts = |found: &ReadResult| -> Vec<String> {
        let text = |row: &FileRow| match &row.text {
            RowText::Is(text) => String::from_utf8(text.clone()).unwrap(),
            other => format!("{other:?}"),
        };
        found.rows.iter().map(text).collect()
    };
    let numbers =
        file(&list("optional int64 element (INTEGER(64, false))"), Compression::SNAPPY, 1, |_, group| {
            // Two; one that is missing, one; none; null; one, many times, so that lists are in several steps.
            let (mut defs, mut reps) = (vec![3, 3, 2, 3, 1, 0], vec![0, 1, 0, 1, 0, 0]);
            defs.extend([3; 600]);
            reps.extend([0; 600]);
            put::<Int64Type>(group, &[[7, -1, 5].as_slice(), &[9; 600]].concat(), Some(&defs), Some(&reps));
        });
    let of_numbers = read(&numbers, &wanted(given));
    let expected = ["[7,18446744073709551615]", "[]"].into_iter().chain(["[9]"; 600]);
    assert_eq!(texts(&of_numbers), expected.collect::<Vec<_>>());
    let reasons =
        |found: &ReadResult| -> Vec<_> { found.damages.iter().map(|damage| damage.reason).collect() };
    assert_eq!(reasons(&of_numbers), [BadRecord::BadFeatures, BadRecord::MissingText], "null is no text");
    let strings = file(&list("required binary element (UTF8)"), Compression::SNAPPY, 1, |_, group| {
        let values =
            [&b"a\"\n"[..], "\u{e44}".as_bytes(), b"\xff"].map(|value| ByteArray::from(value.to_vec()));
        put::<ByteArrayType>(group, &values, Some(&[2, 2, 1, 0, 2]), Some(&[0, 1, 0, 0, 0]));
    });
    let found = read(&strings, &wanted(given));
    assert_eq!(texts(&found), ["[\"a\\\"\\n\",\"\u{e44}\"]", "[]"]);
    assert_eq!(reasons(&found), [BadRecord::MissingText, BadRecord::BadFeatures]);
    let fixed =
        file("message m { required fixed_len_byte_array(8) f; }", Compression::SNAPPY, 1, |_, group| {
            let values = [*b"\xc3\xd1\0\0\0\0\0\x0f", *b"if x + y"].map(|value| value.to_vec().into());
            put::<FixedLenByteArrayType>(group, &values, None, None);
        });
    let bits = read(&fixed, &wanted(Given::Fingerprint(64)));
    assert_eq!(texts(&bits), ["c3d100000000000f", "69662078202b2079"]);
    let words =
        file("message m { required int64 f (INTEGER(64, false)); }", Compression::SNAPPY, 1, |_, group| {
            put::<Int64Type>(group, &[-1, 5], None, None);
        });
    assert_eq!(texts(&read(&words, &wanted(Given::Fingerprint(64)))), ["[18446744073709551615]", "[5]"]);
    let floats = file(&list("optional double element"), Compression::SNAPPY, 1, |_, group| {
        put::<DoubleType>(group, &[1.0, f64::NAN], Some(&[3, 3]), Some(&[0, 0]));
    });
    assert_eq!(reasons(&read(&floats, &wanted(given))), [BadRecord::BadFeatures; 2]);
    let nested = "message m { repeated group f { repeated int64 x; } }";
    let nested = file(nested, Compression::SNAPPY, 1, |_, group| {
        put::<Int64Type>(group, &[1], Some(&[2]), Some(&[0]));
    });
    let deep = WantedColumns { text: "f.x".to_owned(), ..wanted(given) };
    let damage = open(&nested, &deep).err().unwrap();
    assert!(damage.reason == BadRecord::BadFeatures && damage.cause.unwrap().contains("lists of lists"));
}

/// A column of a type that is no fingerprint is named with its type, and with those that are; its values are
/// kept as they were read.
#[test]
fn types_that_are_no_features_are_named() {
    let wanted = |given| WantedColumns { given: Some(given), ..columns("f", "id", &[]) };
    let fixed =
        file("message m { required fixed_len_byte_array(16) f; }", Compression::SNAPPY, 1, |_, group| {
            let values = [*b"c3d1e0f07f3f1f0f", [0xff; 16]].map(|value| value.to_vec().into());
            put::<FixedLenByteArrayType>(group, &values, None, None);
        });
    let signed = file("message m { required int64 f; }", Compression::SNAPPY, 1, |_, group| {
        put::<Int64Type>(group, &[5, -5], None, None);
    });
    let bits = Given::Fingerprint(64);
    let of_bits = "of 64 bits (sketch.size) FIXED_LEN_BYTE_ARRAY(8), unsigned INT64, or text of 16 \
                   hexadecimal digits";
    let of_two = "of 128 bits (sketch.size) FIXED_LEN_BYTE_ARRAY(16), a list of 2 unsigned INT64, or text of \
                  32 hexadecimal digits";
    let of_features = "a list of strings or of unsigned whole numbers, or text";
    for (file, given, rows, kind, expected) in [
        (&fixed, bits, 1, "FIXED_LEN_BYTE_ARRAY(16)", of_bits),
        (&signed, bits, 1, "INT64", of_bits),
        (&signed, Given::Fingerprint(128), 0, "INT64", of_two),
        (&signed, Given::Features { weighted: false }, 1, "INT64", of_features),
    ] {
        let found = read(file, &wanted(given));
        assert_eq!(found.rows.len(), rows, "{given:?}");
        let cause = format!("the column \"f\" is {kind}; cast it to what is expected: {expected}");
        let last = found.damages.last().unwrap();
        assert_eq!(
            (last.reason, last.cause.as_deref()),
            (BadRecord::BadFeatures, Some(&*cause)),
            "{given:?}"
        );
        assert!(file == &fixed || String::from_utf8_lossy(&last.head).contains("\"text\":\"[-5]\""));
    }
}

#[test]
fn fixed_bytes_are_ids() {
    for (kind, expected) in [
        ("fixed_len_byte_array(16) id (UUID)", "fffefdfc-0001-0203-0405-060708090a0b"),
        ("fixed_len_byte_array(16) id", "fffefdfc000102030405060708090a0b"),
    ] {
        let schema = format!("message m {{ required {kind}; required binary text (UTF8); }}");
        let file = file(&schema, Compression::SNAPPY, 1, |_, group| {
            let raw = [&[0xff, 0xfe, 0xfd, 0xfc][..], &(0..12).collect::<Vec<u8>>()].concat();
            put::<FixedLenByteArrayType>(group, &[ByteArray::from(raw).into()], None, None);
            put::<ByteArrayType>(group, &bytes(&["a text"]), None, None);
        });
        assert_eq!(read(&file, &columns("text", "id", &[])).ids(), [expected]);
    }
}

/// A bad row is kept as a line of JSON with the values that are known.
#[test]
fn bad_rows_are_kept_as_json() {
    let schema = "message m {
        optional binary id (UTF8); optional binary op (UTF8); optional binary ts (UTF8); optional binary \
     text (UTF8);
    }";
    let rows = [
        [Some("a"), None, Some("x"), Some("文, \"quoted\"\n")],
        [Some("b"), Some("insert"), None, Some("t")],
        [None, Some("delete"), None, None],
        [Some("d"), None, Some("5"), None],
        [Some(""), None, None, Some("t")],
        [Some("f"), None, Some("1714979289000"), Some("t")],
    ];
    let file = file(schema, Compression::SNAPPY, 1, |_, group| {
        for column in 0..4 {
            let cells: Vec<_> = rows.iter().map(|row| row[column]).collect();
            let defs: Vec<_> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
            let values: Vec<_> = cells.into_iter().flatten().collect();
            put::<ByteArrayType>(group, &bytes(&values), Some(&defs), None);
        }
    });
    let found = read(&file, &columns("text", "id", &[]));
    let kept: Vec<_> =
        found.damages.iter().map(|damage| std::str::from_utf8(&damage.head).unwrap().to_owned()).collect();
    let expected = [
        concat!(
            r#"{"row":0,"id":"a","ts":"x","text":"文, \"quoted\"\n","reason":"bad_ts","#,
            r#""cause":"found \"x\", which is no date of ISO 8601 either"}"#
        ),
        r#"{"row":1,"id":"b","op":"insert","text":"t","reason":"unknown_op","cause":"found \"insert\""}"#,
        r#"{"row":2,"op":"delete","reason":"missing_id"}"#,
        r#"{"row":3,"id":"d","ts":"5","reason":"missing_text"}"#,
        r#"{"row":4,"id":"","text":"t","reason":"bad_id","cause":"found \"\""}"#,
        concat!(
            r#"{"row":5,"id":"f","ts":"1714979289000","text":"t","reason":"bad_ts","#,
            r#""cause":"found 1714979289000"}"#
        ),
    ];
    assert_eq!((kept, found.rows.len()), (expected.map(str::to_owned).to_vec(), 0));
    let no_file = open(b"PAR1", &columns("text", "id", &[])).unwrap_err();
    assert!(no_file.head.starts_with(b"{\"reason\":\"unreadable\",\"cause\":\""), "{no_file:?}");
}

#[test]
fn a_list_may_be_named_as_its_insides_are() {
    let schema = "message m { optional group list (LIST) { repeated group list { optional binary element \
     (UTF8); } } }";
    let file = file(schema, Compression::SNAPPY, 1, |_, group| {
        put::<ByteArrayType>(group, &bytes(&["a", "b"]), Some(&[3, 3]), Some(&[0, 1]));
    });
    for path in ["list", "list.element", "list.list.element"] {
        assert_eq!(read(&file, &columns(path, "id", &[])).texts(), ["a\nb"], "{path}");
    }
    for path in ["element", "list.x", "list.list.list.element"] {
        assert!(open(&file, &columns(path, "id", &[])).is_err(), "{path}");
    }
}

#[test]
fn a_file_without_texts_is_one_error() {
    let file = documents(&texts(5, 1), Compression::SNAPPY);
    let damage = open(&file, &columns("body", "id", &[])).unwrap_err();
    assert_eq!(damage.cause.as_deref(), Some("no column \"body\" among \"id\", \"text\""));
    assert!(damage.ends && damage.reason == BadRecord::MissingText);
    for bytes in [&b""[..], b"PAR1", b"no parquet at all", b"PAR1\xff\xff\xff\x7fPAR1", b"PARE\x04\0\0\0PARE"]
    {
        let no_file = open(bytes, &columns("text", "id", &[])).unwrap_err();
        assert!(no_file.reason == BadRecord::Unreadable && no_file.cause.is_some(), "{no_file:?}");
    }
}

/// As `cat` makes them: readers of the format would see the last one, or the first one's rows as its.
#[test]
fn files_end_to_end_are_refused() {
    for (first, second) in [(5, 5), (5, 90), (90, 5), (5, 0)] {
        let file = [first, second].map(|count| documents(&texts(count, 1), Compression::SNAPPY)).concat();
        let damage = open(&file, &columns("text", "id", &[])).unwrap_err();
        assert!(damage.cause.unwrap().contains("several Parquet files end to end"), "{first}, {second}");
    }
}

/// A thousand damaged files of each codec: no panic escapes, rows outside the damage are read, and a file
/// that lacks rows reports that.
#[test]
fn damage_loses_only_what_it_touches() {
    let texts = texts(100, 3);
    for codec in CODECS.into_iter().chain([Compression::ZSTD(ZstdLevel::default())]) {
        let file = documents(&texts, codec);
        let columns = columns("text", "id", &[]);
        let (mut lost, mut groups_lost) = (0, 0);
        for (harm, at, bytes) in harmed(&file, 1000, 13) {
            let found = read(&bytes, &columns);
            let what = || format!("{codec:?}: {harm:?} at {at}: {:?}", found.damages);
            let is_known = |text: &[u8]| texts.iter().any(|one| one.as_bytes() == text);
            let text = |row: &&FileRow| matches!(&row.text, RowText::Is(text) if is_known(text));
            let good = found.rows.iter().filter(text).count();
            assert!(found.rows.len() <= texts.len(), "{}", what());
            if harm == Harm::Truncated {
                assert!(found.rows.is_empty() && found.damages.len() == 1, "{}", what());
            }
            if found.rows.len() < texts.len() {
                assert!(!found.damages.is_empty(), "{}", what());
            }
            // The footer is after the groups, so damage before it affects one or two groups.
            let whole = open(&bytes, &columns).map(|opened| opened.groups() == [20; 5]).unwrap_or(false);
            if whole && harm == Harm::Flipped && at < file.len() - 700 {
                assert!(good >= 80 - 1, "{good} good, {}", what());
                groups_lost += usize::from(good <= 80);
            }
            lost += texts.len() - good;
        }
        assert!(lost > 0 && (groups_lost > 0 || codec == Compression::UNCOMPRESSED), "{codec:?}");
    }
}
