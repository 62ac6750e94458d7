//! Trust in the files that govern a batch: which of them the operator accepted,
//! and whether a batch may begin with those that are there.
//!
//! A change that the operator made in the checkout is accepted and said. A
//! change that came with work of a step (by a landed commit, a branch of the
//! harness, or a copy of either) is refused until the operator accepts it.

use crate::failure::FailureClass;
use crate::json::canonical;
use crate::json::document::Document;
use crate::json::stamp::Stamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The kind of a [`TrustRecord`].
pub(crate) const TRUST_KIND: &str = "premath.harness.trust.v1";

/// The governing files of a checkout: paths from the root, and the digest of
/// each content, `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct GoverningFiles(pub BTreeMap<String, String>);

impl GoverningFiles {
    /// Returns the digest of all of them.
    pub fn digest(&self) -> String {
        canonical::digest(&json!({ "kind": TRUST_KIND, "files": self.0 }))
    }

    /// Returns what changed from these files to others, by path.
    pub fn changes_to(&self, other: &Self) -> Vec<FileChange> {
        let mut changes: Vec<FileChange> = Vec::new();
        for (path, digest) in &other.0 {
            let kind = match self.0.get(path) {
                None => ChangeKind::Added,
                Some(before) if before != digest => ChangeKind::Changed,
                Some(_) => continue,
            };
            changes.push(FileChange {
                path: path.clone(),
                kind,
            });
        }
        let removed = self.0.keys().filter(|path| !other.0.contains_key(*path));
        changes.extend(removed.map(|path| FileChange {
            path: path.clone(),
            kind: ChangeKind::Removed,
        }));
        changes.sort();
        changes
    }
}

/// How a governing file changed.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// The file was added.
    Added,
    /// The content of the file changed.
    Changed,
    /// It is not there any more.
    Removed,
}

impl ChangeKind {
    /// Returns the text used in reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Changed => "changed",
            Self::Removed => "removed",
        }
    }
}

/// A governing file that changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct FileChange {
    /// The path, from the root of the repository.
    pub path: String,
    /// The kind of the change.
    pub kind: ChangeKind,
}

impl fmt::Display for FileChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.path, self.kind.as_str())
    }
}

/// Returns changes as one phrase.
pub fn listed(changes: &[FileChange]) -> String {
    let items: Vec<String> = changes.iter().map(ToString::to_string).collect();
    items.join(", ")
}

/// How governing files were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// A batch found no record.
    FirstUse,
    /// A batch found changes that no work of a step brought.
    LocalChange,
    /// The operator, with `premath trust`.
    Operator,
    /// The digest was given, by `--trust`.
    Digest,
}

/// What the operator last accepted, `.premath/trust.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TrustRecord {
    /// The version of the document's form.
    #[schemars(extend("const" = 1))]
    schema: u8,
    /// The document's kind.
    #[schemars(extend("const" = TRUST_KIND))]
    kind: String,
    /// The digest of the files.
    digest: String,
    /// The files, by path.
    files: GoverningFiles,
    /// The commit that was checked out; null where there was none.
    #[serde(default)]
    pub head: Option<String>,
    /// The time at which the files were accepted.
    #[schemars(extend("format" = "date-time"))]
    accepted_at: String,
    /// The user who accepted the files.
    pub accepted_by: String,
    /// By what they were accepted.
    pub acceptance: Acceptance,
}

/// Who accepts governing files, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptor {
    /// The name of the user.
    pub name: String,
    /// How the files are accepted.
    pub acceptance: Acceptance,
    /// The commit that is checked out.
    pub head: Option<String>,
    /// The time of the acceptance.
    pub at: Stamp,
}

impl TrustRecord {
    /// Accepts files.
    pub fn new(files: GoverningFiles, by: Acceptor) -> Self {
        Self {
            schema: 1,
            kind: TRUST_KIND.to_owned(),
            digest: files.digest(),
            files,
            head: by.head,
            accepted_at: by.at.as_str().to_owned(),
            accepted_by: by.name,
            acceptance: by.acceptance,
        }
    }

