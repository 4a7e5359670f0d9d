//! The control connections of a run: messages, and the news that a process is gone.
//!
//! Every process has one to process 0, the *hub*. What process i sends goes to the hub, what the hub sends to
//! one process or to all.
//!
//! What fails is told to all, once: a [`Message::Failed`] that reaches the hub goes on to every other process
//! with the name of the one that has failed, and so does the news that a process is gone. After the first
//! failure no other is told: whoever ends because of it leaves connections behind that look like one.
//!
//! An end in good order: each process sends its measures, then [`Message::Done`]; the hub, once all have,
//! sends `Done` to all. Only a connection that ends before that is a failure.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;
use std::{io, thread};

use parking_lot::Mutex;

use super::Processes;
use super::gather::{Gathered, Note};
use super::message::{Message, Said};
use super::wire::{Heard, Wire};
use dupflow_core::time::{Clock, SystemClock};

/// What is heard of another process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// It says this.
    Message(Message),
    /// A process is gone. Told once, of the first one, unless a failure was told before: then that is why.
    Lost {
        /// Which one.
        process: usize,
        /// How that is known.
        why: String,
    },
}

/// The control connections of this process.
#[derive(Debug)]
pub struct Control {
    shared: Arc<Shared>,
    tell: SyncSender<Note>,
    listening: Mutex<Option<Listening>>,
}

#[derive(Debug)]
struct Listening {
    notes: Receiver<Note>,
    lives: Vec<u64>,
    /// How long the hub has to say why a process is suspected to be gone.
    grace: Duration,
}

#[derive(Debug)]
struct Shared {
    processes: Processes,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    wires: Vec<Option<Wire>>,
    /// Connections may end: all is done, or a failure is known to all.
    over: bool,
}

impl Control {
    pub(super) fn new(processes: &Processes, gathered: Gathered, grace: Duration) -> Self {
        let Gathered { wires, lives, notes, tell, .. } = gathered;
        let state = Mutex::new(State { wires, over: false });
        let shared = Arc::new(Shared { processes: processes.clone(), state });
        Self { shared, tell, listening: Mutex::new(Some(Listening { notes, lives, grace })) }
    }

    /// The processes, and which of them this is.
    pub fn processes(&self) -> &Processes {
        &self.shared.processes
    }

    /// Tells process 0; on process 0, all others. Never waits: what cannot be sent is told as a loss.
    pub fn send(&self, message: Message) {
        self.shared.send(|_| true, message);
    }

    /// Tells one process, from process 0.
    ///
    /// # Panics
    /// On another process than 0: there is a connection to process 0 only.
    pub fn send_to(&self, process: usize, message: Message) {
        assert_eq!(self.shared.processes.index(), 0, "only process 0 has a connection to process {process}");
        self.shared.send(|to| to == process, message);
    }

    /// Tells all that this process has failed, and why. After a failure it tells nothing new. The others have
    /// been told once the connections have ended, by [`Self::end`].
    pub fn fail(&self, why: &str) {
        let processes = &self.shared.processes;
        // The hub puts the name of the process before what comes from others.
        let text = match processes.index() {
            0 => format!("{}: {why}", processes.name(0)),
            _ => why.to_owned(),
        };
        self.shared.fail_all(|_| true, text);
    }

    /// The data connection with a process has ended before its time. What the control connections say of it
    /// within the time of a beat comes first: they know why. If they say nothing, the process is lost.
    pub fn suspect(&self, process: usize, why: &str) {
        // A full queue is read, and a run that hears nothing is over.
        self.tell.send(Note::Suspected { process, why: why.to_owned() }).unwrap_or(());
    }

    /// Starts the thread that hears: `on` takes the process that an event is from, and the event. It must not
    /// wait.
    ///
    /// # Errors
    /// If the system has no more threads.
    ///
    /// # Panics
    /// If it has been called before.
    pub fn listen(&self, on: impl FnMut(usize, Event) + Send + 'static) -> io::Result<()> {
        let mut listening = self.listening.lock();
        let listening = listening.take().expect("it listens once");
        let shared = Arc::clone(&self.shared);
        let listen = move || listening.run(&shared, on);
        thread::Builder::new().name("control".to_owned()).spawn(listen).map(|_| ())
    }

