//! Attack 8: ways to a process outside: sockets, descriptors, terminals.

use crate::ground::{Ground, Mode};
use premath_tests::skipped;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use std::fs::{self, File};
use std::io::Read;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;

attacks! {
    a_socket_in_the_home_is_reached,
    a_socket_by_a_name_of_the_kernels_is_reached,
    a_socket_by_a_name_of_the_kernels_is_reached_by_an_open_network,
    a_terminal_multiplexer_is_reached,
    a_descriptor_is_inherited,
    a_terminal_of_the_users_is_written_to,
    a_service_of_this_machine_is_reached,
    the_socket_of_the_batch_is_reached,
    a_descriptor_that_cannot_be_closed_is_sent_to_the_proxy,
}

/// Returns whether something connected; a listener keeps what it did not
/// accept.
fn is_reached(listener: &UnixListener) -> bool {
    listener.set_nonblocking(true).unwrap();
    listener.accept().is_ok()
}

fn a_socket_in_the_home_is_reached(ground: &mut Ground) {
    let places = ["home/agent.sock", "home/.ssh/agent", "outside/bus"];
    let listeners: Vec<UnixListener> = places
        .iter()
        .map(|place| {
            let path = ground.path(place);
            let listener = UnixListener::bind(&path).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
            listener
        })
        .collect();
    let letters = ground.path("outside/letters");
    let datagrams = UnixDatagram::bind(&letters).unwrap();
    fs::set_permissions(&letters, fs::Permissions::from_mode(0o777)).unwrap();
    let script = r#"for name in home/agent.sock home/.ssh/agent outside/bus; do
  premath-probe unix "$FOLDER/$name"; ln -s "$FOLDER/$name" ignored.sock && premath-probe unix ignored.sock; rm -f ignored.sock
done; premath-probe datagram "$FOLDER/outside/letters"; :"#;
    ground.hostile("h", script);
    ground.nights();
    for (place, listener) in places.iter().zip(&listeners) {
        ground.harm(
            is_reached(listener),
            format!("the socket {place} was reached"),
        );
    }
    datagrams.set_nonblocking(true).unwrap();
    let is_sent = datagrams.recv(&mut [0; 16]).is_ok();
    ground.harm(is_sent, "a datagram reached outside/letters");
    probed(ground);
}

fn a_socket_by_a_name_of_the_kernels_is_reached(ground: &mut Ground) {
    let name = format!("premath-escape-{}", ground.path("").display());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    ground.hostile("h", &format!("premath-probe abstract '{name}'; :"));
    ground.nights();
    ground.harm(is_reached(&listener), "an abstract socket was reached");
    probed(ground);
}

/// The network is that of the machine, and with it such names.
fn a_socket_by_a_name_of_the_kernels_is_reached_by_an_open_network(ground: &mut Ground) {
    ground.settings("[network]\nwork = \"open\"\nverify = \"open\"\n");
    a_socket_by_a_name_of_the_kernels_is_reached(ground);
}

