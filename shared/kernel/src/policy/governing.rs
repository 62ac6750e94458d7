//! Which files govern a batch: its settings, its policies, what agents read as
//! instructions, and the commands that judge the work.
//!
//! A step that changes one of them is refused. A batch whose governing files
//! changed by landed work since the operator accepted them does not begin
//! ([`trust`](crate::policy::trust)).

mod command;
mod fold;
mod sensitive;

pub use command::{CommandFiles, files_of};
pub use sensitive::{Category, SensitiveChange, SensitiveChanges};

use fold::{components, is_folded, is_spelling_of};
use std::collections::BTreeSet;

/// Where a protected name counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PatternPlace {
    /// At the root of the repository alone.
    Root,
    /// In every folder: what reads it looks there too.
    Anywhere,
}

/// The harness's own folders, which no setting opens to a step.
const OWN: [&str; 2] = [".premath", "artifacts"];

/// What is protected where no setting says otherwise.
///
/// A name counts in every folder where its reader looks in every folder: git
/// for attributes, cargo, npm and direnv for their settings, agents for their
/// instructions. What only one agent reads is not here: callers name it.
const DEFAULTS: &[(PatternPlace, &str)] = &[
    (PatternPlace::Root, "harness.toml"),
    (PatternPlace::Root, "mise.toml"),
    (PatternPlace::Root, ".mise.toml"),
    (PatternPlace::Root, ".mise/"),
    (PatternPlace::Root, ".config/mise.toml"),
    (PatternPlace::Root, ".config/mise/"),
    (PatternPlace::Root, "policies/"),
    (PatternPlace::Root, "instructions/"),
    (PatternPlace::Root, ".premath/"),
    (PatternPlace::Root, "artifacts/"),
    (PatternPlace::Anywhere, ".gitattributes"),
    (PatternPlace::Root, ".gitmodules"),
    (PatternPlace::Root, ".githooks/"),
    (PatternPlace::Root, ".git-hooks/"),
    (PatternPlace::Root, ".husky/"),
    (PatternPlace::Anywhere, "AGENTS.md"),
    (PatternPlace::Anywhere, "AGENTS.override.md"),
    (PatternPlace::Anywhere, ".mcp.json"),
    (PatternPlace::Anywhere, ".cargo/config"),
    (PatternPlace::Anywhere, ".cargo/config.toml"),
    (PatternPlace::Anywhere, ".npmrc"),
    (PatternPlace::Anywhere, ".envrc"),
];

/// Returns the default patterns as `.gitignore` has them: one that counts at
/// the root alone begins with a slash. `of_agents` are the names that agents
/// read in every folder.
pub fn defaults(of_agents: impl IntoIterator<Item = &'static str>) -> impl Iterator<Item = String> {
    all(of_agents)
        .into_iter()
        .map(|(place, name)| pattern(place, name))
}

/// Returns the defaults with those that agents read.
fn all(of_agents: impl IntoIterator<Item = &'static str>) -> Vec<(PatternPlace, &'static str)> {
    let of_agents = of_agents.into_iter();
    let of_agents = of_agents.map(|name| (PatternPlace::Anywhere, name));
    DEFAULTS.iter().copied().chain(of_agents).collect()
}

fn pattern(place: PatternPlace, name: &str) -> String {
    match place {
        PatternPlace::Root => format!("/{name}"),
        // A slash within a pattern ties it to the root.
        PatternPlace::Anywhere if name.trim_end_matches('/').contains('/') => format!("**/{name}"),
        PatternPlace::Anywhere => name.to_owned(),
    }
}

/// A default cannot be taken out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllowError {
    /// No default bears the name.
    #[error("`{name}` is not protected by default; the defaults are {defaults}")]
    Unknown {
        /// The name.
        name: String,
        /// The defaults, for a person.
        defaults: String,
    },
    /// It holds the harness's own files.
    #[error("`{0}` holds the harness's own files, which no step may change")]
    Own(String),
}

fn listed(defaults: &[(PatternPlace, &str)]) -> String {
    let patterns: Vec<String> = defaults
        .iter()
        .filter(|(_, name)| !OWN.contains(&name.trim_matches('/')))
        .map(|(place, name)| format!("`{}`", pattern(*place, name)))
        .collect();
    patterns.join(", ")
}

/// Reports which paths of a repository govern batches in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governing {
    allowed: BTreeSet<&'static str>,
    named: BTreeSet<String>,
    rules: Vec<Rule>,
    /// The first parts of all rules.
    starts: BTreeSet<String>,
}

