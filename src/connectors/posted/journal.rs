//! The journal: lines as clients have sent them, behind an empty one. A document without a time is given that
//! of its arrival, which would be lost otherwise.
//!
//! The empty line says that the file is a journal, and that it is not compressed, whatever a client sends. A
//! last line without its end, as a crash leaves it, was never answered, and is cut off.

use std::collections::HashMap;
use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::sync::Arc;

use super::keys::{BodyKey, MEMBER, NO_KEY, StoredBodies, StoredBody};
use crate::durable::Durable;
use crate::failpoint;
use crate::formats::InputLayout;
use crate::formats::feed::LineRules;
use crate::intake::{BadRecords, Batch, Decoder, PARTITION, Payload, is_blank};
use crate::owned::OwnedFile;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::TextColumns;
use dupflow_core::time::unix_seconds;
use dupflow_run::posted::PostRefusal;

/// What the run will find in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostedLine {
    /// An event of this document.
    Event(DocId),
    /// A bad record, for this reason.
    Bad(String),
}

impl PostedLine {
    fn is_event(&self) -> bool {
        matches!(self, Self::Event(_))
    }
}

/// How lines are read.
#[derive(Clone, Debug)]
pub(super) struct JournalRules {
    pub(super) layout: InputLayout,
    pub(super) columns: TextColumns,
    pub(super) fields: FieldRules,
}

/// The journal; one run at a time has it open.
pub(super) struct Journal {
    file: OwnedFile,
    name: Arc<str>,
    /// Bytes of the whole lines that were found.
    whole: u64,
    has_begun: bool,
    /// Lines so far: the number of the next one.
    lines: u64,
    durable: Arc<Durable>,
    decoder: Decoder,
    rules: JournalRules,
    /// Known from the first object on.
    line_rules: Option<Arc<LineRules>>,
    /// What was posted with a key.
    bodies: StoredBodies,
    /// The last time of arrival.
    arrived: f64,
    /// Whether this process has made the file.
    is_new: bool,
}

/// What is appended, and the number of the line after it.
struct Appended {
    bytes: Vec<u8>,
    next: u64,
}

/// What a line is, and whether it is a document without a time.
type JudgedLine = (PostedLine, bool);

/// The lines of a body, each with its end, and its key.
pub(super) type BodyLines = (Vec<u8>, Option<BodyKey>);

/// What became of a body: its lines, or why none is stored.
pub(super) type KeptBody = Result<Vec<KeptLine>, PostRefusal>;

/// A line that is stored.
#[derive(Clone, Debug)]
pub(super) struct KeptLine {
    pub(super) line: PostedLine,
    /// Its number in the journal; of a line that was stored before, that of the last event of its body.
    pub(super) number: u64,
    /// Whether it was stored before, with the same key.
    pub(super) is_again: bool,
}

