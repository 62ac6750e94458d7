//! What a boot runs: setup, boot hook, startup verification.

use super::super::Lane;
use super::super::command::{CommandError, CommandOwner, Phase, Ran};
use super::BootError;
use super::error::ABSENT_MAX;
use crate::batch::FailedCommand;
use premath_evidence::CallEnd;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::json::plain::{cut, plain};
use premath_memory::{artifact, clock};
use premath_worktree::tree::Tree;
use std::ffi::OsString;
use std::path::Path;

impl Lane {
    pub(crate) fn boot_setup(&mut self) -> Result<(), BootError> {
        self.on_boot(Phase::Setup, |lane, owner| {
            lane.set_up(Phase::Setup, owner, None)
        })
    }

    pub(crate) fn boot_command(&mut self) -> Result<(), BootError> {
        let Some(command) = self.batch.settings.hooks.boot.clone() else {
            return Ok(());
        };
        self.on_boot(Phase::Boot, |lane, owner| {
            lane.run(Phase::Boot, &command, owner, None, None).map(Some)
        })
    }

    /// Runs a verification on the commit that the next step begins at.
    pub(crate) fn startup(&mut self, command: &str) -> Result<(), BootError> {
        let commit = self.tree.base()?.commit;
        self.startup_at(command, &commit)
    }

    /// Runs a verification on a commit.
    pub(super) fn startup_at(&mut self, command: &str, commit: &str) -> Result<(), BootError> {
        self.put_checkout_at(commit)?;
        self.on_boot(Phase::VerifySetup, |lane, owner| {
            lane.set_up(Phase::VerifySetup, owner, None)
        })?;
        self.on_boot(Phase::Startup, |lane, owner| {
            let ran = lane.run(Phase::Startup, command, owner, None, None);
            ran.map(Some)
        })
    }

    /// Returns ignored files of the main checkout that a verification does not
    /// have: one of them may be why it failed.
    fn absent(&self, phase: Phase) -> Vec<String> {
        if !phase.is_verification() {
            return Vec::new();
        }
        let settings = &self.batch.settings;
        let main = Tree::open(&settings.roots.repository);
        let Ok(ignored) = main.and_then(|main| main.ignored_files()) else {
            return Vec::new();
        };
        let is_absent = |path: &&Path| {
            let at = self.site.checkout.folder().join(path);
            std::fs::symlink_metadata(at).is_err()
        };
        let absent = ignored.paths().filter(is_absent).take(ABSENT_MAX);
        absent.map(|path| path.display().to_string()).collect()
    }

    /// Returns what the command of a phase of a boot is, as a message names it.
    fn command_name(&self, phase: Phase) -> &'static str {
        let has_startup = self.batch.settings.hooks.startup.is_some();
        match phase {
            Phase::Startup if !has_startup => "verify",
            Phase::Warm | Phase::Tip => "verify",
            _ => phase.name(),
        }
    }

    /// Describes a command of a boot that did not pass.
    fn failed_command(&self, phase: Phase, step_id: &StepId, ran: Ran) -> FailedCommand {
        let reason = match &ran.call.end {
            Some(CallEnd::Error { message, .. }) => message.as_str(),
            Some(CallEnd::Ok) | None => "no output",
        };
        let reason = cut(&plain(reason)).into_owned();
        let streams = &self.batch.settings.roots.streams;
        FailedCommand {
            name: self.command_name(phase),
            class: match phase {
                Phase::Startup => FailureClass::StartupCheckFailed,
                _ => FailureClass::HookFailed,
            },
            classes: ran.classes,
            reason,
            output: artifact::printed(streams, step_id, phase.name()),
            absent: self.absent(phase),
        }
    }

    /// Runs what a boot runs; it must pass.
    pub(crate) fn on_boot(
        &mut self,
        phase: Phase,
        run: impl FnOnce(&mut Self, &CommandOwner<'_>) -> Result<Option<Ran>, CommandError>,
    ) -> Result<(), BootError> {
        let stamp = clock::now().wall.as_microsecond();
        let step_id = StepId::from(format!("{}.boot.{stamp}", self.worker_id));
        let variables: [(&str, OsString); 4] = [
            ("PREMATH_WORKTREE", self.worktree.clone().into()),
            ("PREMATH_WORKER_ID", self.worker_id.as_str().into()),
            (
                "PREMATH_HARNESS_SESSION_PATH",
                self.roots.session.clone().into(),
            ),
            ("PREMATH_ISSUES_PATH", self.batch.memory.path().into()),
        ];
        let owner = CommandOwner {
            step_id: &step_id,
            issue_id: &IssueId::default(),
            generation: 0,
            variables: &variables,
            task: None,
        };
        let ran = run(self, &owner).map_err(|error: CommandError| BootError::Unrun {
            name: self.command_name(phase),
            class: error.class(),
            detail: error.to_string(),
        })?;
        let Some(ran) = ran else { return Ok(()) };
        if ran.survivors > 0 {
            return Err(BootError::Unrun {
                name: self.command_name(phase),
                class: FailureClass::SupervisorLost,
                detail: format!("cannot kill {} of its process(es)", ran.survivors),
            });
        }
        if ran.passed() {
            return Ok(());
        }
        let failed = self.failed_command(phase, &step_id, ran);
        Err(BootError::Command(Box::new(failed)))
    }
}
