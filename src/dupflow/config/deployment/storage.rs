//! The tables `[dead_letter]`, `[state]` and `[spill]` of a deployment file: where bad records are written,
//! where documents are stored for a restart, and where rows are written that have no room in memory.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::monitor::MonitorConfig;
use super::outputs::TopicPlace;
use super::values::{path, time, topic_name};
use crate::config::settings::{FileSettings, ProblemKind, plain_number, size};
use dupflow_core::doc::retention;
use dupflow_run::missing_feature;

/// The most that `state.commit_every` may be, inclusive.
const MAX_INTERVAL: Duration = Duration::from_secs(3600);

/// The default of `state.commit_every`.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(5);

/// Where bad records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterConfig {
    /// In a file.
    File(PathBuf),
    /// In a topic, in the transaction of their epoch.
    Topic(String),
}

/// Where documents are kept for a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateConfig {
    /// A path or a URL.
    pub location: String,
    /// The shortest time between two commits of the state: at most an hour, default 5 s.
    pub commit_every: Duration,
    /// How long the past of pairs and clusters is kept; `None` = in memory only.
    pub history: Option<Duration>,
}

/// How much memory a process of a run may take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryBudget {
    /// This many bytes, at least [`MemoryBudget::LEAST`].
    Bytes(u64),
    /// This share of the memory of the machine, or of its control group if that has less; above 0, at most 1.
    Share(f64),
}

impl MemoryBudget {
    /// The smallest budget in bytes, inclusive: the program with its buffers takes about 40 MB.
    pub const LEAST: u64 = 64 << 20;

    /// The page caches take this share of a budget: 1 / `CACHE_SHARE`. The rest is for what stays in memory.
    pub const CACHE_SHARE: u64 = 4;

    /// What a written budget looks like.
    pub const EXPECTED: &str = "a size from \"64MiB\" on, as in \"8GiB\", \"500MB\" or 500000000, or a \
        share of the machine's memory, as in \"60%\"";
}

impl FromStr for MemoryBudget {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let share = || {
            let percent = plain_number(written.strip_suffix('%')?)?;
            (percent > 0.0 && percent <= 100.0).then_some(Self::Share(percent / 100.0))
        };
        let size = || size(written).filter(|bytes| *bytes >= Self::LEAST).map(Self::Bytes);
        share().or_else(size).ok_or_else(|| format!("expected {}", Self::EXPECTED))
    }
}

/// A memory budget, and where rows are written that have no room in it.
#[derive(Clone, Debug, PartialEq)]
pub struct SpillConfig {
    /// The budget of each process.
    pub memory: MemoryBudget,
    /// A folder; `None`: that of the state, else the one for temporary files.
    pub folder: Option<PathBuf>,
}

/// Reads the key `memory` and the table `[spill]`.
pub(super) fn spill(settings: &mut FileSettings) -> Option<SpillConfig> {
    let memory = settings.read("memory", |v| match v.text() {
        Some("") => Some(None),
        Some(written) => written.parse().ok().map(Some),
        None => v.bytes(MemoryBudget::LEAST..=1 << 53).map(MemoryBudget::Bytes).map(Some),
    });
    let folder = settings.read("spill.path", path).filter(|path| !path.as_os_str().is_empty());
    let Some(memory) = memory.flatten() else {
        if folder.is_some() && settings.sound(&["memory"]) {
            let what = "nothing is spilled without a budget: it needs memory";
            settings.problem("spill.path", ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    };
    Some(SpillConfig { memory, folder })
}

/// Reads the table `[dead_letter]`: where bad records are kept.
pub(super) fn dead_letter(settings: &mut FileSettings, outputs: &[&TopicPlace]) -> Option<DeadLetterConfig> {
    let path = settings.read("dead_letter.path", path).filter(|path| !path.as_os_str().is_empty());
    // Empty text is a valid value, and means that no topic is set.
    let topic = settings.read("dead_letter.topic", |v| match v.text()? {
        "" => Some(None),
        _ => topic_name(v).map(Some),
    });
    match (path, topic.flatten()) {
        (Some(_), Some(_)) => {
            let what = "bad records are kept in one place: dead_letter.path is set too";
            settings.problem("dead_letter.topic", ProblemKind::Contradiction(what.to_owned()));
            None
        }
        (None, Some(topic)) => {
            if outputs.iter().any(|output| output.has(&topic)) {
                let what = "bad records need a topic of their own";
                settings.problem("dead_letter.topic", ProblemKind::Contradiction(what.to_owned()));
            }
            Some(DeadLetterConfig::Topic(topic))
        }
        (path, None) => path.map(DeadLetterConfig::File),
    }
}

/// Reads the table `[state]`: where documents are kept.
pub(super) fn state(settings: &mut FileSettings) -> Option<StateConfig> {
    let location = settings.read("state.path", |v| v.text().map(str::to_owned));
    let every = time(settings, "state.commit_every", MAX_INTERVAL);
    let history = settings.read("state.history", |v| match v.text()? {
        "" => Some(None),
        age => retention::age(age).map(Some),
    });
    let history = history.flatten();
    let Some(location) = location.filter(|location| !location.is_empty()) else {
        if history.is_some() {
            let what = "the history is stored beside the documents: it needs state.path";
            settings.problem("state.history", ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    };
    let is_remote = location.contains("://") && !location.starts_with("file://");
    if is_remote && cfg!(not(feature = "object-store")) {
        settings.problem(
            "state.path",
            ProblemKind::Contradiction(missing_feature("object stores", "object-store")),
        );
    }
    Some(StateConfig { location, commit_every: every.unwrap_or(DEFAULT_INTERVAL), history })
}

/// Reports a history of a run without a monitor, or of one that holds no pairs: only it records the history.
pub(super) fn check_history(
    settings: &mut FileSettings,
    state: Option<&StateConfig>,
    monitor: Option<&MonitorConfig>,
) {
    if state.is_none_or(|state| state.history.is_none()) {
        return;
    }
    let what = match monitor {
        None => "the history is that of the monitor: it needs monitor.listen",
        Some(monitor) if !monitor.pairs => "the history is that of pairs in memory: it needs monitor.pairs",
        Some(_) => return,
    };
    if settings.sound(&["monitor.listen", "monitor.pairs"]) {
        settings.problem("state.history", ProblemKind::Contradiction(what.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_sizes_and_shares() {
        for (written, bytes) in
            [("64MiB", 64 << 20), ("150000000", 150_000_000), ("1.5TB", 1_500_000_000_000)]
        {
            assert_eq!(written.parse(), Ok(MemoryBudget::Bytes(bytes)), "{written}");
        }
        assert_eq!("60%".parse(), Ok(MemoryBudget::Share(0.6)));
        assert_eq!("100%".parse(), Ok(MemoryBudget::Share(1.0)));
        for wrong in ["", "8", "8G", "63MiB", "67108863", "0%", "101%", "%", "NaN%"] {
            assert!(wrong.parse::<MemoryBudget>().unwrap_err().starts_with("expected a size"), "{wrong}");
        }
    }
}