impl Journal {
    /// Opens the file, or creates it, and changes nothing. `durable` receives how much of it is, later.
    ///
    /// # Errors
    /// Any error of the file; that another run has it open; that it is no journal.
    pub(super) fn open(path: &Path, rules: JournalRules, durable: Arc<Durable>) -> io::Result<Self> {
        let JournalRules { layout, columns, fields } = &rules;
        let names = [&*layout.id, &layout.text, &layout.ts, layout.operation()];
        let names = names.into_iter().chain(columns.iter().map(String::as_str));
        if names.chain(fields.columns().iter().map(String::as_str)).any(|name| name == MEMBER) {
            let what =
                format!("the field {MEMBER:?} has the key of a body: no field that is read may be called so");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let is_new = !path.exists();
        let file = OwnedFile::open(path)?;
        let decoder = Decoder::with_own(&rules.columns, &rules.fields);
        let mut journal = Self {
            file,
            name: path.to_string_lossy().into(),
            whole: 0,
            has_begun: false,
            lines: 0,
            durable,
            decoder,
            rules,
            line_rules: None,
            bodies: StoredBodies::default(),
            arrived: 0.0,
            is_new,
        };
        journal.whole = journal.read()?;
        Ok(journal)
    }

    /// Reads what is there. Returns the bytes of its lines.
    fn read(&mut self) -> io::Result<u64> {
        let mut bytes = io::BufReader::new(std::fs::File::open(self.file.path())?);
        let (mut line, mut length) = (Vec::new(), 0);
        while bytes.read_until(b'\n', &mut line)? > 0 && line.ends_with(b"\n") {
            if length == 0 && line != b"\n" {
                break;
            }
            length += line.len() as u64;
            if !is_blank(&line) {
                self.learn(&line);
                self.bodies.read(&line, self.lines);
                self.lines += 1;
            }
            line.clear();
        }
        if length == 0 && !line.is_empty() {
            let what = format!(
                "{} is no journal of posted documents, which begins with an empty line: name another file",
                self.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(length)
    }

    /// The first object decides how all lines are read.
    fn learn(&mut self, line: &[u8]) {
        if self.line_rules.is_none() {
            let JournalRules { layout, columns, .. } = &self.rules;
            let rules = LineRules::from_line(layout, columns, &self.name, line, 0);
            self.line_rules = rules.map(Arc::new);
        }
    }

    /// Takes the file over: cuts off a torn line, begins an empty one.
    ///
    /// # Errors
    /// Any error of the file.
    pub(super) fn begin(&mut self) -> io::Result<()> {
        if self.has_begun {
            return Ok(());
        }
        let torn = self.file.size()?.saturating_sub(self.whole);
        if torn > 0 {
            let journal = &*self.name;
            tracing::info!(journal, bytes = torn, "a torn line is cut off: it was not answered");
        }
        self.file.take(self.whole)?;
        self.file.cut()?;
        if self.whole == 0 {
            self.file.append_durably(b"\n")?;
        }
        // An earlier process may have ended before its last line was durable.
        self.file.sync()?;
        failpoint::reach("journal-synced");
        self.has_begun = true;
        self.is_durable();
        Ok(())
    }

    /// Removes the file if this process has made it: where a run is refused, what is missing stays missing.
    pub(super) fn abandon(self) -> io::Result<()> {
        if self.is_new && !self.has_begun { std::fs::remove_file(self.file.path()) } else { Ok(()) }
    }

    /// Appends bodies, and calls `before` with what became of each, before the reader can see them.
    /// `first_arrival` is the time that a document has, if it is live.
    ///
    /// # Errors
    /// Any error of the file, which is then as before; that it is not this run's any more.
    pub(super) fn append(
        &mut self,
        bodies: &[BodyLines],
        first_arrival: impl Fn(&DocId) -> Option<f64>,
        before: impl FnOnce(Vec<KeptBody>),
    ) -> io::Result<()> {
        self.begin()?;
        let known = self.line_rules.clone();
        let mut appended = Appended { bytes: Vec::new(), next: self.lines };
        let (mut kept, mut stored) = (Vec::new(), HashMap::<&str, (&BodyKey, StoredBody)>::new());
        for (lines, key) in bodies {
            let judged = self.judge(lines)?;
            let Some(key) = key else {
                kept.push(Ok(self.keep(lines, judged, None, &first_arrival, &mut appended)?));
                continue;
            };
            let of_group = stored.get(&*key.key).map(|(_, body)| *body);
            let mut body = of_group.or_else(|| self.bodies.find(key)).unwrap_or_default();
            if body.events > 0 && !key.is_of(&body) {
                kept.push(Err(PostRefusal::OtherBody));
                continue;
            }
            kept.push(Ok(self.keep(lines, judged, Some((key, &mut body)), &first_arrival, &mut appended)?));
            stored.insert(&key.key, (key, body));
        }
        if !appended.bytes.is_empty()
            && let Err(error) = self.file.append_durably(&appended.bytes)
        {
            self.line_rules = known;
            return Err(error);
        }
        failpoint::reach("journal-appended");
        self.lines = appended.next;
        stored.into_values().for_each(|(key, body)| self.bodies.put(key, body));
        before(kept);
        self.is_durable();
        Ok(())
    }

    /// Appends what is not stored of a body. `keyed`: its key, and what is stored of it before and after.
    fn keep(
        &mut self,
        lines: &[u8],
        judged: Vec<JudgedLine>,
        mut keyed: Option<(&BodyKey, &mut StoredBody)>,
        first_arrival: &impl Fn(&DocId) -> Option<f64>,
        appended: &mut Appended,
    ) -> io::Result<Vec<KeptLine>> {
        let events = judged.iter().enumerate().filter(|(_, (line, _))| line.is_event()).map(|(at, _)| at);
        let events: Vec<_> = events.collect();
        // The lines up to the last event that is stored; all, if that is the last one of the body.
        let again = match keyed.as_ref().map_or(0, |(_, body)| body.events) {
            0 => 0,
            stored if stored >= events.len() => judged.len(),
            stored => events[stored - 1] + 1,
        };
        let mut kept = Vec::new();
        let lines = lines.split_inclusive(|byte| *byte == b'\n').zip(judged);
        for (at, (text, (line, is_untimed))) in lines.enumerate() {
            if at < again {
                let number = keyed.as_ref().map_or(0, |(_, body)| body.last);
                kept.push(KeptLine { line, number, is_again: true });
                continue;
            }
            if let (Some((key, body)), true) = (&mut keyed, line.is_event()) {
                body.add(key, appended.next);
            }
            let key = keyed.as_ref().map(|(key, _)| *key);
            let ts = if is_untimed { self.arrival(&line, first_arrival) } else { None };
            self.write(text, line.is_event(), ts, key, &mut appended.bytes)?;
            kept.push(KeptLine { line, number: appended.next, is_again: false });
            appended.next += 1;
        }
        Ok(kept)
    }

    /// The time of a document without one, if it is given one.
    fn arrival(&mut self, line: &PostedLine, first_arrival: &impl Fn(&DocId) -> Option<f64>) -> Option<f64> {
        // A path leads into an object that the line need not have.
        let PostedLine::Event(id) = line else { return None };
        if self.rules.layout.ts.contains('.') {
            return None;
        }
        // No two have one time: of copies the one that arrived first is the oldest.
        self.arrived = unix_seconds().max(self.arrived + 1e-6);
        Some(first_arrival(id).unwrap_or(self.arrived))
    }

    /// Writes a line as it is stored: of two values of one name the last counts.
    fn write(
        &self,
        line: &[u8],
        is_event: bool,
        ts: Option<f64>,
        key: Option<&BodyKey>,
        stored: &mut Vec<u8>,
    ) -> io::Result<()> {
        let Some(end) = line.iter().rposition(|byte| *byte == b'}').filter(|_| is_event) else {
            stored.extend_from_slice(line);
            return Ok(());
        };
        stored.extend_from_slice(&line[..end]);
        if let Some(ts) = ts {
            write!(stored, ",{}:{ts}", serde_json::to_string(&self.rules.layout.ts)?)?;
        }
        match key {
            Some(key) => stored.extend_from_slice(key.member().as_bytes()),
            None if ts.is_none() && BodyKey::is_feigned(line) => stored.extend_from_slice(NO_KEY.as_bytes()),
            None => {}
        }
        stored.extend_from_slice(b"}\n");
        Ok(())
    }

    /// What the run will find in these lines.
    fn judge(&mut self, bytes: &[u8]) -> io::Result<Vec<JudgedLine>> {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.learn(line);
        }
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        let batch = Batch {
            input: Arc::clone(&self.name),
            partition: PARTITION,
            records: lines as u64,
            next: lines as u64,
            payload: Payload::Lines {
                bytes: bytes.to_vec(),
                first_line: 1,
                first: 0,
                rules: self.line_rules.clone().unwrap_or_default(),
            },
            letters: Vec::new(),
            seen: None,
        };
        let bad = BadRecords::looked_at();
        let (mut letters, mut found) = (Vec::new(), vec![None; lines]);
        let place = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX);
        let decoded = self.decoder.decode(&batch, &bad, &mut letters, |at, event| {
            let is_untimed = event.ts.is_none() && event.text.is_some();
            found[place(at.offset)] = Some((PostedLine::Event(event.id), is_untimed));
        });
        decoded.map_err(io::Error::other)?;
        for letter in letters {
            found[place(letter.position.offset)] = Some((PostedLine::Bad(letter.reason.into_owned()), false));
        }
        Ok(found.into_iter().map(|line| line.expect("a line is an event or a bad record")).collect())
    }

    fn is_durable(&self) {
        self.durable.set(self.file.length());
    }
}
