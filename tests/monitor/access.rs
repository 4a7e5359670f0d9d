//! Access control: which requests are answered.

use std::sync::Arc;

use dupflow::core::run::metrics::Metrics;
use dupflow::core::run::status::Status;
use dupflow::core::time::SystemClock;
use dupflow::monitor::{AddressRange, Endpoint, Monitor, MonitorLimits, MonitoredRun};

use super::HERE;
use super::client::{Answer, ask};
use super::run::Place;

const TOKEN: &str = "0123456789abcdef-token";

/// Every path, with a value in place of each parameter.
const PATHS: [&str; 20] = [
    "/",
    "/ready",
    "/metrics",
    "/config",
    "/openapi.json",
    "/status",
    "/pipeline",
    "/history",
    "/document?id=a",
    "/document/text?id=a",
    "/cluster?id=a",
    "/documents/a",
    "/documents/a/text",
    "/compare?a=a&b=b",
    "/pairs",
    "/clusters",
    "/clusters/a",
    "/deltas",
    "/nowhere",
    "/HEALTH",
];

fn guarded() -> Monitor {
    let status = Arc::new(Status::new(0, 1, 1));
    let subject = MonitoredRun::new(Arc::new(Metrics::new(1)), status, Arc::new(SystemClock::start()));
    let entry = Endpoint {
        address: "0.0.0.0:0".parse().unwrap(),
        token: Some(TOKEN.to_owned()),
        ..Endpoint::open(HERE.parse().unwrap())
    };
    Monitor::start(&entry, subject, MonitorLimits::DEFAULT).unwrap()
}

/// A request with additional header lines, to the monitor at its loopback address.
fn request(monitor: &Monitor, line: &str, head: &str, body: &str) -> Answer {
    let address = (std::net::Ipv4Addr::LOCALHOST, monitor.address().port()).into();
    let length = body.len();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: any.example\r\nconnection: close\r\ncontent-length: \
            {length}\r\n{head}\r\n{body}"
    );
    ask(address, &request)
}

#[test]
fn without_the_token_every_path_but_health_is_refused() {
    let monitor = guarded();
    let get = |path: &str, head: &str| request(&monitor, &format!("GET {path}"), head, "");
    for path in PATHS {
        assert_eq!(get(path, "").code, 401, "{path}");
        assert_eq!(get(path, "authorization: Bearer 0123456789abcdef-tokem\r\n").code, 401, "{path}");
        assert_ne!(get(path, &format!("authorization: Bearer {TOKEN}\r\n")).code, 401, "{path}");
    }
    assert_eq!(request(&monitor, "POST /similar", "", "text").code, 401);
    assert_eq!(get("/health", "").code, 200);
    let door = get("/", "");
    assert!(door.body.contains("<form method=\"post\" action=\"login\">"), "{door:?}");
    assert!(
        door.head.contains("content-security-policy: default-src 'none'; form-action 'self'"),
        "{door:?}"
    );
    assert!(get("/status", "").body.starts_with("{\"error\":\"a token is needed"));
}

#[test]
fn who_logs_in_has_a_cookie_that_opens_all() {
    let monitor = guarded();
    let login = |body: &str| {
        request(&monitor, "POST /login", "content-type: application/x-www-form-urlencoded\r\n", body)
    };
    let wrong = login("token=0123456789abcdef-tokem");
    assert!(wrong.code == 401 && wrong.body.contains("not the token"), "{wrong:?}");
    let well = login(&format!("token={TOKEN}"));
    assert_eq!(well.code, 303, "{well:?}");
    assert!(well.head.contains("\r\nlocation: ./\r\n") && !well.head.contains(TOKEN), "{well:?}");
    let cookie = well.head.split("set-cookie: ").nth(1).unwrap().split(';').next().unwrap().to_owned();
    assert!(well.head.contains("; samesite=strict; httponly; path=/"), "{well:?}");
    let status = request(&monitor, "GET /status", &format!("cookie: {cookie}\r\n"), "");
    assert_eq!(status.code, 200, "{status:?}");
    // Login attempts are limited to a rate below that of guesses.
    let codes: Vec<u16> = (0..40).map(|_| login("token=x").code).collect();
    assert!(codes.contains(&503), "{codes:?}");
}

