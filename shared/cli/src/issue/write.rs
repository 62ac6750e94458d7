//! Commands by which a person changes issues.

use super::outbox;
use super::outbox::QueuedRequest;
use super::view::{EdgeItem, IssueView, edge_item, item, line};
use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::{Reason, step_id};
use crate::paths;
use clap::Args;
use premath_kernel::issue::{Status, word};
use premath_memory::{CompactionRule, IssueChange, IssueEdit, IssueMemory, IssueRow, NewIssue};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// What a new issue may have beside its title.
#[derive(Debug, Args)]
pub(super) struct NewFields {
    /// Set the id [default: the next free number]
    #[arg(long)]
    pub(super) id: Option<String>,
    /// Set what is to be done
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(super) description: String,
    /// Set the command that verifies it, beside the batch's own
    #[arg(
        long,
        visible_alias = "verify",
        default_value = "",
        value_name = "COMMAND"
    )]
    pub(super) verification: String,
    /// Set when it counts as done
    #[arg(
        long,
        visible_alias = "acceptance",
        default_value = "",
        value_name = "TEXT"
    )]
    pub(super) acceptance_criteria: String,
    /// Set the notes
    #[arg(long, default_value = "", value_name = "TEXT")]
    pub(super) notes: String,
    /// Set the priority: 0 to 4, or critical, high, medium, low, backlog; lower runs first
    #[arg(
        long,
        default_value_t = premath_kernel::issue::DEFAULT_PRIORITY,
        value_parser = word::parse_priority,
        allow_negative_numbers = true
    )]
    pub(super) priority: i64,
    /// Set the type; any word
    #[arg(
        long = "type",
        default_value = premath_kernel::issue::DEFAULT_TYPE,
        value_name = "TYPE"
    )]
    pub(super) issue_type: String,
    /// Set the labels, separated by commas
    #[arg(long, value_delimiter = ',')]
    pub(super) labels: Vec<String>,
    /// Set who it is assigned to
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(super) assignee: String,
    /// Set the owner
    #[arg(long, default_value = "", value_name = "NAME")]
    pub(super) owner: String,
}

impl NewFields {
    pub(super) fn into_issue(self, title: String, status: Option<String>) -> NewIssue {
        NewIssue {
            id: self.id,
            title,
            description: self.description,
            verification: self.verification,
            acceptance_criteria: self.acceptance_criteria,
            notes: self.notes,
            status,
            priority: Some(self.priority),
            issue_type: Some(self.issue_type),
            assignee: self.assignee,
            owner: self.owner,
            labels: words(self.labels),
            ..NewIssue::default()
        }
    }
}

/// Drops the empty words that stray commas make, and words that are there twice.
pub(crate) fn words(given: Vec<String>) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in given.iter().map(|word| word.trim()) {
        if !word.is_empty() && !words.iter().any(|known| known == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// Returns the labels of a list, each once, in its order.
fn labels(list: &str) -> Vec<String> {
    words(list.split(',').map(str::to_owned).collect())
}

/// Refuses a blank title.
pub(crate) fn titled(title: &str) -> Result<(), CliError> {
    if title.trim().is_empty() {
        return Err(CliError::Usage("the title is empty".to_owned()));
    }
    Ok(())
}

/// Warns about an incomplete last line, with the file that it was moved to.
pub(super) fn with_aside_note(answer: Answer, memory: &IssueMemory) -> Answer {
    match memory.set_aside() {
        Some(aside) => answer.note(format!(
            "warning: the last line of {} was incomplete; it was moved to {}",
            memory.path().display(),
            aside.display()
        )),
        None => answer,
    }
}

/// What a command answers that changed one issue.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct IssueAnswer<'a> {
    /// The issue in its current state.
    pub(super) issue: IssueView<'a>,
}

/// The issue that was found.
#[derive(Debug, Args)]
pub(super) struct DiscoverArgs {
    /// The issue that was being worked on
    parent: String,
    /// What the new one is about, in a line
    title: String,
    #[command(flatten)]
    fields: NewFields,
    #[command(flatten)]
    reason: Reason,
}

/// What `issue discover` answers: outside of a step the issue is filed at
/// once, inside of one it is queued.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum DiscoverAnswer<'a> {
    /// The issue is there.
    Filed(Box<FiledIssue<'a>>),
    /// It is filed when the step's turn passes the gate.
    Queued(Box<QueuedRequest>),
}

/// An issue that was found and filed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct FiledIssue<'a> {
    #[schemars(extend("const" = false))]
    queued: bool,
    /// The new issue.
    issue: IssueView<'a>,
    /// Its edge to the issue that was being worked on.
    dependency: EdgeItem<'a>,
}

