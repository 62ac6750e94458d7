//! A lane whose supervisor was lost.

use super::Lane;
use crate::supervisor::SupervisorError;
use premath_kernel::failure::FailureClass;

impl Lane {
    /// Starts another supervisor where nothing of the lost one's command is
    /// left; says why the lane cannot continue otherwise.
    pub(crate) fn replace_supervisor(
        &mut self,
        lost: &SupervisorError,
    ) -> Option<(FailureClass, String)> {
        let why = |detail: String| Some((FailureClass::SupervisorLost, detail));
        if let SupervisorError::Lost { survivors, .. } = lost
            && *survivors > 0
        {
            return why(format!("cannot kill {survivors} process(es) of the step"));
        }
        if !self.supervisor.is_lost() {
            return why(lost.to_string());
        }
        let restarted = match self.lock.share() {
            Ok(lock) => self
                .supervisor
                .restart(lock)
                .map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        restarted.err().and_then(why)
    }
}
