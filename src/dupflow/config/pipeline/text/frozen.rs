//! Frozen tables of document frequencies: reads the table that a checked pipeline names.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::config::pipeline::keys::IDF;
use crate::config::settings::{ConfigError, ConfigKey, Origin, Problem, ProblemKind};
use dupflow_connectors::formats;
use dupflow_connectors::inputs::Input;
use dupflow_connectors::inputs::for_each_event;
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::DocId;
use dupflow_core::text::{Featurizer, IdfTable, TextRules, Weights};

/// The path of a table, and where the pipeline names it.
#[derive(Clone, Debug)]
pub(in crate::config::pipeline) struct TableSource {
    pub(in crate::config::pipeline) path: PathBuf,
    /// The setting that names the path.
    pub(in crate::config::pipeline) at: Origin,
}

/// Cache of the tables that have been read. Each path is read once; later changes of the file are ignored.
#[derive(Debug, Default)]
pub struct FrozenTables(Vec<(PathBuf, TextRules, Arc<IdfTable>)>);

impl FrozenTables {
    /// The table of `source` for features under `rules`: from the cache, or read and cached.
    pub(in crate::config::pipeline) fn read(
        &mut self,
        source: &TableSource,
        rules: &TextRules,
    ) -> Result<Arc<IdfTable>, ConfigError> {
        let TableSource { path, at } = source;
        let rules = TextRules { weights: Weights::Unit, ..rules.clone() };
        if let Some((.., known)) = self.0.iter().find(|(of, by, _)| of == path && *by == rules) {
            return Ok(Arc::clone(known));
        }
        let read = table(path, &rules).map_err(|problem| {
            let what = ProblemKind::Contradiction(format!("\"{}\": {problem}", path.display()));
            ConfigError::Problems(vec![Problem { at: at.clone(), key: IDF.name().to_owned(), what }])
        });
        let read = Arc::new(read?);
        self.0.push((path.clone(), rules, Arc::clone(&read)));
        Ok(read)
    }
}

/// Reads a table from a file, or counts one from the corpus at this path.
fn table(path: &Path, rules: &TextRules) -> Result<IdfTable, String> {
    let folder = path.is_dir();
    if !folder {
        let mut file = formats::open(path).map_err(|error| error.to_string())?;
        let mut first = Vec::new();
        let length = IdfTable::MAGIC.len() as u64;
        file.by_ref().take(length).read_to_end(&mut first).map_err(|error| error.to_string())?;
        if first == IdfTable::MAGIC {
            return IdfTable::read(rules, Cursor::new(first).chain(file)).map_err(|error| error.to_string());
        }
    }
    count(vec![Input::of_records(path)], rules)
}

/// Counts document frequencies over the live documents of the inputs. A bad record is an error here: a file
/// of another kind would silently give an empty table.
fn count(inputs: Vec<Input>, rules: &TextRules) -> Result<IdfTable, String> {
    let mut featurizer = Featurizer::new(rules.clone());
    let mut alive: BTreeMap<DocId, Box<[u64]>> = BTreeMap::new();
    let bad = BadRecords::new(OnError::Fail, None);
    for_each_event(inputs, &rules.columns(), &bad, |_, event| {
        match event.text {
            Some(text) => alive.insert(event.id, featurizer.terms(&text).ids.into()),
            None => alive.remove(&event.id),
        };
    })
    .map_err(|error| error.to_string())?;
    Ok(IdfTable::count(alive.into_values()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Draft, Plan};
    use dupflow_core::text::{Idf, IdfForm};

    #[test]
    fn tables_from_files_feeds_and_folders() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &[u8]| std::fs::write(folder.path().join(name), text).unwrap();
        let text =
            |path: &str| format!("[text]\nweights = \"tf-idf\"\nidf = {path:?}\n[sketch]\nkind = \"dart\"");
        let asked = |path: &str| Plan::parse("p", &text(path), folder.path(), &[]);
        let table = |path: &str| match asked(path).map(|plan| plan.scheme.text.weights) {
            Ok(Weights::TfIdf(Idf::Frozen(table), IdfForm::Smooth)) => table,
            other => panic!("{path}: {other:?}"),
        };
        let feed = "{\"id\":\"a\",\"text\":\"gone\"}\n{\"id\":\"a\",\"text\":\"one two three one two \
            three\"}\n\
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

        write("other.tsv", String::from_utf8(file).unwrap().replace("\"part\"", "\"run\"").as_bytes());
        write("nothing.txt", b"these are words\n");
        let problem = |path: &str| asked(path).unwrap_err().to_string();
        assert!(
            problem("other.tsv").ends_with(
                "other.tsv\": counted under other rules of [text]: spaceless is \"run\" there and \"part\" \
                here; set them as they are there, or count again"
            ),
            "{}",
            problem("other.tsv")
        );
        assert!(problem("nothing.txt").contains("bad record in"), "{}", problem("nothing.txt"));
        assert!(problem("absent").starts_with("p:3: text.idf: \""), "{}", problem("absent"));
        let growth = text("pages").replace("[sketch]", "idf_growth = 2\n[sketch]");
        let growth = Plan::parse("p", &growth, folder.path(), &[]).unwrap_err().to_string();
        assert_eq!(growth, "p:4: text.idf_growth: has no effect with text.idf = \"pages\"");

        // Parsing reads no table; one `FrozenTables` reads each table once for all plans.
        let draft = |path: &str| Draft::parse("p", &text(path), folder.path(), &[]).unwrap();
        let mut tables = FrozenTables::default();
        assert!(draft("absent").read(&mut tables).is_err());
        let first = draft("feed.jsonl").read(&mut tables).unwrap();
        std::fs::remove_file(folder.path().join("feed.jsonl")).unwrap();
        let second = draft("feed.jsonl").read(&mut tables).unwrap();
        assert_eq!(first.scheme, second.scheme);
        assert!(draft("feed.jsonl").read(&mut FrozenTables::default()).is_err());
    }
}
