//! Failures that are alike.

use super::FailureCluster;
use super::attempt::AttemptView;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::natural;
use premath_kernel::json::id::IssueId;
use std::collections::BTreeMap;

/// Groups attempts that failed by their class and by the first reported line.
pub(super) fn clusters<'a>(
    failed: impl Iterator<Item = (&'a IssueId, &'a AttemptView)>,
) -> Vec<FailureCluster> {
    let mut found = BTreeMap::<(String, String), FailureCluster>::new();
    for (issue_id, attempt) in failed {
        let Some(class) = attempt.failure_classes.first() else {
            continue;
        };
        // What an earlier attempt left was not read.
        let meaning = || {
            class
                .parse::<FailureClass>()
                .ok()
                .map(FailureClass::meaning)
        };
        let said = attempt.said.as_deref().or_else(meaning);
        let line = first_line(said.unwrap_or_default(), issue_id);
        let key = (class.clone(), line.clone());
        let cluster = found.entry(key).or_insert_with(|| FailureCluster {
            failure_class: class.clone(),
            line,
            attempts: 0,
            issue_ids: Vec::new(),
            rows: Vec::new(),
        });
        cluster.attempts += 1;
        cluster.rows.push(attempt.row);
        cluster.issue_ids.push(issue_id.clone());
    }
    let mut clusters: Vec<FailureCluster> = found.into_values().collect();
    for cluster in &mut clusters {
        cluster.issue_ids.sort_by(|a, b| natural::compare(a, b));
        cluster.issue_ids.dedup();
        cluster.rows.sort_unstable();
    }
    // Those with one key are in its order already.
    clusters.sort_by(|a, b| {
        let by_issues = b.issue_ids.len().cmp(&a.issue_ids.len());
        by_issues.then(b.attempts.cmp(&a.attempts))
    });
    clusters
}

/// Returns the first line that is not empty, with `ISSUE` for the issue's own id:
/// messages that differ in it alone are alike.
fn first_line(said: &str, issue_id: &IssueId) -> String {
    let line = said.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or_default();
    match issue_id.len() {
        0..3 => line.to_owned(),
        _ => line.replace(issue_id.as_str(), "ISSUE"),
    }
}
