//! What a step leaves behind, and what it does not.

use premath_tests::{Scratch, binaries, issue, workspace};
use serde_json::Value;
use std::fs;

const EDIT: &str = r#"echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt""#;

pub(super) fn fast_retries(scratch: &Scratch) {
    let config = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
}

/// The lane is on its own branch, without a change of anybody.
#[track_caller]
fn is_back(scratch: &Scratch) {
    let git = git2::Repository::open(&scratch.lanes[0]).unwrap();
    let head = git.find_reference("HEAD").unwrap();
    assert_eq!(
        head.symbolic_target().unwrap(),
        Some("refs/heads/lane-1"),
        "the lane left its branch"
    );
    let mut options = git2::StatusOptions::new();
    options.include_untracked(true);
    let changes: Vec<String> = git
        .statuses(Some(&mut options))
        .unwrap()
        .iter()
        .map(|entry| entry.path().unwrap_or("?").to_owned())
        .collect();
    assert_eq!(changes, [""; 0], "the lane is not clean");
}

#[test]
fn a_dirty_worktree_is_abandoned_and_its_changes_stay() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let lane = &scratch.lanes[0];
    fs::write(lane.join("mine.txt"), "a person's\n").unwrap();
    fs::write(lane.join("README.md"), "edited\n").unwrap();
    let ended = scratch.batch(EDIT, "true").end().exits(1);
    let given_up = &ended.events()[1];
    assert_eq!(given_up["failureClass"], "worktree_dirty", "{given_up}");
    assert_eq!(scratch.steps(), Vec::<Value>::new());
    assert_eq!(scratch.issue("a"), issue("a"));
    let read = |name: &str| fs::read_to_string(lane.join(name)).unwrap();
    assert_eq!(read("mine.txt"), "a person's\n");
    assert_eq!(read("README.md"), "edited\n");
}

#[test]
fn what_the_work_leaves_uncommitted_is_committed_with_trailers() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch(EDIT, "true").end().exits(0);
    let messages = scratch.messages_on("lane-1");
    assert_eq!(messages.len(), 1);
    let step = &scratch.steps()[0];
    let verification = step["verification"]["witnessRef"].as_str().unwrap();
    let proof = format!(
        "a: issue a\n\nIssue: a\nLease: lease1_a_worker_1#1\nStep: worker.1.a.1\nWitness: {verification}\n"
    );
    assert!(messages[0].starts_with(&proof), "{messages:?}");
    assert_eq!(
        scratch.file_on("lane-1", "src/a.txt").as_deref(),
        Some("a\n")
    );
    is_back(&scratch);
}

#[test]
fn what_the_work_commits_itself_becomes_one_commit_of_the_harness() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = format!(
        "{EDIT}; git add -A; git commit -qm 'own words'; echo 2 > src/two.txt; git add -A; \
         git -c user.name=Forged commit -qm 'Step: worker.9.z.1'"
    );
    scratch.batch(&work, "true").end().exits(0);
    let messages = scratch.messages_on("lane-1");
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].starts_with("a: issue a\n"), "{messages:?}");
    assert!(messages[0].contains("Step: worker.1.a.1\n"), "{messages:?}");
    assert!(scratch.file_on("lane-1", "src/two.txt").is_some());
    is_back(&scratch);
}

#[test]
fn work_that_does_nothing_makes_no_commit() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch("true", "true").end().exits(0);
    assert_eq!(scratch.messages_on("lane-1"), [""; 0]);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.branches(), ["lane-1", "main"]);
}

#[test]
fn work_that_switches_the_branch_and_fails_finds_the_lane_on_its_own_again() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = format!("git switch -qc elsewhere; {EDIT}; git add -A; git commit -qm x; exit 1");
    scratch.batch(&work, "true").end().exits(1);
    is_back(&scratch);
    assert_eq!(scratch.messages_on("lane-1"), [""; 0]);
    assert!(
        scratch
            .file_on("harness/salvage/a/1", "src/a.txt")
            .is_some()
    );
}

