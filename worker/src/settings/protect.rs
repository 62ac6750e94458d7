//! What a step must leave alone and what it should not touch unseen:
//! `[protect]` of `harness.toml`.

use super::{FileSettings, LoopFlags, Provided};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use premath_evidence::Agent;
use premath_kernel::json::plain::listed;
use premath_kernel::policy::governing::{
    AllowError, CommandFiles, Governing, SensitiveChanges, files_of,
};
use premath_worktree::governing;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What is protected, and what happens to sensitive changes.
///
/// Patterns are as in `.gitignore`: one without a slash counts in every folder,
/// and what a folder holds goes with it. Letter case does not count, for it does
/// not on every file system that work is checked out on.
#[derive(Clone, Debug)]
pub struct Protect {
    patterns: Vec<String>,
    set: GlobSet,
    governing: Governing,
    commands: Vec<String>,
    sensitive: SensitiveRule,
}

/// The defaults are protected, and sensitive changes reported.
impl Default for Protect {
    fn default() -> Self {
        Self {
            patterns: Vec::new(),
            set: GlobSet::empty(),
            governing: Governing::of_agents(Agent::governing_files()),
            commands: Vec::new(),
            sensitive: SensitiveRule::default(),
        }
    }
}

/// What happens to a step that changes sensitive files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SensitiveRule {
    /// The report names them first.
    #[default]
    Report,
    /// It is refused, as for a protected file.
    Refuse,
}

impl SensitiveRule {
    /// Returns the text used in settings.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Report => "report",
            Self::Refuse => "refuse",
        }
    }
}

/// A word is not a rule for sensitive files.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid value `{0}`: expected `report` or `refuse`")]
pub(crate) struct UnknownRule(String);

impl FromStr for SensitiveRule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Self, UnknownRule> {
        [Self::Report, Self::Refuse]
            .into_iter()
            .find(|rule| rule.as_str() == text)
            .ok_or_else(|| UnknownRule(text.to_owned()))
    }
}

/// A text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid .gitignore pattern `{pattern}`: {detail}")]
pub(crate) struct FilePatternError {
    pattern: String,
    detail: String,
}

/// The verdict on a step's changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangeVerdict {
    /// The protected paths that it changed.
    pub protected: Vec<String>,
    /// The sensitive paths that it changed.
    pub sensitive: SensitiveChanges,
    refuses_sensitive: bool,
}

impl ChangeVerdict {
    /// Returns why the step is refused, where it is.
    pub(crate) fn refusal(&self) -> Option<String> {
        if !self.protected.is_empty() {
            let paths = listed(&self.protected);
            return Some(format!("the attempt changed protected files: {paths}"));
        }
        let changes = &self.sensitive.changes;
        if !self.refuses_sensitive || changes.is_empty() {
            return None;
        }
        let changes = changes.iter();
        let items: Vec<String> = changes
            .map(|change| format!("{} ({})", change.path, change.category))
            .collect();
        Some(format!(
            "the attempt changed sensitive files, which `sensitive` under [protect] refuses: {}",
            listed(&items)
        ))
    }
}

/// Returns the files and folders that flags, settings and git's configuration
/// name, from the root of the repository. A step that had a file of its own at
/// the path of a provided one would replace it in its verification.
pub(super) fn named(
    flags: &LoopFlags,
    file: &FileSettings,
    provided: &[Provided],
    root: &Path,
) -> Vec<String> {
    let batch = &file.batch;
    let settings = [
        &batch.instruction,
        &batch.retry_policy,
        &batch.turn_policy,
        &file.prompt_template,
    ];
    let settings = settings.into_iter().flatten().map(PathBuf::from);
    let flags = [&flags.config, &flags.instruction].into_iter().flatten();
    let absolute = flags.filter_map(|path| std::path::absolute(path).ok());
    let package = file.governance.package.clone().map(PathBuf::from);
    let paths = settings.chain(absolute).chain(package);
    let paths = paths.filter_map(|path| governing::within(root, &path));
    let provided = provided.iter();
    let provided = provided.map(|file| file.path.to_string_lossy().into_owned());
    let hooks = governing::hooks_path(root);
    paths.chain(provided).chain(hooks).collect()
}

