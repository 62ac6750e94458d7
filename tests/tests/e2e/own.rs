//! A batch on a real repository: the project's own.

use crate::landing::{
    TARGET, after, every_close_is_on_the_target, first_parents, passes_at, refs_are_accounted_for,
};
use premath_tests::{Scratch, issue, skipped, workspace};
use std::fs;

/// A new crate, something more in it, and a word in the readme.
const WORK: &str = r#"case $PREMATH_ISSUE_ID in
lantern)
    mkdir -p shared/lantern/src
    printf '[package]\nname = "lantern"\nedition.workspace = true\n' > shared/lantern/Cargo.toml
    echo 'pub const LIGHT: &str = "dim";' > shared/lantern/src/lib.rs
    sed 's|^members = \[$|&\n    "shared/lantern",|' Cargo.toml > Cargo.toml.new
    mv Cargo.toml.new Cargo.toml ;;
light)
    sed 's/"dim"/"bright"/' shared/lantern/src/lib.rs > lib.rs.new || exit
    mv lib.rs.new shared/lantern/src/lib.rs ;;
word)
    printf '\nThe night is young.\n' >> README.md ;;
esac"#;

/// Every member of the workspace is a crate, and the issue's edit is there.
const CHECK: &str = r#"set -e
members=$(awk '/^members = \[/ { on = 1; next } /^\]/ { on = 0 } on { gsub(/[ ",]/, ""); print }' Cargo.toml)
[ -n "$members" ]
for crate in $members; do
    grep -q '^\[package\]' "$crate/Cargo.toml"
    [ -d "$crate/src" ]
done
case $PREMATH_ISSUE_ID in
lantern) echo "$members" | grep -qx shared/lantern ;;
light) grep -q bright shared/lantern/src/lib.rs ;;
word) grep -q 'night is young' README.md ;;
esac"#;

/// Clones the project and makes two lanes; `None` where there is nothing that
/// could be cloned.
fn cloned() -> Option<Scratch> {
    let what = "the batch on the project's own repository";
    let workspace = workspace();
    if !workspace.join(".git").exists() {
        skipped(what, "the workspace is not a git checkout");
        return None;
    }
    let mut scratch = Scratch::new(0);
    let read = scratch
        .git_command(["rev-parse", "HEAD"])
        .within(&workspace)
        .end();
    if read.code != Some(0) {
        let words = read.stderr.trim_end();
        skipped(what, &format!("git cannot read the workspace: {words}"));
        return None;
    }
    let root = scratch.folder().join("own");
    scratch
        .git_command(["clone", "--quiet"])
        .arg(&workspace)
        .arg(&root)
        .end()
        .exits(0);
    scratch.root = root;
    for arguments in [
        ["switch", "--quiet", "--create", "own"],
        ["worktree", "add", "--quiet", "../lane-1"],
        ["worktree", "add", "--quiet", "../lane-2"],
    ] {
        scratch.git_command(arguments).end().exits(0);
    }
    scratch.lanes = [1, 2]
        .map(|n| scratch.folder().join(format!("lane-{n}")))
        .into();
    Some(scratch)
}

#[test]
fn two_lanes_land_three_edits_of_the_projects_own_repository() {
    let Some(scratch) = cloned() else {
        return;
    };
    let rows = [issue("lantern"), after("light", "lantern"), issue("word")];
    let text: String = rows.iter().map(|row| format!("{row}\n")).collect();
    scratch.write_issues(text.as_bytes());
    // Nothing of how the project itself is worked on counts here.
    let config = scratch.folder().join("empty.toml");
    fs::write(&config, "").unwrap();
    let base = scratch.git().head().unwrap().target().unwrap();

    scratch
        .landing_batch(WORK, CHECK)
        .arg("--config")
        .arg(&config)
        .end()
        .exits(0);

    let ids = ["lantern", "light", "word"];
    for id in ids {
        assert_eq!(scratch.issue(id)["status"], "closed", "{id}");
        assert_eq!(scratch.steps_of(id).len(), 1, "{id}");
    }
    let mut landed = first_parents(&scratch);
    let above = landed.iter().position(|commit| *commit == base).unwrap();
    landed.truncate(above);
    assert_eq!(landed.len(), 3);
    for commit in &landed {
        passes_at(&scratch, *commit, CHECK);
    }
    let check_all = ids.map(|id| format!("PREMATH_ISSUE_ID={id}\n{CHECK}"));
    passes_at(&scratch, landed[0], &check_all.join("\n"));
    let place = |id: &str| {
        let steps = scratch.steps_of(id);
        let commit = steps[0]["landing"]["commit"].as_str().unwrap();
        landed.iter().position(|at| at.to_string() == commit)
    };
    // Newest first.
    assert!(place("light").unwrap() < place("lantern").unwrap());
    assert!(place("word").is_some());
    assert_eq!(
        scratch
            .file_on(TARGET, "shared/lantern/src/lib.rs")
            .as_deref(),
        Some("pub const LIGHT: &str = \"bright\";\n")
    );
    every_close_is_on_the_target(&scratch);
    refs_are_accounted_for(&scratch);

    let git = scratch.git();
    assert_eq!(git.head().unwrap().name(), Ok("refs/heads/own"));
    assert_eq!(git.head().unwrap().target(), Some(base));
    let status = [
        "status",
        "--porcelain",
        "--",
        ".",
        ":!.premath",
        ":!artifacts",
    ];
    let status = scratch.git_command(status).end().exits(0);
    assert_eq!(status.stdout, "");
    scratch.no_process_left();
    assert_eq!(scratch.leftovers(), [""; 0]);
}
