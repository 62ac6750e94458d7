//! The tools: a table, held against the one table of operations.

mod arguments;
mod change;
mod control;
mod lease;
mod look;

pub(super) use arguments::ToolArguments;
pub(super) use change::DiscoverInput;
pub(super) use control::Caller;

use super::context::{Context, Instructed};
use crate::answer::{Answer, Refusal};
use crate::control::ControlDone;
use crate::dep::{Diagnostics, EdgeAnswer, ReplacedEdge};
use crate::error::CliError;
use crate::form::{answer, read, read_with_repeats, with_place, written};
use crate::instruction::InstructionCheckAnswer;
use crate::issue::view::EdgeItem;
use crate::issue::{
    BlockedAnswer, ClaimAnswer, DiscoverAnswer, GraphCheckAnswer, IssueAnswer, IssuesAnswer,
    LimitArgs, ListArgs,
};
use crate::join_check::JoinCheckAnswer;
use crate::observe::{AttentionAnswer, InstructionQuery, ObservationAnswer};
use crate::session::SessionAnswer;
use crate::trajectory::QueryArgs;
use premath_kernel::authority::claim::ChangeMorphism;
use premath_kernel::authority::doctrine::ServedTool;
use premath_kernel::authority::{InstructedChange, LeaseAuthority, LeaseOperation};
use premath_kernel::json::schema::describe;
use premath_kernel::record::trajectory::Projection;
use premath_kernel::turn::JoinCheckInput;
use premath_memory::IssueMemory;
use rmcp::model::{JsonObject, Tool as Described, ToolAnnotations};
use schemars::{Schema, json_schema};
use serde_json::{Value, json};
use std::sync::Arc;

/// A tool of the server.
#[derive(Debug)]
pub(crate) struct Tool {
    /// Its name, which is that of its operation in the table.
    pub(super) name: &'static str,
    /// What its answers call it, as its command's do.
    pub(super) action: &'static str,
    title: &'static str,
    about: &'static str,
    /// Whether something that is there may be lost by it.
    destructive: bool,
    /// Whether a second call with the same arguments changes nothing more.
    idempotent: bool,
    pub(super) place: ToolFile,
    input: fn() -> Schema,
    output: fn(&Tool) -> Schema,
    pub(super) perform: Perform,
}

/// The file that a tool works on.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToolFile {
    Issues,
    Session,
    Trajectory,
    /// The instruction that the server acts under.
    Instruction,
    /// The repository that the server is for.
    Repository,
    None,
}

