//! A run of several processes: the messages that this process sends to the others, and how it handles theirs.
//!
//! ```text
//!                                             Prepared
//!  process 0 ◀──────────────────────── the others
//!            Go: where the run begins         Restores, Opened, Reached, StateReply, Stop, Measures, Done
//!  process 0 ────────────────────────▶ the others       the others ────────────────▶ process 0
//!            Opened, Crossed, Durable, StateTask, Stop, Done       anyone ──── Failed ────▶ all
//! ```
//!
//! Process 0 has the output and the committer, and owns the state. It takes both over once all others have
//! opened what they need: a process that cannot begin ends no earlier run. It determines where the run
//! begins, and sends that to the others. When one process opens an epoch, all others open it too. Once all
//! processes have reached a line, all cross it at the same epoch.
//!
//! A process that fails sends the reason, and keeps its share of the open epochs, so that none of them closes
//! anywhere. If a process is lost, the processes that notice report it.
//!
//! At the end every process sends its measurements. Process 0 ends the run once it has all of them, so the
//! run succeeds everywhere or nowhere. Each process then closes its connections, after the other side has
//! received all messages. If the pipe at the output of process 0 is closed, it sends `Done` earlier, and all
//! end without an error.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::{Condvar, Mutex};

use super::state_writers::{OtherWriters, encoded};
use super::worker::RunShared;
use crate::pipeline::error::{RunError, chain};
use crate::pipeline::outcome::Measures;
use dupflow_connectors::intake::Peers;
use dupflow_connectors::state::{WriterReply, WriterTask};
use dupflow_core::time::Epoch;
use dupflow_engine::processes::{Connected, Control, ControlEvent, ControlMessage};

/// The connected other processes of a run.
#[derive(Debug)]
pub struct ProcessGroup {
    pub(super) control: Arc<Control>,
    data: Vec<Option<TcpStream>>,
    pub(super) notes: (Sender<PeerTask>, Receiver<PeerTask>),
}

/// Sends a failure to the other processes from outside the run: before it has begun, or while it does not
/// end.
#[derive(Clone, Debug)]
pub struct FailureSender(Arc<Control>);

/// A task of the thread that handles messages.
#[derive(Debug)]
pub(super) enum PeerTask {
    Received(usize, ControlEvent),
    /// This process has reached a line, at this epoch.
    Reached(u32, Epoch),
    /// No more tasks.
    Ended,
}

/// Handles messages, on a thread. The sender takes the tasks for the state, where this process reaches that.
type Listen = Box<dyn FnOnce(Arc<RunShared>, Option<Sender<WriterTask>>)>;

/// The data sockets by process; `None` for this process itself.
type Sockets = Vec<Option<TcpStream>>;

/// The other processes during the run.
pub(in crate::pipeline) struct PeerProcesses {
    control: Arc<Control>,
    tell: Sender<PeerTask>,
    end: Mutex<GroupEnd>,
    changed: Condvar,
    /// At process 0, whether each other process restores its share itself, once it has said so.
    restores: Mutex<BTreeMap<usize, bool>>,
    /// At process 0, the other processes as writers of the state.
    pub(super) writers: Arc<OtherWriters>,
}

#[derive(Default)]
struct GroupEnd {
    /// At process 0, the measurements of the others.
    measures: Vec<Measures>,
    /// Whether this process has finished its share.
    at_end: bool,
    /// Whether process 0 has ended the run.
    done: bool,
    /// Whether the run has failed.
    failed: bool,
}

impl ProcessGroup {
    /// For processes that are connected.
    ///
    /// # Errors
    /// If the system has no more threads.
    pub fn new(connected: Connected) -> std::io::Result<Self> {
        let Connected { control, data } = connected;
        let notes = channel();
        let tell = notes.0.clone();
        // After the end of the run there is no receiver.
        control.listen(move |from, event| drop(tell.send(PeerTask::Received(from, event))))?;
        Ok(Self { control: Arc::new(control), data, notes })
    }

    /// The number of this process, from 0.
    pub fn index(&self) -> usize {
        self.control.processes().index()
    }

    /// The number of processes.
    pub fn count(&self) -> usize {
        self.control.processes().hosts().len()
    }

    /// A handle that sends a failure from outside the run.
    pub fn failure_sender(&self) -> FailureSender {
        FailureSender(Arc::clone(&self.control))
    }

    /// Sends the others the reason why there is no run.
    pub(in crate::pipeline) fn fail(&self, why: &RunError) {
        self.control.fail(&chain(why));
    }

