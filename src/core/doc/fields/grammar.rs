//! The grammar of a field: which value of a record it is.
//!
//! ```text
//! field    = [ name "=" ] value
//! value    = column | "host(" column ")" | "day(ts)" | "prefix(" column "," text "," number ")"
//! column   = names with points between them, as in meta.lang
//! text     = a quote, 1 to 16 bytes without a quote, a quote
//! number   = from 1 to 100
//! ```
//!
//! | value | is |
//! |---|---|
//! | `lang` | the value of the column |
//! | `host(url)` | the host of the address in the column, in lower case (ASCII), without user, port and final dot |
//! | `prefix(id, "/", 2)` | the value before the second `/`; the whole value if there are fewer |
//! | `day(ts)` | the day of the event's time in UTC, as in `2024-05-06` |
//!
//! The column `id` is the document's id, and `ts` the time of the event in unix seconds, whatever they are
//! called in the records. Without a name a field is named by its column, or by its function.

/// Longest separator of `prefix` in bytes, inclusive.
const MOST_SEPARATOR: usize = 16;
/// Most parts of `prefix`, inclusive.
const MOST_PARTS: usize = 100;

/// A field of documents: a name, and where its value is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    name: String,
    pub(super) column: String,
    pub(super) derivation: Derivation,
    /// As it is described: with its name, and without blanks.
    written: String,
}

/// What is made of a column's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Derivation {
    Value,
    Host,
    Day,
    Prefix { separator: String, parts: usize },
}

/// Why a text is no [`FieldRule`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{written:?}, at character {at}: {expected}")]
pub struct FieldSyntaxError {
    written: String,
    /// Position in characters, from 1.
    at: usize,
    expected: &'static str,
}

impl FieldRule {
    /// Parses a field, as the module documentation describes it.
    ///
    /// # Errors
    /// Where the text departs from the grammar, and what is expected there.
    pub fn parse(written: &str) -> Result<Self, FieldSyntaxError> {
        rule(written)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rule as it is described: `name=value`, or the value if that gives the name; without blanks.
    pub fn written(&self) -> &str {
        &self.written
    }

    /// Its column in the records; `None` for the id and the time, which every event has already.
    pub fn column(&self) -> Option<&str> {
        Some(self.column.as_str()).filter(|column| !matches!(*column, "id" | "ts"))
    }
}

/// What is left of a text.
struct Rest<'t> {
    whole: &'t str,
    at: usize,
}

