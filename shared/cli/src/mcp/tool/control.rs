//! Tools that reach the batch that runs, each under an instruction that claims
//! what they change.

use super::ToolArguments;
use crate::answer::Answer;
use crate::control::{
    Asked, CancelInput, RetryInput, SayInput, Then, again, cancel as cancelled, say as told, whole,
};
use crate::error::CliError;
use crate::mcp::context::Context;
use crate::paths;
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::IssueScope;
use premath_kernel::issue::lease::{LeaseKey, LeaseRefusal};
use premath_kernel::json::id::IssueId;
use premath_kernel::record::control::{ControlOperation, LANES_MAX};
use premath_memory::{ChangeError, IssueChange, IssueRow};
use schemars::JsonSchema;
use serde::Deserialize;

/// What a control tool is called with.
#[derive(Clone, Copy, Debug)]
pub(in crate::mcp) struct Caller<'a> {
    pub(in crate::mcp) context: &'a Context,
    /// The client, as `mcp:<name>`.
    pub(in crate::mcp) asked_by: &'a str,
}

impl Caller<'_> {
    fn asked<'a>(&self, reason: &'a Option<String>) -> Asked<'a> {
        Asked {
            batch: None,
            operator: self.asked_by.to_owned(),
            reason: reason.as_deref(),
        }
    }

    /// Performs what concerns the batch as a whole.
    fn whole(
        &self,
        operation: ControlOperation,
        reason: &Option<String>,
    ) -> Result<Answer, CliError> {
        self.must_cover_all()?;
        whole(self.asked(reason).ask(&paths::roots()?, operation)?)
    }

    /// Refuses what concerns all issues under an instruction that covers some.
    fn must_cover_all(&self) -> Result<(), CliError> {
        let surface = self.context.surface()?;
        let authority = surface.authorise(ChangeMorphism::IssueClaim, self.asked_by)?;
        match *authority.record().scope() == IssueScope::default() {
            true => Ok(()),
            false => Err(ChangeError::Refused(LeaseRefusal {
                class: FailureClass::InstructionOutOfScope,
                detail: "the scope of the instruction does not cover every issue of the batch"
                    .to_owned(),
            })
            .into()),
        }
    }

    /// Makes one change of an issue under the instruction.
    fn change(&self, change: IssueChange) -> Result<IssueRow, CliError> {
        let surface = self.context.surface()?;
        let authority = surface.authorise(ChangeMorphism::IssueUpdate, self.asked_by)?;
        let memory = self.context.memory()?;
        Ok(memory.instruct(authority, change, LeaseKey::default())?)
    }

    /// Refuses issues that the instruction does not cover.
    fn must_cover(&self, issues: &[IssueId]) -> Result<(), CliError> {
        let surface = self.context.surface()?;
        let authority = surface.authorise(ChangeMorphism::IssueUpdate, self.asked_by)?;
        let scope = authority.record().scope().clone();
        let memory = self.context.memory()?;
        let outside = memory.view(|view| {
            let is_outside = |id: &&IssueId| view.issue(id).is_some_and(|i| !scope.admits(i));
            issues.iter().find(is_outside).cloned()
        })?;
        match outside {
            None => Ok(()),
            Some(id) => Err(ChangeError::Refused(LeaseRefusal {
                class: FailureClass::InstructionOutOfScope,
                detail: format!("the scope of the instruction does not cover issue {id}"),
            })
            .into()),
        }
    }
}

/// Why the batch is asked.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ControlInput {
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn pause(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: ControlInput = arguments.read()?;
    caller.whole(ControlOperation::Pause, &input.reason)
}

pub(super) fn resume(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: ControlInput = arguments.read()?;
    caller.whole(ControlOperation::Resume, &input.reason)
}

pub(super) fn drain(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: ControlInput = arguments.read()?;
    caller.whole(ControlOperation::Drain, &input.reason)
}

pub(super) fn stop(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: ControlInput = arguments.read()?;
    caller.whole(ControlOperation::Stop, &input.reason)
}

/// The lanes to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddLanesInput {
    /// How many
    #[schemars(range(min = 1, max = LANES_MAX))]
    count: u32,
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn add_lanes(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: AddLanesInput = arguments.read()?;
    let count = input.count;
    caller.whole(ControlOperation::LanesAdd { count }, &input.reason)
}

/// The lane to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RemoveLaneInput {
    /// The lane's worker, for example worker.2
    lane: String,
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn remove_lane(
    caller: Caller<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let input: RemoveLaneInput = arguments.read()?;
    let lane = input.lane.into();
    caller.whole(ControlOperation::LanesRemove { lane }, &input.reason)
}

/// The attempts to cancel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CancelToolInput {
    /// The issues
    issues: Vec<String>,
    /// Their status afterwards; `deferred` by default
    then: Option<Then>,
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn cancel(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: CancelToolInput = arguments.read()?;
    let issues: Vec<IssueId> = input.issues.into_iter().map(IssueId::from).collect();
    caller.must_cover(&issues)?;
    let wanted = CancelInput {
        issues,
        then: input.then.unwrap_or_default().into(),
    };
    let asked = caller.asked(&input.reason);
    cancelled(&paths::roots()?, asked, wanted, |change| {
        caller.change(change)
    })
}

/// What agents are given.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SayToolInput {
    /// The issues
    issues: Vec<String>,
    /// The text
    text: String,
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn say(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: SayToolInput = arguments.read()?;
    let issues: Vec<IssueId> = input.issues.into_iter().map(IssueId::from).collect();
    caller.must_cover(&issues)?;
    let text = SayInput {
        issues,
        text: input.text,
        // A client gives up long before an agent may end its next call.
        wait: false,
    };
    told(&paths::roots()?, caller.asked(&input.reason), text)
}

/// The issues to retry.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RetryToolInput {
    /// The issues
    issues: Vec<String>,
    /// A hint for the next attempt; added to the notes
    note: Option<String>,
    /// Why; recorded in the trajectory
    reason: Option<String>,
}

pub(super) fn retry(caller: Caller<'_>, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: RetryToolInput = arguments.read()?;
    let wanted = RetryInput {
        issues: input.issues.into_iter().map(IssueId::from).collect(),
        note: input.note,
    };
    let asked = caller.asked(&input.reason);
    again(&paths::roots()?, asked, &wanted, |change| {
        caller.change(change)
    })
}
