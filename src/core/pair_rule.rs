//! The rule `pairs.where`: which documents may form a pair, by their fields.
//!
//! ```text
//! rule      = condition { "and" condition }
//! condition = "a." field ( "==" | "!=" ) "b." field    the same field; a and b may change places
//! field     = letters without blanks, "=" and "!"
//! ```
//!
//! In: the hashes of two documents' values, one for each condition, in their order. Out: whether every
//! condition holds. Symmetric, since each condition is. An empty value is equal to an empty value.
//!
//! Two different values have equal hashes with probability 2^-64; they then count as equal.
//!
//! ```
//! use dupflow_core::pair_rule::PairRule;
//!
//! let rule = PairRule::parse("a.host != b.host and a.lang == b.lang")?;
//! let hashes = |host, lang| rule.hashes(|field| if field == "host" { host } else { lang });
//! assert!(rule.allows(&hashes("x.org", "de"), &hashes("y.org", "de")));
//! assert!(!rule.allows(&hashes("x.org", "de"), &hashes("x.org", "de")));
//! assert!(!rule.allows(&hashes("x.org", "de"), &hashes("y.org", "fr")));
//! # Ok::<(), dupflow_core::pair_rule::RuleSyntaxError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::hash;

/// The hash of a document of the reference; that of others is 0.
const OF_REFERENCE: u64 = hash::PI[6];

/// Seed of the hashes of values.
const SEED: u64 = hash::PI[5];

/// The hash of the values that [`PairRule`] wants equal: documents of different realms form no pair. Two
/// different lists of values have equal realms with probability 2^-32.
pub type Realm = u32;

/// Lists of members, one for each realm; none is empty.
#[derive(Debug)]
pub(crate) struct ByRealm<L> {
    lists: BTreeMap<Realm, L>,
    len: usize,
}

impl<L: Default> ByRealm<L> {
    /// These lists, which have `len` members together.
    pub(crate) fn new(len: usize, lists: impl Iterator<Item = (Realm, L)>) -> Self {
        Self { lists: lists.collect(), len }
    }

    /// The number of members of all lists.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn set_len(&mut self, len: usize) {
        self.len = len;
    }

    /// The members of a realm.
    pub(crate) fn list(&self, realm: Realm) -> Option<&L> {
        self.lists.get(&realm)
    }

    /// The list of a realm, or those of all.
    pub(crate) fn lists(&self, of: Option<Realm>) -> impl Iterator<Item = &L> {
        let of_one = of.map(|realm| self.list(realm));
        let of_all = of_one.is_none().then(|| self.lists.values());
        of_one.flatten().into_iter().chain(of_all.into_iter().flatten())
    }

    /// Changes the list of a realm; `change` returns whether it has members left.
    pub(crate) fn change(&mut self, realm: Realm, change: impl FnOnce(&mut L) -> bool) {
        if !change(self.lists.entry(realm).or_default()) {
            self.lists.remove(&realm);
        }
    }
}

/// Which documents may form a pair. The default allows all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PairRule {
    /// Ascending by field, each field once.
    conditions: Vec<RuleCondition>,
    /// Whether two documents of a reference form no pair. Each document then has a further hash, the last
    /// one: whether it is of the reference.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    has_reference: bool,
}

/// A condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct RuleCondition {
    field: String,
    /// Whether the values are to be equal, or different.
    equal: bool,
}

/// Why a text is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{written:?}, at character {at}: {what}")]
pub struct RuleSyntaxError {
    written: String,
    /// Position in characters, from 1.
    at: usize,
    what: String,
}

