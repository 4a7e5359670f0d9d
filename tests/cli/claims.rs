//! Of the runs that want one state or one output, one lives: the one that was not refused, and of several
//! that begin at the same time exactly one. What is counted as written is what was written.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Stdio};

use super::dupflow::{Ended, Place, command};
use super::feeds::{lines, page, upsert};

/// A run that follows `feed.jsonl`.
const LIVE: &str = r#"
workers = 1
[source]
inputs = ["feed.jsonl"]
follow = true
epoch = "events:10,every:50ms"
[sink]
path = "out.jsonl"
[state]
path = "state"
commit_every = "100ms"
"#;

/// A deployment with a folder for rows that is not there.
fn spilling(deployment: &str) -> String {
    format!("memory = \"1GiB\"\n{deployment}[spill]\npath = \"missing\"\n")
}

/// A process; its messages go to a file.
pub(super) struct Started {
    child: Child,
    pub(super) log: String,
}

impl Started {
    /// Starts a run of a deployment file with more arguments, separated by spaces.
    pub(super) fn new(place: &Place, config: &str, more: &str) -> Self {
        let log = format!("{config}-{:016x}.log", rand::random::<u64>());
        let messages = fs::File::create(place.path(&log)).expect("a file for messages");
        let mut command = command(["run", "-c", config].into_iter().chain(more.split_whitespace()));
        let command = command.current_dir(place.path("")).stdout(Stdio::null()).stderr(messages);
        Self { child: command.spawn().expect("the binary runs"), log }
    }

