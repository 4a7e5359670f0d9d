//! Documents of the views: the fields of the live documents, from what the workers report of each epoch.

use differential_dataflow::operators::arrange::upsert::arrange_from_upsert;
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Pipeline;

use super::collections::Documents;
use crate::dataflow::operator::Operator;
use crate::dataflow::output::EpochReport;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::{DocChange, DocId};
use dupflow_core::time::Epoch;

/// A document with its fields after an epoch; `None` if it is no longer alive.
type FieldChange = (DocId, Option<FieldRow>, Epoch);

/// Takes the changes of documents out of the reports. `keeps`: they stay among the reports as well, because
/// the output needs them.
pub(super) fn changes<'scope>(
    reports: Stream<'scope, Epoch, Vec<EpochReport>>,
    keeps: bool,
) -> (Stream<'scope, Epoch, Vec<EpochReport>>, Stream<'scope, Epoch, Vec<FieldChange>>) {
    let mut operator = Operator::new("Documents of views", reports.scope());
    let mut reports = operator.input(reports, Pipeline);
    let (mut others, others_stream) = operator.output();
    let (mut changes, changes_stream) = operator.output();
    operator.build(move |_| {
        reports.for_each_time(|time, data| {
            let epoch = *time.time();
            let (mut others, mut changes) = (others.at_time(&time), changes.at_time(&time));
            for report in data.flat_map(|batch| batch.drain(..)) {
                let EpochReport::Documents(documents) = &report else {
                    others.give(report);
                    continue;
                };
                changes.give_all(documents.iter().map(|DocChange { id, now, fields, .. }| {
                    (id.clone(), now.as_ref().map(|_| fields.clone()), epoch)
                }));
                if keeps {
                    others.give(report);
                }
            }
        });
    });
    (others_stream, changes_stream)
}

/// Arranges the fields of live documents by id. A document has at most one change in an epoch.
pub(super) fn arrange<'scope>(changes: Stream<'scope, Epoch, Vec<FieldChange>>) -> Documents<'scope> {
    arrange_from_upsert::<ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>, _, _>(changes, "Fields of documents")
}
