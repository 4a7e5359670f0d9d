//! Recognises unsupported formats before a run begins.
//!
//! The first bytes of an input -> why it is not read, and a command that converts it; `None` if it may be
//! readable. There are two kinds of signs. *Magic* is the first bytes of other containers. *Shape* is JSON
//! that is not one object per line, or text that is not UTF-8. Anything else is left to the reader of the
//! format. Magic of printable letters may also begin a text or a table header: it counts only if bytes follow
//! that no text has.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::layout::{FileFormat, PACKED, by_name};
use dupflow_core::run::missing_feature;

/// How to convert a file in an unsupported format.
enum Help {
    /// A command that reads the file and writes a supported format to standard output.
    Pipe(&'static str),
    /// A sentence, in which `FILE` stands for the name.
    Say(&'static str),
}

use Help::{Pipe, Say};

const FROM_FEATHER: Help =
    Say("write it as Parquet: python3 -c 'import sys,pyarrow.feather as f,pyarrow.parquet as p;\
     p.write_table(f.read_table(sys.argv[1]),sys.argv[2])' FILE out.parquet");
const FROM_STREAM: Help =
    Say("write it as Parquet: python3 -c 'import sys,pyarrow as a,pyarrow.parquet as p;\
     p.write_table(a.ipc.open_stream(sys.argv[1]).read_all(),sys.argv[2])' FILE out.parquet");
const FROM_ORC: Help =
    Say("write it as Parquet: python3 -c 'import sys,pyarrow.orc as o,pyarrow.parquet as p;\
     p.write_table(o.read_table(sys.argv[1]),sys.argv[2])' FILE out.parquet");
const FROM_TAR: Help = Say("unpack it into a folder, and name that: tar -xf FILE -C FOLDER");
const FROM_BZIP2: Help = Pipe("bzip2 -dc");
const AS_TABLE: Help = Say("write it as Parquet or as JSON Lines");
const NO_RECORDS: Help = Say("name files that hold texts or records");

/// First bytes, the format that begins with them, and how to convert it.
static MAGIC: [(&[u8], &str, Help); 24] = [
    (b"\xfd7zXZ\0", "compressed with xz", Pipe("xz -dc")),
    (b"\x04\x22\x4d\x18", "compressed with lz4", Pipe("lz4 -dc")),
    (b"\x02\x21\x4c\x18", "compressed with lz4", Pipe("lz4 -dc")),
    (b"PK\x03\x04", "a zip archive", Pipe("unzip -p")),
    (b"PK\x05\x06", "an empty zip archive", Pipe("unzip -p")),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", Pipe("7z x -so")),
    (b"LZIP\x01", "compressed with lzip", Pipe("lzip -dc")),
    (b"\x1f\x9d", "compressed with compress", Pipe("uncompress -c")),
    (b"\xff\x06\0\0sNaPpY", "compressed with snappy", Pipe("snzip -dc")),
    (b"Rar!\x1a\x07", "a rar archive", Pipe("unrar p -inul")),
    (b"Obj\x01", "an Avro file", Pipe("avro-tools tojson")),
    (
        b"SQLite format 3\0",
        "an SQLite database",
        Say("read it by `dupflow run` with source.kind = \"sqlite\""),
    ),
    (
        b"version https://git-lfs.github.com/spec/",
        "a pointer of Git LFS and not the file itself",
        Say("get the file: git lfs pull"),
    ),
    (b"%PDF-", "a PDF file", Say("take its text out first, as pdftotext does")),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", AS_TABLE),
    (b"\x93NUMPY", "an array of NumPy", AS_TABLE),
    (b"\x80\x03", "a pickle of Python", AS_TABLE),
    (b"\x80\x04\x95", "a pickle of Python", AS_TABLE),
    (b"\x80\x05\x95", "a pickle of Python", AS_TABLE),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "an Office document",
        Say("write it as CSV, or its text as a file"),
    ),
    (b"\x89PNG\r\n\x1a\n", "an image", NO_RECORDS),
    (b"\xff\xd8\xff", "an image", NO_RECORDS),
    (b"\x7fELF", "a program", NO_RECORDS),
    (b"\0asm", "a program", NO_RECORDS),
];

/// The same for first bytes that are letters; they count only if the input also has bytes that no text has.
static LETTERS: [(&[u8], &str, Help); 6] = [
    (b"ARROW1", "an Arrow file (Feather)", FROM_FEATHER),
    (b"FEA1", "a Feather file", FROM_FEATHER),
    (b"ORC", "an ORC file", FROM_ORC),
    (b"PARE", "an encrypted Parquet file", Say("write it without encryption")),
    (b"GIF8", "an image", NO_RECORDS),
    (b"OggS", "a sound", NO_RECORDS),
];

/// Why an input with this (decompressed) beginning cannot be read in `format`, with a command that helps.
/// `is_packed`: it is compressed in a supported way. `name`: the name of the input, `-` for standard input.
pub(crate) fn refused(beginning: &[u8], is_packed: bool, name: &str, format: FileFormat) -> Option<String> {
    let file = if name == "-" { Cow::Borrowed("FILE") } else { quoted(name) };
    let inner = inner_format(name, format);
    let pipe = |what: &str, command: &str, option: &str| {
        let option = if option.is_empty() { String::new() } else { format!(" --format {option}") };
        let twice = if name == "-" { "" } else { ", or into a file, where the input is read twice" };
        Some(format!("it is {what}, which is not read: {command} {file} | dupflow replay{option} -{twice}"))
    };
    match container(beginning) {
        Some((what, Pipe(command))) => return pipe(what, command, inner),
        Some((what, Say(help))) => {
            return Some(format!("it is {what}, which is not read: {}", help.replace("FILE", &file)));
        }
        None => {}
    }
    if is_packed && (beginning.starts_with(b"\x1f\x8b") || beginning.starts_with(b"\x28\xb5\x2f\xfd")) {
        let command = if beginning[0] == 0x1f { "zcat" } else { "zstdcat" };
        return Some(format!(
            "it is compressed twice: {command} {file} | dupflow replay{} -",
            if inner.is_empty() { String::new() } else { format!(" --format {inner}") }
        ));
    }
    if cfg!(not(feature = "parquet")) && is_parquet(beginning) {
        return Some(missing_feature("Parquet", "parquet"));
    }
    let are_records = matches!(format, FileFormat::Jsonl | FileFormat::Csv | FileFormat::Tsv);
    if format != FileFormat::Parquet && is_parquet(beginning) {
        return Some(format!(
            "it is a Parquet file, and is to be read as {}: leave --format out",
            format.name()
        ));
    }
    if are_records && beginning.starts_with(b"WARC/") {
        return Some(format!(
            "it is a web archive, and is to be read as {}: leave --format out",
            format.name()
        ));
    }
    match format {
        FileFormat::Parquet => not_parquet(beginning),
        FileFormat::Jsonl | FileFormat::Csv | FileFormat::Tsv => {
            let option = if format == FileFormat::Jsonl { "" } else { format.name() };
            if let Some(encoding) = wide(beginning) {
                return pipe(
                    &format!("{encoding}, not UTF-8"),
                    &format!("iconv -f {encoding} -t UTF-8"),
                    option,
                );
            }
            let text = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
            if is_page(text) {
                return Some(format!(
                    "it is a web page, and is to be read as {}: where a download has failed, a page says so; \
                     --format html reads it as a document",
                    format.name()
                ));
            }
            if format != FileFormat::Jsonl {
                return None;
            }
            let (what, filter) = shape(text)?;
            pipe(what, &format!("jq -c '{filter}'"), "")
        }
        FileFormat::Warc | FileFormat::Text | FileFormat::Html => None,
    }
}

/// What a file without text is, by its first bytes.
pub(crate) fn binary(beginning: &[u8]) -> Option<String> {
    let (what, _) = container(beginning)?;
    Some(format!("it is {what}"))
}

/// Whether it is a Git LFS pointer: a small text that replaces the real file until that is fetched.
pub(crate) fn is_pointer(bytes: &[u8]) -> bool {
    bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}

/// Whether it begins as a Parquet file does: four letters, and then header bytes that no text has.
pub(crate) fn is_parquet(beginning: &[u8]) -> bool {
    beginning.starts_with(b"PAR1") && (beginning.len() == 4 || !is_text(beginning))
}

/// Whether these bytes may be text: none of them is a control character that texts do not have.
fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31))
}

