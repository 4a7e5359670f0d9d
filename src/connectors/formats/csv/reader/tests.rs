use std::io::{Cursor, Read};

use super::super::super::samples::{Harm, ReadResult, columns, harmed, texts};
use super::*;

fn csv(bytes: impl Into<Vec<u8>>) -> CsvReader {
    CsvReader::new(Box::new(Cursor::new(bytes.into())), &columns(&["meta.title", "absent"]), b',')
}

fn read(bytes: impl Into<Vec<u8>>) -> ReadResult {
    ReadResult::read_all(csv(bytes), 100_000)
}

/// A table, with every text quoted.
fn table(texts: &[String], delimiter: char, end: &str) -> String {
    let row = |(number, text): (usize, &String)| {
        format!("x{delimiter}{number}{delimiter}\"{}\"{end}", text.replace('"', "\"\""))
    };
    let rows: String = texts.iter().enumerate().map(row).collect();
    format!("a{delimiter}id{delimiter}text{end}{rows}")
}

#[test]
fn rows_are_documents() {
    let texts = texts(300, 5);
    for (delimiter, end) in [(',', "\n"), ('\t', "\r\n")] {
        let file = table(&texts, delimiter, end);
        for capacity in [1, 13, 1 << 16] {
            for bytes in [file.clone(), format!("\u{feff}{file}"), file.trim_end().to_owned()] {
                let bytes = std::io::BufReader::with_capacity(capacity, Cursor::new(bytes.into_bytes()));
                let csv = CsvReader::new(Box::new(bytes), &columns(&[]), u8::try_from(delimiter).unwrap());
                let found = ReadResult::read_all(csv, 1000);
                assert_eq!(found.texts(), texts, "{capacity} bytes at once");
                assert_eq!((found.ids()[299], found.damages.len()), ("299", 0));
            }
        }
    }
}

#[test]
fn cells_are_what_the_first_row_names() {
    let file = "meta.title,op,text,ts,id\n\
        Über uns,,\"a, \"\"b\"\"\nc\",1.5,7\n\
        ,delete,,2024-05-06T07:08:09Z,文\n\n\
        ,upsert,,,\n\
        ,insert,x,,8\n\
        ,,x,soon,9\n\
        too,short\n\
        ,,last,,10";
    let found = read(file);
    assert_eq!(found.rows.len(), 4, "{found:?}");
    let [first, second, third, last] = &found.rows[..] else { panic!() };
    assert_eq!(first.text, RowText::Is(b"a, \"b\"\nc".to_vec()));
    assert_eq!((first.id.as_deref(), first.ts), (Some(&b"7"[..]), Some(1.5)));
    assert_eq!(first.fields, ["Über uns".as_bytes(), b""]);
    assert_eq!((&second.text, second.ts), (&RowText::Deleted, Some(1_714_979_289.0)));
    assert_eq!((&third.text, third.id.as_deref(), third.ts), (&RowText::Is(Vec::new()), None, None));
    assert_eq!(last.text, RowText::Is(b"last".to_vec()));
    let bad: Vec<_> = found.damages.iter().map(|damage| (damage.reason, damage.place)).collect();
    let expected = [
        (BadRecord::UnknownOp, RecordPlace::Line(7)),
        (BadRecord::BadTs, RecordPlace::Line(8)),
        (BadRecord::Unreadable, RecordPlace::Line(9)),
    ];
    assert_eq!(bad, expected);
    assert_eq!(found.damages[2].head, b"too,short");
    let cause = found.damages[1].cause.as_deref();
    assert_eq!(cause, Some("found \"soon\", which is no date of ISO 8601 either"));
}

/// For all line ends, and for input in pieces of any size.
#[test]
fn lines_are_counted() {
    let lines = ["id,text,ts", "a,\"two", "lines\",1", "b,x,soon", "c,x,2", "d,x,soon", ""];
    for end in ["\n", "\r\n"] {
        for piece in [1, 2, 3, 1000] {
            let file = std::io::BufReader::with_capacity(piece, Cursor::new(lines.join(end)));
            let found = ReadResult::read_all(CsvReader::new(Box::new(file), &columns(&[]), b','), 10);
            let places: Vec<_> = found.damages.iter().map(|damage| damage.place).collect();
            assert_eq!(
                (found.rows.len(), places),
                (2, vec![RecordPlace::Line(4), RecordPlace::Line(6)]),
                "{end:?}, {piece}"
            );
        }
    }
}

