//! How much is at stake in a step's issue, and whether the batch has what work
//! on it needs.

use super::attempt::Attempt;
use super::error::StageError;
use super::step_failure::StepFailure;
use crate::lane::Lane;
use crate::settings::Work;
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::turn::WorkSetup;

impl Lane {
    /// Notes the risk tier of the issue, and refuses work that lacks what the
    /// tier needs before any of it is done.
    pub(super) fn weigh_risk(
        &mut self,
        attempt: &mut Attempt<'_>,
        work: &Work,
    ) -> Result<(), StageError> {
        let batch = self.batch.clone();
        let settings = &batch.settings;
        let Some(risk) = settings.turn.risk() else {
            return Ok(());
        };
        let issue = &attempt.claimed.row.issue;
        let labels = issue.labels.iter().map(|label| &**label);
        let tier = risk.tier_of(labels, &issue.issue_type);
        let hooked = |agent| settings.hooked(agent, &work.command);
        let setup = WorkSetup {
            adapter: work.adapter.as_str(),
            confinement: settings.sandbox.choice.mode,
            hooks: work.adapter.agent().is_some_and(hooked),
        };
        let demand = &mut attempt.log.demand;
        demand.tier = Some(tier);
        demand.profiles = risk.profiles(&setup);
        let Some(control) = risk.unmet(tier, &setup) else {
            return Ok(());
        };
        let tier = tier.as_str();
        let mut failure = StepFailure::of(FailureClass::GovernanceRiskTierProfileMissing);
        let said = format!(
            "the issue is of the risk tier `{tier}`, and this batch does not meet \
             risk.controls.{tier}.{control} of the turn policy"
        );
        failure.said = Some((said, settings.roots.streams.clone()));
        Err(self.refused(&mut attempt.log, failure))
    }
}
