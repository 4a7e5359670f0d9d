//! More deltas than a run sends: 10,000 per second.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::devtools::Browser;
use crate::stand_in::{self, StandIn};

/// Deltas sent in each tenth of a second; and the number of tenths for which the page is watched.
const AN_EPOCH: u64 = 1000;
const EPOCHS: u64 = 50;

#[test]
fn ten_thousand_deltas_a_second_do_not_freeze_the_page() {
    let Some(mut browser) = Browser::start("flood") else { return };
    let mut server = StandIn::start(Arc::new(|path| match path {
        "/status" => Some((200, stand_in::status())),
        "/clusters" => Some((200, json!({"epoch": 7, "clusters": [], "next": null}))),
        "/history" => Some((200, json!({"every_seconds": 1, "samples": [], "coarse": []}))),
        "/pipeline" => {
            Some((200, json!({"name": "made-up", "threshold": 0.8, "curve": [], "retention": null})))
        }
        _ => None,
    }));
    browser.open(&format!("{}/#/deltas", server.origin()));
    browser.wait("stream.state === 'live'");
    server.send_each(Duration::from_millis(100), |epoch| {
        let id = |n: u64| format!("https://example.org/{epoch}/{n}");
        let delta = |n| {
            let diff = if n % 3 == 0 { -1 } else { 1 };
            json!({"diff": diff, "a": id(n), "b": id(n + 1), "similarity": 0.9, "cause": "insert"})
        };
        let deltas: Vec<Value> = (0..AN_EPOCH).map(delta).collect();
        json!({"epoch": epoch, "at": 1_760_000_000, "deltas": deltas, "more": 0})
    });
    let watched = browser.value(&format!(
        "new Promise((done) => {{ let frames = 0, worst = 0, last = performance.now(); const began = last;
            const look = (now) => {{
                frames += 1; worst = Math.max(worst, now - last); last = now;
                if (stream.came >= {AN_EPOCH} * {EPOCHS}) done({{frames, worst, took: now - began}}); else \
                requestAnimationFrame(look);
            }}; requestAnimationFrame(look) }})"
    ));
    println!(
        "{} deltas in {:.1} s: {} frames, the worst gap {:.0} ms",
        AN_EPOCH * EPOCHS,
        watched["took"].as_f64().unwrap() / 1e3,
        watched["frames"],
        watched["worst"].as_f64().unwrap()
    );
    // The newest delta is on top, the list holds only visible rows, and the ring has a bounded length.
    let newest = "document.querySelector('#delta-list').innerText\
        .includes(`example.org/${stream.rows.at(-1).epoch}/`)";
    browser.wait(newest);
    let rows = browser.value("document.querySelectorAll('.delta').length").as_u64().unwrap();
    assert!((10..100).contains(&rows), "{rows} rows");
    let kept = browser.value("stream.rows.length").as_u64().unwrap();
    assert!((10_000..=12_500).contains(&kept), "{kept} deltas are kept");

    // The page reacts: a filter works, and a pause keeps the visible rows while more deltas arrive.
    browser.value(
        "(() => { const box = document.querySelector('[aria-label=Sign]'); box.value = '-1'; \
        box.dispatchEvent(new Event('change')); })()",
    );
    browser.wait(
        "document.querySelector('.delta.minus:not([hidden])') && \
        !document.querySelector('.delta.plus:not([hidden])')",
    );
    browser.click(".filters button");
    browser.wait("document.querySelector('.filters button').innerText === 'Go on'");
    let held =
        "[...document.querySelectorAll('.delta:not([hidden]) .epoch')].map((one) => one.innerText).join()";
    let before = browser.value(held);
    let came = browser.value("stream.came").as_u64().unwrap();
    browser.wait(&format!("stream.came > {}", came + 3 * AN_EPOCH));
    assert_eq!(browser.value(held), before, "what is held moves");
    browser.wait("/new ones? above/.test(document.querySelector('.head .end').innerText)");

    // A hidden tab closes its connection; a visible one resumes where it was.
    browser.value(
        "(() => { Object.defineProperty(document, 'hidden', { value: true, configurable: true }); \
        document.dispatchEvent(new Event('visibilitychange')); })()",
    );
    assert_eq!(browser.value("stream.source === null && stream.state"), "hidden");
    browser.value(
        "(() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); })()",
    );
    browser.wait("stream.state === 'live'");
    let asked = browser.value("stream.source.url");
    assert!(asked.as_str().unwrap().contains("after=made-up-"), "{asked}");
    assert_eq!(browser.troubles(&[&server.origin(), "about:blank"], &[]), [""; 0]);
}
