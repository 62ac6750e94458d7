//! An operator's requests to a batch that runs, from a second process.

use crate::mcp::with_instruction;
use crate::misbehaviour::{command_line, titled};
use premath_evidence::Agent;
use premath_kernel::record::control::{
    CancelThen, ControlAnswer, ControlOperation, ControlRequest, IssueControl,
};
use premath_tests::{
    Ended, Length, NO_STARTUP, PATIENCE, Running, Scratch, Tools, binaries, issue, processes_in,
    until,
};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::time::{Duration, Instant};

/// The work says that it runs, leaves something, and ends when it may.
const WORK: &str = r#"echo x > "src/$PREMATH_ISSUE_ID.txt"; cp "$PREMATH_PROMPT_FILE" "$HOME/prompt-$PREMATH_ISSUE_ID"
touch "$HOME/started-$PREMATH_ISSUE_ID"; [ ! -e "$HOME/fail-$PREMATH_ISSUE_ID" ] || exit 1
until [ -e "$HOME/go" ] || [ -e "$HOME/go-$PREMATH_ISSUE_ID" ]; do sleep 0.05; done"#;

/// A batch that runs, with the files by which its work is watched and released.
struct Ground {
    scratch: Scratch,
    batch: Option<Running>,
}

impl Ground {
    /// Starts a batch over issues, with flags of its own.
    fn start(lanes: usize, issues: &[&str], flags: &[&str]) -> Self {
        let rows: Vec<Value> = issues.iter().map(|id| issue(id)).collect();
        Self::on(Scratch::with_issues(lanes, &rows), flags)
    }

    fn on(scratch: Scratch, flags: &[&str]) -> Self {
        let batch = scratch.batch(WORK, "true").args(flags).start();
        Self {
            scratch,
            batch: Some(batch),
        }
    }

    fn batch(&self) -> &Running {
        self.batch.as_ref().unwrap()
    }

    /// Waits until the work of issues runs.
    #[track_caller]
    fn started(&self, ids: &[&str]) {
        for id in ids {
            let started = self.scratch.home().join(format!("started-{id}"));
            until(PATIENCE, || started.exists().then_some(()))
                .unwrap_or_else(|| panic!("{id} does not run: {}", self.batch().stdout()));
        }
    }

    fn runs(&self, id: &str) -> bool {
        self.scratch.home().join(format!("started-{id}")).exists()
    }

    /// Lets the work of an issue end.
    fn release(&self, id: &str) {
        fs::write(self.scratch.home().join(format!("go-{id}")), "").unwrap();
    }

    /// Runs `premath --json` beside the batch.
    fn premath(&self, arguments: &[&str]) -> Ended {
        self.scratch
            .premath(arguments.iter().copied())
            .arg("--json")
            .end()
    }

    /// Waits for an event of the batch.
    #[track_caller]
    fn event(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        let found = || self.batch().events().into_iter().find(|event| is_it(event));
        until(PATIENCE, found).unwrap_or_else(|| panic!("no such event: {}", self.batch().stdout()))
    }

    /// Waits until an issue is dispatched so many times.
    #[track_caller]
    fn dispatched(&self, id: &str, times: usize) {
        let count = || {
            let events = self.batch().events();
            let is_it = |e: &&Value| e["event"] == "issue.dispatched" && e["issueId"] == id;
            (events.iter().filter(is_it).count() >= times).then_some(())
        };
        until(PATIENCE, count)
            .unwrap_or_else(|| panic!("{id} is not dispatched: {}", self.batch().stdout()));
    }

