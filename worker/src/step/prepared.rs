//! A step that everything is ready for: its work can begin.

use super::account::ReportedCalls;
use super::attempt::Attempt;
use super::brief::Brief;
use super::error::{StageError, StepError};
use super::failed::Failed;
use super::log::StepLog;
use super::step_failure::StepFailure;
use super::work::WorkDone;
use super::worked::Worked;
use crate::lane::Lane;
use crate::lane::command::Phase;
use crate::lane::files::EVIDENCE;
use crate::settings::Adapter;
use premath_evidence::unkept;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::turn::ParsedInput;
use premath_memory::untrusted::EVIDENCE_MAX;
use premath_worktree::landing::LandedMark;
use premath_worktree::tree::{Base, TreeState};

/// A step that everything is ready for.
#[derive(Debug)]
#[must_use = "a step that is prepared is worked on"]
pub(super) struct Prepared<'a> {
    pub(super) attempt: Attempt<'a>,
    pub(super) base: Base,
    pub(super) brief: Brief,
    /// The tree before the work.
    pub(super) clean: TreeState,
}

/// The state that the work left.
struct Left {
    landed: Option<LandedMark>,
    tree: TreeState,
    candidate: Option<String>,
}

impl<'a> Prepared<'a> {
    /// Runs the work command, and writes the commit that is to be verified.
    pub(super) fn work(mut self, lane: &mut Lane) -> Result<Worked<'a>, Box<Failed>> {
        let mut work = WorkDone::default();
        match lane.work(&mut self, &mut work) {
            Ok(left) => Ok(Worked {
                attempt: self.attempt,
                base: self.base,
                brief: self.brief,
                landed: left.landed,
                tree: left.tree,
                candidate: left.candidate,
                work,
            }),
            Err(stage_error) => Err(self
                .attempt
                .failed(lane, Some(self.base), work, stage_error)),
        }
    }
}

impl Lane {
    fn work(&mut self, step: &mut Prepared<'_>, work: &mut WorkDone) -> Result<Left, StageError> {
        // Work that landed before a harness died is not done a second time.
        let landed = self.landed(&step.brief.issue_id)?;
        let tree = match &landed {
            Some(_) => step.clean.clone(),
            None => self.run_work(step)?,
        };
        let changed = tree.tree != step.clean.tree;
        self.import(&step.base, &tree, changed)?;
        step.attempt.batch.reached(Boundary::TreeImported);
        if changed {
            self.refuse_hidden(&step.base, &tree)?;
            work.changed_paths = self.tree.changed_since(&step.base.commit, &tree.tree)?;
            let own = step.attempt.batch.own_check(&step.attempt.claim().issue_id);
            if let Err(failure) = self
                .refuse_protected(work, &step.base, own)
                .and_then(|()| self.refuse_out_of_scope(work))
            {
                return Err(self.refused(&mut step.attempt.log, failure));
            }
        }
        // Its commit is recreated when its verification can be named.
        let from = &step.base.commit;
        let candidate = match changed {
            true => Some(
                self.tree
                    .squash(&step.brief.text(), from, &tree.tree, None)?,
            ),
            false => None,
        };
        step.attempt.batch.reached(Boundary::CandidateWritten);
        Ok(Left {
            landed,
            tree,
            candidate,
        })
    }

    /// Runs the work command; returns the tree that it left.
    fn run_work(&mut self, step: &mut Prepared<'_>) -> Result<TreeState, StageError> {
        let (attempt, work) = (&mut step.attempt, &step.brief.work);
        let ran = self.run(
            Phase::Work,
            &work.command,
            &step.brief.owner(),
            Some(step.clean.clone()),
            Some(&mut attempt.watch),
        )?;
        attempt.batch.reached(Boundary::WorkEnded);
        let tree = ran.after.clone();
        let log = &mut attempt.log;
        let taken = self.take_in(log, ran, Phase::Work);
        let taken = match taken {
            Ok(()) => self.take_in_reported(log, work.adapter)?,
            failed => failed,
        };
        match taken {
            Ok(()) => Ok(tree),
            Err(failure) => Err(self.refused(log, failure)),
        }
    }

    /// Takes in what the work command wrote down of its calls, where its
    /// adapter has it do so; the inner error is that it is not there.
    fn take_in_reported(
        &self,
        log: &mut StepLog,
        adapter: Adapter,
    ) -> Result<Result<(), Box<StepFailure>>, StageError> {
        if adapter != Adapter::EvidenceFile {
            return Ok(Ok(()));
        }
        let folder = self.roots.step_folder()?;
        let read = folder.read(EVIDENCE, EVIDENCE_MAX);
        let Some(bytes) = read.map_err(StepError::EvidenceFile)? else {
            let said = "the work command wrote no evidence to PREMATH_EVIDENCE_PATH";
            let folder = self.batch.settings.roots.streams.clone();
            let mut failure = StepFailure::of(FailureClass::MutationUseEvidenceMissing);
            failure.said = Some((said.to_owned(), folder));
            return Ok(Err(failure));
        };
        let reported = ParsedInput::from_slice(&bytes)?.input;
        let unkept = unkept(&reported);
        if !unkept.is_empty() {
            let said = format!(
                "the evidence file cannot be kept as it is: the harness sets {} itself",
                unkept.join(" and ")
            );
            let mut failure = StepFailure::of(FailureClass::ToolSchemaInvalid);
            failure.said = Some((said, self.batch.settings.roots.streams.clone()));
            return Ok(Err(failure));
        }
        log.account.reported = Some(ReportedCalls::File(Box::new(reported)));
        Ok(Ok(()))
    }

    /// Takes the files of the work into the repository: what is verified is
    /// what is committed, whatever comes after.
    fn import(&self, base: &Base, tree: &TreeState, changed: bool) -> Result<(), StageError> {
        let git = self.git_of(Phase::Work).map(|git| git.folder.as_path());
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
