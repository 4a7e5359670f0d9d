//! Files and streams of all types of columns, whole and damaged.

#![cfg(feature = "arrow")]

use std::io::Cursor;
use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, FixedSizeBinaryArray, Float64Array,
    Int64Array, LargeStringArray, NullArray, RecordBatch, RunArray, StringArray, StringViewArray,
    StructArray, TimestampMillisecondArray, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{DataType, Field};

use super::super::bad_record::BadRecord;
use super::super::samples::{ReadResult, columns, harmed, texts};
use super::super::storage::InMemory;
use super::magic::FILE;
use super::rows::{ArrowRows, Batches};

fn batch(of: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(of.into_iter().map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// The batches as a file or a stream.
fn written(batches: &[RecordBatch], is_file: bool, compression: Option<CompressionType>) -> Vec<u8> {
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batches[0].schema();
    let mut out = Vec::new();
    if is_file {
        let mut writer = FileWriter::try_new_with_options(&mut out, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    } else {
        let mut writer = StreamWriter::try_new_with_options(&mut out, &schema, options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.finish().unwrap();
    }
    out
}

fn read(bytes: &[u8], fields: &[&str]) -> ReadResult {
    let batches = if bytes.starts_with(FILE) {
        Batches::of_file(Arc::new(InMemory::new(bytes.to_vec().into())))
    } else {
        Batches::of_stream(Box::new(Cursor::new(bytes.to_vec())))
    };
    ReadResult::read_all(ArrowRows::new(batches, columns(fields)), 10_000)
}

fn documents(count: u32, seed: u32) -> RecordBatch {
    let texts = texts(count as usize, seed.into());
    batch(vec![
        ("id", Arc::new(Int64Array::from_iter_values((seed..seed + count).map(i64::from)))),
        ("text", Arc::new(StringArray::from_iter_values(texts))),
    ])
}

#[test]
fn rows_are_those_of_all_batches() {
    let batches = [documents(30, 7), documents(0, 1), documents(20, 1000)];
    let expected = [texts(30, 7), texts(20, 1000)].concat();
    for is_file in [true, false] {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let found = read(&written(&batches, is_file, compression), &[]);
            assert_eq!(found.texts(), expected);
            assert_eq!((found.ids()[0], found.ids()[49], found.damages.len()), ("7", "1019", 0));
        }
    }
}

#[test]
fn values_of_all_types_are_texts() {
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    words.extend([Some("a"), None, Some("b"), Some("a")]);
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("x"), None, Some("日本")]);
    lists.append_value([None::<&str>; 0]);
    lists.append_null();
    lists.append_value([Some("y")]);
    let runs: RunArray<Int32Type> = [Some("r"), Some("r"), None, Some("s")].into_iter().collect();
    let inner: ArrayRef = Arc::new(LargeStringArray::from(vec![Some("in"), Some("in"), None, Some("in")]));
    let within = StructArray::from(vec![(Arc::new(Field::new("deep", DataType::LargeUtf8, true)), inner)]);
    let doubles = Float64Array::from(vec![Some(1.5), None, Some(2.0), Some(1e300)]);
    let decimals = Decimal128Array::from(vec![Some(1250), None, Some(700), Some(-5)]);
    let bytes = FixedSizeBinaryArray::try_from_iter([[1_u8, 2], [3, 4], [5, 6], [7, 8]].iter()).unwrap();
    let times = TimestampMillisecondArray::from(vec![Some(1500), None, Some(2000), Some(-1)]);
    let all = batch(vec![
        ("id", Arc::new(UInt64Array::from(vec![u64::MAX, 1, 2, 3]))),
        ("text", Arc::new(StringViewArray::from(vec!["one", "two", "a text longer than twelve bytes", "3"]))),
        ("words", Arc::new(words.finish())),
        ("lists", Arc::new(lists.finish())),
        ("runs", Arc::new(runs)),
        ("within", Arc::new(within)),
        ("doubles", Arc::new(doubles)),
        ("decimals", Arc::new(decimals.with_precision_and_scale(10, 2).unwrap())),
        ("fixed", Arc::new(bytes)),
        ("bytes", Arc::new(BinaryArray::from_vec(vec![b"p", b"q", b"r", b"s"]))),
        ("flags", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("days", Arc::new(Date32Array::from(vec![1, 2, 3, 4]))),
        ("times", Arc::new(times)),
        ("none", Arc::new(NullArray::new(4))),
    ]);
    let names = ["words", "lists", "runs", "within.deep", "doubles", "decimals", "bytes", "flags", "days"];
    let names = [&names[..], &["times", "none", "lists.item", "missing"]].concat();
    let found = read(&written(&[all], true, None), &names);
    let fields = |row: usize| {
        let values = found.rows[row].fields.iter().map(|value| String::from_utf8(value.clone()).unwrap());
        values.collect::<Vec<_>>().join("|")
    };
    assert_eq!(found.ids()[0], "18446744073709551615");
    assert_eq!(found.texts()[2], "a text longer than twelve bytes");
    assert_eq!(fields(0), "a|x\n日本|r|in|1.5|12.5|p|true|86400|1.5||x\n日本|");
    assert_eq!(fields(1), "||r|in|||q|false|172800||||");
    assert_eq!(fields(2), "b||||2|7|r||259200|2|||");
    assert_eq!(fields(3).split('|').nth(5), Some("-0.05"));
}

#[test]
fn columns_that_are_missing_or_not_read_are_named() {
    let intervals: ArrayRef = Arc::new(arrow_array::DurationSecondArray::from(vec![1, 2]));
    for (name, what) in
        [("body", "no column \"text\" among \"body\""), ("text", "is Duration(s), which is not read")]
    {
        let found = read(&written(&[batch(vec![(name, Arc::clone(&intervals))])], true, None), &[]);
        let cause = found.damages[0].cause.clone().unwrap();
        assert!(cause.contains(what), "{cause}");
    }
}

/// A file that is cut anywhere says so; so does a stream that is not cut between two batches.
#[test]
fn a_cut_file_is_never_taken_for_a_whole_one() {
    let batches = [documents(3, 7), documents(3, 20)];
    for compression in [None, Some(CompressionType::ZSTD)] {
        let file = written(&batches, true, compression);
        for end in (0..file.len()).step_by(3) {
            let found = read(&[FILE, &file[FILE.len()..end.max(FILE.len())]].concat(), &[]);
            assert_eq!(found.damages.last().map(|damage| damage.ends), Some(true), "{end} of {}", file.len());
        }
        let stream = written(&batches, false, compression);
        let mut whole = 0;
        for end in 1..stream.len() - 8 {
            let found = read(&stream[..end], &[]);
            whole += usize::from(found.damages.is_empty());
        }
        assert!(whole <= 4, "{whole}: the ends of the schema and of two batches");
    }
}

#[test]
fn damaged_files_end_and_lose_nothing_in_silence() {
    for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
        for is_file in [true, false] {
            let file = written(&[documents(20, 7), documents(20, 50)], is_file, compression);
            for (harm, at, bytes) in harmed(&file, 300, 7) {
                let found = read(&bytes, &[]);
                let is_told = found.rows.len() == 40 || !found.damages.is_empty();
                let is_cut = !is_file && bytes.len() < file.len();
                assert!(is_told || is_cut, "{harm:?} at {at} of {}", file.len());
            }
        }
    }
}

/// What a compressed buffer states to be is not reserved before it is known to be possible.
#[test]
fn stated_lengths_are_bounded() {
    let file = written(&[documents(50, 7)], true, Some(CompressionType::ZSTD));
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let mut found = 0;
    for at in 8..file.len() - 4 {
        if file[at..at + 4] == magic {
            let mut bytes = file.clone();
            bytes[at - 8..at].copy_from_slice(&(1_i64 << 60).to_le_bytes());
            let damages = read(&bytes, &[]).damages;
            assert_eq!(damages[0].reason, BadRecord::Unreadable);
            assert!(damages[0].cause.as_ref().unwrap().contains("after decompression"));
            found += 1;
        }
    }
    assert!(found > 1, "there are compressed buffers");
}
