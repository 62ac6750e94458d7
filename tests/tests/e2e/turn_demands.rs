//! What the turn policy demands of a turn beside its calls: risk tiers, roles,
//! stop reasons, summaries of the context, and the operator's statements.

use premath_kernel::policy::turn::{POLICY_PLACE, TurnPolicy};
use premath_tests::{Scratch, issue, workspace};
use serde_json::{Value, json};
use std::fs;

/// Writes a turn policy that differs from the default one.
pub(super) fn govern(scratch: &Scratch, edit: impl FnOnce(&mut Value)) {
    let mut policy: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    edit(&mut policy);
    let digest = TurnPolicy::digest(policy.to_string().as_bytes()).unwrap();
    policy["policyDigest"] = digest.into();
    let file = scratch.root.join(POLICY_PLACE);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, policy.to_string()).unwrap();
}

/// Returns the input that the gate judged of an issue's first step.
fn judged(scratch: &Scratch, id: &str) -> Value {
    let steps = scratch.steps_of(id);
    let step_id = steps[0]["stepId"].as_str().unwrap();
    let name = format!(
        "artifacts/ciwitness/{}.turn.json",
        step_id.replace('/', ".")
    );
    let file = scratch.root.join(&name);
    let file = fs::read(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
    let witness: Value = serde_json::from_slice(&file).unwrap();
    witness["input"].clone()
}

#[track_caller]
fn refused(scratch: &Scratch, id: &str, class: &str) {
    assert_ne!(scratch.issue(id)["status"], "closed");
    let step = &scratch.steps_of(id)[0];
    let classes = step["failureClasses"].as_array().unwrap();
    assert!(classes.contains(&json!(class)), "{step:#}");
}

const WORK: &str = "echo run >> \"$HOME/ran-$PREMATH_ISSUE_ID\"; mkdir -p src; \
                    echo x > src/$PREMATH_ISSUE_ID.txt";

#[test]
fn an_issue_whose_tier_needs_more_than_the_batch_has_is_not_worked_on() {
    let mut hot = issue("hot");
    hot["labels"] = json!(["security"]);
    let scratch = Scratch::with_issues(1, &[hot, issue("cool")]);
    govern(&scratch, |policy| {
        policy["risk"] = json!({
            "rules": [{"tier": "high", "labels": ["security"]}],
            "otherwise": "low",
            "controls": {"low": {}, "high": {"hooks": true}},
        });
    });
    let ended = scratch.landing_batch(WORK, "true").end().exits(1);
    refused(&scratch, "hot", "governance.risk_tier_profile_missing");
    assert!(!scratch.home().join("ran-hot").exists(), "it was worked on");
    let said = "risk.controls.high.hooks";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    assert_eq!(
        judged(&scratch, "hot")["evidence"]["callSpec"]["riskTier"],
        "high"
    );

    assert_eq!(scratch.issue("cool")["status"], "closed");
    let input = judged(&scratch, "cool");
    assert_eq!(input["evidence"]["callSpec"]["riskTier"], "low");
    let profiles = &input["riskConstraints"]["controlProfiles"];
    assert!(profiles["low"].is_string(), "{profiles}");
    assert!(profiles["high"].is_null(), "{profiles}");
}

#[test]
fn a_part_that_would_not_hold_is_an_error_of_the_policy() {
    for (part, content, said) in [
        (
            "risk",
            json!({"otherwise": "low", "controls": {}}),
            "`risk.controls` of the turn policy has no `low`",
        ),
        (
            "risk",
            json!({"otherwise": "low", "controls": {"low": {"confinement": ["namespace"]}}}),
            "`risk.controls.low.confinement[0]` must be one of",
        ),
        (
            "roles",
            json!({"specialist": {"writable": ["src/"], "handoff": {"targets": []}}}),
            "`roles.specialist.handoff.targets` of the turn policy is empty",
        ),
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| policy[part] = content.clone());
        let run = scratch.landing_batch(WORK, "true");
        run.end().exits(2).says(said);
    }
}

