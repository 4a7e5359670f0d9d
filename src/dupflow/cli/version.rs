//! What this program is: its version, the commit it was built from, and the features that are in it.

use std::sync::LazyLock;

/// Features that change what the program can do, and whether they are in.
const FEATURES: [(&str, bool); 11] = [
    ("article", cfg!(feature = "article")),
    ("failpoints", cfg!(feature = "failpoints")),
    ("kafka", cfg!(feature = "kafka")),
    ("lab", cfg!(feature = "lab")),
    ("monitor", cfg!(feature = "monitor")),
    ("object-store", cfg!(feature = "object-store")),
    ("parquet", cfg!(feature = "parquet")),
    ("postgres", cfg!(feature = "postgres")),
    ("sqlite", cfg!(feature = "sqlite")),
    ("tls", cfg!(feature = "tls")),
    ("abomonation", cfg!(feature = "abomonation")),
];

/// What `--version` prints behind the name.
pub(super) static LONG: LazyLock<String> = LazyLock::new(|| {
    let commit = match option_env!("DUPFLOW_COMMIT") {
        Some(commit) => format!("commit {commit}"),
        None if cfg!(debug_assertions) => "a debug build, which does not know its commit".to_owned(),
        None => "built outside of a repository".to_owned(),
    };
    let features: Vec<_> = FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name).collect();
    let features = if features.is_empty() { "none".to_owned() } else { features.join(" ") };
    format!("{}\n{commit}\nfeatures: {features}", env!("CARGO_PKG_VERSION"))
});
