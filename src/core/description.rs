//! A description: all settings that determine a result, as named values with a canonical encoding, a
//! fingerprint, and a list of the differences of two descriptions.
//!
//! In: names with values. Out: bytes. The encoding has the fields in ascending order of their names (by
//! bytes). Each field is a name and a value, both as netstrings: the number of bytes in decimal, `:`, the
//! bytes, `,`. The first letter of a value is its type:
//!
//! | | | |
//! |---|---|---|
//! | `n` | a whole number, from 0 to 2^64 - 1 | decimal, without leading zeros |
//! | `r` | a number | the bits of its f64, 16 hexadecimal digits in lower case |
//! | `h` | a hash | 16 hexadecimal digits in lower case |
//! | `t` | text | UTF-8 |
//! | `l` | a list of texts | each as a netstring |
//!
//! ```
//! use dupflow_core::description::Description;
//!
//! let of = |size: u64| Description::new().with("sketch.kind", "fss").with("sketch.size", size);
//! assert_eq!(of(448).encode(), b"11:sketch.kind,4:tfss,11:sketch.size,4:n448,");
//! let differences = of(512).differences(&of(448).encode())?;
//! assert_eq!(differences[0].to_string(), "sketch.size is 448 there and 512 here");
//! # Ok::<(), dupflow_core::description::Malformed>(())
//! ```
//!
//! Invariants: equal descriptions have equal bytes and different ones have different bytes, on every machine
//! and in every release. The encoding does not depend on `Debug` or on a serializer.
//!
//! **Compatibility.** A later version may add fields with new names, and values with new letters; an older
//! program still finds the difference and its name. A field that was added later is written only if its value
//! differs from the behaviour before it was added, so that existing pipelines keep their descriptions. The
//! fields of the first version are always written, also at their defaults, so that a default may change.
//!
//! References: D. J. Bernstein, *Netstrings* (1997).

use std::collections::BTreeMap;
use std::fmt;
use std::str;

use thiserror::Error;

use crate::hash;

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldValue(Vec<u8>);

/// Named values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Description(BTreeMap<String, FieldValue>);

/// A field in which two descriptions differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field's name.
    pub name: String,
    /// The value in the encoded description, formatted; `None` if it does not have the field.
    pub there: Option<String>,
    /// The value in this description, in the same way.
    pub here: Option<String>,
}

/// Error: bytes that are not an encoded description.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no description: {what} at byte {at}")]
pub struct Malformed {
    /// What was expected.
    pub what: &'static str,
    /// Position in bytes, from 0.
    pub at: usize,
}

impl Description {
    /// A description without fields.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    ///
    /// # Panics
    /// If there is a field of this name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<FieldValue>) -> Self {
        let name = name.into();
        assert!(!self.0.contains_key(&name), "{name:?} is described twice");
        self.0.insert(name, value.into());
        self
    }

    /// Adds the fields of another description.
    ///
    /// # Panics
    /// If a name is in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        other.0.into_iter().fold(self, |all, (name, value)| all.with(name, value))
    }

    /// The canonical encoding.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (name, FieldValue(value)) in &self.0 {
            write(name.as_bytes(), &mut bytes);
            write(value, &mut bytes);
        }
        bytes
    }

    /// The fields by name, with their formatted values.
    pub fn fields(&self) -> impl Iterator<Item = (&str, String)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.to_string()))
    }

    /// The texts of a list, in order; none if there is no list of this name.
    pub fn texts(&self, name: &str) -> Vec<String> {
        let mut items = match self.0.get(name).and_then(|FieldValue(value)| value.split_first()) {
            Some((b'l', items)) => items,
            _ => &[],
        };
        let texts = std::iter::from_fn(|| read(&mut items));
        texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    /// Decodes a canonical encoding.
    ///
    /// # Errors
    /// If the bytes are not a result of [`Self::encode`]: truncated, out of order, or not canonical.
    pub fn decode(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut fields = BTreeMap::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let at = bytes.len() - rest.len();
            let malformed = |what| Malformed { what, at };
            let name = read(&mut rest).ok_or(malformed("expected a name"))?;
            let name = str::from_utf8(name).map_err(|_| malformed("expected a name"))?.to_owned();
            let value = read(&mut rest).ok_or(malformed("expected a name and a value"))?.to_vec();
            if fields.last_key_value().is_some_and(|(last, _)| *last >= name) {
                return Err(malformed("expected names in ascending order"));
            }
            fields.insert(name, FieldValue(value));
        }
        Ok(Self(fields))
    }

    /// Stable 64-bit hash of the canonical bytes.
    pub fn fingerprint(&self) -> u64 {
        hash::bytes(0, &self.encode())
    }

    /// The fields in which an encoded description differs from this one, by ascending name.
    ///
    /// # Errors
    /// If the bytes are not an encoded description.
    pub fn differences(&self, encoded: &[u8]) -> Result<Vec<Difference>, Malformed> {
        let other = Self::decode(encoded)?;
        let mut names: Vec<&String> = self.0.keys().chain(other.0.keys()).collect();
        names.sort_unstable();
        names.dedup();
        let said = |by: &Self, name| by.0.get(name).map(ToString::to_string);
        let differ = names.into_iter().filter(|name| self.0.get(*name) != other.0.get(*name));
        Ok(differ
            .map(|name| Difference { name: name.clone(), there: said(&other, name), here: said(self, name) })
            .collect())
    }
}

