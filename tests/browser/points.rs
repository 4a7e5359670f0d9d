//! What a person wants to know from the page, one test for each: when, what is new, which pairs and where
//! they were, what differs, whether all is well, what a cluster is made of, and by which keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;

use crate::ENTRIES;
use crate::devtools::Browser;
use crate::run::{Run, upsert, words};

/// Pairs of the feed of [`many`], without those of the copy at its end.
const PAIRS: u64 = 160;

/// [`PAIRS`] pairs of documents, each of two texts with the same first and last words.
fn many(folder: &Path) {
    let text = |seed: u64, inside: &str| format!("{}{inside} {}", words(seed, 40), words(seed + 1000, 40));
    let of_pair = |n: u64| {
        let (left, right) = (format!("left/{n:03}"), format!("right/{n:03}"));
        [upsert(&left, &text(n, "first inside")), upsert(&right, &text(n, "second 第二 inside"))]
    };
    let mut lines: Vec<String> = (0..PAIRS).flat_map(of_pair).collect();
    // A blank line, which is no record and is a line; then a copy of a text with an id of one long word.
    lines.push(String::new());
    lines.push(upsert(&"ไทย文🎉".repeat(20), &text(7, "first inside")));
    fs::write(folder.join("feed.jsonl"), lines.join("\n") + "\n").unwrap();
}

/// A run of [`many`] that is live in a browser; `None` without one.
fn watched(test: &str, folder: &Path) -> Option<(Browser, Run)> {
    let mut browser = Browser::start(test)?;
    many(folder);
    let run = Run::start(folder, 0);
    browser.open(&run.origin());
    browser.wait(&format!("run.status?.pairs === {}", PAIRS + 2));
    Some((browser, run))
}

/// Three copies with event times of November 2024, a day apart.
fn dated(folder: &Path) {
    let event = |n: u64| {
        let ts = 1_730_462_400 + n * 86_400;
        json!({"id": format!("dated/{n}"), "ts": ts, "text": words(1, 50)}).to_string()
    };
    fs::write(folder.join("feed.jsonl"), [0, 1, 2].map(event).join("\n") + "\n").unwrap();
}

#[test]
fn a_replay_shows_its_dates_and_what_was_before() {
    let Some(mut browser) = Browser::start("replay") else { return };
    let folder = tempfile::tempdir().unwrap();
    dated(folder.path());
    let run = Run::replay(folder.path(), &["--epoch", "ts"]);
    let origin = run.origin();
    browser.open(&origin);
    browser.wait("run.status?.reading.ended_at && run.status.pairs === 3");
    // The page is opened again, after everything has been read.
    browser.open(&format!("{origin}/?again"));
    browser.wait(
        "document.querySelectorAll('#delta-list .delta:not([hidden])').length === 3 && stream.fresh === 0",
    );
    browser.wait("/^\\d\\d:\\d\\d:\\d\\d$/.test(document.querySelector('.delta .time').innerText)");
    browser.wait(
        "document.querySelector('.reading').innerText.includes('The corpus as of 2024-11-03 12:00:00 \
        UTC') && \
        /all read at \\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('.reading').innerText)",
    );
    browser.wait(
        "document.querySelector('#alarm').innerText.includes('The feed has ended') && \
        document.querySelector('#live-text').innerText === 'feed ended'",
    );
    browser.wait("/epoch \\d+, \\d\\d:\\d\\d:\\d\\d/.test(document.querySelector('footer').innerText)");

    // A visit that ended after the second epoch: the pairs of the third one are new.
    browser.value(
        "void localStorage.setItem('dupflow.visits', JSON.stringify({ [run.status.run]: { epoch: 2, at: \
        run.status.now - 60 } })), Object.defineProperty(visit, 'note', { value() {} })",
    );
    browser.open(&format!("{origin}/?third"));
    browser.wait(
        "/^Since your last visit, at .*: 2 new pairs, 0 new clusters\\.$/\
        .test(document.querySelector('.news').innerText)",
    );
    browser.wait("document.querySelector('#delta-list').innerText.includes('your last visit ended at')");
    browser.go("#/pairs");
    browser.wait(
        "document.querySelectorAll('.pair-line').length === 3 && \
        document.querySelectorAll('.pair-line .chip.new').length === 2",
    );
    run.interrupt();
    browser.wait(
        "/The run has ended, at \\d\\d:\\d\\d:\\d\\d\\./.test(document.querySelector('#alarm').innerText) && \
        document.querySelector('#live').dataset.state === 'ended'",
    );
    assert_eq!(browser.troubles(&[&origin, "about:blank"], &["net::ERR_"]), [""; 0]);
}