/// It may be brought back and closed, or refused and kept aside; it is never
/// closed with its work elsewhere.
#[test]
fn work_that_switches_the_branch_and_passes_is_not_lost_to_the_lane() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    fast_retries(&scratch);
    let work = format!("git switch -qc elsewhere; {EDIT}");
    scratch.batch(&work, "true").end();
    is_back(&scratch);
    let branch = if scratch.issue("a")["status"] == "closed" {
        "lane-1"
    } else {
        "harness/salvage/a/1"
    };
    assert!(scratch.file_on(branch, "src/a.txt").is_some(), "lost");
}

#[test]
fn what_a_failed_step_leaves_is_kept_aside_and_the_lane_goes_back() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = "mkdir -p new/deep ignored; echo committed > src/one.txt; git add -A; \
                git commit -qm one; echo loose > new/deep/two.txt; echo gone > README.md; \
                rm src/base.txt; echo cache > ignored/cache; exit 1";
    scratch.batch(work, "true").end().exits(1);
    is_back(&scratch);
    let salvage = "harness/salvage/a/1";
    let kept = |path: &str| scratch.file_on(salvage, path);
    assert_eq!(kept("src/one.txt").as_deref(), Some("committed\n"));
    assert_eq!(kept("new/deep/two.txt").as_deref(), Some("loose\n"));
    assert_eq!(kept("README.md").as_deref(), Some("gone\n"));
    assert_eq!(kept("src/base.txt"), None);
    let lane = &scratch.lanes[0];
    assert!(lane.join("src/base.txt").exists());
    assert!(!lane.join("new").exists());
    assert!(lane.join("ignored/cache").exists(), "ignored files stay");
    assert_eq!(scratch.messages_on("lane-1"), [""; 0]);
}

#[test]
fn a_failed_verification_is_retried_with_its_words_in_the_prompt() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let policy = "worktrees.example/project/policies/control/harness-retry-policy-v1.json";
    fs::copy(workspace().join(policy), scratch.root.join("policy.json")).unwrap();
    let config = "[batch]\nretry_policy = \"policy.json\"\n[backoff]\nfixed_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let work = r#"cp "$PREMATH_PROMPT_FILE" "$HOME/prompt-$PREMATH_LEASE_GENERATION"
echo "$PREMATH_LEASE_GENERATION" > src/a.txt"#;
    let verify = "grep -q 2 src/a.txt || { echo 'the flux is inverted' >&2; exit 1; }";
    scratch.batch(work, verify).end().exits(0);
    let prompt =
        |number: u32| fs::read_to_string(scratch.home().join(format!("prompt-{number}"))).unwrap();
    assert!(!prompt(1).contains("flux"));
    assert!(prompt(2).contains("the flux is inverted"), "{}", prompt(2));
    assert!(prompt(2).contains("check_failed"), "{}", prompt(2));
    assert_eq!(
        scratch
            .file_on("harness/salvage/a/1", "src/a.txt")
            .as_deref(),
        Some("1\n")
    );
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2);
    assert_eq!(
        steps[0]["resultClass"],
        "retry_needed_lease_active_transport_dispatched"
    );
    assert_eq!(steps[1]["resultClass"], "completed");
}

