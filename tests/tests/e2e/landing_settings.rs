//! What `harness.toml` reports about landing: check, push, protected files,
//! setup; and what a lane is afterwards.

use crate::landing::{
    OWN, TARGET, every_close_is_on_the_target, first_parents, refs_are_accounted_for,
};
use premath_kernel::record::trailers::LandingTrailers;
use premath_tests::image::scripted_engine;
use premath_tests::{Ended, PATIENCE, Scratch, binaries, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

pub(super) fn settings(scratch: &Scratch, text: &str) {
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
}

/// Has every landing checked by a script, once.
pub(super) fn checks_once(scratch: &Scratch, script: &str) {
    let check = scratch.folder().join("check.sh");
    fs::write(&check, script).unwrap();
    let text = format!(
        "[landing]\ncheck_cmd = \"sh {}\"\n[verify]\nflaky_reruns = 0\n",
        check.display()
    );
    settings(scratch, &text);
}

/// A bare repository that records what its branches were, the remote `origin` of
/// a scratch one.
pub(super) struct Remote<'a> {
    scratch: &'a Scratch,
    folder: String,
}

impl<'a> Remote<'a> {
    pub(super) fn of(scratch: &'a Scratch) -> Self {
        let remote = Self::at(scratch);
        let git = |arguments: &[&str]| scratch.git_command(arguments.iter().copied()).end();
        git(&["init", "-q", "--bare", &remote.folder]).exits(0);
        git(&["remote", "add", "origin", &remote.folder]).exits(0);
        remote.git(&["config", "core.logAllRefUpdates", "true"]);
        remote
    }

    /// Returns the remote that is there.
    pub(super) fn at(scratch: &'a Scratch) -> Self {
        let folder = scratch.folder().join("remote.git");
        let folder = folder.to_str().unwrap().to_owned();
        Self { scratch, folder }
    }

    /// Returns every commit that the target was at there, the last one first.
    pub(super) fn tips(&self) -> Vec<String> {
        let tips = self.git(&["reflog", "show", "--format=%H", TARGET]);
        tips.lines().map(str::to_owned).collect()
    }

    /// Returns what git prints in the remote.
    fn git(&self, arguments: &[&str]) -> String {
        let arguments = ["-C", &self.folder]
            .into_iter()
            .chain(arguments.iter().copied());
        let ended = self.scratch.git_command(arguments).end().exits(0);
        ended.stdout.trim().to_owned()
    }

    /// Returns the commit of the target there.
    pub(super) fn tip(&self) -> String {
        self.git(&["rev-parse", TARGET])
    }
}

/// The message of the target's last commit.
fn last_message(scratch: &Scratch) -> String {
    let git = scratch.git();
    let commit = git.find_commit(first_parents(scratch)[0]).unwrap();
    commit.message().unwrap().to_owned()
}

/// The operator's commit on the target meanwhile, made by a command that is not
/// confined and knows where the repository is.
pub(super) fn theirs(scratch: &Scratch) -> String {
    let root = scratch.root.display();
    format!(
        r#"git -C '{root}' worktree add -q --detach "$HOME/other" harness/integration && (cd "$HOME/other" &&
  echo theirs >> src/theirs.txt && git add -A && git commit -qm theirs &&
  git update-ref refs/heads/harness/integration HEAD)
git -C '{root}' worktree remove --force "$HOME/other""#
    )
}