#[test]
fn pairs_are_ordered_and_searched_and_back_keeps_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut browser, mut run)) = watched("pairs", folder.path()) else { return };
    run.say(&upsert("newest", &words(3, 40)));
    run.say(&upsert("newest copy", &words(3, 40)));
    browser.wait(&format!("run.status.pairs === {}", PAIRS + 3));
    let first = "document.querySelector('.pair-line')?.innerText";
    browser.go("#/pairs");
    browser.wait(&format!("{first}?.includes('newest') && {first}.includes('newest copy')"));
    let order = |page: &mut Browser, name: &str| {
        page.value(&format!(
            "(() => {{ const box = document.querySelector('[aria-label=Order]'); box.value = '{name}'; \
            box.dispatchEvent(new Event('change')); }})()"
        ));
    };
    order(&mut browser, "similarity");
    browser.wait(&format!("location.hash.includes('order=similarity') && {first}?.startsWith('1')"));
    order(&mut browser, "id");
    browser.wait("document.querySelector('.pair-line')?.innerText.includes('left/000')");

    // More pages, a place far down, a pair, and back.
    browser.click("main .note button");
    browser.wait("document.querySelectorAll('.pair-line').length > 120");
    browser.value("void window.scrollTo(0, 3000)");
    browser.wait("history.state?.place?.y === 3000");
    browser.value("void [...document.querySelectorAll('.pair-line')][110].click()");
    browser.wait("document.querySelector('.verdict')?.innerText.startsWith('A pair') && scrollY === 0");
    browser.value("void history.back()");
    browser.wait("document.querySelectorAll('.pair-line').length > 120 && scrollY === 3000");
    browser.reload();
    browser.wait("document.querySelectorAll('.pair-line').length > 120 && scrollY === 3000");

    // A part of an id, from the box in the header; an id that is alive opens its document.
    let search = |page: &mut Browser, text: &str| {
        page.value(&format!(
            "void (document.querySelector('#search-id').value = {}, \
            document.querySelector('#search').requestSubmit())",
            json!(text)
        ));
    };
    search(&mut browser, "ght/05");
    browser.wait(
        "document.querySelectorAll('.pair-line').length === 10 && location.hash.includes('q=ght%2F05')",
    );
    search(&mut browser, "left/007");
    browser.wait(
        "location.hash === '#/document/left%2F007' && document.querySelectorAll('.pair-line').length === 2",
    );
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &["status of 404"]), [""; 0]);
}

