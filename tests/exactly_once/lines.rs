//! From a feed to a file.

use std::time::Duration;

use crate::decisions;
use crate::options::Options;
use crate::others;
use crate::place::{self, BOUND, POINTS, Pairs, Place, Verdict};
use crate::sides;

/// Number of processes of the run with this number.
fn processes(options: &Options, run: usize) -> usize {
    if options.processes { [1, 3, 2][(run / 4) % 3] } else { 1 }
}

/// The durable lines of the output, and the mark; `None` before the first commit.
fn durable(place: &Place) -> Result<Option<(String, serde_json::Value)>, String> {
    let Ok(mark) = std::fs::read_to_string(place.path("out.jsonl.mark")) else { return Ok(None) };
    let mark: serde_json::Value = serde_json::from_str(&mark[17..]).map_err(|error| error.to_string())?;
    let length = usize::try_from(mark["length"].as_u64().unwrap()).unwrap();
    let text = std::fs::read_to_string(place.path("out.jsonl")).map_err(|error| error.to_string())?;
    Ok(Some((text[..length].to_owned(), mark["mark"].clone())))
}

/// The accumulated pairs of the output up to its mark; an error if a pair is added twice, or removed while
/// absent.
fn output(place: &Place) -> Result<Pairs, String> {
    let mut pairs = Pairs::new();
    if let Some((lines, _)) = durable(place)? {
        place::apply(lines.lines(), &mut pairs)?;
    }
    Ok(pairs)
}

/// The problems of the decisions up to the mark.
fn decisions(options: &Options, place: &Place, feed: &std::path::Path) -> Vec<String> {
    let (lines, mark) = match durable(place) {
        Ok(Some(found)) => found,
        Ok(None) => return Vec::new(),
        Err(problem) => return vec![problem],
    };
    let text = std::fs::read_to_string(feed).unwrap();
    let events: Vec<_> =
        (0..).zip(text.lines()).filter_map(|(offset, line)| decisions::event(offset, line)).collect();
    let next = mark["progress"]["next"]["0"].as_u64().unwrap_or(0);
    let moment = (mark["progress"]["epoch"].as_u64().unwrap(), [(0, next)].into());
    let records: Vec<_> = lines.lines().map(decisions::record).collect();
    decisions::problems(options, &events, &[moment], &records)
}

/// Kills runs, then lets one end.
fn run_through(
    options: &Options,
    place: &mut Place,
    words: &str,
    kills: usize,
    verdict: &mut Verdict,
) -> bool {
    let mut killed = 0;
    let mut lost = false;
    let has_others = options.decisions.is_none() && !options.reference;
    let points: Vec<_> = POINTS.iter().copied().filter(|point| *point != "output" || has_others).collect();
    for run in 0.. {
        let count = processes(options, run);
        let point = place::point(&points, killed, count);
        let passes = place.random(3);
        let point = (options.points && killed < kills).then(|| format!("{point}:{passes}"));
        let mut children = place.start(words, count, point.as_deref());
        if killed == kills {
            let well = place::wait(&mut children, BOUND);
            if well != Some(true) {
                children.iter_mut().for_each(|child| child.kill().unwrap_or(()));
                verdict.problems.push(format!("the last run ended {well:?}:\n    {}", place.log()));
            }
            return well == Some(true);
        }
        // So that the input lasts for all kills.
        let span = (3000 / options.kills.max(1) as u64).clamp(40, 400);
        let moment = Duration::from_millis(20 + place.random(span));
        let ended = place::wait(&mut children, if options.points { BOUND } else { moment });
        match ended {
            Some(true) => {
                println!("run {run} of {count}: ended well before it was killed");
            }
            Some(false) if options.points => {
                killed += 1;
                println!("run {run} of {count}: killed at {}", point.unwrap_or_default());
            }
            Some(false) => {
                verdict.problems.push(format!("run {run} failed by itself:\n    {}", place.log()));
                return false;
            }
            None => {
                let which = usize::try_from(place.random(64)).unwrap();
                killed += 1;
                println!("run {run} of {count}: killed after {} ms", moment.as_millis());
                verdict.problems.extend(place::kill(children, which));
            }
        }
        verdict.kills += usize::from(ended != Some(true));
        verdict.commits_seen += 1;
        let problems = match options.decisions {
            Some(_) => decisions(options, place, &place.path("feed.jsonl")),
            None => output(place).err().into_iter().collect(),
        };
        if !problems.is_empty() {
            verdict.problems.extend(problems);
            return false;
        }
        if options.lose_state && !lost && killed >= kills / 2 {
            lost = true;
            println!("the state is deleted");
            std::fs::remove_dir_all(place.path("state")).unwrap_or(());
        }
        if ended == Some(true) && killed < kills {
            // All input is read: no work is left to be interrupted.
            killed = kills;
        }
    }
    true
}