    /// Waits until a command of a phase printed something.
    #[track_caller]
    fn speaks(&self, stream: &str) {
        let streams = self.scratch.root.join("artifacts/streams");
        let printed = || {
            let entries = fs::read_dir(&streams).ok()?.flatten();
            let mut found = entries.filter(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                name.contains(stream) && entry.metadata().is_ok_and(|meta| meta.len() > 0)
            });
            found.next().map(|_| ())
        };
        until(PATIENCE, printed)
            .unwrap_or_else(|| panic!("nothing in {stream}: {}", self.batch().stdout()));
    }

    /// Releases all work and waits for the end of the batch.
    #[track_caller]
    fn finish(&mut self, code: i32) {
        fs::write(self.scratch.home().join("go"), "").unwrap();
        self.over(code);
    }

    /// Waits for the end of the batch.
    #[track_caller]
    fn over(&mut self, code: i32) {
        self.batch.take().unwrap().wait().exits(code);
        self.scratch.no_process_left();
        let folder = self.scratch.root.join(".git/premath-control");
        assert!(!folder.exists(), "the socket is left");
        let private = self.scratch.root.join(".premath/private");
        let left = fs::read_dir(private).unwrap().map(Result::unwrap);
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        // What the batch published stays.
        assert!(left.iter().all(|name| name == "live"), "{left:?} is left");
    }

    /// Returns the rows of operators' requests.
    fn requests(&self) -> Vec<Value> {
        let mut rows = self.scratch.trajectory();
        rows.retain(|row| row["action"] == "operator.control");
        rows
    }
}

#[test]
fn a_drain_ends_the_batch_as_a_termination_does() {
    let mut ground = Ground::start(1, &["a", "b"], &[]);
    ground.started(&["a"]);
    for _ in 0..2 {
        let answer = ground
            .premath(&["batch", "drain", "--reason", "maintenance"])
            .exits(0)
            .json();
        assert_eq!(answer["action"], "batch.drain");
        assert_eq!(answer["result"], "done");
    }
    ground.finish(143);
    assert_eq!(ground.scratch.issue("a")["status"], "closed");
    assert_eq!(ground.scratch.issue("b"), issue("b"));
    let requests = ground.requests();
    assert_eq!(requests.len(), 2);
    let control = &requests[0]["control"];
    assert_eq!(control["operation"]["kind"], "drain");
    assert_eq!(control["reason"], "maintenance");
    assert_eq!(control["uid"], rustix::process::getuid().as_raw());
    assert!(control["pid"].as_u64().is_some_and(|pid| pid > 1));
    assert_eq!(requests[0]["resultClass"], "ok");
}

#[test]
fn a_paused_batch_starts_nothing_until_it_is_resumed() {
    let mut ground = Ground::start(1, &["a", "b"], &[]);
    ground.started(&["a"]);
    ground.premath(&["batch", "pause"]).exits(0);
    ground.release("a");
    ground.event(|e| e["event"] == "step.ended" && e["issueId"] == "a");
    let again = ground.premath(&["batch", "pause"]).exits(0).json();
    assert_eq!(again["detail"], "already paused");
    assert!(!ground.runs("b"));
    assert_eq!(ground.scratch.issue("b"), issue("b"));
    let paused = |ground: &Ground| {
        let status = ground.premath(&["status"]).exits(0).json();
        status["batches"][0]["pauses"][0]["kind"].clone()
    };
    // It is published within a second.
    until(PATIENCE, || (paused(&ground) == "operator").then_some(())).expect("the pause is shown");
    ground.premath(&["batch", "resume"]).exits(0);
    until(PATIENCE, || paused(&ground).is_null().then_some(())).expect("it is gone");
    ground.started(&["b"]);
    ground
        .premath(&["batch", "resume"])
        .exits(1)
        .says("not paused");
    ground.finish(0);
    assert_eq!(ground.requests().len(), 4);
}

#[test]
fn a_paused_batch_that_drains_is_shown_as_draining() {
    let mut ground = Ground::start(1, &["a", "b"], &[]);
    ground.started(&["a"]);
    ground.premath(&["batch", "pause"]).exits(0);
    ground.premath(&["batch", "drain"]).exits(0);
    let shown = || {
        let status = ground.premath(&["status"]).json();
        let batch = status["batches"][0].clone();
        (batch["state"] == "draining" && batch["pauses"][0].is_null()).then_some(())
    };
    until(PATIENCE, shown).unwrap_or_else(|| {
        panic!("{}", ground.premath(&["status"]).stdout);
    });
    ground.release("a");
    ground.finish(143);
}

#[test]
fn a_second_coordinator_is_not_taken_for_an_intruder() {
    let mut ground = Ground::start(1, &["a"], &[]);
    ground.started(&["a"]);
    ground.scratch.batch(WORK, "true").end();
    ground.release("a");
    let batch = ground.batch.take().unwrap().wait().exits(0);
    assert!(!batch.stdout.contains("was refused"), "{}", batch.stdout);
}

