//! Other repositories that steps may work in, and what one of them reports
//! about the work that is done in it.

use super::file::{ConfigError, FileSettings};
use super::{Protect, Setup};
use premath_kernel::policy::landing::{DEFAULT_TARGET, LandingMode};
use std::path::{Path, PathBuf};

/// What another repository's `harness.toml` asks of work in it; nothing where
/// it has none.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldSettings {
    /// The verification of the world.
    pub verify: Option<String>,
    /// What makes a worktree of it ready to work in.
    pub setup: Option<Setup>,
    /// What work must not touch.
    pub protect: Protect,
    /// The branch that work begins at, where it is there; else HEAD.
    pub target: String,
    /// Whether work begins at the target at all.
    pub begins_at_target: bool,
}

impl WorldSettings {
    /// Reads them.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with line, key and what would be right.
    pub(crate) fn load(repository: &Path) -> Result<Self, ConfigError> {
        let file = FileSettings::load_of_checkout(repository)?;
        let verify = file.batch.verify_cmd;
        let mut protect = file.protect;
        let setup_cmd = file.worktrees.setup_cmd.as_deref();
        protect.add_commands(verify.as_deref().into_iter().chain(setup_cmd));
        protect.add_named(premath_worktree::governing::hooks_path(repository));
        let target = file.landing.target.as_deref().map(str::trim);
        let target = target.unwrap_or(DEFAULT_TARGET);
        Ok(Self {
            verify: verify.filter(|command| !command.trim().is_empty()),
            setup: file.worktrees.setup_cmd.map(|command| Setup {
                command,
                inputs: file.worktrees.setup_inputs,
            }),
            protect,
            target: target
                .strip_prefix("refs/heads/")
                .unwrap_or(target)
                .to_owned(),
            begins_at_target: file.landing.mode.map(|word| word.0) != Some(LandingMode::None),
        })
    }
}

/// Names the folder that holds the worktrees which are made in another
/// repository: beside it, and apart from its own lanes.
pub(crate) fn worlds_root(repository: &Path) -> PathBuf {
    let name = repository.file_name().unwrap_or_default().to_string_lossy();
    let above = repository.parent().unwrap_or(repository);
    above.join(format!("{name}-worlds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_says_what_it_asks_of_work_in_it() {
        let folder = tempfile::tempdir().unwrap();
        let bare = WorldSettings::load(folder.path()).unwrap();
        assert_eq!((bare.verify, bare.setup), (None, None));
        assert_eq!(bare.target, DEFAULT_TARGET);
        assert!(bare.begins_at_target && bare.protect.patterns().is_empty());
        let text = "[batch]\nverify_cmd = \"make test\"\n[landing]\nmode = \"none\"\n\
                    target = \"refs/heads/next\"\n[worktrees]\nsetup_cmd = \"npm ci\"\n\
                    [protect]\npaths = [\"LICENSE\"]\n";
        std::fs::write(folder.path().join("harness.toml"), text).unwrap();
        let own = WorldSettings::load(folder.path()).unwrap();
        assert_eq!(own.verify.as_deref(), Some("make test"));
        assert_eq!(own.setup.unwrap().command, "npm ci");
        assert_eq!(own.target, "next");
        assert!(!own.begins_at_target && own.protect.patterns() == ["LICENSE"]);
        std::fs::write(folder.path().join("harness.toml"), "[bach]\n").unwrap();
        assert!(WorldSettings::load(folder.path()).is_err());
    }
}
