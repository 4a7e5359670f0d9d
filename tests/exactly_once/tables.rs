//! Into tables of a database: first from a feed, then from a table of the same database that is written
//! meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::options::Options;
use crate::place::{self, BOUND, Pairs, Place, Verdict};
use crate::sides;

/// Failpoints between two durable steps.
const POINTS: &[&str] = &["letters", "tables-sent", "tables-written", "commit", "state"];

/// A database under test.
pub(crate) trait Database: Sync {
    /// The keys `kind` and address, for a table of a deployment file.
    fn place(&self) -> String;
    /// Rows as texts; NULL is empty. `None` if a table is missing.
    fn rows(&self, sql: &str) -> Option<Vec<Vec<String>>>;
    /// Applies changes of documents in one transaction. `late` are applied in another one, which begins
    /// before it and commits after it.
    fn apply(&self, events: &[Event], late: &[Event]);
    /// Creates an empty table of documents, and one of watches.
    fn make(&self, watches: &[(String, String)]);
    /// Kills and restarts the server, if there is one. Returns whether there is.
    fn kill(&self) -> bool;
}

/// A line of a feed.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) id: String,
    /// `None` deletes the document.
    pub(crate) text: Option<String>,
}

/// The result in the tables.
fn pairs(database: &dyn Database, prefix: &str) -> Pairs {
    let rows = database.rows(&renamed("SELECT a, b, similarity FROM pairs", prefix)).unwrap();
    // Formats a similarity as JSON Lines do.
    let similarity = |text: &str| {
        let written = serde_json::to_string(&text.parse::<f64>().unwrap()).unwrap();
        serde_json::from_str::<serde_json::Value>(&written).unwrap().to_string()
    };
    rows.into_iter().map(|row| ((row[0].clone(), row[1].clone()), similarity(&row[2]))).collect()
}

/// Checks that the tables are consistent with each other at one moment: they must be of one transaction.
fn look(database: &dyn Database, prefix: &str) -> Option<String> {
    let queries = [
        (
            "deltas that do not add up to pairs",
            "SELECT a, b, similarity FROM pairs EXCEPT SELECT a, b, similarity FROM deltas GROUP BY a, b, \
             similarity HAVING sum(diff) = 1",
        ),
        (
            "pairs that are not the sum of deltas",
            "SELECT a, b, similarity FROM deltas GROUP BY a, b, similarity HAVING sum(diff) <> 0 EXCEPT \
             SELECT a, b, similarity FROM pairs",
        ),
        (
            "sums of deltas beyond one",
            "SELECT a, b, sum(diff) FROM deltas GROUP BY a, b, similarity HAVING sum(diff) NOT IN (0, 1)",
        ),
        (
            "documents of pairs in no cluster",
            "SELECT a FROM pairs UNION SELECT b FROM pairs EXCEPT SELECT document FROM clusters",
        ),
        (
            "members of clusters in no pair",
            "SELECT document FROM clusters EXCEPT SELECT a FROM pairs EXCEPT SELECT b FROM pairs",
        ),
        (
            "ends of a pair in two clusters",
            "SELECT p.a, p.b FROM pairs p JOIN clusters x ON x.document = p.a
                JOIN clusters y ON y.document = p.b WHERE x.cluster <> y.cluster",
        ),
        ("members that are no documents", "SELECT document FROM clusters EXCEPT SELECT id FROM documents"),
        (
            "documents both kept and removed, or neither",
            "SELECT id FROM documents EXCEPT SELECT id FROM kept EXCEPT SELECT id FROM removed",
        ),
    ];
    let problem = queries.iter().find_map(|(what, sql)| {
        let rows = database.rows(&renamed(sql, prefix)).unwrap();
        (!rows.is_empty()).then(|| format!("{what}: {}, as {:?}", rows.len(), rows[0]))
    });
    problem.or_else(|| look_at_views(database, prefix))
}

