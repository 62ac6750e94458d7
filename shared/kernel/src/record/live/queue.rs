//! The issues of a store by what a batch can do with them.

use crate::issue::graph::{Hold, IssueGraph};
use crate::issue::lease::AssigneeRule;
use crate::issue::{Issue, Selection, Status};
use crate::json::id::IssueId;
use crate::json::stamp::Stamp;
use crate::json::time;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How many issues that hold others are named.
const BLOCKERS_MAX: usize = 5;

/// The issues of a store, counted by what a batch can do with them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveQueue {
    /// All issues.
    pub total: u64,
    /// Issues that a lane can be given now.
    pub ready: u64,
    /// Ready issues that wait for their next attempt.
    pub retrying: u64,
    /// When the first of them may be claimed; null where none waits.
    pub next_retry_at: Option<Stamp>,
    /// Open issues that other issues hold back.
    pub waiting: u64,
    /// Those of them that wait for an issue which no lane will close: one that is
    /// blocked, set aside, missing or left out.
    pub stuck: u64,
    /// Ready issues that the batch does not take again.
    pub left_out: u64,
    /// Open issues that are not selected: by type, label or instruction.
    pub not_selected: u64,
    /// Ready issues that are assigned to others.
    pub assigned: u64,
    /// Issues in progress.
    pub in_progress: u64,
    /// Issues that a person must look at.
    pub blocked: u64,
    /// Issues with a status that is never dispatched, as `deferred`.
    pub set_aside: u64,
    /// Closed issues.
    pub closed: u64,
    /// The issues that hold most others, the first five.
    pub blockers: Vec<Blocker>,
    /// The state of the file that was counted; null where it is not known.
    pub store: Option<StoreStamp>,
}

impl LiveQueue {
    /// Counts issues.
    pub fn count<'a>(
        issues: impl IntoIterator<Item = &'a Issue>,
        graph: &IssueGraph,
        scope: &QueueScope<'_>,
    ) -> Self {
        let mut queue = Self::default();
        let mut holds = Holds::default();
        let mut earliest: Option<Timestamp> = None;
        // A deleted issue keeps its row.
        let there = |issue: &&Issue| issue.status != Status::Tombstone;
        for issue in issues.into_iter().filter(there) {
            queue.total += 1;
            match &issue.status {
                Status::Open if graph.is_ready(&issue.id) => {
                    let state = ready_state(issue, scope);
                    if !state.is_for_a_lane() {
                        holds.never.push(&issue.id);
                    }
                    if let ReadyState::RetryAt(at) = state {
                        earliest = Some(earliest.map_or(at, |known| known.min(at)));
                    }
                    *queue.place_of(&state) += 1;
                }
                Status::Open if !scope.selection.admits(issue) => {
                    holds.never.push(&issue.id);
                    queue.not_selected += 1;
                }
                Status::Open => {
                    queue.waiting += 1;
                    holds.enter(&issue.id, &graph.holds(&issue.id));
                }
                Status::InProgress => queue.in_progress += 1,
                Status::Blocked => {
                    queue.blocked += 1;
                    holds.never.push(&issue.id);
                }
                Status::Closed | Status::Tombstone => queue.closed += 1,
                Status::Other(_) => {
                    queue.set_aside += 1;
                    holds.never.push(&issue.id);
                }
            }
        }
        queue.next_retry_at = earliest.map(Stamp::at);
        queue.stuck = holds.stuck();
        queue.blockers = holds.blockers();
        queue
    }

    fn place_of(&mut self, state: &ReadyState) -> &mut u64 {
        match state {
            ReadyState::Claimable => &mut self.ready,
            ReadyState::RetryAt(_) => &mut self.retrying,
            ReadyState::LeftOut => &mut self.left_out,
            ReadyState::NotSelected => &mut self.not_selected,
            ReadyState::AssignedTo(_) => &mut self.assigned,
        }
    }

    /// Returns how many issues the batch can still work on, those in progress
    /// left out.
    pub(crate) const fn workable(&self) -> u64 {
        let waiting = self.waiting.saturating_sub(self.stuck);
        self.ready
            .saturating_add(self.retrying)
            .saturating_add(waiting)
    }
}

