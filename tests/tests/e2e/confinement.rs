//! What the commands of a step may write, and what is found where they are not
//! kept from it.

use premath_tests::{PATIENCE, Run, Scratch, binaries, issue, skipped, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const CONFINING: [&str; 2] = ["landlock", "namespaces"];

/// Returns whether a way of confining works on this machine; where it does not,
/// the harness must refuse it by name.
fn works(mode: &str) -> bool {
    let scratch = Scratch::with_issues(1, &[]);
    let ended = scratch.worker(0, "w", "true", "true");
    let ended = ended.args(["--sandbox", mode]).end();
    if ended.code == Some(0) {
        return true;
    }
    let ended = ended.exits(3).says("does not work here");
    skipped(&format!("confinement by {mode}"), ended.stderr.trim());
    false
}

/// An agent that tries commands, and leaves word of which went through.
fn trying(scratch: &Scratch, tries: &[(&str, String)]) -> String {
    let file = scratch.folder().join("agent.sh");
    let mut script = String::from("say() { echo \"$1\" >> \"$HOME/went\"; }\n: > \"$HOME/went\"\n");
    for (name, command) in tries {
        script.push_str(&format!(
            "if ({command}) 2>> \"$HOME/errors\"; then say {name}; fi\n"
        ));
    }
    fs::write(&file, script).unwrap();
    format!("sh '{}'", file.display())
}

fn went(scratch: &Scratch) -> Vec<String> {
    let text = fs::read_to_string(scratch.home().join("went")).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// What no command of a lane has any business with.
fn misbehaviours(scratch: &Scratch) -> Vec<(&'static str, String)> {
    let root = scratch.root.display();
    let folder = scratch.folder();
    let folder = folder.display();
    let other = scratch.lanes[1].display();
    vec![
        (
            "append",
            r#"echo '{"id":"z"}' >> "$PREMATH_ISSUES_PATH""#.into(),
        ),
        ("truncate", r#": > "$PREMATH_ISSUES_PATH""#.into()),
        ("remove", r#"rm -f "$PREMATH_ISSUES_PATH""#.into()),
        (
            "replace",
            format!("mv src/base.txt '{root}/.premath/issues.jsonl'"),
        ),
        (
            "move-aside",
            format!("mv '{root}/.premath' '{root}/.other'"),
        ),
        (
            "link",
            r#"ln "$PREMATH_ISSUES_PATH" linked && : > linked"#.into(),
        ),
        (
            "symlink",
            r#"ln -sf "$PREMATH_ISSUES_PATH" src/soft && echo x >> src/soft"#.into(),
        ),
        (
            "trajectory",
            format!("echo x >> '{root}/.premath/harness_trajectory.jsonl'"),
        ),
        ("artifacts", format!("echo x > '{root}/artifacts/x'")),
        ("main", format!("echo x > '{root}/README.md'")),
        ("lane", format!("echo x > '{other}/src/base.txt'")),
        (
            "lane-git",
            format!("echo x > '{root}/.git/worktrees/lane-2/HEAD'"),
        ),
        (
            "target",
            "git update-ref refs/heads/harness/integration HEAD~0".into(),
        ),
        ("branch", "git update-ref refs/heads/main HEAD".into()),
        ("config", "git config core.hooksPath /".into()),
        ("hook", format!("echo x > '{root}/.git/hooks/post-commit'")),
        ("home", format!("echo x > '{folder}/x'")),
    ]
}

/// What an agent and its tools cannot do without.
fn work() -> Vec<(&'static str, String)> {
    [
        ("edit", "echo edited > src/base.txt; echo new > new.txt"),
        (
            "folders",
            "mkdir -p a/b c; echo x > a/b/x; mv a/b c/b; rm -r a c",
        ),
        (
            "temporary",
            r#"cp new.txt "$TMPDIR/x"; echo x > "$(mktemp)"; [ "$TMP" = "$TMPDIR" ]"#,
        ),
        ("devices", "echo x > /dev/null; echo x >> /dev/stderr"),
        ("outbox", r#": > "$PREMATH_OUTBOX"; rm "$PREMATH_OUTBOX""#),
        ("read", r#"cat "$PREMATH_ISSUES_PATH" > /dev/null"#),
        (
            "commit",
            "rm -f src/soft; git add -A && git commit -qm work && git status --short",
        ),
        // What git leaves of these is not an unfinished work.
        (
            "pick",
            "echo p > p && git add p && git commit -qm p && git revert --no-edit HEAD && git cherry-pick HEAD~1",
        ),
    ]
    .map(|(name, command)| (name, command.to_owned()))
    .into()
}

#[test]
fn a_confined_command_writes_its_own_and_nothing_else() {
    for mode in CONFINING.into_iter().filter(|mode| works(mode)) {
        let scratch = Scratch::with_issues(2, &[issue("a")]);
        let mut tries = misbehaviours(&scratch);
        tries.extend(work());
        let work = trying(&scratch, &tries);
        let before = fs::read(scratch.root.join("README.md")).unwrap();
        let ended = scratch
            .landing_worker(0, "w", &work, "test -e new.txt && touch \"$TMPDIR/y\"")
            .args(["--sandbox", mode])
            .end()
            .exits(0)
            .says(&format!("commands are confined by {mode}"));
        // What git does is done to the step's own git folder.
        let expected = [
            "target",
            "branch",
            "config",
            "edit",
            "folders",
            "temporary",
            "devices",
            "outbox",
            "read",
            "commit",
            "pick",
        ];
        assert_eq!(went(&scratch), expected, "{mode}\n{}", ended.stderr);
        let errors = fs::read_to_string(scratch.home().join("errors")).unwrap();
        assert!(
            errors.contains("Permission denied") || errors.contains("Read-only file system"),
            "{errors}"
        );
        assert_eq!(scratch.issue("a")["status"], "closed");
        assert_eq!(scratch.issues().len(), 1);
        assert_eq!(fs::read(scratch.root.join("README.md")).unwrap(), before);
        let git = scratch.git();
        assert!(git.config().unwrap().get_string("core.hooksPath").is_err());
        assert_eq!(scratch.messages_on("main"), [""; 0]);
        assert_eq!(
            scratch.file_on("harness/integration", "new.txt").as_deref(),
            Some("new\n")
        );
        assert!(!ended.stderr.contains("memory_changed_outside"));
        assert_eq!(temporary(&scratch), Vec::<PathBuf>::new());
        is_bound_to_profile(&scratch, mode);
    }
}

/// Checks that the turn is bound to a profile, whose document is there.
#[track_caller]
fn is_bound_to_profile(scratch: &Scratch, mode: &str) {
    let folder = scratch.root.join("artifacts/ciwitness");
    let input = &read(&folder.join("w.a.1.turn.json"))["input"]["evidence"];
    let reference = input["callSpec"]["runtimeSandboxRef"].as_str().unwrap();
    let policy = &input["callSpec"]["executionBoundaryPolicy"];
    assert_eq!(policy["shellTools"][0], "shell.exec");
    for row in input["toolResults"].as_array().unwrap() {
        assert_eq!(row["facts"]["shell"]["sandboxRef"], reference);
    }
    let profile = read(&folder.join(format!("{reference}.json")));
    assert_eq!(profile["mode"], mode);
    let digest = premath_kernel::json::canonical::canonical_value(&profile);
    let digest = premath_kernel::json::canonical::sha256_hex(digest.as_bytes());
    assert_eq!(reference, format!("sandbox1_{digest}"));
    assert_eq!(
        read(&folder.join("w.a.1.work.json"))["sandboxRef"],
        reference
    );
}

/// Returns the temporary folders of steps that are left.
fn temporary(scratch: &Scratch) -> Vec<PathBuf> {
    let entries = fs::read_dir(scratch.folder()).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.starts_with("premath-")
    };
    paths.filter(is_ours).collect()
}

#[test]
fn a_command_that_is_not_confined_claims_no_profile() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch
        .worker(0, "w", r#"echo "$TMPDIR" > "$HOME/went""#, "true")
        .args(["--sandbox", "none"])
        .end()
        .exits(0)
        .says("commands are not confined, as requested");
    let folder = scratch.root.join("artifacts/ciwitness");
    let input = &read(&folder.join("w.a.1.turn.json"))["input"]["evidence"];
    assert!(input["callSpec"].get("runtimeSandboxRef").is_none());
    assert!(input["callSpec"].get("executionBoundaryPolicy").is_none());
    assert!(
        read(&folder.join("w.a.1.work.json"))
            .get("sandboxRef")
            .is_none()
    );
    let inherited = scratch.folder().to_string_lossy().into_owned();
    assert_eq!(went(&scratch), [inherited]);
}

#[test]
fn a_sandbox_that_is_named_and_does_not_work_here_is_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let before = scratch.issue_bytes();
    // A user namespace in which no other can be made.
    let switched_off = [
        "-U",
        "--keep-caps",
        "sh",
        "-c",
        r#"echo 0 > /proc/sys/user/max_user_namespaces && exec "$@""#,
        "sh",
    ];
    let can_be = premath_tests::command("unshare")
        .args(["-U", "--keep-caps", "true"])
        .status();
    if can_be.is_ok_and(|status| status.success()) {
        scratch
            .run(Path::new("unshare"))
            .args(switched_off)
            .arg(&binaries().coordinator)
            .args(["--override-reason", "test", "--lanes", "1"])
            .args(["--work-cmd", "true", "--verify-cmd", "true"])
            .args(["--sandbox", "namespaces"])
            .end()
            .exits(3)
            .says("the sandbox `namespaces` does not work here: ")
            .says("user namespaces are switched off")
            .says("refused before dispatch: sandbox_unavailable");
    } else {
        skipped("a sandbox that does not work", "no user namespaces here");
    }
    assert_eq!(scratch.issue_bytes(), before);
    fs::write(
        scratch.root.join("harness.toml"),
        "[sandbox]\nmode = \"jail\"\n",
    )
    .unwrap();
    scratch.batch("true", "true").end().exits(2).says(
        "harness.toml:2: `mode`: invalid sandbox mode `jail`: expected `namespaces`, \
              `container`, `landlock` or `none`",
    );
    scratch
        .batch("true", "true")
        .env("PREMATH_SANDBOX", "jail")
        .arg("--config")
        .arg("/dev/null")
        .end()
        .exits(2)
        .says("--sandbox: invalid sandbox mode `jail`");
}

#[test]
fn what_a_person_opens_is_open_but_for_issue_memory() {
    for mode in CONFINING.into_iter().filter(|mode| works(mode)) {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        let shared = scratch.folder().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::write(
            scratch.root.join("harness.toml"),
            "[sandbox]\nwrite = [\"../shared\", \".\", \"../gone\"]\n",
        )
        .unwrap();
        let tries = [
            ("shared", format!("echo x > '{}/x'", shared.display())),
            ("memory", "echo x >> \"$PREMATH_ISSUES_PATH\"".to_owned()),
        ];
        let work = trying(&scratch, &tries);
        scratch
            .worker(0, "w", &work, "true")
            .args(["--sandbox", mode])
            .end()
            .exits(0)
            .says("which holds the issue store or artifacts; it stays read-only")
            .says("gone, which does not exist; ignored");
        assert_eq!(went(&scratch), ["shared"], "{mode}");
    }
}

#[test]
fn a_worktree_that_holds_issue_memory_is_kept_from_it_by_namespaces_alone() {
    let tries = [
        ("top", "echo x > top.txt".to_owned()),
        (
            "memory",
            "echo '{\"id\":\"z\",\"title\":\"z\",\"status\":\"closed\"}' >> \"$PREMATH_ISSUES_PATH\"".to_owned(),
        ),
        ("outside", "echo x > ../x".to_owned()),
        (
            "outbox",
            ": > \"$PREMATH_OUTBOX\"; rm \"$PREMATH_OUTBOX\"".to_owned(),
        ),
        ("commit", "git add top.txt && git commit -qm top".to_owned()),
    ];
    for mode in CONFINING.into_iter().filter(|mode| works(mode)) {
        let scratch = Scratch::with_issues(0, &[issue("a")]);
        let work = trying(&scratch, &tries);
        let run = scratch.batch_on(std::slice::from_ref(&scratch.root), &work, "true");
        let run = run.args(["--sandbox", mode]);
        if mode == "landlock" {
            let refused = run.end().exits(1).stdout;
            let why = "cannot protect the git folder of the main checkout";
            assert!(refused.contains(why), "{refused}");
            assert_eq!(scratch.issue("a")["status"], "open");
            continue;
        }
        let ended = run.end().exits(0);
        let warned = ended
            .stdout
            .contains("which landlock cannot hide from its commands");
        let changed = ended
            .events()
            .iter()
            .any(|e| e["event"] == "memory.changed");
        assert_eq!(went(&scratch), ["top", "outbox", "commit"]);
        assert!(!warned && !changed, "{}", ended.stdout);
    }
}

#[test]
fn a_killed_harness_leaves_no_temporary_folder() {
    if !works("landlock") {
        return;
    }
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let work =
        r#"mkdir -p "$TMPDIR/a/b"; chmod 500 "$TMPDIR/a"; touch "$HOME/started"; sleep 1000"#;
    let running = scratch
        .worker(0, "w", work, "true")
        .args(["--sandbox", "landlock"])
        .start();
    let started = scratch.home().join("started");
    until(PATIENCE, || started.exists().then_some(())).expect("the work starts");
    assert_eq!(temporary(&scratch).len(), 1);
    running.signal(Signal::KILL);
    drop(running);
    scratch.no_process_left();
    assert_eq!(temporary(&scratch), Vec::<PathBuf>::new());
}

/// A batch whose agent is not confined.
fn free(scratch: &Scratch, work: &str) -> Run {
    scratch.batch(work, "true").args(["--sandbox", "none"])
}

#[test]
fn an_unconfined_change_of_issue_memory_is_found_reported_and_recorded() {
    let cases = [
        (
            r#"echo '{"id":"z","title":"z","status":"closed"}' >> "$PREMATH_ISSUES_PATH""#,
            (1, 0, 0),
        ),
        (
            r#"sed -i 's/"title":"issue b"/"title":"other"/' "$PREMATH_ISSUES_PATH""#,
            (0, 1, 0),
        ),
        (
            r#"grep -v '"id":"b"' "$PREMATH_ISSUES_PATH" > left; cat left > "$PREMATH_ISSUES_PATH"; rm left"#,
            (0, 0, 1),
        ),
    ];
    for (work, (added, altered, removed)) in cases {
        let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
        // The second issue waits, so that it is there to be changed.
        let work = format!("[ \"$PREMATH_ISSUE_ID\" != a ] || {{ {work}; }}");
        let ended = free(&scratch, &work).args(["--rounds", "1"]).end().exits(0);
        let events = ended.events();
        let found: Vec<&Value> = events
            .iter()
            .filter(|event| event["event"] == "memory.changed")
            .collect();
        assert_eq!(found.len(), 1, "{work}\n{}", ended.stdout);
        assert_eq!(found[0]["failureClass"], "memory_changed_outside");
        assert_eq!(found[0]["added"], added, "{work}");
        assert_eq!(found[0]["altered"], altered, "{work}");
        assert_eq!(found[0]["removed"], removed, "{work}");
        assert_eq!(events.last().unwrap()["memoryChanges"], 1);
        let rows = scratch.trajectory();
        let row = rows
            .iter()
            .find(|row| row["action"] == "coordinator.memory_changed")
            .unwrap();
        assert_eq!(row["failureClasses"][0], "memory_changed_outside");
    }
}

#[test]
fn what_an_agent_hides_behind_a_transaction_of_its_own_is_found_all_the_same() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let premath = binaries().premath.display().to_string();
    let work = format!(
        r#"echo '{{"id":"z","title":"z"}}' >> "$PREMATH_ISSUES_PATH"
env -u PREMATH_STEP_ID '{premath}' issue update z --title other --override-reason me
(env -i setsid '{premath}' issue update z --title other --override-reason me) || true"#
    );
    let ended = free(&scratch, &work).end();
    // No command below a supervisor is a person, whatever it unsets.
    assert_eq!(scratch.issue("z")["title"], "z", "{}", ended.stderr);
    let printed = |event: &Value| event["event"] == "memory.changed";
    assert!(ended.events().iter().any(printed), "{}", ended.stdout);
}

/// A command cannot hide its supervisor behind processes of its own.
#[test]
fn a_command_far_below_its_supervisor_is_not_a_person() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("z")]);
    let premath = binaries().premath.display().to_string();
    let memory = scratch.root.join(".premath/issues.jsonl");
    let asked = scratch.root.join("asked");
    let work = format!(
        r#"[ "$PREMATH_ISSUE_ID" = a ] || exit 1
env -i PATH="$PATH" bash -c 'below() {{ if [ "$1" = 0 ]; then
  "{premath}" issue update z --status closed --override-reason me --issues "{memory}" 2> "{asked}"; true
else (below $(($1 - 1)); true); fi; }}; below 300'"#,
        memory = memory.display(),
        asked = asked.display(),
    );
    let ended = free(&scratch, &work)
        .args(["--max-steps-per-worker", "1"])
        .end();
    assert_eq!(scratch.issue("a")["status"], "closed", "{}", ended.stderr);
    let refused = fs::read_to_string(asked).unwrap();
    assert!(refused.contains("inside a step"), "{refused}");
    assert_ne!(scratch.issue("z")["status"], "closed");
}

