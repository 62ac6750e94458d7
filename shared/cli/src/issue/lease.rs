//! Commands by which a person holds and releases leases.
//!
//! Such a lease ends by time: the claiming process is gone when its lease
//! begins, so it names no holder (`contracts.md` 4).

use super::view::{IssueView, item, lease_text, line};
use super::write::{IssueAnswer, words};
use crate::answer::Answer;
use crate::error::CliError;
use crate::operator::Reason;
use crate::paths;
use crate::terminal::plain;
use clap::Args;
use premath_kernel::issue::lease::{AssigneeRule, ClaimRequest, LeaseKey, TTL_DEFAULT, Term};
use premath_kernel::issue::{Selection, TypeSelection};
use premath_kernel::json::id::IssueId;
use premath_memory::{ClaimScope, Claimed, IssueRow};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// Who claims, and for how long.
#[derive(Debug, Args)]
struct ClaimSelection {
    /// Set the owner of the lease, who becomes the issue's assignee
    #[arg(long, value_name = "NAME")]
    assignee: String,
    /// Set the id of the lease; by default made of issue and owner
    #[arg(long)]
    lease_id: Option<String>,
    #[command(flatten)]
    ttl: Ttl,
    /// Also claim issues that are assigned to another name
    #[arg(long)]
    any_assignee: bool,
}

#[derive(Debug, Args)]
struct Ttl {
    /// Set the lifetime of the lease in seconds, 30 to 86400
    #[arg(long, default_value_t = TTL_DEFAULT.as_secs(), value_name = "SECONDS")]
    lease_ttl_seconds: u64,
}

impl Ttl {
    const fn term(&self) -> Term {
        Term::Ttl(Duration::from_secs(self.lease_ttl_seconds))
    }
}

impl ClaimSelection {
    fn request(self) -> ClaimRequest {
        ClaimRequest {
            claimant: self.assignee.trim().to_owned(),
            lease_id: self.lease_id.map(Into::into),
            term: self.ttl.term(),
            assignees: if self.any_assignee {
                AssigneeRule::Any
            } else {
                AssigneeRule::Unassigned
            },
            holder: None,
            generation_floor: 0,
        }
    }
}

/// The issue to claim.
#[derive(Debug, Args)]
pub(super) struct ClaimArgs {
    /// The issue
    id: String,
    #[command(flatten)]
    wish: ClaimSelection,
}

impl ClaimArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = Reason::default().authority()?.lease_authority();
        let memory = paths::open(path, false)?;
        let claimed = memory.claim(&authority, &self.id.into(), self.wish.request())?;
        Ok(taken(&claimed))
    }
}

/// Which issues come into question.
#[derive(Debug, Args)]
pub(super) struct ClaimNextArgs {
    #[command(flatten)]
    wish: ClaimSelection,
    /// Claim only issues of these types, separated by commas; `all` for every type
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "all",
        value_name = "TYPES"
    )]
    issue_types: Vec<String>,
    /// Claim only issues with one of these labels, separated by commas
    #[arg(long, value_delimiter = ',')]
    labels: Vec<String>,
}

impl ClaimNextArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = Reason::default().authority()?.lease_authority();
        let scope = ClaimScope {
            selection: selection(self.issue_types, self.labels),
            ..ClaimScope::default()
        };
        let memory = paths::open(path, false)?;
        let wishes = vec![self.wish.request()];
        let claimed = memory.claim_next(&authority, wishes, &scope)?;
        Ok(match claimed.into_iter().next().flatten() {
            Some(claimed) => taken(&claimed),
            None => Answer::new(
                ClaimAnswer {
                    claimed: false,
                    issue: None,
                    taken_over: None,
                },
                "nothing to claim\n",
            ),
        })
    }
}

