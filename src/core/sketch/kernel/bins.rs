//! Throws features into bins: the loop of [`Fss`](crate::sketch::Fss) and of one permutation hashing.
//!
//! The compiler vectorizes the hashing; the updates of bins are scalar.

/// Number of random rounds before the empty bins are filled one by one.
pub(in crate::sketch) const RANDOM_ROUNDS: usize = 32;

/// Number of features hashed before their values are put into bins.
const CHUNK: usize = 64;

/// The value of a bin without features.
pub(in crate::sketch) const EMPTY: u64 = u64::MAX;

/// Fills bins. `salts`: one for each round, then one for each bin; with a single salt there is one round,
/// whose values are below 2^48, and bins may stay [`EMPTY`]. `bins`: one place for each bin.
pub(in crate::sketch) type FillFn = fn(salts: &[u64], features: &[u64], bins: &mut [u64]);

/// The portable [`FillFn`], and the body of the versions compiled for certain processors.
#[inline(always)]
pub(in crate::sketch) fn fill(salts: &[u64], features: &[u64], bins: &mut [u64]) {
    bins.fill(EMPTY);
    // Masked, so that the compiler multiplies 32-bit numbers: AVX2 has no other multiplication.
    let size = bins.len() as u64 & LOW;
    let (throws, own) = salts.split_at(RANDOM_ROUNDS.min(salts.len()));
    let (mut places, mut values) = ([0; CHUNK], [0; CHUNK]);
    for (round, salt) in (0..).zip(throws) {
        for chunk in features.chunks(CHUNK) {
            for ((place, value), x) in places.iter_mut().zip(&mut values).zip(chunk) {
                let product = product(*x, *salt);
                // The folded half times K: the high 32 bits are the bin, the low 32 bits are independent of
                // it. The middle of the product breaks ties.
                let scaled = ((product ^ product >> 32) & LOW) * size;
                *place = (scaled >> 32) as u32;
                *value = round << 48 | (scaled & LOW) << 16 | product >> 24 & 0xffff;
            }
            for (place, value) in places.iter().zip(&values).take(chunk.len()) {
                let bin = &mut bins[*place as usize];
                *bin = (*bin).min(*value);
            }
        }
        // Rounds after all bins are filled change nothing, so fullness is checked only when it is likely.
        // Empty bins are counted, not searched: the compiler vectorizes a sum, but not an early exit.
        let likely = (round + 1) * features.len() as u64 >= 4 * size;
        if likely && bins.iter().map(|bin| u32::from(*bin == EMPTY)).sum::<u32>() == 0 {
            return;
        }
    }
    for (bin, salt) in bins.iter_mut().zip(own).filter(|(bin, _)| **bin == EMPTY) {
        let least = features.iter().map(|x| {
            let product = product(*x, *salt);
            product ^ product.rotate_left(32)
        });
        *bin = (RANDOM_ROUNDS as u64) << 48 | least.fold(u64::MAX, u64::min) >> 16;
    }
}

const LOW: u64 = 0xffff_ffff;

/// The product of the halves of a salted feature.
#[inline(always)]
fn product(feature: u64, salt: u64) -> u64 {
    let salted = feature ^ salt;
    (salted & LOW) * (salted >> 32)
}
