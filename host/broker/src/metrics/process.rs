//! What the operating system knows of the process, from `/proc/self`; nothing where there is no such thing.

use std::fs;

/// Resident memory in bytes.
pub(super) fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

/// Open files and sockets.
pub(super) fn open_files() -> Option<usize> {
    // The folder that is read here is open itself.
    Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
}

/// How many there may be.
pub(super) fn open_files_max() -> Option<u64> {
    let limits = fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(all(test, target_os = "linux"))]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_and_files() {
        assert!(resident_bytes().unwrap() > 1 << 16);
        let files = open_files().unwrap();
        assert!(files > 0 && wide(files) < open_files_max().unwrap());
    }

    fn wide(number: usize) -> u64 {
        u64::try_from(number).unwrap()
    }
}