#[test]
fn a_landing_that_cannot_be_taken_back_ends_the_batch() {
    let scratch = Scratch::with_issues(1, &["a", "b"].map(issue));
    // Another commit changes the landed lines before their check fails.
    let theirs = theirs(&scratch).replace("theirs.txt", "a.txt");
    checks_once(&scratch, &format!("{theirs}\nexit 1\n"));
    let run = scratch.landing_batch(OWN, "true");
    let ended = run.args(["--sandbox", "none"]).end().exits(1);
    let steps = scratch.steps();
    assert_eq!(steps.len(), 1, "{steps:#?}");
    let classes = &steps[0]["failureClasses"];
    assert_eq!(
        classes,
        &json!(["landing_check_failed", "landing_not_taken_back"])
    );
    assert_eq!(scratch.issue("b")["status"], "open");
    assert_eq!(
        scratch.file_on(TARGET, "src/a.txt").as_deref(),
        Some("x\ntheirs\n")
    );
    assert_eq!(ended.events().last().unwrap()["endedBy"], "broken_target");
    // The report has the command that repairs it, and does not propose a merge.
    let revert = format!("git switch {TARGET} && git revert ");
    let text = scratch.premath(["report"]).end().exits(0).stdout;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(&revert), "{text}");
    assert!(text.contains(" && git checkout -"), "{text}");
    assert!(!text.contains("git merge"), "{text}");
    let kept = fs::read_dir(scratch.root.join("artifacts/reports")).unwrap();
    let kept = fs::read_to_string(kept.flatten().next().unwrap().path()).unwrap();
    assert!(kept.contains(&revert), "{kept}");
    assert!(!kept.contains("git merge"), "{kept}");
    let attention = scratch.premath(["observe", "needs_attention"]).end();
    assert!(attention.stdout.contains("broken_target"), "{attention:?}");
}

#[test]
fn commit_and_witness_say_what_was_proven_and_changed() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = "echo 1 > src/new.txt; echo 2 >> src/base.txt; mkdir -p ignored; touch ignored/x";
    scratch.landing_batch(work, "true").end().exits(0);
    let row = &scratch.steps_of("a")[0];
    let verification = row["verification"]["witnessRef"].as_str().unwrap();
    let message = last_message(&scratch);
    let trailers = format!(
        "
Step: worker.1.a.1
Witness: {verification}
"
    );
    assert!(message.contains(&trailers), "{message}");
    let read = LandingTrailers::parse(&message).unwrap().unwrap();
    let base = scratch.git().refname_to_id("refs/heads/main").unwrap();
    assert_eq!(read.base, Some(base.to_string()));
    assert!(read.trajectory.is_some(), "{message}");
    let tip = first_parents(&scratch)[0];
    let tree = scratch.git().find_commit(tip).unwrap().tree_id();
    assert_eq!(read.verified_tree, Some(tree.to_string()));
    let witness = scratch
        .root
        .join("artifacts/ciwitness/worker.1.a.1.mutation.json");
    let witness: Value = serde_json::from_slice(&fs::read(witness).unwrap()).unwrap();
    assert_eq!(
        witness["changedPaths"],
        json!(["src/base.txt", "src/new.txt"])
    );
    assert_eq!(witness["commit"], row["landing"]["commit"]);
}

