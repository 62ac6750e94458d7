//! `premath issue …`

mod accept;
mod add;
mod check;
mod edit;
mod form;
pub(crate) mod history;
mod import;
mod lease;
mod outbox;
pub(crate) mod query;
mod status;
pub(crate) mod view;
mod write;

pub(crate) use accept::AcceptAnswer;
pub(crate) use check::{GraphCheckAnswer, NOTE_WARN_THRESHOLD, checked};
pub(crate) use import::ImportAnswer;
pub(crate) use lease::{ClaimAnswer, released, renewed, taken};
pub(crate) use outbox::queue;
pub(crate) use query::{
    BlockedAnswer, IssuesAnswer, LimitArgs, ListArgs, ShowAnswer, blocked, no_such, ready,
};
pub(crate) use status::StatusAnswer;
pub(crate) use write::{
    CompactAnswer, DiscoverAnswer, IssueAnswer, added, discovered, titled, updated, words,
};

use crate::answer::{Answer, Finished};
use crate::error::CliError;
use crate::paths;
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};

/// Arguments of `premath issue`.
#[derive(Debug, Args)]
pub(crate) struct IssueArgs {
    /// Use this issue store [default: $PREMATH_ISSUES_PATH, else .premath/issues.jsonl of the repository root]
    #[arg(long, global = true, value_name = "PATH")]
    issues: Option<PathBuf>,
    #[command(subcommand)]
    command: IssueCommand,
}

#[derive(Debug, Subcommand)]
enum IssueCommand {
    /// File an issue
    Add(add::AddArgs),
    /// List issues by id, closed ones included
    List(query::ListArgs),
    /// Show one issue, its blockers and its attempts over all batches
    Show(query::ShowArgs),
    /// List ready issues by priority, then id
    Ready(query::LimitArgs),
    /// List blocked issues and their blockers
    Blocked(query::LimitArgs),
    /// Check the issue store: cycles, edges, leases, acceptance criteria
    Check(check::CheckArgs),
    /// Set fields of an issue; an empty text clears a field
    Update(write::UpdateArgs),
    /// Change an issue in your editor: $VISUAL, else $EDITOR, else vi
    Edit(edit::EditArgs),
    /// Close issues without a turn
    Close(status::CloseArgs),
    /// Open closed, blocked, deferred or deleted issues again
    Reopen(status::IdsArgs),
    /// Set issues aside: no batch takes them until they are reopened
    Defer(status::IdsArgs),
    /// Delete issues; each is kept as a tombstone, which `reopen` restores
    Delete(status::DeleteArgs),
    /// File the issues of another tracker: beads, GitHub, CSV, Markdown tasks
    ///
    /// An issue that was imported before stays as it is. If one record does not fit, nothing is
    /// filed. From GitHub: `gh issue list --state all --limit 1000 --json
    /// number,title,body,state,labels,assignees,url,createdAt,updatedAt,closedAt > issues.json`.
    /// From beads: `.beads/issues.jsonl`. A CSV file has a header with a column `title`.
    Import(import::ImportArgs),
    /// Lease an issue to work on it
    Claim(lease::ClaimArgs),
    /// Lease the next ready issue, by priority, then id
    ClaimNext(lease::ClaimNextArgs),
    /// Move a lease's expiry
    Renew(lease::RenewArgs),
    /// Release a lease and reopen its issue
    Release(lease::ReleaseArgs),
    /// File an issue discovered from another
    ///
    /// Inside a step the request goes to the step's outbox and is filed when its turn passes the gate.
    Discover(write::DiscoverArgs),
    /// Rewrite the issue store sorted, one row per issue
    Compact,
    /// Accept rows that changed outside a transaction
    ///
    /// Such rows are reported by every batch and by `premath doctor` until then. The trajectory
    /// records who accepted them and why.
    AcceptChanges(accept::AcceptArgs),
}

impl IssueArgs {
    pub(crate) fn run(self, json: bool) -> Finished {
        let command = self.command;
        let action = command.action();
        let claims = matches!(command, IssueCommand::Claim(_) | IssueCommand::ClaimNext(_));
        let finished = Finished::on(action, "issuesPath", paths::issues(self.issues), |path| {
            command.perform(path, json)
        });
        if claims {
            finished.when_refused("claimed", false)
        } else {
            finished
        }
    }
}

impl IssueCommand {
    const fn action(&self) -> &'static str {
        match self {
            Self::Add(_) => "issue.add",
            Self::List(_) => "issue.list",
            Self::Show(_) => "issue.show",
            Self::Ready(_) => "issue.ready",
            Self::Blocked(_) => "issue.blocked",
            Self::Check(_) => "issue.check",
            Self::Update(_) => "issue.update",
            Self::Edit(_) => "issue.edit",
            Self::Close(_) => "issue.close",
            Self::Reopen(_) => "issue.reopen",
            Self::Defer(_) => "issue.defer",
            Self::Delete(_) => "issue.delete",
            Self::Import(_) => "issue.import",
            Self::Claim(_) => "issue.claim",
            Self::ClaimNext(_) => "issue.claim_next",
            Self::Renew(_) => "issue.lease_renew",
            Self::Release(_) => "issue.lease_release",
            Self::Discover(_) => "issue.discover",
            Self::Compact => "issue.compact",
            Self::AcceptChanges(_) => "issue.accept_changes",
        }
    }

    fn perform(self, path: &Path, json: bool) -> Result<Answer, CliError> {
        match self {
            Self::Add(args) => args.perform(path),
            Self::List(args) => {
                let memory = paths::open(path, false)?;
                let answer = args.perform(&memory, json)?;
                query::with_notes(answer, &memory, json, || args.none(&memory))
            }
            Self::Show(args) => args.perform(path),
            Self::Ready(limit) => {
                let memory = paths::open(path, false)?;
                let answer = query::ready(&memory, limit.limit, json)?;
                query::with_notes(answer, &memory, json, || query::none_ready(&memory))
            }
            Self::Blocked(limit) => {
                let memory = paths::open(path, false)?;
                let none = || Ok("no blocked issues".to_owned());
                query::with_notes(query::blocked(&memory, limit.limit)?, &memory, json, none)
            }
            Self::Check(args) => args.perform(path),
            Self::Update(args) => args.perform(path),
            Self::Edit(args) => args.perform(path),
            Self::Close(args) => args.perform(path),
            Self::Reopen(args) => args.reopen(path),
            Self::Defer(args) => args.defer(path),
            Self::Delete(args) => args.perform(path),
            Self::Import(args) => args.perform(path),
            Self::Claim(args) => args.perform(path),
            Self::ClaimNext(args) => args.perform(path),
            Self::Renew(args) => args.perform(path),
            Self::Release(args) => args.perform(path),
            Self::Discover(args) => args.perform(path),
            Self::Compact => write::compact(path),
            Self::AcceptChanges(args) => args.perform(path),
        }
    }
}