/// Attack 16: a later transaction must not launder an edited row.
#[test]
fn an_edited_row_is_reported_by_every_batch_and_by_doctor_until_it_is_accepted() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    free(&scratch, "echo x > \"$PREMATH_ISSUE_ID\"")
        .end()
        .exits(0);
    let text = String::from_utf8(scratch.issue_bytes()).unwrap();
    let edited = text.replace("\"title\":\"issue b\"", "\"title\":\"other\"");
    scratch.write_issues(format!("{edited}{}\n", issue("c")).as_bytes());
    // Two batches make transactions of their own in between.
    for _ in 0..2 {
        let ended = free(&scratch, "echo x > \"$PREMATH_ISSUE_ID\"")
            .end()
            .exits(0);
        let events = ended.events();
        let warned = events.iter().any(|event| {
            event["event"] == "batch.warning"
                && event["detail"]
                    .as_str()
                    .is_some_and(|detail| detail.contains("b (altered: title)"))
        });
        assert!(warned, "{}", ended.stdout);
        let last = events.last().unwrap();
        assert_eq!(last["unacceptedChanges"], json!(["b", "c"]));
    }
    assert_eq!(scratch.issue("c")["status"], "closed");
    let doctor = |code| {
        let run = scratch.premath(["doctor"]).end().exits(code);
        run.stdout
    };
    let printed = doctor(1);
    assert!(printed.contains("altered: title"), "{printed}");
    let accept = |which: &str| {
        let reason = ["--override-reason", "edited by hand"];
        let words = ["issue", "accept-changes", which];
        scratch.premath(words).args(reason).end()
    };
    accept("a").exits(1);
    scratch
        .premath(["issue", "accept-changes", "b"])
        .end()
        .exits(2);
    accept("b").exits(0);
    accept("--all").exits(0);
    doctor(0);
    let rows = scratch.trajectory();
    let accepted = rows
        .iter()
        .filter(|row| row["action"] == "operator.changes_accepted");
    let accepted: Vec<_> = accepted.map(|row| row["issueId"].clone()).collect();
    assert_eq!(accepted, [json!("b"), json!("c")]);
    let ended = free(&scratch, "true").end().exits(0);
    assert_eq!(
        ended.events().last().unwrap()["unacceptedChanges"],
        json!([])
    );
}

