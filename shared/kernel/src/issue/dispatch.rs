//! What a batch gives out of what it could: not all that it found itself, and
//! not all that waits for a retry, so that it ends.

use crate::issue::Issue;
use crate::issue::lease::{self, ClaimRequest, Observation};
use crate::json::id::IssueId;
use crate::json::time;
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// The label of a follow-up that an escalation files.
pub const FOLLOW_UP_LABEL: &str = "harness-follow-up";

/// The label of an issue that its verification alone may close, without a
/// change. Only an operator gives it: a step's request that has it is refused.
pub const NO_CHANGE_LABEL: &str = "no-change";

/// How long a batch waits at most for the retry of an issue that it has not
/// touched.
pub(crate) const UNTOUCHED_WAIT_MAX: Duration = Duration::from_secs(86_400);

/// The word of the edge to the issue that another was found at.
const DISCOVERED_FROM: &str = "discovered-from";

/// Returns whether an issue is what an escalation filed.
pub fn is_follow_up(issue: &Issue) -> bool {
    issue.labels.iter().any(|label| **label == *FOLLOW_UP_LABEL)
}

/// Returns whether an issue says that it may need no change.
pub fn may_need_no_change(issue: &Issue) -> bool {
    issue.labels.iter().any(|label| **label == *NO_CHANGE_LABEL)
}

/// An issue that was filed while another was worked on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovery {
    /// The issue that was filed.
    pub issue_id: IssueId,
    /// The issue that was worked on.
    pub parent: IssueId,
    /// Whether an escalation filed it.
    pub follow_up: bool,
}

impl Discovery {
    /// Reads from an issue where it was found; `None` where it was not found
    /// at another.
    pub fn of(issue: &Issue) -> Option<Self> {
        let edge = issue
            .dependencies
            .iter()
            .find(|edge| edge.kind.as_str() == DISCOVERED_FROM)?;
        Some(Self {
            issue_id: IssueId::from(&*issue.id),
            parent: IssueId::from(&*edge.depends_on),
            follow_up: is_follow_up(issue),
        })
    }
}

/// What a batch filed, and what of it the batch leaves for later: what an
/// escalation files, and what is found while working on what was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Discoveries {
    filed: BTreeSet<IssueId>,
    left_for_later: BTreeSet<IssueId>,
}

impl Discoveries {
    /// Takes in what was filed in the time of a batch, in any order.
    pub fn of(found: impl IntoIterator<Item = Discovery>) -> Self {
        let found: Vec<Discovery> = found.into_iter().collect();
        let filed: BTreeSet<IssueId> = found.iter().map(|new| new.issue_id.clone()).collect();
        let left_for_later = found
            .into_iter()
            .filter(|new| new.follow_up || filed.contains(&new.parent))
            .map(|new| new.issue_id)
            .collect();
        Self {
            filed,
            left_for_later,
        }
    }

    /// Takes in what was filed just now.
    pub fn note(&mut self, new: Discovery) {
        if new.follow_up || self.filed.contains(&new.parent) {
            self.left_for_later.insert(new.issue_id.clone());
        }
        self.filed.insert(new.issue_id);
    }

    /// Returns the issues that the batch leaves alone.
    pub const fn left_for_later(&self) -> &BTreeSet<IssueId> {
        &self.left_for_later
    }
}

