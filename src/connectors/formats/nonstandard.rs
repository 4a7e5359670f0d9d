//! Reads JSON that writers write and the standard does not have, or does not define.
//!
//! A JSON text -> the same text, byte by byte at the same offsets, in a form that a parser reads. It is asked
//! for only where a parser has refused the text, so that usual records pay nothing.
//!
//! - `NaN`, `Infinity`, `-Infinity` and a number that no double holds, as `1e999`: an empty object, which is
//!   no text, id, time or number where it is read.
//! - A lone surrogate in a name: U+FFFD. In a value the same if it is to be replaced; otherwise it stays, and
//!   is an error only where it is read.
//!
//! References: RFC 8259, section 8.2 (unpaired surrogates), and the `allow_nan` of Python's `json`.

use serde::de::IgnoredAny;

use super::bad_record::BadRecord;
use super::layout::SurrogateRule;

/// A text in standard form.
#[derive(Debug)]
pub(super) struct StandardJson {
    pub(super) json: String,
    /// Whether a value has lone surrogates that were not replaced.
    has_lone: bool,
}

impl StandardJson {
    /// The form of a text; `None` if it has nothing of the kind.
    pub(super) fn new(json: &str, rule: SurrogateRule) -> Option<Self> {
        let mut bytes = json.as_bytes().to_vec();
        let (mut at, mut has_lone) = (0, false);
        while let Some(byte) = json.as_bytes().get(at) {
            at = match byte {
                b'"' => {
                    let (lone, end) = string(json.as_bytes(), at + 1);
                    let is_name = json.as_bytes()[end..].trim_ascii_start().starts_with(b":");
                    if is_name || rule == SurrogateRule::Replace {
                        lone.iter().for_each(|digits| bytes[*digits..*digits + 4].copy_from_slice(b"fffd"));
                    } else {
                        has_lone |= !lone.is_empty();
                    }
                    end
                }
                b'N' | b'I' | b'-' | b'0'..=b'9' => {
                    let end = at + number(&json[at..]);
                    let token = &json[at..end];
                    let begins =
                        token.trim_start_matches('-').starts_with(|first: char| first.is_ascii_digit());
                    let is_beyond = || token.parse().is_ok_and(|number: f64| number.is_infinite());
                    let is_no_number =
                        matches!(token, "NaN" | "Infinity" | "-Infinity") || begins && is_beyond();
                    if is_no_number {
                        bytes[at..end].fill(b' ');
                        (bytes[at], bytes[end - 1]) = (b'{', b'}');
                    }
                    end
                }
                _ => at + 1,
            };
        }
        let json = String::from_utf8(bytes).ok().filter(|form| has_lone || form != json)?;
        Some(Self { json, has_lone })
    }

    /// Why a text is bad of which this form is refused too.
    pub(super) fn flaw(&self) -> BadRecord {
        // What is skipped is not resolved.
        let is_json = || serde_json::from_str::<IgnoredAny>(&self.json).is_ok();
        if self.has_lone && is_json() { BadRecord::LoneSurrogate } else { BadRecord::NotJson }
    }
}

/// The length of a number or a word, at least 1.
fn number(rest: &str) -> usize {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    rest.bytes().take_while(part).count().max(1)
}

/// Where a string has the digits of lone surrogates, and the offset behind it. It begins at `at`, behind its
/// quote.
fn string(json: &[u8], mut at: usize) -> (Vec<usize>, usize) {
    let mut lone = Vec::new();
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found;
        if json[at] == b'"' {
            return (lone, at + 1);
        }
        match surrogate(&json[at..]) {
            Some(0xd800..0xdc00) if matches!(surrogate(&json[at + 6..]), Some(0xdc00..)) => at += 12,
            Some(_) => {
                lone.push(at + 2);
                at += 6;
            }
            None => at = (at + 2).min(json.len()),
        }
    }
    (lone, json.len())
}

/// The surrogate of an escape at the beginning of `rest`.
fn surrogate(rest: &[u8]) -> Option<u16> {
    let digits = str::from_utf8(rest.strip_prefix(br"\u")?.get(..4)?).ok()?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    (0xd800..0xe000).contains(&unit).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_standard_is_replaced_in_its_place() {
        use SurrogateRule::{Bad, Replace};
        for (json, rule, expected) in [
            (
                r#"{"a":NaN,"b":[-Infinity , Infinity],"c":-1e999}"#,
                Bad,
                r#"{"a":{ },"b":[{       } , {      }],"c":{    }}"#,
            ),
            (r#"{"a":"NaN \" Infinity","b":NaN}"#, Bad, r#"{"a":"NaN \" Infinity","b":{ }}"#),
            (r#"{"\ud83d" :1,"b":"\\\ud83d"}"#, Replace, r#"{"\ufffd" :1,"b":"\\\ufffd"}"#),
            (r#"{"\uDE00\ud83d\ude00":"\\ud83d"}"#, Bad, r#"{"\ufffd\ud83d\ude00":"\\ud83d"}"#),
            (r#"["\ud83d\ud83d\ude00\ud83dx"]"#, Replace, r#"["\ufffd\ud83d\ude00\ufffdx"]"#),
            (r#"["\ud83d"]"#, Bad, r#"["\ud83d"]"#),
        ] {
            assert_eq!(StandardJson::new(json, rule).unwrap().json, expected);
        }
        for json in [r#"{"a":1e308,"b":"\ud83d\ude00"}"#, "", "\"", "\"\\", "\"\\u", "NaNs", "-"] {
            assert!(StandardJson::new(json, Replace).is_none(), "{json}");
        }
    }

    #[test]
    fn a_lone_surrogate_is_the_reason_only_of_json() {
        let flaw = |json| StandardJson::new(json, SurrogateRule::Bad).unwrap().flaw();
        assert_eq!(flaw(r#"{"a":"\ud83d"}"#), BadRecord::LoneSurrogate);
        assert_eq!(flaw(r#"{"a":"\ud83d""#), BadRecord::NotJson);
        assert_eq!(flaw(r#"{"a":NaN,}"#), BadRecord::NotJson);
    }
}
