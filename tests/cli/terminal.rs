//! Messages beside the data: colours, verbosity, and the version.
//!
//! Bug classes: escape sequences although colours are declined; a quiet run that prints messages, or hides an
//! error; an option that only some commands accept.

#[cfg(unix)]
use std::fs::{File, OpenOptions};
#[cfg(unix)]
use std::io::Read;

use super::dupflow::{Place, dupflow};

const FEED: &str = "{\"id\":\"a\",\"text\":\"one two three four\"}\n{\"id\":\"b\",\"text\":\"one two three \
    four\"}\nno event\n";

/// Runs the binary with standard output and error on a terminal, and returns what it prints.
#[cfg(unix)]
fn shown(place: &Place, arguments: &str, environment: &[(&str, &str)]) -> String {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal of its own");
    grantpt(&terminal).and_then(|()| unlockpt(&terminal)).expect("a terminal of its own");
    let name = ptsname(&terminal, Vec::new())
        .expect("a terminal of its own")
        .into_string()
        .expect("a terminal of its own");
    let side = OpenOptions::new().read(true).write(true).open(name).expect("a terminal of its own");
    let mut command = super::dupflow::command(arguments.split(' '));
    command
        .current_dir(place.path(""))
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        // Some libraries then assume a terminal with colours.
        .env("CI", "true")
        .env("TERM", "xterm");
    command
        .envs(environment.iter().copied())
        .stdout(side.try_clone().expect("a terminal of its own"))
        .stderr(side);
    let mut child = command.spawn().expect("a terminal of its own");
    // The command object holds the terminal open.
    drop(command);
    let mut shown = Vec::new();
    let mut buffer = [0; 4096];
    // Reading a terminal without a writer is an error.
    while let Ok(read @ 1..) =
        File::from(terminal.try_clone().expect("a terminal of its own")).read(&mut buffer)
    {
        shown.extend_from_slice(&buffer[..read]);
    }
    assert!(child.wait().expect("a terminal of its own").success());
    String::from_utf8(shown).expect("a terminal of its own")
}

/// Whether the text contains an escape sequence for colours.
#[cfg(unix)]
fn has_colours(shown: &str) -> bool {
    shown
        .split("\u{1b}[")
        .skip(1)
        .any(|after| after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').starts_with('m'))
}

#[cfg(unix)]
#[test]
fn colours_can_be_declined() {
    let place = Place::new();
    place.file("feed", FEED);
    for arguments in ["replay feed -o deltas", "--help"] {
        let plain = shown(&place, arguments, &[]);
        assert!(has_colours(&plain), "{arguments}: {plain:?}");
        for declined in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let shown = shown(&place, arguments, &[declined]);
            assert!(!shown.is_empty() && !has_colours(&shown), "{arguments}, {declined:?}: {shown:?}");
        }
    }
    let dumb = shown(&place, "replay feed -o deltas", &[("TERM", "dumb")]);
    assert!(!dumb.contains('\u{1b}'), "{dumb:?}");
    assert_eq!(shown(&place, "replay -q feed -o deltas", &[]), "", "neither a summary nor progress");
}

#[test]
fn quiet_prints_errors_only_and_verbose_logs_more() {
    let place = Place::new();
    place.file("feed", FEED);
    place.file(
        "local.toml",
        "[source]\ninputs = [\"feed\"]\n[sink]\npath = \"-\"\n[logging]\nlevel = \"info\"\n",
    );
    for command in ["replay feed -o deltas", "run -c local.toml"] {
        let [usual, quiet, verbose] =
            ["", " -q", " --verbose"].map(|how| place.run(&format!("{command}{how}")));
        assert_eq!((usual.code, quiet.code, verbose.code), (0, 0, 0), "{usual:?} {quiet:?} {verbose:?}");
        assert!(usual.err.contains(" INFO ") && usual.err.contains("\nread        "), "{usual:?}");
        assert_eq!(quiet.err, "", "{command}");
        assert!(verbose.err.contains("\nread        "), "{verbose:?}");
        assert!(verbose.err.contains("DEBUG ") && !usual.err.contains("DEBUG "), "{verbose:?}");
    }
    let failed = place.run("-q replay no-such-file");
    assert!(failed.code == 2 && failed.err.starts_with("error: cannot read \"no-such-file\""), "{failed:?}");
    let made = place.run("generate --documents 5 -o made -q");
    assert_eq!((made.code, made.err.as_str()), (0, ""));
    let both = place.run("replay -q -v feed");
    assert!(both.code == 2 && both.err.contains("--quiet") && both.err.contains("--verbose"), "{both:?}");
}

#[test]
fn the_version_names_commit_and_features() {
    let version = dupflow(["--version"]);
    let lines: Vec<_> = version.out.lines().collect();
    let [name, commit, features] = lines[..] else { panic!("{version:?}") };
    assert_eq!((version.code, name), (0, concat!("dupflow ", env!("CARGO_PKG_VERSION"))));
    let known = commit.strip_prefix("commit ").map(|id| id.len() >= 7 && !id.contains(' '));
    let says_why = commit.starts_with("a debug build, ") || commit == "built outside of a repository";
    assert!(known.unwrap_or(says_why), "{commit}");
    let built: Vec<_> = features.strip_prefix("features: ").unwrap().split(' ').collect();
    for (feature, is_in) in [
        ("kafka", cfg!(feature = "kafka")),
        ("parquet", cfg!(feature = "parquet")),
        ("postgres", cfg!(feature = "postgres")),
        ("object-store", cfg!(feature = "object-store")),
    ] {
        assert_eq!(built.contains(&feature), is_in, "{features}");
    }
}
