//! The source, sink and broker tables of a deployment file: accepted values and reported problems.

#[cfg(feature = "kafka")]
use super::parse;
use super::problems;

const KAFKA: &str = include_str!("../../../../../config/kafka.toml");

#[cfg(feature = "kafka")]
mod with_kafka {
    use std::time::Duration;

    use super::*;
    use crate::config::{DeadLetterConfig, Deployment, TopicPlace, TopicSource};
    use dupflow_connectors::formats::{RecordShape, ValueFormat};
    use dupflow_connectors::intake::EpochLimits;
    use dupflow_connectors::kafka::OutputEnvelope;
    use dupflow_connectors::kafka::Start;

    const LEAST: &str = "source.kind = \"kafka\"\nsource.topic = \"in\"\nkafka.brokers = \"b:1\"\n";
    const BOTH: &str = "source.kind = \"kafka\"\nsource.topic = \"in\"\nkafka.brokers = \"b:1\"\n\
                        sink.kind = \"kafka\"\nsink.topic = \"out\"\n";

    #[test]
    fn defaults_are_those_of_the_commented_file() {
        let written = parse(KAFKA).unwrap();
        let least = BOTH
            .replace("\"in\"", "\"documents\"")
            .replace("\"out\"", "\"pairs\"")
            .replace("b:1", "127.0.0.1:9092");
        // The commented file also keeps a state, since records of topics expire.
        let least = format!("{least}state.path = \"dupflow-state\"\n");
        // `shown` holds the settings as typed, so it differs.
        let least = Deployment { shown: written.shown.clone(), ..parse(&least).unwrap() };
        assert_eq!(format!("{written:?}"), format!("{least:?}"));
        assert_eq!(written.commit.interval, Some(Duration::from_millis(100)));
        let TopicPlace { progress_topic, transactional_id, .. } = written.output.place.as_a().unwrap();
        assert_eq!((&**progress_topic, &**transactional_id), ("pairs-progress", "dupflow-pairs"));
    }

    #[test]
    fn every_key_is_taken() {
        let text = r#"
            [source]
            kind = "kafka"
            topic = "in"
            start = "offsets:0=5"
            format = "json"
            text_path = "page.body"
            id_path = "page.id"
            ts_path = "page.date"
            headers = ["title"]
            refresh_seconds = 5
            [commit]
            interval = "50ms"
            records = 7
            bytes = "8kB"
            [dead_letter]
            topic = "bad"
            [sink]
            kind = "kafka"
            topic = "out"
            progress_topic = "marks"
            transactional_id = "me"
            transaction_seconds = 9
            envelope = "upsert"
            [kafka]
            brokers = ["a:1", "b:2"]
            connect_seconds = 3
            settings.security.protocol = "plaintext"
            settings."socket.timeout.ms" = 5000
            [state]
            path = "s3://bucket/x"
            commit_every = "2s"
            [monitor]
            listen = "127.0.0.1:9600"
            [processes]
            secret = "${PASSWORD}"
        "#;
        let found = parse(text).unwrap();
        assert_eq!(
            found.source.as_a(),
            Some(&TopicSource {
                topic: "in".into(),
                start: Start::Offsets([(0, 5)].into()),
                shape: RecordShape {
                    format: ValueFormat::Json,
                    text: vec!["page".into(), "body".into()],
                    ts: vec!["page".into(), "date".into()],
                    id: Some(vec!["page".into(), "id".into()]),
                    headers: vec!["title".into()],
                    ..RecordShape::default()
                },
                refresh: Duration::from_secs(5),
            })
        );
        assert_eq!(
            found.output.place.as_a(),
            Some(&TopicPlace {
                topic: "out".into(),
                progress_topic: "marks".into(),
                transactional_id: "me".into(),
                transaction: Duration::from_secs(9),
                envelope: OutputEnvelope::Upsert,
            })
        );
        let limits =
            EpochLimits { interval: Some(Duration::from_millis(50)), records: Some(7), bytes: Some(8000) };
        assert_eq!((found.commit, found.dead_letter), (limits, Some(DeadLetterConfig::Topic("bad".into()))));
        assert_eq!((&*found.kafka.brokers, found.kafka.patience), ("a:1,b:2", Duration::from_secs(3)));
        let settings: Vec<_> =
            found.kafka.settings.iter().map(|(name, value)| (&**name, value.reveal())).collect();
        assert_eq!(settings, [("security.protocol", "plaintext"), ("socket.timeout.ms", "5000")]);
        assert_eq!(found.state.unwrap().location, "s3://bucket/x");
        assert_eq!(found.processes.secret.unwrap().reveal(), "hunter2");
    }

