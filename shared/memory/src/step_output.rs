//! What the commands of a step printed, read while they run and afterwards.
//!
//! A step without confinement can write these files: they are read as
//! [`UntrustedFolder`] reads, and in bounded parts.

use crate::artifact;
use crate::roots::MemoryRoots;
use crate::untrusted::{UntrustedError, UntrustedFolder};
use flate2::read::GzDecoder;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

/// The most bytes of a compressed stream that are decompressed.
const UNPACKED_MAX: u64 = 1 << 30;

/// Which of a command's streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OutputStream {
    /// Its output.
    Stdout,
    /// Its error output.
    Stderr,
}

impl OutputStream {
    /// Returns its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// A stream of a command of a step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommandOutput {
    /// Which command, as in `work` or `verify-2`.
    pub phase: String,
    /// Which of its streams.
    pub stream: OutputStream,
}

/// A part of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputPart {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// How many bytes before them were left out.
    pub skipped: u64,
    /// Where the next part begins.
    pub end: u64,
}

/// The output of a step's commands.
#[derive(Debug)]
pub struct StepOutput {
    folder: Option<UntrustedFolder>,
    /// What the names of the files begin with.
    prefix: String,
}

impl StepOutput {
    /// Opens the output of a step; there may be none yet.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`], also where the folder is a link.
    pub fn open(roots: &MemoryRoots, step_id: &str) -> Result<Self, UntrustedError> {
        let below = roots.streams.strip_prefix(&roots.repository);
        let below = below.unwrap_or(Path::new("artifacts/streams"));
        let folder = match UntrustedFolder::open(&roots.repository, below) {
            Ok(folder) => Some(folder),
            Err(UntrustedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                None
            }
            Err(error) => return Err(error),
        };
        let file = artifact::of_step(Path::new(""), step_id, "", "");
        let stem = file.to_string_lossy();
        let prefix = format!("{}.", stem.strip_suffix("..").unwrap_or(&stem));
        Ok(Self { folder, prefix })
    }

    /// Lists the streams of the step, those of its first command first.
    ///
    /// # Errors
    ///
    /// [`UntrustedError::Io`].
    pub fn list(&self) -> Result<Vec<CommandOutput>, UntrustedError> {
        let Some(folder) = &self.folder else {
            return Ok(Vec::new());
        };
        let mut found: Vec<CommandOutput> = Vec::new();
        // A command's error output is never compressed: its time is one at which
        // the command ran.
        let mut times: BTreeMap<String, (Reverse<OutputStream>, SystemTime)> = BTreeMap::new();
        for name in folder.names()? {
            let Some(output) = self.read_name(&name) else {
                continue;
            };
            let opened = folder.open_file(&name).ok().flatten();
            let modified = opened.and_then(|(file, _)| file.metadata().ok()?.modified().ok());
            let time = (
                Reverse(output.stream),
                modified.unwrap_or(SystemTime::UNIX_EPOCH),
            );
            let entry = times.entry(output.phase.clone()).or_insert(time);
            if time.0 <= entry.0 {
                *entry = time;
            }
            if !found.contains(&output) {
                found.push(output);
            }
        }
        found.sort_by_cached_key(|output| {
            let time = times.get(&output.phase).map(|(_, time)| *time);
            (time, output.clone())
        });
        Ok(found)
    }

    fn read_name(&self, name: &str) -> Option<CommandOutput> {
        let rest = name.strip_prefix(&*self.prefix)?;
        let rest = rest.strip_suffix(".gz").unwrap_or(rest);
        let (phase, kind) = rest.rsplit_once('.')?;
        let stream = match kind {
            "stdout" => OutputStream::Stdout,
            "stderr" => OutputStream::Stderr,
            _ => return None,
        };
        let is_phase = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        phase.bytes().all(is_phase).then(|| CommandOutput {
            phase: phase.to_owned(),
            stream,
        })
    }

    /// Reads a stream from a place on, of what is there the last `most` bytes.
    ///
    /// # Errors
    ///
    /// [`UntrustedError`].
    pub fn read(
        &self,
        output: &CommandOutput,
        from: u64,
        most: usize,
    ) -> Result<OutputPart, UntrustedError> {
        let nothing = OutputPart {
            end: from,
            ..OutputPart::default()
        };
        let Some(folder) = &self.folder else {
            return Ok(nothing);
        };
        let kind = output.stream.as_str();
        let name = format!("{}{}.{kind}", self.prefix, output.phase);
        let packed = format!("{name}.gz");
        let path = folder.path().join(&name);
        let read = if let Some((file, size)) = folder.open_file(&name)? {
            read_plain(file, size, from, most)
        } else if let Some((file, _)) = folder.open_file(&packed)? {
            read_packed(file, from, most)
        } else {
            return Ok(nothing);
        };
        read.map_err(|source| UntrustedError::Io {
            operation: "read",
            path,
            source,
        })
    }
}

