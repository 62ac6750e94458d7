//! The feature ledger: what a worktree's worker is at (HARNESS-RUNTIME 5).
//!
//! Reading is lenient, writing records its input; it is
//! [`FeatureLedger::check`] that reports what is wrong.

use crate::failure::FailureClass;
use crate::json::document::Document;
use crate::json::field::{FieldError, some_text};
use crate::json::id::IssueId;
use crate::json::read::{or_default, unless_blank};
use crate::json::reference::RefSet;
use crate::json::time;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::str::FromStr;

/// The kind of a ledger document.
pub(crate) const LEDGER_KIND: &str = "premath.harness.feature_ledger.v1";

/// How far a feature is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureStatus {
    /// The feature is not started.
    Pending,
    /// The feature is in progress.
    InProgress,
    /// The feature is blocked.
    Blocked,
    /// It is done and verified.
    Completed,
}

impl FeatureStatus {
    /// Returns the text used in files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Completed => "completed",
        }
    }
}

/// No feature status bears this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown feature status `{0}`; expected pending, in_progress, blocked or completed")]
pub struct UnknownStatus(pub String);

impl FromStr for FeatureStatus {
    type Err = UnknownStatus;

    fn from_str(text: &str) -> Result<Self, UnknownStatus> {
        match text {
            "pending" => Ok(Self::Pending),
            "in_progress" => Ok(Self::InProgress),
            "blocked" => Ok(Self::Blocked),
            "completed" => Ok(Self::Completed),
            other => Err(UnknownStatus(other.to_owned())),
        }
    }
}

/// One feature, as its row has it: its content is not verified.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Feature {
    /// The feature's id.
    #[serde(deserialize_with = "trimmed")]
    pub feature_id: String,
    /// The status as it is; [`Feature::known_status`] reads it.
    #[serde(deserialize_with = "or_default")]
    #[schemars(
        description = "How far it is: `pending`, `in_progress`, `blocked` or `completed`; the ledger's check reports any other word."
    )]
    pub status: String,
    /// The issue that it belongs to.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub issue_id: Option<IssueId>,
    /// The summary of the feature.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub summary: Option<String>,
    /// Instructions that it is done under.
    #[serde(deserialize_with = "or_default")]
    pub instruction_refs: Vec<String>,
    /// References to the feature's verifications.
    #[serde(deserialize_with = "or_default")]
    pub verification_refs: Vec<String>,
    /// When its row was last written, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub updated_at: String,
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    extra: Map<String, Value>,
}

impl Feature {
    /// Returns the status, `None` where it is not in the domain.
    pub fn known_status(&self) -> Option<FeatureStatus> {
        self.status.parse().ok()
    }

    fn is(&self, status: FeatureStatus) -> bool {
        self.known_status() == Some(status)
    }

    fn is_verified(&self) -> bool {
        self.verification_refs.iter().any(|r| !r.trim().is_empty())
    }
}

/// A ledger document, `premath.harness.feature_ledger.v1`.
///
/// Fields that this build does not know are kept, value for value, in the
/// ledger and in its features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureLedger {
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, schema_with = "crate::json::schema::one")]
    schema: u8,
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, extend("const" = LEDGER_KIND))]
    ledger_kind: &'static str,
    /// The session that last wrote.
    #[serde(
        deserialize_with = "unless_blank",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_ref: Option<String>,
    /// When the ledger was last written, RFC 3339.
    #[serde(deserialize_with = "or_default")]
    pub updated_at: String,
    /// The features; a write sorts them by id.
    #[serde(deserialize_with = "or_default")]
    pub features: Vec<Feature>,
    #[serde(flatten, skip_deserializing)]
    #[schemars(!skip_deserializing)]
    extra: Map<String, Value>,
}

/// A ledger that cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It does not have the shape of a ledger; the source names the field.
    #[error("cannot read the feature ledger")]
    Shape(#[from] FieldError),
    /// A feature without an id cannot be written.
    #[error("cannot write a feature: its id is blank")]
    FeatureIdEmpty,
}

impl LedgerError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        match self {
            Self::Shape(_) => FailureClass::ProjectionInvalid,
            Self::FeatureIdEmpty => FailureClass::LedgerFeatureIdEmpty,
        }
    }
}

