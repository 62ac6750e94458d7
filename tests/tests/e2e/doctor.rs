//! Every problem that the doctor looks for and that can be planted, one at a
//! time in a fresh repository.

mod remotes;
mod verification;

use premath_tests::{Run, Scratch, issue};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Settings by which a batch can begin.
const SETTINGS: &str = "[batch]\nwork_cmd = \"true\"\nverify_cmd = \"true\"\n\
    mutation_mode = \"human-override\"\noverride_reason = \"test\"\n";

const DAY: Duration = Duration::from_secs(86_400);

/// A problem.
struct Problem {
    /// The check that finds it.
    id: &'static str,
    /// How it comes about.
    plant: fn(&Scratch),
    /// What a repair may change: a part of the paths. `None` where there is no
    /// safe repair.
    repaired: Option<&'static str>,
    /// Whether the verification is run, which leaves witnesses.
    verifies: bool,
    /// A finding that comes with it.
    also: Option<&'static str>,
}

const fn problem(id: &'static str, plant: fn(&Scratch)) -> Problem {
    Problem {
        id,
        plant,
        repaired: None,
        verifies: false,
        also: None,
    }
}

/// A problem that the verification has, or that keeps it from running.
const fn verified(id: &'static str, plant: fn(&Scratch), also: Option<&'static str>) -> Problem {
    Problem {
        verifies: true,
        also,
        ..problem(id, plant)
    }
}

const fn fixable(id: &'static str, plant: fn(&Scratch), changes: &'static str) -> Problem {
    Problem {
        repaired: Some(changes),
        ..problem(id, plant)
    }
}

/// A repository in which all is well, with a program of each agent.
fn ground() -> Scratch {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    scratch.premath(["init"]).end().exits(0);
    let bin = scratch.home().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::write(bin.join("claude"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(bin.join("claude"), Permissions::from_mode(0o755)).unwrap();
    let mut config = scratch.git().config().unwrap();
    config.set_str("user.name", "t").unwrap();
    config.set_str("user.email", "t@localhost").unwrap();
    set(&scratch, SETTINGS);
    // What the first look at the store makes is there.
    scratch.premath(["issue", "add", "c"]).end().exits(0);
    scratch
}

/// Writes the settings, and accepts them.
fn set(scratch: &Scratch, settings: &str) {
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    accept(scratch);
}

fn accept(scratch: &Scratch) {
    scratch.premath(["trust", "--yes"]).end().exits(0);
}

fn doctor(scratch: &Scratch, arguments: &[&str]) -> Run {
    let path = std::env::var("PATH").unwrap_or_default();
    let bin = scratch.home().join("bin").display().to_string();
    let path = match scratch.home().join("alone").exists() {
        true => bin,
        false => format!("{bin}:{path}"),
    };
    let run = scratch.premath(["doctor", "--json"]);
    run.args(arguments).env("PATH", path)
}

/// Returns the ids of findings, sorted.
fn ids(answer: &Value) -> Vec<String> {
    let findings = answer["findings"].as_array().unwrap().iter();
    let mut ids: Vec<String> = findings
        .map(|finding| finding["id"].as_str().unwrap().to_owned())
        .collect();
    ids.sort();
    ids
}

fn agent(scratch: &Scratch, name: &str, more: &str) {
    set(
        scratch,
        &format!(
            "[agent]\nuse = [\"{name}\"]\n{}{more}",
            SETTINGS.replace("work_cmd = \"true\"\n", "")
        ),
    );
}

/// Writes a program that the doctor finds first.
fn program(scratch: &Scratch, name: &str, script: &str) -> PathBuf {
    let path = scratch.home().join("bin").join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    path
}

/// Has the landing target pushed to a remote of an address.
fn push_to(scratch: &Scratch, url: &str) {
    scratch.git().remote("origin", url).unwrap();
    let push = "[landing]\npush = \"origin\"\n";
    set(scratch, &format!("{SETTINGS}{push}"));
}

/// Makes a bare repository beside this one, whose landing target has a commit of its
/// own; returns its folder.
fn diverged(scratch: &Scratch) -> PathBuf {
    let folder = scratch.folder().join("bare");
    let there = git2::Repository::init_bare(&folder).unwrap();
    let who = git2::Signature::now("t", "t@localhost").unwrap();
    let tree = there.treebuilder(None).unwrap().write().unwrap();
    let tree = there.find_tree(tree).unwrap();
    let target = Some("refs/heads/harness/integration");
    there
        .commit(target, &who, &who, "theirs", &tree, &[])
        .unwrap();
    folder
}

/// Sets a program in the place of ssh.
fn ssh(scratch: &Scratch, script: &str) {
    let ssh = program(scratch, "reach", script).display().to_string();
    let mut config = scratch.git().config().unwrap();
    config.set_str("core.sshCommand", &ssh).unwrap();
}

/// An ssh that reaches repositories of this machine.
const REACHES: &str = "for last; do :; done; exec /bin/sh -c \"$last\"";

/// Adds a row to the run log.
fn log(scratch: &Scratch, action: &str, result: &str, classes: &[&str]) {
    let row = json!({
        "schema": 1, "stepKind": "premath.harness.step.v1", "stepId": "test.1",
        "action": action, "resultClass": result, "failureClasses": classes,
        "finishedAt": "2026-03-05T10:00:00Z",
    });
    append(&scratch.trajectory_path(), &format!("{row}\n"));
}

fn sign_in(scratch: &Scratch) {
    let folder = scratch.home().join(".claude");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join(".credentials.json"), "{}").unwrap();
}

/// Makes an instruction, and settings that rest on it.
fn instructed(scratch: &Scratch, file: &str) {
    let more = SETTINGS.replace(
        "mutation_mode = \"human-override\"\noverride_reason = \"test\"\n",
        "",
    );
    set(scratch, &format!("{more}instruction = \"{file}\"\n"));
}

fn age(path: &Path, time: SystemTime) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_modified(time).unwrap();
}

