//! A batch that uses up what it may: it ends by that, and reports it everywhere.

use super::{events, keeping, notified};
use crate::misbehaviour::{command_line, titled};
use premath_evidence::Agent;
use premath_tests::binaries;
use serde_json::Value;
use std::fs;

#[test]
fn a_batch_that_uses_its_budget_up_ends_by_it_and_reports_it() {
    // An attempt of the agent uses 110 tokens.
    let settings = format!(
        "[agent]\nuse = [\"codex\"]\ncodex_cmd = '''{}'''\n\
         [budget]\nbatch_tokens = 150\n{}",
        command_line(Agent::Codex, ""),
        keeping("")
    );
    let scratch = notified(&[], &settings);
    let rows = ["a", "b", "c"].map(|id| format!("{}\n", titled(id, "ok", 1)));
    scratch.write_issues(rows.concat().as_bytes());
    let run = scratch.run(&binaries().coordinator);
    let run = run.args(["--json", "--override-reason", "test", "--landing", "none"]);
    let run = run.args(["--verify-cmd", "true", "--worktree"]);
    let ended = run.arg(&scratch.lanes[0]).end().exits(1);
    let summary = ended.events().pop().unwrap();
    assert_eq!(summary["endedBy"], "budget", "{summary}");
    let statuses = ["a", "b", "c"].map(|id| scratch.issue(id)["status"].clone());
    assert_eq!(statuses, ["closed", "closed", "open"]);
    assert_eq!(events(&scratch), ["budget", "done"]);
    let texts = fs::read_to_string(scratch.home().join("texts")).unwrap();
    let figures = "220 of 150 tokens";
    assert!(
        texts.contains(&format!("the budget is used up: {figures}")),
        "{texts}"
    );
    assert!(texts.ends_with("exit code 1\n"), "{texts}");
    let status = scratch.premath(["status", "--json"]).end().exits(0).json();
    let batch = &status["batches"][0];
    assert_eq!(batch["exitCode"], 1, "{status}");
    let report = scratch.premath(["report", "--json"]).end().exits(0).json();
    let mut events = report["events"].as_array().unwrap().iter();
    let is_budget = |event: &Value| event["action"] == "coordinator.budget_exceeded";
    assert!(events.any(is_budget), "{report}");
    scratch.no_process_left();
}
