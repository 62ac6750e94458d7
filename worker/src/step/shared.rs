//! Work that is verified as one with work behind it: it has no verification of
//! its own, and rests on the one that passed with it.

use super::attempt::Attempt;
use super::error::StageError;
use super::log::StepLog;
use super::queued::QueuedWork;
use crate::batch::SharedPass;
use crate::lane::Lane;
use crate::witness;
use premath_evidence::ShellCall;
use premath_kernel::policy::landing::SHARED_ROUND;
use premath_kernel::record::trajectory::{SharedVerification, Verification};
use premath_kernel::record::witness::{SharedFacts, SharedWitness};
use premath_worktree::tree::TreeState;

impl Lane {
    /// Returns a step's verification that passed, for work that rides on it.
    pub(super) fn shared_pass(&self, log: &StepLog, state: &TreeState) -> Option<SharedPass> {
        if self.batch.landing.rule().batch() == 1 {
            return None;
        }
        let witness = log.verified.latest_witness()?;
        let mut calls = log.calls.iter();
        let call = calls.rfind(|call| call.witness_ref == witness)?;
        Some(SharedPass {
            step_id: log.step_id(),
            state: state.clone(),
            call: call.clone(),
        })
    }

    /// Rests a step on the verification that passed with its work, and writes the
    /// witness of that. Returns what was verified; `None` where it is superseded
    /// by now.
    pub(super) fn rest_on_shared(
        &self,
        attempt: &mut Attempt<'_>,
        queued: &QueuedWork<'_>,
        own: &TreeState,
    ) -> Result<Option<TreeState>, StageError> {
        let Some(pass) = queued.place.shared_pass() else {
            return Ok(None);
        };
        let claim = attempt.claim();
        let log = &mut attempt.log;
        let step_id = log.step_id();
        let document = SharedWitness::from(SharedFacts {
            step_id: step_id.clone(),
            issue_id: claim.issue_id.clone(),
            generation: claim.generation,
            verified_step_id: pass.step_id,
            verified_witness_ref: pass.call.witness_ref.clone(),
            verified: witness::tree(&pass.state),
            own_tree: own.tree.clone(),
        });
        let folder = &self.batch.settings.roots.witnesses;
        let written = witness::write(folder, &step_id, SHARED_ROUND, &document)?;
        log.witnesses.insert(&written.reference);
        log.verified.passed_in = SHARED_ROUND;
        log.verified.latest = Some(Verification {
            class: "passed".to_owned(),
            witness_ref: Some(written.reference.clone()),
        });
        log.verified.shared = Some(SharedVerification {
            tree: pass.state.tree.clone(),
            witness_ref: pass.call.witness_ref.clone(),
        });
        log.calls.push(ShellCall {
            phase: SHARED_ROUND,
            witness_ref: written.reference,
            ..pass.call
        });
        Ok(Some(pass.state))
    }
}
