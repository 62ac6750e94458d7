//! What a lane asks its supervisor to run.

use super::confine::landlock::Lists;
use super::confine::namespaces::{CommandBounds, View};
use super::usage::Ceilings;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Describes one command to run under the supervisor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSpec {
    /// The program; a bare name is looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments, without the program's own name.
    pub args: Vec<OsString>,
    /// Its whole environment; nothing is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// The absolute working directory of the command.
    pub cwd: PathBuf,
    /// How long it may run by the monotonic clock before its group is
    /// instructed to end.
    pub limit: Duration,
    /// How long its group may take to end before it is killed.
    pub grace: Duration,
    /// How long its processes have, from SIGTERM on, to release what they hold before
    /// they are killed, also where there is no grace; by default they have no time.
    pub release: Duration,
    /// How many bytes of each output stream are kept in the stream's file.
    ///
    /// The supervisor holds up to half of it in memory for each stream.
    pub output_cap: u64,
    /// Where given, stdout is a stream of events: its file keeps the first
    /// bytes up to this many, and nothing is cut out of the middle.
    pub stream_cap: Option<u64>,
    /// The paths that it may use, enforced by Landlock; any where absent.
    pub lists: Option<Lists>,
    /// The bounds of each of its processes, where it has no view.
    pub bounds: CommandBounds,
    /// The namespaces that it runs in; those of the harness where absent.
    pub view: Option<View>,
    /// What all its processes together may use.
    pub ceilings: Ceilings,
    /// Folders of its own and of the session that it belongs to, which the
    /// supervisor removes where the lane is gone and cannot.
    pub scratch: Vec<PathBuf>,
}

impl CommandSpec {
    /// The wall-clock limit of a command that states none.
    pub(crate) const LIMIT: Duration = Duration::from_secs(45 * 60);
    /// The grace between the request to end and the kill.
    pub(crate) const GRACE: Duration = Duration::from_secs(10);
    /// The bytes kept of each output stream.
    pub(crate) const OUTPUT_CAP: u64 = 8 << 20;

    /// Creates a command with no arguments, an empty environment, the root as
    /// its working directory, and the default bounds.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: PathBuf::from("/"),
            limit: Self::LIMIT,
            grace: Self::GRACE,
            release: Duration::ZERO,
            output_cap: Self::OUTPUT_CAP,
            stream_cap: None,
            lists: None,
            bounds: CommandBounds::default(),
            view: None,
            ceilings: Ceilings::default(),
            scratch: Vec::new(),
        }
    }
}

/// Creates the command that has `/bin/sh` run a command line.
pub fn shell(command: &str) -> CommandSpec {
    let mut spec = CommandSpec::new("/bin/sh");
    spec.args = vec!["-c".into(), command.into()];
    spec
}