#[test]
fn an_issue_lands_as_one_commit_on_what_landed_before() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    // One commit that the harness makes, and two of the agent's own.
    let theirs = theirs(&scratch);
    let work = format!(
        r#"{theirs}
if [ "$PREMATH_ISSUE_ID" = a ]; then {OWN}; else
for n in 1 2; do echo $n >> src/b.txt; git add -A; git commit -qm "part $n"; done; fi"#
    );
    let run = scratch.landing_batch(&work, "true");
    run.args(["--sandbox", "none"]).end().exits(0);
    let git = scratch.git();
    let commits = first_parents(&scratch);
    // theirs, a, theirs, b.
    assert_eq!(commits.len(), 4);
    let parents: Vec<usize> = commits
        .iter()
        .map(|id| git.find_commit(*id).unwrap().parent_count())
        .collect();
    assert_eq!(parents, [1, 1, 1, 1]);
    let message = git.find_commit(commits[0]).unwrap();
    let message = message.message().unwrap().to_owned();
    assert!(message.starts_with("b: issue b\n"), "{message}");
    assert!(
        message.contains("Witness: ciwitness://worker.1.b.1/verify/"),
        "{message}"
    );
    assert_eq!(
        scratch.file_on(TARGET, "src/b.txt").as_deref(),
        Some("1\n2\n")
    );
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn what_fails_the_check_after_its_landing_is_taken_back() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    settings(&scratch, "[landing]\ncheck_cmd = \"test ! -e src/a.txt\"\n");
    let ended = scratch.landing_batch(OWN, "true").end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.issue("b")["status"], "closed");
    let steps = scratch.steps_of("a");
    assert_eq!(steps.len(), 2);
    for step in &steps {
        assert_eq!(step["failureClasses"], json!(["landing_check_failed"]));
        assert!(step.get("landing").is_none_or(Value::is_null), "{step}");
    }
    assert!(
        ended
            .stdout
            .contains("harness/integration was reset to the commit before it"),
        "{}",
        ended.stdout
    );
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(
        scratch
            .file_on("harness/salvage/a/1", "src/a.txt")
            .as_deref(),
        Some("x\n")
    );
    assert_eq!(first_parents(&scratch).len(), 1);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn what_others_built_upon_is_reverted_and_not_lost() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    // Another commit builds on the landed work before its check fails.
    checks_once(&scratch, &format!("{}\nexit 1\n", theirs(&scratch)));
    let run = scratch.landing_batch(OWN, "true");
    run.args(["--sandbox", "none"]).end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(
        scratch.file_on(TARGET, "src/theirs.txt").as_deref(),
        Some("theirs\ntheirs\n")
    );
    assert!(last_message(&scratch).starts_with("Revert \"a: "));
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_landing_that_a_death_left_unchecked_is_taken_back() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.landing_batch(OWN, "true").end().exits(0);
    let landed = scratch.steps()[0]["landing"]["commit"].clone();
    // As a death between the target's move and the check leaves it.
    scratch.write_issues(format!("{}\n", issue("a")).as_bytes());
    fs::remove_file(scratch.trajectory_path()).unwrap();
    scratch
        .git_command([
            "update-ref",
            "refs/harness/landing/a/1",
            landed.as_str().unwrap(),
        ])
        .end()
        .exits(0);
    // What is verified and checked again is what landed.
    let look = "echo \"$(ls src)\" >> \"$HOME/seen\"; false";
    settings(&scratch, &format!("[landing]\ncheck_cmd = '{look}'\n"));
    scratch.landing_batch(OWN, "true").end().exits(1);
    let seen = fs::read_to_string(scratch.home().join("seen")).unwrap();
    assert!(seen.starts_with("a.txt\n"), "{seen}");
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(first_parents(&scratch).len(), 0);
    refs_are_accounted_for(&scratch);
}

/// Checks that the refused push of `b` is in the report and in the log.
#[track_caller]
fn push_is_reported_refused(ended: &Ended) {
    let failure = &ended.events().pop().unwrap()["pushFailure"];
    assert_eq!(failure["remote"], "origin");
    let reason = failure["reason"].as_str().unwrap();
    assert!(
        reason.contains("failed to push some refs") && reason.contains("[rejected]"),
        "{reason}"
    );
    // The log names where in the batch it happened.
    let logged = ended
        .stderr
        .lines()
        .find(|line| line.contains("WARN batch{"));
    let logged = logged.unwrap_or_else(|| panic!("{}", ended.stderr));
    for part in [
        "lane{worker=",
        "step{issue=b generation=1 attempt=1}",
        "was not pushed",
    ] {
        assert!(logged.contains(part), "{part}: {logged}");
    }
}