/// A bad row is kept in the form in which a file has it: corrected, it can be read.
#[test]
fn a_bad_row_is_kept_as_a_row() {
    let cells = ["k1", "some \"text\", with\ttab,\nand line in c:\\n\\", "yesterday", ""];
    for (delimiter, escape) in [(b',', None), (b'\t', None), (b'\t', Some(b'\\'))] {
        let dialect = Dialect { escape, ..Dialect::from(delimiter) };
        let names = ["id", "text", "ts", "op"];
        let bad = |at: usize, cell: &'static str| {
            let mut row = cells.map(str::to_owned);
            row[2] = "7".to_owned();
            row[at] = cell.to_owned();
            row
        };
        let long = "x".repeat(1025);
        let long: &'static str = long.leak();
        let rows = [bad(2, "yesterday"), bad(2, "1714979289000"), bad(3, "insert"), bad(0, long)];
        let mut file = Vec::new();
        let without_id = ["", "", "", "delete"].map(str::to_owned);
        for row in [&names.map(str::to_owned)].into_iter().chain(&rows).chain([&without_id]) {
            dialect.push_row(row.iter().map(|cell| (cell.as_bytes(), false)), &mut file);
            file.push(b'\n');
        }
        let reader = CsvReader::new(Box::new(Cursor::new(file)), &columns(&[]), dialect);
        let found = ReadResult::read_all(reader, 10);
        let reasons: Vec<_> = found.damages.iter().map(|damage| damage.reason).collect();
        let expected = [
            BadRecord::BadTs,
            BadRecord::BadTs,
            BadRecord::UnknownOp,
            BadRecord::BadId,
            BadRecord::MissingId,
        ];
        assert_eq!((reasons, found.rows.len()), (expected.to_vec(), 0));
        for (damage, row) in found.damages.iter().zip(&rows) {
            let mut kept = csv::ReaderBuilder::new()
                .delimiter(delimiter)
                .escape(escape)
                .has_headers(false)
                .from_reader(&damage.head[..]);
            let kept: Vec<[String; 4]> = kept.deserialize().map(Result::unwrap).collect();
            assert_eq!(kept, std::slice::from_ref(row));
            let text = std::str::from_utf8(&damage.head).unwrap();
            let mended = text.replace("yesterday", "5").replace("1714979289000", "5").replace("insert", "");
            let header = names.join(str::from_utf8(&[delimiter]).unwrap());
            let mended = format!("{header}\n{}\n", mended.replace(long, "k1"));
            let again = CsvReader::new(Box::new(Cursor::new(mended.into_bytes())), &columns(&[]), dialect);
            let again = ReadResult::read_all(again, 10);
            assert_eq!((again.ids(), again.texts()), (vec!["k1"], vec![cells[1]]));
        }
    }
}

#[test]
fn a_table_without_texts_is_one_error() {
    let found = read("id,body,\"ti\"\"tle\"\n1,x,y\n2,x,y\n");
    let [damage] = &found.damages[..] else { panic!("{found:?}") };
    let cause = "no column \"text\" among \"id\", \"body\", \"ti\\\"tle\"";
    assert_eq!((damage.cause.as_deref(), damage.ends, damage.place), (Some(cause), true, RecordPlace::Whole));
    assert!(read("").rows.is_empty() && read("\n\n").damages.is_empty());
    assert!(read("id,text\n").rows.is_empty());
}

#[test]
fn an_open_quote_at_the_end_is_reported() {
    for (file, rows) in [
        ("id,text\n1,whole\n2,\"open", 1),
        ("id,text\n1,whole\n2,\"", 1),
        ("id,text\n1,\"open\n2,whole\n", 0),
        ("id,text\n1,whole\n2,\"open \"\"\"\"", 1),
    ] {
        let found = read(file);
        assert_eq!(found.rows.len(), rows, "{file:?}");
        let [damage] = &found.damages[..] else { panic!("{file:?}: {found:?}") };
        assert_eq!(damage.reason, BadRecord::Truncated, "{file:?}");
        // The part of the open field that was read is kept.
        let kept = String::from_utf8_lossy(&damage.head);
        assert!(kept.starts_with(if rows == 1 { "2" } else { "1,\"open\n2,whole\n\"" }), "{kept}");
    }
    for whole in ["id,text\n1,\"x\"", "id,text\n1,\"\"", "id,text\n1,\"x\"\n\n", "id,text\r\n1,"] {
        let found = read(whole);
        assert_eq!((found.rows.len(), found.damages.len()), (1, 0), "{whole:?}: {found:?}");
    }
}