impl FieldValue {
    /// A hash value.
    pub fn hash(hash: u64) -> Self {
        Self(format!("h{hash:016x}").into())
    }

    /// A list of texts.
    pub fn list<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Self {
        let mut bytes = vec![b'l'];
        texts.into_iter().for_each(|text| write(text.as_ref().as_bytes(), &mut bytes));
        Self(bytes)
    }
}

impl From<u64> for FieldValue {
    fn from(number: u64) -> Self {
        Self(format!("n{number}").into())
    }
}

impl From<usize> for FieldValue {
    fn from(number: usize) -> Self {
        Self::from(number as u64)
    }
}

impl From<u32> for FieldValue {
    fn from(number: u32) -> Self {
        Self::from(u64::from(number))
    }
}

impl From<f64> for FieldValue {
    fn from(number: f64) -> Self {
        Self(format!("r{:016x}", number.to_bits()).into())
    }
}

impl From<&str> for FieldValue {
    fn from(text: &str) -> Self {
        Self(format!("t{text}").into())
    }
}

/// Formatted for people; a value with an unknown letter is written as its bytes.
impl fmt::Display for FieldValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let raw = String::from_utf8_lossy(&self.0);
        let (kind, rest) = raw.split_at_checked(1).unwrap_or(("", &raw));
        let bits = || u64::from_str_radix(rest, 16).ok();
        match (kind, bits()) {
            ("n" | "h", _) => f.write_str(rest),
            ("r", Some(bits)) => write!(f, "{}", f64::from_bits(bits)),
            ("t", _) => write!(f, "{rest:?}"),
            ("l", _) => {
                let mut items = &self.0[1..];
                let texts: Vec<_> =
                    std::iter::from_fn(|| read(&mut items)).map(String::from_utf8_lossy).collect();
                write!(f, "{texts:?}")
            }
            _ => write!(f, "{raw:?}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |said: &Option<String>| said.clone().unwrap_or_else(|| "not set".to_owned());
        write!(f, "{} is {} there and {} here", self.name, said(&self.there), said(&self.here))
    }
}

/// Appends a netstring.
fn write(content: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend(content.len().to_string().bytes());
    bytes.push(b':');
    bytes.extend(content);
    bytes.push(b',');
}

