//! Reads the table `[sketch]`, and the second sketch of `[blocking]`, into parameters.

use super::keys;
use crate::config::settings::{FileSettings, ProblemKind, without_effect};
use dupflow_core::sketch::{SketchKind, SketchParams};

/// The keys that decide the size and layout of a sketch.
pub(super) const SHAPE: &[&str] =
    &["sketch.kind", "sketch.size", "sketch.bits", "sketch.run", "sketch.scale", "sketch.least"];

/// Reads the table `[sketch]`.
pub(super) fn sketch(settings: &mut FileSettings) -> SketchParams {
    let kind = settings.get(&keys::KIND).unwrap_or(SketchKind::Fss);
    let own = match kind {
        SketchKind::Connected { .. } => &["sketch.run"][..],
        SketchKind::Sectional { .. } => &["sketch.sections", "sketch.mode", "sketch.base"],
        SketchKind::Rejection { .. } => &["sketch.bound"],
        SketchKind::Scaled { .. } => &["sketch.scale", "sketch.least"],
        SketchKind::SimHash { .. } => &["sketch.ties"],
        _ => &[],
    };
    let others = [
        "sketch.run",
        "sketch.sections",
        "sketch.mode",
        "sketch.base",
        "sketch.bound",
        "sketch.scale",
        "sketch.least",
        "sketch.ties",
    ];
    let mut useless: Vec<_> = others.into_iter().filter(|key| !own.contains(key)).collect();
    useless
        .extend(["sketch.size", "sketch.bits"].iter().filter(|_| matches!(kind, SketchKind::Scaled { .. })));
    useless.extend(matches!(kind, SketchKind::BottomK).then_some("sketch.bits"));
    without_effect(settings, "sketch.kind", kind.name(), &useless);

    let default = match kind {
        SketchKind::SimHash { .. } => one_bit(settings, kind, &[32, 64, 128], "32, 64 or 128 places"),
        SketchKind::Fingerprint => {
            one_bit(settings, kind, &[64, 128, 192, 256], "64, 128, 192 or 256 places")
        }
        _ => (448, 4.0),
    };
    let size = settings.get(&keys::SIZE).unwrap_or(default.0);
    let (bits, wide) = widths(settings.get(&keys::BITS).unwrap_or(default.1), size);
    let kind = match kind {
        SketchKind::Connected { run } => {
            SketchKind::Connected { run: settings.get(&keys::RUN).unwrap_or(run) }
        }
        SketchKind::Sectional { sections, mode, base } => SketchKind::Sectional {
            sections: settings.get(&keys::SECTIONS).unwrap_or(sections),
            mode: settings.get(&keys::MODE).unwrap_or(mode),
            base: settings.get(&keys::BASE).unwrap_or(base),
        },
        SketchKind::Rejection { bound } => {
            SketchKind::Rejection { bound: settings.get(&keys::BOUND).unwrap_or(bound) }
        }
        SketchKind::Scaled { scale, least } => SketchKind::Scaled {
            scale: settings.get(&keys::SCALE).unwrap_or(scale),
            least: settings.get(&keys::LEAST).unwrap_or(least),
        },
        SketchKind::SimHash { ties } => {
            SketchKind::SimHash { ties: settings.get(&keys::TIES).unwrap_or(ties) }
        }
        kind => kind,
    };
    let seed = settings.get(&keys::SEED).unwrap_or(0);
    let sketch = SketchParams { kind, size, bits, wide, seed };
    misfit(settings, &sketch);
    sketch
}

/// Splits an average number of bits into the bits of most components (a power of two) and the number of
/// components with twice as many. The average is as near to `bits` as whole words of components allow.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 64, and at most the size")]
fn widths(bits: f64, size: usize) -> (usize, usize) {
    let narrow = 1 << bits.log2().floor() as usize;
    let share = bits / narrow as f64 - 1.0;
    if share <= 0.0 {
        return (narrow, 0);
    }
    let words = (share * size as f64 / 64.0).round() as usize;
    (narrow, 64 * words.clamp(1, (size - 1).max(64) / 64))
}

/// Reports settings of the sketch that do not fit together.
fn misfit(settings: &mut FileSettings, sketch: &SketchParams) {
    let SketchParams { kind, size, bits, wide, .. } = *sketch;
    let mut contradiction = |key, what| settings.problem(key, ProblemKind::Contradiction(what));
    let name = kind.name();
    match kind {
        SketchKind::Odd | SketchKind::Connected { .. } | SketchKind::OphOriginal if wide > 0 => {
            contradiction("sketch.bits", format!("\"{name}\" takes 1, 2, 4, 8, 16, 32 or 64"));
        }
        _ if wide >= size => {
            contradiction("sketch.bits", "bits between two powers of two take a size above 64".to_owned());
        }
        SketchKind::Odd if size * bits > 32_768 => {
            let all = size * bits;
            contradiction(
                "sketch.size",
                format!("an odd sketch has size * bits = {all} bits, more than 32768"),
            );
        }
        SketchKind::Connected { run } if !size.is_multiple_of(run) => {
            contradiction("sketch.run", format!("size = {size} is no multiple of run = {run}"));
        }
        SketchKind::Connected { run } if run * bits > 64 => {
            contradiction("sketch.run", format!("run = {run} times bits = {bits} is more than 64"));
        }
        _ => {}
    }
}

/// The sketch that only the blocks are made of; `None` if `blocking.sketch` is not set.
pub(super) fn companion(settings: &mut FileSettings, seed: u64) -> Option<SketchParams> {
    let kind = settings.get(&keys::BLOCK_SKETCH);
    let (size, bits) = (settings.get(&keys::BLOCK_SIZE), settings.get(&keys::BLOCK_BITS));
    let Some(kind) = kind else {
        for key in ["blocking.size", "blocking.bits"] {
            if settings.is_set(key) {
                settings.problem(
                    key,
                    ProblemKind::Contradiction("has no effect without blocking.sketch".to_owned()),
                );
            }
        }
        return None;
    };
    // Another seed than the sketch's own, so that the filter sees components that the blocks did not select
    // by.
    Some(SketchParams { kind, size: size.unwrap_or(256), bits: bits.unwrap_or(4), wide: 0, seed: seed + 1 })
}

/// The size and bits of a kind with places of one bit; reports values that it cannot have.
fn one_bit(
    settings: &mut FileSettings,
    kind: SketchKind,
    sizes: &'static [usize],
    are: &'static str,
) -> (usize, f64) {
    let only = [("sketch.size", sizes, are), ("sketch.bits", &[1], "places of 1 bit")];
    for (key, values, has) in only {
        // A value that the file sets for another kind does not apply.
        if settings.applies_with(key, "sketch.kind") {
            match settings.read(key, |v| v.integer(1..=32_768_usize)) {
                Some(value) if values.contains(&value) => continue,
                Some(value) => {
                    let what = format!("{} has {has}, not {value}", kind.name());
                    settings.problem(key, ProblemKind::Contradiction(what));
                }
                None => {}
            }
        }
        settings.forget(key);
    }
    (64, 1.0)
}
