//! What a shell cannot do: sockets of every kind and locks, for the hostile
//! steps of the escape suite. It exits with 0 where the attempt went through.

use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    AddressFamily, Protocol, SendFlags, SocketAddrUnix, SocketType, connect, sendto, socket,
};
use std::error::Error;
use std::fs::File;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
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

/// Puts a sum over the last bytes of a file.
fn seal(path: &str, sum: &[u8]) -> ProbeResult {
    let mut content = std::fs::read(path)?;
    let rest = content.len().checked_sub(sum.len()).ok_or("too short")?;
    content.truncate(rest);
    content.extend_from_slice(sum);
    Ok(std::fs::write(path, content)?)
}

/// Takes a lock through a descriptor that cannot write, and holds it.
fn hold(path: &str, seconds: u64) -> ProbeResult {
    let file = File::open(path)?;
    flock(&file, FlockOperation::LockExclusive)?;
    std::thread::sleep(Duration::from_secs(seconds));
    Ok(())
}
