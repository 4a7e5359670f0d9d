//! The scanner against html5ever's tokenizer, which is several times slower and quadratic in a tag's
//! attributes.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{
    BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::super::Extractor;
use super::super::entities::reference;
use super::super::scan::{Attributes, MarkupPiece, Scanner};

/// The pieces of markup; adjacent texts are joined.
#[derive(Debug, Default, PartialEq)]
struct FoundPieces(Vec<(char, String)>);

impl FoundPieces {
    fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            _ if text.is_empty() => {}
            Some(('t', last)) => last.push_str(text),
            _ => self.0.push(('t', text.to_owned())),
        }
    }

    /// Values are compared only if they contain no references, which the scanner leaves unread.
    fn attribute(&mut self, name: &str, value: &str, markup: &str) {
        let value = if markup.contains('&') { "" } else { value };
        self.0.push(('a', format!("{} {value}", name.to_ascii_lowercase())));
    }

    fn tag(&mut self, kind: char, name: &str) {
        self.0.push((kind, name.to_ascii_lowercase()));
    }
}

const RAW: [&str; 3] = ["style", "title", "iframe"];

/// Pieces by the scanner.
fn scanned(markup: &str) -> FoundPieces {
    let mut found = FoundPieces::default();
    let mut scanner = Scanner::new(markup.as_bytes());
    while let Some(piece) = scanner.next() {
        match piece {
            MarkupPiece::Text(range) => {
                let mut rest = &markup[range];
                while let Some(c) = rest.chars().next() {
                    let known = if c == '&' { reference(rest) } else { None };
                    let ((first, second), length) = known.unwrap_or(((c, None), c.len_utf8()));
                    found.text(&String::from_iter([Some(first), second].into_iter().flatten()));
                    rest = &rest[length..];
                }
            }
            MarkupPiece::End(name) => found.tag('e', &markup[name]),
            MarkupPiece::Start { name, attributes, closes } => {
                let name = markup[name].to_ascii_lowercase();
                found.tag(if closes { 'c' } else { 's' }, &name);
                let mut seen = Vec::new();
                for (key, value) in Attributes::new(&markup.as_bytes()[attributes]) {
                    let [key, value] = [key, value].map(|part| str::from_utf8(part).unwrap());
                    if !seen.contains(&key.to_ascii_lowercase()) {
                        seen.push(key.to_ascii_lowercase());
                        found.attribute(key, value, markup);
                    }
                }
                match &*name {
                    "script" => found.text(&markup[scanner.script()]),
                    "plaintext" => found.text(&markup[scanner.rest()]),
                    _ if RAW.contains(&&*name) => found.text(&markup[scanner.raw(name.as_bytes())]),
                    _ => {}
                }
            }
        }
    }
    found
}

struct TokenCollector<'m>(&'m str, RefCell<FoundPieces>);

impl TokenSink for TokenCollector<'_> {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        let mut found = self.1.borrow_mut();
        match token {
            Token::CharacterTokens(text) => found.text(&text),
            Token::TagToken(tag) if tag.kind == TagKind::EndTag => found.tag('e', &tag.name),
            Token::TagToken(tag) => {
                found.tag(if tag.self_closing { 'c' } else { 's' }, &tag.name);
                tag.attrs.iter().for_each(|one| found.attribute(&one.name.local, &one.value, self.0));
                return match &*tag.name {
                    "script" => TokenSinkResult::RawData(RawKind::ScriptData),
                    "plaintext" => TokenSinkResult::Plaintext,
                    name if RAW.contains(&name) => TokenSinkResult::RawData(RawKind::Rawtext),
                    _ => TokenSinkResult::Continue,
                };
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// Pieces by html5ever.
fn tokenized(markup: &str) -> FoundPieces {
    let tokenizer = Tokenizer::new(
        TokenCollector(markup, RefCell::default()),
        TokenizerOpts { discard_bom: false, ..TokenizerOpts::default() },
    );
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(markup));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.1.into_inner()
}

/// Random concatenations of pieces of markup.
fn markup() -> impl Strategy<Value = String> {
    const PIECES: [&str; 60] = [
        "<",
        "</",
        ">",
        "/>",
        "<!",
        "<!-",
        "<!--",
        "-->",
        "--!>",
        "->",
        "-",
        "--",
        "!",
        "<?",
        "<![CDATA[",
        "]]>",
        "<script>",
        "</script>",
        "<SCRIPT a>",
        "</Script >",
        "<script",
        "</script",
        "</scripty>",
        "<style>",
        "</style/>",
        "<title>",
        "</title>",
        "</title",
        "<iframe/>",
        "</iframe>",
        "<plaintext>",
        "<!doctype html>",
        "<div ",
        "<p>",
        "</p>",
        "<a",
        "</",
        "=",
        "\"",
        "'",
        " ",
        "\n",
        "/",
        "a",
        "B",
        "x=1",
        "漢字",
        "ไทย",
        "مرحبا",
        "🎉",
        "&amp;",
        "&notit;",
        "&notin;",
        "&eacute",
        "&",
        "&#",
        "&#x4e2d;",
        "&#128;",
        "&#0000000000065",
        "&NotEqualTilde;",
    ];
    prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 20_000,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn pieces_are_those_of_the_standard(markup in markup()) {
        prop_assert_eq!(scanned(&markup), tokenized(&markup));
    }

    #[test]
    fn texts_are_trimmed_and_the_same_each_time(markup in markup()) {
        let mut extractor = Extractor::default();
        let text = extractor.text(&markup).to_owned();
        extractor.text("<nav><svg><template>");
        prop_assert_eq!(extractor.text(&markup), &text);
        prop_assert_eq!(text.trim_matches(|c: char| c.is_ascii_whitespace()), &text);
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_ascii_control()));
    }
}

#[test]
fn every_name_of_the_standard_is_read() {
    let mut names = 0;
    for (name, (code, _)) in html5ever::data::NAMED_ENTITIES.entries().filter(|(_, (code, _))| *code != 0) {
        let markup = format!("&{name} b");
        assert_eq!(scanned(&markup), tokenized(&markup), "{name} is U+{code:x}");
        names += 1;
    }
    assert_eq!(names, 2231);
}
