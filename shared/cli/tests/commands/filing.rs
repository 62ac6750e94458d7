//! `premath issue add` and `update`: edges, texts from files, priorities and
//! statuses.

use crate::answer::Answer;
use crate::scratch::{Scratch, ids, row};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::process::Stdio;

fn with_stdin(scratch: &Scratch, args: &[&str], text: &str) -> Answer {
    let mut command = scratch.command(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    Answer::of(child.wait_with_output().unwrap())
}

fn text(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.issues()).unwrap()
}

/// One that is added in the wrong folder would not be found again.
#[test]
fn no_store_is_made_where_no_repository_is() {
    let scratch = Scratch::with("");
    fs::remove_file(scratch.issues()).unwrap();
    let added = scratch.command(&["issue", "add", "x"]).output().unwrap();
    assert_eq!(added.status.code(), Some(2));
    let said = String::from_utf8_lossy(&added.stderr);
    assert!(
        said.contains("does not exist") && said.contains("premath init"),
        "{said}"
    );
    assert!(!scratch.issues().exists());
    // A file that is named is meant.
    let elsewhere = scratch.folder.join("elsewhere.jsonl");
    let named = ["issue", "add", "x", "--issues", elsewhere.to_str().unwrap()];
    let added = scratch.command(&named).output().unwrap();
    assert_eq!(added.status.code(), Some(0));
}