#[test]
fn what_landed_is_pushed_and_never_forced() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());

    // Another commit was pushed: reported, and not lost.
    let tree = remote.git(&["rev-parse", &format!("{TARGET}^{{tree}}")]);
    let theirs = remote.git(&["commit-tree", "-m", "theirs", &tree]);
    remote.git(&["update-ref", &format!("refs/heads/{TARGET}"), &theirs]);
    scratch.write_issues(format!("{}\n", issue("b")).as_bytes());
    let ended = scratch.landing_batch(OWN, "true").end().exits(1);
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert!(
        ended.stdout.contains("landing_push_failed"),
        "{}",
        ended.stdout
    );
    push_is_reported_refused(&ended);
    assert_eq!(remote.tip(), theirs);
    let report = scratch.premath(["report"]).end().exits(0).stdout;
    let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(report.contains("was not pushed to origin: "), "{report}");

    // A worker alone says it likewise; a push that goes through mends it.
    scratch.write_issues(format!("{}\n", issue("c")).as_bytes());
    let alone = scratch.landing_worker(0, "w", OWN, "true").end().exits(1);
    alone.says("harness/integration was not pushed to origin: error: failed to push");
    remote.git(&["update-ref", "-d", &format!("refs/heads/{TARGET}")]);
    scratch.write_issues(format!("{}\n", issue("d")).as_bytes());
    scratch.landing_batch(OWN, "true").end().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
}

#[test]
fn work_on_protected_files_fails_with_the_list() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    settings(
        &scratch,
        "[protect]\npaths = [\"*.lock\", \"/src/base.txt\"]\n",
    );
    let work = r#"[ "$PREMATH_ISSUE_ID" = b ] && touch src/b.txt && exit
touch src/deep.lock; echo 1 >> src/base.txt; git commit -qam 'by itself'"#;
    let ended = scratch.landing_batch(work, "true").end().exits(1);
    assert_eq!(scratch.issue("b")["status"], "closed");
    let step = &scratch.steps_of("a")[0];
    assert_eq!(step["failureClasses"], json!(["work_protected_path"]));
    assert!(
        ended
            .stdout
            .contains("the attempt changed protected files: src/base.txt, src/deep.lock"),
        "{}",
        ended.stdout
    );
    assert_eq!(first_parents(&scratch).len(), 1);
}

#[test]
fn a_worktree_is_set_up_again_when_what_it_rests_on_changed() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    settings(
        &scratch,
        "[worktrees]\nsetup_cmd = \"mkdir -p ignored; cat src/needs.txt >> ignored/setup; echo . >> ignored/setup\"\n\
         setup_inputs = [\"src/needs.txt\"]\n",
    );
    let work = format!(r#"[ "$PREMATH_ISSUE_ID" = a ] && echo more > src/needs.txt; {OWN}"#);
    scratch.landing_batch(&work, "true").end().exits(0);
    let ran = || fs::read_to_string(scratch.lanes[0].join("ignored/setup")).unwrap();
    assert_eq!(ran(), ".\nmore\n.\n");
    scratch.landing_batch("true", "true").end().exits(0);
    assert_eq!(ran(), ".\nmore\n.\n");
}

#[test]
fn an_input_of_the_setup_that_the_commit_lacks_is_a_warning() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    settings(
        &scratch,
        "[worktrees]\nsetup_cmd = \"true\"\nsetup_inputs = [\"src/a.lokc\", \".gitignore\"]\n",
    );
    let ended = scratch.landing_batch(OWN, "true").end().exits(0);
    let expected = "`setup_inputs`: the commit that this lane begins at has no src/a.lokc";
    assert!(ended.stdout.contains(expected), "{}", ended.stdout);
    assert!(!ended.stdout.contains("no .gitignore"), "{}", ended.stdout);
}

