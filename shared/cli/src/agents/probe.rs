//! Programs of agents: where they are, and what they say.

use premath_platform::process::Handle;
use rustix::process::{Pid, Signal, kill_process_group};
use std::env;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The most that is read of a program's output.
const MOST: u64 = 64 << 20;

/// How long a program may take to end that said its last.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);

/// Finds a program on PATH, as a shell would.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The end of a program.
#[derive(Debug)]
pub(super) struct Ended {
    /// The bytes of its standard output.
    pub(super) stdout: Vec<u8>,
    /// The bytes of its standard error.
    pub(super) stderr: Vec<u8>,
    /// Its exit code, where it ended by itself.
    pub(super) code: Option<i32>,
    /// Whether it was ended because it took too long.
    pub(super) timed_out: bool,
}

/// Returns a command of ours: nothing but `premath agents check` starts any
/// here, and only the programs that it was asked about.
#[expect(
    clippy::disallowed_methods,
    reason = "`premath agents check` is the only command that starts programs"
)]
pub(super) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}

/// Runs a command to its end, or for so long; what it started goes with it.
///
/// # Errors
///
/// It cannot be started.
pub(super) fn run(mut command: Command, limit: Duration) -> io::Result<Ended> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()?;
    let group = Pid::from_child(&child);
    let ended = read(child.stdout.take());
    let complained = read(child.stderr.take());
    let read = ended.recv_timeout(limit);
    let timed_out = matches!(read, Err(RecvTimeoutError::Timeout));
    if timed_out {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let stdout = match read {
        Ok(stdout) => stdout,
        Err(_) => ended
            .recv_timeout(Duration::from_secs(1))
            .unwrap_or_default(),
    };
    // Its output is closed: it ends now, or is made to.
    let is_ending = !timed_out && child.try_wait()?.is_none();
    if is_ending && !Handle::open(group)?.has_ended_within(EXIT_TIMEOUT) {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let status = child.wait()?;
    // Whatever it left behind in its group.
    let _ = kill_process_group(group, Signal::KILL);
    let stderr = complained.recv_timeout(Duration::from_secs(1));
    Ok(Ended {
        stdout,
        stderr: stderr.unwrap_or_default(),
        code: status.code(),
        timed_out,
    })
}

/// Reads a pipe to its end, beside what else is done.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, ended) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(pipe) = pipe {
            let _ = pipe.take(MOST).read_to_end(&mut bytes);
        }
        let _ = send.send(bytes);
    });
    ended
}

/// Asks a program for its version.
///
/// # Errors
///
/// What it did instead.
pub(super) fn version(program: &Path, limit: Duration) -> Result<String, String> {
    let mut asked = command(program);
    asked.arg("--version");
    let ended = run(asked, limit).map_err(|error| format!("cannot be started: {error}"))?;
    if ended.timed_out {
        return Err("did not end".to_owned());
    }
    let text = String::from_utf8_lossy(&ended.stdout).into_owned();
    match (
        ended.code,
        text.lines().find(|line| !line.trim().is_empty()),
    ) {
        (Some(0), Some(line)) => Ok(line.trim().chars().take(100).collect()),
        (Some(0), None) => Err("printed nothing".to_owned()),
        (Some(code), _) => Err(format!("exited with {code}")),
        (None, _) => Err("was killed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_says_its_version_or_what_it_did_instead() {
        let folder = tempfile::tempdir().unwrap();
        let script = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            path
        };
        let ask = |path: &Path| version(path, Duration::from_secs(60));
        assert_eq!(ask(&script("a", "echo; echo ' v1.2 '")).unwrap(), "v1.2");
        assert_eq!(ask(&script("b", "exit 3")).unwrap_err(), "exited with 3");
        assert_eq!(ask(&script("c", "true")).unwrap_err(), "printed nothing");
        let hangs = script("d", "sleep 600 & sleep 600");
        let said = version(&hangs, Duration::from_millis(50));
        assert_eq!(said.unwrap_err(), "did not end");
        assert!(
            ask(&folder.path().join("none"))
                .unwrap_err()
                .contains("cannot be started")
        );
    }
}
