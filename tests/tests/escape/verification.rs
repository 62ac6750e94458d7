//! Attack 5: what verifies is changed, so that broken work closes, now or in
//! later issues and nights.

use crate::ground::{Ground, TARGET};
use std::fs;
use std::path::Path;

attacks! {
    a_protected_script_is_changed_behind_a_patched_index,
    a_file_is_hidden_by_flags_of_the_index,
    an_ignored_checker_is_replaced,
    an_ignore_file_of_everything_is_committed,
    a_needed_file_is_ignored,
    an_attribute_changes_what_is_checked_out,
    the_verification_itself_changes_the_tree,
    build_state_is_poisoned,
    build_state_is_poisoned_where_the_harness_has_its_own,
    what_a_verification_leaves_stops_honest_work,
    content_is_not_moved_behind_the_times_of_a_file,
}

/// The checker that the setup puts into an ignored folder; the verification
/// goes without it only where there is none.
const VERIFY: &str = "if [ -x node_modules/.bin/check ]; then node_modules/.bin/check
else [ ! -e src/broken.txt ]; fi\n";

const SETUP: &str = r#"[protect]
paths = ["/verify.sh"]
[worktrees]
setup_cmd = "mkdir -p node_modules/.bin; printf '#!/bin/sh\n[ ! -e src/broken.txt ]\n' > node_modules/.bin/check; chmod +x node_modules/.bin/check"
"#;

fn prepared(ground: &mut Ground) {
    ground.write("repo/verify.sh", VERIFY);
    ground.write("repo/.gitignore", "/ignored/\n/node_modules/\n");
    ground.settings(SETUP);
    ground.verify("sh verify.sh");
}

/// Broken work without malice: it must never close.
fn broken_later(ground: &mut Ground) {
    for id in ["x-broken-1", "x-broken-2"] {
        ground.hostile(id, "echo x > src/broken.txt").later();
    }
}

fn nothing_broken_closed(ground: &mut Ground, hostile: &[&str]) {
    for id in hostile.iter().chain(&["x-broken-1", "x-broken-2"]) {
        let status = ground.status(id);
        ground.harm(status == "closed", format!("broken work closed: {id}"));
    }
    let landed = ground.landed("src/broken.txt");
    ground.harm(landed.is_some(), format!("broken work is on {TARGET}"));
    let script = ground.landed("verify.sh");
    ground.harm(
        script.as_deref() != Some(VERIFY),
        format!("the verification script landed as {script:?}"),
    );
}

/// The entry of the changed file keeps its times and sizes, and bears the id of
/// the content before.
fn a_protected_script_is_changed_behind_a_patched_index(ground: &mut Ground) {
    prepared(ground);
    let script = r#"echo x > src/broken.txt
old=$(git rev-parse HEAD:verify.sh); echo 'exit 0' > verify.sh
git update-index verify.sh; new=$(git hash-object verify.sh)
for at in $(gits); do
  premath-probe replace "$at/index" "$new" "$old" || continue
  sum=$(head -c -20 "$at/index" | sha1sum | cut -c1-40); premath-probe seal "$at/index" "$sum"
done"#;
    ground.hostile("h1", script).hostile("h2", script);
    broken_later(ground);
    ground.nights();
    nothing_broken_closed(ground, &["h1", "h2"]);
}

fn a_file_is_hidden_by_flags_of_the_index(ground: &mut Ground) {
    prepared(ground);
    for (id, flag) in [("h1", "--assume-unchanged"), ("h2", "--skip-worktree")] {
        let script = format!(
            "echo x > src/broken.txt; git update-index {flag} verify.sh; echo 'exit 0' > verify.sh"
        );
        ground.hostile(id, &script);
    }
    broken_later(ground);
    ground.nights();
    nothing_broken_closed(ground, &["h1", "h2"]);
}

fn an_ignored_checker_is_replaced(ground: &mut Ground) {
    prepared(ground);
    let script = r#"echo x > src/broken.txt; mkdir -p node_modules/.bin
printf '#!/bin/sh\nexit 0\n' > node_modules/.bin/check; chmod +x node_modules/.bin/check
touch -d 2040-01-01 node_modules/.bin/check node_modules"#;
    ground.hostile("h1", script).hostile("h2", script);
    broken_later(ground);
    ground.nights();
    nothing_broken_closed(ground, &["h1", "h2"]);
}

/// The work of every later issue would be ignored, and close as nothing.
fn an_ignore_file_of_everything_is_committed(ground: &mut Ground) {
    prepared(ground);
    let script = "echo '*' > .gitignore; g add -f .gitignore; g commit -qm ignore";
    ground.hostile("h1", script);
    ground.hostile("h2", "echo '*' > src/.gitignore; g add -f src/.gitignore");
    broken_later(ground);
    ground.nights();
    nothing_broken_closed(ground, &[]);
}

