//! The hook program of agents: hands an event to the lane's socket and prints the
//! answer.
//!
//! An agent starts it before and after every tool call, so that it starts fast:
//! it has no dependency, and knows nothing about agents. One connection an event:
//! four bytes of length in network order, then the bytes, both ways.
//!
//! Where a command must not use Unix sockets, a file names a port of this machine
//! and a token, which is sent first.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// The first argument that turns another binary of ours into the hook program.
pub const MODE: &str = "agent-hook";

/// The most bytes of an event.
pub const EVENT_MAX: usize = 16 << 20;

/// The most bytes of an answer.
const ANSWER_MAX: usize = 1 << 20;

/// How long an answer is waited for: agents wait 60 s, and let a call run whose
/// hook is late.
const PATIENCE: Duration = Duration::from_secs(50);

/// The exit code by which every agent denies a call.
const DENIED: u8 = 2;

/// The bytes of a token.
pub const TOKEN: usize = 32;

/// Runs the program; its argument is the path of the socket, or of the file with
/// the port and the token.
///
/// Whatever goes wrong denies the call: agents take any exit code but 2 for
/// consent.
pub fn main(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match exchange(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The agent shows it to the model.
            let _ = writeln!(
                io::stderr(),
                "the tool gate of the harness cannot be reached: {error}"
            );
            ExitCode::from(DENIED)
        }
    }
}

fn exchange(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let path = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let mut event = Vec::new();
    let mut input = io::stdin().lock().take(EVENT_MAX as u64 + 1);
    input.read_to_end(&mut event)?;
    if event.len() > EVENT_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let path = Path::new(&path);
    if fs::metadata(path)?.is_file() {
        let text = fs::read_to_string(path)?;
        let (port, token) = text
            .trim()
            .split_once(' ')
            .ok_or(io::ErrorKind::InvalidData)?;
        let port: u16 = port.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(token.as_bytes())?;
        return converse(&mut stream, &event);
    }
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    converse(&mut stream, &event)
}

/// Sends an event and prints what is answered.
fn converse(stream: &mut (impl Read + Write), event: &[u8]) -> io::Result<()> {
    let length = u32::try_from(event.len()).unwrap_or(u32::MAX);
    stream.write_all(&length.to_be_bytes())?;
    stream.write_all(event)?;
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    if length > ANSWER_MAX {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut answer = vec![0; length];
    stream.read_exact(&mut answer)?;
    io::stdout().write_all(&answer)
}
