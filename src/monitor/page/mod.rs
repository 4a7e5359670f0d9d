//! The page at `/`: one HTML document that shows a run in a browser.
//!
//! `page.html` with its style and its script inserted -> the document, and its content security policy. There
//! is no build step: these files are sent as they are. The page fetches only the run's own routes.
//!
//! | script | holds |
//! |---|---|
//! | `ground/show` `ground/time` | elements, ids and numbers; clock times, times of epochs, the last visit |
//! | `ground/run` `ground/stream` | the state of the run, fetched once a second; deltas as they are committed |
//! | `ground/place` `ground/keys` `ground/main` | scroll position and rows of a history entry; keys; navigation |
//! | `parts` | the list of deltas, paged lists, plots, two texts side by side |
//! | `views` | one file for each view |
//!
//! Invariants:
//! - Data of a run is shown by text nodes.
//! - The policy makes a browser refuse markup from strings, scripts and styles other than these two (by their
//!   SHA-256), and requests to other hosts.
//! - The fragment of the address (after `#`) selects the view and its rows.
//! - The list of deltas is drawn at most once per epoch and once per screen frame.
//!
//! References: W3C, *Content Security Policy Level 3*, section 8.3 (hashes), and *Trusted Types*.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

const STYLE: &str = concat!(include_str!("style.css"), include_str!("views.css"));

/// Concatenated to one script, in this order.
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("script/ground/show.js"),
    include_str!("script/ground/time.js"),
    include_str!("script/ground/place.js"),
    include_str!("script/ground/run.js"),
    include_str!("script/ground/stream.js"),
    include_str!("script/ground/keys.js"),
    include_str!("script/parts/list.js"),
    include_str!("script/parts/paged.js"),
    include_str!("script/parts/plot.js"),
    include_str!("script/parts/texts.js"),
    include_str!("script/views/overview.js"),
    include_str!("script/views/deltas.js"),
    include_str!("script/views/pairs.js"),
    include_str!("script/views/clusters.js"),
    include_str!("script/views/cluster.js"),
    include_str!("script/views/documents.js"),
    include_str!("script/views/pair.js"),
    include_str!("script/views/pipeline.js"),
    include_str!("script/views/similar.js"),
    include_str!("script/views/tables.js"),
    include_str!("script/views/watch.js"),
    include_str!("script/ground/main.js"),
);

static PAGE: LazyLock<String> = LazyLock::new(|| {
    let page = include_str!("page.html");
    page.replacen("/* style */", STYLE, 1).replacen("/* script */", SCRIPT, 1)
});

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; connect-src 'self'; img-src \
            data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for \
            'script'; trusted-types 'none'",
        hash(SCRIPT),
        hash(STYLE),
    )
});

/// The document, UTF-8.
pub fn html() -> &'static str {
    &PAGE
}

/// The value of the header `content-security-policy`.
pub fn policy() -> &'static str {
    &POLICY
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text between two tags as a browser parses it: up to the first end tag.
    fn inside(tag: &str) -> &'static str {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}"));
        let (_, rest) = html().split_once(&open).unwrap();
        assert!(!rest.contains(&open), "one {tag}");
        rest.split_once(&close).unwrap().0
    }

    #[test]
    fn the_policy_has_the_hashes_of_what_a_browser_gets() {
        for (tag, directive) in [("script", "script-src"), ("style", "style-src")] {
            let hash = STANDARD.encode(Sha256::digest(inside(tag)));
            assert!(policy().contains(&format!("{directive} 'sha256-{hash}';")), "{tag}");
        }
        assert!(policy().is_ascii() && !policy().contains("unsafe") && !policy().contains('\n'));
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere_and_no_markup_is_made_of_strings() {
        // The namespace of SVG is a name; nothing is fetched from it.
        let page = html().replace("http://www.w3.org/2000/svg", "");
        for banned in [
            "http:",
            "https:",
            "//cdn",
            "@import",
            "url(",
            "innerHTML",
            "outerHTML",
            "insertAdjacent",
            "eval(",
            " style=",
            " on",
        ] {
            let found =
                page.match_indices(banned).map(|(at, _)| page[at..].chars().take(40).collect::<String>());
            let found: Vec<String> = found.filter(|text| banned != " on" || text.contains("=\"")).collect();
            assert!(found.is_empty(), "{banned}: {found:?}");
        }
        assert!(
            !html().contains("/* style */") && !html().contains("/* script */") && !html().contains('\r')
        );
    }
}
