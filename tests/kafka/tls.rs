//! A broker with TLS; its certificate is created for this run of the tests. Built with `--features tls`, the
//! run connects over it with PLAIN and with SCRAM. Built without, the run is refused before the start, and
//! the message names the feature.

use std::path::Path;

use crate::Test;
use crate::broker::Broker;
use crate::run::{Output, Run};

pub(crate) const TESTS: &[Test] = &[("tls::sasl_over_tls", sasl_over_tls)];

/// Whether the feature is built in.
const IS_BUILT: bool = cfg!(feature = "tls");

/// A deployment file from one topic to another, with settings of the client.
fn deploy(folder: &Path, address: &str, topics: (&str, &str), settings: &[(&str, &str)]) {
    let (input, output) = topics;
    let lines = settings.iter().map(|(name, value)| format!("\"{name}\" = \"{value}\"\n"));
    let config = format!(
        "workers = 1\nkafka.brokers = \"{address}\"\nkafka.connect_seconds = 10\nsource.kind = \
         \"kafka\"\nsource.topic = \"{input}\"\n\
         sink.kind = \"kafka\"\nsink.topic = \"{output}\"\n[kafka.settings]\n{}",
        lines.collect::<String>()
    );
    std::fs::write(folder.join("run.toml"), config).unwrap();
}

const RUN: &[&str] = &["run", "-p", "exact", "-c", "run.toml"];

fn sasl_over_tls(broker: &Broker) {
    let Some((address, certificate)) = broker.tls() else {
        println!("SKIPPED tls::sasl_over_tls: 2 runs: it needs the broker of broker.sh, and keytool");
        return;
    };
    for mechanism in ["PLAIN", "SCRAM-SHA-256"] {
        let (input, output) = (broker.topic(1), Broker::name("pairs"));
        let folder = tempfile::tempdir().unwrap();
        let settings = [
            ("security.protocol", "sasl_ssl"),
            ("sasl.mechanism", mechanism),
            ("sasl.username", "operator"),
            ("sasl.password", "operated"),
            ("ssl.ca.location", &*certificate),
        ];
        deploy(folder.path(), &address, (&input, &output), &settings);
        if !IS_BUILT {
            let mut run = Run::start(folder.path(), RUN);
            assert_eq!(run.wait().code(), Some(2), "{}", run.log());
            let expected =
                "security.protocol: this dupflow was built without TLS: build it with the feature `tls`";
            assert!(run.log().contains(expected), "{}", run.log());
            continue;
        }
        // Records are written, and pairs read, without TLS.
        let text = "the same words in both of them, enough for shingles";
        broker.writer().texts(&input, 0, &[("a", text), ("b", text)]);
        let mut pairs = Output::new(broker, &output);
        let mut run = Run::start(folder.path(), RUN);
        pairs.until(&mut run, &["a b"]);
        run.stop();
    }
    if !IS_BUILT {
        println!("SKIPPED tls::sasl_over_tls: 2 runs over TLS: built without --features tls");
    }
}
