//! The value of a setting, and its conversion to the type that a key wants.
//!
//! A text with an environment variable may stand for a value of any type, since TOML allows variables only
//! inside quotes: `workers = "${WORKERS:-2}"` is a number.

use std::ops::RangeInclusive;

use toml::de::DeValue;

use super::size::size;

/// The value of a setting.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::config) enum ConfigValue {
    /// Text; true if an environment variable was replaced in it, so that it may stand for any type.
    Text(String, bool),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    List(Vec<ConfigValue>),
    /// A date or a table: values that no key accepts.
    Other,
}

impl ConfigValue {
    pub(in crate::config) fn from_toml(value: &DeValue<'_>) -> Self {
        match value {
            DeValue::String(text) => Self::Text(text.clone().into_owned(), false),
            DeValue::Integer(digits) => {
                i128::from_str_radix(digits.as_str(), digits.radix()).map_or(Self::Other, Self::Integer)
            }
            DeValue::Float(digits) => digits.as_str().parse().map_or(Self::Other, Self::Float),
            DeValue::Boolean(value) => Self::Boolean(*value),
            DeValue::Array(values) => {
                Self::List(values.iter().map(|inner| Self::from_toml(inner.get_ref())).collect())
            }
            DeValue::Datetime(_) | DeValue::Table(_) => Self::Other,
        }
    }

    pub(in crate::config) fn text(&self) -> Option<&str> {
        if let Self::Text(text, _) = self { Some(text) } else { None }
    }

    /// The value; a text with an environment variable is parsed as TOML.
    fn parsed(&self) -> Option<Self> {
        match self {
            Self::Text(text, true) => DeValue::parse(text).ok().map(|value| Self::from_toml(value.get_ref())),
            Self::Text(_, false) => None,
            plain => Some(plain.clone()),
        }
    }

    /// A whole number within `range`, both ends inclusive.
    pub(in crate::config) fn integer<T: TryFrom<i128> + PartialOrd>(
        &self,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        let Self::Integer(number) = self.parsed()? else { return None };
        T::try_from(number).ok().filter(|number| range.contains(number))
    }

    /// A size in bytes within `range`, both ends inclusive: a whole number, or text as in "64MiB".
    pub(in crate::config) fn bytes<T: TryFrom<i128> + PartialOrd>(
        &self,
        range: RangeInclusive<T>,
    ) -> Option<T> {
        match self.text().and_then(size) {
            Some(bytes) => Self::Integer(bytes.into()).integer(range),
            None => self.integer(range),
        }
    }

    /// A number with or without a decimal point.
    pub(in crate::config) fn number(&self) -> Option<f64> {
        match self.parsed()? {
            Self::Float(number) => Some(number),
            // An integer beyond 32 bits is out of the range of every number key, and might not fit a float
            // exactly.
            Self::Integer(number) => i32::try_from(number).ok().map(f64::from),
            _ => None,
        }
    }

    pub(in crate::config) fn boolean(&self) -> Option<bool> {
        if let Self::Boolean(value) = self.parsed()? { Some(value) } else { None }
    }

    /// A list, if `read` accepts all its elements.
    pub(in crate::config) fn list<T>(&self, read: impl Fn(&Self) -> Option<T>) -> Option<Vec<T>> {
        if let Self::List(values) = self { values.iter().map(read).collect() } else { None }
    }

    /// Text, a number or a boolean as text, for programs whose settings are all text.
    pub(in crate::config) fn scalar(&self) -> Option<String> {
        match self {
            Self::Text(text, _) => Some(text.clone()),
            Self::Integer(number) => Some(number.to_string()),
            Self::Float(number) => Some(number.to_string()),
            Self::Boolean(value) => Some(value.to_string()),
            Self::List(_) | Self::Other => None,
        }
    }

    /// The value as JSON.
    pub(in crate::config) fn json(&self) -> serde_json::Value {
        match self {
            Self::Text(text, _) => text.as_str().into(),
            Self::Integer(number) => {
                i64::try_from(*number).map_or_else(|_| number.to_string().into(), serde_json::Value::from)
            }
            Self::Float(number) => (*number).into(),
            Self::Boolean(value) => (*value).into(),
            Self::List(values) => values.iter().map(Self::json).collect(),
            Self::Other => serde_json::Value::Null,
        }
    }

    pub(in crate::config) fn interpolate(
        &mut self,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(), String> {
        match self {
            Self::List(values) => values.iter_mut().try_for_each(|value| value.interpolate(environment)),
            Self::Text(text, from_environment) if text.contains("${") => {
                *from_environment = true;
                *text = interpolated(text, environment)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// The text with its variables replaced.
fn interpolated(mut rest: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, tail) = after.split_once('}').ok_or("\"${\" without a \"}\"")?;
        let (name, default) =
            inside.split_once(":-").map_or((inside, None), |(name, text)| (name, Some(text)));
        let held = environment(name).filter(|held| default.is_none() || !held.is_empty());
        out.push_str(before);
        out.push_str(&held.or_else(|| default.map(str::to_owned)).ok_or_else(|| {
            format!(
                "the variable {name} of the environment is not set; \"${{{name}:-default}}\" gives a default"
            )
        })?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}
