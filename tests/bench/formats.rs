//! Reading each format to events, compared with its limit: decompression alone, or the parser crate alone.
//!
//! ```text
//! cargo bench --bench formats -- [FILE.jsonl]
//! ```
//!
//! Reads the texts of the file, by default 20,000 generated ones. MB/s are millions of bytes of text (without
//! the format's own bytes) for each second of CPU of the process, user and system (Linux). The files are in
//! the system's cache.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench prints, and panics where it fails")]
#![expect(clippy::cast_precision_loss, reason = "speeds")]

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;

use dupflow::connectors::formats::InputLayout;
use dupflow::connectors::inputs::{Input, for_each_event};
use dupflow::connectors::intake::BadRecords;
use dupflow::core::text::TextColumns;
use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The least number of bytes of text that each row of the table is measured with.
const ENOUGH: usize = 500 << 20;

/// Texts of one to a thousand words out of 20,000, in some scripts.
fn made() -> Vec<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let syllables = ["the", "re", "in", "com", "по", "ка", "за", "文", "件", "命", "เอก", "สาร", "مست", "ند"];
    let mut word = || {
        let count = rng.random_range(1..4);
        (0..count).map(|_| syllables[rng.random_range(0..syllables.len())]).collect::<String>()
    };
    let words: Vec<String> = (0..20_000).map(|_| word()).collect();
    let mut text = || {
        let count = rng.random_range(1..1000);
        let mut text = String::new();
        for _ in 0..count {
            // The first words are the frequent ones.
            let rank = rng.random_range(0..words.len()).min(rng.random_range(0..words.len()));
            text.push_str(&words[rank]);
            text.push(' ');
        }
        text
    };
    (0..20_000).map(|_| text()).collect()
}

fn texts() -> Vec<String> {
    let Some(path) = std::env::args().skip(1).find(|argument| !argument.starts_with('-')) else {
        return made();
    };
    let lines = fs::read_to_string(path).unwrap();
    let text = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["text"].as_str().map(str::to_owned)
    };
    lines.lines().filter_map(text).collect()
}

/// CPU seconds of the process so far.
fn cpu() -> f64 {
    let told = fs::read_to_string("/proc/self/stat").unwrap();
    // User and system time are the 12th and 13th field after the name, which is in brackets; in hundredths.
    let fields: Vec<_> = told.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// Bytes of text for each second of CPU; each call of the function reads `bytes` bytes.
fn speed(text: usize, mut run: impl FnMut()) -> f64 {
    let times = ENOUGH.div_ceil(text);
    run();
    let begin = cpu();
    (0..times).for_each(|_| run());
    (text * times) as f64 / (cpu() - begin)
}

/// One row of the table: a file, and the limit that it is compared with.
fn tell(path: &Path, text: usize, limit: &str, alone: impl FnMut()) {
    let read = || {
        let inputs = Input::resolve([path], InputLayout::default()).unwrap();
        let (mut found, bad) = (0, BadRecords::default());
        for_each_event(inputs, &TextColumns::default(), &bad, |_, event| {
            found += event.text.map_or(0, |own| own.len());
        })
        .unwrap();
        assert!(found >= text && bad.counts().is_empty(), "{found} of {text}: {:?}", bad.counts());
    };
    let (ours, limit_speed) = (speed(text, read), speed(text, alone));
    println!(
        "{:<18} {:>6.1} MB {:>7.0} MB/s   {limit:<16} {:>7.0} MB/s {:>4.0} %",
        path.file_name().unwrap().to_string_lossy(),
        path.metadata().unwrap().len() as f64 / 1e6,
        ours / 1e6,
        limit_speed / 1e6,
        100.0 * ours / limit_speed
    );
}

fn drain(mut reader: impl Read) {
    let mut buffer = vec![0; 128 << 10];
    while reader.read(&mut buffer).unwrap() > 0 {
        black_box(&buffer);
    }
}

/// A record of a web archive.
fn record(kind: &str, content: &str, id: usize, block: &str) -> Vec<u8> {
    let length = block.len();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{id}>\r\n\
         WARC-Date: 2024-05-06T07:08:09Z\r\nContent-Type: {content}\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.as_bytes(), block.as_bytes(), b"\r\n\r\n"].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut member = GzEncoder::new(Vec::new(), Compression::default());
    member.write_all(bytes).unwrap();
    member.finish().unwrap()
}

