//! The printed numbers of 004.

/// k of table 3.
pub(super) const SIZES: [usize; 6] = [50, 100, 200, 300, 400, 500];

/// s; 1 is MinHash.
pub(super) const SECTIONS: [usize; 5] = [1, 2, 3, 4, 5];

/// Table 3: the mean square error of MinHash and of s = 2, 3, 4, 5, by k.
pub(super) const ERRORS: [[f64; 6]; 5] = [
    [3.908e-2, 3.848e-2, 3.888e-2, 3.802e-2, 3.846e-2, 3.821e-2],
    [6.006e-3, 5.290e-3, 4.886e-3, 3.047e-2, 3.052e-2, 3.051e-2],
    [1.307e-2, 1.655e-2, 1.612e-2, 1.604e-2, 1.600e-2, 3.629e-2],
    [2.029e-2, 4.298e-2, 4.277e-2, 2.281e-2, 2.274e-2, 4.282e-2],
    [2.725e-2, 4.962e-2, 4.918e-2, 4.889e-2, 4.885e-2, 4.883e-2],
];

/// tau of table 4.
pub(super) const THRESHOLDS: [f64; 5] = [0.5, 0.6, 0.7, 0.8, 0.9];

/// A sketch of table 4.
#[derive(Clone, Copy, Debug)]
pub(super) struct PrintedQuality {
    pub(super) name: &'static str,
    /// In percent, by tau.
    pub(super) precision: [f64; 5],
    /// In percent, by tau.
    pub(super) recall: [f64; 5],
}

impl PrintedQuality {
    /// F in percent, from the printed precision and recall; the source shows it only as a figure.
    pub(super) fn f(&self, tau: usize) -> f64 {
        let (p, r) = (self.precision[tau], self.recall[tau]);
        2.0 * p * r / (p + r)
    }
}

/// Table 4.
pub(super) const JUDGED: [PrintedQuality; 6] = [
    PrintedQuality {
        name: "MinHash",
        precision: [99.40, 99.39, 99.40, 99.36, 99.33],
        recall: [53.54, 47.79, 43.01, 37.10, 29.27],
    },
    PrintedQuality {
        name: "BitHash",
        precision: [99.11, 99.09, 99.61, 99.66, 99.59],
        recall: [50.86, 45.95, 47.31, 39.93, 31.5],
    },
    PrintedQuality {
        name: "s = 2",
        precision: [99.41, 99.39, 99.43, 99.37, 99.34],
        recall: [77.43, 71.42, 65.89, 59.43, 52.42],
    },
    PrintedQuality {
        name: "s = 3",
        precision: [99.82, 99.95, 99.95, 99.95, 99.96],
        recall: [56.45, 49.45, 43.01, 48.14, 32.13],
    },
    PrintedQuality {
        name: "s = 4",
        precision: [99.39, 99.41, 99.38, 99.36, 99.36],
        recall: [49.85, 45.18, 40.74, 34.67, 27.17],
    },
    PrintedQuality {
        name: "s = 5",
        precision: [99.42, 99.39, 99.39, 99.35, 99.46],
        recall: [46.99, 43.12, 38.18, 32.97, 25.86],
    },
];