fn old(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    age(path, SystemTime::now() - 20 * DAY);
}

fn rows(scratch: &Scratch, rows: &[Value]) {
    // A store without a seal is one that no transaction has changed.
    for entry in fs::read_dir(scratch.root.join(".premath"))
        .unwrap()
        .flatten()
    {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with("issues.jsonl")
        {
            fs::remove_file(entry.path()).unwrap();
        }
    }
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    scratch.write_issues(text.as_bytes());
}

fn with(id: &str, fields: &Value) -> Value {
    let mut row = issue(id);
    for (name, value) in fields.as_object().unwrap() {
        row[name] = value.clone();
    }
    row
}

fn waits(id: &str, on: &str) -> Value {
    let edge = json!({"issue_id": id, "depends_on_id": on, "type": "blocks"});
    with(id, &json!({"dependencies": [edge]}))
}

fn append(path: &Path, text: &str) {
    let mut bytes = fs::read(path).unwrap_or_default();
    bytes.extend_from_slice(text.as_bytes());
    fs::write(path, bytes).unwrap();
}

/// Makes a private folder below the repository.
fn private(path: &Path) {
    fs::create_dir_all(path).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
}

/// Changes a policy that was sealed.
fn unseal(path: &Path) {
    let mut policy: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let digest = policy["policyDigest"].as_str().unwrap().to_owned();
    let other = if digest.ends_with('0') { "1" } else { "0" };
    policy["policyDigest"] = format!("{}{other}", &digest[..digest.len() - 1]).into();
    fs::write(path, policy.to_string()).unwrap();
}

