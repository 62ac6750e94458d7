//! The verification surfaces pass on this checkout, and each fails where a
//! fault is planted (HARNESS-RUNTIME 9).

#![allow(
    clippy::unwrap_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

use premath_kernel::failure::FailureClass;
use premath_tests::surface::help::{Entry, Surface};
use premath_tests::surface::{Fault, docs, features, generate, hygiene, idioms, layers, pipeline};
use premath_tests::workspace;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn told(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(ToString::to_string).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A checkout of what the checks look at, as it is.
fn checkout(names: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let text = fs::read_to_string(workspace().join(name)).unwrap();
        write(folder.path(), name, &text);
    }
    folder
}

#[test]
fn this_checkout_is_clean() {
    assert_eq!(told(&hygiene::faults(&workspace())), none());
    assert_eq!(told(&pipeline::faults(&workspace())), none());
}

#[test]
fn no_dependency_changes_how_json_is_read() {
    let output = features::tree();
    assert!(output.status.success(), "{output:?}");
    let tree = String::from_utf8(output.stdout).unwrap();
    assert!(tree.contains("serde_json feature \"raw_value\""), "{tree}");
    assert_eq!(told(&features::faults(&tree)), none());
    for feature in ["preserve_order", "arbitrary_precision", "float_roundtrip"] {
        let planted = format!("{tree}serde_json feature \"{feature}\"\n");
        let found = told(&features::faults(&planted));
        assert_eq!(found.len(), 1, "{feature}");
        assert!(found[0].contains(feature), "{found:?}");
    }
}

#[test]
fn the_modules_of_this_checkout_form_layers() {
    assert_eq!(told(&layers::faults(&workspace())), none());
}

#[test]
fn the_pages_of_this_checkout_are_what_the_binaries_do() {
    let surface = Surface::of_the_binaries();
    assert_eq!(told(&docs::faults(&workspace(), &surface)), none());
}

#[test]
fn the_generated_files_of_this_checkout_are_current() {
    let files = generate::files(&workspace());
    assert_eq!(told(&generate::faults(&workspace(), &files)), none());
}

#[test]
fn a_stale_generated_file_is_found_and_written() {
    let folder = checkout(&["shared/kernel/src/policy/exit.rs"]);
    let root = folder.path();
    write(root, "docs/reference/exit-codes.md", "# Old\n");
    let files = generate::Files::from([
        (
            "docs/reference/exit-codes.md".to_owned(),
            "# New\n".to_owned(),
        ),
        ("docs/reference/other.md".to_owned(), String::new()),
    ]);
    let stale = |root: &Path| {
        let faults = told(&generate::faults(root, &files));
        faults
            .into_iter()
            .filter(|fault| fault.contains("stale"))
            .count()
    };
    assert_eq!(stale(root), 1);
    let changed = generate::write(root, &files).unwrap();
    assert_eq!(changed, ["docs/reference/exit-codes.md"]);
    assert_eq!(stale(root), 0);
}

/// Lines that do not belong into a source file, with the fault of each.
fn unclean_sources() -> Vec<(&'static str, String, &'static str)> {
    let home = ["", "home", "somebody", "x"].join("/");
    let (begin, end) = ("<".repeat(7), ">".repeat(7));
    vec![
        (
            "src/a.rs",
            format!("let p = \"{home}\";\n"),
            "src/a.rs:1: a machine's path",
        ),
        (
            "src/a.rs",
            format!("a\n{begin} HEAD\n"),
            "src/a.rs:2: a conflict marker",
        ),
        (
            "src/a.rs",
            format!("a\n{end} theirs\n"),
            "src/a.rs:2: a conflict marker",
        ),
        (
            "src/a.rs",
            "a \n".to_owned(),
            "src/a.rs:1: white space at the end",
        ),
        (
            "src/a.rs",
            "a\r\n".to_owned(),
            "src/a.rs:1: white space at the end",
        ),
        ("src/a.rs", "a".to_owned(), "src/a.rs: no line end"),
        (
            "src/a.rs",
            "a\n\n".to_owned(),
            "src/a.rs: empty lines at the end",
        ),
    ]
}

