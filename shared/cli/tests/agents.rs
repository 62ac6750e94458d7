//! `premath agents check`, with agents that are scripts.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot continue ends, and says where"
)]

#[path = "answer/mod.rs"]
mod answer;

use answer::Answer;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Checks agents where PATH is as given.
#[expect(
    clippy::disallowed_methods,
    reason = "the test plays the shell that runs premath"
)]
fn premath(path: &str, args: &[&str]) -> Answer {
    let mut command = Command::new(env!("CARGO_BIN_EXE_premath"));
    command
        .args(["agents", "check"])
        .args(args)
        .env("PATH", path);
    Answer::of(command.output().unwrap())
}

/// A codex that answers `--version`, and prints `stream` where it is to work.
fn check(stream: &str, args: &[&str]) -> Answer {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("codex");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo codex-cli 9; exit; }}\n\
         grep -q ready || exit 5\n{stream}\n"
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    premath(&path, &[&["codex"], args].concat())
}

const WHOLE: &str = r#"
echo '{"type":"thread.started","thread_id":"t"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"ready"}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
"#;

#[test]
fn an_agent_that_is_installed_is_named_with_its_version() {
    let printed = check("exit 1", &[]).stdout;
    assert!(
        printed.starts_with("codex     installed  codex-cli 9"),
        "{printed}"
    );
    assert!(
        printed.contains("sign-in and event stream not checked"),
        "{printed}"
    );
    let answer = check("exit 1", &["--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let found = answer.json();
    let agent = &found["agents"][0];
    assert_eq!(agent["version"], "codex-cli 9");
    assert_eq!(agent["missing"], json!([]));
    assert_eq!(agent["trial"], Value::Null, "nobody asked for a run");
}

#[test]
fn a_run_says_whether_its_stream_parses() {
    let printed = check(WHOLE, &["--try"]).stdout;
    assert!(
        printed.starts_with("codex     ready      codex-cli 9"),
        "{printed}"
    );
    let answer = check(WHOLE, &["--json", "--try"]);
    assert_eq!(answer.code, 0, "{}{}", answer.stdout, answer.stderr);
    let found = answer.json();
    assert_eq!(found["agents"][0]["trial"]["lines"], 4);
    for (stream, limit, said) in [
        ("echo hello", "2m", "does not parse"),
        ("exit 7", "2m", "ended with 7"),
        ("sleep 600", "1s", "did not end within 1s"),
    ] {
        let answer = check(stream, &["--json", "--try", "--limit", limit]);
        assert_eq!(answer.code, 1, "{stream}");
        let found = answer.json();
        let missing = found["agents"][0]["missing"].to_string();
        assert!(missing.contains(said), "{stream}: {missing}");
    }
}

#[test]
fn an_agent_that_prints_nothing_is_not_usable_by_its_own_last_words() {
    for (script, said) in [
        (
            "echo first >&2; echo 'Please log in' >&2; exit 1",
            "it ended with 1: Please log in",
        ),
        (
            "echo 'Please log in' >&2",
            "it printed no event: Please log in",
        ),
        ("exit 0", "it printed no event"),
    ] {
        let answer = check(script, &["--try"]);
        assert_eq!(answer.code, 1, "{script}");
        let printed = answer.stdout;
        assert!(
            printed.starts_with("codex     not usable codex-cli 9"),
            "{printed}"
        );
        assert!(
            printed.contains(&format!("          {said}\n")),
            "{printed}"
        );
        assert!(!printed.contains("parse"), "{printed}");
    }
}

#[test]
fn what_is_not_there_is_reported_with_how_to_get_it() {
    let empty = tempfile::tempdir().unwrap();
    let answer = premath(empty.path().to_str().unwrap(), &[]);
    assert_eq!(answer.code, 1);
    assert!(answer.stdout.contains("npm install -g @openai/codex"));
}
