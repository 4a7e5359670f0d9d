//! What an earlier run has read, from the list in the output's mark and the one in the state.

use crate::intake::{PastInputs, Resumption};
use crate::mark::{InputList, InputSpan, digest};

/// The list that counts.
pub(super) struct PastList {
    /// With all of its spans, the last one perhaps of an input that was not read to its end.
    pub(super) list: InputList,
    /// [`Resumption::FromState`] if the output's list is not a continuation of the state's.
    pub(super) resumption: Resumption,
    /// Number of the first spans that are in the state.
    pub(super) stored: u64,
}

impl PastList {
    /// `None` if the program that wrote the marks made no list, or there is no mark.
    pub(super) fn join(past: &PastInputs) -> Option<Self> {
        let state = past.of_state.as_ref();
        // A state that is read again takes the whole list anew.
        let stored = state.filter(|_| past.has_documents).map_or(0, |state| state.spans.len() as u64);
        let (list, resumption) = match (state, &past.of_output) {
            (None, None) => return None,
            (Some(state), None) => (whole(state, &[]), Resumption::AsRead),
            (None, Some(output)) => {
                // The spans that a lost state had are not known.
                let is_cut = output.is_cut || output.stored > 0;
                let list = whole(output, &[]);
                (
                    InputList { is_cut, spans: list.spans.into_iter().filter(|_| !is_cut).collect(), ..list },
                    Resumption::AsRead,
                )
            }
            (Some(state), Some(output)) => {
                let own = whole(state, &[]);
                match joined(state, output) {
                    Some(list) if continues(&own.spans, &list.spans) => (list, Resumption::AsRead),
                    Some(list) if continues(&list.spans, &own.spans) => (own, Resumption::AsRead),
                    _ => (own, Resumption::FromState),
                }
            }
        };
        Some(Self { list, resumption, stored })
    }
}

/// The list with its spans after these.
fn whole(list: &InputList, before: &[InputSpan]) -> InputList {
    let spans = before.iter().chain(list.all()).cloned().collect();
    InputList { stored: 0, digest: 0, spans, open: None, ..list.clone() }
}

/// The output's list, with the spans that the state has of it; `None` if they are not of it.
fn joined(state: &InputList, output: &InputList) -> Option<InputList> {
    let stored = usize::try_from(output.stored).ok()?;
    let before = state.spans.get(..stored).filter(|before| digest(*before) == output.digest)?;
    (!output.is_cut).then(|| whole(output, before))
}

/// Whether reading on can have made the later list of the earlier one.
fn continues(earlier: &[InputSpan], later: &[InputSpan]) -> bool {
    let is_same =
        |(a, b): (&InputSpan, &InputSpan)| a.is_of(b) && (a.first, a.skipped) == (b.first, b.skipped);
    let is_whole = |(a, b): (&InputSpan, &InputSpan)| a.records == b.records;
    let shared = earlier.len().saturating_sub(1);
    earlier.len() <= later.len()
        && earlier.iter().zip(later).all(is_same)
        && earlier[..shared].iter().zip(later).all(is_whole)
        && earlier.last().is_none_or(|last| last.records <= later[shared].records)
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn span(name: &str, first: u64, records: u64) -> InputSpan {
        InputSpan { name: name.to_owned(), first, records, ..InputSpan::default() }
    }

    #[test]
    fn the_output_continues_the_list_of_the_state() {
        let (a, b) = (span("a", 0, 3), span("b", 3, 4));
        let state =
            |open: Option<InputSpan>| InputList { spans: vec![a.clone()], open, ..InputList::default() };
        let output = |stored: &[InputSpan], spans: &[InputSpan]| InputList {
            stored: stored.len() as u64,
            digest: digest(stored),
            spans: spans.to_vec(),
            ..InputList::default()
        };
        let part = span("b", 3, 1);
        let of = |of_state: InputList, of_output: InputList| {
            let (of_state, of_output) = (Some(of_state), Some(of_output));
            let past = PastInputs { of_state, of_output, has_documents: true, ..PastInputs::default() };
            PastList::join(&past).map(|past| (past.list.spans, past.resumption, past.stored)).unwrap()
        };
        let both = vec![a.clone(), b.clone()];
        assert_eq!(
            of(state(Some(part.clone())), output(from_ref(&a), from_ref(&b))),
            (both.clone(), Resumption::AsRead, 1)
        );
        assert_eq!(of(state(None), output(&[], &both)), (both, Resumption::AsRead, 1));
        // The output is of another list, or does not say what it read after the state.
        let own = (vec![a.clone(), part.clone()], Resumption::FromState, 1);
        for other in [
            output(&[span("c", 0, 3)], from_ref(&b)),
            output(from_ref(&a), &[span("c", 3, 4)]),
            InputList { is_cut: true, ..output(from_ref(&a), &[]) },
        ] {
            assert_eq!(of(state(Some(part.clone())), other), own);
        }
    }

    #[test]
    fn without_a_state_its_spans_are_not_known() {
        let output = InputList { stored: 2, spans: vec![span("a", 9, 1)], ..InputList::default() };
        let past = PastInputs { of_output: Some(output), ..PastInputs::default() };
        let found = PastList::join(&past).unwrap();
        assert!(found.list.is_cut && found.list.spans.is_empty());
        assert!(PastList::join(&PastInputs::default()).is_none());
    }
}