#[test]
fn a_stop_ends_running_attempts_and_loses_nothing() {
    let mut ground = Ground::start(2, &["a", "b", "c"], &[]);
    ground.started(&["a", "b"]);
    ground.premath(&["batch", "stop"]).exits(0);
    ground.over(143);
    for id in ["a", "b"] {
        let row = ground.scratch.issue(id);
        assert_eq!(row["status"], "open");
        assert!(row.get("lease").is_none(), "{row}");
        let branch = format!("harness/salvage/{id}/1");
        let kept = ground.scratch.file_on(&branch, &format!("src/{id}.txt"));
        assert_eq!(kept.as_deref(), Some("x\n"));
    }
    assert_eq!(ground.scratch.issue("c"), issue("c"));
    // It did work, although no attempt counts.
    let report = ground.scratch.premath(["report"]).end().exits(0);
    report.says("harness/salvage/a/1");
}

/// Returns the report that the last batch kept.
fn kept_report(scratch: &Scratch) -> String {
    let kept = fs::read_dir(scratch.root.join("artifacts/reports")).unwrap();
    fs::read_to_string(kept.flatten().next().unwrap().path()).unwrap()
}

#[test]
fn a_cancelled_attempt_is_saved_and_does_not_count() {
    let mut ground = Ground::start(2, &["a", "b"], &[]);
    ground.started(&["a", "b"]);
    let answer = ground
        .premath(&["cancel", "a", "--reason", "wrong way"])
        .exits(0)
        .json();
    let outcome = &answer["issues"][0];
    assert_eq!(outcome["issueId"], "a");
    assert_eq!(outcome["salvage"], "harness/salvage/a/1");
    let row = ground.scratch.issue("a");
    assert_eq!(row["status"], "deferred");
    assert!(row.get("lease").is_none(), "{row}");
    assert_eq!(row["operator_override"]["reason"], "wrong way");
    let kept = ground.scratch.file_on("harness/salvage/a/1", "src/a.txt");
    assert_eq!(kept.as_deref(), Some("x\n"));
    // The other attempt continues.
    ground.release("b");
    ground.event(|e| e["event"] == "step.ended" && e["issueId"] == "b" && e["ending"] == "closed");
    ground.over(1);
    // It is deferred, and no batch takes it up by itself.
    let report = kept_report(&ground.scratch);
    assert!(
        report.contains("a: an operator cancelled the attempt"),
        "{report}"
    );
    assert!(report.contains("premath retry a "), "{report}");
    assert!(!report.contains("works on these again"), "{report}");
    let steps = ground.scratch.steps_of("a");
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["failureClasses"], json!(["step_interrupted"]));
    assert!(steps[0].get("retry").is_none(), "the policy was not asked");
}

#[test]
fn an_issue_that_is_cancelled_and_open_is_taken_again_with_all_attempts() {
    let mut ground = Ground::start(1, &["a"], &[]);
    ground.started(&["a"]);
    ground.premath(&["cancel", "a", "--then", "open"]).exits(0);
    ground.dispatched("a", 2);
    ground.finish(0);
    let steps = ground.scratch.steps_of("a");
    assert_eq!(steps.len(), 2);
    assert_eq!(ground.scratch.issue("a")["status"], "closed");
}

#[test]
fn only_running_attempts_are_cancelled_and_each_issue_has_its_outcome() {
    let mut ground = Ground::start(1, &["a", "b"], &[]);
    ground.started(&["a"]);
    let answer = ground
        .premath(&["cancel", "b", "a", "none"])
        .exits(1)
        .json();
    let results: Vec<&Value> = (0..3).map(|n| &answer["issues"][n]["result"]).collect();
    assert_eq!(results, ["refused", "done", "refused"]);
    assert_eq!(ground.scratch.issue("a")["status"], "deferred");
    ground.finish(1);
    assert_eq!(ground.scratch.issue("b")["status"], "closed");
}

#[test]
fn every_running_attempt_is_cancelled_at_once() {
    let mut ground = Ground::start(3, &["a", "b", "c"], &[]);
    ground.started(&["a", "b", "c"]);
    let answer = ground.premath(&["cancel", "--all"]).exits(0).json();
    assert_eq!(answer["issues"].as_array().map(Vec::len), Some(3));
    ground.over(1);
    for id in ["a", "b", "c"] {
        assert_eq!(ground.scratch.issue(id)["status"], "deferred");
    }
}

