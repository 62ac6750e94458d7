//! The rules of leases (`contracts.md` 4, `storage.md`).
//!
//! Every rule is a pure function from a row, a request and an observation of
//! clocks and processes to a change of the row or a refusal with its class.
//! The store calls them inside its transaction.

use crate::failure::FailureClass;
use crate::issue::{Issue, RowChange, Status};
use crate::time::{self, Moment};
use crate::token::token;
use serde::{Deserialize, Deserializer, Serialize};
use std::time::Duration;

/// The shortest time to live.
pub const TTL_MIN: Duration = Duration::from_secs(30);
/// The longest time to live.
pub const TTL_MAX: Duration = Duration::from_secs(86_400);
/// The time to live where none is given.
pub const TTL_DEFAULT: Duration = Duration::from_secs(3_600);

/// The right to work on one issue until a time, as it stands in the row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The lease's id.
    #[serde(default, deserialize_with = "text_or_null")]
    pub lease_id: Box<str>,
    /// Who holds it.
    #[serde(default, deserialize_with = "text_or_null")]
    pub owner: Box<str>,
    /// When it was claimed, RFC 3339.
    #[serde(default, deserialize_with = "text_or_null")]
    pub acquired_at: Box<str>,
    /// Until when it is good by the wall clock, RFC 3339.
    #[serde(default, deserialize_with = "text_or_null")]
    pub expires_at: Box<str>,
    /// When it was last renewed, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_at: Option<Box<str>>,
    /// The fencing token (ours); 0 in rows of others.
    #[serde(
        default,
        skip_serializing_if = "is_zero",
        deserialize_with = "number_or_null"
    )]
    pub generation: u64,
    /// The process that holds it (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// The assignee to go back to on release (ours).
    #[serde(
        default,
        skip_serializing_if = "str::is_empty",
        deserialize_with = "text_or_null"
    )]
    pub assignee_before: Box<str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn text_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Box<str>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// The process that holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The host's name.
    pub host: Box<str>,
    /// The id of the host's boot.
    pub boot_id: Box<str>,
    /// The process id.
    pub pid: u32,
    /// When the process started, in clock ticks since boot: pids come again.
    pub started: u64,
    /// Until when the lease is good, in milliseconds on CLOCK_BOOTTIME.
    #[serde(default)]
    pub deadline_ms: u64,
    /// The pid namespace that `pid` counts in, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_ns: Option<Box<str>>,
}

/// What can be said of a holder's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs.
    Alive,
    /// It ran on this host and does not run any more.
    Dead,
    /// It cannot be seen from here.
    Unknown,
}

/// What the caller sees of clocks and processes; the rules see nothing else.
pub struct Observation<'a> {
    /// The clocks.
    pub moment: Moment,
    /// The id of this host's boot.
    pub boot_id: &'a str,
    /// Tells whether a holder's process runs.
    pub life: &'a dyn Fn(&Holder) -> Life,
}

/// The state of an issue's lease (`contracts.md` 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LeaseState {
    /// There is no such issue.
    MissingIssue,
    /// Closed, no lease.
    Released,
    /// Closed, and a lease still stands in the row.
    ClosedWithLease,
    /// Not closed, no lease.
    Unleased,
    /// The expiry cannot be read.
    InvalidExpiresAt,
    /// Expired, or its holder is dead.
    Stale,
    /// Not expired, but the row's status or assignee does not fit it.
    Contended,
    /// In force.
    Active,
}

impl LeaseState {
    /// Returns the text that stands in references and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::MissingIssue => "missing_issue",
            Self::Released => "released",
            Self::ClosedWithLease => "closed_with_lease",
            Self::Unleased => "unleased",
            Self::InvalidExpiresAt => "invalid_expires_at",
            Self::Stale => "stale",
            Self::Contended => "contended",
            Self::Active => "active",
        }
    }
}

/// Tells the state of an issue's lease.
pub fn state(issue: Option<&Issue>, seen: &Observation<'_>) -> LeaseState {
    let Some(issue) = issue else {
        return LeaseState::MissingIssue;
    };
    let Some(lease) = &issue.lease else {
        return if issue.status.is_terminal() {
            LeaseState::Released
        } else {
            LeaseState::Unleased
        };
    };
    if issue.status.is_terminal() {
        return LeaseState::ClosedWithLease;
    }
    match expired(lease, seen) {
        None => LeaseState::InvalidExpiresAt,
        Some(true) => LeaseState::Stale,
        Some(false) => {
            let fits = issue.status == Status::InProgress && issue.assignee == lease.owner;
            if fits {
                LeaseState::Active
            } else {
                LeaseState::Contended
            }
        }
    }
}

