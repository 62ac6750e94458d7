//! Tools that change issues and edges, each under an instruction that claims
//! the change.

use super::ToolArguments;
use crate::answer::Answer;
use crate::dep::{self, ReplacedEdge};
use crate::error::CliError;
use crate::issue;
use crate::issue::view::edge_item;
use crate::mcp::context::Instructed;
use premath_kernel::authority::InstructedChange;
use premath_kernel::issue::dispatch::NO_CHANGE_LABEL;
use premath_kernel::issue::lease::LeaseKey;
use premath_kernel::issue::word;
use premath_memory::{DependencyEdit, IssueChange, IssueEdit, IssueMemory, NewIssue};
use schemars::JsonSchema;
use serde::Deserialize;

/// The lease on the issue: id, owner and generation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LeaseInput {
    /// The lease's id
    lease_id: String,
    /// The owner of the lease
    owner: String,
    /// The generation of the lease
    generation: u64,
}

fn key(lease: Option<LeaseInput>) -> LeaseKey {
    lease.map_or_else(LeaseKey::default, |lease| LeaseKey {
        lease_id: Some(lease.lease_id.into()),
        owner: Some(lease.owner),
        generation: Some(lease.generation),
    })
}

/// The fields to set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateInput {
    /// The issue
    id: String,
    /// What it is about, in a line
    title: Option<String>,
    /// What is to be done
    description: Option<String>,
    /// How it is to be done
    design: Option<String>,
    /// When it counts as done
    acceptance_criteria: Option<String>,
    /// Notes; they replace those that are there
    notes: Option<String>,
    /// The new status; any other than in_progress clears the lease. `closed` and `blocked` require a
    /// turn
    status: Option<String>,
    /// 0 to 4, smaller is sooner
    priority: Option<i64>,
    /// Who it is assigned to
    assignee: Option<String>,
    /// The owner
    owner: Option<String>,
    /// The lease that the caller holds, where the issue is under one
    lease: Option<LeaseInput>,
    /// The turn that admits it: the reference of its witness (`ciwitness://…`), as the
    /// step's row names it
    turn: Option<String>,
}

pub(super) fn update(
    instructed: Instructed<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let input: UpdateInput = arguments.read()?;
    let edit = IssueEdit {
        title: input.title,
        description: input.description,
        design: input.design,
        acceptance_criteria: input.acceptance_criteria,
        notes: input.notes,
        status: input.status,
        priority: priority(tool, input.priority)?,
        assignee: input.assignee,
        owner: input.owner,
        // Who may verify, select and dispatch an issue is an operator's matter.
        ..IssueEdit::default()
    };
    if edit == IssueEdit::default() {
        return Err(CliError::Arguments {
            tool,
            detail: "no field given".to_owned(),
        });
    }
    let id = input.id;
    let change = IssueChange::Update { id, edit };
    let row = instructed.make(change, key(input.lease), input.turn.as_deref())?;
    Ok(issue::updated(&row))
}

/// The issue to file.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddInput {
    /// What it is about, in a line
    title: String,
    /// Its id; the next free number by default
    id: Option<String>,
    /// What is to be done
    description: Option<String>,
    /// When it counts as done
    acceptance_criteria: Option<String>,
    /// Notes
    notes: Option<String>,
    /// Its status; `open` by default
    status: Option<String>,
    /// 0 to 4, smaller is sooner; 2 by default
    priority: Option<i64>,
    /// Its type, any word; `task` by default
    issue_type: Option<String>,
    /// Its labels
    labels: Option<Vec<String>>,
    /// Who it is assigned to
    assignee: Option<String>,
    /// The owner
    owner: Option<String>,
}

pub(super) fn add(
    instructed: Instructed<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let input: AddInput = arguments.read()?;
    issue::titled(&input.title)?;
    let new = NewIssue {
        id: input.id,
        title: input.title,
        description: input.description.unwrap_or_default(),
        acceptance_criteria: input.acceptance_criteria.unwrap_or_default(),
        notes: input.notes.unwrap_or_default(),
        status: input.status,
        priority: priority(tool, input.priority)?,
        issue_type: input.issue_type,
        assignee: input.assignee.unwrap_or_default(),
        owner: input.owner.unwrap_or_default(),
        labels: labels(tool, input.labels)?,
        ..NewIssue::default()
    };
    let row = instructed.make(IssueChange::Add(new), LeaseKey::default(), None)?;
    Ok(issue::added(&row))
}

