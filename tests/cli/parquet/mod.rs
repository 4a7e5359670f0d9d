//! Parquet files of a few KB with false headers or with more content than their size suggests. Each costs one
//! bad record, in a process with a limit of 1 GiB, and the input after it is read.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "counts of a few hundred, and those that are to be absurd"
)]

mod made;

use std::io::Write;
use std::path::Path;
use std::process::Stdio;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use self::made::{
    BY_DICTIONARY, Column, DELTA_BINARY, DELTA_BYTES, DELTA_LENGTH, Fields, PLAIN, RLE, SPLIT, bytes,
    checked, data, dictionary, file, file_with, lengths, number, page, plain, zstd_run,
};
use crate::dupflow::{Place, command};
use crate::feeds::upsert;

const NONE: i64 = 0;
const SNAPPY: i64 = 1;
const GZIP: i64 = 2;
const LZ4: i64 = 5;
const ZSTD: i64 = 6;
const LZ4_RAW: i64 = 7;

const ROWS: i64 = 300;

fn ids() -> Column {
    let ids: Vec<_> = (0..ROWS).map(|id| format!("k{id}")).collect();
    bytes("id", NONE, page(ROWS, PLAIN, &plain(&ids)))
}

/// A file of these ids and texts.
pub(crate) fn table(rows: impl Iterator<Item = (String, String)>) -> Vec<u8> {
    let (ids, texts): (Vec<_>, Vec<_>) = rows.unzip();
    let count = ids.len() as i64;
    let column = |name, values: &[String]| bytes(name, NONE, page(count, PLAIN, &plain(values)));
    file(count, &[column("id", &ids), column("text", &texts)])
}

fn texts() -> Vec<String> {
    (0..ROWS).map(|row| format!("text {row}")).collect()
}

/// A file with ids, and with texts in these pages.
fn with(codec: i64, pages: Vec<u8>) -> Vec<u8> {
    file(ROWS, &[ids(), bytes("text", codec, pages)])
}

/// A page whose header claims `bytes`, with at least one stored byte.
fn claiming(bytes: i64, stored: &[u8]) -> Vec<u8> {
    [&data(bytes, stored.len(), ROWS, PLAIN)[..], stored].concat()
}

/// Texts with delta-encoded lengths, whose header claims `says` of them.
fn delta_lengths(says: u64) -> Vec<u8> {
    [lengths(says, 4, 4, 3), b"text".repeat(ROWS as usize)].concat()
}

/// Delta-encoded byte arrays without common prefixes.
fn delta_bytes(says: u64, says_own: u64) -> Vec<u8> {
    [lengths(says, 0, 0, 3), delta_lengths(says_own)].concat()
}

fn gzip_of_zeros(bytes: usize) -> Vec<u8> {
    // One gzip member repeated many times; all of them are read.
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&vec![0; 1 << 20]).expect("works in a test");
    packed.finish().expect("works in a test").repeat(bytes >> 20)
}

/// A column of fixed-length bytes.
fn fixed(name: &'static str, width: i64, pages: Vec<u8>) -> Column {
    let schema = vec![Fields::default().int(1, 7).int(2, width).int(3, 0).text(4, name)];
    Column { schema, path: vec![name], kind: 7, codec: NONE, pages }
}

/// A list column with `levels` levels in one run.
fn list(levels: i64) -> Column {
    let group = Fields::default().int(3, 2).text(4, "text").int(5, 1);
    let schema = vec![group, Fields::default().int(1, 6).int(3, 0).text(4, "element")];
    // The first level begins a row; all others are further elements of it.
    let run = |count: i64, level: u8| [number(count as u64 * 2), vec![level]].concat();
    let levels_of = |runs: Vec<u8>| {
        [&u32::try_from(runs.len()).expect("works in a test").to_le_bytes()[..], &runs].concat()
    };
    let reps = levels_of([run(1, 0), run(levels - 1, 1)].concat());
    let defs = levels_of(run(levels, 0));
    let pages = page(levels, PLAIN, &[reps, defs].concat());
    Column { schema, path: vec!["text", "element"], kind: 6, codec: NONE, pages }
}