/// Returns from when a ready issue may be claimed, if only its retry time
/// prevents it and the batch waits that long: for an issue that it has not
/// `touched`, one day at most.
pub fn awaited_retry(
    issue: &Issue,
    touched: bool,
    wish: &ClaimRequest,
    seen: &Observation<'_>,
) -> Option<Timestamp> {
    let now = seen.moment.wall;
    let at = time::parse(issue.retry_at.as_deref()?)?;
    let latest = now.saturating_add(UNTOUCHED_WAIT_MAX).unwrap_or(now);
    if at <= now || !(touched || at <= latest) {
        return None;
    }
    let free = Issue {
        retry_at: None,
        ..issue.clone()
    };
    lease::claimable(&free, wish, seen).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::Holder;
    use crate::issue::lease::{AssigneeRule, Life, TTL_DEFAULT, Term};
    use crate::json::time::Moment;
    use proptest::prelude::*;

    fn issue(json: serde_json::Value) -> Issue {
        serde_json::from_value(json).unwrap()
    }

    fn found(issue_id: &str, parent: &str, follow_up: bool) -> Discovery {
        Discovery {
            issue_id: issue_id.into(),
            parent: parent.into(),
            follow_up,
        }
    }

    fn left(discoveries: &Discoveries) -> Vec<&str> {
        let ids = discoveries.left_for_later().iter();
        ids.map(IssueId::as_str).collect()
    }

    #[test]
    fn a_row_says_where_its_issue_was_found() {
        let edge = |kind: &str| {
            issue(serde_json::json!({
                "id": "b", "title": "t", "labels": ["x", FOLLOW_UP_LABEL],
                "dependencies": [
                    {"issue_id": "b", "depends_on_id": "z", "type": "blocks"},
                    {"issue_id": "b", "depends_on_id": "a", "type": kind},
                ],
            }))
        };
        assert_eq!(
            Discovery::of(&edge("discovered-from")),
            Some(found("b", "a", true))
        );
        assert_eq!(Discovery::of(&edge("related")), None);
    }

    #[test]
    fn a_batch_works_on_what_it_found_but_not_on_what_that_led_to() {
        let mut discoveries = Discoveries::default();
        discoveries.note(found("b", "a", false));
        assert_eq!(left(&discoveries), [""; 0]);
        discoveries.note(found("c", "b", false));
        discoveries.note(found("d", "c", false));
        assert_eq!(left(&discoveries), ["c", "d"]);
    }

    #[test]
    fn a_batch_leaves_every_follow_up_alone() {
        let mut discoveries = Discoveries::default();
        discoveries.note(found("b", "a", true));
        assert_eq!(left(&discoveries), ["b"]);
    }

    proptest! {
        #[test]
        fn what_is_taken_up_is_what_was_noted(
            parents in proptest::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..12),
            turned in any::<bool>(),
        ) {
            // Issue n was found at one that was there before it; 0 was there
            // before the batch.
            let mut all: Vec<Discovery> = parents
                .iter()
                .enumerate()
                .map(|(n, (at, follow_up))| {
                    let parent = at.index(n + 1).to_string();
                    found(&(n + 1).to_string(), &parent, *follow_up)
                })
                .collect();
            let mut noted = Discoveries::default();
            for new in all.clone() {
                noted.note(new);
            }
            if turned {
                all.reverse();
            }
            prop_assert_eq!(Discoveries::of(all), noted);
        }
    }

    #[test]
    fn a_retry_is_awaited_for_a_day_and_longer_where_the_batch_touched_the_issue() {
        let wish = ClaimRequest {
            claimant: "w".into(),
            lease_id: None,
            term: Term::Ttl(TTL_DEFAULT),
            assignees: AssigneeRule::Unassigned,
            holder: None,
            generation_floor: 0,
        };
        let life = |_: &Holder| Life::Unknown;
        let seen = Observation {
            moment: Moment {
                wall: "2026-01-01T00:00:00Z".parse().unwrap(),
                boot_ms: 0,
            },
            boot_id: "b",
            life: &life,
        };
        let awaited = |retry_at: &str, assignee: &str, touched| {
            let issue = issue(serde_json::json!({
                "id": "a", "title": "t", "assignee": assignee, "retry_at": retry_at,
            }));
            awaited_retry(&issue, touched, &wish, &seen).map(|at| at.to_string())
        };
        for (retry_at, assignee, touched, expected) in [
            ("2025-12-31T23:59:59Z", "", true, false),
            ("2026-01-01T00:00:00Z", "", true, false),
            ("2026-01-01T00:00:01Z", "", false, true),
            ("2026-01-02T00:00:00Z", "", false, true),
            ("2026-01-02T00:00:01Z", "", false, false),
            ("2026-01-02T00:00:01Z", "", true, true),
            ("2026-01-01T00:00:01Z", "somebody", true, false),
            ("someday", "", true, false),
        ] {
            assert_eq!(
                awaited(retry_at, assignee, touched),
                expected.then(|| retry_at.to_owned()),
                "{retry_at} {assignee} {touched}"
            );
        }
    }
}
