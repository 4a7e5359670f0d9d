//! 001-X1: the word hash of SimHash. The page names MD5, FNV and Murmur as if all were equally good.
//!
//! A word moves every bit up or down, so the 64 bits of its hash must be uniform and independent. Then two
//! texts agree in the fraction 1 - θ/π of bits on average, with the error of the mean of 64 coins. Hashes are
//! used without a seed; generated texts with different words in each corpus take its place.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::EvaluateError;
use crate::generate::{Generator, Params};
use crate::paper::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::table::{ResultTable, row};
use crate::threads;
use dupflow_core::hash::mix;
use dupflow_core::sketch::simhash::fingerprint;
use dupflow_core::text::measures::cosine;
use dupflow_core::text::{Features, Shingle, TextRules, tokens};

/// Number of corpora, and of texts of each, at full scale.
const CORPORA: usize = 16;
const TEXTS: usize = 300;

/// A hash of a word.
type WordHash = fn(&[u8]) -> u64;

/// Why a hash is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The page names it, or it represents one that is named.
    Named,
    /// The program's own mixing.
    Ours,
    /// Common in libraries, and unsuitable.
    Poor,
}

/// A hash.
struct Hashed {
    name: &'static str,
    of: WordHash,
    role: Role,
    reason: &'static str,
}

/// The error of coins varies from corpus to corpus: pairs share texts, and the words of a text share bits.
const COINS: &str = "each bit of a word is a coin; a quarter more error would matter, as much as a third \
    fewer bits";

const STAND_IN: &str = "SHA-256 stands in for MD5, which the page names and the program does not depend on";

const ALIKE: &str = "words that are alike, or short, have upper bits that are alike";

const HASHES: [Hashed; 6] = [
    Hashed {
        name: "the program's, mixed",
        of: |word| mix(dupflow_core::hash::token(word)),
        role: Role::Ours,
        reason: COINS,
    },
    Hashed { name: "SHA-256, 8 bytes, in place of MD5", of: sha, role: Role::Named, reason: STAND_IN },
    Hashed { name: "Murmur, 64A", of: murmur, role: Role::Named, reason: COINS },
    Hashed { name: "FNV-1a, mixed", of: |word| mix(fnv(word)), role: Role::Ours, reason: COINS },
    Hashed { name: "FNV-1a", of: fnv, role: Role::Named, reason: ALIKE },
    Hashed { name: "sum of 31^i c", of: polynomial, role: Role::Poor, reason: ALIKE },
];

