//! Work that lands: closed means that it is on the target, and no other commit
//! or checkout is touched.

use premath_tests::{Dice, Ended, Length, PATIENCE, Run, Scratch, issue, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::time::Duration;

pub(super) const TARGET: &str = "harness/integration";

/// A file of the issue's own, with a line for each time that it was worked on.
pub(super) const OWN: &str = r#"echo x >> "src/$PREMATH_ISSUE_ID.txt""#;

/// Waits until each of two issues has begun, from the same tip.
const TOGETHER: &str = r#"touch "$HOME/at-$PREMATH_ISSUE_ID"
until [ -e "$HOME/at-a" ] && [ -e "$HOME/at-b" ]; do sleep 0.01; done"#;

pub(super) fn after(id: &str, blocker: &str) -> Value {
    let mut row = issue(id);
    row["dependencies"] = json!([{"issue_id": id, "depends_on_id": blocker, "type": "blocks"}]);
    row
}

fn merging(scratch: &Scratch, work: &str, verify: &str) -> Run {
    scratch.landing_batch(work, verify)
}

/// The target's first-parent commits above the first of all, newest first.
pub(super) fn first_parents(scratch: &Scratch) -> Vec<git2::Oid> {
    first_parents_of(scratch, TARGET)
}

fn first_parents_of(scratch: &Scratch, branch: &str) -> Vec<git2::Oid> {
    let git = scratch.git();
    let target = git.find_branch(branch, git2::BranchType::Local).unwrap();
    let mut commit = target.get().peel_to_commit().unwrap();
    let mut found = Vec::new();
    while commit.parent_count() > 0 {
        found.push(commit.id());
        commit = commit.parent(0).unwrap();
    }
    found
}

/// Runs a verification on a commit, in a worktree of its own; it must pass.
pub(super) fn passes_at(scratch: &Scratch, commit: git2::Oid, verify: &str) -> Ended {
    let place = scratch.folder().join("walk");
    let (path, id) = (place.to_str().unwrap(), commit.to_string());
    scratch
        .git_command(["worktree", "add", "--detach", "-q", path, &id])
        .end()
        .exits(0);
    let ended = scratch
        .run(Path::new("sh"))
        .args(["-c", verify])
        .within(&place)
        .end()
        .exits(0);
    scratch
        .git_command(["worktree", "remove", "--force", path])
        .end()
        .exits(0);
    ended
}

/// Runs a verification on each commit of the target's first-parent history.
fn every_commit_passes(scratch: &Scratch, verify: &str) {
    for commit in first_parents(scratch) {
        passes_at(scratch, commit, verify);
    }
}

/// Every closed issue's row names a commit that the target holds.
pub(super) fn every_close_is_on_the_target(scratch: &Scratch) {
    let git = scratch.git();
    let target = git.find_branch(TARGET, git2::BranchType::Local).unwrap();
    let tip = target.get().target().unwrap();
    for (id, row) in scratch.issues() {
        if row["status"] != "closed" {
            continue;
        }
        let steps = scratch.steps_of(&id);
        let closing = steps
            .iter()
            .find(|step| step["stepId"] == row["closed_by_step"])
            .unwrap();
        assert_eq!(closing["landing"]["target"], TARGET, "{closing}");
        let commit = closing["landing"]["commit"].as_str().unwrap();
        let commit = git2::Oid::from_str(commit).unwrap();
        assert!(
            commit == tip || git.graph_descendant_of(tip, commit).unwrap(),
            "{id}: {commit} is not on the target"
        );
    }
}

/// Nothing of the harness is left but the target and what failed steps did.
pub(super) fn refs_are_accounted_for(scratch: &Scratch) {
    let git = scratch.git();
    for name in git.references().unwrap().names() {
        let name = name.unwrap().to_owned();
        assert!(!name.starts_with("refs/harness/"), "{name} is left");
        let is_of_a_step = name.starts_with("refs/heads/harness/")
            && !name.starts_with("refs/heads/harness/salvage/")
            && name != format!("refs/heads/{TARGET}");
        assert!(!is_of_a_step, "{name} is left");
    }
    scratch
        .git_command(["fsck", "--strict", "--no-dangling"])
        .end()
        .exits(0);
}

#[test]
fn what_waits_for_an_issue_finds_its_work_and_the_users_checkout_stays() {
    let scratch = Scratch::with_issues(2, &[issue("a"), after("b", "a")]);
    let own = scratch.root.join("src/mine.txt");
    fs::write(&own, "a person's\n").unwrap();
    let work = r#"[ "$PREMATH_ISSUE_ID" = a ] && echo made > src/made.txt && exit
cp src/made.txt src/used.txt"#;
    let ended = merging(&scratch, work, "true").end().exits(0);
    assert_eq!(
        scratch.file_on(TARGET, "src/used.txt").as_deref(),
        Some("made\n")
    );
    let last = ended.events().pop().unwrap();
    assert_eq!(last["landing"]["landed"], 2, "{last}");
    assert_eq!(last["landing"]["missing"], json!([]));
    assert_eq!(scratch.messages_on("main").len(), 0);
    assert_eq!(scratch.file_on("lane-1", "src/made.txt"), None);
    assert_eq!(fs::read_to_string(own).unwrap(), "a person's\n");
    let status = scratch
        .git_command(["status", "--porcelain", "--untracked-files=all", "src"])
        .end()
        .exits(0);
    assert_eq!(status.stdout, "?? src/mine.txt\n");
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_commit_that_is_verified_outlives_a_cleanup_by_git() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b"), issue("c")]);
    let root = scratch.root.display();
    let verify = format!(
        r#"git -C '{root}' gc --quiet --prune=now || exit 1
git -C '{root}' cat-file -e "$(git rev-parse HEAD)" || exit 1
git -C '{root}' for-each-ref --format="$PREMATH_ISSUE_ID %(refname)" refs/harness/held >> "$HOME/held""#
    );
    let work = r#"[ "$PREMATH_ISSUE_ID" = b ] || echo made > "src/$PREMATH_ISSUE_ID.txt""#;
    let run = merging(&scratch, work, &verify).args(["--sandbox", "none"]);
    run.end().exits(0);
    // The lane's HEAD holds what the issue without a change is verified at.
    let held = fs::read_to_string(scratch.home().join("held")).unwrap();
    let issues: Vec<&str> = held.lines().map(|line| &line[..1]).collect();
    assert_eq!(issues, ["a", "c"], "{held}");
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_conflict_gets_one_fresh_attempt_that_knows_of_it() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let work = format!(
        "{TOGETHER}\necho $PREMATH_ISSUE_ID >> src/shared.txt\n\
         cat \"$PREMATH_PROMPT_FILE\" >> \"$HOME/prompts\""
    );
    merging(&scratch, &work, "true").end().exits(0);
    let shared = scratch.file_on(TARGET, "src/shared.txt").unwrap();
    assert_eq!(shared.lines().count(), 2, "{shared}");
    let failed: Vec<Value> = scratch
        .steps()
        .into_iter()
        .filter(|row| row["resultClass"] != "completed")
        .collect();
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(failed[0]["failureClasses"], json!(["landing_conflict"]));
    let prompts = fs::read_to_string(scratch.home().join("prompts")).unwrap();
    assert!(
        prompts.contains("merge conflict with harness/integration")
            && prompts.contains("src/shared.txt"),
        "{prompts}"
    );
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_second_conflict_blocks_and_keeps_the_work() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    // Another commit changes the same file during each attempt.
    let root = scratch.root.display();
    let work = format!(
        r#"git -C '{root}' worktree add -q --detach "$HOME/other" harness/integration && (cd "$HOME/other" &&
  echo $PREMATH_LEASE_GENERATION >> src/shared.txt && git add -A && git commit -qm theirs &&
  git update-ref refs/heads/harness/integration HEAD)
git -C '{root}' worktree remove --force "$HOME/other"
echo ours >> src/shared.txt"#
    );
    let run = merging(&scratch, &work, "true").args(["--sandbox", "none"]);
    run.end().exits(1);
    assert_eq!(scratch.issue("a")["status"], "blocked");
    assert_eq!(scratch.steps_of("a").len(), 2);
    for generation in [1, 2] {
        let branch = format!("harness/salvage/a/{generation}");
        let kept = scratch.file_on(&branch, "src/shared.txt").unwrap();
        let row = &scratch.steps_of("a")[generation - 1];
        assert_eq!(row["salvage"], branch, "{row}");
        assert!(kept.ends_with("ours\n"), "{kept}");
    }
    assert_eq!(
        scratch.file_on(TARGET, "src/shared.txt").as_deref(),
        Some("1\n2\n")
    );
    refs_are_accounted_for(&scratch);
}

