//! Valid archives in the forms that writers choose, cut into members and frames anywhere. Each is read as its
//! uncompressed stream is, and that has the documents that were written.
//!
//! `DUPFLOW_SEED=7 DUPFLOW_ROUNDS=10000 cargo test --workspace --features full --lib warc::hostile`
//! makes other ones, and more.

use std::io::{Cursor, Write};
use std::sync::Arc;

use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::layout::WarcId;
use super::super::samples::{ReadResult, columns, seed_and_rounds, texts};
use super::Warc;
use super::parts::{ParallelArchive, WarcArchive};
use crate::formats::{InMemory, RandomAccess};

fn choose<'c, T: ?Sized>(rng: &mut ChaCha8Rng, choices: &[&'c T]) -> &'c T {
    choices[rng.random_range(0..choices.len())]
}

/// A text in any case.
fn any_case(rng: &mut ChaCha8Rng, name: &str) -> String {
    match rng.random_range(0..4) {
        0 => name.to_ascii_lowercase(),
        1 => name.to_ascii_uppercase(),
        _ => name.to_owned(),
    }
}

/// A line of a head, as some writer may write it.
fn line(rng: &mut ChaCha8Rng, end: &str, name: &str, value: &str) -> String {
    let name = any_case(rng, name);
    let fold = format!("{end}\t");
    let before = choose(rng, &[" ", "", "  ", "\t", &fold]);
    let after = choose(rng, &["", "", " ", "\t"]);
    format!("{name}:{before}{value}{after}{end}")
}

/// A record of this type, with further lines in its head.
fn record(rng: &mut ChaCha8Rng, kind: &str, lines: &[(&str, &str)], block: &[u8]) -> Vec<u8> {
    let end = choose(rng, &["\r\n", "\r\n", "\n"]);
    let length = block.len().to_string();
    let mut all = vec![("WARC-Type", kind), ("Content-Length", &length), ("X-Note", "WARC/1.0 begins: no")];
    all.extend_from_slice(lines);
    for at in (1..all.len()).rev() {
        all.swap(at, rng.random_range(0..=at));
    }
    let version = choose(rng, &["WARC/1.0", "WARC/1.1", "WARC/0.18", "WARC/0.17"]);
    let head: String = all.iter().map(|(name, value)| line(rng, end, name, value)).collect();
    let behind = choose(rng, &["\r\n\r\n", "\r\n\r\n", "\n\n", "\r\n\r\n\r\n\r\n\n"]);
    [format!("{version}{end}{head}{end}").as_bytes(), block, behind.as_bytes()].concat()
}

fn chunked(rng: &mut ChaCha8Rng, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (chunk, after) = rest.split_at(rng.random_range(1..=rest.len().min(400)));
        let size = choose(rng, &["", "0", "000"]);
        let note = choose(rng, &["", ";a=b", " "]);
        out.extend_from_slice(format!("{size}{:x}{note}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
        rest = after;
    }
    out.extend_from_slice(choose(rng, &["0\r\n\r\n", "0\r\nX-Sum: 1\r\n\r\n", "0\r\n"]).as_bytes());
    out
}

/// A response that holds this page.
fn response(rng: &mut ChaCha8Rng, page: &str) -> Vec<u8> {
    let end = choose(rng, &["\r\n", "\n"]);
    let mut body = page.as_bytes().to_vec();
    let mut lines = vec![("Content-Type", "text/html; charset=utf-8")];
    // The head as it was sent, with a body as it was sent or decoded.
    let is_decoded = rng.random_range(0..4) == 0;
    match rng.random_range(0..6) {
        0 if !is_decoded => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&body).unwrap();
            body = encoder.finish().unwrap();
            body.extend_from_slice(choose(rng, &["", "\r\n", "\0\0\0\0", "<!-- cached -->"]).as_bytes());
            lines.push(("Content-Encoding", "gzip"));
        }
        1 if !is_decoded => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(&body).unwrap();
            body = encoder.finish().unwrap();
            lines.push(("Content-Encoding", "deflate"));
        }
        2 if !is_decoded => {
            body = zstd::encode_all(&body[..], 1).unwrap();
            lines.push(("Content-Encoding", "zstd"));
        }
        0 => lines.push(("Content-Encoding", "gzip")),
        1 => lines.push(("Content-Encoding", "br")),
        2 => lines.push(("Content-Encoding", "deflate, utf-8")),
        _ => {}
    }
    if rng.random_range(0..3) == 0 {
        lines.push(("Transfer-Encoding", "chunked"));
        if !is_decoded {
            body = chunked(rng, &body);
        }
    }
    let status = choose(rng, &["HTTP/1.1 200 OK", "HTTP/1.0 200", "http/1.1 200 ok", "HTTP/2 200 "]);
    let head: String = lines.iter().map(|(name, value)| line(rng, end, name, value)).collect();
    [format!("{status}{end}{head}{end}").as_bytes(), &body].concat()
}

