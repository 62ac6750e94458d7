//! The turn of an agent with hooks: what the policy binds, and what was
//! observed, by runs of the real agents.

#![expect(clippy::unwrap_used, reason = "a test fails at its line")]

mod case;

use case::{mode, own, step, verdict};
use premath_evidence::{
    Agent, AgentRound, AgentStream, AgentTurn, FoldedStream, HookJournal, ShellCall, TurnPolicies,
    agent_context, agent_turn,
};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::sandbox::SandboxMode;
use premath_kernel::policy::turn::{TurnPolicy, WorkSetup};
use premath_kernel::turn::word::RiskTier;
use premath_kernel::turn::{ExecutionPattern, JoinCheckInput};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The runs of one agent, and the policy that they are judged by.
struct Run {
    stream: FoldedStream,
    hooks: Option<HookJournal>,
    policies: TurnPolicies,
}

/// Makes the embedded policy with an edit.
fn policy(edit: impl Fn(&mut Value)) -> Arc<TurnPolicy> {
    let mut document: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    edit(&mut document);
    let digest = TurnPolicy::digest(document.to_string().as_bytes()).unwrap();
    document["policyDigest"] = digest.into();
    Arc::new(TurnPolicy::parse(document.to_string().as_bytes()).unwrap())
}

/// Denies the marked command.
fn no_denyme(document: &mut Value) {
    let rule = json!({"ruleId": "no_denyme", "tool": "shell", "arguments": ["*DENYME*"],
        "decision": "deny", "reason": "not here"});
    document["tools"].as_array_mut().unwrap().insert(0, rule);
}

impl Run {
    fn of(agent: Agent, hooks: bool, edit: impl Fn(&mut Value)) -> Self {
        let folder = format!("hooks/{}", agent.as_str());
        let files = ["stream.jsonl", "hooks.jsonl"].map(|name| file(&folder, name));
        Self::read(agent, files, hooks, edit)
    }

    fn read(
        agent: Agent,
        [lines, events]: [Vec<u8>; 2],
        hooks: bool,
        edit: impl Fn(&mut Value),
    ) -> Self {
        let turn = policy(edit);
        let mut stream = AgentStream::new(agent);
        stream.feed(&lines);
        let hooks = hooks.then(|| {
            let mut journal = HookJournal::new(agent, turn.clone(), "/scratch/work");
            for event in events.split(|byte| *byte == b'\n') {
                if !event.is_empty() {
                    journal.take(event);
                }
            }
            journal
        });
        Self {
            stream: stream.finish(),
            hooks,
            policies: TurnPolicies {
                turn: Some(turn),
                ..case::policies()
            },
        }
    }

    fn with<T>(&self, of: impl Fn(&AgentTurn<'_>) -> T) -> T {
        let round = AgentRound {
            phase: "work",
            stream: &self.stream,
            hooks: self.hooks.as_ref(),
        };
        of(&AgentTurn {
            step: &step(),
            policies: &self.policies,
            rounds: &[round],
            calls: &[own("work"), own("verify")],
        })
    }

    fn input(&self) -> JoinCheckInput {
        self.with(agent_turn)
    }

    fn classes(&self) -> BTreeSet<FailureClass> {
        verdict(&self.input()).err().unwrap_or_default()
    }
}

#[expect(clippy::disallowed_methods, reason = "samples are files")]
fn file(folder: &str, name: &str) -> Vec<u8> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    fs::read(tests.join(folder).join(name)).unwrap()
}

/// Runs in which each agent started a sub-agent.
fn with_subagents(agent: Agent, hooks: bool, edit: impl Fn(&mut Value)) -> Run {
    match agent {
        Agent::Codex => {
            let names = ["codex-task.jsonl", "codex-task.hooks.jsonl"];
            let files = names.map(|name| file("recorded/codex/hooked", name));
            Run::read(agent, files, hooks, edit)
        }
        _ => Run::of(agent, hooks, edit),
    }
}

