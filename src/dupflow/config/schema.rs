//! JSON Schemas of the files, for editors that check and complete TOML.
//!
//! They are made of what is declared anyway: the keys, what each of them expects, and the comments of the
//! files in which all keys are named. A schema takes every value that the program takes, and refuses what it
//! can say of a type, a range or a choice; the program says the rest.

use std::collections::{BTreeMap, BTreeSet};

use clap::ValueEnum;
use serde_json::{Map, Value as Json, json};

use super::deployment;
use super::pipeline::keys;
use super::settings::ConfigKey;

/// The file in which all keys of a pipeline are named.
pub(in crate::config) const PIPELINE: &str = include_str!("../../../pipelines/minhash.toml");

/// The file in which all keys of a deployment are named.
pub(in crate::config) const DEPLOYMENT: &str = include_str!("../../../config/kafka.toml");

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ConfigFile {
    /// What is computed: --pipeline
    Pipeline,
    /// Where: --config
    Deployment,
}

impl ConfigFile {
    /// The JSON Schema (draft 7) of such files.
    pub fn schema(self) -> Json {
        let (title, text) = match self {
            Self::Pipeline => ("A pipeline of dupflow", PIPELINE),
            Self::Deployment => ("A deployment of dupflow", DEPLOYMENT),
        };
        let comments = comments_in(text);
        let mut root = table();
        let mut add = |key: &dyn ConfigKey| {
            let mut form = form(&key.expected());
            if self == Self::Deployment {
                form = or_variable(form);
            }
            let comment = comment_of(&comments, key.named());
            form["description"] = format!("{comment}\n\nExpected: {}.", key.expected()).trim_start().into();
            let parts: Vec<&str> = key.name().split('.').collect();
            put(&mut root, &parts, form);
        };
        match self {
            Self::Pipeline => keys::KEYS.iter().for_each(|key| add(*key)),
            Self::Deployment => deployment::KEYS.iter().copied().flatten().for_each(|key| add(key)),
        }
        root["$schema"] = "http://json-schema.org/draft-07/schema#".into();
        root["title"] = title.into();
        root
    }
}

/// A table without a key.
fn table() -> Json {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// Puts the form of a key into a table, below the tables that its name has.
fn put(into: &mut Json, name: &[&str], form: Json) {
    match name {
        ["**"] => into["additionalProperties"] = true.into(),
        ["*"] => into["additionalProperties"] = form,
        [last] => into["properties"][*last] = form,
        [list, "#", rest @ ..] => {
            let list = &mut into["properties"][*list];
            if list.is_null() {
                *list = json!({"type": "array", "items": table()});
            }
            put(&mut list["items"], rest, form);
        }
        [below, rest @ ..] => {
            let below = &mut into["properties"][*below];
            if below.is_null() {
                *below = table();
            }
            put(below, rest, form);
        }
        [] => {}
    }
}

/// The form, or a text with a variable of the environment, which may stand for any type.
fn or_variable(form: Json) -> Json {
    if form.as_object().is_some_and(Map::is_empty) || form["type"] == "string" {
        return form;
    }
    json!({"anyOf": [form, {"type": "string", "pattern": "\\$\\{"}]})
}

/// The form of the values that a text describes: their type, with a range or choices where it has some.
fn form(expected: &str) -> Json {
    let (expected, is_optional) = match expected.split_once(", or \"\"") {
        Some((expected, _)) => (expected, true),
        None => (expected, false),
    };
    let form = if expected == "true or false" {
        json!({"type": "boolean"})
    } else if let Some(choices) = choices(expected) {
        json!({"enum": choices})
    } else if let Some(range) = expected.strip_prefix("a whole number ") {
        match range.split_once(", or ").map(|(range, word)| (range, choices(word))) {
            Some((range, Some(words))) => json!({"anyOf": [ranged("integer", range), {"enum": words}]}),
            _ => ranged("integer", range),
        }
    } else if let Some(range) = expected.strip_prefix("a number ") {
        ranged("number", range)
    } else if expected.starts_with("a list of") && !expected.contains("or the path") {
        json!({"type": "array"})
    } else if expected.contains("list") {
        json!({"type": ["array", "string"]})
    } else if expected.starts_with("a size") || expected.contains("or a whole number") {
        json!({"type": ["integer", "string"]})
    } else if expected.starts_with("text, a number") {
        json!({})
    } else {
        json!({"type": "string"})
    };
    if is_optional && form["type"] != "string" { json!({"anyOf": [form, {"const": ""}]}) } else { form }
}

/// The choices of a text that has nothing else: words in quotes, or numbers.
fn choices(expected: &str) -> Option<Vec<Json>> {
    let parts = expected.replace(", or ", ", ").replace(" or ", ", ");
    let choice = |part: &str| -> Option<Json> {
        let word = part.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match word {
            Some(word) => (!word.contains('"')).then(|| word.into()),
            None => part.parse::<u64>().ok().map(Json::from),
        }
    };
    parts.split(", ").map(choice).collect()
}

/// A number in the range that a text describes.
fn ranged(kind: &str, range: &str) -> Json {
    let mut form = json!({"type": kind});
    let words: Vec<&str> = range.split([' ', ',']).collect();
    for pair in words.windows(2) {
        let end = match pair[0] {
            "from" => "minimum",
            "above" => "exclusiveMinimum",
            "to" | "most" => "maximum",
            "below" => "exclusiveMaximum",
            _ => continue,
        };
        let power = pair[1].strip_prefix("2^").and_then(|power| 1_u64.checked_shl(power.parse().ok()?));
        let whole = || pair[1].parse::<u64>().ok().map(Json::from);
        let number = || pair[1].parse::<f64>().ok().map(Json::from);
        if let Some(number) = power.map(Json::from).or_else(whole).or_else(number) {
            form[end] = number;
        }
    }
    form
}

/// The keys that a commented file names: those that it sets, and those in comments of the form `# key =
/// value`.
pub(in crate::config) fn named_in(text: &str) -> BTreeSet<String> {
    let mut table = String::new();
    let mut keys = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = table_of(line) {
            table = name;
        }
        let setting = line.strip_prefix("# ").unwrap_or(line).split_once(" = ");
        if let Some((key, _)) = setting
            && !key.contains([' ', ','])
        {
            keys.insert(format!("{table}{key}"));
        }
    }
    keys
}

