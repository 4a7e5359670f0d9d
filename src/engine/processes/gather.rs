//! The start: every process connects to all others, and continues when all have all their connections.
//!
//! Settings and a listener -> a data connection to each other process, and the running control connections.
//! Process i first connects to process 0 for control, which makes its index unique. Then it connects to all
//! processes below i for data, and accepts those above i. Failed attempts are repeated, with pauses that grow
//! from 50 ms to a second. A process that has all its connections sends *ready* to process 0; when all are
//! ready, process 0 sends *start*. So no process continues while another may still fail.
//!
//! Until a process is ready it may end and start again: its ended connections are discarded. A new connection
//! with a problem is refused: it gets the reason, the log has it too, and the other processes keep waiting.
//! Only process 0 decides: a process gives up only if process 0 refuses it. At the time limit, the error
//! lists the processes that never connected, each with why its last attempt failed.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::error::{ConnectError, Missing};
use super::handshake::{self, ConnectFailure, Identity, NewPeer, Purpose};
use super::hosts::Processes;
use super::listener::Listener;
use super::message::{ControlMessage, Frame};
use super::refusals::RefusalLog;
use super::settings::ConnectSettings;
use super::wire::{Wire, WireEvent, WirePace};
use dupflow_core::description::FieldValue;
use dupflow_core::time::{Clock, SystemClock};

/// Capacity of the queue of notes.
const NOTE_CAPACITY: usize = 4096;

/// Before the first attempt to connect again; doubled each time, up to `LAST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Notes to the thread that gathers, and later to the thread of [`Control`](super::Control).
#[derive(Debug)]
pub(super) enum ControlNote {
    /// A process has proved its identity, and waits to be accepted.
    NewPeer(NewPeer),
    /// A process was refused.
    Refused { from: usize, why: String },
    /// A connection was made.
    Connected { to: usize, purpose: Purpose, stream: TcpStream },
    /// A connection was not made; it is tried again if that may help.
    NotConnected { to: usize, why: ConnectFailure },
    /// A frame or the end of a control connection; `generation` numbers the connections with the process.
    Wire { from: usize, generation: u64, event: WireEvent },
    /// The data connection with a process has ended.
    Suspected { process: usize, why: String },
}

/// All connections of a process.
#[derive(Debug)]
pub(super) struct Gathered {
    /// On process 0, the control connections by process; on others, only the one to process 0.
    pub(super) wires: Vec<Option<Wire>>,
    /// By process, the number of its present control connection. Notes of earlier ones are ignored.
    pub(super) generations: Vec<u64>,
    pub(super) data: Vec<Option<TcpStream>>,
    pub(super) notes: Receiver<ControlNote>,
    pub(super) sender: SyncSender<ControlNote>,
}

struct Gathering<'a> {
    processes: &'a Processes,
    pace: WirePace,
    within: Duration,
    identity: Arc<Identity>,
    refusals: Arc<RefusalLog>,
    sender: SyncSender<ControlNote>,
    wires: Vec<Option<Wire>>,
    generations: Vec<u64>,
    data: Vec<Option<TcpStream>>,
    /// Dropping the sender stops the thread that connects.
    connecting: BTreeMap<(usize, u8), Sender<()>>,
    /// On process 0: by process, whether it is ready. On others: at its own index, whether it has sent
    /// *ready*.
    ready: Vec<bool>,
    /// For each process, why its last attempt to connect failed.
    reasons: Vec<Option<String>>,
}

/// Connects to all processes.
///
/// # Errors
/// Why there is no run; the connected processes are notified.
pub(super) fn gather(listener: TcpListener, settings: &ConnectSettings) -> Result<Gathered, ConnectError> {
    let ConnectSettings { processes, description, secret, limits } = settings;
    let count = processes.count();
    let number = |n: usize| u32::try_from(n).expect("there are fewer than 2^32 processes");
    let identity = Arc::new(Identity {
        index: number(processes.index()),
        count: number(count),
        secret: secret.clone(),
        description: description.clone().with("processes.hosts", FieldValue::list(processes.hosts())),
    });
    let refusals = Arc::new(RefusalLog::new());
    let (sender, notes) = sync_channel(NOTE_CAPACITY);
    let mut gathering = Gathering {
        processes,
        pace: WirePace { beat: limits.beat, lost: limits.lost },
        within: limits.hello,
        identity: Arc::clone(&identity),
        refusals: Arc::clone(&refusals),
        sender: sender.clone(),
        wires: (0..count).map(|_| None).collect(),
        generations: vec![0; count],
        data: (0..count).map(|_| None).collect(),
        connecting: BTreeMap::new(),
        ready: vec![false; count],
        reasons: vec![None; count],
    };
    let on_peer = sender.clone();
    let _listener = Listener::start(listener, &identity, &refusals, limits.hello, move |accepted| {
        let note = match accepted {
            Ok(peer) => ControlNote::NewPeer(peer),
            Err((from, why)) => ControlNote::Refused { from, why },
        };
        // The receiver is dropped once all have gathered.
        on_peer.send(note).unwrap_or(());
    })
    .map_err(ConnectError::Io)?;
    match gathering.run(&notes, limits.connect) {
        Ok(()) => Ok(Gathered {
            wires: gathering.wires,
            generations: gathering.generations,
            data: gathering.data,
            notes,
            sender,
        }),
        Err(error) => {
            gathering.give_up(&error);
            Err(error)
        }
    }
}