/// Returns documents of requests, by kind, for their schemas.
pub(super) fn documents() -> Vec<(&'static str, Value)> {
    let scratch = Scratch::with_issues(1, &[issue("a"), blocked("b")]);
    let mut ground = Ground::on(scratch, &[]);
    ground.started(&["a"]);
    let mut documents: Vec<(&'static str, Value)> = [
        &["batch", "pause", "--reason", "r"][..],
        &["batch", "lanes", "add", "1"],
    ]
    .map(|arguments| ground.premath(arguments).json())
    .into_iter()
    .filter(|answer| answer.get("error").is_none())
    .map(|answer| ("answer-batch", answer))
    .collect();
    assert_eq!(documents.len(), 1);
    for arguments in [&["cancel", "a", "b"][..], &["retry", "a", "b"]] {
        let answer = ground.premath(arguments).json();
        documents.push(("answer-issue-control", answer));
    }
    ground.premath(&["batch", "drain"]).exits(0);
    let events = ground.batch().events().into_iter();
    let events = events.filter(|event| event["event"] == "batch.control");
    documents.extend(events.map(|event| ("coordinator-event", event)));
    ground.finish(143);
    let rows = ground.requests().into_iter();
    documents.extend(rows.map(|row| ("trajectory-row", row)));
    let issues = vec!["a".into(), "b".into()];
    let operation = ControlOperation::Cancel {
        issues,
        then: CancelThen::Open,
    };
    let mut request = ControlRequest::new("0".repeat(64), operation);
    request.reason = Some("r".to_owned());
    let outcomes = vec![
        IssueControl::done(&"a".into(), "cancelled"),
        IssueControl::refused(&"b".into(), "no attempt is running"),
    ];
    let answer = ControlAnswer::of_issues(&"hb1_x".into(), outcomes);
    documents.push(("control-request", json!(request)));
    documents.push(("control-answer", json!(answer)));
    documents
}

/// The prompt of the last attempt on an issue.
fn prompt(ground: &Ground, id: &str) -> String {
    fs::read_to_string(ground.scratch.home().join(format!("prompt-{id}"))).unwrap()
}

fn blocked(id: &str) -> Value {
    let mut row = issue(id);
    row["status"] = "blocked".into();
    row["notes"] = "before".into();
    row
}

#[test]
fn a_blocked_issue_is_retried_while_the_batch_runs_with_a_note_in_its_prompt() {
    let scratch = Scratch::with_issues(1, &[issue("a"), blocked("b"), blocked("c")]);
    let mut ground = Ground::on(scratch, &[]);
    ground.started(&["a"]);
    let hint = "use the other file";
    let answer = ground
        .premath(&["retry", "--blocked", "--note", hint])
        .exits(0)
        .json();
    assert!(
        answer["batchId"]
            .as_str()
            .is_some_and(|id| id.starts_with("hb1_"))
    );
    let running = ground.premath(&["retry", "a"]).exits(1).json();
    assert!(
        running["issues"][0]["detail"]
            .as_str()
            .is_some_and(|d| d.contains("running"))
    );
    ground.finish(0);
    for id in ["b", "c"] {
        assert_eq!(ground.scratch.issue(id)["status"], "closed");
        let prompt = prompt(&ground, id);
        assert!(prompt.contains(&format!("before\n\n{hint}\n")), "{prompt}");
    }
}

#[test]
fn an_issue_whose_attempts_are_used_up_gets_them_again_in_the_same_batch() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let backoff = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n\
                   [breaker]\nfailures = 0\n";
    fs::write(scratch.root.join("harness.toml"), backoff).unwrap();
    let fails = scratch.home().join("fail-a");
    fs::write(&fails, "").unwrap();
    let mut ground = Ground::on(scratch, &[]);
    ground.started(&["b"]);
    ground.event(|e| {
        let ending = &e["ending"];
        e["event"] == "step.ended" && e["issueId"] == "a" && ending != "retry"
    });
    let before = ground.scratch.steps_of("a").len();
    fs::remove_file(fails).unwrap();
    fs::write(ground.scratch.home().join("go-a"), "").unwrap();
    ground
        .premath(&["retry", "a", "--note", "mind the gap"])
        .exits(0);
    ground.event(|e| e["event"] == "step.ended" && e["issueId"] == "a" && e["ending"] == "closed");
    assert_eq!(ground.scratch.steps_of("a").len(), before + 1);
    assert!(prompt(&ground, "a").contains("mind the gap"));
    ground.finish(0);
}