#[test]
fn what_passes_alone_and_fails_together_never_reaches_the_target() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let work = format!("{TOGETHER}\ntouch src/$PREMATH_ISSUE_ID.part");
    let verify = "[ $(ls src/*.part | wc -l) -le 1 ]";
    // Each by itself first: otherwise it is not known that it passes alone.
    let settings = scratch.root.join("harness.toml");
    fs::write(settings, "[landing]\nspeculation = 0\n").unwrap();
    merging(&scratch, &work, verify).end().exits(1);
    assert_eq!(first_parents(&scratch).len(), 1);
    every_commit_passes(&scratch, verify);
    let rows = scratch.steps();
    assert!(
        rows.iter()
            .any(|row| row["failureClasses"] == json!(["landing_check_failed"])),
        "{rows:#?}"
    );
    let mut standing: Vec<String> = ["a", "b"]
        .map(|id| scratch.issue(id)["status"].as_str().unwrap().to_owned())
        .into();
    standing.sort();
    assert_eq!(standing, ["blocked", "closed"]);
}

#[test]
fn several_commits_of_an_agent_are_one_step_of_the_target() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = "echo red > src/red.txt; git add -A; git commit -qm red; \
                git rm -q src/red.txt; git commit -qm 'green again'; echo done > src/done.txt";
    let verify = "[ ! -e src/red.txt ]";
    merging(&scratch, work, verify).end().exits(0);
    assert_eq!(first_parents(&scratch).len(), 1);
    every_commit_passes(&scratch, verify);
}

