//! Containers that are not read, by their first bytes.

/// Whether the first bytes are the header of a tar archive, whose sum is right: a line may hold its magic.
fn is_tar(beginning: &[u8]) -> bool {
    const SUM: std::ops::Range<usize> = 148..156;
    let Some(header) = beginning.get(..512).filter(|header| header[257..262] == *b"ustar") else {
        return false;
    };
    let counted = header.iter().enumerate().map(|(at, byte)| if SUM.contains(&at) { b' ' } else { *byte });
    let written = String::from_utf8_lossy(&header[SUM]);
    let written = u32::from_str_radix(written.trim_matches([' ', '\0']), 8);
    written.is_ok_and(|written| written == counted.map(u32::from).sum::<u32>())
}

/// How to convert a file in an unsupported format. `FILE` stands for its name.
pub(super) enum Help {
    /// A command that reads the file, or standard input without one, and writes a supported format to
    /// standard output.
    Pipe(&'static str),
    /// The same, and it needs a file.
    OfFile(&'static str),
    /// A sentence.
    Say(&'static str),
    /// A sentence with a command that decompresses the file by itself.
    Unpack(&'static str),
}

use super::layout::without_query;
use Help::{OfFile, Pipe, Say, Unpack};

/// By way of Python's own values, since a table of categories or views is written as Parquet in no other way.
const FROM_FEATHER: Help = Say(
    "write it as Parquet: python3 -c 'import sys,pyarrow as a,pyarrow.feather as f,pyarrow.parquet as p;\
     p.write_table(a.table(f.read_table(sys.argv[1]).to_pydict()),sys.argv[2])' FILE out.parquet",
);
const FROM_ORC: Help =
    Say("write it as Parquet: python3 -c 'import sys,pyarrow.orc as o,pyarrow.parquet as p;\
     p.write_table(o.read_table(sys.argv[1]),sys.argv[2])' FILE out.parquet");
/// A value of a nullable column is written as itself, and not within its type as by `avro-tools tojson`.
const FROM_AVRO: Help = OfFile(
    "python3 -c 'import sys,json,fastavro;[print(json.dumps(r,default=lambda v:v.decode() \
     if isinstance(v,bytes) else str(v))) for r in \
     fastavro.reader(open(sys.argv[1],\"rb\"))]' FILE",
);
/// Several files after each other are one of no format: a header would be a row, and of Parquet the last
/// would count alone.
const FROM_ZIP: Help = Unpack("unpack it into a folder, and name that: unzip -q FILE -d FOLDER");
const FROM_7Z: Help = Unpack("unpack it into a folder, and name that: 7z x -oFOLDER FILE");
const FROM_RAR: Help = Unpack("unpack it into a folder, and name that: unrar x -inul FILE FOLDER/");
const FROM_TAR: Help = Unpack("unpack it into a folder, and name that: tar -xf FILE -C FOLDER");
const FROM_BZIP2: Help = Pipe("bzip2 -dc FILE");
const FROM_OFFICE: Help = Say("write it as CSV, or its text as a file");
const AS_TABLE: Help = Say("write it as Parquet or as JSON Lines");
const NO_RECORDS: Help = Say("name files that hold texts or records");

/// First bytes, the format that begins with them, and how to convert it.
static MAGIC: [(&[u8], &str, Help); 22] = [
    (b"\xfd7zXZ\0", "compressed with xz", Pipe("xz -dc FILE")),
    (b"\x04\x22\x4d\x18", "compressed with lz4", Pipe("lz4 -dc FILE")),
    (b"\x02\x21\x4c\x18", "compressed with lz4", Pipe("lz4 -dc FILE")),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", FROM_7Z),
    (b"LZIP\x01", "compressed with lzip", Pipe("lzip -dc FILE")),
    (b"\x1f\x9d", "compressed with compress", Pipe("uncompress -c FILE")),
    (b"\xff\x06\0\0sNaPpY", "compressed with snappy", Pipe("snzip -dc FILE")),
    (b"Rar!\x1a\x07", "a rar archive", FROM_RAR),
    (b"Obj\x01", "an Avro file", FROM_AVRO),
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
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an Office document", FROM_OFFICE),
    (b"\x89PNG\r\n\x1a\n", "an image", NO_RECORDS),
    (b"\xff\xd8\xff", "an image", NO_RECORDS),
    (b"\x7fELF", "a program", NO_RECORDS),
    (b"\0asm", "a program", NO_RECORDS),
];

/// The same for first bytes that are letters; they count only if the input also has bytes that no text has.
static LETTERS: [(&[u8], &str, Help); 5] = [
    (b"FEA1", "a Feather file", FROM_FEATHER),
    (b"ORC", "an ORC file", FROM_ORC),
    (b"PARE", "an encrypted Parquet file", Say("write it without encryption")),
    (b"GIF8", "an image", NO_RECORDS),
    (b"OggS", "a sound", NO_RECORDS),
];

/// Whether these bytes may be text: none of them is a control character that texts do not have.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    !bytes.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31))
}

/// The container with this beginning and of this name, and how to convert it.
pub(super) fn container(beginning: &[u8], name: &str) -> Option<(&'static str, &'static Help)> {
    let is_zip = beginning.starts_with(b"PK\x03\x04") || beginning.starts_with(b"PK\x05\x06");
    if is_zip && !without_query(name).to_ascii_lowercase().ends_with(".wacz") {
        return Some(zip(beginning, name));
    }
    let letters = if is_text(beginning) { &[][..] } else { &LETTERS };
    let named = MAGIC.iter().chain(letters).find(|(magic, ..)| beginning.starts_with(magic));
    if let Some((_, what, help)) = named {
        return Some((*what, help));
    }
    match beginning {
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..] => {
            Some(("compressed with bzip2", &FROM_BZIP2))
        }
        _ if is_tar(beginning) => Some(("a tar archive", &FROM_TAR)),
        _ => None,
    }
}

/// What a zip archive is, by its name and the names of its first files.
fn zip(beginning: &[u8], name: &str) -> (&'static str, &'static Help) {
    let ends = |ending: &str| name.to_ascii_lowercase().ends_with(ending);
    let office = [".xlsx", ".docx", ".pptx", ".ods", ".odt"];
    if office.into_iter().any(ends)
        || holds_of_zip(beginning, &[b"[Content_Types].xml", b"docProps/", b"xl/", b"word/"])
    {
        ("an Office document", &FROM_OFFICE)
    } else if beginning.starts_with(b"PK\x05\x06") {
        ("an empty zip archive", &NO_RECORDS)
    } else {
        ("a zip archive", &FROM_ZIP)
    }
}

/// Whether the first bytes of a zip archive hold a file whose name begins with one of these.
pub(super) fn holds_of_zip(beginning: &[u8], wanted: &[&[u8]]) -> bool {
    const HEADER: usize = 30;
    let mut rest = beginning;
    let is_zip = beginning.starts_with(b"PK\x03\x04");
    while let Some(at) = rest.windows(4).position(|four| is_zip && four == b"PK\x03\x04") {
        let file = &rest[at..];
        let length = file.get(26..28).map_or(0, |two| usize::from(u16::from_le_bytes([two[0], two[1]])));
        let inner = file.get(HEADER..HEADER + length).unwrap_or_default();
        if wanted.iter().any(|begin| inner.starts_with(begin)) {
            return true;
        }
        rest = &file[4..];
    }
    false
}

/// What a file without text is, by its first bytes.
pub(super) fn binary(beginning: &[u8]) -> Option<String> {
    let (what, _) = container(beginning, "")?;
    Some(format!("it is {what}"))
}

/// Whether it is a Git LFS pointer: a small text that replaces the real file until that is fetched.
pub(super) fn is_pointer(bytes: &[u8]) -> bool {
    bytes.starts_with(b"version https://git-lfs.github.com/spec/")
}
