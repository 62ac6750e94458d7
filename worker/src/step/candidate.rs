//! The candidate: the commit of what a step's work left, which is verified.

use super::error::{StageError, StepError};
use super::step_failure::StepFailure;
use super::work::WorkDone;
use super::worked::Worked;
use crate::lane::Lane;
use crate::lane::command::Phase;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::boundary::Boundary;
use premath_worktree::tree::{Base, TreeState};

impl Lane {
    /// Takes over what the work left, and writes the commit that is to be
    /// verified, where it changed anything that it may.
    pub(super) fn take_over(&mut self, step: &mut Worked<'_>) -> Result<(), StageError> {
        let (base, tree) = (&step.base, &step.tree);
        let changed = tree.tree != step.clean.tree;
        self.import(base, tree, changed)?;
        step.attempt.batch.reached(Boundary::TreeImported);
        step.work.changed_paths.clear();
        step.attempt.log.demand.changed.clear();
        if changed {
            self.refuse_hidden(base, tree)?;
            step.work.changed_paths = self.tree.changed_since(&base.commit, &tree.tree)?;
            let changed = step.work.changed_paths.iter().cloned();
            step.attempt.log.demand.changed = changed.collect();
            let own = step.attempt.batch.own_check(&step.attempt.claim().issue_id);
            if let Err(failure) = self
                .refuse_protected(&mut step.work, base, own)
                .and_then(|()| self.refuse_out_of_scope(&step.work))
            {
                return Err(self.refused(&mut step.attempt.log, failure));
            }
        }
        // Its commit is recreated when its verification can be named.
        let from = &base.commit;
        step.candidate = match changed {
            true => Some(
                self.tree
                    .squash(&step.brief.text(), from, &tree.tree, None)?,
            ),
            false => None,
        };
        step.attempt.batch.reached(Boundary::CandidateWritten);
        Ok(())
    }

    /// Takes the files of the work into the repository: what is verified is
    /// what is committed, whatever comes after.
    fn import(&self, base: &Base, tree: &TreeState, changed: bool) -> Result<(), StageError> {
        let git = self.git_of(Phase::Work(0)).map(|git| git.folder.as_path());
        let git = git.unwrap_or_else(|| self.tree.common_folder());
        if let Some(moved) = self.tree.moved_submodule(&base.commit, git)? {
            return Err(unproven(format!(
                "the submodule {moved} is at another commit; no step's commit takes that in"
            )));
        }
        if tree.nested
            && let Some(nested) = self.tree.nested_repository(&base.commit)?
        {
            return Err(unproven(format!(
                "{nested} is a nested git repository; a commit would not contain its files"
            )));
        }
        if changed && !self.tree.keep_state(&base.commit, tree)? {
            return Err(unproven("the tree changed after the work ended".to_owned()));
        }
        Ok(())
    }

    fn refuse_hidden(&self, base: &Base, tree: &TreeState) -> Result<(), StageError> {
        match self.tree.hides_files(&base.commit, &tree.tree)? {
            None => Ok(()),
            Some((rules, hidden)) => Err(unproven(format!(
                "{rules} ignores {hidden}, a tracked file: later changes to it would be lost"
            ))),
        }
    }

    /// Refuses work that changed files which the instruction does not cover.
    fn refuse_out_of_scope(&self, work: &WorkDone) -> Result<(), Box<StepFailure>> {
        let settings = &self.batch.settings;
        let Some(scope) = &settings.scope_paths else {
            return Ok(());
        };
        let outside = scope.outside(&work.changed_paths);
        if outside.is_empty() {
            return Ok(());
        }
        let mut failure = StepFailure::of(FailureClass::InstructionOutOfScope);
        let said = format!(
            "the attempt changed files that the instruction's scope does not cover: {}",
            outside.join(", ")
        );
        failure.said = Some((said, settings.roots.streams.clone()));
        Err(failure)
    }

    /// Refuses work that changed protected files, or files that the verification
    /// or the issue's own names.
    fn refuse_protected(
        &self,
        work: &mut WorkDone,
        base: &Base,
        own_check: Option<&str>,
    ) -> Result<(), Box<StepFailure>> {
        let settings = &self.batch.settings;
        let exists = |path: &str| self.tree.holds(&base.commit, path);
        let paths = &work.changed_paths;
        let verify = self.verify_command();
        let verify = [verify.as_str(), own_check.unwrap_or_default()].join("\n");
        let judged = self.protect().judge(paths, &verify, exists);
        let refusal = judged.refusal();
        work.sensitive = judged.sensitive;
        let Some(said) = refusal else {
            return Ok(());
        };
        let mut failure = StepFailure::of(FailureClass::WorkProtectedPath);
        failure.said = Some((said, settings.roots.streams.clone()));
        Err(failure)
    }
}

fn unproven(detail: String) -> StageError {
    StepError::Unproven(detail).into()
}