/// Other files that do not fit, with the fault of each.
fn unfit_files() -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "big.txt",
            "x\n".repeat(300 * 1024),
            "big.txt: 614400 bytes are more than",
        ),
        (
            "mise.toml",
            "[tasks.a]\nrun = \"cargo run --bin nothing\"\n".to_owned(),
            "mise.toml:1: task a: the workspace has no `nothing`",
        ),
        (
            "mise.toml",
            "[tasks.a]\nrun = \"bash tools/none\"\n".to_owned(),
            "mise.toml:1: task a: there is no tools/none",
        ),
        (
            "mise.toml",
            "[tasks.a]\nrun = \"frobnicate\"\n".to_owned(),
            "mise.toml:1: task a: nothing is known about the command `frobnicate`",
        ),
        (
            "mise.toml",
            "[tasks.a]\ndescription = \"d\"\n".to_owned(),
            "mise.toml:1: task a runs nothing",
        ),
        (
            "a/Cargo.toml",
            "[package]\nname = \"a\"\n\n[dependencies]\nno-user.workspace = true\n".to_owned(),
            "a/Cargo.toml:5: nothing uses the dependency `no-user`",
        ),
        (
            "README.md",
            "```sh\ncargo frobnicate\n```\n".to_owned(),
            ".ci/run: it does not run the README's `cargo frobnicate`",
        ),
    ]
}

#[test]
fn what_does_not_belong_into_a_commit_is_found() {
    for (name, text, fault) in unclean_sources().into_iter().chain(unfit_files()) {
        let folder = checkout(&["README.md", ".ci/run"]);
        write(folder.path(), name, &text);
        let faults = told(&hygiene::faults(folder.path()));
        assert!(
            faults.len() == 1 && faults[0].starts_with(fault),
            "{fault}: {faults:?}"
        );
    }
    let folder = checkout(&["README.md", ".ci/run"]);
    assert_eq!(told(&hygiene::faults(folder.path())), none());
}

#[test]
fn an_import_upward_and_a_cycle_are_found() {
    let kernel = "shared/kernel/src";
    for (files, expected) in [
        (
            vec![
                ("json/time.rs", "use crate::policy::retry;\n"),
                ("policy/retry.rs", ""),
            ],
            vec![
                "shared/kernel/src/json/time.rs:1: `json` imports `policy`, which is a higher layer",
            ],
        ),
        (
            vec![("other.rs", "")],
            vec!["shared/kernel/src: the module `other` belongs to no declared layer"],
        ),
        (
            vec![
                (
                    "issue/mod.rs",
                    "mod row;\npub mod lease;\npub use row::Issue;\n",
                ),
                ("issue/row.rs", "\nuse super::lease::Lease;\n"),
                ("issue/lease.rs", "use crate::issue::Issue;\n"),
            ],
            vec![
                "shared/kernel/src/issue: modules import each other: \
                 lease -> row (shared/kernel/src/issue/lease.rs:1), \
                 row -> lease (shared/kernel/src/issue/row.rs:2)",
            ],
        ),
        (
            vec![
                ("issue/mod.rs", "use crate::json::time;\n"),
                (
                    "json/time.rs",
                    "#[cfg(test)]\nmod tests { use crate::issue::Issue; }\n",
                ),
            ],
            vec![],
        ),
    ] {
        let folder = checkout(&[]);
        for (name, text) in files {
            write(folder.path(), &format!("{kernel}/{name}"), text);
        }
        assert_eq!(told(&layers::faults(folder.path())), expected);
    }
    let folder = checkout(&[]);
    write(folder.path(), "worker/src/a/x.rs", "use crate::b::y;\n");
    write(folder.path(), "worker/src/b.rs", "use crate::c::z;\n");
    write(
        folder.path(),
        "worker/src/c.rs",
        "fn f() { crate::a::x::g(); }\n",
    );
    let faults = told(&layers::faults(folder.path()));
    assert!(
        faults.len() == 1 && faults[0].starts_with("worker/src: modules import each other: a -> b"),
        "{faults:?}"
    );
}

#[test]
fn a_call_of_linux_outside_of_its_interface_is_found() {
    let folder = checkout(&[]);
    let source = "use rustix::fs::statfs;\n// openat2\nfn f() { read(\"/proc/self\"); }\n";
    let test = "#[cfg(test)]\nmod tests { use rustix::fs::openat2; }\n";
    for place in ["worker/src/a.rs", "shared/platform/src/a.rs"] {
        write(folder.path(), place, &format!("{source}{test}"));
    }
    let fault = |line: u32, name: &str| {
        format!("worker/src/a.rs:{line}: `{name}` is of Linux alone: add it to shared/platform")
    };
    assert_eq!(
        told(&layers::faults(folder.path())),
        [fault(1, "statfs"), fault(3, "\"/proc/")]
    );
}