#[test]
fn a_row_that_is_too_long_is_skipped() {
    let long = "x".repeat(MAX_RECORD_BYTES);
    let file = format!("id,text\n1,a\n2,{long}\n3,b\n4,\"{long}{long}\"\n5,c\n");
    let mut csv = csv(file);
    let mut row = FileRow::default();
    let mut ids = Vec::new();
    let mut bad = Vec::new();
    loop {
        match csv.next(&mut row) {
            Ok(NextRow::Row) => ids.extend(row.id.take()),
            Ok(_) => break,
            Err(damage) => {
                assert!((200..=300).contains(&damage.head.len()), "the beginning: {}", damage.head.len());
                bad.push((damage.reason, damage.place));
            }
        }
    }
    assert_eq!(ids, [b"1", b"3", b"5"]);
    assert_eq!(bad, [(BadRecord::TooLong, RecordPlace::Line(3)), (BadRecord::TooLong, RecordPlace::Line(5))]);
    assert!(csv.fields.len() <= MAX_RECORD_BYTES + 1);
    let wide = format!("id,text\n1,a\n{}\n2,b\n", ",".repeat(1 << 20));
    let found = read(wide);
    assert_eq!((found.rows.len(), found.damages[0].reason), (2, BadRecord::TooLong));
}

#[test]
fn a_read_error_ends_the_file() {
    struct BrokenFile;
    impl Read for BrokenFile {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the stream ends early"))
        }
    }
    let file = Cursor::new(b"id,text\n1,whole\n2,ha".to_vec()).chain(BrokenFile);
    let csv = CsvReader::new(Box::new(io::BufReader::new(file)), &columns(&[]), b',');
    let found = ReadResult::read_all(csv, 10);
    assert_eq!((found.rows.len(), found.damages.len()), (1, 1));
    assert!(found.damages[0].ends && found.damages[0].reason == BadRecord::Truncated);
}

/// A thousand damaged files: every row before the damage is read, and a flipped bit only costs rows that it
/// can affect.
#[test]
fn damage_loses_only_what_it_touches() {
    let texts = texts(60, 3);
    let file = table(&texts, ',', "\n").into_bytes();
    let mut reported = 0;
    for (harm, at, bytes) in harmed(&file, 1000, 11) {
        let found = read(bytes);
        let rows_before = found
            .rows
            .iter()
            .zip(&texts)
            .take_while(|(row, text)| matches!(&row.text, RowText::Is(one) if one == text.as_bytes()));
        let mut end = "a,id,text\n".len();
        let mut expected = 0;
        for (number, text) in texts.iter().enumerate() {
            end += format!("x,{number},\"\"\n").len() + text.replace('"', "\"\"").len();
            expected += usize::from(end < at);
        }
        if at > 10 {
            assert!(rows_before.count() >= expected, "{harm:?} at {at}: {found:?}");
        }
        assert!(found.rows.len() <= 2 * texts.len());
        reported += usize::from(harm == Harm::Truncated && !found.damages.is_empty());
    }
    // Nearly all of the file is inside quotes.
    assert!(reported > 300, "{reported} of 334");
}

