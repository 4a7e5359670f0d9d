//! Every answer at every place, with a history: written, read back, killed while it is written, started
//! again, left out and put back, lost, taken over by a second run, corrected to another threshold, on a full
//! disk, and while the place is away. After each run that ends well the rows in force are those of a fresh
//! replay of the surviving documents; after each that does not, those of the documents up to the mark.
//!
//! The cells are asked of the program (`cells`), and the steps are the same for all (`steps`). So an answer,
//! a place, a format or a mode that is new is tested at once, or fails here until it is written how it is
//! read back. Beside the outputs of each history are bad records, rows of views and notices, in files or in
//! the transaction of the first output (`sides`).
//!
//! Bug classes: a row lost or written twice between two durable steps; an output that is behind or ahead of
//! the first and is continued; a correction that forgets rows of one form; a failure that leaves half a file.
//!
//! | variable | |
//! |---|---|
//! | `DUPFLOW_SEED` | other groups of outputs, and other histories |
//! | `DUPFLOW_ROUNDS` | times that each cell has a history of all steps; without it one of some steps |
//! | `DUPFLOW_CELLS` | only cells whose name has this, as `decisions` or `of kafka` |
//!
//! With the feature `failpoints` a run is killed at each of them in turn, else at changes of its outputs.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::shadow_unrelated,
    reason = "a test panics on failure, prints its progress, and is a sequence of small cases"
)]
#![expect(clippy::disallowed_methods, reason = "every wait is for a condition and has a bound")]

#[expect(dead_code, reason = "what the tests of topics need besides")]
#[path = "../kafka/broker.rs"]
mod broker;
mod cells;
#[expect(dead_code, reason = "what other tests read of a record")]
#[path = "../kafka/committed.rs"]
mod committed;
#[path = "../data/disk.rs"]
mod disk;
mod feed;
mod kills;
mod model;
mod places;
mod replays;
mod rows;
mod scene;
#[expect(dead_code, reason = "what the tests of tables need besides")]
#[path = "../exactly_once/server.rs"]
mod server;
mod sides;
mod steps;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use dupflow::core::hash::mix;
use parking_lot::RwLock;

use broker::Broker;
use cells::Cell;
use kills::Kills;
use model::Model;
use scene::{Scene, Servers};
use server::Server;
use steps::Step;

/// Outputs beside the first, at most.
const BESIDE: usize = 3;

/// Cells of a replay in the sample.
const REPLAYS: usize = 8;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|typed| typed.parse().unwrap_or_else(|_| panic!("{name} is a whole number")))
}

/// Shuffles by a seed.
fn shuffle<T>(all: &mut [T], seed: u64) {
    for at in (1..all.len()).rev() {
        all.swap(at, usize::try_from(mix(seed ^ mix(at as u64))).unwrap() % (at + 1));
    }
}

