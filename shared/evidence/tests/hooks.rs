//! The two channels of an agent: runs of the real agents agree, and a fault that
//! is planted in either refuses the turn.
//!
//! The runs are in `tests/hooks/<agent>`: a shell command, an edit, a read, a
//! denied command, one that fails, two at once, two of the same, an unknown
//! tool, a sub-agent, and an end that is put off once.

#![expect(clippy::unwrap_used, reason = "a test fails at its line")]

use premath_evidence::{Agent, AgentStream, HookJournal, reconcile};
use premath_kernel::policy::turn::TurnPolicy;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// The runs of one agent, line by line.
#[derive(Clone)]
struct Run {
    agent: Agent,
    hooks: Vec<String>,
    stream: Vec<String>,
}

impl Run {
    #[expect(clippy::disallowed_methods, reason = "samples are files")]
    fn of(agent: Agent) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hooks");
        let lines = |name: &str| {
            let path = folder.join(agent.as_str()).join(name);
            let text = fs::read_to_string(path).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        Self {
            agent,
            hooks: lines("hooks.jsonl"),
            stream: lines("stream.jsonl"),
        }
    }

    /// The classes of both channels.
    fn classes(&self) -> BTreeSet<&'static str> {
        let mut journal = HookJournal::new(self.agent, policy(), "/scratch/work");
        for event in &self.hooks {
            journal.take(event.as_bytes());
        }
        let mut stream = AgentStream::new(self.agent);
        for line in &self.stream {
            stream.feed(line.as_bytes());
            stream.feed(b"\n");
        }
        let stream = stream.finish();
        let hooks = reconcile(&stream, &journal);
        let of_stream = stream.classes();
        let hooks = hooks.iter().map(|fault| fault.class);
        of_stream
            .into_iter()
            .chain(hooks)
            .map(|class| class.as_str())
            .collect()
    }

    /// The places of the events of a kind that have a text.
    fn places(&self, kind: &[&str], having: &str) -> Vec<usize> {
        let is_kind = |line: &str| {
            let event: Value = serde_json::from_str(line).unwrap();
            let name = event.get("hook_event_name").or(event.get("kind"));
            kind.contains(&name.and_then(Value::as_str).unwrap_or_default())
        };
        let lines = self.hooks.iter().enumerate();
        let found = lines.filter(|(_, line)| is_kind(line) && line.contains(having));
        found.map(|(place, _)| place).collect()
    }

    fn before(&self, having: &str) -> usize {
        let kinds = ["PreToolUse", "BeforeTool", "before"];
        self.places(&kinds, having)[0]
    }

    fn after(&self, having: &str) -> usize {
        let kinds = ["PostToolUse", "AfterTool", "after"];
        self.places(&kinds, having)[0]
    }

    /// Drops the lines of the stream that have a text.
    fn without(mut self, having: &[&str]) -> Self {
        self.stream
            .retain(|line| !having.iter().any(|text| line.contains(text)));
        self
    }
}

/// The embedded policy, with one more rule.
fn policy() -> Arc<TurnPolicy> {
    let mut document: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rule = json!({"ruleId": "no_denyme", "tool": "shell", "arguments": ["*DENYME*"],
        "decision": "deny", "reason": "policy no-denyme: this command is not allowed here"});
    document["tools"].as_array_mut().unwrap().insert(0, rule);
    let digest = TurnPolicy::digest(document.to_string().as_bytes()).unwrap();
    document["policyDigest"] = digest.into();
    Arc::new(TurnPolicy::parse(document.to_string().as_bytes()).unwrap())
}

#[test]
fn the_channels_of_real_runs_agree() {
    for agent in Agent::ALL {
        let none = BTreeSet::new();
        assert_eq!(Run::of(*agent).classes(), none, "{}", agent.as_str());
    }
}

#[test]
fn the_denied_call_is_answered_in_the_words_of_the_agent() {
    for agent in Agent::ALL {
        let run = Run::of(*agent);
        let mut journal = HookJournal::new(*agent, policy(), "/scratch/work");
        let answers: Vec<String> = run
            .hooks
            .iter()
            .map(|event| journal.take(event.as_bytes()).1)
            .filter(|answer| !answer.is_empty())
            .collect();
        let reason = "policy no-denyme: this command is not allowed here";
        let expected = match agent {
            Agent::Claude | Agent::Codex => json!({"hookSpecificOutput": {
                "hookEventName": "PreToolUse", "permissionDecision": "deny",
                "permissionDecisionReason": reason}}),
            Agent::Gemini => json!({"decision": "deny", "reason": reason}),
            _ => json!({"deny": reason}),
        };
        assert_eq!(answers, [expected.to_string()], "{}", agent.as_str());
        assert_eq!(journal.denials().values().sum::<u64>(), 1);
    }
}

