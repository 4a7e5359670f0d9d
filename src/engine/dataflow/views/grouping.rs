//! Grouping: from the fields of documents to the group of a view.

use super::collections::ViewGroup;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::views::{Group, GroupPart, ViewPlan};

/// How a view groups. The operators of the views hold this instead of the plan.
#[derive(Clone, Debug)]
pub(super) struct Grouping {
    /// The place of the view among the views of the run.
    pub(super) view: u16,
    /// The places of its fields.
    fields: Vec<usize>,
    /// Where the class of a cluster's size is in the group, if it is there.
    pub(super) size_at: Option<usize>,
}

impl Grouping {
    /// The groupings of the plans that are chosen.
    pub(super) fn choose(plans: &[ViewPlan], mut choose: impl FnMut(&ViewPlan) -> bool) -> Vec<Self> {
        let chosen = (0..).zip(plans).filter(|(_, plan)| choose(plan));
        let grouping = |(view, plan): (u16, &ViewPlan)| Self {
            view,
            fields: plan.fields().collect(),
            size_at: plan.group.iter().position(|part| *part == GroupPart::Size),
        };
        chosen.map(grouping).collect()
    }

    /// Whether the group depends on the fields of documents.
    pub(super) fn reads_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The number of fields in the group.
    pub(super) fn fields(&self) -> usize {
        self.fields.len()
    }

    /// The one group of each view without fields.
    pub(super) fn whole(views: &[Self]) -> Vec<ViewGroup> {
        views.iter().map(|view| (view.view, Group::default())).collect()
    }

    /// The group of a document.
    pub(super) fn group(&self, values: &FieldRow) -> ViewGroup {
        (self.view, Group::new(self.fields.iter().map(|at| values.get(*at))))
    }

    /// The group of a pair, from the values of its two documents: the smaller list first.
    pub(super) fn group_of_pair(&self, a: &FieldRow, b: &FieldRow) -> ViewGroup {
        let values = |of: &FieldRow| self.fields.iter().map(|at| of.get(*at).to_owned()).collect::<Vec<_>>();
        let mut ends = [values(a), values(b)];
        ends.sort_unstable();
        (self.view, Group::new(ends.iter().flatten().map(String::as_str)))
    }
}