#[test]
fn a_role_changes_only_what_it_may() {
    let scratch = Scratch::with_issues(1, &[issue("in"), issue("out")]);
    govern(&scratch, |policy| {
        policy["roles"] = json!({"specialist": {"writable": ["src/"]}});
    });
    let work = format!("{WORK}; [ $PREMATH_ISSUE_ID = in ] || echo x > other.txt");
    scratch.landing_batch(&work, "true").end().exits(1);
    refused(&scratch, "out", "context.scope_violation");
    assert_eq!(scratch.issue("in")["status"], "closed");
    let input = judged(&scratch, "in");
    let spec = &input["evidence"]["callSpec"];
    assert_eq!(spec["orchestrationRole"], "specialist");
    assert!(spec["contextScopeDigest"].is_string(), "{spec}");
    let accesses = &input["evidence"]["facts"]["scopeAccesses"];
    assert_eq!(*accesses, json!([{"ref": "src/in.txt", "access": "write"}]));
}

/// An agent that plays Claude Code, and summarises its context.
fn summarising() -> String {
    let program = env!("CARGO_BIN_EXE_premath-scripted-agent");
    let event = json!({"type": "system", "subtype": "compact_boundary", "session_id": "s",
        "uuid": "u", "compact_metadata": {"trigger": "auto", "pre_tokens": 150_000}});
    format!("{program} claude < \"$PREMATH_PROMPT_FILE\" | sed '1a {event}'")
}

#[test]
fn an_agent_may_summarise_its_context_only_where_the_policy_allows_it() {
    for allowed in [true, false] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            policy["compaction"] = json!({"allowed": allowed});
        });
        let batch = scratch.landing_batch(&summarising(), "true");
        let ended = batch.args(["--adapter", "claude"]).end();
        match allowed {
            true => assert_eq!(scratch.issue("a")["status"], "closed", "{}", ended.stderr),
            false => refused(&scratch, "a", "runtime.compaction_state_invalid"),
        }
        let input = judged(&scratch, "a");
        let compaction = &input["evidence"]["facts"]["compaction"];
        assert!(compaction["viewDigest"].is_string(), "{input:#}");
        let bound = &input["evidence"]["callSpec"]["compactionPolicyDigest"];
        assert_eq!(bound.is_string(), allowed);
    }
}

#[test]
fn a_turn_closes_only_after_a_stop_reason_that_the_policy_handles() {
    for (reasons, closes) in [(json!(["end_turn"]), true), (json!(["tool_use"]), false)] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            policy["stop"]["handledStopReasons"] = reasons.clone();
        });
        scratch.landing_batch(WORK, "true").end();
        match closes {
            true => assert_eq!(scratch.issue("a")["status"], "closed"),
            false => refused(&scratch, "a", "protocol.stop_reason_unhandled"),
        }
    }
}

#[test]
fn a_sub_agent_calls_only_what_the_policy_lets_it() {
    for (tool, closes) in [("shell", false), ("web_fetch", true)] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        govern(&scratch, |policy| {
            let rule = json!({"ruleId": "not_by_others", "tool": tool, "callers": ["subagent"],
                "decision": "deny", "reason": "leave it to the agent"});
            policy["tools"].as_array_mut().unwrap().insert(0, rule);
        });
        // A run of Claude Code in which a sub-agent ran commands.
        let recorded = "shared/evidence/tests/hooks/claude/stream.jsonl";
        let stream = scratch.home().join("stream.jsonl");
        fs::copy(workspace().join(recorded), &stream).unwrap();
        let work = format!("{WORK}; cat \"$HOME/stream.jsonl\"");
        let batch = scratch.landing_batch(&work, "true");
        let ended = batch.args(["--adapter", "claude"]).end();
        match closes {
            true => assert_eq!(scratch.issue("a")["status"], "closed", "{}", ended.stdout),
            false => refused(&scratch, "a", "tool.caller_not_allowed"),
        }
    }
}
