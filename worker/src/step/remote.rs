//! A step whose issue asks to be worked on in another repository of this
//! machine (HARNESS-RUNTIME 1.2, 3.2).

use super::attempt::Attempt;
use super::error::StageError;
use super::log::StepLog;
use super::step_failure::StepFailure;
use crate::lane::Lane;
use crate::settings::Adapter;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::session::StepWorld;
use premath_kernel::record::trajectory::{CrossingResult, WorldRecord};
use premath_kernel::record::world::{DestinationGate, WorldSelection, may_be_placed};
use premath_memory::world::LocalWorld;
use premath_worktree::tree::Base;
use std::path::PathBuf;

/// What a step knows about the other world that it works in.
#[derive(Debug)]
pub(super) struct RemoteStep {
    pub(super) record: WorldRecord,
    pub(super) mapped_context: Option<String>,
    /// The worktree there, once there is one.
    worktree: Option<PathBuf>,
}

impl RemoteStep {
    /// Returns what the session reports about it.
    pub(super) fn step_world(&self) -> Option<StepWorld> {
        let worktree = self.worktree.as_ref()?;
        Some(StepWorld {
            name: self.record.name.clone(),
            worktree: worktree.to_string_lossy().into_owned(),
        })
    }
}

impl StepLog {
    /// Records the result of a crossing.
    pub(super) fn crossed(&mut self, result: CrossingResult, mapped_context: Option<String>) {
        if let Some(remote) = &mut self.remote {
            remote.record.crossing = Some(result);
            remote.mapped_context = mapped_context;
        }
    }

    /// Records where the work of a step in another world is, now that it is
    /// over; `commit` where its issue is closed.
    pub(super) fn settle_remote(&mut self, base: Option<&Base>, commit: Option<String>) {
        let branch = base.and_then(|base| base.branch.as_deref());
        let branch = branch.map(|name| name.trim_start_matches("refs/heads/").to_owned());
        if let Some(remote) = &mut self.remote {
            remote.record.branch = branch.filter(|_| commit.is_some());
            remote.record.commit = commit;
        }
    }
}

impl Lane {
    /// Goes where the issue asks to be worked on. Where that cannot be reached,
    /// the step fails with the transport's classes, and nothing was run.
    pub(super) fn enter_requested_world(
        &mut self,
        attempt: &mut Attempt<'_>,
    ) -> Result<(), StageError> {
        let labels = attempt
            .claimed
            .row
            .issue
            .labels
            .iter()
            .map(|label| &**label);
        let (name, found) = match WorldSelection::of(labels) {
            WorldSelection::Here => return Ok(()),
            WorldSelection::There(name) => (name.to_owned(), self.world_named(name)),
            WorldSelection::Unclear { asked, detail } => (asked, Err(detail)),
        };
        let mut remote = RemoteStep {
            record: WorldRecord::named(&*name),
            mapped_context: None,
            worktree: None,
        };
        let batch = self.batch.clone();
        let from = &batch.own_world;
        let found = match (from, found) {
            (Ok(_), Ok(to)) if self.will_be_refused(&attempt.log, &to) => Ok(to),
            (Ok(from), Ok(to)) if self.may_be_placed(&attempt.log, from, &to) => {
                match self.enter_world(&name, &to.roots.repository) {
                    Ok(()) => {
                        remote.worktree = Some(self.worktree.clone());
                        attempt.log.remote = Some(remote);
                        return Ok(());
                    }
                    Err(detail) => Err(detail),
                }
            }
            (_, found) => found,
        };
        attempt.log.remote = Some(remote);
        self.not_placed(attempt, from, &found)?;
        Err(Box::<StepFailure>::default().into())
    }

    /// Returns whether the gate there refuses the step's turn whatever its calls
    /// will be: nothing is run then, and the gate is asked at once. What a file of
    /// evidence will say about the turn is not known yet.
    fn will_be_refused(&self, log: &StepLog, to: &LocalWorld) -> bool {
        let Ok(from) = &self.batch.own_world else {
            return false;
        };
        let provider = log.account.provider.as_deref().unwrap_or_default();
        let work = self.batch.settings.work.with(provider);
        let Some(adapter) = work.map(|work| work.adapter) else {
            return false;
        };
        let mut turn = self.turn(log).0;
        turn.evidence.call_spec.normalizer_id = adapter.normalizer().to_owned();
        let gate = DestinationGate {
            world: &to.profile,
            policy: &to.policy,
        };
        let mut foreseen = gate.foreseen(&turn, from.policy.policy_digest());
        if adapter == Adapter::EvidenceFile {
            foreseen.remove(&FailureClass::GovernanceRiskTierProfileMissing);
        }
        !foreseen.is_empty()
    }

    fn may_be_placed(&self, log: &StepLog, from: &LocalWorld, to: &LocalWorld) -> bool {
        let lineage = self.lineage(&log.identity.issue_id);
        let policy = from.policy.policy_digest();
        may_be_placed(&lineage, &from.profile, &to.profile, policy)
    }
}
