//! The landing target on its way to a remote: by git itself, with the person's
//! own credentials, and never forced.

use super::Lane;
use super::command::{Occasion, Phase};
use super::progress::Progress;
use premath_kernel::failure::FailureClass;
use premath_memory::Claimed;

/// What pushes; names reach it as variables.
const PUSH: &str =
    r#"git push --porcelain -- "$PREMATH_PUSH_REMOTE" "$PREMATH_PUSH_REF:$PREMATH_PUSH_REF""#;

impl Lane {
    /// Pushes the target after a landing; a failure is named in the report and
    /// changes nothing, for the next push takes this work along.
    pub(super) fn push(&mut self, claimed: &Claimed, progress: &mut Progress) {
        let batch = self.batch.clone();
        let Some(remote) = &batch.landing.rule().push else {
            return;
        };
        let _alone = batch.landing.pushes();
        let step_id = progress.identity.step_id();
        let reference = format!("refs/heads/{}", batch.landing.target());
        let variables = [
            ("PREMATH_PUSH_REMOTE", remote.into()),
            ("PREMATH_PUSH_REF", reference.into()),
            // Nobody is there to be asked.
            ("GIT_TERMINAL_PROMPT", "0".into()),
        ];
        let occasion = Occasion {
            step_id: &step_id,
            issue_id: &claimed.claim.issue_id,
            generation: claimed.claim.generation,
            variables: &variables,
            task: None,
        };
        let pushed = self.run(Phase::Push, PUSH, &occasion, None, None);
        if !pushed.as_ref().is_ok_and(|ran| ran.passed()) {
            progress.fail(FailureClass::LandingPushFailed.as_str());
            let why = pushed.err().map(|error| error.to_string());
            tracing::warn!(%step_id, why, "the landing target was not pushed");
        }
    }
}