#[test]
fn a_script_that_is_not_what_it_says_is_found() {
    for (old, new, fault) in [
        ("step clippy\n", "", "it says the steps"),
        (
            "set -euo pipefail\n",
            "",
            "it continues after a step that failed",
        ),
        (
            "step example\n$example\n",
            "step example\n",
            "a step without a command",
        ),
        (
            "| tee target/ci-tests.log\n",
            "| tee target/ci-tests.log || true\n",
            "a failure is skipped",
        ),
        ("# Steps: ", "# ", "it does not say its steps"),
        ("then\n", "\n", "bash cannot read it"),
        ("#!/usr/bin/env bash\n", "", "it does not begin with"),
    ] {
        let folder = checkout(&[".ci/run"]);
        let text = fs::read_to_string(folder.path().join(".ci/run")).unwrap();
        assert!(text.contains(old), "{old}");
        write(folder.path(), ".ci/run", &text.replacen(old, new, 1));
        let faults = told(&pipeline::faults(folder.path()));
        assert!(
            faults.iter().any(|told| told.contains(fault)),
            "{fault}: {faults:?}"
        );
    }
}

/// A small surface: one command with a subcommand and a flag.
fn small() -> Surface {
    let mut surface = Surface::default();
    let entry = |subcommands: &[&str], flags: &[&str]| Entry {
        about: "Does".to_owned(),
        subcommands: subcommands.iter().map(|word| (*word).to_owned()).collect(),
        flags: flags.iter().map(|word| (*word).to_owned()).collect(),
        options: flags
            .iter()
            .map(|word| ((*word).to_owned(), "Text".to_owned()))
            .collect(),
    };
    surface
        .commands
        .insert("premath".into(), entry(&["look"], &["--json"]));
    surface
        .commands
        .insert("premath look".into(), entry(&[], &["--json", "--deep"]));
    surface
}

/// A checkout whose pages are in order by the small surface.
fn pages() -> TempDir {
    let folder = checkout(&[]);
    let root = folder.path();
    let classes: String = FailureClass::ALL
        .iter()
        .map(|class| format!("- `{class}`\n"))
        .collect();
    write(root, "docs/reference/classes.md", &classes);
    write(root, docs::COMMANDS, &small().page());
    write(
        root,
        "shared/cli/src/init/harness.toml",
        "[batch]\n#work_cmd = 'x'\n",
    );
    write(
        root,
        "mise.toml",
        "[tasks.a]\nrun = \"cargo test\"\n\n[tasks.generate]\nrun = \"cargo test\"\n",
    );
    write(
        root,
        "README.md",
        "`[batch]`, `premath look --deep`, `mise run a`, `--deep`\n",
    );
    folder
}

#[test]
fn a_page_that_names_what_is_not_there_is_found() {
    assert_eq!(told(&docs::faults(pages().path(), &small())), none());
    for (text, fault) in [
        (
            "`premath leap`",
            "README.md:2: `premath` has no command `leap`",
        ),
        (
            "`premath look|leap`",
            "README.md:2: `premath` has no command `leap`",
        ),
        (
            "`premath look --broad`",
            "README.md:2: `premath look` takes no `--broad`",
        ),
        (
            "```\n$ premath look --broad\n```",
            "README.md:3: `premath look` takes no `--broad`",
        ),
        (
            "```console\n$ premath look --broad\n```",
            "README.md:3: `premath look` takes no `--broad`",
        ),
        ("`--broad N`", "README.md:2: no command takes `--broad`"),
        ("`mise run b`", "README.md:2: there is no task `b`"),
        ("`docs/none.md`", "README.md:2: there is no `docs/none.md`"),
        (
            "`lease_was_missing`",
            "README.md:2: unknown failure class `lease_was_missing`",
        ),
        (
            "```toml\nwork = \"x\"\n```",
            "README.md:3: harness.toml has no `work`",
        ),
        (
            "```toml\n[batches]\n```",
            "README.md:3: harness.toml has no `[batches]`",
        ),
    ] {
        let folder = pages();
        let readme = fs::read_to_string(folder.path().join("README.md")).unwrap();
        write(folder.path(), "README.md", &format!("{readme}{text}\n"));
        let faults = told(&docs::faults(folder.path(), &small()));
        assert!(
            faults.len() == 1 && faults[0].starts_with(fault),
            "{fault}: {faults:?}"
        );
    }
}

