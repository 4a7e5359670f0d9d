//! The places, and which of them is meant.

use std::path::Path;

use super::files::{self, FilePlace};
use super::place::{OutputPlace, PlaceKind};
use super::{tables, topic};
use crate::config::settings::{FileSettings, ProblemKind, without_effect};

/// The places, each in a file of its own; the first one is the default.
const PLACES: [PlaceKind; 4] = [files::LINES, topic::KAFKA, tables::SQLITE, tables::POSTGRES];

const KIND: &str = "sink.kind";

impl OutputPlace {
    /// Standard output.
    pub fn stdout() -> Self {
        Self::new(FilePlace::default())
    }

    /// Reads the table `[sink]`.
    pub(in crate::config::deployment::outputs) fn read(settings: &mut FileSettings) -> Self {
        let kinds: Vec<_> = PLACES.iter().enumerate().map(|(at, kind)| (kind.name, at)).collect();
        let chosen = settings.choose(KIND, &kinds, &[]).unwrap_or(0);
        let kind = &PLACES[chosen];
        if let Some(what) = (kind.missing)() {
            settings.problem(KIND, ProblemKind::Contradiction(what));
        }
        if chosen > 0 || settings.sound(&[KIND]) {
            let mut others: Vec<_> = PLACES.iter().flat_map(|other| other.keys).copied().collect();
            others.retain(|key| !kind.keys.contains(key));
            others.sort_unstable();
            others.dedup();
            without_effect(settings, KIND, kind.name, &others);
        }
        (kind.read)(settings)
    }

    /// The place that is typed: a file, "-", "sqlite:FILE", "postgres://…" or "kafka:TOPIC".
    ///
    /// # Errors
    /// Why there is no such place.
    pub(in crate::config::deployment::outputs) fn typed(typed: &Path) -> Result<Self, String> {
        let found = PLACES.iter().find_map(|kind| (kind.typed)(typed));
        found.unwrap_or_else(|| Ok(Self::new(FilePlace::typed(typed))))
    }
}