/// Files with false headers, each with the name of its falsehood.
fn lies() -> Vec<(&'static str, Vec<u8>)> {
    let dictionary_of = |says: i64| {
        let indices = [vec![8], number(ROWS as u64 * 2), vec![0]].concat();
        with(NONE, [dictionary(says, &plain(&texts())), page(ROWS, BY_DICTIONARY, &indices)].concat())
    };
    let schema_of = |describe: fn(Vec<Fields>) -> Vec<Fields>| {
        let columns = [ids(), bytes("text", NONE, page(ROWS, PLAIN, &plain(&texts())))];
        file_with(ROWS, &columns, |footer, schema, groups| {
            footer.list(2, &describe(schema)).long(3, ROWS).list(4, &groups)
        })
    };
    let statistics = Fields::default().lying_text(5, 1 << 40);
    let about = Fields::default().int(1, ROWS).int(2, PLAIN).int(3, RLE).int(4, RLE).inside(5, statistics);
    let size = plain(&texts()).len();
    let with_statistics =
        Fields::default().int(1, 0).int(2, size as i64).int(3, size as i64).inside(5, about);
    let numbers = |pages: Vec<u8>| {
        let schema = vec![Fields::default().int(1, 2).int(3, 0).text(4, "id")];
        let ids = Column { schema, path: vec!["id"], kind: 2, codec: NONE, pages };
        file(ROWS, &[ids, bytes("text", NONE, page(ROWS, PLAIN, &plain(&texts())))])
    };
    vec![
        ("delta-lengths-2e32", with(NONE, page(ROWS, DELTA_LENGTH, &delta_lengths(1 << 32)))),
        ("delta-lengths-2e45", with(NONE, page(ROWS, DELTA_LENGTH, &delta_lengths(1 << 45)))),
        ("delta-lengths-5e8", with(NONE, page(ROWS, DELTA_LENGTH, &delta_lengths(500_000_000)))),
        ("delta-bytes-2e32", with(NONE, page(ROWS, DELTA_BYTES, &delta_bytes(1 << 32, ROWS as u64)))),
        ("delta-bytes-2e45", with(NONE, page(ROWS, DELTA_BYTES, &delta_bytes(1 << 45, ROWS as u64)))),
        ("delta-bytes-5e8", with(NONE, page(ROWS, DELTA_BYTES, &delta_bytes(500_000_000, ROWS as u64)))),
        ("delta-bytes-ends", with(NONE, page(ROWS, DELTA_BYTES, &delta_bytes(ROWS as u64, 500_000_000)))),
        (
            "delta-numbers-miniblocks",
            numbers({
                let head = [number(128), number(1 << 31), number(ROWS as u64), vec![0]].concat();
                page(ROWS, DELTA_BINARY, &[head, vec![0; 20]].concat())
            }),
        ),
        ("dictionary-2e31", dictionary_of((1 << 31) - 1)),
        ("dictionary-1e8", dictionary_of(100_000_000)),
        ("dictionary-negative", dictionary_of(-1)),
        ("values-2e31", with(NONE, page((1 << 31) - 1, PLAIN, &plain(&texts())))),
        ("size-snappy", with(SNAPPY, claiming((1 << 31) - 1, b"\xff\xff\xff\xff\x07abc"))),
        ("size-gzip", with(GZIP, claiming((1 << 31) - 1, &gzip_of_zeros(1 << 20)))),
        ("size-zstd", with(ZSTD, claiming((1 << 31) - 1, &zstd_run(b"abcd", 128 << 10)))),
        ("size-lz4", with(LZ4, claiming((1 << 31) - 1, b"\x10abcd"))),
        ("size-lz4-raw", with(LZ4_RAW, claiming((1 << 31) - 1, b"\x10abcd"))),
        ("size-negative", with(ZSTD, claiming(-1, &zstd_run(b"abcd", 128 << 10)))),
        ("levels-2e31", file(1, &[list((1 << 31) - 1)])),
        ("statistics-2e40", with(NONE, [with_statistics.end(), plain(&texts())].concat())),
        (
            "children-2e31",
            schema_of(|mut schema| {
                schema[0] = Fields::default().text(4, "m").int(5, (1 << 31) - 1);
                schema
            }),
        ),
        (
            "nested",
            schema_of(|schema| {
                let group = Fields::default().int(3, 0).text(4, "g").int(5, 1);
                let top = Fields::default().text(4, "m").int(5, 1);
                [vec![top], vec![group; 20_000], schema[1..2].to_vec()].concat()
            }),
        ),
        (
            "groups-2e30",
            file_with(ROWS, &[ids()], |footer, schema, groups| {
                footer.list(2, &schema).long(3, ROWS).lying_list(4, 1 << 30, &groups)
            }),
        ),
        ("width-2e31", file(ROWS, &[fixed("text", (1 << 31) - 1, page(ROWS, SPLIT, &[]))])),
        // These headers are true, but the content is too large.
        (
            "honest-600-mb",
            with(ZSTD, claiming(4 + (600 << 20), &zstd_run(&(600_u32 << 20).to_le_bytes(), 600 << 20))),
        ),
        ("gzip-more-than-said", with(GZIP, claiming(2000, &gzip_of_zeros(600 << 20)))),
        ("shared-beginnings", {
            // The first value has 12 MiB; each of the other 256 has it as a prefix.
            let long = 12_i64 << 20;
            let heads = [lengths(256, 0, long, 2), lengths(256, long, 0, 2)].concat();
            let all = heads.len() as i64 + long;
            let stored = zstd_run(&heads, 12 << 20);
            let pages = [&data(all, stored.len(), 256, DELTA_BYTES)[..], &stored].concat();
            file(256, &[bytes_of_rows(256), bytes("text", ZSTD, pages)])
        }),
    ]
}

