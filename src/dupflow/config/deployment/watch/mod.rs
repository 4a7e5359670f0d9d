//! The tables `[watch]` and `[notices]` of a deployment file: the watch list, and where its notices go.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::deployment::outputs::{OutputPlace, check_side};
use crate::config::deployment::tables;
use crate::config::deployment::values::{
    Database, optional, path, secret, secret_in_file, side_table, time, topic_name,
};
use crate::config::settings::{ConfigValue, DeploymentKey, FileSettings, ProblemKind};
use dupflow_connectors::credential::Credential;
use dupflow_connectors::tables::DatabaseTable;
use dupflow_run::missing_feature;

/// The keys of `[watch]` and `[notices]`.
pub(super) const KEYS: [DeploymentKey; 20] = [
    DeploymentKey { name: "watch.path", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "watch.inputs", expected: "a list of paths" },
    DeploymentKey { name: "watch.topic", expected: "the name of a topic, or \"\" for none" },
    DeploymentKey { name: "watch.database", expected: "the path of a database, or \"\" for none" },
    DeploymentKey { name: "watch.url", expected: tables::URL },
    DeploymentKey { name: "watch.url_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "watch.table", expected: "the name of a table or a view" },
    DeploymentKey { name: "watch.id", expected: "the name of a column" },
    DeploymentKey { name: "watch.text", expected: "the name of a column" },
    DeploymentKey {
        name: "watch.order",
        expected: "the name of a column that grows: updated_at, or a serial number",
    },
    DeploymentKey { name: "watch.refresh", expected: "a time from \"100ms\" to \"3600s\"" },
    DeploymentKey { name: "notices.path", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "notices.topic", expected: "the name of a topic, or \"\" for none" },
    DeploymentKey { name: "notices.table", expected: "a name of a-z, 0-9 and \"_\", or \"\" for none" },
    DeploymentKey { name: "notices.hook.url", expected: "an address that begins with http:// or https://" },
    DeploymentKey { name: "notices.hook.secret", expected: "text of 16 bytes or more" },
    DeploymentKey { name: "notices.hook.secret_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "notices.hook.timeout", expected: "a time from \"1ms\" to \"300s\"" },
    DeploymentKey { name: "notices.hook.cursor", expected: "a path" },
    DeploymentKey { name: "notices.hook.dead_letter", expected: "a path" },
];

/// The least length of the secret of a web hook, in bytes, inclusive.
const SECRET_BYTES: usize = 16;

/// A watch list and its notices.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchConfig {
    /// The file of posted watches; `None`: none are accepted.
    pub path: Option<PathBuf>,
    /// Files with watches.
    pub inputs: Vec<PathBuf>,
    /// A topic of watches.
    pub topic: Option<String>,
    /// A table of watches.
    pub table: Option<Box<DatabaseTable>>,
    /// The time between two readings of the inputs.
    pub refresh: Duration,
    /// Where the notices go.
    pub notices: NoticesConfig,
    /// The web hook; `None` if there is none. There is a file of notices then.
    pub hook: Option<HookConfig>,
}

/// Where notices go: at least one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoticesConfig {
    /// A file.
    pub path: Option<PathBuf>,
    /// A topic, where the sink is a topic.
    pub topic: Option<String>,
    /// A table, where the sink is tables.
    pub table: Option<String>,
}

/// A web hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookConfig {
    /// The receiver.
    pub url: String,
    /// The key of signatures.
    pub secret: Credential,
    /// The longest time of an attempt.
    pub timeout: Duration,
    /// The file of the cursor.
    pub cursor: PathBuf,
    /// The file of refused notices.
    pub dead_letter: PathBuf,
}

impl WatchConfig {
    /// A list that is given by files, for a replay.
    pub fn of_files(inputs: Vec<PathBuf>, notices: PathBuf) -> Self {
        let refresh = Duration::MAX;
        let notices = NoticesConfig { path: Some(notices), ..NoticesConfig::default() };
        Self { path: None, inputs, topic: None, table: None, refresh, notices, hook: None }
    }

    /// The files that are written, each with its key.
    pub fn written(&self) -> Vec<(&'static str, &std::path::Path)> {
        let mut written = Vec::new();
        written.extend(self.notices.path.iter().map(|path| ("notices.path", &**path)));
        written.extend(self.path.iter().map(|path| ("watch.path", &**path)));
        if let Some(hook) = &self.hook {
            written.push(("notices.hook.cursor", &hook.cursor));
            written.push(("notices.hook.dead_letter", &hook.dead_letter));
        }
        written
    }
}

