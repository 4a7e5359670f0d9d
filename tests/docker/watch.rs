//! Prometheus and Grafana beside the composition: what they ask for is what the program tells, and each alert
//! has its section in the runbook.

use std::collections::BTreeSet;
use std::fs;

use dupflow::monitor::{MetricKind, metric_rows};
use serde_json::Value;
use yaml_rust2::Yaml;

use super::{at, docker, list, read, root, table, text, texts, yaml};

/// The rules of `alerts.yml`.
fn rules() -> Vec<Yaml> {
    let file = yaml("alerts.yml").remove(0);
    let groups = list(&file, "groups");
    groups.iter().flat_map(|group| list(group, "rules").to_vec()).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(&read("grafana/dupflow.json")).unwrap()
}

/// All panels, with what they ask.
fn queries() -> Vec<(String, String)> {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let of = |panel: &Value| {
        let title = panel["title"].as_str().unwrap().to_owned();
        let targets = panel["targets"].as_array().cloned().unwrap_or_default();
        targets.into_iter().map(move |target| (title.clone(), target["expr"].as_str().unwrap().to_owned()))
    };
    panels.iter().flat_map(of).collect()
}

/// The words of an expression that begin as metrics do, each with the labels that are asked of it in braces
/// behind it.
fn metrics(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (start, _) in expression.match_indices("dupflow_") {
        let rest = &expression[start..];
        let name = &rest[..rest.find(|c| !is_name(c)).unwrap_or(rest.len())];
        let labels = rest[name.len()..].strip_prefix('{').map_or("", |rest| rest.split('}').next().unwrap());
        let labels = labels.split(',').filter_map(|label| label.split(['=', '!']).next());
        found.push((name.to_owned(), labels.filter(|label| !label.is_empty()).map(str::to_owned).collect()));
    }
    found
}

/// Whether the program tells such a metric, with these labels besides those of whoever asks.
fn is_told(name: &str, labels: &[String]) -> bool {
    let part =
        |of: &str| name.strip_prefix(of).is_some_and(|part| matches!(part, "_bucket" | "_sum" | "_count"));
    metric_rows().iter().any(|told| {
        let is_it = if told.kind == MetricKind::Histogram { part(&told.name) } else { told.name == name };
        let is_known = |label: &String| matches!(&**label, "instance" | "job") || told.label == Some(label);
        is_it && labels.iter().all(is_known)
    })
}

#[test]
fn metrics_are_found_in_expressions() {
    let found =
        metrics("sum by (le) (rate(dupflow_a_bucket{instance=~\"$i\",x!=\"1\"}[5m])) > dupflow_b - up");
    let labels = vec!["instance".to_owned(), "x".to_owned()];
    assert_eq!(found, [("dupflow_a_bucket".to_owned(), labels), ("dupflow_b".to_owned(), Vec::new())]);
    assert!(is_told("dupflow_commit_seconds_bucket", &[]) && !is_told("dupflow_commit_seconds", &[]));
    assert!(
        is_told("dupflow_phase", &["phase".to_owned()]) && !is_told("dupflow_phase", &["look".to_owned()])
    );
    assert!(!is_told("dupflow_events", &[]));
}

#[test]
fn every_query_is_of_metrics_that_are_told() {
    let queries = queries();
    assert!(queries.len() > 30, "{queries:?}");
    for (title, query) in &queries {
        let metrics = metrics(query);
        assert!(!metrics.is_empty(), "{title}: {query}");
        for (name, labels) in metrics {
            assert!(is_told(&name, &labels), "{title}: {name} {labels:?}");
            assert!(
                labels.contains(&"instance".to_owned()),
                "{title} is not of the chosen processes: {query}"
            );
        }
    }
    // What is chosen by, too.
    let variable = &dashboard()["templating"]["list"][0];
    assert_eq!(variable["name"], "instance");
    let asked = variable["query"]["query"].as_str().unwrap();
    assert!(metrics(asked).iter().all(|(name, labels)| is_told(name, labels)), "{asked}");
}

#[test]
fn every_alert_is_of_metrics_that_are_told_and_has_its_section() {
    let runbook = fs::read_to_string(root().join("docs/runbook.md")).unwrap();
    let headings: BTreeSet<&str> = runbook.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let mut names = BTreeSet::new();
    for rule in rules() {
        let name = text(&rule, "alert").to_owned();
        let expression = text(&rule, "expr");
        let metrics = metrics(expression);
        assert!(!metrics.is_empty() || expression.starts_with("up{job=\"dupflow\"}"), "{name}: {expression}");
        for (metric, labels) in metrics {
            assert!(is_told(&metric, &labels), "{name}: {metric} {labels:?}");
        }
        assert!(matches!(text(&rule, "labels.severity"), "critical" | "warning"), "{name}");
        assert!(!text(&rule, "annotations.summary").is_empty());
        assert!(headings.contains(name.as_str()), "the runbook has no section {name}");
        // As a heading is linked to.
        let anchor = format!("docs/runbook.md#{}", name.to_lowercase());
        assert_eq!(text(&rule, "annotations.runbook"), anchor);
        assert!(names.insert(name.clone()), "{name} is there twice");
    }
    assert!(names.len() > 5);
    let told = headings.iter().filter(|heading| heading.starts_with("Dupflow"));
    assert!(told.copied().eq(names.iter().map(String::as_str)), "sections of alerts that there are not");
}