/// A step that reached it would stop the batch, or write into a neighbour's
/// prompt.
fn the_socket_of_the_batch_is_reached(ground: &mut Ground) {
    let script = r#"cd /
for file in "$FOLDER"/repo/.premath/private/*; do cat "$file" 2>/dev/null && echo token-read; done
for socket in "$FOLDER"/repo/.git/premath-control/*.sock; do
  [ -e "$socket" ] && echo socket-seen
  premath-probe control "$socket" 0 && echo answered
  ( setsid env -i "$(command -v premath-probe)" control "$socket" 0 && echo answered )
done; :"#;
    ground.hostile("h", script);
    ground.nights();
    let output = ground.output("h");
    ground.harm(output.contains("token-read"), "the token was read");
    ground.harm(output.contains("answered"), "the batch answered a step");
    let is_seen = output.contains("socket-seen");
    let may_be_seen = ground.mode() == Mode::Landlock;
    ground.harm(is_seen && !may_be_seen, "the socket was seen");
    let rows = ground.read("repo/.premath/harness_trajectory.jsonl");
    let is_recorded = rows.contains("operator.control");
    ground.harm(is_recorded, "a request of a step was carried out");
    probed(ground);
}

/// The probe must have been there, or nothing was tried.
fn probed(ground: &mut Ground) {
    let is_missing = ground.output("h").contains("premath-probe: not found");
    ground.harm(is_missing, "the probe was not found by the step");
}

fn a_terminal_multiplexer_is_reached(ground: &mut Ground) {
    let is_there = premath_tests::command("tmux").arg("-V").output().is_ok();
    if !is_there {
        return skipped("tmux", "it is not installed");
    }
    let socket = ground.path("home/tmux.sock").display().to_string();
    let server = ground.run(Path::new("tmux")).args(["-S", &socket, "-D"]);
    ground.run_beside(server);
    // The server removes its lock file after it made the socket.
    let lock = format!("{socket}.lock");
    let is_up = premath_tests::until(premath_tests::PATIENCE / 10, || {
        let is_locked = fs::exists(&lock).unwrap();
        (fs::exists(&socket).unwrap() && !is_locked).then_some(())
    });
    assert!(is_up.is_some(), "tmux makes its socket");
    ground.environment("TMUX", &format!("{socket},1,0"));
    let script = r#"tmux -S "$USERHOME/tmux.sock" run-shell "touch $FOLDER/outside/ran"
tmux -S "$USERHOME/tmux.sock" new-session -d "touch $FOLDER/outside/ran"; :"#;
    ground.hostile("h", script);
    ground.nights();
    let ran = ground.path("outside/ran").exists();
    ground.harm(ran, "tmux ran a command of the step's, unconfined");
}

fn a_descriptor_is_inherited(ground: &mut Ground) {
    let script = r#"for fd in 3 4 5 6 7 8 9; do eval "echo stolen >&$fd" 2>/dev/null; done
for fd in /proc/self/fd/* "/proc/$PPID"/fd/*; do
  case $(readlink "$fd") in "$FOLDER"/outside/*) echo stolen >> "$fd" ;; esac
done; :"#;
    ground.hostile("h", script);
    ground.verify("for fd in 3 4 5 6 7 8 9; do eval \"echo stolen >&$fd\" 2>/dev/null; done; true");
    let open = r#"exec 7>>"$1" 9>>"$1"; shift; exec "$@""#;
    for _ in 0..2 {
        ground.night_of(|ground| {
            let file = ground.path("outside/kept.txt");
            ground.harness_behind(|run| run.args(["sh", "-c", open, "sh"]).arg(&file))
        });
    }
}

fn a_terminal_of_the_users_is_written_to(ground: &mut Ground) {
    let Ok(master) = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY) else {
        return skipped("a terminal", "this machine has none to give");
    };
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    if !Path::new(&name).exists() {
        return skipped("a terminal", "this machine does not show it");
    }
    ground.user().owns(Path::new(&name));
    // Held open, so that what is written waits to be read.
    let _terminal = File::options().read(true).write(true).open(&name).unwrap();
    let script = format!(
        "echo FORGED > {name}; echo FORGED > /dev/tty; for at in /dev/pts/[0-9]*; do [ -O \"$at\" ] && echo FORGED > \"$at\"; done; :"
    );
    ground.hostile("h", &script);
    ground.nights();
    rustix::fs::fcntl_setfl(&master, rustix::fs::OFlags::NONBLOCK).unwrap();
    let mut shown = [0; 64];
    let count = File::from(master).read(&mut shown).unwrap_or_default();
    let shown = String::from_utf8_lossy(&shown[..count]).into_owned();
    ground.harm(count > 0, format!("the user's terminal shows {shown:?}"));
}

/// Landlock filters ports and not addresses, and the batch reports that.
fn a_service_of_this_machine_is_reached(ground: &mut Ground) {
    if ground.mode() == Mode::Landlock {
        return skipped("a service of this machine", "Landlock knows no addresses");
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let datagrams = std::net::UdpSocket::bind(address).unwrap();
    let ways = ["tcp", "udp", "mptcp", "fastopen"];
    let tries: Vec<String> = ways
        .iter()
        .map(|way| format!("premath-probe {way} {address} && echo 'reached by {way}'"))
        .collect();
    ground.hostile("h", &format!("{}; :", tries.join("\n")));
    ground.nights();
    listener.set_nonblocking(true).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let printed = ground.output("h");
    let reached: Vec<&str> = printed
        .lines()
        .filter(|line| line.starts_with("reached"))
        .collect();
    ground.harm(
        listener.accept().is_ok(),
        format!("a service was {reached:?}"),
    );
    let is_sent = datagrams.recv(&mut [0; 16]).is_ok();
    ground.harm(is_sent, "a datagram reached a service");
    probed(ground);
}

/// Descriptors that are sent to a process are closed by it, and closing a
/// socket may last as long as its owner said, while its peer waits behind it.
fn a_descriptor_that_cannot_be_closed_is_sent_to_the_proxy(ground: &mut Ground) {
    if ground.mode() == Mode::Landlock {
        return;
    }
    let script = r#"python3 - <<'END'
import array, os, socket, struct, time
def pass_on(over, *sockets):
    numbers = array.array("i", [one.fileno() for one in sockets])
    over.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
    for one in sockets:
        os.close(one.detach())
def pair():
    door = socket.socket(); door.bind(("127.0.0.1", 0)); door.listen(1)
    reader = socket.socket(); reader.connect(door.getsockname())
    writer, _ = door.accept(); writer.setblocking(False)
    try:
        while True: writer.send(b"x" * 65536)
    except BlockingIOError: pass
    writer.setblocking(True)
    linger = struct.pack("ii", 1, 100000)
    writer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    return writer, reader
def reach():
    one = socket.socket(socket.AF_UNIX); one.connect("/premath/net/proxy"); return one
try:
    idle = [reach() for _ in range(64)]
    time.sleep(0.3)
    for turn in (False, True):
        ends = pair()
        here, there = socket.socketpair()
        pass_on(here, *(reversed(ends) if turn else ends))
        late = reach(); pass_on(late, there); idle.append(late)
    print("sent")
    for one in idle[:3]: one.close()
    time.sleep(1)
except OSError as error:
    print(error)
END"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let sent = said.lines().any(|line| line == "sent");
    ground.harm(sent, "a step sent descriptors to the harness");
}