/// Reads `[watch]` and `[notices]`.
pub(super) fn watch(settings: &mut FileSettings, sink: &OutputPlace) -> Option<WatchConfig> {
    let some =
        |value: &ConfigValue| path(value).map(|path| Some(path).filter(|path| !path.as_os_str().is_empty()));
    let list = settings.read("watch.path", some).flatten();
    let inputs = settings.read("watch.inputs", |v| v.list(path)).unwrap_or_default();
    let topic = optional(settings, "watch.topic", topic_name);
    if topic.is_some() && cfg!(not(feature = "kafka")) {
        let what = missing_feature("Kafka", "kafka");
        settings.problem("watch.topic", ProblemKind::Contradiction(what));
    }
    let table = table(settings);
    let refresh = time(settings, "watch.refresh", Duration::from_secs(3600));
    if refresh.is_some_and(|time| time < Duration::from_millis(100)) {
        let what = "less than \"100ms\": each time the inputs of the list are read whole";
        settings.problem("watch.refresh", ProblemKind::Contradiction(what.to_owned()));
    }
    let notices = NoticesConfig {
        path: settings.read("notices.path", some).flatten(),
        topic: optional(settings, "notices.topic", topic_name),
        table: optional(settings, "notices.table", side_table),
    };
    check_side(
        settings,
        sink,
        ("notices.topic", notices.topic.is_some()),
        ("notices.table", notices.table.is_some()),
    );
    let has_place = notices != NoticesConfig::default();
    let hook = hook(settings, notices.path.as_ref());
    if list.is_none() && inputs.is_empty() && topic.is_none() && table.is_none() {
        let sources = ["watch.path", "watch.inputs", "watch.topic", "watch.table"];
        if (has_place || hook.is_some()) && settings.sound(&sources) {
            let what = "there are no watches: set watch.path, watch.inputs, watch.topic or watch.table";
            let keys = ["notices.path", "notices.topic", "notices.table"];
            let key = keys.into_iter().find(|key| settings.is_set(key)).unwrap_or("notices.path");
            settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    }
    if !has_place && settings.sound(&["notices.path", "notices.topic", "notices.table"]) {
        settings.missing("notices.path");
    }
    Some(WatchConfig {
        path: list,
        inputs,
        topic,
        table,
        refresh: refresh.unwrap_or(Duration::from_secs(60)),
        notices,
        hook,
    })
}

/// The table of watches, if one is named. It is read whole each time.
fn table(settings: &mut FileSettings) -> Option<Box<DatabaseTable>> {
    let text = |value: &ConfigValue| {
        value.text().map(|text| Some(text.to_owned()).filter(|text| !text.trim().is_empty()))
    };
    let file = settings.read("watch.database", path).filter(|path| !path.as_os_str().is_empty());
    let name = settings.read("watch.table", text).flatten();
    let columns = ["watch.id", "watch.text", "watch.order"].map(|key| settings.read(key, text).flatten());
    let database = if file.is_some() { Database::Sqlite } else { Database::Postgres };
    if name.is_none() {
        if file.is_some() || columns.iter().any(Option::is_some) {
            settings.missing("watch.table");
        }
        return None;
    }
    if let Some(what) = database.missing() {
        settings.problem("watch.table", ProblemKind::Contradiction(what));
    }
    let address = tables::watched(settings, database);
    let [id, body, order] = columns;
    if order.is_none() && settings.sound(&["watch.order"]) {
        settings.missing("watch.order");
    }
    Some(Box::new(tables::whole_table(
        address,
        name.unwrap_or_default(),
        id.unwrap_or_else(|| "id".to_owned()),
        body.unwrap_or_else(|| "text".to_owned()),
        order.unwrap_or_default(),
    )))
}

/// The web hook, if one is named.
fn hook(settings: &mut FileSettings, notices: Option<&PathBuf>) -> Option<HookConfig> {
    const URL: &str = "notices.hook.url";
    let is_url = |url: &str| {
        let rest = ["http://", "https://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        rest.is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
    };
    let url = settings.read(URL, |v| match v.text()? {
        "" => Some(None),
        url => is_url(url).then(|| Some(url.to_owned())),
    });
    let timeout = time(settings, "notices.hook.timeout", Duration::from_secs(300));
    let secret = hook_secret(settings);
    let mut file = |key, suffix: &str| {
        let typed = settings.read(key, path).filter(|path| !path.as_os_str().is_empty());
        typed.unwrap_or_else(|| {
            let mut beside = notices.cloned().unwrap_or_default().into_os_string();
            beside.push(suffix);
            beside.into()
        })
    };
    let cursor = file("notices.hook.cursor", ".cursor");
    let dead_letter = file("notices.hook.dead_letter", ".refused");
    let url = url.flatten();
    if url.is_none() {
        if secret.is_some() && settings.sound(&[URL]) {
            settings.missing(URL);
        }
        return None;
    }
    if cfg!(not(feature = "webhook")) {
        let what = missing_feature("web hooks", "webhook");
        settings.problem(URL, ProblemKind::Contradiction(what));
    }
    if secret.is_none() && settings.sound(&["notices.hook.secret", "notices.hook.secret_file"]) {
        settings.missing("notices.hook.secret");
    }
    if notices.is_none() && settings.sound(&["notices.path"]) {
        let what = "the file of notices is the queue of the web hook: it needs notices.path";
        settings.problem(URL, ProblemKind::Contradiction(what.to_owned()));
    }
    Some(HookConfig {
        url: url.unwrap_or_default(),
        secret: secret.unwrap_or_else(|| Credential::new("")),
        timeout: timeout.unwrap_or(Duration::from_secs(10)),
        cursor,
        dead_letter,
    })
}

/// The secret of the web hook, if there is one.
fn hook_secret(settings: &mut FileSettings) -> Option<Credential> {
    let typed = secret(settings, "notices.hook.secret").filter(|secret| !secret.reveal().is_empty());
    let in_file = secret_in_file(settings, "notices.hook.secret_file");
    if typed.is_some() && in_file.is_some() {
        let what = "notices.hook.secret and notices.hook.secret_file are both set";
        settings.problem("notices.hook.secret_file", ProblemKind::Contradiction(what.to_owned()));
    }
    let secret = typed.or(in_file);
    if secret.as_ref().is_some_and(|secret| secret.reveal().len() < SECRET_BYTES) {
        let what = format!("a secret has {SECRET_BYTES} bytes or more");
        settings.problem("notices.hook.secret", ProblemKind::Contradiction(what));
    }
    secret
}
