//! The health probe of the containers, against a monitor.

use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;

use dupflow::core::run::metrics::Metrics;
use dupflow::core::run::status::{Phase, Status};
use dupflow::core::time::SystemClock;
use dupflow::monitor::{Endpoint, Monitor, MonitorLimits, MonitoredRun};

use super::{docker, read};

fn probe(path: &str, port: u16) -> (Option<i32>, String) {
    let output = Command::new(docker("probe")).args([path, &port.to_string()]).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_probe_returns_the_state_of_the_monitor() {
    let status = Arc::new(Status::new(0, 1, 1));
    let here = Endpoint::open("127.0.0.1:0".parse().unwrap());
    let clock = Arc::new(SystemClock::start());
    let subject = MonitoredRun::new(Arc::new(Metrics::new(1)), Arc::clone(&status), clock);
    let monitor = Monitor::start(&here, subject, MonitorLimits::default()).unwrap();
    let port = monitor.address().port();
    assert_eq!(probe("/health", port), (Some(0), "ok\n".to_owned()));
    assert_eq!(probe("/ready", port), (Some(1), "starting: the output is taken over\n".to_owned()));
    status.enter(Phase::Live);
    assert_eq!(probe("/ready", port), (Some(0), "ready\n".to_owned()));
    assert_eq!(probe("/nowhere", port).0, Some(1));
    let (code, text) = probe("/metrics", port);
    assert_eq!(code, Some(0));
    assert!(text.ends_with("# EOF\n") && text.contains("\ndupflow_events_total 0\n"), "{text}");
    monitor.stop();
    assert_eq!(probe("/health", port).0, Some(1), "nobody listens");
}

#[test]
fn an_empty_reply_is_an_error() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    assert_eq!(probe("/health", silent.local_addr().unwrap().port()).0, Some(1));
}

#[test]
fn it_asks_the_port_of_the_deployment() {
    assert!(read("probe").contains("port=${2:-9600}"));
}
