//! How the next session starts: a projection of session and feature ledger
//! (HARNESS-RUNTIME 4, 5).

use crate::json::id::{IssueId, SessionId};
use crate::json::reference::RefSet;
use crate::json::stamp::Stamp;
use crate::record::feature::FeatureLedger;
use crate::record::session::{Session, SessionState};
use schemars::JsonSchema;
use serde::Serialize;

/// The kind of a bootstrap answer.
pub(crate) const BOOTSTRAP_KIND: &str = "premath.harness.bootstrap.v1";

/// What the next worker does with a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BootstrapMode {
    /// Takes up what was handed off.
    Resume,
    /// Attaches to a session that is active, or that died.
    Attach,
}

/// What a fresh worker needs to continue, `premath.harness.bootstrap.v1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Bootstrap {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = BOOTSTRAP_KIND))]
    bootstrap_kind: &'static str,
    /// Resume or attach, by the session's state.
    pub mode: BootstrapMode,
    /// The session's id.
    pub session_id: SessionId,
    /// The session's state.
    pub session_state: SessionState,
    /// The issue to continue with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_issue_id: Option<IssueId>,
    /// The next step that the session names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
    /// The summary of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Instructions that the session acts under.
    pub instruction_refs: RefSet,
    /// Witnesses of the session.
    pub witness_refs: RefSet,
    /// The site lineage of the session.
    pub lineage_refs: RefSet,
    /// The issue store's path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues_path: Option<String>,
    /// The issue store's digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issues_snapshot_ref: Option<String>,
    /// The time at which the session began.
    pub started_at: Stamp,
    /// When it was last written.
    pub updated_at: Stamp,
    /// The feature to work on; null where there is none, or no ledger.
    pub next_feature_id: Option<String>,
    /// Whether every feature is completed and verified; null without a ledger.
    pub feature_closure_complete: Option<bool>,
    /// How many features there are; null without a ledger.
    pub feature_count: Option<usize>,
}

/// Returns how to start from a session and, where there is one, a ledger.
pub fn bootstrap(session: &Session, ledger: Option<&FeatureLedger>) -> Bootstrap {
    Bootstrap {
        schema: 1,
        bootstrap_kind: BOOTSTRAP_KIND,
        mode: match session.state {
            SessionState::Stopped => BootstrapMode::Resume,
            SessionState::Active => BootstrapMode::Attach,
        },
        session_id: session.session_id.clone(),
        session_state: session.state,
        resume_issue_id: session.issue_id.clone(),
        next_step: session.next_step.clone(),
        summary: session.summary.clone(),
        instruction_refs: session.instruction_refs.clone(),
        witness_refs: session.witness_refs.clone(),
        lineage_refs: session.lineage_refs.clone(),
        issues_path: session.issues_path.clone(),
        issues_snapshot_ref: session.issues_snapshot_ref.clone(),
        started_at: session.started_at.clone(),
        updated_at: session.updated_at.clone(),
        next_feature_id: ledger.and_then(|l| l.next_feature()).map(str::to_owned),
        feature_closure_complete: ledger.map(FeatureLedger::closure_complete),
        feature_count: ledger.map(|l| l.features.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::value_of;
    use crate::record::feature::{FeatureStatus, FeatureWrite};
    use crate::record::session::{self, SessionWrite};
    use serde_json::Value;

    #[test]
    fn the_state_decides_the_mode_and_the_ledger_the_feature() {
        let now = "2026-03-05T10:00:00Z".parse().unwrap();
        for (state, mode) in [
            (SessionState::Active, "attach"),
            (SessionState::Stopped, "resume"),
        ] {
            let write = SessionWrite {
                state,
                issue_id: Some("bd-1".into()),
                ..SessionWrite::default()
            };
            let session = session::write(None, write, now);
            let alone = value_of(&bootstrap(&session, None));
            assert_eq!(alone["mode"], mode);
            assert_eq!(alone["bootstrapKind"], BOOTSTRAP_KIND);
            assert_eq!(alone["resumeIssueId"], "bd-1");
            assert_eq!(alone.get("nextFeatureId"), Some(&Value::Null));
            assert_eq!(alone["featureClosureComplete"], Value::Null);
            assert_eq!(alone["featureCount"], Value::Null);

            let feature = FeatureWrite {
                status: Some(FeatureStatus::Pending),
                ..FeatureWrite::new("f")
            };
            let ledger = FeatureLedger::write(None, feature, now).unwrap();
            let with = value_of(&bootstrap(&session, Some(&ledger)));
            assert_eq!(with["nextFeatureId"], "f");
            assert_eq!(with["featureCount"], 1);
        }
    }
}