impl DiscoverArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        titled(&self.title)?;
        if let Some(step) = step_id() {
            return outbox::request(&step, self.parent, self.title, self.fields);
        }
        let authority = self.reason.authority()?;
        let new = self.fields.into_issue(self.title, None);
        let memory = paths::open(path, false)?;
        let parent = self.parent;
        let edit = IssueChange::Discover {
            parent: parent.clone(),
            new,
        };
        let row = memory.operate(authority, edit)?;
        Ok(discovered(&row, &parent))
    }
}

/// The answer of an issue that was filed.
pub(crate) fn added(row: &IssueRow) -> Answer {
    Answer::new(IssueAnswer { issue: item(row) }, line("added", row))
}

/// The answer of an issue that was found and filed.
pub(crate) fn discovered(row: &IssueRow, parent: &str) -> Answer {
    let filed = FiledIssue {
        queued: false,
        issue: item(row),
        dependency: edge_item(&row.issue.id, parent, "discovered-from", None),
    };
    Answer::new(DiscoverAnswer::Filed(Box::new(filed)), line("added", row))
}

/// The answer of an update.
pub(crate) fn updated(row: &IssueRow) -> Answer {
    Answer::new(IssueAnswer { issue: item(row) }, line("updated", row))
}

/// The fields to set.
#[derive(Debug, Args)]
pub(super) struct UpdateArgs {
    /// The issue
    id: String,
    /// Set what it is about, in a line
    #[arg(long)]
    title: Option<String>,
    /// Set what is to be done
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Read the description from a file; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "description")]
    file: Option<PathBuf>,
    /// Set the command that verifies it; an empty text clears it
    #[arg(long, visible_alias = "verify", value_name = "COMMAND")]
    verification: Option<String>,
    /// Set how it is to be done
    #[arg(long, value_name = "TEXT")]
    design: Option<String>,
    /// Set when it counts as done
    #[arg(long, visible_alias = "acceptance", value_name = "TEXT")]
    acceptance_criteria: Option<String>,
    /// Replace the notes
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// Replace the notes by those of a file; `-` reads stdin
    #[arg(long, value_name = "FILE", conflicts_with = "notes")]
    notes_file: Option<PathBuf>,
    /// Set the status; closed, blocked and tombstone require --reason
    ///
    /// Any other than in_progress clears the lease.
    #[arg(long)]
    status: Option<String>,
    /// Set the priority: 0 to 4, or critical, high, medium, low, backlog; lower runs first
    #[arg(long, value_parser = word::parse_priority, allow_negative_numbers = true)]
    priority: Option<i64>,
    /// Set the type; any word
    #[arg(long = "type", value_name = "TYPE")]
    issue_type: Option<String>,
    /// Replace the labels, separated by commas; "" removes them
    #[arg(long)]
    labels: Option<String>,
    /// Set who it is assigned to
    #[arg(long, value_name = "NAME")]
    assignee: Option<String>,
    /// Set the owner
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    #[command(flatten)]
    reason: Reason,
}

impl UpdateArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let status = self.status.as_deref().map(Status::parse);
        let authority = match status.filter(Status::needs_evidence) {
            Some(status) => {
                let change = format!("setting status `{}`", status.as_str());
                self.reason.authority_without_turn(&change)?
            }
            None => self.reason.authority()?,
        };
        let notes = match self.notes_file {
            Some(file) => Some(read_text(&file)?),
            None => self.notes,
        };
        let description = match self.file {
            Some(file) => Some(read_text(&file)?),
            None => self.description,
        };
        let edit = IssueEdit {
            title: self.title,
            description,
            verification: self.verification,
            design: self.design,
            acceptance_criteria: self.acceptance_criteria,
            notes,
            status: self.status,
            priority: self.priority,
            issue_type: self.issue_type,
            labels: self.labels.as_deref().map(labels),
            assignee: self.assignee,
            owner: self.owner,
        };
        if edit == IssueEdit::default() {
            return Err(CliError::Usage("no field given".to_owned()));
        }
        let memory = paths::open(path, false)?;
        let update = IssueChange::Update { id: self.id, edit };
        let row = memory.operate(authority, update)?;
        Ok(updated(&row))
    }
}

/// The answer of `premath issue compact`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CompactAnswer {
    /// Whether there was anything to compact.
    changed: bool,
    /// How many issues there are.
    count: usize,
}

pub(super) fn read_text(file: &Path) -> Result<String, CliError> {
    let read = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    read.map_err(|source| CliError::File {
        operation: "read",
        path: file.to_path_buf(),
        source,
    })
}

pub(super) fn compact(path: &Path) -> Result<Answer, CliError> {
    Reason::default().authority()?;
    let memory = paths::open(path, false)?;
    let changed = memory.compact(CompactionRule::Now)?;
    let count = memory.view(|view| view.rows().count())?;
    Ok(Answer::new(
        CompactAnswer { changed, count },
        if changed {
            format!("compacted: {count} issues\n")
        } else {
            format!("already compact: {count} issues\n")
        },
    ))
}
