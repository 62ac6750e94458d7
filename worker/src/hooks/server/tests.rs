use super::*;
use crate::hooks::door::TOKEN_PATIENCE;
use premath_evidence::Agent;
use premath_kernel::policy::turn::TurnPolicy;
use rustix::net::sockopt::set_socket_linger;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{getpid, getppid};
use std::collections::HashSet;
use std::fs;
use std::io::{IoSlice, Read};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::Path;

const PROMPT: &[u8] = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit"}"#;

fn started(folder: &Path, kind: DoorKind, root: Pid) -> (HookServer, PathBuf) {
    let policy = Arc::new(TurnPolicy::embedded().unwrap());
    let journal = HookJournal::new(Agent::Codex, policy, "/lane");
    let file = File::create(folder.join("journal")).unwrap();
    let private = folder.join("private");
    fs::DirBuilder::new().mode(0o700).create(&private).unwrap();
    let door = private.join("socket");
    let server = HookServer::start((kind, door.clone()), journal, file, root, None);
    (server.unwrap(), door)
}

/// Sends an event, and returns what is answered until the connection ends.
fn exchange(mut stream: impl Read + Write, token: &[u8], event: &[u8]) -> Vec<u8> {
    let length = u32::try_from(event.len()).unwrap().to_be_bytes();
    // A peer that is not admitted closes the connection at any time.
    let _ = stream.write_all(&[token, &length, event].concat());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn only_processes_below_the_supervisor_are_answered() {
    for (root, events) in [(getppid().unwrap(), 1), (getpid(), 0)] {
        let folder = tempfile::tempdir().unwrap();
        let (server, door) = started(folder.path(), DoorKind::Unix, root);
        let answer = exchange(UnixStream::connect(&door).unwrap(), b"", PROMPT);
        let expected: &[u8] = if events == 1 { &[0; 4] } else { &[] };
        assert_eq!(answer, expected);
        let (journal, digest) = server.finish().unwrap();
        let facts = journal.facts(&[], String::new(), digest);
        assert_eq!(facts.events, events);
        assert!(!door.exists());
        let written = fs::read(folder.path().join("journal")).unwrap();
        assert_eq!(facts.journal_sha256, canonical::sha256_hex(&written));
    }
}

/// Returns the port and the token in the file of a door.
fn port_of(door: &Path) -> (u16, String) {
    let text = fs::read_to_string(door).unwrap();
    let (port, token) = text.trim().split_once(' ').unwrap();
    (port.parse().unwrap(), token.to_owned())
}

#[test]
fn a_port_answers_only_who_knows_the_token() {
    let folder = tempfile::tempdir().unwrap();
    let (server, door) = started(folder.path(), DoorKind::Port, getpid());
    let (port, token) = port_of(&door);
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let guess = "0".repeat(token.len());
    assert_eq!(exchange(connect(), guess.as_bytes(), PROMPT), b"");
    assert_eq!(exchange(connect(), token.as_bytes(), PROMPT), [0; 4]);
    let (journal, _) = server.finish().unwrap();
    let facts = journal.facts(&[], String::new(), String::new());
    assert_eq!(facts.events, 1);
}

/// Returns how many sockets of this process have the name of a door: the one that
/// is listened at, and those that were accepted.
fn sockets(door: &Path) -> usize {
    let table = fs::read_to_string("/proc/net/unix").unwrap();
    let named = table
        .lines()
        .filter(|line| line.ends_with(door.to_str().unwrap()));
    let links: HashSet<PathBuf> = named
        .filter_map(|line| line.split_whitespace().nth(6))
        .map(|inode| PathBuf::from(format!("socket:[{inode}]")))
        .collect();
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    open.filter(|entry| fs::read_link(entry.path()).is_ok_and(|link| links.contains(&link)))
        .count()
}

#[test]
fn a_command_does_not_use_up_the_descriptors_of_the_harness() {
    let folder = tempfile::tempdir().unwrap();
    let root = getppid().unwrap();
    let (server, door) = started(folder.path(), DoorKind::Unix, root);
    let connect = || UnixStream::connect(&door).unwrap();
    let mut silent: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
    let next = connect();
    silent.extend((0..CONNECTIONS).map(|_| connect()));
    next.set_read_timeout(Some(PATIENCE / 2)).unwrap();
    // It is accepted in the place of the first one.
    drop(silent.remove(0));
    assert_eq!(exchange(next, b"", PROMPT), [0; 4]);
    let sockets = sockets(&door);
    assert!(sockets <= CONNECTIONS + 1, "{sockets}");
    drop((silent, server));
}

#[test]
fn who_does_not_know_the_token_keeps_no_place_of_the_agent() {
    let folder = tempfile::tempdir().unwrap();
    let (server, door) = started(folder.path(), DoorKind::Port, getpid());
    let (port, token) = port_of(&door);
    let connect = || TcpStream::connect(("127.0.0.1", port)).unwrap();
    let silent: Vec<_> = (0..STRANGERS - 1).map(|_| connect()).collect();
    // All of them are there before the agent is.
    let agent = connect();
    agent.set_read_timeout(Some(TOKEN_PATIENCE / 2)).unwrap();
    assert_eq!(exchange(agent, token.as_bytes(), PROMPT), [0; 4]);
    drop((silent, server));
}

#[test]
fn an_event_that_is_too_long_is_a_fault_and_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let root = getppid().unwrap();
    let (server, door) = started(folder.path(), DoorKind::Unix, root);
    let mut stream = UnixStream::connect(&door).unwrap();
    stream.write_all(&u32::MAX.to_be_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, b"");
    let (journal, _) = server.finish().unwrap();
    let faults = journal.faults();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].class, FailureClass::HookChannelInvalid);
}