#[test]
fn a_batch_in_which_everybody_asks_finds_no_change() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b"), issue("c")]);
    let ended = free(&scratch, "echo x > \"$PREMATH_ISSUE_ID\"")
        .end()
        .exits(0);
    assert_eq!(ended.events().last().unwrap()["memoryChanges"], 0);
    // What a person does between two batches is none of the second one's.
    let mut text = scratch.issue_bytes();
    text.extend_from_slice(format!("{}\n", issue("d")).as_bytes());
    scratch.write_issues(&text);
    let ended = free(&scratch, "true").end().exits(0);
    assert_eq!(ended.events().last().unwrap()["memoryChanges"], 0);
    assert_eq!(scratch.issue("d")["status"], "closed");
}

#[test]
fn another_worktree_that_an_unconfined_agent_changed_is_abandoned_by_name() {
    let scratch = Scratch::with_issues(2, &[issue("a"), issue("b")]);
    let other = scratch.lanes[1].join("src/base.txt");
    scratch
        .worker(0, "w", &format!("echo x > '{}'", other.display()), "true")
        .args(["--sandbox", "none"])
        .end()
        .exits(0);
    let ended = scratch
        .batch_on(&scratch.lanes[1..], "true", "true")
        .end()
        .exits(1);
    let given_up = |event: &Value| {
        event["event"] == "lane.given_up" && event["failureClass"] == "worktree_dirty"
    };
    assert!(ended.events().iter().any(given_up), "{}", ended.stdout);
    assert_eq!(scratch.issue("b")["status"], "open");
}

