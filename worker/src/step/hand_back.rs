//! What happens to the issue of a step that is being stopped: it is released,
//! escalated, or left as memory shows it.

use super::report::StepEnding;
use super::stopped::Stopping;
use crate::lane::Lane;
use crate::lane::command::Cut;
use crate::settings::HostActionTransport;
use premath_kernel::authority::transport::{self, DispatchRequest, TransportAction, Transported};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::handoff::{Handoff, NextAction, Settlement, StepEnd};
use premath_kernel::issue::lease::LeaseState;
use premath_kernel::json::reference;
use premath_kernel::policy::retry::{self, Decision, RetryOutcome, retry_at};
use premath_kernel::record::boundary::Boundary;
use premath_memory::dispatch::dispatch;
use premath_memory::escalation::CarriedOut;
use premath_memory::{ChangeError, clock};

/// The end of an issue's attempt.
#[derive(Debug)]
pub(super) struct IssueEnd {
    pub(super) ending: StepEnding,
    pub(super) result_class: String,
    /// What follows, after what was done with the issue.
    pub(super) next: NextAction,
    /// What the policy decided, where it was asked.
    pub(super) decision: Option<Decision>,
}

impl Lane {
    /// Does with the issue what memory's state and the policy say.
    pub(super) fn end_issue(
        &self,
        stopping: &mut Stopping<'_>,
        handoff: &Handoff,
        attempt: u32,
    ) -> IssueEnd {
        let mut end = IssueEnd {
            ending: StepEnding::Closed,
            result_class: handoff.result.as_str().to_owned(),
            next: handoff.action,
            decision: None,
        };
        if stopping.is_closed {
            return end;
        }
        self.note_used_up(stopping);
        end.ending = self.hand_back(stopping, handoff, attempt, &mut end.decision);
        let after = self.settled(stopping, handoff, &end.ending);
        end.next = after.action;
        let without_host = FailureClass::HostActionMcpTransportRequired.as_str();
        let is_refused = stopping
            .failure
            .classes
            .iter()
            .any(|class| class == without_host);
        end.result_class = match self.is_without_host() && is_refused {
            true => without_host.to_owned(),
            false => after.result.as_str().to_owned(),
        };
        if let Some(transported) = stopping.transported {
            end.result_class = transported.ends(&end.result_class);
        }
        end
    }

    /// Returns the handoff after what was done. Where a release was refused, the
    /// lease is not the step's any more: memory says whose it is.
    fn settled(&self, stopping: &Stopping<'_>, found: &Handoff, ending: &StepEnding) -> Handoff {
        let done = match ending {
            StepEnding::Retry { .. } | StepEnding::UsageLimit => Settlement::Retried,
            StepEnding::Blocked => Settlement::Blocked,
            StepEnding::Discovered { .. } | StepEnding::Stopped => Settlement::Released,
            StepEnding::Interrupted | StepEnding::Cancelled => Settlement::Interrupted,
            StepEnding::Closed | StepEnding::NotBegun | StepEnding::LeaseLost => {
                Settlement::AsFound
            }
        };
        if stopping.transported != Some(Transported::Rejected) {
            return found.after(done);
        }
        let claim = &stopping.claimed.claim;
        let now = self.batch.handoff(claim, StepEnd::Failed, &self.worker_id);
        now.map_or(*found, |(handoff, _)| handoff)
    }

    /// Returns whether no lease action can be transported.
    pub(super) fn is_without_host(&self) -> bool {
        self.batch.settings.transport == HostActionTransport::LocalRepl
    }

    fn hand_back(
        &self,
        stopping: &mut Stopping<'_>,
        handoff: &Handoff,
        attempt: u32,
        decision: &mut Option<Decision>,
    ) -> StepEnding {
        let ours =
            handoff.action == NextAction::RenewLease || handoff.state == LeaseState::Contended;
        if !ours || stopping.failure.store_lost.is_some() {
            // The issue was released during the step: the policy's decision
            // still applies, or the batch would retry it forever.
            if handoff.state == LeaseState::Unleased && stopping.log.account.limit.is_none() {
                *decision = Some(self.decide(stopping));
            }
            return StepEnding::LeaseLost;
        }
        if self.is_without_host() {
            let class = FailureClass::HostActionMcpTransportRequired;
            stopping.failure.fail(class.as_str());
            return StepEnding::LeaseLost;
        }
        if stopping.failure.cut == Some(Cut::Interrupt) {
            return self.released(stopping, None, StepEnding::Interrupted);
        }
        if stopping.failure.cut == Some(Cut::Cancelled) {
            return self.released(stopping, None, StepEnding::Cancelled);
        }
        // The provider is parked for it, not the issue.
        if stopping.log.account.limit.is_some() {
            stopping.failure.fail(FailureClass::UsageLimit.as_str());
            return self.released(stopping, None, StepEnding::UsageLimit);
        }
        let decided = self.decide(stopping);
        let ending = self.apply(stopping, &decided, attempt);
        *decision = Some(decided);
        ending
    }