#[test]
fn a_pair_shows_what_differs() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut browser, run)) = watched("pair", folder.path()) else { return };
    browser.call(
        "Emulation.setDeviceMetricsOverride",
        &json!({"width": 1024, "height": 260, "deviceScaleFactor": 1, "mobile": false}),
    );
    browser.go("#/pair?a=left%2F003&b=right%2F003");
    let marked = "[...document.querySelectorAll('mark')].map((one) => one.innerText)";
    browser.wait(&format!("{marked}.length === 2"));
    assert_eq!(browser.value(marked), json!(["first", "second 第二"]));
    browser.wait("document.querySelector('#passage-state').innerText === '1 difference'");
    let press = "(key) => document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))";
    browser.value(&format!("void ({press})('n')"));
    browser.wait("document.querySelectorAll('mark.chosen').length === 2");
    // A change of the pair that leaves the texts as they are: what is chosen stays so.
    browser.value(
        "void (() => { document.querySelector('.verdict').textContent = ''; \
        view.current.epoch({ deltas: [{ a: 'left/003', b: 'right/003' }] }); view.current.tick(); })()",
    );
    browser.wait("document.querySelector('.verdict').textContent");
    assert_eq!(browser.value("document.querySelectorAll('mark.chosen').length"), 2);
    browser.value(&format!("void ({press})('m')"));
    browser.wait("location.hash.endsWith('show=common') && document.querySelectorAll('mark').length === 4");
    browser.reload();
    browser.wait("document.querySelectorAll('mark').length === 4");

    // The texts scroll together while the button is pressed.
    let scroll = |to: u32| {
        format!(
            "void (() => {{ const box = document.querySelector('.typed'); \
            box.dispatchEvent(new Event('pointerenter')); box.scrollTop = {to}; }})()"
        )
    };
    browser.wait(
        "document.querySelector('.typed').scrollHeight > document.querySelector('.typed').clientHeight",
    );
    browser.value(&scroll(10_000));
    browser.wait("document.querySelectorAll('.typed')[1].scrollTop > 20");
    browser.value(&format!("void ({press})('s')"));
    browser.wait("document.querySelector('#scroll-together').getAttribute('aria-pressed') === 'false'");

    // By sketches it is about so much, by texts exactly.
    browser.wait(
        "/^A pair: about 0\\.\\d+\\s±\\s0\\.\\d+ by their sketches, exactly 0\\.\\d+ by their texts; a pair \
        has/.test(document.querySelector('.verdict').innerText)",
    );
    let copy = format!("#/pair?a=left%2F007&b={}", "ไทย文🎉".repeat(20));
    browser.go(&copy);
    browser.wait("/their texts are equal; a pair has/.test(document.querySelector('.verdict').innerText)");
    browser.wait("document.querySelector('#passage-state').innerText === 'no difference'");
    assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false);
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &[]), [""; 0]);
}

#[test]
fn the_overview_leads_with_what_is_new_and_has_no_holes() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut browser, run)) = watched("overview", folder.path()) else { return };
    browser.wait("[...document.querySelectorAll('main .panel h2')][0].innerText.startsWith('Latest pairs')");
    browser.wait("document.querySelectorAll('.cluster-line').length === 7");
    browser.wait("document.querySelectorAll('.plot .time-tick').length > 0");
    for width in [390, 600, 760, 900, 1024, 1100, 1440, 1920] {
        browser.call(
            "Emulation.setDeviceMetricsOverride",
            &json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}),
        );
        // In each row of a grid the last item ends where the grid does.
        let holes = browser.value(
            "['.tiles', '.plots', '.stages', '.columns'].flatMap((name) => \
            [...document.querySelectorAll(name)].flatMap((grid) => { const rows = new Map(); const style = \
            getComputedStyle(grid); for (const one of grid.children) { const box = \
            one.getBoundingClientRect(); const row = Math.round(box.top); \
            rows.set(row, Math.max(rows.get(row) ?? 0, box.right)); } const end = \
            grid.getBoundingClientRect().right - parseFloat(style.paddingRight); return \
            [...rows.values()].filter((right) => Math.abs(right - end) > 2).map((right) => `${name} ${right} \
            ${end}`); }))",
        );
        assert_eq!(holes, json!([]), "{width}");
        assert_eq!(browser.value("document.documentElement.scrollWidth > innerWidth"), false, "{width}");
    }
    // Axes: three values with their unit, and a few round times.
    let ticks = browser.value(
        "[...document.querySelectorAll('.plot')].map((plot) => [plot.querySelectorAll('.value-tick').length, \
        plot.querySelectorAll('.time-tick').length])",
    );
    for of_plot in ticks.as_array().unwrap() {
        let (values, times) = (of_plot[0].as_u64().unwrap(), of_plot[1].as_u64().unwrap());
        assert!((values == 3 && times <= 4) || values == 0, "{ticks}");
    }
    // The first plot needs samples of some seconds.
    browser.wait("document.querySelector('.plot').querySelector('.value-tick')?.innerText.endsWith('/s')");
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &[]), [""; 0]);
}