impl PairRule {
    /// Parses a rule as in the [module](self). An empty text allows all pairs.
    ///
    /// # Errors
    /// Where the text departs from the grammar, and what is expected there; a rule that no pair fulfils.
    pub fn parse(written: &str) -> Result<Self, RuleSyntaxError> {
        if written.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut rest = RuleText { whole: written, at: 0 };
        let mut conditions: Vec<RuleCondition> = Vec::new();
        loop {
            rest.skip_blanks();
            let start = rest.at;
            let condition = rest.condition()?;
            match conditions.iter().find(|other| other.field == condition.field) {
                Some(other) if *other != condition => {
                    let what = format!("no pair can have equal and different values of {:?}", other.field);
                    return Err(rest.wrong_at(start, what));
                }
                Some(_) => {}
                None => conditions.push(condition),
            }
            rest.skip_blanks();
            if rest.at == written.len() {
                break;
            }
            rest.word("and", "expected \"and\" or the end")?;
        }
        conditions.sort();
        Ok(Self { conditions, has_reference: false })
    }

    /// The fields, in the order of their hashes.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = &str> {
        self.conditions.iter().map(|condition| condition.field.as_str())
    }

    /// The same rule for a corpus that is compared with a reference, whose documents form no pairs with each
    /// other.
    #[must_use]
    pub fn with_reference(self) -> Self {
        Self { has_reference: true, ..self }
    }

    /// Whether the corpus is compared with a reference.
    pub fn has_reference(&self) -> bool {
        self.has_reference
    }

    /// Number of hashes of a document.
    pub fn len(&self) -> usize {
        self.conditions.len() + usize::from(self.has_reference)
    }

    /// Whether all pairs are allowed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hashes of a document's values, from the value of each field.
    pub fn hashes<'v>(&self, value: impl Fn(&str) -> &'v str) -> Box<[u64]> {
        self.hashes_of(value, false)
    }

    /// The same for a document that may be of the reference.
    pub fn hashes_of<'v>(&self, value: impl Fn(&str) -> &'v str, is_of_reference: bool) -> Box<[u64]> {
        let side = self.has_reference.then_some(if is_of_reference { OF_REFERENCE } else { 0 });
        self.fields().map(|field| hash::bytes(SEED, value(field).as_bytes())).chain(side).collect()
    }

    /// Whether documents with these hashes may form a pair.
    pub fn allows(&self, a: &[u64], b: &[u64]) -> bool {
        let are_equal = a.iter().zip(b).map(|(of_a, of_b)| of_a == of_b);
        self.conditions.iter().zip(are_equal).all(|(condition, is_equal)| is_equal == condition.equal)
            && !(self.is_of_reference(a) && self.is_of_reference(b))
    }

    /// Whether hashes, or the words of a sketch that end with them, are those of a document of the reference.
    pub fn is_of_reference(&self, hashes: &[u64]) -> bool {
        self.has_reference && hashes.last() == Some(&OF_REFERENCE)
    }

    /// The fields that are to be equal, in the order of their hashes.
    pub fn equal_fields(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().filter(|condition| condition.equal).map(|condition| condition.field.as_str())
    }

    /// The fields that are to be different, in the order of their hashes.
    pub fn different_fields(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().filter(|condition| !condition.equal).map(|condition| condition.field.as_str())
    }

    /// The realm of a document with these hashes. `None` without hashes, as a text that is asked has none,
    /// and where no field is to be equal.
    pub fn realm(&self, hashes: &[u64]) -> Option<Realm> {
        let equal = self.conditions.iter().zip(hashes).filter(|(condition, _)| condition.equal);
        let all = equal.map(|(_, hash)| *hash).reduce(|all, hash| hash::mix(all) ^ hash)?;
        Some((hash::mix(all) >> Realm::BITS) as Realm)
    }

    /// Whether documents with equal values may form a pair, unless both are of a reference.
    pub fn allows_equal(&self) -> bool {
        self.conditions.iter().all(|condition| condition.equal)
    }
}

impl fmt::Display for PairRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, RuleCondition { field, equal }) in self.conditions.iter().enumerate() {
            let (and, sign) = (if n > 0 { " and " } else { "" }, if *equal { "==" } else { "!=" });
            write!(f, "{and}a.{field} {sign} b.{field}")?;
        }
        if self.has_reference {
            let and = if self.conditions.is_empty() { "" } else { " and " };
            write!(f, "{and}not both of the reference")?;
        }
        Ok(())
    }
}

