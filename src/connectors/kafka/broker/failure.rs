//! Classification of client errors.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use thiserror::Error;

/// An error of a client, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KafkaFailure {
    /// May pass: a broker is unreachable, a coordinator moves, a request took too long. The request may have
    /// been executed nevertheless.
    #[error("{0}")]
    Retriable(String),
    /// Another producer has this transactional id now, or the broker no longer knows the producer.
    #[error("{0}")]
    Fenced(String),
    /// The topic or the partition does not exist.
    #[error("{0}")]
    Absent(String),
    /// Another attempt would fail in the same way.
    #[error("{0}")]
    Fatal(String),
}

impl KafkaFailure {
    /// Classifies an error; `what` names the operation or the topic.
    pub fn from_error(error: &KafkaError, what: &str) -> Self {
        if let KafkaError::ClientConfig(_, _, name, _) = error {
            // The library's message contains the value of the setting.
            return Self::Fatal(format!("{what}: the client library refuses the setting \"{name}\""));
        }
        let Some(code) = code_of(error) else { return Self::Fatal(format!("{what}: {error}")) };
        let mut found = Self::from_code(code, what);
        if let (KafkaError::Transaction(inner), Self::Retriable(line)) = (error, &found)
            && inner.is_fatal()
        {
            // This producer can no longer be used; a new one can.
            found = Self::Fenced(line.clone());
        }
        found
    }

    /// Classifies an error code.
    pub fn from_code(code: RDKafkaErrorCode, what: &str) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            Code::ProducerFenced
            | Code::Fenced
            | Code::InvalidProducerEpoch
            | Code::InvalidProducerIdMapping
            | Code::UnknownProducerId
            | Code::TransactionCoordinatorFenced => Self::Fenced(format!(
                "{what}: {code}: a later producer has this transactional id, or the broker has ended a \
                 transaction that took longer than its timeout"
            )),
            Code::TopicAuthorizationFailed
            | Code::ClusterAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed => {
                Self::Fatal(format!("{what}: not allowed by the broker ({code})"))
            }
            Code::SaslAuthenticationFailed
            | Code::Authentication
            | Code::UnsupportedSASLMechanism
            | Code::IllegalSASLState => {
                Self::Fatal(format!("{what}: the broker does not accept who we are ({code})"))
            }
            Code::MessageSizeTooLarge | Code::InvalidMessageSize | Code::MessageBatchTooLarge => {
                Self::Fatal(format!(
                    "{what}: a record is larger than the broker takes (its message.max.bytes, the topic's \
                     max.message.bytes, or message.max.bytes in kafka.settings)"
                ))
            }
            Code::InvalidTopic => Self::Fatal(format!("{what}: this is no name of a topic")),
            Code::InvalidTransactionTimeout => Self::Fatal(format!(
                "{what}: the broker does not take the transaction's timeout (its transaction.max.timeout.ms)"
            )),
            Code::InvalidTimestamp => Self::Fatal(format!(
                "{what}: the broker refuses the time of a record: the clock of this machine is ahead by \
                 more than the topic's message.timestamp.after.max.ms (an hour by default), or behind by \
                 more than its message.timestamp.before.max.ms; set the clock, and start again"
            )),
            Code::PolicyViolation
            | Code::InvalidReplicationFactor
            | Code::InvalidConfig
            | Code::InvalidPartitions
            | Code::InvalidRecord
            | Code::UnsupportedVersion
            | Code::UnsupportedFeature
            | Code::UnsupportedForMessageFormat
            | Code::SecurityDisabled
            | Code::InvalidArgument
            | Code::NotImplemented => Self::Fatal(format!("{what}: {code}")),
            Code::BadCompression => Self::Retriable(format!(
                "{what}: a batch cannot be decompressed: it is damaged, or it has more than \
                 receive.message.max.bytes (100 MB by default): raise that in kafka.settings"
            )),
            absent if is_absent(absent) => {
                Self::Absent(format!("{what}: there is no such topic or partition"))
            }
            _ => Self::Retriable(format!("{what}: {code}")),
        }
    }

    /// That a topic that is to be read is not there: `dupflow` creates those that it writes.
    pub fn no_topic(topic: &str) -> Self {
        Self::Absent(format!(
            "topic \"{topic}\": there is no such topic, and it is to be read: its producer creates it, or \
             kafka-topics.sh --bootstrap-server BROKER --create --topic {topic}"
        ))
    }

    /// Whether another attempt may succeed.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Retriable(_))
    }
}

/// Whether an error only says that the role may not use the group of a client. A client that reads partitions
/// which are assigned to it works without: the group is only a name for monitoring.
pub fn is_of_group(error: &KafkaError) -> bool {
    code_of(error) == Some(RDKafkaErrorCode::GroupAuthorizationFailed)
}

/// The code of an error; `None` if it has none.
pub fn code_of(error: &KafkaError) -> Option<RDKafkaErrorCode> {
    match error {
        // A producer that has failed permanently reports that; the inner error has the cause.
        KafkaError::Transaction(inner) => Some(inner.code()),
        other => other.rdkafka_error_code(),
    }
}

/// Whether a code means that a topic or a partition does not exist.
fn is_absent(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::UnknownTopic
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownPartition
            | RDKafkaErrorCode::UnknownTopicId
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_classified() {
        let of = |code| KafkaFailure::from_error(&KafkaError::MessageConsumption(code), "topic \"t\"");
        assert!(of(RDKafkaErrorCode::BrokerTransportFailure).is_retriable());
        assert!(of(RDKafkaErrorCode::NotCoordinator).is_retriable());
        assert!(matches!(of(RDKafkaErrorCode::ProducerFenced), KafkaFailure::Fenced(_)));
        assert!(matches!(of(RDKafkaErrorCode::UnknownTopicOrPartition), KafkaFailure::Absent(_)));
        let denied = of(RDKafkaErrorCode::TopicAuthorizationFailed);
        assert!(matches!(&denied, KafkaFailure::Fatal(_)));
        assert!(denied.to_string().starts_with("topic \"t\": not allowed by the broker"), "{denied}");
        assert!(matches!(of(RDKafkaErrorCode::MessageSizeTooLarge), KafkaFailure::Fatal(_)));
        let ahead = of(RDKafkaErrorCode::InvalidTimestamp).to_string();
        assert!(
            ahead.contains("the clock of this machine") && ahead.contains("timestamp.after.max.ms"),
            "{ahead}"
        );
    }

    #[test]
    fn messages_do_not_contain_values_of_settings() {
        let res = rdkafka::types::RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
        let error = KafkaError::ClientConfig(res, "bad".into(), "sasl.password".into(), "hunter2".into());
        let message = KafkaFailure::from_error(&error, "sink").to_string();
        assert_eq!(message, "sink: the client library refuses the setting \"sasl.password\"");
    }
}
