//! The open issues that a batch would give to no lane, and why.

use super::NeverIssue;
use super::schedule::{PlanScope, held_by, is_taken_over};
use crate::issue::graph::{Hold, IssueGraph, Scope};
use crate::issue::{Issue, Status};
use crate::json::id::IssueId;
use crate::json::plain::shell_word;
use crate::record::why::{Reason, ReasonKind, WhyScope, reasons};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Ids of issues.
type Ids = BTreeSet<Arc<str>>;

/// Returns the issues that are neither over nor given to a lane, by id: those
/// `given`, and those that are `beyond` the bound of attempts.
pub(super) fn never(
    issues: &[&Issue],
    graph: &IssueGraph,
    (given, beyond): (&Ids, &Ids),
    scope: &PlanScope<'_>,
) -> Vec<NeverIssue> {
    let left = |issue: &&&Issue| !issue.status.is_terminal() && !given.contains(&issue.id);
    let mut left: Vec<&Issue> = issues.iter().filter(left).copied().collect();
    left.sort_unstable_by(|a, b| a.id.cmp(&b.id));
    let holds = held(&left, graph);
    let roots = roots(&left, &holds);
    let cycles = cycles(graph);
    let of = |issue: &&Issue| {
        let id = &issue.id;
        let root = roots.get(id).filter(|root| *root != id);
        let found = match (beyond.contains(id), cycles.get(id)) {
            (true, _) => vec![out_of_rounds()],
            (false, Some(path)) => std::iter::once(cycle(id, path))
                .chain(why(issue, &holds[id], scope))
                .collect(),
            (false, None) => why(issue, &holds[id], scope),
        };
        NeverIssue {
            issue_id: IssueId::from(&**id),
            title: (scope.title)(id),
            reasons: found,
            root: root.map(|root| IssueId::from(&**root)),
        }
    };
    left.iter().map(of).collect()
}

fn held(left: &[&Issue], graph: &IssueGraph) -> BTreeMap<Arc<str>, Vec<Hold>> {
    let holds = left.iter().map(|issue| match issue.status {
        Status::Open => (issue.id.clone(), graph.holds(&issue.id)),
        _ => (issue.id.clone(), Vec::new()),
    });
    holds.collect()
}

/// Returns why an issue is not worked on, without what only concerns batches that
/// run now.
fn why(issue: &Issue, holds: &[Hold], scope: &PlanScope<'_>) -> Vec<Reason> {
    let why_scope = WhyScope {
        batches: scope.batches,
        selection: scope.selection,
        assignees: scope.assignees,
        set_aside: scope.set_aside,
        before: 0,
        seen: scope.seen,
    };
    // A lease that is over ends with the batch's start.
    let freed = Issue {
        status: Status::Open,
        ..issue.clone()
    };
    let is_over = |found: &[Reason]| found.iter().any(|why| why.kind == ReasonKind::LeaseOver);
    let mut found = reasons(issue, holds, &why_scope);
    if is_over(&found) && !is_taken_over(issue, scope) {
        found = reasons(&freed, holds, &why_scope);
    }
    let is_left_out = scope.left_out.contains(&*issue.id) && !scope.set_aside.contains(&*issue.id);
    if is_left_out && holds.is_empty() {
        return vec![left_out(&issue.id)];
    }
    let is_own = |why: &Reason| {
        !matches!(
            why.kind,
            ReasonKind::NoBatch | ReasonKind::Draining | ReasonKind::Paused | ReasonKind::Ready
        )
    };
    found.retain(is_own);
    if found.is_empty() {
        found.push(no_lane());
    }
    found
}

fn left_out(id: &str) -> Reason {
    Reason {
        kind: ReasonKind::LeftOut,
        text: "the batch that is resumed does not try it again: its attempts are used up, or it \
               found the issue itself"
            .to_owned(),
        next: Some(format!(
            "harness-coordinator --new-batch  # or: premath retry {}",
            shell_word(id)
        )),
    }
}

fn out_of_rounds() -> Reason {
    Reason {
        kind: ReasonKind::OutOfRounds,
        text: "the dispatches of all lanes are used up before its turn (`rounds`)".to_owned(),
        next: Some("harness-coordinator --until-done".to_owned()),
    }
}

fn no_lane() -> Reason {
    Reason {
        kind: ReasonKind::Ready,
        text: "it is ready, and there is no lane for it".to_owned(),
        next: Some("harness-coordinator --lanes 1".to_owned()),
    }
}

fn cycle(id: &str, path: &[Arc<str>]) -> Reason {
    let ids: Vec<&str> = path.iter().map(|id| &**id).collect();
    Reason {
        kind: ReasonKind::Cycle,
        text: format!("it is in a dependency cycle: {}", ids.join(", ")),
        next: Some(format!("premath why {}", shell_word(id))),
    }
}

/// Returns the members of the cycle that an issue is in.
fn cycles(graph: &IssueGraph) -> BTreeMap<Arc<str>, Arc<[Arc<str>]>> {
    let mut found = BTreeMap::new();
    for members in graph.diagnose(Scope::Active).cycles {
        let members: Arc<[Arc<str>]> = members.into();
        for id in members.iter() {
            found.insert(id.clone(), members.clone());
        }
    }
    found
}

/// Returns, for each issue that waits, one at the end of what it waits for: the
/// nearest one that nothing holds, or that does not exist. Issues that wait only
/// for a cycle have none.
fn roots(left: &[&Issue], holds: &BTreeMap<Arc<str>, Vec<Hold>>) -> BTreeMap<Arc<str>, Arc<str>> {
    let mut behind: BTreeMap<&str, Vec<&Arc<str>>> = BTreeMap::new();
    let mut ends: BTreeSet<Arc<str>> = BTreeSet::new();
    for issue in left {
        let held = &holds[&issue.id];
        if held.is_empty() {
            ends.insert(issue.id.clone());
        }
        for hold in held {
            behind.entry(held_by(hold)).or_default().push(&issue.id);
            if let Hold::OnMissing(id) = hold {
                ends.insert(id.clone());
            }
        }
    }
    let mut root: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    let mut next: VecDeque<Arc<str>> = ends.iter().cloned().collect();
    root.extend(ends.into_iter().map(|id| (id.clone(), id)));
    while let Some(id) = next.pop_front() {
        let end = root[&id].clone();
        for waits in behind.get(&*id).into_iter().flatten() {
            if !root.contains_key(*waits) {
                root.insert((*waits).clone(), end.clone());
                next.push_back((*waits).clone());
            }
        }
    }
    root
}
