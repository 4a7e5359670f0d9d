//! The times of records: which of them a topic takes, and how long it keeps their records.

use dupflow_connectors::kafka::broker::{Admin, KEEPS_ALL, KafkaFailure, TopicRequest, TopicSettings};
use dupflow_core::doc::DocEvent;
use dupflow_core::time::unix_milliseconds;

/// What a topic does with the times of its records, as far as its settings may be read. Durations in
/// milliseconds.
#[derive(Debug, Default)]
pub(super) struct TopicTimes {
    /// Greatest distance of a time after and before the present one.
    after: Option<i64>,
    before: Option<i64>,
    /// Records that are older are deleted.
    retention: Option<i64>,
    /// The number of records that are, and of those whose time is below a millisecond.
    expired: u64,
    rounded: u64,
}

/// Settings of a topic for a feed of any time. Brokers before 3.6 have no limit, and do not know the last
/// one.
const ANY_TIME: &TopicSettings =
    &[KEEPS_ALL[0], KEEPS_ALL[1], KEEPS_ALL[2], ("message.timestamp.after.max.ms", "9223372036854775807")];

/// Makes a topic that keeps records of any time, if it is missing. Returns its settings.
pub(super) fn make(
    admin: &Admin,
    wanted: TopicRequest<'_>,
) -> Result<Option<&'static TopicSettings>, KafkaFailure> {
    if admin.find(wanted.topic)?.is_some() {
        return Ok(None);
    }
    match admin.ensure(wanted, ANY_TIME) {
        Err(KafkaFailure::Fatal(_)) => admin.ensure(wanted, KEEPS_ALL).map(|_| Some(KEEPS_ALL)),
        made => made.map(|_| Some(ANY_TIME)),
    }
}

impl TopicTimes {
    /// Reads the settings of a topic.
    pub(super) fn from_settings(admin: &Admin, topic: &str) -> Result<Self, KafkaFailure> {
        let names = [
            "message.timestamp.type",
            "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms",
            "cleanup.policy",
            "retention.ms",
        ];
        let [stamp, after, before, policy, retention] = match admin.settings(topic, names) {
            Err(KafkaFailure::Fatal(_)) => return Ok(Self::default()),
            found => found?,
        };
        if stamp.as_deref() == Some("LogAppendTime") {
            tracing::warn!(
                "topic \"{topic}\" has message.timestamp.type=LogAppendTime: each record has the time when \
                 it is written, and not its ts"
            );
            return Ok(Self::default());
        }
        let number = |value: Option<String>| value?.parse().ok();
        let is_deleted = policy.is_some_and(|policy| policy.contains("delete"));
        let retention = number(retention).filter(|ms| is_deleted && *ms >= 0);
        Ok(Self { after: number(after), before: number(before), retention, ..Self::default() })
    }

    /// The time of an event's record in milliseconds, or why the broker would refuse it. For a time of 0 the
    /// client would write the present one: the least time is 1.
    pub(super) fn time(&mut self, event: &DocEvent<'_>) -> Result<Option<i64>, KafkaFailure> {
        let Some(ts) = event.ts else { return Ok(None) };
        let now = i64::try_from(unix_milliseconds()).unwrap_or(i64::MAX);
        let time = milliseconds(ts).max(1);
        self.rounded += u64::from(milliseconds(ts) < 1);
        self.expired += u64::from(self.retention.is_some_and(|most| now.saturating_sub(time) > most));
        for (name, apart, most) in [
            ("message.timestamp.after.max.ms", time.saturating_sub(now), self.after),
            ("message.timestamp.before.max.ms", now.saturating_sub(time), self.before),
        ] {
            if let Some(most) = most.filter(|most| apart > *most) {
                let id = String::from_utf8_lossy(event.id.as_bytes());
                return Err(KafkaFailure::Fatal(format!(
                    "document \"{id}\" has ts {ts}, and the broker would refuse it by the topic's \
                     {name}={most}: set that to 9223372036854775807, for instance with kafka-configs.sh \
                     --alter"
                )));
            }
        }
        Ok(Some(time))
    }

    /// Says which times are not kept as they are.
    pub(super) fn warn(&self, topic: &str) {
        if let (Some(most), 1..) = (self.retention, self.expired) {
            tracing::warn!(
                records = self.expired,
                "topic \"{topic}\" has retention.ms={most}: the broker deletes records that are older, as \
                 these are, and a run that comes later does not read them. Set it to -1, for instance with \
                 kafka-configs.sh --alter, and write the feed again"
            );
        }
        if self.rounded > 0 {
            let records = self.rounded;
            tracing::warn!(records, "topic \"{topic}\": a ts below a millisecond is written as 0.001");
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a time beyond all clocks is the last one")]
fn milliseconds(ts: f64) -> i64 {
    (ts * 1000.0).round() as i64
}

#[cfg(test)]
mod tests {
    use dupflow_core::doc::DocId;
    use dupflow_core::doc::fields::EventFields;

    use super::*;

    #[test]
    fn times_are_taken_rounded_or_refused() {
        let now = dupflow_core::time::unix_seconds();
        let event = |ts| DocEvent {
            id: DocId::new("a").unwrap(),
            ts,
            written: None,
            text: None,
            fields: EventFields::default(),
        };
        let mut times = TopicTimes {
            after: Some(3_600_000),
            before: Some(i64::MAX),
            retention: Some(604_800_000),
            ..TopicTimes::default()
        };
        for (ts, expected) in
            [(None, None), (Some(0.0), Some(1)), (Some(0.0004), Some(1)), (Some(7.5), Some(7500))]
        {
            assert_eq!(times.time(&event(ts)).unwrap(), expected);
        }
        times.time(&event(Some(now + 60.0))).unwrap();
        assert_eq!((times.rounded, times.expired), (2, 3));
        let refused = times.time(&event(Some(now + 86_400.0))).unwrap_err().to_string();
        assert!(refused.contains("document \"a\"") && refused.contains("after.max.ms=3600000"), "{refused}");
        assert_eq!(TopicTimes::default().time(&event(Some(4e9))).unwrap(), Some(4_000_000_000_000));
    }
}
