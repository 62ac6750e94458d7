//! The tool gate acts before a call runs: what the turn policy denies is never
//! made, and a turn whose hooks were silenced, forged or broken closes nothing.

use crate::agents::{batch, reaches_alone};
use crate::steps::fast_retries;
use premath_evidence::Agent;
use premath_kernel::policy::turn::{POLICY_PLACE, TurnPolicy};
use premath_tests::agents::{Installed, Profile, missing};
use premath_tests::model::{Journal, ModelServer, Scripts};
use premath_tests::{PATIENCE, Run, Scratch, binaries, issue, skipped};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A command that is denied, a file that is not, and an end.
fn denied_script() -> Value {
    json!({"about": "A call that the policy denies.", "turns": [
        {"answer": {"calls": [{"shell": "echo made > denied.txt && git push origin main"}]}},
        {"answer": {"calls": [{"write": {"path": "src/denied.txt", "content": "done\n"}}]}},
        {"answer": {"text": "Done."}},
    ]})
}

pub(crate) fn work_witness(scratch: &Scratch, id: &str) -> Value {
    let folder = scratch.root.join("artifacts/ciwitness");
    let entries = fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let is_work = |path: &std::path::PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains(&format!(".{id}.")) && name.ends_with(".work.json")
    };
    let file = files
        .into_iter()
        .find(is_work)
        .expect("the work has a witness");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

fn denies_before_it_runs(agent: Agent) {
    let Some(installed) = Installed::find(agent) else {
        return skipped("a denied call of a real agent", &missing(agent));
    };
    let mut row = issue("denied");
    row["title"] = json!("Do what is asked, play:denied:denied");
    let scratch = Scratch::with_issues(1, &[row]);
    let folder = scratch.folder().join("scripts");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("denied.json"), denied_script().to_string()).unwrap();
    let scripts = Scripts::of_folder(&folder).unwrap();
    let requests = scratch.folder().join("requests");
    let server = ModelServer::start(scripts, Journal::default(), Some(requests.clone())).unwrap();
    let home = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let profile = Profile::set_up(&installed, home.path(), &server.url());
    let run = batch(&scratch, &installed, &profile).args(["--sandbox", "namespaces"]);
    reaches_alone(&scratch, &server);
    let ended = run.start().wait_within(PATIENCE * 3).exits(0);
    assert_eq!(
        scratch.issue("denied")["status"],
        "closed",
        "{}",
        ended.stderr
    );
    assert!(!scratch.lanes[0].join("denied.txt").exists());
    let hooks = &work_witness(&scratch, "denied")["hooks"];
    assert_eq!(hooks["denials"], 1, "{hooks}");
    assert_eq!(hooks["denied"][0]["ruleId"], "no_push");
    assert_eq!(hooks["faults"], json!([]));
    assert_eq!(
        scratch.steps_of("denied")[0]["agent"]["denials"],
        json!({"no_push": 1})
    );
    let ended = &ended.events()[..];
    let ended = ended.last().unwrap();
    assert_eq!(ended["event"], "batch.ended");
    assert_eq!(ended["providers"][0]["denials"], json!({"no_push": 1}));
    let made = scratch.premath(["report", "--json"]).end().exits(0).json();
    let denials = &made["denials"];
    assert_eq!(denials[0]["ruleId"], "no_push", "{denials}");
    assert_eq!(denials[0]["calls"], 1, "{denials}");
    assert_eq!(denials[0]["issueIds"], json!(["denied"]), "{denials}");
    let report = scratch.kept_report();
    let line = "gate denied 1 call(s) (no_push 1) in denied";
    assert!(report.lines().any(|printed| printed == line), "{report}");
    assert!(is_sent_back(&requests), "the model has not read the reason");
}

/// Returns whether the agent sent the model the reason of the rule `no_push`, in
/// anything but the prompt.
fn is_sent_back(requests: &Path) -> bool {
    let policy: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rules = policy["tools"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["ruleId"] == "no_push");
    let reason = rule.unwrap()["reason"].as_str().unwrap();
    let has_reason = |body: &str| body.contains(reason);
    let files = fs::read_dir(requests).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let bodies = files.iter().map(|file| fs::read_to_string(file).unwrap());
    let bodies: Vec<String> = bodies.collect();
    // No request before the call has it.
    assert!(!has_reason(&bodies[0]), "{}", bodies[0]);
    bodies.iter().any(|body| has_reason(body))
}

