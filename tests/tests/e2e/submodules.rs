//! Repositories with submodules, which the setup command checks out.

use crate::landing::TARGET;
use premath_tests::{Ended, Run, Scratch, binaries, issue};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

const MODES: [&str; 2] = ["namespaces", "landlock"];

/// The submodule is there, and git finds nothing changed, or the issue's own.
const WORK: &str = r#"grep -q library sub/lib.txt || exit 3
test -z "$(git status --porcelain)" || { git status >&2; exit 4; }
git submodule status > "$HOME/$PREMATH_ISSUE_ID.modules" || exit 5
if [ -e "$HOME/$PREMATH_ISSUE_ID.sh" ]; then . "$HOME/$PREMATH_ISSUE_ID.sh"
else echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt"; fi"#;

const VERIFY: &str =
    r#"test "$(cat sub/lib.txt)" = library && test -z "$(git status --porcelain)""#;

const SETTINGS: &str = r#"[worktrees]
setup_cmd = "git -c protocol.file.allow=always submodule update --init -q && echo x >> $HOME/setups"
setup_inputs = [".gitmodules"]
[backoff]
fixed_short = "1ms"
exponential_short = "1ms"
"#;

/// A repository with a submodule `sub`.
fn with_submodule(names: &[&str]) -> Scratch {
    let rows: Vec<Value> = names.iter().map(|name| issue(name)).collect();
    let scratch = Scratch::with_issues(0, &rows);
    let library = library(&scratch);
    fs::create_dir(&library).unwrap();
    let at = library.display().to_string();
    git(&scratch, &["init", "-q", "-b", "main", &at]);
    fs::write(library.join("lib.txt"), "library\n").unwrap();
    for arguments in [&["add", "-A"][..], &["commit", "-qm", "library"]] {
        let run = scratch.git_command(arguments.iter().copied());
        run.within(&library).end().exits(0);
    }
    fs::write(scratch.root.join("harness.toml"), SETTINGS).unwrap();
    let allowed = "protocol.file.allow=always";
    git(
        &scratch,
        &["-c", allowed, "submodule", "add", "-q", &at, "sub"],
    );
    git(&scratch, &["add", "-A", "--", ":!.premath"]);
    git(&scratch, &["commit", "-qm", "submodule"]);
    scratch
}

fn library(scratch: &Scratch) -> PathBuf {
    scratch.folder().join("library")
}

fn git(scratch: &Scratch, arguments: &[&str]) -> String {
    let run = scratch.git_command(arguments.iter().copied());
    run.end().exits(0).stdout
}

fn batch(scratch: &Scratch, mode: &str, lanes: &str) -> Run {
    scratch
        .landing_batch(WORK, VERIFY)
        .args(["--sandbox", mode, "--lanes", lanes])
        .env("PREMATH_SANDBOX_READ", readable(scratch))
}

/// What commands may read beside their own folders.
fn readable(scratch: &Scratch) -> OsString {
    let mut read = OsString::from(binaries().folder());
    read.push(":");
    read.push(library(scratch));
    read
}

/// Gives an issue work of its own.
fn script(scratch: &Scratch, issue: &str, text: &str) {
    fs::write(scratch.home().join(format!("{issue}.sh")), text).unwrap();
}

/// Returns whether a mode works here.
fn works(scratch: &Scratch, mode: &str) -> bool {
    scratch.confines_by(mode, &format!("submodules by {mode}"))
}

/// How often the setup command ran.
fn setups(scratch: &Scratch) -> usize {
    let text = fs::read_to_string(scratch.home().join("setups"));
    text.unwrap_or_default().lines().count()
}

fn all_closed(scratch: &Scratch, ids: &[&str], ended: &Ended) {
    for id in ids {
        let text = &ended.stdout;
        assert_eq!(scratch.issue(id)["status"], "closed", "{id}: {text}");
    }
}

