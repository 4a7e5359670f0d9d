//! Valid files of every shape that a writer may choose, compared with the rows that were written.
//!
//! Row groups and pages of every size, dictionaries that a column leaves in its middle, both versions of
//! pages, all codecs, delta encodings, nested nulls, lists. Each file differs; `DUPFLOW_SEED` chooses other
//! ones, and `DUPFLOW_ROUNDS` how many. A failure names its round.

use std::sync::Arc;

use parquet::basic::{Compression, Encoding, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::super::super::rows::RowText;
use super::super::super::super::samples::{seed_and_rounds, texts};
use super::{bytes, columns, put, read};

/// A row as it is written: its text within two optional groups, and a list of further texts.
#[derive(Clone, Debug)]
struct Written {
    id: i64,
    /// At which level it is null, if it is: the outer group, the inner group, the text.
    text: Result<String, i16>,
    /// `None` for no list; elements may be null.
    list: Option<Vec<Option<String>>>,
}

fn properties(random: &mut ChaCha8Rng) -> WriterProperties {
    let codecs = [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::LZ4_RAW,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
    ];
    let versions = [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0];
    let encodings = [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY];
    let text = ColumnPath::from("a.b.text");
    WriterProperties::builder()
        .set_compression(codecs[random.random_range(0..codecs.len())])
        .set_writer_version(versions[random.random_range(0..2)])
        .set_data_page_size_limit(random.random_range(1..5_000))
        .set_data_page_row_count_limit(random.random_range(1..300))
        .set_write_batch_size(random.random_range(1..64))
        .set_dictionary_enabled(random.random_bool(0.5))
        .set_dictionary_page_size_limit(random.random_range(1..3_000))
        .set_column_encoding(text, encodings[random.random_range(0..encodings.len())])
        .build()
}

fn rows(random: &mut ChaCha8Rng, all: &[String]) -> Vec<Written> {
    let some = |rng: &mut ChaCha8Rng| match rng.random_range(0..8) {
        0 => String::new(),
        _ => all[rng.random_range(0..all.len())].clone(),
    };
    let nulls = [0.0, 0.1, 0.9][random.random_range(0..3)];
    let count = [0, 1, 2, random.random_range(3..600)][random.random_range(0..4)];
    let row = |id: i64, rng: &mut ChaCha8Rng| Written {
        id: if rng.random_bool(0.1) { i64::MAX - id } else { id },
        text: if rng.random_bool(nulls) { Err(rng.random_range(0..3)) } else { Ok(some(rng)) },
        list: (!rng.random_bool(nulls)).then(|| {
            let elements = rng.random_range(0..4);
            (0..elements).map(|_| (!rng.random_bool(nulls)).then(|| some(rng))).collect()
        }),
    };
    (0..count).map(|id| row(id, random)).collect()
}

fn file(random: &mut ChaCha8Rng, rows: &[Written]) -> Vec<u8> {
    let schema = "message m { required int64 id; optional group a { optional group b { optional binary text \
        (UTF8); } } optional group l (LIST) { repeated group list { optional binary element (UTF8); } } }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties(random))).unwrap();
    let mut rest = rows;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(random.random_range(1..=rest.len()));
        rest = after;
        let mut group = writer.next_row_group().unwrap();
        let ids: Vec<_> = part.iter().map(|row| row.id).collect();
        put::<Int64Type>(&mut group, &ids, None, None);
        let found: Vec<_> = part.iter().filter_map(|row| row.text.as_ref().ok()).collect();
        let levels = part.iter().map(|row| row.text.as_ref().map_or_else(|level| *level, |_| 3));
        put::<ByteArrayType>(&mut group, &bytes(&found), Some(&levels.collect::<Vec<_>>()), None);
        let (mut elements, mut defs, mut reps) = (Vec::new(), Vec::new(), Vec::new());
        for row in part {
            match row.list.as_deref() {
                None | Some([]) => {
                    defs.push(i16::from(row.list.is_some()));
                    reps.push(0);
                }
                Some(list) => {
                    for (nth, element) in list.iter().enumerate() {
                        defs.push(if element.is_some() { 3 } else { 2 });
                        reps.push(i16::from(nth > 0));
                        elements.extend(element.as_ref());
                    }
                }
            }
        }
        put::<ByteArrayType>(&mut group, &bytes(&elements), Some(&defs), Some(&reps));
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

#[test]
fn valid_files_give_the_rows_that_were_written() {
    let (seed, rounds) = seed_and_rounds(300);
    let all = texts(400, seed);
    for round in 0..rounds {
        let mut random = ChaCha8Rng::seed_from_u64(seed ^ round << 32);
        let rows = rows(&mut random, &all);
        let file = file(&mut random, &rows);
        let at = format!("DUPFLOW_SEED={seed}, round {round}");
        // A row without a text is a bad record; all others are documents, in order.
        let found = read(&file, &columns("a.b.text", "id", &["l"]));
        let written: Vec<_> = rows.iter().filter_map(|row| Some((row, row.text.as_ref().ok()?))).collect();
        assert_eq!(found.damages.len(), rows.len() - written.len(), "{at}");
        assert_eq!(found.rows.len(), written.len(), "{at}");
        for (row, (of, text)) in found.rows.iter().zip(written) {
            assert_eq!(row.id.as_deref(), Some(of.id.to_string().as_bytes()), "{at}");
            assert_eq!(row.text, RowText::Is(text.clone().into_bytes()), "{at}");
            let list = of.list.iter().flatten().flatten();
            let list: Vec<_> = list.map(String::as_str).collect();
            assert_eq!(row.fields[0], list.join("\n").into_bytes(), "{at}");
        }
    }
}
