//! What a process measures during a run, as values: those of several processes add up to the run's.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use dupflow_connectors::intake::{BadRecords, InputTally};
use dupflow_core::run::metrics::Counts;
use dupflow_engine::dataflow::Stages;

/// The longest time that is told apart.
const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

/// What one process has measured.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measures {
    /// Its counters.
    pub counts: Counts,
    /// Records that are no event, by reason.
    pub bad_records: BTreeMap<String, u64>,
    /// Sound records that hold no document, by why.
    pub skipped: BTreeMap<String, u64>,
    /// What has become of the records of each input that is read from its beginning.
    #[serde(default)]
    pub inputs: BTreeMap<Arc<str>, InputTally>,
    /// The blocks above the cap that it holds; each block is held by one process.
    pub hot_blocks: Vec<HotBlock>,
    /// How long epochs took; of the process that writes.
    #[serde(skip)]
    pub latencies: Latencies,
    /// The most memory that it has held; of several processes, the most that one of them has.
    pub peak_rss_bytes: u64,
}

/// A block above the cap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HotBlock {
    /// Distinct sketches in it.
    pub sketches: usize,
    /// Its band or table, from 0.
    pub table: u16,
    /// Its hash, 8 hexadecimal digits.
    pub hash: String,
    /// A document in it.
    pub example: String,
}

/// Times up to a day, counted in a histogram of a fixed size, 230 KB, however many they are. They are kept to
/// a microsecond or to one part in a thousand, whichever is coarser; a longer time counts as a day.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

/// Three points of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Measures {
    /// What this process has measured of a run so far.
    pub(super) fn collect(stages: &Stages, bad: &BadRecords, latencies: Latencies) -> Self {
        let hot_blocks = stages.observers.hot_blocks.lock();
        let hot_blocks = hot_blocks.iter().map(|(key, block)| HotBlock {
            sketches: block.sketches,
            table: key.table,
            hash: format!("{:08x}", key.hash),
            example: block.document.as_ref().map_or_else(|| block.example.to_string(), ToString::to_string),
        });
        Self {
            counts: stages.observers.metrics.counts(),
            bad_records: bad.counts().into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect(),
            skipped: bad.skipped().into_iter().map(|(why, n)| (why.to_owned(), n)).collect(),
            inputs: bad.tallies(),
            hot_blocks: hot_blocks.collect(),
            latencies,
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

impl AddAssign<&Self> for Measures {
    /// Adds what another process of the same run has measured.
    fn add_assign(&mut self, other: &Self) {
        self.counts += &other.counts;
        for (reason, n) in &other.bad_records {
            *self.bad_records.entry(reason.clone()).or_default() += n;
        }
        for (why, n) in &other.skipped {
            *self.skipped.entry(why.clone()).or_default() += n;
        }
        for (input, tally) in &other.inputs {
            *self.inputs.entry(Arc::clone(input)).or_default() += tally;
        }
        self.hot_blocks.extend_from_slice(&other.hot_blocks);
        self.latencies += &other.latencies;
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_max(DAY_MICROS, 3).expect("three digits of a day are allowed"))
    }
}

impl Latencies {
    /// Counts one time.
    pub fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// In milliseconds; zeros if there are none. A quantile is the least time that at least this part of all
    /// does not exceed.
    pub fn quantiles(&self) -> Quantiles {
        let milliseconds = |micros: u64| micros as f64 / 1e3;
        let at = |quantile| milliseconds(self.0.lowest_equivalent(self.0.value_at_quantile(quantile)));
        Quantiles { p50: at(0.5), p99: at(0.99), max: milliseconds(self.0.max()) }
    }
}

impl AddAssign<&Self> for Latencies {
    fn add_assign(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms hold the same range");
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latencies").field(&self.quantiles()).finish()
    }
}

/// The high-water mark of resident memory, from `/proc`; 0 where there is none.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::run::metrics::{Counter, Metrics};

    fn of(times: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        times.into_iter().for_each(|time| latencies.record(Duration::from_micros(time)));
        latencies
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        // Up to 2,047 microseconds every one is told apart.
        assert_eq!(of((1..=200).rev()).quantiles(), Quantiles { p50: 0.1, p99: 0.198, max: 0.2 });
        assert_eq!(of([7]).quantiles(), Quantiles { p50: 0.007, p99: 0.007, max: 0.007 });
        assert_eq!(of([]).quantiles(), Quantiles::default());
        let long = of([3_600_000_000]).quantiles();
        assert!((long.p50 / 3.6e6 - 1.0).abs() < 1e-3 && (long.max / 3.6e6 - 1.0).abs() < 1e-3, "{long:?}");
        let longest = of([u64::MAX]).quantiles().max;
        assert!((longest / 8.64e7 - 1.0).abs() < 2e-3, "no time is too long: {longest}");
    }

    #[test]
    fn measures_of_processes_add_up() {
        let process = |events, reason: &str, block: usize, time, rss| {
            let metrics = Metrics::new(0);
            metrics.add(Counter::Events, events);
            let hash = "0badcafe".to_owned();
            Measures {
                counts: metrics.counts(),
                bad_records: BTreeMap::from([(reason.to_owned(), 2), ("both".to_owned(), 1)]),
                skipped: BTreeMap::from([(reason.to_owned(), 1)]),
                inputs: BTreeMap::from([(
                    "in".into(),
                    InputTally { documents: events, bad: 3, first: None },
                )]),
                hot_blocks: vec![HotBlock { sketches: block, table: 0, hash, example: "x".to_owned() }],
                latencies: of([time]),
                peak_rss_bytes: rss,
            }
        };
        let mut all = process(10, "a", 70, 5, 100);
        all += &process(1, "b", 80, 1000, 300);
        assert_eq!(all.counts.get(Counter::Events), 11);
        let expected = [("a", 2), ("b", 2), ("both", 2)].map(|(reason, n)| (reason.to_owned(), n));
        assert_eq!(all.bad_records, BTreeMap::from(expected));
        assert_eq!(all.inputs["in"], InputTally { documents: 11, bad: 6, first: None });
        assert_eq!(all.hot_blocks.iter().map(|block| block.sketches).collect::<Vec<_>>(), [70, 80]);
        assert_eq!(all.latencies.quantiles(), Quantiles { p50: 0.005, p99: 1.0, max: 1.0 });
        assert_eq!(all.peak_rss_bytes, 300);
    }
}
