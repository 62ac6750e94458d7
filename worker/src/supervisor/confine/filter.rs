//! System calls that no other means of confinement covers, refused by a filter
//! (seccomp(2)).

use rustix::process::geteuid;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// Which sockets are refused beside those of the machine below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sockets {
    /// No others.
    All,
    /// Those of files and of the kernel's names: a command could speak with
    /// servers of its user, such as a terminal multiplexer.
    NoFiles,
}

/// Refuses system calls of this thread, and of what it starts, that nothing
/// else confines: the kernel's keys, its programs and counters, sockets of the
/// machine below, protocols that evade rules of the network, calls that other
/// filters cannot see, and typing into a terminal.
pub(super) fn apply(sockets: Sockets) -> io::Result<()> {
    let filter = program(sockets).map_err(io::Error::other)?;
    apply_filter(&filter).map_err(io::Error::other)
}

/// `AF_UNIX`.
const UNIX: u64 = 1;
/// `AF_VSOCK`: it belongs to no network namespace.
const VSOCK: u64 = 40;
/// `IPPROTO_MPTCP`.
const MPTCP: u64 = 262;
/// `CLONE_NEWUSER`. A file of the machine's root is root's own also in another
/// namespace of users, where root may mount control groups and write to them.
const NEW_USERS: u64 = 0x1000_0000;
/// `TIOCSTI` and `TIOCLINUX`, which type into a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541c];
/// `ENOSYS`: programs fall back to something else.
const NOT_THERE: u32 = 38;

fn program(sockets: Sockets) -> Result<BpfProgram, seccompiler::Error> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        REFUSED.iter().map(|number| (*number, Vec::new())).collect();
    let mut of_sockets = vec![rule(0, VSOCK)?, rule(2, MPTCP)?];
    if sockets == Sockets::NoFiles {
        of_sockets.push(rule(0, UNIX)?);
    }
    rules.insert(SOCKET, of_sockets);
    // A command could set the bound of cores to 0, by which a handler of the
    // machine's is started.
    let is_core = |at| SeccompCondition::new(at, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, CORE);
    let is_set = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0)?;
    rules.insert(SETRLIMIT, vec![SeccompRule::new(vec![is_core(0)?])?]);
    rules.insert(PRLIMIT, vec![SeccompRule::new(vec![is_core(1)?, is_set])?]);
    if geteuid().is_root() {
        for number in [CLONE, UNSHARE] {
            rules.insert(number, vec![flag(0, NEW_USERS)?]);
        }
        // A filter cannot see its flags; programs fall back to `clone`.
        rules.insert(CLONE3, Vec::new());
    }
    let typing = TYPING.into_iter().map(|request| rule(1, request));
    rules.insert(IOCTL, typing.collect::<Result<_, _>>()?);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(NOT_THERE),
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}

/// Refuses a call where one of its arguments has a flag.
fn flag(argument: u8, flag: u64) -> Result<SeccompRule, seccompiler::Error> {
    let has_it = SeccompCondition::new(
        argument,
        SeccompCmpArgLen::Qword,
        SeccompCmpOp::MaskedEq(flag),
        flag,
    )?;
    Ok(SeccompRule::new(vec![has_it])?)
}

/// Refuses a call where one of its arguments has a value.
fn rule(argument: u8, value: u64) -> Result<SeccompRule, seccompiler::Error> {
    let is_it = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
    Ok(SeccompRule::new(vec![is_it])?)
}

#[cfg(target_arch = "x86_64")]
const SOCKET: i64 = 41;
#[cfg(not(target_arch = "x86_64"))]
const SOCKET: i64 = 198;
#[cfg(target_arch = "x86_64")]
const IOCTL: i64 = 16;
#[cfg(not(target_arch = "x86_64"))]
const IOCTL: i64 = 29;

#[cfg(target_arch = "x86_64")]
const CLONE: i64 = 56;
#[cfg(not(target_arch = "x86_64"))]
const CLONE: i64 = 220;
#[cfg(target_arch = "x86_64")]
const UNSHARE: i64 = 272;
#[cfg(not(target_arch = "x86_64"))]
const UNSHARE: i64 = 97;
const CLONE3: i64 = 435;
#[cfg(target_arch = "x86_64")]
const SETRLIMIT: i64 = 160;
#[cfg(not(target_arch = "x86_64"))]
const SETRLIMIT: i64 = 164;
#[cfg(target_arch = "x86_64")]
const PRLIMIT: i64 = 302;
#[cfg(not(target_arch = "x86_64"))]
const PRLIMIT: i64 = 261;
/// `RLIMIT_CORE`.
const CORE: u64 = 4;

/// `add_key`, `request_key`, `keyctl`, `perf_event_open`, `bpf`, and the three
/// calls of `io_uring`.
#[cfg(target_arch = "x86_64")]
const REFUSED: [i64; 8] = [248, 249, 250, 298, 321, 425, 426, 427];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED: [i64; 8] = [217, 218, 219, 241, 280, 425, 426, 427];
