//! `dupflow check --connect`: reaches what a deployment connects to, and writes nothing.

use std::fmt::Write as _;

use super::counted;
use crate::broker::{Admin, Failure};
use crate::config::{Deployment, LetterPlace, SinkPlace, SourcePlace};

/// What was found, a line each; or all that is missing or refused.
pub(super) fn report(deployment: &Deployment) -> Result<String, Vec<String>> {
    let mut found = String::new();
    let mut problems = Vec::new();
    let mut note = |told: Result<String, Failure>| match told {
        // Writing to a text does not fail.
        Ok(line) => writeln!(found, "  {line}").unwrap_or_default(),
        Err(failure) => problems.push(failure.to_string()),
    };
    let admin = match Admin::new(&deployment.kafka) {
        Ok(admin) => admin,
        Err(failure) => return Err(vec![failure.to_string()]),
    };
    if let SourcePlace::Kafka { topic, .. } = &deployment.source {
        note(input(&admin, topic));
    }
    if let SinkPlace::Kafka { topic, progress_topic, .. } = &deployment.sink {
        note(output(&admin, topic, None));
        note(output(&admin, progress_topic, Some(1)));
    }
    if let Some(LetterPlace::Topic(topic)) = &deployment.dead_letter {
        note(output(&admin, topic, None));
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

/// The topic that is read: it must be there, and tell what it holds.
fn input(admin: &Admin, topic: &str) -> Result<String, Failure> {
    let absent =
        || Failure::Absent(format!("topic \"{topic}\": there is no such topic, and it is to be read"));
    let partitions = admin.find(topic)?.ok_or_else(absent)?.partitions;
    let mut records = 0;
    for partition in 0..partitions {
        let (first, end) = admin.held(topic, partition)?;
        records += end.saturating_sub(first);
    }
    let partitions = counted(partitions as usize, "partition");
    Ok(format!("reads topic \"{topic}\": {partitions}, {records} offsets held"))
}

/// A topic that is written to: it may be missing, and is made then.
fn output(admin: &Admin, topic: &str, wanted: Option<u32>) -> Result<String, Failure> {
    let Some(found) = admin.find(topic)? else {
        return Ok(format!("writes topic \"{topic}\": missing, the first run makes it"));
    };
    match wanted.filter(|wanted| *wanted != found.partitions) {
        Some(wanted) => Err(Failure::Fatal(format!(
            "topic \"{topic}\" has {} partitions: the topic of marks must have {wanted}",
            found.partitions
        ))),
        None => Ok(format!("writes topic \"{topic}\": {}", counted(found.partitions as usize, "partition"))),
    }
}