/// What a tool does, with what it rests on.
#[derive(Debug)]
pub(super) enum Perform {
    /// Looks, and rests on nothing.
    Read(fn(&Context, ToolArguments) -> Result<Answer, CliError>),
    /// Does something to a lease.
    Lease(
        LeaseOperation,
        fn(&IssueMemory, &LeaseAuthority, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Changes a row.
    Change(
        ChangeMorphism,
        fn(Instructed<'_>, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Asks the batch that runs.
    Control(
        ChangeMorphism,
        fn(Caller<'_>, ToolArguments) -> Result<Answer, CliError>,
    ),
    /// Files what was found; inside a step it is asked for.
    Discover(fn(&IssueMemory, InstructedChange, ToolArguments) -> Result<Answer, CliError>),
}

/// Every tool, in the order in which they are listed.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "issue_ready",
        action: "issue.ready",
        title: "Ready issues",
        about: "List ready issues by priority, then id.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<LimitArgs>,
        output: |tool| tool.answer::<IssuesAnswer<'_>>(),
        perform: Perform::Read(look::ready),
    },
    Tool {
        name: "issue_list",
        action: "issue.list",
        title: "All issues",
        about: "List issues by id, closed ones included; by status, assignee, type or label.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<ListArgs>,
        output: |tool| tool.answer::<IssuesAnswer<'_>>(),
        perform: Perform::Read(look::list),
    },
    Tool {
        name: "issue_blocked",
        action: "issue.blocked",
        title: "Blocked issues",
        about: "List blocked issues and their blockers.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<LimitArgs>,
        output: |tool| tool.answer::<BlockedAnswer<'_>>(),
        perform: Perform::Read(look::blocked),
    },
    Tool {
        name: "issue_check",
        action: "issue.check",
        title: "Check the issue store",
        about: "List what keeps issues from being ready, and what they do not state. Faults are \
                data, not an error.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<look::IssueCheckInput>,
        output: |tool| tool.answer::<GraphCheckAnswer>(),
        perform: Perform::Read(look::issue_check),
    },
    Tool {
        name: "issue_claim",
        action: "issue.claim",
        title: "Claim an issue",
        about: "Lease a ready issue to work on it. The lease expires: renew it, and release it \
                when you stop.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<lease::ClaimInput>,
        output: |tool| tool.answer::<ClaimAnswer<'_>>(),
        perform: Perform::Lease(LeaseOperation::Claim, lease::claim),
    },
    Tool {
        name: "issue_add",
        action: "issue.add",
        title: "Add an issue",
        about: "File an issue that was not discovered from another.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<change::AddInput>,
        output: |tool| tool.answer::<IssueAnswer<'_>>(),
        perform: Perform::Change(ChangeMorphism::IssueAdd, change::add),
    },
    Tool {
        name: "issue_update",
        action: "issue.update",
        title: "Update an issue",
        about: "Set fields of an issue; an empty text clears a field. A leased issue requires the \
                lease's id, owner and generation; `closed` and `blocked` require the turn that \
                admits it.",
        destructive: true,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<change::UpdateInput>,
        output: |tool| tool.answer::<IssueAnswer<'_>>(),
        perform: Perform::Change(ChangeMorphism::IssueUpdate, change::update),
    },
    Tool {
        name: "issue_discover",
        action: "issue.discover",
        title: "File a follow-up issue",
        about: "File an issue discovered from another. Inside a step the request is queued and \
                filed when the step's turn passes the gate.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<DiscoverInput>,
        output: |tool| tool.answer::<DiscoverAnswer<'_>>(),
        perform: Perform::Discover(change::discover),
    },
    Tool {
        name: "issue_lease_renew",
        action: "issue.lease_renew",
        title: "Renew a lease",
        about: "Extend a lease that has not expired.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<lease::RenewInput>,
        output: |tool| tool.answer::<IssueAnswer<'_>>(),
        perform: Perform::Lease(LeaseOperation::Renew, lease::renew),
    },
    Tool {
        name: "issue_lease_release",
        action: "issue.lease_release",
        title: "Release a lease",
        about: "Release a lease and reopen its issue.",
        destructive: true,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<lease::ReleaseInput>,
        output: |tool| tool.answer::<IssueAnswer<'_>>(),
        perform: Perform::Lease(LeaseOperation::Release, lease::release),
    },
    Tool {
        name: "issue_lease_projection",
        action: "issue.lease_projection",
        title: "Leases that need attention",
        about: "List issues whose lease is expired or contradicts the row.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: nothing,
        output: |tool| tool.answer::<look::LeasesAnswer>(),
        perform: Perform::Read(look::leases),
    },
    Tool {
        name: "dep_add",
        action: "dep.add",
        title: "Add a dependency",
        about: "Make an issue depend on another, by a turn that admits it; an edge that closes a \
                cycle is refused.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<change::AddEdgeInput>,
        output: |tool| tool.answer::<EdgeAnswer<'_, EdgeItem<'_>>>(),
        perform: Perform::Change(ChangeMorphism::DepAdd, change::add_edge),
    },
    Tool {
        name: "dep_remove",
        action: "dep.remove",
        title: "Remove a dependency",
        about: "Remove a dependency between two issues, by a turn that admits it.",
        destructive: true,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<change::RemoveEdgeInput>,
        output: |tool| tool.answer::<EdgeAnswer<'_, EdgeItem<'_>>>(),
        perform: Perform::Change(ChangeMorphism::DepRemove, change::remove_edge),
    },
    Tool {
        name: "dep_replace",
        action: "dep.replace",
        title: "Change the type of a dependency",
        about: "Replace the type of a dependency, by a turn that admits it; an edge that closes a \
                cycle is refused.",
        destructive: true,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<change::ReplaceEdgeInput>,
        output: |tool| tool.answer::<EdgeAnswer<'_, ReplacedEdge>>(),
        perform: Perform::Change(ChangeMorphism::DepReplace, change::replace_edge),
    },
    Tool {
        name: "dep_diagnostics",
        action: "dep.diagnostics",
        title: "Diagnose dependencies",
        about: "Report dependency cycles, dangling edges and issues that can never be ready.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<look::DiagnosticsInput>,
        output: |tool| tool.answer::<Diagnostics>(),
        perform: Perform::Read(look::diagnostics),
    },
    Tool {
        name: "batch_pause",
        action: "batch.pause",
        title: "Pause the batch",
        about: "Start no new attempts; running ones continue.",
        destructive: false,
        idempotent: true,
        place: ToolFile::None,
        input: read::<control::ControlInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::pause),
    },
    Tool {
        name: "batch_resume",
        action: "batch.resume",
        title: "Resume the batch",
        about: "Start attempts again.",
        destructive: false,
        idempotent: false,
        place: ToolFile::None,
        input: read::<control::ControlInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::resume),
    },
    Tool {
        name: "batch_drain",
        action: "batch.drain",
        title: "Drain the batch",
        about: "Finish the running attempts, then end the batch.",
        destructive: true,
        idempotent: true,
        place: ToolFile::None,
        input: read::<control::ControlInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::drain),
    },
    Tool {
        name: "batch_stop",
        action: "batch.stop",
        title: "Stop the batch",
        about: "End the running attempts now, then the batch; their work is saved.",
        destructive: true,
        idempotent: true,
        place: ToolFile::None,
        input: read::<control::ControlInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::stop),
    },
    Tool {
        name: "batch_lanes_add",
        action: "batch.lanes_add",
        title: "Add lanes",
        about: "Create lanes that work beside the others of the running batch.",
        destructive: false,
        idempotent: false,
        place: ToolFile::None,
        input: read::<control::AddLanesInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::add_lanes),
    },
    Tool {
        name: "batch_lanes_remove",
        action: "batch.lanes_remove",
        title: "Remove a lane",
        about: "End a lane of the running batch after its running attempt.",
        destructive: true,
        idempotent: true,
        place: ToolFile::None,
        input: read::<control::RemoveLaneInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueClaim, control::remove_lane),
    },
    Tool {
        name: "issue_cancel",
        action: "cancel",
        title: "Cancel attempts",
        about: "End the running attempts of issues; their work is saved, and no attempt is used up.",
        destructive: true,
        idempotent: true,
        place: ToolFile::Issues,
        input: read::<control::CancelToolInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueUpdate, control::cancel),
    },
    Tool {
        name: "issue_say",
        action: "say",
        title: "Give agents a text",
        about: "Give the agents that work on issues a text, each after its next tool call.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<control::SayToolInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueUpdate, control::say),
    },
    Tool {
        name: "issue_retry",
        action: "retry",
        title: "Retry issues",
        about: "Open issues for another attempt; a note is in the next prompt.",
        destructive: false,
        idempotent: false,
        place: ToolFile::Issues,
        input: read::<control::RetryToolInput>,
        output: |tool| tool.answer::<ControlDone>(),
        perform: Perform::Control(ChangeMorphism::IssueUpdate, control::retry),
    },
    Tool {
        name: "harness_session_read",
        action: "harness-session.read",
        title: "Read the session",
        about: "Read the worktree's session: its issue, summary and next step.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Session,
        input: nothing,
        output: |tool| tool.answer::<SessionAnswer<'_>>(),
        perform: Perform::Read(look::session),
    },
    Tool {
        name: "harness_trajectory_query",
        action: "harness-trajectory.query",
        title: "Query the trajectory",
        about: "List trajectory rows, latest first.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Trajectory,
        input: read::<QueryArgs>,
        output: |tool| tool.answer::<Projection<'_>>(),
        perform: Perform::Read(look::trajectory),
    },
    Tool {
        name: "observe_latest",
        action: "observe.latest",
        title: "The last batch",
        about: "Read what the last batch left.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Repository,
        input: nothing,
        output: |tool| tool.answer::<ObservationAnswer>(),
        perform: Perform::Read(look::observe_latest),
    },
    Tool {
        name: "observe_needs_attention",
        action: "observe.needs_attention",
        title: "What needs attention",
        about: "List what a person should look at after the last batch.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Repository,
        input: nothing,
        output: |tool| tool.answer::<AttentionAnswer>(),
        perform: Perform::Read(look::observe_needs_attention),
    },
    Tool {
        name: "observe_instruction",
        action: "observe.instruction",
        title: "The last batch of an instruction",
        about: "Read what the last batch left, if it acted under an instruction.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Repository,
        input: read::<InstructionQuery>,
        output: |tool| tool.answer::<ObservationAnswer>(),
        perform: Perform::Read(look::observe_instruction),
    },
    Tool {
        name: "instruction_check",
        action: "instruction.check",
        title: "Check the instruction",
        about: "Check the instruction that the server acts under against the active policy, and \
                list what it covers. A refused one is data, not an error.",
        destructive: false,
        idempotent: true,
        place: ToolFile::Instruction,
        input: nothing,
        output: |tool| tool.answer::<InstructionCheckAnswer>(),
        perform: Perform::Read(look::instruction_check),
    },
    Tool {
        name: "join_check",
        action: "harness-join-check",
        title: "Judge a turn",
        about: "Judge the evidence of one turn with the typestate gate. The verdict is data: a \
                rejected turn is not an error.",
        destructive: false,
        idempotent: true,
        place: ToolFile::None,
        input: turn,
        output: |_| written::<JoinCheckAnswer>(),
        perform: Perform::Read(look::join_check),
    },
];

