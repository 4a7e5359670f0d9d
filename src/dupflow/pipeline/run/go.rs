//! Where a run begins, as process 0 sends it to the others.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::process_group::{PeerTask, ProcessGroup, failure};
use crate::pipeline::error::{RunError, chain};
use crate::pipeline::past::Past;
use dupflow_connectors::intake::CatchUpLine;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{SharedState, Snapshot, StateError, StateOwner};
use dupflow_core::text::{IdfTable, TextRules};
use dupflow_core::time::{LiveFrom, Offsets};
use dupflow_engine::processes::{ControlEvent, ControlMessage};

/// Where a run begins, as process 0 sends it.
#[derive(Serialize, Deserialize)]
struct Go {
    mark: Mark,
    begin: Offsets,
    lines: Vec<CatchUpLine>,
    table: Option<String>,
    /// The encoded snapshot of the state, if there is one.
    snapshot: Option<Vec<u8>>,
    /// The owner of the state, if documents are stored.
    owner: Option<StateOwner>,
    keeps: bool,
    #[serde(rename = "tells_documents")]
    emits_documents: bool,
    emits_upserts: bool,
}

impl ProcessGroup {
    /// Process 0: waits until all others could begin.
    pub(in crate::pipeline) fn wait_for_others(&self) -> Result<(), RunError> {
        let mut prepared = 1;
        while prepared < self.count() {
            match self.notes.1.recv() {
                Ok(PeerTask::Received(_, ControlEvent::Message(ControlMessage::Prepared))) => prepared += 1,
                Ok(PeerTask::Received(_, event)) => failure(&self.control, event).map_or(Ok(()), Err)?,
                Ok(PeerTask::Reached(..) | PeerTask::Ended) => {}
                Err(_) => return Err(RunError::Process("the control connection has ended".to_owned())),
            }
        }
        Ok(())
    }

    /// Process 0: sends where the run begins.
    pub(in crate::pipeline) fn go(
        &self,
        past: &Past,
        rules: &TextRules,
        owner: Option<StateOwner>,
    ) -> Result<(), RunError> {
        let mut table = Vec::new();
        if let Some(in_force) = &past.table {
            in_force.write(rules, &mut table).map_err(RunError::Sink)?;
        }
        let table = past.table.is_some().then(|| String::from_utf8_lossy(&table).into_owned());
        let (mark, begin, lines) = (past.mark.clone(), past.begin.clone(), past.lines.clone());
        let snapshot = past.snapshot.as_ref().map(Snapshot::encode);
        let Past { keeps, emits_documents, emits_upserts, .. } = *past;
        let go = Go { mark, begin, lines, table, snapshot, owner, keeps, emits_documents, emits_upserts };
        let go = serde_json::to_vec(&go);
        self.control.send(ControlMessage::Go(go.map_err(|error| RunError::Process(error.to_string()))?));
        Ok(())
    }

    /// Every other process: waits for the message that says where the run begins. `state`: that of process 0,
    /// if this process reaches it.
    pub(in crate::pipeline) fn wait_for_go(
        &self,
        rules: &TextRules,
        state: Option<SharedState>,
    ) -> Result<Past, RunError> {
        self.control.send(ControlMessage::Prepared);
        let unread = |what: String| {
            RunError::Process(format!("what process 0 says of the run cannot be read: {what}"))
        };
        loop {
            match self.notes.1.recv() {
                Ok(PeerTask::Received(_, ControlEvent::Message(ControlMessage::Go(go)))) => {
                    let Go {
                        mark,
                        begin,
                        lines,
                        table,
                        snapshot,
                        owner,
                        keeps,
                        emits_documents,
                        emits_upserts,
                    } = serde_json::from_slice(&go).map_err(|error| unread(error.to_string()))?;
                    let snapshot = snapshot.zip(state.as_ref()).map(|(bytes, state)| state.snapshot(&bytes));
                    let writer = state.zip(owner).and_then(|(state, owner)| {
                        let writer = state.writer(&owner, self.index());
                        let sent = |error: &StateError| {
                            let error = chain(error);
                            tracing::warn!(error, "the state cannot be written here: process 0 writes it");
                        };
                        writer.inspect_err(sent).ok()
                    });
                    let read = |text: String| IdfTable::read(rules, text.as_bytes()).map(Arc::new);
                    let table = table.map(read).transpose().map_err(|error| unread(error.to_string()))?;
                    let live = Arc::new(LiveFrom::default());
                    return Ok(Past {
                        mark,
                        begin,
                        lines,
                        live,
                        keeps,
                        emits_documents,
                        emits_upserts,
                        snapshot: snapshot.transpose()?.flatten(),
                        writer,
                        table,
                        output_pairs: None,
                        letters_up_to: Offsets::new(),
                        as_of: None,
                        reading: None,
                        looks: None,
                        is_unlisted: false,
                        epoch: 0,
                    });
                }
                Ok(PeerTask::Received(_, event)) => {
                    if let Some(error) = failure(&self.control, event) {
                        return Err(error);
                    }
                }
                Ok(PeerTask::Reached(..) | PeerTask::Ended) => {}
                Err(_) => return Err(RunError::Process("the control connection has ended".to_owned())),
            }
        }
    }
}
