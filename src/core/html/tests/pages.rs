//! What is content, page by page.

use super::super::{Extractor, MOST_BYTES, is_page, with_doctype};

fn text(page: &str) -> String {
    Extractor::default().text(page).to_owned()
}

#[test]
fn pages_are_recognized_by_their_start() {
    for page in [
        "<!doctype html>",
        "<!DOCTYPE HTML PUBLIC \"-//W3C//DTD HTML 4.01//EN\">",
        "<html>",
        "<HTML lang=\"th\">",
        "\u{feff} \n<!-- a > b --><!----><html\n>",
        "<?xml version=\"1.0\"?>\n<!-- x -->\n<!doctype html >",
    ] {
        assert!(is_page(page), "{page}");
    }
    for other in [
        "",
        "<",
        "<!doctype html",
        "<html",
        "<htmlx>",
        "<!doctype htmlx>",
        "<!doctype svg>",
        "<!-- <html>",
        "<?xml <html>",
        "a <html>",
        "<body>",
        "{\"html\": \"<html>\"}",
        "漢<html>",
        "<!-漢",
        "<!doctype htm漢>",
    ] {
        assert!(!is_page(other), "{other}");
    }
}

#[test]
fn doctype_is_added_where_missing() {
    assert_eq!(with_doctype(b"<p>a", None), "<!doctype html><p>a");
    assert_eq!(with_doctype(b" <HTML>a", None), " <HTML>a");
    assert!(is_page(&with_doctype(b"", None)));
}

#[test]
fn boilerplate_is_left_out() {
    let page = "<!DOCTYPE html><html><head><meta charset=utf-8><title>News | Site</title>\
        <style>p { color: red }</style>\
        <script>document.write('<p>no</p>');</script></head><body><header><h1>Site</h1></header>\
        <nav><ul><li><a href=/>Home</a></ul></nav><main><header><h1>News</h1></header>\
        <p>Fish &amp; <b>ch</b>ips,<br>and tea.</p><aside>Related</aside></main>\
        <form><select><option>a<option>b</select><button>Send</button><label>Name</label><textarea><p>x\
        </textarea></form>\
        <noscript>Turn it on</noscript><template><article>later</article></template><iframe><p>frame</iframe>\
        <svg><title>icon</title><style/><text>w</text></svg><footer>Imprint</footer></body></html>";
    assert_eq!(text(page), "News\nFish & chips,\nand tea.\nName");
}

#[test]
fn only_block_elements_separate_words() {
    assert_eq!(text("<table><tr><td>a<td>b<tr><td><table><tr><td>c</table>d</table>e"), "a\nb\nc\nd\ne");
    assert_eq!(text("<ul><li>a<li>b<ul><li>c</ul></ul><dl><dt>d<dd>e</dl>"), "a\nb\nc\nd\ne");
    assert_eq!(
        text("<em>n</em>ear<span>-</span>dup<wbr>licate <my-card>x</my-card>y"),
        "near-duplicate\nx\ny"
    );
    assert_eq!(text("  a \t\n b&nbsp;c\u{1e}d\u{0}e "), "a b\u{a0}c d e");
    assert_eq!(
        text("a<b title=<c>d &lt;p&gt; 1 < 2 <3 &&amp;& </ x> <xmp><p>&amp;</xmp>"),
        "ad <p> 1 < 2 <3 &&&\n<p>&amp;"
    );
    assert_eq!(text("a<plaintext><p>b</p>"), "a\n<p>b</p>");
}

#[test]
fn references_are_characters() {
    assert_eq!(
        text("&eacute;&Eacute &#233; &#xE9; &copy2 &notit; &notin; &nosuch; &"),
        "éÉ é é ©2 ¬it; ∉ &nosuch; &"
    );
    assert_eq!(
        text("&#128;&#0;&#xD800;&#x110000;&#99999999999; &#; &#x; &#x1F389;&#x0000041"),
        "€\u{fffd}\u{fffd}\u{fffd}\u{fffd} &#; &#x; 🎉A"
    );
    assert_eq!(text("&NotEqualTilde;&#32;&#10;&#x4e2d;&#x6587;"), "≂\u{338} 中文");
}

#[test]
fn every_script_is_kept() {
    let page = |words: &str| format!("<html><nav>{words}</nav><h1>{words}</h1><p><i>{words}</i>🎉</html>");
    for words in ["近似重複文書", "ニアデュプリケート", "เอกสารที่คล้ายกัน", "وثائق شبه مكررة", "👩‍👩‍👧‍👦🇯🇵"]
    {
        assert_eq!(text(&page(words)), format!("{words}\n{words}🎉"));
    }
    // Ruby annotations are not content.
    assert_eq!(text("<ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</ruby>を"), "漢字を");
}

#[test]
fn unfinished_elements_do_not_hide_the_page() {
    for left in ["nav", "header", "footer", "aside", "noscript", "select", "button", "svg", "object", "video"]
    {
        assert_eq!(text(&format!("<{left}>a<main>b</main>")), "b", "{left}");
        assert_eq!(text(&format!("<{left}>a<article>b</article>")), "b", "{left}");
        assert_eq!(text(&format!("<div><{left}>a</div>b")), "b", "{left}");
        assert_eq!(text(&format!("<table><tr><td><{left}>a</table>b")), "b", "{left}");
        assert_eq!(text(&format!("<{left}>a</{left}>b</{left}>c")), "b\nc", "{left}");
    }
    assert_eq!(text("<template>a<main>b</main></template>c"), "c");
    assert_eq!(text("<aside>a<article>b</article>c</aside>d"), "b\nd");
    assert_eq!(
        text("<article><header>a</header><nav><header>b</header></nav></article><header>c</header>"),
        "a"
    );
    // An end tag of an element that is not open, or of an inline element, ends nothing.
    assert_eq!(text("<nav>a</div></b></article>b</nav>c"), "c");
    assert_eq!(text("a<script><!-- <script> </script> b --></script>c<!-- d"), "a\nc");
    assert_eq!(text("a<style>b</sty<p>c"), "a");
    assert_eq!(text("a<p title=\"b>c"), "a");
}

#[test]
fn hostile_pages_take_linear_time() {
    let deep = "<div>".repeat(200_000) + "a" + &"</div>".repeat(200_000) + "b";
    assert_eq!(text(&deep), "a\nb");
    let stray = "<div>".repeat(100_000) + &"</nav>".repeat(100_000) + "a";
    assert_eq!(text(&stray), "a");
    let attributes: String = (0..200_000).map(|n| format!(" a{n}=b")).collect();
    assert_eq!(text(&format!("<p{attributes}>a")), "a");
    for piece in [
        "<!--",
        "<![CDATA[",
        "<a href='",
        "<script>",
        "<svg>",
        "&",
        "&#",
        "<",
        "</",
        "<script><!--<script>",
        "&a",
    ] {
        let once = text(&piece.repeat(3));
        assert_eq!(text(&piece.repeat(200_000)).is_empty(), once.is_empty(), "{piece}");
    }
}

#[test]
fn bytes_beyond_the_limit_are_ignored() {
    let page = "<p>".to_owned() + &"é ".repeat(MOST_BYTES / 3);
    assert_eq!(page.len(), MOST_BYTES + 2);
    assert_eq!(text(&page).len(), page.trim_end().len() - "<p>".len() - "é ".len());
    assert_eq!(text(&(page + "b")).matches('b').count(), 0);
}