/// A step could have put a link there, to a file that no step may read.
#[test]
fn a_folder_of_path_in_a_worktree_shows_no_file_elsewhere() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    let elsewhere = Scratch::new(0);
    let secret = elsewhere.folder().join("secret");
    fs::write(&secret, "SECRET\n").unwrap();
    let bin = scratch.lanes[0].join("ignored/bin");
    fs::create_dir_all(&bin).unwrap();
    std::os::unix::fs::symlink(&secret, bin.join("tool")).unwrap();
    let others = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&others)));
    // What a command of the operator's names may be read: the link names it here.
    let run = scratch
        .batch("cat ignored/bin/tool; echo read", "true")
        .env("PATH", path.unwrap());
    run.end().exits(0);
    let streams = fs::read_dir(scratch.root.join("artifacts/streams")).unwrap();
    let said: String = streams
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
        .collect();
    assert!(
        said.contains("read\n") && !said.contains("SECRET"),
        "{said}"
    );
}

#[test]
fn a_git_folder_serves_the_next_step_unless_its_files_can_be_handed_out() {
    if !works("namespaces") {
        return;
    }
    let cases = [("public", "", "", 1), ("open", "", "", 3)];
    let opened = [("public", "/opened", "", 3), ("public", "", "/opened", 3)];
    for (network, read, write, folders) in cases.into_iter().chain(opened) {
        let scratch = Scratch::with_issues(0, &["a", "b", "c"].map(issue));
        fs::create_dir(scratch.folder().join("opened")).unwrap();
        let place = |name: &str| match name {
            "" => String::new(),
            name => format!("{}{name}", scratch.folder().display()),
        };
        let work = r#"stat -c %y /premath/git/config > "src/$PREMATH_ISSUE_ID.txt""#;
        let run = scratch.landing_batch(work, "true");
        let run = run.args(["--lanes", "1", "--sandbox", "namespaces"]);
        let run = run.args(["--network-work", network]);
        let run = run.env("PREMATH_SANDBOX_READ", place(read));
        let run = run.env("PREMATH_SANDBOX_WRITE", place(write));
        run.end().exits(0);
        let of = |id| scratch.file_on("harness/integration", &format!("src/{id}.txt"));
        let written: BTreeSet<String> = ["a", "b", "c"].map(|id| of(id).unwrap()).into();
        assert_eq!(
            written.len(),
            folders,
            "{network} {read} {write}: {written:?}"
        );
    }
}
