//! Whether the verification passes without any work: asked before the first
//! step, and where one issue after the other fails it.

use super::super::Lane;
use super::BootError;
use crate::batch::BaseVerdict;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Status;

/// Returns whether a command was interrupted, which shows nothing about the base.
fn is_interrupted(classes: &[String]) -> bool {
    let cut = FailureClass::StepInterrupted.as_str();
    classes.iter().any(|class| class == cut)
}

/// Returns what a boot makes of what another lane found out.
fn answer(verdict: &BaseVerdict) -> Result<(), BootError> {
    match verdict {
        BaseVerdict::Passed => Ok(()),
        BaseVerdict::Failed {
            phase,
            classes,
            output,
            absent,
        } => Err(BootError::Command {
            phase,
            classes: classes.clone(),
            output: output.clone(),
            absent: absent.clone(),
        }),
    }
}

impl Lane {
    /// Runs the startup verification: the startup command in each lane or, where
    /// there is none, the verify command on the base, once for the lanes that
    /// begin there. A base that work landed on in this batch was verified as it
    /// landed.
    pub(super) fn verify_at_startup(&mut self) -> Result<(), BootError> {
        let batch = self.batch.clone();
        if let Some(command) = &batch.settings.hooks.startup {
            return self.startup(command);
        }
        if !batch.settings.verify_base || !self.has_work()? {
            return Ok(());
        }
        let base = self.tree.base()?.commit;
        let mut known = batch.bases.lock();
        if let Some(verdict) = known.of(&base, batch.landing.is_on()) {
            return answer(verdict);
        }
        let ran = self.verify_base(&batch.settings.hooks.verify);
        let verdict = match &ran {
            Ok(()) => Some(BaseVerdict::Passed),
            Err(BootError::Command {
                phase,
                classes,
                output,
                absent,
            }) if !is_interrupted(classes) => Some(BaseVerdict::Failed {
                phase,
                classes: classes.clone(),
                output: output.clone(),
                absent: absent.clone(),
            }),
            Err(_) => None,
        };
        known.note(base, verdict);
        ran
    }

    /// Runs the verify command on the base, as often as a verification is
    /// repeated.
    fn verify_base(&mut self, command: &str) -> Result<(), BootError> {
        let mut ran = self.startup(command);
        for _ in 0..self.batch.settings.flaky_reruns {
            match &ran {
                Err(BootError::Command { classes, .. }) if !is_interrupted(classes) => {}
                _ => break,
            }
            ran = self.startup(command);
        }
        ran
    }

    /// Returns whether there is an issue that the batch may work on.
    fn has_work(&self) -> Result<bool, BootError> {
        let selection = &self.batch.settings.selection;
        let is_work = self.batch.memory.view(|view| {
            let mut rows = view.rows();
            rows.any(|row| {
                matches!(row.issue.status, Status::Open | Status::InProgress)
                    && selection.admits(&row.issue)
            })
        })?;
        Ok(is_work)
    }

    /// Runs the startup verification, or the verification where there is none,
    /// where the next step would begin; an interrupt is not an answer, and
    /// reads as passed.
    ///
    /// # Errors
    ///
    /// [`BootError`] where the lane cannot continue.
    pub fn baseline(&mut self) -> Result<bool, BootError> {
        self.roots.secure()?;
        self.refuse_dirty()?;
        self.to_the_target()?;
        let hooks = &self.batch.settings.hooks;
        let command = hooks.startup.as_ref().unwrap_or(&hooks.verify).clone();
        match self.startup(&command) {
            Ok(()) => Ok(true),
            Err(BootError::Command { classes, .. }) => Ok(is_interrupted(&classes)),
            Err(error) => Err(error),
        }
    }
}
