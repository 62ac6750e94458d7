//! A batch after a batch: new commits were made in between, or the landing
//! target was deleted.

use super::landing::{OWN, TARGET};
use premath_tests::{Ended, PATIENCE, Scratch, binaries, issue, until};
use serde_json::Value;
use std::fs;

/// What a batch reports about the landing target before its first step.
fn target_details(ended: &Ended) -> Vec<String> {
    let events = ended.events();
    let of_target = events
        .iter()
        .filter(|event| event["event"] == "landing.target" || event["event"] == "batch.warning");
    let detail = |event: &Value| event["detail"].as_str().unwrap().to_owned();
    // The tests write issues by hand, which is warned of as well.
    let by_hand = |detail: &String| {
        detail.starts_with("memory_changed_outside") || detail.contains("premath observe")
    };
    of_target
        .map(detail)
        .filter(|text| !by_hand(text))
        .collect()
}

fn git(scratch: &Scratch, arguments: &[&str]) -> String {
    let ended = scratch.git_command(arguments.iter().copied()).end();
    ended.exits(0).stdout.trim().to_owned()
}

fn short(scratch: &Scratch, name: &str) -> String {
    git(scratch, &["rev-parse", name])[..10].to_owned()
}

/// A person commits a file in the main worktree.
fn commit(scratch: &Scratch, name: &str) {
    fs::write(scratch.root.join("src").join(name), "a person's\n").unwrap();
    git(scratch, &["add", "src"]);
    git(scratch, &["commit", "-q", "-m", name]);
}

/// Files an issue, and has it worked on.
fn night(scratch: &Scratch, id: &str) -> Ended {
    let before = fs::read_to_string(scratch.issues_path()).unwrap_or_default();
    scratch.write_issues(format!("{before}{}\n", issue(id)).as_bytes());
    scratch.landing_batch(OWN, "true").end().exits(0)
}

#[test]
fn a_target_that_was_merged_follows_main() {
    let scratch = Scratch::new(1);
    let made = format!(
        "{TARGET} was created from main at {}",
        short(&scratch, "main")
    );
    assert_eq!(target_details(&night(&scratch, "a")), [made]);
    // The work is not merged yet: there is nothing to report.
    assert_eq!(target_details(&night(&scratch, "b")), [""; 0]);

    git(
        &scratch,
        &["merge", "-q", "--no-ff", "-m", "merged", TARGET],
    );
    commit(&scratch, "day.txt");
    let tip = short(&scratch, "main");
    let follows = format!("{TARGET} follows main: 2 commits, now at {tip}");
    assert_eq!(target_details(&night(&scratch, "c")), [follows]);
    let day = scratch.file_on(TARGET, "src/day.txt");
    assert_eq!(day.as_deref(), Some("a person's\n"));

    // The same at a commit.
    git(&scratch, &["switch", "-q", "--detach", TARGET]);
    commit(&scratch, "next.txt");
    let tip = short(&scratch, "HEAD");
    let follows = format!("{TARGET} follows HEAD: 1 commit, now at {tip}");
    assert_eq!(target_details(&night(&scratch, "d")), [follows]);
    let none = ["--landing", "none"];
    commit(&scratch, "last.txt");
    let run = scratch.landing_batch(OWN, "true").args(none).end().exits(0);
    assert_eq!(target_details(&run), [""; 0]);
    assert_eq!(scratch.file_on(TARGET, "src/last.txt"), None);
}

#[test]
fn a_target_that_continued_beside_main_stays_and_is_named() {
    let scratch = Scratch::new(1);
    night(&scratch, "a");
    for name in ["1", "2", "3"] {
        commit(&scratch, name);
    }
    let lacks = "lacks 3 commits of main: merge them into it, or it into main, before the next \
                 batch";
    let doctor = || {
        let accept = [
            "issue",
            "accept-changes",
            "--all",
            "--override-reason",
            "by hand",
        ];
        scratch.premath(accept).end();
        scratch.premath(["doctor"]).end().exits(0).stdout
    };
    assert!(doctor().contains(lacks), "{}", doctor());
    assert_eq!(
        target_details(&night(&scratch, "b")),
        [format!("{TARGET} {lacks}")]
    );
    assert_eq!(scratch.file_on(TARGET, "src/1"), None);
    git(&scratch, &["merge", "-q", "-m", "merged", TARGET]);
    assert!(!doctor().contains("lacks"), "{}", doctor());
}

#[test]
fn a_target_that_another_batch_works_on_is_not_moved() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let wait = r#"touch "$HOME/at"
until [ -e "$HOME/go" ]; do sleep 0.02; done
echo x > src/a.txt"#;
    let running = scratch.landing_batch(wait, "true").start();
    let at = scratch.home().join("at");
    until(PATIENCE, || at.exists().then_some(())).expect("the issue is worked on");
    commit(&scratch, "day.txt");
    let second = scratch.run(&binaries().coordinator).args([
        "--json",
        "--override-reason",
        "test",
        "--work-cmd",
        OWN,
        "--verify-cmd",
        "true",
        "--lanes",
        "1",
    ]);
    let held = format!(
        "{TARGET} lacks 1 commit of main, and is not updated while another batch works on it"
    );
    assert_eq!(target_details(&second.end().exits(0)), [held]);
    assert_eq!(scratch.file_on(TARGET, "src/day.txt"), None);
    fs::write(scratch.home().join("go"), "").unwrap();
    running.wait().exits(0);
}