#[test]
fn a_batch_of_conflicts_ends_landed_or_blocked_with_every_commit_green() {
    let length = Length::asked("the landing of 40 issues on 6 lanes, in 1,000 files");
    let (count, lanes, files) = length.pick((8, 3, 20), (40, 6, 1_000));
    let rows: Vec<Value> = (0..count).map(|n| issue(&format!("k-{n:02}"))).collect();
    let scratch = Scratch::with_issues(0, &rows);
    for number in 0..files {
        let folder = scratch.root.join(format!("files/{}", number / 50));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{number}.txt")), format!("{number}\n")).unwrap();
    }
    scratch.git_command(["add", "files"]).end().exits(0);
    scratch
        .git_command(["commit", "-qm", "files"])
        .end()
        .exits(0);
    let before = first_parents_of(&scratch, "main").len();
    fs::write(
        scratch.root.join("harness.toml"),
        format!("[worktrees]\ncount = {lanes}\n"),
    )
    .unwrap();
    // Of every ten, two change the same line.
    let work = format!(
        "{OWN}; case $PREMATH_ISSUE_ID in *[05]) echo $PREMATH_ISSUE_ID >> src/shared.txt ;; esac"
    );
    let verify = "[ ! -e src/shared.txt ] || [ -z \"$(sort src/shared.txt | uniq -d)\" ]";
    let ended = merging(&scratch, &work, verify).end();
    let mut closed = 0;
    for (id, row) in scratch.issues() {
        if row["status"] == "closed" {
            closed += 1;
            let file = format!("src/{id}.txt");
            assert_eq!(scratch.file_on(TARGET, &file).as_deref(), Some("x\n"));
        } else {
            assert_eq!(row["status"], "blocked", "{id}\n{}", ended.stdout);
            let salvage = format!("harness/salvage/{id}/2");
            assert!(scratch.branches().contains(&salvage), "{salvage}");
        }
    }
    assert!(closed >= count / 2, "{closed} of {count}");
    assert_eq!(first_parents(&scratch).len(), closed + before);
    every_commit_passes(&scratch, verify);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
    let list = scratch.git_command(["worktree", "list"]).end().exits(0);
    assert_eq!(list.stdout.lines().count(), 1 + lanes, "{}", list.stdout);
    in_order(&scratch);
}