#[test]
fn a_checkout_that_is_set_up_keeps_what_landed_between_verifications() {
    // In the mode that works best here, and where commands write the checkout.
    for mode in [&[][..], &["--sandbox", "none"]] {
        let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
        settings(
            &scratch,
            "[worktrees]\nsetup_cmd = \"mkdir -p ignored; echo . >> ignored/setup\"\n\
             setup_inputs = [\"src/needs.txt\"]\n",
        );
        // A file that is removed and written again has another time of change.
        let verify = "stat -c %z src/a.txt; cat ignored/setup";
        let run = scratch.landing_batch(OWN, verify);
        run.args(mode).end().exits(0);
        let found = |issue: &str| {
            let streams = scratch.root.join("artifacts/streams");
            let name = format!("worker.1.{issue}.1.verify.stdout");
            fs::read_to_string(streams.join(name)).unwrap()
        };
        assert!(found("a").ends_with("\n.\n"), "{mode:?}: {}", found("a"));
        assert_eq!(found("a"), found("b"), "{mode:?}");
    }
}

#[test]
fn a_setup_of_a_verification_that_fails_is_repeated_and_the_audit_agrees() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    // It fails once, on the work of `a`.
    let setup = "[ ! -e src/needs.txt ] || [ -e $HOME/failed ] || { touch $HOME/failed; exit 3; }";
    settings(
        &scratch,
        &format!("[worktrees]\nsetup_cmd = \"{setup}\"\nsetup_inputs = [\"src/needs.txt\"]\n"),
    );
    let run = scratch.landing_batch("echo more > src/needs.txt", "true");
    run.end().exits(0);
    assert!(scratch.home().join("failed").exists());
    assert_eq!(scratch.steps_of("a").len(), 1);
    scratch.premath(["audit"]).end().exits(0);
}

#[test]
fn a_batch_that_does_not_land_pushes_nothing() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    let killed = scratch.landing_batch(OWN, "true");
    let killed = killed.env("PREMATH_KILL_AT", "row-written:1").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    let ended = scratch.landing_batch(OWN, "true");
    let ended = ended.args(["--landing", "branch"]).end().exits(0);
    assert!(!ended.stdout.contains("landing_push_failed"));
    let pushed = remote.git(&["branch", "--list", TARGET]);
    assert_eq!(pushed.trim(), "");
}

#[test]
fn a_setup_that_fails_disables_its_lane_before_anything() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    settings(
        &scratch,
        "[worktrees]\nsetup_cmd = \"echo no registry >&2; exit 3\"\n",
    );
    let ended = scratch.landing_batch("true", "true").end().exits(1);
    assert!(
        ended.stdout.contains("the setup command failed"),
        "{}",
        ended.stdout
    );
    assert_eq!(scratch.issue("a")["status"], "open");
    let saved = scratch.kept_report();
    for said in [
        "1 lane(s) disabled\n  worker.1: hook_failed: the setup command failed: no registry",
        "\n    output: ",
    ] {
        assert!(saved.contains(said), "{said}: {saved}");
    }
    assert!(!saved.contains("premath doctor"), "{saved}");
    let report = scratch.premath(["report"]).end().exits(0);
    let words: Vec<&str> = report.stdout.split_whitespace().collect();
    let words = words.join(" ");
    for said in ["worker.1: the setup command failed", "; output: "] {
        assert!(words.contains(said), "{said}: {}", report.stdout);
    }
}

#[test]
fn a_lane_goes_back_to_its_branch_and_the_main_checkout_is_not_taken() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch.landing_batch(OWN, "true").end().exits(0);
    let head = fs::read_to_string(scratch.root.join(".git/worktrees/lane-1/HEAD")).unwrap();
    assert_eq!(head, "ref: refs/heads/lane-1\n");
    assert!(!scratch.lanes[0].join("src/a.txt").exists());

    // A worker in the person's own checkout leaves its work on their branch.
    scratch.write_issues(format!("{}\n", issue("m")).as_bytes());
    scratch
        .run(&binaries().worker)
        .args(["--override-reason", "test", "--work-cmd", OWN])
        .args(["--verify-cmd", "true"])
        .end()
        .exits(0);
    assert_eq!(scratch.messages_on("main").len(), 1);
    assert_eq!(scratch.file_on("main", "src/m.txt").as_deref(), Some("x\n"));
}

