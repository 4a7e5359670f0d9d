//! The page of `dupflow demo`: the first pair is on it within seconds, and both texts are shown side by side.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::devtools::Browser;

/// Ends the demo with the test.
struct Demo(Child);

impl Drop for Demo {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn the_demo_shows_its_pairs() {
    let Some(mut browser) = Browser::start("demo") else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    command.arg("demo").env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut demo = Demo(command.spawn().unwrap());
    let mut lines = BufReader::new(demo.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    let page = lines.find_map(|line| line.strip_prefix("Page: ").map(str::to_owned)).unwrap();
    // The pipe must not fill up.
    std::thread::spawn(move || lines.count());
    browser.open(&page);
    browser.wait("document.querySelector('#live').dataset.state === 'live'");
    browser.wait("document.querySelector('#delta-list').innerText.includes('mirror/0')");
    browser.go("#/pairs");
    browser.click(".pair-line");
    browser.click("[data-mode=common]");
    browser.wait("document.querySelectorAll('mark').length >= 2");
    assert_eq!(browser.troubles(&[page.trim_end_matches('/')], &[]), [""; 0]);
}