/// The doctor finds nothing but warnings about the machine and the settings.
pub(super) fn in_order(scratch: &Scratch) {
    scratch.premath(["doctor"]).end().exits(0);
}

/// Commits a file to the target, as a process that takes no lock of the harness.
pub(super) fn commit_to_the_target(scratch: &Scratch, path: &str) {
    let git = scratch.git();
    let reference = format!("refs/heads/{TARGET}");
    let author = git2::Signature::now("Other", "other@localhost").unwrap();
    let blob = git.blob(b"theirs\n").unwrap();
    let made = until(PATIENCE, || {
        let tip = git.find_reference(&reference).unwrap();
        let tip = tip.peel_to_commit().unwrap();
        let tree = git2::build::TreeUpdateBuilder::new()
            .upsert(path, blob, git2::FileMode::Blob)
            .create_updated(&git, &tip.tree().unwrap())
            .unwrap();
        let tree = git.find_tree(tree).unwrap();
        // This compares and swaps: it fails where a landing came between.
        let parents = [&tip];
        git.commit(
            Some(&reference),
            &author,
            &author,
            "theirs",
            &tree,
            &parents,
        )
        .ok()
    });
    assert!(made.is_some(), "the target takes no commit");
}

#[test]
fn what_another_process_commits_to_the_target_in_the_middle_is_kept() {
    let length = Length::asked("20 commits of another process to the landing target");
    let count = length.pick(4, 20);
    let rows: Vec<Value> = (0..count).map(|n| issue(&format!("k-{n:02}"))).collect();
    let scratch = Scratch::with_issues(2, &rows);
    // A verification waits for the commit: a landing is about to come.
    let verify = r#"touch "ROOT/../wanted-$PREMATH_ISSUE_ID"
until [ -e "ROOT/../made-$PREMATH_ISSUE_ID" ]; do sleep 0.01; done"#;
    let verify = verify.replace("ROOT", &scratch.root.display().to_string());
    let run = merging(&scratch, OWN, &verify).args(["--sandbox", "none"]);
    let mut batch = run.start();
    let folder = scratch.root.parent().unwrap();
    until(PATIENCE, || {
        for row in &rows {
            let id = row["id"].as_str().unwrap();
            let made = folder.join(format!("made-{id}"));
            if folder.join(format!("wanted-{id}")).exists() && !made.exists() {
                commit_to_the_target(&scratch, &format!("src/theirs-{id}.txt"));
                fs::write(made, "").unwrap();
            }
        }
        batch.is_over().then_some(())
    });
    batch.wait().exits(0);
    for n in 0..count {
        let file = |name: &str| scratch.file_on(TARGET, &format!("src/{name}.txt"));
        assert_eq!(file(&format!("k-{n:02}")).as_deref(), Some("x\n"));
        assert_eq!(
            file(&format!("theirs-k-{n:02}")).as_deref(),
            Some("theirs\n")
        );
    }
    assert_eq!(first_parents(&scratch).len(), 2 * count);
    every_close_is_on_the_target(&scratch);
    in_order(&scratch);
}

/// Runs a batch of one issue whose verifications each find, at their end, that
/// another process has committed to the target, up to so many times.
fn while_others_commit(times: usize) -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let folder = scratch.root.parent().unwrap().to_owned();
    let verify = r#"n=$(ls ROOT | grep -c wanted-); touch "ROOT/wanted-$n"
until [ -e "ROOT/made-$n" ]; do sleep 0.01; done"#;
    let verify = verify.replace("ROOT", &folder.display().to_string());
    let run = merging(&scratch, OWN, &verify).args(["--sandbox", "none", "--stop-on-failure"]);
    let mut batch = run.start();
    let mut begun = 0;
    until(PATIENCE, || {
        if folder.join(format!("wanted-{begun}")).exists() {
            if begun < times {
                commit_to_the_target(&scratch, &format!("src/theirs-{begun}.txt"));
            }
            fs::write(folder.join(format!("made-{begun}")), "").unwrap();
            begun += 1;
        }
        batch.is_over().then_some(())
    });
    drop(batch.wait());
    // The first verification, and one after each move that the harness put up with.
    assert_eq!(begun, 1 + times.min(8));
    scratch
}