/// What a batch takes of the ready issues.
#[derive(Debug)]
pub struct QueueScope<'a> {
    /// Which issues it works on.
    pub selection: &'a Selection,
    /// Whose issues it takes.
    pub assignees: &'a AssigneeRule,
    /// The issues that it does not take again.
    pub left_out: &'a BTreeSet<IssueId>,
    /// Now.
    pub now: Timestamp,
}

/// What a batch does with an issue that is open and that nothing holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadyState {
    /// A lane can be given it now.
    Claimable,
    /// Its next attempt begins at a time.
    RetryAt(Timestamp),
    /// The batch does not take it again.
    LeftOut,
    /// It is not selected, by type, label or instruction.
    NotSelected,
    /// It is assigned to a person whose issues the batch does not take.
    AssignedTo(String),
}

impl ReadyState {
    /// Returns whether a lane will be given the issue, now or later.
    const fn is_for_a_lane(&self) -> bool {
        matches!(self, Self::Claimable | Self::RetryAt(_))
    }
}

/// Returns what a batch does with an issue that is open and that nothing holds.
pub(crate) fn ready_state(issue: &Issue, scope: &QueueScope<'_>) -> ReadyState {
    if !scope.selection.admits(issue) {
        return ReadyState::NotSelected;
    }
    if scope.left_out.contains(&*issue.id) {
        return ReadyState::LeftOut;
    }
    if !scope.assignees.admits(&issue.assignee, "") {
        return ReadyState::AssignedTo(issue.assignee.to_string());
    }
    let retry_at = issue.retry_at.as_deref().and_then(time::parse);
    match retry_at.filter(|at| *at > scope.now) {
        Some(at) => ReadyState::RetryAt(at),
        None => ReadyState::Claimable,
    }
}

/// An issue that holds others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    /// The issue.
    pub issue_id: IssueId,
    /// How many open issues name it as what holds them.
    pub holds: u64,
}

/// The state of the store's file: another one has other issues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreStamp {
    /// The number of the file.
    pub inode: u64,
    /// Its length.
    pub bytes: u64,
    /// When it was changed last, in nanoseconds since 1970.
    pub modified_ns: u64,
}

/// What holds the open issues.
#[derive(Default)]
struct Holds<'a> {
    /// By what holds: the issues that it holds.
    held: BTreeMap<String, Vec<&'a str>>,
    /// Issues that no lane will close, and that are there.
    never: Vec<&'a str>,
    missing: BTreeSet<String>,
}

impl<'a> Holds<'a> {
    fn enter(&mut self, issue: &'a str, holds: &[Hold]) {
        for hold in holds {
            let (Hold::On(id) | Hold::OnMissing(id) | Hold::Child(id) | Hold::Ancestor(id)) = hold;
            if matches!(hold, Hold::OnMissing(_)) {
                self.missing.insert(id.to_string());
            }
            self.held.entry(id.to_string()).or_default().push(issue);
        }
    }

    /// Counts the issues behind one that no lane will close.
    fn stuck(&self) -> u64 {
        let roots = self.never.iter().copied();
        let mut left: Vec<&str> = roots
            .chain(self.missing.iter().map(String::as_str))
            .collect();
        let mut stuck: BTreeSet<&str> = BTreeSet::new();
        while let Some(id) = left.pop() {
            for held in self.held.get(id).into_iter().flatten() {
                if stuck.insert(held) {
                    left.push(held);
                }
            }
        }
        stuck.len() as u64
    }

