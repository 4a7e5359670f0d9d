//! Documents that are web pages.

use serde_json::{Value, json};

use super::dupflow::Place;
use super::feeds::lines;

/// A page with this text, in one of three kinds of markup; some characters are character references.
fn page(text: &str, kind: usize) -> String {
    let text =
        text.replace('&', "&amp;").replace('<', "&lt;").replace('é', "&eacute;").replace('の', "&#x306e;");
    let site = format!("{} of site {kind}", "Menu Home About us".repeat(20));
    match kind {
        0 => format!(
            "<!DOCTYPE html><title>{site}</title><nav>{site}</nav><main>{text}</main><footer>{site}</footer>"
        ),
        1 => format!(
            "\u{feff}<!-- {site} --><html><script>'<p>{site}'</script><table><tr><td><aside>{site}\
            </td><td><p>{text}</table>"
        ),
        _ => format!(
            "<?xml version='1.0'?><HTML><header>{site}<article><b>{text}</b></article><svg>\
            <title>{site}</title></svg>"
        ),
    }
}

/// A feed with its texts replaced by `make`, and with a title for every third document.
fn made(feed: &str, mut make: impl FnMut(&str, usize) -> String) -> String {
    let mut made = String::new();
    for (n, mut line) in lines(feed).into_iter().enumerate() {
        if let Some(Value::String(text)) = line.get("text").cloned() {
            line["text"] = make(&text, n % 3).into();
            if n % 3 == 0 {
                line["title"] = make(&text[..text.floor_char_boundary(30)], 1).into();
            }
        }
        made += &format!("{}\n", json!(line));
    }
    made
}

#[test]
fn pages_give_the_deltas_of_their_texts() {
    let place = Place::new();
    let generated = place.run("generate --documents 300 --seed 3 --near 0.4 --deletes 0.1 -o -");
    assert_eq!(generated.code, 0, "{}", generated.err);
    place.file("texts", made(&generated.out, |text, _| text.to_owned()));
    place.file("pages", made(&generated.out, page));
    for (pipeline, options) in [
        ("minhash", ""),
        ("minhash", "--set text.fields.title=1 --workers 2"),
        ("weighted", "--set text.idf=live"),
        ("weighted", "--set text.idf=texts"),
        ("simhash", "--set text.shingle=chars:5 --set text.normalize=nfkc"),
    ] {
        let run = |feed: &str| {
            let run =
                place.run(format!("replay {feed} --epoch events:50 -p {pipeline} {options}").trim_end());
            assert_eq!(run.code, 0, "{}", run.err);
            run.out
        };
        let texts = run("texts");
        assert!(texts.lines().count() > 20, "{pipeline} {options}: {texts}");
        assert_eq!(run("pages"), texts, "{pipeline} {options}");
        let raw = place.run(
            format!("replay pages --epoch events:50 --set text.html=none -p {pipeline} {options}").trim_end(),
        );
        assert!(raw.code == 0 && raw.out != texts, "{pipeline} {options}: {}", raw.err);
    }
}

#[test]
fn a_folder_of_pages_gives_the_pairs_of_their_texts() {
    let place = Place::new();
    let text =
        "日本語の文書、ภาษาไทย, des naïvetés & more; مرحبا بالعالم 🎉 one two three four five six seven";
    place.file("texts/a", text);
    place.file("texts/b", format!("{text} eight"));
    place.file("texts/c", "another one");
    place.file("pages/a.html", page(text, 0).replacen("<!DOCTYPE html>", "", 1));
    let units = page(&format!("{text} eight"), 2);
    place.file(
        "pages/b.htm",
        std::iter::once(0xfeff).chain(units.encode_utf16()).flat_map(u16::to_le_bytes).collect::<Vec<_>>(),
    );
    place.file("pages/c", page("another one", 1));
    let run = |folder: &str| {
        let run = place.run(&format!("replay {folder} --emit pairs --set threshold=0.7"));
        assert_eq!(run.code, 0, "{}", run.err);
        run.out.replace(".html", "").replace(".htm", "")
    };
    assert_eq!(run("texts").lines().count(), 1);
    assert_eq!(run("pages"), run("texts"));
    let compared = place.run("compare pages/a.html pages/b.htm");
    assert!(compared.code == 0 && compared.out.contains(": a pair\n"), "{}{}", compared.out, compared.err);
    let found = place.run("query --corpus texts --top 1 pages/a.html");
    assert!(found.out.ends_with("  a\n"), "{}{}", found.out, found.err);
}
