//! Reads the pages of one column of a row group. Each page is checked against the bytes in the file before
//! memory is allocated for it.
//!
//! The header with checked counts and sizes -> the page, decompressed to no more than its stated size -> the
//! checked counts inside it -> the `parquet` crate, which allocates memory for those counts.
//!
//! The columns of a row group together have at most [`MAX_HELD`] bytes in memory. A step releases the pages
//! of earlier steps. If a row is a single value, a step ends before its pages exceed the column's share. So
//! long texts, each a page of its own, are read a few at a time, and many such columns fit in memory
//! together.

use std::io::{BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use flate2::Crc;
use parquet::basic::{Encoding, Type};
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::ColumnDescPtr;

use super::super::super::storage::FileRange;
use super::bytes::{Chunks, STEP};
use super::codec::PageCodec;
use super::lengths;
use super::thrift::{Compact, FieldType, wrong};

/// Maximum of bytes in memory for the columns of a row group: pages, and the crate's structures for them.
pub(super) const MAX_HELD: usize = 256 << 20;

/// Maximum of page bytes in one step of a column, except for a single longer page.
const STEP_BYTES: usize = 32 << 20;

/// Bytes that the crate takes for each value of a dictionary; about the same for each level of a list.
const PER_VALUE: usize = 32;

/// Signal from the reader of a column to the reader of its pages.
#[derive(Debug, Default)]
pub(super) struct StepSignal {
    /// Set when the column has released what it read before.
    pub(super) is_new: AtomicBool,
}

/// Counts the bytes in memory for the columns of a row group.
#[derive(Clone, Debug)]
pub(super) struct HeldBytes {
    bytes: Arc<AtomicUsize>,
    /// Maximum of page bytes in one step of each column, except for a single longer page.
    share: usize,
}

impl HeldBytes {
    /// No bytes yet, shared by this number of columns. Their shares leave half of [`MAX_HELD`] for longer
    /// pages and for dictionaries.
    pub(super) fn among(columns: usize) -> Self {
        Self { bytes: Arc::default(), share: STEP_BYTES.min(MAX_HELD / 2 / columns.max(1)) }
    }
}

/// The header of a page.
#[derive(Clone, Copy, Debug, Default)]
struct PageHeader {
    kind: i64,
    /// Decompressed size of the page, and its stored size, in bytes.
    bytes: usize,
    stored: usize,
    values: u32,
    nulls: u32,
    rows: u32,
    encoding: i64,
    /// Version 1: the encodings of the levels. Version 2: the sizes of the levels in bytes.
    defs: i64,
    reps: i64,
    is_plain: bool,
    /// The CRC-32 of the stored bytes, if the file has it.
    checksum: Option<u32>,
}

const DATA: i64 = 0;
const INDEX: i64 = 1;
const DICTIONARY: i64 = 2;
const DATA_2: i64 = 3;

/// Reads the pages of one column.
pub(super) struct Pages {
    file: Arc<Chunks>,
    about: ColumnDescPtr,
    codec: PageCodec,
    /// The offset of the next byte, and the number of bytes left.
    at: u64,
    left: u64,
    /// Rows of the group that have not been in a page.
    rows: u64,
    next: Option<PageHeader>,
    step: Arc<StepSignal>,
    held: HeldBytes,
    /// Bytes in memory for the pages of this step, and for the last of them.
    pages: usize,
    last: usize,
    /// The previous step ended early.
    is_paused: bool,
}

impl Pages {
    pub(super) fn open(
        file: &Arc<Chunks>,
        column: &ColumnChunkMetaData,
        rows: u64,
        held: &HeldBytes,
        step: &Arc<StepSignal>,
    ) -> Result<Self> {
        let (at, left) = column.byte_range();
        Ok(Self {
            file: Arc::clone(file),
            about: column.column_descr_ptr(),
            codec: PageCodec::new(column.compression_codec())?,
            at,
            left,
            rows,
            next: None,
            step: Arc::clone(step),
            held: held.clone(),
            pages: 0,
            last: 0,
            is_paused: false,
        })
    }

    fn is_list(&self) -> bool {
        self.about.max_rep_level() > 0
    }

    /// The header of the next page that is not empty; `None` after the last page.
    fn peek(&mut self) -> Result<Option<PageHeader>> {
        while self.next.is_none() && self.left > 0 {
            let piece = FileRange::from_offset(&self.file.0, self.at);
            let mut fields = Compact::new(BufReader::with_capacity(4096, piece), self.left);
            let header = header(&mut fields)?;
            self.at += fields.read();
            self.left -= fields.read();
            if header.stored as u64 > self.left {
                return Err(wrong(format!(
                    "a page of {} bytes where its column has {}",
                    header.stored, self.left
                )));
            }
            if header.kind == INDEX || header.kind != DICTIONARY && header.values == 0 {
                self.pass(header);
            } else {
                self.check(&header)?;
                self.next = Some(header);
            }
        }
        Ok(self.next)
    }

    fn pass(&mut self, header: PageHeader) {
        self.at += header.stored as u64;
        self.left -= header.stored as u64;
        self.next = None;
    }

    /// Checks that need only the header.
    fn check(&self, header: &PageHeader) -> Result<()> {
        let values = header.values as usize;
        if header.bytes.max(header.stored) > MAX_HELD {
            return Err(wrong(format!(
                "a page of {} bytes, which is more than {MAX_HELD}: write it in smaller pages",
                header.bytes.max(header.stored)
            )));
        }
        if header.kind == DICTIONARY {
            let least = self.least_bits().max(1);
            if values.saturating_mul(least) / 8 > header.bytes {
                return Err(wrong(format!("a dictionary of {values} values in {} bytes", header.bytes)));
            }
        } else if !self.is_list() && u64::from(header.values) > self.rows {
            return Err(wrong(format!("a page of {values} values where its row group has {}", self.rows)));
        }
        if header.kind == DATA_2 {
            let levels = usize::try_from(header.reps.saturating_add(header.defs)).ok();
            let sound = header.reps >= 0 && header.defs >= 0 && header.nulls <= header.values;
            if !sound || levels.is_none_or(|levels| levels > header.bytes.min(header.stored)) {
                return Err(wrong(format!(
                    "a page of {} bytes says levels that are not in it",
                    header.bytes
                )));
            }
        }
        Ok(())
    }

    /// Minimum size of a value in plain encoding, in bits.
    fn least_bits(&self) -> usize {
        match self.about.physical_type() {
            Type::BOOLEAN => 1,
            Type::INT32 | Type::FLOAT | Type::BYTE_ARRAY => 32,
            Type::INT64 | Type::DOUBLE => 64,
            Type::INT96 => 96,
            Type::FIXED_LEN_BYTE_ARRAY => self.width().saturating_mul(8),
        }
    }

    /// Size of each value of a fixed-length column, in bytes.
    fn width(&self) -> usize {
        usize::try_from(self.about.type_length()).unwrap_or(0)
    }

    /// Whether the next page would make the step exceed its share. Releases what earlier steps have read.
    fn is_enough(&mut self, header: &PageHeader) -> bool {
        if self.step.is_new.swap(false, Ordering::Relaxed) {
            // Values of this step may be in the last page, unless the previous step ended early before a
            // page.
            self.release(if self.is_paused || self.is_list() { 0 } else { self.last });
        }
        let is_more = self.pages > 0 && self.pages.saturating_add(header.bytes) > self.held.share;
        self.is_paused = is_more && !self.is_paused && !self.is_list();
        self.is_paused
    }

    /// Releases the pages, except for this number of bytes.
    fn release(&mut self, but: usize) {
        self.held.bytes.fetch_sub(self.pages - but, Ordering::Relaxed);
        self.pages = but;
    }

    fn hold(&mut self, bytes: usize, is_dictionary: bool) -> Result<()> {
        let held = self.held.bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        // A dictionary stays in memory to the end of the column.
        if !is_dictionary {
            self.pages += bytes;
            self.last += bytes;
        }
        if held > MAX_HELD {
            return Err(wrong(format!(
                "pages that are read together take {held} bytes, which is more than {MAX_HELD}: write it in \
                 smaller pages"
            )));
        }
        Ok(())
    }

    /// Reads the page after this header.
    fn read(&mut self, header: PageHeader) -> Result<Page> {
        let is_dictionary = header.kind == DICTIONARY;
        let values = header.values as usize;
        self.last = 0;
        self.hold(header.bytes, is_dictionary)?;
        if is_dictionary {
            self.hold(values.saturating_mul(PER_VALUE), true)?;
        } else if self.is_list() {
            self.hold(values.saturating_mul(2 * PER_VALUE), false)?;
        }
        let stored = self.file.bytes(self.at, header.stored)?;
        self.pass(header);
        if let Some(expected) = header.checksum {
            let mut found = Crc::new();
            found.update(&stored);
            if found.sum() != expected {
                return Err(wrong(format!(
                    "a page whose checksum is {:08x}, and its bytes have {expected:08x} written beside them: \
                     the file is damaged",
                    found.sum()
                )));
            }
        }
        let buf = if header.kind == DATA_2 {
            // The levels are not compressed.
            let levels = usize::try_from(header.reps + header.defs)?;
            if header.is_plain {
                stored
            } else {
                let rest = self.codec.decompress(stored.slice(levels..), header.bytes - levels)?;
                if levels == 0 { rest } else { [&stored[..levels], &rest].concat().into() }
            }
        } else {
            self.codec.decompress(stored, header.bytes)?
        };
        let encoding = encoding(header.encoding)?;
        if is_dictionary {
            let num_values = header.values;
            return Ok(Page::DictionaryPage { buf, num_values, encoding, is_sorted: false });
        }
        self.rows = self.rows.saturating_sub(u64::from(header.values));
        let values_at = self.values_at(&header, &buf)?;
        self.hold_inside(encoding, &buf[values_at..], values)?;
        let (num_values, statistics) = (header.values, None);
        Ok(if header.kind == DATA {
            let [def_level_encoding, rep_level_encoding] =
                [self::encoding(header.defs)?, self::encoding(header.reps)?];
            Page::DataPage { buf, num_values, encoding, def_level_encoding, rep_level_encoding, statistics }
        } else {
            Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls: header.nulls,
                num_rows: header.rows,
                def_levels_byte_len: u32::try_from(header.defs)?,
                rep_levels_byte_len: u32::try_from(header.reps)?,
                is_compressed: !header.is_plain,
                statistics,
            }
        })
    }

    /// The offset of the values in a page, after its levels.
    fn values_at(&self, header: &PageHeader, page: &[u8]) -> Result<usize> {
        if header.kind == DATA_2 {
            return Ok(usize::try_from(header.reps + header.defs)?);
        }
        let mut at = 0;
        let levels = [(self.about.max_rep_level(), header.reps), (self.about.max_def_level(), header.defs)];
        for (most, encoded) in levels.into_iter().filter(|(most, _)| *most > 0) {
            let rest = page.get(at..).unwrap_or_default();
            at = if encoding(encoded)? == Encoding::RLE {
                let bytes = rest.first_chunk().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes));
                at.saturating_add(4).saturating_add(bytes as usize)
            } else {
                let bits = (16 - most.leading_zeros()) as usize;
                at.saturating_add((header.values as usize).saturating_mul(bits).div_ceil(8))
            };
        }
        if at > page.len() {
            return Err(wrong(format!("a page of {} bytes says levels that are not in it", page.len())));
        }
        Ok(at)
    }

    /// Counts the memory that the crate takes for the values of a page, before it returns the first of them
    /// or during a step.
    fn hold_inside(&mut self, encoding: Encoding, data: &[u8], values: usize) -> Result<()> {
        let fixed = self.about.physical_type() == Type::FIXED_LEN_BYTE_ARRAY;
        match encoding {
            Encoding::PLAIN if self.about.max_def_level() == 0 => {
                if values.saturating_mul(self.least_bits()) / 8 > data.len() {
                    return Err(wrong(format!("a page of {values} values in {} bytes", data.len())));
                }
                Ok(())
            }
            Encoding::DELTA_BINARY_PACKED => lengths::count(data, values).map(drop),
            Encoding::DELTA_LENGTH_BYTE_ARRAY => {
                let count = lengths::count(data, values)?;
                self.hold(count.saturating_mul(4), false)
            }
            Encoding::DELTA_BYTE_ARRAY => {
                let count = lengths::count(data, values)?;
                self.hold(count.saturating_mul(12), false)?;
                let written = lengths::written_out(data, values, self.is_list())?;
                self.hold(usize::try_from(written).unwrap_or(usize::MAX / 2), false)
            }
            Encoding::BYTE_STREAM_SPLIT if fixed => {
                self.hold(values.min(STEP).saturating_mul(self.width()), false)
            }
            _ => Ok(()),
        }
    }
}

