//! What processes hold that neither their pages nor a walk over files shows:
//! files without a name, and buffers of the kernel.

use super::files::{Time, bytes_since};
use premath_platform::process::Process;
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, openat, readlinkat, statat, statfs};
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::os::fd::OwnedFd;

/// The most that one socket holds for its peer: twice the default of
/// `net.core.wmem_max`, as `SO_SNDBUF` sets it (socket(7)).
const SOCKET: u64 = 425_984;
/// The most that a TCP socket holds, where the machine does not say: the default
/// of `net.ipv4.tcp_rmem` and `net.ipv4.tcp_wmem` together (tcp(7)).
const TCP_SOCKET: u64 = (6 << 20) + (4 << 20);
/// What a pipe holds once its user has many (pipe(7)).
const PIPE: u64 = 8 << 10;
/// What all pipes of a user hold before that.
const PIPES: u64 = 64 << 20;
/// What the kernel holds for any open file.
const OPEN_FILE: u64 = 512;

/// File systems in memory: tmpfs, hugetlbfs, ramfs (statfs(2)).
const IN_MEMORY: [u64; 3] = [0x0102_1994, 0x9584_58f6, 0x8584_58f6];

/// How a link of `/proc` ends that leads to a file without a name.
const DELETED: &[u8] = b" (deleted)";

/// The bytes that processes hold.
#[derive(Debug, Default)]
pub(super) struct HeldBytes {
    /// Bytes of open files without a name, in memory.
    pub(super) memory: u64,
    /// Bytes of open files without a name, on a disk.
    pub(super) files: u64,
    /// The most bytes that the kernel holds for their sockets, pipes and other
    /// open files.
    pub(super) buffers: u64,
    /// They have means to hold memory that is not shown.
    pub(super) hides_memory: bool,
    /// They have means to hold files that are not shown.
    pub(super) hides_files: bool,
}

/// The device and the number of a file.
type Identity = (u64, u64);

/// Descriptors of processes, each file once.
#[derive(Default)]
struct Search {
    held: HeldBytes,
    /// Sockets and pipes, as `/proc` names them.
    buffers: HashSet<Vec<u8>>,
    /// Files without a name.
    unnamed: BTreeSet<Identity>,
    open: u64,
}

impl HeldBytes {
    /// Looks at the descriptors and mappings of processes. Files on a disk
    /// count from a moment on.
    pub(super) fn by(processes: &[Process], since: Time) -> Self {
        let mut search = Search::default();
        let mut mapped = BTreeMap::new();
        for process in processes {
            let pid = process.pid.as_raw_nonzero().get();
            search.descriptors(pid, since);
            mappings(pid, &mut mapped);
        }
        let unknown = mapped
            .into_iter()
            .filter(|(identity, _)| !search.unnamed.contains(identity));
        for (_, is_memory) in unknown {
            search.held.hides_memory |= is_memory;
            search.held.hides_files |= !is_memory;
        }
        let is_socket = |name: &&Vec<u8>| name.starts_with(b"socket:");
        let sockets = search.buffers.iter().filter(is_socket).count() as u64;
        let mut tcp = HashSet::new();
        // For these tables the system walks through all its connections.
        if let Some(process) = processes.first()
            && sockets > 0
        {
            let pid = process.pid.as_raw_nonzero().get();
            tcp = tcp_sockets(pid);
            if has_waiting_connections(pid, &search.buffers) {
                search.hides();
            }
        }
        let Search {
            mut held,
            buffers,
            open,
            ..
        } = search;
        let tcp = buffers.intersection(&tcp).count() as u64;
        let pipes = buffers.len() as u64 - sockets;
        held.buffers = (sockets - tcp) * SOCKET
            + tcp * tcp_socket_max()
            + (pipes * 8 * PIPE).min(PIPES + pipes * PIPE)
            + open * OPEN_FILE;
        held
    }
}

impl Search {
    fn hides(&mut self) {
        self.held.hides_memory = true;
        self.held.hides_files = true;
    }

    fn descriptors(&mut self, pid: i32, since: Time) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, format!("/proc/{pid}/fd"), flags, Mode::empty());
        let folder: OwnedFd = match opened {
            Ok(folder) => folder,
            // A process that is gone holds nothing.
            Err(Errno::NOENT | Errno::SRCH) => return,
            Err(_) => return self.hides(),
        };
        let entries = match Dir::read_from(&folder) {
            Ok(entries) => entries,
            Err(Errno::NOENT | Errno::SRCH) => return,
            Err(_) => return self.hides(),
        };
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(Errno::ACCESS | Errno::PERM) => return self.hides(),
                Err(_) => return,
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.open += 1;
            let link = match readlinkat(&folder, name, Vec::new()) {
                Ok(link) => link.into_bytes(),
                Err(Errno::ACCESS | Errno::PERM) => return self.hides(),
                Err(Errno::NOENT | Errno::SRCH) => continue,
                // A path that is too long to be shown.
                Err(_) => DELETED.to_vec(),
            };
            if link.starts_with(b"socket:") {
                let is_new = self.buffers.insert(link);
                if is_new && has_descriptors_in_flight(pid, &name.to_string_lossy()) {
                    self.hides();
                }
            } else if link.starts_with(b"pipe:") {
                self.buffers.insert(link);
            } else if link.ends_with(DELETED)
                && let Ok(stat) = statat(&folder, name, AtFlags::empty())
                && stat.st_nlink == 0
                && self.unnamed.insert((stat.st_dev, stat.st_ino))
            {
                let at = format!("/proc/{pid}/fd/{}", name.to_string_lossy());
                match is_in_memory(&at) {
                    true => self.held.memory += bytes_since(&stat, (0, 0)),
                    false => self.held.files += bytes_since(&stat, since),
                }
            }
        }
    }
}

