//! Parquet files made by hand, with arbitrary headers.
//!
//! Columns of byte arrays, one row group, one or more pages each. Counts and lengths are written as given,
//! without checks.

#![expect(clippy::cast_possible_truncation, clippy::cast_possible_wrap, reason = "files of a few KB")]

/// A structure of Thrift's compact protocol.
#[derive(Clone, Default)]
pub(super) struct Fields {
    bytes: Vec<u8>,
    last: u8,
}

impl Fields {
    fn field(mut self, id: u8, kind: u8, value: impl AsRef<[u8]>) -> Self {
        // Fields are in ascending order, and the difference between two ids is at most 15.
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
        self.bytes.extend_from_slice(value.as_ref());
        self
    }

    pub(super) fn int(self, id: u8, value: i64) -> Self {
        self.field(id, if i32::try_from(value).is_ok() { 5 } else { 6 }, folded(value))
    }

    pub(super) fn long(self, id: u8, value: i64) -> Self {
        self.field(id, 6, folded(value))
    }

    pub(super) fn text(self, id: u8, value: &str) -> Self {
        self.field(id, 8, [&number(value.len() as u64)[..], value.as_bytes()].concat())
    }

    /// Bytes whose header claims `says` as their length.
    pub(super) fn lying_text(self, id: u8, says: u64) -> Self {
        self.field(id, 8, number(says))
    }

    pub(super) fn inside(self, id: u8, value: Self) -> Self {
        self.field(id, 12, value.end())
    }

    /// A list of structures whose header claims `says` elements.
    pub(super) fn lying_list(self, id: u8, says: usize, values: &[Self]) -> Self {
        let values: Vec<u8> = values.iter().flat_map(|value| value.clone().end()).collect();
        self.field(id, 9, [&[0xfc][..], &number(says as u64), &values].concat())
    }

    pub(super) fn list(self, id: u8, values: &[Self]) -> Self {
        self.lying_list(id, values.len(), values)
    }

    /// A list of numbers.
    pub(super) fn ints(self, id: u8, values: &[i64]) -> Self {
        let values: Vec<u8> = values.iter().flat_map(|value| folded(*value)).collect();
        self.field(id, 9, [&[u8::try_from(values.len()).expect("a few KB") << 4 | 5][..], &values].concat())
    }

    pub(super) fn texts(self, id: u8, values: &[&str]) -> Self {
        let count = u8::try_from(values.len()).expect("a few KB");
        let text = |value: &&str| [&number(value.len() as u64)[..], value.as_bytes()].concat();
        self.field(id, 9, [&[count << 4 | 8][..], &values.iter().flat_map(text).collect::<Vec<_>>()].concat())
    }

    pub(super) fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}

pub(super) fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn folded(value: i64) -> Vec<u8> {
    number((value << 1 ^ value >> 63).cast_unsigned())
}

pub(super) const PLAIN: i64 = 0;
pub(super) const RLE: i64 = 3;
pub(super) const DELTA_BINARY: i64 = 5;
pub(super) const DELTA_LENGTH: i64 = 6;
pub(super) const DELTA_BYTES: i64 = 7;
pub(super) const BY_DICTIONARY: i64 = 8;
pub(super) const SPLIT: i64 = 9;

/// The header of a data page, version 1.
pub(super) fn data(bytes: i64, stored: usize, values: i64, encoding: i64) -> Vec<u8> {
    let about = Fields::default().int(1, values).int(2, encoding).int(3, RLE).int(4, RLE);
    Fields::default().int(1, 0).int(2, bytes).int(3, stored as i64).inside(5, about).end()
}

/// An uncompressed data page, version 1.
pub(super) fn page(values: i64, encoding: i64, content: &[u8]) -> Vec<u8> {
    [&data(content.len() as i64, content.len(), values, encoding)[..], content].concat()
}

/// An uncompressed data page of this version, with this checksum beside its bytes.
pub(super) fn checked(version: i64, values: i64, content: &[u8], checksum: u32) -> Vec<u8> {
    let size = content.len() as i64;
    let head = Fields::default().int(1, if version == 1 { 0 } else { 3 }).int(2, size).int(3, size);
    let head = head.int(4, i64::from(checksum.cast_signed()));
    let head = if version == 1 {
        head.inside(5, Fields::default().int(1, values).int(2, PLAIN).int(3, RLE).int(4, RLE))
    } else {
        let about = Fields::default().int(1, values).int(2, 0).int(3, values).int(4, PLAIN);
        head.inside(8, about.int(5, 0).int(6, 0))
    };
    [&head.end()[..], content].concat()
}

