//! The measured sketches: one line for each.

use super::texts::FeatureForm;
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind, SketchParams};

/// K.
pub(super) const SIZES: [usize; 3] = [64, 256, 1024];
/// |A ∪ B|.
pub(super) const UNIONS: [usize; 3] = [60, 300, 2000];
/// J; each is a whole number of features of every union.
pub(super) const SIMILARITIES: [f64; 4] = [0.2, 0.5, 0.8, 0.95];

/// The plot that shows a sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlotGroup {
    /// Full-width sketches of sets.
    Wide,
    /// Sketches of few bits.
    Bits,
    /// Weighted sketches, and those of another similarity.
    Other,
}

impl PlotGroup {
    /// All groups, with file name and title of their plots.
    pub(super) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Wide, "estimators_wide", "full width"),
        (Self::Bits, "estimators_bits", "few bits"),
        (Self::Other, "estimators_other", "weights, order and angle"),
    ];
}

/// A sketch with the sizes and similarities at which it is measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredSketch {
    /// The name in tables.
    pub(super) name: &'static str,
    kind: SketchKind,
    bits: usize,
    /// Whether the first half of the components has twice as many bits.
    half_wide: bool,
    /// K.
    pub(super) sizes: &'static [usize],
    /// |A ∪ B|.
    pub(super) unions: &'static [usize],
    /// J.
    pub(super) similarities: &'static [f64],
    /// The features of its texts.
    pub(super) form: FeatureForm,
    /// Divisor of the number of trials.
    pub(super) slowness: usize,
    /// Its plot.
    pub(super) group: PlotGroup,
}

/// Sketches whose time grows with K times the number of features.
const SLOW: MeasuredSketch =
    MeasuredSketch { unions: &[60, 300], ..MeasuredSketch::new("", SketchKind::MinHash, 64) };

/// Sketches of weighted features.
const WEIGHTED: MeasuredSketch =
    MeasuredSketch { form: FeatureForm::Weighted, group: PlotGroup::Other, ..SLOW };

/// Number of sections of the sectional sketches.
const SECTIONS: usize = 4;

const fn sectional(mode: SectionMode, base: SectionBase) -> SketchKind {
    SketchKind::Sectional { sections: SECTIONS, mode, base }
}

/// All sketches; the slow ones last.
pub(super) const SUBJECTS: [MeasuredSketch; 24] = [
    MeasuredSketch::new("fss", SketchKind::Fss, 64),
    MeasuredSketch::new("fss, 2 bits", SketchKind::Fss, 2),
    MeasuredSketch::new("fss, 1 bit", SketchKind::Fss, 1),
    MeasuredSketch {
        half_wide: true,
        sizes: &[256, 1024],
        ..MeasuredSketch::new("fss, 1.5 bits", SketchKind::Fss, 1)
    },
    MeasuredSketch::new("oph", SketchKind::Oph, 64),
    MeasuredSketch::new("oph-original", SketchKind::OphOriginal, 64),
    MeasuredSketch::new("bottom-k", SketchKind::BottomK, 64),
    // Saturated at low similarity, and its theory is of first order in 1 / K.
    MeasuredSketch {
        sizes: &[256, 1024],
        similarities: &[0.8, 0.95],
        group: PlotGroup::Bits,
        ..MeasuredSketch::new("odd, 2 bits", SketchKind::Odd, 2)
    },
    MeasuredSketch {
        group: PlotGroup::Other,
        ..MeasuredSketch::new(
            "sectional attach, aligned",
            sectional(SectionMode::Attach, SectionBase::Fss),
            64,
        )
    },
    MeasuredSketch {
        form: FeatureForm::Shuffled,
        group: PlotGroup::Other,
        ..MeasuredSketch::new(
            "sectional attach, shuffled",
            sectional(SectionMode::Attach, SectionBase::Fss),
            64,
        )
    },
    MeasuredSketch {
        form: FeatureForm::Shuffled,
        group: PlotGroup::Other,
        ..MeasuredSketch::new("sectional pair, shuffled", sectional(SectionMode::Pair, SectionBase::Fss), 64)
    },
    // The law of its bits holds for many features.
    MeasuredSketch {
        sizes: &[64, 128],
        unions: &[300, 2000],
        form: FeatureForm::Weighted,
        group: PlotGroup::Other,
        ..MeasuredSketch::new("simhash", SketchKind::SIMHASH, 1)
    },
    MeasuredSketch::new("superminhash", SketchKind::SuperMinHash, 64),
    MeasuredSketch { name: "min-max", kind: SketchKind::MinMax, ..SLOW },
    MeasuredSketch { name: "minhash", ..SLOW },
    MeasuredSketch {
        name: "sectional attach over minhash, shuffled",
        kind: sectional(SectionMode::Attach, SectionBase::MinHash),
        form: FeatureForm::Shuffled,
        group: PlotGroup::Other,
        ..SLOW
    },
    MeasuredSketch { name: "minhash, 2 bits", bits: 2, group: PlotGroup::Bits, ..SLOW },
    MeasuredSketch { name: "minhash, 1 bit", bits: 1, group: PlotGroup::Bits, ..SLOW },
    MeasuredSketch {
        name: "minhash, 1.5 bits",
        bits: 1,
        half_wide: true,
        sizes: &[256, 1024],
        group: PlotGroup::Bits,
        ..SLOW
    },
    MeasuredSketch {
        name: "connected, 2 of 1 bit",
        kind: SketchKind::Connected { run: 2 },
        bits: 1,
        group: PlotGroup::Bits,
        ..SLOW
    },
    MeasuredSketch { name: "dart", kind: SketchKind::Dart, ..WEIGHTED },
    MeasuredSketch {
        name: "icws",
        kind: SketchKind::Icws,
        sizes: &[64, 256],
        unions: &[60],
        slowness: 4,
        ..WEIGHTED
    },
    MeasuredSketch {
        name: "rejection",
        // A bound above all weights of its texts.
        kind: SketchKind::Rejection { bound: 16_000 },
        sizes: &[64, 256],
        unions: &[60],
        slowness: 10,
        ..WEIGHTED
    },
    MeasuredSketch {
        name: "cws",
        kind: SketchKind::Cws,
        sizes: &[64, 256],
        unions: &[60],
        slowness: 10,
        ..WEIGHTED
    },
];

impl MeasuredSketch {
    const fn new(name: &'static str, kind: SketchKind, bits: usize) -> Self {
        Self {
            name,
            kind,
            bits,
            half_wide: false,
            sizes: &SIZES,
            unions: &UNIONS,
            similarities: &SIMILARITIES,
            form: FeatureForm::Set,
            slowness: 1,
            group: if bits == 64 { PlotGroup::Wide } else { PlotGroup::Bits },
        }
    }

    /// Whether it keeps all of its components and estimates a fraction of them.
    pub(super) fn is_full_width(&self) -> bool {
        self.bits == 64
    }

    /// The sketch with `size` components.
    pub(super) fn params(&self, size: usize, seed: u64) -> SketchParams {
        // A multiple of 64, less than K.
        let wide = if self.half_wide { size / 128 * 64 } else { 0 };
        SketchParams { kind: self.kind, size, bits: self.bits, wide, seed }
    }
}