fn is_in_memory(at: &str) -> bool {
    statfs(at).is_ok_and(|found| IN_MEMORY.contains(&(found.f_type as u64)))
}

/// Returns whether descriptors that were sent to a socket wait in it: what they
/// lead to is open in no process.
fn has_descriptors_in_flight(pid: i32, descriptor: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}"));
    text.is_ok_and(|text| in_flight(&text))
}

fn in_flight(text: &str) -> bool {
    let waiting = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
    waiting.is_some_and(|count| count.trim() != "0")
}

/// Returns whether a connection waits to be accepted by one of the sockets, which
/// are in the network of a process: it has no descriptor yet, and may hold some.
fn has_waiting_connections(pid: i32, sockets: &HashSet<Vec<u8>>) -> bool {
    let table = fs::read(format!("/proc/{pid}/net/unix")).unwrap_or_default();
    is_waiting(&table, sockets)
}

/// Returns the TCP sockets in the network of a process, as `/proc` names their
/// descriptors.
fn tcp_sockets(pid: i32) -> HashSet<Vec<u8>> {
    let tables = ["tcp", "tcp6"].map(|name| fs::read(format!("/proc/{pid}/net/{name}")));
    let tables = tables.iter().flatten();
    tables.flat_map(|table| sockets_of(table)).collect()
}

/// Reads the inodes of a table of sockets.
fn sockets_of(table: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let lines = table.split(|byte| *byte == b'\n').skip(1);
    // Number, local and remote address, state, queues, timer, retransmissions,
    // user, timeout, inode.
    lines.filter_map(|line| {
        let mut fields = line
            .split(|byte| *byte == b' ')
            .filter(|field| !field.is_empty());
        let inode = fields.nth(9)?;
        Some([&b"socket:["[..], inode, b"]"].concat())
    })
}

/// Returns the most bytes that a TCP socket of this machine holds.
fn tcp_socket_max() -> u64 {
    let most = |name| {
        let text = fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).ok()?;
        text.split_whitespace().nth(2)?.parse::<u64>().ok()
    };
    match (most("tcp_rmem"), most("tcp_wmem")) {
        (Some(read), Some(write)) => read + write,
        _ => TCP_SOCKET,
    }
}

/// Other programs of the machine may be in the same network. A connection that
/// waits bears the name of the socket that accepts it, which is one of them as
/// long as the connection exists.
fn is_waiting(table: &[u8], sockets: &HashSet<Vec<u8>>) -> bool {
    let mut waiting = HashSet::new();
    let mut names = HashSet::new();
    for line in table.split(|byte| *byte == b'\n').skip(1) {
        // Number, references, protocol, flags, type, state, inode, name.
        let mut rest = line;
        let mut inode = &b""[..];
        for _ in 0..7 {
            rest = rest.trim_ascii_start();
            let end = rest.iter().position(|byte| *byte == b' ');
            (inode, rest) = rest.split_at(end.unwrap_or(rest.len()));
        }
        if rest.is_empty() {
            // A socket without a name accepts nothing (listen(2) needs bind(2)).
            continue;
        }
        if inode == b"0" {
            waiting.insert(rest);
        } else if sockets.contains(&[b"socket:[", inode, b"]"].concat()) {
            names.insert(rest);
        }
    }
    !waiting.is_disjoint(&names)
}

/// Adds the files without a name that a process has mapped; reports about each
/// whether it is in memory.
fn mappings(pid: i32, found: &mut BTreeMap<Identity, bool>) {
    let table = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
    found.extend(table.split(|byte| *byte == b'\n').filter_map(unnamed));
}

