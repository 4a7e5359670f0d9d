//! What pages that are handed over are made of. They load nothing and have no script; their content security
//! policy refuses both. Everything that is not written here is [escaped](Escaped).

use std::borrow::Cow;
use std::fmt::{self, Display, Write as _};

use super::passages::{changes_direction, passages_of, shortened};
use crate::config::Plan;
use crate::pipeline::{PipelineRecord, ProgramRecord};
use dupflow_core::text::{TextPiece, TextRules};

/// The style of the page.
pub(in crate::cli) const STYLE: &str = include_str!("page.css");

/// What the page may load: its own style, and nothing else.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A text in HTML: markup is escaped. Control characters are shown by their pictures, and those that change
/// the direction of what follows by their numbers.
pub(in crate::cli) struct Escaped<'t>(pub(in crate::cli) &'t str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(character)?,
                '\0'..='\x1f' => {
                    let picture = char::from_u32(0x2400 + u32::from(character));
                    f.write_char(picture.unwrap_or('?'))?;
                }
                '\x7f' => f.write_char('\u{2421}')?,
                '\u{80}'..='\u{9f}' => f.write_char('\u{fffd}')?,
                _ if changes_direction(character) => write!(f, "[U+{:04X}]", u32::from(character))?,
                _ => f.write_char(character)?,
            }
        }
        Ok(())
    }
}

/// A name between isolates: its direction does not change that of the line.
pub(in crate::cli) fn name(text: &str) -> String {
    format!("<bdi>{}</bdi>", Escaped(text))
}

/// The beginning of a page, up to its body.
pub(in crate::cli) fn head(out: &mut String, title: &str) {
    let _ = writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
        <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
        <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
        <meta name=\"referrer\" content=\"no-referrer\">\n\
        <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>",
        Escaped(title)
    );
}

/// A table of rows with a name, a value and a remark.
pub(in crate::cli) fn table(out: &mut String, rows: &[(&str, String, String)]) {
    out.push_str("<table>\n");
    for (what, value, remark) in rows {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td>{}</td></tr>",
            Escaped(what),
            Escaped(value),
            Escaped(remark)
        );
    }
    out.push_str("</table>\n");
}

/// Characters at each end of a passage that are shown where it is shortened: of one in common, and of one
/// that differs.
const ENDS: [usize; 2] = [80, 240];

/// Most passages of a text that are shown where they are shortened.
const MOST_PIECES: usize = 60;

/// Two texts, one section each; what only one of them has is marked. `is_short`: without the middle of long
/// passages.
pub(in crate::cli) fn both(
    out: &mut String,
    rules: &TextRules,
    names: [&str; 2],
    texts: [&str; 2],
    is_short: bool,
) {
    passages_of(rules, texts, |passages| {
        for (named, pieces) in names.into_iter().zip([&passages.a, &passages.b]) {
            let _ = write!(
                out,
                "<section class=\"side\"><h3>{}</h3><div class=\"text\" dir=\"auto\">",
                name(named)
            );
            let most = if is_short { MOST_PIECES } else { pieces.len() };
            for TextPiece { text, passage } in pieces.iter().take(most) {
                let ends = ENDS[usize::from(passage.is_none())];
                let shown: Cow<'_, str> =
                    if is_short { shortened(text, ends, ends).into() } else { (*text).into() };
                let _ = if passage.is_none() && !text.trim().is_empty() {
                    write!(out, "<del>{}</del>", Escaped(&shown))
                } else {
                    write!(out, "{}", Escaped(&shown))
                };
            }
            out.push_str(if pieces.len() > most { " …</div></section>" } else { "</div></section>" });
        }
    });
}

/// Rows of a [`table`]: the program, and what it was told to do.
pub(in crate::cli) fn made_by(plan: &Plan) -> Vec<(&'static str, String, String)> {
    let ProgramRecord { version, commit, features } = ProgramRecord::this();
    let PipelineRecord { name, fingerprint, .. } = PipelineRecord::new(plan);
    let commit = commit.map_or_else(|| "not a release".to_owned(), |commit| format!("commit {commit}"));
    vec![
        ("program", String::new(), format!("dupflow {version}, {commit}; features: {}", features.join(" "))),
        ("pipeline", String::new(), format!("{name}, fingerprint {fingerprint}")),
        ("scheme", String::new(), format!("{:016x}", plan.scheme.fingerprint())),
    ]
}

/// A table of all settings that decide the pairs.
pub(in crate::cli) fn settings(out: &mut String, plan: &Plan) {
    out.push_str("<table><caption>All that decides the pairs</caption>\n");
    for (key, value) in &PipelineRecord::new(plan).keys {
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\"><code>{}</code></th><td>{}</td></tr>",
            Escaped(key),
            Escaped(value)
        );
    }
    out.push_str("</table>\n");
}
