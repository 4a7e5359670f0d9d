//! The journal: lines as clients have sent them, behind an empty one.
//!
//! The empty line says that the file is a journal, and that it is not compressed, whatever a client sends. A
//! last line without its end, as a crash leaves it, was never answered, and is cut off.

use std::io::{self, BufRead};
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
    /// Lines so far: the position of the next one.
    lines: u64,
    durable: Arc<Durable>,
    decoder: Decoder,
    rules: JournalRules,
    /// Known from the first object on.
    line_rules: Option<Arc<LineRules>>,
}

impl Journal {
    /// Opens the file, or creates it. `durable` is told how much of it is.
    ///
    /// # Errors
    /// Any error of the file; that another run has it open; that it is no journal.
    pub(super) fn open(path: &Path, rules: JournalRules, durable: Arc<Durable>) -> io::Result<Self> {
        let file = OwnedFile::open(path)?;
        let decoder = Decoder::with_own(&rules.columns, &rules.fields);
        let name = path.to_string_lossy().into();
        let mut journal = Self { file, name, lines: 0, durable, decoder, rules, line_rules: None };
        let length = journal.read()?;
        let torn = journal.file.size()?.saturating_sub(length);
        if torn > 0 {
            tracing::info!(
                journal = &*journal.name,
                bytes = torn,
                "a torn line is cut off: it was not answered"
            );
        }
        journal.file.take(length)?;
        journal.file.cut()?;
        if length == 0 {
            journal.file.append_durably(b"\n")?;
        }
        // An earlier process may have ended before its last line was durable.
        journal.file.sync()?;
        failpoint::reach("journal-synced");
        journal.is_durable();
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

    /// Appends lines, each with its end, and calls `before` with the position of the first one and what they
    /// are, before the reader can see them.
    ///
    /// # Errors
    /// Any error of the file, which is then as before; that it is not this run's any more.
    pub(super) fn append(
        &mut self,
        bytes: &[u8],
        before: impl FnOnce(u64, Vec<PostedLine>),
    ) -> io::Result<()> {
        let known = self.line_rules.clone();
        let lines = self.judge(bytes)?;
        if let Err(error) = self.file.append_durably(bytes) {
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

    /// What the run will find in these lines.
    fn judge(&mut self, bytes: &[u8]) -> io::Result<Vec<PostedLine>> {
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
            found[place(at.offset)] = Some(PostedLine::Event(event.id));
        });
        decoded.map_err(io::Error::other)?;
        for letter in letters {
            found[place(letter.position.offset)] = Some(PostedLine::Bad(letter.reason.into_owned()));
        }
        Ok(found.into_iter().map(|line| line.expect("a line is an event or a bad record")).collect())
    }

    fn is_durable(&self) {
        self.durable.set(self.file.length());
    }
}
