//! Usage, set-up and what reaches a terminal.

use crate::scratch::{Scratch, row};
use serde_json::json;
use std::fs;
use std::process::Stdio;

#[test]
fn usage_errors_and_missing_files_are_2() {
    let scratch = Scratch::with(&row("a", &[]));
    for args in [
        &["issue", "update", "a"][..],
        &["issue", "add", " "],
        &["issue", "claim", "a"],
        &["issue", "list", "--issues", "nowhere.jsonl"],
        &["issue", "update", "a", "--notes", "x", "--notes-file", "y"],
        &["issue", "update", "a", "--notes-file", "nowhere.md"],
        &["harness-session", "read"],
        &[
            "harness-trajectory",
            "append",
            "--step-id",
            "s",
            "--action",
            "a",
            "--result-class",
            "ok",
            "--finished-at",
            "yesterday",
        ],
        &["transport-dispatch"],
    ] {
        let answer = scratch.run(args);
        assert_eq!(answer.code, 2, "{args:?}: {}", answer.stderr);
        assert!(answer.stdout.is_empty());
    }
    assert!(!scratch.folder.join("nowhere.jsonl.flock").exists());
    fs::write(scratch.folder.join("notes.md"), "from a file\n").unwrap();
    let updated = scratch.json(&["issue", "update", "a", "--notes-file", "notes.md"]);
    assert_eq!(updated["issue"]["notes"], "from a file\n");
    let odd = scratch.run(&["issue", "update", "a", "--status", "done"]);
    assert_eq!(odd.code, 1);
    assert!(odd.stderr.contains("`done`"), "{}", odd.stderr);
}

#[test]
fn a_last_line_that_is_cut_is_named_and_so_is_where_it_goes() {
    let scratch = Scratch::with(&format!("{}{{\"id\":\"b\",\"ti", row("a", &[])));
    for args in [&["list"][..], &["ready"], &["show", "a"], &["blocked"]] {
        let answer = scratch.run(&[&["issue"], args].concat());
        let said = "issues.jsonl:2: the last line is incomplete and was skipped";
        assert_eq!(answer.code, 0, "{args:?}");
        assert!(answer.stderr.contains(said), "{args:?}: {}", answer.stderr);
    }
    let added = scratch.run(&["issue", "add", "c"]);
    let (_, aside) = added
        .stderr
        .split_once("was incomplete; it was moved to ")
        .unwrap();
    assert_eq!(
        fs::read_to_string(aside.trim()).unwrap(),
        "{\"id\":\"b\",\"ti"
    );
    for args in [&["issue", "list"][..], &["issue", "add", "d"]] {
        assert_eq!(scratch.run(args).stderr, "", "{args:?}");
    }
}

#[test]
fn a_list_of_nothing_reports_it_beside_the_data() {
    let scratch = Scratch::with(&row("a", &["b"]));
    for (args, said) in [
        (
            &["list", "--status", "closed"][..],
            "no issue has the status `closed`; there is `open`\n",
        ),
        (&["ready"], "no ready issues: 1 waiting\n"),
    ] {
        let answer = scratch.run(&[&["issue"], args].concat());
        assert_eq!(
            (answer.code, &*answer.stdout, &*answer.stderr),
            (0, "", said)
        );
        let answer = scratch.run(&[&["--json", "issue"], args].concat());
        assert_eq!(answer.stderr, "", "{args:?}");
    }
}

#[test]
fn init_says_that_an_agent_was_not_set_where_it_overwrites_nothing() {
    let scratch = Scratch::with("");
    assert_eq!(scratch.run(&["init"]).code, 0);
    let answer = scratch.run(&["init", "--agent", "codex"]);
    assert_eq!(answer.code, 1, "{}", answer.stdout);
    for said in [
        "agent not set",
        "use = \"codex\" under [agent]",
        "premath instruction new --set --normalizer premath.harness.agent.v1 --intent 'Work \
         through the ready issues of this repository.'",
    ] {
        assert!(answer.stderr.contains(said), "{said}: {}", answer.stderr);
    }
    let other = Scratch::with("");
    assert_eq!(other.run(&["init", "--agent", "codex"]).code, 0);
    let again = other.run(&["init", "--agent", "codex"]);
    assert_eq!(again.code, 0, "{}", again.stderr);
    assert_eq!(other.run(&["init", "--agent", "claude"]).code, 1);
}

#[test]
fn init_takes_flags_asks_nothing_without_a_terminal_and_keeps_what_is_there() {
    let scratch = Scratch::with("");
    fs::write(scratch.folder.join("Cargo.toml"), "[package]\n").unwrap();
    let given = [
        "--agent",
        "codex",
        "--verify",
        "cargo test -- 'a b'",
        "--lanes",
        "5",
    ];
    let answer = scratch.run(&[&["init"], &given[..]].concat());
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert!(
        answer.stdout.contains("next: add issues"),
        "{}",
        answer.stdout
    );
    let settings = fs::read_to_string(scratch.folder.join("harness.toml")).unwrap();
    let settings: toml::Table = settings.parse().unwrap();
    assert_eq!(settings["agent"]["use"].as_str(), Some("codex"));
    assert_eq!(
        settings["batch"]["verify_cmd"].as_str(),
        Some("cargo test -- 'a b'")
    );
    assert_eq!(settings["worktrees"]["count"].as_integer(), Some(5));
    let again = scratch.run(&["init", "--agent", "codex", "--verify", "x", "--lanes", "3"]);
    assert!(
        again
            .stderr
            .contains("set verify_cmd = \"x\" under [batch]"),
        "{}",
        again.stderr
    );
    assert_eq!(scratch.run(&["init", "--lanes", "0"]).code, 2);
    // Nothing that was not given is set.
    let other = Scratch::with("");
    fs::write(other.folder.join("Cargo.toml"), "[package]\n").unwrap();
    assert_eq!(other.run(&["init"]).code, 0);
    let settings = fs::read_to_string(other.folder.join("harness.toml")).unwrap();
    let settings: toml::Table = settings.parse().unwrap();
    assert!(
        settings
            .get("agent")
            .is_none_or(|agent| agent.get("use").is_none())
    );
    assert!(settings["batch"].get("verify_cmd").is_none());
}