    /// Starts the run: from here on messages are handled by the returned closure, which passes tasks for the
    /// state on.
    pub(in crate::pipeline) fn begin(self) -> (Arc<PeerProcesses>, Sockets, Listen) {
        let Self { control, data, notes: (tell, notes) } = self;
        let (end, changed, restores) = (Mutex::default(), Condvar::new(), Mutex::default());
        let writers = Arc::new(OtherWriters::new(Arc::clone(&control)));
        let others = Arc::new(PeerProcesses { control, tell, end, changed, restores, writers });
        let listening = Arc::clone(&others);
        let listen = move |shared: Arc<RunShared>, tasks: Option<Sender<WriterTask>>| {
            let failed = Arc::clone(&shared);
            let work = move || listening.listen(&notes, tasks.as_ref(), &shared);
            if let Err(error) = thread::Builder::new().name("together".to_owned()).spawn(work) {
                failed.failure.fail(RunError::Process(error.to_string()));
            }
        };
        (others, data, Box::new(listen))
    }
}

impl FailureSender {
    /// Sends the reason of a failure. Returns once the others have received it or cannot be reached. After
    /// the run has ended it sends nothing.
    pub fn fail(&self, why: &str) {
        self.0.fail(why);
        self.0.end();
    }
}

/// The error that an event stands for, if it is a failure.
pub(super) fn failure(control: &Control, event: ControlEvent) -> Option<RunError> {
    match event {
        ControlEvent::Message(ControlMessage::Failed(text)) => Some(RunError::Process(text)),
        ControlEvent::Lost { process, why } => {
            let process = control.processes().name(process);
            Some(RunError::Process(format!("{process} is gone: {why}")))
        }
        ControlEvent::Message(_) => None,
    }
}

impl PeerProcesses {
    fn is_hub(&self) -> bool {
        self.control.processes().index() == 0
    }

    fn count(&self) -> usize {
        self.control.processes().hosts().len()
    }

    /// Handles tasks until `Ended`.
    fn listen(&self, notes: &Receiver<PeerTask>, tasks: Option<&Sender<WriterTask>>, shared: &RunShared) {
        let unread = |from: usize, what: &str, error: serde_json::Error| {
            let text = format!("{what} of process {from} cannot be read: {error}");
            shared.failure.fail(RunError::Process(text));
        };
        let mut reached: BTreeMap<u32, Vec<Epoch>> = BTreeMap::new();
        for note in notes {
            match note {
                PeerTask::Ended => return,
                PeerTask::Reached(line, epoch) => self.reach(&mut reached, line, epoch, shared),
                PeerTask::Received(from, ControlEvent::Message(message)) => match message {
                    ControlMessage::Reached { line, epoch } => self.reach(&mut reached, line, epoch, shared),
                    ControlMessage::Crossed { epoch, .. } => shared.queue.cross(epoch),
                    ControlMessage::Restores(itself) => {
                        self.restores.lock().insert(from, itself);
                        shared.queue.wake_readers();
                    }
                    ControlMessage::Opened(epoch) => {
                        if self.is_hub() {
                            let others = (1..self.count()).filter(|to| *to != from);
                            others.for_each(|to| self.control.send_to(to, ControlMessage::Opened(epoch)));
                        }
                        shared.queue.follow(epoch);
                    }
                    ControlMessage::Durable(epoch) => {
                        shared.precedes_live(epoch);
                        // A worker that has nothing more to read does not look.
                        shared.memory.look(shared.clock.now(), &shared.metrics);
                        if shared.commits.written(epoch, 0) {
                            shared.queue.wake();
                        }
                    }
                    ControlMessage::Stop => {
                        tracing::info!(process = from, "another process is stopped: all end");
                        if self.is_hub() {
                            self.control.send(ControlMessage::Stop);
                        }
                        shared.queue.stop();
                    }
                    ControlMessage::Measures(bytes) => match serde_json::from_slice(&bytes) {
                        Ok(measures) => self.change(|end| end.measures.push(measures)),
                        Err(error) => unread(from, "the measures", error),
                    },
                    ControlMessage::StateTask(bytes) if !self.is_hub() => {
                        match serde_json::from_slice(&bytes) {
                            Ok(task) => self.store(task, tasks),
                            Err(error) => unread(from, "a task for the state", error),
                        }
                    }
                    ControlMessage::StateReply(bytes) if self.is_hub() => {
                        match serde_json::from_slice(&bytes) {
                            Ok(reply) => self.writers.replied(from, reply),
                            Err(error) => unread(from, "a reply on the state", error),
                        }
                    }
                    ControlMessage::Done if !self.is_hub() => {
                        if self.end.lock().at_end {
                            self.change(|end| end.done = true);
                        } else {
                            // Process 0 ends early, because the pipe at its output is closed.
                            shared.failure.fail(RunError::Sink(ErrorKind::BrokenPipe.into()));
                        }
                    }
                    ControlMessage::Failed(text) => shared.failure.fail(RunError::Process(text)),
                    ControlMessage::Go(_)
                    | ControlMessage::Prepared
                    | ControlMessage::StateTask(_)
                    | ControlMessage::StateReply(_)
                    | ControlMessage::Done => {}
                },
                PeerTask::Received(_, event) => {
                    if let Some(error) = failure(&self.control, event) {
                        shared.failure.fail(error);
                    }
                }
            }
        }
    }

