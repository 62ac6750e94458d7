//! The last commit of a batch, verified once in a fresh checkout without the
//! build state that the verifications of steps began with: what passes only
//! with it is found here (`isolation.md` 4).

use super::Lane;
use super::boot::BootError;
use super::command::Phase;
use super::warm::failed;
use crate::supervisor::confine::scratch;
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::TipCheck;
use premath_kernel::record::trajectory::{StepRow, action};
use premath_memory::cause::chain;
use premath_memory::roots::lane_name;
use premath_memory::{Owed, StoreError, TipDebt, artifact, clock};

impl Lane {
    /// Names the debt of the branch that work of this lane gets to.
    fn tip_debt(&self) -> TipDebt {
        let repository = &self.batch.settings.roots.repository;
        match self.batch.landing.merges() {
            true => TipDebt::of(repository, self.batch.landing.target()),
            false => TipDebt::of(repository, &lane_name(&self.worktree)),
        }
    }

    /// Takes over what an earlier batch owed.
    pub(crate) fn take_up_tip(&mut self) -> Result<(), StoreError> {
        if self.tip_debt().owed()?.is_some() {
            self.owe_tip();
        }
        Ok(())
    }

    /// Has the last commit verified without build state at the end.
    pub(crate) fn owe_tip(&mut self) {
        self.owes_tip = true;
        self.batch.warmth.note_landed();
    }

    /// Says on the disk that the last commit is to be verified without build
    /// state.
    pub(crate) fn record_tip_debt(&self) -> Result<(), StoreError> {
        self.tip_debt().owe()
    }

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
        let debt = self.tip_debt();
        // Looked at before the commit is: what lands later is owed again.
        let owed = debt.owed();
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
        let recorded = self.batch.record(&row);
        self.batch.reached(Boundary::TipRecorded);
        match recorded {
            Ok(()) if check.is_answered() => clear(&debt, owed),
            Ok(()) => {}
            Err(error) => {
                tracing::error!(%error, "the verification of the last commit was not recorded");
            }
        }
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
            Err(BootError::Command(failed)) => {
                check.passed = false;
                let output = failed.output.as_ref().filter(|_| !failed.is_interrupted());
                check.output = output.map(|path| path.to_string_lossy().into_owned());
                check.failure_classes = failed.classes;
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
        self.site.make_checkout()?;
        self.put_checkout_at(commit)?;
        self.on_boot(Phase::VerifySetup, |lane, owner| {
            lane.set_up(Phase::VerifySetup, owner, None)
        })?;
        let command = self.batch.settings.hooks.verify.clone();
        self.on_boot(Phase::Tip, |lane, owner| {
            let ran = lane.run(Phase::Tip, &command, owner, None, None);
            ran.map(Some)
        })
    }
}

fn clear(debt: &TipDebt, owed: Result<Option<Owed>, StoreError>) {
    let cleared = owed.and_then(|owed| match owed {
        Some(owed) => debt.clear(&owed),
        None => Ok(()),
    });
    if let Err(error) = cleared {
        tracing::warn!(%error, "the next batch verifies the last commit again");
    }
}
