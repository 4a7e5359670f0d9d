//! The kind of a family and its samples, as the library of the format takes them.

use std::fmt;

use prometheus_client::encoding::{EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};

use dupflow_core::run::histogram::Buckets;

/// What kind of values a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up only, from 0 when the process starts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times by bucket.
    Histogram,
}

impl Kind {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Takes the samples of one family.
pub(super) struct Samples<'e> {
    encoder: MetricEncoder<'e>,
    kind: Kind,
    /// The first failure: of whoever the text is written to.
    outcome: fmt::Result,
}

impl<'e> Samples<'e> {
    pub(super) fn new(encoder: MetricEncoder<'e>, kind: Kind) -> Self {
        Self { encoder, kind, outcome: Ok(()) }
    }

    /// What came of it.
    pub(super) fn outcome(self) -> fmt::Result {
        self.outcome
    }

    /// The only sample.
    pub(super) fn one(&mut self, value: impl EncodeGaugeValue + EncodeCounterValue + Copy) {
        let written = write(&mut self.encoder, self.kind, &value);
        self.outcome = self.outcome.and(written);
    }

    /// One of several, told apart by a label.
    pub(super) fn labelled(
        &mut self,
        label: &str,
        is: &str,
        value: impl EncodeGaugeValue + EncodeCounterValue + Copy,
    ) {
        let (kind, labels) = (self.kind, [(label, is)]);
        let written = self.encoder.encode_family(&labels).and_then(|mut of| write(&mut of, kind, &value));
        self.outcome = self.outcome.and(written);
    }

    /// A histogram in seconds.
    pub(super) fn histogram(&mut self, buckets: &Buckets) {
        let mut before = 0;
        // The library adds them up.
        let each: Vec<(f64, u64)> = buckets
            .up_to
            .iter()
            .map(|(bound, up_to)| (*bound, up_to - std::mem::replace(&mut before, *up_to)))
            .collect();
        let written = self.encoder.encode_histogram::<NoLabelSet>(buckets.sum, before, &each, None);
        self.outcome = self.outcome.and(written);
    }
}

fn write(
    encoder: &mut MetricEncoder<'_>,
    kind: Kind,
    value: &(impl EncodeGaugeValue + EncodeCounterValue),
) -> fmt::Result {
    match kind {
        Kind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        Kind::Gauge | Kind::Histogram => encoder.encode_gauge(value),
    }
}