/// Reads the header of a page.
fn header(fields: &mut Compact<impl Read>) -> Result<PageHeader> {
    let mut header = PageHeader { kind: -1, ..PageHeader::default() };
    let (mut bytes, mut stored, mut about, mut last) = (-1, -1, false, 0);
    while let Some((field, kind)) = fields.field(last)? {
        last = field;
        match (field, kind) {
            (1, FieldType::Int) => header.kind = fields.int()?,
            (2, FieldType::Int) => bytes = fields.int()?,
            (3, FieldType::Int) => stored = fields.int()?,
            // Signed in the file; other numbers are no checksum.
            (4, FieldType::Int) => {
                header.checksum = i32::try_from(fields.int()?).ok().map(i32::cast_unsigned);
            }
            (5, FieldType::Struct) if header.kind == DATA => {
                about = inside(fields, &mut header, [1, 0, 0, 2, 3, 4])?;
            }
            (7, FieldType::Struct) if header.kind == DICTIONARY => {
                about = inside(fields, &mut header, [1, 0, 0, 2, 0, 0])?;
            }
            (8, FieldType::Struct) if header.kind == DATA_2 => {
                about = inside(fields, &mut header, [1, 2, 3, 4, 5, 6])?;
            }
            _ => fields.skip(kind)?,
        }
    }
    let size = |size: i64| i32::try_from(size).ok().and_then(|size| usize::try_from(size).ok());
    let (Some(bytes), Some(stored)) = (size(bytes), size(stored)) else {
        return Err(wrong(format!("a page of {bytes} bytes, stored as {stored}")));
    };
    if !about && header.kind != INDEX {
        return Err(wrong(format!("a page of the kind {} without its header", header.kind)));
    }
    Ok(PageHeader { bytes, stored, ..header })
}

