//! What `--version` prints.

use std::sync::LazyLock;

use crate::program;

/// What `--version` prints after the name.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = match program::COMMIT {
        Some(commit) => format!("commit {commit}"),
        None if cfg!(debug_assertions) => "a debug build, which does not know its commit".to_owned(),
        None => "built outside of a repository".to_owned(),
    };
    let features: Vec<_> = program::features().collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    format!("{}\n{commit}\nfeatures: {features}", program::VERSION)
});
