//! Bounds that a step gets around by what no process's pages and no walk over
//! files show: memory without a mapping, and files without a name.

use crate::ground::Ground;
use premath_tests::Length;
use std::path::Path;

attacks! {
    memory_of_files_without_a_name_is_bounded,
    memory_behind_a_mapping_is_bounded,
    memory_of_the_kernels_buffers_is_bounded,
    memory_of_nested_file_systems_is_bounded,
    memory_of_shared_segments_is_bounded,
    segments_of_the_machine_are_not_left,
    files_without_a_name_are_bounded,
    files_in_flight_are_bounded,
    files_that_are_only_mapped_are_bounded,
    files_in_a_folder_that_is_shut_are_bounded,
    what_others_hide_is_not_charged,
    a_dead_main_thread_hides_nothing,
    files_of_one_thread_are_bounded,
}

/// What a step may have: half of what the attacks take, or less. Other tests use
/// the same disk meanwhile.
const LIMITS: &str = "[limits]\nmemory = \"256MiB\"\ndisk = \"30MiB\"\n";

/// Takes 512 MiB of memory or as much of files, keeps it for longer than the
/// harness takes to see it, and reports it.
fn takes(ground: &mut Ground, ways: &[(&str, &str)]) {
    for (number, (way, code)) in ways.iter().enumerate() {
        let script = format!("python3 - <<'END'\n{PYTHON}\n{code}\nkept({way:?})\nEND");
        ground.hostile(&format!("h{number}"), &script).may_be_cut();
    }
    // Not the time limit is to end them.
    ground.limits_steps_to(300);
    ground.settings(LIMITS);
    ground.nights();
    for number in 0..ways.len() {
        let said = ground.output(&format!("h{number}"));
        let kept: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("kept "))
            .collect();
        ground.harm(!kept.is_empty(), format!("over its bound a step {kept:?}"));
        let is_tried = said.lines().any(|line| line == "begun");
        ground.harm(!is_tried, format!("the attack did not begin: {said:?}"));
    }
}

/// What the attacks share. A way that is refused ends the program.
const PYTHON: &str = r#"
import ctypes, os, socket, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.shmat.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
libc.shmdt.argtypes = [ctypes.c_void_p]
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
MIB = 1 << 20
def begun(): print("begun", flush=True)
def refused(why): print("refused", why, flush=True); os._exit(0)
def kept(way): time.sleep(30); print("kept", way, flush=True)
def fill(fd, mib):
    block = b"x" * MIB
    for _ in range(mib): os.write(fd, block)
def memory():
    for _ in range(26):
        fd = os.memfd_create("anonymous"); fill(fd, 20); yield fd
def unnamed():
    for number in range(30):
        at = os.path.join(os.environ["TMPDIR"] if number % 2 else ".", "unnamed%d" % number)
        fd = os.open(at, os.O_RDWR | os.O_CREAT); os.unlink(at)
        fill(fd, 20); yield fd
def mapped(fd, size, flags):
    at = libc.mmap(None, size, 3, flags, fd, 0)
    if at == ctypes.c_void_p(-1).value: refused("mmap")
    return at
def only_mapped(fds):
    for fd in fds: mapped(fd, 4096, 1); os.close(fd)
ends = socket.socketpair()
def in_flight(fds):
    for fd in fds: socket.send_fds(ends[0], [b"x"], [fd]); os.close(fd)
begun()
"#;

fn memory_of_files_without_a_name_is_bounded(ground: &mut Ground) {
    takes(
        ground,
        &[
            ("open", "fds = list(memory())"),
            ("in flight", "in_flight(memory())"),
        ],
    );
}

/// The pages of a shared mapping outlast what a process shows of it.
fn memory_behind_a_mapping_is_bounded(ground: &mut Ground) {
    let anonymous = r#"
at = mapped(-1, 512 * MIB, 0x21)
for part in range(0, 512 * MIB, 16 * MIB):
    ctypes.memset(at + part, 1, 16 * MIB)
    libc.madvise(at + part, 16 * MIB, 4)
libc.munmap(at + 4096, 512 * MIB - 4096)"#;
    let closed = "only_mapped(memory())";
    takes(ground, &[("closed", closed), ("anonymous", anonymous)]);
}

/// What some ways take is known from the free room of the whole machine alone,
/// which other tests change: these are tried in the long form.
fn is_loaded(what: &str) -> bool {
    let form = format!("{what}, on a machine without other load");
    Length::asked(&form) == Length::Quick
}

/// What buffers hold is known from the memory of the whole machine alone, which
/// other tests change.
fn memory_of_the_kernels_buffers_is_bounded(ground: &mut Ground) {
    if is_loaded("memory of the kernel's buffers") {
        return;
    }
    let sockets = r#"
import resource
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
pairs = []
for _ in range(4000):
    pair = socket.socketpair(); pairs.append(pair)
    pair[0].setblocking(False)
    try:
        while True: pair[0].send(b"x" * 65536)
    except BlockingIOError: pass"#;
    takes(ground, &[("sockets", sockets)]);
}

fn memory_of_nested_file_systems_is_bounded(ground: &mut Ground) {
    let nested = |kind: &str| {
        format!(
            r#"
user, group = os.getuid(), os.getgid()
if libc.unshare(0x10020000) != 0: refused("unshare")
for name, text in ("setgroups", "deny"), ("uid_map", "0 %d 1" % user), ("gid_map", "0 %d 1" % group):
    with open("/proc/self/" + name, "w") as file: file.write(text)
if libc.mount(b"{kind}", os.environ["TMPDIR"].encode(), b"{kind}", 0, None) != 0: refused("mount")
fd = os.open(os.environ["TMPDIR"] + "/file", os.O_RDWR | os.O_CREAT)
for _ in range(26):
    fill(fd, 20); fd = os.open(os.environ["TMPDIR"] + "/file%d" % fd, os.O_RDWR | os.O_CREAT)"#
        )
    };
    takes(
        ground,
        &[("tmpfs", &nested("tmpfs")), ("ramfs", &nested("ramfs"))],
    );
}

