//! A remote on another machine, which is asked.

use super::{REACHES, append, doctor, ground, ids, program, push_to, ssh};
use std::fs;

#[test]
fn a_remote_on_another_machine_is_asked_without_a_prompt_and_for_a_bounded_time() {
    let scratch = ground();
    let bare = scratch.folder().join("bare");
    git2::Repository::init_bare(&bare).unwrap();
    ssh(&scratch, REACHES);
    push_to(&scratch, &format!("ssh://localhost{}", bare.display()));
    let well = doctor(&scratch, &[]).end().exits(0).json();
    let found = ids(&well);
    assert!(!found.iter().any(|id| id.starts_with("push-")), "{found:?}");
    // One that asks finds no terminal, and one that hangs is ended.
    for (script, said) in [
        (
            "read -r word < /dev/tty || echo 'no terminal' >&2; exit 255",
            "no terminal",
        ),
        ("exec sleep 600", "no answer came within"),
    ] {
        program(&scratch, "reach", script);
        let run = doctor(&scratch, &[]).end().exits(1).json();
        let mut findings = run["findings"].as_array().unwrap().iter();
        let found = findings.find(|one| one["id"] == "push-remote-unreachable");
        let problem = found.expect("the finding")["problem"].as_str().unwrap();
        assert!(problem.contains(said), "{problem}");
        scratch.no_process_left();
    }
}

#[test]
fn the_last_line_counts_findings_and_warnings() {
    let scratch = ground();
    let last = |code: i32| {
        let run = scratch.premath(["doctor"]).end().exits(code);
        run.stdout.lines().last().unwrap().to_owned()
    };
    assert_eq!(last(0), "no findings");
    fs::write(scratch.root.join(".git/info/exclude"), "").unwrap();
    assert_eq!(last(0), "no errors, 1 warning");
    append(&scratch.trajectory_path(), "{\"stepId\": ");
    assert_eq!(last(1), "1 finding; 1 warning");
}
