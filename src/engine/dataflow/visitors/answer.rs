//! Answer: what a visitor has found, gathered where it was let in.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::{Met, Name, Note, Said};
use dupflow_core::hash::SketchId;
use dupflow_core::run::visit::{Answer, Found, Reply, Similar};
use dupflow_core::time::Epoch;

/// The visitors that a worker has let in and that are under way.
pub(in crate::dataflow) struct Lobby {
    worker: u64,
    next: u64,
    by_number: BTreeMap<u64, Gathered>,
}

/// What has been heard of a visitor.
struct Gathered {
    reply: Reply,
    top: usize,
    /// Whether it has a sketch, how many workers' blocks say whom they have sent it to, and what is known of
    /// the document; once that is known.
    entered: Option<(bool, usize, Option<Found>)>,
    /// How many have, to how many workers, and how many of these have said what they found.
    heard: (usize, usize, usize),
    /// Two workers' blocks may have sent it to the same sketch.
    met: BTreeMap<SketchId, Met>,
    /// All that it is paired with, whatever else it has met: see [`Said::Hidden`].
    hidden_by: Option<Met>,
}

impl Lobby {
    /// Nobody is there.
    pub(in crate::dataflow) fn new(worker: usize) -> Self {
        Self { worker: worker as u64, next: 0, by_number: BTreeMap::new() }
    }

    /// Lets a visitor in, who is told the best `top`.
    pub(in crate::dataflow) fn let_in(&mut self, reply: Reply, top: usize) -> Name {
        let number = self.next;
        self.next += 1;
        let met = BTreeMap::new();
        let gathered = Gathered { reply, top, entered: None, heard: (0, 0, 0), met, hidden_by: None };
        self.by_number.insert(number, gathered);
        Name { worker: self.worker, number }
    }

    /// Takes a note; who has found all that there is, leaves.
    fn take(&mut self, Note { name, said }: Note) -> Option<Gathered> {
        let gathered = self.by_number.get_mut(&name.number).expect("a visitor is there until all is said");
        gathered.hear(said);
        if gathered.is_whole() { self.by_number.remove(&name.number) } else { None }
    }
}

impl Gathered {
    fn hear(&mut self, said: Said) {
        let (blocks, calls, found) = &mut self.heard;
        match said {
            Said::Entered { sketched, guests, document } => {
                self.entered = Some((sketched, guests, document));
            }
            Said::Sent(sent) => {
                *blocks += 1;
                *calls += sent;
            }
            Said::Found(met) => {
                *found += 1;
                self.met.extend(met.into_iter().map(|met| (met.sketch, met)));
            }
            Said::Hidden(copies) => {
                *found += 1;
                self.hidden_by = Some(copies);
            }
        }
    }

    /// Whether all has been said: then as many have been heard as were told of.
    fn is_whole(&self) -> bool {
        let (blocks, calls, found) = self.heard;
        self.entered.is_some_and(|(_, guests, _)| guests == blocks) && calls == found
    }

    /// The answer, of an epoch.
    fn answer(mut self, epoch: Epoch) {
        let (sketched, _, document) = self.entered.unwrap_or_default();
        let mut more = 0;
        let mut similar = Vec::new();
        if self.hidden_by.is_some() {
            self.met.clear();
        }
        for Met { accepted, documents, more: others, .. } in self.met.into_values().chain(self.hidden_by) {
            more += others;
            similar.extend(documents.into_iter().map(|id| Similar {
                id,
                similarity: accepted.similarity,
                evidence: accepted.evidence,
            }));
        }
        similar.sort_unstable_by(|a, b| (Reverse(a.similarity), &a.id).cmp(&(Reverse(b.similarity), &b.id)));
        more += similar.len().saturating_sub(self.top);
        similar.truncate(self.top);
        self.reply.answer(Answer { epoch, sketched, document, similar, more });
    }
}

/// Answers visitors, each where it was let in, once all that was announced has been said.
pub(in crate::dataflow) fn answer(notes: Stream<'_, Epoch, Vec<Note>>, lobby: Rc<RefCell<Lobby>>) {
    let mut builder = OperatorBuilder::new("Answer".to_owned(), notes.scope());
    let mut notes = builder.new_input(notes, Exchange::new(|note: &Note| note.name.worker));
    builder.build(move |_| {
        move |_| {
            notes.for_each_time(|time, data| {
                // They came at the time of the epoch that follows the one that they have seen.
                let epoch = time.time() - 1;
                for note in data.flat_map(|d| d.drain(..)) {
                    let whole = lobby.borrow_mut().take(note);
                    whole.into_iter().for_each(|gathered| gathered.answer(epoch));
                }
            });
        }
    });
}