/// Returns the tool of that name.
pub(super) fn named(name: &str) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| tool.name == name)
}

/// Returns what the server serves, for the table of operations to be held
/// against.
pub(crate) fn served() -> Vec<ServedTool> {
    let served = |tool: &Tool| ServedTool {
        name: tool.name,
        claim: tool.claim(),
    };
    TOOLS.iter().map(served).collect()
}

fn nothing() -> Schema {
    json_schema!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// A turn as the command reads it from a file, and whether it is explained.
fn turn() -> Schema {
    let mut schema = read_with_repeats::<JoinCheckInput>();
    let explain = json_schema!({
        "description": "List the rows that break a rule, and what the rule requires.",
        "type": "boolean",
        "default": false,
    });
    describe(&mut schema, "explain", explain);
    schema
}

impl Tool {
    /// Returns the kind of change that an instruction must claim.
    const fn claim(&self) -> Option<ChangeMorphism> {
        match self.perform {
            Perform::Read(_) => None,
            Perform::Lease(operation, _) => Some(operation.change()),
            Perform::Change(kind, _) | Perform::Control(kind, _) => Some(kind),
            Perform::Discover(_) => Some(ChangeMorphism::IssueDiscover),
        }
    }

    fn answer<T: schemars::JsonSchema>(&self) -> Schema {
        let place = match self.place {
            ToolFile::Issues => "issuesPath",
            ToolFile::Repository => "repository",
            ToolFile::Session | ToolFile::Trajectory | ToolFile::Instruction | ToolFile::None => {
                "path"
            }
        };
        answer::<T>(&[self.action], place)
    }

    /// Returns the tool's description for clients.
    pub(super) fn described(&self) -> Described {
        let mutates = self.claim().is_some();
        let hints = ToolAnnotations::with_title(self.title)
            .read_only(!mutates)
            .destructive(self.destructive)
            .idempotent(self.idempotent)
            .open_world(false);
        Described::new(self.name, self.about, object((self.input)()))
            .with_title(self.title)
            .with_raw_output_schema(self.answer_or_refusal())
            .with_annotations(hints)
    }

    /// What a tool says is its command's answer or its refusal: some clients
    /// hold errors against the schema too.
    fn answer_or_refusal(&self) -> Arc<JsonObject> {
        let mut answer = (self.output)(self).to_value();
        let mut refusal = refused(self.place).to_value();
        let mut definitions = JsonObject::new();
        for part in [&mut answer, &mut refusal] {
            if let Some(part) = part.as_object_mut() {
                part.remove("$schema");
                if let Some(Value::Object(below)) = part.remove("$defs") {
                    definitions.extend(below);
                }
            }
        }
        // All of them would be in every tool.
        if let Some(class) = definitions.get_mut("FailureClass") {
            let about = "A stable, machine-readable name of one way to fail; list all classes with \
                         `premath classes`.";
            *class = json!({"type": "string", "description": about});
        }
        let schema = json!({
            "type": "object",
            "anyOf": [answer, refusal],
            "$defs": definitions,
        });
        match schema {
            Value::Object(schema) => Arc::new(schema),
            _ => Arc::default(),
        }
    }
}

fn refused(place: ToolFile) -> Schema {
    let mut schema = written::<Refusal>();
    let hint = json_schema!({"description": "How to fix it.", "type": "string"});
    describe(&mut schema, "hint", hint);
    match place {
        ToolFile::Issues => with_place(schema, "issuesPath"),
        ToolFile::Session | ToolFile::Trajectory | ToolFile::Instruction => {
            with_place(schema, "path")
        }
        ToolFile::Repository => with_place(schema, "repository"),
        ToolFile::None => schema,
    }
}

/// A schema as tools have it: without its dialect, which is that of the
/// protocol.
fn object(schema: Schema) -> Arc<JsonObject> {
    match schema.to_value() {
        Value::Object(mut schema) => {
            schema.remove("$schema");
            Arc::new(schema)
        }
        _ => Arc::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_takes_and_answers_objects_and_says_what_it_may_do() {
        for tool in TOOLS {
            let described = tool.described();
            let output = described.output_schema.unwrap();
            for schema in [&*described.input_schema, &*output] {
                assert_eq!(schema["type"], "object", "{}", tool.name);
                assert!(!schema.contains_key("$schema"), "{}", tool.name);
            }
            let hints = described.annotations.unwrap();
            assert_eq!(hints.read_only_hint, Some(tool.claim().is_none()));
            assert!(hints.open_world_hint == Some(false) && hints.destructive_hint.is_some());
            assert!(tool.claim().is_some() || !tool.destructive, "{}", tool.name);
        }
    }
}