/// Checks that the rows of views are those of the pairs and documents.
fn look_at_views(database: &dyn Database, prefix: &str) -> Option<String> {
    // The first run makes this table after it has taken over the others.
    let rows = database.rows(&renamed("SELECT row FROM view_rows", prefix)).unwrap_or_default();
    let found: BTreeSet<String> = rows.iter().map(|row| sides::row(&row[0])).collect();
    let twice = rows.len() - found.len();
    let pairs = pairs(database, prefix);
    let documents = database.rows(&renamed("SELECT id FROM documents", prefix)).unwrap().len();
    let expected = sides::expected(pairs.keys().map(|(a, b)| (a.as_str(), b.as_str())), documents);
    let twice = (twice > 0).then(|| format!("{twice} rows of views are there twice"));
    twice.or_else(|| Some(format!("views: {}", sides::compare(&found, &expected)?)))
}

struct Scene<'a> {
    options: &'a Options,
    place: Place,
    database: &'a dyn Database,
    /// Prefix of the output's tables.
    prefix: &'static str,
    /// Moments of the kills: at least this many milliseconds after the start, plus a random number of up to
    /// the second.
    moments: (u64, u64),
    verdict: Verdict,
}

impl Scene<'_> {
    fn problem(&mut self, problem: String) {
        println!("PROBLEM {problem}");
        self.verdict.problems.push(problem);
    }

    /// Starts a run and kills it or the server.
    fn kill(&mut self, words: &str, kill: usize) {
        let point = POINTS[kill % POINTS.len()];
        let point = self.options.points.then(|| format!("{point}:{}", self.place.random(4)));
        let mut children = self.place.start(words, 1, point.as_deref());
        let (least, span) = self.moments;
        let moment = Duration::from_millis(least + self.place.random(span));
        if kill % 3 == 2 {
            place::wait(&mut children, moment);
            if self.database.kill() {
                println!("kill {kill}: the server was killed and started again");
            }
        }
        let ended =
            place::wait(&mut children, if self.options.points { Duration::from_secs(15) } else { moment });
        match ended {
            Some(true) => println!("kill {kill}: ended well before it was killed"),
            Some(false) if self.options.points => {
                println!("kill {kill}: killed at {}", point.unwrap_or_default());
            }
            Some(false) => {
                let log = self.place.log();
                self.problem(format!("kill {kill}: it failed by itself:\n    {log}"));
            }
            None => {
                let which = usize::try_from(self.place.random(64)).unwrap();
                self.verdict.problems.extend(place::kill(children, which));
                println!("kill {kill}: killed after {} ms", moment.as_millis());
            }
        }
        self.verdict.kills += usize::from(ended != Some(true));
        let Some(rows) = self.database.rows(&format!("SELECT count(*) FROM {}documents", self.prefix)) else {
            return;
        };
        println!("kill {kill}: {} documents are in the tables", rows[0][0]);
        self.verdict.commits_seen += 1;
        if look(self.database, self.prefix).is_some() {
            // The server may still execute what a client had sent before it was killed.
            std::thread::sleep(Duration::from_millis(500));
            look(self.database, self.prefix).into_iter().for_each(|problem| self.problem(problem));
        }
    }

    /// Lets a run end, and compares the tables with a replay of the survivors.
    fn finish(&mut self, words: &str, survivors: &BTreeMap<String, String>) {
        let mut children = self.place.start(words, 1, None);
        let well = place::wait(&mut children, BOUND);
        if well != Some(true) {
            children.iter_mut().for_each(|child| child.kill().unwrap_or(()));
            let log = self.place.log();
            self.problem(format!("the last run ended {well:?}:\n    {log}"));
            return;
        }
        let mut feed = String::new();
        for (id, text) in survivors {
            writeln!(feed, "{}", serde_json::json!({ "id": id, "text": text })).unwrap();
        }
        std::fs::write(self.place.path("survivors.jsonl"), feed).unwrap();
        let pipeline = format!("-p {}", self.options.pipeline);
        let expected = self.place.expected(&self.place.path("survivors.jsonl"), &pipeline);
        let found = pairs(self.database, self.prefix);
        self.verdict.pairs = found.len();
        let problem = place::compare(&found, &expected);
        self.compare_notices(&pipeline);
        problem.into_iter().chain(look(self.database, self.prefix)).for_each(|problem| self.problem(problem));
        let column = |sql| -> BTreeSet<String> {
            let rows = self.database.rows(&renamed(sql, self.prefix)).unwrap();
            rows.into_iter().map(|row| row.join("\t")).collect()
        };
        let alive: BTreeSet<String> =
            survivors.iter().map(|(id, text)| format!("{id}\t{}", text.len())).collect();
        let there = column("SELECT id, bytes FROM documents");
        let clusters = column("SELECT document, cluster FROM clusters");
        if there != alive {
            let other = there.symmetric_difference(&alive).count();
            self.problem(format!("{other} documents are others, of {}", alive.len()));
        }
        self.place.done(&format!("replay {pipeline} --emit clusters -o clusters.jsonl survivors.jsonl"));
        let mut members = BTreeSet::new();
        for line in std::fs::read_to_string(self.place.path("clusters.jsonl")).unwrap().lines() {
            let read: serde_json::Value = serde_json::from_str(line).unwrap();
            for member in read["members"].as_array().unwrap() {
                members.insert(format!(
                    "{}\t{}",
                    member.as_str().unwrap(),
                    read["cluster"].as_str().unwrap()
                ));
            }
        }
        if clusters != members {
            let other = clusters.symmetric_difference(&members).count();
            self.problem(format!("{other} members of clusters are others, of {}", members.len()));
        }
        // The views must equal the lists of the same documents.
        for (emit, keys, sql) in [
            ("keep", &["id"][..], "SELECT id FROM kept"),
            ("remove", &["id", "kept"], "SELECT r.id, r.kept FROM removed r"),
        ] {
            self.place.done(&format!("replay {pipeline} --emit {emit} -o list.jsonl survivors.jsonl"));
            let list = std::fs::read_to_string(self.place.path("list.jsonl")).unwrap();
            let row = |line| -> String {
                let read: serde_json::Value = serde_json::from_str(line).unwrap();
                keys.iter().map(|key| read[key].as_str().unwrap()).collect::<Vec<_>>().join("\t")
            };
            let (listed, viewed): (BTreeSet<String>, _) = (list.lines().map(row).collect(), column(sql));
            if viewed != listed {
                let other = viewed.symmetric_difference(&listed).count();
                self.problem(format!("{other} documents of --emit {emit} are others, of {}", listed.len()));
            }
        }
    }

    /// Compares the notices with those of a replay of the survivors.
    fn compare_notices(&mut self, pipeline: &str) {
        let rows = self.database.rows(&renamed("SELECT row FROM notices", self.prefix)).unwrap();
        let notices: BTreeSet<String> = rows.iter().map(|row| sides::row(&row[0])).collect();
        let fresh = sides::fresh_notices(&self.place, &self.place.path("survivors.jsonl"), pipeline);
        if let Some(other) = sides::compare(&notices, &fresh) {
            self.problem(format!("notices: {other}"));
        }
    }

    /// Reads a feed into tables, with kills, and compares the result.
    fn kill_from_feed(&mut self, alive: &BTreeMap<String, String>) {
        println!("a feed into tables");
        let words = format!("run -p {} -c feed.toml", self.options.pipeline);
        for kill in 0..self.options.kills {
            self.kill(&words, kill);
            if self.options.lose_state && kill == self.options.kills / 2 {
                println!("the state is deleted");
                std::fs::remove_dir_all(self.place.path("state")).unwrap_or(());
            }
        }
        self.finish(&words, alive);
    }

    /// Reads a table that is written meanwhile into tables, with kills, and compares the result. `rest` is
    /// the deployment file without its source.
    fn kill_from_table(
        &mut self,
        rest: &str,
        events: &[Event],
        alive: &BTreeMap<String, String>,
        watches: &[(String, String)],
    ) {
        println!("a table into tables");
        std::fs::remove_dir_all(self.place.path("state")).unwrap_or(());
        std::fs::remove_file(self.place.path("letters")).unwrap_or(());
        self.database.make(watches);
        (self.prefix, self.moments) = ("from_table_", (150, 900));
        for (name, follow) in [("live.toml", true), ("last.toml", false)] {
            let pages = format!(
                "[source]\n{}\ntable = \"pages\"\nid = \"page\"\ntext = \"body\"\norder \
                = \"changed\"\ndeleted = \
                 \"gone\"\n\
                 poll = \"20ms\"\npage = 50\noverlap = \"5s\"\nfollow = {follow}\n{}",
                self.database.place(),
                sides::FIELDS
            );
            let text = format!("workers = 1\n{pages}{rest}");
            std::fs::write(self.place.path(name), text).unwrap();
        }
        let (ended, database) = (AtomicBool::new(false), self.database);
        let kills = self.options.kills;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Writing lasts about as long as the kills. Each piece overlaps with another transaction.
                let pieces: Vec<&[Event]> = events.chunks(1 + events.len() / (4 * kills + 1)).collect();
                for two in pieces.chunks(2) {
                    let late = two.get(1).copied().unwrap_or_default();
                    // The two transactions change different documents.
                    let (mine, late): (Vec<Event>, Vec<Event>) = parted(two[0], late);
                    database.apply(&mine, &late);
                    if !ended.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(400));
                    }
                }
            });
            let live = format!("run -p {} -c live.toml", self.options.pipeline);
            (0..kills).for_each(|kill| self.kill(&live, kill));
            ended.store(true, Ordering::Relaxed);
        });
        self.finish(&format!("run -p {} -c last.toml", self.options.pipeline), alive);
    }
}