const PROBLEMS: &[Problem] = &[
    problem("settings-missing", |scratch| {
        fs::remove_file(scratch.root.join("harness.toml")).unwrap();
        accept(scratch);
    }),
    problem("settings-invalid", |scratch| {
        set(scratch, "[landing]\ntargt = 1\n")
    }),
    problem("landing-target-unusable", |scratch| {
        set(
            scratch,
            &format!("{SETTINGS}[landing]\ntarget = \"main\"\n"),
        );
    }),
    problem("work-command-missing", |scratch| {
        set(scratch, &SETTINGS.replace("work_cmd = \"true\"\n", ""));
    }),
    problem("verify-command-missing", |scratch| {
        set(scratch, &SETTINGS.replace("verify_cmd = \"true\"\n", ""));
    }),
    problem("program-missing", |scratch| {
        set(
            scratch,
            &SETTINGS.replace("work_cmd = \"true\"", "work_cmd = \"nowhere-at-all x\""),
        );
    }),
    problem("agent-missing", |scratch| agent(scratch, "opencode", "")),
    problem("agent-not-signed-in", |scratch| {
        agent(scratch, "claude", "")
    }),
    problem("instruction-missing", |scratch| {
        instructed(scratch, "instructions/none.json")
    }),
    problem("instruction-refused", |scratch| {
        fs::write(scratch.root.join("instructions/x.json"), "{}").unwrap();
        instructed(scratch, "instructions/x.json");
    }),
    problem("instruction-other-evidence", |scratch| {
        sign_in(scratch);
        let made = fs::read_dir(scratch.root.join("instructions")).unwrap();
        let made = made.flatten().next().unwrap().file_name();
        let text = format!(
            "[agent]\nuse = [\"claude\"]\n[batch]\nverify_cmd = \"true\"\ninstruction = \"instructions/{}\"\n",
            made.to_string_lossy()
        );
        set(scratch, &text);
    }),
    problem("override-not-admitted", |scratch| {
        set(
            scratch,
            &SETTINGS.replace("override_reason = \"test\"\n", ""),
        );
    }),
    problem("turn-policy-unsealed", |scratch| {
        unseal(
            &scratch
                .root
                .join("policies/control/harness-turn-policy-v1.json"),
        );
        accept(scratch);
    }),
    problem("retry-policy-unsealed", |scratch| {
        let file = "policies/control/harness-retry-policy-v1.json";
        let policy = premath_kernel::policy::retry::RetryPolicy::embedded_text();
        fs::write(scratch.root.join(file), policy).unwrap();
        unseal(&scratch.root.join(file));
        accept(scratch);
    }),
    problem("governing-files-unaccepted", |scratch| {
        append(&scratch.root.join("harness.toml"), "# changed\n");
    }),
    problem("author-missing", |scratch| {
        let mut config = scratch.git().config().unwrap();
        config.remove("user.email").unwrap();
    }),
    problem("git-setting-unusual", |scratch| {
        let mut config = scratch.git().config().unwrap();
        config.set_bool("core.autocrlf", true).unwrap();
    }),
    problem("push-remote-missing", |scratch| {
        set(
            scratch,
            &format!("{SETTINGS}[landing]\npush = \"origin\"\n"),
        );
    }),
    problem("push-remote-unreachable", |scratch| {
        scratch.git().remote("origin", "../nowhere").unwrap();
        set(
            scratch,
            &format!("{SETTINGS}[landing]\npush = \"origin\"\n"),
        );
    }),
    problem("push-remote-unreachable", |scratch| {
        // Nothing listens there any more.
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = closed.local_addr().unwrap();
        push_to(scratch, &format!("git://{address}/repo.git"));
    }),
    problem("push-remote-unreachable", |scratch| {
        ssh(scratch, "echo 'Permission denied' >&2; exit 255");
        push_to(scratch, "ssh://git@localhost/repo.git");
    }),
    problem("push-refused", |scratch| {
        let there = diverged(scratch);
        push_to(scratch, &there.display().to_string());
    }),
    problem("push-refused", |scratch| {
        let there = diverged(scratch);
        ssh(scratch, REACHES);
        push_to(scratch, &format!("ssh://localhost{}", there.display()));
    }),
    problem("git-missing", |scratch| {
        let bin = scratch.home().join("bin");
        symlink("/bin/true", bin.join("true")).unwrap();
        fs::write(scratch.home().join("alone"), "").unwrap();
    }),
    Problem {
        also: Some("git-missing"),
        ..problem("push-git-missing", |scratch| {
            let there = scratch.folder().join("there.git");
            git2::Repository::init_bare(&there).unwrap();
            push_to(scratch, &there.display().to_string());
            let bin = scratch.home().join("bin");
            symlink("/bin/true", bin.join("true")).unwrap();
            fs::write(scratch.home().join("alone"), "").unwrap();
        })
    },
    problem("git-old", |scratch| {
        program(scratch, "git", "echo 'git version 2.31.8'");
    }),
    problem("git-old", |scratch| {
        program(scratch, "git", "exit 3");
    }),
    problem("signing-key-unusable", |scratch| {
        let key = "[signing]\nkey = \"../none\"\n";
        set(scratch, &format!("{SETTINGS}{key}"));
    }),
    problem("policy-invalid", |scratch| {
        let file = "policies/control/harness-turn-policy-v1.json";
        fs::write(scratch.root.join(file), "{}").unwrap();
        accept(scratch);
    }),
    verified(
        "baseline-red",
        |scratch| {
            let red = "verify_cmd = \"false\"";
            set(scratch, &SETTINGS.replace("verify_cmd = \"true\"", red));
        },
        None,
    ),
    verified(
        "baseline-unverified",
        |scratch| append(&scratch.root.join("harness.toml"), "# changed\n"),
        Some("governing-files-unaccepted"),
    ),
    problem("baseline-was-red", |scratch| {
        let classes = ["startup_check_failed"];
        log(scratch, "coordinator.lane_given_up", "failed", &classes);
    }),
    problem("file-time-in-future", |scratch| {
        age(&scratch.issues_path(), SystemTime::now() + DAY);
    }),
    problem("issue-line-unreadable", |scratch| {
        append(&scratch.issues_path(), "no row\n")
    }),
    problem("run-log-line-unreadable", |scratch| {
        append(&scratch.trajectory_path(), "no row\n")
    }),
    problem("torn-line", |scratch| {
        append(&scratch.trajectory_path(), "{\"stepId\": ")
    }),
    problem("issues-changed-outside", |scratch| {
        let path = scratch.issues_path();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace("issue a", "issue z")).unwrap();
    }),
    problem("dependency-cycle", |scratch| {
        rows(scratch, &[waits("a", "b"), waits("b", "a")])
    }),
    problem("dependency-missing", |scratch| {
        rows(scratch, &[waits("a", "none")])
    }),
    problem("status-unknown", |scratch| {
        rows(scratch, &[with("a", &json!({"status": "done"}))]);
    }),
    problem("in-progress-without-lease", |scratch| {
        rows(scratch, &[with("a", &json!({"status": "in_progress"}))]);
    }),
    problem("lease-stale", |scratch| {
        let lease = json!({"lease_id": "l", "owner": "w", "acquired_at": "2026-01-01T00:00:00Z",
            "renewed_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T01:00:00Z", "generation": 1});
        let fields = json!({"status": "in_progress", "assignee": "w", "lease": lease, "lease_generation": 1});
        rows(scratch, &[with("a", &fields)]);
    }),
    fixable(
        "worktree-gone",
        |scratch| fs::remove_dir_all(&scratch.lanes[0]).unwrap(),
        ".git/worktrees",
    ),
    fixable(
        "step-branch-left",
        |scratch| {
            rows(scratch, &[with("a", &json!({"status": "closed"}))]);
            let git = scratch.git();
            let head = git.head().unwrap().peel_to_commit().unwrap();
            git.branch("harness/a/1", &head, false).unwrap();
        },
        ".git/",
    ),
    fixable(
        "git-lock-stale",
        |scratch| {
            old(
                &scratch
                    .root
                    .join(".git/refs/heads/harness/integration.lock"),
                "",
            );
        },
        ".git/refs/heads/harness",
    ),
    fixable(
        "torn-file-left",
        |scratch| {
            old(&scratch.root.join(".premath/issues.jsonl.torn-1"), "{");
        },
        "issues.jsonl.torn-1",
    ),
    fixable(
        "temporary-file-left",
        |scratch| {
            old(
                &scratch.root.join(".premath/.premath-tmp-999999999-1-0"),
                "x",
            );
        },
        ".premath-tmp-",
    ),
    fixable(
        "private-place-open",
        |scratch| {
            private(&scratch.root.join(".premath/private"));
            let path = scratch.root.join(".premath/private/token");
            fs::write(&path, "x").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        },
        ".premath/private/token",
    ),
    fixable(
        "control-socket-left",
        |scratch| {
            let folder = scratch.root.join(".git/premath-control");
            private(&folder);
            drop(UnixListener::bind(folder.join("hb.sock")).unwrap());
        },
        "premath-control/hb.sock",
    ),
    fixable(
        "live-file-invalid",
        |scratch| {
            private(&scratch.root.join(".premath/private"));
            private(&scratch.root.join(".premath/private/live"));
            let path = scratch.root.join(".premath/private/live/hb.json");
            fs::write(&path, "{}").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
        },
        "live/hb.json",
    ),
    fixable(
        "files-not-ignored",
        |scratch| {
            fs::write(scratch.root.join(".git/info/exclude"), "").unwrap();
        },
        ".git/info/exclude",
    ),
];

