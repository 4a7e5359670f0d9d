//! The page of a run that is killed and restarted.

use std::fs;

use crate::devtools::Browser;
use crate::run::{Run, upsert, words};

/// The browser's error while the run is down.
const AWAY: &str = "net::ERR_";

/// Twenty documents, two of them similar: the same four paragraphs in a different order, and one more.
fn feed() -> String {
    let paragraphs = [1, 2, 3, 4].map(|seed| words(seed, 40));
    let first = paragraphs.join("\n\n");
    let second = [&paragraphs[2], &paragraphs[3], &words(99, 10), &paragraphs[0], &paragraphs[1]]
        .map(String::as_str)
        .join("\n\n");
    let mut lines = vec![upsert("left", &first), upsert("right", &second)];
    lines.extend((10..28).map(|seed| upsert(&format!("alone {seed}"), &words(seed, 60))));
    lines.join("\n") + "\n"
}

#[test]
fn a_run_is_watched_and_comes_back() {
    let Some(mut browser) = Browser::start("watching") else { return };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("feed.jsonl"), feed()).unwrap();
    let mut run = Run::start(folder.path(), 0);
    let origin = run.origin();

    // The page loads and shows the values of the run.
    browser.open(&origin);
    browser.wait("document.querySelector('#live').dataset.state === 'live'");
    let documents = "[...document.querySelectorAll('.tile')].find((one) => \
        one.innerText.startsWith('Documents')).querySelector('.value').innerText";
    browser.wait(&format!("run.status.documents === 20 && {documents} === '20'"));
    browser.wait("document.querySelector('footer').innerText.includes(run.status.run)");
    browser.wait("document.querySelectorAll('.stage').length === 8 && stream.state === 'live'");

    // A delta appears when it is committed.
    let came = upsert("came later", &words(10, 60));
    run.say(&came);
    let late = browser.wait(
        "(() => { const row = stream.rows.find((row) => row.b === 'came later'); \
           return row && document.querySelector('#delta-list').innerText.includes('came later') && { late: \
           Date.now() / 1000 - row.at } })()",
    );
    println!("a delta was on the screen {:.3} s after its commit", late["late"].as_f64().unwrap());
    let row = "[...document.querySelectorAll('.delta')].find((row) => row.innerText.includes('came \
        later')).innerText";
    let row = browser.value(row).to_string();
    assert!(row.contains("inserted") && row.contains("alone 10"), "{row}");
    browser.wait("run.status.documents === 21");

    // From a document to its pair, with the common passages marked.
    browser.go("#/document/left");
    browser.wait("document.querySelector('.typed')?.innerText.includes('w4x39')");
    browser.wait(
        "/\\d+ of 18 blocks, decided after \\d+ of 448 components|the same \
        sketch/.test(document.querySelector('.pair-line .why').innerText)",
    );
    browser.click(".pair-line");
    browser.wait(
        "/^A pair: about 0\\.\\d+\\s±\\s0\\.\\d+ by their sketches, exactly 0\\.\\d+ by their \
        texts; a pair has 0\\.\\d+ or more/.test(document.querySelector('.verdict').innerText)",
    );
    browser.click("[data-mode=common]");
    browser.wait("document.querySelectorAll('mark').length >= 4");
    let marked = |side: usize| {
        format!(
            "[...document.querySelectorAll('.sides .panel')[{side}].querySelectorAll('mark')].map((one) => \
                one.innerText.trim()).join('|')"
        )
    };
    let (left, right) = (browser.value(&marked(0)).to_string(), browser.value(&marked(1)).to_string());
    for place in ["w1x0 ", "w2x39", "w3x0 ", "w4x39"] {
        assert!(left.contains(place) && right.contains(place), "{place}: {left} {right}");
    }
    assert!(!right.contains("w99x"), "{right}");
    assert!(
        browser
            .value("document.querySelectorAll('.sides .panel')[1].innerText")
            .to_string()
            .contains("w99x5")
    );
    browser.click(".sides .panel:first-child mark");
    let chosen = browser.value(
        "[...document.querySelectorAll('mark.chosen')].map((one) => one.innerText.trim().slice(0, 5))",
    );
    assert_eq!(chosen.as_array().unwrap().len(), 2, "a passage and its partner: {chosen}");
    assert_eq!(chosen[0], chosen[1]);

    // Texts from standard input cannot be read again; the page says so.
    browser.go("#/document/came%20later");
    browser.wait("document.querySelector('.gone') && document.querySelectorAll('.pair-line').length === 1");

    // A pasted text is answered.
    browser.go("#/similar");
    browser.click("#similar-text");
    browser.value(&format!(
        "void (document.querySelector('#similar-text').value = {})",
        serde_json::json!(words(3, 40) + &words(4, 40))
    ));
    browser.click("#similar-ask");
    browser.wait("/similar enough/.test(document.querySelector('#similar-state').innerText)");
    browser.value(&format!(
        "void (document.querySelector('#similar-text').value = {})",
        serde_json::json!(words(10, 60))
    ));
    browser.click("#similar-ask");
    browser.wait(
        "document.querySelectorAll('.answer-line').length === 2 && \
        document.querySelector('.answer-line').innerText.includes('the same sketch')",
    );

    // The other views have their contents.
    browser.go("#/clusters?order=recent");
    browser.wait("document.querySelectorAll('.cluster-line').length === 2");
    browser.click(".cluster-line");
    browser.wait(
        "document.querySelectorAll('[data-list] > li').length === 2 && \
        document.querySelector('.event-line').innerText.includes('born')",
    );
    browser.go("#/pairs");
    browser.wait("document.querySelectorAll('.pair-line').length === 2");
    browser.go("#/pairs?min=0.99");
    browser.wait(
        "document.querySelectorAll('.pair-line').length === 1 && \
        document.querySelector('.pair-line').innerText.includes('alone 10')",
    );
    browser.go("#/pipeline");
    browser.wait(
        "document.querySelectorAll('.curve rect').length > 0 && document.querySelector('.curve \
        .promise').getAttribute('d').length > 500",
    );

    // The run is killed and restarted: the page reports both and keeps what it had.
    browser.go("#/deltas");
    browser.wait("document.querySelectorAll('.delta').length > 0");
    let port = run.port();
    run.kill();
    browser.wait(
        "document.querySelector('#live').dataset.state === 'lost' && \
        document.querySelector('#alarm').innerText.includes('has not answered')",
    );
    let mut again = Run::start(folder.path(), port);
    // Standard input is a new one, with the same events.
    again.say(&came);
    browser.wait(
        "document.querySelector('#live').dataset.state === 'live' && \
        document.querySelector('#alarm').innerText === ''",
    );
    browser.wait("stream.state === 'live' && run.status.documents === 21");
    again.say(&upsert("after the restart", &words(11, 60)));
    browser.wait("document.querySelector('#delta-list').innerText.includes('after the restart')");
    let told = browser.value("document.querySelector('#delta-list').innerText").to_string();
    assert!(told.contains("the run was started again") && told.contains("came later"), "{told}");
    let negative = browser.value(
        "[...document.querySelectorAll('main *')].map((one) => \
        one.innerText).filter((text) => /^-\\d/.test(text))",
    );
    assert_eq!(negative.as_array().unwrap().len(), 0, "{negative}");
    assert_eq!(browser.troubles(&[&origin, "about:blank"], &[AWAY, "status of 501"]), [""; 0]);
}
