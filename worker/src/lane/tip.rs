//! The last commit of a batch, verified once in a fresh checkout without the
//! build state that the verifications of steps began with: what passes only
//! with it is found here (`isolation.md` 4).

use super::Lane;
use super::boot::BootError;
use super::command::Phase;
use super::warm::failed;
use crate::cause::chain;
use crate::supervisor::confine::scratch;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::TipCheck;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::{artifact, clock};
use premath_worktree::checkout::Checkout;

impl Lane {
    /// Verifies the last commit without build state, where work landed whose
    /// verification began with it. On a common target the last lane does so.
    pub fn verify_tip(&mut self, is_last: bool) {
        let merges = self.batch.landing.merges();
        let is_due = match merges {
            true => is_last && self.batch.warmth.has_landed(),
            false => self.owes_tip,
        };
        if !is_due {
            return;
        }
        let check = self.check_tip();
        let now = clock::now().wall;
        let stamp = now.as_microsecond();
        let id = format!(
            "coordinator.{}.tip_verified.{}.{stamp}",
            self.batch.id(),
            self.worker_id
        );
        let result = if check.passed { "passed" } else { "failed" };
        let mut row = StepRow::new(id, action::TIP_VERIFIED, result, now);
        row.batch_id = Some(self.batch.id().to_owned());
        row.worker_id = Some(self.worker_id.clone());
        row.failure_classes.clone_from(&check.failure_classes);
        row.next_step = Some(check.to_string());
        row.started_at = Some(now.into());
        row.instruction_refs = self.batch.settings.mode.instruction_refs();
        if let Err(error) = self.batch.record(&row) {
            tracing::error!(%error, "the verification of the last commit was not recorded");
        }
        self.batch.reached(Boundary::TipRecorded);
        self.batch.warmth.note_tip(check);
    }

    fn check_tip(&mut self) -> TipCheck {
        let mut check = TipCheck {
            worker_id: self.worker_id.clone(),
            commit: String::new(),
            passed: true,
            failure_classes: Vec::new(),
            detail: None,
            output: None,
        };
        let ran = self.tip().and_then(|commit| {
            check.commit.clone_from(&commit);
            self.run_on_tip(&commit)
        });
        match ran {
            Ok(()) => {}
            Err(BootError::Command {
                classes, output, ..
            }) => {
                let cut = FailureClass::StepInterrupted.as_str();
                let is_cut = classes.iter().any(|class| class == cut);
                check.passed = false;
                check.failure_classes = classes;
                check.output = (!is_cut).then(|| output.to_string_lossy().into_owned());
            }
            Err(error) => {
                check.passed = false;
                check.failure_classes = vec![error.class().as_str().to_owned()];
                check.detail = Some(chain(&error));
            }
        }
        check
    }

    /// Returns the commit that the batch left.
    fn tip(&self) -> Result<String, BootError> {
        match self.batch.landing.merges() {
            true => Ok(self.batch.landing.tip()?),
            false => Ok(self.tree.base()?.commit),
        }
    }

    /// Runs the verify command on a commit, in a checkout that is recreated.
    fn run_on_tip(&mut self, commit: &str) -> Result<(), BootError> {
        self.site.warm = None;
        let state = &self.site.state;
        self.discard(&state.checkout)?;
        scratch::remove(&state.checkout_git).map_err(failed("remove", &state.checkout_git))?;
        artifact::remove(&state.checkout_setup)?;
        let repository = &self.batch.settings.roots.repository;
        self.site.checkout = Checkout::prepare(repository, &state.checkout, &state.checkout_git)?;
        self.put_checkout_at(commit)?;
        self.on_boot(Phase::VerifySetup, |lane, occasion| {
            lane.set_up(Phase::VerifySetup, occasion, None)
        })?;
        let command = self.batch.settings.hooks.verify.clone();
        self.on_boot(Phase::Tip, |lane, occasion| {
            let ran = lane.run(Phase::Tip, &command, occasion, None, None);
            ran.map(Some)
        })
    }
}
