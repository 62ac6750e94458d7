//! The manifest: which vectors a suite has.

use super::fault::{FaultKind, SuiteFault};
use super::files::{self, Files, MANIFEST, PAGE, vector_path};
use super::suite::Suite;
use super::vector::{SchemaOne, Sentence};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The kind of a manifest.
const KIND: &str = "premath.conformance.manifest.v1";

/// Returns the manifest of a suite's vectors: their ids, sorted, and what each
/// says.
///
/// # Errors
///
/// A vector that is not JSON, or whose `says` is not a text of one line.
pub fn manifest_of(files: &Files) -> Result<String, SuiteFault> {
    let mut vectors = Vec::new();
    for (path, bytes) in files {
        let Some(id) = path.strip_suffix(".json") else {
            continue;
        };
        if Suite::of_id(id).is_none() {
            continue;
        }
        let unreadable = |detail| SuiteFault::new(FaultKind::Unreadable, path, detail);
        let WithText { says } = files::read(bytes).map_err(unreadable)?;
        vectors.push(MadeEntry { id, says: says.0 });
    }
    vectors.sort_by_key(|entry| entry.id);
    let manifest = MadeManifest {
        schema: 1,
        manifest_kind: KIND,
        vectors,
    };
    let text = serde_json::to_string_pretty(&manifest);
    let failed = |error: serde_json::Error| {
        SuiteFault::new(FaultKind::Unreadable, MANIFEST, error.to_string())
    };
    Ok(text.map_err(failed)? + "\n")
}

/// The part of a vector that the manifest repeats.
#[derive(Deserialize)]
struct WithText {
    says: Sentence,
}

/// A manifest as it is written.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MadeManifest<'a> {
    schema: u8,
    manifest_kind: &'static str,
    vectors: Vec<MadeEntry<'a>>,
}

#[derive(Serialize)]
struct MadeEntry<'a> {
    id: &'a str,
    says: String,
}

/// A manifest as it is stored in the file.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct SuiteManifest {
    #[serde(rename = "schema")]
    _schema: SchemaOne,
    #[serde(rename = "manifestKind")]
    _kind: ManifestKind,
    vectors: Vec<VectorEntry>,
}

/// A vector as the manifest names it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VectorEntry {
    pub(super) id: String,
    pub(super) says: Sentence,
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct ManifestKind;

impl TryFrom<String> for ManifestKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == KIND {
            Ok(Self)
        } else {
            Err(format!("manifestKind must be {KIND}"))
        }
    }
}

impl SuiteManifest {
    /// Reads the manifest of a suite.
    pub(super) fn read(files: &Files) -> Result<Self, SuiteFault> {
        let unreadable = |detail| SuiteFault::new(FaultKind::Unreadable, MANIFEST, detail);
        match files.get(MANIFEST) {
            None => Err(unreadable("there is no manifest".to_owned())),
            Some(bytes) => files::read(bytes).map_err(unreadable),
        }
    }

    /// Returns the vectors that have a file, each once.
    pub(super) fn vectors<'a>(
        &'a self,
        files: &'a Files,
    ) -> impl Iterator<Item = (&'a VectorEntry, Suite, &'a [u8])> {
        let mut seen = BTreeSet::new();
        self.vectors.iter().filter_map(move |entry| {
            let suite = Suite::of_id(&entry.id)?;
            let bytes = files.get(&vector_path(&entry.id))?;
            seen.insert(&entry.id).then_some((entry, suite, &bytes[..]))
        })
    }

    /// Returns whether it names a vector of this id.
    pub(super) fn names(&self, id: &str) -> bool {
        self.vectors.iter().any(|entry| entry.id == id)
    }

    /// Returns where manifest and files disagree.
    pub(super) fn faults(&self, files: &Files) -> Vec<SuiteFault> {
        let ids = || self.vectors.iter().map(|entry| entry.id.as_str());
        let mut faults: Vec<SuiteFault> = ids()
            .zip(ids().skip(1))
            .filter(|(before, after)| before >= after)
            .map(|(before, after)| {
                let detail = format!("is after {before}: ids are sorted, and each appears once");
                SuiteFault::new(FaultKind::Manifest, after, detail)
            })
            .collect();
        for id in ids().collect::<BTreeSet<_>>() {
            let path = vector_path(id);
            if Suite::of_id(id).is_none() {
                let detail = "is in none of golden/, adversarial/, invariance/ and refusal/";
                faults.push(SuiteFault::new(FaultKind::Manifest, id, detail));
            } else if !files.contains_key(&path) {
                let detail = "is in the manifest, but the file does not exist";
                faults.push(SuiteFault::new(FaultKind::Absent, path, detail));
            }
        }
        let mut placed: BTreeSet<String> = ids().map(vector_path).collect();
        placed.extend([MANIFEST.to_owned(), PAGE.to_owned()]);
        placed.extend(files::bases(files).map(|(name, _)| files::base_path(name)));
        for path in files.keys().filter(|path| !placed.contains(*path)) {
            let detail = "is not a base and is not in the manifest";
            faults.push(SuiteFault::new(FaultKind::Stray, path, detail));
        }
        faults
    }
}