    /// Does a task for the state, if this process reaches that.
    fn store(&self, task: WriterTask, tasks: Option<&Sender<WriterTask>>) {
        match tasks {
            // After a panic of the thread the run has failed.
            Some(tasks) => tasks.send(task).unwrap_or(()),
            None => WriterReply::unreached(&task).iter().for_each(|reply| self.reply(reply)),
        }
    }

    /// Any process but 0 replies to a task for the state.
    pub(super) fn reply(&self, reply: &WriterReply) {
        self.control.send(ControlMessage::StateReply(encoded(reply)));
    }

    /// Counts that one process has reached a line; once all have, all cross it.
    fn reach(&self, reached: &mut BTreeMap<u32, Vec<Epoch>>, line: u32, epoch: Epoch, shared: &RunShared) {
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

    /// Any process but 0 sends whether it restores its share itself.
    pub(in crate::pipeline) fn restores(&self, itself: bool) {
        self.control.send(ControlMessage::Restores(itself));
    }

    /// Process 0: whether another process restores its share itself; `None` if it has not said so yet.
    pub(in crate::pipeline) fn restored_by(&self, process: usize) -> Option<bool> {
        self.restores.lock().get(&process).copied()
    }

    fn change(&self, change: impl FnOnce(&mut GroupEnd)) {
        change(&mut self.end.lock());
        self.changed.notify_all();
    }

    /// Process 0 sends that epochs up to `epoch` are durable, so that the others may begin later ones.
    pub(in crate::pipeline) fn durable(&self, epoch: Epoch) {
        if self.is_hub() {
            self.control.send(ControlMessage::Durable(epoch));
        }
    }

    /// The data connection to another process has ended.
    pub(in crate::pipeline) fn suspect(&self, process: usize, why: &str) {
        self.control.suspect(process, why);
    }

    /// Stops the run in all processes.
    pub(in crate::pipeline) fn stop(&self) {
        self.control.send(ControlMessage::Stop);
    }

    /// Sends the failure of this process, and wakes `finish`. A closed pipe at the output is sent as `Done`,
    /// so that the others end without an error.
    pub(in crate::pipeline) fn failed(&self, error: &RunError) {
        if self.is_hub() && error.is_closed_pipe() {
            self.control.send(ControlMessage::Done);
        } else {
            // A failure that another process has sent is known to all; `Control::fail` sends only the first
            // one.
            self.control.fail(&chain(error));
        }
        self.change(|end| end.failed = true);
        self.writers.end();
    }

    /// Closes the connections after the other sides have received all messages. The process must not end
    /// before, which would cut them off.
    pub(in crate::pipeline) fn end(&self) {
        self.control.end();
        // There is no receiver if the run could not begin.
        self.tell.send(PeerTask::Ended).unwrap_or(());
    }

    /// Waits for the end of the run, after this process has finished its share. Returns the measurements of
    /// the others at process 0, and an empty list elsewhere; `None` if the run fails meanwhile.
    pub(in crate::pipeline) fn finish(&self, measures: &Measures) -> Option<Vec<Measures>> {
        if !self.is_hub() {
            self.change(|end| end.at_end = true);
            self.control.send(ControlMessage::Measures(serde_json::to_vec(measures).unwrap_or_default()));
            self.control.send(ControlMessage::Done);
        }
        let all = self.count() - 1;
        let is_hub = self.is_hub();
        let waits =
            |end: &mut GroupEnd| !end.failed && if is_hub { end.measures.len() < all } else { !end.done };
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

/// Sends what the queue of this process reports.
pub(in crate::pipeline) struct QueuePeers(pub(in crate::pipeline) Arc<PeerProcesses>);

impl Peers for QueuePeers {
    fn opened(&self, epoch: Epoch) {
        self.0.control.send(ControlMessage::Opened(epoch));
    }

    fn reached(&self, line: u32, epoch: Epoch) {
        // The receiving thread holds no lock of the queue.
        self.0.tell.send(PeerTask::Reached(line, epoch)).unwrap_or(());
    }
}
