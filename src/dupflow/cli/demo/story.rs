//! The feed of the demo: short readable texts that are inserted, copied, edited, rewritten and deleted.
//!
//! The feed is the same in every run. A time stamp is a second; events of one second are one epoch.

use serde_json::json;

/// Seconds between two originals.
const PACE: usize = 3;

/// Originals in the feed; it takes about `PACE * ORIGINALS` seconds.
const ORIGINALS: usize = 40;

/// The first time stamp, in unix seconds; only differences matter.
const BEGIN: usize = 1_793_491_200;

const PLACES: [&str; 11] = [
    "Ashford",
    "Brookhill",
    "Carran",
    "Dunmore",
    "Eastwick",
    "Fairley",
    "Glenside",
    "Harrow Bay",
    "Inverlea",
    "Jarrow",
    "Kilbride",
];

const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A document in the feed: what it is about, and its edit.
#[derive(Clone, Copy, Debug)]
struct Article {
    /// Its place in the sequence of originals.
    number: usize,
    version: Version,
}

#[derive(Clone, Copy, Debug)]
enum Version {
    Original,
    /// One sentence more.
    Edited,
    /// Another text about the same place.
    Rewritten,
}

impl Article {
    fn text(self) -> String {
        let Self { number, version } = self;
        let place = PLACES[number % PLACES.len()];
        let day = DAYS[number % DAYS.len()];
        let count = 3 + number % 13;
        let text = match (version, number % 5) {
            (Version::Rewritten, _) => return rewritten(number),
            (_, 0) => format!(
                "The old stone bridge in {place} will be closed for repairs from {day}. The council of \
                 {place} expects the work to take {count} weeks and asks drivers to use the northern \
                 road. Buses stop at the market meanwhile."
            ),
            (_, 1) => format!(
                "The library of {place} opens again on {day} after a year of work. Readers find {count} \
                 thousand books, a room for children and a quiet floor with desks. The people of {place} \
                 paid for half of it."
            ),
            (_, 2) => format!(
                "A walk of {count} hours leads from {place} along the river to the mill and back over the \
                 hills. Start early on {day}, take water and bread with you, and be back in {place} \
                 before the last bus leaves."
            ),
            (_, 3) => format!(
                "Trains between {place} and the coast run every {count} minutes from {day}. Tickets of \
                 the old line are valid until the end of the year, and {place} gets a second platform \
                 with a roof."
            ),
            (_, _) => format!(
                "The market of {place} moves to the harbour on {day}. More than {count} stalls sell fish, \
                 cheese and flowers from the islands, and musicians from {place} play until the boats \
                 leave in the evening."
            ),
        };
        if matches!(version, Version::Edited) { format!("{text} More follows.") } else { text }
    }
}

/// A text about another subject. Two of them differ in two of three sentences at least, or are one text.
fn rewritten(number: usize) -> String {
    const SUBJECTS: [&str; 11] = [
        "The observatory on the hill shows the rings of Saturn to visitors with warm coats.",
        "A bakery near the station has baked the same dark bread since the war.",
        "Volunteers counted herons, swans and one lost pelican along the canal.",
        "The school choir sings old sailors' songs in the empty swimming pool tonight.",
        "A clockmaker repairs the tower clock, which has been six minutes slow for years.",
        "Farmers expect a late harvest after the wettest spring that anyone remembers.",
        "The cinema shows silent films with a pianist every second week.",
        "Divers found an anchor that is older than the harbour itself.",
        "The new tram line is quiet enough to hear the bells again.",
        "A gardener grows forty kinds of apples behind the town hall.",
        "Children painted the fence of the building site with whales.",
    ];
    const DETAILS: [&str; 5] = [
        "The mayor learned of it from a neighbour and came at once with a camera.",
        "Tickets cost less than a cup of coffee, and the money goes to the roof.",
        "Nobody knows who began it, but everybody has a story to tell about it.",
        "A short film about the work will be shown in the library next winter.",
        "Two reporters of this paper went to see it, and stayed until the evening.",
    ];
    const ENDS: [&str; 3] = [
        "Letters to the editor are welcome, as always.",
        "More pictures are on page nine of this issue.",
        "The weather should hold until the end of the week.",
    ];
    let pick = |texts: &[&'static str], by: usize| texts[by % texts.len()];
    format!("{} {} {}", pick(&SUBJECTS, number), pick(&DETAILS, number / 2), pick(&ENDS, number / 4))
}

/// An event: a second from the beginning, an id, and the document, or `None` for a delete.
type Event = (usize, String, Option<Article>);

/// All events, by time.
fn events() -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for number in 0..ORIGINALS {
        let at = 1 + number * PACE;
        let mut upsert = |after: usize, site: &str, version| {
            events.push((at + after, format!("{site}/{number}"), Some(Article { number, version })));
        };
        upsert(0, "news", Version::Original);
        match number % 4 {
            0 => {
                upsert(2, "mirror", Version::Original);
                events.push((at + 10, format!("mirror/{number}"), None));
            }
            1 => {
                upsert(2, "paper", Version::Edited);
                upsert(9, "paper", Version::Rewritten);
            }
            2 => {
                upsert(1, "mirror", Version::Original);
                upsert(3, "paper", Version::Edited);
                events.push((at + 12, format!("news/{number}"), None));
            }
            _ => upsert(2, "forum", Version::Rewritten),
        }
    }
    events.sort_by_key(|(at, ..)| *at);
    events
}

/// The feed as JSON Lines.
pub(super) fn feed() -> String {
    let line = |(at, id, article): Event| {
        let ts = BEGIN + at;
        let event = match article {
            Some(article) => json!({"id": id, "ts": ts, "text": article.text()}),
            None => json!({"id": id, "ts": ts, "op": "delete"}),
        };
        format!("{event}\n")
    };
    events().into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn deletes_and_edits_follow_their_documents() {
        let mut alive = BTreeSet::new();
        let (mut updates, mut deletes) = (0, 0);
        for (_, id, article) in events() {
            match article {
                Some(_) => updates += usize::from(!alive.insert(id)),
                None => {
                    assert!(alive.remove(&id), "{id} is deleted before it is inserted");
                    deletes += 1;
                }
            }
        }
        assert!(updates >= 5 && deletes >= 10, "{updates} updates, {deletes} deletes");
        assert!(feed().lines().count() > 100);
    }
}
