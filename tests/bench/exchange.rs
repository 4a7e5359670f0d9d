//! The cost of sending a buffer of records to another process: encoding and decoding.
//!
//! `cargo bench --bench exchange`; with `--features abomonation` also by that codec. The default is timely's
//! encoding of a `Vec` of records with serde: bincode, once for the length and once for the bytes.
//! Records are free of padding, 24 and 32 bytes: postings (block key, half of a sketch id, fingerprint word,
//! slot), and pairs of sketch ids as words.
//!
//! abomonation copies memory unchanged and reads it in place. It is unsound, even for such records
//! (RUSTSEC-2021-0120, and `docs` of the crate). It needs mutable buffers, which those of timely 0.31 are
//! not, so they are copied first.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]
#![cfg_attr(feature = "abomonation", expect(unsafe_code, reason = "abomonation has no other interface"))]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::hash;
use timely::bytes::arc::{Bytes, BytesMut};
use timely::dataflow::channels::ContainerBytes;

/// Records of a buffer: about as many as timely sends at once.
const RECORDS: u64 = 1024;

fn words(record: u64) -> [u64; 4] {
    [1, 2, 3, 4].map(|n| hash::mix(record << 3 | n))
}

fn half(word: u64) -> u32 {
    u32::try_from(word >> 32).expect("it has 32 bits")
}

fn bincode<T: 'static>(c: &mut Criterion, name: &str, records: &Vec<T>)
where
    Vec<T>: ContainerBytes,
{
    let encode = || {
        let mut bytes = Vec::with_capacity(records.length_in_bytes());
        records.into_bytes(&mut bytes);
        bytes
    };
    let encoded: Bytes = BytesMut::from(encode()).freeze();
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("bincode encode", |b| b.iter(encode));
    group.bench_function("bincode decode", |b| b.iter(|| Vec::<T>::from_bytes(encoded.clone())));
    group.finish();
}

#[cfg(feature = "abomonation")]
fn abomonation<T: ::abomonation::Abomonation + Clone + PartialEq>(
    c: &mut Criterion,
    name: &str,
    records: &Vec<T>,
) {
    let encode = || {
        let mut bytes = Vec::with_capacity(::abomonation::measure(records));
        // SAFETY: the crate guarantees nothing; the records have no padding, so all bytes that are read are
        // initialized.
        unsafe { ::abomonation::encode(records, &mut bytes) }.expect("a vector takes all bytes");
        bytes
    };
    let encoded = encode();
    let decode = || {
        let mut bytes = encoded.clone();
        // SAFETY: as above; the bytes are what was encoded, of the same type, by the same program.
        let (read, _) = unsafe { ::abomonation::decode::<Vec<T>>(&mut bytes) }.expect("they are whole");
        read.clone()
    };
    assert!(decode() == *records);
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(RECORDS));
    group.bench_function("abomonation encode", |b| b.iter(encode));
    group.bench_function("abomonation decode", |b| b.iter(decode));
    group.finish();
}

fn exchange(c: &mut Criterion) {
    let postings: Vec<(u64, u64, u32, u32)> = (0..RECORDS)
        .map(words)
        .map(|[key, sketch, word, slot]| (key, sketch, half(word), half(slot)))
        .collect();
    let pairs: Vec<(u64, u64, u64, u64)> = (0..RECORDS).map(words).map(|[x, y, z, w]| (x, y, z, w)).collect();
    bincode(c, "postings", &postings);
    bincode(c, "pairs of sketches", &pairs);
    #[cfg(feature = "abomonation")]
    {
        abomonation(c, "postings", &postings);
        abomonation(c, "pairs of sketches", &pairs);
    }
}

criterion_group!(benches, exchange);
criterion_main!(benches);