/// A protected name, in the form in which paths are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    place: PatternPlace,
    parts: Vec<String>,
    is_allowed: bool,
}

impl Governing {
    /// Returns the defaults without those that `allow` takes out. A name in
    /// `allow` is a default as it is listed, with or without its slashes at
    /// both ends. `of_agents` are the names that agents read in every folder.
    ///
    /// # Errors
    ///
    /// [`AllowError`]: no default, or a folder of the harness's own.
    pub fn new(
        of_agents: impl IntoIterator<Item = &'static str>,
        allow: &[String],
    ) -> Result<Self, AllowError> {
        let defaults = all(of_agents);
        let mut allowed = BTreeSet::new();
        for name in allow {
            let bare = name.trim().trim_start_matches("**/").trim_matches('/');
            let found = defaults
                .iter()
                .map(|(_, default)| *default)
                .find(|default| default.trim_end_matches('/') == bare);
            let default = found.ok_or_else(|| AllowError::Unknown {
                name: name.clone(),
                defaults: listed(&defaults),
            })?;
            if OWN.contains(&bare) {
                return Err(AllowError::Own(name.clone()));
            }
            allowed.insert(default);
        }
        Ok(Self::without(&defaults, allowed))
    }

    /// Returns the defaults, all of them protected.
    pub fn of_agents(of_agents: impl IntoIterator<Item = &'static str>) -> Self {
        Self::without(&all(of_agents), BTreeSet::new())
    }

