//! Why an issue is not worked on now, or did not close: each reason with the
//! command that comes next.

use super::live::{BatchPhase, LiveBatch, PauseKind, QueueScope, ReadyState, ready_state};
use crate::issue::graph::Hold;
use crate::issue::lease::{self, AssigneeRule, LeaseState, Observation};
use crate::issue::{Issue, Selection, Status};
use crate::json::id::IssueId;
use crate::json::plain::shell_word;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Why an issue is not worked on now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reason {
    /// The kind of reason.
    pub kind: ReasonKind,
    /// The reason, for a person.
    pub text: String,
    /// The command that comes next; null where there is nothing to do.
    pub next: Option<String>,
}

/// The kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasonKind {
    /// A lane works on it.
    Running,
    /// It is closed.
    Closed,
    /// Its attempts are used up, and a person must look at it.
    Blocked,
    /// Its status is one that is never dispatched, or it failed in one batch after
    /// another.
    SetAside,
    /// It is in progress under a lease that is in force.
    Leased,
    /// It is in progress under a lease that is over.
    LeaseOver,
    /// It is in progress without a lease.
    Manual,
    /// Another issue holds it.
    Held,
    /// An issue that does not exist holds it.
    HeldByMissing,
    /// It is not selected, by type, label or instruction.
    NotSelected,
    /// The running batch does not take it again.
    LeftOut,
    /// It is assigned to a person whose issues are not taken.
    Assigned,
    /// It waits for itself.
    Cycle,
    /// The dispatches of the batch are used up before its turn.
    OutOfRounds,
    /// Its next attempt begins later.
    Retry,
    /// No batch runs.
    NoBatch,
    /// The batch that runs begins no new work.
    Draining,
    /// Lanes wait for a provider, for the breaker, or for room.
    Paused,
    /// It is ready, and waits for a lane.
    Ready,
}

/// What is looked at for the sake of the reasons.
pub struct WhyScope<'a> {
    /// The batches that run.
    pub batches: &'a [LiveBatch],
    /// Which issues a batch works on.
    pub selection: &'a Selection,
    /// Whose issues it takes.
    pub assignees: &'a AssigneeRule,
    /// The issues that failed in one batch after another.
    pub set_aside: &'a BTreeSet<IssueId>,
    /// How many ready issues come before it.
    pub before: usize,
    /// The clocks and processes.
    pub seen: &'a Observation<'a>,
}

/// Returns why an issue is not worked on now. The first reason is to be removed
/// first.
pub fn reasons(issue: &Issue, holds: &[Hold], scope: &WhyScope<'_>) -> Vec<Reason> {
    let id = shell_word(&issue.id);
    if let Some(running) = running(&issue.id, &id, scope.batches) {
        return vec![running];
    }
    match &issue.status {
        Status::Closed | Status::Tombstone => {
            let by = issue.closed_by_step.as_deref();
            let by = by.map_or(String::new(), |step| format!(" by step {step}"));
            let text = format!("it is {}{by}", issue.status.as_str());
            vec![reason(
                ReasonKind::Closed,
                text,
                Some(format!("premath issue show {id}")),
            )]
        }
        Status::Blocked => vec![reason(
            ReasonKind::Blocked,
            "it is blocked: its attempts are used up, or a person blocked it".to_owned(),
            Some(format!("premath retry {id}")),
        )],
        Status::Other(status) => vec![reason(
            ReasonKind::SetAside,
            format!("its status is {status}, which is never dispatched"),
            Some(format!("premath retry {id}")),
        )],
        Status::InProgress => vec![in_progress(issue, &id, scope.seen)],
        // Whatever holds it: nothing that ends lets it be dispatched.
        Status::Open if !scope.selection.admits(issue) => open(issue, &id, scope),
        Status::Open if !holds.is_empty() => holds.iter().map(|hold| held(&id, hold)).collect(),
        Status::Open => open(issue, &id, scope),
    }
}

fn reason(kind: ReasonKind, text: String, next: Option<String>) -> Reason {
    Reason { kind, text, next }
}

fn running(id: &str, word: &str, batches: &[LiveBatch]) -> Option<Reason> {
    let lanes = batches.iter().flat_map(|batch| &batch.lanes);
    let mut at_work = lanes.filter_map(|lane| Some((lane, lane.step.as_ref()?)));
    let (lane, step) = at_work.find(|(_, step)| step.issue_id == *id)?;
    let text = format!(
        "{} works on it: attempt {}, {}",
        lane.worker_id,
        step.attempt,
        step.phase.word()
    );
    let next = format!("premath issue show {word}");
    Some(reason(ReasonKind::Running, text, Some(next)))
}

