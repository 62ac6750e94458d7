//! Files that a command of the operator wrote are accepted with it.

use premath_memory::roots::MemoryRoots;
use premath_memory::trust;
use premath_worktree::governing::{content, digest_of, is_read_at_start};
use std::path::Path;

/// Accepts governing files that this command created, where a record is there.
/// What else changed stays to be accepted. Returns what went wrong, for a
/// warning: the files are there all the same.
pub(crate) fn accept_created(root: &Path, paths: &[&str]) -> Option<String> {
    let roots = MemoryRoots::at(root);
    let attempt = || -> Result<(), String> {
        let mut record = match trust::read(&roots) {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            Err(error) => return Err(error.to_string()),
        };
        let mut is_changed = false;
        // What is not tracked yet and read from no checkout does not govern.
        for path in paths.iter().filter(|path| is_read_at_start(path)) {
            let content = content(root, path).map_err(|error| error.to_string())?;
            if let Some(content) = content {
                record = record.with_file((*path).to_owned(), digest_of(&content));
                is_changed = true;
            }
        }
        if !is_changed {
            return Ok(());
        }
        trust::write(&roots, &record).map_err(|error| error.to_string())
    };
    attempt().err()
}
