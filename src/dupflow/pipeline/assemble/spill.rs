//! The memory budget of a job: its size on this machine, its page caches, and the temporary files.
//!
//! The caches of all workers take a quarter of the budget together. The rest is for what stays in memory,
//! which grows with the documents: `dupflow plan` estimates it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::AssembleError;
use crate::config::{Deployment, MemoryBudget};
use dupflow_core::memory::{PAGE_BYTES, PageFile, SpillPlace};
use dupflow_engine::dataflow::Spill;

/// The spilled rows of a job; `None` without a budget. `workers`: threads of this process.
pub(super) fn spill(deployment: &Deployment, workers: usize) -> Result<Option<Spill>, AssembleError> {
    let Some(config) = &deployment.spill else { return Ok(None) };
    let wrong = |key, what| AssembleError::Spill { key, what };
    let memory_bytes = budget_bytes(config.memory).map_err(|what| wrong("memory", what))?;
    let folder = config.folder.clone().unwrap_or_else(|| default_folder(deployment));
    spill_to(&folder, memory_bytes, workers).map(Some).map_err(|what| wrong("spill.path", what))
}

/// Checks that the rows of a deployment could be spilled. Creates nothing.
///
/// # Errors
/// The key that is wrong, and why.
pub fn check_spill(deployment: &Deployment) -> Result<(), String> {
    let Some(config) = &deployment.spill else { return Ok(()) };
    budget_bytes(config.memory).map_err(|what| format!("memory: {what}"))?;
    let folder = config.folder.clone().unwrap_or_else(|| default_folder(deployment));
    usable_folder(&folder).map(drop).map_err(|what| format!("spill.path: {what}"))
}

/// Checks that files can be written in a folder, or that it can be created, and that its files can be read.
/// Creates nothing.
///
/// # Errors
/// What is in the way.
pub fn check_writable(folder: &Path) -> Result<(), String> {
    let mut around = folder.ancestors().filter(|around| !around.as_os_str().is_empty());
    let there = around.find(|around| around.exists()).unwrap_or(Path::new("."));
    let wanted = if there == folder { "written" } else { "created" };
    let refused = |what: String| format!("the folder {folder:?} cannot be {wanted}: {there:?} {what}");
    if !there.is_dir() {
        return Err(refused("is no folder".to_owned()));
    }
    tempfile::tempfile_in(there).map_err(|error| refused(format!("is not writable: {error}")))?;
    let files = fs::read_dir(there).map_err(|error| refused(format!("is not readable: {error}")))?;
    for file in files.filter_map(Result::ok).map(|entry| entry.path()).filter(|_| there == folder) {
        if file.is_file() {
            fs::File::open(&file).map_err(|error| format!("the file {file:?} cannot be read: {error}"))?;
        }
    }
    Ok(())
}

/// A folder for temporary files, if it can be used.
fn usable_folder(folder: &Path) -> Result<SpillFolder, String> {
    let refused = |expected: String| format!("found {folder:?}, expected a folder {expected}");
    if let Some(kind) = memory_file_system(folder) {
        return Err(refused(format!("on a disk: this one is in memory ({kind})")));
    }
    let place = SpillFolder(folder.to_owned());
    place.open().map_err(|error| refused(format!("for temporary files: {error}")))?;
    Ok(place)
}

/// Rows that are spilled to temporary files in a folder, under a memory budget in bytes. `workers`: threads
/// of this process.
///
/// # Errors
/// What is wrong with the folder.
pub fn spill_to(folder: &Path, memory_bytes: u64, workers: usize) -> Result<Spill, String> {
    let place = usable_folder(folder)?;
    let cache_bytes =
        usize::try_from(memory_bytes / MemoryBudget::CACHE_SHARE).unwrap_or(usize::MAX) / workers;
    tracing::info!(memory_bytes, cache_bytes = cache_bytes * workers, ?folder, "rows are spilled");
    Ok(Spill { place: Arc::new(place), page_bytes: PAGE_BYTES, cache_bytes, memory_bytes })
}

/// The bytes of a budget on this machine.
///
/// # Errors
/// If a share cannot be computed, or is less than the least budget.
pub fn budget_bytes(budget: MemoryBudget) -> Result<u64, String> {
    let share = match budget {
        MemoryBudget::Bytes(bytes) => return Ok(bytes),
        MemoryBudget::Share(share) => share,
    };
    let all = machine_bytes().ok_or("the system does not say how much memory there is: expected a size")?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a size")]
    let bytes = (all as f64 * share) as u64;
    if bytes < MemoryBudget::LEAST {
        return Err(format!("found {bytes} bytes, expected at least {}", MemoryBudget::LEAST));
    }
    Ok(bytes)
}

/// Beside the state, if that is a folder; else the folder for temporary files.
fn default_folder(deployment: &Deployment) -> PathBuf {
    let state = deployment.state.as_ref().map(|state| state.location.as_str());
    let local = state.map(|at| at.strip_prefix("file://").unwrap_or(at)).filter(|at| !at.contains("://"));
    let beside = local
        .and_then(|at| Path::new(at).parent())
        .map(|parent| if parent.as_os_str().is_empty() { PathBuf::from(".") } else { parent.to_owned() });
    // The state may be the first thing in a folder that is not there yet.
    beside.filter(|folder| folder.is_dir()).unwrap_or_else(std::env::temp_dir)
}

