//! Takes bodies, and writes those that arrive together to the journal at once.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use super::journal::{Journal, JournalRules};
use super::waiting::{Held, PostedSink, Waiting};
use crate::formats::{InputLayout, MAX_RECORD_BYTES, decompressed};
use crate::intake::is_blank;
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
    durable: Arc<AtomicU64>,
}

/// A body that is to be stored.
struct PostedBody {
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
        let (durable, waiting) = (Arc::<AtomicU64>::default(), Arc::<Waiting>::default());
        let DoorSettings { path, layout, columns, fields, waiting: most_held } = of;
        let journal = Journal::open(path, JournalRules { layout, columns, fields }, Arc::clone(&durable))?;
        let (bodies, received) = channel();
        let answered = Arc::clone(&waiting);
        let keep = move || keep(journal, &received, &answered);
        thread::Builder::new().name("journal".to_owned()).spawn(keep)?;
        Ok(Self { bodies, waiting, held: Arc::default(), most_held, durable })
    }

    /// How many bytes of the journal are durable; the reader must not read beyond.
    pub fn durable(&self) -> Arc<AtomicU64> {
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
    fn post(&self, body: Vec<u8>, most: usize, waits: bool, reply: PostReply) {
        match self.take(body, most) {
            Err(refusal) => reply(Err(refusal)),
            Ok((lines, held)) => {
                let sent = self.bodies.send(PostedBody { lines, held, waits, reply });
                if let Err(unsent) = sent {
                    (unsent.0.reply)(Err(PostRefusal::Ended));
                }
            }
        }
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
    let whole: Result<serde_json::Value, _> = serde_json::from_slice(&bytes);
    if whole.is_ok_and(|value| value.is_object()) {
        // One object over several lines: line ends are between its tokens only.
        bytes.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    }
    let mut lines = Vec::with_capacity(bytes.len() + 1);
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !is_blank(line)) {
        lines.extend_from_slice(line.trim_ascii());
        lines.push(b'\n');
    }
    if lines.is_empty() { Err(PostRefusal::Empty) } else { Ok(lines) }
}

/// Writes bodies to the journal until there is no door any more.
fn keep(mut journal: Journal, bodies: &Receiver<PostedBody>, waiting: &Waiting) {
    while let Ok(earliest) = bodies.recv() {
        let group: Vec<_> = [earliest].into_iter().chain(bodies.try_iter().take(TOGETHER - 1)).collect();
        let all: Vec<u8> = group.iter().flat_map(|body| &body.lines).copied().collect();
        let mut group = Some(group);
        let stored = journal.append(&all, |mut first, found| {
            let mut found = found.into_iter();
            for PostedBody { lines, held, waits, reply } in group.take().into_iter().flatten() {
                let count = lines.iter().filter(|byte| **byte == b'\n').count();
                let of_body: Vec<_> = found.by_ref().take(count).collect();
                waiting.begin(first, of_body, held, waits, reply);
                first += count as u64;
            }
        });
        if let Err(error) = stored {
            tracing::warn!(%error, "what was posted cannot be stored");
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
