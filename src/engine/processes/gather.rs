//! The start: every process gets its connections to all others, and goes on when all have theirs.
//!
//! Settings and a listener -> a data connection to each other process, and the control connections, at work.
//! Process i connects to process 0 for control, and once that has taken it, so that no other process can be
//! of its index, to all below it for data; it hears those above it. Who is not there yet is tried again, with
//! pauses that grow from 50 ms to a second. One that has all its connections tells process 0 that it is
//! *ready*; when all are, process 0 says *start*. So no process goes on while another one may still fail.
//!
//! Until a process is ready it may end and come again: its connections are taken for none once they have
//! ended. Whatever is wrong with a newcomer is the newcomer's trouble: it is told, the log says so, and the
//! others go on waiting. Process 0 is the measure: only who is refused by it gives up. At the limit, the
//! error names who is missing, and what was last known of each.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use super::handshake::{self, Identity, Newcomer, NotMade, Purpose};
use super::listener::Listener;
use super::message::{Message, Said};
use super::refusals::Refusals;
use super::wire::{Heard, Pace, Wire};
use super::{ConnectError, Missing, Processes, Settings};
use dupflow_core::description::FieldValue;
use dupflow_core::time::{Clock, SystemClock};

/// Notes that may wait to be read.
const NOTES: usize = 4096;

/// Before the first attempt to connect again; doubled from one to the next, up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// What is told to the one that gathers, and later to the one that controls.
#[derive(Debug)]
pub(super) enum Note {
    /// It waits to be welcomed.
    Newcomer(Newcomer),
    /// A process was refused.
    Refused { from: usize, why: String },
    /// A connection was made.
    Made { to: usize, purpose: Purpose, stream: TcpStream },
    /// A connection was not made; it is tried again if that may help.
    NotMade { to: usize, why: NotMade },
    /// Over a control connection; `life` counts those with the process.
    Heard { from: usize, life: u64, heard: Heard },
    /// Somebody believes that a process is gone.
    Suspected { process: usize, why: String },
}

/// All connections of a process.
#[derive(Debug)]
pub(super) struct Gathered {
    /// To process 0, or from process 0 to all others.
    pub(super) wires: Vec<Option<Wire>>,
    /// Which of the control connections with a process this is; what is heard of an earlier one is over.
    pub(super) lives: Vec<u64>,
    pub(super) data: Vec<Option<TcpStream>>,
    pub(super) notes: Receiver<Note>,
    pub(super) tell: SyncSender<Note>,
}

struct Gathering<'a> {
    processes: &'a Processes,
    pace: Pace,
    within: Duration,
    identity: Arc<Identity>,
    refusals: Arc<Refusals>,
    tell: SyncSender<Note>,
    wires: Vec<Option<Wire>>,
    lives: Vec<u64>,
    data: Vec<Option<TcpStream>>,
    /// Dropped, it ends the thread that connects.
    connecting: BTreeMap<(usize, u8), Sender<()>>,
    /// Of process 0: who is ready. Of others: whether this one has told so.
    ready: Vec<bool>,
    /// What is last known of a process that is missing.
    known: Vec<Option<String>>,
}

/// Gathers them.
///
/// # Errors
/// Why there is no run; those that have come are told.
pub(super) fn gather(listener: TcpListener, settings: &Settings) -> Result<Gathered, ConnectError> {
    let Settings { processes, description, secret, limits } = settings;
    let count = processes.count();
    let number = |n: usize| u32::try_from(n).expect("there are fewer than 2^32 processes");
    let identity = Arc::new(Identity {
        index: number(processes.index()),
        count: number(count),
        secret: secret.clone(),
        description: description.clone().with("processes.hosts", FieldValue::list(processes.hosts())),
    });
    let refusals = Arc::new(Refusals::new());
    let (tell, notes) = sync_channel(NOTES);
    let mut gathering = Gathering {
        processes,
        pace: Pace { beat: limits.beat, lost: limits.lost },
        within: limits.hello,
        identity: Arc::clone(&identity),
        refusals: Arc::clone(&refusals),
        tell: tell.clone(),
        wires: (0..count).map(|_| None).collect(),
        lives: vec![0; count],
        data: (0..count).map(|_| None).collect(),
        connecting: BTreeMap::new(),
        ready: vec![false; count],
        known: vec![None; count],
    };
    let heard = tell.clone();
    let _listener = Listener::start(listener, &identity, &refusals, limits.hello, move |heard_of| {
        let note = match heard_of {
            Ok(newcomer) => Note::Newcomer(newcomer),
            Err((from, why)) => Note::Refused { from, why },
        };
        // Once all have gathered, nobody asks.
        heard.send(note).unwrap_or(());
    })
    .map_err(ConnectError::Io)?;
    match gathering.run(&notes, limits.connect) {
        Ok(()) => {
            Ok(Gathered { wires: gathering.wires, lives: gathering.lives, data: gathering.data, notes, tell })
        }
        Err(error) => {
            gathering.give_up(&error);
            Err(error)
        }
    }
}

