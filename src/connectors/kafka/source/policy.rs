//! Whether a topic is compacted, and how long it keeps tombstones.

use std::time::Duration;

use crate::intake::Tombstones;
use crate::kafka::broker::{Admin, KafkaFailure};

/// How long tombstones are kept by default: the broker's own default.
const USUAL_STAY: Duration = Duration::from_hours(24);

/// How long tombstones are kept; `None` if the topic is not compacted. If the settings may not be read, that
/// is logged, and the result is the safe assumption: the topic is compacted, and may lack documents.
///
/// # Errors
/// If no broker answers.
pub(super) fn tombstones(admin: &Admin, topic: &str) -> Result<Option<Tombstones>, KafkaFailure> {
    let why = match admin.settings(topic, ["cleanup.policy", "delete.retention.ms"]) {
        Ok([Some(policy), stay]) => return Ok(read(&policy, stay.as_deref())),
        // If the role may not read the settings, the library returns a list without entries instead of an
        // error.
        Ok([None, _]) => "the broker names none".to_owned(),
        Err(KafkaFailure::Fatal(why)) => why,
        Err(other) => return Err(other),
    };
    tracing::warn!(
        "this role may not describe the settings of topic \"{topic}\" ({why}): whether it is compacted is \
         not known, so a run that \
         repeats anything compares its result with the output; allow DescribeConfigs"
    );
    Ok(Some(Tombstones { stay: USUAL_STAY, all_held: false, is_known: false }))
}

/// The warning of a topic of watches whose records expire by these settings.
pub fn watches_expire(topic: &str, limits: &str) -> String {
    format!(
        "topic \"{topic}\" expires ({limits}): each watch ends when its record does; set \
         cleanup.policy=compact"
    )
}

/// How long tombstones are kept, from the values of `cleanup.policy` and `delete.retention.ms`.
fn read(policy: &str, stay: Option<&str>) -> Option<Tombstones> {
    let has = |name| policy.split(',').any(|part| part.trim() == name);
    let milliseconds = stay.and_then(|stay| stay.parse().ok());
    has("compact").then(|| Tombstones {
        stay: milliseconds.map_or(USUAL_STAY, Duration::from_millis),
        all_held: !has("delete"),
        is_known: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_lists() {
        let found = |policy| read(policy, Some("1000")).map(|found| (found.stay.as_secs(), found.all_held));
        assert_eq!(found("delete"), None);
        assert_eq!(found("compact"), Some((1, true)));
        assert_eq!((found("compact,delete"), found("delete, compact")), (Some((1, false)), Some((1, false))));
        assert_eq!(read("compact", None).map(|usual| usual.stay), Some(USUAL_STAY));
    }
}
