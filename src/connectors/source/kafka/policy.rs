//! Whether a topic is compacted, and what that means for a run.

use std::time::Duration;

use crate::broker::{Admin, Failure};
use crate::source::Tombstones;

/// How long a tombstone stays if nothing else is set: the broker's own default.
const USUAL_STAY: Duration = Duration::from_hours(24);

/// What becomes of tombstones; `None` where nothing is compacted. Where that may not be known it is said: the
/// topic may be compacted, and may not hold everything.
///
/// # Errors
/// If no broker answers.
pub(super) fn tombstones(admin: &Admin, topic: &str) -> Result<Option<Tombstones>, Failure> {
    let why = match admin.settings(topic, ["cleanup.policy", "delete.retention.ms"]) {
        Ok([Some(policy), stay]) => return Ok(read(&policy, stay.as_deref())),
        // The library has no error for a role that may not know them: it gives a list without entries.
        Ok([None, _]) => "the broker names none".to_owned(),
        Err(Failure::Fatal(why)) => why,
        Err(other) => return Err(other),
    };
    tracing::warn!(
        "this role may not describe the settings of topic \"{topic}\" ({why}): whether it is compacted is not known, so a run that \
         repeats anything compares its result with the output; allow DescribeConfigs"
    );
    Ok(Some(Tombstones { stay: USUAL_STAY, all_held: false, is_known: false }))
}

/// The same of `cleanup.policy` and `delete.retention.ms`.
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
