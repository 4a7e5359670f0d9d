//! The state of a corpus, as an earlier one left it.

use dupflow::config::Plan;
use dupflow::connectors::state::{self, StoredState};
use dupflow::core::time::Epoch;
use pyo3::prelude::*;

use crate::errors::{self, StateError};
use crate::ids::IdKind;
use crate::wait::Call;

/// Bytes of restored documents that are read to learn the kind of their ids.
const LOOK_BYTES: usize = 1 << 10;

/// Opens a state, or a new one; returns it with the kind of the ids in it, if it has any.
///
/// # Errors
/// `StateError`, `OSError`.
pub(crate) fn open(
    call: &Call<'_, '_>,
    place: &str,
    plan: &Plan,
) -> PyResult<(StoredState, Option<IdKind>)> {
    let (own_place, own_plan) = (place.to_owned(), plan.clone());
    let result = call.apart(move || opened(&own_place, &own_plan))?;
    result.map_err(|why| match why {
        NotOpened::State(error) => errors::of_state(&error),
        NotOpened::Other(what) => StateError::new_err(what),
    })
}

/// Why a state was not opened.
enum NotOpened {
    State(state::StateError),
    Other(String),
}

impl From<state::StateError> for NotOpened {
    fn from(error: state::StateError) -> Self {
        Self::State(error)
    }
}

fn opened(place: &str, plan: &Plan) -> Result<(StoredState, Option<IdKind>), NotOpened> {
    let mut stored = match StoredState::open_alone(state::at(place)?) {
        Err(state::StateError::Missing { .. }) => StoredState::open(state::at(place)?)?,
        opened => opened?,
    };
    let Some(snapshot) = stored.latest(Epoch::MAX)? else { return Ok((stored, None)) };
    let of_state = &snapshot.saved().mark.pipeline;
    let description = plan.description();
    if *of_state != String::from_utf8_lossy(&description.encode()) {
        let differences = description.differences(of_state.as_bytes()).unwrap_or_default();
        let listed: Vec<_> = differences.iter().map(ToString::to_string).collect();
        let what = format!("the state was written by another pipeline: {}", listed.join("; "));
        return Err(NotOpened::Other(what));
    }
    let mut kind = None;
    let read = snapshot.read(LOOK_BYTES, |slice| {
        kind = slice.iter().find(|(_, value)| value.is_some()).map(|(id, _)| IdKind::new(id));
        // One document says it.
        if kind.is_some() { Err(Looked::Enough) } else { Ok(()) }
    });
    match read {
        Ok(()) | Err(Looked::Enough) => Ok((stored, kind)),
        Err(Looked::State(error)) => Err(error.into()),
    }
}

/// Why the look at the documents of a state ended.
enum Looked {
    Enough,
    State(state::StateError),
}

impl From<state::StateError> for Looked {
    fn from(error: state::StateError) -> Self {
        Self::State(error)
    }
}