/// Sends a descriptor over a socket, with a byte.
fn send(over: &UnixStream, descriptors: &[BorrowedFd<'_>]) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)));
    let byte = [IoSlice::new(b"x")];
    sendmsg(over, &byte, &mut control, SendFlags::empty()).unwrap();
}

/// Sends a socket to a door whose close lasts until its peer is closed, and closes
/// its own copies. Returns the client and the peer. The door must not accept the client
/// meanwhile: the last to close the socket waits.
fn send_what_cannot_be_closed(door: &Path) -> (UnixStream, TcpStream) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let reader = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut writer, _) = listener.accept().unwrap();
    // Closing the writer waits until what it wrote was read.
    writer.set_nonblocking(true).unwrap();
    while writer.write(&[0; 1 << 16]).is_ok() {}
    set_socket_linger(&writer, Some(Duration::from_secs(100_000))).unwrap();
    writer.set_nonblocking(false).unwrap();
    let client = UnixStream::connect(door).unwrap();
    send(&client, &[writer.as_fd()]);
    (client, reader)
}

#[test]
fn a_descriptor_that_cannot_be_closed_does_not_keep_the_socket_from_ending() {
    // The server accepts the connection, or closes it with the socket.
    for is_accepted in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let root = getppid().unwrap();
        let (mut server, door) = started(folder.path(), DoorKind::Unix, root);
        server.end = Duration::from_millis(100);
        let connect = || UnixStream::connect(&door).unwrap();
        let mut silent: Vec<_> = (0..CONNECTIONS).map(|_| connect()).collect();
        let (client, peer) = send_what_cannot_be_closed(&door);
        if is_accepted {
            // It is accepted in the place of one of these.
            silent.clear();
        }
        let (journal, _) = server.finish().unwrap();
        let classes: Vec<_> = journal.faults().iter().map(|fault| fault.class).collect();
        assert_eq!(classes, [FailureClass::HookChannelInvalid], "{is_accepted}");
        drop((client, peer));
    }
}

#[test]
fn a_journal_that_is_full_takes_no_more_and_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let root = getppid().unwrap();
    let (server, door) = started(folder.path(), DoorKind::Unix, root);
    server.state.open().length = JOURNAL_MAX;
    let answer = exchange(UnixStream::connect(&door).unwrap(), b"", PROMPT);
    assert_eq!(answer, b"");
    let (journal, _) = server.finish().unwrap();
    assert_eq!(journal.faults().len(), 1);
}
