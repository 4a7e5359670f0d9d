use parking_lot::Mutex;
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{DoubleType, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use parquet::file::metadata::KeyValue;
use parquet::schema::parser::parse_message_type;

use super::super::super::super::raw::RowMark;
use super::super::super::super::storage::InMemory;
use super::super::tests::{bytes, put};
use super::*;

const SCHEMA: &str = "message corpus {
    optional binary id (string);
    required group page {
        optional binary text (string);
        repeated group tags { optional int64 at; required binary name (enum); }
    }
    required boolean is_new;
    optional double score;
    required fixed_len_byte_array(3) code;
}";

/// Every third record.
struct Thirds;

impl RecordChoice for Thirds {
    fn is_chosen(&self, record: u64) -> bool {
        record.is_multiple_of(3)
    }

    fn mark(&self, record: u64) -> RowMark<'_> {
        let of = (record > 9).then_some("日");
        RowMark { cluster: Some("c").filter(|_| record > 3), is_kept: of.is_none(), of }
    }

    fn repeated(&self, record: u64) -> &[Range<u64>] {
        [&[][..], &[0..2, 5..6], &[0..20, 20..42]][usize::try_from(record / 3 % 3).unwrap()]
    }
}

/// No record.
struct Nothing;

impl RecordChoice for Nothing {
    fn is_chosen(&self, _: u64) -> bool {
        false
    }

    fn mark(&self, _: u64) -> RowMark<'_> {
        RowMark { cluster: None, is_kept: true, of: None }
    }

    fn repeated(&self, _: u64) -> &[Range<u64>] {
        &[]
    }
}

/// A row: its id and score, if it has them, and its tags, each with its number, if it has one.
type Row = (Option<String>, Vec<(Option<i64>, String)>, Option<f64>);

fn rows(count: usize) -> Vec<Row> {
    let tag =
        |n: usize, t: usize| (t.is_multiple_of(2).then_some(i64::try_from(n * t).unwrap()), format!("t{t}"));
    let row = |n: usize| {
        let id = (!n.is_multiple_of(5)).then(|| format!("id{n}"));
        (
            id,
            (0..n % 4).map(|t| tag(n, t)).collect(),
            n.is_multiple_of(2).then_some(f64::from(u32::try_from(n).unwrap()) / 8.0),
        )
    };
    (0..count).map(row).collect()
}

/// A file with these rows, in groups of this many.
fn written(all: &[Row], in_group: usize) -> Vec<u8> {
    let schema = Arc::new(parse_message_type(SCHEMA).unwrap());
    let known = vec![
        KeyValue::new("own".to_owned(), "x".to_owned()),
        KeyValue::new(ARROW_SCHEMA.to_owned(), "y".to_owned()),
    ];
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(known))
        .set_data_page_row_count_limit(50)
        .set_write_batch_size(10);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties.build())).unwrap();
    for rows in all.chunks(in_group) {
        let mut group = writer.next_row_group().unwrap();
        let present = |is: bool| i16::from(is);
        let ids: Vec<_> = rows.iter().filter_map(|row| row.0.as_ref()).collect();
        let has_ids: Vec<_> = rows.iter().map(|row| present(row.0.is_some())).collect();
        put::<ByteArrayType>(&mut group, &bytes(&ids), Some(&has_ids), None);
        let texts: Vec<_> = (0..rows.len()).map(|n| format!("text {n} ").repeat(n)).collect();
        put::<ByteArrayType>(&mut group, &bytes(&texts), Some(&vec![1; rows.len()]), None);
        let (mut at, mut names, mut at_defs, mut defs, mut reps) = (vec![], vec![], vec![], vec![], vec![]);
        for (_, tags, _) in rows {
            if tags.is_empty() {
                [&mut at_defs, &mut defs, &mut reps].into_iter().for_each(|levels| levels.push(0));
            }
            for (t, (number, name)) in tags.iter().enumerate() {
                at.extend(number);
                names.push(name);
                at_defs.push(1 + present(number.is_some()));
                defs.push(1);
                reps.push(present(t > 0));
            }
        }
        put::<Int64Type>(&mut group, &at, Some(&at_defs), Some(&reps));
        put::<ByteArrayType>(&mut group, &bytes(&names), Some(&defs), Some(&reps));
        put::<BoolType>(&mut group, &vec![true; rows.len()], None, None);
        let scores: Vec<_> = rows.iter().filter_map(|row| row.2).collect();
        let has_scores: Vec<_> = rows.iter().map(|row| present(row.2.is_some())).collect();
        put::<DoubleType>(&mut group, &scores, Some(&has_scores), None);
        let code = |n: usize| FixedLenByteArray::from(format!("{:03}", n % 1000).into_bytes());
        put::<FixedLenByteArrayType>(&mut group, &(0..rows.len()).map(code).collect::<Vec<_>>(), None, None);
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

#[derive(Clone, Default)]
struct SharedBytes(Arc<Mutex<Vec<u8>>>);

impl Write for SharedBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn open(file: Vec<u8>) -> ParquetCopy {
    ParquetCopy::open(Arc::new(InMemory::new(file.into()))).unwrap()
}

fn copied(file: &[u8], choice: &dyn RecordChoice, marks: Option<&MarkColumns>) -> Vec<u8> {
    copied_from(&open(file.to_vec()), choice, marks)
}

fn copied_from(from: &ParquetCopy, choice: &dyn RecordChoice, marks: Option<&MarkColumns>) -> Vec<u8> {
    let out = SharedBytes::default();
    let mut target = from.target(Box::new(out.clone()), marks).unwrap();
    let mut first = 0;
    for group in 0..from.groups() {
        from.copy(group, first, choice, &mut target).unwrap();
        first += from.group_rows(group);
    }
    target.finish().unwrap();
    out.0.lock().clone()
}

/// The rows as the crate prints them.
fn printed(file: Vec<u8>) -> Vec<String> {
    use parquet::file::reader::FileReader;
    use parquet::file::serialized_reader::SerializedFileReader;

    let reader = SerializedFileReader::new(::bytes::Bytes::from(file)).unwrap();
    reader.get_row_iter(None).unwrap().map(|row| row.unwrap().to_string()).collect()
}

#[test]
fn chosen_rows_keep_types_nesting_and_nulls() {
    for (count, in_group) in [(0, 1), (1, 1), (1000, 333), (1000, 1000), (7, 2)] {
        let file = written(&rows(count), in_group);
        let all = printed(file.clone());
        assert_eq!(all.len(), count);
        let expected: Vec<_> = all.into_iter().step_by(3).collect();
        let copy = copied(&file, &Thirds, None);
        assert!(printed(copy.clone()) == expected, "{count} rows, {in_group} in a group");
        let (from, to) = (open(file), open(copy));
        assert!(to.has_schema_of(&from) && to.rows() == expected.len() as u64);
        let codec =
            |of: &ParquetCopy| of.about.row_groups().first().map(|group| group.column(0).compression_codec());
        assert_eq!(codec(&to), codec(&from));
        let own = to.about.file_metadata().key_value_metadata().unwrap();
        assert_eq!(own.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), ["own", ARROW_SCHEMA]);
    }
}

