//! The memory that processes show of themselves.

use premath_platform::machine::kibibytes;
use premath_platform::process::Process;
use std::fs;
use std::iter::Sum;

/// The memory of processes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pages {
    /// Memory of their own, files that are mapped, swap and page tables.
    pub(super) own: u64,
    /// Mapped pages of shared memory.
    pub(super) shared: u64,
}

impl Pages {
    /// Counts the pages of a process.
    pub(super) fn counted(process: &Process) -> Self {
        Self::of_status(&read(process, "status"))
    }

    /// Counts them, each divided by the number of its users. As
    /// [`Self::counted`] where the process does not show it.
    pub(super) fn divided(process: &Process) -> Self {
        let status = read(process, "status");
        let rollup = read(process, "smaps_rollup");
        match kibibytes(&rollup, "Pss:") {
            Some(all) => {
                let shared = kibibytes(&rollup, "Pss_Shmem:").unwrap_or_default();
                Self {
                    own: all.saturating_sub(shared) + unmapped(&status),
                    shared,
                }
            }
            None => Self::of_status(&status),
        }
    }

    fn of_status(status: &str) -> Self {
        let shared = kibibytes(status, "RssShmem:").unwrap_or_default();
        let all = kibibytes(status, "VmRSS:").unwrap_or_default();
        Self {
            own: all.saturating_sub(shared) + unmapped(status),
            shared,
        }
    }
}

/// Returns what a process uses beside its mapped pages.
fn unmapped(status: &str) -> u64 {
    let value = |name: &str| kibibytes(status, name).unwrap_or_default();
    value("VmSwap:") + value("VmPTE:")
}

impl Sum for Pages {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            own: sum.own + one.own,
            shared: sum.shared + one.shared,
        })
    }
}

/// Returns the bytes of a process's mapped pages, by the fastest way.
pub(super) fn resident(process: &Process) -> u64 {
    let text = read(process, "statm");
    let pages = text.split_whitespace().nth(1);
    let pages: u64 = pages.and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * rustix::param::page_size() as u64
}

fn read(process: &Process, file: &str) -> String {
    let pid = process.pid.as_raw_nonzero();
    let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_pages_are_kept_apart_from_the_others() {
        let status =
            "VmRSS:\t 100 kB\nRssAnon:\t 60 kB\nRssShmem:\t 30 kB\nVmPTE:\t 7 kB\nVmSwap:\t 2 kB\n";
        let read = Pages::of_status(status);
        assert_eq!((read.own, read.shared), (79 << 10, 30 << 10));
    }

    #[test]
    fn this_process_is_measured() {
        let own = Process::at(rustix::process::getpid()).unwrap();
        let (counted, divided) = (Pages::counted(&own), Pages::divided(&own));
        assert!(counted.own > 1 << 20, "{counted:?}");
        assert!(divided.own > 1 << 19, "{divided:?}");
        assert!(resident(&own) > 1 << 20);
    }
}
