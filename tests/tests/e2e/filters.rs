//! Files that git changes on the way between a commit and a checkout: by Git
//! LFS, and by a filter that the operator configured.

use crate::landing::TARGET;
use premath_tests::{Ended, Run, Scratch, issue, skipped};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The modes in which a filter is confined.
const MODES: [&str; 2] = ["namespaces", "landlock"];

/// Each issue's own script, or a new file with a filter and one without.
const WORK: &str = r#"if [ -e "$HOME/$PREMATH_ISSUE_ID.sh" ]; then . "$HOME/$PREMATH_ISSUE_ID.sh"
else grep -q keep two.rot || exit 3
echo "hello $PREMATH_ISSUE_ID" > "new files/$PREMATH_ISSUE_ID.rot"; echo x > "src/$PREMATH_ISSUE_ID.txt"; fi"#;

/// Files have their content, and git finds nothing to commit.
const VERIFY: &str = r#"grep -q keep two.rot && grep -q keep "new files/one.rot" || exit 4
for file in "new files"/*.rot; do grep -Eq 'keep|hello' "$file" || exit 5; done
test -z "$(git status --porcelain)""#;

/// A repository without lanes whose files with the ending `rot` are stored with
/// other letters; the settings are in the repository's own configuration.
fn rotated(names: &[&str]) -> Scratch {
    let scratch = bare_of_lanes(names);
    configure(&scratch, "clean", "tr a-y b-z");
    configure(&scratch, "smudge", "tr b-z a-y");
    configure(&scratch, "required", "true");
    fs::create_dir(scratch.root.join("new files")).unwrap();
    commit(
        &scratch,
        &[
            (".gitattributes", "*.rot filter=rot\n"),
            ("two.rot", "keep\n"),
            ("new files/one.rot", "keep\n"),
        ],
    );
    assert_eq!(stored(&scratch, "HEAD", "two.rot"), "lffq\n");
    scratch
}

fn bare_of_lanes(names: &[&str]) -> Scratch {
    let rows: Vec<Value> = names.iter().map(|name| issue(name)).collect();
    let scratch = Scratch::with_issues(0, &rows);
    let settings = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    scratch
}

fn configure(scratch: &Scratch, key: &str, value: &str) {
    let key = format!("filter.rot.{key}");
    git(scratch, &["config", &key, value]);
}

fn git(scratch: &Scratch, arguments: &[&str]) -> String {
    let run = scratch.git_command(arguments.iter().copied());
    run.end().exits(0).stdout
}

/// Commits files in the operator's checkout, by the operator's git.
fn commit(scratch: &Scratch, files: &[(&str, &str)]) {
    for (path, text) in files {
        fs::write(scratch.root.join(path), text).unwrap();
    }
    git(scratch, &["add", "-A", "--", ":!.premath"]);
    git(scratch, &["commit", "-qm", "files"]);
}

/// What a commit holds.
fn stored(scratch: &Scratch, commit: &str, path: &str) -> String {
    git(scratch, &["cat-file", "-p", &format!("{commit}:{path}")])
}

/// The target as the operator's git checks it out.
fn looked_at(scratch: &Scratch) -> PathBuf {
    let look = scratch.folder().join("look");
    let at = look.display().to_string();
    git(scratch, &["worktree", "add", "-qf", &at, TARGET]);
    let status = scratch.git_command(["status", "--porcelain"]).within(&look);
    assert_eq!(status.end().exits(0).stdout, "");
    look
}

/// Gives an issue work of its own.
fn script(scratch: &Scratch, issue: &str, text: &str) {
    fs::write(scratch.home().join(format!("{issue}.sh")), text).unwrap();
}

fn batch(scratch: &Scratch, mode: &str, verify: &str) -> Run {
    scratch
        .landing_batch(WORK, verify)
        .args(["--sandbox", mode, "--lanes", "2"])
}

/// Checks that the events of a batch have a text.
#[track_caller]
fn prints(ended: &Ended, text: &str) {
    let said = ended.stdout.contains(text);
    assert!(said, "`{text}` was not printed:\n{}", ended.stdout);
}

/// Returns whether a mode works here.
fn works(scratch: &Scratch, mode: &str) -> bool {
    scratch.confines_by(mode, &format!("filters by {mode}"))
}

/// Returns whether Git LFS is installed, and installs it for the scratch's user.
fn has_lfs(scratch: &Scratch) -> bool {
    let version = scratch.git_command(["lfs", "version"]).end();
    if version.code != Some(0) {
        skipped("files of Git LFS", "git-lfs is not installed");
        return false;
    }
    git(scratch, &["lfs", "install", "--skip-repo"]);
    true
}

#[test]
fn filtered_files_have_their_content_in_a_step_and_not_in_its_commit() {
    for mode in MODES {
        let scratch = rotated(&["a", "b", "c"]);
        if !works(&scratch, mode) {
            continue;
        }
        script(
            &scratch,
            "c",
            "git status --porcelain > \"$HOME/status\"; echo more >> two.rot; git add two.rot\n\
             git cat-file -p :two.rot > \"$HOME/staged\"; git checkout -q HEAD -- 'new files/one.rot'\n",
        );
        batch(&scratch, mode, VERIFY).end().exits(0);
        for id in ["a", "b", "c"] {
            assert_eq!(scratch.issue(id)["status"], "closed", "{mode}: {id}");
            assert_eq!(scratch.steps_of(id).len(), 1, "{mode}: {id}");
        }
        // The step's own git knows the filter, and finds nothing changed.
        let said = |name: &str| fs::read_to_string(scratch.home().join(name)).unwrap();
        assert_eq!(said("status"), "", "{mode}");
        assert_eq!(said("staged"), "lffq\nnpsf\n", "{mode}");
        assert_eq!(
            stored(&scratch, TARGET, "two.rot"),
            "lffq\nnpsf\n",
            "{mode}"
        );
        assert_eq!(stored(&scratch, TARGET, "new files/a.rot"), "ifmmp b\n");
        assert_eq!(stored(&scratch, TARGET, "src/a.txt"), "x\n");
        let look = looked_at(&scratch);
        let read = |name: &str| fs::read_to_string(look.join(name)).unwrap();
        assert_eq!(read("two.rot"), "keep\nmore\n", "{mode}");
        assert_eq!(read("new files/b.rot"), "hello b\n", "{mode}");
        scratch.no_process_left();
    }
}

#[test]
fn other_encodings_and_names_of_objects_are_as_git_has_them() {
    for mode in MODES {
        let scratch = bare_of_lanes(&["a"]);
        if !works(&scratch, mode) {
            continue;
        }
        commit(
            &scratch,
            &[
                (
                    ".gitattributes",
                    "*.u16 text working-tree-encoding=UTF-16LE\n*.id ident\n",
                ),
                ("t.u16", "h\0\n\0"),
                ("v.id", "$Id$\n"),
            ],
        );
        assert_eq!(stored(&scratch, "HEAD", "t.u16"), "h\n");
        // As git writes it, and with more in the same encoding.
        let work = "grep -q 'Id: ' v.id || exit 3; [ $(wc -c < t.u16) = 4 ] || exit 4\n\
                    printf 'm\\0\\n\\0' >> t.u16; echo more >> v.id\n";
        script(&scratch, "a", work);
        let verify = r#"test -z "$(git status --porcelain)" && grep -q 'Id: ' v.id"#;
        batch(&scratch, mode, verify).end().exits(0);
        assert_eq!(scratch.steps_of("a").len(), 1, "{mode}");
        assert_eq!(stored(&scratch, TARGET, "t.u16"), "h\nm\n", "{mode}");
        assert_eq!(stored(&scratch, TARGET, "v.id"), "$Id$\nmore\n", "{mode}");
        drop(looked_at(&scratch));
    }
}

#[test]
fn a_filter_that_fails_and_is_not_required_is_named() {
    let scratch = bare_of_lanes(&["a"]);
    configure(&scratch, "clean", "no-such-filter");
    commit(&scratch, &[(".gitattributes", "*.rot filter=rot\n")]);
    script(&scratch, "a", "echo plain > src/two.rot\n");
    let ended = batch(&scratch, "none", "true").end().exits(0);
    // As git takes it.
    assert_eq!(stored(&scratch, TARGET, "src/two.rot"), "plain\n");
    let warning = "a git filter that is not required may have failed";
    assert!(ended.stderr.contains(warning), "{}", ended.stderr);
    assert!(ended.stderr.contains("no-such-filter"), "{}", ended.stderr);
}

#[test]
fn a_file_whose_filter_does_not_end_costs_its_issue_alone() {
    let scratch = rotated(&["a", "b"]);
    configure(
        &scratch,
        "clean",
        "f=$(mktemp); cat > $f; ! grep -q HANG $f || sleep 600; tr a-y b-z < $f",
    );
    let file = scratch.root.join("harness.toml");
    let text = fs::read_to_string(&file).unwrap();
    let limit = "[supervision]\nverify_limit = \"2s\"\ngrace = \"100ms\"\n";
    fs::write(file, text + limit).unwrap();
    script(&scratch, "a", "echo HANG > a.rot\n");
    let ended = batch(&scratch, "none", VERIFY).end().exits(1);
    prints(&ended, "a.rot: its filter failed: it took longer");
    assert_eq!(scratch.issue("b")["status"], "closed");
    assert!(!ended.stdout.contains("\"lane.disabled\""), "{ended:?}");
    // The next batch has a lane for it.
    script(&scratch, "a", "echo fine > a.rot\n");
    scratch.premath(["retry", "a"]).end().exits(0);
    batch(&scratch, "none", VERIFY).end().exits(0);
    assert_eq!(stored(&scratch, TARGET, "a.rot"), "gjof\n");
}

#[test]
fn a_worktree_that_git_made_is_clean_with_filtered_files() {
    for mode in MODES {
        let scratch = rotated(&["a"]);
        if !works(&scratch, mode) {
            continue;
        }
        let lane = scratch.folder().join("lane");
        let at = lane.display().to_string();
        git(&scratch, &["worktree", "add", "-q", "--detach", &at]);
        scratch
            .landing_batch_on(&[lane], WORK, VERIFY)
            .args(["--sandbox", mode])
            .end()
            .exits(0);
        assert_eq!(scratch.issue("a")["status"], "closed", "{mode}");
        assert_eq!(stored(&scratch, TARGET, "new files/a.rot"), "ifmmp b\n");
    }
}

#[test]
fn a_file_that_a_required_filter_refuses_fails_its_step() {
    let scratch = rotated(&["bad", "good"]);
    if !works(&scratch, MODES[0]) {
        return;
    }
    let filter = scratch.folder().join("filter.sh");
    fs::write(&filter, "text=$(cat); case $text in *poison*) echo no poison >&2; exit 1 ;; esac; printf '%s\\n' \"$text\" | tr a-y b-z\n").unwrap();
    configure(&scratch, "clean", &format!("sh {}", filter.display()));
    script(
        &scratch,
        "bad",
        "echo poison > bad.rot; echo fine > fine.rot",
    );
    let read = format!("{}", filter.display());
    let ended = batch(&scratch, MODES[0], VERIFY)
        .env("PREMATH_SANDBOX_READ", read)
        .end();
    assert_eq!(scratch.issue("good")["status"], "closed");
    assert_ne!(scratch.issue("bad")["status"], "closed", "{}", ended.stderr);
    let steps = scratch.steps_of("bad");
    let classes = steps[0]["failureClasses"].to_string();
    assert!(classes.contains("worktree_filter"), "{classes}");
    prints(&ended, "no poison");
    // What its filter takes is saved.
    let branch = scratch
        .branches()
        .into_iter()
        .find(|name| name.contains("salvage"));
    let saved = stored(&scratch, &branch.unwrap(), "fine.rot");
    assert_eq!(saved, "gjof\n");
}

/// Work behind such a file in the landing queue is verified with it, and is not
/// charged for it.
#[test]
fn a_file_that_a_filter_refuses_is_charged_to_its_own_issue() {
    let scratch = bare_of_lanes(&["a", "b"]);
    let filter = scratch.folder().join("filter.sh");
    // It refuses the file once the verifications of both issues have it.
    let text = r#"text=$(cat)
case $text in *poison*) ;; *) printf '%s\n' "$text"; exit ;; esac
if mkdir "$0.first" 2> /dev/null; then until [ -e "$0.second" ]; do sleep 0.01; done
else touch "$0.second"; fi
exit 1"#;
    fs::write(&filter, text).unwrap();
    let filter = filter.display().to_string();
    configure(&scratch, "clean", "cat");
    configure(&scratch, "smudge", &format!("sh {filter}"));
    configure(&scratch, "required", "true");
    commit(&scratch, &[(".gitattributes", "*.rot filter=rot\n")]);
    script(&scratch, "a", "echo poison > src/a.rot");
    let second = "until [ -e FILTER.first ]; do sleep 0.01; done; touch src/b.txt";
    script(&scratch, "b", &second.replace("FILTER", &filter));
    batch(&scratch, "none", "true").end().exits(1);
    assert_ne!(scratch.issue("a")["status"], "closed");
    for step in scratch.steps_of("a") {
        assert_eq!(step["failureClasses"], json!(["worktree_filter"]), "{step}");
    }
    let steps = scratch.steps_of("b");
    assert_eq!(steps.len(), 1, "{steps:#?}");
    assert_eq!(steps[0].get("failureClasses"), None, "{steps:#?}");
    assert_eq!(scratch.issue("b")["status"], "closed");
}

#[test]
fn a_filter_that_is_not_configured_refuses_the_batch() {
    let scratch = rotated(&["a"]);
    git(&scratch, &["config", "--remove-section", "filter.rot"]);
    let ended = batch(&scratch, MODES[0], VERIFY).end();
    prints(&ended, "the git filter `rot`, which is not configured");
    prints(&ended, "git config filter.rot.required false");
    assert_eq!(scratch.issue("a")["status"], "open");
    // As the hint says: git leaves the files as they are, and so does a lane.
    configure(&scratch, "required", "false");
    script(&scratch, "a", "grep -q lffq two.rot && echo x > src/a.txt");
    batch(&scratch, MODES[0], "true").end().exits(0);
    assert_eq!(stored(&scratch, TARGET, "two.rot"), "lffq\n");
}

/// A step defines filters in each place that it can write.
#[test]
fn a_filter_of_a_steps_own_runs_nowhere() {
    for mode in MODES {
        let scratch = rotated(&["evil", "next"]);
        if !works(&scratch, mode) {
            continue;
        }
        let outside = scratch.folder().join("outside");
        fs::create_dir(&outside).unwrap();
        let evil = r#"printf '#!/bin/sh\necho ran >> "OUTSIDE/ran"\ncat\n' > run; chmod +x run
for key in clean smudge process; do
  git config filter.rot.$key "$PWD/run"; git config filter.evil.$key "$PWD/run"
  git config --file .lfsconfig filter.evil.$key "$PWD/run"
done
common=$(git rev-parse --git-common-dir); mkdir -p "$common/info"
echo '* filter=evil' > "$common/info/attributes"; echo '*.txt filter=evil' > src/.gitattributes
echo poison > src/evil.txt; echo keep > two.rot; echo x > "new files/evil.rot""#;
        script(
            &scratch,
            "evil",
            &evil.replace("OUTSIDE", &outside.display().to_string()),
        );
        batch(&scratch, mode, "true").end();
        // The files of attributes govern, and are protected.
        let classes = scratch.steps_of("evil")[0]["failureClasses"].to_string();
        assert!(classes.contains("protected"), "{mode}: {classes}");
        assert_eq!(scratch.issue("next")["status"], "closed", "{mode}");
        assert!(!outside.join("ran").exists(), "{mode}: a step's filter ran");
        assert_eq!(
            stored(&scratch, TARGET, "new files/next.rot"),
            "ifmmp ofyu\n"
        );
    }
}

const LFS_WORK: &str = r#"if [ -e "$HOME/$PREMATH_ISSUE_ID.sh" ]; then . "$HOME/$PREMATH_ISSUE_ID.sh"
else test "$(wc -c < big.bin)" -eq 200000 || exit 3
echo "object of $PREMATH_ISSUE_ID" > "$PREMATH_ISSUE_ID.bin"; fi"#;

const LFS_VERIFY: &str =
    r#"test "$(wc -c < big.bin)" -eq 200000 && test -z "$(git status --porcelain)""#;

/// A repository with a file of Git LFS; `None` where that is not installed.
fn with_lfs(names: &[&str]) -> Option<Scratch> {
    let scratch = bare_of_lanes(names);
    if !has_lfs(&scratch) {
        return None;
    }
    let attributes = "*.bin filter=lfs diff=lfs merge=lfs -text\n";
    let big = "0123456789".repeat(20_000);
    commit(
        &scratch,
        &[(".gitattributes", attributes), ("big.bin", &big)],
    );
    assert!(stored(&scratch, "HEAD", "big.bin").starts_with("version https://git-lfs"));
    Some(scratch)
}

fn lfs_batch(scratch: &Scratch, mode: &str) -> Run {
    scratch
        .landing_batch(LFS_WORK, LFS_VERIFY)
        .args(["--sandbox", mode, "--lanes", "2"])
}

#[test]
fn files_of_git_lfs_land_as_pointers_whose_objects_are_there() {
    for mode in MODES {
        let Some(scratch) = with_lfs(&["a", "b"]) else {
            return;
        };
        if !works(&scratch, mode) {
            continue;
        }
        lfs_batch(&scratch, mode).end().exits(0);
        for id in ["a", "b"] {
            assert_eq!(scratch.issue(id)["status"], "closed", "{mode}: {id}");
            let pointer = stored(&scratch, TARGET, &format!("{id}.bin"));
            assert!(pointer.starts_with("version https://git-lfs"), "{pointer}");
        }
        let look = looked_at(&scratch);
        let read = |name: &str| fs::read_to_string(look.join(name)).unwrap();
        assert_eq!(read("a.bin"), "object of a\n", "{mode}");
        assert_eq!(read("big.bin").len(), 200_000, "{mode}");
        scratch.git_command(["lfs", "fsck", TARGET]).end().exits(0);
        // An unchanged file is as it was.
        let before = stored(&scratch, "HEAD", "big.bin");
        assert_eq!(stored(&scratch, TARGET, "big.bin"), before, "{mode}");
    }
}

/// A step writes pointers to objects that it planted, and to one that is not
/// there at all.
#[test]
fn a_pointer_without_its_object_is_refused() {
    for mode in MODES {
        let Some(scratch) = with_lfs(&["corrupt", "missing", "good"]) else {
            return;
        };
        if !works(&scratch, mode) {
            continue;
        }
        let [planted, absent] = ["11", "22"].map(|digit| digit.repeat(32));
        let pointer = |oid: &str| {
            format!(
                "printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:{oid}\\nsize 5\\n' > evil.bin\n"
            )
        };
        let plant = format!(
            "at=$(git rev-parse --git-common-dir)/lfs/objects/11/11; mkdir -p \"$at\"\n\
             printf abcde > \"$at/{planted}\"\n"
        );
        script(&scratch, "corrupt", &(plant + &pointer(&planted)));
        // The same text in a file without a filter makes it no known pointer.
        let copied = "cp evil.bin src/evil.txt\n";
        script(&scratch, "missing", &(pointer(&absent) + copied));
        let ended = lfs_batch(&scratch, mode).end();
        assert_eq!(scratch.issue("good")["status"], "closed", "{mode}");
        for (id, oid) in [("corrupt", &planted), ("missing", &absent)] {
            assert_ne!(scratch.issue(id)["status"], "closed", "{mode}: {id}");
            let step = scratch.steps_of(id)[0].clone();
            let classes = step["failureClasses"].to_string();
            assert!(classes.contains("worktree_filter"), "{mode}: {classes}");
            prints(&ended, oid);
        }
        let objects = scratch.root.join(".git/lfs/objects");
        for oid in [&planted, &absent] {
            let at = objects.join(&oid[..2]).join(&oid[2..4]).join(oid);
            assert!(!at.exists(), "{mode}: {oid} was taken in");
        }
        assert_eq!(leftovers(&scratch.root.join(".git/lfs/tmp")), 0, "{mode}");
    }
}

fn leftovers(folder: &Path) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

#[test]
fn objects_that_were_never_fetched_refuse_the_batch() {
    let Some(scratch) = with_lfs(&["a"]) else {
        return;
    };
    if !works(&scratch, MODES[0]) {
        return;
    }
    fs::remove_dir_all(scratch.root.join(".git/lfs/objects")).unwrap();
    let ended = lfs_batch(&scratch, MODES[0]).end();
    prints(&ended, "big.bin");
    prints(&ended, "git lfs fetch");
    assert_eq!(scratch.issue("a")["status"], "open");
    // Git LFS can be set to leave the pointers.
    script(
        &scratch,
        "a",
        "grep -q git-lfs big.bin && echo x > src/a.txt",
    );
    scratch
        .landing_batch(LFS_WORK, "grep -q git-lfs big.bin")
        .args(["--sandbox", MODES[0], "--lanes", "2"])
        .env("GIT_LFS_SKIP_SMUDGE", "1")
        .end()
        .exits(0);
    assert_eq!(scratch.issue("a")["status"], "closed");
    let before = stored(&scratch, "HEAD", "big.bin");
    assert_eq!(stored(&scratch, TARGET, "big.bin"), before);
}
