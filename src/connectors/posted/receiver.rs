//! Takes bodies, and writes those that arrive together to the journal at once.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;
use serde::de::IgnoredAny;

use super::journal::{BodyLines, Journal, JournalRules};
use super::keys::BodyKey;
use super::waiting::{Held, PostedSink, Waiting, WaitingBody};
use crate::durable::Durable;
use crate::formats::{InputLayout, MAX_RECORD_BYTES, decompressed};
use crate::intake::is_blank;
use crate::sinks::DecisionMode;
use crate::sinks::book::Book;
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;
use dupflow_run::metrics::Metrics;
use dupflow_run::posted::{DocumentReceiver, PostRefusal, PostReply, PostWait, PostedBody};

/// Most bodies that are written at once.
const TOGETHER: usize = 1000;

/// Most bytes of a body: as long as a line may be, with the time of its arrival.
const LONGEST: usize = MAX_RECORD_BYTES - 4096;

/// What a receiver is opened with.
#[derive(Debug)]
pub struct PostReceiverSettings<'a> {
    /// The journal.
    pub path: &'a Path,
    /// How lines are mapped to documents.
    pub layout: InputLayout,
    /// The columns of the text and of fields.
    pub columns: TextColumns,
    /// The fields of documents.
    pub fields: FieldRules,
    /// Most bytes of bodies that wait for their answers.
    pub waiting: usize,
    /// Whether a document that arrives again keeps the time of its first arrival.
    pub keeps_times: bool,
    /// Empty, by the rules of the run.
    pub clusters: Clusters,
    /// Where decisions are counted.
    pub metrics: Arc<Metrics>,
}

/// The receiver of a run. Its thread ends with it.
pub struct PostReceiver {
    /// Present until it is dropped.
    bodies: Option<Sender<TakenBody>>,
    thread: Option<JoinHandle<()>>,
    waiting: Arc<Waiting>,
    /// Bytes that wait, and how many may.
    held: Arc<AtomicUsize>,
    most_held: usize,
    durable: Arc<Durable>,
    /// How many bodies were posted.
    posted: AtomicU64,
}

/// A body that is to be stored.
struct TakenBody {
    number: u64,
    body: BodyLines,
    held: Held,
    wait: PostWait,
    reply: PostReply,
}

impl PostReceiver {
    /// Opens the journal, and starts the thread that writes it.
    ///
    /// # Errors
    /// Any error of the journal.
    pub fn open(of: PostReceiverSettings<'_>) -> io::Result<Self> {
        let durable = Arc::<Durable>::default();
        let book = Book::new(of.clusters).with_decisions(DecisionMode::First, of.metrics);
        let book = Arc::new(Mutex::new(book));
        let waiting = Arc::new(Waiting::new(Arc::clone(&durable), Arc::clone(&book)));
        let rules = JournalRules { layout: of.layout, columns: of.columns, fields: of.fields };
        let journal = Journal::open(of.path, rules, Arc::clone(&durable))?;
        let (bodies, received) = channel();
        let (answered, begun) = (Arc::clone(&waiting), Arc::clone(&durable));
        let live = of.keeps_times.then_some(book);
        let first_arrival = move |id: &DocId| live.as_ref()?.lock().facts(id)?.ts;
        let keep = move || {
            if begun.wait_for_reader() {
                keep(journal, &received, &answered, first_arrival);
            } else if let Err(error) = journal.abandon() {
                // The run is refused, since its journal is not as it was read: nothing is taken.
                tracing::warn!(%error, "the new journal cannot be removed");
            }
        };
        let thread = Some(thread::Builder::new().name("journal".to_owned()).spawn(keep)?);
        let (bodies, held, posted) = (Some(bodies), Arc::default(), AtomicU64::new(0));
        Ok(Self { bodies, thread, waiting, held, most_held: of.waiting, durable, posted })
    }

    /// What of the journal is durable; the reader must not read beyond.
    pub fn durable(&self) -> Arc<Durable> {
        Arc::clone(&self.durable)
    }

    /// The sink that answers what waits.
    pub fn sink(&self) -> PostedSink {
        PostedSink::new(Arc::clone(&self.waiting))
    }