/// The memory of the machine, or of a control group that this process is in, if that has less.
fn machine_bytes() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo").ok()?;
    let line = machine.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let all = line.split_whitespace().next()?.parse::<u64>().ok()? * 1024;
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(
        group_files(&groups)
            .filter_map(|file| fs::read_to_string(file).ok()?.trim().parse().ok())
            .fold(all, u64::min),
    )
}

/// The files that may hold a limit of a process, by its lines of `/proc/self/cgroup`: those of its groups,
/// and of the groups around them up to the root, which inside a container is often the group itself.
fn group_files(groups: &str) -> impl Iterator<Item = PathBuf> {
    groups.lines().flat_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next().unwrap_or("none"), parts.next().unwrap_or_default());
        let (mount, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        };
        let has_limit = controllers.split(',').any(|name| matches!(name, "memory" | ""));
        let group = Path::new(mount).join(path.trim_start_matches('/'));
        let around = group.ancestors().take_while(|around| around.starts_with(mount));
        around.filter(|_| has_limit).map(|around| around.join(file)).collect::<Vec<_>>()
    })
}

/// The kind of file system of a folder, if its files are in memory; `None` where the system does not say.
fn memory_file_system(folder: &Path) -> Option<String> {
    let folder = folder.canonicalize().ok()?;
    file_system(&fs::read_to_string("/proc/self/mounts").ok()?, &folder)
        .filter(|kind| matches!(&**kind, "tmpfs" | "ramfs"))
}

/// The kind of file system that holds a path, by the lines of `/proc/self/mounts`.
fn file_system(mounts: &str, path: &Path) -> Option<String> {
    let mount = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let at = words.next()?.replace("\\040", " ");
        let kind = words.next()?.to_owned();
        path.starts_with(&at).then_some((at.len(), kind))
    };
    // Of equal paths the last one is on top.
    mounts.lines().filter_map(mount).max_by_key(|(length, _)| *length).map(|(_, kind)| kind)
}

/// A folder for temporary files.
#[derive(Debug)]
struct SpillFolder(PathBuf);

impl SpillPlace for SpillFolder {
    fn open(&self) -> io::Result<Box<dyn PageFile>> {
        // Without a name from the start, or removed at once: the system frees it with the process.
        Ok(Box::new(TemporaryFile(tempfile::tempfile_in(&self.0)?)))
    }

    fn name(&self) -> String {
        self.0.display().to_string()
    }
}

/// A file without a name.
#[derive(Debug)]
struct TemporaryFile(fs::File);

#[cfg(unix)]
impl PageFile for TemporaryFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(&self.0, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(&self.0, bytes, offset)
    }
}

#[cfg(not(unix))]
impl PageFile for TemporaryFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        use io::{Read, Seek};
        (&self.0).seek(io::SeekFrom::Start(offset))?;
        (&self.0).read_exact(bytes)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        use io::{Seek, Write};
        (&self.0).seek(io::SeekFrom::Start(offset))?;
        (&self.0).write_all(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temporary_files_have_no_name_and_read_what_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let place = SpillFolder(folder.path().to_owned());
        let file = place.open().unwrap();
        file.write_at(&[7; 100], 5000).unwrap();
        let mut read = [0; 200];
        file.read_at(&mut read[..150], 4950).unwrap();
        assert_eq!((read[49], read[50], read[149]), (0, 7, 7));
        let short = file.read_at(&mut read, 4950).unwrap_err();
        assert_eq!(short.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(SpillFolder(folder.path().join("absent")).open().is_err());
    }

    #[test]
    fn file_systems_in_memory_are_known() {
        let mounts = "overlay / overlay rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\n/dev/sda1 /a\\040b ext4 rw 0 0\n\
            /dev/sdb /c ext4 rw 0 0\nramfs /c ramfs rw 0 0\n";
        let of = |path: &str| file_system(mounts, Path::new(path)).unwrap();
        assert_eq!(
            ["/x", "/dev/shm/y", "/dev/shmy", "/a b/c", "/c"].map(of),
            ["overlay", "tmpfs", "overlay", "ext4", "ramfs"]
        );
    }

    #[test]
    fn limits_are_those_of_all_groups_around_a_process() {
        let files: Vec<_> = group_files("11:cpu:/x\n4:memory:/docker/1\n0::/user/2\n").collect();
        let paths = files.iter().filter_map(|file| file.to_str()).collect::<Vec<_>>();
        assert_eq!(
            paths,
            [
                "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/user/2/memory.max",
                "/sys/fs/cgroup/user/memory.max",
                "/sys/fs/cgroup/memory.max",
            ]
        );
        #[cfg(target_os = "linux")]
        assert!(machine_bytes() > Some(1 << 20));
    }
}
