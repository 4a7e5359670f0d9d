//! Runs the binary.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A temporary folder in which the binary runs.
pub(crate) struct Place(TempDir);

/// The result of one call of the binary.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The binary with arguments and empty standard input, without environment variables that would change its
/// output.
pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// What a call has ended with.
pub(crate) fn ended(output: std::process::Output) -> Ended {
    let text = |bytes| String::from_utf8(bytes).expect("output is text");
    let code = output.status.code().expect("it ended by itself");
    Ended { code, out: text(output.stdout), err: text(output.stderr) }
}

/// Runs the binary to its end.
pub(crate) fn dupflow<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ended {
    ended(command(arguments).output().expect("the binary runs"))
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder for the test"))
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.0.path().join(name)
    }

    /// Creates a file, and the folders above it.
    pub(crate) fn file(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        let folder = path.parent().expect("it is in this place");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, content))
            .expect("can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Runs the binary here, its arguments separated by spaces.
    pub(crate) fn run(&self, arguments: &str) -> Ended {
        self.run_with(arguments, |_| ())
    }

    /// Runs the binary here; `input` writes to its standard input.
    pub(crate) fn run_with(&self, arguments: &str, input: impl FnOnce(&mut dyn Write) + Send) -> Ended {
        let mut command = command(arguments.split(' '));
        command
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut pipe = child.stdin.take().expect("it is piped");
        // A second thread writes the input, since either pipe may fill up.
        std::thread::scope(|scope| {
            scope.spawn(move || input(&mut pipe));
            ended(child.wait_with_output().expect("the binary ends"))
        })
    }

    /// Runs `replay` here, which must succeed, and reads its stats.
    pub(crate) fn replay(&self, arguments: &str) -> (Ended, Value) {
        let run = self.run(&format!("replay --stats stats.json {arguments}"));
        assert_eq!(run.code, 0, "{run:?}");
        let stats = serde_json::from_str(&self.read("stats.json")).expect("the stats are JSON");
        (run, stats)
    }
}