/// Returns a priority; one that the command line does not take is refused.
fn priority(tool: &'static str, given: Option<i64>) -> Result<Option<i64>, CliError> {
    let checked = given.map(|number| word::parse_priority(&number.to_string()));
    let refused = |detail| CliError::Arguments { tool, detail };
    checked.transpose().map_err(refused)
}

/// Returns labels without empty words; a label that only an operator gives is
/// refused.
fn labels(tool: &'static str, given: Option<Vec<String>>) -> Result<Vec<String>, CliError> {
    let labels = issue::words(given.unwrap_or_default());
    match labels.iter().any(|label| label == NO_CHANGE_LABEL) {
        false => Ok(labels),
        true => Err(CliError::Arguments {
            tool,
            detail: format!("the label `{NO_CHANGE_LABEL}` is given by an operator only"),
        }),
    }
}

/// The issue that was found.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::mcp) struct DiscoverInput {
    /// The issue that was being worked on
    pub(in crate::mcp) parent: String,
    /// What the new one is about, in a line
    pub(in crate::mcp) title: String,
    /// What is to be done
    pub(in crate::mcp) description: Option<String>,
    /// 0 to 4, smaller is sooner; 2 where none is given
    pub(in crate::mcp) priority: Option<i64>,
    /// Its type, any word; `task` where none is given
    pub(in crate::mcp) issue_type: Option<String>,
    /// The labels of the new issue
    pub(in crate::mcp) labels: Option<Vec<String>>,
    /// The issue's id; by default the next free number
    id: Option<String>,
    /// When it counts as done
    acceptance_criteria: Option<String>,
    /// Notes
    notes: Option<String>,
    /// Who it is assigned to
    assignee: Option<String>,
    /// The owner
    owner: Option<String>,
}

impl DiscoverInput {
    /// Returns a field that was given and that a request of a step has no
    /// place for.
    pub(in crate::mcp) fn beyond_a_request(&self) -> Option<&'static str> {
        let given = [
            ("id", &self.id),
            ("acceptanceCriteria", &self.acceptance_criteria),
            ("notes", &self.notes),
            ("assignee", &self.assignee),
            ("owner", &self.owner),
        ];
        given
            .into_iter()
            .find(|(_, value)| value.as_deref().is_some_and(|text| !text.is_empty()))
            .map(|(name, _)| name)
    }
}

pub(super) fn discover(
    memory: &IssueMemory,
    authority: InstructedChange,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let input: DiscoverInput = arguments.read()?;
    issue::titled(&input.title)?;
    let new = NewIssue {
        id: input.id,
        title: input.title,
        description: input.description.unwrap_or_default(),
        acceptance_criteria: input.acceptance_criteria.unwrap_or_default(),
        notes: input.notes.unwrap_or_default(),
        status: None,
        priority: priority(tool, input.priority)?,
        issue_type: input.issue_type,
        assignee: input.assignee.unwrap_or_default(),
        owner: input.owner.unwrap_or_default(),
        labels: labels(tool, input.labels)?,
        ..NewIssue::default()
    };
    let parent = input.parent;
    let change = IssueChange::Discover {
        parent: parent.clone(),
        new,
    };
    let row = memory.instruct(authority, change, LeaseKey::default())?;
    Ok(issue::discovered(&row, &parent))
}

/// The edge to add.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct AddEdgeInput {
    /// The issue that has the edge
    issue_id: String,
    /// The issue that it depends on
    depends_on_id: String,
    /// The type of the dependency; `blocks` by default
    #[serde(rename = "type")]
    #[schemars(extend("enum" = words_of_edges()))]
    kind: Option<String>,
    /// Who adds the dependency
    created_by: Option<String>,
    /// The lease that the caller holds, where the issue is under one
    lease: Option<LeaseInput>,
    /// The turn that admits it: the reference of its witness (`ciwitness://…`), as the
    /// step's row names it
    turn: Option<String>,
}

