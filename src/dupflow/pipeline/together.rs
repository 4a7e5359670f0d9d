//! A run of several processes: what this one tells the others, and what it does when they tell it something.
//!
//! ```text
//!            Go: where the run begins                   Opened, Reached, Stop, Measures, Done
//!  process 0 ────────────────────────▶ the others       the others ────────────────▶ process 0
//!            Opened, Crossed, Durable, Stop, Done       anyone ──── Failed ────▶ all
//! ```
//!
//! Process 0 has the output, what is kept, and the committer; it finds out where the run begins and tells the
//! others. What one process does to the open epoch all follow. A line is crossed by all at one epoch, once
//! all have reached it. A process that fails tells why, and keeps its share of the open epochs, so that none
//! of them closes anywhere; a process that is gone is told of by those that notice.
//!
//! At the end every process sends what it has measured, and process 0 ends the run once all have: so it ends
//! well everywhere, or nowhere. Then each ends its connections, which waits until the other side has heard
//! all. Where nobody reads the output of process 0 on, it says `Done` before that, and all end well where
//! they are.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::{Condvar, Mutex};
use serde::{Deserialize, Serialize};

use super::RunError;
use super::measures::Measures;
use super::past::Past;
use super::worker::Shared;
use dupflow_connectors::intake::{CatchUpLine, Peers};
use dupflow_connectors::mark::Mark;
use dupflow_core::text::{IdfTable, TextRules};
use dupflow_core::time::{Epoch, LiveFrom, Offsets};
use dupflow_engine::processes::{Connected, Control, ControlEvent, ControlMessage};

/// The other processes of a run, connected.
#[derive(Debug)]
pub struct Together {
    control: Arc<Control>,
    data: Vec<Option<TcpStream>>,
    notes: (Sender<Note>, Receiver<Note>),
}

/// Tells the other processes of a failure from outside of the run, before it has begun or while it does not
/// end.
#[derive(Clone, Debug)]
pub struct Teller(Arc<Control>);

/// What there is to do.
#[derive(Debug)]
enum Note {
    Heard(usize, ControlEvent),
    /// This process has reached a line.
    Reached(u32, Epoch),
    /// Nothing more.
    Ended,
}

/// By process, the socket for records.
type Sockets = Vec<Option<TcpStream>>;

/// Where a run begins, as process 0 tells it.
#[derive(Serialize, Deserialize)]
struct Go {
    mark: Mark,
    begin: Offsets,
    lines: Vec<CatchUpLine>,
    table: Option<String>,
    keeps: bool,
    #[serde(rename = "tells_documents")]
    emits_documents: bool,
}

/// The others, while the run is under way.
pub(super) struct Others {
    control: Arc<Control>,
    tell: Sender<Note>,
    end: Mutex<TheEnd>,
    changed: Condvar,
}

#[derive(Default)]
struct TheEnd {
    /// What the others have measured, at process 0.
    measures: Vec<Measures>,
    /// This process has done its share.
    at_end: bool,
    /// Process 0 has ended the run.
    done: bool,
    /// There will be no good end.
    failed: bool,
}