#[test]
fn each_asks_where_the_other_listens() {
    let watch = yaml("watch.yaml").remove(0);
    let services = at(&watch, "services");
    let names: Vec<String> =
        services.as_hash().unwrap().keys().map(|name| name.as_str().unwrap().to_owned()).collect();
    assert_eq!(names, ["dupflow", "prometheus", "grafana"]);
    // The run is asked on loopback, which it shares.
    assert_eq!(text(services, "dupflow.network_mode"), "service:prometheus");
    let prometheus = yaml("prometheus.yml").remove(0);
    let scraped = &list(&prometheus, "scrape_configs")[0];
    assert_eq!(text(scraped, "job_name"), "dupflow");
    let targets = texts(list(&list(scraped, "static_configs")[0], "targets"));
    let listens: toml::Table = read("dupflow.toml").parse().unwrap();
    assert_eq!(targets, [listens["monitor"]["listen"].as_str().unwrap()]);
    assert_eq!(texts(list(&prometheus, "rule_files")), ["alerts.yml"]);
    // What is mounted is there, in the folders that the settings name.
    let mut mounted = BTreeSet::new();
    for name in ["prometheus", "grafana"] {
        let service = at(services, name);
        for mount in texts(list(service, "volumes")) {
            let mut parts = mount.split(':');
            let (from, to) = parts.next().zip(parts.next()).unwrap();
            let exists = from
                .strip_prefix("./")
                .map_or(!watch["volumes"][from].is_badvalue(), |path| docker(path).exists());
            assert!(exists, "{name} mounts {from}");
            mounted.insert(to.to_owned());
        }
        let ports = texts(list(service, "ports"));
        assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")), "{ports:?}");
    }
    let source = yaml("grafana/provisioning/datasources/prometheus.yaml").remove(0);
    let source = &list(&source, "datasources")[0];
    assert_eq!(text(source, "url"), "http://prometheus:9090");
    let asked = text(source, "uid");
    for panel in dashboard()["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row") {
        assert_eq!(panel["datasource"]["uid"], asked, "{panel}");
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{panel}");
    }
    let boards = yaml("grafana/provisioning/dashboards/dupflow.yaml").remove(0);
    let folder = text(&list(&boards, "providers")[0], "options.path");
    let home = format!("{folder}/dupflow.json");
    assert!(mounted.contains(&home), "{home}");
    let environment = table(at(services, "grafana.environment"));
    assert!(environment.iter().any(|(_, value)| *value == home));
}

#[test]
fn panels_do_not_lie_on_each_other() {
    let dashboard = dashboard();
    let mut taken = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()));
        let side = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(side("x") + side("w") <= 24);
        for place in (0..side("w")).flat_map(|x| (0..side("h")).map(move |y| (x, y))) {
            assert!(taken.insert((side("x") + place.0, side("y") + place.1)), "{}", panel["title"]);
        }
    }
}

/// `promtool`, where Prometheus is installed.
fn promtool(words: &[&str]) -> Option<std::process::Output> {
    match std::process::Command::new("promtool").args(words).current_dir(root()).output() {
        Ok(output) => Some(output),
        Err(error) => {
            let skipped = format!("SKIPPED docker: no promtool: {error}\n");
            std::io::Write::write_all(&mut std::io::stdout(), skipped.as_bytes()).unwrap();
            None
        }
    }
}

/// Each alert fires where it should and is silent where it should be, by Prometheus itself.
#[test]
fn alerts_fire_where_they_should() {
    let cases = root().join("tests/docker/alerts_test.yml");
    let file = yaml_rust2::YamlLoader::load_from_str(&fs::read_to_string(&cases).unwrap()).unwrap().remove(0);
    let tests = list(&file, "tests").iter().flat_map(|test| list(test, "alert_rule_test").to_vec());
    let (fires, silent): (Vec<Yaml>, Vec<Yaml>) = tests.partition(|case| !case["exp_alerts"].is_badvalue());
    let names =
        |of: &[Yaml]| of.iter().map(|case| text(case, "alertname").to_owned()).collect::<BTreeSet<_>>();
    let alerts: BTreeSet<_> = rules().iter().map(|rule| text(rule, "alert").to_owned()).collect();
    assert_eq!(
        (names(&fires), names(&silent)),
        (alerts.clone(), alerts),
        "each alert has a case of both kinds"
    );
    let Some(done) = promtool(&["test", "rules", "tests/docker/alerts_test.yml"]) else { return };
    let said = [done.stdout, done.stderr].concat();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
}
