//! The files of `[verify] provide` in a checkout for verifications.

use crate::settings::Provided;
use premath_memory::untrusted::{UntrustedError, UntrustedFolder};
use premath_worktree::checkout::Checkout;
use std::path::Path;

/// Puts the provided files into a checkout. A file that the commit tracks is not
/// replaced. Nothing is forced: where one cannot be written, the verification
/// fails for want of it, and the log says why.
pub(crate) fn provide(provided: &[Provided], checkout: &Checkout, commit: &str) {
    for file in provided {
        let path = file.path.to_string_lossy();
        if checkout.tree().holds(commit, &path) {
            tracing::warn!(%path, "`provide` names a file that git tracks; the tracked one is verified");
            continue;
        }
        if let Err(error) = put(file, checkout.folder()) {
            let why = crate::cause::chain(&error);
            tracing::warn!(%path, %why, "a provided file is missing in the verification");
        }
    }
}

fn put(file: &Provided, checkout: &Path) -> Result<(), UntrustedError> {
    let folder = file.path.parent().unwrap_or(Path::new(""));
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    let is_there = std::fs::symlink_metadata(checkout.join(folder)).is_ok();
    // What the tree has in the place of the folder is not replaced.
    let folder = match is_there {
        true => UntrustedFolder::open(checkout, folder)?,
        false => UntrustedFolder::make(checkout, folder)?,
    };
    if let Ok(Some(content)) = folder.read(&name, file.content.len() as u64)
        && content == *file.content
    {
        return Ok(());
    }
    folder.write(&name, &file.content, 0o600)
}
