//! The two tasks that a person types.

use premath_tests::{Scratch, binaries, issue, skipped, workspace};
use std::fs;
use std::path::{Path, PathBuf};

const TASKS: [&str; 2] = ["harness-coordinator-loop", "harness-worker-loop"];

fn mise() -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join("mise"))
        .find(|path| path.is_file())
}

#[test]
fn the_projects_own_mise_file_has_both_tasks() {
    let text = fs::read_to_string(workspace().join("mise.toml")).unwrap();
    for task in TASKS {
        assert!(text.contains(&format!("[tasks.{task}]")), "{task}");
    }
}

#[test]
fn a_repository_that_init_set_up_has_both_tasks() {
    let scratch = Scratch::new(0);
    scratch.premath(["init"]).end().exits(0);
    let text = fs::read_to_string(scratch.root.join("mise.toml")).unwrap();
    for task in TASKS {
        assert!(text.contains(&format!("[tasks.{task}]")), "{text}");
    }
}

#[test]
fn init_overwrites_nothing() {
    let scratch = Scratch::with_issues(0, &[issue("a")]);
    fs::write(scratch.root.join("harness.toml"), "# mine\n").unwrap();
    fs::write(
        scratch.root.join("mise.toml"),
        "[tasks.mine]\nrun = \"true\"\n",
    )
    .unwrap();
    scratch.premath(["init"]).end().exits(0);
    let once = fs::read_to_string(scratch.root.join("mise.toml")).unwrap();
    assert!(once.starts_with("[tasks.mine]\nrun = \"true\"\n"));
    scratch.premath(["init"]).end().exits(0);
    let read = |name: &str| fs::read_to_string(scratch.root.join(name)).unwrap();
    assert_eq!(read("mise.toml"), once);
    assert_eq!(read("harness.toml"), "# mine\n");
    assert_eq!(scratch.issue("a"), issue("a"));
}

#[test]
fn a_task_of_mise_runs_and_passes_its_arguments_through() {
    let Some(mise) = mise() else {
        return skipped("the mise tasks", "`mise` is not on PATH");
    };
    let scratch = Scratch::new(1);
    scratch.premath(["init"]).end().exits(0);
    let text = format!("{}\n", issue("a"));
    scratch.write_issues(text.as_bytes());
    let path = std::env::join_paths(
        std::iter::once(binaries().folder().to_path_buf())
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    let run = |arguments: &[&str], folder: &Path| {
        scratch
            .run(&mise)
            .within(folder)
            .env("PATH", &path)
            .env("MISE_TRUSTED_CONFIG_PATHS", scratch.folder())
            .env("MISE_OFFLINE", "1")
            .args(["run"])
            .args(arguments)
            .end()
    };
    for task in TASKS {
        let helped = run(&[task, "--", "--help"], &scratch.root).exits(0);
        assert!(helped.stdout.contains("--verify-cmd"), "{}", helped.stdout);
    }
    let lane = scratch.lanes[0].to_str().unwrap();
    run(
        &[
            TASKS[0],
            "--override-reason",
            "two words",
            "--work-cmd",
            "echo 'a b' > src/a.txt",
            "--verify-cmd",
            "true",
            "--worktree",
            lane,
        ],
        &scratch.root,
    )
    .exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(
        scratch
            .file_on("harness/integration", "src/a.txt")
            .as_deref(),
        Some("a b\n")
    );
}
