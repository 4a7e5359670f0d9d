//! Capabilities of the client library in this build, and the settings that it rejects; needs no broker.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::types::RDKafkaConfRes;

use crate::credential::Credential;
use dupflow_run::missing_feature;

type ClientSettings = BTreeMap<String, Credential>;

/// The library's `builtin.features`.
pub(super) fn features() -> String {
    let native = ClientConfig::new().create_native_config();
    native.and_then(|native| native.get("builtin.features")).unwrap_or_default()
}

/// Settings that this build of the library rejects: the name of each, and why.
pub(super) fn refused(settings: &ClientSettings) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let built = features().to_lowercase();
    let has = |feature: &str| built.split(',').any(|built| built == feature);
    let value = |name: &str| settings.get(name).map(|value| value.reveal().to_lowercase());
    let lacks = |name: &str, what: &str| {
        let what = missing_feature(what, "tls");
        (name.to_owned(), what)
    };
    let protocol = value("security.protocol").unwrap_or_default();
    if protocol.ends_with("ssl") && !has("ssl") {
        problems.push(lacks("security.protocol", "TLS"));
    }
    if protocol.starts_with("sasl") {
        let named = ["sasl.mechanism", "sasl.mechanisms"];
        match named.iter().find_map(|name| Some((*name, value(name)?))) {
            None => problems.push((
                "sasl.mechanism".to_owned(),
                "is missing: expected \"PLAIN\", \"SCRAM-SHA-256\", \"SCRAM-SHA-512\" or \"OAUTHBEARER\""
                    .to_owned(),
            )),
            Some((name, mechanism)) => {
                let feature = match mechanism.split('-').next().unwrap_or_default() {
                    "plain" => "sasl_plain",
                    "scram" => "sasl_scram",
                    "oauthbearer" => "sasl_oauthbearer",
                    "gssapi" => "sasl_gssapi",
                    // An unknown mechanism: the library itself accepts or rejects it.
                    _ => "",
                };
                if !feature.is_empty() && !has(feature) {
                    problems.push(lacks(name, &format!("SASL {}", mechanism.to_uppercase())));
                }
            }
        }
    }
    if problems.is_empty() {
        problems.extend(settings.keys().filter_map(|name| unknown(settings, name)));
    }
    problems
}

/// Passes one setting to the library by itself. The library's message contains the value, and is not used.
fn unknown(settings: &ClientSettings, name: &str) -> Option<(String, String)> {
    let mut config = ClientConfig::new();
    config.set(name, settings.get(name)?.reveal());
    match config.create_native_config() {
        Err(KafkaError::ClientConfig(RDKafkaConfRes::RD_KAFKA_CONF_UNKNOWN, ..)) => {
            Some((name.to_owned(), "the client library has no such setting".to_owned()))
        }
        Err(_) => Some((
            name.to_owned(),
            "the client library does not take its value; its CONFIGURATION.md names what it takes".to_owned(),
        )),
        Ok(_) => None,
    }
}