/// The container with this beginning, and how to convert it.
fn container(beginning: &[u8]) -> Option<(&'static str, &'static Help)> {
    let letters = if is_text(beginning) { &[][..] } else { &LETTERS };
    let named = MAGIC.iter().chain(letters).find(|(magic, ..)| beginning.starts_with(magic));
    if let Some((_, what, help)) = named {
        return Some((*what, help));
    }
    match beginning {
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            Some(("compressed with bzip2", &FROM_BZIP2))
        }
        // A message of a stream: a continuation mark, and a length of four bytes below 16 MiB.
        [0xff, 0xff, 0xff, 0xff, _, _, _, 0, ..] => Some(("an Arrow stream", &FROM_STREAM)),
        _ if beginning.get(257..262) == Some(b"ustar") => Some(("a tar archive", &FROM_TAR)),
        _ => None,
    }
}

/// Why it is no Parquet file.
fn not_parquet(beginning: &[u8]) -> Option<String> {
    if beginning.is_empty() {
        return Some("it is empty, which no Parquet file is: its writer has not finished".to_owned());
    }
    let like = match beginning.trim_ascii_start().first() {
        Some(b'{') => ": it begins as JSON Lines do, leave --format out",
        _ => "",
    };
    // The input may have fewer than four bytes.
    let length = beginning.len().min(4);
    (beginning[..length] != b"PAR1"[..length] || length < 4)
        .then(|| format!("it is no Parquet file, which begins with PAR1{like}"))
}

