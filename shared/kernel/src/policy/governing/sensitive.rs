//! Changes that a person should look at first: they decide what runs on other
//! machines, or what later verifications judge by.

use super::CommandFiles;
use super::fold::components;
use crate::json::plain::cut;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a sensitive file decides.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// How work is judged.
    Verification,
    /// What a forge runs.
    Ci,
    /// What runs at an occasion, as when a person commits or opens a folder.
    Hooks,
    /// How the project is built.
    Build,
    /// Which foreign code it takes.
    Dependencies,
}

impl Category {
    /// Returns the text used in files and reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Verification => "verification",
            Self::Ci => "ci",
            Self::Hooks => "hooks",
            Self::Build => "build",
            Self::Dependencies => "dependencies",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A sensitive path that a step changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SensitiveChange {
    /// The path, from the root of the repository; the head of one that is long.
    pub path: String,
    /// The category of the path.
    pub category: Category,
}

/// How many sensitive changes of a step are kept by name.
pub(crate) const SENSITIVE_MAX: usize = 100;

/// The sensitive paths that a step changed: sorted, and bounded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SensitiveChanges {
    /// The first of them, by path.
    pub changes: Vec<SensitiveChange>,
    /// How many there are in all.
    pub count: u64,
}

impl SensitiveChanges {
    /// Picks the sensitive ones of the paths that a step changed. What the
    /// batch's commands touch counts as verification.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>, commands: &CommandFiles) -> Self {
        let mut changes: Vec<SensitiveChange> = paths
            .into_iter()
            .filter_map(|path| {
                let category = if is_touched(path, commands) {
                    Category::Verification
                } else {
                    category_of(path)?
                };
                let path = cut(path).into_owned();
                Some(SensitiveChange { path, category })
            })
            .collect();
        changes.sort();
        changes.dedup();
        let count = changes.len() as u64;
        changes.truncate(SENSITIVE_MAX);
        Self { changes, count }
    }

    /// Returns whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
}

fn is_touched(path: &str, commands: &CommandFiles) -> bool {
    let path = components(path);
    let both = commands.touching.iter().chain(&commands.deciding);
    both.into_iter().any(|file| components(file) == path)
}