pub(crate) fn run(options: &Options) -> Verdict {
    let mut place = Place::new(options);
    let feed = place.feed(options);
    sides::watches(&place, &feed);
    let list = format!("inputs = [\"{}\"]", sides::WATCHES);
    let sides = sides::tables(&list, "output = \"rows.jsonl\"", "path = \"notices.jsonl\"");
    let config = format!(
        "workers = 1\n[processes]\nconnect_seconds = 10\n[source]\nkind = \"files\"\ninputs = [{feed:?}]\n\
         epoch = \"events:20\"\n{}\
         [dead_letter]\npath = \"letters\"\n[sink]\npath = \"out.jsonl\"\n{}[state]\npath = \
         \"state\"\ncommit_every = \"50ms\"\n{}",
        sides::FIELDS,
        options.emit(),
        match options.decisions {
            _ if options.reference => "[reference]\ninputs = [\"reference.jsonl\"]\n".to_owned(),
            None => sides + &others::tables(),
            Some(_) => String::new(),
        }
    );
    std::fs::write(place.path("run.toml"), config).unwrap();
    let mut verdict = Verdict::default();
    let mut stages = vec![(format!("-p {}", options.pipeline), "")];
    if options.reference {
        stages.push((format!("-p {}", options.pipeline), " --reconcile"));
    }
    if options.reconcile {
        stages.push((format!("-p {} --set threshold=0.6", options.pipeline), " --reconcile"));
        stages.push(("-p exact".to_owned(), " --reconcile"));
    }
    for (number, (pipeline, reconcile)) in stages.into_iter().enumerate() {
        if options.reference {
            reference(&place, &feed, number);
        }
        println!("dupflow run {pipeline}{reconcile}");
        let words = format!("run {pipeline} -c run.toml{reconcile}");
        let kills = if reconcile.is_empty() { options.kills } else { 3 };
        if !run_through(options, &mut place, &words, kills, &mut verdict) {
            return verdict;
        }
        if options.decisions.is_some() {
            continue;
        }
        match output(&place) {
            Ok(found) => {
                verdict.pairs = found.len();
                let against = if options.reference { " --against reference.jsonl" } else { "" };
                let expected = place.expected(&feed, &format!("{pipeline}{against}"));
                verdict.problems.extend(place::compare(&found, &expected));
                if options.reference {
                    let of_it = expected.keys().filter(|(a, _)| a.starts_with("!old")).count();
                    println!("{of_it} of {} pairs have a document of the reference", expected.len());
                    assert!(of_it > 100, "the reference has pairs");
                    continue;
                }
                verdict.problems.extend(others::problems(&place, &feed, &pipeline, &expected));
                verdict.problems.extend(views(&place, &feed, &found));
                let notices = std::fs::read_to_string(place.path("notices.jsonl")).unwrap();
                let fresh = sides::fresh_notices(&place, &feed, &pipeline);
                let other =
                    sides::accumulated(notices.lines()).map(|noticed| sides::compare(&noticed, &fresh));
                verdict.problems.extend(other.unwrap_or_else(Some));
            }
            Err(problem) => verdict.problems.push(problem),
        }
    }
    if options.decisions.is_some() {
        verdict.problems.extend(decisions(options, &place, &feed));
        verdict.decisions = durable(&place).ok().flatten().map_or(0, |(lines, _)| lines.lines().count());
    }
    verdict.problems.extend(letters(&place, &feed));
    verdict
}

/// Writes a reference: every fifth text of the feed, from line `number` on, under ids of its own that sort
/// before those of the feed.
fn reference(place: &Place, feed: &std::path::Path, number: usize) {
    let feed = std::fs::read_to_string(feed).unwrap();
    let texts = feed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let texts = texts.filter(|event| event["text"].is_string()).skip(number).step_by(5);
    let line = |(n, event): (usize, serde_json::Value)| {
        serde_json::json!({"id": format!("!old{number}/{n}"), "text": event["text"]}).to_string() + "\n"
    };
    std::fs::write(place.path("reference.jsonl"), texts.enumerate().map(line).collect::<String>()).unwrap();
}

/// How the rows of views differ from those of the pairs and of the live documents of the feed.
fn views(place: &Place, feed: &std::path::Path, pairs: &Pairs) -> Option<String> {
    let changes = std::fs::read_to_string(place.path("rows.jsonl")).unwrap();
    let expected = sides::expected(pairs.keys().map(|(a, b)| (a.as_str(), b.as_str())), sides::alive(feed));
    match sides::accumulated(changes.lines()) {
        Ok(found) => sides::compare(&found, &expected),
        Err(problem) => Some(problem),
    }
}

/// Checks that every invalid record is in the letters once.
fn letters(place: &Place, feed: &std::path::Path) -> Option<String> {
    let bad = std::fs::read_to_string(feed).unwrap().lines().filter(|line| line.starts_with("oops")).count();
    let kept = std::fs::read_to_string(place.path("letters")).unwrap();
    let offset = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap()["offset"].as_u64();
    let offsets: Vec<_> = kept.lines().map(offset).collect();
    let ascend = offsets.windows(2).all(|two| two[0] < two[1]);
    let wrong = !ascend || offsets.len() != bad;
    wrong.then(|| format!("{} bad records, and {} letters, in order: {ascend}", bad, offsets.len()))
}