fn in_progress(issue: &Issue, id: &str, seen: &Observation<'_>) -> Reason {
    let owner = issue.lease.as_ref().map_or("", |lease| &lease.owner);
    let expires = issue.lease.as_ref().map_or("", |lease| &lease.expires_at);
    match lease::state(Some(issue), seen) {
        LeaseState::Active => reason(
            ReasonKind::Leased,
            format!("{owner} holds its lease until {expires}"),
            Some("premath status".to_owned()),
        ),
        LeaseState::Stale => reason(
            ReasonKind::LeaseOver,
            format!("the lease of {owner} is over; the next batch takes it up again"),
            Some("harness-coordinator".to_owned()),
        ),
        LeaseState::Unleased => reason(
            ReasonKind::Manual,
            format!(
                "it is in progress without a lease, as manual work of {} is",
                named(&issue.assignee)
            ),
            Some(format!("premath issue update {id} --status open")),
        ),
        state => reason(
            ReasonKind::Leased,
            format!("its lease is {} ({owner})", state.as_str()),
            Some(format!("premath issue show {id}")),
        ),
    }
}

fn named(assignee: &str) -> &str {
    match assignee {
        "" => "an unnamed person",
        name => name,
    }
}

fn held(id: &str, hold: &Hold) -> Reason {
    let why = |on: &str| Some(format!("premath why {}", shell_word(on)));
    match hold {
        Hold::On(on) => reason(ReasonKind::Held, format!("it waits for {on}"), why(on)),
        Hold::OnMissing(on) => reason(
            ReasonKind::HeldByMissing,
            format!("it waits for {on}, which does not exist"),
            Some(format!("premath dep remove {id} {}", shell_word(on))),
        ),
        Hold::Child(on) => reason(
            ReasonKind::Held,
            format!("it waits for its child {on}"),
            why(on),
        ),
        Hold::Ancestor(on) => reason(
            ReasonKind::Held,
            format!("its parent {on} waits for other issues"),
            why(on),
        ),
    }
}

/// Returns why an issue that nothing holds is not worked on.
fn open(issue: &Issue, id: &str, scope: &WhyScope<'_>) -> Vec<Reason> {
    if scope.set_aside.contains(&*issue.id) {
        return vec![reason(
            ReasonKind::SetAside,
            "it failed in one batch after another and is set aside".to_owned(),
            Some(format!("premath retry {id}")),
        )];
    }
    let queue_scope = QueueScope {
        selection: scope.selection,
        assignees: scope.assignees,
        left_out: &left_out(issue, scope),
        now: scope.seen.moment.wall,
    };
    match ready_state(issue, &queue_scope) {
        ReadyState::NotSelected => vec![not_selected(issue, id, scope.selection)],
        ReadyState::LeftOut => vec![reason(
            ReasonKind::LeftOut,
            "the batch that runs does not try it again; the next one does".to_owned(),
            Some(format!("premath issue show {id}")),
        )],
        ReadyState::AssignedTo(name) => vec![reason(
            ReasonKind::Assigned,
            format!("it is assigned to {name}, whose issues are not taken"),
            Some(format!("premath issue update {id} --assignee ''")),
        )],
        ReadyState::RetryAt(at) => {
            let text = format!("its next attempt begins at {at:.0}");
            let retry = reason(ReasonKind::Retry, text, None);
            std::iter::once(retry).chain(of_batches(scope)).collect()
        }
        ReadyState::Claimable => {
            let mut found = of_batches(scope);
            if found.is_empty() {
                let before = scope.before;
                let text = format!("it is ready; {before} ready issue(s) come before it");
                found.push(reason(
                    ReasonKind::Ready,
                    text,
                    Some("premath status".to_owned()),
                ));
            }
            found
        }
    }
}

/// Returns the issue where a running batch does not take it.
fn left_out(issue: &Issue, scope: &WhyScope<'_>) -> BTreeSet<IssueId> {
    let id = IssueId::from(&*issue.id);
    let mut batches = scope.batches.iter();
    let is_left_out = batches.any(|batch| batch.left_out.contains(&id));
    is_left_out.then_some(id).into_iter().collect()
}