/// Reads a line of `/proc/<pid>/maps` that shows a file without a name.
fn unnamed(line: &[u8]) -> Option<(Identity, bool)> {
    if !line.ends_with(DELETED) {
        return None;
    }
    let mut fields = line.splitn(6, |byte| *byte == b' ');
    let text = |field: &[u8]| String::from_utf8(field.to_vec()).ok();
    let device = text(fields.nth(3)?)?;
    let inode: u64 = text(fields.next()?)?.parse().ok()?;
    let path = fields.next()?.trim_ascii_start();
    let (major, minor) = device.split_once(':')?;
    let part = |digits| u32::from_str_radix(digits, 16).ok();
    let device = rustix::fs::makedev(part(major)?, part(minor)?);
    let is_memory = [
        &b"/dev/zero"[..],
        b"/memfd:",
        b"/SYSV",
        b"/[aio]",
        b"/anon_hugepage",
    ]
    .iter()
    .any(|start| path.starts_with(start));
    Some(((device, inode), is_memory))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, memfd_create};
    use std::io::Write as _;

    /// Opens files without a name; returns what is held more then, in memory and on a
    /// disk. `None` where less is held: another test closed a file of its own.
    fn held_more(own: Process) -> Option<(u64, u64)> {
        let before = HeldBytes::by(&[own], (0, 0));
        let mut memory = fs::File::from(memfd_create("x", MemfdFlags::CLOEXEC).unwrap());
        memory.write_all(&vec![1; 3 << 20]).unwrap();
        let _again = memory.try_clone().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&vec![1; 5 << 20]).unwrap();
        let after = HeldBytes::by(&[own, own], (0, 0));
        let in_memory = after.memory.checked_sub(before.memory)?;
        Some((in_memory, after.files.checked_sub(before.files)?))
    }

    #[test]
    fn files_without_a_name_are_found_each_once() {
        let own = Process::at(rustix::process::getpid()).unwrap();
        // Where the temporary folder is in memory, both are.
        let is_right = |(in_memory, on_disk): &(u64, u64)| {
            (8..11).contains(&((in_memory + on_disk) >> 20)) && *in_memory >= 3 << 20
        };
        // Other tests of this process have files open meanwhile, some of them large.
        let found: Vec<_> = (0..20)
            .map_while(|_| match held_more(own) {
                Some(found) if is_right(&found) => None,
                other => Some(other),
            })
            .collect();
        assert!(found.len() < 20, "{found:?}");
    }

    #[test]
    fn descriptors_in_flight_hide_something() {
        assert!(in_flight("pos:\t0\nscm_fds: 2\n"));
        assert!(!in_flight("pos:\t0\nscm_fds: 0\n"));
        assert!(!in_flight("pos:\t0\n"));
    }

    #[test]
    fn connections_that_wait_are_those_of_own_sockets() {
        let own = HashSet::from([b"socket:[77]".to_vec(), b"socket:[8]".to_vec()]);
        let table = |lines: &str| format!("Num RefCount\n{lines}").into_bytes();
        let listens = "0: 00000002 00000000 00010000 0001 01    77 /a b\n";
        assert!(!is_waiting(&table(listens), &own));
        let waits = "0: 00000002 00000000 00000000 0001 02     0 /a b\n";
        assert!(is_waiting(&table(&format!("{waits}{listens}")), &own));
        let others = "0: 00000002 00000000 00000000 0001 02     0 /b\n\
            0: 00000002 00000000 00010000 0001 01    78 /b\n";
        assert!(!is_waiting(&table(&format!("{others}{listens}")), &own));
        let dead = "0: 00000002 00000000 00000000 0001 03     0\n";
        let unnamed = "0: 00000002 00000000 00000000 0001 03     8\n";
        assert!(!is_waiting(&table(&format!("{dead}{listens}")), &own));
        assert!(!is_waiting(&table(&format!("{dead}{unnamed}")), &own));
    }

    #[test]
    fn a_connection_that_waits_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&at).unwrap();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let at_descriptor = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&listener)
        );
        let name = fs::read_link(at_descriptor).unwrap();
        let sockets = HashSet::from([name.into_os_string().into_encoded_bytes()]);
        assert!(!has_waiting_connections(own, &sockets));
        let _waits = std::os::unix::net::UnixStream::connect(&at).unwrap();
        assert!(has_waiting_connections(own, &sockets));
        assert!(!has_waiting_connections(own, &HashSet::new()));
        let _accepted = listener.accept().unwrap();
        assert!(!has_waiting_connections(own, &sockets));
    }

    #[test]
    fn tcp_sockets_are_distinguished_from_others() {
        let table = b"  sl  local_address rem_address   st tx_queue\n   0: 0100007F:0050 \
            00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 x\n";
        let found: Vec<_> = sockets_of(table).collect();
        assert_eq!(found, [b"socket:[4711]"]);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let at = format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&listener)
        );
        let name = fs::read_link(at)
            .unwrap()
            .into_os_string()
            .into_encoded_bytes();
        assert!(tcp_sockets(own).contains(&name));
        assert!(tcp_socket_max() > SOCKET);
    }

    #[test]
    fn a_mapping_without_a_name_is_read() {
        let line = b"7f00-7f10 rw-s 00000000 00:01 1042                       /dev/zero (deleted)";
        assert_eq!(unnamed(line), Some(((1, 1042), true)));
        let line = b"7f00-7f10 r--p 00000000 fe:00 77   /lib/x y.so (deleted)";
        let ((_, inode), is_memory) = unnamed(line).unwrap();
        assert_eq!((inode, is_memory), (77, false));
        assert_eq!(
            unnamed(b"7f00-7f10 r--p 00000000 fe:00 77   /lib/x.so"),
            None
        );
        assert_eq!(unnamed(b""), None);
    }
}