    fn without(defaults: &[(PatternPlace, &'static str)], allowed: BTreeSet<&'static str>) -> Self {
        let rules = defaults.iter().map(|(place, name)| Rule {
            place: *place,
            parts: components(name),
            is_allowed: allowed.contains(name),
        });
        let rules: Vec<Rule> = rules.collect();
        Self {
            starts: rules
                .iter()
                .filter_map(|rule| rule.parts.first().cloned())
                .collect(),
            rules,
            allowed,
            named: BTreeSet::new(),
        }
    }

    /// Adds files or folders that settings or commands name, as paths from the
    /// root of the repository.
    #[must_use]
    pub fn with_named(mut self, paths: impl IntoIterator<Item = String>) -> Self {
        for path in paths {
            let parts = components(&path);
            if parts.is_empty() || parts.iter().any(|part| part == "..") {
                continue;
            }
            self.starts.extend(parts.first().cloned());
            self.rules.push(Rule {
                place: PatternPlace::Root,
                parts,
                is_allowed: false,
            });
            self.named.insert(path);
        }
        self
    }

    /// Returns the defaults that were taken out.
    pub fn allowed(&self) -> impl Iterator<Item = &str> {
        self.allowed.iter().copied()
    }

    /// Returns the paths that were added by name.
    #[cfg(test)]
    pub(crate) fn named(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(String::as_str)
    }

    /// Returns whether a step must leave a path alone.
    ///
    /// A path matches in every spelling that is the same file in some checkout:
    /// letter case, ignorable characters and short names of other file systems
    /// do not hide it. So does a link or file in the place of a folder on the
    /// way to a protected file.
    pub fn protects(&self, path: &str) -> bool {
        self.matches(path, false)
    }

    /// Returns whether a path's content governs batches: what is protected, and
    /// the defaults that were taken out, without the harness's own state.
    pub fn governs(&self, path: &str) -> bool {
        let is_own = || {
            let first = components(path).into_iter().next();
            first.is_some_and(|part| OWN.iter().any(|own| is_spelling_of(&part, own)))
        };
        self.matches(path, true) && !is_own()
    }

    fn matches(&self, path: &str, even_allowed: bool) -> bool {
        // Most paths of a large tree are plain, and nothing begins like them.
        let mut parts = path.split('/');
        if parts.all(|part| is_folded(part) && !self.starts.contains(part)) {
            return false;
        }
        let parts = components(path);
        self.rules
            .iter()
            .filter(|rule| even_allowed || !rule.is_allowed)
            .any(|rule| rule.matches(&parts))
    }
}

impl Rule {
    fn matches(&self, path: &[String]) -> bool {
        let starts = match self.place {
            PatternPlace::Root => 0..1,
            PatternPlace::Anywhere => 0..path.len().max(1),
        };
        starts
            .into_iter()
            .any(|start| self.begins(path.get(start..).unwrap_or_default()))
    }

    /// Returns whether a path is the protected one, below it, or a leaf in the
    /// place of a folder above it.
    fn begins(&self, path: &[String]) -> bool {
        !path.is_empty()
            && path
                .iter()
                .zip(&self.parts)
                .all(|(part, name)| is_spelling_of(part, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowing(names: &[&str]) -> Result<Governing, AllowError> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        Governing::new(["CLAUDE.md", ".claude/", ".codex/"], &names)
    }

    #[test]
    fn defaults_are_protected_in_every_spelling() {
        let governing = allowing(&[]).unwrap();
        for (path, expected) in [
            ("harness.toml", true),
            ("Harness.TOML", true),
            ("docs/harness.toml", false),
            ("policies/control/a.json", true),
            ("src/policies/a.rs", false),
            (".premath/issues.jsonl", true),
            (".Premath/issues.jsonl", true),
            ("artifacts/ciwitness/x.json", true),
            (".gitattributes", true),
            ("src/deep/.GITATTRIBUTES", true),
            ("vendor/.gitmodules", false),
            ("pkg/AGENTS.md", true),
            ("docs/agents.md", true),
            ("docs/my-agents.md", false),
            ("a/.claude/settings.json", true),
            (".claude", true),
            ("a/.cargo/config.toml", true),
            ("a/.cargo/notes.md", false),
            (".mise/tasks/x", true),
            ("src/main.rs", false),
            ("hooks/pre-push", false),
            ("", false),
            ("/", false),
        ] {
            assert_eq!(governing.protects(path), expected, "{path}");
        }
    }

    #[test]
    fn another_file_system_hides_nothing() {
        let governing = allowing(&[]).unwrap();
        for path in [
            "harness.toml.",
            "harness.toml ",
            "harness.toml::$DATA",
            ".premath\\issues.jsonl",
            "./harness.toml",
            "AGENTS\u{200c}.md",
            "in\u{17f}tructions/x.json",
            ".cargo/con\u{fb01}g.toml",
            "HARNES~1.TOM",
            "GITATT~1",
            "src/GITAT~12",
            "premat~1/issues.jsonl",
            "CLAUDE~1/settings.json",
        ] {
            assert!(governing.protects(path), "{path}");
        }
        for path in [
            "a~1.toml",
            "GITATT~12",
            "HARNES~x.TOM",
            "harness~.toml",
            "re\u{301}sume\u{301}.md",
        ] {
            assert!(!governing.protects(path), "{path}");
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_above_counts() {
        let governing = allowing(&[])
            .unwrap()
            .with_named(["ci/verify/run.sh".to_owned()]);
        for path in [
            ".cargo",
            ".config",
            "policies",
            "ci",
            "ci/verify",
            "ci/verify/run.sh",
        ] {
            assert!(governing.protects(path), "{path}");
        }
        for path in ["ci/other.sh", "ci/verify/other.sh", "b/ci/verify/run.sh"] {
            assert!(!governing.protects(path), "{path}");
        }
        assert_eq!(governing.named().collect::<Vec<_>>(), ["ci/verify/run.sh"]);
    }

    #[test]
    fn an_allowed_default_is_open_to_steps_and_still_governs() {
        let governing = allowing(&["CLAUDE.md", "/mise.toml", ".codex/"]).unwrap();
        for path in [
            "CLAUDE.md",
            "a/claude.md",
            "mise.toml",
            ".codex/config.toml",
        ] {
            assert!(!governing.protects(path), "{path}");
            assert!(governing.governs(path), "{path}");
        }
        assert!(governing.protects("AGENTS.md"));
        assert!(governing.protects(".premath/trust.json"));
        assert!(!governing.governs(".PREMATH/trust.json"));
        assert!(!governing.governs("artifacts/x"));
        let error = allowing(&["Cargo.lock"]).unwrap_err().to_string();
        assert!(
            error.starts_with("`Cargo.lock` is not protected by default"),
            "{error}"
        );
        assert!(error.contains("`/harness.toml`"), "{error}");
        assert!(!error.contains(".premath"), "{error}");
        assert_eq!(
            allowing(&[".premath/"]).unwrap_err(),
            AllowError::Own(".premath/".to_owned())
        );
    }

    #[test]
    fn a_path_that_leaves_the_repository_protects_nothing() {
        let governing = allowing(&[]).unwrap();
        let named = governing
            .clone()
            .with_named(["../x".to_owned(), String::new()]);
        assert_eq!(named, governing);
    }

    #[test]
    fn patterns_read_as_in_a_gitignore() {
        let patterns: Vec<String> = defaults(["AGENT.md"]).collect();
        for pattern in [
            "/harness.toml",
            "/policies/",
            "AGENTS.md",
            "AGENT.md",
            "**/.cargo/config.toml",
        ] {
            assert!(patterns.contains(&pattern.to_owned()), "{pattern}");
        }
    }
}
