//! Ids and titles from outside (`contracts.md` 11).

use premath_tests::{Scratch, issue};
use std::fs;
use std::path::Path;

const HOSTILE: [&str; 12] = [
    "a/../b",
    "../../escape",
    "..",
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned #",
    "-rf",
    "x\ny: forged",
    "\u{1b}[31mred\u{1b}[0m",
    "refs/heads/main.lock",
    "per%2fcent",
    "späce \u{202e}over",
];

/// Everything below a folder, links not followed.
fn everything(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        found.push(path.to_string_lossy().into_owned());
        if path.is_dir() && !path.is_symlink() {
            everything(&path, found);
        }
    }
}

fn prepared() -> Scratch {
    let rows: Vec<_> = HOSTILE
        .iter()
        .map(|id| {
            let mut row = issue(id);
            row["title"] = format!("title {id}").into();
            row
        })
        .collect();
    Scratch::with_issues(2, &rows)
}

#[test]
fn hostile_ids_and_titles_are_harmless_when_steps_close() {
    let scratch = prepared();
    let work = r#"printf '%s|' "$PREMATH_ISSUE_ID" "$PREMATH_ISSUE_TITLE" >> src/log.txt"#;
    scratch.batch(work, "true").end().exits(0);
    for id in HOSTILE {
        assert_eq!(scratch.issue(id)["status"], "closed", "{id:?}");
        assert_eq!(scratch.steps_of(id).len(), 1, "{id:?}");
    }
    harmless(&scratch);
}

#[test]
fn hostile_ids_and_titles_are_harmless_when_steps_fail() {
    let scratch = prepared();
    spare_none(&scratch);
    scratch
        .batch("echo left > src/left.txt; exit 1", "true")
        .end()
        .exits(1);
    let branches = scratch.branches();
    let salvage = branches
        .iter()
        .filter(|name| name.starts_with("harness/salvage/"));
    assert_eq!(salvage.count(), HOSTILE.len(), "{branches:#?}");
    assert_eq!(branches.len(), HOSTILE.len() + 3, "{branches:#?}");
    harmless(&scratch);
}

/// They all fail alike, and no id shall be spared for it.
fn spare_none(scratch: &Scratch) {
    let config = "[breaker]\nfailures = 0\n";
    fs::write(scratch.root.join("harness.toml"), config).unwrap();
}

/// Nothing was run, nothing is outside, git is whole.
#[track_caller]
fn harmless(scratch: &Scratch) {
    let mut files = Vec::new();
    everything(&scratch.folder(), &mut files);
    let ran: Vec<_> = files
        .iter()
        .filter(|path| path.ends_with("/pwned"))
        .collect();
    assert!(ran.is_empty(), "{ran:?}");
    for path in &files {
        assert!(!path.contains(['\u{1b}', '\n']), "{path:?}");
    }
    let mut top: Vec<String> = fs::read_dir(scratch.folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    top.sort();
    assert_eq!(
        top,
        ["home", "lane-1", "lane-2", "repo", "repo-verify", "runs"]
    );
    scratch
        .git_command(["fsck", "--strict", "--no-dangling"])
        .end()
        .exits(0);
    scratch.no_process_left();
}

#[test]
fn escape_sequences_never_reach_a_terminal_raw() {
    let scratch = prepared();
    spare_none(&scratch);
    let people: Vec<_> = [
        scratch.premath(["issue", "list"]),
        scratch.premath(["issue", "ready"]),
        scratch.premath(["issue", "show", "\u{1b}[31mred\u{1b}[0m"]),
        scratch.premath(["issue", "show", "\u{1b}[31mnobody"]),
        scratch
            .run(&premath_tests::binaries().coordinator)
            .args(["--override-reason", "test", "--work-cmd", "true"])
            .args(premath_tests::NO_STARTUP)
            .args(["--verify-cmd", "printf '\\033[31mno\\n' >&2; exit 1"])
            .arg("--worktree")
            .arg(&scratch.lanes[0]),
        scratch.premath(["issue", "blocked"]),
        scratch.premath(["harness-trajectory", "query", "--mode", "failed"]),
    ]
    .into_iter()
    .map(premath_tests::Run::end)
    .collect();
    for ended in people {
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains('\u{1b}'), "{text:?}");
            assert!(!text.contains('\u{202e}'), "{text:?}");
            assert!(
                !text.lines().any(|line| line.starts_with("y: forged")),
                "{text}"
            );
        }
    }
}

/// Attack 13: the harness hung, or read without an end.
#[test]
fn an_outbox_that_is_not_a_regular_file_costs_its_own_issue_and_nothing_else() {
    for (make, printed) in [
        (r#"mkfifo "$PREMATH_OUTBOX""#, "is a pipe"),
        (r#"ln -s /dev/zero "$PREMATH_OUTBOX""#, "is a link"),
        (r#"truncate -s 40G "$PREMATH_OUTBOX""#, "is larger than"),
        (r#"mkdir "$PREMATH_OUTBOX""#, "is a folder"),
    ] {
        let scratch = Scratch::with_issues(1, &[issue("a"), issue("b")]);
        let config = "[backoff]\nfixed_short = \"1ms\"\nexponential_short = \"1ms\"\n";
        fs::write(scratch.root.join("harness.toml"), config).unwrap();
        let work = format!(r#"[ "$PREMATH_ISSUE_ID" = b ] || {make}"#);
        let ended = scratch.batch(&work, "true").end().exits(1);
        assert_eq!(scratch.issue("b")["status"], "closed", "{make}");
        assert_ne!(scratch.issue("a")["status"], "closed", "{make}");
        let step = &scratch.steps_of("a")[0];
        assert_eq!(step["failureClasses"][0], "outbox_invalid", "{make}");
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains(printed), "{make}: {said}");
        scratch.no_process_left();
    }
}