/// The words that a new edge may have, or none.
fn words_of_edges() -> Vec<Option<&'static str>> {
    dep::KINDS.into_iter().map(Some).chain([None]).collect()
}

pub(super) fn add_edge(
    instructed: Instructed<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let input: AddEdgeInput = arguments.read()?;
    let kind = input.kind.unwrap_or_else(|| "blocks".to_owned());
    if !dep::KINDS.contains(&&*kind) {
        return Err(CliError::Arguments {
            tool,
            detail: format!(
                "invalid `type` `{kind}`: expected one of {}",
                dep::KINDS.join(", ")
            ),
        });
    }
    let change = IssueChange::Dependency {
        id: input.issue_id.clone(),
        depends_on: input.depends_on_id.clone(),
        edit: DependencyEdit::Add {
            kind: kind.clone(),
            created_by: input.created_by.clone(),
        },
    };
    let row = instructed.make(change, key(input.lease), input.turn.as_deref())?;
    let by = input.created_by.as_deref();
    let edge = edge_item(&input.issue_id, &input.depends_on_id, &kind, by);
    Ok(dep::changed(&row, edge, ""))
}

/// The edge to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RemoveEdgeInput {
    /// The issue that has the edge
    issue_id: String,
    /// The issue that it depends on
    depends_on_id: String,
    /// Which edge between the two, any word; `blocks` where none is given
    #[serde(rename = "type")]
    kind: Option<String>,
    /// The lease that the caller holds, where the issue is under one
    lease: Option<LeaseInput>,
    /// The turn that admits it: the reference of its witness (`ciwitness://…`), as the
    /// step's row names it
    turn: Option<String>,
}

pub(super) fn remove_edge(
    instructed: Instructed<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let input: RemoveEdgeInput = arguments.read()?;
    let kind = input.kind.unwrap_or_else(|| "blocks".to_owned());
    let change = IssueChange::Dependency {
        id: input.issue_id.clone(),
        depends_on: input.depends_on_id.clone(),
        edit: DependencyEdit::Remove { kind: kind.clone() },
    };
    let row = instructed.make(change, key(input.lease), input.turn.as_deref())?;
    let edge = edge_item(&input.issue_id, &input.depends_on_id, &kind, None);
    Ok(dep::changed(&row, edge, ""))
}

/// The edge whose type is to be replaced.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReplaceEdgeInput {
    /// The issue that has the edge
    issue_id: String,
    /// The issue that it depends on
    depends_on_id: String,
    /// The type that the dependency has; `blocks` by default
    from_type: Option<String>,
    /// The new type of the dependency
    #[schemars(extend("enum" = dep::KINDS))]
    to_type: String,
    /// Who replaces it
    created_by: Option<String>,
    /// The lease that the caller holds, where the issue is under one
    lease: Option<LeaseInput>,
    /// The turn that admits it: the reference of its witness (`ciwitness://…`), as the
    /// step's row names it
    turn: Option<String>,
}

pub(super) fn replace_edge(
    instructed: Instructed<'_>,
    arguments: ToolArguments,
) -> Result<Answer, CliError> {
    let tool = arguments.tool();
    let input: ReplaceEdgeInput = arguments.read()?;
    let to = input.to_type;
    if !dep::KINDS.contains(&&*to) {
        return Err(CliError::Arguments {
            tool,
            detail: format!(
                "invalid `toType` `{to}`: expected one of {}",
                dep::KINDS.join(", ")
            ),
        });
    }
    let from = input.from_type.unwrap_or_else(|| "blocks".to_owned());
    let by = input.created_by;
    let ends = [&*input.issue_id, &*input.depends_on_id];
    let edge = ReplacedEdge::new(ends, [&from, &to], by.as_deref());
    let change = IssueChange::Dependency {
        id: input.issue_id.clone(),
        depends_on: input.depends_on_id.clone(),
        edit: DependencyEdit::Replace {
            from,
            to,
            created_by: by,
        },
    };
    let row = instructed.make(change, key(input.lease), input.turn.as_deref())?;
    Ok(dep::changed(&row, edge, ""))
}