/// A monitor behind a proxy at the loopback, with a second token.
fn behind_a_proxy(trusted: &str) -> Monitor {
    let status = Arc::new(Status::new(0, 1, 1));
    let subject = MonitoredRun::new(Arc::new(Metrics::new(1)), status, Arc::new(SystemClock::start()));
    let entry = Endpoint {
        token: Some(TOKEN.to_owned()),
        read_token: Some(READER.to_owned()),
        trusted_proxies: vec![AddressRange { address: trusted.parse().unwrap(), bits: 32 }],
        user_header: Some("x-forwarded-user".parse().unwrap()),
        ..Endpoint::open(HERE.parse().unwrap())
    };
    Monitor::start(&entry, subject, MonitorLimits::DEFAULT).unwrap()
}

const READER: &str = "0123456789abcdef-reads";

#[test]
fn only_a_trusted_proxy_makes_a_cookie_secure() {
    let claims = "x-forwarded-proto: https\r\nx-forwarded-user: ada\r\n";
    for (trusted, secure, untrusted) in [("127.0.0.1", true, 0), ("127.0.0.2", false, 2)] {
        let monitor = behind_a_proxy(trusted);
        let well = request(&monitor, "POST /login", claims, &format!("token={READER}"));
        assert_eq!((well.code, well.head.contains("; httponly; secure; path=/")), (303, secure), "{well:?}");
        let out = request(&monitor, "POST /logout", claims, "");
        assert_eq!(out.code, 303, "{out:?}");
        assert!(out.head.contains("set-cookie: dupflow=;") && out.head.contains("max-age=0"), "{out:?}");
        let bearer = format!("authorization: Bearer {READER}\r\n");
        let metrics = request(&monitor, "GET /metrics", &bearer, "").body;
        assert!(metrics.contains(&format!("dupflow_untrusted_headers_total {untrusted}\n")), "{trusted}");
    }
}

#[test]
fn a_token_that_only_reads_changes_nothing() {
    let monitor = behind_a_proxy("127.0.0.1");
    let asked =
        |line: &str, token: &str| request(&monitor, line, &format!("authorization: Bearer {token}\r\n"), "");
    assert_eq!((asked("GET /status", READER).code, asked("GET /status", TOKEN).code), (200, 200));
    assert_eq!(asked("POST /similar", READER).code, asked("POST /similar", TOKEN).code, "a question");
    let refused = asked("POST /status", READER);
    assert!(refused.code == 403 && refused.body.contains("monitor.read_token"), "{refused:?}");
    assert_eq!(asked("POST /status", TOKEN).code, 405);
    let metrics = asked("GET /metrics", READER).body;
    assert!(metrics.contains("dupflow_requests_refused_total{reason=\"read_only\"} 1\n"), "{metrics}");
}

#[test]
#[expect(clippy::shadow_unrelated, reason = "steps of one story")]
fn who_asks_is_in_the_log() {
    let place = Place::new();
    place.write("feed.jsonl", "{\"id\":\"a\",\"text\":\"one\"}\n");
    let config = "[source]\nkind = \"files\"\ninputs = [\"pipe\"]\n[sink]\npath = \"out.jsonl\"\n\
        [monitor]\nlisten = \"127.0.0.1:0\"\ntrusted_proxies = [\"127.0.0.0/8\"]\nuser_header = \"X-User\"\n";
    place.write("run.toml", config);
    // A pipe without a writer blocks the run.
    std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    let process = place.start("run -c run.toml");
    let asked = "GET /status?x=1 HTTP/1.1\r\nhost: localhost\r\nx-user: Ada L\r\nconnection: close\r\n\r\n";
    assert_eq!(ask(process.address, asked).code, 400);
    process.wait_for("request user=\"Ada L\" peer=\"127.0.0.1\" asked=\"GET /status?x=1\" status=400");
    process.kill();

    for (config, why) in [
        (config.replace("[\"127.0.0.0/8\"]", "[]"), "monitor.user_header: no one is trusted"),
        (config.replace("127.0.0.0/8", "127.0.0.1/8"), "monitor.trusted_proxies"),
        (
            config.to_owned() + "read_token = \"0123456789abcdef\"\n",
            "monitor.read_token: nothing could be changed",
        ),
    ] {
        place.write("run.toml", &config);
        let (code, log) = place.done("run -c run.toml");
        assert!(code == Some(2) && log.contains(why), "{log}");
    }
}

