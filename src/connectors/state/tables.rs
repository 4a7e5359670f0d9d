//! Tables of document frequencies, one file each: `table-<fingerprint>-<owner>`.
//!
//! A table is put before the commit of the epoch that decides for it, and named by the first publish after
//! that. So files of tables that no manifest names may still be needed; the rule for their end is in
//! [`Tables::superseded`].

use super::error::StateError;
use super::files::Files;
use super::frame::{self, Magic};
use super::store::is_part;

const MAGIC: Magic = *b"dupflow table\n\0\0";

/// The files of tables that are known, in the order in which they were put.
#[derive(Debug, Default)]
pub(super) struct Tables {
    names: Vec<String>,
    /// How many of them were there when the state was opened; their order is not known.
    found: usize,
}

impl Tables {
    /// Of the files that are there.
    pub(super) fn found(names: &[String]) -> Self {
        let is_table = |name: &&String| name.starts_with("table-") && !is_part(name);
        let names: Vec<String> = names.iter().filter(is_table).cloned().collect();
        Self { found: names.len(), names }
    }

    /// Writes a table, unless it is there.
    pub(super) fn put(
        &mut self,
        files: &Files,
        owner: u64,
        fingerprint: u64,
        bytes: &[u8],
    ) -> Result<(), StateError> {
        let name = format!("{}{owner:016x}", prefix(fingerprint));
        let put_before = self.names[self.found..].iter().position(|known| *known == name);
        if let Some(at) = put_before {
            // Now it is the latest.
            self.names.remove(self.found + at);
        } else {
            files.put(&name, &encode(fingerprint, bytes))?;
        }
        self.names.push(name);
        Ok(())
    }

    /// The file and the contents of a table, if it is there; of several whichever is whole.
    pub(super) fn get(&self, files: &Files, fingerprint: u64) -> Result<Option<(&str, Vec<u8>)>, StateError> {
        let mut damage = None;
        // The latest is the one that nobody else may remove.
        for name in self.names.iter().rev().filter(|name| name.starts_with(&prefix(fingerprint))) {
            match read(files, name) {
                Ok(bytes) => return Ok(Some((name, bytes))),
                Err(error) if error.is_gone() => {}
                Err(error) => damage = Some(error),
            }
        }
        damage.map_or(Ok(None), Err)
    }

    /// Takes out the files that nobody needs, once a manifest names `in_force`: if this owner has put it, all
    /// that were put before, but those that are `kept`. A table that was put and is not in force yet was put
    /// later, or by an owner before, whose tables are let go only for one of this owner's.
    pub(super) fn superseded(&mut self, in_force: &str, kept: impl Fn(&str) -> bool) -> Vec<String> {
        let Some(at) = self.names.iter().position(|name| name == in_force).filter(|at| *at >= self.found)
        else {
            return Vec::new();
        };
        let after = self.names.split_off(at);
        let (stay, go): (Vec<String>, Vec<String>) = self.names.drain(..).partition(|name| kept(name));
        // What stays of those that were found stands first still.
        self.found = stay.len().min(self.found);
        self.names = stay;
        self.names.extend(after);
        go
    }
}

/// The beginning of the names of a table's files.
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

/// The contents of a table's file, checked.
pub(super) fn read(files: &Files, name: &str) -> Result<Vec<u8>, StateError> {
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
    use super::super::store::Memory;
    use super::*;

    fn names(tables: &Tables) -> Vec<&str> {
        tables.names.iter().map(|name| &name[..22]).collect()
    }

    #[test]
    fn a_table_goes_when_a_later_one_is_in_force() {
        let files = Files::new(Box::new(Memory::default()));
        let mut earlier = Tables::default();
        earlier.put(&files, 1, 5, b"five").unwrap();
        earlier.put(&files, 1, 6, b"six").unwrap();
        let mut tables = Tables::found(&files.list().unwrap());
        let five = "table-0000000000000005-0000000000000001";
        // One that was found ends none.
        assert!(tables.superseded(five, |_| false).is_empty());
        tables.put(&files, 2, 7, b"seven").unwrap();
        tables.put(&files, 2, 8, b"eight").unwrap();
        // What manifests name stays, what was put later too.
        let seven = "table-0000000000000007-0000000000000002";
        let gone = tables.superseded(seven, |name| name == five || name == seven);
        assert_eq!(gone, ["table-0000000000000006-0000000000000001"]);
        assert_eq!(
            names(&tables),
            ["table-0000000000000005", "table-0000000000000007", "table-0000000000000008"]
        );
        // Put again, it is the latest, and found whole.
        tables.put(&files, 2, 7, b"seven").unwrap();
        assert_eq!(names(&tables)[2], "table-0000000000000007");
        assert_eq!(tables.get(&files, 7).unwrap().unwrap(), (seven, b"seven".to_vec()));
        assert_eq!(tables.superseded(seven, |_| false).len(), 2);
        assert_eq!(tables.get(&files, 9).unwrap(), None);
    }

    #[test]
    fn of_two_files_the_whole_one_is_read() {
        let files = Files::new(Box::new(Memory::default()));
        let mut tables = Tables::default();
        tables.put(&files, 1, 5, b"five").unwrap();
        tables.put(&files, 2, 5, b"five").unwrap();
        let [first, second] = [1, 2].map(|owner| format!("{}{owner:016x}", prefix(5)));
        files.put(&second, b"rubbish").unwrap();
        assert_eq!(tables.get(&files, 5).unwrap().unwrap(), (first.as_str(), b"five".to_vec()));
        // The file of another table under this one's name.
        files.put(&first, &encode(6, b"six")).unwrap();
        assert!(matches!(tables.get(&files, 5), Err(StateError::Damaged { .. })));
        files.delete(&first).unwrap();
        files.delete(&second).unwrap();
        assert_eq!(tables.get(&files, 5).unwrap(), None);
    }
}
