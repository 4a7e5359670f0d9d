//! Three processes of one run in Kubernetes.

use std::collections::BTreeMap;

use super::{at, list, number, program, table, text, texts, yaml};
use yaml_rust2::Yaml;

/// The only object of a kind.
fn object(kind: &str) -> Yaml {
    let mut found: Vec<Yaml> =
        yaml("kubernetes.yaml").into_iter().filter(|o| text(o, "kind") == kind).collect();
    assert_eq!(found.len(), 1, "{kind}");
    found.remove(0)
}

/// The only container.
fn container() -> Yaml {
    let set = object("StatefulSet");
    assert_eq!(list(at(&set, "spec.template.spec"), "containers").len(), 1);
    at(&set, "spec.template.spec.containers.0").clone()
}

/// The mounts by volume name.
fn mounts() -> BTreeMap<String, String> {
    let container = container();
    let mounts = list(&container, "volumeMounts").iter();
    mounts.map(|mount| (text(mount, "name").to_owned(), text(mount, "mountPath").to_owned())).collect()
}

#[test]
fn objects_refer_to_each_other() {
    let (service, set, policy) = (object("Service"), object("StatefulSet"), object("NetworkPolicy"));
    let labels = table(at(&set, "spec.template.metadata.labels"));
    assert!(!labels.is_empty());
    for (object, path) in [
        (&service, "spec.selector"),
        (&set, "spec.selector.matchLabels"),
        (&policy, "spec.podSelector.matchLabels"),
        (&policy, "spec.ingress.0.from.0.podSelector.matchLabels"),
    ] {
        assert_eq!(table(at(object, path)), labels, "{path}");
    }
    assert_eq!(text(&set, "spec.serviceName"), text(&service, "metadata.name"));
    // Names of processes that are not ready must resolve, and no process may wait until another one is ready.
    assert_eq!(text(&service, "spec.clusterIP"), "None");
    assert_eq!(at(&service, "spec.publishNotReadyAddresses").as_bool(), Some(true));
    assert_eq!(text(&set, "spec.podManagementPolicy"), "Parallel");
}

#[test]
fn each_process_finds_the_others() {
    let (service, set, policy) = (object("Service"), object("StatefulSet"), object("NetworkPolicy"));
    let (name, replicas) = (text(&set, "metadata.name"), number(&set, "spec.replicas"));
    let port = number(&service, "spec.ports.0.port");
    assert_eq!(number(&container(), "ports.0.containerPort"), port);
    assert_eq!(number(&policy, "spec.ingress.0.ports.0.port"), port);
    let hosts = object("ConfigMap");
    let hosts: Vec<&str> = text(&hosts, "data.hosts").lines().collect();
    let expected: Vec<String> = (0..replicas)
        .map(|index| format!("{name}-{index}.{}:{port}", text(&service, "metadata.name")))
        .collect();
    assert_eq!(hosts, expected);

    let arguments = texts(list(&container(), "args"));
    program::check_command(&arguments);
    assert_eq!(program::value(&arguments, "--processes"), replicas.to_string());
    assert_eq!(program::value(&arguments, "--process"), "$(DUPFLOW_PROCESS)");
    let container = container();
    let index = list(&container, "env").iter().find(|variable| text(variable, "name") == "DUPFLOW_PROCESS");
    let field = text(index.unwrap(), "valueFrom.fieldRef.fieldPath");
    assert_eq!(field, "metadata.labels['apps.kubernetes.io/pod-index']");
}

#[test]
fn named_files_are_mounted() {
    let (map, set) = (object("ConfigMap"), object("StatefulSet"));
    let volumes = list(at(&set, "spec.template.spec"), "volumes");
    let volume = |name: &str| volumes.iter().find(|volume| text(volume, "name") == name).unwrap();
    assert_eq!(text(volume("config"), "configMap.name"), text(&map, "metadata.name"));
    assert_eq!(text(at(&set, "spec"), "volumeClaimTemplates.0.metadata.name"), "state");
    let mounts = mounts();
    let arguments = texts(list(&container(), "args"));
    for flag in ["-p", "-c", "--hosts"] {
        let path = program::value(&arguments, flag);
        let key = path.strip_prefix(&format!("{}/", mounts["config"])).unwrap_or_else(|| panic!("{path}"));
        assert!(!map["data"][key].is_badvalue(), "{path} is not in the ConfigMap");
    }
}

#[test]
fn pipeline_and_deployment_are_valid() {
    let (map, set, container) = (object("ConfigMap"), object("StatefulSet"), container());
    let data: BTreeMap<_, _> = table(at(&map, "data")).into_iter().collect();
    program::check_pipeline(&data["pipeline.toml"]);
    let config = &data["dupflow.toml"];
    let keys = program::flat(config);
    let secret = &*keys["processes.secret_file"];
    assert!(secret.starts_with(&format!("{}/", mounts()["secret"])), "{secret}");
    let state = keys["state.path"].trim_end_matches('}').rsplit(":-").next().unwrap();
    assert!(state.starts_with(&format!("{}/", mounts()["state"])), "{state}");
    let plain = list(&container, "env").iter().filter(|variable| !variable["value"].is_badvalue());
    let variables: Vec<_> = plain
        .map(|variable| (text(variable, "name").to_owned(), text(variable, "value").to_owned()))
        .collect();
    program::check_config(config, "minhash", &variables, &[(secret, "hunter2")]);
    let grace = number(&set, "spec.template.spec.terminationGracePeriodSeconds");
    assert!(keys["shutdown_seconds"].parse::<i64>().unwrap() < grace);
}

#[test]
fn the_probe_uses_the_address_of_the_monitor() {
    let container = container();
    for (name, path) in
        [("startupProbe", "/health"), ("livenessProbe", "/health"), ("readinessProbe", "/ready")]
    {
        assert_eq!(texts(list(at(&container, &format!("{name}.exec")), "command")), ["probe", path]);
    }
    let map = object("ConfigMap");
    for config in [at(&map, "data")["dupflow.toml"].as_str().unwrap().to_owned(), super::read("dupflow.toml")]
    {
        assert_eq!(
            program::flat(&config)["monitor.listen"],
            "127.0.0.1:9600",
            "the port that the probe asks"
        );
    }
}

#[test]
fn the_user_is_that_of_the_image() {
    let set = object("StatefulSet");
    let security = at(&set, "spec.template.spec.securityContext");
    assert_eq!(at(security, "runAsNonRoot").as_bool(), Some(true));
    for name in ["runAsUser", "runAsGroup", "fsGroup"] {
        assert_eq!(number(security, name), 10001, "{name}");
    }
}