    #[test]
    fn secrets_are_never_printed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "hunter2\n").unwrap();
        let good = format!(
            "{LEAST}kafka.settings.sasl.password_file = {file:?}\nkafka.settings.sasl.username \
            = \"${{PASSWORD}}\"\n"
        );
        let found = parse(&good).unwrap();
        assert!(found.kafka.settings.values().all(|value| value.reveal() == "hunter2"));
        assert!(!format!("{found:?}").contains("hunter2"));
        let bad = format!(
            "{LEAST}kafka.settings.sasl.password_file = {file:?}\n[kafka.settings]\n\"sasl.password\" \
            = \"hunter2\"\n\
             \"sasl.username\" = [\"hunter2\"]\n\"ssl.key.password_file\" = \"/nowhere/at/all\"\n\"retries\" \
             = \"hunter2\"\n\
             [processes]\nsecret = [\"hunter2\"]\n"
        );
        let reported = parse(&bad).unwrap_err();
        assert!(!reported.contains("hunter2"), "{reported}");
        assert!(reported.contains("kafka.settings.sasl.password_file are both set"), "{reported}");
        assert!(
            reported.contains("kafka.settings.sasl.username: expected text, a number, true or false"),
            "{reported}"
        );
        assert!(reported.contains("\"/nowhere/at/all\" cannot be read"), "{reported}");
        assert!(
            reported.contains("kafka.settings.retries: the client library does not take its value"),
            "{reported}"
        );
    }

    #[test]
    fn a_key_of_another_kind_is_refused() {
        let reported = problems(&format!(
            "{LEAST}source.inputs = [\"x\"]\nsource.speed = \"max\"\nsink.topic = \"out\"\nsink.envelope \
            = \"delta\"\ndead_letter.topic = \"bad\""
        ));
        assert_eq!(
            reported,
            [
                "source.inputs: has no effect with source.kind = \"kafka\"",
                "source.speed: has no effect with source.kind = \"kafka\"",
                "sink.topic: has no effect with sink.kind = \"lines\"",
                "sink.envelope: has no effect with sink.kind = \"lines\"",
                "dead_letter.topic: has no effect with sink.kind = \"lines\"",
            ]
        );
        let text = format!("{LEAST}source.format = \"text\"\nsource.id_path = \"id\"");
        assert_eq!(problems(&text), ["source.id_path: has no effect with source.format = \"text\""]);
        assert_eq!(
            problems(&format!("{BOTH}sink.path = \"x\"")),
            ["sink.path: has no effect with sink.kind = \"kafka\""]
        );
    }

    #[test]
    fn settings_that_exclude_each_other() {
        let emit = problems(&format!("{BOTH}sink.emit = \"clusters\""));
        assert!(emit[0].starts_with("sink.emit: a topic takes changes"), "{emit:?}");
        assert!(parse(&format!("{BOTH}sink.emit = \"cluster-deltas\"")).is_ok());
        assert_eq!(
            problems(&BOTH.replace("\"out\"", "\"in\"")),
            ["sink.topic: the output goes to the topic that is read"]
        );
        assert_eq!(
            problems(&format!("{BOTH}sink.progress_topic = \"out\"")),
            ["sink.progress_topic: marks need a topic of their own"]
        );
        assert_eq!(
            problems(&format!("{BOTH}dead_letter.topic = \"out\"")),
            ["dead_letter.topic: bad records need a topic of their own"]
        );
        assert_eq!(
            problems(&format!("{BOTH}dead_letter.topic = \"bad\"\ndead_letter.path = \"bad\"")),
            ["dead_letter.topic: bad records are kept in one place: dead_letter.path is set too"]
        );
        assert_eq!(
            problems(&format!("{BOTH}kafka.settings.isolation.level = \"read_uncommitted\"")),
            ["kafka.settings.isolation.level: cannot be set: records of aborted transactions are never read"]
        );
    }

    #[test]
    fn all_problems_are_reported_at_once() {
        let text = "source.kind = \"kafka\"\nsource.topic = \"no name\"\nsource.start \
            = \"first\"\nsource.text_path = \"\"\n\
                    sink.kind = \"kafka\"\ncommit.interval = \"61s\"\ncommit.records = 0\n\
                    source.warc_id = \"uri\"\nkafka = { broker = 5 }\nmonitor.listen = \"9600\"";
        assert_eq!(
            problems(text),
            [
                "kafka.brokers: found nothing, expected addresses, as in \"host:9092,other:9092\", or a list \
                of them",
                "sink.topic: found nothing, expected the name of a topic",
                "source.topic: found \"no name\", expected the name of a topic",
                &format!("source.start: found \"first\", expected {}", Start::EXPECTED),
                "source.text_path: found \"\", expected names with points between them, as \
                in \"page.body\"",
                "commit.interval: found \"61s\", expected a time from \"1ms\" to \"60s\"",
                "commit.records: found 0, expected a whole number from 1 to 2^53",
                "source.warc_id: unknown key; did you mean \"warc.id\"?",
                "kafka.broker: unknown key; did you mean \"kafka.brokers\"?",
                "monitor.listen: found \"9600\", expected an address with a port, as in \"127.0.0.1:9600\", \
                or \"\" for none",
            ]
        );
    }
}

#[cfg(not(feature = "kafka"))]
#[test]
fn a_topic_needs_the_feature() {
    let reported = problems(KAFKA);
    let what = dupflow_run::missing_feature("Kafka", "kafka");
    assert_eq!(reported, [format!("source.kind: {what}"), format!("sink.kind: {what}")]);
}

#[test]
fn keys_of_topics_have_no_effect_for_files() {
    let reported = problems("source.inputs = [\"x\"]\nsource.topic = \"in\"\ncommit.records = 5");
    assert_eq!(
        reported,
        [
            "source.topic: has no effect with source.kind = \"files\"",
            "commit.records: has no effect with source.kind = \"files\"",
        ]
    );
}
