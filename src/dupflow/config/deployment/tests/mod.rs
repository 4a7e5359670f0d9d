//! Deployment files: accepted values, and reported problems.

mod kafka;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod tables;
mod variables;

use crate::config::Deployment;

fn parse(text: &str) -> Result<Deployment, String> {
    let environment = |name: &str| (name == "PASSWORD").then(|| "hunter2".to_owned());
    Deployment::parse("d.toml", text, &environment).map_err(|error| error.to_string())
}

/// The problems of a file, each without its file and line.
fn problems(text: &str) -> Vec<String> {
    let reported = parse(text).unwrap_err();
    reported.lines().map(|line| line.split_once(": ").unwrap().1.to_owned()).collect()
}