/// A dictionary page whose header claims `values` values.
pub(super) fn dictionary(values: i64, content: &[u8]) -> Vec<u8> {
    let about = Fields::default().int(1, values).int(2, PLAIN);
    let size = content.len() as i64;
    [&Fields::default().int(1, 2).int(2, size).int(3, size).inside(7, about).end()[..], content].concat()
}

/// Plain encoding: each value with its length before it.
pub(super) fn plain(values: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let value =
        |value: &[u8]| [&u32::try_from(value.len()).expect("a few KB").to_le_bytes()[..], value].concat();
    values.iter().flat_map(|bytes| value(bytes.as_ref())).collect()
}

/// Delta-encoded lengths: the header claims `says` values. The first value is `first`, all in `blocks` blocks
/// after it are `rest`.
pub(super) fn lengths(says: u64, first: i64, rest: i64, blocks: usize) -> Vec<u8> {
    let head = [number(128), number(4), number(says), folded(first)].concat();
    // The second value differs from the first; all later ones equal the second.
    let mut bytes = head;
    for block in 0..blocks {
        if block == 0 && first != rest {
            // Only the first difference is not 0: all values of the block are written with 32 bits above the
            // minimum.
            let least = (rest - first).min(0);
            bytes.extend(folded(least));
            bytes.extend([32, 32, 32, 32]);
            let difference = |place: usize| (if place == 0 { rest - first } else { 0 }) - least;
            bytes.extend(
                (0..128).flat_map(|place| u32::try_from(difference(place)).expect("a few KB").to_le_bytes()),
            );
        } else {
            bytes.extend([0, 0, 0, 0, 0]);
        }
    }
    bytes
}

/// A zstd frame that expands to `begin` followed by `run` equal bytes: blocks of 128 KiB that take four bytes
/// each.
pub(super) fn zstd_run(begin: &[u8], run: usize) -> Vec<u8> {
    assert!(run.is_multiple_of(128 << 10));
    let blocks = run / (128 << 10);
    // A header without checksum and size, with a window of 128 KiB; then a raw block.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 7 << 3];
    frame.extend_from_slice(&u32::try_from(begin.len() << 3).expect("a few KB").to_le_bytes()[..3]);
    frame.extend_from_slice(begin);
    for block in 0..blocks {
        let head = (128_u32 << 10) << 3 | 1 << 1 | u32::from(block + 1 == blocks);
        frame.extend_from_slice(&head.to_le_bytes()[..3]);
        frame.push(b'x');
    }
    frame
}

/// A column: its schema element, its path, its codec and its pages.
pub(super) struct Column {
    pub(super) schema: Vec<Fields>,
    pub(super) path: Vec<&'static str>,
    pub(super) kind: i64,
    pub(super) codec: i64,
    pub(super) pages: Vec<u8>,
}

/// A column of required byte arrays.
pub(super) fn bytes(name: &'static str, codec: i64, pages: Vec<u8>) -> Column {
    let schema = vec![Fields::default().int(1, 6).int(3, 0).text(4, name)];
    Column { schema, path: vec![name], kind: 6, codec, pages }
}

/// A file with these columns and `rows` rows.
pub(super) fn file(rows: i64, columns: &[Column]) -> Vec<u8> {
    file_with(rows, columns, |footer, schema, groups| footer.list(2, &schema).long(3, rows).list(4, &groups))
}

/// The same; `describe` builds the metadata.
pub(super) fn file_with(
    rows: i64,
    columns: &[Column],
    describe: impl FnOnce(Fields, Vec<Fields>, Vec<Fields>) -> Fields,
) -> Vec<u8> {
    let mut file = b"PAR1".to_vec();
    let (mut schema, mut chunks) = (Vec::new(), Vec::new());
    let top = columns.len() as i64;
    schema.push(Fields::default().text(4, "m").int(5, top));
    for column in columns {
        let at = file.len() as i64;
        file.extend_from_slice(&column.pages);
        schema.extend(column.schema.iter().cloned());
        let about =
            Fields::default().int(1, column.kind).ints(2, &[0]).texts(3, &column.path).int(4, column.codec);
        let size = column.pages.len() as i64;
        let about = about.long(5, rows).long(6, size).long(7, size).long(9, at);
        chunks.push(Fields::default().long(2, 0).inside(3, about));
    }
    let group = Fields::default().list(1, &chunks).long(2, file.len() as i64).long(3, rows);
    let footer = describe(Fields::default().int(1, 1), schema, vec![group]).end();
    file.extend_from_slice(&footer);
    file.extend_from_slice(&u32::try_from(footer.len()).expect("a few KB").to_le_bytes());
    file.extend_from_slice(b"PAR1");
    file
}
