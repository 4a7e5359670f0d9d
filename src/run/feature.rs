//! The message for what a build lacks.

/// Why a build cannot do what is asked: it lacks a feature. `what` completes "built without".
pub fn missing_feature(what: &str, feature: &str) -> String {
    format!(
        "this dupflow was built without {what}: build it with the feature `{feature}` \
         (cargo install --path . --features {feature}; for Python: pip install ./python \
         --config-settings build-args='--features {feature}')"
    )
}