    fn blockers(&self) -> Vec<Blocker> {
        let mut found: Vec<Blocker> = self
            .held
            .iter()
            .map(|(id, held)| Blocker {
                issue_id: IssueId::from(id.as_str()),
                holds: held.len() as u64,
            })
            .collect();
        found.sort_by(|a, b| (b.holds, &a.issue_id).cmp(&(a.holds, &b.issue_id)));
        found.truncate(BLOCKERS_MAX);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn now() -> Timestamp {
        "2026-03-05T10:00:00Z".parse().unwrap()
    }

    fn issue(id: &str, status: &str, on: &[&str], more: serde_json::Value) -> Issue {
        let edges: Vec<_> = on
            .iter()
            .map(|on| json!({"issue_id": id, "depends_on_id": on, "type": "blocks"}))
            .collect();
        let mut row = json!({"id": id, "title": id, "status": status, "dependencies": edges});
        for (key, value) in more.as_object().into_iter().flatten() {
            row[key] = value.clone();
        }
        serde_json::from_value(row).unwrap()
    }

    fn counted(issues: &[Issue], left_out: &[&str]) -> LiveQueue {
        let left_out = left_out.iter().map(|id| IssueId::from(*id)).collect();
        let scope = QueueScope {
            selection: &Selection::default(),
            assignees: &AssigneeRule::Unassigned,
            left_out: &left_out,
            now: now(),
        };
        LiveQueue::count(issues, &IssueGraph::build(issues), &scope)
    }

    #[test]
    fn every_issue_is_counted_once_by_what_is_next_for_it() {
        let none = || json!({});
        let issues = [
            issue("a", "open", &[], none()),
            issue(
                "b",
                "open",
                &[],
                json!({"retry_at": "2026-03-05T11:00:00Z"}),
            ),
            issue(
                "c",
                "open",
                &[],
                json!({"retry_at": "2026-03-05T09:00:00Z"}),
            ),
            issue("d", "open", &[], json!({"assignee": "eve"})),
            issue("e", "open", &[], json!({"issue_type": "epic"})),
            issue("f", "open", &[], none()),
            issue("g", "in_progress", &[], none()),
            issue("h", "blocked", &[], none()),
            issue("i", "deferred", &[], none()),
            issue("j", "closed", &[], none()),
            issue("k", "open", &["a"], none()),
            issue("l", "open", &["a"], json!({"issue_type": "epic"})),
            issue("m", "tombstone", &[], none()),
        ];
        let queue = counted(&issues, &["f"]);
        let ready = (queue.ready, queue.retrying, queue.waiting, queue.stuck);
        assert_eq!(ready, (2, 1, 1, 0));
        let at = queue.next_retry_at.as_ref().map(Stamp::as_str);
        assert_eq!(at, Some("2026-03-05T11:00:00.000000Z"));
        assert_eq!(
            (queue.assigned, queue.not_selected, queue.left_out),
            (1, 2, 1)
        );
        assert_eq!((queue.in_progress, queue.blocked), (1, 1));
        assert_eq!((queue.set_aside, queue.closed, queue.total), (1, 1, 12));
        assert_eq!(queue.workable(), 4);
    }

    #[test]
    fn what_waits_behind_an_issue_that_no_lane_closes_is_stuck() {
        let none = || json!({});
        let issues = [
            issue("a", "blocked", &[], none()),
            issue("b", "open", &["a"], none()),
            issue("c", "open", &["b"], none()),
            issue("d", "open", &["gone"], none()),
            issue("e", "open", &[], none()),
            issue("f", "open", &["e"], none()),
        ];
        let queue = counted(&issues, &[]);
        assert_eq!((queue.waiting, queue.stuck, queue.workable()), (4, 3, 2));
        let named: Vec<_> = queue.blockers.iter().map(|b| b.issue_id.as_str()).collect();
        assert_eq!(named, ["a", "b", "e", "gone"]);
        // `e` is left out: what waits for it is stuck as well.
        assert_eq!(counted(&issues, &["e"]).stuck, 4);
    }
}
