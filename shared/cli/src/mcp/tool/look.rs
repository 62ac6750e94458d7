//! Tools that look.

use super::super::context::Context;
use super::ToolArguments;
use crate::answer::Answer;
use crate::error::CliError;
use crate::{dep, instruction, issue, join_check, observe, session};
use premath_kernel::issue::graph::Scope;
use premath_kernel::issue::lease::LeaseProjection;
use premath_memory::clock;
use premath_memory::instruction::ActivePolicy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The input of a tool that takes no arguments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

pub(super) fn ready(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let wanted: issue::LimitArgs = arguments.read()?;
    issue::ready(&*context.memory()?, wanted.limit, true)
}

pub(super) fn list(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let wanted: issue::ListArgs = arguments.read()?;
    wanted.perform(&*context.memory()?, true)
}

pub(super) fn blocked(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let wanted: issue::LimitArgs = arguments.read()?;
    issue::blocked(&*context.memory()?, wanted.limit)
}

pub(super) fn observe_latest(
    context: &Context,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let Nothing {} = arguments.read()?;
    observe::latest(&context.repository)
}

pub(super) fn observe_needs_attention(
    context: &Context,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let Nothing {} = arguments.read()?;
    observe::needs_attention(&context.repository)
}

pub(super) fn observe_instruction(
    context: &Context,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    observe::instruction(&context.repository, &arguments.read()?)
}

/// What `issue_lease_projection` answers.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LeasesAnswer {
    /// The leases that need attention now.
    lease_projection: LeaseProjection,
    /// The same as `leaseProjection`.
    projection: LeaseProjection,
    /// How many issues have a lease that needs attention.
    count: usize,
    /// Those issues, stale leases first, each by id.
    items: Vec<String>,
}

pub(super) fn leases(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let Nothing {} = arguments.read()?;
    let seen = clock::observe();
    let lease_projection = context
        .memory()?
        .view(|view| LeaseProjection::of(view.rows().map(|row| &row.issue), &seen))?;
    let stale = lease_projection.stale_issue_ids.iter();
    let all = stale.chain(&lease_projection.contended_issue_ids);
    let items: Vec<String> = all.map(ToString::to_string).collect();
    let answer = LeasesAnswer {
        projection: lease_projection.clone(),
        lease_projection,
        count: items.len(),
        items,
    };
    Ok(Answer::new(answer, ""))
}

/// The input of the check of the issue store.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct IssueCheckInput {
    /// Notes longer than this many characters are warned of
    note_warn_threshold: usize,
}

impl Default for IssueCheckInput {
    fn default() -> Self {
        Self {
            note_warn_threshold: issue::NOTE_WARN_THRESHOLD,
        }
    }
}

pub(super) fn issue_check(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: IssueCheckInput = arguments.read()?;
    // What is wrong is data: the tool did what it was asked for.
    let (answer, _) = issue::checked(&*context.memory()?, input.note_warn_threshold)?;
    Ok(answer)
}

/// Checks the instruction that the server acts under, and no other file.
pub(super) fn instruction_check(
    context: &Context,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let Nothing {} = arguments.read()?;
    let path = context.instruction.as_deref();
    let path = path.ok_or(CliError::NoInstruction)?;
    let active = ActivePolicy::find(None, &context.repository)?;
    let (answer, _) = instruction::checked(path, &active)?;
    Ok(answer)
}

/// The input of the graph diagnosis.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DiagnosticsInput {
    /// Which issues to look at: those that are not closed, or all
    graph_scope: GraphScope,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum GraphScope {
    #[default]
    Active,
    Full,
}

pub(super) fn diagnostics(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let input: DiagnosticsInput = arguments.read()?;
    let scope = match input.graph_scope {
        GraphScope::Active => Scope::Active,
        GraphScope::Full => Scope::Full,
    };
    let (answer, _) = dep::diagnosed(&*context.memory()?, scope)?;
    Ok(answer)
}

pub(super) fn session(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let Nothing {} = arguments.read()?;
    session::read(&context.session)
}

pub(super) fn trajectory(context: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let query: crate::trajectory::QueryArgs = arguments.read()?;
    query.perform(&context.trajectory)
}

pub(super) fn join_check(_: &Context, arguments: ToolArguments) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let mut document = arguments.into_value();
    let explain = match document.as_object_mut().and_then(|d| d.remove("explain")) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(explain)) => explain,
        Some(other) => {
            return Err(CliError::Arguments {
                tool,
                detail: format!("invalid `explain` {other}: expected true or false"),
            });
        }
    };
    let judged = join_check::judge(document, explain).map_err(CliError::GivenEvidence)?;
    Ok(judged.answer)
}