fn archives(texts: &[String], bytes: usize, folder: &Path) {
    let wet = |(id, text): (usize, &String)| record("conversion", "text/plain", id, text);
    let page = |(id, text): (usize, &String)| {
        let page = text.replace('&', "&amp;").replace('<', "&lt;");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<!doctype html><p>";
        record("response", "application/http; msgtype=response", id, &format!("{head}{page}"))
    };
    let records =
        |make: &dyn Fn((usize, &String)) -> Vec<u8>| texts.iter().enumerate().map(make).collect::<Vec<_>>();
    let (texts_alone, pages) = (records(&wet), records(&page));
    let write = |name: &str, file: &[u8]| {
        let path = folder.join(name);
        fs::write(&path, file).unwrap();
        path
    };
    let plain = texts_alone.concat();
    tell(&write("plain.wet", &plain), bytes, "a copy", || drop(black_box(plain.clone())));
    for (name, of) in [("a.wet.gz", &texts_alone), ("a.warc.gz", &pages)] {
        let file: Vec<u8> = of.iter().flat_map(|one| gzip(one)).collect();
        tell(&write(name, &file), bytes, "gunzip", || drain(MultiGzDecoder::new(&file[..])));
    }
    let file: Vec<u8> =
        texts_alone.iter().flat_map(|record| zstd::encode_all(&record[..], 3).unwrap()).collect();
    let alone = || drain(zstd::Decoder::with_buffer(&file[..]).unwrap());
    tell(&write("a.wet.zst", &file), bytes, "unzstd", alone);
}

fn tables(texts: &[String], bytes: usize, folder: &Path) {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["id", "text"]).unwrap();
    let mut lines = Vec::new();
    for (id, text) in texts.iter().enumerate() {
        table.write_record([&id.to_string(), text]).unwrap();
        writeln!(lines, "{}", serde_json::json!({ "id": id.to_string(), "text": text })).unwrap();
    }
    let file = table.into_inner().unwrap();
    fs::write(folder.join("a.csv"), &file).unwrap();
    tell(&folder.join("a.csv"), bytes, "csv", || {
        let mut reader = csv::Reader::from_reader(&file[..]);
        let mut row = csv::ByteRecord::new();
        while reader.read_byte_record(&mut row).unwrap() {
            black_box(&row);
        }
    });
    fs::write(folder.join("a.jsonl"), &lines).unwrap();
    tell(&folder.join("a.jsonl"), bytes, "serde_json", || {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            black_box(serde_json::from_slice::<serde_json::Value>(line).unwrap());
        }
    });
}

#[cfg(feature = "parquet")]
fn columns(texts: &[String], bytes: usize, folder: &Path) {
    use std::sync::Arc;

    use bytes::Bytes;
    use parquet::basic::{Compression as Codec, ZstdLevel};
    use parquet::column::reader::ColumnReader;
    use parquet::data_type::{ByteArray, ByteArrayType};
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let schema = "message m { required binary id (UTF8); required binary text (UTF8); }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let codecs = [
        ("none", Codec::UNCOMPRESSED),
        ("snappy", Codec::SNAPPY),
        ("zstd", Codec::ZSTD(ZstdLevel::default())),
    ];
    for (name, codec) in codecs {
        let properties =
            WriterProperties::builder().set_compression(codec).set_dictionary_enabled(false).build();
        let mut writer =
            SerializedFileWriter::new(Vec::new(), Arc::clone(&schema), Arc::new(properties)).unwrap();
        for (place, part) in texts.chunks(1000).enumerate() {
            let ids: Vec<ByteArray> =
                (0..part.len()).map(|id| format!("{place}/{id}").as_str().into()).collect();
            let values: Vec<ByteArray> = part.iter().map(|text| text.as_str().into()).collect();
            let mut group = writer.next_row_group().unwrap();
            for column_values in [&ids, &values] {
                let mut column = group.next_column().unwrap().unwrap();
                column.typed::<ByteArrayType>().write_batch(column_values, None, None).unwrap();
                column.close().unwrap();
            }
            group.close().unwrap();
        }
        let file = Bytes::from(writer.into_inner().unwrap());
        let path = folder.join(format!("{name}.parquet"));
        fs::write(&path, &file).unwrap();
        tell(&path, bytes, "parquet", || {
            let reader = SerializedFileReader::new(file.clone()).unwrap();
            let (mut values, mut copy) = (Vec::<ByteArray>::new(), Vec::new());
            for group in 0..reader.num_row_groups() {
                let group = reader.get_row_group(group).unwrap();
                for leaf in 0..2 {
                    let ColumnReader::ByteArrayColumnReader(mut column) =
                        group.get_column_reader(leaf).unwrap()
                    else {
                        panic!()
                    };
                    while column.read_records(256, None, None, &mut values).unwrap().0 > 0 {
                        // Values are parts of pages, so reading them needs a copy.
                        copy.clear();
                        values.drain(..).for_each(|value| copy.extend_from_slice(value.data()));
                        black_box(&copy);
                    }
                }
            }
        });
    }
}

fn main() {
    let texts = texts();
    let bytes: usize = texts.iter().map(String::len).sum();
    println!("{} texts, {:.1} MB", texts.len(), bytes as f64 / 1e6);
    println!("{:<18} {:>9} {:>12}   {:<16} {:>12}", "file", "", "text", "its limit", "text");
    let folder = tempfile::tempdir().unwrap();
    tables(&texts, bytes, folder.path());
    archives(&texts, bytes, folder.path());
    #[cfg(feature = "parquet")]
    columns(&texts, bytes, folder.path());
}
