//! What goes over the control socket.
//!
//! A frame is its length as four little-endian bytes, then JSON. A byte stream
//! with lengths, and not `SOCK_SEQPACKET`, because a command's environment may
//! be larger than a socket's buffer, which no single packet can be. Both ends
//! are the same executable, and fields that are added later have a default.

use super::command::CommandSpec;
use super::confine::landlock::Lists;
use super::confine::namespaces::{CommandBounds, View};
use super::usage::Ceilings;
use premath_kernel::json::canonical::sha256_hex;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

/// A longer frame is a mistake; Linux takes no such argument list either.
pub(super) const MAX_FRAME: usize = 32 << 20;

/// How many descriptors come with a [`Request::Begin`]: stdout's and stderr's.
pub(super) const STREAMS: usize = 2;

/// A message from the lane to its supervisor.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// Run a command; its stream files come with the frame's first byte.
    Begin(Box<Begin>),
    /// End the command, if it is still the one that runs.
    Stop {
        /// The command's number.
        id: u64,
        /// Kill it without a grace.
        now: bool,
    },
}

/// A command on the wire.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Begin {
    pub(super) id: u64,
    pub(super) program: OsText,
    pub(super) args: Vec<OsText>,
    pub(super) env: Vec<(OsText, OsText)>,
    pub(super) cwd: OsText,
    pub(super) limit_ms: u64,
    pub(super) grace_ms: u64,
    #[serde(default)]
    pub(super) release_ms: u64,
    pub(super) output_cap: u64,
    #[serde(default)]
    pub(super) stream_cap: Option<u64>,
    #[serde(default)]
    pub(super) lists: Option<Lists>,
    #[serde(default)]
    pub(super) bounds: CommandBounds,
    #[serde(default)]
    pub(super) view: Option<View>,
    #[serde(default)]
    pub(super) ceilings: Ceilings,
    #[serde(default)]
    pub(super) scratch: Vec<OsText>,
}

impl Begin {
    pub(super) fn new(id: u64, spec: CommandSpec) -> Self {
        Self {
            id,
            program: OsText(spec.program),
            args: spec.args.into_iter().map(OsText).collect(),
            env: spec
                .env
                .into_iter()
                .map(|(name, value)| (OsText(name), OsText(value)))
                .collect(),
            cwd: OsText(spec.cwd.into_os_string()),
            limit_ms: milliseconds(spec.limit),
            grace_ms: milliseconds(spec.grace),
            release_ms: milliseconds(spec.release),
            output_cap: spec.output_cap,
            stream_cap: spec.stream_cap,
            lists: spec.lists,
            bounds: spec.bounds,
            view: spec.view,
            ceilings: spec.ceilings,
            scratch: spec
                .scratch
                .into_iter()
                .map(|path| OsText(path.into()))
                .collect(),
        }
    }
}

/// A message from the supervisor to its lane.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Report {
    /// The command's main process, and with it its process group, exists.
    Started { id: u64, pid: i32 },
    /// The command is over and nothing of it is left.
    Exited { id: u64, exit: Exit },
}

/// Says how a command ended and what it left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    /// The exit code, where the main process ended by itself.
    pub code: Option<i32>,
    /// The number of the signal that ended the main process.
    pub signal: Option<i32>,
    /// Why the command is over.
    pub cause: ExitCause,
    /// The milliseconds from the start until nothing of the command was left.
    pub duration_ms: u64,
    /// What it wrote to its standard output.
    pub stdout: StreamReport,
    /// What it wrote to its standard error.
    pub stderr: StreamReport,
    /// How many processes beside the main one had to be killed.
    ///
    /// After a command that ended by itself these are the ones it leaked.
    pub leaked: u32,
    /// How many processes of the command could not be ended: they run as
    /// another user, or the kernel does not release them. The lane's worktree
    /// cannot be trusted while there are any.
    #[serde(default)]
    pub survivors: u32,
}

impl Exit {
    /// Returns whether the command was not started because it could not be
    /// confined.
    pub const fn is_unconfined(&self) -> bool {
        matches!(
            self.cause,
            ExitCause::SpawnFailed {
                kind: SpawnFailure::Confinement,
                ..
            }
        )
    }

    /// Returns whether the main process ended by itself with code 0, within its
    /// limit.
    pub fn succeeded(&self) -> bool {
        self.cause == ExitCause::Exited && self.code == Some(0)
    }
}

/// Says why a command is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCause {
    /// Its main process ended by itself.
    Exited,
    /// It ran over its limit.
    Limit,
    /// The lane asked for its end.
    Stopped,
    /// It used more of something than it may.
    Exceeded(Resource),
    /// The command could not be started.
    SpawnFailed {
        /// The cause.
        kind: SpawnFailure,
        /// The system's own words.
        message: String,
    },
}

