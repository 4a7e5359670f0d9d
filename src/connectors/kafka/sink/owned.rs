//! The topics that a run writes: whether each is still the one with which the run began.
//!
//! A topic that is deleted, or deleted and created again, has lost what the run wrote. So ids are looked
//! at from time to time, on a thread of its own: a commit may wait for a topic that does not exist any more.
//! The first such topic ends the run, and the commit that waits.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::holder::TopicHolder;
use crate::kafka::broker::{Admin, Connection, Consumer, KafkaFailure, topic_by_name};
use crate::mark::Topic;
use crate::sinks::OutputGuard;
use dupflow_core::time::{Clock, SystemClock};

/// Timeout of a request.
const REQUEST: Duration = Duration::from_secs(2);

/// How long all brokers may not know a topic until it counts as deleted, and how often it is looked for
/// meanwhile.
const ABSENT: Duration = Duration::from_secs(5);
const AGAIN: Duration = Duration::from_secs(1);

/// What a topic holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopicRole {
    Output,
    Marks,
    Rows,
    Letters,
}

impl TopicRole {
    /// What to do once it is lost.
    pub(super) fn remedy(self) -> &'static str {
        match self {
            Self::Output => "start with --reconcile, which writes what the new topic does not hold",
            Self::Marks => {
                "start with --reconcile, which compares the result with the output, writes the differences \
                 as corrections, and makes a new mark"
            }
            Self::Rows => "start again, which writes the rows that the new topic does not hold",
            Self::Letters => "the dead letters in it are lost; start again, and later ones are written",
        }
    }
}

/// The topics of a run, and why it cannot write them any more.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnedTopics(Arc<Mutex<OwnedState>>);

#[derive(Debug, Default)]
struct OwnedState {
    topics: BTreeMap<String, (Topic, TopicRole)>,
    /// Of the topics of rows.
    holders: Vec<TopicHolder>,
    lost: Option<String>,
}

impl OwnedTopics {
    /// Adds a topic that exists. Returns it, with its id.
    pub(super) fn add(
        &self,
        admin: &Admin,
        name: &str,
        role: TopicRole,
    ) -> Result<Option<Topic>, KafkaFailure> {
        let found = admin.topic(name)?;
        if let Some(topic) = &found {
            self.0.lock().topics.insert(name.to_owned(), (topic.clone(), role));
        }
        Ok(found)
    }

    /// Keeps the membership in the group of a topic until the run ends.
    pub(super) fn hold(&self, holder: Option<TopicHolder>) {
        self.0.lock().holders.extend(holder);
    }

    /// Fails once a topic is lost.
    pub(super) fn check(&self) -> Result<(), KafkaFailure> {
        self.0.lock().lost.clone().map_or(Ok(()), |lost| Err(KafkaFailure::Fatal(lost)))
    }

    /// What looks at the topics every `every`.
    pub(super) fn guard(&self, connection: &Connection, every: Duration) -> OutputGuard {
        let (owned, connection) = (self.clone(), connection.clone());
        let (mut looks, mut client) = (Looks::default(), None);
        let clock = SystemClock::start();
        Box::new(move || {
            if client.is_none() {
                client = consumer(&connection).ok();
            }
            let Some(client) = &client else { return Ok(every) };
            // Serves the client, which reads nothing.
            drop(client.poll(Duration::ZERO));
            let topics: Vec<_> = {
                let state = owned.0.lock();
                state.holders.iter().for_each(|holder| holder.serve(Duration::ZERO));
                state.topics.values().cloned().collect()
            };
            for (topic, role) in topics {
                // Without an answer, the topic is looked at the next time.
                let Ok(found) = topic_by_name(client, &topic.name, REQUEST) else { continue };
                if let Some(lost) = looks.lost(&topic, role, found.as_ref(), clock.now()) {
                    owned.0.lock().lost = Some(lost.clone());
                    return Err(io::Error::other(lost));
                }
            }
            Ok(if looks.absent.is_empty() { every } else { every.min(AGAIN) })
        })
    }
}

fn consumer(connection: &Connection) -> Result<Consumer, KafkaFailure> {
    connection.consumer("the output topics", &[("isolation.level", "read_committed")])
}

/// What was found of each topic.
#[derive(Debug, Default)]
struct Looks {
    /// Since when no broker has known a topic, by its name.
    absent: BTreeMap<String, Duration>,
}

impl Looks {
    /// Why a topic is lost; `None` if it is there, or may be there soon. `found`: what has its name now.
    fn lost(
        &mut self,
        topic: &Topic,
        role: TopicRole,
        found: Option<&Topic>,
        now: Duration,
    ) -> Option<String> {
        let what = match found {
            Some(found) if topic.is(found) => {
                self.absent.remove(&topic.name);
                return None;
            }
            Some(found) => format!("has been created again while it was written: it is {found} now"),
            None => {
                let since = *self.absent.entry(topic.name.clone()).or_insert(now);
                if now - since < ABSENT {
                    return None;
                }
                "has been deleted while it was written".to_owned()
            }
        };
        Some(format!("{topic} {what}; {}", role.remedy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_is_lost_with_another_id_or_after_a_while() {
        let topic = |id: &str| Topic { name: "t".to_owned(), id: Some(id.to_owned()) };
        let mut looks = Looks::default();
        let mut lost = |found: Option<&str>, second| {
            let found = found.map(topic);
            let now = Duration::from_secs(second);
            looks.lost(&topic("1"), TopicRole::Output, found.as_ref(), now)
        };
        assert_eq!([lost(Some("1"), 0), lost(None, 1), lost(None, 5)], [None, None, None]);
        assert_eq!([lost(Some("1"), 6), lost(None, 7), lost(None, 11)], [None, None, None], "it was there");
        let deleted = lost(None, 12).unwrap();
        assert!(deleted.contains("deleted") && deleted.contains("--reconcile"), "{deleted}");
        let again = lost(Some("2"), 13).unwrap();
        assert!(again.contains("\"t\" (id 1)") && again.contains("(id 2) now"), "{again}");
    }
}
