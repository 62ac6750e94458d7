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

impl<'a> Prepared<'a> {
    /// Runs the work command, and writes the commit that is to be verified.
    pub(super) fn work(mut self, lane: &mut Lane) -> Result<Worked<'a>, Box<Failed>> {
        let (landed, tree) = match lane.work(&mut self) {
            Ok(worked) => worked,
            Err(stage_error) => {
                let (base, work) = (Some(self.base), WorkDone::default());
                return Err(self.attempt.failed(lane, base, work, stage_error));
            }
        };
        let mut worked = Worked {
            attempt: self.attempt,
            base: self.base,
            brief: self.brief,
            clean: self.clean,
            landed,
            tree,
            candidate: None,
            work: WorkDone::default(),
        };
        match lane.take_over(&mut worked) {
            Ok(()) => Ok(worked),
            Err(stage_error) => Err(worked.failed(lane, stage_error)),
        }
    }
}

impl Lane {
    /// Returns the landing of work that landed before a harness died, which is
    /// not done a second time; else runs the work. Returns the tree too.
    fn work(
        &mut self,
        step: &mut Prepared<'_>,
    ) -> Result<(Option<LandedMark>, TreeState), StageError> {
        let landed = self.landed(&step.brief.issue_id)?;
        let tree = match &landed {
            Some(_) => step.clean.clone(),
            None => {
                let command = step.brief.work.command.clone();
                let run = (Phase::Work(0), &*command);
                self.run_work(&mut step.attempt, &step.brief, run, &step.clean)?
            }
        };
        Ok((landed, tree))
    }

    /// Runs the work command of a round; returns the tree that it left.
    pub(super) fn run_work(
        &mut self,
        attempt: &mut Attempt<'_>,
        brief: &Brief,
        (phase, command): (Phase, &str),
        before: &TreeState,
    ) -> Result<TreeState, StageError> {
        let ran = self.run(
            phase,
            command,
            &brief.owner(),
            Some(before.clone()),
            Some(&mut attempt.watch),
        )?;
        attempt.batch.reached(Boundary::WorkEnded);
        let tree = ran.after.clone();
        let log = &mut attempt.log;
        let taken = match self.take_in(log, ran, phase) {
            Ok(()) => self.take_in_reported(log, brief.work.adapter)?,
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
        let reported = ParsedInput::from_step(&bytes)?.input;
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
}
