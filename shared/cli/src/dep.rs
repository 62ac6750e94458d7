//! `premath dep …`

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::issue::view::{IssueView, edge_item, item};
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use premath_kernel::issue::graph::{Diagnosis, DuplicateEdge, Edge, Scope};
use premath_memory::{DependencyEdit, IssueChange, IssueMemory, IssueRow};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The words that an edge may have: the first three hold an issue until the
/// other is done, `parent-child` points from a child to its parent, the rest
/// only inform.
pub(crate) const KINDS: [&str; 10] = [
    "blocks",
    "conditional-blocks",
    "waits-for",
    "parent-child",
    "related",
    "relates-to",
    "discovered-from",
    "duplicates",
    "supersedes",
    "replies-to",
];

fn kinds() -> PossibleValuesParser {
    PossibleValuesParser::new(KINDS)
}

/// Arguments of `premath dep`.
#[derive(Debug, Args)]
pub(crate) struct DepArgs {
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, global = true, value_name = "PATH")]
    issues: Option<PathBuf>,
    #[command(subcommand)]
    command: DepCommand,
}

#[derive(Debug, Subcommand)]
enum DepCommand {
    /// Make an issue depend on another; refuse an edge that closes a cycle
    Add(AddArgs),
    /// Remove a dependency
    Remove(RemoveArgs),
    /// Change the type of a dependency
    Replace(ReplaceArgs),
    /// Report cycles, dangling edges and issues that can never be ready
    Diagnostics(DiagnosticsArgs),
}

/// Two issues.
#[derive(Clone, Debug, Args)]
struct Ends {
    /// The issue that has the edge
    issue: String,
    /// The issue that it depends on
    depends_on: String,
}

#[derive(Debug, Args)]
struct AddArgs {
    #[command(flatten)]
    ends: Ends,
    /// Set the type of the dependency
    #[arg(long = "type", default_value = "blocks", value_parser = kinds(), value_name = "TYPE")]
    kind: String,
    /// Record who adds it
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Debug, Args)]
struct RemoveArgs {
    #[command(flatten)]
    ends: Ends,
    /// Remove the dependency of this type (any word) between the two
    #[arg(long = "type", default_value = "blocks", value_name = "TYPE")]
    kind: String,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Debug, Args)]
struct ReplaceArgs {
    #[command(flatten)]
    ends: Ends,
    /// Replace the dependency of this type
    #[arg(long, default_value = "blocks", value_name = "TYPE")]
    from_type: String,
    /// Set the new type of the dependency
    #[arg(long, value_parser = kinds(), value_name = "TYPE")]
    to_type: String,
    /// Record who replaces it
    #[arg(long, value_name = "NAME")]
    created_by: Option<String>,
    #[command(flatten)]
    reason: Reason,
}

#[derive(Debug, Args)]
struct DiagnosticsArgs {
    /// Check these issues
    #[arg(long, value_enum, default_value_t = ScopeArg::Active)]
    graph_scope: ScopeArg,
    /// Exit 1 if this does not hold
    #[arg(long, value_enum)]
    require: Option<RequireArg>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ScopeArg {
    /// Issues that are not closed
    Active,
    /// All issues
    Full,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum RequireArg {
    /// No issue waits for itself
    Acyclic,
}

impl DepArgs {
    pub(crate) fn run(self) -> Finished {
        let command = self.command;
        let action = match command {
            DepCommand::Add(_) => "dep.add",
            DepCommand::Remove(_) => "dep.remove",
            DepCommand::Replace(_) => "dep.replace",
            DepCommand::Diagnostics(_) => "dep.diagnostics",
        };
        Finished::on(
            action,
            "issuesPath",
            paths::issues(self.issues),
            |path| match command {
                DepCommand::Add(args) => args.perform(path),
                DepCommand::Remove(args) => args.perform(path),
                DepCommand::Replace(args) => args.perform(path),
                DepCommand::Diagnostics(args) => args.perform(path),
            },
        )
    }
}

/// What a change of an edge answers.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct EdgeAnswer<'a, E> {
    /// The edge, as it was asked for.
    dependency: E,
    /// The issue that has it, in its current state.
    issue: IssueView<'a>,
}

/// An edge whose type was replaced.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplacedEdge {
    /// The issue that has the edge.
    issue_id: String,
    /// The issue that it points to.
    depends_on_id: String,
    /// The type that it had.
    from_type: String,
    /// The type that it has.
    to_type: String,
    /// Who replaced it; empty if not given.
    created_by: String,
}

impl ReplacedEdge {
    /// Makes the answer of an edge between two issues, from one type to another.
    pub(crate) fn new(ends: [&str; 2], types: [&str; 2], by: Option<&str>) -> Self {
        let [issue_id, depends_on_id] = ends.map(str::to_owned);
        let [from_type, to_type] = types.map(str::to_owned);
        Self {
            issue_id,
            depends_on_id,
            from_type,
            to_type,
            created_by: by.unwrap_or_default().to_owned(),
        }
    }
}

/// The answer of `premath dep diagnostics`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Diagnostics {
    /// Which issues were looked at.
    graph_scope: Scope,
    /// Whether the graph can end.
    integrity: Integrity,
    /// Every cycle as its strongly connected component, smallest id first.
    cycles: Vec<Vec<Arc<str>>>,
    /// Edges that hold and whose target does not exist.
    dangling: Vec<Edge>,
    /// Issues with an edge to themselves.
    self_loops: Vec<Arc<str>>,
    /// Edges that stand more than once.
    duplicate_edges: Vec<DuplicateEdge>,
    /// Active issues that wait, directly or not, for a cycle or a missing
    /// issue.
    never_ready: Vec<Arc<str>>,
}