/// In a table digits are seconds; in an archive, which has only dates, they are a year.
#[test]
fn digits_are_seconds_in_tables_and_a_year_in_archives() {
    const YEAR: Option<f64> = Some(1_704_067_200.0);
    for (time, in_table, in_archive) in [
        ("2024", Some(2024.0), YEAR),
        ("2024-01", YEAR, YEAR),
        ("2024-01-01", YEAR, YEAR),
        ("2024-01-01T01:00:00+01:00", YEAR, YEAR),
        ("1704067200", YEAR, None),
        ("20240101", Some(20_240_101.0), None),
        ("2024-13", None, None),
        ("soon", None, None),
    ] {
        assert_eq!((instant::of_text(time), instant::of_iso(time)), (in_table, in_archive), "{time:?}");
        let mut row = FileRow::default();
        let read = csv(format!("id,ts,text\na,{time},t\n")).next(&mut row);
        let is_bad = read.is_err_and(|damage| damage.reason == BadRecord::BadTs);
        assert_eq!((is_bad, row.ts), (in_table.is_none(), in_table), "{time:?}");
        let archive = format!(
            "WARC/1.1\r\nWARC-Type: conversion\r\nWARC-Date: {time}\r\nContent-Length: 1\r\n\r\nt\r\n\r\n"
        );
        let bytes = Box::new(Cursor::new(archive.into_bytes()));
        let mut rows = crate::formats::warc::Warc::new(bytes, &columns(&[]), crate::formats::WarcId::Record);
        assert_eq!((rows.next(&mut row), row.ts), (Ok(NextRow::Row), in_archive), "{time:?}");
    }
}

fn read_as(dialect: Dialect, bytes: &str) -> (Vec<String>, Vec<BadRecord>, Vec<String>) {
    for capacity in [1, 5, 1 << 16] {
        let bytes = std::io::BufReader::with_capacity(capacity, Cursor::new(bytes.as_bytes().to_vec()));
        let mut csv = CsvReader::new(Box::new(bytes), &columns(&[]), dialect);
        let (mut row, mut texts, mut bad) = (FileRow::default(), Vec::new(), Vec::new());
        loop {
            match csv.next(&mut row) {
                Ok(NextRow::End) => break,
                Ok(_) => match &row.text {
                    RowText::Is(text) => texts.push(String::from_utf8(text.clone()).unwrap()),
                    other => panic!("{other:?}"),
                },
                Err(damage) => bad.push(damage.reason),
            }
        }
        if capacity > 5 {
            return (texts, bad, csv.notes());
        }
    }
    unreachable!("the last capacity returns")
}

const TAB: u8 = b'\t';
const NAMED: Dialect = Dialect { delimiter: TAB, quote: Some(b'"'), escape: None, is_examined: false };
const LINES: Dialect = Dialect { delimiter: TAB, quote: None, escape: None, is_examined: false };
const ESCAPED: Dialect = Dialect { escape: Some(b'\\'), ..LINES };

/// The merged rows are one bad record, and the note says how many there are.
#[test]
fn an_open_quote_that_swallows_rows_is_noticed() {
    let table = "id\ttext\n1\t\"Hello\n2\tsecond\n3\ta \"quoted\" word\n4\tfourth\n";
    let (texts, bad, notes) = read_as(TAB.into(), table);
    assert_eq!((texts, bad), (vec!["fourth".to_owned()], vec![BadRecord::OpenQuote]));
    let [note] = &notes[..] else { panic!("{notes:?}") };
    assert!(
        note.starts_with("2 rows are inside other rows, behind an open quote, the first in line 2: "),
        "{note}"
    );
    let whole = |all: &[&str]| (all.iter().map(|&text| text.into()).collect(), Vec::new(), Vec::new());
    let as_lines = ["\"Hello", "second", "a \"quoted\" word", "fourth"];
    assert_eq!(read_as(LINES, table), whole(&as_lines));
    let as_named = ["Hello\n2\tsecond\n3\ta quoted\" word", "fourth"];
    assert_eq!(read_as(NAMED, table), whole(&as_named), "by the word of the user");
}

/// A separator that texts have too: by a whole row, without blanks behind its separators.
#[test]
fn an_open_quote_is_noticed_with_every_separator() {
    for delimiter in [b',', b';', b'|', b'\t'] {
        let read_with = |lines: &[&str]| {
            let table = lines.join("\n").replace(';', &char::from(delimiter).to_string());
            let (texts, bad, _) = read_as(delimiter.into(), &table);
            (texts.len(), bad)
        };
        let swallowed =
            ["id;text;lang", "1;\"Hello;en", "2;second one;en", "3;it ends\";en", "4;fourth;de", ""];
        assert_eq!(read_with(&swallowed), (1, vec![BadRecord::OpenQuote]), "{delimiter}");
        let code = ["id;text;lang", "1;\"for (;\n n > 2; n--) {};\n\";c", "2;last;d", ""];
        assert_eq!(read_with(&code), (2, Vec::new()), "{delimiter}");
        let list = ["id;text", "1;\"Apples", "Milk; 2", "Eggs; 3\"", "2;last", ""];
        let expected = if delimiter == b'\t' { (1, vec![BadRecord::OpenQuote]) } else { (2, Vec::new()) };
        assert_eq!(read_with(&list), expected, "{delimiter}");
        // Two columns are what a list of pairs looks like.
        let prices =
            ["id;text", "1;\"today", "apples;12", "pears;15\"", "2;\"today", "apples;12", "pears;15\"", ""];
        let of_prices = if delimiter == b'\t' { (0, vec![BadRecord::OpenQuote; 2]) } else { (2, Vec::new()) };
        assert_eq!(read_with(&prices), of_prices, "{delimiter}");
    }
}