impl Together {
    /// Of processes that have found each other.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn new(connected: Connected) -> std::io::Result<Self> {
        let Connected { control, data } = connected;
        let notes = channel();
        let tell = notes.0.clone();
        // Nobody listens any more once the run has ended.
        control.listen(move |from, event| drop(tell.send(Note::Heard(from, event))))?;
        Ok(Self { control: Arc::new(control), data, notes })
    }

    /// This process, from 0.
    pub fn index(&self) -> usize {
        self.control.processes().index()
    }

    /// Processes.
    pub fn count(&self) -> usize {
        self.control.processes().hosts().len()
    }

    /// What tells them of a failure outside of the run.
    pub fn teller(&self) -> Teller {
        Teller(Arc::clone(&self.control))
    }

    /// Tells the others that there is no run.
    pub(super) fn fail(&self, why: &RunError) {
        self.control.fail(&chain(why));
    }

    /// Process 0: tells where the run begins.
    pub(super) fn go(&self, past: &Past, rules: &TextRules) -> Result<(), RunError> {
        let mut table = Vec::new();
        if let Some(in_force) = &past.table {
            in_force.write(rules, &mut table).map_err(RunError::Sink)?;
        }
        let table = past.table.is_some().then(|| String::from_utf8_lossy(&table).into_owned());
        let (mark, begin, lines) = (past.mark.clone(), past.begin.clone(), past.lines.clone());
        let Past { keeps, emits_documents, .. } = *past;
        let go = serde_json::to_vec(&Go { mark, begin, lines, table, keeps, emits_documents });
        self.control.send(ControlMessage::Go(go.map_err(|error| RunError::Process(error.to_string()))?));
        Ok(())
    }

    /// Another process: waits to be told where the run begins.
    pub(super) fn wait_for_go(&self, rules: &TextRules) -> Result<Past, RunError> {
        let unread = |what: String| {
            RunError::Process(format!("what process 0 says of the run cannot be read: {what}"))
        };
        loop {
            match self.notes.1.recv() {
                Ok(Note::Heard(_, ControlEvent::Message(ControlMessage::Go(go)))) => {
                    let Go { mark, begin, lines, table, keeps, emits_documents } =
                        serde_json::from_slice(&go).map_err(|error| unread(error.to_string()))?;
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
                        snapshot: None,
                        table,
                        there: None,
                        as_of: None,
                    });
                }
                Ok(Note::Heard(_, event)) => {
                    if let Some(error) = failure(&self.control, event) {
                        return Err(error);
                    }
                }
                Ok(Note::Reached(..) | Note::Ended) => {}
                Err(_) => return Err(RunError::Process("the control connection has ended".to_owned())),
            }
        }
    }

    /// The run is under way: from now on it does what the others say.
    pub(super) fn begin(self) -> (Arc<Others>, Sockets, impl FnOnce(Arc<Shared>)) {
        let Self { control, data, notes: (tell, notes) } = self;
        let others = Arc::new(Others { control, tell, end: Mutex::default(), changed: Condvar::new() });
        let listening = Arc::clone(&others);
        let listen = move |shared: Arc<Shared>| {
            let failed = Arc::clone(&shared);
            let work = move || listening.listen(&notes, &shared);
            if let Err(error) = thread::Builder::new().name("together".to_owned()).spawn(work) {
                failed.failure.fail(RunError::Process(error.to_string()));
            }
        };
        (others, data, listen)
    }
}

impl Teller {
    /// This process has failed, and why. Returns once the others have been told, or cannot be. After an end,
    /// good or not, it says nothing.
    pub fn fail(&self, why: &str) {
        self.0.fail(why);
        self.0.end();
    }
}

/// The error that an event is.
fn failure(control: &Control, event: ControlEvent) -> Option<RunError> {
    match event {
        ControlEvent::Message(ControlMessage::Failed(text)) => Some(RunError::Process(text)),
        ControlEvent::Lost { process, why } => {
            let process = control.processes().name(process);
            Some(RunError::Process(format!("{process} is gone: {why}")))
        }
        ControlEvent::Message(_) => None,
    }
}

/// An error with all its causes.
fn chain(error: &RunError) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text
}

impl Others {
    fn is_hub(&self) -> bool {
        self.control.processes().index() == 0
    }

    fn count(&self) -> usize {
        self.control.processes().hosts().len()
    }

    /// Does what is told, until nobody tells anything any more.
    fn listen(&self, notes: &Receiver<Note>, shared: &Shared) {
        let mut reached: BTreeMap<u32, Vec<Epoch>> = BTreeMap::new();
        for note in notes {
            match note {
                Note::Ended => return,
                Note::Reached(line, epoch) => self.reach(&mut reached, line, epoch, shared),
                Note::Heard(from, ControlEvent::Message(message)) => match message {
                    ControlMessage::Reached { line, epoch } => self.reach(&mut reached, line, epoch, shared),
                    ControlMessage::Crossed { epoch, .. } => shared.queue.cross(epoch),
                    ControlMessage::Opened(epoch) => {
                        if self.is_hub() {
                            let others = (1..self.count()).filter(|to| *to != from);
                            others.for_each(|to| self.control.send_to(to, ControlMessage::Opened(epoch)));
                        }
                        shared.queue.follow(epoch);
                    }
                    ControlMessage::Durable(epoch) => {
                        if shared.commits.written(epoch, 0) {
                            shared.queue.wake();
                        }
                    }
                    ControlMessage::Stop => {
                        if self.is_hub() {
                            self.control.send(ControlMessage::Stop);
                        }
                        shared.queue.stop();
                    }
                    ControlMessage::Measures(bytes) => match serde_json::from_slice(&bytes) {
                        Ok(measures) => self.change(|end| end.measures.push(measures)),
                        Err(error) => shared.failure.fail(RunError::Process(format!(
                            "what process {from} has measured cannot be read: {error}"
                        ))),
                    },
                    ControlMessage::Done if !self.is_hub() => {
                        if self.end.lock().at_end {
                            self.change(|end| end.done = true);
                        } else {
                            // Process 0 waits for nobody: its output is not read on.
                            shared.failure.fail(RunError::Sink(ErrorKind::BrokenPipe.into()));
                        }
                    }
                    ControlMessage::Failed(text) => shared.failure.fail(RunError::Process(text)),
                    ControlMessage::Go(_) | ControlMessage::Done => {}
                },
                Note::Heard(_, event) => {
                    if let Some(error) = failure(&self.control, event) {
                        shared.failure.fail(error);
                    }
                }
            }
        }
    }

