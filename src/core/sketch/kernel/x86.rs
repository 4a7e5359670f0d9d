//! Engines for x86-64: the portable loop, compiled for processors that count bits in one instruction.
//!
//! The baseline of the architecture has no population count and no registers of more than two words. The
//! compiler turns the same loop into `vpternlogq` and `vpopcntq` on eight words (AVX-512) or into table
//! look-ups on four (AVX2). So intrinsics are needed only for packing, here and in [`avx512`].
//!
//! Comparing 1024 one-bit components: 13.4 ns portable, 9.7 AVX2, 7.5 AVX-512 (AMD EPYC with AVX-512, `cargo
//! bench --bench kernel`); a look at one or two words costs the same with each. Other architectures use the
//! portable engine; AArch64 counts bits in vectors by default.
//!
//! Obligation: an engine runs only on a processor that has its features. Engines are obtained only from
//! [`engines`] and [`ways`], which check the processor first.

#![expect(unsafe_code, reason = "calls of functions compiled for features that `detect` has found")]

use std::arch::x86_64::{__m256i, _mm256_add_epi8, _mm256_movemask_epi8};
use std::ops::Range;

use super::bins::{self, FillFn};
use super::planes::{self, PackFn};
use super::samples::{self, LaneRanks, LaneWords, PassFn, SamplingLaw};
use super::votes::{self, TallyFn};
use super::{Engine, avx512, scalar};

/// The fastest engine of this processor; `None` if none is faster than the portable one.
pub(super) fn detect() -> Option<Engine> {
    engines().last().map(|&(_, engine)| engine)
}

/// The engines that this processor supports, slowest first.
pub(super) fn engines() -> Vec<(&'static str, Engine)> {
    let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt");
    let avx512 = avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
    let all: [(bool, &'static str, Engine); 2] =
        [(avx2, "avx2", avx2_engine), (avx512, "avx512", avx512_engine)];
    all.into_iter().filter(|(has, ..)| *has).map(|(_, name, engine)| (name, engine)).collect()
}

/// Defines a function compiled for one set of features.
macro_rules! compiled {
    (
        $name:ident $(<$law:ident>)? ($($arg:ident: $type:ty),*) $(-> $out:ty)?, $body:path, $features:literal
    ) => {
        fn $name $(<$law: SamplingLaw>)? ($($arg: $type),*) $(-> $out)? {
            #[target_feature(enable = $features)]
            fn inner $(<$law: SamplingLaw>)? ($($arg: $type),*) $(-> $out)? {
                $body($($arg),*)
            }
            // SAFETY: `engines` and `ways` return this function only if the processor has the features.
            unsafe { inner $(::<$law>)? ($($arg),*) }
        }
    };
}

compiled!(avx2_engine(a: &[u64], b: &[u64], bits: usize) -> u32, scalar::body, "avx2,popcnt");
compiled!(
    avx512_engine(a: &[u64], b: &[u64], bits: usize) -> u32,
    scalar::body,
    "avx512f,avx512vpopcntdq,avx2,popcnt"
);

/// The versions of an inner loop that this processor supports, the faster one last.
fn ways<F>(avx2: F, avx512: F) -> impl DoubleEndedIterator<Item = F> {
    let has_avx2 = is_x86_feature_detected!("avx2");
    let has_avx512 = has_avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw");
    has_avx2.then_some(avx2).into_iter().chain(has_avx512.then_some(avx512))
}

/// The fastest supported version.
fn loops<F>(avx512: F, avx2: F) -> Option<F> {
    ways(avx2, avx512).next_back()
}

/// The fastest version of [`bins::fill`] on this processor; `None` if only the portable one is supported.
pub(super) fn fill() -> Option<FillFn> {
    loops(avx512_fill, avx2_fill)
}

compiled!(avx2_fill(salts: &[u64], features: &[u64], bins: &mut [u64]), bins::fill, "avx2");
compiled!(
    avx512_fill(salts: &[u64], features: &[u64], bins: &mut [u64]),
    bins::fill,
    "avx512f,avx512dq,avx512vl,avx512bw,avx2"
);

/// The same for consistent sampling.
pub(super) fn pass<L: SamplingLaw>() -> Option<PassFn> {
    loops(avx512_pass::<L>, avx2_pass::<L>)
}

compiled!(
    avx2_pass<L>(x: u64, weight: f64, salts: &[LaneWords], ranks: &mut [LaneRanks], ids: &mut [LaneWords]),
    samples::pass::<L>,
    "avx2"
);
compiled!(
    avx512_pass<L>(x: u64, weight: f64, salts: &[LaneWords], ranks: &mut [LaneRanks], ids: &mut [LaneWords]),
    samples::pass::<L>,
    "avx512f,avx512dq,avx512vl,avx512bw,avx2"
);

/// The same for the votes of `simhash`.
pub(super) fn tally() -> Option<TallyFn> {
    loops(avx512_tally, avx2_tally)
}

compiled!(avx2_tally(hashes: &[u64], votes: &[i64]) -> [i64; 64], votes::tally, "avx2");
compiled!(
    avx512_tally(hashes: &[u64], votes: &[i64]) -> [i64; 64],
    votes::tally,
    "avx512f,avx512dq,avx512vl,avx512bw,avx2"
);

/// The packing loops of this processor, slowest first.
pub(super) fn packs() -> Vec<PackFn> {
    ways(avx2_pack as PackFn, avx512_pack as PackFn).collect()
}

compiled!(avx2_pack(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]), pack, "avx2");
compiled!(
    avx512_pack(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]),
    avx512::pack,
    "avx512f,avx512dq,avx512vl,avx512bw,avx2"
);

/// [`planes::body`] with one instruction for half a column.
#[target_feature(enable = "avx2")]
fn pack(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]) {
    planes::body(components, bits, stride, planes, |rows| {
        let mut halves: [__m256i; 2] = bytemuck::cast(*rows);
        let mut columns = [0; 8];
        for column in columns.iter_mut().rev() {
            for half in halves.iter_mut().rev() {
                *column = *column << 32 | u64::from(_mm256_movemask_epi8(*half).cast_unsigned());
                // The next lower bit becomes the highest of its byte, which `movemask` reads.
                *half = _mm256_add_epi8(*half, *half);
            }
        }
        columns
    });
}
