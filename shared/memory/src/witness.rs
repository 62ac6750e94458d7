//! Witness documents as files, known by their digest (HARNESS-RUNTIME 3.2).

use crate::artifact;
use crate::error::StoreError;
use crate::projection;
use crate::untrusted;
use premath_kernel::json::canonical::{canonical_value, sha256_hex};
use premath_kernel::json::id::StepId;
use premath_kernel::json::token;
use serde_json::Value;
use std::path::Path;

/// More documents of one kind than this are not written for a step.
const SAME_KIND_MAX: u32 = 1000;

/// Writes a witness document below a folder; returns
/// `ciwitness://<step>/<phase>/<H of the document>`.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn write(
    folder: &Path,
    step_id: &StepId,
    phase: &str,
    document: &Value,
) -> Result<String, StoreError> {
    let file = artifact::of_step(folder, step_id, phase, "json");
    projection::write_value(&file, document)?;
    let digest = sha256_hex(canonical_value(document).as_bytes());
    let step = token::encode(step_id);
    Ok(format!("ciwitness://{step}/{phase}/{digest}"))
}

/// The largest witness that is read.
const READ_MAX: u64 = 16 << 20;

/// Reads a witness document below a root, where a step may have put anything in its
/// place; `None` where it is not there, or not a document of at most 16 MiB.
pub fn read(root: &Path, file: &Path) -> Option<Value> {
    serde_json::from_slice(&untrusted::read_file(root, file, READ_MAX)?).ok()
}

/// Writes a witness document beside those of its kind that the step has
/// already: `<phase>`, else `<phase>-2` and so on.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn write_another(
    folder: &Path,
    step_id: &StepId,
    phase: &str,
    document: &Value,
) -> Result<String, StoreError> {
    let later = (2..SAME_KIND_MAX).map(|number| format!("{phase}-{number}"));
    let mut free = phase.to_owned();
    for name in std::iter::once(phase.to_owned()).chain(later) {
        free = name;
        let file = artifact::of_step(folder, step_id, &free, "json");
        // What is no document is replaced.
        if read(folder, &file).is_none_or(|found| found == *document) {
            break;
        }
    }
    write(folder, step_id, &free, document)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};
    use serde_json::json;

    #[test]
    fn a_pipe_in_the_place_of_a_witness_is_replaced_and_another_document_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (folder, step) = (folder.path(), StepId::from("w.a.1"));
        let file = |phase: &str| artifact::of_step(folder, &step, phase, "json");
        mkfifoat(CWD, file("blocked"), Mode::RUSR | Mode::WUSR).unwrap();
        let put = |number: u64| {
            let document = json!({"number": number});
            write_another(folder, &step, "blocked", &document).unwrap();
        };
        [1, 2, 2].into_iter().for_each(put);
        let found = |phase: &str| read(folder, &file(phase));
        assert_eq!(found("blocked"), Some(json!({"number": 1})));
        assert_eq!(found("blocked-2"), Some(json!({"number": 2})));
        assert_eq!(found("blocked-3"), None);
    }
}
