//! `/openapi.json` checked by a public validator; requests that the routes refuse.
//!
//! Bug classes: a description that other tools cannot read; a mistyped parameter that is ignored; an error
//! that is not JSON.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use dupflow::monitor::{Endpoint, MonitorLimits};

use super::client::{Answer, ask, get};
use super::{HERE, Watched};

/// Installs `openapi-spec-validator` from PyPI in a virtual environment; the error says why it cannot.
fn validator(place: &Path) -> Result<std::path::PathBuf, String> {
    let run = |command: &mut Command| match command.output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned())
        }
        Err(error) => Err(error.to_string()),
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(place))?;
    let pip = ["install", "--quiet", "--disable-pip-version-check", "openapi-spec-validator==0.7.2"];
    run(Command::new(place.join("bin/pip")).args(pip))?;
    Ok(place.join("bin/openapi-spec-validator"))
}

#[test]
fn the_description_is_valid_by_a_public_validator() {
    let watched = Watched::new(MonitorLimits::DEFAULT);
    let description = get(watched.address(), "/openapi.json").body;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("openapi.json");
    std::fs::write(&file, &description).unwrap();
    match validator(&folder.path().join("venv")) {
        Err(why) => println!("SKIPPED monitor::description: no openapi-spec-validator: {why}"),
        Ok(program) => {
            let done = Command::new(program).arg(&file).output().unwrap();
            let said = [done.stdout, done.stderr].concat();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&said));
        }
    }
}

/// Some checks of the validator, and others, which also run where it cannot be installed.
#[test]
fn every_response_is_described_and_every_reference_leads_somewhere() {
    fn references(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| references(field, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let watched = Watched::new(MonitorLimits::DEFAULT);
    let root: Value = serde_json::from_str(&get(watched.address(), "/openapi.json").body).unwrap();
    for (path, operations) in root["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            for (code, response) in operation["responses"].as_object().unwrap() {
                let description = response["description"].as_str().unwrap_or_default();
                assert!(!description.is_empty(), "{method} {path} {code}");
            }
            let is_open = ["/health", "/login", "/logout"].contains(&path.as_str());
            let needs = operation.get("security").or(root.get("security")).unwrap().as_array().unwrap();
            assert_eq!(needs.is_empty(), is_open, "{method} {path}: {needs:?}");
            assert!(is_open || operation["responses"]["401"].is_object(), "{method} {path} may want a token");
        }
    }
    let schemes = root["components"]["securitySchemes"].as_object().unwrap();
    let names: Vec<&str> = schemes.keys().map(String::as_str).collect();
    assert_eq!(names, ["cookie", "token"]);
    let mut found = Vec::new();
    references(&root, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        assert!(root.pointer(reference.trim_start_matches('#')).is_some(), "{reference} leads nowhere");
    }
}

/// The message of an error, the only field of its JSON.
fn error(answer: &Answer) -> String {
    assert!(answer.head.contains("content-type: application/json"), "{answer:?}");
    let told: Value = serde_json::from_str(&answer.body).unwrap_or_else(|why| panic!("{why}: {answer:?}"));
    assert_eq!(told.as_object().unwrap().len(), 1, "{answer:?}");
    told["error"].as_str().unwrap().to_owned()
}

