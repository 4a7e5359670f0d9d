//! The settings of a TOML file by dotted key, each with its place.
//!
//! Input: a file and any number of `key=value` overrides; a later one replaces an earlier one. Output: typed
//! values, and every [`Problem`]. A value that cannot be read is recorded as a problem and replaced by the
//! default, so that one pass finds all problems.
//!
//! It does not use a `serde` derive, which stops at the first problem.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::key::{ConfigKey, is_numbered, within};
use super::problem::{Origin, Problem, ProblemKind};
use super::typed_key::TypedKey;
use super::value::ConfigValue;

/// One setting.
#[derive(Clone, Debug)]
pub(in crate::config) struct ConfigSetting {
    pub(in crate::config) value: ConfigValue,
    /// The text of the value as typed.
    typed: String,
    pub(in crate::config) at: Origin,
}

/// The settings of one file with its overrides, and the problems found so far.
pub(in crate::config) struct FileSettings {
    keys: Vec<&'static dyn ConfigKey>,
    /// Keys and tables that only other versions have; a table stands for all its keys.
    later: &'static [&'static str],
    entries: BTreeMap<String, ConfigSetting>,
    /// The tables that are there, also those without a key.
    tables: BTreeSet<String>,
    problems: Vec<Problem>,
    /// Keys with a problem. Settings that depend on them are not checked.
    unsound: BTreeSet<String>,
    /// Keys and tables that an override unsets.
    unset: BTreeSet<String>,
    /// For each layer, the folder that its relative paths start from.
    folders: Vec<PathBuf>,
    /// The name of the first file, for problems with keys that are not set.
    name: Arc<str>,
}

/// A table that is read in the place of another one.
pub(in crate::config) struct TableRole {
    /// The table, as in "output.2".
    pub(in crate::config) table: String,
    /// The table whose keys it has.
    pub(in crate::config) stands_for: &'static str,
    /// A key that has another name there: as typed, and as read.
    pub(in crate::config) renamed: (&'static str, &'static str),
}

impl TableRole {
    /// The key under which a name of the table is read.
    fn key(&self, name: &str) -> String {
        let name = if name == self.renamed.0 { self.renamed.1 } else { name };
        format!("{}.{name}", self.stands_for)
    }

    /// The key of a name of the other table as it is typed.
    fn typed(&self, name: &str) -> String {
        let name = if name == self.renamed.1 { self.renamed.0 } else { name };
        format!("{}.{name}", self.table)
    }

    /// A message with the keys as they are typed. What is in quotes is of the user.
    fn as_typed(&self, text: &str) -> String {
        let Self { table, stands_for, renamed: (typed, read) } = self;
        let renamed = |part: &str| {
            let part = part.replace(&format!("{stands_for}.{read}"), &format!("{table}.{typed}"));
            part.replace(&format!("{stands_for}."), &format!("{table}."))
        };
        let parts = text.split('"').enumerate();
        let parts: Vec<_> =
            parts.map(|(n, part)| if n % 2 == 0 { renamed(part) } else { part.to_owned() }).collect();
        parts.join("\"")
    }
}

/// A text that settings are read from.
struct SettingsText<'t> {
    text: &'t str,
    name: Arc<str>,
    layer: usize,
    /// Whether problems report line numbers.
    lines: bool,
}

impl SettingsText<'_> {
    fn at(&self, span: Range<usize>) -> Origin {
        let line = self.lines.then(|| 1 + self.text[..span.start].matches('\n').count());
        Origin { layer: self.layer, line, source: Arc::clone(&self.name) }
    }

    /// The first line of the text at `span`.
    fn typed(&self, span: Range<usize>) -> String {
        self.text[span].lines().next().unwrap_or_default().to_owned()
    }
}

