//! A comparison as one HTML page, to be handed over: both texts, what they have in common and what differs,
//! the measures, the evidence, the provenance.
//!
//! The page loads nothing and has no script; its content security policy refuses both. Everything that is not
//! written here is [escaped](Escaped). It has no time of day: the same comparison gives the same bytes.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::html::{Escaped, head, made_by, name, settings, table};
use super::passages::passages_of;
use super::report::{headline, report};
use super::subject::{NamedText, Subject};
use crate::cli::examine::{Examiner, SketchComparison, SketchedText, Specimen, verdict_text};
use crate::config::Plan;
use dupflow_connectors::digest::{InputDigest, sha256};
use dupflow_core::filter::Look;
use dupflow_core::text::TextPiece;

/// Most blocks that are listed.
const MOST_BLOCKS: usize = 20;

/// The page of a comparison.
pub(super) fn page(subject: &Subject) -> String {
    let mut examiner = Examiner::new(&subject.plan);
    let [a, b] = subject.texts.each_ref().map(|text| examiner.examine(&text.text));
    let compared = examiner.compare_texts(&a, &b);
    let mut out = String::new();
    head(&mut out, &format!("{} and {} compared", subject.texts[0].name, subject.texts[1].name));
    out.push_str("<h1>Two documents compared</h1>\n");
    let answer = headline([&a, &b], &subject.plan, &subject.ruling, &mut examiner);
    let _ = writeln!(out, "<p class=\"answer\">{}</p>", Escaped(&answer));
    for note in &subject.notes {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", Escaped(note));
    }
    sides(&mut out, subject);
    if a.tokens > 0 && b.tokens > 0 {
        measures(&mut out, [&a, &b], compared.as_ref(), &mut examiner);
        if let (Some(compared), Some(x), Some(y)) = (&compared, &a.sketched, &b.sketched) {
            evidence(&mut out, &subject.plan, compared, [x, y], &examiner);
        }
        let all = report(subject, true);
        let _ = writeln!(out, "<h2>Every measure and every sketch</h2>\n<pre>{}</pre>", Escaped(&all));
    }
    provenance(&mut out, subject);
    out.push_str("</body>\n</html>\n");
    out
}

/// Both texts side by side, with their common passages.
fn sides(out: &mut String, Subject { plan, texts, .. }: &Subject) {
    passages_of(&plan.scheme.text, texts.each_ref().map(|text| &*text.text), |passages| {
        let passage = |piece: &TextPiece<'_>| piece.passage;
        let count = passages.a.iter().filter_map(passage).collect::<BTreeSet<_>>().len();
        let _ = writeln!(
            out,
            "<h2>Texts</h2>\n<p class=\"legend\"><mark>Common passages</mark> have numbers, which lead to \
            the other text; <del>the rest</del> is in one text only. {count} passages; {:.1} % of the \
            tokens of A and {:.1} % of those of B are in them.</p>\n<div class=\"sides\">",
            100.0 * passages.shared_a,
            100.0 * passages.shared_b
        );
        for (which, other, text, pieces) in
            [("A", "b", &texts[0], &passages.a), ("B", "a", &texts[1], &passages.b)]
        {
            side(out, which, other, text, pieces);
        }
        out.push_str("</div>\n");
    });
}