impl Protect {
    /// Takes patterns beside the defaults.
    ///
    /// # Errors
    ///
    /// [`FilePatternError`], naming the pattern that is none.
    pub(crate) fn set_patterns(&mut self, patterns: &[String]) -> Result<(), FilePatternError> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let trimmed = pattern.trim_end_matches('/');
            let rooted = match trimmed.strip_prefix('/') {
                Some(rooted) => rooted.to_owned(),
                None if trimmed.contains('/') => trimmed.to_owned(),
                None => format!("**/{trimmed}"),
            };
            let wrong = |error: &globset::Error| FilePatternError {
                pattern: pattern.clone(),
                detail: error.kind().to_string(),
            };
            for glob in [format!("{rooted}/**"), rooted] {
                let mut glob = GlobBuilder::new(&glob);
                let glob = glob.literal_separator(true).case_insensitive(true).build();
                set.add(glob.map_err(|error| wrong(&error))?);
            }
        }
        self.set = set.build().map_err(|error| FilePatternError {
            pattern: patterns.join(", "),
            detail: error.to_string(),
        })?;
        self.patterns = patterns.to_vec();
        Ok(())
    }

    /// Takes defaults out.
    ///
    /// # Errors
    ///
    /// [`AllowError`]: no default, or a folder of the harness's own.
    pub(crate) fn allow(&mut self, names: &[String]) -> Result<(), AllowError> {
        self.governing = Governing::new(Agent::governing_files(), names)?;
        Ok(())
    }

    /// Says what happens to sensitive changes.
    pub(crate) const fn set_sensitive(&mut self, rule: SensitiveRule) {
        self.sensitive = rule;
    }

    /// Protects files and folders that settings name, from the root.
    pub(crate) fn add_named(&mut self, paths: impl IntoIterator<Item = String>) {
        self.governing = self.governing.clone().with_named(paths);
    }

    /// Protects the files that commands name.
    pub(crate) fn add_commands<'a>(&mut self, commands: impl IntoIterator<Item = &'a str>) {
        self.commands
            .extend(commands.into_iter().map(str::to_owned));
    }

    /// Returns the patterns as they were written.
    #[cfg(test)]
    pub(crate) fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Returns what makes batches differ, as text.
    pub(super) fn identity(&self) -> Vec<String> {
        let rule = format!("sensitive = {}", self.sensitive.as_str());
        let allowed = self.governing.allowed();
        let allowed = allowed.map(|name| format!("allow {name}"));
        let patterns = self.patterns.iter().cloned();
        patterns.chain(allowed).chain([rule]).collect()
    }

    /// Judges the paths that a step changed. `exists` returns whether a file is
    /// in the tree that the step began at, and `verify` is its verification.
    pub(crate) fn judge(
        &self,
        paths: &[String],
        verify: &str,
        exists: impl Fn(&str) -> bool,
    ) -> ChangeVerdict {
        if paths.is_empty() {
            return ChangeVerdict::default();
        }
        let mut files = CommandFiles::default();
        for command in self.commands.iter().map(String::as_str).chain([verify]) {
            let named = files_of(command, &exists);
            files.deciding.extend(named.deciding);
            files.touching.extend(named.touching);
        }
        let governing = self.governing.clone();
        let governing = governing.with_named(files.deciding.iter().cloned());
        let is_protected = |path: &&String| self.set.is_match(path) || governing.protects(path);
        let protected: Vec<String> = paths.iter().filter(is_protected).cloned().collect();
        let sensitive = SensitiveChanges::of(paths.iter().map(String::as_str), &files);
        ChangeVerdict {
            protected,
            sensitive,
            refuses_sensitive: self.sensitive == SensitiveRule::Refuse,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use premath_kernel::policy::governing::Category;

    fn of(patterns: &[&str]) -> Result<Protect, FilePatternError> {
        let patterns: Vec<String> = patterns.iter().map(|text| (*text).to_owned()).collect();
        let mut protect = Protect::default();
        protect.set_patterns(&patterns)?;
        Ok(protect)
    }

    fn judged(protect: &Protect, path: &str) -> ChangeVerdict {
        protect.judge(&[path.to_owned()], "sh verify.sh", |path| {
            path == "verify.sh"
        })
    }

    #[test]
    fn patterns_count_as_in_a_gitignore() {
        for (pattern, path, expected) in [
            ("Cargo.lock", "Cargo.lock", true),
            ("Cargo.lock", "cargo.LOCK", true),
            ("Cargo.lock", "tests/fuzz/Cargo.lock", true),
            ("/Cargo.lock", "tests/fuzz/Cargo.lock", false),
            ("*.pem", "keys/a.pem", true),
            ("migrations/", "db/migrations/1.sql", true),
            ("migrations", "db/migrations.md", false),
            (".github/**", ".github/workflows/ci.yml", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/**/*.rs", "src/deep/a.rs", true),
        ] {
            let protect = of(&[pattern]).unwrap();
            let judged = judged(&protect, path);
            assert_eq!(!judged.protected.is_empty(), expected, "{pattern} {path}");
        }
        assert_eq!(
            of(&["[a"]).unwrap_err().to_string(),
            "invalid .gitignore pattern `[a`: unclosed character class; missing ']'"
        );
    }

    #[test]
    fn defaults_and_what_the_commands_name_are_protected_without_a_setting() {
        let mut protect = Protect::default();
        protect.add_named(["config/prompt.md".to_owned()]);
        protect.add_commands(["bash verify.sh"]);
        for (path, expected) in [
            ("harness.toml", true),
            (".premath/issues.jsonl", true),
            ("verify.sh", true),
            ("VERIFY.SH", true),
            ("config/prompt.md", true),
            ("config", true),
            ("src/a.rs", false),
            ("Cargo.toml", false),
        ] {
            let refusal = judged(&protect, path).refusal();
            assert_eq!(refusal.is_some(), expected, "{path}");
        }
    }

    #[test]
    fn sensitive_changes_are_reported_or_refused() {
        let mut protect = Protect::default();
        let found = judged(&protect, ".github/workflows/ci.yml");
        assert_eq!(found.sensitive.changes[0].category, Category::Ci);
        assert_eq!(found.refusal(), None);
        protect.set_sensitive("refuse".parse().unwrap());
        let refusal = judged(&protect, ".github/workflows/ci.yml").refusal();
        assert!(refusal.unwrap().ends_with(".github/workflows/ci.yml (ci)"));
        assert_eq!(judged(&protect, "src/a.rs").refusal(), None);
        assert!("drop".parse::<SensitiveRule>().is_err());
    }

    #[test]
    fn what_is_allowed_or_refused_distinguishes_batches() {
        let mut protect = of(&["a"]).unwrap();
        protect.allow(&["CLAUDE.md".to_owned()]).unwrap();
        assert_eq!(
            protect.identity(),
            ["a", "allow CLAUDE.md", "sensitive = report"]
        );
        assert!(protect.allow(&["nothing".to_owned()]).is_err());
    }
}
