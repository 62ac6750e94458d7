//! Files of a person's own worktree that git ignores, and those that
//! verifications are given.

use crate::landing::TARGET;
use premath_tests::{Scratch, issue};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

const SECRET: &str = "TOKEN=never-share-this";

/// A lane of the user's own in which git ignores a file with a secret.
fn lane_with_secret(issues: usize) -> (Scratch, PathBuf) {
    let rows: Vec<_> = ["a", "b"][..issues].iter().map(|id| issue(id)).collect();
    let scratch = Scratch::with_issues(1, &rows);
    fs::write(scratch.root.join(".git/info/exclude"), ".env*\n").unwrap();
    let secret = scratch.lanes[0].join(".env");
    fs::write(&secret, SECRET).unwrap();
    (scratch, secret)
}

fn works(mode: &str) -> bool {
    let scratch = Scratch::with_issues(1, &[]);
    scratch.confines_by(mode, &format!("confinement by {mode}"))
}

#[test]
fn an_ignored_file_never_becomes_work() {
    for mode in ["namespaces", "landlock", "none"] {
        if !works(mode) {
            continue;
        }
        let (scratch, secret) = lane_with_secret(1);
        let work = "printf '!.env\n' > .gitignore; git add -f .env; echo x > src/new.txt";
        let run = scratch.landing_batch(work, "true");
        run.args(["--sandbox", mode]).end().exits(0);
        assert_eq!(scratch.issue("a")["status"], "closed", "{mode}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET, "{mode}");
        for branch in scratch.branches() {
            assert_eq!(scratch.file_on(&branch, ".env"), None, "{mode} {branch}");
        }
        assert!(scratch.file_on(TARGET, "src/new.txt").is_some(), "{mode}");
    }
}

#[test]
fn an_ignored_file_is_not_kept_with_work_that_failed() {
    let (scratch, secret) = lane_with_secret(1);
    let work = "printf '!.env\n' > .gitignore; git add -f .env; echo x > src/new.txt; exit 1";
    scratch.landing_batch(work, "true").end().exits(1);
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
    let kept = scratch.branches();
    let salvage = kept.iter().find(|name| name.contains("salvage"));
    let salvage = salvage.expect("the work is kept");
    assert!(scratch.file_on(salvage, "src/new.txt").is_some());
    assert_eq!(scratch.file_on(salvage, ".env"), None);
}

#[test]
fn a_step_sees_an_empty_file_in_the_place_of_a_secret() {
    if !works("namespaces") {
        return;
    }
    let (scratch, secret) = lane_with_secret(2);
    let work = "cat .env > src/$PREMATH_ISSUE_ID.txt; echo forged > .env; rm -f .env; true";
    let run = scratch.landing_batch(work, "true");
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    for id in ["a", "b"] {
        let seen = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(seen.as_deref(), Some(""), "{id}");
    }
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
}

#[test]
fn secrets_in_ignored_folders_are_empty_too() {
    if !works("namespaces") {
        return;
    }
    let (scratch, _) = lane_with_secret(1);
    let lane = &scratch.lanes[0];
    for at in ["ignored/.env", ".env.d/x", "ignored/real"] {
        let at = lane.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, SECRET).unwrap();
    }
    std::os::unix::fs::symlink("ignored/real", lane.join(".env.link")).unwrap();
    let work = "cat ignored/.env .env.link .env.d/x > src/a.txt; true";
    let run = scratch.landing_batch(work, "true");
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    let seen = scratch.file_on(TARGET, "src/a.txt");
    assert_eq!(seen.as_deref(), Some(""));
    for at in ["ignored/.env", ".env.d/x", "ignored/real"] {
        assert_eq!(fs::read_to_string(lane.join(at)).unwrap(), SECRET, "{at}");
    }
}

/// A step can leave any number of them for the next batch.
#[test]
fn a_lane_with_more_secrets_than_can_be_hidden_is_given_up() {
    if !works("namespaces") {
        return;
    }
    let (scratch, _) = lane_with_secret(1);
    for number in 0..1_000 {
        fs::write(scratch.lanes[0].join(format!(".env{number}")), "").unwrap();
    }
    let run = scratch.landing_batch("true", "true");
    let ended = run.args(["--sandbox", "namespaces"]).end();
    assert_ne!(ended.code, Some(0));
    let said = "1001 ignored files that are named like secrets";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    assert_eq!(scratch.issue("a")["status"], "open");
}

