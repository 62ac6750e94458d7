//! What a step's agent may not: continue against its provider's limit, or use
//! more than its issue may.

use super::Lane;
use super::command::{Phase, Ran};
use super::progress::Progress;
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::provider::{LimitLines, UsageLimit};
use premath_memory::{artifact, clock};
use std::time::Duration;

impl Lane {
    /// Records a work command whose error output says that its provider's limit
    /// is reached, if such lines are trusted; an agent's own stream is read
    /// elsewhere.
    pub(super) fn note_limit(&self, progress: &mut Progress, ran: &Ran, phase: Phase) {
        let class = FailureClass::UsageLimit.as_str();
        let believed = self.batch.settings.bounds.providers.limit_lines == LimitLines::Park;
        if phase != Phase::Work
            || !believed
            || progress.limit.is_some()
            || !ran.classes.iter().any(|c| c == class)
        {
            return;
        }
        let folder = &self.batch.settings.roots.streams;
        let step_id = progress.identity.step_id();
        let stderr = witness::file(folder, &step_id, phase.name(), "stderr");
        let said = artifact::read(&stderr).ok().flatten().unwrap_or_default();
        progress.limit = Some(UsageLimit::named_in(&said).unwrap_or_default());
    }

    /// Looks whether the issue's budget is used up, over its attempts in this
    /// batch: that decides what happens to it.
    pub(super) fn note_used_up(&self, progress: &mut Progress) {
        if progress.closed || progress.cut.is_some() || progress.limit.is_some() {
            return;
        }
        let budget = self.batch.settings.bounds.issue;
        let before = self.batch.used_by(&progress.identity.issue_id);
        let ran = clock::now().boot_ms.saturating_sub(progress.started_ms);
        let spent = before.spent.plus(progress.spent);
        let time = before.time.saturating_add(Duration::from_millis(ran));
        if budget.is_used_up(spent, time) {
            let class = FailureClass::BudgetExceeded.as_str();
            progress.classes.retain(|known| known != class);
            progress.classes.insert(0, class.to_owned());
            progress.used_up = Some(budget.told(spent, time));
        }
    }
}
