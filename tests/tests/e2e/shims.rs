//! The Python paths that the seeds name: each runs our binary with the same
//! arguments.

use premath_tests::{Run, Scratch, binaries, command, issue, skipped, workspace};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SHIMS: [(&str, &str, &str); 3] = [
    ("tools/harness/multithread_loop.py", "harness-worker", ""),
    (
        "tools/conformance/run_harness_typestate_vectors.py",
        "premath",
        "conformance run ",
    ),
    ("tools/ci/check_issue_graph.py", "premath", "issue check "),
];

/// The interpreter itself, so that it needs no `PATH`.
fn python() -> Option<PathBuf> {
    let asked = command("python3")
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    let path = String::from_utf8(asked.stdout).ok()?;
    Some(PathBuf::from(path.trim())).filter(|path| path.is_file())
}

fn with_path(run: Run, folders: &[&Path]) -> Run {
    let path: OsString = std::env::join_paths(folders).unwrap();
    run.env("PATH", path)
}

fn shim(scratch: &Scratch, python: &Path, name: &str) -> Run {
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::split_paths(&path);
    let path = std::env::join_paths(std::iter::once(binaries().folder().into()).chain(path));
    scratch
        .run(python)
        .env("PATH", path.unwrap())
        .arg(workspace().join(name))
}

#[test]
fn a_batch_runs_by_the_path_that_the_seeds_name() {
    let Some(python) = python() else {
        return skipped("the Python shims", "`python3` is not on PATH");
    };
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let lane = scratch.lanes[0].to_str().unwrap();
    let run = |arguments: &[&str]| {
        shim(&scratch, &python, SHIMS[0].0)
            .args(arguments)
            .args([
                "--work-cmd",
                "echo x > src/$PREMATH_ISSUE_ID.txt",
                "--verify-cmd",
                "true",
            ])
            .args(["--override-reason", "test", "--landing", "none"])
            .end()
    };
    run(&["worker", "--worktree-root", lane]).exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.issue("b")["status"], "open");
    run(&["coordinator", "--worktree-root", lane]).exits(0);
    assert_eq!(scratch.issue("b")["status"], "closed");
    run(&["nobody"]).exits(2).says("worker|coordinator");
}

#[test]
fn the_tests_that_the_seeds_name_pass() {
    let Some(python) = python() else {
        return skipped("the Python shims", "`python3` is not on PATH");
    };
    let scratch = Scratch::new(0);
    for name in ["retry_policy", "escalation"] {
        let path = format!("tools/ci/test_harness_{name}.py");
        shim(&scratch, &python, &path).end().exits(0).says("OK");
    }
    let help = shim(&scratch, &python, SHIMS[0].0).arg("--help").end();
    assert!(
        help.exits(0)
            .stdout
            .starts_with("usage: multithread_loop.py")
    );
}

#[test]
fn the_checks_run_by_the_paths_that_the_seeds_name() {
    let Some(python) = python() else {
        return skipped("the Python shims", "`python3` is not on PATH");
    };
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    let vectors = shim(&scratch, &python, SHIMS[1].0)
        .arg("--json")
        .end()
        .exits(0);
    assert_eq!(vectors.json()["action"], "conformance.run");
    let graph = || shim(&scratch, &python, SHIMS[2].0).arg("--json").end();
    assert_eq!(graph().exits(1).json()["result"], "rejected");
    let mut done = issue("a");
    done["acceptance_criteria"] = "`make test` passes".into();
    scratch.write_issues(format!("{done}\n").as_bytes());
    assert_eq!(graph().exits(0).json()["result"], "accepted");
}

#[test]
fn without_the_binaries_on_the_path_cargo_runs_them_from_the_checkout() {
    let Some(python) = python() else {
        return skipped("the Python shims", "`python3` is not on PATH");
    };
    let scratch = Scratch::new(0);
    let folder = scratch.folder().join("bin");
    fs::create_dir(&folder).unwrap();
    for (name, binary, words) in SHIMS {
        let arguments: &[&str] = match words {
            "" => &["worker", "--a", "two words"],
            _ => &["--a", "two words"],
        };
        let run = || {
            let run = scratch.run(&python).arg(workspace().join(name));
            with_path(run, &[&folder]).args(arguments)
        };
        let cargo = folder.join("cargo");
        run().end().exits(1).says("cannot run cargo");
        fs::write(&cargo, "#!/bin/sh\nprintf '%s|' \"$@\"\nexit 7\n").unwrap();
        fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
        let manifest = workspace().join("Cargo.toml");
        let expected = format!(
            "run|--locked|--quiet|--manifest-path|{}|--bin|{binary}|--|{}--a|two words|",
            manifest.display(),
            words.replace(' ', "|"),
        );
        assert_eq!(run().end().exits(7).stdout, expected);
        fs::remove_file(&cargo).unwrap();
    }
}