impl<'t> Rest<'t> {
    fn skip_blanks(&mut self) {
        let rest = &self.whole[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, symbol: char, expected: &'static str) -> Result<(), FieldSyntaxError> {
        self.skip_blanks();
        if !self.whole[self.at..].starts_with(symbol) {
            return Err(self.wrong(expected));
        }
        self.at += symbol.len_utf8();
        Ok(())
    }

    /// What is before the next symbol, without blanks around it.
    fn word(&mut self, expected: &'static str) -> Result<&'t str, FieldSyntaxError> {
        self.skip_blanks();
        let rest = &self.whole[self.at..];
        let word = rest.split(['=', '(', ')', ',', '"']).next().unwrap_or_default();
        let trimmed = word.trim_end();
        if trimmed.is_empty() {
            return Err(self.wrong(expected));
        }
        self.at += word.len();
        Ok(trimmed)
    }

    /// A column: names with points between them, none empty.
    fn column(&mut self, expected: &'static str) -> Result<&'t str, FieldSyntaxError> {
        let start = self.at;
        let column = self.word(expected)?;
        if column.split('.').any(str::is_empty) {
            self.at = start;
            self.skip_blanks();
            return Err(self.wrong("expected names with points between them, none empty"));
        }
        Ok(column)
    }

    fn wrong(&self, expected: &'static str) -> FieldSyntaxError {
        let at = self.whole[..self.at].chars().count() + 1;
        FieldSyntaxError { written: self.whole.to_owned(), at, expected }
    }
}

/// Parses a field.
fn rule(typed: &str) -> Result<FieldRule, FieldSyntaxError> {
    const FIRST: &str = "expected a column, or host(…), prefix(…) or day(ts)";
    let mut rest = Rest { whole: typed, at: 0 };
    let mut name = None;
    if typed.split_once('=').is_some_and(|(before, _)| !before.contains(['(', '"'])) {
        let given = rest.word("expected a name before =")?;
        if given.contains(char::is_whitespace) {
            rest.at = 0;
            return Err(rest.wrong("expected a name without blanks before ="));
        }
        rest.take('=', "expected =")?;
        name = Some(given);
    }
    let (column, derivation, value) = value(&mut rest, FIRST)?;
    rest.skip_blanks();
    if rest.at < typed.len() {
        return Err(rest.wrong("expected the end"));
    }
    let usual = match derivation {
        Derivation::Value => column.as_str(),
        Derivation::Host => "host",
        Derivation::Day => "day",
        Derivation::Prefix { .. } => "prefix",
    };
    let name = name.unwrap_or(usual).to_owned();
    let written = if name == usual { value } else { format!("{name}={value}") };
    Ok(FieldRule { name, column, derivation, written })
}

/// The column, what is made of it, and both as they are described.
fn value(rest: &mut Rest<'_>, first: &'static str) -> Result<(String, Derivation, String), FieldSyntaxError> {
    const COLUMN: &str = "expected a column";
    rest.skip_blanks();
    let start = rest.at;
    let word = rest.column(first)?;
    if !rest.whole[rest.at..].starts_with('(') {
        return Ok((word.to_owned(), Derivation::Value, word.to_owned()));
    }
    rest.at += 1;
    let (column, derivation, described) = match word {
        "host" => {
            let column = rest.column(COLUMN)?;
            (column, Derivation::Host, format!("host({column})"))
        }
        "day" => {
            rest.skip_blanks();
            let at = rest.at;
            let column = rest.column("expected ts, the time of the event")?;
            if column != "ts" {
                rest.at = at;
                return Err(rest.wrong("expected ts, the time of the event"));
            }
            (column, Derivation::Day, "day(ts)".to_owned())
        }
        "prefix" => {
            let column = rest.column(COLUMN)?;
            rest.take(',', "expected a comma and the separator in quotes")?;
            let separator = quoted(rest)?;
            rest.take(',', "expected a comma and the number of parts")?;
            let parts = parts(rest)?;
            let described = format!("prefix({column},\"{separator}\",{parts})");
            (column, Derivation::Prefix { separator: separator.to_owned(), parts }, described)
        }
        _ => {
            rest.at = start;
            return Err(rest.wrong("expected host, prefix or day before ("));
        }
    };
    rest.take(')', "expected )")?;
    Ok((column.to_owned(), derivation, described))
}

/// A separator in quotes.
fn quoted<'t>(rest: &mut Rest<'t>) -> Result<&'t str, FieldSyntaxError> {
    const EXPECTED: &str = "expected a separator of 1 to 16 bytes in quotes";
    rest.take('"', EXPECTED)?;
    let text = rest.whole[rest.at..].split_once('"').map(|(text, _)| text);
    let text = text.filter(|text| (1..=MOST_SEPARATOR).contains(&text.len()));
    let text = text.ok_or_else(|| rest.wrong(EXPECTED))?;
    rest.at += text.len() + 1;
    Ok(text)
}

/// A number of parts.
fn parts(rest: &mut Rest<'_>) -> Result<usize, FieldSyntaxError> {
    const EXPECTED: &str = "expected a whole number from 1 to 100";
    rest.skip_blanks();
    let at = rest.at;
    let number = rest.word(EXPECTED)?.parse().ok().filter(|number| (1..=MOST_PARTS).contains(number));
    number.ok_or_else(|| {
        rest.at = at;
        rest.wrong(EXPECTED)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_parsed() {
        for (typed, name, written) in [
            ("lang", "lang", "lang"),
            (" meta.lang ", "meta.lang", "meta.lang"),
            ("my title", "my title", "my title"),
            ("host(url)", "host", "host(url)"),
            ("host ( url )", "host", "host(url)"),
            ("site = host(url)", "site", "site=host(url)"),
            ("host=host(url)", "host", "host(url)"),
            ("prefix(id, \"/\", 2)", "prefix", "prefix(id,\"/\",2)"),
            ("p=prefix(id,\"=(\",100)", "p", "p=prefix(id,\"=(\",100)"),
            ("day(ts)", "day", "day(ts)"),
            ("l=lang", "l", "l=lang"),
            ("host", "host", "host"),
        ] {
            let rule = rule(typed).unwrap();
            assert_eq!((rule.name(), rule.written()), (name, written), "{typed}");
            assert_eq!(super::rule(rule.written()).unwrap(), rule, "{typed}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (typed, at, expected) in [
            ("", 1, "expected a column, or host(…), prefix(…) or day(ts)"),
            ("=x", 1, "expected a name before ="),
            ("a b = x", 1, "expected a name without blanks before ="),
            ("x =", 4, "expected a column, or host(…), prefix(…) or day(ts)"),
            ("a..b", 1, "expected names with points between them, none empty"),
            ("lower(x)", 1, "expected host, prefix or day before ("),
            ("host()", 6, "expected a column"),
            ("host(url", 9, "expected )"),
            ("host(url))", 10, "expected the end"),
            ("day(date)", 5, "expected ts, the time of the event"),
            ("prefix(id)", 10, "expected a comma and the separator in quotes"),
            ("prefix(id, /, 2)", 12, "expected a separator of 1 to 16 bytes in quotes"),
            ("prefix(id, \"\", 2)", 13, "expected a separator of 1 to 16 bytes in quotes"),
            ("prefix(é, \"/\", 0)", 16, "expected a whole number from 1 to 100"),
            ("a, b", 2, "expected the end"),
        ] {
            let error = rule(typed).unwrap_err();
            assert_eq!((error.at, error.expected), (at, expected), "{typed}");
        }
        assert_eq!(
            rule("lower(x)").unwrap_err().to_string(),
            "\"lower(x)\", at character 1: expected host, prefix or day before ("
        );
    }
}