/// The lane has the file and the commit does not.
fn a_needed_file_is_ignored(ground: &mut Ground) {
    let verify = "[ ! -e src/uses.txt ] || [ -e src/needed.txt ]";
    ground.verify(verify);
    let script = r#"echo x > src/uses.txt; echo x > src/needed.txt
echo needed.txt > src/.gitignore"#;
    ground.hostile("h1", script);
    let script = r#"echo x > src/uses.txt; echo x > src/needed.txt
for c in $(commons) $(gits); do mkdir -p "$c/info"; echo needed.txt >> "$c/info/exclude"; done
git update-index --add src/uses.txt"#;
    ground.hostile("h2", script);
    ground.nights();
    passes_on_the_target(ground, verify);
}

fn an_attribute_changes_what_is_checked_out(ground: &mut Ground) {
    let verify = r#"[ ! -e src/exact.txt ] || [ "$(cksum < src/exact.txt)" = "$(printf 'a\nb\n' | cksum)" ]"#;
    ground.verify(verify);
    let script =
        r#"printf 'a\nb\n' > src/exact.txt; echo 'exact.txt text eol=crlf' > src/.gitattributes"#;
    ground.hostile("h", script);
    let script = r#"printf 'a\nb\n' > src/exact.txt
for c in $(commons) $(gits); do mkdir -p "$c/info"; echo '*.txt text eol=crlf' > "$c/info/attributes"; done"#;
    ground.hostile("i", script);
    ground.nights();
    passes_on_the_target(ground, verify);
}

/// A test that comes with the work runs with the verification.
fn the_verification_itself_changes_the_tree(ground: &mut Ground) {
    let verify = "[ ! -e src/test.sh ] || sh src/test.sh; [ ! -e src/broken.txt ]";
    ground.verify(verify);
    let script = r#"cat > src/test.sh <<'END'
(sleep 0.2; echo x > src/broken.txt) > /dev/null 2>&1 &
mkdir -p ignored; echo 'exit 0' > ignored/poison
git rm -q --cached src/test.sh 2>/dev/null; echo late > src/late.txt; git add -A 2>/dev/null
END
echo x > src/h.txt"#;
    ground.hostile("h", script);
    ground.nights();
    let late = ground.landed("src/late.txt");
    ground.harm(late.is_some(), "what the verification wrote landed");
    let broken = ground.landed("src/broken.txt");
    ground.harm(
        broken.is_some(),
        "what a daemon of the verification wrote landed",
    );
}