/// Reads a netstring and removes it from the front.
fn read<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let colon = rest.iter().position(|byte| *byte == b':')?;
    let digits = str::from_utf8(&rest[..colon]).ok()?;
    let length: usize = digits.parse().ok()?;
    // Only the canonical form of a number is accepted: no sign, no leading zeros.
    let content = Some(&rest[colon + 1..]).filter(|_| digits == length.to_string())?;
    let (content, after) = content.split_at_checked(length)?;
    *rest = after.strip_prefix(b",")?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Description {
        Description::new()
            .with("threshold", 0.8)
            .with("text.stop_words", FieldValue::list(["of", "thé"]))
            .with("sketch.size", 448_usize)
            .with("idf", FieldValue::hash(0xabc))
            .with("text.shingle", "words:3")
            .with("none", FieldValue::list([""; 0]))
    }

    /// Stored descriptions are compared with these bytes: they must never change.
    #[test]
    fn golden_bytes() {
        let expected = "3:idf,17:h0000000000000abc,4:none,1:l,11:sketch.size,4:n448,12:text.shingle,\
                        8:twords:3,\
                        15:text.stop_words,13:l2:of,4:thé,,9:threshold,17:r3fe999999999999a,";
        assert_eq!(String::from_utf8(example().encode()).unwrap(), expected);
        assert_eq!(example().fingerprint(), hash::bytes(0, expected.as_bytes()));
        assert_eq!(Description::decode(expected.as_bytes()), Ok(example()));
        assert_eq!(Description::new().encode(), b"");
    }

    #[test]
    fn texts_are_those_of_a_list() {
        let texts = |name| example().texts(name);
        assert_eq!(texts("text.stop_words"), ["of", "thé"]);
        assert_eq!((texts("none"), texts("text.shingle"), texts("?")), (vec![], vec![], vec![]));
    }

    #[test]
    fn bytes_that_are_no_description() {
        let bytes = example().encode();
        let whole = (0..bytes.len()).filter(|end| Description::decode(&bytes[..*end]).is_ok()).count();
        assert_eq!(whole, 6, "cut after a field, a description is one of fewer fields");
        for wrong in [
            "1:a",
            "1:a,",
            "1:a,2:n",
            "01:a,2:n1,",
            "+1:a,2:n1,",
            "1:a,2:n1;",
            "1:b,2:n1,1:a,2:n1,",
            "1:a,2:n1,1:a,2:n1,",
            "99999999999999999999:a,",
            ":,",
            "a",
        ] {
            assert!(Description::decode(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let error = Description::decode(b"1:a,2:n1,1:a,2:n1,").unwrap_err();
        assert_eq!(error.to_string(), "no description: expected names in ascending order at byte 9");
    }

    #[test]
    fn differences_are_named() {
        let said = |here: &Description, there: &Description| -> Vec<String> {
            here.differences(&there.encode()).unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(said(&example(), &example()), [""; 0]);
        let other = Description::new()
            .with("threshold", 0.7)
            .with("text.stop_words", FieldValue::list(["a"]))
            .with("sketch.size", 448_usize)
            .with("idf", FieldValue::hash(1))
            .with("text.shingle", "chars:5")
            .with("none", FieldValue::list([""; 0]))
            // A value of a later version.
            .with("new", FieldValue(b"?what".to_vec()));
        assert_eq!(
            said(&example(), &other),
            [
                "idf is 0000000000000001 there and 0000000000000abc here",
                "new is \"?what\" there and not set here",
                "text.shingle is \"chars:5\" there and \"words:3\" here",
                "text.stop_words is [\"a\"] there and [\"of\", \"thé\"] here",
                "threshold is 0.7 there and 0.8 here",
            ]
        );
    }

    /// Different lists of texts, and different boundaries of names and values, have different bytes.
    #[test]
    fn bytes_are_unambiguous() {
        let list = |texts: &[&str]| Description::new().with("l", FieldValue::list(texts)).encode();
        let lists =
            [list(&[]), list(&[""]), list(&["a,1:b"]), list(&["a", "b"]), list(&["ab"]), list(&["", "ab"])];
        for (i, a) in lists.iter().enumerate() {
            assert!(lists[i + 1..].iter().all(|b| a != b));
        }
        let number = Description::new().with("x", 1_u64);
        assert_ne!(number.encode(), Description::new().with("x", "1").encode());
        assert_ne!(number.encode(), Description::new().with("x", 1.0).encode());
        assert_ne!(Description::new().with("x", 0.0).encode(), Description::new().with("x", -0.0).encode());
    }
}