#[test]
fn an_issue_is_filed_together_with_its_edges() {
    let scratch = Scratch::with(&(row("bd-1", &[]) + &row("bd-2", &[])));
    let added = scratch.json(&[
        "issue",
        "add",
        "Build",
        "--depends-on",
        "bd-1",
        "--depends-on",
        "bd-1",
        "--parent",
        "bd-2",
        "--priority",
        "high",
        "--labels",
        "a, b,a",
        "--acceptance",
        "it builds",
        "--verify",
        "make",
        "--design",
        "in one file",
    ]);
    let issue = &added["issue"];
    assert_eq!(
        issue["dependencies"],
        json!([
            {"issueId": "bd-3", "dependsOnId": "bd-1", "type": "blocks", "createdBy": "ann"},
            {"issueId": "bd-3", "dependsOnId": "bd-2", "type": "parent-child", "createdBy": "ann"},
        ])
    );
    assert_eq!(issue["priority"], 1);
    assert_eq!(issue["labels"], json!(["a", "b"]));
    assert_eq!(issue["acceptanceCriteria"], "it builds");
    assert_eq!(issue["design"], "in one file");
    assert!(text(&scratch).contains(r#""metadata":{"verification":"make"}"#));
    // The row and its edges are one line: no reader sees one without the other.
    assert_eq!(text(&scratch).lines().count(), 3);
    assert_eq!(ids(&scratch.json(&["issue", "ready"])), ["bd-1"]);
}

#[test]
fn an_edge_to_nothing_or_around_in_a_cycle_files_nothing() {
    // An issue that waits for one that is yet to be filed.
    let scratch = Scratch::with(&(row("a", &["later"]) + &row("b", &[])));
    let before = text(&scratch);
    for (args, said) in [
        (&["--depends-on", "nowhere"][..], "no issue nowhere"),
        (&["--parent", "nowhere"], "no issue nowhere"),
        (&["--parent", "b", "--depends-on", "b"], "cycle"),
        (
            &["--id", "later", "--depends-on", "a"],
            "cycle: a -> later -> a",
        ),
        (&["--id", "self", "--depends-on", "self"], "no issue self"),
    ] {
        let refused = scratch.run(&[&["issue", "add", "New"][..], args].concat());
        assert_eq!(refused.code, 1, "{args:?}: {}", refused.stderr);
        assert!(
            refused.stderr.contains(said),
            "{args:?}: {}",
            refused.stderr
        );
        assert_eq!(text(&scratch), before);
    }
}

#[test]
fn a_description_comes_from_a_file_or_from_stdin() {
    let scratch = Scratch::with("");
    fs::write(scratch.folder.join("body.md"), "# Heading\n\nbody\n").unwrap();
    let whole = scratch.json(&["issue", "add", "--file", "body.md"]);
    assert_eq!(whole["issue"]["title"], "Heading");
    assert_eq!(whole["issue"]["description"], "body\n");
    let titled = scratch.json(&["issue", "add", "Title", "--file", "body.md"]);
    assert_eq!(titled["issue"]["description"], "# Heading\n\nbody\n");
    let args = ["issue", "add", "-", "--json"];
    let piped = with_stdin(&scratch, &args, "Piped\nmore\n").json();
    assert_eq!(piped["issue"]["title"], "Piped");
    assert_eq!(piped["issue"]["description"], "more\n");
    let args = ["issue", "update", "bd-1", "--file", "-", "--json"];
    let updated = with_stdin(&scratch, &args, "new body").json();
    assert_eq!(updated["issue"]["description"], "new body");
    for args in [
        &["issue", "add"][..],
        &["issue", "add", "--file", "nowhere.md"],
        &[
            "issue",
            "add",
            "x",
            "--file",
            "body.md",
            "--description",
            "d",
        ],
    ] {
        assert_eq!(scratch.run(args).code, 2, "{args:?}");
    }
    let empty = with_stdin(&scratch, &["issue", "add", "-"], "\n");
    assert_eq!(empty.code, 2, "{}", empty.stderr);
    assert!(empty.stderr.contains("the title is empty"));
}

#[test]
fn a_priority_outside_of_its_range_is_refused_and_one_in_a_row_is_kept() {
    let old = r#"{"id":"a","title":"t","priority":-7}"#;
    let scratch = Scratch::with(&format!("{old}\n"));
    for command in [&["issue", "add", "x"][..], &["issue", "update", "a"]] {
        for priority in ["5", "-1", "urgent"] {
            let refused = scratch.run(&[command, &["--priority", priority]].concat());
            assert_eq!(refused.code, 2, "{}", refused.stderr);
            assert!(
                refused.stderr.contains("0 to 4, or critical"),
                "{}",
                refused.stderr
            );
        }
    }
    assert_eq!(
        scratch.json(&["issue", "show", "a"])["issue"]["priority"],
        -7
    );
    let kept = scratch.json(&["issue", "update", "a", "--title", "u"]);
    assert_eq!(kept["issue"]["priority"], -7);
}

#[test]
fn an_unknown_status_is_refused_with_the_known_ones() {
    let rows = row("a", &[]) + r#"{"id":"b","title":"t","status":"in_review"}"# + "\n";
    let scratch = Scratch::with(&rows);
    for command in [&["issue", "add", "x"][..], &["issue", "update", "a"]] {
        let refused = scratch.run(&[command, &["--status", "done"]].concat());
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        let said = "unknown status `done`; it must be one of open, in_progress, blocked, closed, \
                    tombstone, deferred, pinned, hooked, in_review (`done` is `closed` here)";
        assert!(refused.stderr.contains(said), "{}", refused.stderr);
    }
    assert_eq!(text(&scratch), rows);
    for status in ["in_review", "deferred"] {
        let set = scratch.json(&["issue", "update", "a", "--status", status]);
        assert_eq!(set["issue"]["status"], status);
    }
}

#[test]
fn every_field_is_set_and_cleared() {
    let scratch = Scratch::with(&row("a", &[]));
    let set = scratch.json(&[
        "issue",
        "update",
        "a",
        "--type",
        "bug",
        "--labels",
        "x,y",
        "--design",
        "d",
        "--acceptance",
        "c",
        "--verify",
        "make",
    ]);
    let issue = &set["issue"];
    assert_eq!(issue["issueType"], "bug");
    assert_eq!(issue["labels"], json!(["x", "y"]));
    assert_eq!(
        (&issue["design"], &issue["acceptanceCriteria"]),
        (&json!("d"), &json!("c"))
    );
    let cleared = scratch.json(&[
        "issue",
        "update",
        "a",
        "--type",
        "",
        "--labels",
        "",
        "--design",
        "",
        "--acceptance",
        "",
        "--verify",
        "",
    ]);
    let issue = &cleared["issue"];
    assert_eq!(
        (&issue["issueType"], &issue["labels"]),
        (&json!("task"), &json!([]))
    );
    assert_eq!(
        (issue.get("design"), issue.get("acceptanceCriteria")),
        (None, None)
    );
    assert!(!text(&scratch).lines().last().unwrap().contains("metadata"));
}

#[test]
fn the_first_id_has_the_prefix_of_the_repository() {
    for (folder, flags, first) in [
        ("My_Parser.rs", &[][..], "my-parser-rs-1"),
        ("2048", &[], "bd-1"),
        ("parser", &["--id-prefix", "gl"], "gl-1"),
    ] {
        let scratch = Scratch::with("");
        let root = scratch.folder.join(folder);
        fs::create_dir(&root).unwrap();
        git2::Repository::init(&root).unwrap();
        let within = |args: &[&str]| {
            let mut command = scratch.command(args);
            command.env_remove("PREMATH_ISSUES_PATH").current_dir(&root);
            Answer::of(command.output().unwrap())
        };
        let made = within(&[&["init"], flags].concat());
        assert_eq!(made.code, 0, "{}", made.stderr);
        let added = within(&["issue", "add", "One", "--json"]).json();
        assert_eq!(added["issue"]["id"], first, "{added}");
        let refused = within(&["init", "--id-prefix", "No Prefix"]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        // What is there decides afterwards.
        within(&["issue", "add", "Two", "--id", "x-7"]);
        within(&["issue", "add", "Three", "--id", "x-8"]);
        let added = within(&["issue", "add", "Four", "--json"]).json();
        assert_eq!(added["issue"]["id"], "x-9", "{added}");
    }
}
