//! The loops that are written out for AVX-512, where the compiler finds no vectors.
//!
//! - Packing: a column of 64 x 8 bits is one test of 64 bytes.
//! - Throwing into bins: a bin that an earlier round has filled takes nothing more, so after the first round few throws count. The
//!   empty bins are a bitmap of 1024 bits in two registers; a permutation and a rotation look eight bins up, and those that count
//!   are compressed before they go to their bins one by one. What is left after the random rounds is done for sixteen bins at a
//!   time, so that a text of few features needs no tail.
//!
//! Obligations: the caller's processor has the features, which the functions' attributes make the compiler ask for; and loads and
//! stores stay within the arrays and slices that they are given, each of which says how.

#![expect(unsafe_code, reason = "loads and stores of whole registers")]

use std::arch::x86_64::{
    __m512i, _mm512_and_si512, _mm512_loadu_si512, _mm512_maskz_compress_epi64, _mm512_maskz_loadu_epi64,
    _mm512_min_epu64, _mm512_mul_epu32, _mm512_or_si512, _mm512_permutex2var_epi64, _mm512_rol_epi64,
    _mm512_rorv_epi64, _mm512_set1_epi8, _mm512_set1_epi64, _mm512_slli_epi64, _mm512_srli_epi64,
    _mm512_storeu_si512, _mm512_test_epi8_mask, _mm512_test_epi64_mask, _mm512_xor_si512,
};
use std::ops::Range;

use super::bins::{self, CHUNK, EMPTY, RANDOM_ROUNDS};
use super::planes;

/// Words of a register.
const LANES: usize = 8;

/// Words of a bitmap: of up to 1024 bins.
const MAP: usize = 16;