#[test]
fn a_row_says_what_was_done_with_its_issue() {
    let scratch = Scratch::with_issues(1, &["a", "b", "c", "d"].map(issue));
    let config = "[backoff]\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let work = format!(
        "case $PREMATH_ISSUE_ID.$PREMATH_LEASE_GENERATION in b.*) exit 1;; c.1) exit 75;; esac; {EDIT}"
    );
    let verify = "[ $PREMATH_ISSUE_ID != a ]";
    scratch.batch(&work, verify).end().exits(1);
    let row = |id: &str| {
        let row = scratch.steps_of(id).remove(0);
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("resultClass"), text("nextStep"))
    };
    for (id, class, next) in [
        ("a", "failed_issue_blocked", "stop"),
        (
            "b",
            "failed_lease_released_transport_dispatched",
            "claim_next",
        ),
        (
            "c",
            "retry_needed_lease_active_transport_dispatched",
            "claim_next",
        ),
        ("d", "completed", "release_closed"),
    ] {
        assert_eq!(row(id), (class.to_owned(), next.to_owned()), "{id}");
    }
    let query = |mode: &str| scratch.premath(["harness-trajectory", "query", "--mode", mode]);
    let retry = query("retry-needed").arg("--json").end().exits(0).json();
    let steps = retry["items"].as_array().unwrap().iter();
    let steps: Vec<_> = steps.map(|row| &row["stepId"]).collect();
    assert_eq!(steps, ["worker.1.c.1"]);
    let text = query("latest").end().exits(0).stdout;
    for (step, word) in [
        ("worker.1.a.1", "blocked"),
        ("worker.1.b.1", "failed"),
        ("worker.1.c.1", "retry"),
        ("worker.1.c.2", "completed"),
    ] {
        let mut lines = text.lines().filter(|line| line.contains(step));
        assert!(
            lines.any(|line| line.split_whitespace().nth(3) == Some(word)),
            "{text}"
        );
    }
    // The session, which the next boot reads, says the same.
    let session = scratch.lanes[0].join(".premath/harness_session.json");
    let session: serde_json::Value = serde_json::from_slice(&fs::read(session).unwrap()).unwrap();
    assert_eq!(session["summary"], "closed d");
}

#[test]
fn an_issue_whose_verification_fails_permanently_is_blocked_with_notes() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch(EDIT, "exit 1").end().exits(1);
    let row = scratch.issue("a");
    assert_eq!(row["status"], "blocked");
    assert!(row["notes"].as_str().unwrap().contains("check_failed"));
    assert!(row.get("lease").is_none(), "{row}");
    is_back(&scratch);
}

#[test]
fn an_issue_whose_attempts_are_used_up_is_not_dispatched_again_by_another_lane() {
    let rows: Vec<_> = (0..40).map(|n| issue(&format!("u-{n:02}"))).collect();
    let scratch = Scratch::with_issues(4, &rows);
    // They all fail alike, and none shall be spared for it.
    let config = "[breaker]\nfailures = 0\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    scratch.batch("exit 1", "true").end().exits(1);
    for (id, row) in scratch.issues() {
        assert_eq!(scratch.steps_of(&id).len(), 1, "{id} was dispatched again");
        assert_eq!(row["status"], "open");
    }
}

#[test]
fn work_that_moves_to_a_branch_of_its_own_drops_no_commit_of_an_earlier_step() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = format!(
        "{EDIT}; if [ $PREMATH_ISSUE_ID = b ]; then git stash -qu; \
         git switch -q --detach main; git stash pop -q; fi"
    );
    scratch.batch(&work, "true").end().exits(0);
    is_back(&scratch);
    // The branch `main` is not in the step's git folder: the files stay.
    assert_eq!(scratch.messages_on("lane-1").len(), 2);
    for name in ["src/a.txt", "src/b.txt"] {
        assert!(scratch.file_on("lane-1", name).is_some(), "{name} is lost");
    }
}

#[test]
fn work_that_resets_its_branch_changes_files_and_no_history() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = format!("[ $PREMATH_ISSUE_ID = a ] || git reset -q --hard HEAD~1; {EDIT}");
    scratch.batch(&work, "true").end().exits(0);
    is_back(&scratch);
    // What it took back is a change like any other, on top of what was there.
    assert_eq!(scratch.messages_on("lane-1").len(), 2);
    assert!(scratch.file_on("lane-1", "src/a.txt").is_none());
    assert!(scratch.file_on("lane-1", "src/b.txt").is_some());
}

#[test]
fn a_process_that_the_work_leaks_is_gone_before_the_next_step() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"if [ "$PREMATH_ISSUE_ID" = a ]; then
  setsid sh -c 'echo $$ > "$HOME/leaked"; exec sleep 1000' >/dev/null 2>&1 &
  until [ -s "$HOME/leaked" ]; do sleep 0.01; done
elif kill -0 "$(cat "$HOME/leaked")"; then
  echo alive > "$HOME/seen"
