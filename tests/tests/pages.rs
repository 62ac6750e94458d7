//! The documentation holds: every shell block of its pages runs and prints what
//! is shown, and every link leads somewhere.

#![expect(
    clippy::unwrap_used,
    reason = "tests: what is not there fails the test that asked for it"
)]

use premath_tests::pages::{Kind, Outcome, PageRun, blocks, broken_links, normal, pages};
use premath_tests::{binaries, command, workspace};
use std::fs;
use std::io::Write;

/// Replaces output that is not current, where it is `write`.
const MODE: &str = "PREMATH_PAGES";

/// Runs a page of `docs/` and checks it.
#[track_caller]
fn holds(page: &str) {
    let path = workspace().join("docs").join(page);
    let outcome: Outcome = PageRun::new(&path).outcome();
    let mut report = format!("{page}: {} block(s) run", outcome.run);
    for (line, reason) in &outcome.not_run {
        report.push_str(&format!("; line {line} not run: {reason}"));
    }
    // Not captured, so that what is not run is seen.
    let _ = writeln!(std::io::stderr(), "{report}");
    if let Some(current) = outcome.current
        && std::env::var(MODE).is_ok_and(|mode| mode == "write")
    {
        fs::write(&path, current).unwrap();
    }
    assert!(
        outcome.faults.is_empty(),
        "{page}\n{}",
        outcome.faults.join("\n\n")
    );
}

macro_rules! tested {
    ($($name:ident: $page:literal,)*) => {
        const TESTED: &[&str] = &[$($page),*];
        $(
            #[test]
            fn $name() {
                holds($page);
            }
        )*
    };
}

tested! {
    tutorial: "tutorial.md",
    issues: "guides/issues.md",
    agents: "guides/agents.md",
    policies: "guides/policies.md",
    landing: "guides/landing.md",
    retry: "guides/retry.md",
    filters: "guides/filters.md",
    nightly: "guides/nightly.md",
    control: "guides/control.md",
    watching: "guides/watching.md",
    page: "guides/page.md",
    report: "guides/report.md",
    example: "guides/example.md",
    network: "guides/network.md",
    trust: "guides/trust.md",
    mcp: "guides/mcp.md",
    other_repositories: "guides/other-repositories.md",
    cleanup: "guides/cleanup.md",
    upgrading: "guides/upgrading.md",
    uninstalling: "guides/uninstalling.md",
    troubleshooting: "guides/troubleshooting.md",
    confinement: "explanation/confinement.md",
}

#[test]
fn every_page_with_commands_is_tested() {
    let mut missing = Vec::new();
    for page in pages(&workspace()) {
        let text = fs::read_to_string(workspace().join(&page)).unwrap();
        let has = blocks(&text).iter().any(|block| block.has_commands());
        let name = page.trim_start_matches("docs/");
        if has && !TESTED.contains(&name) {
            missing.push(page);
        }
    }
    assert!(missing.is_empty(), "add them to `tested!`: {missing:?}");
}

/// Returns whether a path has the form of a pattern: `<word>` represents a part
/// of a name, and a folder for all that is in it.
fn fits(pattern: &str, path: &str) -> bool {
    match pattern.split_once('<') {
        None if pattern.ends_with('/') => path.starts_with(pattern),
        None => path == pattern,
        Some((head, rest)) => {
            let Some(left) = path.strip_prefix(head) else {
                return false;
            };
            let (_, tail) = rest.split_once('>').unwrap_or((rest, ""));
            let name = left.split('/').next().unwrap_or_default().len();
            (1..=name).any(|at| left.is_char_boundary(at) && fits(tail, &left[at..]))
        }
    }
}

#[test]
fn a_pattern_of_the_files_page_fits_its_files() {
    assert!(fits("a/<step>.<phase>.json", "a/w.1.turn.json"));
    assert!(fits("a/<lane>/", "a/x/y/z"));
    assert!(!fits("a/<step>.json", "a/b/c.json"));
    assert!(!fits("a.json", "a.json.x"));
}

#[test]
fn every_file_that_a_batch_leaves_is_on_the_files_page() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command(&binaries().coordinator);
    let run = run.arg("example").arg(folder.path()).output().unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    let page = fs::read_to_string(workspace().join("docs/reference/files.md")).unwrap();
    let patterns: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let project = folder.path().join("wordkit");
    let mut unknown = Vec::new();
    let mut seen = 0;
    for place in [".premath", "artifacts"] {
        let mut folders = vec![project.join(place)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.strip_prefix(&project).unwrap().to_str().unwrap();
                if path.is_dir() {
                    folders.push(path.clone());
                } else if !patterns.iter().any(|pattern| fits(pattern, name)) {
                    unknown.push(name.to_owned());
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 50, "the example left {seen} files");
    assert!(
        unknown.is_empty(),
        "not in docs/reference/files.md: {unknown:?}"
    );
}

#[test]
fn the_readme_shows_output_that_a_page_shows() {
    let root = workspace();
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    // The worker that takes an issue differs from run to run.
    let form = |text: &str| {
        normal(
            &text
                .replace("worker.…", "worker.1")
                .replace("worker.2", "worker.1"),
        )
    };
    let shown: Vec<String> = ["docs/tutorial.md", "docs/guides/example.md"]
        .iter()
        .flat_map(|page| form(&read(page)))
        .collect();
    for block in blocks(&read("README.md")) {
        if block.kind == Kind::Other || block.kind == Kind::Output {
            for line in form(&block.lines.join("\n")) {
                assert!(
                    line == "…" || shown.contains(&line),
                    "no page shows `{line}`"
                );
            }
        }
    }
}

#[test]
fn every_link_leads_somewhere() {
    let mut names = pages(&workspace());
    names.extend(
        [
            "README.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "ARCHITECTURE.md",
        ]
        .map(str::to_owned),
    );
    let faults = broken_links(&workspace(), &names);
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_page_is_in_the_summary() {
    let docs = workspace().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    for page in pages(&workspace()) {
        let name = page.trim_start_matches("docs/");
        let listed = name == "SUMMARY.md" || summary.contains(&format!("({name})"));
        assert!(listed, "{page} is not in docs/SUMMARY.md");
    }
}