impl Gathering<'_> {
    fn run(&mut self, notes: &Receiver<ControlNote>, limit: Duration) -> Result<(), ConnectError> {
        let clock = SystemClock::start();
        let me = self.processes.index();
        if me > 0 {
            self.connect(0, Purpose::Control)?;
        }
        loop {
            if self.is_complete()? {
                if me == 0 && self.ready[1..].iter().all(|ready| *ready) {
                    self.wires.iter().flatten().for_each(|wire| wire.send(Frame::Start.encode()));
                    return Ok(());
                }
                if let Some(wire) = self.wires[0].as_ref().filter(|_| !self.ready[me]) {
                    wire.send(Frame::Ready.encode());
                    self.ready[me] = true;
                }
            }
            let note = match notes.recv_timeout(limit.saturating_sub(clock.now())) {
                Ok(note) => note,
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    return Err(ConnectError::Missing { missing: self.missing(), within: limit });
                }
            };
            if self.take(note)? {
                return Ok(());
            }
        }
    }

    /// Handles a note; returns whether the run starts.
    fn take(&mut self, note: ControlNote) -> Result<bool, ConnectError> {
        match note {
            ControlNote::NewPeer(peer) => self.welcome(peer)?,
            ControlNote::Refused { from, why } => self.reasons[from] = Some(format!("it was refused: {why}")),
            ControlNote::Connected { to, purpose, stream } => {
                self.connecting.remove(&(to, purpose as u8));
                self.place(to, purpose, stream)?;
            }
            ControlNote::NotConnected { to, why } => {
                let process = self.processes.name(to);
                match why {
                    ConnectFailure::Yet(why) => self.reasons[to] = Some(why),
                    ConnectFailure::Refused(why) => return Err(ConnectError::Refused { process, why }),
                    ConnectFailure::Differs(differences) => {
                        return Err(ConnectError::Differs { process, differences });
                    }
                }
            }
            ControlNote::Wire { from, generation, event } if generation == self.generations[from] => {
                return self.on_wire(from, event);
            }
            ControlNote::Wire { .. } | ControlNote::Suspected { .. } => {}
        }
        Ok(false)
    }

    fn on_wire(&mut self, from: usize, event: WireEvent) -> Result<bool, ConnectError> {
        let me = self.processes.index();
        match event {
            WireEvent::Frame(frame) => match Frame::decode(&frame) {
                Some(Frame::Ready) if me == 0 => self.ready[from] = true,
                Some(Frame::Start) if me > 0 => return Ok(true),
                Some(Frame::Message(ControlMessage::Failed(text))) => return Err(ConnectError::Failed(text)),
                _ => {
                    let why = "it says what does not belong to the start".to_owned();
                    return Err(ConnectError::Gone { process: self.processes.name(from), why });
                }
            },
            WireEvent::Ended(why) => {
                // A ready process no longer waits for others to start again.
                if self.ready[if me == 0 { from } else { me }] {
                    return Err(ConnectError::Gone { process: self.processes.name(from), why });
                }
                self.wires[from] = None;
                self.reasons[from] = Some(why);
                if me > 0 {
                    self.connect(0, Purpose::Control)?;
                }
            }
        }
        Ok(false)
    }

    /// Whether all connections exist and have not ended.
    fn is_complete(&mut self) -> Result<bool, ConnectError> {
        if self.lacking().next().is_some() {
            return Ok(false);
        }
        // Once this process is ready, the run watches the connections.
        let me = self.processes.index();
        let mut complete = true;
        for process in 0..self.processes.count() {
            if process != me && !self.ready[me] && !self.data[process].as_ref().is_some_and(is_alive) {
                self.data[process] = None;
                self.reasons[process] = Some("the connection has ended".to_owned());
                complete = false;
                if process < me {
                    self.connect(process, Purpose::Data)?;
                }
            }
        }
        Ok(complete)
    }

    fn welcome(&mut self, peer: NewPeer) -> Result<(), ConnectError> {
        let (from, purpose) = (peer.from, peer.purpose);
        let is_there = match purpose {
            Purpose::Data => self.data[from].as_ref().is_some_and(is_alive),
            Purpose::Control => self.wires[from].as_ref().is_some_and(|wire| !wire.has_ended()),
        };
        if is_there {
            peer.refuse(&format!("there is a {} already", self.processes.name(from)));
            if let Ok(peer) = peer.stream.peer_addr() {
                let why = format!("there is a process {from} already");
                self.refusals.note(peer.ip(), &format!("process {from} ({peer})"), &why);
            }
        } else if let Some(stream) = peer.welcome() {
            self.place(from, purpose, stream)?;
        }
        Ok(())
    }

    fn place(&mut self, process: usize, purpose: Purpose, stream: TcpStream) -> Result<(), ConnectError> {
        if purpose == Purpose::Data {
            self.data[process] = Some(stream);
            return Ok(());
        }
        self.generations[process] += 1;
        let (generation, sender) = (self.generations[process], self.sender.clone());
        // The receiver is dropped when the run has ended.
        let on_event =
            move |event| sender.send(ControlNote::Wire { from: process, generation, event }).unwrap_or(());
        self.wires[process] = Some(Wire::start(stream, self.pace, on_event).map_err(ConnectError::Io)?);
        tracing::info!("{} is there", self.processes.name(process));
        for to in 0..self.processes.index() {
            if self.data[to].is_none() && !self.connecting.contains_key(&(to, Purpose::Data as u8)) {
                self.connect(to, Purpose::Data)?;
            }
        }
        Ok(())
    }

    /// Starts a thread that connects, until a connection is connected or refused, or gathering ends.
    fn connect(&mut self, to: usize, purpose: Purpose) -> Result<(), ConnectError> {
        let (stop, stopped) = channel();
        self.connecting.insert((to, purpose as u8), stop);
        let (identity, sender) = (Arc::clone(&self.identity), self.sender.clone());
        // The accepting side may be busy: wait for each of its answers as long as it waits for ours, twice.
        let (host, within) = (self.processes.hosts()[to].clone(), 2 * self.within);
        let attempts = move || {
            let mut pause = FIRST_PAUSE;
            loop {
                let connected = attempt(&host, &identity, to, purpose, within);
                // Process 0 has accepted this process: if the two differ, process 0 will refuse the other
                // one.
                let connected =
                    connected.map_err(|why| if purpose == Purpose::Data { why.for_now() } else { why });
                let again = matches!(connected, Err(ConnectFailure::Yet(_)));
                let note = match connected {
                    Ok(stream) => ControlNote::Connected { to, purpose, stream },
                    Err(why) => ControlNote::NotConnected { to, why },
                };
                if sender.send(note).is_err()
                    || !again
                    || stopped.recv_timeout(pause) != Err(RecvTimeoutError::Timeout)
                {
                    return;
                }
                pause = LAST_PAUSE.min(2 * pause);
            }
        };
        thread::Builder::new().name("connect".to_owned()).spawn(attempts).map_err(ConnectError::Io)?;
        Ok(())
    }

    /// The processes to which a connection is missing.
    fn lacking(&self) -> impl Iterator<Item = usize> {
        let me = self.processes.index();
        (0..self.processes.count()).filter(move |process| {
            let controls = me == 0 || *process == 0;
            let lacks = self.data[*process].is_none() || (controls && self.wires[*process].is_none());
            *process != me && lacks
        })
    }

    fn missing(&self) -> Vec<Missing> {
        let me = self.processes.index();
        let mut missing: Vec<Missing> = self
            .lacking()
            .map(|process| {
                let silent = "it did not connect".to_owned();
                Missing {
                    process: self.processes.name(process),
                    why: self.reasons[process].clone().unwrap_or(silent),
                }
            })
            .collect();
        if missing.is_empty() {
            // This process has all its connections; others do not.
            let waits = |process: usize| Missing {
                process: self.processes.name(process),
                why: "it is still waiting for others".to_owned(),
            };
            let unready = (1..self.processes.count()).filter(|process| !self.ready[*process]);
            missing = if me == 0 { unready.map(waits).collect() } else { vec![waits(0)] };
        }
        missing
    }

    /// Sends to the others that there is no run.
    fn give_up(&mut self, error: &ConnectError) {
        let name = self.processes.name(self.processes.index());
        let text = match error {
            ConnectError::Failed(text) => text.clone(),
            error => format!("{name}: {error}"),
        };
        let failed = Frame::Message(ControlMessage::Failed(text)).encode();
        let wires: Vec<Wire> = self.wires.iter_mut().filter_map(Option::take).collect();
        wires.iter().for_each(|wire| wire.send(failed.clone()));
        Wire::end(wires);
    }
}

/// Tries to connect once.
fn attempt(
    host: &str,
    identity: &Identity,
    to: usize,
    purpose: Purpose,
    within: Duration,
) -> Result<TcpStream, ConnectFailure> {
    let mut last = ConnectFailure::Yet(format!("\"{host}\" has no address"));
    for address in host.to_socket_addrs().map_err(|error| ConnectFailure::Yet(error.to_string()))? {
        let to = u32::try_from(to).expect("there are fewer than 2^32 processes");
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => match handshake::connect(stream, identity, to, purpose, within) {
                Err(ConnectFailure::Yet(why)) => last = ConnectFailure::Yet(why),
                connected => return connected,
            },
            Err(error) => last = ConnectFailure::Yet(error.to_string()),
        }
    }
    Err(last)
}

/// Whether a connection that has not been used yet is still open.
fn is_alive(stream: &TcpStream) -> bool {
    let peek = || -> io::Result<bool> {
        stream.set_nonblocking(true)?;
        let alive = match stream.peek(&mut [0]) {
            Ok(count) => count > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        stream.set_nonblocking(false)?;
        Ok(alive)
    };
    peek().unwrap_or(false)
}