#[test]
fn a_target_that_is_gone_is_made_and_what_it_lacks_is_named() {
    let scratch = Scratch::new(1);
    night(&scratch, "a");
    git(&scratch, &["merge", "-q", TARGET]);
    night(&scratch, "b");
    git(&scratch, &["branch", "-q", "-D", TARGET]);
    let made = format!(
        "{TARGET} was created from main at {}",
        short(&scratch, "main")
    );
    let ended = night(&scratch, "c");
    let lost = format!(
        "{TARGET} lacks earlier landed work of 1 closed issue (b); list the commits with `premath \
         doctor`"
    );
    assert_eq!(target_details(&ended), [made, lost]);
    let doctor = scratch.premath(["doctor"]).end().exits(1);
    assert!(
        doctor.stdout.contains("closed, but its commit"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn an_issue_that_fails_night_after_night_is_set_aside_until_an_operator_takes_it_up() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let config = "[batch]\nwork_cmd = 'true'\nverify_cmd = 'true'\n\
                  override_reason = 'test'\nset_aside_after = 2\n[breaker]\nfailures = 0\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
    let night = |work: &str| scratch.batch(work, "true").end();
    let tried = |id: &str| scratch.steps_of(id).len();
    night("exit 1").exits(1);
    scratch
        .premath(["issue", "close", "b", "--reason", "done by hand"])
        .end()
        .exits(0);
    night("exit 1").exits(1);
    assert_eq!((tried("a"), tried("b")), (2, 1));
    // The batch of the last failure names it, and so does what is read in the morning.
    let aside = "1 issue(s) are set aside: they failed in 2 batches in a row; `premath retry a`";
    let report = scratch.premath(["report"]).end().exits(0).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains(aside), "{report}");
    let attention = scratch.premath(["observe", "needs_attention"]).end();
    assert!(attention.stdout.contains("set_aside"), "{attention:?}");
    let status = scratch.premath(["status"]).end().exits(0).stdout;
    assert!(status.contains("1 set aside"), "{status}");

    let third = night("true");
    assert_eq!(tried("a"), 2, "it is set aside");
    let warned = target_details(&third);
    let expected = "1 issue(s) are set aside: they failed in 2 batches in a row; `premath retry a` \
                    takes them up";
    assert!(warned.iter().any(|detail| detail == expected), "{warned:?}");
    assert_eq!(scratch.issue("a")["status"], "open");
    for command in ["why a", "plan --lanes 1"] {
        let said = scratch.premath(command.split(" ")).end().exits(0).stdout;
        let expected = "it failed in one batch after another and is set aside";
        assert!(said.contains(expected), "{said}");
    }

    // What an operator changed is worked on, and a close ends the count.
    scratch
        .premath(["retry", "a", "--note", "read src/base.txt"])
        .end()
        .exits(0);
    night("exit 1").exits(1);
    assert_eq!(tried("a"), 3);
    night(OWN).exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_closed_issue_that_is_opened_again_has_no_assignee() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let first = [scratch.lanes[0].clone()];
    scratch.batch("true", "true").end().exits(0);
    for (id, verb) in [("a", &["retry"][..]), ("b", &["issue", "reopen"])] {
        assert!(scratch.issue(id)["assignee"].is_string());
        scratch.premath(verb.iter().copied()).arg(id).end().exits(0);
        assert_eq!(scratch.issue(id).get("assignee"), None, "{id}");
    }
    // Another worker takes it.
    scratch.batch_on(&first, "true", "true").end().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.issue(id)["status"], "closed");
    }
}

#[test]
fn the_status_after_a_night_has_the_issues_of_now() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.batch("true", "true").end().exits(0);
    let status = || scratch.premath(["status"]).end().exits(0);
    status().says("1 closed, 0 ready");
    scratch.premath(["issue", "add", "new"]).end().exits(0);
    status().says("1 closed, 1 ready");
}

#[test]
fn a_batch_that_is_taken_up_reports_what_ended_before() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    let batch = || scratch.landing_batch(OWN, "[ ! -e src/a.txt ]");
    let killed = batch().env("PREMATH_KILL_AT", "target-advanced:2").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    assert_eq!(scratch.issue("a")["status"], "blocked");
    let ended = batch().end().exits(1);
    assert_eq!(ended.events()[0]["resumed"], true);
    let reports = scratch.root.join("artifacts/reports");
    let report = fs::read_dir(reports).unwrap().next().unwrap().unwrap();
    let text = fs::read_to_string(report.path()).unwrap();
    let landed = scratch.steps_of("b")[0]["landing"]["commit"].clone();
    let commit = format!("commit {:.10}", landed.as_str().unwrap());
    let parts = ["2 of 3 attempted issues closed", "a: check_failed", &commit];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    let observed = scratch.premath(["observe", "needs_attention"]).end();
    observed.exits(0).says("a");
}