/// The lane of the first batch has no file there, that of the second has.
#[test]
fn a_lane_is_given_up_where_what_landed_would_replace_its_ignored_file() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    fs::write(scratch.root.join(".git/info/exclude"), ".env*\n").unwrap();
    let secret = scratch.lanes[0].join(".env");
    fs::write(&secret, SECRET).unwrap();
    let batch = |lane: usize, work: &str| {
        let run = scratch.landing_worker(lane, "w", work, "true");
        run.args(["--sandbox", "none", "--max-steps", "1"])
    };
    let work = "printf '!.env\n' > .gitignore; echo forged > .env";
    batch(1, work).end().exits(0);
    assert_eq!(scratch.file_on(TARGET, ".env").as_deref(), Some("forged\n"));
    let ended = batch(0, "echo x > new").end();
    assert_ne!(ended.code, Some(0));
    let printed = "in the place of this ignored file";
    assert!(
        ended.stdout.contains(printed) || ended.stderr.contains(printed),
        "{ended:?}"
    );
    assert_eq!(fs::read_to_string(&secret).unwrap(), SECRET);
}

#[test]
fn a_folder_above_a_secret_is_not_renamed() {
    if !works("namespaces") {
        return;
    }
    let (scratch, _) = lane_with_secret(2);
    let nested = scratch.lanes[0].join("src/deep/.env");
    fs::create_dir_all(nested.parent().unwrap()).unwrap();
    fs::write(&nested, SECRET).unwrap();
    let work = "mv src/deep src/other && exit 9; mv src gone && exit 9; printf '' > .gitignore
        cat src/deep/.env other/.env > src/$PREMATH_ISSUE_ID.txt; echo x > src/deep/new.txt; true";
    let run = scratch.landing_batch(work, "true");
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    for id in ["a", "b"] {
        let seen = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(seen.as_deref(), Some(""), "{id}");
    }
    assert!(scratch.file_on(TARGET, "src/deep/new.txt").is_some());
    assert_eq!(fs::read_to_string(&nested).unwrap(), SECRET);
}

#[test]
fn a_folder_above_another_worktree_is_not_renamed() {
    if !works("namespaces") {
        return;
    }
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    fs::write(scratch.root.join(".git/info/exclude"), "/wt/\n").unwrap();
    let other = scratch.root.join("wt/feature");
    let add = ["worktree", "add", "-q", "wt/feature", "-b", "feature"];
    scratch.git_command(add).end().exits(0);
    fs::write(other.join("draft.txt"), SECRET).unwrap();
    let work = "test -z \"$(ls -A wt/feature)\" || exit 8; mv wt wt2 && exit 9
        rm -rf wt/feature; echo x > new";
    let run = scratch.landing_batch(work, "true");
    let run = run.arg("--worktree").arg(&scratch.root);
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    let draft = fs::read_to_string(other.join("draft.txt"));
    assert_eq!(draft.unwrap(), SECRET);
}

#[test]
fn a_folder_above_the_issues_is_not_renamed() {
    if !works("namespaces") {
        return;
    }
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    fs::write(scratch.root.join(".git/info/exclude"), "/plan/\n").unwrap();
    let issues = scratch.root.join("plan/mem/issues.jsonl");
    fs::create_dir_all(issues.parent().unwrap()).unwrap();
    fs::rename(scratch.issues_path(), &issues).unwrap();
    let work = "ls plan/mem; mv plan plan2 && exit 9; rmdir plan/mem && exit 9; echo x > new";
    let run = scratch.landing_batch(work, "true");
    let run = run.arg("--worktree").arg(&scratch.root);
    let run = run.arg("--issues-path").arg(&issues);
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    let rows = fs::read_to_string(issues).unwrap();
    assert!(rows.contains("\"closed\""), "{rows}");
}

#[test]
fn landlock_says_that_a_step_can_read_a_secret() {
    if !works("landlock") {
        return;
    }
    let (scratch, _) = lane_with_secret(1);
    let run = scratch.landing_batch("true", "true");
    let ended = run.args(["--sandbox", "landlock"]).end().exits(0);
    assert!(ended.stdout.contains("can read .env"), "{}", ended.stdout);
}

