//! Documents that clients post: a journal of their lines, which is read as a file that grows.

use super::files::{CANONICAL_KEY, EPOCH_KEY, FilesSource, GONE_KEY, SOURCE_LAYOUT, SURROGATES_KEY, gone};
use super::layout::layout;
use super::place::{SourceConfig, SourceKind};
use crate::config::deployment::monitor::without_monitor;
use crate::config::deployment::values::path;
use crate::config::settings::{DeploymentKey, FileSettings, ProblemKind};
use dupflow_connectors::formats::{FileFormat, InputLayout};
use dupflow_connectors::inputs::FollowedTables;
use dupflow_connectors::intake::{EpochRule, Speed};

pub(super) const HTTP: SourceKind = SourceKind {
    name: "http",
    keys: &[&KEY_NAMES],
    missing: || (!cfg!(feature = "monitor")).then(without_monitor),
    read: |settings, _| SourceConfig::new(read(settings)),
};

/// The keys of this source alone.
pub(in crate::config::deployment) const KEYS: [DeploymentKey; 2] = [
    DeploymentKey { name: "source.journal", expected: "a path" },
    DeploymentKey {
        name: "source.waiting",
        expected: "a size from 1024 to 2^40 bytes, as in 67108864 or \"64MiB\"",
    },
];
const KEY_NAMES: [&str; 11] = [
    JOURNAL_KEY,
    WAITING_KEY,
    EPOCH_KEY,
    GONE_KEY,
    CANONICAL_KEY,
    "source.text_path",
    "source.id_path",
    "source.ts_path",
    "source.op_path",
    "source.max_bad",
    SURROGATES_KEY,
];
const JOURNAL_KEY: &str = "source.journal";
const WAITING_KEY: &str = "source.waiting";

/// When an epoch ends: so long a client waits for others.
const EPOCH: &str = "events:1000,every:1ms";

fn read(settings: &mut FileSettings) -> FilesSource {
    let journal = settings.read(JOURNAL_KEY, path).filter(|path| !path.as_os_str().is_empty());
    if journal.is_none() && settings.sound(&["source.kind", JOURNAL_KEY]) {
        settings.missing(JOURNAL_KEY);
    }
    let waiting = settings.read(WAITING_KEY, |value| value.bytes(1024..=1 << 40)).unwrap_or(64 << 20);
    let epoch = settings.read(EPOCH_KEY, |v| v.text()?.parse().ok());
    let epoch = epoch.unwrap_or_else(|| EPOCH.parse().unwrap_or(EpochRule::LIVE));
    if epoch.interval().is_none() {
        let what =
            format!("a client waits until its epoch ends: say after which time too, as {EPOCH:?} does");
        settings.problem(EPOCH_KEY, ProblemKind::Contradiction(what));
    }
    let lines = Some(FileFormat::usual());
    FilesSource {
        inputs: journal.into_iter().collect(),
        files_from: None,
        layout: InputLayout { format: lines, needs_ids: true, ..layout(settings, &SOURCE_LAYOUT) },
        epoch,
        speed: Speed::Max,
        follow: true,
        tables: FollowedTables::default(),
        gone: gone(settings),
        posted: Some(waiting),
    }
}