fn read_plain(mut file: File, size: u64, from: u64, most: usize) -> io::Result<OutputPart> {
    // A stream that was cut is shorter than it was while it ran.
    let from = from.min(size);
    let begin = from.max(size.saturating_sub(most as u64));
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(size - begin).read_to_end(&mut bytes)?;
    Ok(OutputPart {
        end: begin + bytes.len() as u64,
        skipped: begin - from,
        bytes,
    })
}

fn read_packed(file: File, from: u64, most: usize) -> io::Result<OutputPart> {
    let mut unpacked = GzDecoder::new(file).take(UNPACKED_MAX);
    io::copy(&mut Read::by_ref(&mut unpacked).take(from), &mut io::sink())?;
    let mut bytes = Vec::new();
    let mut skipped = 0;
    loop {
        let before = bytes.len();
        Read::by_ref(&mut unpacked)
            .take(most as u64 + 1)
            .read_to_end(&mut bytes)?;
        if bytes.len() == before {
            break;
        }
        let excess = bytes.len().saturating_sub(most);
        bytes.drain(..excess);
        skipped += excess as u64;
    }
    Ok(OutputPart {
        end: from + skipped + bytes.len() as u64,
        skipped,
        bytes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const STEP: &str = "st1_a/7";

    fn scene() -> (tempfile::TempDir, MemoryRoots) {
        let folder = tempfile::tempdir().unwrap();
        let roots = MemoryRoots::at(folder.path());
        fs::create_dir_all(&roots.streams).unwrap();
        (folder, roots)
    }

    fn file(roots: &MemoryRoots, phase: &str, kind: &str) -> std::path::PathBuf {
        artifact::of_step(&roots.streams, STEP, phase, kind)
    }

    fn output(phase: &str, stream: OutputStream) -> CommandOutput {
        CommandOutput {
            phase: phase.to_owned(),
            stream,
        }
    }

    #[test]
    fn commands_are_listed_as_they_ran_with_compressed_streams_among_them() {
        let (_folder, roots) = scene();
        let before = SystemTime::now() - std::time::Duration::from_secs(60);
        for (number, phase) in ["setup", "work", "verify"].into_iter().enumerate() {
            for kind in ["stdout", "stderr"] {
                let path = file(&roots, phase, kind);
                fs::write(&path, format!("{phase} {kind}\n")).unwrap();
                let time = before + std::time::Duration::from_secs(number as u64);
                File::options()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_modified(time)
                    .unwrap();
            }
        }
        artifact::compress(&file(&roots, "work", "stdout")).unwrap();
        for other in ["work.prompt", "work.hooks.jsonl", "x.y.stdout"] {
            let (phase, kind) = other.split_once('.').unwrap();
            fs::write(file(&roots, phase, kind), "").unwrap();
        }
        let step = StepOutput::open(&roots, STEP).unwrap();
        let listed: Vec<_> = ["setup", "work", "verify"]
            .into_iter()
            .flat_map(|phase| {
                [OutputStream::Stdout, OutputStream::Stderr].map(|stream| output(phase, stream))
            })
            .collect();
        assert_eq!(step.list().unwrap(), listed);
        let read = |phase, from, most| {
            let read = step.read(&output(phase, OutputStream::Stdout), from, most);
            let part = read.unwrap();
            (
                String::from_utf8(part.bytes).unwrap(),
                part.skipped,
                part.end,
            )
        };
        // "setup stdout\n" and "work stdout\n".
        assert_eq!(read("setup", 0, 100), ("setup stdout\n".into(), 0, 13));
        assert_eq!(read("setup", 6, 4), ("out\n".into(), 3, 13));
        assert_eq!(read("setup", 13, 4), (String::new(), 0, 13));
        assert_eq!(read("setup", 99, 4), (String::new(), 0, 13));
        assert_eq!(read("work", 0, 100), ("work stdout\n".into(), 0, 12));
        assert_eq!(read("work", 5, 4), ("out\n".into(), 3, 12));
        assert_eq!(read("work", 12, 4), (String::new(), 0, 12));
        assert_eq!(read("stop", 3, 4), (String::new(), 0, 3));
        let other = StepOutput::open(&roots, "st1_a").unwrap();
        assert_eq!(other.list().unwrap(), []);
    }

    #[test]
    fn a_link_or_a_pipe_in_the_place_of_a_stream_is_refused() {
        let (folder, roots) = scene();
        fs::write(folder.path().join("secret"), "x").unwrap();
        symlink(folder.path().join("secret"), file(&roots, "work", "stdout")).unwrap();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            file(&roots, "verify", "stdout"),
            rustix::fs::Mode::RUSR,
        )
        .unwrap();
        let step = StepOutput::open(&roots, STEP).unwrap();
        assert_eq!(step.list().unwrap().len(), 2);
        for phase in ["work", "verify"] {
            let read = step.read(&output(phase, OutputStream::Stdout), 0, 9);
            assert!(matches!(read, Err(UntrustedError::NotRegular { .. })));
        }
    }
}
