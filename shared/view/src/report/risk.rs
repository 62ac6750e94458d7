//! In which order a person reviews what a batch left: the most risky first.
//!
//! A score is the sum of the points of its reasons, each of which is named. What
//! landed comes before what was salvaged: it is on a branch that others build on.

use super::attempt::{AttemptView, ChangeSize};
use premath_kernel::json::plain::counted;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Points for the first sensitive file.
const SENSITIVE: u64 = 50;
/// Points for every further category of sensitive files.
const SENSITIVE_CATEGORY: u64 = 5;
/// Points for work that no gate admitted.
const SALVAGED: u64 = 30;
/// Points for a change from so many lines on; the first that fits counts.
const LINES: [(u64, u64); 4] = [(1_000, 30), (300, 20), (100, 10), (30, 5)];
/// Points for a change from so many files on; the first that fits counts.
const FILES: [(u64, u64); 2] = [(20, 10), (8, 5)];
/// Points for a change of unknown size.
const UNKNOWN_SIZE: u64 = 10;
/// Points for each round in which an agent mended its work, and the most of them.
const REPAIR: (u64, u64) = (10, 30);
/// Points for each attempt that failed before, in any batch, and the most of them.
const RETRY: (u64, u64) = (10, 30);
/// Points where a verification failed and passed on the same tree.
const FLAKY: u64 = 20;
/// Points where the own tree was not verified by itself.
const SHARED: u64 = 10;
/// Points where the turn policy denied calls of the agent.
const DENIED: u64 = 15;

/// A reason to look at a change, with what it adds to the score.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RiskReason {
    /// The points that it adds.
    pub points: u64,
    /// The reason.
    pub text: String,
}

/// Returns the reasons to look at what the last of the attempts left, the weightiest
/// first. `earlier` is how many attempts failed before it, in any batch.
pub(super) fn reasons(attempts: &[AttemptView], earlier: u64) -> Vec<RiskReason> {
    let Some(last) = attempts.last() else {
        return Vec::new();
    };
    let mut reasons = Vec::new();
    let mut add = |points: u64, text: String| reasons.push(RiskReason { points, text });
    if last.sensitive_count > 0 {
        let changes = last.sensitive_changes.iter();
        let categories: BTreeSet<String> = changes.map(|one| one.category.to_string()).collect();
        let further = u64::try_from(categories.len())
            .unwrap_or(0)
            .saturating_sub(1);
        let categories: Vec<String> = categories.into_iter().collect();
        add(
            SENSITIVE + further * SENSITIVE_CATEGORY,
            format!(
                "{}: {}",
                counted(last.sensitive_count, "sensitive file"),
                categories.join(", ")
            ),
        );
    }
    if last.commit.is_none() {
        add(SALVAGED, "not verified".to_owned());
    }
    size(last.change, &mut add);
    let rounds = last.repair_rounds;
    if rounds > 0 {
        add(
            (rounds.saturating_mul(REPAIR.0)).min(REPAIR.1),
            format!("repaired in {}", counted(rounds, "round")),
        );
    }
    if earlier > 0 {
        add(
            (earlier.saturating_mul(RETRY.0)).min(RETRY.1),
            format!("{} before", counted(earlier, "failed attempt")),
        );
    }
    if attempts
        .iter()
        .any(|attempt| attempt.flaky_verifications > 0)
    {
        add(FLAKY, "flaky verification".to_owned());
    }
    if last.shared_verification {
        add(SHARED, "verified with later work only".to_owned());
    }
    let denied = attempts.iter().map(AttemptView::denied).sum::<u64>();
    if denied > 0 {
        add(DENIED, format!("{} denied", counted(denied, "call")));
    }
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.points));
    reasons
}

fn size(change: Option<ChangeSize>, add: &mut impl FnMut(u64, String)) {
    let Some(change) = change else {
        return add(UNKNOWN_SIZE, "size of the change unknown".to_owned());
    };
    let of = |steps: &[(u64, u64)], count: u64| {
        let step = steps.iter().find(|(from, _)| count >= *from);
        step.map(|(_, points)| *points)
    };
    if let Some(points) = of(&LINES, change.lines()) {
        add(points, counted(change.lines(), "changed line"));
    }
    if let Some(points) = of(&FILES, change.files) {
        add(points, counted(change.files, "changed file"));
    }
}
