//! The texts that a report shows, read from the inputs once more.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use tracing::subscriber::{NoSubscriber, with_default};

use super::found::Member;
use super::shown::Shown;
use crate::config::{Deployment, Plan};
use dupflow_connectors::inputs::{Input, for_each_event_until};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::DocEvent;
use dupflow_core::doc::fields::FieldRules;

/// Most characters of a text that are kept.
pub(super) const MOST: usize = 20_000;

/// What a report needs of the inputs beside the pairs.
pub(super) struct Texts {
    texts: BTreeMap<Member, String>,
    /// Documents of the reference, which are counted among all; `None` if it cannot be read twice.
    pub(super) reference: Option<u64>,
}

impl Texts {
    /// Reads the last texts of the documents that are shown. Standard input and pipes are not read twice.
    /// What is wrong with a record was logged when it was read first.
    ///
    /// # Errors
    /// If an input cannot be read.
    pub(super) fn read(
        plan: &Plan,
        deployment: &Deployment,
        inputs: &[Input],
        shown: &Shown,
    ) -> anyhow::Result<Self> {
        let (wanted, until) = (shown.members(), deployment.audit.until);
        let (old, new) = inputs.split_at(deployment.against);
        let is_kept = |input: &Input| match input.path() {
            Some(path) => path.metadata().is_ok_and(|found| found.is_file() || found.is_dir()),
            None => !input.is_stdin(),
        };
        let can_be_read = |side: &[Input]| side.iter().all(is_kept);
        let (mut texts, mut of_reference) = (BTreeMap::new(), BTreeSet::new());
        for (is_old, side) in [(true, old), (false, new)].into_iter().filter(|(_, of)| can_be_read(of)) {
            let (bad, columns) = (BadRecords::new(OnError::Count, None), plan.scheme.text.columns());
            let mut each = |event: DocEvent<'_>| {
                if event.ts.zip(until).is_some_and(|(ts, until)| ts > until.seconds()) {
                    return;
                }
                let member = Arc::new((is_old, event.id.as_str().to_owned()));
                if is_old && event.text.is_some() {
                    of_reference.insert(event.id.clone());
                } else if is_old {
                    of_reference.remove(&event.id);
                }
                if let Some(text) = event.text.filter(|_| wanted.contains(&member)) {
                    texts.insert(member, text.chars().take(MOST).collect());
                }
            };
            let none = FieldRules::default();
            with_default(NoSubscriber::default(), || {
                for_each_event_until(side.to_vec(), &columns, &none, &bad, |_, event| {
                    each(event);
                    ControlFlow::Continue(())
                })
            })?;
        }
        Ok(Self { texts, reference: can_be_read(old).then_some(of_reference.len() as u64) })
    }

    /// The text of a document, up to its first [`MOST`] characters.
    pub(super) fn text(&self, member: &Member) -> Option<&str> {
        self.texts.get(member).map(String::as_str)
    }
}
