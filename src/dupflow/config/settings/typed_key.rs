//! A key with typed values: its range or choices, the text that describes them, and the conversion of a
//! value.
//!
//! The range is written once: the check, the error message and the documentation test are derived from it.

use std::fmt::Display;
use std::ops::Bound;

use Bound::{Excluded, Included};

use super::key::ConfigKey;
use super::value::ConfigValue;

/// A key with values of type `T`.
pub(in crate::config) struct TypedKey<T> {
    pub(in crate::config) name: &'static str,
    pub(in crate::config) expected: fn() -> String,
    /// The ends of the range; empty if there is none.
    pub(in crate::config) ends: fn() -> Vec<String>,
    /// The choices by name; empty if there are none.
    pub(in crate::config) choices: fn() -> Vec<(&'static str, T)>,
    pub(in crate::config) take: fn(&ConfigValue) -> Option<T>,
}

impl<T> TypedKey<T> {
    /// The typed value, or `None` if the key does not accept it.
    pub(in crate::config) fn take(&self, value: &ConfigValue) -> Option<T> {
        let chosen = |typed| (self.choices)().into_iter().find(|(name, _)| *name == typed);
        value.text().and_then(chosen).map_or_else(|| (self.take)(value), |(_, choice)| Some(choice))
    }
}

impl<T: PartialEq> TypedKey<T> {
    /// The name of a choice; empty if it has none.
    pub(in crate::config) fn name_of(&self, choice: &T) -> &'static str {
        (self.choices)().into_iter().find(|(_, known)| known == choice).map_or("", |(name, _)| name)
    }
}

impl<T> ConfigKey for TypedKey<T> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn expected(&self) -> String {
        match self.bounds().split_last() {
            Some((last, others)) if (self.ends)().is_empty() => format!("{} or {last}", others.join(", ")),
            _ => (self.expected)(),
        }
    }

    fn bounds(&self) -> Vec<String> {
        let choices = (self.choices)().into_iter().map(|(name, _)| format!("\"{name}\""));
        (self.ends)().into_iter().chain(choices).collect()
    }
}

/// The end of a range as text; 2^63 - 1 is not spelled out.
pub(in crate::config) fn end(number: impl Display) -> String {
    let digits = number.to_string();
    if digits == i64::MAX.to_string() { "2^63 - 1".to_owned() } else { digits }
}

/// The inclusive or exclusive end of a range as text; `None` if it is open.
pub(in crate::config) fn bound(bound: Bound<f64>) -> Option<String> {
    if let Included(number) | Excluded(number) = bound { Some(short(number)) } else { None }
}

/// A number, with an exponent where it has many zeros.
fn short(number: f64) -> String {
    if number > 0.0 && number < 1e-5 { format!("{number:e}") } else { number.to_string() }
}

/// A range of numbers as text.
pub(in crate::config) fn between(from: Bound<f64>, to: Bound<f64>) -> String {
    match (from, to) {
        (Included(least), Included(most)) => format!("a number from {} to {most}", short(least)),
        (Excluded(above), Included(most)) => format!("a number above {above} and at most {most}"),
        (Excluded(above), Excluded(below)) => format!("a number above {above} and below {below}"),
        other => format!("a number within {other:?}"),
    }
}