#[test]
fn an_issue_is_retried_without_a_batch() {
    let scratch = Scratch::with_issues(1, &[blocked("a")]);
    let answer = scratch
        .premath(["retry", "a", "--note", "later", "--json"])
        .end()
        .exits(0)
        .json();
    assert_eq!(answer["batchId"], Value::Null);
    let row = scratch.issue("a");
    assert_eq!(
        (&row["status"], &row["notes"]),
        (&json!("open"), &json!("before\n\nlater"))
    );
    assert_eq!(
        row["operator_override"]["reason"],
        "retried by the operator"
    );
    for arguments in [&["batch", "pause"][..], &["cancel", "a"]] {
        scratch
            .premath(arguments.iter().copied())
            .end()
            .exits(1)
            .says("no batch is running")
            .says("hint: start one");
    }
}

#[test]
fn new_issues_and_new_priorities_count_at_the_next_pass() {
    let mut ground = Ground::start(1, &["a", "b", "c"], &[]);
    ground.started(&["a"]);
    ground
        .premath(&["issue", "update", "c", "--priority", "0"])
        .exits(0);
    ground
        .premath(&["issue", "add", "New", "--id", "n", "--priority", "1"])
        .exits(0);
    ground.finish(0);
    let rows = ground.scratch.steps();
    let order: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["issueId"].as_str())
        .collect();
    assert_eq!(order, ["a", "c", "n", "b"]);
}

#[test]
fn lanes_are_added_and_removed_while_the_batch_runs() {
    let mut ground = Ground::start(0, &["a", "b", "c"], &["--lanes", "1"]);
    ground.started(&["a"]);
    ground
        .premath(&["batch", "lanes", "remove", "worker.1"])
        .exits(1)
        .says("it is the last lane");
    ground.premath(&["batch", "lanes", "add", "1"]).exits(0);
    ground.started(&["b"]);
    ground
        .premath(&["batch", "lanes", "remove", "worker.9"])
        .exits(1)
        .says("the lanes are worker.1, worker.2");
    ground
        .premath(&["batch", "lanes", "remove", "worker.1"])
        .exits(0);
    // It finishes its attempt, and takes no other.
    ground.release("a");
    ground.event(|e| e["event"] == "step.ended" && e["issueId"] == "a" && e["ending"] == "closed");
    ground.release("b");
    ground.started(&["c"]);
    ground.finish(0);
    let worker = |id: &str| ground.scratch.steps_of(id)[0]["workerId"].clone();
    assert_eq!(
        ["a", "b", "c"].map(worker),
        ["worker.1", "worker.2", "worker.2"]
    );
}

/// Each verification waits for another one that runs beside it.
const MEETS: &str = r#"touch "$HOME/verifies-$PREMATH_ISSUE_ID"
for i in $(seq 400); do
  [ "$(ls "$HOME" | grep -c verifies-)" -lt 2 ] || exit 0; sleep 0.05
done; exit 1"#;

#[test]
fn the_work_of_an_added_lane_is_verified_beside_that_of_the_first() {
    let scratch = Scratch::with_issues(0, &[issue("a"), issue("b")]);
    let run = scratch.landing_batch(WORK, MEETS);
    let batch = run.args(["--lanes", "1"]).start();
    let mut ground = Ground {
        scratch,
        batch: Some(batch),
    };
    ground.started(&["a"]);
    ground.premath(&["batch", "lanes", "add", "1"]).exits(0);
    ground.started(&["b"]);
    ground.finish(0);
    for id in ["a", "b"] {
        assert_eq!(ground.scratch.steps_of(id).len(), 1, "{id}");
    }
}

#[test]
fn lanes_that_were_named_are_not_added_to() {
    let mut ground = Ground::start(1, &["a"], &[]);
    ground.started(&["a"]);
    ground
        .premath(&["batch", "lanes", "add", "1"])
        .exits(1)
        .says("its worktrees are named");
    ground.premath(&["batch", "lanes", "add", "0"]).exits(2);
    ground.finish(0);
}

