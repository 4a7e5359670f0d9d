//! The journal: lines as clients have sent them, behind an empty one. A document without a time is given that
//! of its arrival, which would be lost otherwise.
//!
//! The empty line says that the file is a journal, and that it is not compressed, whatever a client sends. A
//! last line without its end, as a crash leaves it, was never answered, and is cut off.

use std::io::{self, BufRead, Write as _};
use std::path::Path;
use std::sync::Arc;

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

/// What the run will find in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PostedLine {
    /// An event of this document.
    Event(DocId),
    /// A bad record, for this reason.
    Bad(String),
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
    /// The last time of arrival.
    arrived: f64,
    /// Whether this process has made the file.
    is_new: bool,
}

/// What a line is, and whether it is a document without a time.
type JudgedLine = (PostedLine, bool);

impl Journal {
    /// Opens the file, or creates it, and changes nothing. `durable` receives how much of it is, later.
    ///
    /// # Errors
    /// Any error of the file; that another run has it open; that it is no journal.
    pub(super) fn open(path: &Path, rules: JournalRules, durable: Arc<Durable>) -> io::Result<Self> {
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

    /// Appends lines, each with its end, and calls `before` with the number of the first one and what they
    /// are, before the reader can see them. `first_arrival` is the time that a document has, if it is live.
    ///
    /// # Errors
    /// Any error of the file, which is then as before; that it is not this run's any more.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        first_arrival: impl Fn(&DocId) -> Option<f64>,
        before: impl FnOnce(u64, Vec<PostedLine>),
    ) -> io::Result<()> {
        self.begin()?;
        let known = self.line_rules.clone();
        let judged = self.judge(bytes)?;
        let stored = self.with_times(bytes, &judged, first_arrival)?;
        let lines: Vec<_> = judged.into_iter().map(|(line, _)| line).collect();
        if let Err(error) = self.file.append_durably(&stored) {
            self.line_rules = known;
            return Err(error);
        }
        failpoint::reach("journal-appended");
        let first = self.lines;
        self.lines += lines.len() as u64;
        before(first, lines);
        self.is_durable();
        Ok(())
    }

    /// The lines; documents without a time have one.
    fn with_times(
        &mut self,
        bytes: &[u8],
        judged: &[JudgedLine],
        first_arrival: impl Fn(&DocId) -> Option<f64>,
    ) -> io::Result<Vec<u8>> {
        let name = &self.rules.layout.ts;
        // A path leads into an object that the line need not have.
        if name.contains('.') {
            return Ok(bytes.to_vec());
        }
        let name = serde_json::to_string(name)?;
        let mut stored = Vec::with_capacity(bytes.len() + 32 * judged.len());
        for (line, (what, is_untimed)) in bytes.split_inclusive(|byte| *byte == b'\n').zip(judged) {
            match (what, line.iter().rposition(|byte| *byte == b'}')) {
                (PostedLine::Event(id), Some(end)) if *is_untimed => {
                    // No two have one time: of copies the one that arrived first is the oldest.
                    self.arrived = unix_seconds().max(self.arrived + 1e-6);
                    let ts = first_arrival(id).unwrap_or(self.arrived);
                    stored.extend_from_slice(&line[..end]);
                    // Of two values of one name the last counts.
                    writeln!(stored, ",{name}:{ts}}}")?;
                }
                _ => stored.extend_from_slice(line),
            }
        }
        Ok(stored)
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
