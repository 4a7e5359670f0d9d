//! The moments of kills: at each failpoint of the program in turn, where it is built with them, else at
//! changes of an output.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The failpoints that no history reaches, each with what does.
const ELSEWHERE: [(&str, &str); 0] = [];

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

    pub(crate) fn note(&self, point: &str, is_killed: bool) {
        let name = point.split(':').next().unwrap_or_default().to_owned();
        self.noted.lock().unwrap().entry(name).or_default()[usize::from(!is_killed)] += 1;
    }

    /// Prints the counts; an error if too few runs were killed, or a point was reached by none.
    pub(crate) fn check(&self) -> Result<(), String> {
        let noted = self.noted.lock().unwrap();
        let sum = |which: usize| noted.values().map(|of| of[which]).sum::<usize>();
        println!("{} runs were killed, {} ended before", sum(0), sum(1));
        noted.iter().for_each(|(point, [killed, before])| println!("  {point}: {killed}, {before} not"));
        if self.points.is_empty() && sum(0) < sum(1) {
            return Err("more runs ended than were killed".to_owned());
        }
        let is_enough = self.next.load(Ordering::Relaxed) >= 6 * self.points.len();
        let missed: Vec<_> = self
            .points
            .iter()
            .filter(|point| noted.get(*point).is_none_or(|of| of[0] == 0))
            .filter(|point| !ELSEWHERE.iter().any(|(name, _)| name == point))
            .collect();
        if is_enough && !missed.is_empty() {
            return Err(format!("no run was killed at {missed:?}: name the test that does, or write a step"));
        }
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
    points.sort_unstable();
    points.dedup();
    assert!(points.len() > 10, "{points:?}");
    points
}
