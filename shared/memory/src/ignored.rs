//! The names of ours that git is to skip, in the repository's `info/exclude`.

use crate::artifact;
use crate::error::StoreError;
use crate::roots::open;
use std::path::Path;

/// Names of ours that git is to skip, in every worktree.
const PASSED_OVER: &[&str] = &[
    "/.premath/lanes/",
    "/.premath/private/",
    "/.premath/trust.json",
    "/.premath/harness_session.json",
    "/.premath/harness_feature_ledger.json",
    "/.premath/step/",
    "/.premath/issues.jsonl.flock",
    "/.premath/issues.jsonl.seal",
    "/.premath/issues.jsonl.base",
    "/.premath/issues.jsonl.foreign",
    "/.premath/issues.jsonl.checks",
    "/.premath/harness_trajectory.jsonl.flock",
    "/.premath/*.torn-*",
    "/artifacts/",
];

/// The line above those names.
const TITLE: &[u8] = b"# Premath Harness";

/// Keeps our files out of the git status of every worktree, by exact name in
/// the repository's `info/exclude`; what is there already stays. Returns
/// whether a name was added.
///
/// # Errors
///
/// [`StoreError::Repository`] or [`StoreError::Io`].
pub fn exclude_from_status(worktree: &Path) -> Result<bool, StoreError> {
    exclude_from_status_in(open(worktree)?.commondir())
}

/// Does as [`exclude_from_status`] for the worktrees that share a git folder.
///
/// # Errors
///
/// [`StoreError::Io`].
pub fn exclude_from_status_in(common_folder: &Path) -> Result<bool, StoreError> {
    let folder = common_folder.join("info");
    // A file that cannot be removed does not matter to the step.
    let _ = artifact::sweep(&folder);
    let path = folder.join("exclude");
    // Bytes, not text: what is there is the user's.
    let mut new = read(&path)?.unwrap_or_default();
    let missing = missing_in(&new);
    if missing.is_empty() {
        return Ok(false);
    }
    if !new.is_empty() && !new.ends_with(b"\n") {
        new.push(b'\n');
    }
    new.extend_from_slice(TITLE);
    new.push(b'\n');
    for name in missing {
        new.extend_from_slice(name.as_bytes());
        new.push(b'\n');
    }
    artifact::write(&path, &new)?;
    Ok(true)
}

/// Removes the names of ours from the file of [`exclude_from_status_in`]; every
/// other line stays.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn unexclude(common_folder: &Path) -> Result<(), StoreError> {
    let path = common_folder.join("info").join("exclude");
    let Some(rules) = read(&path)? else {
        return Ok(());
    };
    let is_ours = |line: &&[u8]| {
        let line = line.trim_ascii();
        line == TITLE || PASSED_OVER.iter().any(|name| line == name.as_bytes())
    };
    let lines = rules.split_inclusive(|byte| *byte == b'\n');
    let kept = lines.filter(|line| !is_ours(line));
    let kept: Vec<u8> = kept.flatten().copied().collect();
    match kept == rules {
        true => Ok(()),
        false => artifact::write(&path, &kept),
    }
}

/// Reads the operator's file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    premath_platform::file::read_regular(path).map_err(StoreError::io("read", path))
}

/// Returns the names of ours that a file of ignore rules does not have.
fn missing_in(rules: &[u8]) -> Vec<&'static str> {
    let has = |name: &str| {
        rules
            .split(|byte| *byte == b'\n')
            .any(|line| line.trim_ascii() == name.as_bytes())
    };
    let names = PASSED_OVER.iter().copied();
    names.filter(|name| !has(name)).collect()
}

/// Returns whether a name of ours is not among those that git is to skip, and no
/// shorter one of the operator's hides it.
///
/// # Errors
///
/// [`StoreError::Io`].
pub(crate) fn unexcluded(common_folder: &Path) -> Result<bool, StoreError> {
    let path = common_folder.join("info").join("exclude");
    let rules = read(&path)?.unwrap_or_default();
    let lines: Vec<&[u8]> = rules
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::trim_ascii)
        .collect();
    let is_hidden = |name: &&str| {
        let folder = name.as_bytes()[1..].split(|byte| *byte == b'/').next();
        let folder = folder.unwrap_or_default();
        let whole: [&[u8]; 2] = [b"/", b""];
        whole
            .iter()
            .any(|start| lines.contains(&&[*start, folder, b"/"].concat()[..]))
    };
    Ok(missing_in(&rules).iter().any(|name| !is_hidden(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, mkfifoat};

    #[test]
    fn what_a_killed_process_left_beside_the_file_goes() {
        let git = tempfile::tempdir().unwrap();
        let info = git.path().join("info");
        std::fs::create_dir(&info).unwrap();
        for name in [".premath-tmp-4194300-1-0", "theirs"] {
            std::fs::write(info.join(name), "").unwrap();
        }
        for is_added in [true, false] {
            assert_eq!(exclude_from_status_in(git.path()).unwrap(), is_added);
            let mut names: Vec<_> = std::fs::read_dir(&info)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            assert_eq!(names, ["exclude", "theirs"]);
        }
    }

    #[test]
    fn a_pipe_in_place_of_the_file_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let info = folder.path().join("info");
        std::fs::create_dir(&info).unwrap();
        let path = info.join("exclude");
        mkfifoat(CWD, &path, Mode::RWXU).unwrap();
        let error = exclude_from_status_in(folder.path()).unwrap_err();
        assert!(error.to_string().contains("info/exclude"), "{error}");
        unexclude(folder.path()).unwrap_err();
        unexcluded(folder.path()).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert!(exclude_from_status_in(folder.path()).unwrap());
        assert!(!unexcluded(folder.path()).unwrap());
    }
}