    /// Takes a body; refuses it before anything of it is stored.
    fn take(&self, body: Vec<u8>, most: usize) -> Result<(Vec<u8>, Held), PostRefusal> {
        let lines = lines(body, most.min(LONGEST))?;
        let held = Held::new(&self.held, lines.len(), self.most_held).ok_or(PostRefusal::Full)?;
        Ok((lines, held))
    }
}

impl DocumentReceiver for PostReceiver {
    fn post(&self, body: PostedBody, reply: PostReply) -> u64 {
        let number = self.posted.fetch_add(1, Ordering::Relaxed);
        let PostedBody { bytes, most, wait, key } = body;
        match self.take(bytes, most) {
            Err(refusal) => reply(Err(refusal)),
            Ok((lines, held)) => {
                let key = key.map(|key| BodyKey::new(key, &lines));
                let taken = TakenBody { number, body: (lines, key), held, wait, reply };
                let sent = self.bodies.as_ref().map(|bodies| bodies.send(taken));
                if let Some(Err(unsent)) = sent {
                    (unsent.0.reply)(Err(PostRefusal::Ended));
                }
            }
        }
        number
    }

    fn cancel(&self, body: u64) {
        self.waiting.cancel(body);
    }
}

impl Drop for PostReceiver {
    fn drop(&mut self) {
        self.durable.read(false);
        self.bodies = None;
        self.thread.take().into_iter().for_each(|thread| drop(thread.join()));
    }
}

/// The lines of a body, each with its end, without blank ones.
fn lines(body: Vec<u8>, most: usize) -> Result<Vec<u8>, PostRefusal> {
    let damaged = |error: io::Error| PostRefusal::Damaged(error.to_string());
    let mut bytes = Vec::new();
    let stored = decompressed(io::Cursor::new(body)).map_err(damaged)?;
    stored.take(most as u64 + 1).read_to_end(&mut bytes).map_err(damaged)?;
    if bytes.len() > most {
        return Err(PostRefusal::TooLarge(most));
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    // One object may have several lines: their ends are between its tokens only.
    let is_one = || serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let is_object = text.starts_with(b"{") && text.contains(&b'\n') && is_one();
    let in_line = |byte: &u8| if is_object && matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    let mut lines = Vec::with_capacity(text.len() + 1);
    for line in text.split(|byte| *byte == b'\n' && !is_object).filter(|line| !is_blank(line)) {
        lines.extend(line.trim_ascii().iter().map(in_line));
        lines.push(b'\n');
    }
    if lines.is_empty() { Err(PostRefusal::Empty) } else { Ok(lines) }
}

/// Writes bodies to the journal until the receiver is dropped.
fn keep(
    mut journal: Journal,
    bodies: &Receiver<TakenBody>,
    waiting: &Waiting,
    first_arrival: impl Fn(&DocId) -> Option<f64>,
) {
    let mut fails = false;
    if let Err(error) = journal.begin() {
        tracing::warn!(%error, "the journal cannot be written: what is posted is refused until it can");
    }
    while let Ok(earliest) = bodies.recv() {
        let group = [earliest].into_iter().chain(bodies.try_iter().take(TOGETHER - 1));
        let group: Vec<_> = group.filter(|body| !waiting.is_cancelled(body.number)).collect();
        if group.is_empty() {
            continue;
        }
        let parts = |TakenBody { number, body, held, wait, reply }| (body, (number, held, wait, reply));
        let (contents, mut clients): (Vec<_>, Vec<_>) = group.into_iter().map(parts).unzip();
        let stored = journal.append(&contents, &first_arrival, |all| {
            for ((number, held, wait, reply), kept) in clients.drain(..).zip(all) {
                match kept {
                    Ok(lines) => waiting.begin(WaitingBody::new(number, lines, held, wait, reply)),
                    Err(refusal) => reply(Err(refusal)),
                }
            }
        });
        let failed_before = std::mem::replace(&mut fails, stored.is_err());
        if let Err(error) = stored {
            if !failed_before {
                tracing::warn!(
                    %error,
                    "what is posted cannot be stored, and is refused; further failures are only counted, \
                     until the journal can be written again"
                );
            }
            let refusal = PostRefusal::NotStored(error.to_string());
            clients.into_iter().for_each(|(.., reply)| reply(Err(refusal.clone())));
        }
    }
}

impl std::fmt::Debug for PostReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostReceiver")
            .field("held", &self.held.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}