fn selection(types: Vec<String>, labels: Vec<String>) -> Selection {
    let types = words(types);
    Selection {
        types: if types.is_empty() || types.iter().any(|word| word == "all") {
            TypeSelection::All
        } else {
            TypeSelection::Only(types)
        },
        labels: words(labels),
        ..Selection::default()
    }
}

/// The answer of a claim.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClaimAnswer<'a> {
    /// Whether an issue was claimed.
    claimed: bool,
    /// The issue, null where nothing could be claimed.
    issue: Option<IssueView<'a>>,
    /// The lease that was over and that this one took the place of.
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_over: Option<TakenOver>,
}

/// A lease that was over.
#[derive(Debug, Serialize, JsonSchema)]
struct TakenOver {
    /// The owner of the lease that was taken over.
    owner: String,
    /// The generation of the lease that was taken over.
    generation: u64,
}

/// The answer of a claim that was granted.
pub(crate) fn taken(claimed: &Claimed) -> Answer {
    let before = claimed.claim.taken_over.as_ref();
    let document = ClaimAnswer {
        claimed: true,
        issue: Some(item(&claimed.row)),
        taken_over: before.map(|before| TakenOver {
            owner: before.owner.to_string(),
            generation: before.generation,
        }),
    };
    Answer::new(document, with_lease("claimed", &claimed.row))
}

/// The answer of a renewal.
pub(crate) fn renewed(row: &IssueRow) -> Answer {
    Answer::new(IssueAnswer { issue: item(row) }, with_lease("renewed", row))
}

/// The answer of a release.
pub(crate) fn released(row: &IssueRow) -> Answer {
    Answer::new(IssueAnswer { issue: item(row) }, line("released", row))
}

fn with_lease(verb: &str, row: &IssueRow) -> String {
    let mut text = line(verb, row);
    if let Some(lease) = &row.issue.lease {
        text.push_str(&format!("  {}\n", plain(&lease_text(lease))));
    }
    text
}

/// What is known about the lease; what is not given is not compared.
#[derive(Debug, Args)]
struct Key {
    /// The issue
    id: String,
    /// Require this id of the lease
    #[arg(long)]
    lease_id: Option<String>,
    /// Require this owner of the lease
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Require this generation of the lease
    #[arg(long, value_name = "N")]
    generation: Option<u64>,
}

impl Key {
    fn split(self) -> (IssueId, LeaseKey) {
        let key = LeaseKey {
            lease_id: self.lease_id.map(Into::into),
            owner: self.owner,
            generation: self.generation,
        };
        (self.id.into(), key)
    }
}

/// The lease to renew.
#[derive(Debug, Args)]
pub(super) struct RenewArgs {
    #[command(flatten)]
    key: Key,
    #[command(flatten)]
    ttl: Ttl,
}

impl RenewArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = Reason::default().authority()?.lease_authority();
        let memory = paths::open(path, false)?;
        let (id, key) = self.key.split();
        let row = memory.renew(&authority, &id, key, self.ttl.term())?;
        Ok(renewed(&row))
    }
}

/// The lease to release.
#[derive(Debug, Args)]
pub(super) struct ReleaseArgs {
    #[command(flatten)]
    key: Key,
}

impl ReleaseArgs {
    pub(super) fn perform(self, path: &Path) -> Result<Answer, CliError> {
        let authority = Reason::default().authority()?.lease_authority();
        let memory = paths::open(path, false)?;
        let (id, key) = self.key.split();
        let row = memory.release(&authority, &id, key, None)?;
        Ok(released(&row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_wins_and_stray_commas_select_nothing() {
        let texts = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            selection(texts(&["task", "all"]), vec![]),
            Selection::everything()
        );
        assert_eq!(
            selection(texts(&["", " "]), vec![]),
            Selection::everything()
        );
        let only = selection(texts(&["bug", ""]), texts(&[" ui"]));
        assert_eq!(only.types, TypeSelection::Only(vec!["bug".to_owned()]));
        assert_eq!(only.labels, ["ui"]);
    }
}
