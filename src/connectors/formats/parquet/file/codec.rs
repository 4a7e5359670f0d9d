//! Decompresses pages, to no more bytes than their headers state.
//!
//! The decompression of the `parquet` crate is unbounded for gzip and LZ4 frames.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::CompressionCodec;
use parquet::errors::{ParquetError, Result};
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use super::thrift::wrong;

/// The compression of the pages of a column.
pub(super) enum PageCodec {
    Plain,
    Snappy(snap::raw::Decoder),
    Gzip,
    Zstd(Decompressor<'static>),
    /// LZ4 with Hadoop's framing, in LZ4 frames, or raw.
    Lz4,
    Lz4Raw,
}

impl PageCodec {
    /// Whether this compression is supported.
    pub(super) fn is_read(codec: CompressionCodec) -> bool {
        !matches!(codec, CompressionCodec::BROTLI | CompressionCodec::LZO)
    }

    pub(super) fn new(codec: CompressionCodec) -> Result<Self> {
        Ok(match codec {
            CompressionCodec::UNCOMPRESSED => Self::Plain,
            CompressionCodec::SNAPPY => Self::Snappy(snap::raw::Decoder::new()),
            CompressionCodec::GZIP => Self::Gzip,
            CompressionCodec::ZSTD => Self::Zstd(Decompressor::new()?),
            CompressionCodec::LZ4 => Self::Lz4,
            CompressionCodec::LZ4_RAW => Self::Lz4Raw,
            CompressionCodec::BROTLI | CompressionCodec::LZO => {
                return Err(ParquetError::NYI(format!("it is compressed with {codec}, which is not read")));
            }
        })
    }

    /// Decompresses a page to exactly `bytes` bytes.
    pub(super) fn decompress(&mut self, packed: Bytes, bytes: usize) -> Result<Bytes> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let page = match self {
            Self::Plain => packed,
            Self::Snappy(decoder) => {
                let stated = snap::raw::decompress_len(&packed).map_err(io::Error::from)?;
                agree(stated, bytes)?;
                let mut page = vec![0; bytes];
                let found = decoder.decompress(&packed, &mut page).map_err(io::Error::from)?;
                agree(found, bytes)?;
                page.into()
            }
            Self::Gzip => whole(MultiGzDecoder::new(&packed[..]), bytes)?.into(),
            Self::Zstd(decoder) => {
                if let Ok(Some(stated)) = get_frame_content_size(&packed)
                    && stated > bytes as u64
                {
                    return Err(wrong(format!("a page of {bytes} bytes holds {stated}")));
                }
                decoder.decompress(&packed, bytes)?.into()
            }
            Self::Lz4 => hadoop(&packed, bytes)
                .or_else(|_| whole(lz4_flex::frame::FrameDecoder::new(&packed[..]), bytes))
                .or_else(|_| raw(&packed, bytes))?
                .into(),
            Self::Lz4Raw => raw(&packed, bytes)?.into(),
        };
        agree(page.len(), bytes)?;
        Ok(page)
    }
}

fn agree(found: usize, bytes: usize) -> Result<()> {
    if found == bytes { Ok(()) } else { Err(wrong(format!("a page of {bytes} bytes has {found}"))) }
}

/// The content of a stream, read to at most one byte more than it should have.
fn whole(stream: impl Read, bytes: usize) -> Result<Vec<u8>> {
    let mut page = Vec::new();
    stream.take(bytes as u64 + 1).read_to_end(&mut page)?;
    agree(page.len(), bytes)?;
    Ok(page)
}

fn raw(packed: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut page = vec![0; bytes];
    let found =
        lz4_flex::block::decompress_into(packed, &mut page).map_err(|error| wrong(error.to_string()))?;
    agree(found, bytes)?;
    Ok(page)
}

/// Decodes Hadoop's framing: before each block are its decompressed and its compressed size, each a
/// big-endian number of four bytes.
fn hadoop(mut packed: &[u8], bytes: usize) -> Result<Vec<u8>> {
    let mut page = vec![0; bytes];
    let mut at = 0;
    let no_blocks = || wrong("no blocks of Hadoop's LZ4");
    while let Some((sizes, rest)) = packed.split_first_chunk::<8>() {
        let [holds, takes] = [&sizes[..4], &sizes[4..]]
            .map(|size| size.iter().fold(0_usize, |size, byte| size << 8 | usize::from(*byte)));
        let (block, rest) = rest.split_at_checked(takes).ok_or_else(no_blocks)?;
        let out = page.get_mut(at..).and_then(|out| out.get_mut(..holds)).ok_or_else(no_blocks)?;
        let found = lz4_flex::block::decompress_into(block, out).map_err(|error| wrong(error.to_string()))?;
        agree(found, holds)?;
        at += found;
        packed = rest;
    }
    if !packed.is_empty() {
        return Err(no_blocks());
    }
    agree(at, bytes)?;
    Ok(page)
}
