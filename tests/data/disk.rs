//! A small disk, for tests of what a full one does.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A disk in memory at a folder, unmounted at the end.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Of a size as `mount` takes it; `None` where a test may not mount.
    pub(crate) fn mount(at: &Path, size: &str) -> Option<Self> {
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(at.to_owned()))
    }

    /// Takes all room that is left, to the last byte.
    pub(crate) fn fill(&self) {
        let mut file = fs::File::options().create(true).append(true).open(self.0.join("filling")).unwrap();
        for bytes in [&[0; 4096][..], &[0]] {
            while file.write_all(bytes).is_ok() {}
        }
    }

    pub(crate) fn empty(&self) {
        fs::remove_file(self.0.join("filling")).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}
