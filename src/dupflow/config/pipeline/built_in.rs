//! The text of the built-in pipelines.

/// The built-in pipelines by name; the first one is the default.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("minhash", include_str!("../../../../pipelines/minhash.toml")),
    ("exact", include_str!("../../../../pipelines/exact.toml")),
    ("simhash", include_str!("../../../../pipelines/simhash.toml")),
    ("sectional", include_str!("../../../../pipelines/sectional.toml")),
    ("weighted", include_str!("../../../../pipelines/weighted.toml")),
    ("onebit", include_str!("../../../../pipelines/onebit.toml")),
    ("assured", include_str!("../../../../pipelines/assured.toml")),
    ("contained", include_str!("../../../../pipelines/contained.toml")),
    ("decontaminate", include_str!("../../../../pipelines/decontaminate.toml")),
    ("fingerprint", include_str!("../../../../pipelines/fingerprint.toml")),
    ("paper", include_str!("../../../../pipelines/paper.toml")),
    ("tour", include_str!("../../../../pipelines/tour.toml")),
];