#[test]
fn work_lands_in_its_attempt_although_others_move_the_target_eight_times() {
    let scratch = while_others_commit(8);
    let steps = scratch.steps();
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0]["resultClass"], "completed");
    assert_eq!(first_parents(&scratch).len(), 1 + 8);
    every_close_is_on_the_target(&scratch);
}

#[test]
fn a_target_that_others_move_nine_times_is_given_up() {
    let scratch = while_others_commit(9);
    let steps = scratch.steps();
    assert_eq!(steps.len(), 1);
    let classes = serde_json::json!(["landing_target_unusable"]);
    assert_eq!(steps[0]["failureClasses"], classes);
    // What they committed is there, and nothing else.
    assert_eq!(first_parents(&scratch).len(), 9);
    assert_eq!(scratch.file_on(TARGET, "src/a.txt"), None);
}

#[test]
fn a_target_that_is_checked_out_is_refused_before_anything() {
    let scratch = Scratch::with_issues(2, &[issue("a")]);
    for target in ["main", "lane-2"] {
        merging(&scratch, "true", "true")
            .args(["--landing-target", target])
            .end()
            .exits(2)
            .says("is checked out in");
    }
    merging(&scratch, "true", "true")
        .args(["--landing-target", "a..b"])
        .end()
        .exits(2)
        .says("the landing target `a..b` is not a valid branch name");
    // A dry run says it too.
    for (target, said) in [
        ("main", "is checked out in"),
        ("a..b", "is not a valid branch"),
    ] {
        let run = merging(&scratch, "true", "true").args(["--landing-target", target]);
        run.args(["--dry-run"]).end().exits(2).says(said);
    }
    assert_eq!(scratch.issue("a"), issue("a"));
    assert!(!scratch.trajectory_path().exists());
}

#[test]
fn mode_branch_keeps_a_branch_a_step_and_leaves_the_target() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    fs::write(
        scratch.root.join("harness.toml"),
        "[landing]\nmode = \"branch\"\ntarget = \"review\"\n",
    )
    .unwrap();
    scratch.landing_batch(OWN, "true").end().exits(0);
    for id in ["a", "b"] {
        let branch = format!("harness/{id}/1");
        assert_eq!(scratch.messages_on(&branch).len(), 1, "{branch}");
    }
    assert_eq!(scratch.messages_on("review").len(), 0);
}

#[test]
fn work_that_landed_before_a_death_is_not_done_or_landed_again() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work = format!("{OWN}; echo run >> \"$HOME/ran\"");
    merging(&scratch, &work, "true").end().exits(0);
    let landed = scratch.steps()[0]["landing"]["commit"].clone();
    // As a death between the target's move and the close leaves it.
    scratch.write_issues(format!("{}\n", issue("a")).as_bytes());
    fs::remove_file(scratch.trajectory_path()).unwrap();
    let commit = landed.as_str().unwrap();
    scratch
        .git_command(["update-ref", "refs/harness/landing/a/1", commit])
        .end()
        .exits(0);
    merging(&scratch, &work, "true").end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.steps()[0]["landing"]["commit"], landed);
    let runs = fs::read_to_string(scratch.home().join("ran")).unwrap();
    assert_eq!(runs, "run\n");
    assert_eq!(first_parents(&scratch).len(), 1);
    refs_are_accounted_for(&scratch);
}