    pub(super) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = std::process::Command::new("kill").args(["-s", name, &id]).status();
        assert!(sent.expect("kill runs").success());
    }

    /// Waits until `is_so`; fails if the process ends before.
    pub(super) fn until(&mut self, place: &Place, is_so: impl Fn(&Place) -> bool) {
        poll(|| {
            let ended = self.child.try_wait().expect("it is a child");
            assert!(ended.is_none(), "{ended:?}: {}", place.read(&self.log));
            is_so(place)
        });
    }

    /// Waits for the end. Returns the exit code and the messages.
    pub(super) fn end(mut self, place: &Place) -> (Option<i32>, String) {
        let code = self.child.wait().expect("it is a child").code();
        (code, place.read(&self.log))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // It may have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Polls until `is_so`, for two minutes.
fn poll(mut is_so: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if is_so() {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("it is not so after two minutes");
}

/// A pair of copies named by `n`.
fn pair(n: u32) -> String {
    let text = page(0..100, n + 1);
    upsert(&format!("a{n}"), &text) + &upsert(&format!("b{n}"), &text)
}

/// Appends a pair to the feed.
fn feed(place: &Place, n: u32) {
    let file = fs::File::options().append(true).open(place.path("feed.jsonl"));
    file.and_then(|mut file| file.write_all(pair(n).as_bytes())).expect("it can be written");
}

/// Appends a pair to the feed, and waits until the run has written and stored it.
fn writes_on(place: &Place, run: &mut Started, n: u32) {
    let stored = || {
        fs::read_dir(place.path("state")).map_or(0, |files| {
            files
                .filter_map(|file| file.ok()?.file_name().into_string().ok())
                .filter_map(|name| manifest(&name))
                .max()
                .unwrap_or(0)
        })
    };
    let before = stored();
    feed(place, n);
    run.until(place, |place| {
        let out = fs::read_to_string(place.path("out.jsonl")).unwrap_or_default();
        out.contains(&format!("\"b{n}\"")) && stored() > before
    });
}

/// The number of a manifest.
fn manifest(name: &str) -> Option<u64> {
    let digits = name.strip_prefix("manifest-")?;
    digits.parse().ok()
}

/// Whatever refuses a second run with the same state, the first one goes on, and the second one leaves with a
/// message and without the state.
#[test]
fn a_run_that_is_refused_leaves_the_state_to_its_owner() {
    let place = Place::new();
    place.file("live.toml", LIVE);
    place.file("feed.jsonl", pair(0));
    place.file("foreign.jsonl", "no delta\n");
    place.file("folder/in", "");
    place.file("cursor", "no cursor");
    let mut live = Started::new(&place, "live.toml", "");
    live.until(&place, |place| {
        fs::read_to_string(place.path("out.jsonl")).is_ok_and(|out| out.contains("b0"))
    });
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("it has one").port();
    let other = LIVE.replace("out.jsonl", "other.jsonl");
    let with = |more: &str| format!("{other}{more}\n");
    let reasons = [
        ("the output is taken", LIVE.to_owned(), ""),
        ("another scheme", other.clone(), "--set text.shingle=2"),
        ("an output of another program", LIVE.replace("out.jsonl", "foreign.jsonl"), ""),
        ("no folder for the output", LIVE.replace("out.jsonl", "missing/out.jsonl"), ""),
        ("the port is taken", with(&format!("[monitor]\nlisten = \"127.0.0.1:{port}\"")), ""),
        (
            "the port is taken, with a history",
            with(&format!("history = \"1d\"\n[monitor]\nlisten = \"127.0.0.1:{port}\"")),
            "",
        ),
        ("no file for dead letters", with("[dead_letter]\npath = \"folder\""), ""),
        ("no folder for rows", spilling(&other), ""),
        (
            "no watch list",
            with("[watch]\ninputs = [\"missing-list.jsonl\"]\n[notices]\npath = \"n.jsonl\""),
            "",
        ),
        (
            "a cursor that is none",
            with(
                "[watch]\npath = \"w\"\n[notices]\npath = \"n.jsonl\"\n[notices.hook]\nurl = \
                 \"http://127.0.0.1:9/\"\ncursor = \"cursor\"\ndead_letter = \"refused\"",
            ),
            "",
        ),
        ("no input", other.replace("feed.jsonl", "missing.jsonl"), ""),
    ];
    for (n, (why, deployment, more)) in (1..).zip(reasons) {
        let name = format!("second-{n}.toml");
        place.file(&name, deployment);
        let (code, said) = Started::new(&place, &name, more).end(&place);
        assert!(matches!(code, Some(1 | 2)), "{why}: {code:?} {said}");
        assert!(said.contains("error"), "{why}: {said}");
        writes_on(&place, &mut live, n);
        assert!(live.child.try_wait().expect("a child").is_none(), "{why}: {}", place.read(&live.log));
    }
    live.signal("TERM");
    let (code, said) = live.end(&place);
    assert_eq!(code, Some(0), "{said}");
    assert!(!said.contains("taken over"), "{said}");
}

/// A process that cannot begin ends no earlier run: process 0 claims nothing before.
#[test]
fn several_processes_take_a_state_only_if_all_can_begin() {
    let place = Place::new();
    place.file("live.toml", LIVE);
    place.file("feed.jsonl", pair(0));
    let mut live = Started::new(&place, "live.toml", "");
    live.until(&place, |place| {
        fs::read_to_string(place.path("out.jsonl")).is_ok_and(|out| out.contains("b0"))
    });
    let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    let hosts = ports.each_ref().map(|port| port.local_addr().expect("it has one").to_string()).join("\n");
    drop(ports);
    place.file("hosts", hosts + "\n");
    place.file("other.toml", LIVE.replace("out.jsonl", "other.jsonl"));
    place.file("broken.toml", spilling(&LIVE.replace("out.jsonl", "other.jsonl")));
    let start = |config: &str, index: u32| {
        Started::new(&place, config, &format!("--processes 2 --process {index} --hosts hosts"))
    };
    let (zero, one) = (start("other.toml", 0), start("broken.toml", 1));
    for (code, said) in [zero.end(&place), one.end(&place)] {
        assert!(matches!(code, Some(1 | 2)), "{code:?}: {said}");
    }
    writes_on(&place, &mut live, 1);
    live.signal("TERM");
    assert_eq!(live.end(&place).0, Some(0));
}

/// Runs begin at the same time, some of them suspended for a while at some moment: in the end exactly one is
/// left. They have the state in common, and the output or an output each.
#[test]
fn of_runs_that_begin_together_exactly_one_is_left() {
    for (round, same_output) in [true, false, false, true, false].into_iter().enumerate() {
        let place = Place::new();
        place.file("feed.jsonl", (0..20).map(pair).collect::<String>());
        let runs: Vec<_> = (0..3)
            .map(|n| {
                let output = if same_output { "out.jsonl".to_owned() } else { format!("out{n}.jsonl") };
                place.file(format!("{n}.toml"), LIVE.replace("out.jsonl", &output));
                Started::new(&place, &format!("{n}.toml"), "")
            })
            .collect();
        // The moment is any, and each suspension ends.
        for run in &runs {
            std::thread::park_timeout(std::time::Duration::from_millis(rand::random_range(0..120)));
            // It may have ended.
            drop(
                std::process::Command::new("kill").args(["-s", "STOP", &run.child.id().to_string()]).status(),
            );
        }
        for run in &runs {
            drop(
                std::process::Command::new("kill").args(["-s", "CONT", &run.child.id().to_string()]).status(),
            );
        }
        let mut left = runs;
        let mut n = 100;
        poll(|| {
            // A run notices at its next publish.
            n += 1;
            feed(&place, n);
            left.retain_mut(|run| run.child.try_wait().expect("it is a child").is_none());
            assert!(!left.is_empty(), "round {round}: all have ended");
            left.len() == 1
        });
        let [last] = <[_; 1]>::try_from(left).unwrap_or_else(|_| unreachable!("one is left"));
        last.signal("TERM");
        let (code, said) = last.end(&place);
        assert_eq!(code, Some(0), "round {round}: {said}");
    }
}

/// A finite run of `in.jsonl`.
const FINITE: &str =
    "[source]\ninputs = [\"in.jsonl\"]\n[sink]\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n";

fn restart(place: &Place, more: &str) -> Ended {
    place.run(&format!("run -c here.toml{more}"))
}

#[test]
fn a_restart_counts_what_it_writes() {
    for with_state in [true, false] {
        let place = Place::new();
        let config =
            if with_state { FINITE } else { FINITE.split("[state]").next().expect("the first part") };
        place.file("here.toml", config);
        let near = upsert("n1", &page(0..0, 0)) + &upsert("n2", &page(10..20, 3));
        place.file("in.jsonl", pair(0) + &near);
        let first = restart(&place, " --set threshold=0.6");
        let written = place.read("out.jsonl").lines().count();
        assert_eq!(written, 2, "{}", first.err);
        assert!(first.err.contains("2 alive, 2 deltas written: 2 insert"), "{}", first.err);
        let again = restart(&place, " --set threshold=0.6");
        assert!(again.err.contains("2 alive, 0 deltas written\n"), "{}", again.err);
        // Corrections are what is written, not what is derived.
        let corrected = restart(&place, " --set threshold=0.95 --reconcile");
        assert!(corrected.err.contains("1 alive, 1 delta written: 1 correction"), "{}", corrected.err);
        assert_eq!(place.read("out.jsonl").lines().count(), written + 1);
        // And with more of the input, what that adds.
        place.file("in.jsonl", pair(0) + &near + &pair(1));
        let more = restart(&place, " --set threshold=0.95");
        assert!(more.err.contains("2 alive, 1 delta written: 1 insert"), "{}", more.err);
    }
}

#[test]
fn a_state_that_is_lost_is_reported() {
    let place = Place::new();
    place.file("here.toml", FINITE.to_owned() + "commit_every = \"1ms\"\n");
    place.file("in.jsonl", pair(0));
    restart(&place, "");
    place.file("in.jsonl", pair(0) + &pair(1));
    let second = restart(&place, "");
    assert!(!second.err.contains("the state is"), "{}", second.err);
    fs::remove_dir_all(place.path("state")).expect("it is there");
    let lost = restart(&place, "");
    assert_eq!(lost.code, 0, "{}", lost.err);
    assert!(lost.err.contains("WARN") && lost.err.contains("the state is lost"), "{}", lost.err);
    assert_eq!(lines(&place.read("out.jsonl")).len(), 2);
}

#[test]
fn check_looks_at_the_folders_of_state_and_spill() {
    let place = Place::new();
    place.file("in.jsonl", pair(0));
    place.file("file", "no folder");
    let check = |state: &str, spill: &str| {
        let state = FINITE.replace("\"state\"", &format!("\"{state}\""));
        place.file("here.toml", format!("memory = \"1GiB\"\n{state}[spill]\npath = \"{spill}\"\n"));
        place.run("check -c here.toml")
    };
    let sound = check("new/state", ".");
    assert_eq!((sound.code, place.path("new").exists()), (0, false), "{}", sound.err);
    fs::create_dir(place.path("here")).expect("a folder");
    assert_eq!(check("file://here", ".").code, 0);
    // All problems are listed.
    let broken = check("file/state", "missing");
    assert_eq!(broken.code, 2, "{}", broken.err);
    assert!(broken.err.contains("state.path") && broken.err.contains("spill.path"), "{}", broken.err);
    // Also root cannot write there.
    for unwritable in ["/proc/state", "/proc/self/state", "file"] {
        let refused = check(unwritable, ".");
        assert_eq!(refused.code, 2, "{unwritable}: {}", refused.err);
        assert!(refused.err.contains("state.path"), "{}", refused.err);
    }
}
