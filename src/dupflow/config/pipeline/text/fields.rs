//! Reads the table `text.fields` into fields.

use crate::config::pipeline::keys;
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_core::text::Field;

/// Names that have a fixed meaning in every record.
const KNOWN: [&str; 4] = ["id", "op", "ts", "text"];

/// The dotted key of a field's weight.
pub(in crate::config::pipeline) fn key(name: &str) -> String {
    format!("text.fields.{name}")
}

/// The additional text fields of a record, sorted by name.
pub(in crate::config::pipeline) fn fields(settings: &mut FileSettings) -> Vec<Field> {
    let mut fields = Vec::new();
    for name in settings.names("text.fields") {
        let key = key(&name);
        let weight = settings.read(&key, |value| keys::FIELDS.take(value));
        if KNOWN.contains(&name.as_str()) {
            let what = format!("{name:?} is no further field: it has its meaning in every record");
            settings.problem(&key, ProblemKind::Contradiction(what));
        } else if let Some(weight) = weight {
            fields.push(Field { name, weight });
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::config::Plan;

    const TITLE: &str = "text.fields = { title = 3, \"sub.title\" = 2, abstract = 1 }\n";
    const DART: [&str; 2] = ["sketch.kind=dart", "text.weights=tf"];

    fn plan(text: &str, overrides: &[&str]) -> Result<Vec<(String, u32)>, String> {
        let overrides: Vec<String> = overrides.iter().map(|&typed| typed.to_owned()).collect();
        match Plan::parse("p", text, Path::new(""), &overrides) {
            Ok(plan) => {
                Ok(plan.scheme.text.fields.into_iter().map(|field| (field.name, field.weight)).collect())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn fields_are_in_the_order_of_their_names() {
        let named = |fields: &[(&str, u32)]| {
            Ok(fields.iter().map(|(name, weight)| ((*name).to_owned(), *weight)).collect())
        };
        assert_eq!(plan(TITLE, &DART), named(&[("abstract", 1), ("sub.title", 2), ("title", 3)]));
        assert_eq!(plan("[text.fields]\nb = 100\na = 1", &DART), named(&[("a", 1), ("b", 100)]));
        assert_eq!(
            plan("[text]\nfields.b = 2", &[&DART[..], &["text.fields.b=7"]].concat()),
            named(&[("b", 7)])
        );
        assert_eq!(plan("", &["text.fields={b = 1}"]), named(&[("b", 1)]));
        assert_eq!(plan("text.fields = {}", &[]), named(&[]));
    }

    #[test]
    fn invalid_fields_and_weights() {
        let weight = "expected a whole number from 1 to 100";
        for (text, expected) in [
            ("text.fields.title = 0", format!("p:1: text.fields.title: found 0, {weight}")),
            (
                "text.fields = { a = 101, b = 1.5 }",
                format!(
                    "p:1: text.fields.a: found 101, {weight}\np:1: \
                text.fields.b: found 1.5, {weight}"
                ),
            ),
            (
                "text.fields = { title = { x = 1 } }",
                format!(
                    "p:1: text.fields.title: found {{ x = 1 }}, \
                {weight}"
                ),
            ),
            ("text.fields = { title = {} }", format!("p:1: text.fields.title: found {{}}, {weight}")),
            (
                "text.fields = [\"title\"]",
                "p:1: text.fields: found [\"title\"], expected a table of names, \
                each with a whole number from 1 to 100"
                    .to_owned(),
            ),
            (
                "[text.fields]\nts = 1",
                "p:2: text.fields.ts: \"ts\" is no further field: it has its meaning \
                in every record"
                    .to_owned(),
            ),
            ("text.field = 3", "p:1: text.field: unknown key; did you mean \"text.fields\"?".to_owned()),
            (
                "text = 3",
                "p:1: text: found 3, expected a table with the keys features, shingle, spaceless, marks, \
                html, normalize, invisible, fold, secret, stop_words, stem, split, \
                          split_least, fields, weights, idf, idf_form, idf_growth"
                    .to_owned(),
            ),
        ] {
            assert_eq!(plan(text, &[]), Err(expected), "{text}");
        }
    }

    #[test]
    fn a_set_has_no_weights() {
        let problem = |field: &str| {
            format!(
                "p:1: text.fields.{field}: has no effect on a set, where nothing has a weight; set it to 1, \
                or text.weights other than \"unit\""
            )
        };
        assert_eq!(plan(TITLE, &[]), Err([problem("sub.title"), problem("title")].join("\n")));
        assert_eq!(
            plan(TITLE, &["sketch.kind=simhash", "text.weights=count"]).map(|fields| fields.len()),
            Ok(3)
        );
        // `text.weights` is overridden, so the file's field weights do not apply.
        assert_eq!(plan(TITLE, &["text.weights=unit"]).map(|fields| fields.len()), Ok(3));
    }

    #[test]
    fn a_table_under_fields_in_doubt_is_not_counted() {
        let text = "text.fields.title = 0\ntext.weights = \"tf-idf\"\nsketch.kind = \"dart\"\ntext.idf \
            = \"/nowhere/at/all\"";
        assert_eq!(plan(text, &[]).unwrap_err().lines().count(), 1);
    }
}
