//! What a shell cannot do: sockets of every kind, locks and extended attributes, for
//! the hostile steps of the escape suite and of end-to-end tests. It exits with 0 where
//! the attempt went through.

use premath_cli::Beside;
use premath_memory::roots::MemoryRoots;
use rustix::fs::{FlockOperation, XattrFlags, flock, setxattr};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketAddrUnix, SocketType, connect, sendto, socket,
};
use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// What arrives at a listener that was reached.
const WORD: &[u8] = b"reached\n";

/// MPTCP's number; Landlock's rules for TCP do not know it.
const MPTCP: u32 = 262;

type ProbeResult = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match attempt(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{arguments:?}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attempt(arguments: &[&str]) -> ProbeResult {
    match arguments {
        ["unix", path] => Ok(UnixStream::connect(path)?.write_all(WORD)?),
        ["datagram", path] => datagram(path),
        ["abstract", name] => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            Ok(UnixStream::connect_addr(&address)?.write_all(WORD)?)
        }
        ["tcp", address] => Ok(TcpStream::connect(address)?.write_all(WORD)?),
        ["udp", address] => {
            UdpSocket::bind("0.0.0.0:0")?.send_to(WORD, address)?;
            Ok(())
        }
        ["mptcp", address] => mptcp(address.parse()?),
        ["fastopen", address] => fast_open(address.parse()?),
        ["replace", path, from, to] => replace(path, &bytes(from)?, &bytes(to)?),
        ["seal", path, sum] => seal(path, &bytes(sum)?),
        ["attribute", path, name, value] => attribute(path, name, value),
        ["flood", path] => flood(Path::new(path)),
        ["guess", ports @ ..] => guess(ports),
        ["control", path, token] => control(path, token),
        ["panic", place, root, go] => panics(place, Path::new(root), Path::new(go)),
        ["flock", path, seconds] => hold(path, seconds.parse()?),
        _ => Err("unknown arguments".into()),
    }
}

fn datagram(path: &str) -> ProbeResult {
    let from = socket(AddressFamily::UNIX, SocketType::DGRAM, None)?;
    sendto(&from, WORD, SendFlags::empty(), &SocketAddrUnix::new(path)?)?;
    Ok(())
}

fn mptcp(address: SocketAddr) -> ProbeResult {
    let number = std::num::NonZeroU32::new(MPTCP).ok_or("not a protocol")?;
    let protocol = Protocol::from_raw(number);
    let stream = socket(AddressFamily::INET, SocketType::STREAM, Some(protocol))?;
    connect(&stream, &address)?;
    rustix::net::send(&stream, WORD, SendFlags::empty())?;
    Ok(())
}

/// Connects by sending: the kernel never sees a `connect`.
fn fast_open(address: SocketAddr) -> ProbeResult {
    let fast_open = SendFlags::from_bits_retain(0x2000_0000);
    let stream = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    sendto(&stream, WORD, fast_open, &address)?;
    Ok(())
}

/// Shows the live view as a program that runs a batch does, and panics at a sign.
fn panics(place: &str, root: &Path, go: &Path) -> ProbeResult {
    let view = Beside::of(&MemoryRoots::at(root)).ok_or("there is no terminal")?;
    view.show(&"hb1_probe".into());
    while !go.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    let panic = || -> () { panic!("a panic of the probe") };
    match place {
        "main" => panic(),
        _ => drop(std::thread::spawn(panic).join()),
    }
    view.end();
    writeln!(view.output(), "the probe continues")?;
    Ok(())
}

/// Reads hexadecimal digits.
fn bytes(digits: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let pairs = (0..digits.len() / 2).map(|at| &digits[2 * at..2 * at + 2]);
    Ok(pairs
        .map(|pair| u8::from_str_radix(pair, 16))
        .collect::<Result<_, _>>()?)
}

