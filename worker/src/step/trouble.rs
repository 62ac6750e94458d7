//! What went wrong in a step.

use super::error::{Setback, StepError};
use crate::lane::Lane;
use crate::lane::command::{CommandError, Cut};
use premath_kernel::failure::FailureClass;
use premath_memory::ChangeError;
use std::path::PathBuf;

/// What went wrong in a step, and what it means for its lane and its batch.
#[derive(Debug, Default)]
pub(super) struct Trouble {
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

impl Trouble {
    /// Makes the trouble of one class.
    pub(super) fn of(class: FailureClass) -> Box<Self> {
        let mut trouble = Box::<Self>::default();
        trouble.fail(class.as_str());
        trouble
    }

    /// Makes the trouble of a lease that cannot be relied on.
    pub(super) fn of_lease(class: FailureClass) -> Box<Self> {
        let mut trouble = Self::of(class);
        trouble.cut = Some(Cut::Lease(class));
        trouble
    }

    /// Makes the trouble of an interrupt.
    pub(super) fn of_interrupt() -> Box<Self> {
        let mut trouble = Self::of(FailureClass::StepInterrupted);
        trouble.cut = Some(Cut::Interrupt);
        trouble
    }

    /// Returns whether only the command failed, and neither the step was cut nor
    /// its lane lost.
    pub(super) fn is_of_the_command(&self) -> bool {
        matches!(self.cut, None | Some(Cut::Superseded))
            && self.lane_lost.is_none()
            && self.store_lost.is_none()
            && !self.is_stranded
    }

    /// Returns whether it is a verification's, which ran to its end and failed.
    /// One that was cut off or used up its resources is not repeated.
    pub(super) fn is_red(&self) -> bool {
        let red = [FailureClass::CheckFailed, FailureClass::LandingCheckFailed];
        let is_red = |class: &String| red.iter().any(|red| red.as_str() == class);
        self.cut.is_none() && self.is_of_the_command() && self.classes.iter().all(is_red)
    }

    /// Adds a class, once.
    pub(super) fn fail(&mut self, class: impl AsRef<str>) {
        let class = class.as_ref().to_owned();
        if !self.classes.contains(&class) {
            self.classes.push(class);
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
    pub(super) fn strand(&mut self, class: FailureClass, detail: String) {
        self.is_stranded = true;
        self.lane_lost = Some((class, detail));
    }
}

impl Lane {
    /// Adds a setback to what went wrong before. Starts another supervisor
    /// where the step's own was lost.
    pub(super) fn absorb(&mut self, trouble: &mut Trouble, setback: impl Into<Setback>) {
        let error = match setback.into() {
            Setback::Failed(later) => return trouble.join(*later),
            Setback::Error(error) => error,
        };
        trouble.fail(error.class().as_str());
        match &error {
            StepError::Change(ChangeError::Store(_)) => {
                trouble.store_lost = Some(error.to_string());
            }
            StepError::Command(CommandError::Supervisor(lost)) => {
                tracing::warn!(error = %lost, "supervisor lost");
                trouble.lane_lost = self.mend_supervisor(lost);
                trouble.is_stranded = trouble.lane_lost.is_some();
            }
            _ => {
                let folder = &self.batch.settings.roots.streams;
                trouble.said = Some((error.to_string(), folder.clone()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_later_is_added_to_the_cause() {
        let mut trouble = *Trouble::of(FailureClass::CheckFailed);
        trouble.said = Some(("first".to_owned(), PathBuf::new()));
        trouble.join(*Trouble::of_interrupt());
        trouble.join(*Trouble::of(FailureClass::CheckFailed));
        assert_eq!(trouble.classes, ["check_failed", "step_interrupted"]);
        assert_eq!(trouble.cut, Some(Cut::Interrupt));
        assert_eq!(trouble.said.unwrap().0, "first");
    }
}
