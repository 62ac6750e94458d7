//! The times of a turn's calls, read from the journal of its hooks.

use crate::adapter::hook::HookKind;
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::turn::ToolClass;
use premath_kernel::record::timed_call::TimedCall;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A line of a journal, as far as times need it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    kind: String,
    at: Option<String>,
    call: Option<u64>,
    caller: Option<String>,
    call_id: Option<String>,
    tool: Option<String>,
    tool_class: Option<ToolClass>,
    verdict: Option<Verdict>,
    fault: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Verdict {
    decision: String,
    rule_id: String,
}

/// The calls of one round, by the lines of its journal. A line without a time, as
/// earlier versions wrote them, counts for nothing.
#[derive(Debug)]
pub struct TimedCalls {
    round: u32,
    calls: BTreeMap<u64, TimedCall>,
}

impl TimedCalls {
    /// Begins with no call of a round.
    pub const fn of_round(round: u32) -> Self {
        Self {
            round,
            calls: BTreeMap::new(),
        }
    }

    /// Takes the next line.
    pub fn take(&mut self, line: &[u8]) {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        let at = line.at.as_deref().and_then(Stamp::parse);
        let (Some(at), Some(number)) = (at, line.call) else {
            return;
        };
        if line.kind == HookKind::Before.as_str() {
            self.begin(number, at, line);
            return;
        }
        let Some(call) = self.calls.get_mut(&number) else {
            return;
        };
        // An end of a denied call, a second one and one of another input are faults
        // of the channel. What was denied did not run.
        if call.denied_by.is_none() && call.ended.is_none() && line.fault.is_none() {
            call.has_failed = line.kind == HookKind::Failed.as_str();
            call.ended = Some(at);
        }
    }

    fn begin(&mut self, number: u64, at: Stamp, line: Line) {
        let (Some(tool), Some(class)) = (line.tool, line.tool_class) else {
            return;
        };
        let denied = line.verdict.filter(|verdict| verdict.decision == "deny");
        let call = TimedCall {
            round: self.round,
            number,
            tool,
            class,
            id: line.call_id,
            is_of_subagent: line.caller.is_some(),
            denied_by: denied.map(|verdict| verdict.rule_id),
            began: at,
            ended: None,
            has_failed: false,
        };
        self.calls.entry(number).or_insert(call);
    }

    /// Returns the calls, in the order in which they were announced.
    pub fn into_calls(self) -> impl Iterator<Item = TimedCall> {
        self.calls.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Agent;
    use crate::hook::HookJournal;
    use premath_kernel::policy::turn::TurnPolicy;
    use serde_json::json;
    use std::sync::Arc;

    /// The lines of a journal, whose events come a second apart.
    fn lines(events: &[(&str, &str, &str)]) -> Vec<Vec<u8>> {
        let policy = Arc::new(TurnPolicy::embedded().unwrap());
        let mut journal = HookJournal::new(Agent::Claude, policy, "/lane");
        let lines = (0..).zip(events).map(|(second, (kind, id, command))| {
            let event = json!({
                "session_id": "s", "hook_event_name": kind, "tool_name": "Bash",
                "tool_use_id": id, "tool_input": {"command": command}, "cwd": "/lane",
                "tool_response": {"stdout": ""},
            });
            let (mut row, _) = journal.take(event.to_string().as_bytes());
            row.at = Stamp::parse(&format!("2026-03-05T10:00:{second:02}.000000Z"));
            serde_json::to_vec(&row).unwrap()
        });
        lines.collect()
    }

    fn read(lines: &[Vec<u8>]) -> Vec<TimedCall> {
        let mut calls = TimedCalls::of_round(2);
        lines.iter().for_each(|line| calls.take(line));
        calls.into_calls().collect()
    }

    #[test]
    fn a_call_has_the_times_at_which_its_events_were_taken() {
        let calls = read(&lines(&[
            ("PreToolUse", "a", "ls"),
            ("PreToolUse", "b", "git push"),
            ("PreToolUse", "c", "true"),
            ("PostToolUse", "a", "ls"),
            ("PostToolUseFailure", "c", "true"),
            ("PreToolUse", "d", "id"),
        ]));
        let times = calls.iter().map(|call| {
            let second = |stamp: &Stamp| stamp.as_str()[17..19].parse::<u8>().unwrap();
            let denied = call.denied_by.as_deref();
            let ended = call.ended.as_ref().map(second);
            (call.number, second(&call.began), ended, denied)
        });
        let times: Vec<_> = times.collect();
        let expected = [
            (1, 0, Some(3), None),
            (2, 1, None, Some("no_push")),
            (3, 2, Some(4), None),
            (4, 5, None, None),
        ];
        assert_eq!(times, expected);
        assert!(calls[2].has_failed && !calls[0].has_failed);
        assert!(
            calls
                .iter()
                .all(|call| call.round == 2 && call.tool == "Bash")
        );
    }

    #[test]
    fn a_line_without_a_time_and_what_is_no_line_count_for_nothing() {
        let mut all = lines(&[("PreToolUse", "a", "ls")]);
        let text = String::from_utf8(all.remove(0)).unwrap();
        let old = text.replace("\"at\":\"2026-03-05T10:00:00.000000Z\",", "");
        assert_ne!(old, text);
        assert_eq!(read(&[old.into_bytes(), b"garbage".to_vec()]), []);
        let end = json!({"kind": "after", "at": "2026-03-05T10:00:00Z", "call": 7});
        assert_eq!(read(&[end.to_string().into_bytes()]), []);
    }
}