/// The encoding of a text with two or four bytes per character: by its byte order mark, or by the zeros
/// between ASCII characters.
fn wide(beginning: &[u8]) -> Option<&'static str> {
    match beginning {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some("UTF-32"),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        [a, 0, b, 0, ..] if a.is_ascii_graphic() && (b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            Some("UTF-16LE")
        }
        [0, a, 0, b, ..] if a.is_ascii_graphic() && (b.is_ascii_graphic() || b.is_ascii_whitespace()) => {
            Some("UTF-16BE")
        }
        _ => None,
    }
}

fn is_page(text: &[u8]) -> bool {
    let begins =
        |with: &str| text.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()));
    ["<!doctype html", "<html", "<?xml"].into_iter().any(begins)
}

/// Whether it is JSON other than one object per line: what it is, and the jq filter that converts it.
fn shape(text: &[u8]) -> Option<(&'static str, &'static str)> {
    const ARRAY: (&str, &str) = ("a JSON array, not an object a line", ".[]");
    const PRETTY: (&str, &str) = ("JSON over several lines, not an object a line", ".");
    match *text.first()? {
        b'[' => {
            let inner = text[1..].trim_ascii_start();
            let is_open = inner.is_empty() && text[1..].contains(&b'\n');
            (inner.first() == Some(&b'{') || is_open).then_some(ARRAY)
        }
        b'{' => {
            let line = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
            if line.len() == text.len() {
                return None;
            }
            if line.trim_ascii() == b"{" {
                return Some(PRETTY);
            }
            let mut values = serde_json::Deserializer::from_slice(text).into_iter::<IgnoredAny>();
            let is_whole = matches!(values.next(), Some(Ok(_)));
            (is_whole && values.byte_offset() > line.len()).then_some(PRETTY)
        }
        _ => None,
    }
}

/// The format inside a compressed file of this name, as the value of `--format`; empty if it is detected
/// without the option.
fn inner_format(name: &str, format: FileFormat) -> &'static str {
    let lower = name.to_ascii_lowercase();
    let bare = PACKED.iter().find_map(|end| lower.strip_suffix(end)).unwrap_or(&lower);
    match by_name(bare).unwrap_or(format) {
        FileFormat::Jsonl | FileFormat::Parquet | FileFormat::Warc => "",
        other => other.name(),
    }
}