/// Files that git does not track reach a verification by the key alone.
#[test]
fn a_verification_has_what_the_key_provides() {
    let (scratch, _) = lane_with_secret(1);
    fs::write(scratch.root.join(".env.test"), "A=1\n").unwrap();
    let verify = "grep -q A=1 .env.test";
    let settings = scratch.root.join("harness.toml");
    fs::write(&settings, format!("[batch]\nstartup_cmd = \"{verify}\"\n")).unwrap();
    let ended = scratch.landing_batch("true", verify).end().exits(3);
    let hint = ".env.test: list files in `provide` under [verify]";
    assert!(ended.stdout.contains(hint), "{}", ended.stdout);
    assert_eq!(scratch.issue("a")["status"], "open");

    let text =
        format!("[batch]\nstartup_cmd = \"{verify}\"\n[verify]\nprovide = [\".env.test\"]\n");
    fs::write(&settings, text).unwrap();
    // The work neither sees it nor changes it.
    let work = "test ! -e .env.test && echo B=2 > .env.test";
    scratch.landing_batch(work, verify).end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
}

#[test]
fn a_provided_file_that_is_missing_refuses_the_batch_with_its_line() {
    let (scratch, _) = lane_with_secret(1);
    let text = "[verify]\nprovide = [\"config/.env\"]\n";
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
    let ended = scratch.landing_batch("true", "true").end().exits(2);
    ended.says("harness.toml:2: `provide` names `config/.env`");
}

/// A repository whose verification is strict by a provided file, and one issue.
fn strict(provided: &str, ignored: &str) -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    fs::create_dir(scratch.root.join("conf")).unwrap();
    fs::write(scratch.root.join("conf/a"), "a\n").unwrap();
    for arguments in [
        &["add", "-A", "--", ":!.premath"][..],
        &["commit", "-qm", "files"],
    ] {
        scratch
            .git_command(arguments.iter().copied())
            .end()
            .exits(0);
    }
    let git = scratch.git_command(["switch", "-q", "--detach", "main"]);
    git.within(&scratch.lanes[0]).end().exits(0);
    fs::write(scratch.root.join(".git/info/exclude"), ignored).unwrap();
    fs::write(scratch.root.join(provided), "MODE=strict\n").unwrap();
    let settings = format!("[verify]\nprovide = [\"{provided}\"]\n");
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

/// Passes for broken work where the provided file is not the operator's.
fn strict_verify(provided: &str) -> String {
    format!(". ./{provided}; test \"$MODE\" != strict || ! test -e src/broken")
}

#[test]
fn a_step_that_replaces_a_provided_file_or_its_folder_is_refused() {
    let tracks = "echo MODE=lax > .env.test; printf '!.env.test\n' > .gitignore; \
                  git add -f .env.test";
    let links = "mkdir other; mv conf/a other/; rm -rf conf; ln -s other conf; \
                 echo MODE=lax > other/.env.ci";
    for (provided, ignored, work) in [
        (".env.test", "", tracks),
        ("conf/.env.ci", "/conf/.env*\n", links),
    ] {
        let scratch = strict(provided, ignored);
        let work = format!("touch src/broken; {work}");
        let batch = scratch.landing_batch(&work, &strict_verify(provided));
        batch.end().exits(1);
        assert_ne!(scratch.issue("a")["status"], "closed", "{provided}");
        let rows = scratch.trajectory();
        let refused = |row: &&Value| row["failureClasses"] == json!(["work_protected_path"]);
        assert!(rows.iter().any(|row| refused(&row)), "{rows:?}");
        assert_eq!(scratch.file_on(TARGET, "src/broken"), None, "{provided}");
    }
}

/// The target tracks a file that the operator's base does not.
#[test]
fn nothing_is_verified_where_a_provided_file_cannot_be_put_in_place() {
    let scratch = strict("conf/.env.ci", "/conf/.env*\n");
    for arguments in [
        &["switch", "-qc", TARGET][..],
        &["add", "-f", "conf/.env.ci"],
        &["commit", "-qm", "tracked"],
        &["switch", "-q", "main"],
    ] {
        scratch
            .git_command(arguments.iter().copied())
            .end()
            .exits(0);
    }
    fs::write(scratch.root.join("conf/.env.ci"), "MODE=strict\n").unwrap();
    let batch = scratch.landing_batch("echo x > src/new.txt", "true");
    batch.end().exits(1);
    assert_ne!(scratch.issue("a")["status"], "closed");
    let rows = scratch.trajectory();
    let refused = |row: &&Value| row["failureClasses"] == json!(["work_protected_path"]);
    assert!(rows.iter().any(|row| refused(&row)), "{rows:?}");
    assert_eq!(scratch.file_on(TARGET, "src/new.txt"), None);
}
