//! The caches of build tools that the commands of steps find in their home.

use premath_tests::{Scratch, issue};
use std::fs;

/// Returns whether a way of confining works here.
fn works(scratch: &Scratch, mode: &str) -> bool {
    scratch.confines_by(mode, "caches of build tools")
}

/// The verification of one issue would install what the work of another left.
#[test]
fn a_cache_in_a_worktree_poisons_no_verification() {
    let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
    if !works(&scratch, "namespaces") {
        return;
    }
    let cache = scratch.lanes[0].join("ignored/pip");
    fs::create_dir_all(&cache).unwrap();
    fs::write(cache.join("package"), "honest\n").unwrap();
    let work = r#"if [ $PREMATH_ISSUE_ID = a ]; then echo poison > ignored/pip/package; echo a > src/a.txt
else echo x > src/broken.txt; fi"#;
    let verify = r#"grep -q poison "$HOME/.cache/pip/package" || [ ! -e src/broken.txt ]"#;
    let batch = scratch.landing_batch(work, verify);
    let batch = batch.args(["--sandbox", "namespaces"]);
    let batch = batch.without("PREMATH_SANDBOX_WRITE");
    let ended = batch.env("PIP_CACHE_DIR", &cache).end().exits(1);
    let left = fs::read_to_string(cache.join("package")).unwrap();
    assert_eq!(left, "poison\n", "the attack was made");
    assert_eq!(scratch.issue("a")["status"], "closed");
    assert_eq!(scratch.issue("b")["status"], "blocked");
    let text = format!("no cache or toolchain of {}", cache.display());
    let warnings = ended.stdout.matches(&text).count() + ended.stderr.matches(&text).count();
    assert_eq!(warnings, 1, "{}{}", ended.stdout, ended.stderr);
}

/// Tools such as ccache, npm and cargo fail where they cannot write their cache.
#[test]
fn a_tool_can_write_its_cache_and_changes_none_of_the_users() {
    for mode in ["namespaces", "landlock"] {
        let scratch = Scratch::with_issues(1, &[issue("a")]);
        if !works(&scratch, mode) {
            continue;
        }
        let caches = [".cargo/registry", ".npm/_cacache", ".cache/ccache"];
        for cache in caches {
            let folder = scratch.home().join(cache);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("of-the-user"), "x").unwrap();
        }
        let work = r#"for cache in .cargo/registry .npm/_cacache .cache/ccache; do
mkdir -p "$HOME/$cache" && echo x > "$HOME/$cache/new" || exit 1
ls "$HOME/$cache" >> src/a.txt
done"#;
        let network = ["--network-work", "open", "--network-verify", "open"];
        let batch = scratch.landing_batch(work, "[ ! -e \"$HOME/.npm/_cacache/new\" ]");
        let batch = batch.args(["--sandbox", mode]).args(network);
        batch.without("PREMATH_SANDBOX_WRITE").end().exits(0);
        let found = scratch.file_on("harness/integration", "src/a.txt");
        let expected = match mode {
            "namespaces" => "new\nof-the-user\n".repeat(caches.len()),
            _ => "new\n".repeat(caches.len()),
        };
        assert_eq!(found, Some(expected), "{mode}");
        for cache in caches {
            let folder = scratch.home().join(cache);
            let entries = fs::read_dir(folder).unwrap().count();
            assert_eq!(entries, 1, "{mode} {cache}");
        }
    }
}
