//! The file of notices: JSON Lines, appended to in order of epochs.
//!
//! ```text
//! {"epoch":7,"diff":1,"watch":"press-17","id":"page-4711","similarity":0.93}
//! ```
//!
//! The lines accumulate to the similar watches and documents. The file needs no mark: a run reads what it
//! holds, and when it is live it writes the difference from what the restored corpus and the present list
//! give. So it is right whether it is behind the main output or the list has changed meanwhile; the lines of
//! that difference have the epoch at which the output stood. It is never ahead: a commit writes here after
//! the main output.

use std::io;
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::notice_board::NoticeBoard;
use crate::failpoint;
use crate::owned::OwnedFile;
use dupflow_core::doc::DocId;
use dupflow_core::pair::SharesBeside;
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::Epoch;
use dupflow_run::watch::{DurableNotice, Notice, WatchMatch};

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NoticeLine {
    /// The epoch that made the notice.
    pub epoch: Epoch,
    /// 1 or -1.
    pub diff: i8,
    /// The watch.
    pub watch: DocId,
    /// The document.
    pub id: DocId,
    /// Their similarity.
    pub similarity: f64,
    /// The shares of a containment, of the watch and the document, if they differ.
    #[serde(flatten)]
    pub shares: SharesBeside,
}

/// The beginning of each line.
const BEGINNING: &[u8] = b"{\"epoch\":";

/// Appends notices.
pub struct NoticeFile {
    /// `None`: notices of the live run are only shown to other threads.
    file: Option<OwnedFile>,
    /// What the run has given so far, less what an earlier one has written; empty once the run is live.
    restored: Reconcile<WatchMatch>,
    lines: Vec<u8>,
    unsynced: Vec<DurableNotice>,
    length: u64,
    count: u64,
    board: Arc<NoticeBoard>,
}

impl NoticeFile {
    /// Opens the file of a run, or creates it, and reads what it holds; a replay begins with an empty file.
    ///
    /// # Errors
    /// Any error of the file; that another run writes to it; that it holds something else.
    pub fn open(path: &Path, is_new: bool, board: Arc<NoticeBoard>) -> io::Result<Self> {
        let mut file = OwnedFile::open(path)?;
        let mut notices = Self::without_file(board);
        if !is_new && file.is_file() {
            notices.read(&mut file)?;
        }
        file.cut()?;
        notices.file = Some(file);
        // An earlier process may have ended before its last lines were durable.
        notices.publish()?;
        Ok(notices)
    }

    /// Writes no file: the board has the notices since the run is live, with numbers from 1.
    pub fn without_file(board: Arc<NoticeBoard>) -> Self {
        Self {
            file: None,
            restored: Reconcile::default(),
            lines: Vec::new(),
            unsynced: Vec::new(),
            length: 0,
            count: 0,
            board,
        }
    }

    /// Takes over the whole lines. One without an end was never confirmed; what is no line is not cut off.
    fn read(&mut self, file: &mut OwnedFile) -> io::Result<()> {
        let mut length = 0;
        for line in file.whole_lines(BEGINNING)? {
            let line = line?;
            self.count += 1;
            let NoticeLine { epoch, diff, watch, id, similarity, shares } = parse(&line, self.count)?;
            let similarity = shares.similarity(similarity);
            let of = WatchMatch { watch, id, similarity };
            self.restored.held(of.clone(), diff.into());
            self.unsynced.push(DurableNotice { number: self.count, epoch, notice: Notice { of, diff } });
            length += line.len() as u64;
            if self.unsynced.len() >= 2 * NoticeBoard::HELD {
                self.unsynced.drain(..NoticeBoard::HELD);
            }
        }
        self.length = length;
        file.take(length)
    }

    /// Makes what is in the file durable, then shows it to other threads.
    fn publish(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), OwnedFile::sync)?;
        failpoint::reach("notices-synced");
        self.board.add(std::mem::take(&mut self.unsynced), self.count, self.length);
        Ok(())
    }

    /// Receives the notices of an epoch before the run is live, which the file may hold already.
    pub fn restored(&mut self, notices: Vec<Notice>) {
        if self.file.is_none() {
            return;
        }
        notices.into_iter().for_each(|Notice { of, diff }| self.restored.given(of, diff.into()));
    }

    /// The run is live, and the output stands at epoch `past`: writes the difference from what the file
    /// holds. Returns the number of notices that this takes.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn live(&mut self, past: Epoch) -> io::Result<u64> {
        // A match with another similarity ends before it begins.
        let changes = std::mem::take(&mut self.restored)
            .changes(|a, b| (&a.watch, &a.id).cmp(&(&b.watch, &b.id)))
            .into_iter();
        let notices: Vec<_> =
            changes.map(|(of, diff)| Notice { of, diff: if diff > 0 { 1 } else { -1 } }).collect();
        self.epoch(past, &notices)?;
        self.commit()?;
        Ok(notices.len() as u64)
    }

    /// Buffers the notices of an epoch until the next [`Self::commit`].
    ///
    /// # Errors
    /// None: notices stay in memory.
    pub fn epoch(&mut self, epoch: Epoch, notices: &[Notice]) -> io::Result<()> {
        for Notice { of, diff } in notices {
            let (watch, id) = (of.watch.clone(), of.id.clone());
            let (similarity, shares) = (of.similarity.get(), SharesBeside::new(of.similarity));
            let line = NoticeLine { epoch, diff: *diff, watch, id, similarity, shares };
            serde_json::to_writer(&mut self.lines, &line)?;
            self.lines.push(b'\n');
            self.count += 1;
            let notice = Notice { of: of.clone(), diff: *diff };
            self.unsynced.push(DurableNotice { number: self.count, epoch, notice });
        }
        Ok(())
    }

    /// Checks that the file is still this run's, and that the web hook, if there is one, has not ended.
    ///
    /// # Errors
    /// If it is not; what to do. Why the web hook has ended.
    pub fn check(&self) -> io::Result<()> {
        if let Some(error) = self.board.hook_error() {
            return Err(io::Error::other(format!("the web hook: {error}")));
        }
        self.file.as_ref().map_or(Ok(()), OwnedFile::check).map_err(|error| {
            let what = format!("{error}; start again: the next run writes the notices that the file lacks");
            io::Error::new(error.kind(), what)
        })
    }

    /// Writes and syncs the buffered notices.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn commit(&mut self) -> io::Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        if let Some(file) = &mut self.file {
            file.append(&self.lines)?;
            failpoint::reach("notices-written");
        }
        self.length += self.lines.len() as u64;
        self.lines.clear();
        self.lines.shrink_to(1 << 20);
        self.publish()
    }
}

