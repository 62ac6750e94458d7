//! Calls of earlier turns, read from the journals of their hooks.

use super::journal::{LISTED, SHOWN};
use crate::adapter::hook::{HookKind, policy_name};
use premath_kernel::policy::turn::{AgentCall, CallPath, Caller, RecordedCall, ToolClass};
use serde::Deserialize;

/// A folder that no path of a journal is below: those of the worktree are
/// relative to it already.
const WORKTREE: &str = "/\u{0}";

/// A line of a journal, as far as a replay needs it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    kind: String,
    caller: Option<String>,
    tool: Option<String>,
    tool_class: Option<ToolClass>,
    command: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
    #[serde(default)]
    hosts: Vec<String>,
    verdict: Option<Verdict>,
}

#[derive(Deserialize)]
struct Verdict {
    decision: String,
}

/// Reads a line of a journal; `None` where it decides about no call. The inner
/// value is none where the line does not hold the whole call.
pub fn recorded_call(line: &[u8]) -> Option<Option<RecordedCall>> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let verdict = line
        .verdict
        .filter(|_| line.kind == HookKind::Before.as_str())?;
    let (tool, class) = (line.tool?, line.tool_class?);
    let is_cut = |text: &String| text.len() + 4 > SHOWN;
    let was_cut = line.command.as_ref().is_some_and(is_cut)
        || line.paths.iter().chain(&line.hosts).any(is_cut)
        || line.paths.len().max(line.hosts.len()) >= LISTED;
    if was_cut {
        return Some(None);
    }
    let paths = line.paths.iter();
    let call = AgentCall {
        command: line.command,
        paths: paths
            .map(|path| CallPath::of(path, WORKTREE, WORKTREE))
            .collect(),
        hosts: line.hosts,
        caller: match line.caller {
            Some(_) => Caller::Subagent,
            None => Caller::Agent,
        },
        ..AgentCall::of(class, &policy_name(class, &tool))
    };
    Some(Some(RecordedCall {
        call,
        was_denied: verdict.decision == "deny",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(line: serde_json::Value) -> Option<Option<RecordedCall>> {
        recorded_call(line.to_string().as_bytes())
    }

    #[test]
    fn a_call_is_read_as_it_was_judged() {
        let line = json!({"sequence": 2, "kind": "before", "tool": "mcp__a__b", "toolClass": "mcp",
            "paths": ["src/a.rs", "/etc/passwd"],
            "verdict": {"decision": "deny", "ruleId": "r", "reason": "no"}});
        let recorded = read(line).unwrap().unwrap();
        assert!(recorded.was_denied);
        assert_eq!(recorded.call.tool, "a/b");
        let paths: Vec<_> = recorded.call.paths.iter().map(CallPath::as_str).collect();
        assert_eq!(paths, ["src/a.rs", "/etc/passwd"]);
    }

    #[test]
    fn a_line_without_a_decision_is_left_out_and_a_cut_one_is_not_judged() {
        assert_eq!(read(json!({"kind": "after", "tool": "Bash"})), None);
        assert_eq!(recorded_call(b"garbage"), None);
        let line = json!({"kind": "before", "tool": "Bash", "toolClass": "shell",
            "command": "x".repeat(SHOWN),
            "verdict": {"decision": "allow", "ruleId": "r", "reason": ""}});
        assert_eq!(read(line), Some(None));
    }
}