    /// Reads a record.
    ///
    /// # Errors
    ///
    /// [`TrustError::Record`]: another form, or a digest that is not that of
    /// the files.
    pub fn parse(bytes: &[u8]) -> Result<Self, TrustError> {
        let wrong = |detail: String| TrustError::Record { detail };
        let read = Document::parse_strict(bytes).and_then(Document::read_known);
        let record: Self = read.map_err(|error| wrong(error.to_string()))?;
        if record.schema != 1 || record.kind != TRUST_KIND {
            return Err(wrong(format!("it is not a document of kind {TRUST_KIND}")));
        }
        if record.digest != record.files.digest() {
            return Err(wrong("its digest is not that of its files".to_owned()));
        }
        Ok(record)
    }

    /// Returns the record as it is stored in its file.
    pub fn text(&self) -> String {
        let value: Value = canonical::value_of(self);
        format!("{value:#}\n")
    }

    /// Returns the files.
    pub const fn files(&self) -> &GoverningFiles {
        &self.files
    }

    /// Returns the digest of the files.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns when they were accepted.
    pub fn accepted_at(&self) -> &str {
        &self.accepted_at
    }

    /// Returns the record with a file that a command of the operator wrote; the
    /// other files are accepted as they were.
    #[must_use]
    pub fn with_file(&self, path: String, digest: String) -> Self {
        let mut record = self.clone();
        record.files.0.insert(path, digest);
        record.digest = record.files.digest();
        record
    }
}

/// Whether a batch may begin with the governing files that are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustVerdict {
    /// They are those that were accepted.
    Unchanged,
    /// They are accepted and to be recorded; the changes are to be reported.
    Accept(Acceptance, Vec<FileChange>),
}

/// Governing files are not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The record cannot be read.
    #[error("cannot read .premath/trust.json: {detail}")]
    Record {
        /// The reason why the record is invalid.
        detail: String,
    },
    /// Files changed by work of steps.
    #[error(
        "governing files changed by steps since they were accepted: {}",
        listed(changes)
    )]
    Landed {
        /// The changes of the files.
        changes: Vec<FileChange>,
        /// The digest of the files that are there.
        digest: String,
    },
    /// The digest that was given is not that of the files.
    #[error("wrong digest of the governing files: expected {wanted}, found {digest}")]
    Digest {
        /// The digest that was given.
        wanted: String,
        /// The digest of the files that are there.
        digest: String,
    },
}

impl TrustError {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::GoverningFilesUntrusted
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::Landed { digest, .. } | Self::Digest { digest, .. } => format!(
                "show and accept the changes with `premath trust`; without a terminal, review them \
                 and give `--trust {digest}`"
            ),
            Self::Record { .. } => {
                "rewrite it for the current files with `premath trust`".to_owned()
            }
        }
    }
}

