//! Admit: takes queries from the queue, and gives them what they are compared by.

use std::cell::RefCell;
use std::rc::Rc;

use timely::dataflow::operators::Capability;

use super::{IdQuery, PendingQueries, QuerySubject, ResolvedQuery};
use crate::dataflow::operator::Output;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::without_separators;
use dupflow_core::hash;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::time::Epoch;
use dupflow_run::query::{Query, QueryReceiver, QueuedQuery};

/// Queries that are admitted between two batches of events: enough to keep their waiting time short, few
/// enough to hardly delay the events.
const QUERIES_AT_ONCE: usize = 4;

/// Admits the queries of one worker.
pub(in crate::dataflow) struct Admission {
    receiver: QueryReceiver,
    pending: Rc<RefCell<PendingQueries>>,
    resolved: Output<ResolvedQuery>,
    id_queries: Output<IdQuery>,
    /// Whether documents have fields: then separators of fields are removed from texts.
    has_fields: bool,
    /// Whether there is a reference: then ids of queries are those of the corpus beside it.
    has_reference: bool,
    /// Whether weights are live: then text queries carry terms.
    is_live: bool,
}

impl Admission {
    pub(in crate::dataflow) fn new(
        stages: &Stages,
        receiver: QueryReceiver,
        pending: Rc<RefCell<PendingQueries>>,
        resolved: Output<ResolvedQuery>,
        id_queries: Output<IdQuery>,
    ) -> Self {
        let has_fields = !stages.scheme.text.field_names().is_empty();
        let is_live = stages.scheme.live().is_some();
        let has_reference = stages.scheme.pairs.has_reference();
        Self { receiver, pending, resolved, id_queries, has_fields, has_reference, is_live }
    }

    /// Admits a few queries at the time of the capabilities, on a run that is live. Returns whether more may
    /// be waiting.
    pub(in crate::dataflow) fn admit(
        &mut self,
        capabilities: &[Capability<Epoch>],
        maker: &mut SketchMaker,
    ) -> bool {
        self.receiver.live();
        for _ in 0..QUERIES_AT_ONCE {
            let Some(QueuedQuery { query, reply }) = self.receiver.take(*capabilities[0].time()) else {
                return false;
            };
            match query {
                Query::Text { text, top } => {
                    let query_id = self.pending.borrow_mut().admit(reply, top);
                    let subject = self.subject(&text, maker);
                    let resolved = ResolvedQuery { query_id, top, document: None, subject };
                    self.resolved.at(capabilities).give(resolved);
                }
                Query::Document { id, top } => {
                    let query_id = self.pending.borrow_mut().admit(reply, top);
                    let id = if self.has_reference { id.beside_reference() } else { id };
                    let hash = hash::bytes(0, id.as_bytes());
                    self.id_queries.at(capabilities).give(IdQuery { query_id, top, hash, id });
                }
            }
        }
        true
    }

    /// What a text is compared by.
    fn subject(&self, text: &str, maker: &mut SketchMaker) -> QuerySubject {
        let text = if self.has_fields { without_separators(text) } else { text.into() };
        if self.is_live {
            let terms = maker.terms(&text);
            terms.map_or(QuerySubject::Nothing, |terms| QuerySubject::Terms(Box::new(terms)))
        } else {
            let made = maker.sketch(&text);
            made.map_or(QuerySubject::Nothing, |(id, sketch)| QuerySubject::Sketch(id, Box::new(sketch)))
        }
    }
}
