//! Pages to texts, compared with html5ever's tokenizer alone; and the cost of the test whether a plain text
//! is a page.

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::html::{Extractor, is_page, with_doctype};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Pages in each group.
const PAGES: usize = 100;

const LATIN: &[&str] =
    &["the", "re", "in", "com", "mand", "pa", "ram", "ter", "ob", "ject", "file", "a", "to", "ver", "café"];
const HAN: &[&str] =
    &["文", "件", "命", "令", "数", "据", "的", "列", "表", "显", "示", "检", "测", "重", "复", "近", "似"];

/// A text of `words` words of a few syllables.
fn words(many: usize, syllables: &[&str], rng: &mut ChaCha8Rng) -> String {
    let mut text = String::new();
    for _ in 0..many {
        (0..rng.random_range(1..4))
            .for_each(|_| text.push_str(syllables[rng.random_range(0..syllables.len())]));
        text.push_str(match rng.random_range(0..60) {
            0 => " &amp; ",
            1..6 => ", ",
            _ => " ",
        });
    }
    text
}

/// A page of a site: its text is about a third of it.
fn page(syllables: &[&str], rng: &mut ChaCha8Rng) -> String {
    let mut page =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>A page</title>".to_owned();
    let script: String =
        (0..300).map(|n| format!("window['k{n}']={{html:'<div class=\"a{n}\">'}};\n")).collect();
    let _ = write!(page, "<script>{script}</script><style>.a {{ color: red }}</style></head><body><nav><ul>");
    for n in 0..60 {
        let name = words(2, syllables, rng);
        let _ = writeln!(
            page,
            "<li class=\"menu-item item-{n}\"><a href=\"/section/{n}?from=menu\">{name}</a></li>"
        );
    }
    page.push_str("</ul></nav><div class=\"page\"><main><article><header><h1>A page</h1></header>\n");
    for _ in 0..20 {
        let (first, middle, last) =
            (words(40, syllables, rng), words(3, syllables, rng), words(40, syllables, rng));
        let _ = writeln!(page, "<p class=\"text\">{first}<a href=\"/see/also\">{middle}</a> {last}</p>");
    }
    page.push_str(
        "</article></main><aside>See also</aside></div><footer>All rights reserved</footer></body></html>\n",
    );
    page
}

struct Nothing;

impl TokenSink for Nothing {
    type Handle = ();

    fn process_token(&self, token: Token, _: u64) -> TokenSinkResult<()> {
        black_box(token);
        TokenSinkResult::Continue
    }
}

fn tokenize(page: &str) {
    let tokenizer = Tokenizer::new(Nothing, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(page));
    let _ = black_box(tokenizer.feed(&input));
    tokenizer.end();
}

fn benches(c: &mut Criterion) {
    for (script, syllables) in [("latin", LATIN), ("han", HAN)] {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let pages: Vec<String> = (0..PAGES).map(|_| page(syllables, &mut rng)).collect();
        let mut group = c.benchmark_group(format!("html/{script}"));
        group.throughput(Throughput::Bytes(pages.iter().map(|page| page.len() as u64).sum()));
        let mut extractor = Extractor::default();
        group.bench_function("text", |b| {
            b.iter(|| pages.iter().map(|page| extractor.text(black_box(page)).len()).sum::<usize>());
        });
        #[cfg(feature = "article")]
        {
            let mut finder = dupflow::core::html::ArticleFinder::default();
            group.bench_function("article", |b| {
                b.iter(|| pages.iter().map(|page| finder.text(black_box(page)).len()).sum::<usize>());
            });
        }
        group.bench_function("html5ever's tokenizer", |b| {
            b.iter(|| pages.iter().for_each(|page| tokenize(page)));
        });
        group.bench_function("decode", |b| {
            b.iter(|| {
                pages.iter().map(|page| with_doctype(black_box(page.as_bytes()), None).len()).sum::<usize>()
            });
        });
        group.finish();
    }
    let plain = words(500, LATIN, &mut ChaCha8Rng::seed_from_u64(1));
    c.bench_function("html/is a plain text a page", |b| b.iter(|| is_page(black_box(&plain))));
}

criterion_group!(html, benches);
criterion_main!(html);
