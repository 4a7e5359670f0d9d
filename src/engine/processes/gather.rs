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
//! names the missing processes with the last known reason of each.

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
use dupflow_core::description::Value;
use dupflow_core::time::{Clock, SystemClock};

/// Capacity of the queue of notes.
const NOTES: usize = 4096;

/// Before the first attempt to connect again; doubled each time, up to `LAST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// Notes to the thread that gathers, and later to the thread of [`Control`](super::Control).
#[derive(Debug)]
pub(super) enum Note {
    /// A process has proved its identity, and waits to be accepted.
    Newcomer(Newcomer),
    /// A process was refused.
    Refused { from: usize, why: String },
    /// A connection was made.
    Made { to: usize, purpose: Purpose, stream: TcpStream },
    /// A connection was not made; it is tried again if that may help.
    NotMade { to: usize, why: NotMade },
    /// A frame or the end of a control connection; `life` numbers the connections with the process.
    Heard { from: usize, life: u64, heard: Heard },
    /// The data connection with a process has ended.
    Suspected { process: usize, why: String },
}

/// All connections of a process.
#[derive(Debug)]
pub(super) struct Gathered {
    /// On process 0, the control connections by process; on others, only the one to process 0.
    pub(super) wires: Vec<Option<Wire>>,
    /// By process, the number of its present control connection. Notes of earlier ones are ignored.
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
    /// Dropping the sender stops the thread that connects.
    connecting: BTreeMap<(usize, u8), Sender<()>>,
    /// On process 0: by process, whether it is ready. On others: at its own index, whether it has sent
    /// *ready*.
    ready: Vec<bool>,
    /// By process, the last known reason why it is missing.
    known: Vec<Option<String>>,
}

/// Connects to all processes.
///
/// # Errors
/// Why there is no run; the connected processes are notified.
pub(super) fn gather(listener: TcpListener, settings: &Settings) -> Result<Gathered, ConnectError> {
    let Settings { processes, description, secret, limits } = settings;
    let count = processes.count();
    let number = |n: usize| u32::try_from(n).expect("there are fewer than 2^32 processes");
    let identity = Arc::new(Identity {
        index: number(processes.index()),
        count: number(count),
        secret: secret.clone(),
        description: description.clone().with("processes.hosts", Value::list(processes.hosts())),
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
        // The receiver is dropped once all have gathered.
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

    /// Handles a note; returns whether the run starts.
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
                // A ready process no longer waits for others to start again.
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
        // The receiver is dropped when the run has ended.
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

    /// Starts a thread that connects, until a connection is made or refused, or gathering ends.
    fn connect(&mut self, to: usize, purpose: Purpose) -> Result<(), ConnectError> {
        let (stop, stopped) = channel();
        self.connecting.insert((to, purpose as u8), stop);
        let (identity, tell) = (Arc::clone(&self.identity), self.tell.clone());
        // The accepting side may be busy: wait for each of its answers as long as it waits for ours, twice.
        let (host, within) = (self.processes.hosts()[to].clone(), 2 * self.within);
        let attempts = move || {
            let mut pause = FIRST_PAUSE;
            loop {
                let made = attempt(&host, &identity, to, purpose, within);
                // Process 0 has accepted this process: if the two differ, process 0 will refuse the other
                // one.
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
