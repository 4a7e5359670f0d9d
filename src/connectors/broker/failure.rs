//! What a client's error means for the run.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use thiserror::Error;

/// An error of a client, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Failure {
    /// It may pass: a broker is away, a coordinator moves, a request took too long. What was asked for may
    /// have happened all the same.
    #[error("{0}")]
    Retriable(String),
    /// The producer is not the one that has this transactional id now, or the broker has forgotten it.
    #[error("{0}")]
    Fenced(String),
    /// The topic or the partition is not there.
    #[error("{0}")]
    Absent(String),
    /// No other try can end otherwise.
    #[error("{0}")]
    Fatal(String),
}

impl Failure {
    /// What an error means; `what` names what was being done or with which topic.
    pub fn of(error: &KafkaError, what: &str) -> Self {
        if let KafkaError::ClientConfig(_, _, name, _) = error {
            // Its own text holds the setting's value.
            return Self::Fatal(format!("{what}: the client library refuses the setting \"{name}\""));
        }
        let Some(code) = code_of(error) else { return Self::Fatal(format!("{what}: {error}")) };
        let mut found = Self::of_code(code, what);
        if let (KafkaError::Transaction(inner), Self::Retriable(line)) = (error, &found)
            && inner.is_fatal()
        {
            // The producer is of no use any more; another one may be.
            found = Self::Fenced(line.clone());
        }
        found
    }

    /// What an error code means.
    pub fn of_code(code: RDKafkaErrorCode, what: &str) -> Self {
        use RDKafkaErrorCode as Code;
        match code {
            Code::ProducerFenced
            | Code::Fenced
            | Code::InvalidProducerEpoch
            | Code::InvalidProducerIdMapping
            | Code::UnknownProducerId
            | Code::TransactionCoordinatorFenced => Self::Fenced(format!("{what}: {code}")),
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
                    "{what}: a record is larger than the broker takes (its message.max.bytes, the topic's max.message.bytes, or message.max.bytes in kafka.settings)"
                ))
            }
            Code::InvalidTopic => Self::Fatal(format!("{what}: this is no name of a topic")),
            Code::InvalidTransactionTimeout => Self::Fatal(format!(
                "{what}: the broker does not take the transaction's timeout (its transaction.max.timeout.ms)"
            )),
            Code::PolicyViolation
            | Code::InvalidReplicationFactor
            | Code::InvalidConfig
            | Code::InvalidPartitions
            | Code::InvalidRecord
            | Code::UnsupportedVersion
            | Code::UnsupportedFeature
            | Code::UnsupportedForMessageFormat
            | Code::InvalidTimestamp
            | Code::SecurityDisabled
            | Code::InvalidArgument
            | Code::NotImplemented => Self::Fatal(format!("{what}: {code}")),
            absent if is_absent(absent) => {
                Self::Absent(format!("{what}: there is no such topic or partition"))
            }
            _ => Self::Retriable(format!("{what}: {code}")),
        }
    }

    /// Whether another try may end otherwise.
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Retriable(_))
    }
}

/// The code of an error; `None` if it is none of the library's codes.
pub fn code_of(error: &KafkaError) -> Option<RDKafkaErrorCode> {
    match error {
        // A producer that has failed for good says so; the cause is in its own record of it.
        KafkaError::Transaction(inner) => Some(inner.code()),
        other => other.rdkafka_error_code(),
    }
}

/// Whether an error says that a topic or a partition is not there.
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
    fn errors_are_told_apart() {
        let of = |code| Failure::of(&KafkaError::MessageConsumption(code), "topic \"t\"");
        assert!(of(RDKafkaErrorCode::BrokerTransportFailure).is_retriable());
        assert!(of(RDKafkaErrorCode::NotCoordinator).is_retriable());
        assert!(matches!(of(RDKafkaErrorCode::ProducerFenced), Failure::Fenced(_)));
        assert!(matches!(of(RDKafkaErrorCode::UnknownTopicOrPartition), Failure::Absent(_)));
        let denied = of(RDKafkaErrorCode::TopicAuthorizationFailed);
        assert!(matches!(&denied, Failure::Fatal(_)));
        assert!(denied.to_string().starts_with("topic \"t\": not allowed by the broker"), "{denied}");
        assert!(matches!(of(RDKafkaErrorCode::MessageSizeTooLarge), Failure::Fatal(_)));
    }

    #[test]
    fn the_value_of_a_setting_is_not_told() {
        let res = rdkafka::types::RDKafkaConfRes::RD_KAFKA_CONF_INVALID;
        let error = KafkaError::ClientConfig(res, "bad".into(), "sasl.password".into(), "hunter2".into());
        let told = Failure::of(&error, "sink").to_string();
        assert_eq!(told, "sink: the client library refuses the setting \"sasl.password\"");
    }
}