#[test]
fn unknown_parameters_and_fields_are_refused() {
    let watched = Watched::new(MonitorLimits::DEFAULT);
    for path in [
        "/status?all=1",
        "/health?x",
        "/ready?x=1",
        "/metrics?name=a",
        "/config?x=1",
        "/pairs?minimum=0.9",
        "/pairs?limit=5&limit=6",
        "/clusters?order=size&Limit=1",
        "/clusters/a?order=size",
        "/cluster?id=a&order=size",
        "/documents/a?pairs=1",
        "/document?name=a",
        "/document/text?id=a&full=1",
        "/compare?a=a&b=b&c=c",
        "/deltas?before=1",
        "/nowhere/documents?x=1",
    ] {
        let answer = get(watched.address(), path);
        let expected = if path.starts_with("/nowhere") { 404 } else { 400 };
        assert_eq!(answer.code, expected, "{path}: {answer:?}");
        assert!(!error(&answer).is_empty());
    }
    assert!(error(&get(watched.address(), "/pairs?minimum=0.9")).contains("\"minimum\""));
    assert_eq!(get(watched.address(), "/?utm=1").code, 200, "the page is opened by links of others");
    let post = |body: &str| {
        let length = body.len();
        ask(
            watched.address(),
            &format!(
                "POST /similar HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: \
                    application/json\r\n\
                 content-length: {length}\r\n\r\n{body}"
            ),
        )
    };
    let unknown = post("{\"text\":\"a\",\"topp\":3}");
    assert!(unknown.code == 400 && error(&unknown).contains("topp"), "{unknown:?}");
    assert_eq!(post("{\"text\":\"a\",\"top\":3}").code, 501, "there are no workers here");
}

#[test]
fn every_error_is_json() {
    let watched = Watched::new(MonitorLimits { body_bytes: 1024, ..MonitorLimits::DEFAULT });
    let request = |line: &str, head: &str| {
        ask(watched.address(), &format!("{line} HTTP/1.1\r\nconnection: close\r\n{head}\r\n"))
    };
    let here = "host: localhost\r\n";
    for (line, head, code) in [
        ("GET /nowhere", here.to_owned(), 404),
        ("GET /documents/%ff", here.to_owned(), 400),
        ("DELETE /pairs", here.to_owned(), 405),
        ("POST /status", format!("{here}content-length: 0\r\n"), 405),
        ("GET /similar", here.to_owned(), 405),
        ("POST /similar", format!("{here}content-length: 1025\r\n"), 413),
        ("POST /similar", format!("{here}content-type: image/png\r\ncontent-length: 0\r\n"), 415),
        ("GET /status", "host: other.example\r\n".to_owned(), 403),
        ("GET /pairs", here.to_owned(), 501),
        ("POST /login", format!("{here}content-length: 0\r\n"), 404),
    ] {
        let answer = request(line, &head);
        assert_eq!(answer.code, code, "{line}: {answer:?}");
        assert!(!error(&answer).is_empty());
    }
    // A body without a declared length.
    let chunks = format!("{here}transfer-encoding: chunked\r\n\r\n800\r\n{}\r\n0\r\n", "x".repeat(0x800));
    let long = request("POST /similar", &chunks);
    assert_eq!((long.code, error(&long).contains("monitor.body_bytes")), (413, true), "{long:?}");
}

/// A proxy that keeps its path prefix, under the proxy's own host name.
#[test]
fn a_monitor_is_shown_below_a_path_by_a_name_that_is_set() {
    let entry = Endpoint {
        hosts: vec!["dupflow.example".to_owned()],
        base_path: "/near/dups".to_owned(),
        ..Endpoint::open(HERE.parse().unwrap())
    };
    let watched = Watched::at(&entry, MonitorLimits::DEFAULT);
    let by = |host: &str, path: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        ask(watched.address(), &request)
    };
    for path in ["/near/dups/", "/near/dups/status", "/near/dups/health", "/status", "/"] {
        assert_eq!(by("dupflow.example", path).code, 200, "{path}");
    }
    assert_eq!(by("other.example", "/near/dups/status").code, 403);
    for path in ["/near/dupstatus", "/near/status", "/near/dups/near/dups/status"] {
        assert_eq!(by("dupflow.example", path).code, 404, "{path}");
    }
    let unslashed = by("dupflow.example", "/near/dups");
    assert_eq!(unslashed.code, 308, "{unslashed:?}");
    assert!(unslashed.head.contains("\r\nlocation: /near/dups/\r\n"), "{unslashed:?}");
    assert_eq!(by("dupflow.example", "/near/dups/pairs?x=1").code, 400, "the query stays");
    // Everything that the page fetches has a relative path.
    let page = by("dupflow.example", "/near/dups/").body;
    for absolute in ["href=\"/", "src=\"/", "fetch('/", "fetch(`/", "EventSource('/"] {
        assert!(!page.contains(absolute), "{absolute}");
    }
}