#[test]
fn no_step_begins_with_work_that_is_yet_to_be_checked() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b"), issue("c")]);
    let check = r#"[ ! -e src/a.txt ] && exit
touch "$HOME/checking"; until [ -e "$HOME/began" ]; do sleep 0.01; done; exit 1"#;
    let file = scratch.folder().join("check.sh");
    fs::write(&file, check).unwrap();
    settings(
        &scratch,
        &format!("[landing]\ncheck_cmd = \"sh {}\"\n", file.display()),
    );
    // While the landing of `a` is checked, `b` ends, and `c` begins.
    let work = format!(
        r#"case $PREMATH_ISSUE_ID in
b) until [ -e "$HOME/checking" ]; do sleep 0.01; done; exit 1 ;;
c) touch "$HOME/began" ;;
esac
{OWN}"#
    );
    scratch.landing_batch(&work, "true").end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.issue("c")["status"], "closed");
    assert_eq!(scratch.steps_of("c").len(), 1);
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
    assert_eq!(scratch.file_on(TARGET, "src/c.txt").as_deref(), Some("x\n"));
    refs_are_accounted_for(&scratch);
}

/// A step could have put it there; a push runs unconfined.
#[test]
fn a_program_in_a_worktree_is_not_run_for_the_push() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    let mark = scratch.folder().join("was-run");
    let script = format!(
        "case $* in *push*) : > '{}';; esac; exit 125",
        mark.display()
    );
    let mut folders = vec![
        scripted_engine(&scratch.root.join("bin"), "git", &script),
        scripted_engine(&scratch.lanes[0].join("ignored/bin"), "git", &script),
        "bin".into(),
    ];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(Into::into));
    let path = std::env::join_paths(folders).unwrap();
    let run = scratch.landing_batch(OWN, "true").env("PATH", path);
    run.end().exits(0);
    assert!(!mark.exists());
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
}

/// Returns a `PATH` whose `git` runs a script before a push.
fn path_with_slow_push(scratch: &Scratch, before: &str) -> std::ffi::OsString {
    let waits = format!(
        "case $* in *push*) {before};; esac\n\
         PATH=${{PATH#*:}} exec git \"$@\""
    );
    let bin = scratch.folder().join("bin");
    let mut folders = vec![scripted_engine(&bin, "git", &waits)];
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(Into::into));
    std::env::join_paths(folders).unwrap()
}

#[test]
fn a_push_that_hangs_holds_one_lane() {
    let scratch = Scratch::with_issues(2, &["a", "b", "c"].map(issue));
    let remote = Remote::of(&scratch);
    settings(
        &scratch,
        "[landing]\npush = \"origin\"\n[verify]\nslots = 0\n",
    );
    // A push ends once the last issue is worked on.
    let [go, late] = ["go", "late"].map(|name| scratch.home().join(name).display().to_string());
    let path = path_with_slow_push(
        &scratch,
        &format!(
            "n=0; until [ -e '{go}' ]; do n=$((n+1)); [ $n -lt 3000 ] || {{ : > '{late}'; break; }}; \
             sleep 0.01; done"
        ),
    );
    let work = format!("{OWN}\n[ $PREMATH_ISSUE_ID != c ] || : > \"$HOME/go\"");
    let run = scratch.landing_batch(&work, "true").env("PATH", path);
    run.end().exits(0);
    assert!(!Path::new(&late).exists(), "a lane waits for a push");
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
}