/// It loses only the quotes.
#[test]
fn text_behind_a_closing_quote_is_a_note() {
    let (texts, bad, notes) = read_as(TAB.into(), "id\ttext\na\t\"x\" y\nb\tz\n");
    assert_eq!((texts, bad.len(), notes.len()), (vec!["x y".to_owned(), "z".to_owned()], 0, 1));
    assert!(notes[0].starts_with("1 rows have text behind a closing quote"), "{notes:?}");
}

/// Lines, separators that no row has, and a comma in prose.
#[test]
fn tables_that_are_valid_in_any_reading_have_no_note() {
    for (dialect, valid) in [
        (TAB.into(), "id\ttext\n1\t\"a\n\tb\tc\n\"\"d\"\"\"\n"),
        (b','.into(), "id,text\n1,\"Hello\nDear all, thanks\"\n"),
        (b','.into(), "id,text\n\"1\" ,\"x\ny\" \n"),
        (TAB.into(), "\"id\"\ttext\n1\t\"Hello\n2\tsecond\"\n"),
    ] {
        let (texts, bad, notes) = read_as(dialect, valid);
        assert_eq!((texts.len(), bad.len(), notes.len()), (1, 0, 0), "{valid:?}: {notes:?}");
    }
}

/// A row with what only quotes allow shows that a later cell is in quotes, whatever it holds.
#[test]
fn a_table_shows_that_it_is_written_with_quotes() {
    for (before, bad) in [("a\tb", 0), ("a \"\"b\"\"", 0), ("a", 1)] {
        let table = format!("id\ttext\n0\t\"{before}\"\n1\t\"Hello\n2\tsecond\"\n");
        let (texts, found, _) = read_as(TAB.into(), &table);
        assert_eq!((texts.len(), found), (2 - bad, vec![BadRecord::OpenQuote; bad]), "{before}");
    }
}

#[test]
fn null_is_no_text() {
    let table = "\"id\",\"text\"\n1,\\N\n2,NULL\n3,\"\\N\"\n4,\"NULL\"\n\\N,null\n\"6\",\\N\n7,\n";
    let (texts, bad, notes) = read_as(b','.into(), table);
    assert_eq!(texts, ["\\N", "NULL", "null", ""]);
    assert_eq!(bad, [BadRecord::MissingText; 3]);
    assert!(notes[0].starts_with("4 cells are \\N or NULL without quotes"), "{notes:?}");
}

#[test]
fn null_is_absent_in_every_column() {
    let found = read("id,op,ts,text,meta.title\n\\N,NULL,\\N,t,\\N\nb,delete,,\\N,x\n");
    let [first, second] = &found.rows[..] else { panic!("{found:?}") };
    assert_eq!((&first.id, first.ts, &first.fields[0]), (&None, None, &Vec::new()));
    assert_eq!(second.text, RowText::Deleted);
    let (texts, bad, _) = read_as(ESCAPED, "id\ttext\n1\t\\N\n2\t\\\\N\n3\tNULL\n4\t\\NULL\n");
    assert_eq!((texts, bad.len()), (vec!["\\N".to_owned(), "NULL".to_owned()], 2));
}