/// Deals the cells into groups: each has a first output, and those beside it. With `by_kind` those of a kind
/// are together as far as there is room, which saves the time of servers.
fn deal(mut cells: Vec<Cell>, seed: u64, by_kind: bool) -> Vec<Vec<Cell>> {
    shuffle(&mut cells, seed);
    let (mut groups, rest): (Vec<Vec<Cell>>, Vec<Cell>) = (Vec::new(), cells);
    let (firsts, mut rest): (Vec<Cell>, Vec<Cell>) = rest.into_iter().partition(|cell| !cell.follows);
    groups.extend(firsts.into_iter().map(|cell| vec![cell]));
    // Of each kind one leads, and some are alone.
    let kinds: std::collections::BTreeSet<String> = rest.iter().map(|cell| cell.kind.clone()).collect();
    for kind in kinds {
        if let Some(at) = rest.iter().position(|cell| cell.kind == kind && cell.leads) {
            groups.push(vec![rest.swap_remove(at)]);
        }
    }
    let alone: Vec<_> = rest.iter().filter(|cell| !cell.leads).take(2).cloned().collect();
    rest.retain(|cell| !alone.contains(cell));
    for (at, cell) in rest.into_iter().enumerate() {
        let has_room = |group: &&mut Vec<Cell>| group[0].leads && group.len() <= BESIDE;
        let is_alike = |group: &&mut Vec<Cell>| has_room(group) && group[0].kind == cell.kind;
        if by_kind && let Some(group) = groups.iter_mut().find(is_alike) {
            group.push(cell);
            continue;
        }
        let leading = groups.iter_mut().filter(has_room).count().max(1);
        match groups.iter_mut().filter(has_room).nth(at % leading) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    groups.extend(alone.into_iter().map(|cell| vec![cell]));
    groups
}

/// The servers, as far as they are installed.
fn servers(cells: &mut Vec<Cell>) -> Servers {
    let mut without = |kind: &str, why: &str| {
        println!("SKIPPED conformance of {kind}: {why}");
        cells.retain(|cell| cell.kind != kind);
    };
    let postgres = Server::start().map_err(|why| without("postgres", &why)).ok();
    let broker = Broker::start().map_err(|why| without("kafka", &why)).ok();
    Servers { postgres: postgres.map(Arc::new), broker: broker.map(Arc::new), alone: RwLock::new(()) }
}

/// A history of a group; the problem, if there is one.
fn history(
    group: (usize, &[Cell]),
    steps: &[Step],
    servers: &Servers,
    model: &Model,
    kills: &Kills,
    seed: u64,
) -> (Vec<String>, Option<String>) {
    let mut scene = Scene::new(group, servers, model, kills, seed);
    let mut outcome = {
        let _shared = servers.alone.read();
        scene.begin()
    };
    for step in steps {
        if outcome.is_err() || !scene.takes(*step) {
            continue;
        }
        // A server that is killed is that of all.
        outcome = if *step == Step::Away {
            let _alone = servers.alone.write();
            scene.step(*step)
        } else {
            let _shared = servers.alone.read();
            scene.step(*step)
        };
    }
    let problem = outcome.err().map(|problem| format!("{scene}: after {:?}: {problem}", scene.history));
    (std::mem::take(&mut scene.history), problem)
}

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|typed| !typed.starts_with('-')).collect();
    if !wanted.is_empty() && !wanted.iter().any(|part| "conformance".contains(part.as_str())) {
        return ExitCode::SUCCESS;
    }
    if std::env::args().any(|typed| typed == "--list") {
        println!("conformance: test");
        return ExitCode::SUCCESS;
    }
    let (seed, rounds) = (number("DUPFLOW_SEED").unwrap_or(1), number("DUPFLOW_ROUNDS"));
    println!("DUPFLOW_SEED={seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut cells = cells::of_runs(folder.path());
    let part = std::env::var("DUPFLOW_CELLS").unwrap_or_default();
    cells.retain(|cell| cell.to_string().contains(&part));
    let servers = servers(&mut cells);
    println!("{} cells", cells.len());
    let mut histories: Vec<(Vec<Cell>, Vec<Step>)> = Vec::new();
    for round in 0..rounds.unwrap_or(1) {
        for (number, group) in deal(cells.clone(), mix(seed ^ round), round % 2 == 0).into_iter().enumerate()
        {
            let mut steps = Step::ALL.to_vec();
            if rounds.is_none() {
                // Each group has some of the steps, and each step some of the groups.
                steps.rotate_left(number * 3 % Step::ALL.len());
                steps.truncate(if group[0].kind == "kafka" { 2 } else { 3 });
            }
            shuffle(&mut steps, mix(seed ^ round) ^ number as u64);
            histories.push((group, steps));
        }
    }
    let mut replays = replays::cells(folder.path());
    replays.retain(|cell| cell.name.contains(&part));
    shuffle(&mut replays, mix(seed));
    if rounds.is_none() {
        replays.truncate(REPLAYS);
    }
    let (model, kills) = (Model::new(), Kills::new());
    let (next, problems) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((group, steps)) = histories.get(number) else {
                let Some(cell) = replays.get(number - histories.len()) else { return };
                let outcome = replays::history(cell, &servers, &model, mix(seed ^ number as u64));
                println!("{}: {}", if outcome.is_ok() { "ok" } else { "FAILED" }, cell.name);
                let problem = outcome.err().map(|problem| format!("{}: {problem}", cell.name));
                problems.lock().unwrap().extend(problem);
                continue;
            };
            let begun = std::time::Instant::now();
            let (happened, problem) =
                history((number, group), steps, &servers, &model, &kills, mix(seed ^ number as u64));
            let names: Vec<_> = group.iter().map(Cell::to_string).collect();
            println!(
                "{} in {:.1} s: {}: {happened:?}",
                if problem.is_none() { "ok" } else { "FAILED" },
                begun.elapsed().as_secs_f64(),
                names.join(", ")
            );
            problem.iter().for_each(|problem| println!("PROBLEM {problem}"));
            problems.lock().unwrap().extend(problem);
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    let mut problems = problems.into_inner().unwrap();
    problems.extend(kills.check().err());
    problems.iter().for_each(|problem| println!("PROBLEM {problem}\n"));
    println!(
        "test result: {}. {} passed; {} failed; 0 ignored",
        if problems.is_empty() { "ok" } else { "FAILED" },
        (histories.len() + replays.len()).saturating_sub(problems.len()),
        problems.len()
    );
    if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
