//! Deletion vectors: the numbers of deleted rows of a file.
//!
//! ```text
//! in a file, at an offset:   size u32 BE | data | CRC-32 of the data u32 BE
//! data:                      1681511377 u32 LE | 64-bit Roaring bitmap
//! in the log itself:         data, in Z85
//! ```

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use roaring::RoaringTreemap;

use super::actions::DeletionVector;
use super::paths::path_of;
use crate::formats::DeletedRows;

const MAGIC: u32 = 1_681_511_377;

/// The digits of Z85, by their values.
const DIGITS: &[u8] =
    b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

/// Characters of Z85 that are a UUID.
const UUID: usize = 20;

/// The deleted rows of a file of the table in this folder.
pub(super) fn read(table: &Path, of: &DeletionVector) -> Result<DeletedRows, String> {
    let failed = |what: String| format!("its deletion vector {} cannot be read: {what}", of.id());
    let data = match &*of.storage_type {
        "i" => z85(&of.path_or_inline_dv).ok_or_else(|| failed("it is no Z85".to_owned()))?,
        "u" | "p" => {
            let path = match &*of.storage_type {
                "u" => beside(table, &of.path_or_inline_dv),
                _ => path_of(table, &of.path_or_inline_dv).ok(),
            };
            let path = path.ok_or_else(|| failed("no file of this disk has its name".to_owned()))?;
            stored(&path, of).map_err(|what| failed(format!("\"{}\": {what}", path.display())))?
        }
        other => return Err(failed(format!("it is stored as {other:?}, which is not known"))),
    };
    let data = data.get(..of.size_in_bytes).ok_or_else(|| failed("it is too short".to_owned()))?;
    let Some((magic, bitmap)) = data.split_first_chunk() else {
        return Err(failed("it is empty".to_owned()));
    };
    if u32::from_le_bytes(*magic) != MAGIC {
        return Err(failed("it is no bitmap of version 1".to_owned()));
    }
    let rows = RoaringTreemap::deserialize_from(bitmap).map_err(|error| failed(error.to_string()))?;
    if rows.len() != of.cardinality {
        return Err(failed(format!("it has {} rows, and the log says {}", rows.len(), of.cardinality)));
    }
    Ok(DeletedRows(rows))
}

/// The file of a vector, by the UUID at the end of its name; before it is the folder, if there is one.
fn beside(table: &Path, named: &str) -> Option<PathBuf> {
    let (folder, uuid) = named.split_at_checked(named.len().checked_sub(UUID)?)?;
    let uuid: [u8; 16] = z85(uuid)?.try_into().ok()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let uuid = [&uuid[..4], &uuid[4..6], &uuid[6..8], &uuid[8..10], &uuid[10..]].map(hex).join("-");
    Some(table.join(folder).join(format!("deletion_vector_{uuid}.bin")))
}

/// The data of a vector in a file.
fn stored(path: &Path, of: &DeletionVector) -> Result<Vec<u8>, String> {
    let mut file = File::open(path).map_err(|error| error.to_string())?;
    let offset = of.offset.ok_or("the log does not say where it is")?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let end = (of.size_in_bytes as u64).saturating_add(8).saturating_add(offset);
    if end > length {
        return Err(format!("it would end at byte {end} of {length}"));
    }
    let mut bytes = vec![0; of.size_in_bytes + 8];
    let read = file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| error.to_string())?;
    let (size, rest) = bytes.split_at(4);
    let (data, sum) = rest.split_at(of.size_in_bytes);
    let number = |digits: &[u8]| digits.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    if number(size) != of.size_in_bytes as u64 {
        return Err(format!("it has {} bytes, and the log says {}", number(size), of.size_in_bytes));
    }
    let mut crc = flate2::Crc::new();
    crc.update(data);
    if u64::from(crc.sum()) != number(sum) {
        return Err("its checksum is wrong".to_owned());
    }
    Ok(data.to_vec())
}

/// Decodes Z85: five characters are four bytes.
fn z85(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 5 * 4);
    for five in text.as_bytes().chunks(5) {
        let mut number = 0_u32;
        for digit in <&[u8; 5]>::try_from(five).ok()? {
            let value = DIGITS.iter().position(|known| known == digit)?;
            number = number.checked_mul(85)?.checked_add(u32::try_from(value).ok()?)?;
        }
        bytes.extend(number.to_be_bytes());
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names are of the protocol, the vector is that of its reference reader.
    #[test]
    fn names_and_bytes_are_those_of_the_protocol() {
        let path = beside(Path::new("t"), "ab^-aqEH.-t@S}K{vb[*k^").unwrap();
        assert_eq!(path, Path::new("t/ab/deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"));
        let inline = DeletionVector {
            storage_type: "i".to_owned(),
            path_or_inline_dv: "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L".to_owned(),
            offset: None,
            size_in_bytes: 44,
            cardinality: 6,
        };
        let rows = read(Path::new("t"), &inline).unwrap();
        assert_eq!(rows.0.iter().collect::<Vec<_>>(), [3, 4, 7, 11, 18, 29]);
        let wrong = DeletionVector { cardinality: 5, ..inline };
        assert!(read(Path::new("t"), &wrong).unwrap_err().ends_with("it has 6 rows, and the log says 5"));
        assert!(z85("1234").is_none() && z85("~~~~~").is_none() && z85("#####").is_none());
    }

    #[test]
    fn a_vector_in_a_file_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        let data = z85("^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L").unwrap();
        let mut crc = flate2::Crc::new();
        crc.update(&data);
        let stored = [&[1][..], &44_u32.to_be_bytes(), &data, &crc.sum().to_be_bytes()].concat();
        let path = folder.path().join("deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin");
        let of = DeletionVector {
            storage_type: "u".to_owned(),
            path_or_inline_dv: "^-aqEH.-t@S}K{vb[*k^".to_owned(),
            offset: Some(1),
            size_in_bytes: 44,
            cardinality: 6,
        };
        let read = |bytes: &[u8], vector: &DeletionVector| {
            std::fs::write(&path, bytes).unwrap();
            super::read(folder.path(), vector)
        };
        assert!(read(&stored, &of).unwrap().has(29) && !read(&stored, &of).unwrap().has(30));
        for at in 0..stored.len() {
            let mut flipped = stored.clone();
            flipped[at] ^= 4;
            assert_eq!(read(&flipped, &of).is_ok(), at == 0, "byte {at}");
            assert!(read(&stored[..at], &of).is_err(), "cut at {at}");
        }
        let url = url::Url::from_file_path(&path).unwrap().to_string();
        let absolute = DeletionVector { storage_type: "p".to_owned(), path_or_inline_dv: url, ..of.clone() };
        assert_eq!(read(&stored, &absolute).unwrap().0.len(), 6);
        for wrong in [
            DeletionVector { size_in_bytes: usize::MAX, ..of.clone() },
            DeletionVector { offset: Some(u64::MAX), ..of.clone() },
            DeletionVector { offset: None, ..of },
        ] {
            assert!(read(&stored, &wrong).is_err(), "{wrong:?}");
        }
    }
}
