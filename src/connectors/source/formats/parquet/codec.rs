//! Pages as they were before they were compressed, and never more bytes than their headers say.
//!
//! The crate's own decompression takes whatever gzip and LZ4 frames hold.

use std::io::{self, Read};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::CompressionCodec;
use parquet::errors::{ParquetError, Result};
use zstd::bulk::Decompressor;
use zstd::zstd_safe::get_frame_content_size;

use super::thrift::wrong;

/// How the pages of a column are compressed.
pub(super) enum Codec {
    Plain,
    Snappy(snap::raw::Decoder),
    Gzip,
    Zstd(Decompressor<'static>),
    /// Framed as Hadoop does, as LZ4 does, or not at all.
    Lz4,
    Lz4Raw,
}

impl Codec {
    /// Whether pages that are compressed so are read.
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

    /// A page of so many bytes.
    pub(super) fn decompress(&mut self, packed: Bytes, bytes: usize) -> Result<Bytes> {
        if bytes == 0 {
            return Ok(Bytes::new());
        }
        let page = match self {
            Self::Plain => packed,
            Self::Snappy(decoder) => {
                let said = snap::raw::decompress_len(&packed).map_err(io::Error::from)?;
                agree(said, bytes)?;
                let mut page = vec![0; bytes];
                let found = decoder.decompress(&packed, &mut page).map_err(io::Error::from)?;
                agree(found, bytes)?;
                page.into()
            }
            Self::Gzip => whole(MultiGzDecoder::new(&packed[..]), bytes)?.into(),
            Self::Zstd(decoder) => {
                if let Ok(Some(said)) = get_frame_content_size(&packed)
                    && said > bytes as u64
                {
                    return Err(wrong(format!("a page of {bytes} bytes holds {said}")));
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

/// What a stream holds, and at most a byte more than it should.
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

/// Blocks with the sizes before them: what they hold, and what they take, each of four bytes with the highest
/// first.
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
