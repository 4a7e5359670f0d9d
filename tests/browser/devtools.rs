//! A browser under control of the test: headless Chromium over the DevTools protocol.
//!
//! One browser has one page. Nothing polls: the test waits for a promise that the page fulfils, and for a
//! read with a bound.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

use crate::BOUND;

/// Names of the Chromium program; the first one found is used.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    last: u64,
    /// Events that the browser has sent.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// `None`, with a line in the log, if there is no Chromium. `DUPFLOW_CHROMIUM` names another program.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let Some(program) = chromium() else {
            let skipped = format!("SKIPPED browser::{test}: no chromium in PATH\n");
            // The test harness hides the output of `eprintln!` when a test passes.
            std::io::stderr().write_all(skipped.as_bytes()).unwrap();
            return None;
        };
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(program);
        command.args([
            "--headless=new",
            "--remote-debugging-port=0",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ]);
        if rustix::process::geteuid().is_root() {
            command.arg("--no-sandbox");
        }
        command.arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "chromium ended before it listened");
            if let Some(address) = line.trim().strip_prefix("DevTools listening on ") {
                break address.to_owned();
            }
        };
        // Drains the pipe so that the browser does not block.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        let host = address.trim_start_matches("ws://").split('/').next().unwrap();
        let stream = TcpStream::connect(host).unwrap();
        stream.set_read_timeout(Some(BOUND)).unwrap();
        let (socket, _) = tungstenite::client(address.as_str(), stream).unwrap();
        let mut browser =
            Self { process, socket, session: None, last: 0, events: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session =
            Some(browser.call("Target.attachToTarget", &attach)["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Sends a command and returns its answer.
    pub(crate) fn call(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut command = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            command["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(command.to_string())).unwrap();
        loop {
            let mut message = self.next();
            if message["id"] == self.last {
                assert!(message["error"].is_null(), "{method}: {}", message["error"]);
                return message["result"].take();
            }
            self.events.push(message);
        }
    }

    fn next(&mut self) -> Value {
        let message =
            self.socket.read().unwrap_or_else(|error| panic!("no answer within {BOUND:?}: {error}"));
        serde_json::from_str(message.to_text().unwrap()).unwrap()
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open(&mut self, url: &str) {
        self.load("Page.navigate", &json!({"url": url}));
    }

    /// Loads the page once more: what is evaluated next is of the new one.
    pub(crate) fn reload(&mut self) {
        self.load("Page.reload", &json!({}));
    }

    fn load(&mut self, method: &str, params: &Value) {
        let before = self.events.len();
        self.call(method, params);
        let is_load = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events[before..].iter().any(is_load) {
            let event = self.next();
            self.events.push(event);
        }
    }

    /// The value of an expression, awaited if it is a promise.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let mut found = self.call("Runtime.evaluate", &params);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {}", found["exceptionDetails"]);
        found["result"]["value"].take()
    }

    /// Evaluates an expression in each frame of the page until it is true; returns its value.
    pub(crate) fn wait(&mut self, expression: &str) -> Value {
        // An error, such as a missing element, counts as false.
        let look = "const look = () => { let found, error; try { found = ask() } catch (thrown) { error = \
            thrown } if (found) done(found); \
                    else if (performance.now() > end) failed(`${error ?? ''}\\n${document.body.innerText}`); \
                    else requestAnimationFrame(look) }; look();";
        let end = BOUND.as_millis() / 2;
        let params = json!({
            "expression": format!("new Promise((done, failed) => {{ const ask = () => {expression}; const \
                end = performance.now() + {end}; {look} }})"),
            "awaitPromise": true, "returnByValue": true,
        });
        let mut found = self.call("Runtime.evaluate", &params);
        let text = &found["result"]["value"];
        assert!(
            found["exceptionDetails"].is_null(),
            "not so in time: {expression}\nthe page says:\n{}",
            text.as_str().unwrap_or_default()
        );
        found["result"]["value"].take()
    }

    /// Navigates to a view of the open page.
    pub(crate) fn go(&mut self, hash: &str) {
        self.value(&format!("void (location.hash = {})", json!(hash)));
    }

    pub(crate) fn click(&mut self, selector: &str) {
        self.wait(&format!("document.querySelector({})", json!(selector)));
        self.value(&format!("void document.querySelector({}).click()", json!(selector)));
    }

    /// Every error that the browser reported, and every request to other origins than these. Reports that
    /// contain one of the `expected` words are left out.
    pub(crate) fn troubles(&mut self, origins: &[&str], expected: &[&str]) -> Vec<String> {
        // All earlier events arrive before this answer.
        self.value("0");
        let mut troubles = Vec::new();
        for event in &self.events {
            let params = &event["params"];
            let is_trouble = match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => params["type"] == "error" || params["type"] == "warning",
                "Log.entryAdded" => {
                    params["entry"]["level"] == "error" || params["entry"]["level"] == "warning"
                }
                "Network.requestWillBeSent" => {
                    let url = params["request"]["url"].as_str().unwrap();
                    !url.starts_with("data:") && !origins.iter().any(|origin| url.starts_with(origin))
                }
                _ => false,
            };
            let text = params.to_string();
            if is_trouble && !expected.iter().any(|word| text.contains(word)) {
                troubles.push(format!("{}: {text}", event["method"]));
            }
        }
        troubles
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends by itself after `Browser.close`. If it were killed, its child processes could
        // stay.
        self.session = None;
        let close = json!({"id": self.last + 1, "method": "Browser.close"});
        let is_told = self.socket.send(Message::text(close.to_string())).is_ok();
        while is_told && self.socket.read().is_ok() {}
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

fn chromium() -> Option<PathBuf> {
    if let Some(named) = env::var_os("DUPFLOW_CHROMIUM") {
        return Some(named.into());
    }
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    NAMES
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)))
        .find(|file| file.is_file())
}