/// Tells whether a lease is over; `None` where its expiry cannot be read.
///
/// Under the same boot the holder's life and its deadline on CLOCK_BOOTTIME
/// decide, so that no jump of the wall clock ends or prolongs a lease on its
/// own host; elsewhere `expires_at` does.
fn expired(lease: &Lease, seen: &Observation<'_>) -> Option<bool> {
    let expires_at = time::parse(&lease.expires_at)?;
    if let Some(holder) = &lease.holder
        && *holder.boot_id == *seen.boot_id
        && !seen.boot_id.is_empty()
    {
        let dead = (seen.life)(holder) == Life::Dead;
        return Some(dead || seen.moment.boot_ms >= holder.deadline_ms);
    }
    Some(seen.moment.wall >= expires_at)
}

/// A lease operation that was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{class}: {detail}")]
pub struct LeaseRefusal {
    /// The failure class.
    pub class: FailureClass,
    /// What stands against it, for a person.
    pub detail: String,
}

fn refuse<T>(class: FailureClass, detail: impl Into<String>) -> Result<T, LeaseRefusal> {
    Err(LeaseRefusal {
        class,
        detail: detail.into(),
    })
}

/// How long a lease is to live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// From now on.
    Ttl(Duration),
    /// Until a time.
    Until(jiff::Timestamp),
}

impl Term {
    fn resolve(self, now: Moment) -> Result<(jiff::Timestamp, u64), LeaseRefusal> {
        let ttl = match self {
            Self::Ttl(ttl) => ttl,
            Self::Until(until) => {
                let Ok(ttl) = Duration::try_from(until.duration_since(now.wall)) else {
                    return refuse(
                        FailureClass::LeaseInvalidExpiresAt,
                        format!("{until} is not in the future"),
                    );
                };
                ttl
            }
        };
        let wrong = match self {
            Self::Ttl(_) => FailureClass::LeaseInvalidTtl,
            Self::Until(_) => FailureClass::LeaseInvalidExpiresAt,
        };
        if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
            return refuse(
                wrong,
                format!(
                    "a lease lives {} to {} seconds, not {}",
                    TTL_MIN.as_secs(),
                    TTL_MAX.as_secs(),
                    ttl.as_secs()
                ),
            );
        }
        let Ok(expires_at) = now.wall.checked_add(ttl) else {
            return refuse(wrong, "the expiry is beyond the calendar");
        };
        let ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        Ok((expires_at, now.boot_ms.saturating_add(ttl_ms)))
    }
}

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
    fn admits(&self, assignee: &str, claimant: &str) -> bool {
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
    pub lease_id: Option<String>,
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
    pub issue_id: String,
    /// The lease's owner.
    pub owner: String,
    /// The lease's id.
    pub lease_id: String,
    /// The fencing token.
    pub generation: u64,
    /// The generation of the stale lease that was taken over, and its holder's step.
    pub taken_over: Option<TakenOver>,
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
pub struct TakenOver {
    /// Who held it.
    pub owner: String,
    /// Its generation.
    pub generation: u64,
    /// Whether its holder is known to be dead.
    pub holder_dead: bool,
}

/// What an operation says of the lease that it means; a worker says all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LeaseKey {
    /// The lease's id.
    pub lease_id: Option<String>,
    /// Its owner.
    pub owner: Option<String>,
    /// Its generation.
    pub generation: Option<u64>,
}

