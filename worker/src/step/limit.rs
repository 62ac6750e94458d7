//! The limit of a step's provider, as the error output of its work names it.

use super::log::StepLog;
use crate::lane::Lane;
use crate::lane::command::{Phase, Ran};
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::provider::{LimitLines, UsageLimit};
use premath_memory::artifact;

impl Lane {
    /// Records a work command whose error output says that its provider's limit
    /// is reached, if such lines are trusted; an agent's own stream is read
    /// elsewhere.
    pub(super) fn note_limit(&self, log: &mut StepLog, ran: &Ran, phase: Phase) {
        let class = FailureClass::UsageLimit.as_str();
        let believed = self.batch.settings.bounds.providers.limit_lines == LimitLines::Park;
        if !phase.is_work()
            || !believed
            || log.account.limit.is_some()
            || !ran.classes.iter().any(|c| c == class)
        {
            return;
        }
        let folder = &self.batch.settings.roots.streams;
        let step_id = log.step_id();
        let stderr = witness::file(folder, &step_id, phase.name(), "stderr");
        let said = artifact::read(&stderr).ok().flatten().unwrap_or_default();
        log.account.limit = Some(UsageLimit::named_in(&said).unwrap_or_default());
    }
}
