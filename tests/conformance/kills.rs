//! The moments of kills: at each failpoint of the program in turn, where it is built with them, else at
//! changes of an output.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

pub(crate) struct Kills {
    points: Vec<String>,
    next: AtomicUsize,
    /// How often a process was killed at each, and how often it ended before.
    noted: Mutex<BTreeMap<String, [usize; 2]>>,
}

impl Kills {
    pub(crate) fn new() -> Self {
        let points = if cfg!(feature = "failpoints") { points() } else { Vec::new() };
        Self { points, next: AtomicUsize::new(0), noted: Mutex::new(BTreeMap::new()) }
    }

    /// The next failpoint, after this number of passes; `None` without failpoints.
    pub(crate) fn point(&self, passes: usize) -> Option<String> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        let point = self.points.get(next % self.points.len().max(1))?;
        Some(format!("{point}:{passes}"))
    }

    /// Runs that a step kills: a point is not reached by all of them.
    pub(crate) fn each_step(&self) -> usize {
        if self.points.is_empty() { 2 } else { 8 }
    }

    pub(crate) fn note(&self, point: &str, is_killed: bool) {
        let name = point.split(':').next().unwrap_or_default().to_owned();
        self.noted.lock().unwrap().entry(name).or_default()[usize::from(!is_killed)] += 1;
    }

    /// Prints the counts, and the points at which no run was killed; an error if too few were.
    pub(crate) fn check(&self) -> Result<(), String> {
        let noted = self.noted.lock().unwrap();
        let sum = |which: usize| noted.values().map(|of| of[which]).sum::<usize>();
        println!("{} runs were killed, {} ended before", sum(0), sum(1));
        noted.iter().for_each(|(point, [killed, before])| println!("  {point}: {killed}, {before} not"));
        if self.points.is_empty() && 2 * sum(0) < sum(1) {
            return Err("too few runs were killed while they wrote".to_owned());
        }
        // Those of a replay, of several processes and of posted watches are reached by tests of their own.
        let missed = self.points.iter().filter(|point| noted.get(*point).is_none_or(|of| of[0] == 0));
        missed.for_each(|point| println!("SKIPPED conformance: no run was killed at {point}"));
        Ok(())
    }
}

/// All failpoints in the sources.
fn points() -> Vec<String> {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = walkdir::WalkDir::new(root).sort_by_file_name().into_iter().map(Result::unwrap);
    let files = files.filter(|file| file.path().extension().is_some_and(|ending| ending == "rs"));
    let mut points: Vec<String> = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(file.path()).unwrap();
        let named = text.split("failpoint::reach(\"").skip(1).filter_map(|rest| rest.split('"').next());
        points.extend(named.map(str::to_owned));
    }
    // Named by the publisher of a state.
    points.push("state".to_owned());
    points.sort_unstable();
    points.dedup();
    assert!(points.len() > 10, "{points:?}");
    points
}