#[test]
fn repeated_parts_of_texts_are_cut_out() {
    let file = written(&rows(7), 7);
    let cut = copied_from(&open(file.clone()).with_cuts("page.text").unwrap(), &Thirds, None);
    // The text of row n is "text n " n times, so that of row 0 is empty.
    let expected = [String::new(), "xt  text 3 text 3 ".to_owned(), String::new()];
    let whole = copied(&file, &Thirds, None);
    let texts = [0, 3, 6].map(|n| format!("text {n} ").repeat(n));
    let expected: Vec<_> = printed(whole)
        .into_iter()
        .zip(texts.iter().zip(&expected))
        .map(|(row, (from, to))| row.replace(&format!("text: {from:?}"), &format!("text: {to:?}")))
        .collect();
    assert_eq!(printed(cut), expected);
    let wrong = open(file.clone()).with_cuts("id").unwrap();
    let mut target = wrong.target(Box::new(SharedBytes::default()), None).unwrap();
    let wrong = wrong.copy(0, 0, &Thirds, &mut target);
    assert!(wrong.unwrap_err().to_string().contains("it has no such parts"), "\"id3\" has 3 bytes");
    for (path, said) in [
        ("text", "is missing"),
        ("page.tags.name", "holds lists of texts"),
        ("score", "no texts of any length"),
        ("code", "no texts of any length"),
    ] {
        let error = open(file.clone()).with_cuts(path).err().unwrap().to_string();
        assert!(error.contains(said), "{path}: {error}");
    }
}

#[test]
fn groups_without_a_chosen_row_are_left_out() {
    let file = written(&rows(10), 1);
    assert_eq!(open(copied(&file, &Thirds, None)).groups(), 4);
    let nothing = open(copied(&file, &Nothing, None));
    assert!(nothing.rows() == 0 && nothing.has_schema_of(&open(file)));
}

#[test]
fn marks_are_the_last_columns() {
    let file = written(&rows(13), 5);
    let copy = copied(&file, &Thirds, Some(&MarkColumns::new("m", false)));
    let rows = printed(copy.clone());
    assert!(rows[0].ends_with("m_cluster: null, m_kept: true, m_of: null}"), "{}", rows[0]);
    assert!(rows[3].ends_with("m_cluster: \"c\", m_kept: true, m_of: null}"), "{}", rows[3]);
    assert!(rows[4].ends_with("m_cluster: \"c\", m_kept: false, m_of: \"日\"}"), "{}", rows[4]);
    let own = open(copy);
    let own = own.about.file_metadata().key_value_metadata().unwrap();
    assert_eq!(own.iter().map(|entry| &*entry.key).collect::<Vec<_>>(), ["own"]);
    let of_parts = printed(copied(&file, &Thirds, Some(&MarkColumns::new("m", true))));
    let marks: Vec<_> = of_parts.iter().map(|row| row.split_once("m: ").unwrap().1).collect();
    assert_eq!(marks, ["[]}", "[[0, 2], [5, 6]]}", "[[0, 20], [20, 42]]}", "[]}", "[[0, 2], [5, 6]]}"]);
}

#[test]
fn a_group_that_ends_early_is_an_error() {
    let mut file = written(&rows(300), 300);
    // The stored bytes of the first column.
    file[4..40].fill(0);
    let (out, from) = (SharedBytes::default(), open(file));
    let mut target = from.target(Box::new(out), None).unwrap();
    assert!(from.copy(0, 0, &Thirds, &mut target).unwrap_err().to_string().starts_with("row group 0: "));
}