/// One text; `other` is the letter of the other one.
fn side(out: &mut String, which: &str, other: &str, text: &NamedText, pieces: &[TextPiece<'_>]) {
    let _ = write!(out, "<section class=\"side\"><h3>{which}: {}</h3>", name(&text.name));
    if let Some(place) = &text.place {
        let _ = write!(out, "<p class=\"note\">{}</p>", Escaped(place));
    }
    out.push_str("<div class=\"text\" dir=\"auto\">");
    let here = which.to_lowercase();
    let mut seen = BTreeSet::new();
    for piece in pieces {
        match piece.passage {
            None if piece.text.trim().is_empty() => {
                let _ = write!(out, "{}", Escaped(piece.text));
            }
            None => {
                let _ = write!(out, "<del>{}</del>", Escaped(piece.text));
            }
            Some(number) => {
                let id = if seen.insert(number) { format!(" id=\"{here}{number}\"") } else { String::new() };
                let shown = number + 1;
                let _ = write!(
                    out,
                    "<mark{id}><a href=\"#{other}{number}\">{shown}</a>{}</mark>",
                    Escaped(piece.text)
                );
            }
        }
    }
    out.push_str("</div></section>\n");
}

fn measures(
    out: &mut String,
    [a, b]: [&Specimen; 2],
    compared: Option<&SketchComparison>,
    examiner: &mut Examiner,
) {
    let measured = examiner.measured();
    let exact = examiner.exact(a, b);
    let (common, either) = a.overlap(b);
    let share = |of: usize| if of == 0 { 0.0 } else { common as f64 / of as f64 };
    let mut rows = vec![(
        "similarity, exact",
        format!("{exact:.4}"),
        format!("{measured}; {common} of {either} distinct shingles in common"),
    )];
    if let Some(SketchComparison { estimate, standard_error, .. }) = compared {
        rows.push((
            "similarity, estimated",
            format!("{estimate:.4}"),
            format!("from the sketches; standard error {standard_error:.4}"),
        ));
    }
    for (what, side, other) in [("containment of A in B", a, "A's"), ("containment of B in A", b, "B's")] {
        let of = side.distinct();
        rows.push((what, format!("{:.4}", share(of)), format!("{common} of {other} {of} distinct shingles")));
    }
    for (what, value) in [
        ("bytes", [a.bytes, b.bytes]),
        ("tokens", [a.tokens, b.tokens]),
        ("shingles", [a.features.len(), b.features.len()]),
    ] {
        rows.push((what, String::new(), format!("A {}, B {}", value[0], value[1])));
    }
    out.push_str("<h2>Measures</h2>\n");
    table(out, &rows);
}

/// What the pipeline saw of the pair: sketches, blocks, and the looks of the filter.
fn evidence(
    out: &mut String,
    plan: &Plan,
    compared: &SketchComparison,
    [x, y]: [&SketchedText; 2],
    examiner: &Examiner,
) {
    let places = examiner.shape().map(|shape| format!("{} components of {} bits", shape.size, shape.bits));
    let sketch = format!("{}, {}", plan.scheme.sketch.kind.name(), places.unwrap_or_default());
    let equal = compared.equal.map(|equal| format!("{equal} components are equal")).unwrap_or_default();
    let blocks = format!("{} of {}", compared.shared.len(), x.keys.len());
    let listed = compared.shared.iter().take(MOST_BLOCKS);
    let mut met: Vec<_> = listed.map(|key| format!("{}:{:010x}", key.table, key.hash())).collect();
    if compared.shared.len() > MOST_BLOCKS {
        met.push("…".to_owned());
    }
    out.push_str("<h2>Evidence</h2>\n");
    let verdict = verdict_text(&compared.verdict, ["A", "B"], examiner);
    table(
        out,
        &[
            ("threshold", plan.threshold.to_string(), "a pair is at least as similar, inclusive".to_owned()),
            ("sketch", String::new(), sketch),
            ("", String::new(), equal),
            ("sketch of A", String::new(), x.id.to_string()),
            ("sketch of B", String::new(), y.id.to_string()),
            ("blocks shared", blocks, format!("as band:hash {}", met.join(" "))),
            ("filter", String::new(), verdict),
        ],
    );
    looks(out, plan, [x, y], compared.verdict.look, examiner);
}

/// What the filter read at each look, its bounds, and the look that decided, from 1.
fn looks(out: &mut String, plan: &Plan, [x, y]: [&SketchedText; 2], decided: u16, examiner: &Examiner) {
    let (Some(schedule), Some(shape)) = (plan.schedule(), examiner.shape()) else { return };
    out.push_str(
        "<table><caption>Looks of the filter; the first that decides ends them</caption>\n\
        <tr><th>look</th><th>reads</th><th>equal</th><th>rejects below</th><th>accepts from</th>\
        <th></th></tr>\n",
    );
    let never = || "never".to_owned();
    let mut number = 0;
    let mut row = |reads: String, equal: usize, rejects: String, accepts: String| {
        number += 1;
        let decides = if number == decided { "decided" } else { "" };
        let _ = writeln!(
            out,
            "<tr><td class=\"n\">{number}</td><td>{reads}</td><td class=\"n\">{equal}</td>\
            <td class=\"n\">{rejects}</td><td class=\"n\">{accepts}</td><td>{decides}</td></tr>"
        );
    };
    if let Some(bound) = schedule.first_word() {
        let equal = 64 - (x.sketch.words[0] ^ y.sketch.words[0]).count_ones() as usize;
        row("one bit of 64 components".to_owned(), equal, bound.to_string(), never());
    }
    let is_equal = |j: usize| Examiner::place(shape, &x.sketch, j) == Examiner::place(shape, &y.sketch, j);
    for Look { components, reject_below, accept_from } in schedule.looks() {
        let read = usize::try_from(*components).unwrap_or(usize::MAX).min(shape.size);
        let equal = (0..read).filter(|j| is_equal(*j)).count();
        let rejects = if *reject_below > 0 { reject_below.to_string() } else { never() };
        let accepts = if accept_from <= components { accept_from.to_string() } else { never() };
        row(format!("{components} components"), equal, rejects, accepts);
    }
    out.push_str("</table>\n");
}

fn provenance(out: &mut String, Subject { plan, corpus, texts, .. }: &Subject) {
    out.push_str("<h2>Provenance</h2>\n");
    let mut rows = made_by(plan);
    for (what, text) in [("text of A", &texts[0]), ("text of B", &texts[1])] {
        let digest = sha256(text.text.as_bytes());
        rows.push((what, String::new(), format!("{} bytes, SHA-256 {digest}", text.text.len())));
    }
    if let Some(corpus) = corpus {
        for InputDigest { name, files, bytes, sha256 } in &corpus.inputs {
            let files = files.map(|n| format!("{n} files, ")).unwrap_or_default();
            let bytes = bytes.map(|n| format!("{n} bytes, ")).unwrap_or_default();
            let digest = sha256.as_deref().unwrap_or("not read as a whole");
            rows.push(("input", String::new(), format!("{name}: {files}{bytes}SHA-256 {digest}")));
        }
        rows.extend(corpus.counts.iter().map(|line| ("", String::new(), line.clone())));
    }
    table(out, &rows);
    settings(out, plan);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(texts: [(&str, &str); 2]) -> String {
        let plan = Plan::load("tour", &[]).unwrap();
        page(&Subject::of_texts(plan, texts.map(|(name, text)| (name.to_owned(), text.to_owned()))))
    }

    #[test]
    fn passages_are_marked_on_both_sides_and_the_rest_too() {
        let page =
            page_of([("a", "one two three four five. And six"), ("b", "Then one two three four five!")]);
        assert!(
            page.contains("<mark id=\"a0\"><a href=\"#b0\">1</a>one two three four five</mark>"),
            "{page}"
        );
        assert!(page.contains("<del>. And six</del>") && page.contains("<del>Then </del>"), "{page}");
        assert!(page.contains("<h2>Evidence</h2>"), "{page}");
    }

    /// Each text and name that is given is a text of the page, and no markup.
    #[test]
    fn everything_is_escaped() {
        const HOSTILE: &str =
            "</pre><script>alert(1)</script>&amp;\"' onload=x \u{202e}\0\u{1b}[31m one two three";
        let page = page_of([(HOSTILE, HOSTILE), ("<b>", HOSTILE)]);
        for part in ["<script", "<b>", "\0", "\u{1b}", "\u{202e}", "&amp;\""] {
            assert!(!page.contains(part), "{part:?} is in\n{page}");
        }
        assert!(page.contains("&lt;script&gt;") && page.contains("&amp;amp;&quot;&#39;"), "{page}");
        // The tags of the page are those that are written here.
        let tags: BTreeSet<&str> =
            page.split('<').skip(1).filter_map(|rest| rest.split([' ', '>']).next()).collect();
        let known = [
            "!doctype", "/a", "/bdi", "/body", "/caption", "/code", "/del", "/div", "/h1", "/h2", "/h3",
            "/head", "/html", "/mark", "/p", "/pre", "/section", "/style", "/table", "/td", "/th", "/title",
            "/tr", "a", "bdi", "body", "caption", "code", "del", "div", "h1", "h2", "h3", "head", "html",
            "mark", "meta", "p", "pre", "section", "style", "table", "td", "th", "title", "tr",
        ];
        let unknown: Vec<_> = tags.iter().filter(|tag| !known.contains(tag)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="), "{page}");
    }

    #[test]
    fn texts_without_a_sketch_have_a_page() {
        let page = page_of([("a", "?!"), ("b", "one")]);
        assert!(page.contains("has no sketch and is in no pair") && !page.contains("<h2>Evidence"), "{page}");
    }
}