/// What to write of one feature (`contracts.md` 6).
///
/// A text that is `None` keeps what was there, a blank one clears it; refs
/// that are given replace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureWrite {
    /// The feature: updated where it is there, added otherwise.
    pub feature_id: String,
    /// The new status; a new feature's default is pending.
    pub status: Option<FeatureStatus>,
    /// The issue that it belongs to.
    pub issue_id: Option<IssueId>,
    /// The summary of the feature.
    pub summary: Option<String>,
    /// The session that writes; a field of the ledger.
    pub session_ref: Option<String>,
    /// Instructions that it is done under.
    pub instruction_refs: Option<RefSet>,
    /// References to the feature's verifications.
    pub verification_refs: Option<RefSet>,
}

impl FeatureWrite {
    /// Returns a write that changes nothing but times.
    pub fn new(feature_id: impl Into<String>) -> Self {
        Self {
            feature_id: feature_id.into(),
            ..Self::default()
        }
    }
}

/// One thing that a check found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LedgerFinding {
    /// The class of the finding.
    pub class: FailureClass,
    /// The feature at fault, `None` where it is the ledger.
    pub feature_id: Option<String>,
    /// What is there, in a few words.
    pub detail: String,
}

impl FeatureLedger {
    /// Reads a ledger document, whatever its features say.
    ///
    /// # Errors
    ///
    /// A wrong kind, or a field of the wrong JSON type.
    pub fn parse(bytes: &[u8]) -> Result<Self, LedgerError> {
        let document = Document::parse(bytes)?.of_kind("ledgerKind", LEDGER_KIND)?;
        let (mut ledger, unknown) = document.read::<Self>()?;
        for (index, feature) in ledger.features.iter_mut().enumerate() {
            feature.extra = unknown.take(&format!("features[{index}]"));
        }
        Ok(Self {
            schema: 1,
            ledger_kind: LEDGER_KIND,
            extra: unknown.take(""),
            ..ledger
        })
    }

    /// Returns the ledger after one feature was written: a new one, or the
    /// prior one with the feature updated or added.
    ///
    /// # Errors
    ///
    /// A blank feature id. What [`FeatureLedger::check`] would report is
    /// written all the same.
    pub fn write(
        prior: Option<Self>,
        write: FeatureWrite,
        now: Timestamp,
    ) -> Result<Self, LedgerError> {
        let id = some_text(&write.feature_id).ok_or(LedgerError::FeatureIdEmpty)?;
        let updated_at = time::micros(now);
        let mut ledger = prior.unwrap_or_else(|| Self {
            schema: 1,
            ledger_kind: LEDGER_KIND,
            session_ref: None,
            updated_at: String::new(),
            features: Vec::new(),
            extra: Map::new(),
        });
        let position = ledger.features.iter().position(|f| f.feature_id == id);
        let mut feature = match position {
            Some(index) => ledger.features.remove(index),
            None => Feature {
                feature_id: id,
                status: FeatureStatus::Pending.as_str().to_owned(),
                issue_id: None,
                summary: None,
                instruction_refs: Vec::new(),
                verification_refs: Vec::new(),
                updated_at: String::new(),
                extra: Map::new(),
            },
        };
        if let Some(status) = write.status {
            feature.status = status.as_str().to_owned();
        }
        if let Some(text) = write.issue_id {
            feature.issue_id = some_text(&text).map(IssueId::from);
        }
        if let Some(text) = write.summary {
            feature.summary = some_text(&text);
        }
        if let Some(refs) = write.instruction_refs {
            feature.instruction_refs = refs.iter().map(str::to_owned).collect();
        }
        if let Some(refs) = write.verification_refs {
            feature.verification_refs = refs.iter().map(str::to_owned).collect();
        }
        feature.updated_at.clone_from(&updated_at);
        if let Some(text) = write.session_ref {
            ledger.session_ref = some_text(&text);
        }
        ledger.updated_at = updated_at;
        ledger.features.insert(position.unwrap_or(0), feature);
        ledger
            .features
            .sort_by(|a, b| a.feature_id.cmp(&b.feature_id));
        Ok(ledger)
    }

