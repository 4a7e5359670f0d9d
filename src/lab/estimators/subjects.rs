//! What is measured: one line for each sketch.

use super::texts::Form;
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind, SketchParams};

/// K.
pub(super) const SIZES: [usize; 3] = [64, 256, 1024];
/// Features of both texts together.
pub(super) const UNIONS: [usize; 3] = [60, 300, 2000];
/// J, each a whole number of features of every union.
pub(super) const SIMILARITIES: [f64; 4] = [0.2, 0.5, 0.8, 0.95];

/// Which plot a sketch is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// Full-width sketches of sets.
    Wide,
    /// Sketches of few bits.
    Bits,
    /// Weighted sketches, and those of another similarity.
    Other,
}

impl Group {
    /// All, with what their plots are called.
    pub(super) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Wide, "estimators_wide", "full width"),
        (Self::Bits, "estimators_bits", "few bits"),
        (Self::Other, "estimators_other", "weights, order and angle"),
    ];
}

/// A sketch, and what it is tried on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Subject {
    /// As it is called in tables.
    pub(super) name: &'static str,
    kind: SketchKind,
    bits: usize,
    /// Whether the first half of the components has twice the bits.
    half_wide: bool,
    /// K.
    pub(super) sizes: &'static [usize],
    /// |A ∪ B|.
    pub(super) unions: &'static [usize],
    /// J.
    pub(super) similarities: &'static [f64],
    /// The features of its texts.
    pub(super) form: Form,
    /// Trials are divided by it.
    pub(super) slowness: usize,
    /// Its plot.
    pub(super) group: Group,
}

/// Sketches whose time grows with K times the number of features.
const SLOW: Subject = Subject { unions: &[60, 300], ..Subject::new("", SketchKind::MinHash, 64) };

/// Sketches of weighted features.
const WEIGHTED: Subject = Subject { form: Form::Weighted, group: Group::Other, ..SLOW };

/// Sections of the sectional sketches.
const SECTIONS: usize = 4;

const fn sectional(mode: SectionMode, base: SectionBase) -> SketchKind {
    SketchKind::Sectional { sections: SECTIONS, mode, base }
}

/// All of them; the slow ones last.
pub(super) const SUBJECTS: [Subject; 24] = [
    Subject::new("fss", SketchKind::Fss, 64),
    Subject::new("fss, 2 bits", SketchKind::Fss, 2),
    Subject::new("fss, 1 bit", SketchKind::Fss, 1),
    Subject { half_wide: true, sizes: &[256, 1024], ..Subject::new("fss, 1.5 bits", SketchKind::Fss, 1) },
    Subject::new("oph", SketchKind::Oph, 64),
    Subject::new("oph-original", SketchKind::OphOriginal, 64),
    Subject::new("bottom-k", SketchKind::BottomK, 64),
    // Saturated where much differs; and its theory is of first order in 1 / K.
    Subject {
        sizes: &[256, 1024],
        similarities: &[0.8, 0.95],
        group: Group::Bits,
        ..Subject::new("odd, 2 bits", SketchKind::Odd, 2)
    },
    Subject {
        group: Group::Other,
        ..Subject::new("sectional attach, aligned", sectional(SectionMode::Attach, SectionBase::Fss), 64)
    },
    Subject {
        form: Form::Shuffled,
        group: Group::Other,
        ..Subject::new("sectional attach, shuffled", sectional(SectionMode::Attach, SectionBase::Fss), 64)
    },
    Subject {
        form: Form::Shuffled,
        group: Group::Other,
        ..Subject::new("sectional pair, shuffled", sectional(SectionMode::Pair, SectionBase::Fss), 64)
    },
    // The law of its bits is that of many features.
    Subject {
        sizes: &[64, 128],
        unions: &[300, 2000],
        form: Form::Weighted,
        group: Group::Other,
        ..Subject::new("simhash", SketchKind::SimHash, 1)
    },
    Subject::new("superminhash", SketchKind::SuperMinHash, 64),
    Subject { name: "min-max", kind: SketchKind::MinMax, ..SLOW },
    Subject { name: "minhash", ..SLOW },
    Subject {
        name: "sectional attach over minhash, shuffled",
        kind: sectional(SectionMode::Attach, SectionBase::MinHash),
        form: Form::Shuffled,
        group: Group::Other,
        ..SLOW
    },
    Subject { name: "minhash, 2 bits", bits: 2, group: Group::Bits, ..SLOW },
    Subject { name: "minhash, 1 bit", bits: 1, group: Group::Bits, ..SLOW },
    Subject {
        name: "minhash, 1.5 bits",
        bits: 1,
        half_wide: true,
        sizes: &[256, 1024],
        group: Group::Bits,
        ..SLOW
    },
    Subject {
        name: "connected, 2 of 1 bit",
        kind: SketchKind::Connected { run: 2 },
        bits: 1,
        group: Group::Bits,
        ..SLOW
    },
    Subject { name: "dart", kind: SketchKind::Dart, ..WEIGHTED },
    Subject {
        name: "icws",
        kind: SketchKind::Icws,
        sizes: &[64, 256],
        unions: &[60],
        slowness: 4,
        ..WEIGHTED
    },
    Subject {
        name: "rejection",
        // Above all weights of its texts.
        kind: SketchKind::Rejection { bound: 16_000 },
        sizes: &[64, 256],
        unions: &[60],
        slowness: 10,
        ..WEIGHTED
    },
    Subject {
        name: "cws",
        kind: SketchKind::Cws,
        sizes: &[64, 256],
        unions: &[60],
        slowness: 10,
        ..WEIGHTED
    },
];

impl Subject {
    const fn new(name: &'static str, kind: SketchKind, bits: usize) -> Self {
        Self {
            name,
            kind,
            bits,
            half_wide: false,
            sizes: &SIZES,
            unions: &UNIONS,
            similarities: &SIMILARITIES,
            form: Form::Set,
            slowness: 1,
            group: if bits == 64 { Group::Wide } else { Group::Bits },
        }
    }

    /// Whether it keeps all of its components, of a similarity that is a share.
    pub(super) fn is_full_width(&self) -> bool {
        self.bits == 64
    }

    /// The sketch with `size` components.
    pub(super) fn params(&self, size: usize, seed: u64) -> SketchParams {
        // A multiple of 64, and below K.
        let wide = if self.half_wide { size / 128 * 64 } else { 0 };
        SketchParams { kind: self.kind, size, bits: self.bits, wide, seed }
    }
}
