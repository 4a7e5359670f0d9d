//! A page that shows the pairs and takes the answers.
//!
//! The page loads nothing; its content security policy allows its own style and script only. Texts and ids
//! are escaped.

use std::fmt::Write as _;

use super::pairs::TextsById;
use crate::cli::compare::changes_direction;
use crate::cli::compare::html::{Escaped, STYLE, both};
use dupflow_core::doc::DocId;
use dupflow_core::text::TextRules;
use dupflow_lab::calibrate::SimilarPair;
use dupflow_lab::truth::JudgedPairs;

const SCRIPT: &str = include_str!("page.js");

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; base-uri \
    'none'; form-action 'none'";

/// The page of these pairs.
pub(super) fn page(rules: &TextRules, pairs: &[&SimilarPair], texts: &TextsById) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta http-equiv=\"content-security-policy\" content=\"{POLICY}\">\n\
        <meta name=\"viewport\" content=\"width=device-width\">\n<title>dupflow calibrate</title>\n\
        <style>{STYLE}\n[hidden] {{ display: none; }}</style>\n</head>\n<body>\n\
        <h1>Are these duplicates?</h1>\n\
        <p class=\"note\">Marked: what only one of the two texts has. \
        Keys: y, n, s to skip, u to go back.</p>\n\
        <p><button id=\"yes\">Yes (y)</button> <button id=\"no\">No (n)</button> \
        <button id=\"skip\">Skip (s)</button> \
        <button id=\"undo\">Back (u)</button> <button id=\"save\">Save the answers</button> \
        <output id=\"state\" aria-live=\"polite\"></output></p>\n"
    );
    for found in pairs {
        let ids = [found.pair.lo(), found.pair.hi()];
        let line = |is_duplicate| visible(&JudgedPairs::line(&found.pair, Some(is_duplicate)));
        let _ = write!(
            out,
            "<div class=\"sides\" hidden data-yes=\"{}\" data-no=\"{}\">",
            Escaped(&line(true)),
            Escaped(&line(false))
        );
        both(&mut out, rules, ids.map(DocId::as_str), ids.map(|id| texts[id].as_str()), false);
        out.push_str("</div>\n");
    }
    let _ = write!(out, "<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    out
}

/// A line of JSON with the same value, in which characters are escaped that [`Escaped`] does not keep.
fn visible(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for character in line.chars() {
        if character.is_control() || changes_direction(character) {
            let _ = write!(out, "\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::Pair;

    #[test]
    fn texts_and_ids_are_escaped_and_answers_are_lines() {
        const HOSTILE: &str = "\"></div><script>alert(1)</script>\u{202e}";
        let id = |id: &str| DocId::new(id).unwrap();
        let texts = TextsById::from([
            (id("b"), format!("one two three {HOSTILE}")),
            (id(HOSTILE), "one two three".to_owned()),
        ]);
        let pair = Pair::new(id(HOSTILE), id("b")).unwrap();
        let plan = Plan::load("tour", &[]).unwrap();
        let found = SimilarPair { pair, similarity: 0.5 };
        let page = page(&plan.scheme.text, &[&found], &texts);
        assert_eq!(page.matches("<script").count(), 1, "{page}");
        assert!(!page.contains('\u{202e}') || !page.contains("\"></div><script>a"), "{page}");
        assert!(page.contains("&quot;duplicate&quot;:true}") && page.contains("<del>"), "{page}");
        assert!(!page.contains("src=") && !page.contains("https://"), "{page}");
    }
}
