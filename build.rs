//! Names the commit that a release is built from, for `dupflow --version`.
//!
//! `DUPFLOW_COMMIT` of the environment is taken as it is, else git is asked, if the package is a repository
//! of its own. Other builds do not ask: each commit would compile all of them again.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUPFLOW_COMMIT");
    let is_release = std::env::var("PROFILE").is_ok_and(|profile| profile == "release");
    if std::env::var_os("DUPFLOW_COMMIT").is_some() || !is_release {
        return;
    }
    let Some((commit, files)) = commit(Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    println!("cargo::rustc-env=DUPFLOW_COMMIT={commit}");
    files.iter().for_each(|file| println!("cargo::rerun-if-changed={}", file.display()));
}

/// The commit of the repository that begins in this folder, and the files that say which it is.
pub(crate) fn commit(folder: &Path) -> Option<(String, Vec<PathBuf>)> {
    let git = |arguments: &[&str]| {
        let said = Command::new("git").arg("-C").arg(folder).args(arguments).output().ok()?;
        let said = said.status.success().then(|| String::from_utf8(said.stdout))?.ok()?;
        Some(said.trim().to_owned())
    };
    // In a repository of something else, as the sources of a package may be, it is not the commit of this.
    if !git(&["rev-parse", "--show-prefix"])?.is_empty() {
        return None;
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    let file = |name: &str| git(&["rev-parse", "--git-path", name]).map(|path| folder.join(path));
    // A file that is not there would be a change each time. A branch that is packed stands among the others.
    let is_there = |path: &PathBuf| path.exists();
    let reference = branch.and_then(|branch| file(&branch)).filter(is_there).or_else(|| file("packed-refs"));
    Some((commit, file("HEAD").into_iter().chain(reference).filter(is_there).collect()))
}