impl FileSettings {
    pub(in crate::config) fn new<K: ConfigKey>(
        keys: &[&'static [K]],
        later: &'static [&'static str],
    ) -> Self {
        Self {
            keys: keys.iter().copied().flatten().map(|key| -> &'static dyn ConfigKey { key }).collect(),
            later,
            entries: BTreeMap::new(),
            tables: BTreeSet::new(),
            problems: Vec::new(),
            unsound: BTreeSet::new(),
            unset: BTreeSet::new(),
            folders: Vec::new(),
            name: "".into(),
        }
    }

    /// Adds a TOML document; relative paths in it start from `folder`.
    pub(in crate::config) fn add_file(&mut self, name: &str, text: &str, folder: &Path) {
        self.name = name.into();
        let source =
            SettingsText { text, name: Arc::clone(&self.name), layer: self.layer(folder), lines: true };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let at = source.at(error.span().unwrap_or_default());
            self.problem_at(at, "", ProblemKind::Syntax(error.message().replace('\n', ", ")));
        }
        for (key, value) in table.get_ref() {
            self.insert(key.get_ref(), key.span(), value, &source);
        }
    }

    /// Adds a `key=value` override. The value is TOML, or text without quotes. An empty value unsets the key,
    /// or all keys of a table.
    pub(in crate::config) fn add_override(&mut self, typed: &str) {
        // A secret is not repeated.
        let shown = typed.strip_prefix("text.secret=").map_or(typed, |_| "text.secret");
        let name = format!("--set {shown}").into();
        let layer = self.layer(Path::new(""));
        let Some((key, text)) = typed.split_once('=').map(|(key, value)| (key.trim(), value.trim())) else {
            let at = Origin { layer, line: None, source: name };
            return self.problem_at(at, "", ProblemKind::Syntax("expected key=value".to_owned()));
        };
        if text.is_empty() && self.unset(key) {
            return;
        }
        let source = SettingsText { text, name, layer, lines: false };
        let text = || Spanned::new(0..text.len(), DeValue::String(text.into()));
        self.insert(key, 0..0, &DeValue::parse(source.text).unwrap_or_else(|_| text()), &source);
    }

    /// Removes a known key, or all keys of a table, as if they had never been set. False if there is no such
    /// key.
    pub(in crate::config) fn unset(&mut self, key: &str) -> bool {
        if !self.keys.iter().any(|known| known.has(key)) && self.below(key).next().is_none() {
            return false;
        }
        self.entries.retain(|name, _| name != key && within(name, key).is_none());
        self.unset.insert(key.to_owned());
        true
    }

    fn layer(&mut self, folder: &Path) -> usize {
        self.folders.push(folder.to_owned());
        self.folders.len() - 1
    }

    /// Stores a value under its key; a table is stored as its keys.
    fn insert(
        &mut self,
        key: &str,
        span: Range<usize>,
        value: &Spanned<DeValue<'_>>,
        source: &SettingsText<'_>,
    ) {
        match value.get_ref() {
            DeValue::Table(table) if self.is_table(key, table.is_empty()) => {
                self.tables.insert(key.to_owned());
                for (name, inner) in table {
                    self.insert(&format!("{key}.{}", name.get_ref()), name.span(), inner, source);
                }
            }
            DeValue::Array(tables) if self.below(key).any(|name| name.starts_with("#.")) => {
                for (n, table) in (1..).zip(tables) {
                    self.insert(&format!("{key}.{n}"), table.span(), table, source);
                }
            }
            plain => {
                let entry = ConfigSetting {
                    value: ConfigValue::from_toml(plain),
                    typed: source.typed(value.span()),
                    at: source.at(span),
                };
                self.entries.insert(key.to_owned(), entry);
            }
        }
    }

    /// Whether a table at `key` is stored as its keys. It is not where `key` itself belongs to a table of
    /// free names.
    fn is_table(&self, key: &str, is_empty: bool) -> bool {
        let is_value =
            self.keys.iter().any(|known| known.table().is_some() && !known.is_deep() && known.has(key));
        !is_value && (!is_empty || self.below(key).next().is_some())
    }

