//! Podman or docker, as far as an image's files need it.

use super::unpack::UnpackError;
use super::{ContainerImage, ImageError};
use serde::Deserialize;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

/// The programs, the first that is found is taken.
const PROGRAMS: [&str; 2] = ["podman", "docker"];

/// The most bytes of an answer.
const ANSWER_MAX: u64 = 16 << 20;
/// The most bytes that are kept of what a program says about a failure.
const STDERR_MAX: u64 = 64 << 10;
/// What is printed in the place of messages that a person has seen.
const SEEN: &str = "its messages are above";
/// The digits of an image id (SHA-256).
const ID_DIGITS: usize = 64;

/// The program that has images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Engine {
    program: PathBuf,
}

/// The program is not there, or does not do what it is asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// Neither program is found.
    #[error("neither podman nor docker is in PATH")]
    Missing,
    /// The program cannot be started.
    #[error("cannot start {program}")]
    Start {
        /// The program.
        program: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It ended with an error.
    #[error("`{command}` failed: {detail}")]
    Failed {
        /// The program with its arguments.
        command: String,
        /// The last message of the program.
        detail: String,
    },
    /// The answer of the program cannot be read.
    #[error("cannot read the answer of `{command}`: {detail}")]
    Answer {
        /// The program with its arguments.
        command: String,
        /// The reason why the answer cannot be read.
        detail: String,
    },
}

/// An image as `image inspect` shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Inspected {
    pub(super) id: String,
    pub(super) variables: Vec<(String, String)>,
}

/// The parts of the answer that count; podman's and docker's are the same.
#[derive(Debug, Deserialize)]
struct Answer {
    #[serde(rename = "Id")]
    id: String,
    #[serde(rename = "Config", default)]
    config: Option<Config>,
}

#[derive(Debug, Default, Deserialize)]
struct Config {
    #[serde(rename = "Env", default)]
    env: Option<Vec<String>>,
}

impl Engine {
    /// Finds the program in the folders of `path`. Relative folders are left
    /// out: a step can have written there.
    ///
    /// # Errors
    ///
    /// [`EngineError::Missing`].
    pub(crate) fn find(path: &OsStr) -> Result<Self, EngineError> {
        let is_program = |path: &PathBuf| {
            std::fs::metadata(path)
                .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
        };
        PROGRAMS
            .into_iter()
            .flat_map(|name| std::env::split_paths(path).map(move |folder| folder.join(name)))
            .filter(|path| path.is_absolute())
            .find(is_program)
            .map(|program| Self { program })
            .ok_or(EngineError::Missing)
    }

    /// Reads what the engine knows about a local image.
    pub(super) fn inspect(&self, image: &str) -> Result<Inspected, EngineError> {
        let arguments = ["image", "inspect", image];
        let text = self.answer(&arguments)?;
        read(&text).map_err(|detail| EngineError::Answer {
            command: self.command_line(&arguments),
            detail,
        })
    }

    /// Fetches an image from its registry. A person at a terminal sees how far
    /// it is.
    pub(super) fn pull(&self, image: &str) -> Result<(), EngineError> {
        let shown = io::stderr().is_terminal().then(io::stderr);
        self.answer_beside(
            &["pull", image],
            shown.map_or_else(Stdio::piped, Stdio::from),
        )
        .map(drop)
    }

    /// Gives the files of an image, as a tar archive, to `unpack`.
    pub(super) fn export(
        &self,
        image: &ContainerImage,
        unpack: impl FnOnce(&mut dyn Read) -> Result<(), UnpackError>,
    ) -> Result<(), ImageError> {
        // The command is never run; an image without one of its own needs it.
        let made = self.answer(&["create", "--network", "none", &image.id, "/bin/sh"])?;
        let id = made.lines().next_back().unwrap_or_default().trim();
        let container = Container { engine: self, id };
        let arguments = ["export", container.id];
        let mut running = self.start(&arguments, Stdio::piped())?;
        let unpacked = unpack(&mut running.stdout);
        let ended = running.end(unpacked.is_err());
        match (unpacked, ended) {
            // An archive that ends early is the program's failure.
            (Ok(()) | Err(UnpackError::Read(_)), Ok((status, stderr))) if !status.success() => {
                Err(self.failed(&arguments, &stderr).into())
            }
            (Err(source), _) => Err(ImageError::Unpack {
                image: image.name.clone(),
                source,
            }),
            (Ok(()), Err(error)) => Err(self.failed(&arguments, &error.to_string()).into()),
            (Ok(()), Ok(_)) => Ok(()),
        }
    }

    /// Runs the program to its end; returns what it printed.
    fn answer(&self, arguments: &[&str]) -> Result<String, EngineError> {
        self.answer_beside(arguments, Stdio::piped())
    }