    /// Ends the connections, once all that was sent has been read on the other side, or does not get there
    /// any more. What the other side has not said by then is not heard: in good order, the hub ends after it
    /// has said [`Message::Done`], others after they have heard it. A second call does nothing.
    pub fn end(&self) {
        let mut state = self.shared.state.lock();
        state.over = true;
        let wires = state.wires.iter_mut().filter_map(Option::take).collect();
        drop(state);
        Wire::end(wires);
    }
}

/// Ends the connections. Whoever still needs them sees that this process is gone.
impl Drop for Control {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn send(&self, to: impl Fn(usize) -> bool, message: Message) {
        self.state.lock().send(to, message, self.processes.index() == 0);
    }

    /// Tells a failure, if it is the first one. Whether it is.
    fn fail_all(&self, to: impl Fn(usize) -> bool, text: String) -> bool {
        let mut state = self.state.lock();
        let is_first = !state.over;
        if is_first {
            state.send(to, Message::Failed(text), self.processes.index() == 0);
        }
        is_first
    }
}

impl State {
    fn send(&mut self, to: impl Fn(usize) -> bool, message: Message, hub: bool) {
        // Once the hub has said that all is done, connections may end.
        self.over |= matches!(message, Message::Failed(_)) || (hub && message == Message::Done);
        let frame = Said::Message(message).encode();
        let wires = self.wires.iter().enumerate().filter(|(process, _)| to(*process));
        wires.filter_map(|(_, wire)| wire.as_ref()).for_each(|wire| wire.send(frame.clone()));
    }
}

impl Listening {
    fn run(self, shared: &Shared, mut on: impl FnMut(usize, Event)) {
        let hub = shared.processes.index() == 0;
        let clock = SystemClock::start();
        let mut suspected: Option<(Duration, usize, String)> = None;
        loop {
            let note = match &suspected {
                None => self.notes.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some((until, ..)) => self.notes.recv_timeout(until.saturating_sub(clock.now())),
            };
            let (from, gone) = match note {
                Ok(Note::Suspected { process, why }) => {
                    suspected.get_or_insert((clock.now() + self.grace, process, why));
                    continue;
                }
                Ok(Note::Heard { from, life, heard }) if life == self.lives[from] => match heard {
                    Heard::Ended(why) => (from, why),
                    Heard::Frame(frame) => match Said::decode(&frame) {
                        Some(Said::Message(message)) => {
                            if let Some(message) = shared.hear(hub, from, message) {
                                on(from, Event::Message(message));
                            }
                            continue;
                        }
                        // What belongs to the start is none either.
                        Some(Said::Ready | Said::Start) | None => {
                            (from, "what it says is no message".to_owned())
                        }
                    },
                },
                Ok(_) => continue,
                Err(RecvTimeoutError::Timeout) => match suspected.take() {
                    Some((_, process, why)) => (process, why),
                    None => continue,
                },
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let text = format!("{} is gone: {gone}", shared.processes.name(from));
            if shared.fail_all(|to| to != from, text) {
                on(from, Event::Lost { process: from, why: gone });
            }
        }
    }
}

impl Shared {
    /// Takes note of a message; what is told of it here.
    fn hear(&self, hub: bool, from: usize, message: Message) -> Option<Message> {
        match message {
            Message::Failed(text) if hub => {
                let text = format!("{}: {text}", self.processes.name(from));
                self.fail_all(|to| to != from, text.clone()).then_some(Message::Failed(text))
            }
            Message::Failed(_) => {
                let mut state = self.state.lock();
                let is_first = !std::mem::replace(&mut state.over, true);
                is_first.then_some(message)
            }
            Message::Done if !hub => {
                self.state.lock().over = true;
                Some(message)
            }
            message => Some(message),
        }
    }
}