/// The table. A pattern without a slash is a file's name in any folder, one
/// that ends in a slash is a folder in any folder, and one that begins with a
/// slash counts from the root. `*` matches any text within a name.
const SENSITIVE: &[(Category, &[&str])] = &[
    (
        Category::Verification,
        &[
            "conftest.py",
            "pytest.ini",
            "tox.ini",
            "noxfile.py",
            ".coveragerc",
            "jest.config.*",
            "vitest.config.*",
            "vitest.workspace.*",
            "playwright.config.*",
            "cypress.config.*",
            "karma.conf.*",
            ".mocharc*",
            "ava.config.*",
            ".nycrc*",
            "phpunit.xml*",
            "clippy.toml",
            ".clippy.toml",
            ".eslintrc*",
            "eslint.config.*",
            "biome.json*",
            ".golangci.*",
            "nextest.toml",
            "mypy.ini",
            "ruff.toml",
            ".ruff.toml",
            ".rubocop.yml",
            ".rspec",
            "deny.toml",
            "sonar-project.properties",
            "codecov.yml",
            ".codecov.yml",
        ],
    ),
    (
        Category::Ci,
        &[
            "/.github/workflows/",
            "/.github/actions/",
            "/.github/dependabot.yml",
            "/.github/CODEOWNERS",
            "CODEOWNERS",
            "action.yml",
            "action.yaml",
            ".gitlab-ci.yml",
            "/.gitlab/",
            ".gitlab-ci*.yml",
            "/.circleci/",
            "Jenkinsfile*",
            "azure-pipelines*.yml",
            "/.azure-pipelines/",
            "/.ci/",
            "/ci/",
            "/.buildkite/",
            ".travis.yml",
            "appveyor.yml",
            ".appveyor.yml",
            "bitbucket-pipelines.yml",
            ".drone.yml",
            "/.woodpecker/",
            ".woodpecker.yml",
            "/.forgejo/",
            "/.gitea/",
            "/.teamcity/",
            "cloudbuild.yaml",
            "/.semaphore/",
            "renovate.json*",
            ".renovaterc*",
            "netlify.toml",
            "vercel.json",
        ],
    ),
    (
        Category::Hooks,
        &[
            ".pre-commit-config.yaml",
            ".pre-commit-hooks.yaml",
            "lefthook.yml",
            ".lefthook.yml",
            "/lefthook/",
            ".lintstagedrc*",
            "lint-staged.config.*",
            ".huskyrc*",
            ".vscode/",
            ".idea/",
            ".devcontainer/",
            ".devcontainer.json",
            ".vimrc",
            ".exrc",
            ".nvim.lua",
            ".dir-locals.el",
            ".editorconfig",
            "/hooks/",
        ],
    ),
    (
        Category::Build,
        &[
            "build.rs",
            "Makefile",
            "makefile",
            "GNUmakefile",
            "*.mk",
            "CMakeLists.txt",
            "*.cmake",
            "CMakePresets.json",
            "meson.build",
            "BUILD",
            "BUILD.bazel",
            "WORKSPACE",
            "WORKSPACE.bazel",
            "MODULE.bazel",
            ".bazelrc",
            "*.bzl",
            "justfile",
            ".justfile",
            "Taskfile.y*ml",
            "Rakefile",
            "*.rake",
            "Dockerfile*",
            "*.Dockerfile",
            "Containerfile*",
            ".dockerignore",
            "docker-compose*",
            "compose.y*ml",
            "docker-bake.hcl",
            "setup.py",
            "setup.cfg",
            "configure",
            "configure.ac",
            "*.m4",
            "Vagrantfile",
            "Procfile",
            "*.nix",
            "rust-toolchain",
            "rust-toolchain.toml",
            ".tool-versions",
            ".nvmrc",
            ".node-version",
            ".python-version",
            ".ruby-version",
            "tsconfig*.json",
            "webpack.config.*",
            "vite.config.*",
            "rollup.config.*",
            "esbuild.config.*",
            "babel.config.*",
            ".babelrc*",
            "next.config.*",
            "postcss.config.*",
            "turbo.json",
            "nx.json",
            "lerna.json",
            "gulpfile.*",
            "Gruntfile.*",
            "build.sbt",
            "build.xml",
            "gradlew",
            "gradlew.bat",
            "gradle-wrapper.*",
            "mvnw",
            "mvnw.cmd",
            "build.zig",
            "Package.swift",
            "*.csproj",
            "*.fsproj",
            "*.vbproj",
            "*.sln",
            "*.props",
            "*.targets",
            ".bundle/",
            ".swcrc",
        ],
    ),
    (
        Category::Dependencies,
        &[
            "Cargo.toml",
            "Cargo.lock",
            "package.json",
            "package-lock.json",
            "npm-shrinkwrap.json",
            "pnpm-lock.yaml",
            "pnpm-workspace.yaml",
            ".pnpmfile.cjs",
            "yarn.lock",
            ".yarnrc*",
            ".yarn/",
            "bun.lock",
            "bun.lockb",
            "bunfig.toml",
            "deno.json*",
            "deno.lock",
            "requirements*.txt",
            "requirements*.in",
            "constraints*.txt",
            "pyproject.toml",
            "poetry.lock",
            "poetry.toml",
            "uv.lock",
            "uv.toml",
            "Pipfile",
            "Pipfile.lock",
            "pdm.lock",
            "environment.y*ml",
            "go.mod",
            "go.sum",
            "go.work",
            "go.work.sum",
            "Gemfile*",
            "gems.rb",
            "gems.locked",
            "*.gemspec",
            "pom.xml",
            "build.gradle*",
            "settings.gradle*",
            "gradle.properties",
            "gradle.lockfile",
            "libs.versions.toml",
            "composer.json",
            "composer.lock",
            "mix.exs",
            "mix.lock",
            "rebar.config",
            "pubspec.yaml",
            "pubspec.lock",
            "Podfile",
            "Podfile.lock",
            "Package.resolved",
            "packages.lock.json",
            "packages.config",
            "nuget.config",
            "flake.lock",
            "conanfile.*",
            "vcpkg.json",
            "stack.yaml",
            "*.cabal",
            "cabal.project*",
            "opam",
            "*.opam",
            "vendor/",
        ],
    ),
];

/// Returns what a path decides, where it is sensitive: the first category of
/// the table that names it.
pub(crate) fn category_of(path: &str) -> Option<Category> {
    let parts = components(path);
    SENSITIVE
        .iter()
        .find(|(_, patterns)| patterns.iter().any(|pattern| names(pattern, &parts)))
        .map(|(category, _)| *category)
}