impl Gathering<'_> {
    fn run(&mut self, notes: &Receiver<Note>, limit: Duration) -> Result<(), ConnectError> {
        let clock = SystemClock::start();
        let me = self.processes.index();
        if me > 0 {
            self.connect(0, Purpose::Control)?;
        }
        loop {
            if self.is_complete()? {
                if me == 0 && self.ready[1..].iter().all(|ready| *ready) {
                    self.wires.iter().flatten().for_each(|wire| wire.send(Said::Start.encode()));
                    return Ok(());
                }
                if let Some(wire) = self.wires[0].as_ref().filter(|_| !self.ready[me]) {
                    wire.send(Said::Ready.encode());
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

    /// Takes a note. Whether the run starts.
    fn take(&mut self, note: Note) -> Result<bool, ConnectError> {
        match note {
            Note::Newcomer(newcomer) => self.welcome(newcomer)?,
            Note::Refused { from, why } => self.known[from] = Some(format!("it was refused: {why}")),
            Note::Made { to, purpose, stream } => {
                self.connecting.remove(&(to, purpose as u8));
                self.place(to, purpose, stream)?;
            }
            Note::NotMade { to, why } => {
                let process = self.processes.name(to);
                match why {
                    NotMade::Yet(why) => self.known[to] = Some(why),
                    NotMade::Refused(why) => return Err(ConnectError::Refused { process, why }),
                    NotMade::Differs(differences) => {
                        return Err(ConnectError::Differs { process, differences });
                    }
                }
            }
            Note::Heard { from, life, heard } if life == self.lives[from] => return self.hear(from, heard),
            Note::Heard { .. } | Note::Suspected { .. } => {}
        }
        Ok(false)
    }

    fn hear(&mut self, from: usize, heard: Heard) -> Result<bool, ConnectError> {
        let me = self.processes.index();
        match heard {
            Heard::Frame(frame) => match Said::decode(&frame) {
                Some(Said::Ready) if me == 0 => self.ready[from] = true,
                Some(Said::Start) if me > 0 => return Ok(true),
                Some(Said::Message(Message::Failed(text))) => return Err(ConnectError::Failed(text)),
                _ => {
                    let why = "it says what does not belong to the start".to_owned();
                    return Err(ConnectError::Gone { process: self.processes.name(from), why });
                }
            },
            Heard::Ended(why) => {
                // Who is ready has given up waiting for others to come again.
                if self.ready[if me == 0 { from } else { me }] {
                    return Err(ConnectError::Gone { process: self.processes.name(from), why });
                }
                self.wires[from] = None;
                self.known[from] = Some(why);
                if me > 0 {
                    self.connect(0, Purpose::Control)?;
                }
            }
        }
        Ok(false)
    }

    /// Whether all connections are there. Those that have ended are not.
    fn is_complete(&mut self) -> Result<bool, ConnectError> {
        if self.lacking().next().is_some() {
            return Ok(false);
        }
        // Those of who is ready are looked after by the run.
        let me = self.processes.index();
        let mut complete = true;
        for process in 0..self.processes.count() {
            if process != me && !self.ready[me] && !self.data[process].as_ref().is_some_and(is_alive) {
                self.data[process] = None;
                self.known[process] = Some("the connection has ended".to_owned());
                complete = false;
                if process < me {
                    self.connect(process, Purpose::Data)?;
                }
            }
        }
        Ok(complete)
    }

    fn welcome(&mut self, newcomer: Newcomer) -> Result<(), ConnectError> {
        let (from, purpose) = (newcomer.from, newcomer.purpose);
        let is_there = match purpose {
            Purpose::Data => self.data[from].as_ref().is_some_and(is_alive),
            Purpose::Control => self.wires[from].as_ref().is_some_and(|wire| !wire.has_ended()),
        };
        if is_there {
            newcomer.refuse(&format!("there is a {} already", self.processes.name(from)));
            if let Ok(peer) = newcomer.stream.peer_addr() {
                let why = format!("there is a process {from} already");
                self.refusals.note(peer.ip(), &format!("process {from} ({peer})"), &why);
            }
        } else if let Some(stream) = newcomer.welcome() {
            self.place(from, purpose, stream)?;
        }
        Ok(())
    }

    fn place(&mut self, process: usize, purpose: Purpose, stream: TcpStream) -> Result<(), ConnectError> {
        if purpose == Purpose::Data {
            self.data[process] = Some(stream);
            return Ok(());
        }
        self.lives[process] += 1;
        let (life, tell) = (self.lives[process], self.tell.clone());
        // A run that has ended hears nothing.
        let hear = move |heard| tell.send(Note::Heard { from: process, life, heard }).unwrap_or(());
        self.wires[process] = Some(Wire::start(stream, self.pace, hear).map_err(ConnectError::Io)?);
        tracing::info!("{} is there", self.processes.name(process));
        for to in 0..self.processes.index() {
            if self.data[to].is_none() && !self.connecting.contains_key(&(to, Purpose::Data as u8)) {
                self.connect(to, Purpose::Data)?;
            }
        }
        Ok(())
    }

    /// Starts to connect, until a connection is made, or is refused, or this is over.
    fn connect(&mut self, to: usize, purpose: Purpose) -> Result<(), ConnectError> {
        let (stop, stopped) = channel();
        self.connecting.insert((to, purpose as u8), stop);
        let (identity, tell) = (Arc::clone(&self.identity), self.tell.clone());
        // Whoever accepts may be busy; each of its answers is awaited as long as it awaits ours.
        let (host, within) = (self.processes.hosts()[to].clone(), 2 * self.within);
        let attempts = move || {
            let mut pause = FIRST_PAUSE;
            loop {
                let made = attempt(&host, &identity, to, purpose, within);
                // Process 0 has taken this one: if they do not fit, it is the other one that will not be
                // taken.
                let made = made.map_err(|why| if purpose == Purpose::Data { why.for_now() } else { why });
                let again = matches!(made, Err(NotMade::Yet(_)));
                let note = match made {
                    Ok(stream) => Note::Made { to, purpose, stream },
                    Err(why) => Note::NotMade { to, why },
                };
                if tell.send(note).is_err()
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
                    why: self.known[process].clone().unwrap_or(silent),
                }
            })
            .collect();
        if missing.is_empty() {
            // This one has all; others have not.
            let waits = |process: usize| Missing {
                process: self.processes.name(process),
                why: "it is still waiting for others".to_owned(),
            };
            let unready = (1..self.processes.count()).filter(|process| !self.ready[*process]);
            missing = if me == 0 { unready.map(waits).collect() } else { vec![waits(0)] };
        }
        missing
    }

    /// Tells the others that there is no run.
    fn give_up(&mut self, error: &ConnectError) {
        let name = self.processes.name(self.processes.index());
        let text = match error {
            ConnectError::Failed(text) => text.clone(),
            error => format!("{name}: {error}"),
        };
        let failed = Said::Message(Message::Failed(text)).encode();
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
) -> Result<TcpStream, NotMade> {
    let mut last = NotMade::Yet(format!("\"{host}\" has no address"));
    for address in host.to_socket_addrs().map_err(|error| NotMade::Yet(error.to_string()))? {
        let to = u32::try_from(to).expect("there are fewer than 2^32 processes");
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => match handshake::connect(stream, identity, to, purpose, within) {
                Err(NotMade::Yet(why)) => last = NotMade::Yet(why),
                made => return made,
            },
            Err(error) => last = NotMade::Yet(error.to_string()),
        }
    }
    Err(last)
}

/// Whether a connection over which nothing has been said yet is still one.
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