/// Reads the part of a header that depends on the kind of page. `numbers` are the field numbers of values,
/// nulls, rows, encoding and the two kinds of levels; 0 stands for none. Returns true.
fn inside(fields: &mut Compact<impl Read>, header: &mut PageHeader, numbers: [i64; 6]) -> Result<bool> {
    let mut last = 0;
    while let Some((field, kind)) = fields.field(last)? {
        last = field;
        let place = numbers.iter().position(|number| *number == field);
        match (place, kind) {
            (Some(place), FieldType::Int) => {
                let number = fields.int()?;
                let count = || u32::try_from(number).ok().filter(|count| i32::try_from(*count).is_ok());
                let count = || count().ok_or_else(|| wrong(format!("a page says {number} values")));
                match place {
                    0 => header.values = count()?,
                    1 => header.nulls = count()?,
                    2 => header.rows = count()?,
                    3 => header.encoding = number,
                    4 => header.defs = number,
                    _ => header.reps = number,
                }
            }
            // Only in pages of version 2.
            (_, FieldType::Bool(is_compressed)) if field == 7 => header.is_plain = !is_compressed,
            _ => fields.skip(kind)?,
        }
    }
    Ok(true)
}

fn encoding(number: i64) -> Result<Encoding> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        #[expect(deprecated, reason = "old files have it")]
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        other => return Err(ParquetError::NYI(format!("a page of the encoding {other}, which is not read"))),
    })
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        match self.peek()? {
            Some(header) if self.is_enough(&header) => Ok(None),
            Some(header) => self.read(header).map(Some),
            None => Ok(None),
        }
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        Ok(self.peek()?.map(|header| PageMetadata {
            num_rows: (header.kind == DATA_2).then_some(header.rows as usize),
            num_levels: (header.kind != DICTIONARY).then_some(header.values as usize),
            is_dict: header.kind == DICTIONARY,
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        if let Some(header) = self.peek()? {
            self.pass(header);
        }
        Ok(())
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        Ok(self.peek()?.is_none_or(|header| header.kind == DATA_2))
    }
}
