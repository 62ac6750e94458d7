//! System calls that no other means of confinement covers, refused by filters
//! (seccomp(2)).

mod calls;
#[cfg(target_arch = "x86_64")]
mod foreign;

use calls::*;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};
use std::collections::BTreeMap;
use std::io;

/// What a command shares with the programs of its user, and is kept from by
/// these filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shared {
    /// Nothing that these filters cover.
    Nothing,
    /// Sockets of files, and the machine's segments, semaphores and queues: a
    /// command could speak with servers of its user, such as a terminal
    /// multiplexer, and leave memory behind.
    Machine,
}

/// Refuses system calls of this thread, and of what it starts, that nothing
/// else confines: the kernel's keys, its programs and counters, sockets of the
/// machine below, protocols that evade rules of the network, calls that other
/// filters cannot see, typing into a terminal, moving content between files, namespaces
/// of users, programs that run as their owner, and memory that no process shows.
pub(super) fn apply(shared: Shared) -> io::Result<()> {
    let groups = [
        (NOT_THERE, not_there(shared)),
        (NOT_PERMITTED, not_permitted()),
        (INVALID, too_large(shared)),
    ];
    for (errno, rules) in groups {
        let filter = rules.and_then(|rules| program(errno, rules));
        let filter = filter.map_err(io::Error::other)?;
        apply_filter(&filter).map_err(io::Error::other)?;
    }
    #[cfg(target_arch = "x86_64")]
    apply_filter(&foreign::program()).map_err(io::Error::other)?;
    Ok(())
}

/// Calls, each with the rules of which one must fit; no rule fits always.
type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `ENOSYS`: programs fall back to something else.
const NOT_THERE: u32 = 38;
/// `EPERM`.
const NOT_PERMITTED: u32 = 1;
/// `EINVAL`: what the calls say where a bound of the kernel's is lower.
const INVALID: u32 = 22;

/// `AF_UNIX`.
const UNIX: u64 = 1;
/// `AF_VSOCK`: it belongs to no network namespace.
const VSOCK: u64 = 40;
/// `IPPROTO_MPTCP`.
const MPTCP: u64 = 262;
/// `TIOCSTI` and `TIOCLINUX`, which type into a terminal.
const TYPING: [u64; 2] = [0x5412, 0x541c];
/// `EXT4_IOC_MOVE_EXT`, `XFS_IOC_SWAPEXT` and `F2FS_IOC_MOVE_RANGE`: they give a file
/// other content and leave its times as they were, by which the harness knows that it
/// is the same.
const MOVES_CONTENT: [u64; 3] = [0xc028_660f, 0xc0c0_586d, 0xc020_f509];
/// `RLIMIT_CORE`.
const CORE: u64 = 4;
/// `CLONE_NEWUSER`. In a namespace of users a command may mount file systems in
/// memory and fill the kernel's tables, which nothing bounds. A file of root's is
/// root's own there too.
const NEW_USERS: u64 = 0x1000_0000;
/// `CLONE_FILES` and `CLONE_THREAD`. Files that a thread has for itself are not
/// shown among those of its process, and what they hold is not seen.
const FILES: u64 = 0x400;
const THREAD: u64 = 0x1_0000;
/// `CLOSE_RANGE_UNSHARE`, by which a thread gets files of its own too.
const UNSHARES: u64 = 2;
/// `S_ISUID` and `S_ISGID`.
const RUN_AS: [u64; 2] = [0o4000, 0o2000];
/// `O_CREAT`, and the bit that `O_TMPFILE` adds to `O_DIRECTORY`.
const MAKES: [u64; 2] = [0o100, 0o20_000_000];
/// The most bytes of a segment of System V: there may be 4,096 of them, and no
/// process shows them. PostgreSQL needs 56 bytes.
const SEGMENT: u64 = 16 << 10;
/// The most semaphores of a set of System V: there may be 32,000 sets.
const SEMAPHORES: u64 = 32;

fn program(errno: u32, rules: Rules) -> Result<BpfProgram, seccompiler::Error> {
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(errno),
        std::env::consts::ARCH.try_into()?,
    )?;
    Ok(filter.try_into()?)
}

fn not_there(shared: Shared) -> Result<Rules, seccompiler::Error> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    // Queues of System V hold memory that no process shows. The flags of
    // `clone3` and the modes of `openat2` are where a filter cannot see them.
    rules.extend([MSGGET, CLONE3, OPENAT2].map(|call| (call, Vec::new())));
    let mut sockets = vec![only(is(0, VSOCK))?, only(is(2, MPTCP))?];
    if shared == Shared::Machine {
        sockets.push(only(is(0, UNIX))?);
        rules.extend(OF_THE_MACHINE.map(|call| (call, Vec::new())));
    }
    rules.insert(SOCKET, sockets);
    // A command could set the bound of cores to 0, by which a handler of the
    // machine's is started.
    let is_set = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, 0);
    rules.insert(SETRLIMIT, vec![only(is(0, CORE))?]);
    rules.insert(
        PRLIMIT,
        vec![SeccompRule::new(vec![is(1, CORE)?, is_set?])?],
    );
    let requests = TYPING.into_iter().chain(MOVES_CONTENT);
    let requests = requests.map(|request| only(is(1, request)));
    rules.insert(IOCTL, requests.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn not_permitted() -> Result<Rules, seccompiler::Error> {
    let mut rules = Rules::new();
    let own_files = SeccompCmpOp::MaskedEq(THREAD | FILES);
    let own_files = SeccompCondition::new(0, SeccompCmpArgLen::Qword, own_files, THREAD);
    rules.insert(CLONE, vec![only(has(0, NEW_USERS))?, only(own_files)?]);
    rules.insert(
        UNSHARE,
        vec![only(has(0, NEW_USERS))?, only(has(0, FILES))?],
    );
    rules.insert(CLOSE_RANGE, vec![only(has(2, UNSHARES))?]);
    for (call, mode) in SETS_MODE {
        let each = RUN_AS.into_iter().map(|bit| only(has(*mode, bit)));
        rules.insert(*call, each.collect::<Result<_, _>>()?);
    }
    for (call, flags) in OPENS {
        let mut each = Vec::new();
        for bit in RUN_AS {
            for makes in MAKES {
                // The mode comes after the flags, and means nothing elsewhere.
                each.push(SeccompRule::new(vec![
                    has(*flags, makes)?,
                    has(flags + 1, bit)?,
                ])?);
            }
        }
        rules.insert(*call, each);
    }
    Ok(rules)
}

fn too_large(shared: Shared) -> Result<Rules, seccompiler::Error> {
    let mut rules = Rules::new();
    if shared == Shared::Nothing {
        rules.insert(SHMGET, vec![only(exceeds(1, SEGMENT))?]);
        rules.insert(SEMGET, vec![only(exceeds(1, SEMAPHORES))?]);
    }
    Ok(rules)
}

type Condition = Result<SeccompCondition, seccompiler::BackendError>;

/// Makes a rule of one condition.
fn only(condition: Condition) -> Result<SeccompRule, seccompiler::Error> {
    Ok(SeccompRule::new(vec![condition?])?)
}

/// An argument has a value.
fn is(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// An argument has a flag.
fn has(argument: u8, flag: u64) -> Condition {
    let operator = SeccompCmpOp::MaskedEq(flag);
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operator, flag)
}

/// An argument is larger than a value.
fn exceeds(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Gt, value)
}
