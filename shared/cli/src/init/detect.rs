//! What a repository is verified by, as far as its files say it.

use serde_json::Value;

/// What npm writes where a package has no test.
const NO_TEST: &str = "no test specified";

/// Returns the command that verifies a repository; `read` returns a file of its
/// root. The first kind of project that is there counts.
pub(super) fn verify_command(read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let has = |name: &str| read(name).is_some();
    if has("Cargo.toml") {
        return Some("cargo test".to_owned());
    }
    if let Some(command) = read("package.json").and_then(|text| script(&text, &has)) {
        return Some(command);
    }
    if has("pyproject.toml") {
        return Some("pytest".to_owned());
    }
    if has("go.mod") {
        return Some("go test ./...".to_owned());
    }
    let makefile = ["Makefile", "makefile", "GNUmakefile"];
    let text = makefile.iter().find_map(|name| read(name))?;
    has_test_target(&text).then(|| "make test".to_owned())
}

/// Returns how a package's test script is run, where it has one.
fn script(text: &str, has: &dyn Fn(&str) -> bool) -> Option<String> {
    let package: Value = serde_json::from_str(text).ok()?;
    let test = package["scripts"]["test"].as_str()?;
    if test.trim().is_empty() || test.contains(NO_TEST) {
        return None;
    }
    let managers = [
        ("pnpm-lock.yaml", "pnpm test"),
        ("yarn.lock", "yarn test"),
        ("bun.lock", "bun run test"),
        ("bun.lockb", "bun run test"),
    ];
    let found = managers.iter().find(|(lock, _)| has(lock));
    Some(found.map_or("npm test", |(_, command)| command).to_owned())
}

/// Returns whether a makefile has a target `test`.
fn has_test_target(text: &str) -> bool {
    text.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else {
            return false;
        };
        let is_assignment = rest.starts_with('=') || targets.contains('=');
        let is_rule = !line.starts_with(['\t', ' ', '#', '.']) && !is_assignment;
        is_rule && targets.split_whitespace().any(|target| target == "test")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files with their content, and the command that fits them.
    type Case = (
        &'static [(&'static str, &'static str)],
        Option<&'static str>,
    );

    fn found(files: &[(&str, &str)]) -> Option<String> {
        verify_command(&|name| {
            let mut files = files.iter();
            files
                .find(|(file, _)| *file == name)
                .map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn each_kind_of_project_has_its_command() {
        const PACKAGE: &str = r#"{"scripts": {"test": "vitest"}}"#;
        const BARE: &str =
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
        let cases: &[Case] = &[
            (&[], None),
            (&[("Cargo.toml", "")], Some("cargo test")),
            (&[("package.json", PACKAGE)], Some("npm test")),
            (
                &[("package.json", PACKAGE), ("package-lock.json", "")],
                Some("npm test"),
            ),
            (
                &[("package.json", PACKAGE), ("pnpm-lock.yaml", "")],
                Some("pnpm test"),
            ),
            (
                &[("package.json", PACKAGE), ("yarn.lock", "")],
                Some("yarn test"),
            ),
            (
                &[("package.json", PACKAGE), ("bun.lock", "")],
                Some("bun run test"),
            ),
            (&[("package.json", BARE)], None),
            (&[("package.json", "no json")], None),
            (
                &[("package.json", BARE), ("pyproject.toml", "")],
                Some("pytest"),
            ),
            (&[("go.mod", "")], Some("go test ./...")),
            (
                &[("Makefile", "all: test\ntest: build\n\tgo\n")],
                Some("make test"),
            ),
            (&[("Makefile", "lint test:\n")], Some("make test")),
            (
                &[("Makefile", "all: test\ntest := x\n# test:\n.PHONY: test\n")],
                None,
            ),
            (
                &[("Cargo.toml", ""), ("package.json", PACKAGE)],
                Some("cargo test"),
            ),
        ];
        for (files, expected) in cases {
            assert_eq!(found(files).as_deref(), *expected, "{files:?}");
        }
    }
}
