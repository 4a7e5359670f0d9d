//! What an output shares with what is read, and with the rows that are written beside it.

use super::places::{OutputPlace, TablesPlace, TopicPlace};
use crate::config::deployment::source::{SourceConfig, TopicSource};
use crate::config::settings::{FileSettings, ProblemKind};
use dupflow_connectors::tables::TableOutput;
use dupflow_connectors::tables::database::Address;

/// The longest name on a PostgreSQL server, in bytes, inclusive. It cuts a longer one.
const MOST_NAME: usize = 63;

/// Reports topics of the output that are read, or that hold its marks too.
pub(super) fn check_topics(settings: &mut FileSettings, sink: &OutputPlace, source: &SourceConfig) {
    let Some(TopicPlace { topic, progress_topic, .. }) = sink.as_a() else { return };
    if let Some(TopicSource { topic: input, .. }) = source.as_a()
        && !input.is_empty()
        && (input == topic || input == progress_topic)
    {
        let what = "the output goes to the topic that is read".to_owned();
        let key = if input == topic { "sink.topic" } else { "sink.progress_topic" };
        settings.problem(key, ProblemKind::Contradiction(what));
    }
    if !topic.is_empty() && topic == progress_topic {
        let what = "marks need a topic of their own".to_owned();
        settings.problem("sink.progress_topic", ProblemKind::Contradiction(what));
    }
}

/// Reports a topic or a table of rows beside the deltas, each by its key and whether it is named, that this
/// sink does not have.
pub(in crate::config::deployment) fn check_side(
    settings: &mut FileSettings,
    sink: &OutputPlace,
    (topic, has_topic): (&str, bool),
    (table, has_table): (&str, bool),
) {
    let mut refuse = |key: &str, what: &str, kinds: &str| {
        let what =
            format!("{what} is written in the transaction of the sink, which has to be sink.kind = {kinds}");
        settings.problem(key, ProblemKind::Contradiction(what));
    };
    if has_topic && sink.as_a::<TopicPlace>().is_none() {
        refuse(topic, "a topic", "\"kafka\"");
    }
    if has_table && sink.as_a::<TablesPlace>().is_none() {
        refuse(table, "a table", "\"sqlite\" or \"postgres\"");
    }
}

/// Reports topics and tables of rows beside the deltas that hold something else, too. Views may share theirs
/// with each other; notices have their own. `names` are all of them, each with its key; `topics` are those
/// that the deployment names elsewhere.
pub(in crate::config::deployment) fn check_side_names(
    settings: &mut FileSettings,
    sink: &OutputPlace,
    names: &[(String, &str)],
    topics: &[(String, &str)],
) {
    let mut taken = Vec::new();
    if let Some(TopicPlace { topic, progress_topic, .. }) = sink.as_a() {
        let own = [("sink.topic", topic), ("sink.progress_topic", progress_topic)];
        taken.extend(own.map(|(key, name)| (key.to_owned(), name.as_str())));
        taken.extend_from_slice(topics);
    }
    for (key, name) in names {
        let of_views = names.iter().filter(|(other, _)| key.starts_with("notices.") && other != key);
        let other = taken.iter().chain(of_views).find(|(_, other)| other == name);
        let what = match (other, sink.as_a()) {
            (Some((other, _)), _) => format!("\"{name}\" is that of {other}: these rows need their own"),
            (None, _) if key.ends_with(".table") && TableOutput::NAMES.contains(name) => {
                format!("\"{name}\" is a name of the sink itself")
            }
            (None, Some(TablesPlace { address: Address::Sqlite(_), prefix, .. }))
                if format!("{prefix}{name}").starts_with("sqlite_") =>
            {
                "names that begin with \"sqlite_\" are those of SQLite itself".to_owned()
            }
            (None, Some(TablesPlace { address: Address::Postgres(_), prefix, .. }))
                if prefix.len() + name.len() > MOST_NAME =>
            {
                let length = prefix.len() + name.len();
                format!(
                    "it has {length} bytes with sink.prefix, and a name on the server has {MOST_NAME} at most"
                )
            }
            _ => continue,
        };
        settings.problem(key, ProblemKind::Contradiction(what));
    }
}