fn bytes_of_rows(rows: i64) -> Column {
    let ids: Vec<_> = (0..rows).map(|id| format!("k{id}")).collect();
    bytes("id", NONE, page(rows, PLAIN, &plain(&ids)))
}

/// Runs `replay` in a process limited to `limit` KiB. Returns exit code, messages, stats, and the peak memory
/// in KiB.
fn replay_within(place: &Place, limit: u32, arguments: &str) -> (i32, String, Value, u64) {
    let program = command([""; 0]).get_program().to_owned();
    let script = format!("ulimit -v {limit}; exec \"$0\" replay --stats stats.json {arguments}");
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &script]).arg(program).current_dir(place.path("")).stdin(Stdio::null());
    let output = shell.output().expect("a shell runs");
    let (code, err) =
        (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&output.stderr).into_owned());
    let stats = std::fs::read(place.path("stats.json")).unwrap_or_default();
    let stats: Value = serde_json::from_slice(&stats).unwrap_or_default();
    let peak = stats["peak_rss_bytes"].as_u64().unwrap_or(0) >> 10;
    (code, err, stats, peak)
}

#[cfg(target_os = "linux")]
#[test]
fn each_false_header_is_one_bad_record() {
    let place = Place::new();
    place.file("good.jsonl", upsert("next", "the next input is read"));
    for (name, bytes) in lies() {
        place.file("lie.parquet", &bytes);
        let (code, err, stats, peak) = replay_within(&place, 1 << 20, "lie.parquet good.jsonl");
        assert_eq!((code, &stats["bad_records"]), (1, &json!({ "unreadable": 1 })), "{name}: {err}");
        assert!(err.contains("error: \"lie.parquet\" holds 1 record and no document"), "{name}: {err}");
        assert_eq!(stats["documents"], 1, "{name}: the next input is read");
        println!("{name}: {} bytes, {peak} KiB", bytes.len());
    }
}

/// The fuzzer's corpus contains the small files as made here.
#[test]
fn the_fuzz_corpus_contains_the_small_files() {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus/parquet");
    for (name, bytes) in lies().into_iter().filter(|(_, bytes)| bytes.len() < 20_000) {
        let path = kept.join(format!("lie-{name}"));
        if std::env::var_os("DUPFLOW_KEEP").is_some() {
            std::fs::write(&path, &bytes).expect("works in a test");
        }
        assert!(std::fs::read(&path).is_ok_and(|found| found == bytes), "{name}: DUPFLOW_KEEP=1 writes it");
    }
}