/// Judges the governing files that are there.
///
/// `has_landed` returns whether a change came with work of a step. A digest
/// that was `wanted` decides alone.
///
/// # Errors
///
/// [`TrustError`]: another digest than the wanted one, or changes that landed.
pub fn judge(
    record: Option<&TrustRecord>,
    now: &GoverningFiles,
    has_landed: impl Fn(&FileChange) -> bool,
    wanted: Option<&str>,
) -> Result<TrustVerdict, TrustError> {
    let digest = now.digest();
    let changes = record.map(|record| record.files.changes_to(now));
    if let Some(wanted) = wanted {
        if wanted.trim() != digest {
            let wanted = wanted.trim().to_owned();
            return Err(TrustError::Digest { wanted, digest });
        }
        return Ok(match changes {
            Some(changes) if changes.is_empty() => TrustVerdict::Unchanged,
            changes => TrustVerdict::Accept(Acceptance::Digest, changes.unwrap_or_default()),
        });
    }
    let Some(changes) = changes else {
        return Ok(TrustVerdict::Accept(Acceptance::FirstUse, Vec::new()));
    };
    if changes.is_empty() {
        return Ok(TrustVerdict::Unchanged);
    }
    let landed: Vec<FileChange> = changes.iter().filter(|c| has_landed(c)).cloned().collect();
    if landed.is_empty() {
        Ok(TrustVerdict::Accept(Acceptance::LocalChange, changes))
    } else {
        Err(TrustError::Landed {
            changes: landed,
            digest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(items: &[(&str, &str)]) -> GoverningFiles {
        let items = items.iter();
        GoverningFiles(
            items
                .map(|(path, d)| ((*path).into(), (*d).into()))
                .collect(),
        )
    }

    fn record(files: GoverningFiles) -> TrustRecord {
        TrustRecord::new(
            files,
            Acceptor {
                name: "ann".to_owned(),
                acceptance: Acceptance::Operator,
                head: Some("c0".to_owned()),
                at: Stamp::parse("2026-03-05T10:00:00Z").unwrap(),
            },
        )
    }

    #[test]
    fn a_record_reads_back_and_a_changed_one_does_not() {
        let record = record(files(&[("harness.toml", "sha256:a")]));
        let text = record.text();
        assert_eq!(TrustRecord::parse(text.as_bytes()), Ok(record.clone()));
        for (from, to) in [
            ("sha256:a", "sha256:b"),
            (TRUST_KIND, "other.v1"),
            ("\"acceptedBy\"", "\"x\": 1, \"acceptedBy\""),
            ("}\n", ""),
            ("\"acceptedBy\"", "\"acceptedBy\": \"eve\", \"acceptedBy\""),
        ] {
            let text = text.replace(from, to);
            let error = TrustRecord::parse(text.as_bytes()).unwrap_err();
            assert_eq!(
                error.class(),
                FailureClass::GoverningFilesUntrusted,
                "{from}"
            );
        }
        // A list of the fields' values is not a record.
        let value: Value = serde_json::from_str(&text).unwrap();
        let fields = [
            "schema",
            "kind",
            "digest",
            "files",
            "head",
            "acceptedAt",
            "acceptedBy",
            "acceptance",
        ];
        let list = Value::from_iter(fields.map(|field| value[field].clone()));
        assert!(TrustRecord::parse(list.to_string().as_bytes()).is_err());
        let more = record.with_file("b".to_owned(), "sha256:b".to_owned());
        assert_eq!(TrustRecord::parse(more.text().as_bytes()), Ok(more));
    }

    #[test]
    fn the_first_batch_accepts_what_it_finds() {
        let now = files(&[("a", "1")]);
        let verdict = judge(None, &now, |_| true, None);
        assert_eq!(
            verdict,
            Ok(TrustVerdict::Accept(Acceptance::FirstUse, Vec::new()))
        );
    }

    #[test]
    fn a_change_of_the_operator_is_accepted_and_one_that_landed_is_not() {
        let record = record(files(&[("a", "1"), ("b", "1"), ("c", "1")]));
        let judge = |now, landed: &str| judge(Some(&record), &now, |c| c.path == landed, None);
        assert_eq!(
            judge(record.files.clone(), "a"),
            Ok(TrustVerdict::Unchanged)
        );
        let now = files(&[("a", "2"), ("c", "1"), ("d", "1")]);
        let Ok(TrustVerdict::Accept(Acceptance::LocalChange, changes)) = judge(now.clone(), "c")
        else {
            panic!("not accepted");
        };
        assert_eq!(listed(&changes), "a (changed), b (removed), d (added)");
        for landed in ["a", "b", "d"] {
            let Err(TrustError::Landed { changes, digest }) = judge(now.clone(), landed) else {
                panic!("accepted {landed}");
            };
            assert_eq!(changes.len(), 1);
            assert_eq!(changes[0].path, landed);
            assert_eq!(digest, now.digest());
        }
    }

    #[test]
    fn a_digest_that_is_given_decides() {
        let now = files(&[("a", "2")]);
        let record = record(files(&[("a", "1")]));
        let wanted = now.digest();
        for record in [None, Some(&record)] {
            let verdict = judge(record, &now, |_| true, Some(&wanted)).unwrap();
            assert!(matches!(
                verdict,
                TrustVerdict::Accept(Acceptance::Digest, _)
            ));
            let error = judge(record, &now, |_| false, Some("sha256:0")).unwrap_err();
            assert!(
                error.hint().contains(&format!("--trust {wanted}")),
                "{}",
                error.hint()
            );
        }
        let record = TrustRecord {
            files: now.clone(),
            ..record
        };
        let verdict = judge(Some(&record), &now, |_| true, Some(&wanted));
        assert_eq!(verdict, Ok(TrustVerdict::Unchanged));
    }
}