#[test]
fn the_socket_of_a_batch_that_was_killed_is_named_and_replaced() {
    let mut ground = Ground::start(1, &["a"], &[]);
    ground.started(&["a"]);
    ground.batch().signal(Signal::KILL);
    ground.batch.take().unwrap().wait();
    ground
        .premath(&["batch", "drain"])
        .exits(1)
        .says("no batch is running")
        .says("a batch that was killed left its socket");
    let again = ground.scratch.batch(WORK, "true").start();
    ground.batch = Some(again);
    ground.dispatched("a", 1);
    ground.premath(&["batch", "drain"]).exits(0);
    ground.finish(143);
}

#[test]
fn an_attempt_is_cancelled_while_its_work_is_verified_to_land() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    // The work of `b` waits in the landing queue behind that of `a`.
    let work = r#"echo x > "src/$PREMATH_ISSUE_ID.txt"; [ "$PREMATH_ISSUE_ID" = a ] || exit 0"#;
    let verify = "echo verifying; [ ! -e src/a.txt ] || sleep 600";
    let run = scratch.landing_batch(work, verify);
    let mut ground = Ground {
        batch: Some(run.start()),
        scratch,
    };
    ground.speaks("a.1.verify.stdout");
    let answer = ground.premath(&["cancel", "a"]).exits(0).json();
    assert_eq!(answer["issues"][0]["salvage"], "harness/salvage/a/1");
    ground.over(1);
    assert_eq!(ground.scratch.issue("a")["status"], "deferred");
    assert_eq!(ground.scratch.issue("b")["status"], "closed");
    let target = "harness/integration";
    assert_eq!(ground.scratch.file_on(target, "src/a.txt"), None);
    assert!(ground.scratch.file_on(target, "src/b.txt").is_some());
}

/// The grace of a cancelled command.
const GRACE: Duration = Duration::from_millis(500);

#[track_caller]
fn cancels(agent: Agent) {
    let scratch = Scratch::with_issues(1, &[titled("a", "hang-deaf", 1)]);
    let agent_line = command_line(agent, "");
    let settings = format!(
        "[agent]\nuse = [\"{agent}\"]\n{agent}_cmd = '''echo x > src/a.txt; {agent_line}'''\n\
         [supervision]\ngrace = \"{}ms\"\n",
        GRACE.as_millis(),
        agent = agent.as_str(),
    );
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    let arguments = ["--json", "--override-reason", "test", "--landing", "none"];
    let run = scratch.run(&binaries().coordinator).args(arguments);
    let run = run.args(["--verify-cmd", "true"]).args(NO_STARTUP);
    let run = run.arg("--worktree").arg(&scratch.lanes[0]);
    let mut ground = Ground {
        batch: Some(run.start()),
        scratch,
    };
    ground.speaks(".work.stdout");
    let began = Instant::now();
    let answer = ground.premath(&["cancel", "a"]).exits(0).json();
    let took = began.elapsed();
    // In quick form the machine is busy with other tests.
    let slack = Length::asked("the time in which an attempt is cancelled").pick(3, 0);
    let most = GRACE + Duration::from_secs(1 + slack);
    assert!(took < most, "{took:?}");
    let left = processes_in(&ground.scratch.folder());
    let is_agent = |line: &String| line.contains("premath-scripted-agent");
    assert!(!left.iter().any(is_agent), "{left:#?}");
    assert_eq!(answer["issues"][0]["salvage"], "harness/salvage/a/1");
    let kept = ground.scratch.file_on("harness/salvage/a/1", "src/a.txt");
    assert_eq!(kept.as_deref(), Some("x\n"));
    assert_eq!(ground.scratch.issue("a")["status"], "deferred");
    ground.over(1);
}

#[test]
fn a_deaf_claude_is_cancelled() {
    cancels(Agent::Claude);
}

#[test]
fn a_deaf_codex_is_cancelled() {
    cancels(Agent::Codex);
}

#[test]
fn a_deaf_gemini_is_cancelled() {
    cancels(Agent::Gemini);
}

#[test]
fn a_deaf_opencode_is_cancelled() {
    cancels(Agent::OpenCode);
}

