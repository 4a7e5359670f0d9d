//! The places.

use std::path::Path;

use super::files::{self, FilePlace};
use super::place::{OutputPlace, PlaceKind};
use super::{nowhere, tables, topic};
use crate::config::deployment::kind::Kind;
use crate::config::settings::FileSettings;

/// The places, each in a file of its own; the first one is the default.
static PLACES: [PlaceKind; 5] = [files::LINES, topic::KAFKA, tables::SQLITE, tables::POSTGRES, nowhere::NULL];

impl OutputPlace {
    /// Standard output.
    pub fn stdout() -> Self {
        Self::new(FilePlace::default())
    }

    /// Reads the table `[sink]`.
    pub(in crate::config::deployment::outputs) fn read(settings: &mut FileSettings) -> Self {
        (Kind::chosen(settings, "sink.kind", &PLACES).read.table)(settings)
    }

    /// The place that is typed: a file, "-", "sqlite:FILE", "postgres://…", "kafka:TOPIC" or "null:".
    ///
    /// # Errors
    /// Why there is no such place.
    pub(in crate::config::deployment::outputs) fn typed(typed: &Path) -> Result<Self, String> {
        let found = PLACES.iter().find_map(|kind| (kind.read.typed)(typed));
        found.unwrap_or_else(|| Ok(Self::new(FilePlace::typed(typed))))
    }
}