fn not_selected(issue: &Issue, id: &str, selection: &Selection) -> Reason {
    let show = Some(format!("premath issue show {id}"));
    let is_covered = selection.scope.admits(issue);
    let text = match is_covered {
        false => "the instruction of the batch does not cover it".to_owned(),
        true => format!(
            "it is not selected: type {}, labels {} (`issue_types`, `labels` under [batch])",
            issue.issue_type,
            match issue.labels.is_empty() {
                true => "none".to_owned(),
                false => issue.labels.join(", "),
            }
        ),
    };
    reason(ReasonKind::NotSelected, text, show)
}

/// Returns why no batch begins an issue that is ready.
fn of_batches(scope: &WhyScope<'_>) -> Vec<Reason> {
    if scope.batches.is_empty() {
        let next = Some("harness-coordinator".to_owned());
        let text = "no batch is running".to_owned();
        return vec![reason(ReasonKind::NoBatch, text, next)];
    }
    let status = || Some("premath status".to_owned());
    let mut found = Vec::new();
    for batch in scope.batches {
        if batch.phase != BatchPhase::Running {
            let text = format!("batch {} begins no new attempts", batch.batch_id);
            found.push(reason(ReasonKind::Draining, text, status()));
        }
        for pause in &batch.pauses {
            let until = pause.until.as_ref();
            let until = until.map_or(String::new(), |at| format!(" until {}", at.as_str()));
            let text = match pause.kind {
                PauseKind::Provider => format!("provider {} is parked{until}", pause.name),
                PauseKind::Breaker => {
                    format!("issues fail alike ({}); dispatch pauses{until}", pause.name)
                }
                PauseKind::Room => format!("there is too little free {}", pause.name),
                PauseKind::Window => {
                    let at = until.trim_start_matches(" until ");
                    format!(
                        "it is outside of {}; attempts start again at {at}",
                        pause.name
                    )
                }
                PauseKind::Operator => format!("{} paused the batch", pause.name),
            };
            let next = match pause.kind {
                PauseKind::Operator => Some("premath batch resume".to_owned()),
                _ => status(),
            };
            found.push(reason(ReasonKind::Paused, text, next));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::graph::IssueGraph;
    use crate::issue::lease::Life;
    use crate::json::time::Moment;
    use serde_json::json;

    fn issue(more: serde_json::Value) -> Issue {
        let mut row = json!({"id": "a", "title": "t", "status": "open"});
        for (key, value) in more.as_object().into_iter().flatten() {
            row[key] = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    fn why(issue: &Issue) -> Vec<Reason> {
        let seen = Observation {
            moment: Moment {
                wall: "2026-03-05T10:00:00Z".parse().unwrap(),
                boot_ms: 0,
            },
            boot_id: "b",
            life: &|_| Life::Dead,
        };
        let scope = WhyScope {
            batches: &[],
            selection: &Selection::default(),
            assignees: &AssigneeRule::Unassigned,
            set_aside: &["aside".into()].into_iter().collect(),
            before: 0,
            seen: &seen,
        };
        let holds = IssueGraph::build([issue]).holds(&issue.id);
        reasons(issue, &holds, &scope)
    }

    #[test]
    fn every_state_of_an_issue_has_its_reason_and_the_next_command() {
        let on = |id: &str| json!([{"issue_id": "a", "depends_on_id": id, "type": "blocks"}]);
        for (more, kind, next) in [
            (json!({}), ReasonKind::NoBatch, Some("harness-coordinator")),
            (
                json!({"status": "blocked"}),
                ReasonKind::Blocked,
                Some("premath retry a"),
            ),
            (
                json!({"status": "deferred"}),
                ReasonKind::SetAside,
                Some("premath retry a"),
            ),
            (
                json!({"status": "closed"}),
                ReasonKind::Closed,
                Some("premath issue show a"),
            ),
            (
                json!({"status": "in_progress"}),
                ReasonKind::Manual,
                Some("premath issue update a --status open"),
            ),
            (
                json!({"dependencies": on("it's")}),
                ReasonKind::HeldByMissing,
                Some("premath dep remove a 'it'\\''s'"),
            ),
            (
                json!({"issue_type": "epic"}),
                ReasonKind::NotSelected,
                Some("premath issue show a"),
            ),
            (
                json!({"assignee": "eve"}),
                ReasonKind::Assigned,
                Some("premath issue update a --assignee ''"),
            ),
            (
                json!({"retry_at": "2026-03-05T11:00:00Z"}),
                ReasonKind::Retry,
                None,
            ),
        ] {
            let found = why(&issue(more.clone()));
            let first = (found[0].kind, found[0].next.as_deref());
            assert_eq!(first, (kind, next), "{more}");
        }
    }
}
