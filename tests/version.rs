//! The build script: the commit that it names, and the files that it watches.
//!
//! Bug classes: naming the commit of an enclosing repository; watching a file that does not exist, so that
//! every build starts again; a packed branch, which has no file of its own.

use std::path::Path;
use std::process::Command;

#[expect(dead_code, clippy::print_stdout, reason = "what it prints is for cargo")]
#[path = "../build.rs"]
mod build;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.arg("-C").arg(folder).args(["-c", "user.name=t", "-c", "user.email=t@example.org"]).args(arguments);
    let said = git.output().expect("git runs");
    assert!(said.status.success(), "{arguments:?}: {said:?}");
    String::from_utf8(said.stdout).expect("its output is text").trim().to_owned()
}

#[test]
fn commit_of_the_package_only() {
    if Command::new("git").arg("--version").output().is_err() {
        println!("SKIPPED: there is no git");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    assert_eq!(build::commit(folder), None, "no repository");
    git(folder, &["init", "--quiet", "--initial-branch=trunk"]);
    assert_eq!(build::commit(folder), None, "no commit");
    let commit = |what: &str| {
        git(folder, &["commit", "--quiet", "--allow-empty", "--message", what]);
        git(folder, &["rev-parse", "HEAD"])
    };
    let first = commit("first");
    let (named, watched) = build::commit(folder).unwrap();
    assert!(named.len() == 12 && first.starts_with(&named), "{named} {first}");
    let file = |name: &str| folder.join(".git").join(name);
    assert_eq!(watched, [file("HEAD"), file("refs/heads/trunk")]);
    let before = watched.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    let second = commit("second");
    let after = watched.iter().map(|path| std::fs::read(path).unwrap()).collect::<Vec<_>>();
    assert!(before != after && second.starts_with(&build::commit(folder).unwrap().0));
    git(folder, &["pack-refs", "--all"]);
    let (packed, watched_then) = build::commit(folder).unwrap();
    assert!(second.starts_with(&packed), "{packed} {second}");
    assert_eq!(watched_then, [file("HEAD"), file("packed-refs")]);
    git(folder, &["checkout", "--quiet", "--detach"]);
    assert!(build::commit(folder).unwrap().1.iter().all(|path| path.exists()));
    std::fs::create_dir(folder.join("vendored")).unwrap();
    assert_eq!(build::commit(&folder.join("vendored")), None, "a repository of something else");
}
