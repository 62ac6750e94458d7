//! `premath issue edit` and `issue add --edit`, with a script as the editor.

use crate::answer::Answer;
use crate::scratch::{Scratch, row};
use std::fs;
use std::path::Path;

/// Runs a command with an editor: a script whose first argument is the file.
fn edited(scratch: &Scratch, script: &str, args: &[&str]) -> Answer {
    let editor = scratch.folder.join("editor.sh");
    fs::write(&editor, format!("{script}\n")).unwrap();
    let mut command = scratch.command(args);
    command.env_remove("VISUAL");
    command.env("EDITOR", format!("sh {}", editor.display()));
    command.env("TMPDIR", &scratch.folder);
    Answer::of(command.output().unwrap())
}

fn text(scratch: &Scratch) -> String {
    fs::read_to_string(scratch.issues()).unwrap()
}

/// Returns the drafts that were kept.
fn drafts(scratch: &Scratch) -> Vec<String> {
    let entries = fs::read_dir(&scratch.folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| Path::new(name).extension().is_some_and(|end| end == "toml"))
        .collect()
}

#[test]
fn an_issue_is_changed_in_an_editor_and_only_where_the_text_differs() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    let script = r#"sed -i -e 's/^title = .*/title = "Build"/' -e 's/^priority = .*/priority = "high"/' "$1""#;
    let answer = edited(&scratch, script, &["issue", "edit", "bd-1", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let issue = &answer.json()["issue"];
    assert_eq!(issue["title"], "Build");
    assert_eq!(issue["priority"], 1);
    assert_eq!(issue["acceptanceCriteria"], "`make test`");
    assert_eq!(drafts(&scratch), [""; 0]);

    let before = text(&scratch);
    for script in ["true", "touch \"$1\"", "echo '# a comment' >> \"$1\""] {
        let answer = edited(&scratch, script, &["issue", "edit", "bd-1"]);
        assert_eq!(answer.code, 0, "{script}: {}", answer.stderr);
        assert!(
            answer.stdout.starts_with("unchanged bd-1"),
            "{}",
            answer.stdout
        );
        assert_eq!(text(&scratch), before, "{script}");
    }
}

#[test]
fn a_text_that_cannot_be_used_is_opened_again_and_then_kept() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    let before = text(&scratch);
    // The second time the fault is in the text, and is mended.
    let script = r#"if grep -q '^# error: priority' "$1"
then sed -i 's/^priority = .*/priority = 0/' "$1"
else sed -i 's/^priority = .*/priority = "urgent"/' "$1"
fi"#;
    let answer = edited(&scratch, script, &["issue", "edit", "bd-1", "--json"]);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(answer.json()["issue"]["priority"], 0);

    fs::write(scratch.issues(), &before).unwrap();
    for (script, code, expected) in [
        (
            "sed -i 's/^labels/label/' \"$1\"",
            2,
            "unknown field `label`",
        ),
        (
            "sed -i 's/^status.*/status = \"done\"/' \"$1\"",
            1,
            "closed",
        ),
        (
            "sed -i 's/^status.*/status = \"closed\"/' \"$1\"",
            2,
            "--reason",
        ),
        (
            "grep -q ^parent \"$1\" || sed -i '1s/$/\\nparent = \"bd-2\"/' \"$1\"",
            2,
            "premath dep",
        ),
        ("echo x >> \"$1\"; exit 3", 2, "the editor"),
    ] {
        let answer = edited(&scratch, script, &["issue", "edit", "bd-1"]);
        assert_eq!(answer.code, code, "{script}: {}", answer.stderr);
        assert!(
            answer.stderr.contains(expected),
            "{script}: {}",
            answer.stderr
        );
        assert_eq!(text(&scratch), before, "{script}");
        let kept = drafts(&scratch);
        assert_eq!(kept.len(), 1, "{script}");
        assert!(answer.stderr.contains(&kept[0]), "{}", answer.stderr);
        fs::remove_file(scratch.folder.join(&kept[0])).unwrap();
    }
    let answer = edited(&scratch, "exit 1", &["issue", "edit", "bd-1"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert_eq!(drafts(&scratch), [""; 0]);
}

#[test]
fn a_field_that_changed_while_it_was_edited_is_not_overwritten() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    let premath = env!("CARGO_BIN_EXE_premath");
    let meanwhile = |change: &str| {
        format!(
            "{premath} issue update bd-1 {change} > /dev/null || exit 9\n\
             sed -i 's/^title = .*/title = \"Mine\"/' \"$1\""
        )
    };
    let answer = edited(
        &scratch,
        &meanwhile("--title Theirs"),
        &["issue", "edit", "bd-1"],
    );
    assert_eq!(answer.code, 1, "{}", answer.stderr);
    let expected = "issue bd-1 changed while it was edited: title";
    assert!(answer.stderr.contains(expected), "{}", answer.stderr);
    assert_eq!(drafts(&scratch).len(), 1);
    let shown = scratch.json(&["issue", "show", "bd-1"]);
    assert_eq!(shown["issue"]["title"], "Theirs");

    let answer = edited(
        &scratch,
        &meanwhile("--notes theirs"),
        &["issue", "edit", "bd-1"],
    );
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let shown = scratch.json(&["issue", "show", "bd-1"]);
    assert_eq!(shown["issue"]["title"], "Mine");
    assert_eq!(shown["issue"]["notes"], "theirs");
}

#[test]
fn a_new_issue_is_written_in_an_editor() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    let before = text(&scratch);
    let script = r#"sed -i -e 's/^depends_on = .*/depends_on = ["bd-1"]/' -e 's/^title = .*/title = "Test"/' "$1""#;
    let add = ["issue", "add", "--edit", "--labels", "a", "--json"];
    let answer = edited(&scratch, script, &add);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    let issue = &answer.json()["issue"];
    assert_eq!(issue["title"], "Test");
    assert_eq!(issue["labels"][0], "a");
    assert_eq!(issue["dependencies"][0]["dependsOnId"], "bd-1");

    fs::write(scratch.issues(), &before).unwrap();
    let answer = edited(&scratch, "true", &["issue", "add", "Title", "--edit"]);
    assert_eq!(answer.code, 2, "{}", answer.stderr);
    assert_eq!(text(&scratch), before);
}

#[test]
fn no_editor_is_opened_inside_a_step() {
    let scratch = Scratch::with(&row("bd-1", &[]));
    for args in [&["issue", "edit", "bd-1"][..], &["issue", "add", "--edit"]] {
        let mut command = scratch.command(args);
        command.env("PREMATH_STEP_ID", "worker.1.bd-1.1");
        command.env("EDITOR", "touch opened; true");
        let answer = Answer::of(command.output().unwrap());
        assert_eq!(answer.code, 1, "{}", answer.stderr);
        assert!(!scratch.folder.join("opened").exists());
    }
}
