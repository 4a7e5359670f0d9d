//! The weights of features: what `[text]` says about them, and whether sketch and measure agree with it.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use super::fields;
use super::problem::What;
use super::raw::{Settings, without_effect};
use crate::doc::DocId;
use crate::sketch::Scheme;
use crate::source::{self, BadRecords, Input, OnError};
use crate::text::measures::Measure;
use crate::text::{Featurizer, Field, Growth, Idf, IdfForm, IdfTable, TextRules, Weights};

/// What features of texts under these rules weigh.
pub(super) fn weights(settings: &mut Settings, rules: &TextRules) -> Weights {
    let names = ["unit", "count", "tf", "tf-idf"].map(|name| (name, name));
    let name = settings.choose("text.weights", &names, &[]).unwrap_or("unit");
    let weights = match name {
        "tf-idf" => return tf_idf(settings, rules),
        "count" => Weights::Count,
        "tf" => Weights::Tf,
        _ => Weights::Unit,
    };
    if settings.sound(&["text.weights"]) {
        let useless = ["text.idf", "text.idf_form", "text.idf_growth"];
        without_effect(settings, "text.weights", name, &useless);
    }
    weights
}

fn tf_idf(settings: &mut Settings, rules: &TextRules) -> Weights {
    let forms = [("smooth", IdfForm::Smooth), ("paper", IdfForm::Paper)];
    let form = settings.choose("text.idf_form", &forms, &[]).unwrap_or_default();
    let growth = settings.read("text.idf_growth", |value| Growth::new(value.number()?)).unwrap_or_default();
    let from = settings.read("text.idf", |value| value.text().map(str::to_owned));
    match from.as_deref() {
        None | Some("live") => Weights::TfIdf(Idf::Live(growth), form),
        Some(path) => {
            without_effect(settings, "text.idf", path, &["text.idf_growth"]);
            let path = settings.folder("text.idf").join(path);
            // Features of rules that are in doubt are not worth counting, and the corpus may be large.
            let keys =
                ["text.shingle", "text.spaceless", "text.normalize", "text.stop_words", "text.fields.*"];
            let sound = settings.sound(&keys);
            let table = if sound { table(&path, rules) } else { Ok(IdfTable::new(0, [])) };
            let table = table.unwrap_or_else(|problem| {
                settings
                    .problem("text.idf", What::Contradiction(format!("\"{}\": {problem}", path.display())));
                IdfTable::new(0, [])
            });
            Weights::TfIdf(Idf::Frozen(Arc::new(table)), form)
        }
    }
}

/// The table in a file, or that of the corpus there.
fn table(path: &Path, rules: &TextRules) -> Result<IdfTable, String> {
    let folder = path.is_dir();
    if !folder {
        let mut file = source::open(path).map_err(|error| error.to_string())?;
        let mut first = Vec::new();
        let length = IdfTable::MAGIC.len() as u64;
        file.by_ref().take(length).read_to_end(&mut first).map_err(|error| error.to_string())?;
        if first == IdfTable::MAGIC {
            return IdfTable::read(rules, Cursor::new(first).chain(file)).map_err(|error| error.to_string());
        }
    }
    let input = if folder { Input::Folder(path.to_owned()) } else { Input::Feed(path.to_owned()) };
    count(vec![input], rules)
}

/// Document frequencies of what the inputs leave alive. A record that is no event is a problem here: a file that is something else
/// altogether would give a table of nothing.
fn count(inputs: Vec<Input>, rules: &TextRules) -> Result<IdfTable, String> {
    let mut featurizer = Featurizer::new(rules.clone());
    let mut alive: BTreeMap<DocId, Box<[u64]>> = BTreeMap::new();
    let bad = BadRecords::new(OnError::Fail, None);
    source::for_each_event(inputs, &rules.field_names(), &bad, |_, event| {
        match event.text {
            Some(text) => alive.insert(event.id, featurizer.terms(&text).ids.into()),
            None => alive.remove(&event.id),
        };
    })
    .map_err(|error| error.to_string())?;
    Ok(IdfTable::count(alive.into_values()))
}