/// A stream of records, and the texts of its documents.
fn stream(rng: &mut ChaCha8Rng) -> (Vec<u8>, Vec<String>) {
    let count = rng.random_range(0..25);
    let mut expected = Vec::new();
    let mut all = Vec::new();
    for (number, text) in texts(count, rng.random()).into_iter().enumerate() {
        let (id, address) =
            (format!("<urn:uuid:00000000-0000-0000-0000-{number:012}>"), format!("http://a.test/{number}"));
        let own =
            [("WARC-Record-ID", &*id), ("WARC-Target-URI", &*address), ("WARC-Date", "2024-05-06T07:08:09Z")];
        let with = |more: &'static str| [&own[..], &[("Content-Type", more)]].concat();
        let bytes = match rng.random_range(0..8) {
            0 => record(rng, "warcinfo", &own, b"software: x\r\n\r\n"),
            1 => record(rng, "request", &with("application/http"), b"GET / HTTP/1.1\r\n\r\n"),
            2 => {
                // An archive in a record is no document.
                let inner = record(rng, "conversion", &own, text.as_bytes());
                record(rng, "resource", &with("application/warc"), &inner.repeat(2))
            }
            3 | 4 => {
                let page = format!("<html>{text}");
                let block = response(rng, &page);
                expected.push(page);
                record(rng, "response", &with("application/http; msgtype=response"), &block)
            }
            5 => {
                expected.push(text.clone());
                record(rng, "resource", &with("text/plain"), text.as_bytes())
            }
            _ => {
                expected.push(text.clone());
                record(rng, "conversion", &with("text/plain"), text.as_bytes())
            }
        };
        all.extend(bytes);
    }
    (all, expected)
}

/// Cuts a stream into pieces by one of several habits.
fn pieces<'s>(rng: &mut ChaCha8Rng, mut stream: &'s [u8]) -> Vec<&'s [u8]> {
    let longest = [1, 3, 17, 300, 4096, 20_000][rng.random_range(0..6)];
    let is_even = rng.random();
    let mut all = Vec::new();
    while !stream.is_empty() {
        let length = if is_even { longest } else { rng.random_range(0..=longest) };
        let (piece, rest) = stream.split_at(length.min(stream.len()));
        all.push(piece);
        stream = rest;
    }
    all
}

fn gzip(rng: &mut ChaCha8Rng, piece: &[u8]) -> Vec<u8> {
    let builder = match rng.random_range(0..4) {
        0 => GzBuilder::new().filename("a.warc").comment("by hand"),
        1 => GzBuilder::new().extra(b"BC\x02\x00\x00\x00".to_vec()),
        _ => GzBuilder::new(),
    };
    let mut encoder = builder.write(Vec::new(), Compression::new(rng.random_range(0..10)));
    encoder.write_all(piece).unwrap();
    encoder.finish().unwrap()
}

fn frame(rng: &mut ChaCha8Rng, piece: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), rng.random_range(1..4)).unwrap();
    encoder.include_checksum(rng.random()).unwrap();
    encoder.write_all(piece).unwrap();
    let mut bytes = encoder.finish().unwrap();
    if rng.random_range(0..4) == 0 {
        bytes.extend_from_slice(b"\x5e\x2a\x4d\x18\x03\x00\x00\x00abc");
    }
    bytes
}

#[test]
fn archives_cut_anywhere_are_read_as_their_streams() {
    let (seed, rounds) = seed_and_rounds(100);
    let mut documents = 0;
    for round in 0..rounds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed.wrapping_mul(1 << 32).wrapping_add(round));
        let (stream, expected) = stream(&mut rng);
        let whole = |bytes: &[u8]| {
            let file = Box::new(Cursor::new(bytes.to_vec()));
            ReadResult::read_all(Warc::new(file, &columns(&["url"]), WarcId::Record), 10_000)
        };
        let plain = whole(&stream);
        assert!(plain.damages.is_empty() && plain.cut == 0, "round {round}: {:?}", plain.damages);
        assert_eq!(plain.texts(), expected, "round {round}");
        documents += expected.len();
        let pieces = pieces(&mut rng, &stream);
        let mut members: Vec<u8> = pieces.iter().flat_map(|piece| gzip(&mut rng, piece)).collect();
        let padding = [0, 1, 700][rng.random_range(0..3)];
        members.resize(members.len() + padding, 0);
        let frames: Vec<u8> = pieces.iter().flat_map(|piece| frame(&mut rng, piece)).collect();
        for (name, file) in [("members", members), ("frames", frames)] {
            if pieces.is_empty() {
                continue;
            }
            let what = format!("round {round}, {} {name}", pieces.len());
            let found = whole(&file);
            assert!(found == plain, "{what}: {} rows, {:?}", found.rows.len(), found.damages);
            let stored: Arc<dyn RandomAccess> = Arc::new(InMemory::new(file.as_slice().into()));
            let part_bytes = rng.random_range(1..=file.len() as u64 + 10).max(file.len() as u64 / 50);
            let archive = WarcArchive::cut_every(part_bytes, stored, &columns(&["url"]), WarcId::Record);
            let parts = ParallelArchive::new(archive, 2, Arc::default()).unwrap();
            let in_parts = ReadResult::read_all(parts, 10_000);
            let differs = format!("{} rows, {:?}", in_parts.rows.len(), in_parts.damages);
            assert!(in_parts == plain, "{what}, {} bytes, parts of {part_bytes}: {differs}", file.len());
        }
    }
    assert!(documents > 100, "{documents} documents");
}
