//! The control connections of a run: messages between processes, and the detection of lost ones.
//!
//! Every process has one connection, to process 0, the *hub*. Process i sends to the hub; the hub sends to
//! one process or to all.
//!
//! A failure is reported to all processes, once. The hub forwards a [`ControlMessage::Failed`] with the name
//! of the failed process to every other process, and reports a lost process in the same way. After the first
//! failure no other is reported: processes that end because of it close connections, which would look like
//! further failures.
//!
//! In an orderly end each process sends its measures, then [`ControlMessage::Done`]; once all have, the hub
//! sends `Done` to all. A connection that ends before that is a failure.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;

use super::gather::{ControlNote, Gathered};
use super::hosts::Processes;
use super::message::{ControlMessage, Frame};
use super::wire::{Wire, WireEvent};
use dupflow_core::time::{Clock, SystemClock};

/// What was received from, or detected of, another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// A message.
    Message(ControlMessage),
    /// A process is lost. Reported once, for the first such process, unless a failure was reported before,
    /// which is then the cause.
    Lost {
        /// The index of the process.
        process: usize,
        /// How this was detected.
        why: String,
    },
}

/// The control connections of this process.
#[derive(Debug)]
pub struct Control {
    shared: Arc<ControlShared>,
    sender: SyncSender<ControlNote>,
    listening: Mutex<Option<Listening>>,
}

#[derive(Debug)]
struct Listening {
    notes: Receiver<ControlNote>,
    generations: Vec<u64>,
    /// How long a message of the hub may take to give the reason of a suspected loss.
    grace: Duration,
}

#[derive(Debug)]
struct ControlShared {
    processes: Processes,
    state: Mutex<ControlState>,
}

#[derive(Debug)]
struct ControlState {
    wires: Vec<Option<Wire>>,
    /// Connections may end: the run is done, or a failure has been sent to all.
    over: bool,
}

impl Control {
    pub(super) fn new(processes: &Processes, gathered: Gathered, grace: Duration) -> Self {
        let Gathered { wires, generations, notes, sender, .. } = gathered;
        let state = Mutex::new(ControlState { wires, over: false });
        let shared = Arc::new(ControlShared { processes: processes.clone(), state });
        Self { shared, sender, listening: Mutex::new(Some(Listening { notes, generations, grace })) }
    }

    /// The processes, and which of them this is.
    pub fn processes(&self) -> &Processes {
        &self.shared.processes
    }

    /// Sends to process 0; on process 0, to all others. Never blocks: a message that cannot be sent is
    /// reported as a loss.
    pub fn send(&self, message: ControlMessage) {
        self.shared.send(|_| true, message);
    }

    /// Sends to one process, from process 0.
    ///
    /// # Panics
    /// On another process than 0: there is a connection to process 0 only.
    pub fn send_to(&self, process: usize, message: ControlMessage) {
        assert_eq!(self.shared.processes.index(), 0, "only process 0 has a connection to process {process}");
        self.shared.send(|to| to == process, message);
    }

    /// Sends to all that this process has failed, with the reason, unless a failure was sent before.
    /// [`Self::end`] returns after the others have received it.
    pub fn fail(&self, why: &str) {
        let processes = &self.shared.processes;
        // The hub adds the names of other processes itself.
        let text = match processes.index() {
            0 => format!("{}: {why}", processes.name(0)),
            _ => why.to_owned(),
        };
        self.shared.fail_all(|_| true, text);
    }

    /// The data connection with a process has ended too early. If the control connections report a reason
    /// within a beat, that reason is used; else the process is reported as lost.
    pub fn suspect(&self, process: usize, why: &str) {
        // The queue is read continuously; if its reader has ended, the run is over.
        self.sender.send(ControlNote::Suspected { process, why: why.to_owned() }).unwrap_or(());
    }

    /// Starts the thread that receives. `on` gets the index of the process and the event. It must not block.
    ///
    /// # Errors
    /// If the system cannot make another thread.
    ///
    /// # Panics
    /// If it has been called before.
    pub fn listen(&self, on: impl FnMut(usize, ControlEvent) + Send + 'static) -> io::Result<()> {
        let mut listening = self.listening.lock();
        let listening = listening.take().expect("it listens once");
        let shared = Arc::clone(&self.shared);
        let listen = move || listening.run(&shared, on);
        thread::Builder::new().name("control".to_owned()).spawn(listen).map(|_| ())
    }

