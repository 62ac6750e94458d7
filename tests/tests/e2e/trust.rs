//! What governs a batch comes from the operator: steps leave it alone, and what
//! came with the work of steps waits until a person accepts it.

use crate::landing::TARGET;
use premath_evidence::Agent;
use premath_kernel::policy::governing;
use premath_tests::{Run, Scratch, issue};
use serde_json::{Value, json};
use std::fs;

fn settings(scratch: &Scratch, text: &str) {
    fs::write(scratch.root.join("harness.toml"), text).unwrap();
}

fn git<const N: usize>(scratch: &Scratch, arguments: [&str; N]) {
    scratch.git_command(arguments).end().exits(0);
}

/// A file in the main checkout, committed.
fn commit(scratch: &Scratch, path: &str, content: &str) {
    let file = scratch.root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, content).unwrap();
    git(scratch, ["add", "-f", path]);
    git(scratch, ["commit", "-qm", "by the operator"]);
}

fn add_issue(scratch: &Scratch, id: &str) {
    let mut text = scratch.issue_bytes();
    text.extend(format!("{}\n", issue(id)).into_bytes());
    scratch.write_issues(&text);
}

/// Writes a file of the issue's choice and commits it as an agent may.
fn writing(files: &[(String, String)]) -> String {
    let cases: String = files
        .iter()
        .map(|(issue, path)| format!("{issue}) f='{path}' ;;\n"))
        .collect();
    format!(
        r#"case $PREMATH_ISSUE_ID in
{cases}*) f=src/$PREMATH_ISSUE_ID.txt ;;
esac
mkdir -p "$(dirname "$f")"; echo changed > "$f"; git add -f "$f"; git commit -qm 'by itself'"#
    )
}

/// Every default as a file of it, which is in a subfolder where it may be.
fn protected_files() -> Vec<(String, String)> {
    let defaults = governing::defaults(Agent::governing_files());
    let files = defaults.enumerate().map(|(number, pattern)| {
        let path = match pattern.strip_prefix('/') {
            Some(path) => path.to_owned(),
            None => format!("deep/{}", pattern.trim_start_matches("**/")),
        };
        let tail = if path.ends_with('/') { "file" } else { "" };
        (format!("p{number}"), format!("{path}{tail}"))
    });
    files.collect()
}

#[test]
fn a_step_that_changes_what_governs_is_refused_and_the_batch_continues() {
    let files = protected_files();
    let mut issues: Vec<Value> = files.iter().map(|(id, _)| issue(id)).collect();
    issues.push(issue("z"));
    let scratch = Scratch::with_issues(2, &issues);
    let ended = scratch
        .landing_batch(&writing(&files), "true")
        .end()
        .exits(1);
    for (id, path) in &files {
        let step = &scratch.steps_of(id)[0];
        // The harness's own folders are not part of a step's result.
        if !path.starts_with(".premath/") && !path.starts_with("artifacts/") {
            assert_eq!(
                step["failureClasses"],
                json!(["work_protected_path"]),
                "{path}"
            );
            assert!(ended.stdout.contains(path), "{path}");
        }
        assert_eq!(scratch.file_on(TARGET, path), None, "{path}");
    }
    assert_eq!(scratch.issue("z")["status"], "closed");
    assert_eq!(scratch.messages_on(TARGET).len(), 1);
}

#[test]
fn issue_memory_that_a_step_commits_does_not_land() {
    let mut other = issue("other");
    other["issue_type"] = json!("epic");
    let scratch = Scratch::with_issues(1, &[issue("a"), other]);
    let work = r#"mkdir -p .premath
printf '%s\n' '{"id":"other","title":"other","status":"closed"}' > .premath/issues.jsonl
git add -f .premath/issues.jsonl; git commit -qm 'by itself'"#;
    scratch.landing_batch(work, "true").end().exits(0);
    assert_eq!(scratch.issue("other")["status"], "open");
    assert_eq!(scratch.file_on(TARGET, ".premath/issues.jsonl"), None);
}

#[test]
fn a_script_that_the_verification_runs_is_left_alone() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    commit(&scratch, "ci/verify.sh", "test -e src/b.txt\n");
    let work = r#"case $PREMATH_ISSUE_ID in
a) echo 'exit 0' > ci/verify.sh ;;
*) echo x > src/b.txt ;;
esac"#;
    let ended = scratch
        .landing_batch(work, "cd ci/.. && sh -eu ci/verify.sh")
        .end();
    let step = &scratch.steps_of("a")[0];
    assert_eq!(step["failureClasses"], json!(["work_protected_path"]));
    assert_eq!(scratch.issue("b")["status"], "closed", "{}", ended.stderr);
}

