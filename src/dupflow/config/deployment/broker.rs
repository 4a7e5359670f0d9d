//! The table `[kafka]` of a deployment file.

use super::source::{SourceConfig, TopicSource};
use super::values::{seconds, secret, secret_in_file};
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_connectors::kafka::broker::Connection;

/// Reads the table `[kafka]`: how brokers are reached. `writes`: whether an output is a topic.
pub(super) fn connection(settings: &mut FileSettings, source: &SourceConfig, writes: bool) -> Connection {
    let default = Connection::default();
    let brokers = settings.read("kafka.brokers", |v| {
        let listed = v.list(|one| one.text().map(str::to_owned)).map(|all| all.join(","));
        listed.or_else(|| v.text().map(str::to_owned)).filter(|brokers| !brokers.trim().is_empty())
    });
    let is_used = source.as_a::<TopicSource>().is_some() || writes || settings.is_set("watch.topic");
    if is_used && brokers.is_none() && settings.sound(&["kafka.brokers"]) {
        settings.missing("kafka.brokers");
    }
    let mut connection = Connection {
        brokers: brokers.unwrap_or(default.brokers),
        patience: seconds(settings, "kafka.connect_seconds", 1, 30),
        settings: default.settings,
    };
    for name in settings.names("kafka.settings") {
        let key = format!("kafka.settings.{name}");
        let (name, secret) = match name.strip_suffix("_file") {
            Some(name) => (name.to_owned(), secret_in_file(settings, &key)),
            None => (name, secret(settings, &key)),
        };
        let Some(secret) = secret else { continue };
        if connection.settings.insert(name.clone(), secret).is_some() {
            let what = format!("kafka.settings.{name} and kafka.settings.{name}_file are both set");
            settings.problem(&key, ProblemKind::Contradiction(what));
        }
    }
    if is_used {
        for (name, what) in connection.problems() {
            settings.problem(&format!("kafka.settings.{name}"), ProblemKind::Contradiction(what));
        }
    }
    connection
}
