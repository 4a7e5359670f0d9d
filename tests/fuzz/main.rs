//! Fuzz tests without a fuzzer: every target runs on its stored corpus and on some hundred mutations of it.
//!
//! Inputs found by a fuzzer are stored in `corpus/TARGET`, so every test run tries them. `libfuzzer/` has the
//! coverage-guided fuzzer for the same targets. `DUPFLOW_SEED` sets the seed of the mutations.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod targets;

use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Number of mutations tried for each target.
const CHANGES: usize = 500;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Truncates, flips, zeroes, duplicates or overwrites a part with one of `other`; one to three times.
fn changed(rng: &mut ChaCha8Rng, from: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = from.to_vec();
    for _ in 0..rng.random_range(1..4) {
        if bytes.is_empty() {
            bytes.push(rng.random());
            continue;
        }
        let at = rng.random_range(0..bytes.len());
        let end = rng.random_range(at..=bytes.len().min(at + 64));
        match rng.random_range(0..6) {
            0 => bytes.truncate(at),
            1 => bytes[at] ^= 1 << rng.random_range(0..8),
            2 => bytes[at..end].fill(0),
            3 => bytes.splice(at..at, bytes[at..end].to_vec()).for_each(drop),
            4 => {
                bytes[at] =
                    *[b'"', b'\\', b'<', b'\n', 0xff, b'9', b'{', b'='].get(rng.random_range(0..8)).unwrap();
            }
            _ => {
                let start = rng.random_range(0..=other.len());
                let part = other[start..other.len().min(start + 64)].to_vec();
                bytes.splice(at..end, part).for_each(drop);
            }
        }
    }
    bytes
}

fn try_all(target: &str) {
    let seed = std::env::var("DUPFLOW_SEED").map_or(0, |seed| seed.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let corpus = corpus(target);
    assert!(!corpus.is_empty(), "{target} has a corpus");
    for (path, bytes) in &corpus {
        let ran = std::panic::catch_unwind(|| targets::run(target, bytes));
        assert!(ran.is_ok(), "{target} fails on {path:?}");
    }
    for _ in 0..CHANGES {
        let [(_, one), (_, other)] = [(); 2].map(|()| &corpus[rng.random_range(0..corpus.len())]);
        let bytes = changed(&mut rng, one, other);
        let ran = std::panic::catch_unwind(|| targets::run(target, &bytes));
        assert!(ran.is_ok(), "{target} fails on {:?}", bytes.escape_ascii().to_string());
    }
}

macro_rules! tests {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            try_all(stringify!($target));
        })*

        #[test]
        fn every_target_is_tried() {
            assert_eq!(targets::ALL, [$(stringify!($target)),*]);
        }
    };
}

tests!(record lines csv tsv warc parquet detect value html article pipeline deployment state);
