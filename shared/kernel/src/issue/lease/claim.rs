//! Claims: who may take which issue, and the lease that comes of it.

use super::{LeaseKey, LeaseRefusal, LeaseState, Life, Observation, Term, refuse, state};
use crate::failure::FailureClass;
use crate::issue::graph::Hold;
use crate::issue::{Holder, Issue, Lease, RowChange, Status};
use crate::json::id::{IssueId, LeaseId};
use crate::json::time::{self, Moment};
use crate::json::token::token;

/// Whose issues a claim may take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AssigneeRule {
    /// Unassigned ones, and those assigned to the claimant.
    #[default]
    Unassigned,
    /// Any.
    Any,
    /// Those assigned to this name, and to the claimant.
    Named(String),
}

impl AssigneeRule {
    /// Returns whether the claimant may take an issue of an assignee.
    pub(crate) fn admits(&self, assignee: &str, claimant: &str) -> bool {
        assignee == claimant
            || match self {
                Self::Unassigned => assignee.is_empty(),
                Self::Any => true,
                Self::Named(name) => assignee == name,
            }
    }
}

/// A wish to claim an issue.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Who claims: the lease's owner and the row's assignee from then on.
    pub claimant: String,
    /// The lease's id; by default made from issue and owner.
    pub lease_id: Option<LeaseId>,
    /// How long the lease lives.
    pub term: Term,
    /// Whose issues may be taken.
    pub assignees: AssigneeRule,
    /// The process that will hold it; a lane's only.
    pub holder: Option<Holder>,
    /// The highest generation that is known from elsewhere; the new one is
    /// above it. Issue memory may have been taken back to an older version,
    /// and a step id must not come again.
    pub generation_floor: u64,
}

impl ClaimRequest {
    /// Returns the id of the lease that is asked for: the given one, or the one
    /// that the issue and the claimant make.
    fn lease_id_for(&self, issue_id: &str) -> LeaseId {
        let given = self.lease_id.as_deref().map(str::trim);
        match given.filter(|id| !id.is_empty()) {
            Some(id) => LeaseId::from(id),
            None => default_lease_id(issue_id, self.claimant.trim()),
        }
    }

    /// Checks what does not depend on an issue.
    ///
    /// # Errors
    ///
    /// `lease_invalid_assignee`, `lease_invalid_ttl` or `lease_invalid_expires_at`.
    pub fn validate(&self, now: Moment) -> Result<(), LeaseRefusal> {
        if self.claimant.trim().is_empty() {
            return refuse(FailureClass::LeaseInvalidAssignee, "the assignee is empty");
        }
        self.term.resolve(now).map(drop)
    }
}

/// A lease that was claimed: what a worker acts under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The issue.
    pub issue_id: IssueId,
    /// The lease's owner.
    pub owner: String,
    /// The lease's id.
    pub lease_id: LeaseId,
    /// The fencing token.
    pub generation: u64,
    /// The generation of the stale lease that was taken over, and its holder's step.
    pub taken_over: Option<TakenOverLease>,
}

impl Claim {
    /// Returns the key that later operations on the lease must give.
    pub fn key(&self) -> LeaseKey {
        LeaseKey {
            lease_id: Some(self.lease_id.clone()),
            owner: Some(self.owner.clone()),
            generation: Some(self.generation),
        }
    }
}

/// A stale lease that a claim took over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenOverLease {
    /// The owner of the earlier lease.
    pub owner: String,
    /// The generation of the earlier lease.
    pub generation: u64,
    /// Whether its holder is known to be dead.
    pub holder_dead: bool,
}

/// Returns whether an issue may be claimed, leaving readiness aside.
fn free_to_claim(
    issue: &Issue,
    request: &ClaimRequest,
    seen: &Observation<'_>,
) -> Result<Option<TakenOverLease>, LeaseRefusal> {
    let id = &issue.id;
    if issue.lease_generation == u64::MAX {
        return refuse(
            FailureClass::LeaseInvalidPayload,
            format!("the generation of issue {id} overflows"),
        );
    }
    match state(Some(issue), seen) {
        LeaseState::Released | LeaseState::ClosedWithLease | LeaseState::MissingIssue => refuse(
            FailureClass::LeaseIssueClosed,
            format!("issue {id} is closed"),
        ),
        LeaseState::InvalidExpiresAt => refuse(
            FailureClass::LeaseInvalidExpiresAt,
            format!("the lease of issue {id} has an invalid expiry"),
        ),
        LeaseState::Active | LeaseState::Contended => {
            let owner = issue.lease.as_ref().map_or("", |lease| &lease.owner);
            refuse(
                FailureClass::LeaseContentionActive,
                format!("issue {id} is leased to {owner}"),
            )
        }
        LeaseState::Stale if issue.status == Status::InProgress => {
            Ok(issue.lease.as_ref().map(|lease| TakenOverLease {
                owner: lease.owner.to_string(),
                generation: issue.lease_generation,
                holder_dead: lease
                    .holder
                    .as_ref()
                    .is_some_and(|holder| (seen.life)(holder) == Life::Dead),
            }))
        }
        LeaseState::Stale | LeaseState::Unleased => {
            if issue.status == Status::InProgress {
                return refuse(
                    FailureClass::LeaseContentionActive,
                    format!("issue {id} is in progress without a lease (manual work)"),
                );
            }
            if !request.assignees.admits(&issue.assignee, &request.claimant) {
                return refuse(
                    FailureClass::LeaseContentionActive,
                    format!("issue {id} is assigned to {}", issue.assignee),
                );
            }
            if let Some(retry_at) = &issue.retry_at
                && time::parse(retry_at).is_some_and(|at| at > seen.moment.wall)
            {
                return refuse(
                    FailureClass::IssueNotReady,
                    format!("issue {id} is waiting for its retry at {retry_at}"),
                );
            }
            Ok(None)
        }
    }
}