/// What is left of a text.
struct RuleText<'t> {
    whole: &'t str,
    at: usize,
}

impl<'t> RuleText<'t> {
    fn condition(&mut self) -> Result<RuleCondition, RuleSyntaxError> {
        let (first, field) = self.side(["a", "b"], "expected a.FIELD")?;
        self.skip_blanks();
        let equal = match self.whole[self.at..].get(..2) {
            Some("==") => true,
            Some("!=") => false,
            _ => return Err(self.wrong("expected == or !=")),
        };
        self.at += 2;
        self.skip_blanks();
        let start = self.at;
        let (expected, other) =
            if first == "a" { ("b", "expected b.FIELD") } else { ("a", "expected a.FIELD") };
        let (_, same) = self.side([expected; 2], other)?;
        if same != field {
            let what = format!("expected {expected}.{field}, the same field on both sides");
            return Err(self.wrong_at(start, what));
        }
        Ok(RuleCondition { field: field.to_owned(), equal })
    }

    /// One side of a condition: the document, one of `documents`, and the field.
    fn side(
        &mut self,
        documents: [&'static str; 2],
        expected: &str,
    ) -> Result<(&'static str, &'t str), RuleSyntaxError> {
        self.skip_blanks();
        let rest = &self.whole[self.at..];
        let found = documents.into_iter().find_map(|document| {
            let field = rest.strip_prefix(document)?.strip_prefix('.')?;
            let field = field.split(|c: char| c.is_whitespace() || matches!(c, '=' | '!')).next()?;
            (!field.is_empty()).then_some((document, field))
        });
        let (document, field) = found.ok_or_else(|| self.wrong(expected))?;
        self.at += document.len() + 1 + field.len();
        Ok((document, field))
    }

    fn word(&mut self, word: &str, expected: &str) -> Result<(), RuleSyntaxError> {
        let behind = self.whole[self.at..].strip_prefix(word);
        if behind.is_none_or(|behind| !behind.starts_with(char::is_whitespace)) {
            return Err(self.wrong(expected));
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_blanks(&mut self) {
        let rest = &self.whole[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn wrong(&self, expected: &str) -> RuleSyntaxError {
        self.wrong_at(self.at, expected.to_owned())
    }

    fn wrong_at(&self, at: usize, what: String) -> RuleSyntaxError {
        RuleSyntaxError { written: self.whole.to_owned(), at: self.whole[..at].chars().count() + 1, what }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_parsed_into_one_form() {
        for (typed, written) in [
            ("", ""),
            ("  ", ""),
            ("a.host != b.host", "a.host != b.host"),
            ("b.host!=a.host", "a.host != b.host"),
            ("a.lang == b.lang and a.host != b.host", "a.host != b.host and a.lang == b.lang"),
            ("a.x == b.x and b.x == a.x", "a.x == b.x"),
            (" a.meta.lang  ==\tb.meta.lang ", "a.meta.lang == b.meta.lang"),
            ("a.and == b.and and a.and == b.and", "a.and == b.and"),
            ("a.言語 == b.言語", "a.言語 == b.言語"),
        ] {
            let rule = PairRule::parse(typed).unwrap();
            assert_eq!(rule.to_string(), written, "{typed:?}");
            assert_eq!(PairRule::parse(written).unwrap(), rule);
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (typed, at, what) in [
            ("host != host", 1, "expected a.FIELD"),
            ("a.host", 7, "expected == or !="),
            ("a.host = b.host", 8, "expected == or !="),
            ("a.host != ", 11, "expected b.FIELD"),
            ("a.host != a.host", 11, "expected b.FIELD"),
            ("b.host != b.host", 11, "expected a.FIELD"),
            ("a.host != b.lang", 11, "expected b.host, the same field on both sides"),
            ("a.é == b.é or a.x == b.x", 12, "expected \"and\" or the end"),
            ("a.x == b.x and", 12, "expected \"and\" or the end"),
            ("a.x == b.x and ", 16, "expected a.FIELD"),
            ("a.x == b.x anda.y == b.y", 12, "expected \"and\" or the end"),
            ("a.x == b.x and a.x != b.x", 16, "no pair can have equal and different values of \"x\""),
            ("a. == b.", 1, "expected a.FIELD"),
        ] {
            let error = PairRule::parse(typed).unwrap_err();
            assert_eq!((error.at, error.what.as_str()), (at, what), "{typed}");
        }
    }

    /// Sketch ids depend on these: they must never change.
    #[test]
    fn golden_hashes() {
        let rule = PairRule::parse("a.host != b.host").unwrap();
        assert_eq!(*rule.hashes(|_| ""), [0x6d59_8fe9_c766_9bc3]);
        assert_eq!(*rule.hashes(|_| "example.org"), [0xb500_ede3_eefc_7300]);
    }

    /// Values that are to be different have no part in a realm; an empty value is a value.
    #[test]
    fn a_realm_is_of_the_values_that_are_to_be_equal() {
        let rule = PairRule::parse("a.x == b.x and a.y != b.y and a.z == b.z").unwrap().with_reference();
        assert!(rule.equal_fields().eq(["x", "z"]) && rule.different_fields().eq(["y"]));
        let realm = |x: &'static str, y: &'static str, z: &'static str, is_of_reference| {
            let value = |field: &str| [x, y, z][usize::from(field.as_bytes()[0] - b'x')];
            rule.realm(&rule.hashes_of(value, is_of_reference)).unwrap()
        };
        assert_eq!(realm("1", "2", "3", false), realm("1", "9", "3", true));
        let others = [realm("3", "2", "1", false), realm("", "2", "3", false), realm("1", "2", "", false)];
        assert!(others.iter().all(|other| *other != realm("1", "2", "3", false)), "{others:?}");
        assert_eq!(rule.realm(&[]), None, "a text that is asked has no fields");
        assert_eq!(PairRule::parse("a.x != b.x").unwrap().realm(&[7]), None);
        assert_eq!(PairRule::parse("a.x == b.x").unwrap().realm(&[7]), Some(0x12ae_3023));
    }

    #[test]
    fn documents_of_a_reference_form_no_pairs() {
        let rule = PairRule::parse("a.x == b.x").unwrap().with_reference();
        let of = |x: &'static str, is_of_reference| rule.hashes_of(|_| x, is_of_reference);
        let (old, new) = (of("x", true), of("x", false));
        assert!(rule.allows(&old, &new) && rule.allows(&new, &old) && rule.allows(&new, &new));
        assert!(!rule.allows(&old, &old) && !rule.allows(&of("y", true), &new));
        assert!(rule.is_of_reference(&old) && !rule.is_of_reference(&new) && !rule.is_of_reference(&[]));
        assert_eq!((rule.len(), rule.fields().len(), rule.allows_equal()), (2, 1, true));
        assert_eq!(rule.to_string(), "a.x == b.x and not both of the reference");
        assert!(!PairRule::default().with_reference().is_empty());
    }

    #[test]
    fn rules_are_symmetric() {
        let rule = PairRule::parse("a.x != b.x and a.y == b.y").unwrap();
        assert_eq!((rule.len(), rule.fields().collect::<Vec<_>>()), (2, vec!["x", "y"]));
        let all = [[1, 1], [1, 2], [2, 1], [2, 2]];
        for a in all {
            for b in all {
                assert_eq!(rule.allows(&a, &b), a[0] != b[0] && a[1] == b[1]);
                assert_eq!(rule.allows(&a, &b), rule.allows(&b, &a));
            }
        }
        assert!(!rule.allows_equal() && PairRule::default().allows_equal());
        assert!(PairRule::parse("a.y == b.y").unwrap().allows_equal());
    }
}
