//! Answer: collects the partial answers to a query on the worker that admitted it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::{AnswerPart, PartialAnswer, QueryId, QueryMatch};
use crate::dataflow::operator::Operator;
use dupflow_core::hash::SketchId;
use dupflow_core::time::Epoch;
use dupflow_run::query::{Answer, LastEvent, Reply, SimilarDocument};

/// The queries that a worker has admitted and not yet answered.
pub(in crate::dataflow) struct PendingQueries {
    worker: u64,
    next: u64,
    by_number: BTreeMap<u64, PendingQuery>,
}

/// The partial answers to a query so far.
struct PendingQuery {
    reply: Reply,
    top: usize,
    /// Set by "Enter": whether the query has a sketch, the number of probes, and what is known of the
    /// document.
    entered: Option<(bool, usize, Option<LastEvent>)>,
    probes_answered: usize,
    /// The number of comparisons that the answered probes have announced.
    comparisons: usize,
    comparisons_answered: usize,
    /// By sketch, since the blocks of two workers may have found the same candidate.
    matches: BTreeMap<SketchId, QueryMatch>,
    /// The only match, instead of `matches`: see [`AnswerPart::Hidden`].
    hidden_by: Option<QueryMatch>,
}

impl PendingQueries {
    /// Without queries.
    pub(in crate::dataflow) fn new(worker: usize) -> Self {
        Self { worker: worker as u64, next: 0, by_number: BTreeMap::new() }
    }

    /// Adds a query that asks for the best `top` documents.
    pub(in crate::dataflow) fn admit(&mut self, reply: Reply, top: usize) -> QueryId {
        let number = self.next;
        self.next += 1;
        let query = PendingQuery {
            reply,
            top,
            entered: None,
            probes_answered: 0,
            comparisons: 0,
            comparisons_answered: 0,
            matches: BTreeMap::new(),
            hidden_by: None,
        };
        self.by_number.insert(number, query);
        QueryId { worker: self.worker, number }
    }

    /// Adds a partial answer. Returns the query if this was the last one, and removes it.
    fn add(&mut self, PartialAnswer { query_id, part }: PartialAnswer) -> Option<PendingQuery> {
        let query = self
            .by_number
            .get_mut(&query_id.number)
            .expect("a query is pending until its last partial answer");
        query.add(part);
        if query.is_complete() { self.by_number.remove(&query_id.number) } else { None }
    }
}

impl PendingQuery {
    fn add(&mut self, part: AnswerPart) {
        match part {
            AnswerPart::Entered { sketched, probes, document } => {
                self.entered = Some((sketched, probes, document));
            }
            AnswerPart::Compared(count) => {
                self.probes_answered += 1;
                self.comparisons += count;
            }
            AnswerPart::Matches(matches) => {
                self.comparisons_answered += 1;
                self.matches.extend(matches.into_iter().map(|one| (one.sketch, one)));
            }
            AnswerPart::Hidden(copies) => {
                self.comparisons_answered += 1;
                self.hidden_by = Some(copies);
            }
        }
    }

    /// Whether all announced probes and comparisons have been answered.
    fn is_complete(&self) -> bool {
        self.entered.is_some_and(|(_, probes, _)| probes == self.probes_answered)
            && self.comparisons == self.comparisons_answered
    }

    /// Sends the answer, of an epoch.
    fn answer(mut self, epoch: Epoch) {
        let (sketched, _, document) = self.entered.unwrap_or_default();
        let mut more = 0;
        let mut similar = Vec::new();
        if self.hidden_by.is_some() {
            self.matches.clear();
        }
        for QueryMatch { accepted, documents, more: others, .. } in
            self.matches.into_values().chain(self.hidden_by)
        {
            more += others;
            similar.extend(documents.into_iter().map(|id| SimilarDocument {
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

/// Answers queries on the worker that admitted them, once all announced partial answers have arrived.
pub(in crate::dataflow) fn answer(
    partial_answers: Stream<'_, Epoch, Vec<PartialAnswer>>,
    pending: Rc<RefCell<PendingQueries>>,
) {
    let mut operator = Operator::new("Answer", partial_answers.scope());
    let mut partial_answers = operator.input(
        partial_answers,
        Exchange::new(|partial_answer: &PartialAnswer| partial_answer.query_id.worker),
    );
    operator.build(move |_| {
        partial_answers.for_each_time(|time, data| {
            // Partial answers are at the time of the epoch after the one that they describe.
            let epoch = time.time() - 1;
            for partial_answer in data.flat_map(|d| d.drain(..)) {
                let complete = pending.borrow_mut().add(partial_answer);
                complete.into_iter().for_each(|query| query.answer(epoch));
            }
        });
    });
}
