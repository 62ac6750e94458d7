//! `premath sandbox`: the explanation, and a command that is tried.

use premath_tests::{Scratch, binaries, skipped};
use serde_json::Value;

/// Returns whether namespaces work here.
fn works(scratch: &Scratch) -> bool {
    let ended = scratch
        .premath(["sandbox", "explain", "--sandbox", "namespaces"])
        .end();
    if ended.code == Some(0) {
        return true;
    }
    let ended = ended.says("does not work here");
    skipped("premath sandbox", ended.stderr.trim());
    false
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
