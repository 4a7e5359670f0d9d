//! Memory and file limits of the process, as the operating system reports them.

/// Resident memory in bytes, current and peak, from `/proc`; `None` on systems without it.
pub(crate) fn resident_bytes() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    Some((bytes(&status, "VmRSS:")?, bytes(&status, "VmHWM:")?))
}

/// Maximum number of open files of the process, connections included.
#[cfg(unix)]
pub(crate) fn most_files() -> usize {
    use rustix::process::{Resource, getrlimit};

    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(most).unwrap_or(usize::MAX)
}

/// Maximum number of open files of the process, connections included.
#[cfg(not(unix))]
pub(crate) fn most_files() -> usize {
    1024
}

/// Reads a line such as `VmRSS:     1234 kB`.
fn bytes(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_system_are_read() {
        let status = "Name:\tx\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\n";
        assert_eq!((bytes(status, "VmRSS:"), bytes(status, "VmHWM:")), (Some(1 << 20), Some(2 << 20)));
        assert_eq!(bytes(status, "VmSwap:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_holds_some() {
        let (now, peak) = resident_bytes().unwrap();
        assert!(0 < now && now <= peak, "{now} {peak}");
    }
}