/// Tells whether an issue may be claimed, leaving readiness aside.
fn free_to_claim(
    issue: &Issue,
    request: &ClaimRequest,
    seen: &Observation<'_>,
) -> Result<Option<TakenOver>, LeaseRefusal> {
    let id = &issue.id;
    if issue.lease_generation == u64::MAX {
        return refuse(
            FailureClass::LeaseInvalidPayload,
            format!("issue {id} has a generation beyond counting"),
        );
    }
    match state(Some(issue), seen) {
        LeaseState::Released | LeaseState::ClosedWithLease | LeaseState::MissingIssue => refuse(
            FailureClass::LeaseIssueClosed,
            format!("issue {id} is closed"),
        ),
        LeaseState::InvalidExpiresAt => refuse(
            FailureClass::LeaseInvalidExpiresAt,
            format!("the lease of issue {id} has an expiry that cannot be read"),
        ),
        LeaseState::Active | LeaseState::Contended => {
            let owner = issue.lease.as_ref().map_or("", |lease| &lease.owner);
            refuse(
                FailureClass::LeaseContentionActive,
                format!("issue {id} is leased to {owner}"),
            )
        }
        LeaseState::Stale if issue.status == Status::InProgress => {
            Ok(issue.lease.as_ref().map(|lease| TakenOver {
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
                    format!("issue {id} is in progress without a lease: somebody's manual work"),
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
                    FailureClass::LeaseContentionActive,
                    format!("issue {id} waits for its retry at {retry_at}"),
                );
            }
            Ok(None)
        }
    }
}

/// Tells whether a claim would be granted to a claimant, apart from readiness.
pub fn claimable(issue: &Issue, request: &ClaimRequest, seen: &Observation<'_>) -> bool {
    free_to_claim(issue, request, seen).is_ok()
}

/// Claims an issue: status in progress, assignee, a new lease, generation + 1.
///
/// `ready` says whether the graph holds nothing against the issue; it is not
/// asked of a stale lease, whose issue was ready when it was claimed.
///
/// # Errors
///
/// Refused over a live lease, also for the same owner's name, where the issue
/// is closed, held, waiting or somebody else's, or the request is invalid.
pub fn claim(
    issue: &Issue,
    ready: bool,
    request: &ClaimRequest,
    seen: &Observation<'_>,
) -> Result<(RowChange, Claim), LeaseRefusal> {
    request.validate(seen.moment)?;
    let claimant = request.claimant.trim();
    let taken_over = free_to_claim(issue, request, seen)?;
    if taken_over.is_none() && !(ready && issue.status == Status::Open) {
        return refuse(
            FailureClass::LeaseContentionActive,
            format!(
                "issue {} is not ready (status {})",
                issue.id,
                issue.status.as_str()
            ),
        );
    }
    let (expires_at, deadline_ms) = request.term.resolve(seen.moment)?;
    let lease_id = request
        .lease_id
        .as_deref()
        .map(str::trim)
        .filter(|id| !id.is_empty());
    let Some(generation) = issue
        .lease_generation
        .max(request.generation_floor)
        .checked_add(1)
    else {
        return refuse(
            FailureClass::LeaseInvalidPayload,
            format!("issue {} has a generation beyond counting", issue.id),
        );
    };
    let assignee_before = match (&issue.lease, &taken_over) {
        (Some(lease), Some(_)) => lease.assignee_before.clone(),
        _ => issue.assignee.clone(),
    };
    let lease = Lease {
        lease_id: lease_id
            .map_or_else(|| default_lease_id(&issue.id, claimant), str::to_owned)
            .into(),
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
        .set_status(&Status::InProgress, seen.moment.wall)
        .set("assignee", claimant)
        .set("lease", &lease)
        .set("lease_generation", generation)
        .remove("retry_at");
    let claim = Claim {
        issue_id: issue.id.to_string(),
        owner: claimant.to_owned(),
        lease_id: lease.lease_id.to_string(),
        generation,
        taken_over,
    };
    Ok((change, claim))
}

/// Returns `lease1_<token(issue)>_<token(owner)>`.
pub fn default_lease_id(issue_id: &str, owner: &str) -> String {
    format!(
        "lease1_{}_{}",
        token(issue_id, "anon"),
        token(owner, "anon")
    )
}

/// Finds the lease that a key means.
fn held<'a>(issue: &'a Issue, key: &LeaseKey) -> Result<&'a Lease, LeaseRefusal> {
    if issue.status.is_terminal() {
        return refuse(
            FailureClass::LeaseIssueClosed,
            format!("issue {} is {}", issue.id, issue.status.as_str()),
        );
    }
    let Some(lease) = &issue.lease else {
        return refuse(
            FailureClass::LeaseMissing,
            format!("issue {} has no lease", issue.id),
        );
    };
    if key
        .owner
        .as_deref()
        .is_some_and(|owner| *owner != *lease.owner)
    {
        return refuse(
            FailureClass::LeaseOwnerMismatch,
            format!("issue {} is leased to {}", issue.id, lease.owner),
        );
    }
    if key
        .lease_id
        .as_deref()
        .is_some_and(|id| *id != *lease.lease_id)
    {
        return refuse(
            FailureClass::LeaseIdMismatch,
            format!("the lease of issue {} is {}", issue.id, lease.lease_id),
        );
    }
    if key.generation.is_some_and(|generation| {
        generation != issue.lease_generation || generation != lease.generation
    }) {
        return refuse(
            FailureClass::LeaseGenerationMismatch,
            format!(
                "issue {} is at generation {}",
                issue.id, issue.lease_generation
            ),
        );
    }
    Ok(lease)
}