#[test]
fn work_whose_check_still_runs_is_not_pushed() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let remote = Remote::of(&scratch);
    // The check of `b` runs for a while and fails. The first push does not begin
    // before that check has begun.
    let begun = scratch.home().join("begun");
    let check = format!(
        "[ ! -e src/b.txt ] || {{ : > '{}'; sleep 1; exit 1; }}",
        begun.display()
    );
    let text = format!("[landing]\npush = \"origin\"\ncheck_cmd = \"\"\"{check}\"\"\"\n");
    settings(&scratch, &text);
    let path = path_with_slow_push(
        &scratch,
        &format!("until [ -e '{}' ]; do sleep 0.01; done", begun.display()),
    );
    let run = scratch.landing_batch(OWN, "true").env("PATH", path);
    let ended = run.end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.issue("b")["status"], "blocked");
    assert!(
        !ended.stdout.contains("landing_push_failed"),
        "{}",
        ended.stdout
    );
    let pushed = remote.git(&["log", "--walk-reflogs", "--format=%s", TARGET]);
    assert!(!pushed.contains("b: "), "{pushed}");
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
}

#[test]
fn lanes_that_wait_for_a_push_share_the_next_one() {
    let scratch = Scratch::with_issues(3, &["a", "b", "c"].map(issue));
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    // The first push ends once all work has landed.
    let log = scratch.folder().join("pushes");
    let go = scratch.home().join("go");
    let path = path_with_slow_push(
        &scratch,
        &format!(
            "echo push >> '{}'; until [ -e '{}' ]; do sleep 0.01; done",
            log.display(),
            go.display()
        ),
    );
    let running = scratch.landing_batch(OWN, "true").env("PATH", path).start();
    let closed = || {
        let issues = scratch.issues();
        issues
            .values()
            .all(|row| row["status"] == "closed")
            .then_some(())
    };
    until(PATIENCE, closed).expect("work lands while a push runs");
    // The rows of all steps are written before their pushes.
    let rows = || (scratch.steps().len() == 3).then_some(());
    until(PATIENCE, rows).expect("all steps have rows");
    fs::write(go, "").unwrap();
    running.wait().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
    let pushes = fs::read_to_string(&log).unwrap().lines().count();
    assert!(pushes <= 2, "{pushes} pushes");
}

#[test]
fn work_whose_check_was_cut_is_not_pushed_by_the_next_run() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let remote = Remote::of(&scratch);
    let text = "[landing]\npush = \"origin\"\ncheck_cmd = \"[ ! -e src/b.txt ]\"\n";
    settings(&scratch, text);
    let batch = || scratch.landing_batch(OWN, "true");
    let killed = batch().env("PREMATH_KILL_AT", "target-advanced:2").end();
    assert_eq!(killed.signal, Some(9), "{killed:?}");
    scratch.no_process_left();
    assert_eq!(scratch.issue("a")["status"], "closed");
    let ended = batch().end().exits(1);
    assert_eq!(ended.events()[0]["resumed"], true);
    assert!(
        !ended.stdout.contains("landing_push_failed"),
        "{}",
        ended.stdout
    );
    let pushed = remote.git(&["log", "--walk-reflogs", "--format=%s", TARGET]);
    assert!(!pushed.contains("b: "), "{pushed}");
}

/// The remote holds its lock of the branch while the harness dies: git leaves the
/// lock there if it is killed at once, and no later push could succeed.
#[test]
fn a_push_that_a_death_cuts_leaves_no_lock_at_the_remote() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    let locked = scratch.folder().join("locked");
    let hooks = scratch.folder().join("remote.git/hooks");
    let waits = format!(
        "[ \"$1\" != prepared ] || [ -e '{0}' ] || {{ : > '{0}'; sleep 60; }}",
        locked.display()
    );
    fs::create_dir_all(&hooks).unwrap();
    scripted_engine(&hooks, "reference-transaction", &waits);
    let batch = || scratch.landing_batch(OWN, "true");
    let killed = batch().start();
    until(PATIENCE, || locked.exists().then_some(())).expect("the push reaches the remote");
    killed.signal(Signal::KILL);
    assert_eq!(killed.wait().signal, Some(9));
    scratch.no_process_left();
    batch().end().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
}