    fn decide(&self, stopping: &Stopping<'_>) -> Decision {
        let earlier = self
            .batch
            .earlier_failures(&stopping.claimed.claim.issue_id);
        let policy = &self.batch.settings.retry;
        retry::decide_next(policy, &stopping.failure.classes, earlier)
    }

    /// Carries the policy's decision out.
    fn apply(&self, stopping: &mut Stopping<'_>, decided: &Decision, attempt: u32) -> StepEnding {
        match decided.outcome {
            RetryOutcome::Retry => {
                let step_id = stopping.log.step_id();
                let backoff = &self.batch.settings.backoff;
                let wait = backoff.wait_of(&decided.backoff_class, attempt, &step_id);
                let at = retry_at(clock::now().wall, wait);
                let waits = (!wait.is_zero()).then_some(at);
                self.released(stopping, Some(at), StepEnding::Retry { at: waits })
            }
            RetryOutcome::Escalate(escalation) => {
                match self.escalate(stopping, decided, escalation) {
                    Ok(CarriedOut::Blocked) => StepEnding::Blocked,
                    Ok(CarriedOut::Discovered(follow_up)) => {
                        self.released(stopping, None, StepEnding::Discovered { follow_up })
                    }
                    Ok(CarriedOut::Nothing) | Err(()) => {
                        self.released(stopping, None, StepEnding::Stopped)
                    }
                }
            }
        }
    }

    /// Releases the lease; returns the ending, or that the lease was lost.
    fn released(
        &self,
        stopping: &mut Stopping<'_>,
        at: Option<jiff::Timestamp>,
        ending: StepEnding,
    ) -> StepEnding {
        match self.release(stopping, at) {
            Ok(()) => ending,
            Err(()) => StepEnding::LeaseLost,
        }
    }

    /// Releases the lease, until a time where the policy waits.
    pub(super) fn release(
        &self,
        stopping: &mut Stopping<'_>,
        at: Option<jiff::Timestamp>,
    ) -> Result<(), ()> {
        let claim = &stopping.claimed.claim;
        let action = TransportAction::IssueLeaseRelease;
        let request = DispatchRequest::Release {
            issue_id: claim.issue_id.clone(),
            key: claim.key(),
            retry_at: at,
        };
        let authority = self.batch.lease_authority();
        let released = dispatch(&self.batch.memory, &authority, request);
        self.batch.reached(Boundary::LeaseReleased);
        let witness = reference::transport_dispatch(action.as_str(), &transport::digest_of(action));
        stopping.log.witnesses.insert(witness);
        let (transported, answer) = match released {
            Ok(_) => (Transported::Dispatched, Ok(())),
            Err(error) => {
                stopping.failure.fail(error.class().as_str());
                if let ChangeError::Store(error) = error {
                    stopping.failure.store_lost = Some(error.to_string());
                    (Transported::Error, Err(()))
                } else {
                    (Transported::Rejected, Err(()))
                }
            }
        };
        stopping.transported = Some(transported);
        answer
    }

    /// Looks whether the issue's budget is used up, over its attempts in this
    /// batch: that decides what happens to it.
    fn note_used_up(&self, stopping: &mut Stopping<'_>) {
        if stopping.failure.cut.is_some() || stopping.log.account.limit.is_some() {
            return;
        }
        let budget = self.batch.settings.bounds.issue;
        let before = self.batch.used_by(&stopping.log.identity.issue_id);
        let spent = before.spent.plus(stopping.log.account.spent);
        let own = stopping.log.own_time(clock::now());
        let time = before.time.saturating_add(own);
        if budget.is_used_up(spent, time) {
            let class = FailureClass::BudgetExceeded.as_str();
            let classes = &mut stopping.failure.classes;
            classes.retain(|known| known != class);
            classes.insert(0, class.to_owned());
            stopping.used_up = Some(budget.describe(spent, time));
        }
    }
}
