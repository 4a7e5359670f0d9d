//! The page of `dupflow compare --html`: it opens without a network and without a script, in light and dark,
//! at any width, and as markup it has only its own.

use std::process::Command;

use serde_json::json;

use super::devtools::Browser;

/// A feed of two near copies whose ids and texts are hostile.
fn write_page(folder: &std::path::Path) -> String {
    let same: String = (0..60).map(|n| format!("word{n} ")).collect();
    let hostile = "<script>document.title = 'run'</script><img src=x onerror=alert(1)> \u{202e}reversed";
    let event = |id: &str, text: String| json!({ "id": id, "text": text }).to_string() + "\n";
    let feed =
        event("<b>a</b>", format!("{same} {hostile}")) + &event("b\"'&", format!("{hostile} {same} end"));
    std::fs::write(folder.join("feed.jsonl"), feed).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    command.args(["compare", "--corpus", "feed.jsonl", "--html", "page.html", "<b>a</b>", "b\"'&"]);
    let compared = command.current_dir(folder).output().unwrap();
    assert!(compared.status.success(), "{}", String::from_utf8_lossy(&compared.stderr));
    format!("file://{}", folder.join("page.html").display())
}

#[test]
fn a_report_is_read_without_network_and_script() {
    let Some(mut browser) = Browser::start("a_report_is_read_without_network_and_script") else { return };
    let folder = tempfile::tempdir().unwrap();
    let url = write_page(folder.path());
    let offline = json!({"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0});
    browser.call("Network.emulateNetworkConditions", &offline);
    for (scheme, width) in [("light", 1440), ("dark", 390)] {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        browser.call("Emulation.setDeviceMetricsOverride", &size);
        let feature = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.call("Emulation.setEmulatedMedia", &feature);
        browser.open(&url);
        assert_eq!(browser.value("document.title"), "<b>a</b> and b\"'& compared");
        assert_eq!(browser.value("document.querySelectorAll('script, img, b').length"), 0);
        let sides =
            "[...document.querySelectorAll('.side')].map(side => side.querySelectorAll('mark').length)";
        let marks = browser.value(sides);
        assert!(marks[0].as_u64().unwrap() >= 1 && marks[0] == marks[1], "{marks}");
        let wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth";
        assert_eq!(browser.value(wide), false, "at {width}");
        let paper = browser.value("getComputedStyle(document.body).backgroundColor");
        let expected = if scheme == "light" { "rgb(255, 255, 255)" } else { "rgb(20, 24, 31)" };
        assert_eq!(paper, expected, "the style is in force");
        // A number leads to the passage of the other text.
        browser.click("#a0 a");
        assert_eq!(browser.value("document.querySelector(':target').id"), "b0");
        save(&mut browser, scheme);
    }
    let print = json!({"media": "print", "features": []});
    browser.call("Emulation.setEmulatedMedia", &print);
    assert_eq!(browser.value("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
    let pdf = browser.call("Page.printToPDF", &json!({"printBackground": true}));
    assert!(pdf["data"].as_str().unwrap().starts_with("JVBERi"), "a PDF in base64");
    assert_eq!(browser.troubles(&["file://"], &[]), [""; 0]);
}

/// Keeps a picture where `DUPFLOW_SCREENSHOTS` names a folder, to be looked at.
fn save(browser: &mut Browser, name: &str) {
    let Some(folder) = std::env::var_os("DUPFLOW_SCREENSHOTS") else { return };
    let shot = browser.call("Page.captureScreenshot", &json!({"captureBeyondViewport": true}));
    let path = std::path::Path::new(&folder).join(format!("report-{name}.png.base64"));
    std::fs::write(path, shot["data"].as_str().unwrap()).unwrap();
}