/// Moves a lease's expiry; a contended row is healed.
///
/// # Errors
///
/// Refused where the lease is over, is not the one meant, or the term is invalid.
pub fn renew(
    issue: &Issue,
    key: &LeaseKey,
    term: Term,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    let lease = held(issue, key)?;
    match state(Some(issue), seen) {
        LeaseState::Active | LeaseState::Contended => {}
        LeaseState::InvalidExpiresAt => {
            return refuse(
                FailureClass::LeaseInvalidExpiresAt,
                format!(
                    "the lease of issue {} has an expiry that cannot be read",
                    issue.id
                ),
            );
        }
        _ => {
            return refuse(
                FailureClass::LeaseStale,
                format!("the lease of issue {} expired", issue.id),
            );
        }
    }
    let (expires_at, deadline_ms) = term.resolve(seen.moment)?;
    let renewed = Lease {
        expires_at: time::micros(expires_at).into(),
        renewed_at: Some(time::micros(seen.moment.wall).into()),
        holder: lease.holder.clone().map(|holder| Holder {
            deadline_ms,
            ..holder
        }),
        ..lease.clone()
    };
    let mut change = RowChange::new();
    change
        .set("status", Status::InProgress.as_str())
        .set("assignee", &lease.owner)
        .set("lease", &renewed)
        .touch(seen.moment.wall);
    Ok(change)
}

/// Gives a lease back: status open, assignee as before the claim.
///
/// `retry_at` is when the issue may be claimed again, where that is later.
///
/// # Errors
///
/// Refused where there is no lease or it is not the one meant.
pub fn release(
    issue: &Issue,
    key: &LeaseKey,
    retry_at: Option<jiff::Timestamp>,
    now: jiff::Timestamp,
) -> Result<RowChange, LeaseRefusal> {
    let lease = held(issue, key)?;
    let mut change = RowChange::new();
    change.set_status(&Status::Open, now);
    restore_assignee(&mut change, lease);
    match retry_at {
        Some(at) => change.set("retry_at", time::micros(at)),
        None => change.remove("retry_at"),
    };
    Ok(change)
}

fn restore_assignee(change: &mut RowChange, lease: &Lease) {
    if lease.assignee_before.is_empty() {
        change.remove("assignee");
    } else {
        change.set("assignee", &lease.assignee_before);
    }
}

/// Checks that a worker's lease is in force: active, and id, owner and
/// generation match.
///
/// # Errors
///
/// Refused with the class that says why it is not.
pub fn fence(issue: &Issue, key: &LeaseKey, seen: &Observation<'_>) -> Result<(), LeaseRefusal> {
    held(issue, key)?;
    match state(Some(issue), seen) {
        LeaseState::Active => Ok(()),
        LeaseState::Contended => refuse(
            FailureClass::LeaseContentionActive,
            format!(
                "the row of issue {} does not fit its lease any more",
                issue.id
            ),
        ),
        LeaseState::InvalidExpiresAt => refuse(
            FailureClass::LeaseInvalidExpiresAt,
            format!(
                "the lease of issue {} has an expiry that cannot be read",
                issue.id
            ),
        ),
        _ => refuse(
            FailureClass::LeaseStale,
            format!("the lease of issue {} expired", issue.id),
        ),
    }
}

/// Closes an issue for the step that holds its lease; the assignee stays.
///
/// # Errors
///
/// As [`fence`].
pub fn close(
    issue: &Issue,
    key: &LeaseKey,
    step_id: &str,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    fence(issue, key, seen)?;
    let mut change = RowChange::new();
    change
        .set_status(&Status::Closed, seen.moment.wall)
        .set("closed_by_step", step_id);
    Ok(change)
}

/// Blocks an issue for the escalation of the step that holds its lease.
///
/// # Errors
///
/// As [`fence`].
pub fn block(
    issue: &Issue,
    key: &LeaseKey,
    notes: &str,
    seen: &Observation<'_>,
) -> Result<RowChange, LeaseRefusal> {
    fence(issue, key, seen)?;
    let mut change = RowChange::new();
    change
        .set_status(&Status::Blocked, seen.moment.wall)
        .set("notes", notes);
    if let Some(lease) = &issue.lease {
        restore_assignee(&mut change, lease);
    }
    Ok(change)
}

#[cfg(test)]
mod tests;