/// What stands before the keys of the table that a line begins.
fn table_of(line: &str) -> Option<String> {
    let list = line.strip_prefix("# [[").and_then(|rest| rest.strip_suffix("]]"));
    let table = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    list.map(|name| format!("{name}.#.")).or_else(|| table.map(|name| format!("{name}.")))
}

/// For each key and each table of a commented file, the comment above it; consecutive keys share one.
pub(in crate::config) fn comments_in(text: &str) -> BTreeMap<String, String> {
    let (mut table, mut comment, mut after_key) = (String::new(), String::new(), false);
    let mut comments = BTreeMap::new();
    for line in text.lines() {
        let keys = named_in(line);
        if let Some(name) = table_of(line) {
            comments.insert(name.trim_end_matches('.').to_owned(), std::mem::take(&mut comment));
            table = name;
        } else if let Some(key) = keys.first() {
            comments.insert(format!("{table}{key}"), comment.clone());
            after_key = true;
        } else {
            if std::mem::take(&mut after_key) {
                comment.clear();
            }
            comment = comment + line.trim_start_matches('#') + " ";
        }
    }
    comments
}

/// The comment of a key, or else that of its table.
fn comment_of<'c>(comments: &'c BTreeMap<String, String>, key: &str) -> &'c str {
    let table = key.rsplit_once('.').map_or("", |(table, _)| table);
    let found = [key, table].into_iter().filter_map(|name| comments.get(name));
    found.map(|comment| comment.trim()).find(|comment| !comment.is_empty()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{ConfigError, Deployment, Draft, Problem, ProblemKind};

    /// Whether a value is of a form; of the words of JSON Schema those that occur here.
    fn fits(form: &Json, value: &Json) -> bool {
        let is_a = |kind: &Json| match kind.as_str().unwrap() {
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        };
        let ends = |word: &str| form[word].as_f64().zip(value.as_f64());
        let holds = |(word, of): (&String, &Json)| match word.as_str() {
            "type" => of.as_array().map_or_else(|| is_a(of), |kinds| kinds.iter().any(is_a)),
            "enum" => of.as_array().unwrap().contains(value),
            "const" => of == value,
            "anyOf" => of.as_array().unwrap().iter().any(|one| fits(one, value)),
            "minimum" => ends(word).is_none_or(|(end, number)| number >= end),
            "maximum" => ends(word).is_none_or(|(end, number)| number <= end),
            "exclusiveMinimum" => ends(word).is_none_or(|(end, number)| number > end),
            "exclusiveMaximum" => ends(word).is_none_or(|(end, number)| number < end),
            "pattern" => value.as_str().is_none_or(|text| text.contains("${")),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(of, item))),
            "properties" => value.as_object().is_none_or(|table| {
                let others = &form["additionalProperties"];
                table.iter().all(|(name, inner)| match &of[name] {
                    Json::Null => others == true || others.is_object() && fits(others, inner),
                    own => fits(own, inner),
                })
            }),
            "additionalProperties" | "description" | "title" | "$schema" => true,
            other => panic!("{other}"),
        };
        form.as_object().unwrap().iter().all(holds)
    }

    fn toml(text: &str) -> Json {
        serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
    }

    #[test]
    fn every_shipped_file_fits() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = 0;
        for (folder, of) in [
            ("pipelines", ConfigFile::Pipeline),
            ("config", ConfigFile::Deployment),
            ("docker", ConfigFile::Deployment),
        ] {
            for entry in std::fs::read_dir(root.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|ending| ending == "toml") {
                    let text = std::fs::read_to_string(&path).unwrap();
                    assert!(fits(&of.schema(), &toml(&text)), "{path:?}");
                    files += 1;
                }
            }
        }
        assert!(files > 13, "{files}");
    }

    /// Values of all types, ends of ranges, and choices.
    fn probes(expected: &str) -> Vec<String> {
        let mut probes: Vec<String> = [
            "true", "0", "1", "2", "17", "-1", "0.5", "1.0", "0.0", "1e300", "\"\"", "\"x\"", "\"30d\"", "[]",
        ]
        .map(str::to_owned)
        .into();
        for word in expected.split([' ', ',', ';']) {
            if let Ok(number) = word.parse::<u64>() {
                probes
                    .extend([number.saturating_sub(1), number, number + 1].map(|number| number.to_string()));
            } else if word.starts_with('"') && word.ends_with('"') && word.len() > 1 {
                probes.push(word.to_owned());
            }
        }
        probes
    }

    /// Whether a key has a problem, and whether that is one of its value alone.
    fn refusal<T>(read: Result<T, ConfigError>, key: &str) -> (bool, bool) {
        let Err(ConfigError::Problems(problems)) = read else { return (false, false) };
        let of_value = |one: &&Problem| matches!(one.what, ProblemKind::Unexpected { .. });
        let mut of_key = problems.iter().filter(|one| one.key == key);
        (of_key.clone().next().is_some(), of_key.find(of_value).is_some())
    }

    /// Whether the schema knows more than a type that many texts are of.
    fn is_strict(expected: &str) -> bool {
        let kind = &form(expected)["type"];
        !kind.is_array() && kind != "string" && kind != "array"
    }

    /// Of a pipeline every key is read: the schema takes what the program takes. Where the schema knows a
    /// range or choices, it refuses what the program refuses.
    #[test]
    fn a_schema_takes_what_the_program_takes() {
        let (pipeline, deployment) = (ConfigFile::Pipeline.schema(), ConfigFile::Deployment.schema());
        let mut compared = 0;
        for key in keys::KEYS {
            let name = key.name().replace('*', "title");
            for probe in probes(&key.expected()) {
                let text = format!("{name} = {probe}\n");
                let (is_refused, by_value) =
                    refusal(Draft::parse("p.toml", &text, Path::new(""), &[]), &name);
                let fits = fits(&pipeline, &toml(&text));
                assert!(fits || is_refused, "{text}");
                assert!(
                    !fits || !by_value || !is_strict(&key.expected()) || key.name() == "sketch.bound",
                    "{text}"
                );
                compared += 1;
            }
        }
        for key in deployment::KEYS.iter().copied().flatten() {
            let name = key.name().replace(".#", "");
            let is_list = key.name().contains('#');
            for probe in probes(&key.expected()).into_iter().filter(|_| !is_list && !name.contains('*')) {
                let text = format!("{name} = {probe}\n");
                let (_, by_value) = refusal(Deployment::parse("d.toml", &text, &|_| None), &name);
                assert!(
                    !by_value || !is_strict(&key.expected()) || !fits(&deployment, &toml(&text)),
                    "{text}"
                );
                compared += 1;
            }
        }
        assert!(compared > 3000, "{compared}");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let (pipeline, deployment) = (ConfigFile::Pipeline.schema(), ConfigFile::Deployment.schema());
        assert!(
            !fits(&pipeline, &toml("treshold = 0.5")) && !fits(&deployment, &toml("source.knd = \"kafka\""))
        );
        assert!(fits(
            &deployment,
            &toml("[kafka.settings]\na.b = 5\n[[view]]\nname = \"v\"\nof = \"pairs\"")
        ));
        assert!(!fits(&deployment, &toml("[[view]]\nnme = \"v\"")));
        assert!(fits(&deployment, &toml("workers = \"${WORKERS}\"\nmemory = 500000000")));
        let described = pipeline["properties"]["threshold"]["description"].as_str().unwrap();
        assert!(described.ends_with("\n\nExpected: a number above 0 and at most 1."), "{described}");
        for (keys, text) in [
            (keys::KEYS.iter().map(|key| key.named()).collect::<Vec<_>>(), PIPELINE),
            (deployment::KEYS.iter().copied().flatten().map(ConfigKey::named).collect(), DEPLOYMENT),
        ] {
            let comments = comments_in(text);
            let bare = keys.iter().filter(|key| comment_of(&comments, key).is_empty());
            assert_eq!(bare.collect::<Vec<_>>(), [&""; 0], "keys without a comment");
        }
    }
}
