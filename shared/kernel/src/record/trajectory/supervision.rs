//! What a batch's supervision did: the `supervision` of a row.

use super::{StepRow, action};
use crate::failure::FailureClass;
use crate::json::id::{BatchId, IssueId};
use crate::json::read::{texts, unless_blank};
use crate::json::stamp::{Stamp, compact};
use crate::policy::breaker::BreakerChange;
use crate::policy::budget::{Budget, Spent};
use crate::policy::provider::ProviderChange;
use crate::policy::room::Shortage;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a batch's supervision did (ours); what an act does not have is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SupervisionRecord {
    /// The provider that was parked or answers again.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub provider: Option<String>,
    /// Until when a provider or dispatch pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Stamp>,
    /// The issues that failed alike.
    #[serde(deserialize_with = "texts", skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<IssueId>,
    /// The tokens that were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// The tokens that may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_bound: Option<u64>,
    /// The money that was used, in billionths of a dollar.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd: Option<u64>,
    /// The money that may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_nano_usd_bound: Option<u64>,
    /// The bytes that are free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_bytes: Option<u64>,
    /// The bytes that must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_bytes: Option<u64>,
}

/// Returns the row of a change for a provider.
pub fn provider_row(batch_id: &BatchId, change: &ProviderChange, now: Timestamp) -> StepRow {
    match change {
        ProviderChange::Parked { provider, until } => StepRow {
            failure_classes: vec![FailureClass::UsageLimit.as_str().to_owned()],
            ..row(
                batch_id,
                (action::PROVIDER_PARKED, Some(provider)),
                "parked",
                SupervisionRecord {
                    provider: Some(provider.clone()),
                    until: Some(Stamp::at(*until)),
                    ..SupervisionRecord::default()
                },
                now,
            )
        },
        ProviderChange::Resumed { provider } => row(
            batch_id,
            (action::PROVIDER_RESUMED, Some(provider)),
            "ok",
            SupervisionRecord {
                provider: Some(provider.clone()),
                ..SupervisionRecord::default()
            },
            now,
        ),
    }
}

/// Returns the row of a change of the breaker.
pub fn breaker_row(batch_id: &BatchId, change: &BreakerChange, now: Timestamp) -> StepRow {
    match change {
        BreakerChange::Opened {
            class,
            issues,
            until,
        } => StepRow {
            failure_classes: vec![class.clone()],
            ..row(
                batch_id,
                (action::BREAKER_OPEN, None),
                "paused",
                SupervisionRecord {
                    until: Some(Stamp::at(*until)),
                    issues: issues.clone(),
                    ..SupervisionRecord::default()
                },
                now,
            )
        },
        BreakerChange::Closed => row(
            batch_id,
            (action::BREAKER_CLOSED, None),
            "ok",
            SupervisionRecord::default(),
            now,
        ),
    }
}

/// Returns the row of a batch that used its budget up, with the figures.
pub fn budget_row(batch_id: &BatchId, budget: &Budget, spent: Spent, now: Timestamp) -> StepRow {
    StepRow {
        failure_classes: vec![FailureClass::BudgetExceeded.as_str().to_owned()],
        ..row(
            batch_id,
            (action::BUDGET_EXCEEDED, None),
            "failed",
            SupervisionRecord {
                tokens: spent.tokens,
                tokens_bound: budget.tokens,
                cost_nano_usd: spent.cost_nano_usd,
                cost_nano_usd_bound: budget.cost_nano_usd,
                ..SupervisionRecord::default()
            },
            now,
        )
    }
}

/// Returns the row of a batch that may change nothing any more.
pub fn revoked_row(
    batch_id: &BatchId,
    class: FailureClass,
    detail: String,
    now: Timestamp,
) -> StepRow {
    StepRow {
        failure_classes: vec![class.as_str().to_owned()],
        next_step: Some(detail),
        ..row(
            batch_id,
            (action::AUTHORITY_REVOKED, None),
            "failed",
            SupervisionRecord::default(),
            now,
        )
    }
}

/// Returns the row of a batch that waited for room without success.
pub fn room_row(batch_id: &BatchId, short: &Shortage, now: Timestamp) -> StepRow {
    StepRow {
        failure_classes: vec![FailureClass::RoomShort.as_str().to_owned()],
        next_step: Some(short.to_string()),
        ..row(
            batch_id,
            (action::ROOM_SHORT, None),
            "failed",
            SupervisionRecord {
                free_bytes: Some(short.free.0),
                least_bytes: Some(short.least.0),
                ..SupervisionRecord::default()
            },
            now,
        )
    }
}

/// A row whose id is `<action>.<batch>.<time>` or, of a provider,
/// `<action>.<batch>.<provider>.<time>`.
fn row(
    batch_id: &BatchId,
    (action, of): (&str, Option<&String>),
    result_class: &str,
    record: SupervisionRecord,
    now: Timestamp,
) -> StepRow {
    let of = of.map(|name| format!("{name}.")).unwrap_or_default();
    let nanos = now.subsec_nanosecond();
    let id = format!("{action}.{batch_id}.{of}{}.{nanos:09}", compact(now));
    StepRow {
        batch_id: Some(batch_id.to_owned()),
        started_at: Some(Stamp::at(now)),
        supervision: Some(record),
        ..StepRow::new(id, action, result_class, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::read::of_shape;
    use crate::json::size::Size;

    #[test]
    fn every_row_reads_back() {
        let now: Timestamp = "2026-03-05T10:00:00.000000Z".parse().unwrap();
        let spent = Spent {
            tokens: Some(12),
            cost_nano_usd: None,
        };
        let budget = Budget {
            tokens: Some(10),
            ..Budget::default()
        };
        let provider = "codex".to_owned();
        let parked = ProviderChange::Parked {
            provider: provider.clone(),
            until: now,
        };
        let opened = BreakerChange::Opened {
            class: "work_failed".into(),
            issues: vec!["a".into(), "b".into()],
            until: now,
        };
        let short = Shortage {
            of: "disk",
            free: Size(1),
            least: Size(2),
        };
        let rows = [
            provider_row(&"hb".into(), &parked, now),
            provider_row(&"hb".into(), &ProviderChange::Resumed { provider }, now),
            breaker_row(&"hb".into(), &opened, now),
            breaker_row(&"hb".into(), &BreakerChange::Closed, now),
            budget_row(&"hb".into(), &budget, spent, now),
            room_row(&"hb".into(), &short, now),
        ];
        for row in &rows {
            let line = row.line().unwrap();
            assert_eq!(&StepRow::parse(line.as_bytes()).unwrap(), row, "{line}");
        }
        assert_eq!(
            rows[0].line().unwrap(),
            concat!(
                r#"{"action":"coordinator.provider_parked","batchId":"hb","#,
                r#""failureClasses":["usage_limit"],"finishedAt":"2026-03-05T10:00:00.000000Z","#,
                r#""resultClass":"parked","schema":1,"startedAt":"2026-03-05T10:00:00.000000Z","#,
                r#""stepId":"coordinator.provider_parked.hb.codex.20260305T100000Z.000000000","#,
                r#""stepKind":"premath.harness.step.v1","#,
                r#""supervision":{"provider":"codex","until":"2026-03-05T10:00:00.000000Z"}}"#
            )
        );
    }

    #[test]
    fn another_shape_is_none() {
        for text in [
            "true",
            r#"{"until": "soon"}"#,
            r#"{"tokens": -1}"#,
            r#"{"issues": [1]}"#,
        ] {
            let value = serde_json::from_str(text).unwrap();
            assert_eq!(of_shape::<SupervisionRecord>(&value), None, "{text}");
        }
    }
}
