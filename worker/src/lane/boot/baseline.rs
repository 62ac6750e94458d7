//! Whether the verification passes without any work: asked where one issue
//! after the other fails it.

use super::super::Lane;
use super::BootError;
use premath_kernel::failure::FailureClass;

impl Lane {
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
            Err(BootError::Command { classes, .. }) => {
                let cut = FailureClass::StepInterrupted.as_str();
                Ok(classes.iter().any(|class| class == cut))
            }
            Err(error) => Err(error),
        }
    }
}
