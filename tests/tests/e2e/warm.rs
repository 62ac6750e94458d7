//! Verifications that begin with the build state of the operator's base: what
//! they find, what they leave, and what passes only with it.

use crate::landing::TARGET;
use premath_tests::{Ended, Run, Scratch, binaries, issue};
use rustix::fs::{XattrFlags, setxattr};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A build tool that knows what is compiled by the times of files, as make and
/// cargo do, and runs a test that comes with the work. It says what it found.
const BUILD: &str = r#"hits=0; made=0; mkdir -p ignored/out
for source in src/*.txt; do
  out="ignored/out/${source#src/}"
  if [ -e "$out" ] && [ ! "$source" -nt "$out" ]; then hits=$((hits+1))
  else rm -f "$out"; cat "$source" > "$out"; made=$((made+1)); fi
done
echo "${PREMATH_ISSUE_ID:-base} hits=$hits made=$made at=$PWD" >> "$HOME/log"
if [ -e src/test.sh ]; then sh src/test.sh; fi
for out in ignored/out/*; do ! grep -q broken "$out" || exit 1; done
"#;

const VERIFY: &str = "sh build.sh";

/// Each issue's work: what its own script says, or a file of its own.
const WORK: &str = r#"if [ -e "$HOME/$PREMATH_ISSUE_ID.sh" ]; then . "$HOME/$PREMATH_ISSUE_ID.sh"
else echo "$PREMATH_ISSUE_ID" > "src/$PREMATH_ISSUE_ID.txt"; fi"#;

/// A repository with the build tool, and as many issues as have names.
fn prepared(lanes: usize, names: &[&str]) -> Scratch {
    let rows: Vec<Value> = names.iter().map(|name| issue(name)).collect();
    let scratch = Scratch::with_issues(lanes, &rows);
    commit(&scratch, &[("build.sh", BUILD)]);
    scratch
}

/// Commits files in the operator's checkout.
fn commit(scratch: &Scratch, files: &[(&str, &str)]) {
    for (path, text) in files {
        fs::write(scratch.root.join(path), text).unwrap();
    }
    for arguments in [
        &["add", "-A", "--", ":!.premath"][..],
        &["commit", "-qm", "files"],
    ] {
        let git = scratch.git_command(arguments.iter().copied());
        git.end().exits(0);
    }
    for lane in &scratch.lanes {
        let git = scratch.git_command(["switch", "-q", "--detach", "main"]);
        git.within(lane).end().exits(0);
    }
}

/// Gives an issue work of its own.
fn script(scratch: &Scratch, issue: &str, text: &str) {
    fs::write(scratch.home().join(format!("{issue}.sh")), text).unwrap();
}

fn batch(scratch: &Scratch) -> Run {
    scratch
        .landing_batch(WORK, VERIFY)
        .args(["--sandbox", "namespaces"])
}

/// Returns whether namespaces work here.
fn works(scratch: &Scratch) -> bool {
    scratch.confines_by("namespaces", "verifications with build state")
}

/// A repository whose build makes a library once, of a file that a step may
/// delete; `None` where namespaces do not work.
fn with_library() -> Option<Scratch> {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return None;
    }
    let library =
        "[ -e ignored/library ] || { mkdir -p ignored; cp src/base.txt ignored/library; }\n";
    commit(&scratch, &[("build.sh", library)]);
    Some(scratch)
}

/// What the build tool said: of which issue, how much it found, what it made,
/// and where.
fn log(scratch: &Scratch) -> Vec<(String, usize, usize, String)> {
    let text = fs::read_to_string(scratch.home().join("log")).unwrap_or_default();
    let line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let of = |word: &str, name: &str| word.strip_prefix(name).unwrap().to_owned();
        (
            words[0].to_owned(),
            of(words[1], "hits=").parse().unwrap(),
            of(words[2], "made=").parse().unwrap(),
            of(words[3], "at="),
        )
    };
    text.lines().map(line).collect()
}

fn beside(scratch: &Scratch) -> PathBuf {
    scratch.folder().join("repo-verify")
}

/// Everything below a folder: kind and mode, size, times, number and content.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_path_buf()];
    while let Some(path) = waiting.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let content = match meta.is_file() {
            true => String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned(),
            false => String::new(),
        };
        let numbers = (meta.mode(), meta.size(), meta.ino());
        let times = (
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec(),
        );
        found.insert(path.clone(), format!("{numbers:?} {times:?} {content}"));
        if meta.is_dir() {
            waiting.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        }
    }
    found
}

fn tip_rows(scratch: &Scratch) -> Vec<Value> {
    let mut rows = scratch.trajectory();
    rows.retain(|row| row["action"] == "coordinator.tip_verified");
    rows
}

fn last_event(ended: &Ended) -> Value {
    ended.events().pop().unwrap()
}

#[test]
fn every_verification_finds_the_state_of_the_base_and_none_of_a_step() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    let ended = batch(&scratch).end().exits(0);
    let found: Vec<(String, usize, usize)> = log(&scratch)
        .into_iter()
        .map(|(of, hits, made, _)| (of, hits, made))
        .collect();
    let row = |of: &str, hits, made| (of.to_owned(), hits, made);
    // Each compiles what landed before it again: no step's state is kept.
    assert_eq!(
        found,
        [
            row("base", 0, 1),
            // Whether it passes with the layer below it.
            row("base", 1, 0),
            row("a", 1, 1),
            row("b", 1, 2),
            row("c", 1, 3),
            row("base", 0, 4),
        ]
    );
    let at = |number: usize| log(&scratch)[number].3.clone();
    assert!(
        (1..5).all(|number| at(number) == at(0)),
        "{:?}",
        log(&scratch)
    );
    let rows = tip_rows(&scratch);
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["resultClass"], "passed");
    let event = last_event(&ended);
    assert_eq!(event["tipChecks"][0]["passed"], json!(true), "{event}");
    let names: Vec<String> = fs::read_dir(beside(&scratch))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(
        !names.iter().any(|name| name.ends_with(".changes")),
        "{names:?}"
    );
}

#[test]
fn lanes_share_one_layer_and_see_it_at_one_place() {
    let scratch = prepared(2, &["a", "b", "c", "d"]);
    if !works(&scratch) {
        return;
    }
    batch(&scratch).end().exits(0);
    let log = log(&scratch);
    let cold = log.iter().filter(|(_, hits, ..)| *hits == 0);
    // The base before the first step, and the last commit.
    assert_eq!(cold.count(), 2, "{log:?}");
    let of_steps: Vec<_> = log.iter().filter(|(of, ..)| of != "base").collect();
    assert!(of_steps.len() >= 4, "{log:?}");
    assert!(of_steps.iter().all(|row| row.3 == log[0].3), "{log:?}");
    assert_eq!(tip_rows(&scratch).len(), 1);
}

/// Outputs that are replaced and dated in the future, those of later steps
/// created in advance, everything deleted, and the notes of an overlay set by
/// hand.
const POISON: &str = r#"cat > src/test.sh <<'END'
[ "$PREMATH_ISSUE_ID" = h-poison ] || exit 0
for name in base late x-broken h-poison; do
  rm -f "ignored/out/$name.txt"; echo fine > "ignored/out/$name.txt"
  touch -d 2040-01-01 "ignored/out/$name.txt"
done
touch -d 2040-01-01 ignored/out ignored src; touch -d 1990-01-01 src/*.txt
mknod ignored/out/white c 0 0; rm -rf ignored/gone; mkdir -p ignored/new
PROBE attribute ignored user.overlay.opaque y >> "$HOME/attributes"
PROBE attribute src/base.txt user.overlay.whiteout y >> "$HOME/attributes"
chmod -R a-w ignored
END
echo poison > src/h-poison.txt
PROBE attribute src/h-poison.txt user.overlay.metacopy y >> "$HOME/attributes""#;

/// The program that sets an attribute; not every machine has `setfattr`.
const PROBE: &str = env!("CARGO_BIN_EXE_premath-probe");

/// Asserts that each attribute was tried, and that the lane's was set where the file
/// system supports it. An overlay may refuse those with its own names.
fn attributes_were_tried(scratch: &Scratch) {
    let file = scratch.folder().join("attribute");
    fs::write(&file, "").unwrap();
    let is_supported = setxattr(&file, "user.x", b"y", XattrFlags::empty()).is_ok();
    let said = fs::read_to_string(scratch.home().join("attributes")).unwrap();
    let answered = |name: &str, answer: &str| {
        let line = format!("attribute user.overlay.{name}: {answer}");
        said.lines().any(|said| said == line)
    };
    for name in ["opaque", "whiteout"] {
        let is_tried = answered(name, "set") || answered(name, "not supported");
        assert!(is_tried, "{name}: {said}");
    }
    assert_eq!(answered("metacopy", "set"), is_supported, "{said}");
}

#[test]
fn the_layer_survives_hostile_steps_and_gives_no_false_green() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    let readable = [binaries().folder(), Path::new(PROBE).parent().unwrap()];
    let readable = std::env::join_paths(readable).unwrap();
    let night = || {
        let run = batch(&scratch).env("PREMATH_SANDBOX_READ", &readable);
        run.end()
    };
    night().exits(0);
    let layer = beside(&scratch).join("warm");
    let before = snapshot(&layer);
    assert!(before.len() > 2, "{before:?}");
    let mut rows = scratch.issue_bytes();
    for name in ["h-poison", "i-tracked", "late", "x-broken"] {
        rows.extend_from_slice(format!("{}\n", issue(name)).as_bytes());
    }
    scratch.write_issues(&rows);
    script(&scratch, "h-poison", &POISON.replace("PROBE", PROBE));
    // The output itself is in the work, in a folder that is ignored no more.
    script(
        &scratch,
        "i-tracked",
        "printf '' > .gitignore; mkdir -p ignored/out; echo broken > src/i-tracked.txt; \
         echo fine > ignored/out/late.txt",
    );
    script(&scratch, "x-broken", "echo broken > src/x-broken.txt");
    night().exits(1);
    attributes_were_tried(&scratch);
    assert_eq!(snapshot(&layer), before);
    for (name, status) in [
        ("late", "closed"),
        ("x-broken", "blocked"),
        ("i-tracked", "blocked"),
    ] {
        assert_eq!(scratch.issue(name)["status"], status, "{name}");
    }
    // The second batch made no layer: its base is the same.
    let bases = log(&scratch).into_iter().filter(|(of, ..)| of == "base");
    assert_eq!(bases.count(), 4, "{:?}", log(&scratch));
    assert_eq!(scratch.file_on(TARGET, "src/x-broken.txt"), None);
}

#[test]
fn a_layer_that_was_changed_or_is_of_another_base_is_made_again() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    batch(&scratch).end().exits(0);
    let again = |name: &str| {
        let rows: String = ["1", "2", "3"]
            .iter()
            .map(|number| format!("{}\n", issue(&format!("{name}{number}"))))
            .collect();
        scratch.write_issues(&[scratch.issue_bytes(), rows.into_bytes()].concat());
        let before = log(&scratch).len();
        batch(&scratch).end().exits(0);
        log(&scratch)[before].clone()
    };
    let first = again("same");
    assert_ne!(first.0, "base", "{first:?}");
    fs::write(
        beside(&scratch).join("warm/ignored/out/base.txt"),
        "other\n",
    )
    .unwrap();
    let first = again("changed");
    assert_eq!((&*first.0, first.1), ("base", 0), "{first:?}");
    commit(&scratch, &[("src/more.txt", "more\n")]);
    let first = again("moved");
    assert_eq!((&*first.0, first.1), ("base", 0), "{first:?}");
}

#[test]
fn what_passes_only_with_build_state_is_found_at_the_end() {
    let Some(scratch) = with_library() else {
        return;
    };
    script(&scratch, "b", "rm src/base.txt");
    let ended = batch(&scratch).end().exits(1);
    for name in ["a", "b", "c"] {
        assert_eq!(scratch.issue(name)["status"], "closed", "{name}");
    }
    let rows = tip_rows(&scratch);
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["resultClass"], "failed");
    assert_eq!(rows[0]["failureClasses"], json!(["landing_check_failed"]));
    let event = last_event(&ended);
    assert_eq!(event["tipChecks"][0]["passed"], json!(false), "{event}");
    assert_eq!(event["exitCode"], json!(1));
    let reports = fs::read_dir(scratch.root.join("artifacts/reports")).unwrap();
    let report = reports.map(|entry| entry.unwrap().path()).next().unwrap();
    let report = fs::read_to_string(report).unwrap();
    let first = report.lines().nth(2).unwrap();
    assert!(first.contains("DOES NOT PASS the verification"), "{report}");
    assert!(!report.contains("git merge"), "{report}");
    assert!(first.contains(".tip.stderr"), "{report}");
}

#[test]
fn without_layers_every_verification_begins_with_nothing() {
    for (mode, settings) in [("landlock", ""), ("namespaces", "[verify]\nwarm = false\n")] {
        let scratch = prepared(1, &["a", "b", "c"]);
        fs::write(scratch.root.join("harness.toml"), settings).unwrap();
        if !scratch.confines_by(mode, "verifications without build state") {
            continue;
        }
        let network = ["--network-work", "open", "--network-verify", "open"];
        let run = scratch
            .landing_batch(WORK, VERIFY)
            .args(["--sandbox", mode]);
        run.args(network).end().exits(0);
        let log = log(&scratch);
        let expected: Vec<_> = [("a", 0, 2), ("b", 0, 3), ("c", 0, 4)].into();
        let found: Vec<_> = log.iter().map(|row| (&*row.0, row.1, row.2)).collect();
        assert_eq!(found, expected, "{mode}");
        assert!(tip_rows(&scratch).is_empty(), "{mode}");
        assert!(!beside(&scratch).join("warm").exists(), "{mode}");
    }
}

#[test]
fn too_few_issues_for_it_to_pay_begin_with_nothing() {
    let scratch = prepared(1, &["a", "b"]);
    if !works(&scratch) {
        return;
    }
    batch(&scratch).end().exits(0);
    let log = log(&scratch);
    let found: Vec<_> = log.iter().map(|row| (&*row.0, row.1)).collect();
    assert_eq!(found, [("a", 0), ("b", 0)]);
}

#[test]
fn a_layer_of_other_values_of_variables_is_made_again() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    let settings = "[env]\nallow = [\"FLAG\"]\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    commit(
        &scratch,
        &[(
            "build.sh",
            "[ -e ignored/flag ] || { mkdir -p ignored; echo \"$FLAG\" > ignored/flag; }\n\
             grep -q ok ignored/flag\n",
        )],
    );
    batch(&scratch).env("FLAG", "ok").end().exits(0);
    let record = scratch.root.join(".premath/lanes/.warm/record.json");
    let key = || {
        let text = fs::read_to_string(&record).unwrap();
        let record: Value = serde_json::from_str(&text).unwrap();
        record["key"].clone()
    };
    let before = key();
    let rows: String = ["d", "e", "f"]
        .map(|name| format!("{}\n", issue(name)))
        .concat();
    scratch.write_issues(&[scratch.issue_bytes(), rows.into_bytes()].concat());
    batch(&scratch).env("FLAG", "bad").end().exits(1);
    assert_ne!(key(), before);
    for name in ["d", "e", "f"] {
        assert_ne!(scratch.issue(name)["status"], "closed", "{name}");
    }
}

/// The file that the link leads to afterwards has the fixed time of the base.
#[test]
fn a_symlink_that_leads_elsewhere_is_verified_without_build_state() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    for (folder, text) in [("v1", "exit 0\n"), ("v2", "exit 1\n")] {
        fs::create_dir(scratch.root.join(folder)).unwrap();
        fs::write(scratch.root.join(folder).join("app.sh"), text).unwrap();
    }
    std::os::unix::fs::symlink("v1", scratch.root.join("cur")).unwrap();
    let build = "if [ ! -e ignored/app ] || [ cur/app.sh -nt ignored/app ]; then\n\
                 mkdir -p ignored; cp cur/app.sh ignored/app; fi; sh ignored/app\n";
    commit(&scratch, &[("build.sh", build)]);
    script(&scratch, "a", "rm cur; ln -s v2 cur");
    batch(&scratch).end().exits(1);
    assert_ne!(scratch.issue("a")["status"], "closed");
    for name in ["b", "c"] {
        assert_eq!(scratch.issue(name)["status"], "closed", "{name}");
    }
}

/// However few issues are left, in the same batch and in a new one.
#[test]
fn the_next_batch_verifies_the_last_commit_of_one_that_was_killed() {
    for (at, flags) in [
        ("row-written:3", &[][..]),
        ("row-written:1", &["--new-batch"]),
        ("target-advanced:3", &["--new-batch"]),
    ] {
        let Some(scratch) = with_library() else {
            return;
        };
        script(&scratch, "a", "rm src/base.txt; echo a > src/a.txt");
        let killed = batch(&scratch).env("PREMATH_KILL_AT", at).end();
        assert_eq!(killed.signal, Some(9), "{at}: {}", killed.stderr);
        scratch.no_process_left();
        assert!(tip_rows(&scratch).is_empty(), "{at}");
        let next = || batch(&scratch).args(flags.iter().copied()).end();
        let ended = next().exits(1);
        let rows = tip_rows(&scratch);
        assert_eq!(rows.len(), 1, "{at}: {rows:?}");
        assert_eq!(rows[0]["resultClass"], "failed", "{at}");
        let event = last_event(&ended);
        assert_eq!(event["tipChecks"][0]["passed"], json!(false), "{event}");
        // It was reported: the batch after it owes nothing.
        next();
        assert_eq!(tip_rows(&scratch).len(), 1, "{at}");
    }
}

#[test]
fn a_command_that_cannot_run_twice_begins_with_nothing() {
    let scratch = prepared(1, &["a", "b", "c"]);
    if !works(&scratch) {
        return;
    }
    let once = "echo \"${PREMATH_ISSUE_ID:-base} hits=0 made=0 at=x\" >> \"$HOME/log\"\n\
                mkdir ignored && echo o > ignored/o\n";
    commit(&scratch, &[("build.sh", once)]);
    let bases = || log(&scratch).iter().filter(|row| row.0 == "base").count();
    for name in ["a", "d"] {
        if name == "d" {
            let rows: String = ["d", "e", "f"]
                .map(|name| format!("{}\n", issue(name)))
                .concat();
            scratch.write_issues(&[scratch.issue_bytes(), rows.into_bytes()].concat());
        }
        let ended = batch(&scratch).end().exits(0);
        assert_eq!(scratch.issue(name)["status"], "closed", "{name}");
        let note = "fails over the build state that it left";
        assert!(ended.stdout.contains(note), "{}", ended.stdout);
        // The second batch knows it from the first.
        assert_eq!(bases(), 2, "{name}");
    }
}

/// Leaves a tagged cache with what the base says, a folder without a tag, and a
/// tagged one that git does not ignore. It says what it found in the cache.
const CACHE: &str = r#"echo "${PREMATH_ISSUE_ID:-base} $(cat cache/state 2> /dev/null)" >> "$HOME/caches"
for folder in cache ignored out; do mkdir -p "$folder"; done
for folder in cache out; do
  echo 'Signature: 8a477f597d28d172789f06886806bc55' > "$folder/CACHEDIR.TAG"
  cat src/base.txt > "$folder/state"
done
echo plain > ignored/state
"#;

/// Says what it finds in the three folders, and changes what it can.
const USE: &str = r#"cat cache/state ignored/state out/state > "src/$PREMATH_ISSUE_ID.txt" 2> /dev/null
echo poison > cache/state; echo mine > cache/own-of-$PREMATH_ISSUE_ID
ls cache > "src/$PREMATH_ISSUE_ID-names.txt"
[ $PREMATH_ISSUE_ID != b ] || rm -rf cache/*
[ $PREMATH_ISSUE_ID != c ] || { mkdir -p out; echo work > out/work; }"#;

/// A repository whose build leaves caches; `None` where namespaces do not work.
fn with_caches(lanes: usize) -> Option<Scratch> {
    let scratch = prepared(lanes, &["a", "b", "c", "d"]);
    if !works(&scratch) {
        return None;
    }
    let ignored = "/ignored/\n/cache/\n";
    commit(&scratch, &[("build.sh", CACHE), (".gitignore", ignored)]);
    Some(scratch)
}

fn use_caches(scratch: &Scratch) {
    let batch = scratch.landing_batch(USE, VERIFY).args(["--lanes", "1"]);
    batch.args(["--sandbox", "namespaces"]).end().exits(0);
}

#[test]
fn work_begins_with_the_caches_of_the_base_and_leaves_none() {
    let Some(scratch) = with_caches(0) else {
        return;
    };
    use_caches(&scratch);
    let state = beside(&scratch).join("warm/cache/state");
    assert_eq!(fs::read_to_string(state).unwrap(), "base\n");
    for name in ["a", "b", "c", "d"] {
        let of = |file: &str| scratch.file_on(TARGET, &format!("src/{name}{file}.txt"));
        assert_eq!(of("").as_deref(), Some("base\n"), "{name}");
        let names = format!("CACHEDIR.TAG\nown-of-{name}\nstate\n");
        assert_eq!(of("-names"), Some(names));
    }
    // A folder that git does not ignore is work, and never mounted over.
    let work = scratch.file_on(TARGET, "out/work");
    assert_eq!(work.as_deref(), Some("work\n"));
    let found = fs::read_to_string(scratch.home().join("caches")).unwrap();
    let poisoned = found.lines().filter(|line| line.contains("poison"));
    assert_eq!(poisoned.count(), 0, "{found}");
}

/// A build may have put what they hold into the caches.
#[test]
fn work_begins_without_caches_where_verifications_have_files_of_their_own() {
    let Some(scratch) = with_caches(0) else {
        return;
    };
    fs::write(scratch.root.join("ignored.env"), "SECRET\n").unwrap();
    let exclude = scratch.root.join(".git/info/exclude");
    fs::write(exclude, "/ignored.env\n/harness.toml\n").unwrap();
    let settings = "[verify]\nprovide = [\"ignored.env\"]\n";
    fs::write(scratch.root.join("harness.toml"), settings).unwrap();
    use_caches(&scratch);
    assert!(beside(&scratch).join("warm/cache/state").exists());
    let found = scratch.file_on(TARGET, "src/a.txt");
    assert_eq!(found.as_deref(), Some(""));
}

#[test]
fn a_worktree_of_a_persons_own_keeps_its_caches() {
    let Some(scratch) = with_caches(1) else {
        return;
    };
    let work = r#"mkdir -p cache; cat cache/state > "src/$PREMATH_ISSUE_ID.txt"
        echo "of $PREMATH_ISSUE_ID" > cache/state"#;
    let run = scratch.landing_batch(work, VERIFY);
    run.args(["--sandbox", "namespaces"]).end().exits(0);
    assert_eq!(scratch.file_on(TARGET, "src/a.txt").as_deref(), Some(""));
    let own = fs::read_to_string(scratch.lanes[0].join("cache/state"));
    assert_eq!(own.unwrap(), "of d\n");
}