#[target_feature(enable = "avx512f")]
fn load(words: &[u64; LANES]) -> __m512i {
    // SAFETY: the array is as long as the register.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
fn store(words: &mut [u64; LANES], register: __m512i) {
    // SAFETY: the array is as long as the register.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), register) }
}

/// At most [`LANES`] words, and which lanes hold them; the others are 0.
#[target_feature(enable = "avx512f")]
fn load_some(words: &[u64]) -> (u8, __m512i) {
    let lanes = u8::MAX >> LANES.saturating_sub(words.len());
    // SAFETY: no lane is read beyond the slice: one that is masked off is not touched, and a longer slice is read in part.
    (lanes, unsafe { _mm512_maskz_loadu_epi64(lanes, words.as_ptr().cast()) })
}

/// See [`planes::Pack`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
pub(super) fn pack(components: &[u64], bits: Range<usize>, planes: &mut [u64]) {
    planes::body(components, bits, planes, |rows| {
        let rows = load(&bytemuck::cast(*rows));
        [1i8, 2, 4, 8, 16, 32, 64, i8::MIN].map(|bit| _mm512_test_epi8_mask(rows, _mm512_set1_epi8(bit)))
    });
}

/// The product of the halves of salted features.
#[target_feature(enable = "avx512f")]
fn products(features: __m512i, salts: __m512i) -> __m512i {
    let salted = _mm512_xor_si512(features, salts);
    _mm512_mul_epu32(salted, _mm512_srli_epi64::<32>(salted))
}

/// See [`bins::Fill`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
pub(super) fn fill(salts: &[u64], features: &[u64], bins: &mut [u64]) {
    if bins.len() > MAP * 64 {
        return bins::fill(salts, features, bins);
    }
    bins.fill(EMPTY);
    let mut empty = [0; MAP];
    for bin in 0..bins.len() {
        empty[bin / 64] |= 1 << (bin % 64);
    }
    let (throws, own) = salts.split_at(RANDOM_ROUNDS.min(salts.len()));
    for (round, salt) in (0..).zip(throws) {
        throw(round, *salt, features, bins, &mut empty);
        if empty == [0; MAP] {
            return;
        }
    }
    if !own.is_empty() {
        fill_rest(own, features, bins, &empty);
    }
}

/// One round.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn throw(round: u64, salt: u64, features: &[u64], bins: &mut [u64], empty: &mut [u64; MAP]) {
    // Bins that this round fills are empty to all of its throws.
    let [low, high]: [[u64; LANES]; 2] = bytemuck::cast(*empty);
    let (low, high) = (load(&low), load(&high));
    let salt = _mm512_set1_epi64(salt.cast_signed());
    let size = _mm512_set1_epi64((bins.len() as u64).cast_signed());
    let round = _mm512_set1_epi64((round << 48).cast_signed());
    let (one, tie) = (_mm512_set1_epi64(1), _mm512_set1_epi64(0xffff));
    let (mut places, mut values) = ([0; CHUNK + LANES], [0; CHUNK + LANES]);
    for chunk in features.chunks(CHUNK) {
        let mut hits = 0;
        for eight in chunk.chunks(LANES) {
            let (lanes, x) = load_some(eight);
            let product = products(x, salt);
            let folded = _mm512_xor_si512(product, _mm512_srli_epi64::<32>(product));
            let scaled = _mm512_mul_epu32(folded, size);
            let place = _mm512_srli_epi64::<32>(scaled);
            let word = _mm512_permutex2var_epi64(low, _mm512_srli_epi64::<38>(scaled), high);
            let counts = lanes & _mm512_test_epi64_mask(_mm512_rorv_epi64(word, place), one);
            if counts == 0 {
                continue;
            }
            let below = _mm512_srli_epi64::<16>(_mm512_slli_epi64::<32>(scaled));
            let breaks_ties = _mm512_and_si512(_mm512_srli_epi64::<24>(product), tie);
            let value = _mm512_or_si512(_mm512_or_si512(round, below), breaks_ties);
            let [places, values] = [&mut places, &mut values]
                .map(|words| words[hits..].first_chunk_mut().expect("a register's length to spare"));
            store(places, _mm512_maskz_compress_epi64(counts, place));
            store(values, _mm512_maskz_compress_epi64(counts, value));
            hits += counts.count_ones() as usize;
        }
        for (place, value) in places[..hits].iter().zip(&values) {
            #[expect(clippy::cast_possible_truncation, reason = "below the number of bins")]
            let place = *place as usize;
            bins[place] = bins[place].min(*value);
            empty[place / 64] &= !(1 << (place % 64));
        }
    }
}

/// Fills the bins that are still empty, each by the least of all features under its own salt.
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
fn fill_rest(own: &[u64], features: &[u64], bins: &mut [u64], empty: &[u64; MAP]) {
    // Two registers at a time: a minimum waits for the one before it.
    const TOGETHER: usize = 2 * LANES;
    let mut rest = [0; MAP * 64];
    let mut count = 0;
    for bin in (0..bins.len()).filter(|bin| empty[bin / 64] >> (bin % 64) & 1 == 1) {
        rest[count] = bin;
        count += 1;
    }
    for together in rest[..count].chunks(TOGETHER) {
        let mut of_bins = [[0; LANES]; 2];
        for (salt, bin) in of_bins.as_flattened_mut().iter_mut().zip(together) {
            *salt = own[*bin];
        }
        let salts = [load(&of_bins[0]), load(&of_bins[1])];
        let mut least = [_mm512_set1_epi64(-1); 2];
        for x in features {
            let x = _mm512_set1_epi64(x.cast_signed());
            for half in 0..2 {
                let product = products(x, salts[half]);
                let hash = _mm512_xor_si512(product, _mm512_rol_epi64::<32>(product));
                least[half] = _mm512_min_epu64(least[half], hash);
            }
        }
        let mut found = [[0; LANES]; 2];
        store(&mut found[0], least[0]);
        store(&mut found[1], least[1]);
        for (bin, hash) in together.iter().zip(found.as_flattened()) {
            bins[*bin] = (RANDOM_ROUNDS as u64) << 48 | hash >> 16;
        }
    }
}