    /// The last parts of the known keys in a table.
    fn below(&self, table: &str) -> impl Iterator<Item = &'static str> {
        // A table of a list is one of any number.
        let of_list = table.rsplit_once('.').filter(|(_, number)| number.parse::<usize>().is_ok());
        let table = of_list.map_or_else(|| table.to_owned(), |(list, _)| format!("{list}.#"));
        self.keys.iter().filter_map(move |key| within(key.name(), &table))
    }

    /// The names that are set in a table of free names, sorted.
    pub(in crate::config) fn names(&self, table: &str) -> Vec<String> {
        self.entries.keys().filter_map(|key| within(key, table)).map(str::to_owned).collect()
    }

    /// The numbers of the tables in a list of tables, `[[table]]`, in order.
    pub(in crate::config) fn numbers(&self, table: &str) -> Vec<usize> {
        let number = |key: &String| within(key, table)?.split('.').next()?.parse().ok();
        let names = self.entries.keys().chain(&self.tables);
        names.filter_map(number).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Replaces `${VAR}` and `${VAR:-default}` in all texts by the values of `environment`. The default also
    /// replaces an empty variable.
    pub(in crate::config) fn interpolate(&mut self, environment: &dyn Fn(&str) -> Option<String>) {
        let mut problems = Vec::new();
        for (key, entry) in &mut self.entries {
            if let Err(what) = entry.value.interpolate(environment) {
                problems.push((entry.at.clone(), key.clone(), what));
            }
        }
        for (at, key, what) in problems {
            self.problem_at(at, &key, ProblemKind::Contradiction(what));
        }
    }

    /// All settings by key. Values of hidden keys, and of keys in hidden tables, are masked.
    pub(in crate::config) fn shown(&self, hidden: &[&str]) -> BTreeMap<String, serde_json::Value> {
        let is_hidden =
            |key: &str| hidden.iter().any(|name| is_numbered(key, name) || within(key, name).is_some());
        let shown = |(key, entry): (&String, &ConfigSetting)| {
            let value = if is_hidden(key) { "***".into() } else { entry.value.json() };
            (key.clone(), value)
        };
        self.entries.iter().map(shown).collect()
    }

    /// All settings that are in force, by key. Those that name a file there, by key and text, become paths
    /// from the working folder.
    pub(in crate::config) fn resolved(
        &self,
        names_file: fn(&str, &str) -> bool,
    ) -> BTreeMap<String, serde_json::Value> {
        let mut resolved = self.shown(&[]);
        for (key, entry) in &self.entries {
            let Some(path) = entry.value.text().filter(|text| names_file(key, text)) else { continue };
            let path = self.folder(key).join(path);
            if path.exists() {
                resolved.insert(key.clone(), path.to_string_lossy().into());
            }
        }
        resolved
    }

    /// Reports every unknown key.
    pub(in crate::config) fn reject_unknown(&mut self) {
        let mut found = Vec::new();
        for (name, entry) in &self.entries {
            let is_later = |later: &&str| {
                name.strip_prefix(*later).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            let inside: Vec<&str> = self.below(name).collect();
            let what = if self.keys.iter().any(|key| key.has(name)) {
                continue;
            } else if self.later.iter().any(is_later) {
                ProblemKind::NotAvailable { thing: "this key".to_owned(), available: Vec::new() }
            } else if inside.is_empty() {
                self.unknown(name)
            } else {
                let expected = match &inside[..] {
                    ["*" | "**"] => {
                        format!("a table of names, each with {}", self.expected(&format!("{name}.*")))
                    }
                    keys => format!(
                        "a table with the keys {}",
                        keys.join(", ").replace(".**", "").replace(".*", "").replace("#.", "")
                    ),
                };
                ProblemKind::Unexpected { found: entry.typed.clone(), expected }
            };
            found.push((entry.at.clone(), name.clone(), what));
        }
        for (at, name, what) in found {
            self.problem_at(at, &name, what);
        }
    }

    /// What is said of an unknown key: the most similar one; of a table of a list, all that it has.
    fn unknown(&self, name: &str) -> ProblemKind {
        let nearest = self.nearest(name);
        let list = name.split('.').next().unwrap_or_default();
        let keys: Vec<_> = self.below(list).filter_map(|rest| rest.strip_prefix("#.")).collect();
        if nearest.is_some() || keys.is_empty() {
            return ProblemKind::UnknownKey { nearest };
        }
        ProblemKind::Contradiction(format!("unknown key; such a table has {}", keys.join(", ")))
    }

    /// The most similar known key: by the whole name, or by the last part in another table, or as one.
    fn nearest(&self, name: &str) -> Option<String> {
        let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let distance = |key: &dyn ConfigKey| {
            let whole = strsim::damerau_levenshtein(name, key.named());
            let others = [last(key.named()), key.named().replace('.', "_")];
            let moved = others.iter().map(|other| 1 + strsim::damerau_levenshtein(&last(name), other));
            moved.fold(whole, usize::min)
        };
        // What a table of a list lacks is not looked for elsewhere.
        let list =
            name.split('.').next().filter(|table| self.below(table).any(|rest| rest.starts_with("#.")));
        let near = self.keys.iter().filter(|key| list.is_none_or(|list| within(key.name(), list).is_some()));
        let (distance, key) = near.map(|key| (distance(*key), key.named())).min_by_key(|(d, _)| *d)?;
        (distance <= 1 + last(name).len() / 4).then(|| key.to_owned())
    }

    /// The value of a key if it is set and accepted. A value that is not accepted is reported.
    pub(in crate::config) fn get<T>(&mut self, key: &TypedKey<T>) -> Option<T> {
        self.read(key.name(), |value| key.take(value))
    }

    /// The value of a known key if it is set and `read` accepts it. A value that is not accepted is reported.
    pub(in crate::config) fn read<T>(
        &mut self,
        key: &str,
        read: impl FnOnce(&ConfigValue) -> Option<T>,
    ) -> Option<T> {
        let entry = self.entries.get(key)?;
        let found = read(&entry.value);
        if found.is_none() {
            let what = ProblemKind::Unexpected { found: entry.typed.clone(), expected: self.expected(key) };
            self.problem(key, what);
        }
        found
    }

    /// The value of a key with a few choices; `later` are choices that only other versions have.
    pub(in crate::config) fn choose<T: Copy>(
        &mut self,
        key: &'static str,
        choices: &[(&'static str, T)],
        later: &[&str],
    ) -> Option<T> {
        let choice = |name: &str| choices.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice);
        if let Some(ConfigSetting { value: ConfigValue::Text(name, _), typed, .. }) = self.entries.get(key)
            && later.contains(&name.as_str())
        {
            let available = choices.iter().map(|(known, _)| *known).collect();
            self.problem(key, ProblemKind::NotAvailable { thing: typed.clone(), available });
            return None;
        }
        self.read(key, |value| choice(value.text()?))
    }

    /// Records a problem with a key; if the key is not set, with the file as a whole.
    pub(in crate::config) fn problem(&mut self, key: &str, what: ProblemKind) {
        let known = self.keys.iter().find(|known| known.has(key));
        self.unsound.insert(known.map_or(key, |known| known.name()).to_owned());
        let at = self.entries.get(key).map(|entry| entry.at.clone());
        let whole = || Origin { layer: 0, line: None, source: Arc::clone(&self.name) };
        self.problem_at(at.unwrap_or_else(whole), key, what);
    }

    /// Reports that a required key is not set.
    pub(in crate::config) fn missing(&mut self, key: &str) {
        let expected = self.expected(key);
        self.problem(key, ProblemKind::Unexpected { found: "nothing".to_owned(), expected });
    }

    fn expected(&self, key: &str) -> String {
        self.keys.iter().find(|known| known.has(key)).map_or_else(String::new, |known| known.expected())
    }

    fn problem_at(&mut self, at: Origin, key: &str, what: ProblemKind) {
        self.problems.push(Problem { at, key: key.to_owned(), what });
    }

    /// Whether none of these keys has a problem.
    pub(in crate::config) fn sound(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| !self.unsound.contains(*key))
    }

    /// Reads a table in the place of another one, which is set aside meanwhile. Problems name keys as they
    /// are typed.
    pub(in crate::config) fn read_as<T>(&mut self, role: &TableRole, read: impl FnOnce(&mut Self) -> T) -> T {
        let aside = self.take_table(role.stands_for);
        for (name, setting) in self.take_table(&role.table) {
            self.entries.insert(role.key(&name), setting);
        }
        let of_role = |name: &String| within(name, role.stands_for).is_some();
        let unsound: BTreeSet<_> = self.unsound.extract_if(.., of_role).collect();
        let earlier = std::mem::take(&mut self.problems);
        let found = read(self);
        let there = self.take_table(role.stands_for);
        let own = aside.into_iter().map(|(name, setting)| (format!("{}.{name}", role.stands_for), setting));
        self.entries.extend(own);
        self.entries.extend(there.into_iter().map(|(name, setting)| (role.typed(&name), setting)));
        self.unsound.retain(|name| !of_role(name));
        self.unsound.extend(unsound);
        let problems = std::mem::replace(&mut self.problems, earlier).into_iter();
        self.problems.extend(problems.map(|problem| problem.renamed(|text| role.as_typed(text))));
        found
    }

    /// Removes the settings of a table. Returns them by the rest of their keys.
    fn take_table(&mut self, table: &str) -> Vec<(String, ConfigSetting)> {
        self.tables.remove(table);
        let rest = |name: &str| within(name, table).map(str::to_owned);
        let taken = self.entries.extract_if(.., |name, _| rest(name).is_some());
        taken.filter_map(|(name, setting)| Some((rest(&name)?, setting))).collect()
    }

    /// Whether a table is there, or a key of it is set.
    pub(in crate::config) fn has_table(&self, table: &str) -> bool {
        self.tables.contains(table) || self.entries.keys().any(|name| within(name, table).is_some())
    }

    /// Whether a key is set.
    pub(in crate::config) fn is_set(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    /// Whether a key is set and applies together with `other`: not if only the file sets it while an override
    /// sets or unsets `other`.
    pub(in crate::config) fn applies_with(&self, key: &str, other: &str) -> bool {
        let overridden = |name: &str| self.entries.get(name).map(|entry| entry.at.layer > 0);
        let other_is = || overridden(other).unwrap_or_else(|| self.unset.contains(other));
        overridden(key).is_some_and(|key_is| key_is || !other_is())
    }

    /// The value of a key whose value is secret; problems do not quote it.
    pub(in crate::config) fn secret<T>(
        &self,
        key: &str,
        read: impl FnOnce(&ConfigValue) -> Option<T>,
    ) -> Option<Result<T, ()>> {
        self.entries.get(key).map(|entry| read(&entry.value).ok_or(()))
    }

    /// Removes a setting as if it had never been set.
    pub(in crate::config) fn forget(&mut self, key: &str) {
        self.entries.remove(key);
    }

    /// Where a key is set; `None` if it is not.
    pub(in crate::config) fn origin(&self, key: &str) -> Option<Origin> {
        self.entries.get(key).map(|entry| entry.at.clone())
    }

    /// The folder that a relative path in this key starts from.
    pub(in crate::config) fn folder(&self, key: &str) -> PathBuf {
        self.entries.get(key).map(|entry| self.folders[entry.at.layer].clone()).unwrap_or_default()
    }

    /// All problems, in the order of their places.
    pub(in crate::config) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by(|a, b| (&a.at, &a.key).cmp(&(&b.at, &b.key)));
        self.problems
    }
}

/// Reports the keys that a kind does not read. If only the kind was overridden, the file's values of those
/// keys are dropped without a problem.
pub(in crate::config) fn without_effect(
    settings: &mut FileSettings,
    kind: &'static str,
    named: &str,
    keys: &[&'static str],
) {
    for key in keys {
        if settings.applies_with(key, kind) {
            settings
                .problem(key, ProblemKind::Contradiction(format!("has no effect with {kind} = \"{named}\"")));
        }
        settings.forget(key);
    }
}