/// Files with true headers, made by the same code: so the refusals above have another reason than this code.
#[cfg(target_os = "linux")]
#[test]
fn true_headers_are_read() {
    let place = Place::new();
    let rows = ROWS as u64;
    let long = plain(&["x".repeat(1000)]);
    let indices = [vec![1], number(rows * 2), vec![0]].concat();
    for (name, file) in [
        ("delta lengths", with(NONE, page(ROWS, DELTA_LENGTH, &delta_lengths(rows)))),
        ("delta bytes", with(NONE, page(ROWS, DELTA_BYTES, &delta_bytes(rows, rows)))),
        ("dictionary", with(NONE, [dictionary(1, &long), page(ROWS, BY_DICTIONARY, &indices)].concat())),
        ("list", file(1, &[list(1)])),
    ] {
        place.file("true.parquet", file);
        let (code, err, stats, _) = replay_within(&place, 1 << 20, "true.parquet");
        let bad = if name == "list" { json!({ "missing_text": 1 }) } else { json!({}) };
        let documents = if name == "list" { 0 } else { ROWS };
        // A file without a document fails.
        let ends = i32::from(documents == 0);
        assert_eq!((code, &stats["bad_records"]), (ends, &bad), "{name}: {err}");
        assert_eq!(stats["documents"], documents, "{name}: {err}");
    }
}

/// Columns of `source.fields` are read beside the texts.
#[test]
fn columns_are_fields_of_documents() {
    let place = Place::new();
    let column = |name, values: [&str; 4]| bytes(name, NONE, page(4, PLAIN, &plain(&values)));
    let text = crate::feeds::page(0..0, 0);
    let columns = [
        column("id", ["a", "b", "c", "d"]),
        column("url", ["https://one.org/a", "https://one.org/b", "https://two.org/c", ""]),
        column("lang", ["de", "fr", "de", "de"]),
        column("text", [&text; 4]),
    ];
    place.file("pages.parquet", file(4, &columns));
    let fields = "--emit pairs --field host(url) --field lang";
    for (rule, expected) in [
        ("a.host!=b.host", &["a c", "a d", "b c", "b d", "c d"][..]),
        ("a.lang==b.lang", &["a c", "a d", "c d"]),
    ] {
        let (run, stats) = place.replay(&format!("{fields} --set pairs.where={rule} pages.parquet"));
        let found: Vec<_> =
            crate::feeds::pairs(&run.out).into_keys().map(|(a, b)| format!("{a} {b}")).collect();
        assert_eq!(found, expected);
        assert_eq!(stats["fields"]["missing"], i32::from(rule.contains("host")), "{stats}");
    }
}

/// Texts of 40 MiB, one per page, are read a few at a time: together they would be 1.2 GiB.
#[cfg(target_os = "linux")]
#[test]
fn long_pages_are_held_a_few_at_a_time() {
    const LONG: usize = 40 << 20;
    let place = Place::new();
    let rows = 32;
    // All rows are deletes, so no text is processed.
    let stored = zstd_run(&u32::try_from(LONG).expect("works in a test").to_le_bytes(), LONG);
    let text = [&data(4 + LONG as i64, stored.len(), 1, PLAIN)[..], &stored].concat();
    let ops = page(rows, PLAIN, &plain(&vec!["delete"; 32]));
    let columns = [bytes_of_rows(rows), bytes("op", NONE, ops), bytes("text", ZSTD, text.repeat(32))];
    place.file("long.parquet", file(rows, &columns));
    let (code, err, stats, peak) = replay_within(&place, 8 << 20, "long.parquet");
    assert_eq!((code, &stats["bad_records"], &stats["events"]), (0, &json!({}), &json!(32)), "{err}");
    assert!((1..600 << 10).contains(&peak), "{peak} KiB");
}

