//! Metrics, health and readiness.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dupflow::core::cluster::{ClusterKind, Clusters};
use dupflow::core::doc::DocId;
use dupflow::core::pair::{Cause, Delta, DocPair, Evidence, Similarity};
use dupflow::core::run::metrics::{Counter, Metrics};
use dupflow::core::run::status::{Phase, Status};
use dupflow::core::time::SystemClock;
use dupflow::monitor::{self, Endpoint, Monitor, MonitorLimits, MonitoredRun, View, ViewContents};

use super::client::{ask, get};
use super::exposition::{self, Family};
use super::{HERE, Watched};

fn scrape(watched: &Watched) -> BTreeMap<String, Family> {
    let answer = get(watched.address(), "/metrics");
    assert_eq!(answer.code, 200, "{answer:?}");
    assert!(
        answer.head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{answer:?}"
    );
    exposition::read(&answer.body)
}

#[test]
fn a_scrape_is_well_formed_from_the_first_moment_on_and_has_every_metric() {
    let watched = Watched::new(MonitorLimits::default());
    let families = scrape(&watched);
    let metric_rows = monitor::metric_rows();
    assert_eq!(families.len(), metric_rows.len());
    for metric in metric_rows {
        let family = &families[&metric.name];
        assert_eq!((family.kind.as_str(), family.help.as_str()), (metric.kind.name(), metric.help));
    }
}

#[test]
fn values_are_those_of_the_run() {
    let watched = Watched::new(MonitorLimits::default());
    let Watched { metrics, status, clock, .. } = &watched;
    for (n, (counter, ..)) in (1..).zip(Counter::TABLE) {
        metrics.add(*counter, n);
    }
    metrics.add(Counter::Inserted, 1000);
    metrics.add(Counter::Formed, 2000);
    metrics.add_look(3);
    let id = |id| DocId::new(id).unwrap();
    let pair = DocPair::new(id("a"), id("b"), Similarity::ONE, Evidence::default()).unwrap();
    let delta = |cause| Delta { pair: pair.clone(), diff: 1, cause };
    metrics.add_written(&[Cause::Expire, Cause::Expire, Cause::Reweighed].map(delta));
    clock.0.store(9_500, Ordering::SeqCst);
    status.enter(Phase::Live);
    status.closed(44);
    for (epoch, seconds) in [(41, 3), (42, 4), (45, 8), (46, 9)] {
        status.begun(epoch, Duration::from_secs(seconds));
    }
    status.committed(41, Duration::from_millis(3), Duration::from_millis(7_000));
    status.set_retention_clock(1.7e9);
    status.follow_wall_clock();
    status.set_waiting_deltas(6);
    status.set_state(40, 4096);
    status.set_bad_records(BTreeMap::from([("not_json \"\\\n".to_owned(), 9)]));

    let families = scrape(&watched);
    let value = |name: &str, sample: &str| {
        let family = families.get(&format!("dupflow_{name}")).unwrap_or_else(|| panic!("no {name}"));
        *family.samples.get(sample).unwrap_or_else(|| panic!("no {sample} in {:?}", family.samples))
    };
    let at = |counter: Counter| Counter::TABLE.iter().position(|(c, ..)| *c == counter).unwrap() as f64 + 1.0;
    for (counter, name, _) in Counter::TABLE {
        let more = match counter {
            Counter::Inserted => 1000.0,
            Counter::Formed => 2000.0,
            Counter::Added => 3.0,
            _ => 0.0,
        };
        assert!((value(&format!("{name}_total"), "") - at(*counter) - more).abs() < 0.5, "{name}");
    }
    let expected = [
        ("documents", "", 1000.0 + at(Counter::Inserted) - at(Counter::Deleted) - at(Counter::Expired)),
        ("pairs", "", 2000.0 + at(Counter::Formed) - at(Counter::Dissolved)),
        ("deltas_by_cause_total", "{cause=\"expire\"}", 2.0),
        ("deltas_by_cause_total", "{cause=\"re-weighed\"}", 1.0),
        ("closed_lag_seconds", "", 1.5),
        ("durable_lag_seconds", "", 5.5),
        ("retention_clock_seconds", "", 1.7e9),
        ("retention_clock_ahead_seconds", "", 0.0),
        ("compared_by_look_total", "{look=\"3\"}", 1.0),
        ("compared_by_look_total", "{look=\"1\"}", 0.0),
        ("bad_records_total", "{reason=\"not_json \\\"\\\\\\n\"}", 9.0),
        ("closed_epoch", "", 44.0),
        ("durable_epoch", "", 41.0),
        ("in_flight_epochs", "", 3.0),
        ("waiting_deltas", "", 6.0),
        ("commit_seconds", "_bucket{le=\"0.0025\"}", 0.0),
        ("commit_seconds", "_bucket{le=\"0.005\"}", 1.0),
        ("commit_seconds", "_count", 1.0),
        ("commit_seconds", "_sum", 0.003),
        ("commit_age_seconds", "", 2.5),
        ("uptime_seconds", "", 9.5),
        ("state_epoch", "", 40.0),
        ("state_bytes", "", 4096.0),
        ("phase", "{phase=\"live\"}", 1.0),
        ("phase", "{phase=\"failed\"}", 0.0),
        ("workers", "", 2.0),
        ("processes", "", 1.0),
    ];
    for (name, sample, wanted) in expected {
        let found = value(name, sample);
        assert!((found - wanted).abs() < 1e-9, "{name}{sample}: {found}, expected {wanted}");
    }
    if cfg!(target_os = "linux") {
        assert!(value("resident_bytes", "") > 1e5);
    }
}