/// The live documents at the end of a feed.
fn survivors(events: &[Event]) -> BTreeMap<String, String> {
    let mut alive = BTreeMap::new();
    for Event { id, text } in events {
        match text {
            Some(text) => drop(alive.insert(id.clone(), text.clone())),
            None => drop(alive.remove(id)),
        }
    }
    alive
}

pub(crate) fn run(options: &Options, database: &dyn Database) -> Verdict {
    let place = Place::new(options);
    let feed = place.feed(options);
    let events: Vec<Event> = std::fs::read_to_string(&feed)
        .unwrap()
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .map(|read| Event {
            id: read["id"].as_str().unwrap().to_owned(),
            text: (read["op"] != "delete").then(|| read["text"].as_str().unwrap().to_owned()),
        })
        .collect();
    let alive = survivors(&events);
    let watches = sides::watches(&place, &feed);
    let rest = |list: &str| {
        let sides = sides::tables(list, "table = \"view_rows\"", "table = \"notices\"");
        format!(
            "[dead_letter]\npath = \"letters\"\n[state]\npath = \"state\"\ncommit_every = \"50ms\"\n{sides}"
        )
    };
    let in_file = rest(&format!("inputs = [\"{}\"]", sides::WATCHES));
    // The keys of the database are those of the source, except for the kind and the path of a file.
    let address = database.place().lines().last().unwrap().replacen("path = ", "database = ", 1);
    let in_table = rest(&format!("{address}\ntable = \"watches\"\norder = \"changed\""));
    let sink = format!("[sink]\n{}\nemit = \"deltas\"\n", database.place());
    let source =
        format!("[source]\nkind = \"files\"\ninputs = [{feed:?}]\nepoch = \"events:20\"\n{}", sides::FIELDS);
    std::fs::write(
        place.path("feed.toml"),
        format!("workers = 1\n{source}{sink}prefix = \"from_feed_\"\n{in_file}"),
    )
    .unwrap();
    let mut scene = Scene {
        options,
        place,
        database,
        prefix: "from_feed_",
        moments: (40, 200),
        verdict: Verdict::default(),
    };

    scene.kill_from_feed(&alive);
    if scene.verdict.is_good() {
        let deployment = format!("{sink}prefix = \"from_table_\"\n{in_table}");
        scene.kill_from_table(&deployment, &events, &alive, &watches);
    }
    scene.verdict
}

/// Splits two pieces of a feed into two concurrent transactions: an id in both is only in the first one, with
/// its last event.
fn parted(first: &[Event], second: &[Event]) -> (Vec<Event>, Vec<Event>) {
    let ids: BTreeSet<&String> = first.iter().map(|event| &event.id).collect();
    let (both, late): (Vec<Event>, Vec<Event>) =
        second.iter().cloned().partition(|event| ids.contains(&event.id));
    (first.iter().cloned().chain(both).collect(), late)
}

/// Adds the prefix of the output's tables to the names in a statement.
fn renamed(sql: &str, prefix: &str) -> String {
    let tables = ["pairs", "clusters", "documents", "deltas", "kept", "removed", "view_rows", "notices"];
    sql.split(' ')
        .map(|word| if tables.contains(&word) { format!("{prefix}{word}") } else { word.to_owned() })
        .collect::<Vec<_>>()
        .join(" ")
}
