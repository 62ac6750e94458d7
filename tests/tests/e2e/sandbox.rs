//! `premath sandbox`: the explanation, and a command that is tried.

use premath_tests::{Scratch, binaries, issue};
use serde_json::Value;
use std::path::PathBuf;

/// Returns whether namespaces work here.
fn works(scratch: &Scratch) -> bool {
    scratch.confines_by("namespaces", "premath sandbox")
}

#[test]
fn the_explanation_ends_with_a_newline() {
    let scratch = Scratch::with_issues(0, &[]);
    let explain = scratch.premath(["sandbox", "explain", "--sandbox", "none"]);
    let ended = explain.end().exits(0);
    assert!(ended.stdout.ends_with('\n'), "{}", ended.stdout);
}

/// Makes a file in a folder beside the repository that may be written; returns
/// its path.
fn in_shared(scratch: &Scratch, name: &str, text: &str, more: &str) -> PathBuf {
    let shared = scratch.folder().join("shared");
    std::fs::create_dir(&shared).unwrap();
    let file = shared.join(name);
    std::fs::write(&file, text).unwrap();
    let settings = format!("[sandbox]\nwrite = [\"../shared\"]\n{more}");
    std::fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    file
}

#[test]
fn what_a_command_may_do_is_listed_with_its_source() {
    let scratch = Scratch::with_issues(0, &[]);
    if !works(&scratch) {
        return;
    }
    let settings = "[sandbox]\nread = [\"../data\"]\nwrite = [\"../shared\"]\n[network]\nwork = \"off\"\n[limits]\nprocesses = 77\n";
    std::fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    for folder in ["data", "shared"] {
        std::fs::create_dir(scratch.folder().join(folder)).unwrap();
    }
    let explain = scratch.premath(["sandbox", "explain", "--json"]);
    let answer: Value = serde_json::from_str(&explain.end().exits(0).stdout).unwrap();
    assert_eq!(answer["mode"], "namespaces");
    let lists = |list: &str, path: &str, source: &str| {
        let list = answer[list].as_array().unwrap().iter();
        let path = scratch.folder().join(path).display().to_string();
        list.clone()
            .any(|item| item["path"] == *path && item["source"] == source)
    };
    assert!(lists("read", "data", "[sandbox]"), "{answer}");
    assert!(lists("read", "/usr", "system"), "{answer}");
    assert!(lists("write", "shared", "[sandbox] write"), "{answer}");
    assert_eq!(answer["workNetwork"]["policy"], "off");
    assert_eq!(answer["verifyNetwork"]["policy"], "registries");
    assert_eq!(answer["limits"]["processes"], 77);
}

#[test]
fn a_command_is_tried_on_the_files_of_head_and_changes_nothing() {
    let scratch = Scratch::with_issues(0, &[]);
    if !works(&scratch) {
        return;
    }
    let before = std::fs::read(scratch.root.join("src/base.txt")).unwrap();
    let secret = scratch.folder().join("secret");
    std::fs::write(&secret, "SECRET").unwrap();
    let script = format!(
        "cat src/base.txt && echo changed > src/base.txt && git add -A && git commit -qm x && \
         git log --oneline | wc -l; cat {}; echo \"home $HOME\"; exit 7",
        secret.display()
    );
    let tried = scratch
        .run(&binaries().premath)
        .args(["sandbox", "try", "--", "sh", "-c", &script])
        .without("PREMATH_SANDBOX_WRITE")
        .end()
        .exits(7);
    assert!(tried.stdout.starts_with("base\n2\n"), "{}", tried.stdout);
    assert!(
        tried.stdout.contains("home /premath/home"),
        "{}",
        tried.stdout
    );
    assert!(!tried.stdout.contains("SECRET"), "{}", tried.stdout);
    let after = std::fs::read(scratch.root.join("src/base.txt")).unwrap();
    assert_eq!(before, after);
    scratch
        .premath(["sandbox", "try", "--", "no-such-program"])
        .end()
        .exits(1)
        .says("the command was not run: `no-such-program` in the sandbox: ");
    scratch
        .premath(["sandbox", "try", "--sandbox", "none", "--", "true"])
        .end()
        .exits(1)
        .says("only `namespaces` and `container` can be tried");
}

#[test]
fn what_may_be_read_in_a_folder_that_may_be_written_is_there() {
    let scratch = Scratch::with_issues(0, &[]);
    if !works(&scratch) {
        return;
    }
    let log = in_shared(&scratch, "log", "before\n", "read = [\"../shared/log\"]\n");
    let script = format!("echo after >> '{}'", log.display());
    let tried = scratch.premath(["sandbox", "try", "--", "sh", "-c", &script]);
    tried.end().exits(0);
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "before\nafter\n");
}

#[test]
fn what_a_command_names_is_not_changed_in_a_folder_that_may_be_written() {
    let scratch = Scratch::with_issues(1, &[issue("a")]);
    if !works(&scratch) {
        return;
    }
    let check = in_shared(&scratch, "check.sh", "[ -e src/a.txt ]\n", "");
    let shared = check.parent().unwrap();
    let work = format!(
        "cd '{}' && touch new; echo exit 1 > check.sh; mv check.sh other; rm -f check.sh; \
         cd - && echo x > src/a.txt",
        shared.display()
    );
    let verify = format!("sh '{}'", check.display());
    let batch = scratch.landing_batch(&work, &verify);
    batch.args(["--sandbox", "namespaces"]).end().exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert!(shared.join("new").exists());
    let left = std::fs::read_to_string(&check).unwrap();
    assert_eq!(left, "[ -e src/a.txt ]\n");
}
