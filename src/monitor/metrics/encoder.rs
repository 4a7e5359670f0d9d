//! Metric kinds, and the writer that passes the samples of one family to the OpenMetrics encoder.

use std::fmt;

use prometheus_client::encoding::{EncodeCounterValue, EncodeGaugeValue, MetricEncoder, NoLabelSet};

use dupflow_run::histogram::Buckets;

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only increases, from 0 at the start of the process.
    Counter,
    /// Increases and decreases.
    Gauge,
    /// Durations by bucket.
    Histogram,
}

impl MetricKind {
    /// Its name in the documentation.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Writes the samples of one family.
pub(super) struct SampleWriter<'e> {
    encoder: MetricEncoder<'e>,
    kind: MetricKind,
    /// The first error of the encoder.
    outcome: fmt::Result,
}

impl<'e> SampleWriter<'e> {
    pub(super) fn new(encoder: MetricEncoder<'e>, kind: MetricKind) -> Self {
        Self { encoder, kind, outcome: Ok(()) }
    }

    /// The first error, if there was one.
    pub(super) fn outcome(self) -> fmt::Result {
        self.outcome
    }

    /// Writes the family's only sample.
    pub(super) fn one(&mut self, value: impl EncodeGaugeValue + EncodeCounterValue + Copy) {
        let written = write(&mut self.encoder, self.kind, &value);
        self.outcome = self.outcome.and(written);
    }

    /// Writes one of several samples, distinguished by a label.
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

    /// Writes a histogram in seconds.
    pub(super) fn histogram(&mut self, buckets: &Buckets) {
        let mut before = 0;
        // The encoder wants counts per bucket, not cumulative ones.
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
    kind: MetricKind,
    value: &(impl EncodeGaugeValue + EncodeCounterValue),
) -> fmt::Result {
    match kind {
        MetricKind::Counter => encoder.encode_counter::<NoLabelSet, _, u64>(value, None),
        MetricKind::Gauge | MetricKind::Histogram => encoder.encode_gauge(value),
    }
}