#[test]
fn health_and_readiness_say_what_is_wrong() {
    let watched = Watched::new(MonitorLimits::default());
    let Watched { status, .. } = &watched;
    let is = |path: &str, code: u16, body: &str| {
        let answer = get(watched.address(), path);
        assert_eq!((answer.code, answer.body.as_str()), (code, body), "{path}");
    };
    is("/health", 200, "ok\n");
    is("/ready", 503, "starting: the output is taken over\n");
    status.enter(Phase::Live);
    is("/ready", 200, "ready\n");
    status.enter(Phase::Failed("the output cannot be written".to_owned()));
    is("/health", 503, "failed: the output cannot be written\n");
    is("/ready", 503, "failed: /health says why\n");
}

#[test]
fn a_run_that_is_not_live_yet_has_no_pairs() {
    let clock = Arc::new(SystemClock::start());
    let run = MonitoredRun::new(Arc::new(Metrics::new(1)), Arc::new(Status::new(0, 1, 1)), clock);
    let clusters = Clusters::new(ClusterKind::Components, 9);
    let view = Some(View::start("run".to_owned(), ViewContents::Pairs, clusters, None).unwrap());
    let run = MonitoredRun { view, ..run };
    let monitor =
        Monitor::start(&Endpoint::open(HERE.parse().unwrap()), run, MonitorLimits::default()).unwrap();
    for path in ["/pairs", "/clusters", "/documents/a"] {
        let refused = get(monitor.address(), path);
        assert_eq!(refused.code, 503, "{path}: {refused:?}");
        assert!(refused.head.contains("retry-after: "), "{path}: {}", refused.head);
    }
}

#[test]
fn other_paths_and_methods_are_refused() {
    let watched = Watched::new(MonitorLimits::default());
    for path in ["/metrics/", "/metrics/x", "/../metrics", "/Health", "/document/", "/documents/a/b"] {
        assert_eq!(get(watched.address(), path).code, 404, "{path}");
    }
    let post = "POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\nconnection: close\r\n\r\nx";
    assert_eq!(ask(watched.address(), post).code, 405);
    let nonsense = ask(watched.address(), "\x16\x03\x01 what\r\n\r\n");
    assert_eq!(nonsense.code, 400, "{nonsense:?}");
    let headers = "x: y\r\n".repeat(100);
    let many = ask(watched.address(), &format!("GET /health HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n"));
    assert_eq!(many.code, 431, "{many:?}");
}

#[test]
fn only_loopback_addresses_are_listened_on() {
    let start = |address: &str| {
        let (metrics, status) = (Arc::new(Metrics::new(0)), Arc::new(Status::new(0, 1, 1)));
        let subject = MonitoredRun::new(metrics, status, Arc::new(SystemClock::start()));
        Monitor::start(&Endpoint::open(address.parse().unwrap()), subject, MonitorLimits::default())
    };
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9600"] {
        let refused = start(address).unwrap_err().to_string();
        let expected = format!("the monitor cannot listen on {address}: expected a loopback address");
        assert!(refused.starts_with(&expected), "{refused}");
    }
    let first = start(HERE).unwrap();
    let taken = start(&first.address().to_string()).unwrap_err().to_string();
    assert!(taken.contains(&format!("cannot listen on {}", first.address())), "{taken}");
}

/// `DUPFLOW_WRITE=1 cargo test --test monitor the_docs` writes them.
#[test]
fn the_docs_have_every_metric() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/metrics.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once("| metric | type | label | what it is |\n").unwrap();
    let rows = rest.lines().skip(1).take_while(|line| line.starts_with('|')).count();
    let after: String = rest.lines().skip(1 + rows).map(|line| format!("{line}\n")).collect();
    let expected = format!("{before}{}{after}", monitor::metrics_page());
    if std::env::var_os("DUPFLOW_WRITE").is_some() {
        fs::write(&path, &expected).unwrap();
    }
    assert!(
        text == expected,
        "docs/metrics.md is behind: DUPFLOW_WRITE=1 cargo test --test monitor the_docs"
    );
}