#[test]
fn an_operators_server_does_what_the_commands_do() {
    let rows: Vec<Value> = ["a", "b", "c"].iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(0, &rows);
    with_instruction(&scratch);
    let mut ground = Ground::on(scratch, &["--lanes", "1", "--new-batch"]);
    ground.started(&["a"]);
    let mut tools = Tools::of(&ground.scratch);
    let paused = tools.call("batch_pause", json!({"reason": "a look"}));
    assert_eq!(
        (&paused["action"], &paused["result"]),
        (&json!("batch.pause"), &json!("done"))
    );
    let cancelled = tools.call("issue_cancel", json!({"issues": ["a"]}));
    assert_eq!(cancelled["issues"][0]["salvage"], "harness/salvage/a/1");
    let row = ground.scratch.issue("a");
    assert_eq!(row["status"], "deferred");
    assert_eq!(row["instructed_change"]["asked_by"], "mcp:e2e");
    let retried = tools.call("issue_retry", json!({"issues": ["a"], "note": "by tool"}));
    assert_eq!(retried["result"], "done");
    tools.call("batch_lanes_add", json!({"count": 1}));
    tools.call("batch_resume", json!({}));
    ground.dispatched("a", 2);
    ground.started(&["b"]);
    tools.call("batch_lanes_remove", json!({"lane": "worker.2"}));
    tools.call("batch_drain", json!({}));
    drop(tools);
    ground.finish(143);
    assert!(prompt(&ground, "a").contains("by tool"));
    let requests = ground.requests();
    let done = |row: &&Value| row["resultClass"] == "ok";
    assert_eq!(requests.iter().filter(done).count(), 7);
    assert_eq!(requests[0]["control"]["operator"], "mcp:e2e");
}

/// A step that is not confined reaches the socket and the token, and is known by
/// the processes above it.
#[test]
fn an_unconfined_step_is_not_answered() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let root = scratch.root.display();
    let probe = env!("CARGO_BIN_EXE_premath-probe");
    let work = format!(
        r#"cd /; token=$(cat {root}/.premath/private/control-*); [ -n "$token" ] || exit 3
cd {root}/.git/premath-control; socket=$(echo *.sock); [ -S "$socket" ] || exit 4
try() {{ if "$@" control "$socket" "$token"; then echo answered; else echo refused; fi >> "$HOME/tried"; }}
try {probe}; try env -i {probe}; try setsid env -i {probe}
( ( try setsid env -i {probe}; touch "$HOME/orphan" ) & ); until [ -e "$HOME/orphan" ]; do sleep 0.05; done
cd {root}; if env -i "$E2E_PREMATH" batch stop; then echo answered; else echo refused; fi >> "$HOME/tried"
if env -i "$E2E_PREMATH" cancel a; then echo answered; else echo refused; fi >> "$HOME/tried"
if env -i "$E2E_PREMATH" retry a --note x; then echo answered; else echo refused; fi >> "$HOME/tried""#
    );
    let ended = scratch
        .batch(&work, "true")
        .args(["--sandbox", "none"])
        .end()
        .exits(0);
    let tried = fs::read_to_string(scratch.home().join("tried")).unwrap();
    assert_eq!(tried, "refused\n".repeat(7));
    assert_eq!(scratch.issue("a")["status"], "closed");
    let rows = scratch.trajectory();
    assert!(rows.iter().all(|row| row["action"] != "operator.control"));
    // It is reported, once.
    let warned = |e: &&Value| {
        let detail = e["detail"].as_str().unwrap_or_default();
        e["event"] == "batch.warning" && detail.contains("control socket")
    };
    assert_eq!(ended.events().iter().filter(warned).count(), 1);
}

#[test]
fn a_batch_is_not_asked_about_the_issues_of_another_repository() {
    let mut ground = Ground::start(1, &["a"], &[]);
    ground.started(&["a"]);
    let other = Scratch::with_issues(0, &[issue("a")]);
    let store = other.issues_path();
    for command in [&["cancel", "a"][..], &["retry", "a"]] {
        let mut arguments = command.to_vec();
        arguments.extend(["--issues", store.to_str().unwrap()]);
        ground
            .premath(&arguments)
            .exits(2)
            .says("run the command there");
    }
    assert_eq!(other.issue("a"), issue("a"));
    ground.release("a");
    ground.finish(0);
}