/// The faults that are planted into the events of hooks.
#[expect(clippy::too_many_lines, reason = "tests: a table is read as a whole")]
fn faults_of_hooks(run: &Run) -> Vec<(&'static str, Run)> {
    let mut faults = Vec::new();
    let mut plant = |name, change: &dyn Fn(&mut Vec<String>)| {
        let mut planted = run.clone();
        change(&mut planted.hooks);
        faults.push((name, planted));
    };
    let (before, after) = (run.before("echo one"), run.after("echo one"));
    let denied = run.before("DENYME");
    let end = run.hooks.len();
    plant("no event at all", &|hooks| hooks.clear());
    plant("no event of calls", &|hooks| {
        hooks.retain(|event| !event.contains("tool"));
    });
    plant("the begin dropped", &|hooks| drop(hooks.remove(before)));
    plant("the end dropped", &|hooks| drop(hooks.remove(after)));
    plant("begin and end dropped", &|hooks| {
        hooks.remove(after);
        hooks.remove(before);
    });
    plant("the begin twice", &|hooks| {
        let event = hooks[before].clone();
        hooks.insert(before, event);
    });
    plant("the end twice", &|hooks| {
        let event = hooks[after].clone();
        hooks.insert(after, event);
    });
    plant("the end before the begin", &|hooks| {
        hooks.swap(before, after)
    });
    plant("a forged call", &|hooks| {
        let event = hooks[before].replace("echo one", "echo forged");
        hooks.insert(end, event.replace("script_0_0", "script_9_9"));
    });
    plant("a forged end", &|hooks| {
        let event = hooks[after].replace("script_0_0", "script_9_9");
        hooks.insert(end, event.replace("echo one", "echo forged"));
    });
    plant("the input changed at the end", &|hooks| {
        hooks[after] = hooks[after].replace("echo one", "echo two");
    });
    plant("the input changed at the begin", &|hooks| {
        hooks[before] = hooks[before].replace("echo one", "echo two");
    });
    plant("an end of the denied call", &|hooks| {
        let event = hooks[denied]
            .replace("PreToolUse", "PostToolUse")
            .replace("BeforeTool", "AfterTool")
            .replace("\"before\"", "\"after\"");
        hooks.insert(denied + 1, event);
    });
    plant("another session", &|hooks| {
        for event in hooks.iter_mut() {
            let mut fields: Value = serde_json::from_str(event).unwrap();
            for field in ["session_id", "session"] {
                if fields.get(field).is_some() {
                    fields[field] = "another".into();
                }
            }
            *event = fields.to_string();
        }
    });
    plant("no JSON", &|hooks| hooks.insert(end, "garbage".to_owned()));
    plant("an event without its fields", &|hooks| {
        hooks.insert(
            end,
            json!({"kind": "before", "hook_event_name": "PreToolUse"}).to_string(),
        );
    });
    faults
}

#[test]
fn a_fault_in_the_hooks_refuses_the_turn() {
    for agent in Agent::ALL {
        let run = Run::of(*agent);
        for (name, planted) in faults_of_hooks(&run) {
            assert!(!planted.classes().is_empty(), "{}: {name}", agent.as_str());
        }
    }
}

