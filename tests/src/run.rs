//! One run of a program: started, signalled, waited for.

use crate::terminal::Terminal;
use crate::wait::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A program that is yet to be started, hermetically.
#[derive(Debug)]
pub struct Run {
    command: Command,
    output: PathBuf,
}

impl Run {
    /// Makes a run whose output goes to `<output>.stdout` and `.stderr`.
    pub(crate) fn new(program: &Path, output: PathBuf) -> Self {
        let mut command = crate::command(program);
        command.env_clear().stdin(Stdio::null());
        Self { command, output }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<T: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = T>) -> Self {
        self.command.args(arguments);
        self
    }

    /// Sets a variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts in another folder.
    #[must_use]
    pub fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Removes a variable.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs as another user, with the group of the same number and no others.
    /// Only root can do that.
    #[must_use]
    pub fn user(mut self, id: u32) -> Self {
        self.command.uid(id).gid(id);
        self
    }

    /// Starts it.
    pub fn start(mut self) -> Running {
        let [stdout, stderr] = ["stdout", "stderr"].map(|name| self.output.with_extension(name));
        let file = |path: &Path| File::create(path).expect("the folder of outputs is there");
        self.command.stdout(file(&stdout)).stderr(file(&stderr));
        let command_line = format!("{:?}", self.command);
        let child = self.command.spawn().unwrap_or_else(|error| {
            panic!("cannot start {:?}: {error}", self.command.get_program())
        });
        Running {
            child,
            stdout,
            stderr,
            command_line,
        }
    }

    /// Starts it on a terminal of its own, of this size.
    pub fn on_terminal(self, columns: u16, rows: u16) -> Terminal {
        Terminal::start(&self.command, (columns, rows))
    }

    /// Starts it and waits for its end.
    pub fn end(self) -> Ended {
        self.start().wait()
    }
}

/// A program that runs; dropped, it is killed.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: PathBuf,
    stderr: PathBuf,
    command_line: String,
}

impl Running {
    /// Returns the process.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal, and only it.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process is there");
    }

    /// Returns what it printed so far.
    pub fn stdout(&self) -> String {
        read(&self.stdout)
    }

    /// Returns its output so far.
    pub fn stderr(&self) -> String {
        read(&self.stderr)
    }

    /// Returns the events it printed so far, as `--json` prints them.
    pub fn events(&self) -> Vec<Value> {
        crate::parse_rows(self.stdout().as_bytes())
    }

    /// Returns whether it is over.
    pub fn is_over(&mut self) -> bool {
        self.child
            .try_wait()
            .expect("a child can be asked")
            .is_some()
    }

    /// Waits for its end.
    pub fn wait(self) -> Ended {
        self.wait_within(PATIENCE)
    }

    /// Waits for its end, which must come within a time.
    pub fn wait_within(mut self, patience: Duration) -> Ended {
        let began = Instant::now();
        if !self.is_over() {
            let descriptor =
                pidfd_open(self.pid(), PidfdFlags::empty()).expect("a child has a descriptor");
            let mut watched = [PollFd::new(&descriptor, PollFlags::IN)];
            let limit = Timespec::try_from(patience).expect("patience is a time");
            let _ = poll(&mut watched, Some(&limit));
        }
        assert!(
            self.is_over(),
            "not over after {patience:?}: {}\n{}",
            self.command_line,
            self.stderr()
        );
        let status = self.child.wait().expect("a child can be waited for");
        Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: self.stdout(),
            stderr: self.stderr(),
            took: began.elapsed(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

/// A program that ran.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its exit code; `None` where a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
    /// How long it was waited for.
    pub took: Duration,
}

impl Ended {
    /// Checks the exit code, and shows what was reported where it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert!(
            self.code == Some(code),
            "exit {:?} (signal {:?}), expected {code}\nstdout:\n{}\nstderr:\n{}",
            self.code,
            self.signal,
            self.stdout,
            self.stderr
        );
        self
    }

    /// Checks that a text was reported to a person, as a result or a diagnostic.
    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        assert!(
            self.stdout.contains(text) || self.stderr.contains(text),
            "`{text}` was not said:\n{}\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// Reads stdout as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error} in {:?}\n{}", self.stdout, self.stderr))
    }

    /// Reads stdout as JSON lines.
    pub fn events(&self) -> Vec<Value> {
        crate::parse_rows(self.stdout.as_bytes())
    }
}