/// The name, quoted for a shell.
fn quoted(name: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'/' | b'-');
    if name.bytes().all(is_plain) { name.into() } else { format!("'{}'", name.replace('\'', "'\\''")).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(beginning: &[u8], name: &str, format: FileFormat) -> Option<String> {
        refused(beginning, false, name, format)
    }

    #[test]
    fn commands_name_the_file_and_the_format() {
        let xz = b"\xfd7zXZ\0\0";
        assert_eq!(
            refusal(xz, "a b.csv.xz", FileFormat::Jsonl).unwrap(),
            "it is compressed with xz, which is not read: xz -dc 'a b.csv.xz' | dupflow replay --format \
             csv -, or into a file, where the input is read twice"
        );
        assert_eq!(
            refusal(xz, "-", FileFormat::Jsonl).unwrap(),
            "it is compressed with xz, which is not read: xz -dc FILE | dupflow replay -"
        );
        assert_eq!(
            refusal(b"[ {\"id\":1}", "日本.json", FileFormat::Jsonl).unwrap(),
            "it is a JSON array, not an object a line, which is not read: jq -c '.[]' '日本.json' | dupflow \
             replay -, or into a file, where the input is read twice"
        );
    }

    #[test]
    fn supported_inputs_are_not_refused() {
        for text in [
            "",
            "{}",
            "{\"id\":1}\n{\"id\":2}\n",
            "{\"id\":\"x\",\"text\":\n{\"id\":\"y\"}\n",
            "[]\n",
            "[1]\n",
            "oops\n",
            "\u{feff}{\"a\":{}}\n",
            "ORCHID, a text",
            "BZh is no magic",
            "{\"text\":\"a line that is cut off",
        ] {
            assert_eq!(refusal(text.as_bytes(), "a", FileFormat::Jsonl), None, "{text}");
        }
        assert_eq!(refusal(b"{\n", "a.md", FileFormat::Text), None);
        assert_eq!(refusal(b"<html>", "a.html", FileFormat::Html), None);
        assert_eq!(refusal(b"PAR1....", "a", FileFormat::Parquet), None);
        assert_eq!(refusal(b"id,text\n", "a", FileFormat::Csv), None);
        assert_eq!(refusal("\u{4100}".as_bytes(), "a", FileFormat::Csv), None);
    }

    /// A table or a text that begins with the letters of a magic is read. Only with the bytes of the real
    /// format do they count.
    #[test]
    fn texts_may_begin_with_the_letters_of_a_magic() {
        for magic in ["ARROW1", "FEA1", "PARE", "GIF8", "OggS", "ORC", "PAR1"] {
            for rest in
                [",text,id\nx,a text,1\n", " images: the text goes on\n", "\tid\ttext\n\u{1b}[1m\u{e9}\n"]
            {
                let text = format!("{magic}{rest}");
                for format in [FileFormat::Csv, FileFormat::Tsv, FileFormat::Text, FileFormat::Jsonl] {
                    assert_eq!(refusal(text.as_bytes(), "a", format), None, "{text:?}");
                }
                assert_eq!(binary(text.as_bytes()), None, "{text:?}");
                assert!(!is_parquet(text.as_bytes()), "{text:?}");
            }
            let bytes = [magic.as_bytes(), b"\x15\x04\0\0"].concat();
            assert!(refusal(&bytes, "a", FileFormat::Csv).is_some(), "{magic}");
            assert_eq!(binary(&bytes).is_some(), magic != "PAR1", "{magic}");
        }
    }

    #[test]
    fn json_over_several_lines_is_recognised() {
        for text in ["{\n  \"id\": 1", "{ \"id\": 1,\n  \"text\": \"t\" }\n{", "[\n  {", "[\n", "[{"] {
            assert!(refusal(text.as_bytes(), "a", FileFormat::Jsonl).is_some(), "{text}");
        }
    }
}
