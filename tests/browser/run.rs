//! The program whose page is tested: its input is a file, and standard input, to which the test adds events.

use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;

use serde_json::{Value, json};

/// An upsert as a line of a feed.
pub(crate) fn upsert(id: &str, text: &str) -> String {
    json!({"id": id, "text": text}).to_string()
}

/// A text of `count` words from a vocabulary of its own.
pub(crate) fn words(seed: u64, count: u64) -> String {
    (0..count).map(|n| format!("w{seed}x{n} ")).collect()
}

/// `dupflow run` with two sources, the file `feed.jsonl` of a folder and standard input, and the output
/// `deltas.jsonl` in the same folder.
pub(crate) struct Run {
    process: Child,
    input: Option<ChildStdin>,
    /// The address of its monitor.
    pub(crate) address: String,
}

impl Run {
    /// Starts the program and waits until it listens. Port 0 chooses a free port.
    pub(crate) fn start(folder: &Path, port: u16) -> Self {
        let config = folder.join("local.toml");
        let inputs = json!([folder.join("feed.jsonl"), "-"]);
        let content = format!(
            "workers = 2\n[source]\nkind = \"files\"\ninputs = {inputs}\nepoch = \
                \"every:20ms\"\n[sink]\nkind = \"lines\"\npath = {}\nevidence = true\n\
             [monitor]\nlisten = \"127.0.0.1:{port}\"\n[logging]\nlevel = \"info\"\nformat = \"json\"\n",
            json!(folder.join("deltas.jsonl"))
        );
        std::fs::write(&config, content).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
        command.arg("run").arg("-c").arg(config);
        Self::listening(command)
    }

    /// Replays the file `feed.jsonl` of a folder, and stays after its end.
    pub(crate) fn replay(folder: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
        command.args(["replay", "-v", "--log-format", "json", "--monitor", "127.0.0.1:0", "-o"]);
        command.arg(folder.join("replayed.jsonl")).args(options).arg(folder.join("feed.jsonl"));
        // What the options name without a folder is written there.
        command.current_dir(folder);
        Self::listening(command)
    }

    fn listening(mut command: Command) -> Self {
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let input = process.stdin.take();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut all = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).unwrap() > 0, "it ended before it listened:\n{all}");
            all.push_str(&line);
            let Ok(entry) = serde_json::from_str::<Value>(&line) else { continue };
            if let Some(address) = address_in(&entry) {
                break address;
            }
        };
        // Drains the pipe so that the program does not block.
        thread::spawn(move || io::copy(&mut said, &mut io::sink()));
        Self { process, input, address }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    /// Writes a line to standard input.
    pub(crate) fn say(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Asks it to end, as Ctrl-C does, and waits for it.
    pub(crate) fn interrupt(mut self) {
        let id = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        self.process.wait().unwrap();
    }

    /// Kills it, as a crash.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The address in the log line "monitor listens", which is written before the run begins.
fn address_in(entry: &Value) -> Option<String> {
    assert!(entry["message"] != "run", "it does not listen");
    let is_it = entry["message"] == "monitor listens";
    is_it.then(|| entry["address"].as_str().unwrap().to_owned())
}
