//! `dupflow check --connect`: connects to the brokers of a deployment, and writes nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

use crate::config::{DeadLetterConfig, Deployment, TopicPlace, TopicSource};
use crate::plural::counted;
use dupflow_connectors::kafka::broker::{
    Admin, KEEPS_ALL, KEEPS_MARKS, KafkaFailure, TopicRequest, TopicSettings, close_in_background,
};
use dupflow_connectors::kafka::{output_topic, side_topic, unknown_rows, watches_expire};

/// Longest wait for a broker.
const PATIENCE: Duration = Duration::from_secs(8);

/// Segment size of a topic of marks, in bytes, above which a start may read for long.
const LARGE_SEGMENT: u64 = 64 << 20;

/// The findings, one line each, with warnings marked "!"; or all that is missing or refused.
pub(in crate::cli) fn report(deployment: &Deployment) -> Result<String, Vec<String>> {
    let mut connection = deployment.kafka.clone();
    connection.patience = connection.patience.min(PATIENCE);
    let failed = |failure: KafkaFailure| vec![failure.to_string()];
    let admin = Admin::new(&connection).map_err(failed)?;
    let reached = admin.reach(&connection.brokers).map_err(failed);
    let found = reached.and_then(|()| TopicReport::run(deployment, &admin));
    close_in_background(admin);
    found
}

/// The findings so far.
struct TopicReport<'a> {
    admin: &'a Admin,
    found: String,
    problems: Vec<String>,
}

impl<'a> TopicReport<'a> {
    fn run(deployment: &Deployment, admin: &'a Admin) -> Result<String, Vec<String>> {
        let mut report = TopicReport { admin, found: String::new(), problems: Vec::new() };
        if let Some(TopicSource { topic, .. }) = deployment.source.as_a() {
            report.input(topic, deployment.state.is_some());
        }
        deployment
            .all_outputs()
            .filter_map(|output| output.place.as_a())
            .for_each(|topic| report.sink(topic));
        if deployment.output.place.as_a::<TopicPlace>().is_some() {
            let topics: BTreeSet<_> = deployment.side_names().into_iter().map(|(_, topic)| topic).collect();
            topics.into_iter().for_each(|topic| report.rows(topic));
        }
        if let Some(topic) = deployment.watch.as_ref().and_then(|watch| watch.topic.as_ref()) {
            match look(report.admin, topic) {
                Ok(line) => {
                    report.add(&line);
                    report.watches(topic);
                }
                Err(failure) => report.problems.push(failure.to_string()),
            }
        }
        if let Some(DeadLetterConfig::Topic(topic)) = &deployment.dead_letter {
            let letters = TopicRequest { topic, partitions: None, compacted: false };
            if report.output(letters, KEEPS_ALL) {
                report.kept(topic, false);
            }
        }
        if report.problems.is_empty() { Ok(report.found) } else { Err(report.problems) }
    }

    /// Checks the topics of an output.
    fn sink(&mut self, output: &TopicPlace) {
        let TopicPlace { topic, progress_topic, transactional_id, envelope, .. } = output;
        let (wanted, settings) = output_topic(topic, *envelope);
        if self.output(wanted, settings) {
            self.kept(topic, wanted.compacted);
        }
        let marks = TopicRequest { topic: progress_topic, partitions: Some(1), compacted: true };
        if self.output(marks, KEEPS_MARKS) {
            self.marks(progress_topic);
        }
        self.add(&format!(
            "writes as transactional id \"{transactional_id}\": whether the user may take it is seen \
            only when a run does, since taking it would end a run; \
             it needs Describe and Write on it"
        ));
    }

    fn add(&mut self, line: &str) {
        // Writing to a `String` cannot fail.
        writeln!(self.found, "  {line}").unwrap_or_default();
    }

    fn warn(&mut self, line: &str) {
        writeln!(self.found, "  ! {line}").unwrap_or_default();
    }

    /// Checks the input topic: it must exist, and its offsets must be readable.
    fn input(&mut self, topic: &str, has_state: bool) {
        match look(self.admin, topic) {
            Ok(line) => self.add(&line),
            Err(failure) => return self.problems.push(failure.to_string()),
        }
        let Some(policy) = self.setting(topic, "cleanup.policy") else { return };
        if policy.contains("compact") {
            let what = format!(
                "topic \"{topic}\" is compacted: a run that has to read it again does not find what it read \
                before, and corrects its output"
            );
            if has_state {
                self.add(&what);
            } else {
                self.warn(&format!("{what}; keep a state (state.path), so that little has to be read again"));
            }
        }
        if !policy.contains("delete") || has_state {
            return;
        }
        let limits = ["retention.ms", "retention.bytes"]
            .map(|name| (name, self.setting(topic, name).unwrap_or_else(|| "-1".to_owned())));
        let limits: Vec<_> = limits.iter().filter(|(_, value)| value != "-1").collect();
        let limits: Vec<_> = limits.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !limits.is_empty() {
            self.warn(&format!(
                "topic \"{topic}\" expires ({}), and no state is kept: after that a restart does not find \
                all documents; set state.path, \
                 or retention.ms=-1 and retention.bytes=-1",
                limits.join(", ")
            ));
        }
    }