    fn answer_beside(&self, arguments: &[&str], stderr: Stdio) -> Result<String, EngineError> {
        let mut running = self.start(arguments, stderr)?;
        let mut text = Vec::new();
        let read = (&mut running.stdout)
            .take(ANSWER_MAX)
            .read_to_end(&mut text);
        let ended = read.and_then(|_| running.end(false));
        match ended {
            Ok((status, _)) if status.success() => Ok(String::from_utf8_lossy(&text).into_owned()),
            Ok((_, stderr)) => Err(self.failed(arguments, &stderr)),
            Err(error) => Err(self.failed(arguments, &error.to_string())),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "this is the supervisor's module; the program runs before any lane begins"
    )]
    fn start(&self, arguments: &[&str], stderr: Stdio) -> Result<Running, EngineError> {
        let failed = |source| EngineError::Start {
            program: self.program.clone(),
            source,
        };
        let mut child = Command::new(&self.program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(failed)?;
        let Some(stdout) = child.stdout.take() else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let stderr = child.stderr.take();
        Ok(Running {
            stdout,
            stderr: stderr.map(|stderr| std::thread::spawn(move || read_start(stderr))),
            child,
        })
    }

    fn failed(&self, arguments: &[&str], stderr: &str) -> EngineError {
        let last = stderr.lines().rfind(|line| !line.trim().is_empty());
        EngineError::Failed {
            command: self.command_line(arguments),
            detail: last.unwrap_or("no message").trim().to_owned(),
        }
    }

    fn command_line(&self, arguments: &[&str]) -> String {
        let name = self.program.file_name().unwrap_or_default();
        format!("{} {}", name.to_string_lossy(), arguments.join(" "))
    }
}

/// A container that was made; it is removed with this value.
struct Container<'a> {
    engine: &'a Engine,
    id: &'a str,
}

impl Drop for Container<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.engine.answer(&["rm", self.id]) {
            let container = self.id;
            tracing::warn!(%container, %error, "a container that was made for its files is left");
        }
    }
}

/// The program at work.
struct Running {
    child: Child,
    stdout: std::process::ChildStdout,
    /// None where a person sees it.
    stderr: Option<JoinHandle<String>>,
}

impl Running {
    /// Waits for its end, and returns what it printed about it. What it still
    /// prints is not read.
    fn end(self, is_cut: bool) -> io::Result<(ExitStatus, String)> {
        let Self {
            mut child,
            mut stdout,
            stderr,
        } = self;
        if !is_cut {
            io::copy(&mut stdout, &mut io::sink())?;
        }
        drop(stdout);
        let status = child.wait()?;
        let printed = stderr.map(|stderr| stderr.join().unwrap_or_default());
        Ok((status, printed.unwrap_or_else(|| SEEN.to_owned())))
    }
}

/// Keeps the beginning of what a program prints, and reads the rest too: it
/// would wait for its reader.
fn read_start(mut stderr: impl Read) -> String {
    let mut kept = Vec::new();
    let _ = (&mut stderr).take(STDERR_MAX).read_to_end(&mut kept);
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&kept).into_owned()
}

/// Reads the answer of `image inspect`: a list with one image.
fn read(text: &str) -> Result<Inspected, String> {
    let answers: Vec<Answer> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let [answer]: [Answer; 1] = answers
        .try_into()
        .map_err(|answers: Vec<Answer>| format!("{} images, not one", answers.len()))?;
    let id = answer.id.strip_prefix("sha256:").unwrap_or(&answer.id);
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if id.len() != ID_DIGITS || !id.bytes().all(is_digit) {
        return Err(format!("`{id}` is not an image id"));
    }
    let env = answer.config.and_then(|config| config.env);
    let variables = env.unwrap_or_default();
    let variables = variables.iter().filter_map(|text| text.split_once('='));
    Ok(Inspected {
        id: id.to_owned(),
        variables: variables
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn both_programs_answers_are_read() {
        let id = "0123456789abcdef".repeat(4);
        for (prefix, config) in [
            ("", r#"{"Env":["PATH=/bin","A=b=c","=x","y"]}"#),
            ("sha256:", r#"{"Env":["PATH=/bin","A=b=c"]}"#),
        ] {
            let read = read(&format!(r#"[{{"Id":"{prefix}{id}","Config":{config}}}]"#)).unwrap();
            assert_eq!(read.id, id);
            let expected = [("PATH", "/bin"), ("A", "b=c")];
            assert_eq!(
                read.variables,
                expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
            );
        }
        let bare = read(&format!(r#"[{{"Id":"{id}","Config":null}}]"#)).unwrap();
        assert!(bare.variables.is_empty());
    }

    #[test]
    fn an_id_that_is_none_names_no_folder() {
        for id in ["../../x", "", &"G".repeat(64), &"a".repeat(65)] {
            let answer = format!(r#"[{{"Id":"{id}","Config":{{}}}}]"#);
            assert!(read(&answer).unwrap_err().contains("not an image id"));
        }
        assert_eq!(read("[]").unwrap_err(), "0 images, not one");
    }

    #[test]
    fn the_program_is_not_taken_from_a_relative_folder() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("docker");
        std::fs::write(&program, "").unwrap();
        let path = std::env::join_paths([Path::new("bin"), folder.path()]).unwrap();
        assert!(matches!(Engine::find(&path), Err(EngineError::Missing)));
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(Engine::find(&path).unwrap().program, program);
        assert!(matches!(
            Engine::find(OsStr::new(".")),
            Err(EngineError::Missing)
        ));
    }
}
