//! Ids and texts that are markup or control characters.

use std::fs;

use serde_json::json;

use crate::devtools::Browser;
use crate::run::{Run, upsert, words};

/// The ids, with the text that the page shows for each.
fn ids() -> Vec<(String, String)> {
    let same = |id: &str| (id.to_owned(), id.to_owned());
    vec![
        same("<img src=x onerror=\"pwned=1\">"),
        same("</script><script>pwned=2</script>"),
        same("\"><svg onload=pwned=3>"),
        same("{{pwned}} ${pwned} %3Cscript%3E %"),
        ("\u{202e}gpj.exe\u{200f}".to_owned(), "‹RLO›gpj.exe‹RLM›".to_owned()),
        ("a\u{1}b\u{7f}\u{85}\n".to_owned(), "a␁b␡‹U+0085›␊".to_owned()),
        same("مرحبا بالعالم"),
        same("近似重複 ไม่มี 🎉👩\u{200d}👧"),
        same("a/b?c=d&e#f g+h"),
        same(&"é".repeat(512)),
    ]
}

#[test]
fn ids_and_texts_are_text() {
    let Some(mut browser) = Browser::start("hostile") else { return };
    let folder = tempfile::tempdir().unwrap();
    let text = |nth: usize| {
        format!("<b onclick=pwned=4>bold</b> \u{0}\u{202e} مرحبا 近似 {}", words(nth as u64 / 2, 60))
    };
    // Each two consecutive documents are similar.
    let lines: Vec<String> = ids().iter().enumerate().map(|(nth, (id, _))| upsert(id, &text(nth))).collect();
    fs::write(folder.path().join("feed.jsonl"), lines.join("\n") + "\n").unwrap();
    let run = Run::start(folder.path(), 0);
    let origin = run.origin();
    browser.open(&origin);
    browser.wait(&format!(
        "run.status?.documents === {} && run.status.pairs === {}",
        ids().len(),
        ids().len() / 2
    ));

    let mut views =
        vec!["#/".to_owned(), "#/deltas".to_owned(), "#/clusters".to_owned(), "#/pipeline".to_owned()];
    for (nth, (id, shown)) in ids().iter().enumerate() {
        let link = browser.value(&format!("at.document({})", json!(id))).as_str().unwrap().to_owned();
        browser.go(&link);
        browser.wait(&format!("document.querySelector('.id.whole')?.textContent === {}", json!(shown)));
        browser.wait(
            "document.querySelector('.typed')?.textContent.startsWith('<b onclick=pwned=4>bold</b> \
            ␀‹RLO› مرحبا 近似 ')",
        );
        let other = &ids()[nth ^ 1].1;
        browser.wait(&format!("document.querySelector('.pair-line .id').textContent === {}", json!(other)));
        browser.click(".pair-line");
        browser.wait("document.querySelector('.verdict')?.innerText.includes('their texts are equal')");
        browser.click("[data-mode=common]");
        browser.wait("document.querySelectorAll('mark').length >= 2");
        let heads =
            browser.value("[...document.querySelectorAll('.sides .head .id')].map((one) => one.textContent)");
        assert_eq!(heads, json!([shown, other]));
        views.push(link);
    }
    views.push(browser.value("location.hash").as_str().unwrap().to_owned());

    // None of it became an element or ran, and none makes a page wider than the screen.
    for (width, scheme) in [(400, "dark"), (1600, "light")] {
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
        );
        browser.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        for view in &views {
            browser.go("#/similar");
            browser.wait("document.querySelector('#similar-text')");
            browser.go(view);
            let has_come = "!document.querySelector('#similar-text') && \
                !document.querySelector('main').innerText.includes('Asking …')";
            browser.wait(has_come);
            let made = browser.value(
                "document.querySelectorAll('main img, main script, main b[onclick], \
                main svg[onload], body > :not([id]):not(header):not(noscript):not(script):not(a)').length",
            );
            assert_eq!(made, 0, "{view}");
            assert_eq!(
                browser.value("document.documentElement.scrollWidth > innerWidth"),
                false,
                "{view} at {width}"
            );
        }
    }
    assert_eq!(browser.value("typeof pwned"), "undefined");
    assert_eq!(browser.troubles(&[&origin, "about:blank"], &[]), [""; 0]);
}