#[test]
fn a_fault_in_the_stream_refuses_the_turn() {
    for agent in Agent::ALL {
        let run = Run::of(*agent);
        let change = |from: &str, to: &str| {
            let mut changed = run.clone();
            for line in &mut changed.stream {
                *line = line.replace(from, to);
            }
            changed
        };
        let dropped = match agent {
            Agent::Codex => run.clone().without(&["'echo one'"]),
            _ => run.clone().without(&["script_0_0"]),
        };
        for (name, planted) in [
            ("a call dropped", dropped),
            ("another session", {
                let known = run.stream.iter().find_map(|line| {
                    let line: Value = serde_json::from_str(line).unwrap();
                    let fields = ["session_id", "thread_id", "sessionID"];
                    let found = fields.iter().find_map(|field| line[*field].as_str());
                    found.map(str::to_owned)
                });
                change(&known.unwrap(), "another")
            }),
            ("a call more", {
                let mut more = run.clone();
                let id = if *agent == Agent::Codex {
                    "item_3"
                } else {
                    "script_0_0"
                };
                let lines = run.stream.iter().filter(|line| line.contains(id));
                let copies: Vec<String> = lines
                    .map(|line| line.replace(id, "other_9").replace("echo one", "echo more"))
                    .collect();
                let place = run
                    .stream
                    .iter()
                    .position(|line| line.contains(id))
                    .unwrap();
                more.stream.splice(place..place, copies);
                more
            }),
        ] {
            let classes = planted.classes();
            assert!(!classes.is_empty(), "{}: {name}", agent.as_str());
        }
        if let Some(planted) = ran_though_denied(&run) {
            let classes = planted.classes();
            assert!(classes.contains("denied_call_ran"), "{}", agent.as_str());
        }
        assert!(
            !change("echo one", "echo two").classes().is_empty(),
            "{}",
            agent.as_str()
        );
    }
}

/// Codex refuses some commands itself after the hook, and its stream has none of
/// them.
#[test]
fn a_forced_removal_may_be_announced_and_never_run() {
    let run = Run::of(Agent::Codex);
    let (before, after) = (run.before("echo one"), run.after("echo one"));
    let event = |place: usize, command: &str| {
        let event = run.hooks[place].replace("script_0_0", "script_9_9");
        event.replace("echo one", command)
    };
    for (command, has_ended, is_refused) in [
        ("cd x && rm -rf y", false, false),
        ("rm -rf y", true, true),
        ("rm y", false, true),
        ("echo -f", false, true),
    ] {
        let mut run = run.clone();
        let end = run.hooks.len();
        run.hooks.insert(end, event(before, command));
        if has_ended {
            run.hooks.push(event(after, command));
        }
        let classes = run.classes();
        let found = classes.contains("hook_call_unaccounted");
        assert_eq!(found, is_refused, "{command}: {classes:?}");
        assert_eq!(classes.is_empty(), !is_refused, "{command}: {classes:?}");
    }
}

/// The run with a good result of the denied call, where the stream has the call.
fn ran_though_denied(run: &Run) -> Option<Run> {
    let mut planted = run.clone();
    let line = planted.stream.iter_mut().find(|line| {
        line.contains("no-denyme")
            && (line.contains("\"tool_result\"") || line.contains("tool_use"))
    })?;
    *line = match run.agent {
        Agent::Claude => line.replace("\"is_error\":true", "\"is_error\":false"),
        Agent::Gemini => {
            let mut fields: Value = serde_json::from_str(line).unwrap();
            fields["status"] = "success".into();
            fields.as_object_mut().unwrap().remove("error");
            fields.to_string()
        }
        _ => {
            let mut fields: Value = serde_json::from_str(line).unwrap();
            let state = &mut fields["part"]["state"];
            state["status"] = "completed".into();
            state["output"] = "made".into();
            state["metadata"] = json!({"exit": 0});
            fields.to_string()
        }
    };
    Some(planted)
}

#[test]
fn a_row_of_a_huge_event_is_small() {
    let long = "a/".repeat(1 << 20);
    for agent in Agent::ALL {
        let mut journal = HookJournal::new(*agent, policy(), "/scratch/work");
        let input = json!({"file_path": long, "filePath": long, "url": format!("http://{long}"),
            "command": format!("*** Begin Patch\n*** Add File: {long}\n*** End Patch")});
        let event = json!({
            "kind": "before", "session": "s", "call": "c", "tool": "write", "args": input,
            "session_id": "s", "tool_name": if *agent == Agent::Codex { "apply_patch" } else { "Write" },
            "tool_use_id": "c", "tool_input": input,
            "hook_event_name": if *agent == Agent::Gemini { "BeforeTool" } else { "PreToolUse" },
        });
        let (row, _) = journal.take(event.to_string().as_bytes());
        assert_eq!(row.kind, "before", "{}", agent.as_str());
        let length = serde_json::to_string(&row).unwrap().len();
        assert!(length < 64 << 10, "{}: {length}", agent.as_str());
    }
}