#[test]
fn claude_never_runs_what_is_denied() {
    denies_before_it_runs(Agent::Claude);
}

#[test]
fn codex_never_runs_what_is_denied() {
    denies_before_it_runs(Agent::Codex);
}

#[test]
fn gemini_never_runs_what_is_denied() {
    denies_before_it_runs(Agent::Gemini);
}

#[test]
fn opencode_never_runs_what_is_denied() {
    denies_before_it_runs(Agent::OpenCode);
}

/// The head of a program that plays Codex: where its hooks are, and how it sends
/// them an event.
pub(crate) const HEAD: &str = r#"#!/bin/sh
hook=$(printf '%s\n' "$@" | sed -n "s/.*command=\"\(.*\) || exit 2\".*/\1/p" | head -1)
send() { printf '%s' "$1" | eval "$hook" > /dev/null; }
event() { printf '{"session_id":"s","hook_event_name":"%s","tool_name":"Bash","tool_use_id":"%s","tool_input":{"command":"%s"},"cwd":"/"}' "$1" "$2" "$3"; }
prompt() { send '{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt":"p"}'; }
begin() { printf '%s\n' '{"type":"thread.started","thread_id":"s"}' '{"type":"turn.started"}'; }
ran() { printf '{"type":"item.started","item":{"id":"%s","type":"command_execution","command":"%s","aggregated_output":"","exit_code":null,"status":"in_progress"}}\n{"type":"item.completed","item":{"id":"%s","type":"command_execution","command":"%s","aggregated_output":"","exit_code":0,"status":"completed"}}\n' "$1" "$2" "$1" "$2"; }
end() { printf '%s\n' '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'; }
echo change > "change-$PREMATH_ISSUE_ID.txt"
"#;

/// Runs a batch with one issue, whose agent is a program that plays Codex.
fn played(body: &str) -> (Scratch, Vec<String>) {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    fast_retries(&scratch);
    let classes = played_in(&scratch, body);
    (scratch, classes)
}