fn names(pattern: &str, path: &[String]) -> bool {
    let is_folder = pattern.ends_with('/');
    let is_rooted = pattern.starts_with('/');
    let wanted = pattern.trim_matches('/').to_lowercase();
    let wanted: Vec<&str> = wanted.split('/').collect();
    let last_start = path.len().saturating_sub(wanted.len());
    let starts = if is_rooted { 0..1 } else { 0..last_start + 1 };
    starts.into_iter().any(|start| {
        let rest = path.get(start..).unwrap_or_default();
        // A file's name is the last component; a folder, or a link in its
        // place, is any.
        let fits = if is_folder {
            rest.len() >= wanted.len()
        } else {
            rest.len() == wanted.len()
        };
        fits && rest
            .iter()
            .zip(&wanted)
            .all(|(part, name)| wild(name, part))
    })
}

/// Returns whether a text fits a name in which `*` matches any text.
fn wild(name: &str, text: &str) -> bool {
    let Some((head, tail)) = name.split_once('*') else {
        return name == text;
    };
    let Some(rest) = text.strip_prefix(head) else {
        return false;
    };
    if !tail.contains('*') {
        return rest.ends_with(tail);
    }
    (0..=rest.len())
        .filter(|at| rest.is_char_boundary(*at))
        .any(|at| wild(tail, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sensitive_path_has_its_category() {
        for (path, expected) in [
            (".github/workflows/ci.yml", Some(Category::Ci)),
            (".GitHub/Workflows/ci.yml", Some(Category::Ci)),
            (".github/workflows", Some(Category::Ci)),
            ("docs/.github/workflows/ci.yml", None),
            (".gitlab-ci.yml", Some(Category::Ci)),
            ("sub/Jenkinsfile.release", Some(Category::Ci)),
            (".circleci/config.yml", Some(Category::Ci)),
            ("a/conftest.py", Some(Category::Verification)),
            ("jest.config.ts", Some(Category::Verification)),
            (".pre-commit-config.yaml", Some(Category::Hooks)),
            ("web/.vscode/tasks.json", Some(Category::Hooks)),
            ("build.rs", Some(Category::Build)),
            ("crates/a/build.rs", Some(Category::Build)),
            ("rules/a.mk", Some(Category::Build)),
            ("Dockerfile.dev", Some(Category::Build)),
            ("docker-compose.yml", Some(Category::Build)),
            ("compose.yaml", Some(Category::Build)),
            ("Cargo.toml", Some(Category::Dependencies)),
            ("crates/a/Cargo.lock", Some(Category::Dependencies)),
            ("requirements-dev.txt", Some(Category::Dependencies)),
            ("vendor/a/b.go", Some(Category::Dependencies)),
            ("build.gradle.kts", Some(Category::Dependencies)),
            ("src/main.rs", None),
            ("src/build.rs.md", None),
            ("notes/requirements.md", None),
            ("circleci/config.yml", None),
            ("", None),
        ] {
            assert_eq!(category_of(path), expected, "{path}");
        }
    }

    #[test]
    fn no_pattern_is_in_two_categories() {
        let mut seen = std::collections::BTreeSet::new();
        for pattern in SENSITIVE.iter().flat_map(|(_, patterns)| *patterns) {
            assert!(
                seen.insert(pattern.to_lowercase()) || *pattern == "makefile",
                "{pattern}"
            );
            assert!(!pattern.is_empty() && !pattern.contains("//"), "{pattern}");
        }
    }

    #[test]
    fn changes_are_sorted_and_bounded_and_say_how_many() {
        let paths: Vec<String> = (0..150)
            .rev()
            .map(|n| format!("c{n:03}/Cargo.toml"))
            .collect();
        let paths = paths.iter().map(String::as_str).chain(["src/a.rs"]);
        let found = SensitiveChanges::of(paths, &CommandFiles::default());
        assert_eq!((found.changes.len(), found.count), (SENSITIVE_MAX, 150));
        assert_eq!(found.changes[0].path, "c000/Cargo.toml");
    }

    #[test]
    fn what_the_commands_touch_is_verification() {
        let commands = super::super::files_of("npm test", |_| true);
        let found = SensitiveChanges::of(["Package.json", "src/x.js"], &commands);
        let expected = SensitiveChange {
            path: "Package.json".to_owned(),
            category: Category::Verification,
        };
        assert_eq!(found.changes, [expected]);
    }
}