#[test]
fn what_landed_and_was_merged_waits_for_the_operator() {
    for merge in [
        &["merge", "-q", "--ff-only", TARGET][..],
        &["merge", "-q", "--squash", TARGET],
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        settings(&scratch, "[protect]\nallow = [\"CLAUDE.md\"]\n");
        commit(&scratch, "src/own.txt", "the operator's own\n");
        let work = writing(&[("a".to_owned(), "CLAUDE.md".to_owned())]);
        let batch = || scratch.landing_batch(&work, "true");
        batch().end().exits(0).says("accepted on first use");
        scratch.git_command(merge.iter().copied()).end().exits(0);
        if merge.contains(&"--squash") {
            git(&scratch, ["commit", "-qm", "a squash without trailers"]);
        }
        add_issue(&scratch, "b");
        batch()
            .end()
            .exits(3)
            .says("governing_files_untrusted")
            .says("CLAUDE.md (added)")
            .says("--trust sha256:");
        assert_eq!(scratch.issue("b")["status"], "open");
        assert!(scratch.steps_of("b").is_empty());
        scratch.premath(["trust", "--check"]).end().exits(1);
        let shown = scratch.premath(["trust", "--json"]).end().exits(1).json();
        assert_eq!(shown["changes"][0]["path"], "CLAUDE.md");
        assert_eq!(shown["changes"][0]["landed"], true);
        assert!(
            shown["changes"][0]["diff"]
                .as_str()
                .unwrap()
                .contains("+changed")
        );
        let digest = shown["digest"].as_str().unwrap();
        batch().args(["--trust", digest]).end().exits(0);
        assert_eq!(scratch.issue("b")["status"], "closed");
        scratch.premath(["trust", "--check"]).end().exits(0);
    }
}

#[test]
fn an_edit_of_the_operator_is_accepted_and_said() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    settings(&scratch, "[protect]\nallow = [\"mise.toml\"]\n");
    let batch = |run: Run| run.end().exits(0);
    batch(scratch.landing_batch(&writing(&[]), "true"));
    add_issue(&scratch, "b");
    settings(&scratch, "[protect]\nsensitive = \"refuse\"\n");
    commit(&scratch, "AGENTS.md", "Be brief.\n");
    let said = "changes of governing files accepted: AGENTS.md (added), harness.toml (changed)";
    batch(scratch.landing_batch(&writing(&[]), "true")).says(said);
    add_issue(&scratch, "c");
    let ended = batch(scratch.landing_batch(&writing(&[]), "true"));
    assert!(!ended.stderr.contains("governing"), "{}", ended.stderr);
    assert_eq!(scratch.issue("c")["status"], "closed");
}

#[test]
fn a_digest_that_is_given_and_is_another_refuses_the_first_batch() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    scratch
        .landing_batch(&writing(&[]), "true")
        .args(["--trust", "sha256:0"])
        .end()
        .exits(3)
        .says("governing_files_untrusted");
    assert!(!scratch.root.join(".premath/trust.json").exists());
}

#[test]
fn a_person_accepts_by_the_command_and_a_step_does_not() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    commit(&scratch, "AGENTS.md", "Be brief.\n");
    scratch.premath(["trust", "--check"]).end().exits(1);
    scratch
        .premath(["trust", "--yes"])
        .env("PREMATH_STEP_ID", "w.a.1")
        .end()
        .exits(1)
        .says("only an operator may");
    scratch
        .premath(["trust", "--trust", "sha256:0"])
        .end()
        .exits(1);
    let accepted = scratch
        .premath(["trust", "--yes", "--json"])
        .end()
        .exits(0)
        .json();
    assert_eq!(accepted["result"], "accepted");
    assert_eq!(accepted["record"]["acceptance"], "operator");
    scratch.premath(["trust", "--check"]).end().exits(0);
    fs::write(scratch.root.join("AGENTS.md"), "Be long.\n").unwrap();
    let shown = scratch.premath(["trust"]).end().exits(1);
    for line in ["changed AGENTS.md", "-Be brief.", "+Be long."] {
        assert!(shown.stdout.contains(line), "{}", shown.stdout);
    }
    fs::write(scratch.root.join(".premath/trust.json"), "{}").unwrap();
    scratch
        .landing_batch(&writing(&[]), "true")
        .end()
        .exits(3)
        .says("cannot read .premath/trust.json");
    scratch.premath(["trust", "--yes"]).end().exits(0);
    scratch.landing_batch(&writing(&[]), "true").end().exits(0);
}

#[test]
fn sensitive_changes_come_first_in_the_report_or_are_refused() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    let work = r#"[ "$PREMATH_ISSUE_ID" = b ] && echo x > src/b.txt && exit
mkdir -p .github/workflows; echo x > .github/workflows/ci.yml; echo x > Cargo.toml"#;
    let ended = scratch.landing_batch(work, "true").end().exits(0);
    let expected = json!([
        {"path": ".github/workflows/ci.yml", "category": "ci"},
        {"path": "Cargo.toml", "category": "dependencies"},
    ]);
    assert_eq!(scratch.steps_of("a")[0]["sensitiveChanges"], expected);
    assert_eq!(scratch.steps_of("b")[0]["sensitiveChanges"], Value::Null);
    let last = ended.events().pop().unwrap();
    assert_eq!(last["issues"][0]["sensitiveChanges"], expected);
    let report = scratch.kept_report();
    let section = report
        .find("changes to verification, CI, hooks, dependencies:\n  a: .github/workflows/ci.yml (ci), Cargo.toml (dependencies)\n    git diff ")
        .unwrap_or_else(|| panic!("{report}"));
    assert!(section < report.find("outcome").unwrap(), "{report}");
    let command = report
        .lines()
        .find(|line| line.trim_start().starts_with("git diff"));
    let words = command.unwrap().split_whitespace().skip(1);
    let shown = scratch.git_command(words).end().exits(0).stdout;
    assert!(shown.contains("+++ b/.github/workflows/ci.yml"), "{shown}");

    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    settings(&scratch, "[protect]\nsensitive = \"refuse\"\n");
    scratch.landing_batch(work, "true").end().exits(1);
    let step = &scratch.steps_of("a")[0];
    assert_eq!(step["failureClasses"], json!(["work_protected_path"]));
    assert_eq!(scratch.issue("b")["status"], "closed");
}