/// Puts bytes in the place of others, wherever these are.
fn replace(path: &str, from: &[u8], to: &[u8]) -> ProbeResult {
    let mut content = std::fs::read(path)?;
    let places: Vec<usize> = content
        .windows(from.len())
        .enumerate()
        .filter_map(|(at, part)| (part == from).then_some(at))
        .collect();
    for at in &places {
        content[*at..*at + to.len()].copy_from_slice(to);
    }
    std::fs::write(path, content)?;
    match places.is_empty() {
        true => Err("not found".into()),
        false => Ok(()),
    }
}

/// Sets an extended attribute of a file or folder, and says whether the file system
/// supports it.
fn attribute(path: &str, name: &str, value: &str) -> ProbeResult {
    let set = setxattr(path, name, value.as_bytes(), XattrFlags::empty());
    let answer = match set {
        Ok(()) => "set".to_owned(),
        Err(Errno::OPNOTSUPP) => "not supported".to_owned(),
        Err(error) => return Err(format!("attribute {name}: {error}").into()),
    };
    writeln!(std::io::stdout(), "attribute {name}: {answer}")?;
    Ok(())
}

/// Puts a sum over the last bytes of a file.
fn seal(path: &str, sum: &[u8]) -> ProbeResult {
    let mut content = std::fs::read(path)?;
    let rest = content.len().checked_sub(sum.len()).ok_or("too short")?;
    content.truncate(rest);
    content.extend_from_slice(sum);
    Ok(std::fs::write(path, content)?)
}

/// Floods the hooks of a lane: connections that send nothing, one that is never
/// closed, and one that sends as much as an event may have.
fn flood(path: &Path) -> ProbeResult {
    for _ in 0..200 {
        drop(door(path)?);
    }
    let silent = door(path)?;
    let mut long = door(path)?;
    let event = vec![b'x'; premath_hook::EVENT_MAX];
    long.write_all(&u32::try_from(event.len())?.to_be_bytes())?;
    long.write_all(&event)?;
    let mut answer = Vec::new();
    long.read_to_end(&mut answer)?;
    drop(silent);
    Ok(())
}

/// A stream of either kind.
trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// Connects to the hooks of a lane, as their program does.
fn door(path: &Path) -> Result<Box<dyn Stream>, Box<dyn Error>> {
    if !path.is_file() {
        return Ok(Box::new(UnixStream::connect(path)?));
    }
    let text = std::fs::read_to_string(path)?;
    let (port, token) = text.trim().split_once(' ').ok_or("no token")?;
    let mut stream = TcpStream::connect(("127.0.0.1", port.parse()?))?;
    stream.write_all(token.as_bytes())?;
    Ok(Box::new(stream))
}

/// Sends an event to ports without their token; fails where any answers.
fn guess(ports: &[&str]) -> ProbeResult {
    let event = br#"{"session_id":"s","hook_event_name":"UserPromptSubmit"}"#;
    for port in ports {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port.parse()?)) else {
            continue;
        };
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        let length = u32::try_from(event.len())?.to_be_bytes();
        let token = "0".repeat(premath_hook::TOKEN);
        let _ = stream.write_all(&[token.as_bytes(), &length, event].concat());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        if answer == [0; 4] {
            return Err("answered".into());
        }
    }
    Ok(())
}

/// Asks a batch to stop, as the operator's command does; fails where nothing is
/// answered.
fn control(path: &str, token: &str) -> ProbeResult {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    let kind = "premath.harness.control_request.v1";
    let request = format!(
        r#"{{"schema":1,"controlKind":"{kind}","token":"{token}","operation":{{"kind":"stop"}}}}"#
    );
    let _ = stream.write_all(format!("{request}\n").as_bytes());
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    match answer.is_empty() {
        true => Err("no answer".into()),
        false => Ok(()),
    }
}

/// Takes a lock through a descriptor that cannot write, and holds it.
fn hold(path: &str, seconds: u64) -> ProbeResult {
    let file = File::open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}