/// Lists everything below the repository, with its mode and content.
fn listed(scratch: &Scratch) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![scratch.root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let meta = entry.metadata().unwrap();
            let content = match meta.is_file() {
                true => fs::read(entry.path()).unwrap(),
                false => Vec::new(),
            };
            if meta.is_dir() {
                folders.push(entry.path());
            }
            let name = entry.path().display().to_string();
            // Who holds a lock is noted in it.
            if name.ends_with(".flock") {
                continue;
            }
            found.insert(name, (meta.permissions().mode(), content));
        }
    }
    found
}

#[test]
fn doctor_finds_25_planted_problems() {
    const { assert!(PROBLEMS.len() >= 25) };
    let well = doctor(&ground(), &[]).end().exits(0).json();
    let baseline = ids(&well);
    let faults: Vec<String> = PROBLEMS
        .iter()
        .filter_map(|problem| fault(problem, &baseline))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Plants a problem and repairs it; returns what is not as it should be.
fn fault(problem: &Problem, baseline: &[String]) -> Option<String> {
    let scratch = ground();
    (problem.plant)(&scratch);
    let id = problem.id;
    let arguments: &[&str] = match problem.verifies {
        true => &["--verify"],
        false => &[],
    };
    let found = doctor(&scratch, arguments).end().json();
    let mut expected = baseline.to_vec();
    expected.push(id.to_owned());
    expected.extend(problem.also.map(str::to_owned));
    expected.sort();
    if ids(&found) != expected {
        return Some(format!("{id}: found {}", found["findings"]));
    }
    let mut findings = found["findings"].as_array().unwrap().iter();
    let finding = findings.find(|finding| finding["id"] == id).unwrap();
    let is_empty = |field: &&str| finding[*field].as_str().is_none_or(str::is_empty);
    if let Some(field) = ["subject", "problem", "next"].into_iter().find(is_empty) {
        return Some(format!("{id}: no {field}: {finding}"));
    }
    if (finding["fixable"] == true) != problem.repaired.is_some() {
        return Some(format!("{id}: {finding}"));
    }
    let before = listed(&scratch);
    let fixed = doctor(&scratch, &[arguments, &["--fix"]].concat());
    let fixed = fixed.end().json();
    let after = listed(&scratch);
    let names = before.keys().chain(after.keys());
    let changed: Vec<&String> = names
        .filter(|name| before.get(*name) != after.get(*name))
        // A verification is witnessed.
        .filter(|name| !problem.verifies || !name.contains("/artifacts/"))
        .collect();
    let is_right = match problem.repaired {
        Some(changes) => {
            let are_meant = changed.iter().all(|name| name.contains(changes));
            ids(&fixed) == baseline && !changed.is_empty() && are_meant
        }
        None => ids(&fixed) == expected && changed.is_empty(),
    };
    (!is_right).then(|| format!("{id}: changed {changed:?}, left {}", fixed["findings"]))
}

#[test]
fn nothing_that_a_running_batch_may_use_is_repaired() {
    let scratch = ground();
    let work = "touch \"$HOME/started\"; until [ -e \"$HOME/go\" ]; do sleep 0.05; done";
    let batch = scratch.batch(work, "true").start();
    let started = scratch.home().join("started");
    premath_tests::until(premath_tests::PATIENCE, || started.exists().then_some(()))
        .expect("the work starts");
    let temporary = scratch.root.join(".premath/.premath-tmp-999999999-1-0");
    old(&temporary, "x");
    let open = scratch.root.join(".premath/private/open");
    fs::write(&open, "x").unwrap();
    fs::set_permissions(&open, Permissions::from_mode(0o644)).unwrap();
    let fixed = doctor(&scratch, &["--fix"]).end().exits(1).json();
    let repaired = fixed["repaired"].as_array().unwrap();
    let of = |id: &str| {
        let mut found = repaired.iter();
        found.find(|one| one["id"] == id).unwrap_or(&Value::Null)
    };
    assert_eq!(of("temporary-file-left")["left"], "a batch runs");
    assert_eq!(of("private-place-open")["left"], Value::Null);
    assert!(temporary.exists());
    assert_eq!(
        fs::metadata(&open).unwrap().permissions().mode() & 0o777,
        0o600
    );
    fs::write(scratch.home().join("go"), "").unwrap();
    batch.wait();
    scratch.no_process_left();
}
