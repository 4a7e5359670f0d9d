//! The composition of a broker, a producer and dupflow.

use std::collections::BTreeMap;

use super::{at, docker, list, number, program, read, table, text, texts, yaml};
use yaml_rust2::Yaml;

fn services() -> BTreeMap<String, Yaml> {
    let file = yaml("compose.yaml").remove(0);
    let services = at(&file, "services").as_hash().unwrap();
    services.iter().map(|(name, service)| (name.as_str().unwrap().to_owned(), service.clone())).collect()
}

/// The services that run dupflow.
fn ours() -> Vec<(String, Yaml)> {
    services().into_iter().filter(|(_, service)| text(service, "image") == "dupflow").collect()
}

/// The mounts of a service: source and target.
fn mounts(service: &Yaml) -> Vec<(String, String)> {
    let split = |mount: String| {
        let mut parts = mount.split(':').map(str::to_owned);
        parts.next().zip(parts.next()).unwrap()
    };
    texts(list(service, "volumes")).into_iter().map(split).collect()
}

#[test]
fn every_command_is_one_of_the_program() {
    let ours = ours();
    assert_eq!(
        ours.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["dupflow", "feed", "producer"]
    );
    for (_, service) in &ours {
        program::check_command(&texts(list(service, "command")));
    }
}

#[test]
fn mounted_files_exist_and_are_used() {
    let file = yaml("compose.yaml").remove(0);
    let volumes = at(&file, "volumes");
    for (name, service) in services() {
        for (from, _) in mounts(&service) {
            let exists =
                if from.starts_with('.') { docker(&from).exists() } else { !volumes[&*from].is_badvalue() };
            assert!(exists, "{name} mounts {from}");
        }
    }
    for (name, service) in ours() {
        let paths = texts(list(&service, "command")).into_iter().filter(|word| word.starts_with('/'));
        for path in paths {
            let below = |(_, to): &(String, String)| path == *to || path.starts_with(&format!("{to}/"));
            assert!(mounts(&service).iter().any(below), "{name} has no {path}");
        }
    }
    // The producer plays the file that the service `feed` has written.
    let services = services();
    let made = texts(list(&services["feed"], "command"));
    let played = texts(list(&services["producer"], "command"));
    assert_eq!(Some(program::value(&made, "-o")), played.last().map(String::as_str));
    let shared = |name: &str| mounts(&services[name]).into_iter().find(|(from, _)| from == "feed");
    assert!(shared("feed").is_some() && shared("feed") == shared("producer"));
}

#[test]
fn the_deployment_is_valid_in_each_environment() {
    let config = read("dupflow.toml");
    let services = services();
    for name in ["producer", "dupflow"] {
        let service = &services[name];
        let command = texts(list(service, "command"));
        let here =
            mounts(service).into_iter().find(|(_, to)| to == program::value(&command, "-c")).unwrap().0;
        assert_eq!(here, "./dupflow.toml");
        program::check_config(&config, "minhash", &table(at(service, "environment")), &[]);
    }
    let keys = program::flat(&config);
    let state = keys["state.path"].trim_end_matches('}').rsplit(":-").next().unwrap();
    let kept = mounts(&services["dupflow"]);
    assert!(
        kept.iter().any(|(from, to)| from == "state" && state.starts_with(&**to)),
        "{state} is on no volume"
    );
    let grace = text(&services["dupflow"], "stop_grace_period");
    let grace: i64 = grace.strip_suffix('s').unwrap().parse().unwrap();
    assert!(keys["shutdown_seconds"].parse::<i64>().unwrap() < grace);
}

#[test]
fn clients_use_the_address_of_the_broker() {
    let services = services();
    let broker = &services["broker"];
    let environment: BTreeMap<_, _> = table(at(broker, "environment")).into_iter().collect();
    let listeners = |name: &str| -> Vec<String> { environment[name].split(',').map(str::to_owned).collect() };
    for name in ["producer", "dupflow"] {
        let wanted = text(&services[name], "environment.DUPFLOW_BROKERS");
        let (host, port) = wanted.split_once(':').unwrap();
        assert_eq!(host, text(broker, "hostname"));
        assert!(listeners("KAFKA_ADVERTISED_LISTENERS").contains(&format!("PLAINTEXT://{wanted}")));
        assert!(listeners("KAFKA_LISTENERS").contains(&format!("PLAINTEXT://:{port}")));
        assert_eq!(text(&services[name], "depends_on.broker.condition"), "service_healthy");
    }
    let published = texts(list(broker, "ports"));
    assert_eq!(published, ["127.0.0.1:9092:9092"]);
    assert!(listeners("KAFKA_ADVERTISED_LISTENERS").contains(&"PLAINTEXT_HOST://localhost:9092".to_owned()));
    assert!(environment["KAFKA_CONTROLLER_QUORUM_VOTERS"].ends_with(":29093"));
    assert!(listeners("KAFKA_LISTENERS").contains(&"CONTROLLER://:29093".to_owned()));
    let data = &environment["KAFKA_LOG_DIRS"];
    assert!(mounts(broker).iter().any(|(_, to)| to == data), "what the broker keeps is on no volume");
    assert!(number(broker, "healthcheck.retries") > 1);
}

#[test]
fn whoever_has_no_monitor_is_not_asked() {
    for (name, service) in ours() {
        let runs = texts(list(&service, "command"))[0] == "run";
        assert_eq!(service["healthcheck"]["disable"].as_bool(), (!runs).then_some(true), "{name}");
    }
}