    /// Ends the connections, once everything sent has been read by the other side, or can no longer reach it.
    /// Later messages of the other side are not received. In an orderly end, the hub calls this after it has
    /// sent [`ControlMessage::Done`], others after they have received it. A second call does nothing.
    pub fn end(&self) {
        let mut state = self.shared.state.lock();
        state.over = true;
        let wires = state.wires.iter_mut().filter_map(Option::take).collect();
        drop(state);
        Wire::end(wires);
    }
}

/// Ends the connections. Processes that still need them are notified that this one is lost.
impl Drop for Control {
    fn drop(&mut self) {
        self.end();
    }
}

impl ControlShared {
    fn send(&self, to: impl Fn(usize) -> bool, message: ControlMessage) {
        self.state.lock().send(to, message, self.processes.index() == 0);
    }

    /// Sends a failure if it is the first one; returns whether it is.
    fn fail_all(&self, to: impl Fn(usize) -> bool, text: String) -> bool {
        let mut state = self.state.lock();
        let is_first = !state.over;
        if is_first {
            state.send(to, ControlMessage::Failed(text), self.processes.index() == 0);
        }
        is_first
    }
}

impl ControlState {
    fn send(&mut self, to: impl Fn(usize) -> bool, message: ControlMessage, hub: bool) {
        // After `Done` from the hub, connections may end.
        self.over |= matches!(message, ControlMessage::Failed(_)) || (hub && message == ControlMessage::Done);
        let frame = Frame::Message(message).encode();
        let wires = self.wires.iter().enumerate().filter(|(process, _)| to(*process));
        wires.filter_map(|(_, wire)| wire.as_ref()).for_each(|wire| wire.send(frame.clone()));
    }
}

impl Listening {
    fn run(self, shared: &ControlShared, mut on: impl FnMut(usize, ControlEvent)) {
        let hub = shared.processes.index() == 0;
        let clock = SystemClock::start();
        let mut suspected: Option<(Duration, usize, String)> = None;
        loop {
            let note = match &suspected {
                None => self.notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((until, ..)) => self.notes.recv_timeout(until.saturating_sub(clock.now())),
            };
            let (from, gone) = match note {
                Ok(ControlNote::Suspected { process, why }) => {
                    suspected.get_or_insert((clock.now() + self.grace, process, why));
                    continue;
                }
                Ok(ControlNote::Wire { from, generation, event }) if generation == self.generations[from] => {
                    match event {
                        WireEvent::Ended(why) => (from, why),
                        WireEvent::Frame(frame) => match Frame::decode(&frame) {
                            Some(Frame::Message(message)) => {
                                if let Some(message) = shared.filter(hub, from, message) {
                                    on(from, ControlEvent::Message(message));
                                }
                                continue;
                            }
                            // Frames of the start are invalid here.
                            Some(Frame::Ready | Frame::Start) | None => {
                                (from, "what it says is no message".to_owned())
                            }
                        },
                    }
                }
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => match suspected.take() {
                    Some((_, process, why)) => (process, why),
                    None => continue,
                },
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let text = format!("{} is gone: {gone}", shared.processes.name(from));
            if shared.fail_all(|to| to != from, text) {
                on(from, ControlEvent::Lost { process: from, why: gone });
            }
        }
    }
}

impl ControlShared {
    /// Handles a message; returns the message to be reported on this process.
    fn filter(&self, hub: bool, from: usize, message: ControlMessage) -> Option<ControlMessage> {
        match message {
            ControlMessage::Failed(text) if hub => {
                let text = format!("{}: {text}", self.processes.name(from));
                self.fail_all(|to| to != from, text.clone()).then_some(ControlMessage::Failed(text))
            }
            ControlMessage::Failed(_) => {
                let mut state = self.state.lock();
                let is_first = !std::mem::replace(&mut state.over, true);
                is_first.then_some(message)
            }
            ControlMessage::Done if !hub => {
                self.state.lock().over = true;
                Some(message)
            }
            message => Some(message),
        }
    }
}
