//! What a query of the trajectory answers (HARNESS-RUNTIME 6).

use super::StepRow;
use schemars::JsonSchema;
use serde::Serialize;
use std::str::FromStr;

/// The kind of a projection.
pub(crate) const PROJECTION_KIND: &str = "premath.harness.trajectory.projection.v1";

/// Which rows a query selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProjectionMode {
    /// All rows.
    #[default]
    Latest,
    /// Those that did not succeed.
    Failed,
    /// Those that ask for a retry.
    RetryNeeded,
}

/// No projection mode bears this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown projection mode `{0}`; expected latest, failed or retry-needed")]
pub struct UnknownProjectionMode(pub String);

impl FromStr for ProjectionMode {
    type Err = UnknownProjectionMode;

    /// Reads `retry-needed` and `retry_needed` alike.
    fn from_str(text: &str) -> Result<Self, UnknownProjectionMode> {
        match text {
            "latest" => Ok(Self::Latest),
            "failed" => Ok(Self::Failed),
            "retry-needed" | "retry_needed" => Ok(Self::RetryNeeded),
            other => Err(UnknownProjectionMode(other.to_owned())),
        }
    }
}

impl ProjectionMode {
    fn needs(self, row: &StepRow) -> bool {
        match self {
            Self::Latest => true,
            Self::Failed => !row.succeeded(),
            Self::RetryNeeded => row.needs_retry(),
        }
    }
}

/// How many rows of each sort there are, whatever the mode and limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrajectoryCounts {
    /// The number of all rows.
    pub total_count: usize,
    /// Rows that did not succeed.
    pub failed_count: usize,
    /// Rows that ask for a retry.
    pub retry_needed_count: usize,
}

/// A query's answer, `premath.harness.trajectory.projection.v1`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Projection<'a> {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = PROJECTION_KIND))]
    projection_kind: &'static str,
    /// The rows that were asked for.
    pub mode: ProjectionMode,
    /// The most rows that are listed.
    pub limit: usize,
    /// How many there are of each sort.
    #[serde(flatten)]
    pub counts: TrajectoryCounts,
    /// The number of listed rows.
    pub count: usize,
    /// The rows: the latest first, then by step id, then by action.
    pub items: Vec<&'a StepRow>,
}

/// Returns the rows that a query selects, sorted by descending `finishedAt`,
/// then `stepId`, then `action`.
///
/// Times are compared as instants; rows that are equal in all three keep the
/// file's order.
pub fn project(rows: &[StepRow], mode: ProjectionMode, limit: usize) -> Projection<'_> {
    let counts = TrajectoryCounts {
        total_count: rows.len(),
        failed_count: rows.iter().filter(|row| !row.succeeded()).count(),
        retry_needed_count: rows.iter().filter(|row| row.needs_retry()).count(),
    };
    let mut items: Vec<&StepRow> = rows.iter().filter(|row| mode.needs(row)).collect();
    items.sort_by(|a, b| {
        (b.finished_at.time(), &a.step_id, &a.action).cmp(&(
            a.finished_at.time(),
            &b.step_id,
            &b.action,
        ))
    });
    items.truncate(limit);
    Projection {
        schema: 1,
        projection_kind: PROJECTION_KIND,
        mode,
        limit,
        counts,
        count: items.len(),
        items,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::value_of;
    use crate::json::stamp::Stamp;
    use proptest::prelude::*;

    fn row(step_id: &str, action: &str, result: &str, finished_at: &str) -> StepRow {
        let stamp = Stamp::parse(finished_at).unwrap();
        StepRow {
            finished_at: stamp.clone(),
            ..StepRow::new(step_id, action, result, stamp.time())
        }
    }

    fn rows() -> Vec<StepRow> {
        vec![
            row("s1", "a", "completed", "2026-03-05T12:00:00+02:00"),
            row("s3", "b", "failed", "2026-03-05T11:00:00Z"),
            row(
                "s3",
                "a",
                "retry_needed_lease_active",
                "2026-03-05T11:00:00.000Z",
            ),
            row("s2", "a", "gate-timeout", "2026-03-05T11:00:00.000000Z"),
        ]
    }

    fn keys(projection: &Projection<'_>) -> Vec<String> {
        let name = |r: &&StepRow| format!("{}{}", r.step_id, r.action);
        projection.items.iter().map(name).collect()
    }

    #[test]
    fn each_mode_lists_its_rows_in_order() {
        let rows = rows();
        for (mode, limit, expected) in [
            ("latest", 20, vec!["s2a", "s3a", "s3b", "s1a"]),
            ("latest", 1, vec!["s2a"]),
            ("latest", 0, vec![]),
            ("failed", 20, vec!["s2a", "s3a", "s3b"]),
            ("retry-needed", 20, vec!["s2a", "s3a"]),
        ] {
            let projection = project(&rows, mode.parse().unwrap(), limit);
            assert_eq!(keys(&projection), expected, "{mode}");
        }
        assert!("x".parse::<ProjectionMode>().is_err());
    }

    #[test]
    fn the_answer_has_the_names_of_the_contract() {
        let rows = rows();
        let answer = value_of(&project(&rows, ProjectionMode::RetryNeeded, 1));
        assert_eq!(answer["projectionKind"], PROJECTION_KIND);
        assert_eq!(answer["mode"], "retry_needed");
        let counts = [
            "totalCount",
            "failedCount",
            "retryNeededCount",
            "limit",
            "count",
        ];
        assert_eq!(counts.map(|c| answer[c].as_u64().unwrap()), [4, 3, 2, 1, 1]);
        assert_eq!(answer["items"][0]["stepId"], "s2");
    }

    proptest! {
        #[test]
        fn the_order_in_the_file_never_matters(
            order in Just((0..4usize).collect::<Vec<_>>()).prop_shuffle()
        ) {
            let rows = rows();
            let shuffled: Vec<StepRow> = order.iter().map(|i| rows[*i].clone()).collect();
            prop_assert_eq!(
                project(&rows, ProjectionMode::Latest, 3),
                project(&shuffled, ProjectionMode::Latest, 3)
            );
        }
    }
}
