//! What a server serves, and what changes that are asked of it rest on.

use super::bound::BoundLease;
use super::tool::{Caller, Perform, Tool, ToolArguments, ToolFile};
use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use crate::policy::Configuration;
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::authority::{InstructedChange, InstructedSurface, LeaseOperation};
use premath_kernel::issue::lease::LeaseKey;
use premath_kernel::turn::GovernanceProfile;
use premath_memory::audit::recorded_turn;
use premath_memory::governance::{GovernanceError, claims_governance};
use premath_memory::instruction::{ActivePolicy, read};
use premath_memory::{ChangeError, IssueChange, IssueMemory, IssueRow};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The repository and the rights of a server.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) issues: PathBuf,
    pub(super) session: PathBuf,
    pub(super) trajectory: PathBuf,
    pub(super) repository: PathBuf,
    pub(super) witnesses: PathBuf,
    pub(super) instruction: Option<PathBuf>,
    pub(super) bound: Option<BoundLease>,
    /// Opened with the first tool that needs it, and shared from then on.
    pub(super) memory: Mutex<Option<Arc<IssueMemory>>>,
}

impl Context {
    /// Returns what the server does, in a line for the person who started it.
    pub(super) fn describe(&self) -> String {
        let changes = match (&self.bound, &self.instruction) {
            (Some(bound), _) => format!("bound to {bound}; follow-up issues go to its outbox"),
            (None, Some(path)) => format!("changes are authorised by {}", path.display()),
            (None, None) => "read-only, because no instruction is given".to_owned(),
        };
        format!("premath mcp-serve: {}; {changes}", self.issues.display())
    }

    /// Performs a tool; `Err` is a refusal, with all that is reported about it.
    pub(super) fn call(
        &self,
        tool: &'static Tool,
        arguments: Value,
        asked_by: &str,
    ) -> Result<Value, Value> {
        let arguments = ToolArguments::of(tool.name, arguments);
        let perform = || self.perform(tool, self.spelled(tool, arguments)?, asked_by);
        let finished = match tool.place.of(self) {
            Some((key, path)) => Finished::on(tool.action, key, Ok(path), |_| perform()),
            None => Finished::new(tool.action, perform()),
        };
        let finished = match tool.perform {
            Perform::Lease(LeaseOperation::Claim, _) => finished.when_refused("claimed", false),
            _ => finished,
        };
        finished.into_outcome()
    }

    /// Returns arguments as the tool's schema spells them. Evidence has a
    /// spelling of its own, and its payloads stay as they are.
    fn spelled(&self, tool: &Tool, arguments: ToolArguments) -> Result<ToolArguments, CliError> {
        match tool.place {
            ToolFile::None => Ok(arguments),
            ToolFile::Issues => arguments.in_camel_case()?.without_issues_path(&self.issues),
            ToolFile::Session
            | ToolFile::Trajectory
            | ToolFile::Instruction
            | ToolFile::Repository => arguments.in_camel_case(),
        }
    }

    fn perform(
        &self,
        tool: &'static Tool,
        arguments: ToolArguments,
        asked_by: &str,
    ) -> Result<Answer, CliError> {
        let memory = || self.memory();
        match (&tool.perform, &self.bound) {
            (Perform::Read(perform), _) => perform(self, arguments),
            (Perform::Discover(_), Some(bound)) => bound.discover(&*memory()?, arguments),
            (_, Some(bound)) => Err(bound.refusal(&arguments)),
            (Perform::Lease(operation, perform), None) => {
                let authority = self.surface()?.lease_authority(*operation, asked_by)?;
                perform(&*memory()?, &authority, arguments)
            }
            (Perform::Change(kind, perform), None) => {
                let surface = self.surface()?;
                let authority = surface.authorise(*kind, asked_by)?;
                let instructed = Instructed {
                    memory: memory()?,
                    surface,
                    authority,
                    context: self,
                };
                perform(instructed, arguments)
            }
            (Perform::Control(kind, perform), None) => {
                self.surface()?.authorise(*kind, asked_by)?;
                let context = self;
                perform(Caller { context, asked_by }, arguments)
            }
            (Perform::Discover(perform), None) => {
                let change = self
                    .surface()?
                    .authorise(ChangeMorphism::IssueDiscover, asked_by)?;
                perform(&*memory()?, change, arguments)
            }
        }
    }

    /// Binds the instruction to the policy as both are now: one that was
    /// changed since the last change is another one.
    pub(super) fn surface(&self) -> Result<InstructedSurface, CliError> {
        let path = self.instruction.as_deref().ok_or(CliError::NoInstruction)?;
        let active = ActivePolicy::find(None, &self.repository)?;
        let surface = InstructedSurface::bind(&read(path)?, &active.policy)?;
        // Nothing is changed under a policy package that is not the pinned one.
        self.governance()?;
        Ok(surface)
    }

    /// Returns the governance profile as the repository claims it now.
    fn governance(&self) -> Result<Option<GovernanceProfile>, CliError> {
        if !claims_governance(&self.repository).map_err(GovernanceError::from)? {
            return Ok(None);
        }
        let package = Configuration::of_checkout(&self.repository)?.governance;
        Ok(package.profile(&self.repository)?)
    }

    /// Returns issue memory.
    pub(super) fn memory(&self) -> Result<Arc<IssueMemory>, CliError> {
        let mut kept = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = &*kept {
            return Ok(Arc::clone(memory));
        }
        let memory = Arc::new(paths::open_to_share(&self.issues)?);
        *kept = Some(Arc::clone(&memory));
        Ok(memory)
    }
}

/// A change that the instruction claims, yet to be made.
#[derive(Debug)]
pub(super) struct Instructed<'a> {
    memory: Arc<IssueMemory>,
    surface: InstructedSurface,
    authority: InstructedChange,
    context: &'a Context,
}

impl Instructed<'_> {
    /// Makes the change, with the right of the turn that is named, where it
    /// takes one.
    ///
    /// # Errors
    ///
    /// [`CliError::Change`].
    pub(super) fn make(
        self,
        change: IssueChange,
        key: LeaseKey,
        turn: Option<&str>,
    ) -> Result<IssueRow, CliError> {
        let right = match (change.gated(), turn) {
            (Some(gated), Some(turn)) => {
                let witnesses = &self.context.witnesses;
                let journal = &self.context.trajectory;
                let governance = self.context.governance()?;
                let admitted = recorded_turn(journal, witnesses, turn)
                    .and_then(|recorded| recorded.admit(gated, &self.surface, governance));
                Some(admitted.map_err(ChangeError::Refused)?)
            }
            _ => None,
        };
        let made = match right {
            Some(right) => self
                .memory
                .instruct_by_turn(self.authority, right, change, key),
            None => self.memory.instruct(self.authority, change, key),
        };
        Ok(made?)
    }
}

impl ToolFile {
    /// Returns the file that a tool works on, under its name in answers.
    fn of(self, context: &Context) -> Option<(&'static str, PathBuf)> {
        match self {
            Self::Issues => Some(("issuesPath", context.issues.clone())),
            Self::Session => Some(("path", context.session.clone())),
            Self::Trajectory => Some(("path", context.trajectory.clone())),
            Self::Instruction => Some(("path", context.instruction.clone()?)),
            Self::Repository => Some(("repository", context.repository.clone())),
            Self::None => None,
        }
    }
}