/// Returns whether a claim would be granted to a claimant, apart from
/// readiness.
pub fn claimable(issue: &Issue, request: &ClaimRequest, seen: &Observation<'_>) -> bool {
    free_to_claim(issue, request, seen).is_ok()
}

/// Claims an issue: status in progress, assignee, a new lease, generation + 1.
///
/// `held_by` is absent for a ready issue, and otherwise lists what it waits
/// for. It has no effect on a stale lease, whose issue was ready when it was
/// claimed.
///
/// # Errors
///
/// Refused over a live lease, also for the same owner's name, where the issue
/// is closed, held, waiting or assigned to another, or the request is invalid.
pub fn claim(
    issue: &Issue,
    held_by: Option<&[Hold]>,
    request: &ClaimRequest,
    seen: &Observation<'_>,
) -> Result<(RowChange, Claim), LeaseRefusal> {
    request.validate(seen.moment)?;
    let claimant = request.claimant.trim();
    let taken_over = free_to_claim(issue, request, seen)?;
    if taken_over.is_none() && (held_by.is_some() || issue.status != Status::Open) {
        return refuse(
            FailureClass::IssueNotReady,
            not_ready(issue, held_by.unwrap_or_default()),
        );
    }
    let (expires_at, deadline_ms) = request.term.resolve(seen.moment)?;
    let generation = next_generation(issue, request)?;
    let assignee_before = match (&issue.lease, &taken_over) {
        (Some(lease), Some(_)) => lease.assignee_before.clone(),
        _ => issue.assignee.clone(),
    };
    let lease = Lease {
        lease_id: request.lease_id_for(&issue.id).as_str().into(),
        owner: claimant.into(),
        acquired_at: time::micros(seen.moment.wall).into(),
        expires_at: time::micros(expires_at).into(),
        renewed_at: None,
        generation,
        holder: request.holder.clone().map(|holder| Holder {
            deadline_ms,
            ..holder
        }),
        assignee_before,
    };
    let mut change = RowChange::new();
    change
        .set_status(issue, &Status::InProgress, seen.moment.wall)
        .set("assignee", claimant)
        .set("lease", &lease)
        .set("lease_generation", generation)
        .remove("retry_at");
    let claim = Claim {
        issue_id: IssueId::from(&*issue.id),
        owner: claimant.to_owned(),
        lease_id: LeaseId::from(&*lease.lease_id),
        generation,
        taken_over,
    };
    Ok((change, claim))
}

/// Says why an issue is not ready.
fn not_ready(issue: &Issue, held_by: &[Hold]) -> String {
    let id = &issue.id;
    if issue.status != Status::Open {
        let status = issue.status.as_str();
        return format!("issue {id} is not ready: its status is {status}");
    }
    if held_by.is_empty() {
        return format!("issue {id} is not ready");
    }
    let holds: Vec<String> = held_by.iter().map(Hold::to_string).collect();
    format!("issue {id} is not ready: it waits for {}", holds.join(", "))
}

fn next_generation(issue: &Issue, request: &ClaimRequest) -> Result<u64, LeaseRefusal> {
    let last = issue.lease_generation.max(request.generation_floor);
    match last.checked_add(1) {
        Some(generation) => Ok(generation),
        None => refuse(
            FailureClass::LeaseInvalidPayload,
            format!("the generation of issue {} overflows", issue.id),
        ),
    }
}

/// Returns `lease1_<token(issue)>_<token(owner)>`.
pub(crate) fn default_lease_id(issue_id: &str, owner: &str) -> LeaseId {
    let [issue, owner] = [issue_id, owner].map(|name| token(name, "anon"));
    LeaseId::from(format!("lease1_{issue}_{owner}"))
}
