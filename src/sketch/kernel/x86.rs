//! Engines for x86-64: the portable loop, compiled for processors that count bits in one instruction.
//!
//! The baseline of the architecture has neither a population count nor registers of more than two words. The
//! compiler turns the same loop into `vpternlogq` and `vpopcntq` on eight words (AVX-512) or into table look-ups on
//! four (AVX2), so there are no intrinsics and no loads to get wrong. All 1024 one-bit components in one go: 13.4
//! ns portable, 9.7 AVX2, 7.5 AVX-512 (AMD EPYC with AVX-512, `cargo bench --bench kernel`); a look at one or two
//! words costs the same with each. Other architectures use the portable engine; AArch64 counts bits in vectors by
//! default.
//!
//! Obligation: an engine runs only on a processor that has its features. [`detect`] is the only way to obtain
//! one, and asks the processor first.

#![expect(unsafe_code, reason = "calls of functions compiled for features that `detect` has found")]

use super::super::fss::{self, Fill};
use super::{Engine, Shape, scalar};

/// The fastest engine that this processor has, if any is faster than the portable one.
pub(super) fn detect() -> Option<Engine> {
    engines().last().map(|&(_, engine)| engine)
}

/// The engines that this processor has, slowest first.
pub(super) fn engines() -> Vec<(&'static str, Engine)> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    let avx512 = avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
    let all: [(bool, &'static str, Engine); 2] =
        [(avx2, "avx2", avx2_engine), (avx512, "avx512", avx512_engine)];
    all.into_iter().filter(|(has, ..)| *has).map(|(_, name, engine)| (name, engine)).collect()
}

/// An engine for one set of features.
macro_rules! engine {
    ($name:ident, $inner:ident, $features:literal) => {
        fn $name(a: &[u64], b: &[u64], shape: Shape, from: usize, to: usize) -> u32 {
            #[target_feature(enable = $features)]
            fn $inner(a: &[u64], b: &[u64], shape: Shape, from: usize, to: usize) -> u32 {
                scalar::body(a, b, shape, from, to)
            }
            // SAFETY: `engines` hands this function out only where the processor has the features.
            unsafe { $inner(a, b, shape, from, to) }
        }
    };
}

engine!(avx2_engine, avx2, "avx2,popcnt");
engine!(avx512_engine, avx512, "avx512f,avx512vpopcntdq,avx2,popcnt");

/// The fastest way of this processor to fill the bins of [`fss`], if any is faster than the portable one.
pub(super) fn fill() -> Option<Fill> {
    let avx2 = is_x86_feature_detected!("avx2");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw");
    let all: [(bool, Fill); 2] = [(avx512, avx512_fill), (avx2, avx2_fill)];
    all.into_iter().find(|(has, _)| *has).map(|(_, fill)| fill)
}

/// A [`Fill`] for one set of features.
macro_rules! fill {
    ($name:ident, $inner:ident, $features:literal) => {
        fn $name(salts: &[u64], features: &[u64], bins: &mut [u64]) {
            #[target_feature(enable = $features)]
            fn $inner(salts: &[u64], features: &[u64], bins: &mut [u64]) {
                fss::fill(salts, features, bins);
            }
            // SAFETY: `fill` hands this function out only where the processor has the features.
            unsafe { $inner(salts, features, bins) }
        }
    };
}

fill!(avx2_fill, fill_avx2, "avx2");
fill!(avx512_fill, fill_avx512, "avx512f,avx512dq,avx512vl,avx512bw,avx2");