else
  echo gone > "$HOME/seen"
fi"#;
    scratch.batch(work, "true").end().exits(0);
    let seen = fs::read_to_string(scratch.home().join("seen")).unwrap();
    assert_eq!(seen, "gone\n");
    scratch.no_process_left();
}

#[test]
fn a_follow_up_is_filed_when_its_step_closes() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = r#"[ "$PREMATH_ISSUE_ID" = a ] || exit 0
"$E2E_PREMATH" issue discover a 'found on the way' --priority 1"#;
    scratch.batch(work, "true").end().exits(0);
    let issues = scratch.issues();
    let found: Vec<&Value> = issues
        .values()
        .filter(|row| row["title"] == "found on the way")
        .collect();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0]["dependencies"][0]["depends_on_id"], "a");
    assert_eq!(found[0]["dependencies"][0]["type"], "discovered-from");
    assert_eq!(found[0]["status"], "closed", "it was worked on too");
}

#[test]
fn a_follow_up_of_an_escalation_is_left_for_later_by_every_lane() {
    // By id, most follow-ups are the next that a lane would take.
    let issues: Vec<Value> = (0..60).map(|n| issue(&format!("z-zz{n:02}"))).collect();
    let scratch = Scratch::with_issues(6, &issues);
    let config = "[breaker]\nfailures = 0\n\
                  [backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let ended = scratch.batch("kill -9 $$", "true").end().exits(1);
    let mut filed = scratch.issues();
    filed.retain(|_, row| row["title"].as_str().unwrap().starts_with("Follow up on"));
    assert_eq!(filed.len(), 60);
    let mut worked_on = scratch.steps();
    worked_on.retain(|row| filed.contains_key(row["issueId"].as_str().unwrap()));
    assert_eq!(worked_on, Vec::<Value>::new(), "{ended:?}");
}

#[test]
fn a_follow_up_of_a_step_that_fails_is_not_filed() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = r#""$E2E_PREMATH" issue discover a 'found on the way'"#;
    scratch.batch(work, "exit 1").end().exits(1);
    assert_eq!(scratch.issues().len(), 1);
}

#[test]
fn a_step_cannot_change_an_issue_by_itself() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"[ "$PREMATH_ISSUE_ID" = a ] || exit 0
"$E2E_PREMATH" issue update b --title changed --json > "$HOME/answer"
echo $? > "$HOME/code""#;
    scratch.batch(work, "true").end().exits(0);
    let read = |name: &str| fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_eq!(read("code"), "1\n");
    let answer: Value = serde_json::from_str(&read("answer")).unwrap();
    assert_eq!(
        answer["failureClasses"],
        serde_json::json!(["mutation.use_evidence_missing"])
    );
    assert_eq!(scratch.issue("b")["title"], "issue b");
}

#[test]
fn a_step_cannot_start_a_batch() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let coordinator = premath_tests::binaries().coordinator.display().to_string();
    let work =
        format!("'{coordinator}' --work-cmd true --verify-cmd true; echo $? > \"$HOME/code\"");
    scratch.batch(&work, "true").end().exits(0);
    let code = fs::read_to_string(scratch.home().join("code")).unwrap();
    assert_eq!(code, "2\n");
}

#[test]
fn commands_read_nothing_from_the_harness_stdin() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = r#"cat > "$HOME/read"; pwd > "$HOME/where""#;
    scratch.batch(work, "true").end().exits(0);
    let read = |name: &str| fs::read_to_string(scratch.home().join(name)).unwrap();
    assert_eq!(read("read"), "");
    assert_eq!(read("where").trim(), scratch.lanes[0].to_str().unwrap());
}

