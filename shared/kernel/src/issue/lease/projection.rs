//! The leases of issue memory that need attention.

use super::{LeaseState, Observation, state};
use crate::issue::Issue;
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::Serialize;

/// Which leases are over or do not fit their rows, at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseProjection {
    /// When it was looked at.
    pub checked_at: Stamp,
    /// How many leases are over.
    pub stale_count: usize,
    /// The issues with stale leases, sorted by id.
    pub stale_issue_ids: Vec<String>,
    /// How many leases do not fit their row.
    pub contended_count: usize,
    /// The issues with contended leases, sorted by id.
    pub contended_issue_ids: Vec<String>,
}

impl LeaseProjection {
    /// Looks at issues.
    pub fn of<'a>(issues: impl IntoIterator<Item = &'a Issue>, seen: &Observation<'_>) -> Self {
        let (mut stale, mut contended) = (Vec::new(), Vec::new());
        for issue in issues {
            match state(Some(issue), seen) {
                LeaseState::Stale => stale.push(issue.id.to_string()),
                LeaseState::Contended => contended.push(issue.id.to_string()),
                _ => {}
            }
        }
        stale.sort();
        contended.sort();
        Self {
            checked_at: Stamp::at(seen.moment.wall),
            stale_count: stale.len(),
            stale_issue_ids: stale,
            contended_count: contended.len(),
            contended_issue_ids: contended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::lease::Life;
    use crate::json::time::Moment;

    #[test]
    fn leases_that_are_over_or_do_not_fit_are_listed_by_id() {
        let row = |id: &str, status: &str, expires: &str| {
            let text = format!(
                r#"{{"id":"{id}","status":"{status}","assignee":"w",
                    "lease":{{"lease_id":"l","owner":"w","expires_at":"{expires}"}}}}"#
            );
            serde_json::from_str::<Issue>(&text).unwrap()
        };
        let issues = [
            row("c", "in_progress", "2026-01-01T00:00:00Z"),
            row("b", "open", "2027-01-01T00:00:00Z"),
            row("a", "open", "2026-01-01T00:00:00Z"),
            row("d", "in_progress", "2027-01-01T00:00:00Z"),
            serde_json::from_str(r#"{"id":"e"}"#).unwrap(),
        ];
        let seen = Observation {
            moment: Moment {
                wall: "2026-06-01T00:00:00Z".parse().unwrap(),
                boot_ms: 0,
            },
            boot_id: "b",
            life: &|_| Life::Unknown,
        };
        let found = LeaseProjection::of(&issues, &seen);
        assert_eq!(found.stale_issue_ids, ["a", "c"]);
        assert_eq!(found.contended_issue_ids, ["b"]);
        assert_eq!((found.stale_count, found.contended_count), (2, 1));
    }
}