#[test]
fn a_turn_with_hooks_is_bound_to_the_policy_and_may_close() {
    assert!(!mode().policy_digest().is_empty());
    for agent in Agent::ALL.iter().copied() {
        let run = Run::of(agent, true, no_denyme);
        assert_eq!(run.classes(), BTreeSet::new(), "{}", agent.as_str());
        let input = run.input();
        let spec = canonical(&input.evidence.call_spec);
        for field in [
            "toolChoice",
            "toolPolicy",
            "parallelPolicy",
            "toolTransportPolicy",
            "guardrailStagePolicyDigest",
            "observabilityMode",
        ] {
            assert!(spec.get(field).is_some(), "{}: {field}", agent.as_str());
        }
        let guardrails = &input.evidence.facts.guardrails;
        let triggered = guardrails.iter().filter(|row| row.triggered);
        let triggered: Vec<&str> = triggered.map(|row| &*row.guardrail_id).collect();
        assert_eq!(triggered, ["no_denyme"], "{}", agent.as_str());
    }
}

fn canonical(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn sub_agents_and_calls_side_by_side_are_the_pattern() {
    for agent in Agent::ALL.iter().copied() {
        let input = with_subagents(agent, true, no_denyme).input();
        let pattern = &input.evidence.call_spec.execution_pattern;
        let name = agent.as_str();
        assert_eq!(*pattern, ExecutionPattern::OrchestratorWorkers, "{name}");
        let branches = &input.evidence.facts.branches;
        assert!(branches.iter().all(|branch| branch.join_closed), "{name}");
        assert_eq!(branches.len(), 1, "{name}");
        // Only Claude Code reports what its sub-agents do.
        let has_join = branches[0].join_set_digest.is_some();
        assert_eq!(has_join, agent == Agent::Claude, "{name}");
    }
}

#[test]
fn a_policy_without_sub_agents_or_open_calls_refuses_a_turn_that_had_them() {
    let class = FailureClass::CoordinationDecompositionPolicyViolation;
    // Without hooks nothing denied them. What Codex starts is seen by hooks alone.
    for agent in [Agent::Claude, Agent::Gemini, Agent::OpenCode] {
        let run = with_subagents(agent, false, |policy| {
            policy["calls"]["subagents"] = json!(false);
        });
        assert!(run.classes().contains(&class), "{}", agent.as_str());
    }
    let overlaps = Run::of(Agent::Claude, false, |policy| {
        policy["calls"]["maxOpen"] = json!(1);
    });
    let order = FailureClass::ProtocolParallelTransportOrderInvalid;
    assert!(overlaps.classes().contains(&order));
}

#[test]
fn a_tool_that_the_policy_never_allows_refuses_a_turn_that_used_it() {
    let deny = |document: &mut Value| {
        let rule = json!({"ruleId": "no_shell", "tool": "shell", "decision": "deny",
            "reason": "no shell"});
        document["tools"].as_array_mut().unwrap().insert(0, rule);
    };
    for agent in Agent::ALL.iter().copied() {
        let classes = Run::of(agent, false, deny).classes();
        let class = FailureClass::ToolUnknownOrDisallowed;
        assert!(classes.contains(&class), "{}: {classes:?}", agent.as_str());
    }
}

#[test]
fn a_turn_whose_hooks_decided_nothing_lacks_its_guardrails() {
    for agent in Agent::ALL.iter().copied() {
        let mut run = Run::of(agent, true, no_denyme);
        let turn = run.policies.turn.clone().unwrap();
        run.hooks = Some(HookJournal::new(agent, turn, "/scratch/work"));
        let class = FailureClass::GovernanceGuardrailStageMissing;
        assert!(run.classes().contains(&class), "{}", agent.as_str());
    }
}

#[test]
fn every_context_row_has_its_content_and_a_denial_is_what_the_model_received() {
    for agent in Agent::ALL.iter().copied() {
        let run = Run::of(agent, true, no_denyme);
        let context = run.with(agent_context);
        let input = run.input();
        assert_eq!(context.unproven(&input.evidence), Vec::<String>::new());
        let told = &context.queues["queue/denials"];
        assert_eq!(
            *told,
            json!([{"ruleId": "no_denyme", "reason": "not here"}])
        );
        // Where hooks have ids, and the stream the call that was denied.
        let has_ids = matches!(agent, Agent::Claude | Agent::OpenCode);
        let reminders = context.reminders.len();
        assert_eq!(reminders, usize::from(has_ids), "{}", agent.as_str());
    }
}

#[test]
fn a_text_of_the_operator_is_in_the_context_of_the_turn() {
    let text = "keep the old parser";
    let digest = premath_kernel::json::canonical::digest(&json!(text));
    for agent in Agent::ALL.iter().copied() {
        let mut run = Run::of(agent, false, no_denyme);
        let turn = run.policies.turn.clone().unwrap();
        let mut journal = HookJournal::new(agent, turn, "/scratch/work");
        let mut waiting = Some(text.to_owned());
        let events = file(&format!("hooks/{}", agent.as_str()), "hooks.jsonl");
        for event in events.split(|byte| *byte == b'\n') {
            if !event.is_empty() {
                journal.take_telling(event, || waiting.take());
            }
        }
        assert_eq!(waiting, None, "{}", agent.as_str());
        run.hooks = Some(journal);
        let context = run.with(agent_context);
        assert_eq!(context.queues["queue/operator"], json!([digest]));
        let told = json!({"operatorTextDigest": digest});
        let calls = context.reminders.iter();
        let calls: Vec<&String> = calls
            .filter(|row| *row.1 == told)
            .map(|row| row.0)
            .collect();
        // Where hooks have ids.
        let has_ids = matches!(agent, Agent::Claude | Agent::OpenCode);
        assert_eq!(calls.len(), usize::from(has_ids), "{}", agent.as_str());
        let evidence = run.input().evidence;
        for call in calls {
            let mut renders = evidence.tool_render.iter();
            assert!(renders.any(|row| row.tool_call_id == *call), "{call}");
        }
        assert_eq!(context.unproven(&evidence), Vec::<String>::new());
    }
}

/// Denies sub-agents the shell.
fn no_shell_of_subagents(document: &mut Value) {
    let rule = json!({"ruleId": "no_sub_shell", "tool": "shell", "callers": ["subagent"],
        "decision": "deny", "reason": "leave commands to the agent"});
    document["tools"].as_array_mut().unwrap().insert(0, rule);
}

#[test]
fn a_rule_about_callers_binds_who_may_call_a_tool() {
    // Only Claude Code reports what its sub-agents do.
    let run = Run::of(Agent::Claude, false, no_shell_of_subagents);
    let class = FailureClass::ToolCallerNotAllowed;
    assert!(run.classes().contains(&class), "{:?}", run.classes());
    let input = run.input();
    assert!(input.evidence.call_spec.allowed_callers_digest.is_some());
    // Its hooks deny the same calls before they run.
    let hooked = Run::of(Agent::Claude, true, no_shell_of_subagents);
    let verdicts = canonical(&hooked.with(agent_context).queues["queue/denials"]);
    assert_eq!(verdicts[0]["ruleId"], "no_sub_shell", "{verdicts}");
    let allowed = Run::of(Agent::Claude, false, |document| {
        no_shell_of_subagents(document);
        document["tools"][0]["callers"] = json!(["agent", "subagent"]);
        document["tools"][0]["arguments"] = json!(["*nothing runs this*"]);
    });
    assert!(!allowed.classes().contains(&class));
}

#[test]
fn a_deferred_tool_is_called_only_after_its_search() {
    let deferred = |tools: Value| {
        Run::of(Agent::Claude, false, move |document| {
            document["setup"] = json!({"deferredTools": tools.clone()});
        })
    };
    assert_eq!(deferred(json!(["NotebookEdit"])).classes(), BTreeSet::new());
    let classes = deferred(json!(["Bash"])).classes();
    assert!(classes.contains(&FailureClass::ToolDiscoveryUnresolved));
}

#[test]
fn a_result_that_is_larger_than_the_policy_says_refuses_the_turn() {
    for agent in Agent::ALL.iter().copied() {
        let run = Run::of(agent, false, |document| {
            document["output"] = json!({"maxResultBytes": 1, "marker": "cut"});
        });
        let class = FailureClass::ToolResponseTruncationPolicyViolation;
        assert!(run.classes().contains(&class), "{}", agent.as_str());
    }
}

#[test]
fn every_field_of_a_call_spec_has_a_source() {
    let run = Run::of(Agent::Claude, true, |document| {
        no_denyme(document);
        no_shell_of_subagents(document);
        document["tools"][0]["arguments"] = json!(["*nothing runs this*"]);
        document["stop"]["handledStopReasons"] = json!(["end_turn"]);
        document["roles"] = json!({"orchestrator": {
            "writable": ["src/"], "handoff": {"targets": ["reviewer"]}}});
        document["setup"] = json!({"deferredTools": ["NotebookEdit"],
            "toolExamples": {"Bash": ["ls"]}, "preContextFilter": "allowed",
            "evalProfileRef": "profile://a", "evalGatePolicyDigest": "sha256:a",
            "redTeamPolicyDigest": "sha256:b"});
        document["output"] = json!({"maxResultBytes": 1_000_000, "marker": "cut"});
        document["risk"] = json!({"otherwise": "low", "controls": {"low": {}}});
    });
    let mut policies = run.policies.clone();
    let risk = policies
        .turn
        .as_ref()
        .and_then(|policy| policy.risk().cloned());
    let setup = WorkSetup {
        adapter: "claude",
        confinement: SandboxMode::None,
        hooks: true,
    };
    policies.demand.tier = Some(RiskTier::Low);
    policies.demand.profiles = risk.unwrap().profiles(&setup);
    let run = Run { policies, ..run };
    assert_eq!(run.classes(), BTreeSet::new());
    let spec = canonical(&run.with(confined).evidence.call_spec);
    let bound: BTreeSet<&str> = spec
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let fields: BTreeSet<&str> = FIELDS.iter().copied().collect();
    let unbound: Vec<_> = fields.difference(&bound).collect();
    assert_eq!(unbound, [&""; 0]);
}

/// Makes the turn of commands that were confined.
fn confined(turn: &AgentTurn<'_>) -> JoinCheckInput {
    let calls = turn.calls.iter().map(|call| ShellCall {
        sandbox_ref: Some("sandbox1_a".to_owned()),
        ..call.clone()
    });
    let calls: Vec<ShellCall> = calls.collect();
    agent_turn(&AgentTurn {
        calls: &calls,
        ..turn.clone()
    })
}

/// The fields of `TOOL-CALLING-HARNESS-TYPESTATE 4.1`.
const FIELDS: [&str; 35] = [
    "callId",
    "modelRef",
    "actionMode",
    "executionPattern",
    "toolChoice",
    "toolPolicy",
    "toolCatalogDigest",
    "deferPolicyDigest",
    "toolExampleDigest",
    "allowedCallersDigest",
    "preContextFilterPolicy",
    "evalProfileRef",
    "parallelPolicy",
    "toolTransportPolicy",
    "toolResponseTruncationPolicy",
    "toolRenderProtocolDigest",
    "executionBoundaryPolicy",
    "runtimeSandboxRef",
    "compactionPolicyDigest",
    "reminderQueuePolicyDigest",
    "stateViewPolicyDigest",
    "decompositionPolicyDigest",
    "governancePolicyDigest",
    "guardrailStagePolicyDigest",
    "evalGatePolicyDigest",
    "redTeamPolicyDigest",
    "observabilityMode",
    "riskTier",
    "orchestrationRole",
    "contextScopeDigest",
    "handoffContractDigest",
    "mutationPolicyDigest",
    "normalizerId",
    "stopPolicy",
    "protocolStatePolicy",
];
