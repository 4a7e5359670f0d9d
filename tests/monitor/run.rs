//! The program with its monitor, as a process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::client::BOUND;

/// The folder in which the program runs.
pub(crate) struct Place(tempfile::TempDir);

/// A process of the program.
pub(crate) struct Process {
    child: Child,
    lines: Receiver<String>,
    pub(crate) address: SocketAddr,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn done(&self, words: &str) -> (Option<i32>, String) {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_dupflow")));
        let ended = command.args(words.split_whitespace()).output().unwrap();
        (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
    }

    /// Starts the program with a monitor, and waits until it listens.
    pub(crate) fn start(&self, words: &str) -> Process {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_dupflow")));
        command.args(words.split_whitespace());
        Process::new(command)
    }

    /// The same, with the name of a failpoint; `None` if it has ended before it listens.
    pub(crate) fn start_at(&self, words: &str, failpoint: &str) -> Option<Process> {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_dupflow")));
        command.args(words.split_whitespace()).env("DUPFLOW_FAILPOINT", failpoint);
        Process::begin(command).ok()
    }

    /// The same, with a limit of open files.
    pub(crate) fn start_with_files(&self, words: &str, files: usize) -> Process {
        let mut command = self.command(Path::new("/bin/sh"));
        let program = env!("CARGO_BIN_EXE_dupflow");
        command.args(["-c", &format!("ulimit -n {files}; exec '{program}' {words}")]);
        Process::new(command)
    }
}

impl Process {
    fn new(command: Command) -> Self {
        Self::begin(command).unwrap_or_else(|log| panic!("no monitor listens:\n{log}"))
    }

    /// Waits until it listens; the log of one that ends before.
    fn begin(mut command: Command) -> Result<Self, String> {
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (tell, lines) = channel();
        thread::spawn(move || {
            // The receiver is dropped when the test ends.
            errors.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line)));
        });
        let mut log = String::new();
        let address = loop {
            let Ok(line) = lines.recv_timeout(BOUND) else {
                drop(child.kill());
                drop(child.wait());
                return Err(log);
            };
            if let Some((_, address)) = line.split_once("monitor listens address=") {
                break address.trim().parse().unwrap();
            }
            log += &format!("{line}\n");
        };
        Ok(Self { child, lines, address })
    }

    /// Waits for a line of its log.
    pub(crate) fn wait_for(&self, what: &str) {
        while !self.lines.recv_timeout(BOUND).expect("it says so before the bound").contains(what) {}
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Kills the process, as a crash.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Ends the process as Ctrl-C does, and waits for it.
    pub(crate) fn interrupt(self) -> ExitStatus {
        let id = rustix::process::Pid::from_raw(self.child.id().try_into().unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> ExitStatus {
        // The log ends with the process.
        while self.lines.recv_timeout(BOUND).is_ok() {}
        self.child.wait().unwrap()
    }

    /// Peak memory in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let mut status = String::new();
        std::fs::File::open(format!("/proc/{}/status", self.id()))
            .unwrap()
            .read_to_string(&mut status)
            .unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Process {
    /// A failed test leaves no process running.
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