    /// Returns the feature to work on: the smallest id in progress, else the
    /// smallest pending, else `None` (HARNESS-RUNTIME 5).
    pub fn next_feature(&self) -> Option<&str> {
        let smallest = |status| {
            self.features
                .iter()
                .filter(|f| f.is(status) && !f.feature_id.is_empty())
                .map(|f| f.feature_id.as_str())
                .min()
        };
        smallest(FeatureStatus::InProgress).or_else(|| smallest(FeatureStatus::Pending))
    }

    /// Returns whether there is a feature, and every one is completed with a
    /// verification.
    pub fn closure_complete(&self) -> bool {
        !self.features.is_empty()
            && self
                .features
                .iter()
                .all(|f| f.is(FeatureStatus::Completed) && f.is_verified())
    }

    /// Returns what is wrong with the ledger, sorted by class and feature.
    ///
    /// With `require_closure`, also each feature that is not completed.
    pub fn check(&self, require_closure: bool) -> Vec<LedgerFinding> {
        let mut findings = Vec::new();
        let mut report = |class, feature: Option<&str>, detail: String| {
            findings.push(LedgerFinding {
                class,
                feature_id: feature.map(str::to_owned),
                detail,
            });
        };
        if self.features.is_empty() {
            report(FailureClass::LedgerEmpty, None, "no feature".to_owned());
        }
        if self.updated_at.trim().is_empty() {
            report(
                FailureClass::LedgerUpdatedAtEmpty,
                None,
                "updatedAt of the ledger".to_owned(),
            );
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut in_progress = Vec::new();
        for (index, feature) in self.features.iter().enumerate() {
            let id = Some(feature.feature_id.as_str());
            if feature.feature_id.is_empty() {
                let detail = format!("features[{index}]");
                report(FailureClass::LedgerFeatureIdEmpty, id, detail);
            } else {
                *counts.entry(&feature.feature_id).or_default() += 1;
            }
            if feature.is(FeatureStatus::InProgress) {
                in_progress.push(feature.feature_id.as_str());
            }
            for (class, detail) in faults_of(feature, require_closure) {
                report(class, id, detail);
            }
        }
        for (id, count) in counts.into_iter().filter(|(_, count)| *count > 1) {
            let detail = format!("{count} rows");
            report(FailureClass::LedgerFeatureIdDuplicate, Some(id), detail);
        }
        if in_progress.len() > 1 {
            in_progress.sort_unstable();
            report(
                FailureClass::LedgerInProgressNonContractible,
                None,
                in_progress.join(", "),
            );
        }
        findings.sort();
        findings
    }
}

/// Reads a text, trimmed; null and absent read as empty.
fn trimmed<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(unless_blank(deserializer)?.unwrap_or_default())
}

/// Returns what is wrong with one feature by itself.
fn faults_of(feature: &Feature, require_closure: bool) -> Vec<(FailureClass, String)> {
    let mut faults = Vec::new();
    let blank = |refs: &[String]| refs.iter().position(|r| r.trim().is_empty());
    if feature.known_status().is_none() {
        faults.push((
            FailureClass::LedgerStatusInvalid,
            format!("status `{}`", feature.status.escape_debug()),
        ));
    }
    if feature.is(FeatureStatus::Completed) && !feature.is_verified() {
        faults.push((
            FailureClass::LedgerCompletedMissingVerificationRef,
            "no verificationRefs".to_owned(),
        ));
    }
    if let Some(index) = blank(&feature.instruction_refs) {
        faults.push((
            FailureClass::LedgerInstructionRefEmpty,
            format!("instructionRefs[{index}]"),
        ));
    }
    if let Some(index) = blank(&feature.verification_refs) {
        faults.push((
            FailureClass::LedgerVerificationRefEmpty,
            format!("verificationRefs[{index}]"),
        ));
    }
    if feature.updated_at.trim().is_empty() {
        faults.push((
            FailureClass::LedgerFeatureUpdatedAtEmpty,
            "updatedAt of the feature".to_owned(),
        ));
    }
    if require_closure && !feature.is(FeatureStatus::Completed) {
        faults.push((
            FailureClass::LedgerClosureIncomplete,
            format!("status `{}`", feature.status.escape_debug()),
        ));
    }
    faults
}

#[cfg(test)]
mod tests;
