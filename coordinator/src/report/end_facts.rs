//! What a person must know of a batch beside how its issues and its lanes ended: for
//! the run log, where `premath report` finds it.

use super::SetAside;
use super::next::word;
use harness_worker::batch::EndFacts;
use premath_kernel::failure::FailureClass;
use premath_kernel::record::event::PushFailure;

/// A commit that did not pass its check and could not be taken off its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenTarget {
    /// The branch.
    pub target: String,
    /// The commit.
    pub commit: String,
}

impl BrokenTarget {
    /// Says it in a sentence.
    pub(super) fn text(&self) -> String {
        let (target, commit) = (&self.target, self.abbreviated());
        format!("{target} still contains {commit}, which did not pass its check")
    }

    /// Returns the command that takes it off.
    pub(super) fn revert(&self) -> String {
        let (target, commit) = (word(&self.target), word(self.abbreviated()));
        // A batch refuses a target that is checked out. `git switch -` does not go back to
        // a detached HEAD.
        format!("git switch {target} && git revert {commit} && git checkout -")
    }

    fn abbreviated(&self) -> &str {
        self.commit.get(..10).unwrap_or(&self.commit)
    }
}

/// Returns what the run log has of it.
pub(crate) fn end_facts(
    broken: Option<&BrokenTarget>,
    push: Option<&PushFailure>,
    set_aside: &SetAside,
) -> EndFacts {
    let mut facts = EndFacts::default();
    if let Some(broken) = broken {
        facts.classes.push(FailureClass::LandingNotTakenBack);
        let (text, revert) = (broken.text(), broken.revert());
        facts
            .texts
            .push(format!("{text}; before the next batch: {revert}"));
    }
    if let Some(failure) = push {
        facts.classes.push(FailureClass::LandingPushFailed);
        facts.texts.push(failure.to_string());
    }
    facts.texts.extend(set_aside.text());
    facts
}