#[test]
fn what_no_page_names_is_found() {
    let folder = pages();
    let mut surface = small();
    let look = surface.commands.get_mut("premath look").unwrap();
    look.flags.insert("--broad".to_owned());
    look.options.push(("--broad".to_owned(), "Text".to_owned()));
    let faults = told(&docs::faults(folder.path(), &surface));
    assert_eq!(faults.len(), 1, "{faults:?}");
    assert!(
        faults[0].starts_with("docs/reference/commands.md: "),
        "{faults:?}"
    );

    write(
        folder.path(),
        "shared/cli/src/init/harness.toml",
        "[batch]\n[more]\n",
    );
    let classes = fs::read_to_string(folder.path().join("docs/reference/classes.md")).unwrap();
    let classes = classes.replace("`check_failed`", "");
    write(folder.path(), "docs/reference/classes.md", &classes);
    let faults = told(&docs::faults(folder.path(), &small()));
    assert_eq!(
        faults,
        [
            "docs/reference/classes.md: no page names the failure class check_failed",
            "shared/cli/src/init/harness.toml: no page names the table [more]",
        ]
    );
}

#[test]
fn an_idiom_is_found_in_comments_messages_help_and_pages() {
    for (name, text, fault) in [
        (
            "worker/src/a.rs",
            "/// Says what\n/// becomes of an issue.\nfn a() {}\n",
            "worker/src/a.rs:2: \"becomes of\": write instead: the outcome of",
        ),
        (
            "worker/src/a.rs",
            "fn a() {\n    // Nobody else.\n}\n",
            "worker/src/a.rs:2: \"nobody\"",
        ),
        (
            "worker/src/a.rs",
            "const A: &str = \"the step \\\n    goes on\";\n",
            "worker/src/a.rs:2: \"goes on\": write instead: continues",
        ),
        (
            "worker/src/a.rs",
            "const A: &str = r#\"a \"lease\" is no lock\"#;\n",
            "worker/src/a.rs:1: \"is no\": write instead: is not a",
        ),
        (
            "docs/reference/a.md",
            "# A\n\nA lane\nis told it.\n",
            "docs/reference/a.md:4: \"is told\"",
        ),
        (
            "mise.toml",
            "[tasks.a]\ndescription = \"Find circles\"\n",
            "mise.toml:2: \"circles\": write instead: cycle",
        ),
        (
            "shared/cli/src/init/harness.toml",
            "# What stands here.\n",
            "shared/cli/src/init/harness.toml:1: \"stands\"",
        ),
    ] {
        let folder = checkout(&[]);
        write(folder.path(), name, text);
        let faults = told(&idioms::faults(folder.path()));
        assert!(
            faults.len() == 1 && faults[0].starts_with(fault),
            "{fault}: {faults:?}"
        );
    }
}

#[test]
fn plain_words_code_and_tests_data_are_no_idioms() {
    for (name, text) in [
        (
            "worker/src/a.rs",
            "/// There is no lane. It is no longer held.\n",
        ),
        (
            "worker/src/a.rs",
            "/// The user `nobody` has none.\n///\n/// ```text\n/// it goes on\n/// ```\n",
        ),
        (
            "worker/src/a.rs",
            "/// The step goes.\n\n/// On Linux.\nfn goes_on() {}\n",
        ),
        (
            "worker/src/a.rs",
            "const A: &str = \"nobody\";\nconst B: char = '\"';\n",
        ),
        (
            "worker/tests/a.rs",
            "const A: &str = \"the step goes on\";\n",
        ),
        ("docs/reference/a.md", "```\nit goes on\n```\n"),
        ("tests/data/a.rs", "// nobody\n"),
        ("worktrees.example/a.rs", "// nobody\n"),
    ] {
        let folder = checkout(&[]);
        write(folder.path(), name, text);
        assert_eq!(told(&idioms::faults(folder.path())), none(), "{text}");
    }
}

#[test]
fn this_checkout_has_no_idiom() {
    assert_eq!(told(&idioms::faults(&workspace())), none());
}