/// A line as a notice; `number` counts lines from 1.
pub(super) fn parse(line: &[u8], number: u64) -> io::Result<NoticeLine> {
    serde_json::from_slice(line).map_err(|error| {
        let what = format!("line {number} is no notice ({error}): move the file away");
        io::Error::new(io::ErrorKind::InvalidData, what)
    })
}

impl std::fmt::Debug for NoticeFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NoticeFile").field("notices", &self.count).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::pair::Similarity;

    fn notice(watch: &str, id: &str, similarity: f64, diff: i8) -> Notice {
        let name = |name| DocId::new(name).unwrap();
        let similarity = Similarity::clamped(similarity);
        Notice { of: WatchMatch { watch: name(watch), id: name(id), similarity }, diff }
    }

    /// Opens the file, and tries again while a process that another test has just started holds the lock.
    fn open(path: &Path) -> (NoticeFile, Arc<NoticeBoard>) {
        let opened = || {
            let board = Arc::<NoticeBoard>::default();
            NoticeFile::open(path, false, Arc::clone(&board)).map(|file| (file, board))
        };
        let is_locked = |result: &io::Result<_>| {
            result.as_ref().is_err_and(|error: &io::Error| error.to_string().contains("another run"))
        };
        let mut tries = std::iter::repeat_with(opened).take(100_000);
        tries.find(|result| !is_locked(result)).expect("the lock is released").unwrap()
    }

    #[test]
    fn a_live_run_writes_the_difference_from_what_the_file_holds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notices");
        let (mut file, mut board) = open(&path);
        assert_eq!(board.count(), 0);
        assert_eq!(failpoint::passed::take(), ["folder-synced", "notices-synced"], "its name is durable");
        file.live(0).unwrap();
        file.epoch(1, &[notice("w", "a", 0.75, 1), notice("w", "b", 1.0, 1)]).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "", "nothing is written before the commit");
        file.commit().unwrap();
        file.epoch(2, &[notice("w", "a", 0.75, -1), notice("w", "c", 0.5, 1)]).unwrap();
        file.commit().unwrap();
        drop(file);
        let whole = std::fs::read_to_string(&path).unwrap();
        assert_eq!(
            whole.lines().next(),
            Some("{\"epoch\":1,\"diff\":1,\"watch\":\"w\",\"id\":\"a\",\"similarity\":0.75}")
        );
        // A crash has cut the last line; b has ended, and c has another similarity.
        std::fs::write(&path, &whole[..whole.len() - 2]).unwrap();
        failpoint::passed::take();
        (file, board) = open(&path);
        assert_eq!((board.count(), failpoint::passed::take()), (3, vec!["notices-synced".to_owned()]));
        file.restored(vec![notice("w", "b", 1.0, 1), notice("w", "c", 0.25, 1)]);
        file.restored(vec![notice("w", "b", 1.0, -1)]);
        file.live(2).unwrap();
        let lines: Vec<NoticeLine> = (1..)
            .zip(std::fs::read_to_string(&path).unwrap().lines())
            .skip(3)
            .map(|(number, line)| parse(line.as_bytes(), number).unwrap())
            .collect();
        let written = lines.iter().map(|line| (line.epoch, line.diff, line.id.as_str())).collect::<Vec<_>>();
        assert_eq!(written, [(2, -1, "b"), (2, 1, "c")]);
        let numbers: Vec<u64> = board.last(None, 10).iter().map(|notice| notice.number).collect();
        assert_eq!(numbers, [5, 4, 3, 2, 1]);
        drop(file);
        std::fs::write(&path, "another's\n").unwrap();
        let error = NoticeFile::open(&path, false, Arc::default()).unwrap_err();
        assert!(error.to_string().contains("move the file away"), "{error}");
    }

    #[test]
    fn without_a_file_the_board_has_the_notices_of_the_live_run() {
        let board = Arc::<NoticeBoard>::default();
        let mut notices = NoticeFile::without_file(Arc::clone(&board));
        notices.restored(vec![notice("w", "a", 1.0, 1)]);
        notices.live(3).unwrap();
        notices.epoch(4, &[notice("w", "b", 0.5, 1)]).unwrap();
        assert_eq!(board.count(), 0, "nothing is shown before the commit");
        notices.commit().unwrap();
        let last = board.last(None, 10);
        let shown: Vec<_> =
            last.iter().map(|one| (one.number, one.epoch, one.notice.of.id.as_str())).collect();
        assert_eq!(shown, [(1, 4, "b")]);
    }
}