/// Nine columns of 160 MiB each, in pages of 1 MiB. All pages read so far would be 1.4 GiB, and so would
/// those of 256 rows. The test checks resident memory, since the address space that an allocator reserves
/// differs from run to run.
#[cfg(target_os = "linux")]
#[test]
fn wide_columns_are_held_a_few_pages_at_a_time() {
    const PAGE: usize = 1 << 20;
    const PAGES: usize = 160;
    const FIELDS: [&str; 8] = ["f1", "f2", "f3", "f4", "f5", "f6", "f7", "f8"];
    let weighed: String = FIELDS.iter().map(|name| format!("--set text.fields.{name}=1 ")).collect();
    for in_page in [1, 16] {
        let content = plain(&vec!["x".repeat(PAGE / in_page); in_page]);
        let stored = zstd::encode_all(&content[..], 1).expect("works in a test");
        let head = data(content.len() as i64, stored.len(), in_page as i64, PLAIN);
        let pages = [head, stored].concat().repeat(PAGES);
        let rows = (PAGES * in_page) as i64;
        // All rows are deletes, so no text is processed.
        let ops = page(rows, PLAIN, &plain(&vec!["delete"; PAGES * in_page]));
        let mut columns =
            vec![bytes_of_rows(rows), bytes("op", NONE, ops), bytes("text", ZSTD, pages.clone())];
        columns.extend(FIELDS.map(|name| bytes(name, ZSTD, pages.clone())));
        let place = Place::new();
        place.file("wide.parquet", file(rows, &columns));
        let (code, err, stats, peak) = replay_within(&place, 8 << 20, &format!("{weighed}wide.parquet"));
        assert_eq!((code, &stats["bad_records"], &stats["events"]), (0, &json!({}), &json!(rows)), "{err}");
        assert!((1..720 << 10).contains(&peak), "{in_page} a page: {peak} KiB");
    }
}

/// A page whose bytes are not those of its checksum is damage; the rows of the pages before it are read.
#[test]
fn checksums_of_pages_are_verified() {
    let place = Place::new();
    let content = plain(&texts());
    let mut crc = flate2::Crc::new();
    crc.update(&content);
    for version in [1, 2] {
        for (checksum, is_right) in [(crc.sum(), true), (crc.sum() ^ 1, false)] {
            let pages =
                [checked(version, ROWS, &content, crc.sum()), checked(version, ROWS, &content, checksum)];
            let numbers: Vec<_> = (0..2 * ROWS).map(|id| format!("k{id}")).collect();
            let id = bytes("id", NONE, page(2 * ROWS, PLAIN, &plain(&numbers)));
            place.file("a.parquet", file(2 * ROWS, &[id, bytes("text", NONE, pages.concat())]));
            let (run, stats) = place.replay("--emit pairs a.parquet");
            // Rows are decoded in steps of 256; the step that reaches into a damaged page is lost as a whole.
            let read = if is_right { 2 * ROWS } else { ROWS / 256 * 256 };
            assert_eq!(stats["events"], read, "version {version}: {run:?}");
            assert_eq!(stats["unread_files"], i32::from(!is_right), "{run:?}");
            assert_eq!(run.err.contains("a page whose checksum is"), !is_right, "{run:?}");
            // Half of the rows, and one bad record: a share says nothing of it.
            let list = place.run("replay -q --emit keep --max-bad 0.9 a.parquet");
            assert_eq!(list.code, i32::from(!is_right), "{list:?}");
        }
    }
}

/// Files of pyarrow: all is encrypted, or a column under a footer that is not.
#[test]
fn encrypted_columns_are_refused_where_they_are_read() {
    let place = Place::new();
    place.file("footer.parquet", include_bytes!("../../data/files/encrypted-footer.parquet"));
    place.file("column.parquet", include_bytes!("../../data/files/plain-footer.parquet"));
    for (options, name) in
        [("", "footer.parquet"), ("--text-field id ", "footer.parquet"), ("", "column.parquet")]
    {
        let run = place.run(&format!("replay --emit keep --ids file {options}{name}"));
        assert_eq!((run.code, run.out.as_str()), (2, ""), "{name}: {run:?}");
        assert!(run.err.contains("it is an encrypted Parquet file"), "{name}: {run:?}");
    }
    // The other column of the second file is read.
    let run = place.run("replay -q --emit pairs --ids file --text-field id column.parquet");
    assert_eq!(run.code, 0, "{run:?}");
    // In a folder, it is not read as an empty one.
    place.file("in/column.parquet", include_bytes!("../../data/files/plain-footer.parquet"));
    let run = place.run("replay --emit keep --max-bad 1 in");
    assert!(run.code == 1 && run.err.contains("encrypted Parquet file"), "{run:?}");
}