    /// Checks an output topic. It may be missing: the first run makes it. Returns whether it exists.
    fn output(&mut self, wanted: TopicRequest<'_>, settings: &TopicSettings) -> bool {
        let TopicRequest { topic, partitions, .. } = wanted;
        match self.admin.find(topic) {
            Err(failure) => self.problems.push(failure.to_string()),
            Ok(None) => match self.admin.can_create(wanted, settings) {
                Ok(()) => {
                    let settings: Vec<_> =
                        settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    self.add(&format!(
                        "writes topic \"{topic}\": missing, the first run makes it ({})",
                        settings.join(", ")
                    ));
                }
                Err(failure) => self.problems.push(format!(
                    "{failure}; make it by hand ({}), or allow Create",
                    settings.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(", ")
                )),
            },
            Ok(Some(found)) => match partitions.filter(|number| *number != found.partitions) {
                Some(number) => self.problems.push(format!(
                    "topic \"{topic}\" has {} partitions: the topic of marks must have {number}",
                    found.partitions
                )),
                None => {
                    let held = counted(found.partitions as usize, "partition");
                    self.add(&format!("writes topic \"{topic}\": {held}"));
                    return true;
                }
            },
        }
        false
    }

    /// Checks an existing topic of results: its records should not expire.
    fn kept(&mut self, topic: &str, compacted: bool) {
        let Some(policy) = self.setting(topic, "cleanup.policy") else { return };
        if compacted && policy != "compact" {
            self.warn(&format!(
                "topic \"{topic}\" has cleanup.policy={policy}: with envelope \"upsert\" it should \
                be \"compact\", or it grows without end and loses pairs"
            ));
        }
        if !compacted && policy.contains("compact") {
            self.warn(&format!(
                "topic \"{topic}\" is compacted (cleanup.policy={policy}): deltas are lost to it, and what \
                is left does not add up; set \"delete\", \
                 or sink.envelope = \"upsert\""
            ));
        }
        for name in ["retention.ms", "retention.bytes"] {
            let value = self.setting(topic, name).unwrap_or_else(|| "-1".to_owned());
            if policy.contains("delete") && value != "-1" {
                self.warn(&format!(
                    "topic \"{topic}\" expires ({name}={value}): what a later reader adds up then lacks what \
                    was written before, and --reconcile \
                     is refused; set {name}=-1"
                ));
            }
        }
    }

    /// Checks a topic of rows beside the deltas: those of an existing one must be known.
    fn rows(&mut self, topic: &str) {
        if !self.output(side_topic(topic), KEEPS_ALL) {
            return;
        }
        match unknown_rows(self.admin, topic) {
            Ok(None) => self.kept(topic, false),
            Ok(Some(why)) => self.problems.push(why),
            Err(failure) => self.problems.push(failure.to_string()),
        }
    }

    /// Checks a topic of watches: its records should not expire.
    fn watches(&mut self, topic: &str) {
        match self.admin.expiry(topic) {
            Ok(None) => {}
            Ok(Some(limits)) => self.warn(&watches_expire(topic, &limits)),
            Err(failure) => self.problems.push(failure.to_string()),
        }
    }

    /// Checks an existing topic of marks: it should be compacted and have small segments.
    fn marks(&mut self, topic: &str) {
        let Some(policy) = self.setting(topic, "cleanup.policy") else { return };
        if policy != "compact" {
            self.warn(&format!(
                "topic \"{topic}\" has cleanup.policy={policy}: a mark that expires makes the next run begin \
                anew; set \"compact\""
            ));
        }
        let segment = self.setting(topic, "segment.bytes").and_then(|value| value.parse::<u64>().ok());
        if let Some(segment) = segment.filter(|segment| *segment > LARGE_SEGMENT) {
            self.warn(&format!(
                "topic \"{topic}\" has segment.bytes={segment}: marks are compacted late; set 4194304"
            ));
        }
    }

    /// A setting of a topic. If the broker refuses to describe it, a warning is added and the result is
    /// `None`.
    fn setting(&mut self, topic: &str, name: &str) -> Option<String> {
        match self.admin.setting(topic, name) {
            Ok(value) => value,
            Err(failure) => {
                self.warn(&format!(
                    "{name} of topic \"{topic}\" is not known ({failure}): allow DescribeConfigs on it"
                ));
                None
            }
        }
    }
}

/// Describes the partitions and records of an input topic.
fn look(admin: &Admin, topic: &str) -> Result<String, KafkaFailure> {
    let partitions = admin.find(topic)?.ok_or_else(|| KafkaFailure::no_topic(topic))?.partitions;
    let mut records = 0;
    for partition in 0..partitions {
        let (first, end) = admin.offset_range(topic, partition)?;
        records += end.saturating_sub(first);
    }
    let partitions = counted(partitions as usize, "partition");
    Ok(format!("reads topic \"{topic}\": {partitions}, {records} offsets held"))
}