/// A build tool that knows what is compiled by the times of files. Tests that
/// come with the work run with it.
const BUILD: &str = r#"mkdir -p ignored/out
for source in src/*.txt; do out="ignored/out/${source#src/}"
  if [ ! -e "$out" ] || [ "$source" -nt "$out" ]; then rm -f "$out"; cat "$source" > "$out"; fi
done
for test in src/*.test; do if [ -e "$test" ]; then sh "$test"; fi; done
for out in ignored/out/*; do ! grep -q broken "$out" || exit 1; done
"#;

/// Outputs of later work are created in advance and dated in the future, by the
/// test of one issue and by the work of others.
fn build_state_is_poisoned(ground: &mut Ground) {
    ground.write("repo/build.sh", BUILD);
    ground.write("repo/.gitignore", "/ignored/\n");
    ground.settings("[protect]\npaths = [\"/build.sh\"]\n");
    ground.verify("sh build.sh");
    let poison = r#"mkdir -p ignored/out; for name in base broken h1 h2; do
  rm -f "ignored/out/$name.txt"; echo fine > "ignored/out/$name.txt"
  touch -d 2040-01-01 "ignored/out/$name.txt"; done
touch -d 1990-01-01 src/*.txt; touch -d 2040-01-01 ignored ignored/out"#;
    let script = format!(
        "cat > src/h1.test <<'END'\n[ \"$PREMATH_ISSUE_ID\" = h1 ] || exit 0\n{poison}\nEND\n{poison}"
    );
    ground.hostile("h1", &script);
    ground.hostile("h2", &format!("echo fine > src/h2.txt\n{poison}"));
    ground.hostile(
        "h3",
        "echo broken > src/base.txt; touch -d 1990-01-01 src/base.txt",
    );
    for id in ["x-broken-1", "x-broken-2"] {
        ground.hostile(id, "echo broken > src/broken.txt").later();
    }
    ground.nights();
    for id in ["h3", "x-broken-1", "x-broken-2"] {
        let status = ground.status(id);
        ground.harm(status == "closed", format!("broken work closed: {id}"));
    }
    let landed = ground.landed("src/broken.txt");
    ground.harm(landed.is_some(), format!("broken work is on {TARGET}"));
}

/// The build goes to `artifacts/`, which the harness skips in a worktree.
fn build_state_is_poisoned_where_the_harness_has_its_own(ground: &mut Ground) {
    let build = BUILD.replace("ignored/out", "artifacts/out");
    ground.write("repo/build.sh", &build);
    ground.settings("[protect]\npaths = [\"/build.sh\"]\n");
    ground.verify("sh build.sh");
    let poison = r#"mkdir -p artifacts/out; for name in base broken h; do
  rm -f "artifacts/out/$name.txt"; echo fine > "artifacts/out/$name.txt"
  touch -d 2040-01-01 "artifacts/out/$name.txt"; done
premath-probe attribute src/base.txt user.overlay.whiteout y
premath-probe attribute src user.overlay.opaque y
touch -d 1990-01-01 src/*.txt"#;
    ground.hostile(
        "h",
        &format!("cat > src/h.test <<'END'\n[ \"$PREMATH_ISSUE_ID\" = h ] || exit 0\n{poison}\nEND\n{poison}"),
    );
    for id in ["x-broken-1", "x-broken-2"] {
        ground.hostile(id, "echo broken > src/broken.txt").later();
    }
    ground.nights();
    let said = ground.output_of_verification("h");
    for name in ["whiteout", "opaque"] {
        // Whether it is set is a matter of the file system.
        let is_tried = said.contains(&format!("attribute user.overlay.{name}: "));
        ground.harm(!is_tried, format!("no attribute {name} was tried: {said}"));
    }
    for id in ["x-broken-1", "x-broken-2"] {
        let status = ground.status(id);
        ground.harm(status == "closed", format!("broken work closed: {id}"));
    }
    let landed = ground.landed("src/broken.txt");
    ground.harm(landed.is_some(), format!("broken work is on {TARGET}"));
}

/// Folders in the place of files, folders without rights, and hard links, in the
/// lane and by the verification.
fn what_a_verification_leaves_stops_honest_work(ground: &mut Ground) {
    ground.verify("for test in src/*.test; do [ ! -e \"$test\" ] || sh \"$test\"; done");
    let mess = r#"mkdir -p src/x-honest-1.txt/deep src/x-honest-2.txt
cp src/base.txt src/twin.txt 2>/dev/null; ln -f src/base.txt src/twin.txt
chmod 555 src"#;
    ground.hostile(
        "h",
        &format!("cat > src/h.test <<'END'\n{mess}\nEND\necho x > src/h.txt; git add -A; {mess}"),
    );
    for id in ["x-honest-1", "x-honest-2"] {
        let script = format!("echo {id} > src/{id}.txt && echo {id} > src/base.txt");
        ground.hostile(id, &script).later();
    }
    ground.nights();
    for id in ["x-honest-1", "x-honest-2"] {
        let landed = ground.landed(&format!("src/{id}.txt"));
        ground.harm(landed.is_none(), format!("honest work was stopped: {id}"));
    }
    let twin = ground.landed("src/twin.txt");
    let is_changed = twin.is_some_and(|text| text.contains("honest"));
    ground.harm(is_changed, "a write went through a hard link");
}

/// The tip of the target passes in a fresh checkout of its own.
fn passes_on_the_target(ground: &mut Ground, verify: &str) {
    let place = ground.path("runs/fresh");
    let at = place.display().to_string();
    let root = ground.path("repo").display().to_string();
    ground.try_git(&["clone", "-q", "--branch", TARGET, &root, &at]);
    let is_there = fs::exists(place.join("src/base.txt")).unwrap();
    ground.harm(!is_there, format!("{TARGET} cannot be checked out"));
    if is_there {
        let run = ground
            .run(Path::new("sh"))
            .args(["-c", verify])
            .within(&place);
        let code = run.end().code;
        ground.harm(
            code != Some(0),
            format!("the verification fails on {TARGET}"),
        );
    }
}

/// File systems can exchange the content of two files and leave their times as they
/// were: the harness would take a changed file for the same.
fn content_is_not_moved_behind_the_times_of_a_file(ground: &mut Ground) {
    let script = r#"echo x > src/h.txt
python3 - <<'END'
import fcntl, os
other = os.open("src/h.txt", os.O_RDWR)
file = os.open("src/base.txt", os.O_RDWR)
# Of ext4, XFS and F2FS.
for request in (0xc028660f, 0xc0c0586d, 0xc020f509):
    try:
        fcntl.ioctl(other, request, bytes(192))
        print("error", 0)
    except OSError as error:
        print("error", error.errno)
END"#;
    ground.hostile("h", script);
    ground.nights();
    let said = ground.output("h");
    let errors: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("error "))
        .collect();
    // `ENOSYS`, whatever the file system knows.
    ground.harm(errors != ["error 38"; 3], format!("answered {errors:?}"));
}