#[test]
fn one_command_makes_an_instruction_for_another_agent_and_names_it() {
    let scratch = Scratch::with("");
    assert_eq!(scratch.run(&["init"]).code, 0);
    let file = scratch.folder.join("harness.toml");
    let before = fs::read_to_string(&file).unwrap();
    let answer = scratch.json(&[
        "instruction",
        "new",
        "--set",
        "--normalizer",
        "premath.harness.agent.v1",
        "--intent",
        "x",
    ]);
    let after = fs::read_to_string(&file).unwrap();
    let settings: toml::Table = after.parse().unwrap();
    let named = settings["batch"]["instruction"].as_str().unwrap();
    assert!(
        answer["path"].as_str().unwrap().ends_with(named),
        "{answer}"
    );
    let others = |text: &str| -> Vec<String> {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("instruction = "));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(others(&before), others(&after));
}

#[test]
fn init_says_what_is_to_be_committed() {
    let scratch = Scratch::with("");
    let answer = scratch.run(&["init"]);
    assert!(!answer.stdout.contains("commit"), "{}", answer.stdout);
    let git = |args: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "the test plays the person")]
        let mut command = std::process::Command::new("git");
        let author = ["-c", "user.name=a", "-c", "user.email=a@localhost"];
        let project = scratch.folder.join("project");
        command.arg("-C").arg(project).args(author).args(args);
        assert!(command.status().unwrap().success(), "{args:?}");
    };
    fs::create_dir(scratch.folder.join("project")).unwrap();
    git(&["init", "-q"]);
    let answer = scratch.run(&["init", "project"]);
    let said = "this repository has no commit yet; lanes need one";
    assert!(answer.stdout.contains(said), "{}", answer.stdout);
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    fs::remove_file(scratch.folder.join("project/harness.toml")).unwrap();
    let answer = scratch.run(&["init", "project"]);
    assert!(!answer.stdout.contains(said), "{}", answer.stdout);
    assert!(
        answer.stdout.contains("commit these files"),
        "{}",
        answer.stdout
    );
}

#[test]
fn init_twice_overwrites_nothing() {
    let scratch = Scratch::with("");
    let project = scratch.folder.join("project");
    let first = scratch.json(&["init", "project"]);
    let instruction = first["wrote"][2].as_str().unwrap();
    assert!(instruction.starts_with("instructions/"), "{instruction}");
    assert_eq!(
        first["wrote"],
        json!([
            "policies/control/harness-instruction-policy-v1.json",
            "policies/control/harness-turn-policy-v1.json",
            instruction,
            "harness.toml",
            ".premath/issues.jsonl",
            "mise.toml"
        ])
    );
    let files = ["harness.toml", ".premath/issues.jsonl", "mise.toml"];
    let mine = ["[batch]\n", "{\"id\":\"a\",\"title\":\"a\"}\n", "[tools]\n"];
    for (file, text) in files.iter().zip(mine) {
        fs::write(project.join(file), text).unwrap();
    }
    let second = scratch.json(&["init", "project"]);
    assert_eq!(second["wrote"], json!(["mise.toml (added the tasks)"]));
    let third = scratch.json(&["init", "project"]);
    assert_eq!(third["wrote"], json!([]));
    assert_eq!(third["left"].as_array().unwrap().len(), 6);
    for (file, text) in files.iter().zip(mine) {
        let now = fs::read_to_string(project.join(file)).unwrap();
        assert!(now.starts_with(text), "{file}: {now}");
    }
}

#[test]
fn hostile_text_reaches_no_terminal() {
    let scratch = Scratch::with(&format!(
        "{}\n",
        json!({"id": "a\u{1b}[31m", "title": "t\u{1b}]0;x\u{7}", "notes": "\u{9b}2J\nb",
               "status": "odd\u{1b}", "assignee": "\u{202e}w"})
    ));
    let hostile = |text: &str| text.chars().any(|c| c.is_control() && c != '\n');
    for args in [
        &["issue", "list"][..],
        &["issue", "show", "a\u{1b}[31m"],
        &["issue", "check"],
        &["issue", "claim", "a\u{1b}[31m", "--assignee", "w"],
    ] {
        let answer = scratch.run(args);
        assert!(!hostile(&answer.stdout), "{args:?}: {}", answer.stdout);
        assert!(!hostile(&answer.stderr), "{args:?}: {}", answer.stderr);
    }
    let listed = scratch.json(&["issue", "list"]);
    assert_eq!(listed["items"][0]["id"], "a\u{1b}[31m");
}

#[test]
fn a_reader_that_closes_the_pipe_is_not_an_error() {
    let rows: String = (0..3000).map(|n| row(&format!("x-{n}"), &[])).collect();
    let scratch = Scratch::with(&rows);
    let mut child = scratch
        .command(&["issue", "list"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
