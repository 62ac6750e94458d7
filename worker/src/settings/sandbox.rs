//! `[sandbox]`: how commands are confined, and what they may write beside what
//! is their own.

use super::tool_state;
use super::{FileSettings, LoopFlags, SettingsError, absolute};
use crate::supervisor::confine;
use premath_kernel::sandbox::{SandboxChoice, SandboxMode, choose};
use std::path::{Path, PathBuf};

/// The `[sandbox]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct SandboxTable {
    pub(super) mode: Option<SandboxMode>,
    pub(super) write: Vec<String>,
}

/// How commands are confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// What is taken here, and why nothing stronger.
    pub choice: SandboxChoice,
    /// Whether somebody asked for it by name.
    pub is_asked_for: bool,
    /// What a person opened.
    pub write: Vec<PathBuf>,
    /// What tools keep in the home, as far as it is there.
    pub tool_state: Vec<PathBuf>,
}

impl Sandbox {
    /// Takes the mode of flag, environment or file, or the strongest that works.
    pub(super) fn resolve(
        flags: &LoopFlags,
        file: &FileSettings,
        root: &Path,
    ) -> Result<Self, SettingsError> {
        let word = flags.sandbox.clone().or_else(|| {
            let set = super::variable_of("PREMATH_SANDBOX")?;
            (!set.trim().is_empty()).then_some(set)
        });
        let asked = match word {
            Some(word) => Some(word.trim().parse().map_err(|error| SettingsError::Value {
                name: "--sandbox",
                detail: format!("{error}"),
            })?),
            None => file.sandbox.mode,
        };
        let choice = choose(asked, confine::works)?;
        let home = super::path_of("HOME").filter(|home| home.is_absolute());
        let mut write = Vec::new();
        for text in &file.sandbox.write {
            let path = expand(text, home.as_deref(), root).ok_or(SettingsError::Value {
                name: "`write` of [sandbox]",
                detail: format!("`{text}` is below the home, and HOME is not set"),
            })?;
            write.push(std::fs::canonicalize(&path).unwrap_or(path));
        }
        Ok(Self {
            choice,
            is_asked_for: asked.is_some(),
            write,
            tool_state: tool_state::find(home.as_deref(), super::path_of),
        })
    }

    /// Returns the mode for a lane: where Landlock leaves open what must stay
    /// shut and nobody asked for it, `bwrap` is taken where it works.
    pub(crate) fn mode_of_lane(&self, leaves_open: bool) -> SandboxMode {
        let mode = self.choice.mode;
        if leaves_open
            && mode == SandboxMode::Landlock
            && !self.is_asked_for
            && confine::works(SandboxMode::Bubblewrap).is_ok()
        {
            return SandboxMode::Bubblewrap;
        }
        mode
    }
}

/// Reads a path as in `harness.toml`: `~` is the home, a relative one counts
/// from the repository root.
fn expand(text: &str, home: Option<&Path>, root: &Path) -> Option<PathBuf> {
    let text = text.trim();
    match text.strip_prefix('~') {
        Some("") => home.map(Path::to_path_buf),
        Some(rest) if rest.starts_with('/') => Some(home?.join(rest.trim_start_matches('/'))),
        _ => Some(absolute(&root.join(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_counts_from_the_home_or_the_repository() {
        let at = |text: &str, home| expand(text, home, Path::new("/repo"));
        let home = Some(Path::new("/h/u"));
        assert_eq!(at("~/x/y", home), Some("/h/u/x/y".into()));
        assert_eq!(at("~", home), Some("/h/u".into()));
        assert_eq!(at("~/x", None), None);
        assert_eq!(at("../shared", None), Some("/repo/../shared".into()));
        assert_eq!(at("/data", None), Some("/data".into()));
        assert_eq!(at("~other", home), Some("/repo/~other".into()));
    }

    #[test]
    fn the_table_is_read_and_a_wrong_word_is_named() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let file = parse("[sandbox]\nmode = \"none\"\nwrite = [\"~/.gradle\"]\n").unwrap();
        assert_eq!(file.sandbox.mode, Some(SandboxMode::None));
        assert_eq!(file.sandbox.write, ["~/.gradle"]);
        let error = parse("[sandbox]\nmode = \"chroot\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "h.toml:2: `mode`: `chroot` is not `landlock`, `bubblewrap` or `none`"
        );
    }
}
