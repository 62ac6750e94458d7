//! Verifications that operators wrote into issues, as they are recorded when
//! they are written and when a batch is authorised (`contracts.md` 11).

use crate::issue::own_check::digest_of;
use crate::json::document::Document;
use crate::json::field::FieldError;
use crate::json::id::{BatchId, IssueId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of an [`OwnCheckRecords`].
pub(crate) const RECORDS_KIND: &str = "premath.harness.issue_checks.v1";
/// The kind of an [`OwnChecksWitness`].
pub(crate) const WITNESS_KIND: &str = "premath.harness.checks_witness.v1";

/// A verification that an operator wrote into an issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OwnCheckRecord {
    /// The command, as a shell reads it.
    pub command: String,
    /// The digest of the command, `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// The operator.
    pub operator: String,
    /// When the transaction wrote it, RFC 3339.
    pub at: String,
}

impl OwnCheckRecord {
    /// Returns whether the digest is that of the command.
    fn is_whole(&self) -> bool {
        self.digest == digest_of(&self.command)
    }
}

/// The file in which transactions record them, by issue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnCheckRecords {
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, schema_with = "crate::json::schema::one")]
    schema: u8,
    #[serde(skip_deserializing)]
    #[schemars(!skip_deserializing, extend("const" = RECORDS_KIND))]
    record_kind: &'static str,
    /// The records.
    pub checks: BTreeMap<IssueId, OwnCheckRecord>,
}

/// The record of verifications cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OwnChecksError {
    /// It does not have the shape of the record.
    #[error("cannot read the record of issue verifications")]
    Shape(#[from] FieldError),
    /// A command does not have its digest.
    #[error("the recorded verification of issue {0} does not have its digest")]
    Digest(IssueId),
}

impl Default for OwnCheckRecords {
    fn default() -> Self {
        Self {
            schema: 1,
            record_kind: RECORDS_KIND,
            checks: BTreeMap::new(),
        }
    }
}

impl OwnCheckRecords {
    /// Reads the file.
    ///
    /// # Errors
    ///
    /// [`OwnChecksError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, OwnChecksError> {
        let document = Document::parse(bytes)?.of_kind("recordKind", RECORDS_KIND)?;
        let (records, _) = document.read::<Self>()?;
        if let Some((id, _)) = records.checks.iter().find(|(_, check)| !check.is_whole()) {
            return Err(OwnChecksError::Digest(id.clone()));
        }
        Ok(Self {
            checks: records.checks,
            ..Self::default()
        })
    }
}

/// The verifications that a batch may run, as they were when it was authorised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OwnChecksWitness<'a> {
    #[schemars(schema_with = "crate::json::schema::one")]
    schema: u8,
    #[schemars(extend("const" = WITNESS_KIND))]
    witness_kind: &'static str,
    /// The batch.
    pub batch_id: &'a BatchId,
    /// The verifications, by issue.
    pub checks: &'a BTreeMap<IssueId, OwnCheckRecord>,
}

impl<'a> OwnChecksWitness<'a> {
    /// Makes the witness of a batch.
    pub fn new(batch_id: &'a BatchId, checks: &'a BTreeMap<IssueId, OwnCheckRecord>) -> Self {
        Self {
            schema: 1,
            witness_kind: WITNESS_KIND,
            batch_id,
            checks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::canonical::canonical;

    #[test]
    fn a_record_is_read_back_and_a_changed_command_is_not() {
        let record = OwnCheckRecord {
            command: "make check".to_owned(),
            digest: digest_of("make check"),
            operator: "ann".to_owned(),
            at: "2026-03-05T10:00:00Z".to_owned(),
        };
        let mut records = OwnCheckRecords::default();
        records.checks.insert("a".into(), record);
        let text = canonical(&records);
        assert_eq!(OwnCheckRecords::parse(text.as_bytes()), Ok(records));
        let forged = text.replace("make check", "true");
        assert_eq!(
            OwnCheckRecords::parse(forged.as_bytes()),
            Err(OwnChecksError::Digest("a".into()))
        );
    }
}
