//! What a person should know about a lane's worktree.

use super::super::Lane;
use std::path::PathBuf;

/// How many secrets that steps can read a warning names.
const SECRETS_NAMED: usize = 10;

impl Lane {
    /// Says what a person should know about the worktree.
    pub(super) fn warnings(&self) -> Vec<String> {
        let issues = self.batch.memory.path();
        let tracked = issues
            .strip_prefix(&self.worktree)
            .is_ok_and(|path| self.tree.tracks(path));
        let mut warnings = self.confinement.warnings.clone();
        if tracked {
            warnings.push(format!(
                "{} is tracked in this checkout: a `git stash` or `git reset` of the work command \
                 reverts it; use a linked worktree",
                issues.display()
            ));
        }
        if let Ok(paths) = self.tree.tracked_ours()
            && let Some(first) = paths.iter().find(|path| path.starts_with("artifacts/"))
        {
            warnings.push(format!(
                "{first} is tracked, but files in artifacts/ are never committed or restored"
            ));
        }
        let mut secrets: Vec<String> = match self.confinement.mounts() {
            true => Vec::new(),
            false => self
                .tree
                .kept_out()
                .secrets()
                .map(|path| path.display().to_string())
                .collect(),
        };
        let more = secrets.len().saturating_sub(SECRETS_NAMED);
        secrets.truncate(SECRETS_NAMED);
        if more > 0 {
            secrets.push(format!("{more} more"));
        }
        if !secrets.is_empty() {
            warnings.push(format!(
                "steps in this worktree can read {}; only namespaces can hide files of a worktree",
                secrets.join(", ")
            ));
        }
        if self.tree.submodules().unwrap_or(false) {
            warnings.push(
                "the repository has submodules: `setup_cmd` is to check them out, and what a \
                 step changes in one is not part of its work"
                    .to_owned(),
            );
        }
        warnings.extend(self.setup_warnings());
        warnings
    }

    /// Names the inputs of the setup that the commit does not have. A misspelt one never
    /// makes the setup run again.
    fn setup_warnings(&self) -> Vec<String> {
        let inputs = self.setup().map_or(&[][..], |setup| &setup.inputs);
        let is_absent = |input: &&PathBuf| matches!(self.tree.committed("HEAD", input), Ok(None));
        let absent = inputs.iter().filter(is_absent).map(|input| {
            let input = input.display();
            format!("`setup_inputs`: the commit that this lane begins at has no {input}")
        });
        absent.collect()
    }
}