/// Notes what of sketch, weights and measure does not go together.
pub(super) fn agree(settings: &mut Settings, scheme: &Scheme) {
    let measures = [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine];
    let typed = settings.choose("measure", &measures.map(|measure| (measure.name(), measure)), &[]);
    if !settings.sound(&["sketch.kind", "text.weights"]) {
        return;
    }
    let of_kind = scheme.sketch.kind.measure();
    if of_kind == Measure::Jaccard && scheme.text.weights != Weights::Unit {
        let what = "this sketch is of sets, where nothing has a weight; sketches that take weights: dart, icws, cws, simhash";
        settings.problem("text.weights", What::Contradiction(what.to_owned()));
    }
    if scheme.text.weights == Weights::Unit {
        for Field { name, .. } in scheme.text.fields.iter().filter(|field| field.weight != 1) {
            let key = fields::key(name);
            // A file's weight does not bind the weights that were asked for in place of its own.
            if settings.is_set_beside(&key, "text.weights") {
                let what = "has no effect on a set, where nothing has a weight; set it to 1, or text.weights other than \"unit\"";
                settings.problem(&key, What::Contradiction(what.to_owned()));
            }
        }
    }
    let measure = scheme.measure();
    // A file's measure does not bind the sketch or the weights that were asked for in place of its own.
    let binds = ["sketch.kind", "text.weights"].iter().all(|key| settings.is_set_beside("measure", key));
    if let Some(typed) = typed.filter(|typed| binds && *typed != measure) {
        let fits = match typed {
            Measure::Jaccard => "a sketch of sets, or text.weights = \"unit\" with dart, icws or cws",
            Measure::WeightedJaccard => "dart, icws or cws, and text.weights other than \"unit\"",
            Measure::Cosine => "simhash",
        };
        let what = format!(
            "this sketch and these weights are of the measure \"{}\"; \"{}\" goes with {fits}",
            measure.name(),
            typed.name()
        );
        settings.problem("measure", What::Contradiction(what));
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::KEYS;
    use super::*;
    use crate::config::Plan;

    /// The weights that a pipeline in `folder` asks for, and what is wrong with it.
    fn read(folder: &Path, text: &str) -> (Weights, Vec<String>) {
        let mut settings = Settings::new(KEYS, &[]);
        settings.add_file("p", text, folder);
        let weights = weights(&mut settings, &TextRules::default());
        (weights, settings.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn what_is_typed() {
        let live = |growth, form| Weights::TfIdf(Idf::Live(growth), form);
        for (text, expected) in [
            ("", Weights::Unit),
            ("text.weights = \"unit\"", Weights::Unit),
            ("text.weights = \"count\"", Weights::Count),
            ("text.weights = \"tf\"", Weights::Tf),
            ("text.weights = \"tf-idf\"", live(Growth::default(), IdfForm::Smooth)),
            (
                "[text]\nweights = \"tf-idf\"\nidf = \"live\"\nidf_form = \"paper\"\nidf_growth = 1.5",
                live(Growth::new(1.5).unwrap(), IdfForm::Paper),
            ),
        ] {
            assert_eq!(read(Path::new(""), text), (expected, vec![]), "{text}");
        }
    }

    #[test]
    fn what_has_no_effect_or_no_meaning() {
        let problems = |text: &str| read(Path::new(""), text).1.join("\n");
        assert_eq!(
            problems("[text]\nweights = \"tf\"\nidf_growth = 3\nidf = \"live\""),
            "p:3: text.idf_growth: has no effect with text.weights = \"tf\"\n\
             p:4: text.idf: has no effect with text.weights = \"tf\""
        );
        assert_eq!(
            problems("text.idf_form = \"paper\""),
            "p:1: text.idf_form: has no effect with text.weights = \"unit\""
        );
        for growth in ["1", "0.5", "1.234", "1001", "-2"] {
            let said = problems(&format!("[text]\nweights = \"tf-idf\"\nidf_growth = {growth}"));
            assert!(said.starts_with(&format!("p:3: text.idf_growth: found {growth}, expected")), "{said}");
        }
    }

    #[test]
    fn tables_from_files_feeds_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
        let asked =
            |path: &str| read(folder.path(), &format!("[text]\nweights = \"tf-idf\"\nidf = {path:?}"));
        let table = |path: &str| match asked(path) {
            (Weights::TfIdf(Idf::Frozen(table), IdfForm::Smooth), problems) if problems.is_empty() => table,
            other => panic!("{path}: {other:?}"),
        };
        let feed = "{\"id\":\"a\",\"text\":\"gone\"}\n{\"id\":\"a\",\"text\":\"one two three one two three\"}\n\
                    {\"id\":\"b\",\"text\":\"One, two, three!\"}\n{\"id\":\"c\",\"text\":\"?\"}\n\
                    {\"id\":\"d\",\"text\":\"one two three\"}\n{\"id\":\"d\",\"op\":\"delete\"}\n";
        write("feed.jsonl", feed.as_bytes());
        write("feed.zst", &zstd::encode_all(feed.as_bytes(), 1).unwrap());
        std::fs::create_dir(folder.path().join("pages")).unwrap();
        write("pages/a", b"one two three one two three");
        write("pages/b", b"one two three");

        let counted = table("feed.jsonl");
        let feature = Featurizer::new(TextRules::default()).features("one two three")[0];
        assert_eq!((counted.documents(), counted.len(), counted.holders(feature)), (2, 3, 2));
        let mut file = Vec::new();
        counted.write(&TextRules::default(), &mut file).unwrap();
        write("idf.tsv", &file);
        write("idf.tsv.zst", &zstd::encode_all(&file[..], 1).unwrap());
        for same in ["feed.zst", "pages", "idf.tsv", "idf.tsv.zst"] {
            assert_eq!(table(same), counted, "{same}");
        }

        write("other.tsv", String::from_utf8(file).unwrap().replace("\"char\"", "\"run\"").as_bytes());
        write("nothing.txt", b"these are words\n");
        let problem = |path: &str| asked(path).1.join("\n");
        assert!(
            problem("other.tsv").ends_with(
                "other.tsv\": counted under other rules of [text]: spaceless is \"run\" there and \"char\" here"
            ),
            "{}",
            problem("other.tsv")
        );
        assert!(problem("nothing.txt").contains("bad record in"), "{}", problem("nothing.txt"));
        assert!(problem("absent").starts_with("p:3: text.idf: \""), "{}", problem("absent"));
        let growth = read(folder.path(), "[text]\nweights = \"tf-idf\"\nidf = \"pages\"\nidf_growth = 2").1;
        assert_eq!(growth, ["p:4: text.idf_growth: has no effect with text.idf = \"pages\""]);
    }

    #[test]
    fn sets_have_no_weights() {
        let problems = |text: &str| {
            Plan::parse("p", text, Path::new(""), &[])
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(problems("measure = \"jaccard\"\ntext.weights = \"unit\""), "");
        let other = ["sketch.kind=dart".to_owned(), "text.weights=tf".to_owned()];
        let overridden = |text| Plan::parse("p", text, Path::new(""), &other).unwrap().scheme.measure();
        assert_eq!(overridden("measure = \"jaccard\""), Measure::WeightedJaccard);
        assert_eq!(
            problems("text.weights = \"count\""),
            "p:1: text.weights: this sketch is of sets, where nothing has a weight; sketches that take weights: dart, \
             icws, cws, simhash"
        );
        assert_eq!(
            problems("measure = \"cosine\""),
            "p:1: measure: this sketch and these weights are of the measure \"jaccard\"; \"cosine\" goes with simhash"
        );
    }
}