    /// One process has reached a line: once all have, all cross it.
    fn reach(&self, reached: &mut BTreeMap<u32, Vec<Epoch>>, line: u32, epoch: Epoch, shared: &Shared) {
        if !self.is_hub() {
            self.control.send(ControlMessage::Reached { line, epoch });
            return;
        }
        let epochs = reached.entry(line).or_default();
        epochs.push(epoch);
        if epochs.len() == self.count()
            && let Some(last) = reached.remove(&line).and_then(|all| all.into_iter().max())
        {
            let behind = last + 1;
            self.control.send(ControlMessage::Crossed { line, epoch: behind });
            shared.queue.cross(behind);
        }
    }

    fn change(&self, change: impl FnOnce(&mut TheEnd)) {
        change(&mut self.end.lock());
        self.changed.notify_all();
    }

    /// Epochs up to this one are durable; process 0 tells the others how far they may go on.
    pub(super) fn durable(&self, epoch: Epoch) {
        if self.is_hub() {
            self.control.send(ControlMessage::Durable(epoch));
        }
    }

    /// The way of records to another process has ended.
    pub(super) fn suspect(&self, process: usize, why: &str) {
        self.control.suspect(process, why);
    }

    /// The run is to end everywhere.
    pub(super) fn stop(&self) {
        self.control.send(ControlMessage::Stop);
    }

    /// This process has failed: all others are told, and nobody waits for a good end. If its output is not
    /// read on, they end as it does: well.
    pub(super) fn failed(&self, error: &RunError) {
        match error {
            RunError::Sink(error) if self.is_hub() && error.kind() == ErrorKind::BrokenPipe => {
                self.control.send(ControlMessage::Done);
            }
            // What has come from another process is told already, and then no more is.
            error => self.control.fail(&chain(error)),
        }
        self.change(|end| end.failed = true);
    }

    /// Ends the connections, once all that was said has got there: before the process ends, which would cut
    /// it off.
    pub(super) fn end(&self) {
        self.control.end();
        // Nobody listens if the run could not begin.
        self.tell.send(Note::Ended).unwrap_or(());
    }

    /// The end of a run that has done all here. At process 0 what the others have measured; elsewhere once
    /// process 0 has ended the run. Nothing if it fails meanwhile.
    pub(super) fn finish(&self, measures: &Measures) -> Option<Vec<Measures>> {
        if !self.is_hub() {
            self.change(|end| end.at_end = true);
            self.control.send(ControlMessage::Measures(serde_json::to_vec(measures).unwrap_or_default()));
            self.control.send(ControlMessage::Done);
        }
        let all = self.count() - 1;
        let is_hub = self.is_hub();
        let waits =
            |end: &mut TheEnd| !end.failed && if is_hub { end.measures.len() < all } else { !end.done };
        let mut end = self.end.lock();
        self.changed.wait_while(&mut end, waits);
        if end.failed {
            return None;
        }
        if is_hub {
            self.control.send(ControlMessage::Done);
        }
        Some(std::mem::take(&mut end.measures))
    }
}

/// What the queue of this process tells.
pub(super) struct ToOthers(pub(super) Arc<Others>);

impl Peers for ToOthers {
    fn opened(&self, epoch: Epoch) {
        self.0.control.send(ControlMessage::Opened(epoch));
    }

    fn reached(&self, line: u32, epoch: Epoch) {
        // The thread that is told holds no lock of the queue.
        self.0.tell.send(Note::Reached(line, epoch)).unwrap_or(());
    }
}