/// Describes which limit a command exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory of all its processes together.
    Memory,
    /// Files that the command wrote.
    Disk,
    /// Processes at once.
    Processes,
}

impl Resource {
    /// Returns the name of the resource, which is its key under `[limits]`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Processes => "processes",
        }
    }
}

/// Says what kept a command from being started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SpawnFailure {
    /// There is no such program.
    NotFound,
    /// The program may not be executed.
    PermissionDenied,
    /// The working directory is missing or is not a directory.
    WorkingDirectory,
    /// The command could not be confined as asked for.
    Confinement,
    /// Anything else, as the message says.
    Other,
}

/// Says what went through one output stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamReport {
    /// How many bytes the command wrote, kept or not.
    pub bytes: u64,
    /// The lower-case hexadecimal SHA-256 of all of them.
    pub sha256: String,
    /// How many bytes were cut out of the middle of the file.
    pub cut_bytes: u64,
    /// Why the file is not complete, where writing it failed.
    pub write_error: Option<String>,
}

impl StreamReport {
    /// Returns the report of a stream that nothing ever wrote to.
    pub(super) fn nothing() -> Self {
        Self {
            bytes: 0,
            sha256: sha256_hex(b""),
            cut_bytes: 0,
            write_error: None,
        }
    }

    /// Returns whether the file lacks bytes because the stream went over its
    /// cap.
    pub fn truncated(&self) -> bool {
        self.cut_bytes > 0
    }
}

/// A system string that is plain text in JSON wherever it is UTF-8, and a list
/// of bytes elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OsText(pub(super) OsString);

impl From<&std::path::Path> for OsText {
    fn from(path: &std::path::Path) -> Self {
        Self(path.as_os_str().to_owned())
    }
}

impl Serialize for OsText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_seq(self.0.as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for OsText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrBytes;

        impl<'de> Visitor<'de> for TextOrBytes {
            type Value = OsString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of bytes")
            }

            fn visit_str<E>(self, text: &str) -> Result<OsString, E> {
                Ok(OsStr::new(text).to_owned())
            }

            fn visit_string<E>(self, text: String) -> Result<OsString, E> {
                Ok(text.into())
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OsString, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = list.next_element()? {
                    bytes.push(byte);
                }
                Ok(OsString::from_vec(bytes))
            }
        }

        deserializer.deserialize_any(TextOrBytes).map(Self)
    }
}

/// Returns a message as the bytes of its frame.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > MAX_FRAME {
        return Err(io::Error::new(
            io::ErrorKind::ArgumentListTooLong,
            format!("a message of {length} bytes is too long"),
        ));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_le_bytes());
    Ok(bytes)
}

/// Bytes that came in and have not made a whole frame yet.
#[derive(Debug, Default)]
pub(super) struct FrameBuffer(Vec<u8>);

impl FrameBuffer {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Takes the next whole message out.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        let Some((head, rest)) = self.0.split_first_chunk::<4>() else {
            return Ok(None);
        };
        let length = u32::from_le_bytes(*head) as usize;
        if length > MAX_FRAME {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a frame of {length} bytes is too long"),
            ));
        }
        let Some(body) = rest.get(..length) else {
            return Ok(None);
        };
        let message = serde_json::from_slice(body)?;
        self.0.drain(..4 + length);
        Ok(Some(message))
    }
}

/// Returns a duration in whole milliseconds, the largest there is for one that
/// is longer.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_whole_however_it_arrives() {
        let sent = frame(&Request::Stop { id: 7, now: true }).unwrap();
        let mut inbox = FrameBuffer::default();
        for byte in &sent[..sent.len() - 1] {
            inbox.push(&[*byte]);
            assert!(inbox.next::<Request>().unwrap().is_none());
        }
        inbox.push(&sent[sent.len() - 1..]);
        inbox.push(&sent);
        for _ in 0..2 {
            assert!(matches!(
                inbox.next::<Request>().unwrap(),
                Some(Request::Stop { id: 7, now: true })
            ));
        }
        assert!(inbox.next::<Request>().unwrap().is_none());
    }

    #[test]
    fn a_frame_that_claims_too_much_is_refused_before_it_arrives() {
        let mut inbox = FrameBuffer::default();
        inbox.push(&u32::MAX.to_le_bytes());
        assert!(inbox.next::<Request>().is_err());
    }

    #[test]
    fn a_string_that_is_not_utf8_survives_the_wire() {
        for bytes in [&b"plain"[..], b"", b"\xff\x00x"] {
            let text = OsText(OsString::from_vec(bytes.to_vec()));
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(serde_json::from_str::<OsText>(&json).unwrap(), text);
        }
    }
}
