//! Views of the corpus, watches, and lists that are saved.

use std::fs;

use serde_json::json;

use crate::ENTRIES;
use crate::devtools::Browser;
use crate::run::{Run, upsert, words};

const VIEWS: &str = "[[view]]\nname = \"hosts\"\nof = \"pairs\"\ngroup = [\"host\"]\noutput = \"hosts.csv\"\n\
    [[view]]\nname = \"pages\"\nof = \"documents\"\ngroup = [\"host\"]\noutput = \"pages.csv\"\n";

/// Two pages on `one.org` and three on `two.org`; a and c are copies, and so are b and d.
fn feed() -> String {
    [("a", "one", 1), ("b", "one", 2), ("c", "two", 1), ("d", "two", 2), ("e", "two", 3)]
        .map(|(id, host, seed)| {
            let url = format!("https://{host}.org/{id}");
            json!({"id": id, "url": url, "text": words(seed, 60)}).to_string() + "\n"
        })
        .concat()
}

#[test]
fn views_and_watches_are_shown_where_a_run_has_them() {
    let Some(mut browser) = Browser::start("tables") else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("feed.jsonl"), feed()).unwrap();
    fs::write(path("views.toml"), VIEWS).unwrap();
    fs::write(path("watch.jsonl"), upsert("wanted", &words(3, 60)) + "\n").unwrap();
    let (views, watch, notices) = (path("views.toml"), path("watch.jsonl"), path("notices.jsonl"));
    let options = ["--field", "host(url)", "--views", &views, "--watch", &watch, "--notices", &notices];
    let run = Run::replay(folder.path(), &options);
    browser.open(&run.origin());
    browser.wait("run.status?.reading.ended_at && run.status.pairs === 2");
    browser.wait(&format!("{ENTRIES} === 8"));

    let press = "document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '5', bubbles: true }))";
    browser.value(&format!("void {press}"));
    let cells = "[...document.querySelectorAll('table.rows td')].map((one) => one.innerText).join(' ')";
    browser.wait(&format!("location.hash === '#/views' && {cells} === 'one.org two.org 2'"));
    browser.wait(
        "[...document.querySelectorAll('table.matrix tbody td')].map((one) => one.innerText).join() === \
        ',2,2,'",
    );
    browser.go("#/views/pages");
    browser.wait(&format!("{cells} === 'two.org 3 one.org 2'"));
    browser.go("#/views/pages?order=group");
    browser.wait(&format!("{cells} === 'one.org 2 two.org 3'"));

    browser.go("#/watch");
    browser.wait("document.querySelector('.answer-line')?.innerText.includes('resembles the watch wanted')");
    browser.wait("[...document.querySelectorAll('h2')].some((one) => one.innerText === '1 watch')");

    // What is saved is the whole list, as it is shown.
    browser.go("#/pairs?order=id&q=c");
    let saved = browser.wait(
        "Promise.all([...document.querySelectorAll('a[download]')].map(async (one) => [one.download, await \
        (await fetch(one.href)).text()]))",
    );
    let text = |nth: usize| saved[nth][1].as_str().unwrap();
    assert_eq!((&saved[0][0], &saved[1][0]), (&"pairs.csv".into(), &"pairs.jsonl".into()));
    assert_eq!((text(0).lines().count(), text(1).lines().count()), (2, 1), "{saved}");
    assert!(text(1).contains(r#""a":"a","b":"c""#), "{saved}");
    assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false);
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &[]), [""; 0]);
}
