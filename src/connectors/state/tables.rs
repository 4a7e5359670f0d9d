//! Tables of document frequencies, one file each: `table-<fingerprint>-<owner>`.
//!
//! A table is stored before the commit of the epoch that makes it the next one, and listed in the first
//! manifest after that. So the file of a table that no manifest lists may still be needed.
//! [`FrequencyTables::superseded`] decides when it is removed.

use super::error::StateError;
use super::files::StateFiles;
use super::frame::{self, Magic};
use super::store::is_part;

const MAGIC: Magic = *b"dupflow table\n\0\0";

/// The known files of tables, in the order in which they were stored.
#[derive(Debug, Default)]
pub(super) struct FrequencyTables {
    names: Vec<String>,
    /// How many of them existed when the state was opened; the order of these is unknown.
    found: usize,
}

impl FrequencyTables {
    /// The tables among the files present.
    pub(super) fn from_names(names: &[String]) -> Self {
        let is_table = |name: &&String| name.starts_with("table-") && !is_part(name);
        let names: Vec<String> = names.iter().filter(is_table).cloned().collect();
        Self { found: names.len(), names }
    }

    /// Stores a table, unless this owner has.
    pub(super) fn put(
        &mut self,
        files: &StateFiles,
        owner: u64,
        fingerprint: u64,
        bytes: &[u8],
    ) -> Result<(), StateError> {
        let name = format!("{}{owner:016x}", prefix(fingerprint));
        let put_before = self.names[self.found..].iter().position(|known| *known == name);
        if let Some(at) = put_before {
            // It becomes the latest.
            self.names.remove(self.found + at);
        } else {
            files.put(&name, &encode(fingerprint, bytes))?;
        }
        self.names.push(name);
        Ok(())
    }

    /// File name and contents of a table, if it is stored; of several copies, any undamaged one.
    pub(super) fn get(
        &self,
        files: &StateFiles,
        fingerprint: u64,
    ) -> Result<Option<(&str, Vec<u8>)>, StateError> {
        let mut damage = None;
        // The latest is the one that no other owner may remove.
        for name in self.names.iter().rev().filter(|name| name.starts_with(&prefix(fingerprint))) {
            match read(files, name) {
                Ok(bytes) => return Ok(Some((name, bytes))),
                Err(error) if error.is_gone() => {}
                Err(error) => damage = Some(error),
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// Takes the files that are no longer needed, once a manifest lists `in_force`. These are all stored
    /// before it, except those that are `is_kept`, and only if this owner has stored `in_force`. A table that
    /// is stored but not yet in force was stored later, or by an earlier owner; the tables of an earlier
    /// owner are removed only once one of this owner is in force.
    pub(super) fn superseded(&mut self, in_force: &str, is_kept: impl Fn(&str) -> bool) -> Vec<String> {
        let Some(at) = self.names.iter().position(|name| name == in_force).filter(|at| *at >= self.found)
        else {
            return Vec::new();
        };
        let after = self.names.split_off(at);
        let (kept, superseded): (Vec<String>, Vec<String>) =
            self.names.drain(..).partition(|name| is_kept(name));
        // The remaining ones among those found at opening are still first.
        self.found = kept.len().min(self.found);
        self.names = kept;
        self.names.extend(after);
        superseded
    }
}

/// Beginning of the file names of a table.
fn prefix(fingerprint: u64) -> String {
    format!("table-{fingerprint:016x}-")
}

fn encode(fingerprint: u64, contents: &[u8]) -> Vec<u8> {
    let mut bytes = frame::head(&MAGIC).to_vec();
    bytes.extend_from_slice(&fingerprint.to_le_bytes());
    bytes.extend_from_slice(contents);
    frame::seal(bytes)
}

/// Bytes of the file of a table.
pub(super) fn file_bytes(contents: &[u8]) -> u64 {
    (frame::HEAD_BYTES + 8 + contents.len() + 8) as u64
}

/// Reads and checks the file of a table.
pub(super) fn read(files: &StateFiles, name: &str) -> Result<Vec<u8>, StateError> {
    let bytes = files.get(name)?;
    let contents = frame::open(&MAGIC, &files.full_name(name), &bytes)?;
    let (fingerprint, contents) = contents
        .split_first_chunk()
        .filter(|(fingerprint, _)| name.starts_with(&prefix(u64::from_le_bytes(**fingerprint))))
        .ok_or_else(|| {
            files.damaged(name, "expected the fingerprint of its name, found another one".to_owned())
        })?;
    let _: &[u8; 8] = fingerprint;
    Ok(contents.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::store::MemoryStore;
    use super::*;

    fn names(tables: &FrequencyTables) -> Vec<&str> {
        tables.names.iter().map(|name| &name[..22]).collect()
    }

    #[test]
    fn a_table_is_removed_when_a_later_one_is_in_force() {
        let files = StateFiles::new(Box::new(MemoryStore::default()));
        let mut earlier = FrequencyTables::default();
        earlier.put(&files, 1, 5, b"five").unwrap();
        earlier.put(&files, 1, 6, b"six").unwrap();
        let mut tables = FrequencyTables::from_names(&files.list().unwrap());
        let five = "table-0000000000000005-0000000000000001";
        // A table found at opening supersedes none.
        assert!(tables.superseded(five, |_| false).is_empty());
        tables.put(&files, 2, 7, b"seven").unwrap();
        tables.put(&files, 2, 8, b"eight").unwrap();
        // Tables listed in manifests stay, and so do those stored later.
        let seven = "table-0000000000000007-0000000000000002";
        let removed = tables.superseded(seven, |name| name == five || name == seven);
        assert_eq!(removed, ["table-0000000000000006-0000000000000001"]);
        assert_eq!(
            names(&tables),
            ["table-0000000000000005", "table-0000000000000007", "table-0000000000000008"]
        );
        // Stored again, it is the latest.
        tables.put(&files, 2, 7, b"seven").unwrap();
        assert_eq!(names(&tables)[2], "table-0000000000000007");
        assert_eq!(tables.get(&files, 7).unwrap().unwrap(), (seven, b"seven".to_vec()));
        assert_eq!(tables.superseded(seven, |_| false).len(), 2);
        assert_eq!(tables.get(&files, 9).unwrap(), None);
    }

    #[test]
    fn the_undamaged_of_two_files_is_read() {
        let files = StateFiles::new(Box::new(MemoryStore::default()));
        let mut tables = FrequencyTables::default();
        tables.put(&files, 1, 5, b"five").unwrap();
        tables.put(&files, 2, 5, b"five").unwrap();
        let [first, second] = [1, 2].map(|owner| format!("{}{owner:016x}", prefix(5)));
        files.put(&second, b"rubbish").unwrap();
        assert_eq!(tables.get(&files, 5).unwrap().unwrap(), (first.as_str(), b"five".to_vec()));
        // The file of another table under the name of this one.
        files.put(&first, &encode(6, b"six")).unwrap();
        assert!(matches!(tables.get(&files, 5), Err(StateError::Damaged { .. })));
        files.delete(&first).unwrap();
        files.delete(&second).unwrap();
        assert_eq!(tables.get(&files, 5).unwrap(), None);
    }
}
