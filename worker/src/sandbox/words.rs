//! The paths that a command line names.

use std::path::{Path, PathBuf};

/// Files that are each command's own, or none.
const OF_THE_KERNEL: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Returns the files that a command line names by an absolute path. Folders are
/// left out: one that is named is written to as a rule, and holds more.
pub(crate) fn paths_named_by(command: &str) -> Vec<PathBuf> {
    let is_end = |c: char| c.is_whitespace() || "'\"`=;&|()<>{}$".contains(c);
    let mut paths: Vec<PathBuf> = command
        .split(is_end)
        .map(Path::new)
        .filter(|path| path.is_absolute() && path.is_file())
        .filter(|path| !OF_THE_KERNEL.iter().any(|folder| path.starts_with(folder)))
        .map(Path::to_path_buf)
        .collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_in_quotes_and_after_signs() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.sh");
        std::fs::write(&file, "").unwrap();
        let at = file.display();
        let named = paths_named_by(&format!(
            "A='{at}'; cd {} && sh /nowhere",
            folder.path().display()
        ));
        assert_eq!(named, [file]);
        assert!(paths_named_by("sh agent.sh").is_empty());
        assert!(paths_named_by("cat /proc/net/dev > /dev/null").is_empty());
    }
}
