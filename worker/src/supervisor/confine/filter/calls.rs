//! The numbers of system calls.

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::*;

#[cfg(not(target_arch = "x86_64"))]
pub(super) use generic::*;

/// Calls with one number everywhere.
pub(super) const CLONE3: i64 = 435;
pub(super) const CLOSE_RANGE: i64 = 436;
pub(super) const OPENAT2: i64 = 437;
const FCHMODAT2: i64 = 452;
const IO_URING: [i64; 3] = [425, 426, 427];
/// `memfd_secret`: its pages are in no count of the machine's.
const MEMFD_SECRET: i64 = 447;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::{FCHMODAT2, IO_URING, MEMFD_SECRET};

    pub(in super::super) const SOCKET: i64 = 41;
    pub(in super::super) const IOCTL: i64 = 16;
    pub(in super::super) const CLONE: i64 = 56;
    pub(in super::super) const UNSHARE: i64 = 272;
    pub(in super::super) const SETRLIMIT: i64 = 160;
    pub(in super::super) const PRLIMIT: i64 = 302;
    pub(in super::super) const SHMGET: i64 = 29;
    pub(in super::super) const SEMGET: i64 = 64;
    pub(in super::super) const MSGGET: i64 = 68;

    /// `add_key`, `request_key`, `keyctl`, `perf_event_open`, `bpf`, `vmsplice`
    /// (a pipe keeps a page of memory that is unmapped), `memfd_secret`, and the
    /// three calls of `io_uring`.
    pub(in super::super) const REFUSED: [i64; 10] = [
        248,
        249,
        250,
        298,
        321,
        278,
        MEMFD_SECRET,
        IO_URING[0],
        IO_URING[1],
        IO_URING[2],
    ];

    /// `shmget`, `shmat`, `shmctl`, `semget`, `semop`, `semctl`, `semtimedop`,
    /// `msgsnd`, `msgrcv`, `msgctl`, `mq_open`, `mq_unlink`.
    pub(in super::super) const OF_THE_MACHINE: [i64; 12] =
        [29, 30, 31, 64, 65, 66, 220, 69, 70, 71, 240, 241];

    /// Calls that set a file's mode, and which argument it is: `chmod`,
    /// `fchmod`, `fchmodat`, `fchmodat2`, `creat`, `mknod`, `mknodat`.
    pub(in super::super) const SETS_MODE: &[(i64, u8)] = &[
        (90, 1),
        (91, 1),
        (268, 2),
        (FCHMODAT2, 2),
        (85, 1),
        (133, 1),
        (259, 2),
    ];

    /// Calls that open a file, and which argument its flags are: `open`,
    /// `openat`.
    pub(in super::super) const OPENS: &[(i64, u8)] = &[(2, 1), (257, 2)];
}

#[cfg(not(target_arch = "x86_64"))]
mod generic {
    use super::{FCHMODAT2, IO_URING, MEMFD_SECRET};

    pub(in super::super) const SOCKET: i64 = 198;
    pub(in super::super) const IOCTL: i64 = 29;
    pub(in super::super) const CLONE: i64 = 220;
    pub(in super::super) const UNSHARE: i64 = 97;
    pub(in super::super) const SETRLIMIT: i64 = 164;
    pub(in super::super) const PRLIMIT: i64 = 261;
    pub(in super::super) const SHMGET: i64 = 194;
    pub(in super::super) const SEMGET: i64 = 190;
    pub(in super::super) const MSGGET: i64 = 186;

    /// `add_key`, `request_key`, `keyctl`, `perf_event_open`, `bpf`, `vmsplice`,
    /// `memfd_secret`, and the three calls of `io_uring`.
    pub(in super::super) const REFUSED: [i64; 10] = [
        217,
        218,
        219,
        241,
        280,
        75,
        MEMFD_SECRET,
        IO_URING[0],
        IO_URING[1],
        IO_URING[2],
    ];

    /// `shmget`, `shmat`, `shmctl`, `semget`, `semop`, `semctl`, `semtimedop`,
    /// `msgsnd`, `msgrcv`, `msgctl`, `mq_open`, `mq_unlink`.
    pub(in super::super) const OF_THE_MACHINE: [i64; 12] =
        [194, 196, 195, 190, 193, 191, 192, 189, 188, 187, 180, 181];

    /// Calls that set a file's mode, and which argument it is: `fchmod`,
    /// `fchmodat`, `fchmodat2`, `mknodat`.
    pub(in super::super) const SETS_MODE: &[(i64, u8)] =
        &[(52, 1), (53, 2), (FCHMODAT2, 2), (33, 2)];

    /// Calls that open a file, and which argument its flags are: `openat`.
    pub(in super::super) const OPENS: &[(i64, u8)] = &[(56, 2)];
}
