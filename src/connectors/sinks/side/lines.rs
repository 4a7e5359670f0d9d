//! A side output of lines, one for each change of a row.

use std::io::{self, BufRead};
use std::mem;

use super::rows::{SideDelta, SideRow};
use crate::mark::Mark;
use crate::sinks::destination::Destination;
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::Epoch;

/// Writes the changes of rows to a destination of bytes. In a file with a mark of its own the lines of a
/// commit are there together or not at all.
#[derive(Debug)]
pub struct SideLines<W> {
    out: W,
    /// What the restored corpus gives, less what the lines hold; `None` after the run is live.
    restored: Option<Reconcile<SideRow>>,
    /// Whether lines wait for a commit.
    is_changed: bool,
}

impl<W: Destination> SideLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> Self {
        Self { out, restored: Some(Reconcile::default()), is_changed: false }
    }

    /// Takes the destination over, and reads what it holds. Called once, first.
    ///
    /// # Errors
    /// Any error of the destination; that it holds other lines. What it holds is derived again by every run,
    /// so an error of its contents names the remedy.
    pub fn take_over(&mut self) -> io::Result<()> {
        use crate::mark::Standing;

        let remedy = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => {
                let what = format!("{error}; remove it and its mark, and its rows are written anew");
                io::Error::new(error.kind(), what)
            }
            _ => error,
        };
        let Standing::At(_) = self.out.take_over()? else { return Ok(()) };
        let restored = self.restored.get_or_insert_default();
        for line in self.out.lines()?.lines() {
            let SideDelta { row, diff } = SideDelta::read("", &line?).map_err(remedy)?;
            restored.held(row, diff);
        }
        Ok(())
    }

    /// Takes the rows of an epoch before the run is live.
    pub fn restored(&mut self, deltas: impl IntoIterator<Item = SideDelta>) {
        for SideDelta { row, diff } in deltas {
            // Lines have no keys.
            let row = SideRow { key: String::new(), ..row };
            self.restored.get_or_insert_default().given(row, diff);
        }
    }

    /// The run is live after `epoch`: writes what the lines lack, and commits it.
    ///
    /// # Errors
    /// Any error of the destination.
    pub fn live(&mut self, epoch: Epoch, mark: &Mark) -> io::Result<()> {
        let Some(restored) = mem::take(&mut self.restored) else { return Ok(()) };
        self.epoch(epoch, &SideDelta::differences(restored))?;
        self.commit(mark)
    }

    /// Writes the changes of an epoch.
    ///
    /// # Errors
    /// Any error of the destination.
    pub fn epoch(&mut self, epoch: Epoch, deltas: &[SideDelta]) -> io::Result<()> {
        self.is_changed |= !deltas.is_empty();
        deltas.iter().try_for_each(|delta| writeln!(self.out, "{}", delta.record(epoch)))
    }

    /// Checks that the destination is still this run's.
    ///
    /// # Errors
    /// If it is not.
    pub fn check(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Makes the lines since the last commit durable.
    ///
    /// # Errors
    /// Any error of the destination.
    pub fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        if mem::take(&mut self.is_changed) { self.out.commit(mark) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::MarkedFile;

    fn delta(json: &str, diff: isize) -> SideDelta {
        SideDelta { row: SideRow { key: "k".to_owned(), json: json.to_owned() }, diff }
    }

    /// Opens the file of a run; `epochs` are restored and then written.
    fn run(path: &std::path::Path, restored: &[SideDelta], written: &[SideDelta], commits: bool) {
        let opened = || MarkedFile::open(path);
        let is_locked = |file: &io::Result<MarkedFile>| {
            file.as_ref().is_err_and(|error| error.to_string().contains("another run"))
        };
        let mut tries = std::iter::repeat_with(opened).take(100_000);
        let file = tries.find(|file| !is_locked(file)).expect("the lock is released").unwrap();
        let mut lines = SideLines::new(file);
        lines.take_over().unwrap();
        lines.restored(restored.to_vec());
        lines.live(4, &Mark::default()).unwrap();
        lines.epoch(5, written).unwrap();
        if commits {
            lines.commit(&Mark::default()).unwrap();
        }
    }

    #[test]
    fn lines_that_are_behind_or_ahead_become_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        let read = || std::fs::read_to_string(&path).unwrap();
        run(&path, &[], &[delta("\"a\":1", 1), delta("\"b\":1", 1)], true);
        let first = "{\"epoch\":5,\"diff\":1,\"a\":1}\n{\"epoch\":5,\"diff\":1,\"b\":1}\n";
        assert_eq!(read(), first);
        // The same corpus: nothing to write, and the uncommitted line of this run is lost.
        run(&path, &[delta("\"b\":1", 1), delta("\"a\":1", 1)], &[delta("\"c\":1", 1)], false);
        assert_eq!(read(), first);
        // The main output was behind: "b" is not of its corpus yet, and "c" was never written.
        run(&path, &[delta("\"a\":1", 1), delta("\"c\":1", 1)], &[], true);
        let more = "{\"epoch\":4,\"diff\":-1,\"b\":1}\n{\"epoch\":4,\"diff\":1,\"c\":1}\n";
        assert_eq!(read(), format!("{first}{more}"));
    }

    #[test]
    fn lines_of_other_programs_are_refused() {
        let mut out = Vec::new();
        let mut lines = SideLines::new(&mut out);
        lines.take_over().unwrap();
        lines.live(0, &Mark::default()).unwrap();
        lines.epoch(1, &[delta("\"a\":1", 1)]).unwrap();
        lines.commit(&Mark::default()).unwrap();
        assert_eq!(out, b"{\"epoch\":1,\"diff\":1,\"a\":1}\n");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        let mut file = MarkedFile::open(&path).unwrap();
        file.take_over().unwrap();
        io::Write::write_all(&mut file, b"another line\n").unwrap();
        file.commit(&Mark::default()).unwrap();
        let error = SideLines::new(file).take_over().unwrap_err();
        assert!(error.to_string().contains("another line"), "{error}");
    }
}
