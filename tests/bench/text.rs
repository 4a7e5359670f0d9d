//! Text to features, compared with a lower bound (counting words byte by byte) and a naive implementation (a
//! string for each token).

#![expect(missing_docs, reason = "criterion's macro makes a public function")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::hash;
use dupflow::core::text::{Featurizer, TextRules};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Bytes of text in each group; they fit into the cache.
const CORPUS_BYTES: usize = 256 * 1024;

/// Pages of about `page_bytes` bytes of words made from syllables: a few words are frequent, most are rare.
/// One word in sixteen begins with a capital, one in sixteen is a number, one in ten ends a clause.
fn pages(page_bytes: usize, syllables: &[&str], space: &str) -> Vec<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut make = |rank: usize| {
        let count = rng.random_range(1..=2 + rank / 1500);
        (0..count).map(|_| syllables[rng.random_range(0..syllables.len())]).collect::<String>()
    };
    let words: Vec<String> = (0..4000).map(&mut make).collect();
    let mut page = || {
        let mut text = String::new();
        while text.len() < page_bytes {
            let most = rng.random_range(1..=words.len());
            let word = &words[rng.random_range(0..most)];
            match rng.random_range(0..16) {
                0 => {
                    text.extend(word.chars().take(1).flat_map(char::to_uppercase));
                    text.extend(word.chars().skip(1));
                }
                1 => text.push_str(&rng.random_range(0..5000).to_string()),
                _ => text.push_str(word),
            }
            let end = if rng.random_ratio(1, 10) { ENDS[rng.random_range(0..ENDS.len())] } else { space };
            text.push_str(end);
        }
        text
    };
    (0..CORPUS_BYTES / page_bytes).map(|_| page()).collect()
}

const ENDS: &[&str] = &[", ", ".\n", "-", " `"];
const LATIN: &[&str] = &[
    "the", "re", "in", "com", "mand", "pa", "ram", "e", "ter", "ob", "ject", "file", "a", "to", "ver",
    "sion", "out", "put",
];
const CYRILLIC: &[&str] =
    &["по", "ка", "за", "ть", "ние", "фа", "йл", "про", "ко", "ман", "да", "вы", "вод", "с", "строк"];
const ACCENTS: &[&str] = &[
    "é", "re", "in", "com", "mand", "pa", "ram", "è", "tör", "ob", "jet", "fich", "à", "to", "ver", "ção",
    "où", "ñu",
];
const DEVANAGARI: &[&str] =
    &["क्या", "है", "फ़ा", "इल", "नि", "र्दे", "श", "सू", "ची", "दि", "खा", "एँ", "प्र", "ति", "में", "को"];
const HAN: &[&str] =
    &["文", "件", "命", "令", "数", "据", "的", "列", "表", "显", "示", "检", "测", "重", "复", "近", "似"];

const JAPANESE: &[&str] = &[
    "の",
    "を",
    "表示",
    "する",
    "ファイル",
    "コマンド",
    "一覧",
    "ます",
    "して",
    "出力",
    "検索",
    "から",
    "サーバー",
];
const THAI: &[&str] = &["การ", "ไฟล์", "คำ", "สั่ง", "ที่", "แสดง", "ราย", "ไม่", "มี", "ข้อ", "มูล", "และ"];

fn words_by_bytes(text: &str) -> usize {
    let starts = text.bytes().fold((0, false), |(count, before), byte| {
        let inside = byte.is_ascii_alphanumeric() || !byte.is_ascii();
        (count + usize::from(inside && !before), inside)
    });
    starts.0
}

fn naive(text: &str) -> u64 {
    let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
    runs.fold(0, |sum, run| hash::fold(sum ^ hash::token(run.to_lowercase().as_bytes()), hash::mix(1)))
}

fn text(c: &mut Criterion) {
    for (name, pages) in [
        ("long", pages(8192, LATIN, " ")),
        ("short", pages(400, LATIN, " ")),
        ("accents", pages(8192, ACCENTS, " ")),
        ("devanagari", pages(8192, DEVANAGARI, " ")),
        ("cyrillic", pages(8192, CYRILLIC, " ")),
        ("han", pages(8192, HAN, "")),
        ("japanese", pages(8192, JAPANESE, "")),
        ("thai", pages(8192, THAI, "")),
    ] {
        let mut featurizer = Featurizer::new(TextRules::default());
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Bytes(pages.iter().map(|page| page.len() as u64).sum()));
        group.bench_with_input("count_bytes", &pages, |b, pages| {
            b.iter(|| pages.iter().map(|page| words_by_bytes(black_box(page))).sum::<usize>());
        });
        group.bench_with_input("naive", &pages, |b, pages| {
            b.iter(|| pages.iter().fold(0, |sum, page| sum ^ naive(black_box(page))));
        });
        group.bench_with_input("features", &pages, |b, pages| {
            b.iter(|| pages.iter().map(|page| featurizer.features(black_box(page)).len()).sum::<usize>());
        });
        group.bench_with_input("terms", &pages, |b, pages| {
            b.iter(|| pages.iter().map(|page| featurizer.terms(black_box(page)).ids.len()).sum::<usize>());
        });
        group.finish();
    }
}

criterion_group!(benches, text);
criterion_main!(benches);