/// Stands in for MD5, which is not a dependency of the program: of both each bit is a coin.
fn sha(word: &[u8]) -> u64 {
    Sha256::digest(word).iter().take(8).fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

fn fnv(word: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    word.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// The string hash of many languages' libraries; for short words its upper bits are 0.
fn polynomial(word: &[u8]) -> u64 {
    word.iter().fold(0, |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(*byte)))
}

/// `MurmurHash64A` with the seed 0 (A. Appleby, public domain).
fn murmur(word: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = (word.len() as u64).wrapping_mul(M);
    for piece in word.chunks(8) {
        let mut bytes = [0; 8];
        bytes[..piece.len()].copy_from_slice(piece);
        let k = u64::from_le_bytes(bytes);
        if piece.len() == 8 {
            let k = k.wrapping_mul(M);
            hash = (hash ^ (k ^ k >> 47).wrapping_mul(M)).wrapping_mul(M);
        } else {
            hash = (hash ^ k).wrapping_mul(M);
        }
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

/// Words by their numbers in a corpus, ascending, with their counts.
type WordCounts = (Vec<u64>, Vec<f64>);

/// The texts of a corpus, and its words by their numbers.
fn corpus(texts: usize, seed: u64) -> (Vec<WordCounts>, Vec<String>) {
    let params = Params {
        window: texts,
        max_edit_rate: 0.5,
        near: 0.5,
        copies: 0.0,
        ..Params::for_texts(texts as u64, seed)
    };
    let rules = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let mut numbers: BTreeMap<String, u64> = BTreeMap::new();
    let mut words = Vec::new();
    let counted = Generator::new(params).filter_map(|record| record.event.text).map(|text| {
        let mut counts: BTreeMap<u64, f64> = BTreeMap::new();
        for word in tokens(&text, &rules) {
            let next = numbers.len() as u64;
            let number = *numbers.entry(word.clone()).or_insert_with(|| {
                words.push(word);
                next
            });
            *counts.entry(number).or_default() += 1.0;
        }
        counts.into_iter().unzip()
    });
    (counted.collect(), words)
}

/// Sums over the pairs of one corpus for one hash.
#[derive(Clone, Copy, Debug, Default)]
struct AgreementSums {
    pairs: f64,
    /// The fraction of equal bits minus the expected one.
    apart: f64,
    /// The square of that, in units of the variance of 64 coins.
    squares: f64,
    /// Pairs with a cosine below 0.9 and a distance of at most 3 bits.
    wrong: f64,
}

fn sums(texts: &[WordCounts], words: &[String], hash: WordHash) -> AgreementSums {
    let hashes: Vec<u64> = words.iter().map(|word| hash(word.as_bytes())).collect();
    let print = |(ids, weights): &WordCounts| {
        let of_words: Vec<u64> =
            ids.iter().filter_map(|id| hashes.get(usize::try_from(*id).ok()?)).copied().collect();
        fingerprint(&of_words, weights)
    };
    let prints: Vec<u64> = texts.iter().map(print).collect();
    let mut sums = AgreementSums::default();
    for (a, (ids, weights)) in texts.iter().enumerate() {
        for (b, (others, masses)) in texts.iter().enumerate().take(a) {
            let cosine = cosine(Features { ids, weights }, Features { ids: others, weights: masses });
            let expected = super::fingerprints::expected(cosine);
            let bits = (prints[a] ^ prints[b]).count_ones();
            let apart = 1.0 - f64::from(bits) / 64.0 - expected;
            sums.pairs += 1.0;
            sums.apart += apart;
            sums.squares += apart * apart / (expected * (1.0 - expected) / 64.0).max(1e-4);
            sums.wrong += f64::from(u8::from(bits <= 3 && cosine < 0.9));
        }
    }
    sums
}

/// 001-X1.
pub(super) fn choice(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (corpora, texts) = (work.size(CORPORA, 2), work.size(TEXTS, 60));
    let measured = threads::map(work.bench.threads, corpora, |n| {
        let (texts, words) = corpus(texts, mix(work.bench.seed ^ mix(n as u64)));
        HASHES.map(|hash| sums(&texts, &words, hash.of))
    });
    let mut table = ResultTable::new(
        "001_x1_hashes",
        "SimHash by the hash of its words",
        &format!(
            "All pairs of {texts} generated texts, {corpora} corpora of other words, words weighed by their \
                counts; 64 bits. Apart: the mean of what the share of equal bits is above 1 - θ/π. Error: \
                its root mean square, in units of that of 64 coins. Wrong: pairs of a cosine below 0.9 \
                within 3 bits, of a million pairs."
        ),
        "hash | apart | error | wrong",
    );
    let mut lines = Vec::new();
    for (at, hash) in HASHES.iter().enumerate() {
        let all =
            measured.iter().map(|of| of[at]).fold(AgreementSums::default(), |sum, more| AgreementSums {
                pairs: sum.pairs + more.pairs,
                apart: sum.apart + more.apart,
                squares: sum.squares + more.squares,
                wrong: sum.wrong + more.wrong,
            });
        let (apart, error) = (all.apart / all.pairs, (all.squares / all.pairs).sqrt());
        let wrong = 1e6 * all.wrong / all.pairs;
        table.push(row![hash.name, apart, error, wrong]);
        let coins = PrintedClaim::equal(1.0, error, Matters::From(0.25));
        let basis = match hash.role {
            Role::Named => Basis::Measured(coins),
            Role::Ours => UnjudgedReason::Shown.checked(coins),
            Role::Poor => UnjudgedReason::Shown.checked(PrintedClaim::at_least(1.25, &[error])),
        };
        lines.push(
            ItemLine::new(
                "001-X1",
                format!("SimHash of words hashed by {}: its error, of 64 coins' 1", hash.name),
                if hash.role == Role::Named { "one of \"MD5, FNV or Murmur\"" } else { "-" },
            )
            .measured(format!("{error:.3}; {wrong:.0} wrong pairs within 3, of a million"))
            .judged(basis)
            .because(hash.reason),
        );
    }
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published values of FNV-1a, and of the reference program of Murmur's author.
    #[test]
    fn hashes_are_those_of_others() {
        assert_eq!((fnv(b""), fnv(b"a")), (0xcbf2_9ce4_8422_2325, 0xaf63_dc4c_8601_ec8c));
        assert_eq!((murmur(b""), murmur(b"hello")), (0, 0x1e68_d17c_457b_f117));
        assert_eq!(murmur(b"hello, world of words"), 0x7b2b_340f_7513_4e30);
        assert_eq!(polynomial(b"ab"), 97 * 31 + 98);
        assert_eq!(sha(b"abc"), 0xba78_16bf_8f01_cfea);
    }
}
