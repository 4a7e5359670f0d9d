//! Reads Thrift's compact protocol, as far as Parquet's headers need it. Fields are read or skipped, and
//! nothing is allocated.
//!
//! Lengths and counts are checked against the bytes that are left before they are used. Every element of a
//! list takes at least one byte.

use std::io::{self, Read};

use parquet::errors::{ParquetError, Result};

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldType {
    Bool(bool),
    Byte,
    Int,
    Double,
    Binary,
    List,
    Map,
    Struct,
    Uuid,
}

/// Maximum depth of nested structures.
const MAX_DEPTH: u32 = 32;

/// Bytes that are read as fields.
pub(super) struct Compact<R> {
    input: R,
    /// Maximum number of bytes left.
    left: u64,
    read: u64,
}

pub(super) fn wrong(what: impl Into<String>) -> ParquetError {
    ParquetError::General(what.into())
}

impl<R: Read> Compact<R> {
    pub(super) fn new(input: R, bytes: u64) -> Self {
        Self { input, left: bytes, read: 0 }
    }

    /// Number of bytes read so far.
    pub(super) const fn read(&self) -> u64 {
        self.read
    }

    fn take(&mut self, bytes: u64) -> Result<()> {
        self.left = self
            .left
            .checked_sub(bytes)
            .ok_or_else(|| wrong(format!("a header says {bytes} bytes where {} are left", self.left)))?;
        self.read += bytes;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8> {
        self.take(1)?;
        let mut byte = [0];
        self.input.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn number(&mut self) -> Result<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(wrong("a number of a header takes more than 10 bytes"))
    }

    /// A signed number.
    pub(super) fn int(&mut self) -> Result<i64> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// The next field of a structure, after the field with the number `last`; `None` at the end.
    pub(super) fn field(&mut self, last: i64) -> Result<Option<(i64, FieldType)>> {
        let head = self.byte()?;
        if head & 0xf == 0 {
            return Ok(None);
        }
        let kind = kind_of(head & 0xf)?;
        let step = i64::from(head >> 4);
        Ok(Some((if step == 0 { self.int()? } else { last + step }, kind)))
    }

    /// The type and number of elements of a list; an error if fewer than `least` bytes for each element are
    /// left.
    pub(super) fn list(&mut self, least: u64) -> Result<(FieldType, u64)> {
        let head = self.byte()?;
        if head == 0 {
            return Ok((FieldType::Byte, 0));
        }
        let count = if head >> 4 == 15 { self.number()? } else { u64::from(head >> 4) };
        if count.checked_mul(least).is_none_or(|bytes| bytes > self.left) {
            return Err(wrong(format!("a header says {count} elements where {} bytes are left", self.left)));
        }
        Ok((kind_of(head & 0xf)?, count))
    }

    /// Skips bytes with a length before them; returns the length.
    pub(super) fn skip_binary(&mut self) -> Result<u64> {
        let bytes = self.number()?;
        self.skip_bytes(bytes)?;
        Ok(bytes)
    }

    fn skip_bytes(&mut self, bytes: u64) -> Result<()> {
        self.take(bytes)?;
        let skipped = io::copy(&mut self.input.by_ref().take(bytes), &mut io::sink())?;
        if skipped < bytes { Err(wrong("a header ends early")) } else { Ok(()) }
    }

    /// Skips a value of this type.
    pub(super) fn skip(&mut self, kind: FieldType) -> Result<()> {
        self.skip_within(kind, MAX_DEPTH)
    }

    fn skip_within(&mut self, kind: FieldType, depth: u32) -> Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(|| wrong("a header is nested too deeply"))?;
        match kind {
            // The value is in the field's header.
            FieldType::Bool(_) => {}
            FieldType::Byte => self.skip_bytes(1)?,
            FieldType::Int => drop(self.number()?),
            FieldType::Double => self.skip_bytes(8)?,
            FieldType::Uuid => self.skip_bytes(16)?,
            FieldType::Binary => drop(self.skip_binary()?),
            FieldType::Struct => {
                while let Some((_, inner)) = self.field(0)? {
                    self.skip_within(inner, depth)?;
                }
            }
            FieldType::List => {
                let (element, count) = self.list(1)?;
                for _ in 0..count {
                    self.skip_element(element, depth)?;
                }
            }
            FieldType::Map => {
                let count = self.number()?;
                if count > self.left {
                    return Err(wrong(format!(
                        "a header says {count} entries where {} bytes are left",
                        self.left
                    )));
                }
                if count > 0 {
                    let kinds = self.byte()?;
                    let kinds = [kind_of(kinds >> 4)?, kind_of(kinds & 0xf)?];
                    for element in (0..count).flat_map(|_| kinds) {
                        self.skip_element(element, depth)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A boolean in a list takes a byte.
    fn skip_element(&mut self, kind: FieldType, depth: u32) -> Result<()> {
        match kind {
            FieldType::Bool(_) => self.skip_bytes(1),
            kind => self.skip_within(kind, depth),
        }
    }
}

fn kind_of(number: u8) -> Result<FieldType> {
    Ok(match number {
        1 => FieldType::Bool(true),
        2 => FieldType::Bool(false),
        3 => FieldType::Byte,
        4..=6 => FieldType::Int,
        7 => FieldType::Double,
        8 => FieldType::Binary,
        9 | 10 => FieldType::List,
        11 => FieldType::Map,
        12 => FieldType::Struct,
        13 => FieldType::Uuid,
        _ => return Err(wrong(format!("a header has a field of the unknown kind {number}"))),
    })
}
