//! Pipeline files: rejected settings with their messages, the built-in pipelines, and the documented keys.

mod built_in;
mod documented;
mod overrides;
mod rejected;
mod sketches;
mod text;

use std::path::Path;

use super::Plan;
use crate::config::settings::ConfigError;

const MINHASH: &str = include_str!("../../../../../pipelines/minhash.toml");

fn plan(text: &str, overrides: &[&str]) -> Result<Plan, ConfigError> {
    let overrides: Vec<String> = overrides.iter().map(|&typed| typed.to_owned()).collect();
    Plan::parse("p.toml", text, Path::new(""), &overrides)
}

/// The problems of a pipeline, one per line.
fn problems(text: &str, overrides: &[&str]) -> Vec<String> {
    match plan(text, overrides) {
        Ok(plan) => panic!("accepted: {plan:?}"),
        Err(error) => error.to_string().lines().map(str::to_owned).collect(),
    }
}