#[test]
fn a_killed_batch_lands_everything_once() {
    let length = Length::asked("50 kills of a batch that lands");
    let (kills, count) = length.pick((4, 12), (50, 150));
    let mut dice = Dice::from_environment();
    let rows: Vec<Value> = (0..count).map(|n| issue(&format!("k-{n:03}"))).collect();
    let scratch = Scratch::with_issues(3, &rows);
    let batch = || merging(&scratch, OWN, "true");
    let closed = || {
        let issues = scratch.issues();
        issues.values().filter(|r| r["status"] == "closed").count()
    };
    for part in 0..kills {
        let goal = count * part / (kills + 1);
        let mut running = batch().start();
        until(PATIENCE, || {
            (closed() > goal || running.is_over()).then_some(())
        })
        .expect("the batch makes progress");
        // The moment within a step: chance, not a wait for anything.
        std::thread::sleep(Duration::from_micros(dice.below(60_000)));
        if !running.is_over() {
            running.signal(Signal::KILL);
        }
        running.wait();
        scratch.no_process_left();
    }
    batch().end().exits(0);
    for n in 0..count {
        let id = format!("k-{n:03}");
        assert_eq!(scratch.issue(&id)["status"], "closed", "{id}");
        let file = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("x\n"), "{id}: seed {}", dice.seed());
    }
    assert_eq!(first_parents(&scratch).len(), count);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
    assert_eq!(scratch.leftovers(), [""; 0]);
    in_order(&scratch);
}

#[test]
fn a_lane_that_was_killed_on_its_way_to_the_target_is_not_taken_for_dirty() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    merging(&scratch, OWN, "true").end().exits(0);
    let tip = scratch.git_command(["rev-parse", TARGET]).end().exits(0);
    // As a death between the target's files and the lane's HEAD leaves it.
    let lane = &scratch.lanes[0];
    fs::create_dir_all(lane.join("src")).unwrap();
    fs::write(lane.join("src/a.txt"), "x").unwrap();
    let within = |arguments: &[&str]| {
        let run = scratch.git_command(arguments.iter().copied());
        run.within(lane).end().exits(0)
    };
    within(&["update-ref", "PREMATH_MOVING", tip.stdout.trim()]);
    let mut rows = fs::read_to_string(scratch.issues_path()).unwrap();
    rows.push_str(&format!("{}\n", issue("b")));
    scratch.write_issues(rows.as_bytes());
    merging(&scratch, OWN, "true").end().exits(0);
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert_eq!(within(&["status", "--porcelain"]).stdout, "");
    // A change without a record is a person's.
    fs::write(lane.join("src-b.txt"), "x").unwrap();
    let events = merging(&scratch, OWN, "true").end().exits(1).events();
    let lost = events
        .iter()
        .find(|event| event["event"] == "lane.given_up");
    let lost = lost.expect("the lane is given up").to_string();
    assert!(lost.contains("src-b.txt"), "{lost}");
}

#[test]
fn a_single_worker_lands_too() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    scratch
        .landing_worker(0, "w", OWN, "true")
        .args(["--max-steps", "2"])
        .end()
        .exits(0)
        .says("2 of 2 closed issues landed on harness/integration");
    assert_eq!(first_parents(&scratch).len(), 2);
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);
}

#[test]
fn work_lands_in_a_shallow_clone() {
    let origin = Scratch::new(0);
    let mut scratch = Scratch::new(0);
    let git = |within: &Path, arguments: &[&str]| {
        let run = origin.git_command(arguments.iter().copied());
        run.within(within).end().exits(0);
    };
    git(
        &origin.root,
        &["commit", "--quiet", "--allow-empty", "-m", "second"],
    );
    let root = scratch.folder().join("clone");
    let (from, to) = (
        format!("file://{}", origin.root.display()),
        root.display().to_string(),
    );
    git(
        &origin.root,
        &["clone", "--quiet", "--depth", "1", &from, &to],
    );
    git(&root, &["worktree", "add", "--quiet", "../lane-1"]);
    git(&root, &["worktree", "add", "--quiet", "../lane-2"]);
    scratch.root = root;
    scratch.lanes = [1, 2]
        .map(|n| scratch.folder().join(format!("lane-{n}")))
        .into();
    let rows = format!("{}\n{}\n", issue("a"), issue("b"));
    scratch.write_issues(rows.as_bytes());
    // Both begin at one tip: the second is merged.
    let work = format!("{TOGETHER}\n{OWN}");
    merging(&scratch, &work, "true").end().exits(0);
    for id in ["a", "b"] {
        let file = scratch.file_on(TARGET, &format!("src/{id}.txt"));
        assert_eq!(file.as_deref(), Some("x\n"));
    }
    every_close_is_on_the_target(&scratch);
}