/// Whether a graph can end.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Integrity {
    /// Whether anything waits for itself.
    has_cycle: bool,
    /// One shortest cycle, the first id again at the end; null where there is
    /// none.
    cycle_path: Option<Vec<Arc<str>>>,
}

impl Diagnostics {
    fn of(scope: Scope, found: Diagnosis) -> Self {
        Self {
            graph_scope: scope,
            integrity: Integrity {
                has_cycle: found.has_cycle,
                cycle_path: found.cycle_path,
            },
            cycles: found.cycles,
            dangling: found.dangling,
            self_loops: found.self_loops,
            duplicate_edges: found.duplicate_edges,
            never_ready: found.never_ready,
        }
    }
}

/// Makes the change; `edge` is what the answer reports about it.
fn edit(
    path: &Path,
    ends: Ends,
    edit: DependencyEdit,
    reason: Reason,
    edge: impl Serialize,
    text: &str,
) -> Result<Answer, CliError> {
    let authority = reason.authority()?;
    let memory = paths::open(path, false)?;
    let row = memory.operate(
        authority,
        IssueChange::Dependency {
            id: ends.issue,
            depends_on: ends.depends_on,
            edit,
        },
    )?;
    Ok(changed(&row, edge, text))
}

/// The answer of an edge that was changed.
pub(crate) fn changed(row: &IssueRow, edge: impl Serialize, text: &str) -> Answer {
    let document = EdgeAnswer {
        dependency: edge,
        issue: item(row),
    };
    Answer::new(document, format!("{}\n", plain(text)))
}

impl AddArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let Ends { issue, depends_on } = &self.ends;
        let edge = edge_item(issue, depends_on, &self.kind, self.created_by.as_deref());
        let text = format!("added {issue} -> {depends_on} ({})", self.kind);
        let change = DependencyEdit::Add {
            kind: self.kind.clone(),
            created_by: self.created_by,
        };
        edit(path, self.ends.clone(), change, self.reason, edge, &text)
    }
}

impl RemoveArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let Ends { issue, depends_on } = &self.ends;
        let edge = edge_item(issue, depends_on, &self.kind, None);
        let text = format!("removed {issue} -> {depends_on} ({})", self.kind);
        let change = DependencyEdit::Remove {
            kind: self.kind.clone(),
        };
        edit(path, self.ends.clone(), change, self.reason, edge, &text)
    }
}

impl ReplaceArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let Ends { issue, depends_on } = &self.ends;
        let types = [&*self.from_type, &*self.to_type];
        let edge = ReplacedEdge::new([issue, depends_on], types, self.created_by.as_deref());
        let text = format!(
            "replaced {issue} -> {depends_on} ({} -> {})",
            self.from_type, self.to_type
        );
        let change = DependencyEdit::Replace {
            from: self.from_type,
            to: self.to_type,
            created_by: self.created_by,
        };
        edit(path, self.ends, change, self.reason, edge, &text)
    }
}

impl DiagnosticsArgs {
    fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let scope = match self.graph_scope {
            ScopeArg::Active => Scope::Active,
            ScopeArg::Full => Scope::Full,
        };
        let (answer, has_cycle) = diagnosed(&*paths::open(path, false)?, scope)?;
        let failed = match self.require {
            Some(RequireArg::Acyclic) => has_cycle,
            None => false,
        };
        Ok(answer.refused(failed))
    }
}

/// Diagnoses the graph; returns whether anything waits for itself.
pub(crate) fn diagnosed(memory: &IssueMemory, scope: Scope) -> Result<(Answer, bool), CliError> {
    let found = memory.diagnose(scope)?;
    let (text, has_cycle) = (text(&found), found.has_cycle);
    let answer = Answer::new(Diagnostics::of(scope, found), text);
    Ok((answer, has_cycle))
}

fn text(found: &Diagnosis) -> String {
    let joined = |ids: &[Arc<str>], by: &str| plain(&ids.join(by)).into_owned();
    let mut text = match &found.cycle_path {
        Some(path) => format!("cycle: {}\n", joined(path, " -> ")),
        None => "no cycles\n".to_owned(),
    };
    for cycle in &found.cycles {
        let _ = writeln!(text, "depend on each other: {}", joined(cycle, ", "));
    }
    for edge in &found.dangling {
        let (id, target) = (plain(&edge.issue_id), plain(&edge.depends_on_id));
        let _ = writeln!(text, "dangling: {id} -> {target}, which does not exist");
    }
    for id in &found.self_loops {
        let _ = writeln!(text, "depends on itself: {}", plain(id));
    }
    for duplicate in &found.duplicate_edges {
        let (id, target) = (
            plain(&duplicate.edge.issue_id),
            plain(&duplicate.edge.depends_on_id),
        );
        let (kind, count) = (plain(&duplicate.kind), duplicate.count);
        let _ = writeln!(text, "duplicate: {id} -> {target} ({kind}), {count} times");
    }
    if !found.never_ready.is_empty() {
        let _ = writeln!(
            text,
            "can never become ready: {}",
            joined(&found.never_ready, ", ")
        );
    }
    text
}