/// Segments and queues of System V live without a process.
fn memory_of_shared_segments_is_bounded(ground: &mut Ground) {
    let segments = r#"
import atexit
ids = []
atexit.register(lambda: [libc.shmctl(id, 0, None) for id in ids])
for _ in range(64):
    id = libc.shmget(0, 8 * MIB, 0o1600)
    if id < 0: refused("shmget")
    ids.append(id); at = libc.shmat(id, None, 0)
    ctypes.memset(at, 1, 8 * MIB); libc.shmdt(at)"#;
    let queues = r#"
import atexit
ids = []
atexit.register(lambda: [libc.msgctl(id, 0, None) for id in ids])
for _ in range(1000):
    id = libc.msgget(0, 0o1600)
    if id < 0: refused("msgget")
    ids.append(id)"#;
    takes(ground, &[("segments", segments), ("queues", queues)]);
}

fn segments_of_the_machine_are_not_left(ground: &mut Ground) {
    let script = r#"python3 - <<'END'
import ctypes
libc = ctypes.CDLL(None)
print("made", libc.shmget(0, 64, 0o1600), libc.semget(0, 1, 0o1600), libc.msgget(0, 0o1600))
END"#;
    ground.hostile("h", script);
    ground.nights();
    let number = ground.user().number().to_string();
    // Where the owner's number is in a line of each list.
    for (list, column) in [("shm", 7), ("sem", 4), ("msg", 7)] {
        let lines = std::fs::read_to_string(format!("/proc/sysvipc/{list}")).unwrap_or_default();
        let is_users = |line: &&str| line.split_whitespace().nth(column) == Some(&number);
        let left = lines.lines().filter(is_users).count();
        let is_harm = ground.user().is_own() && left > 0;
        ground.harm(is_harm, format!("{left} are left in /proc/sysvipc/{list}"));
    }
}

fn files_without_a_name_are_bounded(ground: &mut Ground) {
    takes(ground, &[("open", "fds = list(unnamed())")]);
}

fn files_in_flight_are_bounded(ground: &mut Ground) {
    if is_loaded("files in flight") {
        return;
    }
    takes(ground, &[("in flight", "in_flight(unnamed())")]);
}

fn files_that_are_only_mapped_are_bounded(ground: &mut Ground) {
    if is_loaded("files that are only mapped") {
        return;
    }
    takes(ground, &[("mapped", "only_mapped(unnamed())")]);
}

fn files_in_a_folder_that_is_shut_are_bounded(ground: &mut Ground) {
    let shut = r#"
for top in os.environ["TMPDIR"], "ignored":
    os.makedirs(top + "/shut", exist_ok=True)
    fds = [os.open(top + "/shut/%d" % n, os.O_RDWR | os.O_CREAT) for n in range(20)]
    os.chmod(top + "/shut", 0)
    for fd in fds: fill(fd, 20); os.close(fd)"#;
    takes(ground, &[("shut", shut)]);
}

/// In Landlock a step is in the network of the machine: a connection that waits
/// there may be another program's, and so may the room that the disk loses.
fn what_others_hide_is_not_charged(ground: &mut Ground) {
    let others = r#"
import os, socket, sys, tempfile
listener, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
name = b"\0premath-" + str(os.getpid()).encode()
listener.bind(name); listener.listen(); client.connect(name)
with tempfile.TemporaryFile(dir=sys.argv[1]) as file:
    print("ready", flush=True)
    while True:
        file.seek(0); file.truncate()
        for _ in range(300): file.write(b"x" * (1 << 20)); file.flush()"#;
    let folder = ground.path("outside").display().to_string();
    let run = ground
        .run(Path::new("python3"))
        .args(["-c", others, &folder]);
    let others = ground.run_beside(run);
    let is_ready = premath_tests::until(premath_tests::PATIENCE / 10, || {
        ground.output_by(others).contains("ready").then_some(())
    });
    assert!(is_ready.is_some(), "{}", ground.output_by(others));
    // As long as several checks of the disk take.
    ground.hostile("h", "sleep 3");
    ground.settings(LIMITS);
    ground.nights();
}

/// What a thread does. By the number of a process whose main thread has ended,
/// `/proc` shows no memory and no files; and a thread may have files of its own.
const THREADS: &str = r#"
import platform, threading
def in_thread(work):
    threading.Thread(target=work).start()
def no_main():
    libc.syscall({"x86_64": 60}.get(platform.machine(), 93), 0)
"#;

fn a_dead_main_thread_hides_nothing(ground: &mut Ground) {
    let way = |hold: &str| {
        format!(
            "{THREADS}\ndef hold():\n    held = {hold}\n    kept('headless')\nin_thread(hold); no_main()"
        )
    };
    let memory = way("b'x' * (512 * MIB)");
    let files = way("list(unnamed())");
    takes(ground, &[("memory", &memory), ("files", &files)]);
}

fn files_of_one_thread_are_bounded(ground: &mut Ground) {
    let way = |part: &str| {
        format!(
            r#"{THREADS}
done = threading.Event()
def hold():
    if {part} != 0: refused("files of its own")
    held = list(unnamed()); kept("in a thread"); done.set()
in_thread(hold); done.wait(90)"#
        )
    };
    let unshare = way("libc.unshare(0x400)");
    let close = way("libc.close_range(1000, 1000, 2)");
    takes(ground, &[("unshare", &unshare), ("close_range", &close)]);
}
