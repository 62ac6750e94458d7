//! Whose process is at the other end of a connection.

use premath_platform::process::Process;
use rustix::process::Pid;

/// How deep a command's processes may be nested below the supervisor.
const DEPTH_MAX: usize = 256;

/// Returns whether a process is below another one.
pub(super) fn is_below(pid: Option<i32>, root: Pid) -> bool {
    let mut next = pid.and_then(Pid::from_raw);
    for _ in 0..DEPTH_MAX {
        let Some(process) = next.and_then(Process::at) else {
            return false;
        };
        if process.parent == root.as_raw_nonzero().get() {
            return true;
        }
        next = Pid::from_raw(process.parent);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{getpid, getppid};

    #[test]
    fn a_process_is_below_its_parent_and_not_below_itself() {
        let own = Some(getpid().as_raw_nonzero().get());
        assert!(is_below(own, getppid().unwrap()));
        assert!(!is_below(own, getpid()));
        assert!(!is_below(None, getpid()));
        assert!(!is_below(Some(1), getpid()));
    }
}
