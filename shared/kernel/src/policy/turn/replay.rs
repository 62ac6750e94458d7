//! What a policy would have decided about calls of earlier turns.

use super::artifact::TurnPolicy;
use super::call::AgentCall;
use super::limits::CallCounts;
use super::verdict::decide;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A call of an earlier turn, as a hook announced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The call.
    pub call: AgentCall,
    /// Whether it was denied.
    pub was_denied: bool,
}

/// What a policy decides about recorded calls, where that is not what was
/// decided. Limits of a turn are left out: they depend on the calls before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// How many calls were judged again.
    pub calls: u64,
    /// How many could not be, because the record does not hold all of them.
    pub unread: u64,
    /// How many calls that ran would be denied, by the rule.
    pub newly_denied: BTreeMap<String, u64>,
    /// How many calls that were denied would run, by the rule.
    pub newly_allowed: BTreeMap<String, u64>,
}

impl Replay {
    /// Judges one more call; `None` is one whose record is not whole.
    pub fn add(&mut self, policy: &TurnPolicy, recorded: Option<&RecordedCall>) {
        let Some(recorded) = recorded else {
            self.unread += 1;
            return;
        };
        self.calls += 1;
        let verdict = decide(policy, &recorded.call, &CallCounts::default());
        let changed = match (recorded.was_denied, verdict.is_denial()) {
            (false, true) => &mut self.newly_denied,
            (true, false) => &mut self.newly_allowed,
            _ => return,
        };
        *changed.entry(verdict.rule_id).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::tool::ToolClass;
    use super::*;

    #[test]
    fn a_replay_counts_what_is_decided_otherwise() {
        let policy = TurnPolicy::embedded().unwrap();
        let shell = |command: &str, was_denied| RecordedCall {
            call: AgentCall {
                command: Some(command.to_owned()),
                ..AgentCall::of(ToolClass::Shell, "Bash")
            },
            was_denied,
        };
        let mut replay = Replay::default();
        for (command, was_denied) in [
            ("git push", false),
            ("git push", true),
            ("ls", true),
            ("ls", false),
        ] {
            replay.add(&policy, Some(&shell(command, was_denied)));
        }
        replay.add(&policy, None);
        assert_eq!((replay.calls, replay.unread), (4, 1));
        assert_eq!(
            replay.newly_denied,
            BTreeMap::from([("no_push".to_owned(), 1)])
        );
        assert_eq!(replay.newly_allowed.values().sum::<u64>(), 1);
    }
}
