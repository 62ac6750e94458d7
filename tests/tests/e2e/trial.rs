//! The questions that an operator has about a running batch of many issues: each is
//! answered by one command, with the figures of the run log.

use crate::misbehaviour::{VERIFY, command_line, titled};
use premath_evidence::Agent;
use premath_tests::agents::CLAUDE_COST_NANO_USD;
use premath_tests::{Length, NO_STARTUP, PATIENCE, Running, Scratch, binaries, until};
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

const LANES: u64 = 8;

/// The longest time in which a question is answered.
const ANSWER: Duration = Duration::from_secs(10);

/// An issue whose agent hangs in a call.
const STUCK: &str = "a-stuck";

/// An issue whose agent does it wrong.
const WRONG: &str = "a-wrong";

/// A batch in the middle of its work, which is paused: nothing but the attempt that hangs
/// is under way.
struct Trial {
    scratch: Scratch,
    batch: Running,
    issues: u64,
}

impl Trial {
    fn start(issues: u64) -> Self {
        let mut rows = vec![
            titled(STUCK, "hang-tool", 1),
            titled(WRONG, "wrong-work", 1),
        ];
        let good = (2..issues).map(|number| titled(&format!("b-{number:03}"), "ok", 1));
        rows.extend(good);
        let scratch = Scratch::with_issues(0, &rows);
        let settings = format!(
            "[agent]\nuse = [\"claude\"]\nclaude_cmd = '''{}'''\n[worktrees]\ncount = {LANES}\n\
             [supervision]\ngrace = \"500ms\"\n",
            command_line(Agent::Claude, "")
        );
        fs::write(scratch.root.join("harness.toml"), settings).unwrap();
        let arguments = [
            "--json",
            "--override-reason",
            "test",
            "--verify-cmd",
            VERIFY,
        ];
        let run = scratch.run(&binaries().coordinator).args(arguments);
        let batch = run.args(NO_STARTUP).start();
        Self {
            scratch,
            batch,
            issues,
        }
    }

    /// Asks a question; returns the answer.
    #[track_caller]
    fn ask(&self, words: &[&str]) -> Value {
        let began = Instant::now();
        let words = words.iter().copied().chain(["--json"]);
        let answer = self.scratch.premath(words).end().exits(0).json();
        assert!(began.elapsed() < ANSWER, "{:?}", began.elapsed());
        answer
    }

    fn status(&self) -> Value {
        self.ask(&["status"])
    }

    /// Waits for a status.
    #[track_caller]
    fn awaited(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let seen = || Some(self.status()).filter(&is_so);
        until(PATIENCE * 4, seen).unwrap_or_else(|| panic!("the status is {:#}", self.status()))
    }

    /// Pauses the batch once a quarter of the issues is closed; returns the status in
    /// which the attempt that hangs alone is under way.
    fn pause(&self) -> Value {
        let runs = self.awaited(|status| {
            let closed = status["batches"][0]["totals"]["closed"].as_u64();
            closed.is_some_and(|closed| closed >= self.issues / 4)
                && status_of_stuck(status).is_some()
        });
        // A batch that is paused has no end in sight.
        let estimate = &runs["batches"][0]["estimate"];
        assert!(estimate["timeLeftMs"].as_u64() > Some(0), "{estimate}");
        assert!(estimate["doneAt"].is_string(), "{estimate}");
        self.ask(&["batch", "pause"]);
        // A status from before the pause may show lanes between two attempts, and the
        // issues are counted less often than a status is written.
        self.awaited(|status| {
            status["batches"][0]["pauses"][0]["kind"] == "operator"
                && status["queue"]["closed"] == status["batches"][0]["totals"]["closed"]
                && attempts(status).count() == 1
                && status_of_stuck(status).is_some()
        })
    }
}

fn attempts(status: &Value) -> impl Iterator<Item = &Value> {
    let lanes = status["batches"][0]["lanes"].as_array().unwrap().iter();
    lanes
        .map(|lane| &lane["attempt"])
        .filter(|attempt| attempt.is_object())
}

