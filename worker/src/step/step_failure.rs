//! What went wrong in a step.

use super::error::{StageError, StepError};
use crate::lane::Lane;
use crate::lane::command::{CommandError, Cut};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::retry;
use premath_memory::ChangeError;
use std::path::PathBuf;

/// What went wrong in a step, and what it means for its lane and its batch.
#[derive(Debug, Default)]
pub(super) struct StepFailure {
    /// The failure classes, the cause first.
    pub(super) classes: Vec<String>,
    /// Why the harness ended a command, where it did.
    pub(super) cut: Option<Cut>,
    /// What the command that failed said last, and where all of it is.
    pub(super) said: Option<(String, PathBuf)>,
    /// Why the lane cannot continue, where it cannot.
    pub(super) lane_lost: Option<(FailureClass, String)>,
    /// Why memory or trajectory cannot be used, where they cannot.
    pub(super) store_lost: Option<String>,
    /// Whether the tree is not where the next step may start from.
    pub(super) is_stranded: bool,
}

impl StepFailure {
    /// Makes the failure of one class.
    pub(super) fn of(class: FailureClass) -> Box<Self> {
        let mut failure = Box::<Self>::default();
        failure.fail(class.as_str());
        failure
    }

    /// Makes the failure of a lease that cannot be relied on.
    pub(super) fn of_lease(class: FailureClass) -> Box<Self> {
        let mut failure = Self::of(class);
        failure.cut = Some(Cut::Lease(class));
        failure
    }

    /// Makes the failure of an interrupt.
    pub(super) fn of_interrupt() -> Box<Self> {
        let mut failure = Self::of(FailureClass::StepInterrupted);
        failure.cut = Some(Cut::Interrupt);
        failure
    }

    /// Makes the failure of an attempt that an operator cancelled.
    pub(super) fn of_cancellation() -> Box<Self> {
        let mut failure = Self::of(FailureClass::StepInterrupted);
        failure.cut = Some(Cut::Cancelled);
        failure
    }

    /// Returns whether only the command failed, and neither the step was cut nor
    /// its lane lost.
    pub(super) fn is_of_the_command(&self) -> bool {
        matches!(self.cut, None | Some(Cut::Superseded))
            && self.lane_lost.is_none()
            && self.store_lost.is_none()
            && !self.is_stranded
    }

    /// Returns whether it is a verification's, which ran to its end and failed: an
    /// agent can mend what it says.
    pub(super) fn is_red(&self) -> bool {
        let red = [FailureClass::CheckFailed, FailureClass::LandingCheckFailed];
        let is_red = |class: &String| red.iter().any(|red| red.as_str() == class);
        self.cut.is_none() && self.is_of_the_command() && self.classes.iter().all(is_red)
    }

    /// Returns whether it is a verification's that is repeated on the same tree.
    pub(super) fn may_pass_again(&self) -> bool {
        self.cut.is_none() && self.is_of_the_command() && retry::may_pass_again(&self.classes)
    }

    /// Adds a class, once.
    pub(super) fn fail(&mut self, class: impl AsRef<str>) {
        let class = class.as_ref().to_owned();
        if !self.classes.contains(&class) {
            self.classes.push(class);
        }
    }

    /// Adds a note to the last message of the command that failed.
    pub(super) fn note(&mut self, text: &str) {
        if let Some((said, _)) = &mut self.said {
            *said = format!("{said} ({text})");
        }
    }

    /// Adds what went wrong later.
    pub(super) fn join(&mut self, later: Self) {
        later.classes.iter().for_each(|class| self.fail(class));
        self.cut = later.cut.or(self.cut);
        self.said = later.said.or(self.said.take());
        self.lane_lost = later.lane_lost.or(self.lane_lost.take());
        self.store_lost = later.store_lost.or(self.store_lost.take());
        self.is_stranded |= later.is_stranded;
    }

    /// Records that the lane cannot continue from where it is.
    pub(super) fn mark_stranded(&mut self, class: FailureClass, detail: String) {
        self.is_stranded = true;
        self.lane_lost = Some((class, detail));
    }
}

impl Lane {
    /// Adds a stage_error to what went wrong before. Starts another supervisor
    /// where the step's own was lost.
    pub(super) fn absorb(&mut self, failure: &mut StepFailure, stage_error: impl Into<StageError>) {
        let error = match stage_error.into() {
            StageError::Failed(later) => return failure.join(*later),
            StageError::Error(error) => error,
        };
        failure.fail(error.class().as_str());
        match &error {
            StepError::Change(ChangeError::Store(_)) => {
                failure.store_lost = Some(error.to_string());
            }
            StepError::Command(CommandError::Supervisor(lost)) => {
                tracing::warn!(error = %lost, "supervisor lost");
                failure.lane_lost = self.replace_supervisor(lost);
                failure.is_stranded = failure.lane_lost.is_some();
            }
            _ => {
                let folder = &self.batch.settings.roots.streams;
                failure.said = Some((error.to_string(), folder.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_later_is_added_to_the_cause() {
        let mut failure = *StepFailure::of(FailureClass::CheckFailed);
        failure.said = Some(("first".to_owned(), PathBuf::new()));
        failure.join(*StepFailure::of_interrupt());
        failure.join(*StepFailure::of(FailureClass::CheckFailed));
        assert_eq!(failure.classes, ["check_failed", "step_interrupted"]);
        assert_eq!(failure.cut, Some(Cut::Interrupt));
        assert_eq!(failure.said.unwrap().0, "first");
    }
}
