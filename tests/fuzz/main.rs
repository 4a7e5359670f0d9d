//! Fuzzing without a fuzzer: every target on its kept corpus, and on some hundred changes of it.
//!
//! What a fuzzer has found is kept in `corpus/TARGET`, so that it is tried in every run. `libfuzzer/` has the
//! coverage-guided fuzzer over the same targets. `DUPFLOW_SEED` draws other changes.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod targets;

use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Changes that are tried of all files of a target together.
const CHANGES: usize = 500;

fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus").join(target);
    let files = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort_unstable();
    files.into_iter().map(|path| (path.clone(), std::fs::read(path).unwrap())).collect()
}

/// Cut, flipped, zeroed, doubled, or with a part of another one in it.
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