pub(crate) fn played_in(scratch: &Scratch, body: &str) -> Vec<String> {
    let programs = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let program = programs.path().join("codex");
    fs::write(&program, format!("{HEAD}{body}")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!(
        "{}:{}",
        programs.path().display(),
        std::env::var("PATH").unwrap()
    );
    let run: Run = scratch
        .run(&binaries().coordinator)
        .args(["--json", "--override-reason", "test", "--landing", "none"])
        .args([
            "--agent",
            "codex",
            "--verify-cmd",
            "true",
            "--startup",
            "off",
        ])
        .arg("--worktree")
        .arg(&scratch.lanes[0])
        .env("PATH", path);
    let ended = run.start().wait_within(PATIENCE);
    let events = ended.events();
    let steps = events.iter().filter(|event| event["event"] == "step.ended");
    let classes = steps.flat_map(|step| step["failureClasses"].as_array().unwrap().clone());
    let classes = classes.map(|class| class.as_str().unwrap().to_owned());
    classes.collect()
}

#[test]
fn a_turn_whose_channels_agree_closes() {
    let (scratch, classes) = played(
        "begin; prompt; send \"$(event PreToolUse c1 ls)\"; ran item_0 \"/bin/sh -c ls\"\n\
         send \"$(event PostToolUse c1 ls)\"; end\n",
    );
    assert_eq!(classes, [""; 0]);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let hooks = &work_witness(&scratch, "a")["hooks"];
    assert_eq!((&hooks["events"], &hooks["calls"]), (&json!(3), &json!(1)));
}

#[test]
fn another_policy_is_replayed_against_the_calls_that_were_made() {
    let (scratch, _) = played(
        "begin; prompt; send \"$(event PreToolUse c1 ls)\"; ran item_0 \"/bin/sh -c ls\"\n\
         send \"$(event PostToolUse c1 ls)\"; send \"$(event PreToolUse c2 'git push')\"; end\n",
    );
    let mut policy: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rules = policy["tools"].as_array_mut().unwrap();
    rules.retain(|rule| rule["ruleId"] != "no_push");
    let rule = json!({"ruleId": "no_ls", "tool": "shell", "programs": ["ls"],
        "decision": "deny", "reason": "no"});
    rules.insert(0, rule);
    fs::write(scratch.root.join("other.json"), policy.to_string()).unwrap();
    let words = ["policy", "diff", "other.json", "--replay", "--json"];
    let ended = scratch.premath(words).end();
    let answer: Value = serde_json::from_str(&ended.stdout).unwrap();
    let replay = &answer["replay"];
    assert_eq!(replay["turns"], 1, "{answer:#}");
    assert_eq!(replay["calls"], 2, "{answer:#}");
    assert_eq!(replay["newlyDenied"], json!({"no_ls": 1}), "{answer:#}");
    let allowed = replay["newlyAllowed"].as_object().unwrap().values();
    assert_eq!(
        allowed.filter_map(Value::as_u64).sum::<u64>(),
        1,
        "{answer:#}"
    );
}

#[test]
fn without_hooks_the_gate_refuses_what_the_policy_never_allows() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let mut policy: Value = serde_json::from_str(TurnPolicy::embedded_text()).unwrap();
    let rule = json!({"ruleId": "no_shell", "tool": "shell", "decision": "deny",
        "reason": "Use the tools for files."});
    policy["tools"].as_array_mut().unwrap().insert(0, rule);
    let digest = TurnPolicy::digest(policy.to_string().as_bytes()).unwrap();
    policy["policyDigest"] = digest.into();
    let file = scratch.root.join(POLICY_PLACE);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, policy.to_string()).unwrap();
    fs::write(
        scratch.root.join("harness.toml"),
        "[agent]\nhooks = \"off\"\n",
    )
    .unwrap();
    let classes = played_in(&scratch, "begin; ran item_0 \"/bin/sh -c ls\"; end\n");
    assert!(
        classes
            .iter()
            .any(|class| class == "tool.unknown_or_disallowed"),
        "{classes:?}"
    );
    assert_ne!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_turn_whose_channels_differ_closes_nothing() {
    let call = "send \"$(event PreToolUse c1 ls)\"; ran item_0 \"/bin/sh -c ls\"\n\
                send \"$(event PostToolUse c1 ls)\"\n";
    for (name, body, class) in [
        (
            "no hook at all",
            "begin; ran item_0 \"/bin/sh -c ls\"; end\n".to_owned(),
            "hook_call_missing",
        ),
        (
            "a call that no hook announced",
            format!("begin; prompt; {call} ran item_1 \"/bin/sh -c id\"; end\n"),
            "hook_call_missing",
        ),
        (
            "a forged call",
            format!("begin; prompt; {call} send \"$(event PreToolUse c9 id)\"; end\n"),
            "hook_call_unaccounted",
        ),
        (
            "a forged call of a sub-agent that never began",
            format!(
                "begin; prompt; {call}\n\
                 send \"$(event PreToolUse c9 id | sed 's/^{{/{{\"agent_id\":\"x\",/')\"; end\n"
            ),
            "hook_call_unaccounted",
        ),
        (
            "another input after the decision",
            "begin; prompt; send \"$(event PreToolUse c1 ls)\"; ran item_0 \"/bin/sh -c ls\"\n\
             send \"$(event PostToolUse c1 id)\"; end\n"
                .to_owned(),
            "hook_input_changed",
        ),
        (
            "a denied call that ran",
            format!(
                "begin; prompt; {call} send \"$(event PreToolUse c2 'git push')\"\n\
                 ran item_1 \"/bin/sh -c 'git push'\"; end\n"
            ),
            "denied_call_ran",
        ),
        (
            "garbage",
            format!("begin; prompt; {call} send garbage; end\n"),
            "hook_channel_invalid",
        ),
        (
            "a process in the background that answers for the hooks",
            format!("begin; {call} (prompt; send \"$(event PostToolUse c1 ls)\") & wait; end\n"),
            "hook_channel_invalid",
        ),
    ] {
        let (scratch, classes) = played(&body);
        assert!(
            classes.iter().any(|found| found == class),
            "{name}: {classes:?}"
        );
        assert_ne!(scratch.issue("a")["status"], "closed", "{name}");
    }
}