/// A dead letter that is read again has the cells of its row: a NULL is no text there, and a text none.
#[test]
fn letters_have_the_nulls_of_their_rows() {
    let letter = |dialect: Dialect, table: &str| {
        let read = ReadResult::read_all(
            CsvReader::new(Box::new(Cursor::new(table.to_owned())), &columns(&[]), dialect),
            9,
        );
        String::from_utf8(read.damages[0].head.to_vec()).unwrap()
    };
    for row in ["1,\\N,x", "NULL,\"NULL\",x", "\"\\N\",NULL,x"] {
        assert_eq!(letter(b','.into(), &format!("id,text\n{row}\n")), row);
    }
    assert_eq!(letter(ESCAPED, "id\ttext\n1\t\\N\tx\n"), "1\t\\N\tx");
}

/// As ClickHouse, PostgreSQL and MySQL write them; the last one escapes a tab and a line end as they are.
#[test]
fn lines_without_quotes_have_escapes_on_request() {
    let table =
        "\u{feff}id\ttext\r\n1\ta\\tb\\nc\\\\d\\'e\r\n\r\n2\tx\\\ty\\\nz\n3\t\"open\n4\tshort\tlong\n5\t\\\\";
    let (texts, bad, _) = read_as(ESCAPED, table);
    assert_eq!(texts, ["a\tb\nc\\d'e", "x\ty\nz", "\"open", "\\"]);
    assert_eq!(bad, [BadRecord::Unreadable]);
    let mut lines = CsvReader::new(Box::new(table.as_bytes()), &columns(&[]), ESCAPED);
    let mut row = FileRow::default();
    let damage = std::iter::from_fn(|| Some(lines.next(&mut row))).find_map(Result::err).unwrap();
    assert_eq!((damage.place, &*damage.head), (RecordPlace::Line(7), &b"4\tshort\tlong"[..]));
}

/// Neither at the end of the file nor at the greatest length of a row does reading wait for the rest.
#[test]
fn an_escaped_line_end_may_be_the_last_one() {
    let table = "id\ttext\n1\tabc\n2\tends\\\n";
    let (texts, bad, _) = read_as(ESCAPED, table);
    assert_eq!((texts, bad.len()), (vec!["abc".to_owned(), "ends\\".to_owned()], 0));
    // The bytes that are read of it, 3 more than a row may have, end behind that line end.
    let long = "x".repeat(MAX_RECORD_BYTES + 3 - "1\t\\\n".len());
    let long_row = format!("id\ttext\n1\t{long}\\\nmore\n2\ta\n");
    let found =
        ReadResult::read_all(CsvReader::new(Box::new(Cursor::new(long_row)), &columns(&[]), ESCAPED), 10);
    assert_eq!((found.texts(), found.damages[0].reason), (vec!["a"], BadRecord::TooLong));
}

#[test]
fn lines_without_quotes_end_with_a_line_feed_and_have_a_maximum() {
    let (read, ..) = read_as(LINES, "id\ttext\n1\ta\\tb\rc\n");
    assert_eq!(read, ["a\\tb\rc"], "a carriage return alone ends no line");
    let long = "x".repeat(MAX_RECORD_BYTES);
    for end in ["\n", "\r\n"] {
        let (texts, bad, _) = read_as(LINES, &format!("id\ttext{end}1\t{long}{end}2\ta{end}"));
        assert_eq!((texts, bad), (vec!["a".to_owned()], vec![BadRecord::TooLong]));
    }
}

/// pandas does not quote it.
#[test]
fn a_carriage_return_alone_is_named_with_its_line() {
    let found = read("id,text\n1,plain\n2,one\rtwo\n3,\"four\rfive\"\n");
    assert_eq!(found.texts(), ["plain", "one", "four\rfive"]);
    let [damage] = &found.damages[..] else { panic!("{found:?}") };
    assert_eq!(damage.place, RecordPlace::Line(3));
    assert!(damage.cause.as_deref().unwrap().contains("a carriage return alone ends a row"), "{damage:?}");
    let (.., all) = read_as(b','.into(), "id,text\n1,plain\n2,one\rtwo\n");
    assert!(all[0].starts_with("1 rows end with a carriage return alone, the first in line 3"), "{all:?}");
    for same in ["id,text\r1,a\r2,b\r", "id,text\r\n1,a\r\n2,b\r\n", "id,text\r\n1,a\r\n2,b\r"] {
        let (texts, bad, notes) = read_as(b','.into(), same);
        assert_eq!((texts.len(), bad.len(), notes.len()), (2, 0, 0), "{same:?}: {notes:?}");
    }
}
