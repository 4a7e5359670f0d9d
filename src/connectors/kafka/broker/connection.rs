//! Settings of the connection to a broker.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::credential::Credential;

/// Addresses of brokers, and settings of librdkafka under the names of its `CONFIGURATION.md`.
#[derive(Clone, Debug, PartialEq)]
pub struct Connection {
    /// One or more addresses, as in `host:9092,other:9092`. Each broker knows the addresses of all others.
    pub brokers: String,
    /// Further settings: `security.protocol`, `sasl.*`, `ssl.*` and any other that is not
    /// [reserved](Self::problems).
    pub settings: BTreeMap<String, Credential>,
    /// How long a broker may take for its first answer. Later waits have no limit.
    pub patience: Duration,
}

impl Default for Connection {
    /// A broker on this machine.
    fn default() -> Self {
        Self {
            brokers: "127.0.0.1:9092".to_owned(),
            settings: BTreeMap::new(),
            patience: Duration::from_secs(30),
        }
    }
}

/// Settings that the user cannot set, and why.
const RESERVED: &[(&str, &str)] = &[
    ("auto.offset.reset", "where reading begins is source.start, and a gap ends the run"),
    ("bootstrap.servers", "addresses are kafka.brokers"),
    ("enable.auto.commit", "offsets are kept with the output"),
    ("enable.auto.offset.store", "offsets are kept with the output"),
    ("enable.gapless.guarantee", "exactly-once rests on it"),
    ("enable.idempotence", "exactly-once rests on it"),
    ("enable.partition.eof", "the source needs it"),
    ("isolation.level", "records of aborted transactions are never read"),
    ("metadata.broker.list", "addresses are kafka.brokers"),
    ("transactional.id", "it is sink.transactional_id"),
    ("acks", "exactly-once rests on it"),
    ("request.required.acks", "exactly-once rests on it"),
];

impl Connection {
    /// Every problem of the settings: the name of the setting, and a message that does not contain its value.
    pub fn problems(&self) -> Vec<(String, String)> {
        let reserved = self.settings.keys().filter_map(|name| {
            let (_, why) = RESERVED.iter().find(|(reserved, _)| reserved == name)?;
            Some((name.clone(), format!("cannot be set: {why}")))
        });
        let mut problems: Vec<_> = reserved.collect();
        #[cfg(feature = "kafka")]
        if problems.is_empty() {
            problems = super::built::refused(&self.settings);
        }
        problems.sort();
        problems
    }

    /// The `builtin.features` of the client library; empty without the feature `kafka`.
    pub fn features() -> String {
        #[cfg(feature = "kafka")]
        return super::built::features();
        #[cfg(not(feature = "kafka"))]
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(settings: &[(&str, &str)]) -> Vec<String> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), Credential::new(*value)));
        let connection = Connection { settings: settings.collect(), ..Connection::default() };
        connection.problems().into_iter().map(|(name, what)| format!("{name}: {what}")).collect()
    }

    #[test]
    fn reserved_settings_are_rejected() {
        for (name, why) in RESERVED {
            assert_eq!(problems(&[(name, "x")]), [format!("{name}: cannot be set: {why}")]);
        }
    }

    #[cfg(feature = "kafka")]
    #[test]
    fn settings_are_examined_without_a_broker() {
        assert_eq!(problems(&[("client.id", "me"), ("security.protocol", "plaintext")]), [""; 0]);
        assert_eq!(
            problems(&[("socket.timeout", "5")]),
            ["socket.timeout: the client library has no such setting"]
        );
        let found = problems(&[("socket.timeout.ms", "hunter2")]);
        assert!(
            found[0].starts_with("socket.timeout.ms: the client library does not take its value"),
            "{found:?}"
        );
        assert!(!found[0].contains("hunter2"), "{found:?}");
        let plain = [("security.protocol", "SASL_PLAINTEXT"), ("sasl.mechanism", "PLAIN")];
        assert_eq!(
            problems(&[&plain[..], &[("sasl.username", "u"), ("sasl.password", "p")]].concat()),
            [""; 0]
        );
        let none = problems(&[("security.protocol", "sasl_plaintext")]);
        assert!(none[0].starts_with("sasl.mechanism: "), "{none:?}");
    }

    #[cfg(all(feature = "kafka", not(feature = "tls")))]
    #[test]
    fn settings_of_missing_features_are_rejected() {
        let rebuild =
            |name: &str, what: &str| format!("{name}: {}", dupflow_run::missing_feature(what, "tls"));
        assert_eq!(problems(&[("security.protocol", "SSL")]), [rebuild("security.protocol", "TLS")]);
        assert_eq!(
            problems(&[("security.protocol", "sasl_plaintext"), ("sasl.mechanisms", "SCRAM-SHA-512")]),
            [rebuild("sasl.mechanisms", "SASL SCRAM-SHA-512")]
        );
    }
}