#[test]
fn a_submodule_is_there_for_each_step_and_each_verification() {
    for mode in MODES {
        let ids = ["a", "b", "c"];
        let scratch = with_submodule(&ids);
        if !works(&scratch, mode) {
            continue;
        }
        let ended = batch(&scratch, mode, "1").end();
        all_closed(&scratch, &ids, &ended);
        // At least once for the lane and once for the checkout.
        assert!(setups(&scratch) >= 2, "{mode}");
        for id in ids {
            let modules = scratch.home().join(format!("{id}.modules"));
            let modules = fs::read_to_string(modules).unwrap();
            assert!(modules.contains(" sub"), "{mode}: {modules}");
        }
        let base = git(&scratch, &["rev-parse", "HEAD:sub"]);
        assert_eq!(
            git(&scratch, &["rev-parse", &format!("{TARGET}:sub")]),
            base
        );
        scratch.no_process_left();
    }
}

/// What one step does to a submodule, the next one does not find.
#[test]
fn a_changed_submodule_is_made_again_for_the_next_step() {
    for mode in MODES {
        let ids = ["a-evil", "b-next"];
        let scratch = with_submodule(&ids);
        if !works(&scratch, mode) {
            continue;
        }
        let evil = "echo poison > sub/lib.txt; echo more > sub/more.txt; echo x > src/evil.txt\n\
                    git config -f \"$(git rev-parse --git-common-dir)/modules/sub/config\" core.fsmonitor 'touch $HOME/ran'\n";
        script(&scratch, "a-evil", evil);
        script(
            &scratch,
            "b-next",
            "test \"$(cat sub/lib.txt)\" = library && ! test -e sub/more.txt || exit 6\n\
             git -C sub status --porcelain; ! test -e $HOME/ran || exit 7; echo x > src/next.txt\n",
        );
        let ended = batch(&scratch, mode, "1").end();
        all_closed(&scratch, &ids, &ended);
        assert_eq!(scratch.steps_of("b-next").len(), 1, "{}", ended.stdout);
    }
}

#[test]
fn a_submodule_at_another_commit_is_refused() {
    for mode in MODES {
        let scratch = with_submodule(&["a-moved", "b-next"]);
        if !works(&scratch, mode) {
            continue;
        }
        script(
            &scratch,
            "a-moved",
            "cd sub && echo more > more.txt && git add -A && git commit -qm more && cd .. && git add sub\n",
        );
        let ended = batch(&scratch, mode, "1").end();
        assert_eq!(
            scratch.issue("b-next")["status"],
            "closed",
            "{}",
            ended.stdout
        );
        assert_ne!(scratch.issue("a-moved")["status"], "closed", "{mode}");
        let classes = &scratch.steps_of("a-moved")[0]["failureClasses"];
        assert_eq!(classes, &json!(["work_unproven"]), "{mode}");
        let said = ended
            .stdout
            .contains("the submodule sub is at another commit");
        assert!(said, "{mode}: {}", ended.stdout);
    }
}

#[test]
fn a_submodule_that_moves_in_a_worktree_of_ones_own_is_refused() {
    for mode in MODES {
        let scratch = with_submodule(&["a-moved"]);
        if !works(&scratch, mode) {
            continue;
        }
        let own = scratch.folder().join("own");
        let at = own.display().to_string();
        git(&scratch, &["worktree", "add", "-q", "-b", "own", &at]);
        script(
            &scratch,
            "a-moved",
            "cd sub && echo more > more.txt && git add -A && git commit -qm more && cd .. && git add sub\n",
        );
        let run = scratch.landing_batch_on(&[own], WORK, VERIFY);
        let ended = run
            .args(["--sandbox", mode])
            .env("PREMATH_SANDBOX_READ", readable(&scratch));
        let ended = ended.end();
        assert_ne!(scratch.issue("a-moved")["status"], "closed", "{mode}");
        let said = "the submodule sub is at another commit";
        assert!(ended.stdout.contains(said), "{mode}: {}", ended.stdout);
    }
}