/// The attempt that hangs, once it is in its call.
fn status_of_stuck(status: &Value) -> Option<&Value> {
    attempts(status).find(|attempt| attempt["issueId"] == STUCK && attempt["agent"] == "calling")
}

/// How far it is, since when, what it costs, and when it will end.
fn how_far(trial: &Trial, status: &Value) {
    let steps = trial.scratch.steps();
    let of_class = |class: &str| {
        steps
            .iter()
            .filter(|row| row["resultClass"] == class)
            .count()
    };
    let closed = of_class("completed");
    let batch = &status["batches"][0];
    assert_eq!(batch["totals"]["closed"], closed);
    assert_eq!(status["queue"]["closed"], closed);
    assert_eq!(status["queue"]["blocked"], 1);
    assert_eq!(status["queue"]["total"], trial.issues);
    assert!(batch["startedAt"].is_string() && batch["elapsedMs"].as_u64() > Some(0));
    let cost = CLAUDE_COST_NANO_USD * u64::try_from(steps.len()).unwrap();
    assert_eq!(batch["used"]["costNanoUsd"], cost);
    let left = trial.issues - u64::try_from(closed).unwrap() - 1;
    assert_eq!(batch["estimate"]["remaining"], left);
    assert_eq!(batch["estimate"]["timeLeftMs"], Value::Null);
}

/// Whether a lane is stuck or thinks.
fn is_it_stuck(status: &Value) {
    let attempt = status_of_stuck(status).unwrap();
    assert!(attempt["silentMs"].as_u64() > Some(0), "{attempt}");
    assert!(attempt["silenceLimitMs"].as_u64() > attempt["silentMs"].as_u64());
    assert!(attempt["lastTool"].is_string() && attempt["elapsedMs"].is_u64());
}

/// Why an issue failed.
fn why_did_it_fail(trial: &Trial) {
    let why = trial.ask(&["why", WRONG]);
    assert_eq!(
        why["lastFailure"]["failureClasses"],
        json!(["check_failed"])
    );
    assert_eq!(why["status"], "blocked");
    let text = trial.scratch.premath(["why", WRONG]).end().exits(0).stdout;
    assert!(
        text.contains("check_failed") && text.contains("premath retry"),
        "{text}"
    );
}

/// Which change is to be reviewed first: what landed, the riskiest at the top, and then
/// what was kept of work that failed.
fn what_to_review(trial: &Trial, closed: &Value) {
    let report = trial.ask(&["report"]);
    let review = report["review"].as_array().unwrap();
    let (last, landed) = review.split_last().unwrap();
    assert_eq!(json!(landed.len()), *closed);
    let scores: Vec<u64> = landed
        .iter()
        .map(|item| item["score"].as_u64().unwrap())
        .collect();
    assert!(scores.is_sorted_by(|one, next| one >= next), "{scores:?}");
    assert_eq!(
        (&last["issueId"], &last["closed"]),
        (&json!(WRONG), &json!(false))
    );
    for item in [&landed[0], last] {
        let id = item["issueId"].as_str().unwrap();
        let shown = trial.ask(&["diff", id]);
        assert_eq!(shown["files"][0]["path"], format!("{id}.txt"), "{shown}");
    }
}

#[test]
fn each_question_about_a_running_batch_is_answered_by_one_command() {
    let issues = Length::asked("a trial of 200 issues").pick(40, 200);
    let trial = Trial::start(issues);
    let status = trial.pause();
    how_far(&trial, &status);
    is_it_stuck(&status);
    why_did_it_fail(&trial);
    what_to_review(&trial, &status["batches"][0]["totals"]["closed"]);
    let cancelled = trial.ask(&["cancel", STUCK, "--then", "deferred"]);
    assert_eq!(cancelled["issues"][0]["result"], "done", "{cancelled}");
    trial.ask(&["batch", "resume"]);
    let ended = trial.batch.wait_within(PATIENCE * 10);
    let totals = ended.events().last().unwrap()["closes"].clone();
    assert_eq!(totals["firstPass"], issues - 2, "{totals}");
    trial.scratch.no_process_left();
}
