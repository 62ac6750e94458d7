//! The landing target on its way to a remote: by git itself, with the person's
//! own credentials, and never forced.

use super::Lane;
use super::command::{CommandError, CommandOwner, Phase, Ran};
use crate::settings::trusted_path;
use crate::witness;
use premath_kernel::json::id::{IssueId, StepId};
use premath_kernel::record::boundary::Boundary;
use premath_kernel::record::event::PushFailure;
use premath_memory::cause::chain;
use premath_memory::{artifact, clock};
use premath_worktree::landing::LastPush;
use std::time::Duration;

/// How long git has, where it is killed, to remove its locks: here, and at a remote
/// on this machine. No later push could succeed with one of them there. git takes
/// milliseconds for it; the next batch waits three seconds for the lane's lock.
pub(super) const RELEASE: Duration = Duration::from_millis(500);

/// What pushes; names reach it as variables. It runs in the main worktree: a
/// remote's relative URL counts from there, and the git folder of a lane is not
/// opened.
const PUSH: &str = r#"git -C "$PREMATH_PUSH_FROM" push --porcelain -- "$PREMATH_PUSH_REMOTE" "$PREMATH_PUSH_COMMIT:$PREMATH_PUSH_REF""#;

impl Lane {
    /// Pushes the target for a batch that was cut: it may have landed work that
    /// it did not push any more.
    pub(crate) fn push_owed(&mut self) {
        if self.batch.owes_push() {
            let stamp = clock::now().wall.as_microsecond();
            let step_id = StepId::from(format!("{}.boot.{stamp}", self.worker_id));
            self.push_target(&step_id, &IssueId::default(), 0);
        }
    }

    /// Pushes the target where that is configured and owed; returns whether nothing
    /// failed. A failure is in the report: the next push takes this work along.
    ///
    /// While another lane pushes, this one does not wait: a remote that does not answer
    /// holds one lane. The other lane pushes again after that.
    pub(crate) fn push_target(
        &mut self,
        step_id: &StepId,
        issue_id: &IssueId,
        generation: u64,
    ) -> bool {
        let batch = self.batch.clone();
        let remote = batch.landing.rule().push.as_ref();
        let Some(remote) = remote.filter(|_| batch.landing.merges()) else {
            return true;
        };
        let mut has_passed = true;
        // What a lane owes after the last look at it finds the lock free. It is pushed
        // also after a push that failed: that lane may have been the last one.
        while batch.owes_push() {
            let Some(mut last) = batch.landing.try_pushes() else {
                break;
            };
            if batch.take_owed_push() {
                let owner = (step_id, issue_id, generation);
                has_passed = self.push_once(remote, &mut last, owner);
            }
        }
        has_passed
    }

    /// Pushes the target once; returns whether the remote has it.
    fn push_once(
        &mut self,
        remote: &str,
        last: &mut LastPush,
        owner: (&StepId, &IssueId, u64),
    ) -> bool {
        let batch = self.batch.clone();
        // The tip after the right to push: another lane must not push a later one
        // in between.
        let commit = batch.settled_tip().map_err(|error| chain(&error));
        if commit
            .as_ref()
            .ok()
            .is_some_and(|tip| last.commit.as_ref() == Some(tip))
        {
            // An earlier push took it along.
            return true;
        }
        let pushed = commit.as_ref().map_err(Clone::clone).and_then(|commit| {
            let pushed = self.push(remote, commit, owner);
            pushed.map_err(|error| error.to_string())
        });
        let has_passed = pushed.as_ref().is_ok_and(Ran::passed);
        batch.reached(Boundary::TargetPushed);
        last.commit = commit.ok().filter(|_| has_passed);
        last.failure = (!has_passed).then(|| {
            let step_id = owner.0;
            let why = match pushed {
                Ok(_) => self.rejection(step_id),
                Err(why) => why,
            };
            tracing::warn!(%step_id, why, "the landing target was not pushed");
            PushFailure {
                target: batch.landing.target().to_owned(),
                remote: remote.to_owned(),
                reason: why,
            }
        });
        let commit = last.commit.as_deref().unwrap_or_default();
        batch.note_push(remote, commit, last.failure.as_ref());
        has_passed
    }

    fn push(
        &mut self,
        remote: &str,
        commit: &str,
        (step_id, issue_id, generation): (&StepId, &IssueId, u64),
    ) -> Result<Ran, CommandError> {
        let batch = self.batch.clone();
        let reference = format!("refs/heads/{}", batch.landing.target());
        let variables = [
            (
                "PREMATH_PUSH_FROM",
                batch.settings.roots.repository.clone().into(),
            ),
            ("PREMATH_PUSH_REMOTE", remote.into()),
            ("PREMATH_PUSH_COMMIT", commit.into()),
            ("PREMATH_PUSH_REF", reference.into()),
            // It runs unconfined, and so does what it starts.
            ("PATH", trusted_path(&batch.settings.roots.repository)),
            // No user is present to answer.
            ("GIT_TERMINAL_PROMPT", "0".into()),
        ];
        let owner = CommandOwner {
            step_id,
            issue_id,
            generation,
            variables: &variables,
            task: None,
        };
        self.run(Phase::Push, PUSH, &owner, None, None)
    }

    /// Returns what git reported about a push that failed.
    fn rejection(&self, step_id: &StepId) -> String {
        let streams = &self.batch.settings.roots.streams;
        let [out, err] = ["stdout", "stderr"].map(|stream| {
            let path = witness::file(streams, step_id, Phase::Push.name(), stream);
            let bytes = artifact::read(&path).ok().flatten().unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        });
        reason(&out, &err)
    }
}

/// Returns why git did not push: its `fatal:` lines, else its last line that is
/// not advice, and the outcome of the branch.
fn reason(stdout: &str, stderr: &str) -> String {
    let is_said = |line: &&str| !line.is_empty() && !line.starts_with("hint:");
    let fatal: Vec<&str> = stderr
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("fatal:"))
        .collect();
    let fatal = fatal.join("; ");
    let last = stderr.lines().map(str::trim).rfind(is_said);
    let said = Some(&*fatal).filter(|fatal| !fatal.is_empty()).or(last);
    let refused = stdout
        .lines()
        .find_map(|line| line.strip_prefix("!\t")?.rsplit('\t').next());
    let parts: Vec<&str> = said.into_iter().chain(refused).collect();
    if parts.is_empty() {
        return "git printed nothing".to_owned();
    }
    parts.join(": ").chars().take(500).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_what_git_says_without_its_advice() {
        let out = "To r\n!\trefs/heads/t:refs/heads/t\t[rejected] (fetch first)\nDone\n";
        let err = "error: failed to push some refs to 'r'\nhint: Updates were rejected\n\n";
        for (out, err, expected) in [
            (
                out,
                err,
                "error: failed to push some refs to 'r': [rejected] (fetch first)",
            ),
            (
                "",
                "fatal: a\nfatal: b\n\nPlease make sure you have the correct access rights\n",
                "fatal: a; fatal: b",
            ),
            ("", "", "git printed nothing"),
        ] {
            assert_eq!(reason(out, err), expected);
        }
    }
}
