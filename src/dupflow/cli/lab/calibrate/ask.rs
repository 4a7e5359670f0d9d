//! Asks for each pair in the terminal.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::Context as _;

use super::pairs::TextsById;
use crate::cli::arguments::verbosity;
use crate::cli::compare::{passages_of, put_text, shortened};
use dupflow_core::text::{TextPiece, TextRules};
use dupflow_lab::calibrate::SimilarPair;
use dupflow_lab::truth::JudgedPairs;

/// Characters of what is in common that are shown before and after a difference.
const CONTEXT: usize = 200;

/// Characters of a difference that are shown at each of its ends.
const SHOWN: usize = 600;

const KEYS: &str = "duplicates? [y]es, [n]o, [s]kip, [u]ndo, [q]uit: ";

/// Asks until all pairs have been shown, or the user quits, or standard input ends. Answers are appended to
/// the file and noted in `judged`.
///
/// # Errors
/// If the terminal cannot be read or written, or the file.
pub(super) fn ask(
    rules: &TextRules,
    pairs: &[&SimilarPair],
    texts: &TextsById,
    path: &Path,
    judged: &mut JudgedPairs,
) -> anyhow::Result<()> {
    let failed = || format!("cannot write {path:?}");
    let mut file = OpenOptions::new().create(true).append(true).open(path).with_context(failed)?;
    // What another program wrote may not end with a line.
    if std::fs::read(path).with_context(failed)?.last().is_some_and(|last| *last != b'\n') {
        writeln!(file).with_context(failed)?;
    }
    let marks = Marks::new(io::stdout().is_terminal() && verbosity::has_colours());
    let mut typed = io::stdin().lock().lines();
    let mut at = 0;
    while let Some(found) = pairs.get(at) {
        let shown = shown(rules, found, texts, &marks);
        crate::cli::print(&format!("\n── pair {} of {} ──\n{shown}\n", at + 1, pairs.len()))?;
        let answer = loop {
            crate::cli::print(KEYS)?;
            match typed.next().transpose().context("cannot read standard input")?.as_deref().map(str::trim) {
                Some("y" | "Y" | "yes") => break Some(Some(true)),
                Some("n" | "N" | "no") => break Some(Some(false)),
                Some("s" | "skip") => break None,
                Some("u" | "undo") if at > 0 => {
                    at -= 1;
                    let undone = &pairs[at].pair;
                    judged.judge(undone.clone(), None);
                    writeln!(file, "{}", JudgedPairs::line(undone, None)).with_context(failed)?;
                    break Some(None);
                }
                Some("q" | "quit") | None => return Ok(crate::cli::print("\n")?),
                Some(_) => {}
            }
        };
        match answer {
            Some(Some(answer)) => {
                judged.judge(found.pair.clone(), Some(answer));
                writeln!(file, "{}", JudgedPairs::line(&found.pair, Some(answer))).with_context(failed)?;
                at += 1;
            }
            Some(None) => {}
            None => at += 1,
        }
    }
    Ok(())
}

/// What is written around a difference of each text.
struct Marks([(&'static str, &'static str); 2]);

impl Marks {
    /// Colours, or brackets.
    fn new(has_colours: bool) -> Self {
        Self(if has_colours {
            [("\x1b[31m", "\x1b[0m"), ("\x1b[32m", "\x1b[0m")]
        } else {
            [("[-", "-]"), ("{+", "+}")]
        })
    }
}

/// Both texts, with what only one of them has marked and long parts in common left out.
fn shown(rules: &TextRules, found: &SimilarPair, texts: &TextsById, Marks(marks): &Marks) -> String {
    let ids = [found.pair.lo(), found.pair.hi()];
    passages_of(rules, ids.map(|id| texts[id].as_str()), |passages| {
        let mut out = String::new();
        for ((which, id), (pieces, (begin, end))) in
            ["A", "B"].into_iter().zip(ids).zip([&passages.a, &passages.b].into_iter().zip(marks))
        {
            let _ = write!(out, "{which}  ");
            put_text(&mut out, id.as_str());
            out.push('\n');
            for (n, piece) in pieces.iter().enumerate() {
                match piece {
                    TextPiece { text, passage: Some(_) } => {
                        let (before, after) = (usize::from(n > 0), usize::from(n + 1 < pieces.len()));
                        put_text(&mut out, &shortened(text, before * CONTEXT, after * CONTEXT));
                    }
                    TextPiece { text, .. } if text.trim().is_empty() => put_text(&mut out, text),
                    TextPiece { text, .. } => {
                        out.push_str(begin);
                        put_text(&mut out, &shortened(text, SHOWN, SHOWN));
                        out.push_str(end);
                    }
                }
            }
            out.push_str("\n\n");
        }
        if passages.a == passages.b {
            out.push_str("The texts are equal.\n");
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::Pair;

    #[test]
    fn what_differs_is_marked_and_what_is_common_is_shortened() {
        let id = |id: &str| DocId::new(id).unwrap();
        let common = (0..200).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        let texts = TextsById::from([
            (id("a"), format!("{common} left \u{1b}[31m")),
            (id("b"), format!("{common} right")),
        ]);
        let pair = Pair::new(id("a"), id("b")).unwrap();
        let plan = Plan::load("minhash", &[]).unwrap();
        let found = SimilarPair { pair, similarity: 0.9 };
        let text = shown(&plan.scheme.text, &found, &texts, &Marks::new(false));
        assert!(text.starts_with("A  a\n … ") && text.contains(" characters … "), "{text}");
        assert!(text.contains("left \\u{1b}[31m-]") && text.contains("right+}"), "{text}");
        assert!(!text.contains("w0 ") && text.contains("w199"), "{text}");
    }
}