/// Attack 17: a relative URL counts from the main worktree, as for git.
#[test]
fn work_waits_while_a_person_has_the_target_checked_out() {
    let scratch = Scratch::with_issues(2, &["a", "b"].map(issue));
    let work = format!("until [ -e \"$HOME/go\" ]; do sleep 0.02; done; {OWN}");
    let batch = scratch.landing_batch(&work, "true").start();
    let git = |arguments: &[&str]| scratch.git_command(arguments.iter().copied()).end();
    let is_there = || git(&["rev-parse", "-q", "--verify", TARGET]).code == Some(0);
    until(PATIENCE, || is_there().then_some(())).expect("the target is made");
    git(&["checkout", "-q", TARGET]).exits(0);
    fs::write(scratch.home().join("go"), "").unwrap();
    let waits = || {
        batch
            .stderr()
            .contains("work waits for that to end")
            .then_some(())
    };
    until(PATIENCE, waits).expect("work waits");
    git(&["checkout", "-q", "main"]).exits(0);
    batch.wait().exits(0);
    for id in ["a", "b"] {
        assert_eq!(scratch.steps_of(id).len(), 1, "{id}");
    }
    every_close_is_on_the_target(&scratch);
}

#[test]
fn what_an_earlier_batch_could_not_push_is_pushed_by_one_without_work() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = Remote::of(&scratch);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    let at = scratch.folder().join("remote.git");
    let gone = scratch.folder().join("gone.git");
    fs::rename(&at, &gone).unwrap();
    let batch = || scratch.landing_batch(OWN, "true").end();
    batch().exits(1);
    assert_eq!(scratch.issue("a")["status"], "closed");
    // It is still not there.
    batch().exits(1);
    fs::rename(&gone, &at).unwrap();
    batch().exits(0);
    assert_eq!(remote.tip(), first_parents(&scratch)[0].to_string());
    // Nothing is pushed that the remote has.
    batch().exits(0);
    assert_eq!(remote.tips().len(), 1);
}

#[test]
fn a_relative_remote_is_pushed_to_and_one_that_is_not_there_is_named() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let remote = scratch.root.parent().unwrap().join("relative.git");
    let git = |arguments: &[&str]| scratch.git_command(arguments.iter().copied()).end();
    git(&["init", "-q", "--bare", remote.to_str().unwrap()]).exits(0);
    git(&["remote", "add", "origin", "../relative.git"]).exits(0);
    settings(&scratch, "[landing]\npush = \"origin\"\n");
    scratch.landing_batch(OWN, "true").end().exits(0);
    let pushed = git(&["-C", remote.to_str().unwrap(), "rev-parse", TARGET]).exits(0);
    assert_eq!(pushed.stdout.trim(), first_parents(&scratch)[0].to_string());

    git(&["remote", "set-url", "origin", "../missing.git"]).exits(0);
    scratch.write_issues(format!("{}\n", issue("b")).as_bytes());
    let ended = scratch.landing_batch(OWN, "true").end().exits(1);
    assert!(
        ended
            .stdout
            .contains("fatal: '../missing.git' does not appear to be a git repository"),
        "{}",
        ended.stdout
    );
}

#[test]
fn the_sentence_of_the_harness_about_a_failure_is_in_the_report_and_in_the_next_prompt() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let batch = || scratch.landing_batch("echo x > AGENTS.md", "true").end();
    let ended = batch();
    let said = "protected files: AGENTS.md";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    for arguments in [&["report"][..], &["issue", "show", "a"], &["why", "a"]] {
        let shown = scratch.premath(arguments.iter().copied()).end().exits(0);
        assert!(
            shown.stdout.contains(said),
            "{arguments:?}: {}",
            shown.stdout
        );
    }
    scratch.premath(["retry", "a"]).end().exits(0);
    batch();
    let second = scratch.steps_of("a")[1]["stepId"].clone();
    let second = second.as_str().unwrap();
    let prompt = format!("artifacts/streams/{second}.work.prompt");
    let prompt = fs::read_to_string(scratch.root.join(prompt)).unwrap();
    assert!(prompt.contains(said), "{prompt}");
}
