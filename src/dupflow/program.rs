//! What this program is: its version, the commit it was built from, and the features that are in it.

use std::sync::LazyLock;

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit that a release was built from; `None` for other builds.
pub const COMMIT: Option<&str> = option_env!("DUPFLOW_COMMIT");

/// The features that change what the program can do, and whether this build has them.
const FEATURES: [(&str, bool); 14] = [
    ("arrow", cfg!(feature = "arrow")),
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
    ("views", cfg!(feature = "views")),
    ("webhook", cfg!(feature = "webhook")),
    ("abomonation", cfg!(feature = "abomonation")),
];

/// The features that are in this build.
pub fn features() -> impl Iterator<Item = &'static str> {
    FEATURES.iter().filter(|(_, is_in)| *is_in).map(|(name, _)| *name)
}

/// What `--version` prints after the name.
pub static LONG_VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = match COMMIT {
        Some(commit) => format!("commit {commit}"),
        None if cfg!(debug_assertions) => "a debug build, which does not know its commit".to_owned(),
        None => "built outside of a repository".to_owned(),
    };
    let all: Vec<_> = features().collect();
    let all = if all.is_empty() { "none".to_owned() } else { all.join(" ") };
    format!("{VERSION}\n{commit}\nfeatures: {all}")
});

#[cfg(test)]
mod tests {
    use super::*;

    fn features_of(package: &str) -> Vec<String> {
        let package: toml::Table = package.parse().unwrap();
        let mut names: Vec<_> = package["features"].as_table().unwrap().keys().cloned().collect();
        names.sort_unstable();
        names
    }

    /// A message says how to build a program and a wheel with a feature that is missing.
    #[test]
    fn features_are_those_of_the_packages() {
        let mut known = features_of(include_str!("../../Cargo.toml"));
        known.retain(|name| !["default", "full"].contains(&name.as_str()));
        let mut listed: Vec<&str> = FEATURES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(listed, known);
        known.retain(|name| !["abomonation", "failpoints", "tls"].contains(&name.as_str()));
        assert_eq!(features_of(include_str!("../../python/Cargo.toml")), known);
    }
}
