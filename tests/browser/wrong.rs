//! Problems are shown prominently, with what to do.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::devtools::Browser;
use crate::stand_in::{self, StandIn};

#[test]
fn what_is_wrong_is_said() {
    let Some(mut browser) = Browser::start("wrong") else { return };
    let present = Arc::new(Mutex::new(stand_in::status()));
    let now = Arc::clone(&present);
    let server = StandIn::start(Arc::new(move |path| match path {
        "/status" => Some((200, now.lock().unwrap().clone())),
        "/document" => Some((
            200,
            json!({"id": "gone", "epoch": 7, "changed": null, "position": {"partition": 0, "offset": 12},
                "ts": null, "cluster": null,
            "pairs": [{"id": "other", "similarity": 0.9375, "since": 5, "cause": "update",
                "evidence": {"blocks": 13, "of_blocks": 18, "look": 3, "components": 128,
                    "of_components": 448, "standard_error": 0.011}}], "more": 0}),
        )),
        "/document/text" | "/compare" => Some((410, json!({"error": "partition 0 begins at offset 4120"}))),
        _ => None,
    }));
    let set = |change: fn(&mut Value)| change(&mut present.lock().unwrap());
    browser.open(&server.origin());
    browser.wait("document.querySelector('#live').dataset.state === 'live'");
    assert_eq!(browser.value("document.querySelector('#alarm').innerText"), "");

    set(|status| status["phase"] = json!("catching_up"));
    browser
        .wait("document.querySelector('#alarm .info')?.innerText.includes('reads again, without writing')");
    set(|status| {
        status["phase"] = json!("live");
        status["epochs"]["closed"] = json!(50);
    });
    browser.wait(
        "document.querySelector('#alarm .bad')?.innerText.includes('more than 32 epochs behind') && \
        document.querySelector('.stage.holds')",
    );
    set(|status| {
        status["epochs"]["closed"] = json!(7);
        status["phase"] = json!("failed");
        status["failure"] = json!("cannot write <b>\"deltas\"</b>: no space left");
    });
    browser.wait(
        "document.querySelector('#alarm .bad')?.innerText.includes('The run has failed: cannot \
        write <b>\"deltas\"</b>: no space left.')",
    );
    browser.wait(
        "document.title.startsWith('(!)') && document.querySelector('#live').dataset.state === 'failed'",
    );

    // Counts that decrease after a restart give no negative rate.
    set(|status| *status = stand_in::status());
    set(|status| {
        status["run"] = json!("another");
        status["counts"]["events"] = json!(1);
        status["now"] = json!(1_760_000_100.0);
    });
    browser.wait("run.restarts.length === 1 && document.querySelector('#alarm').innerText === ''");
    assert_eq!(
        browser.value(
            "[...document.querySelectorAll('main .value, main b')].filter((one) => \
        /[-−]\\d/.test(one.innerText)).length"
        ),
        0
    );

    // A text that is no longer available.
    browser.go("#/document/gone");
    browser.wait(
        "document.querySelector('.gone')?.innerText.includes('does not have this text any more. \
        partition 0 begins at offset 4120.')",
    );
    browser.click(".pair-line");
    browser.wait("document.querySelectorAll('.gone').length === 2");
    browser.wait(
        "document.querySelector('main').innerText.includes('13 of 18 blocks, decided after 128 of \
        448 components, about 0.94\\u00a0±\\u00a00.01; since epoch 5')",
    );

    // Keys: / focuses the box for ids, Enter opens one, Escape leaves it.
    let press = |pressed: &mut Browser, key: &str, text: &str| {
        pressed.call(
            "Input.dispatchKeyEvent",
            &json!({"type": "keyDown", "key": key, "code": key, "text": text}),
        );
        pressed.call("Input.dispatchKeyEvent", &json!({"type": "keyUp", "key": key, "code": key}));
    };
    press(&mut browser, "/", "/");
    assert_eq!(browser.value("document.activeElement.id"), "search-id");
    browser.call("Input.insertText", &json!({"text": "gone"}));
    browser.value("void document.querySelector('#search').requestSubmit()");
    browser.wait("location.hash === '#/document/gone' && document.querySelector('.pair-line')");
    browser.value("void document.querySelector('.pair-line').focus()");
    assert_eq!(
        browser.troubles(&[&server.origin(), "about:blank"], &["status of 410", "status of 404"]),
        [""; 0]
    );
}