#[test]
fn what_is_in_premath_and_artifacts_is_never_committed_or_cleaned() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = format!(
        "{EDIT}; mkdir -p artifacts .premath; echo x > artifacts/mine; echo x > .premath/mine; \
         [ $PREMATH_ISSUE_ID = a ]"
    );
    scratch.batch(&work, "true").end().exits(1);
    for path in ["artifacts/mine", ".premath/mine"] {
        assert_eq!(scratch.file_on("lane-1", path), None, "{path}");
        assert!(scratch.lanes[0].join(path).exists(), "{path} was removed");
    }
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn work_that_changed_nothing_closes_only_an_issue_with_the_label() {
    let mut rows = ["a", "b", "c", "d"].map(issue);
    rows[1]["labels"] = serde_json::json!(["night", "no-change"]);
    rows[3]["dependencies"] =
        serde_json::json!([{"issue_id": "d", "depends_on_id": "c", "type": "blocks"}]);
    let scratch = Scratch::with_issues(1, &rows);
    // The verification passes whatever the work did.
    let work = format!("[ $PREMATH_ISSUE_ID != a ] && {{ echo I cannot; exit 0; }}; {EDIT}");
    scratch.default_batch(&work, "true").end().exits(1);
    let status = |id| scratch.issue(id)["status"].clone();
    assert_eq!(
        ["a", "b", "c", "d"].map(status),
        ["closed", "closed", "open", "open"]
    );
    let classes = &scratch.steps_of("c")[0]["failureClasses"];
    assert_eq!(*classes, serde_json::json!(["work_no_change"]));
    // What waits for it was not started.
    assert_eq!(scratch.steps_of("d").len(), 0);
}

#[test]
fn the_settings_say_whether_work_that_changed_nothing_closes_its_issue() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let config = "[batch]\non_no_change = \"allow\"\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let batch = || scratch.default_batch("true", "true");
    batch().args(["--on-no-change", "refuse"]).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "open");
    is_back(&scratch);
    batch()
        .args(["--on-no-change", "sometimes"])
        .end()
        .exits(2)
        .says("unknown rule `sometimes`; expected `allow` or `refuse`");
    batch().end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_step_gives_no_issue_the_label_by_which_an_operator_lets_it_close() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work =
        format!(r#"{EDIT}; echo '{{"title":"t","labels":["no-change"]}}' >> "$PREMATH_OUTBOX""#);
    scratch.default_batch(&work, "true").end().exits(1);
    let mut filed = scratch.issues().into_values();
    assert!(
        filed.all(|row| row["title"] != "t"),
        "the request was filed"
    );
    assert_eq!(scratch.issue("a")["status"], "open");
}

#[test]
fn a_batch_with_nothing_to_do_says_how_much_waits_and_is_blocked() {
    let mut rows = ["a", "b"].map(issue);
    rows[0]["status"] = "blocked".into();
    rows[1]["dependencies"] =
        serde_json::json!([{"issue_id": "b", "depends_on_id": "a", "type": "blocks"}]);
    let scratch = Scratch::with_issues(1, &rows);
    let run = scratch
        .run(&binaries().coordinator)
        .args(["--override-reason", "test", "--landing", "none"])
        .args(["--work-cmd", "true", "--verify-cmd", "true"])
        .arg("--worktree")
        .arg(&scratch.lanes[0]);
    run.end()
        .exits(0)
        .says("no issue was ready: 1 waiting, 1 blocked");
}

#[test]
fn work_that_no_commit_takes_is_tried_once_and_pauses_nothing() {
    let ids = ["a", "b", "c", "d"];
    let scratch = Scratch::with_issues(1, &ids.map(issue));
    fast_retries(&scratch);
    let work = format!(
        "[ $PREMATH_ISSUE_ID = d ] && {EDIT} || ln -s /usr/share/zoneinfo/UTC src/$PREMATH_ISSUE_ID"
    );
    let ended = scratch.landing_batch(&work, "true").end().exits(1);
    for id in ["a", "b", "c"] {
        let steps = scratch.steps_of(id);
        assert_eq!(steps.len(), 1, "{id}: {steps:#?}");
        let classes = &steps[0]["failureClasses"];
        assert_eq!(*classes, serde_json::json!(["work_unfit"]), "{id}");
    }
    assert_eq!(scratch.issue("d")["status"], "closed");
    assert!(!ended.stdout.contains("\"breaker.open\""), "{ended:?}");
}