#[test]
fn a_cluster_shows_its_texts_and_compares_two_members() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut browser, run)) = watched("cluster", folder.path()) else { return };
    browser.go("#/cluster/left%2F007");
    browser.wait("document.querySelectorAll('.member').length === 3");
    browser.wait(
        "[...document.querySelectorAll('.excerpt')].every((one) => one.innerText.startsWith('w7x0 w7x1'))",
    );
    let numbers = browser.value("[...document.querySelectorAll('.member > b')].map((one) => one.innerText)");
    let of_all = numbers.as_array().unwrap();
    assert_eq!(of_all.iter().filter(|one| *one == "centre").count(), 1, "{numbers}");
    assert!(
        of_all.iter().filter(|one| one.as_str().unwrap().parse::<f64>().is_ok()).count() == 2,
        "{numbers}"
    );
    // Two documents a pair, a blank line, then the copy.
    let places =
        browser.value("[...document.querySelectorAll('.member .place')].map((one) => one.innerText)");
    let lines: Vec<&str> = places
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap().rsplit_once(':').unwrap().1)
        .collect();
    assert_eq!(lines, ["15", "16", &(2 * PAIRS + 2).to_string()], "{places}");
    for nth in [1, 2] {
        browser.value(&format!("void document.querySelectorAll('.member input')[{nth}].click()"));
    }
    browser.wait("document.querySelector('#compare-members').innerText === 'Compare the two'");
    browser.click("#compare-members");
    browser.wait(
        "document.querySelector('.verdict')?.innerText.startsWith('A pair') && \
        document.querySelector('mark')",
    );
    browser.go("#/document/left%2F007");
    browser.wait("document.querySelector('dd .place')?.innerText.endsWith('feed.jsonl:15')");
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &[]), [""; 0]);
}

#[test]
fn titles_and_keys_are_there_and_axe_finds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some((mut browser, run)) = watched("axe", folder.path()) else { return };
    let views = [
        ("#/", "Overview"),
        ("#/deltas", "Deltas"),
        ("#/pairs", "Pairs"),
        ("#/clusters", "Clusters"),
        ("#/cluster/left%2F007", "left/007 – cluster"),
        ("#/document/left%2F007", "left/007 – document"),
        ("#/pair?a=left%2F003&b=right%2F003", "left/003 and right/003 – pair"),
        ("#/pipeline", "Pipeline"),
        ("#/similar", "Try a text"),
    ];
    for (view, title) in views {
        browser.go(view);
        browser.wait(&format!("document.title.startsWith({})", json!(format!("{title} – dupflow"))));
    }
    // Neither views nor watches, which this run does not have.
    assert_eq!(browser.value(ENTRIES), 6);
    browser
        .value("void document.body.dispatchEvent(new KeyboardEvent('keydown', { key: '?', bubbles: true }))");
    browser.wait("document.querySelector('dialog#keys[open]').innerText.includes('to the next difference')");
    let Some(axe) = axe() else { return };
    browser.value(&format!("{axe}; 0"));
    let findings = |page: &mut Browser| {
        page.value(
            "axe.run(document, { resultTypes: ['violations'] }).then((found) => \
            found.violations.map((one) => `${one.id}: ${one.nodes[0].html} ${one.nodes[0].failureSummary}`))",
        )
    };
    assert_eq!(findings(&mut browser), json!([]), "keys");
    browser.value("void document.querySelector('dialog').close()");
    for scheme in ["light", "dark"] {
        browser.call(
            "Emulation.setEmulatedMedia",
            &json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]}),
        );
        for (view, title) in views {
            browser.go(view);
            browser.wait(&format!(
                "document.title.startsWith({}) && \
                !document.querySelector('main').innerText.includes('Asking …')",
                json!(title)
            ));
            assert_eq!(findings(&mut browser), json!([]), "{view} {scheme}");
        }
    }
    assert_eq!(browser.troubles(&[&run.origin(), "about:blank"], &[]), [""; 0]);
}

/// The script of axe-core: the file that `DUPFLOW_AXE` names, or the package as npm has it. `None`, with a
/// line in the log, if there is neither.
fn axe() -> Option<String> {
    if let Some(named) = std::env::var_os("DUPFLOW_AXE") {
        return Some(fs::read_to_string(PathBuf::from(named)).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--ignore-scripts", "--silent", "--prefix"]).arg(folder.path());
    npm.arg("axe-core@4.10.2").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let is_installed = npm.status().is_ok_and(|status| status.success());
    let script = folder.path().join("node_modules/axe-core/axe.min.js");
    let found = is_installed.then(|| fs::read_to_string(script).unwrap());
    if found.is_none() {
        let skipped = "SKIPPED browser::axe: neither DUPFLOW_AXE nor npm with axe-core\n";
        std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes()).unwrap();
    }
    found
}