#[test]
fn pages_of_other_sites_are_refused() {
    let monitor = guarded();
    let bearer = format!("authorization: Bearer {TOKEN}\r\n");
    let post = |site: &str| {
        request(&monitor, "POST /similar", &format!("{bearer}sec-fetch-site: {site}\r\n"), "x").code
    };
    assert_eq!((post("cross-site"), post("same-site")), (403, 403));
    assert_eq!((post("same-origin"), post("none")), (501, 501), "there are no workers here");

    let open = super::Watched::new(MonitorLimits::DEFAULT);
    let named = |host: &str| {
        let request = format!("GET /status HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        ask(open.address(), &request).code
    };
    assert_eq!((named("localhost:9600"), named("127.0.0.1"), named("[::1]:1")), (200, 200, 200));
    assert_eq!((named("rebound.example"), named("127.0.0.1.rebound.example")), (403, 403));
}

#[test]
fn a_public_address_without_a_token_is_a_wrong_configuration() {
    let place = Place::new();
    let source = "[source]\nkind = \"files\"\ninputs = [\"-\"]\n";
    let said = |monitor: &str| {
        place.write("run.toml", &format!("{source}[monitor]\n{monitor}"));
        place.done("run -c run.toml")
    };
    let refused = |monitor: &str| {
        let (code, log) = said(monitor);
        assert_eq!(code, Some(2), "{log}");
        log
    };
    let open = refused("listen = \"0.0.0.0:0\"\nready_lag = \"2h\"\n");
    assert!(open.contains("monitor.listen: whoever reaches this address may ask"), "{open}");
    assert!(open.contains("monitor.ready_lag: found \"2h\""), "all problems are told: {open}");
    let short = refused("listen = \"0.0.0.0:0\"\ntoken = \"short\"\n");
    assert!(
        short.contains("monitor.token: a token has 16 bytes or more") && !short.contains("short"),
        "{short}"
    );
    place.write("token", "0123456789 abcdef\n");
    let spaced = refused("listen = \"0.0.0.0:0\"\ntoken_file = \"token\"\n");
    assert!(spaced.contains("visible ASCII") && !spaced.contains("0123456789"), "{spaced}");
    place.write("token", "0123456789abcdef\n");
    let (code, log) = said("listen = \"0.0.0.0:0\"\ntoken_file = \"token\"\n");
    assert_eq!(code, Some(0), "{log}");
    let (replayed, told) = place.done("replay --monitor 0.0.0.0:0 nothing.jsonl");
    assert!(replayed == Some(2) && told.contains("is no loopback address"), "{told}");
}

#[test]
fn secrets_are_not_shown() {
    let place = Place::new();
    place.write("feed.jsonl", "{\"id\":\"a\",\"text\":\"one\"}\n");
    let config = format!(
        "[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\n[sink]\npath = \"${{OUT:-out.jsonl}}\"\n\
         [monitor]\nlisten = \"127.0.0.1:0\"\ntoken = \"{TOKEN}\"\n[processes]\nsecret = \
         \"${{NOBODY:-hush}}\"\n"
    );
    place.write("run.toml", &config.replace("\"feed.jsonl\"", "\"pipe\""));
    // A pipe without a writer blocks the run.
    std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    let process = place.start("run -c run.toml");
    let request = format!(
        "GET /config HTTP/1.1\r\nhost: localhost\r\nauthorization: bearer {TOKEN}\r\nconnection: \
            close\r\n\r\n"
    );
    let answer = ask(process.address, &request);
    assert_eq!(answer.code, 200, "{answer:?}");
    let shown: serde_json::Value = serde_json::from_str(&answer.body).unwrap();
    let deployment = &shown["deployment"];
    assert_eq!(
        (&deployment["monitor.token"], &deployment["processes.secret"]),
        (&"***".into(), &"***".into())
    );
    assert_eq!(deployment["sink.path"], "${OUT:-out.jsonl}", "a variable by its name");
    assert_eq!(shown["pipeline"]["sketch.kind"], "\"fss\"");
    assert!(!answer.body.contains(TOKEN) && !answer.body.contains("hush"), "{answer:?}");
    process.kill();
}
