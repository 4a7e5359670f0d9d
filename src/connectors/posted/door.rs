//! Takes bodies, and writes those that arrive together to the journal at once.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::journal::{Journal, JournalRules};
use super::waiting::{Held, PostedSink, Waiting, WaitingBody};
use crate::durable::Durable;
use crate::formats::{InputLayout, MAX_RECORD_BYTES, decompressed};
use crate::intake::is_blank;
use serde::de::IgnoredAny;

use dupflow_core::cluster::Clusters;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;
use dupflow_run::door::{DocumentDoor, PostRefusal, PostReply};

/// Most bodies that are written at once.
const TOGETHER: usize = 1000;

/// What a door is opened with.
#[derive(Debug)]
pub struct DoorSettings<'a> {
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
}

/// The door of a run. Its thread ends with it.
pub struct Door {
    bodies: Sender<PostedBody>,
    waiting: Arc<Waiting>,
    /// Bytes that wait, and how many may.
    held: Arc<AtomicUsize>,
    most_held: usize,
    durable: Arc<Durable>,
    /// How many bodies were posted.
    posted: AtomicU64,
}

/// A body that is to be stored.
struct PostedBody {
    number: u64,
    /// Its lines, each with its end.
    lines: Vec<u8>,
    held: Held,
    waits: bool,
    reply: PostReply,
}

impl Door {
    /// Opens the journal, and starts the thread that writes it.
    ///
    /// # Errors
    /// Any error of the journal.
    pub fn open(of: DoorSettings<'_>) -> io::Result<Self> {
        let (durable, waiting) = (Arc::<Durable>::default(), Arc::<Waiting>::default());
        let DoorSettings { path, layout, columns, fields, waiting: most_held } = of;
        let journal = Journal::open(path, JournalRules { layout, columns, fields }, Arc::clone(&durable))?;
        let (bodies, received) = channel();
        let answered = Arc::clone(&waiting);
        let begun = Arc::clone(&durable);
        let keep = move || {
            // A run that is refused, since its journal is not as it was read, takes nothing.
            if begun.wait_for_reader() {
                keep(journal, &received, &answered);
            }
        };
        thread::Builder::new().name("journal".to_owned()).spawn(keep)?;
        Ok(Self { bodies, waiting, held: Arc::default(), most_held, durable, posted: AtomicU64::new(0) })
    }

    /// What of the journal is durable; the reader must not read beyond.
    pub fn durable(&self) -> Arc<Durable> {
        Arc::clone(&self.durable)
    }

    /// The sink that answers what waits.
    /// `clusters` must be empty.
    pub fn sink(&self, clusters: Clusters) -> PostedSink {
        PostedSink::new(clusters, Arc::clone(&self.waiting))
    }

    /// Takes a body; refuses it before anything of it is stored.
    fn take(&self, body: Vec<u8>, most: usize) -> Result<(Vec<u8>, Held), PostRefusal> {
        let lines = lines(body, most.min(MAX_RECORD_BYTES))?;
        let held = Held::new(&self.held, lines.len(), self.most_held).ok_or(PostRefusal::Full)?;
        Ok((lines, held))
    }
}

impl DocumentDoor for Door {
    fn post(&self, body: Vec<u8>, most: usize, waits: bool, reply: PostReply) -> u64 {
        let number = self.posted.fetch_add(1, Ordering::Relaxed);
        match self.take(body, most) {
            Err(refusal) => reply(Err(refusal)),
            Ok((lines, held)) => {
                let sent = self.bodies.send(PostedBody { number, lines, held, waits, reply });
                if let Err(unsent) = sent {
                    (unsent.0.reply)(Err(PostRefusal::Ended));
                }
            }
        }
        number
    }

    fn leave(&self, body: u64) {
        self.waiting.leave(body);
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.durable.read(false);
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
    let is_object = text.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let in_line = |byte: &u8| if is_object && matches!(byte, b'\n' | b'\r') { b' ' } else { *byte };
    let mut lines = Vec::with_capacity(text.len() + 1);
    for line in text.split(|byte| *byte == b'\n' && !is_object).filter(|line| !is_blank(line)) {
        lines.extend(line.trim_ascii().iter().map(in_line));
        lines.push(b'\n');
    }
    if lines.is_empty() { Err(PostRefusal::Empty) } else { Ok(lines) }
}

/// Writes bodies to the journal until there is no door any more.
fn keep(mut journal: Journal, bodies: &Receiver<PostedBody>, waiting: &Waiting) {
    let mut fails = false;
    while let Ok(earliest) = bodies.recv() {
        let group: Vec<_> = [earliest].into_iter().chain(bodies.try_iter().take(TOGETHER - 1)).collect();
        let all: Vec<u8> = group.iter().flat_map(|body| &body.lines).copied().collect();
        let mut group = Some(group);
        let stored = journal.append(&all, |mut first, found| {
            let mut found = found.into_iter();
            for PostedBody { number, lines, held, waits, reply } in group.take().into_iter().flatten() {
                let count = lines.iter().filter(|byte| **byte == b'\n').count();
                let of_body: Vec<_> = found.by_ref().take(count).collect();
                let body = WaitingBody::new(number, first, of_body, held, reply);
                waiting.begin(body, waits);
                first += count as u64;
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
            group.into_iter().flatten().for_each(|body| (body.reply)(Err(refusal.clone())));
        }
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("held", &self.held.load(Ordering::Relaxed)).finish_non_exhaustive()
    }
}
