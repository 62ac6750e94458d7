//! The hooks of the agent that a command is.

use super::{ConfineError, Confined};
use crate::hooks::{DoorKind, HookProgram, HookServer, HookSite, wire};
use crate::lane::Lane;
use crate::lane::command::{CommandOwner, Phase};
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces::{OWN, ViewEntry};
use crate::supervisor::confine::scratch::Scratch;
use crate::witness;
use premath_evidence::{Agent, HookJournal};
use premath_kernel::policy::sandbox::SandboxMode;
use premath_memory::artifact;
use rustix::process::Pid;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder below [`OWN`] in which a command sees the things of its hooks.
const SEEN: &str = "hooks";

/// The hooks of one command, until it has ended.
#[derive(Debug)]
pub(crate) struct CommandHooks {
    server: HookServer,
    /// The journal's file.
    pub(crate) file: PathBuf,
    /// The folder of the socket and of the wiring's files.
    folder: PathBuf,
    program: HookProgram,
    /// The folder of the wiring's files where it is another one.
    _files: Option<Scratch>,
}

impl CommandHooks {
    /// Ends the socket, and returns the journal with the SHA-256 of its file.
    ///
    /// # Errors
    ///
    /// The journal's file could not be written.
    pub(crate) fn finish(self) -> io::Result<(HookJournal, String)> {
        self.server.finish()
    }

    /// Returns what a command has in its view.
    pub(super) fn entries(&self) -> [ViewEntry; 2] {
        [
            ViewEntry::read_only_at(&self.folder, &Path::new(OWN).join(SEEN)),
            ViewEntry::read_only_at(&self.program.file, &program_seen()),
        ]
    }

    /// Returns what a command that has no view reads.
    pub(super) fn readable(&self) -> Vec<PathBuf> {
        let files = self._files.as_ref().map(|files| files.path().to_path_buf());
        let mut readable = vec![self.folder.clone(), self.program.file.clone()];
        readable.extend(files);
        readable
    }
}

/// Where a command with a view sees the hook program.
fn program_seen() -> PathBuf {
    Path::new(OWN).join("hook-program")
}

impl Lane {
    /// Starts the hooks of a command, where it is an agent that has them.
    pub(super) fn hooks_of(
        &self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
        (scratch, spec): (&Scratch, &mut CommandSpec),
    ) -> Result<Option<CommandHooks>, ConfineError> {
        let agent = self.hooked(phase, command, owner);
        let hooks = agent.map(|agent| self.start_hooks(phase, agent, owner, (scratch, spec)));
        hooks.transpose()
    }

    /// Returns the agent that a command is, where its hooks are wired in.
    fn hooked(&self, phase: Phase, command: &str, owner: &CommandOwner<'_>) -> Option<Agent> {
        let agent = owner.agent(phase)?;
        self.batch.settings.hooked(agent, command).then_some(agent)
    }

    /// Returns what belongs to a command that is not confined: its hooks.
    pub(super) fn free(
        &self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
        spec: &mut CommandSpec,
    ) -> Result<Confined, ConfineError> {
        let Some(agent) = self.hooked(phase, command, owner) else {
            return Ok(Confined::default());
        };
        let scratch = Scratch::make().map_err(ConfineError::Scratch)?;
        spec.scratch.push(scratch.whole().to_path_buf());
        Ok(Confined {
            hooks: Some(self.start_hooks(phase, agent, owner, (&scratch, spec))?),
            scratch: Some(scratch),
            ..Confined::default()
        })
    }

    /// Starts the hooks of a command in a private folder, and wires them in.
    fn start_hooks(
        &self,
        phase: Phase,
        agent: Agent,
        owner: &CommandOwner<'_>,
        (scratch, spec): (&Scratch, &mut CommandSpec),
    ) -> Result<CommandHooks, ConfineError> {
        let mounts = self.confinement.mounts();
        let program = HookProgram::find().map_err(ConfineError::Scratch)?;
        let folder = scratch.path().join(SEEN);
        DirBuilder::new()
            .mode(0o700)
            .create(&folder)
            .map_err(ConfineError::Scratch)?;
        // A view has folders of its own.
        let needs_own = !mounts && agent.spec().hooks.needs_own_folder;
        let own_files = needs_own.then(Scratch::make_apart).transpose();
        let own_files = own_files.map_err(ConfineError::Scratch)?;
        let files = own_files.as_ref().map_or(&*folder, Scratch::path);
        let seen = Path::new(OWN).join(SEEN);
        let program_seen = program_seen();
        let site = match mounts {
            true => HookSite {
                program: &program,
                file: &program_seen,
                socket: &seen.join("socket"),
                folder: &seen,
            },
            false => HookSite {
                program: &program,
                file: &program.file,
                socket: &folder.join("socket"),
                folder: files,
            },
        };
        let streams = &self.batch.settings.roots.streams;
        let file = witness::file(streams, owner.step_id, phase.name(), "hooks.jsonl");
        let policy = Arc::clone(&self.batch.settings.turn);
        let worktree = self.seen_by(phase).to_string_lossy();
        let journal = HookJournal::new(agent, policy, &worktree).resumed(owner.used(phase).calls);
        let opened = artifact::open_stream(&file)?;
        let root = i32::try_from(self.supervisor.pid())
            .ok()
            .and_then(Pid::from_raw);
        let root = root.ok_or_else(|| ConfineError::Scratch(io::ErrorKind::NotFound.into()))?;
        // Landlock cannot keep a command from other Unix sockets: it has none.
        let kind = match self.confinement.mode {
            SandboxMode::Landlock => DoorKind::Port,
            _ => DoorKind::Unix,
        };
        let messages = Some(self.batch.listen_for(owner.issue_id));
        let door = (kind, folder.join("socket"));
        let server = HookServer::start(door, journal, opened, root, messages)?;
        // After the door: the wiring may have its port.
        wire(agent, &site, files, spec).map_err(ConfineError::Scratch)?;
        Ok(CommandHooks {
            server,
            file,
            folder,
            program,
            _files: own_files,
        })
    }
}
