//! `[sandbox]`: how commands are confined, and what they may write beside what
//! is their own.

use super::{FileSettings, LoopFlags, SettingsError, absolute};
use crate::supervisor::confine;
use premath_kernel::policy::sandbox::{SandboxChoice, SandboxMode, choose};
use std::path::{Path, PathBuf};

/// The `[sandbox]` table.
#[derive(Clone, Debug, Default)]
pub(super) struct SandboxTable {
    pub(super) mode: Option<SandboxMode>,
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
}

/// How commands are confined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// What is taken here, and why nothing stronger.
    pub choice: SandboxChoice,
    /// What a person opened to be read.
    pub read: Vec<PathBuf>,
    /// What a person opened to be written.
    pub write: Vec<PathBuf>,
    /// The home of the user.
    pub home: Option<PathBuf>,
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
        let expanded = |name: &'static str, list: &[String]| {
            let path = |text: &String| {
                let path = expand(text, home.as_deref(), root).ok_or(SettingsError::Value {
                    name,
                    detail: format!("cannot resolve `{text}`: HOME is not set"),
                })?;
                Ok(std::fs::canonicalize(&path).unwrap_or(path))
            };
            list.iter()
                .map(path)
                .collect::<Result<Vec<PathBuf>, SettingsError>>()
        };
        let mut read = expanded("`read` of [sandbox]", &file.sandbox.read)?;
        let mut write = expanded("`write` of [sandbox]", &file.sandbox.write)?;
        read.extend(named_by("PREMATH_SANDBOX_READ"));
        write.extend(named_by("PREMATH_SANDBOX_WRITE"));
        Ok(Self {
            choice,
            read,
            write,
            home,
        })
    }
}

/// Returns the absolute paths that a variable lists, as `PATH` does.
fn named_by(variable: &str) -> Vec<PathBuf> {
    let list = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&list)
        .filter(|path| path.is_absolute())
        .map(|path| std::fs::canonicalize(&path).unwrap_or(path))
        .collect()
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
            "h.toml:2: `mode`: invalid sandbox mode `chroot`: expected `namespaces`, `landlock` or \
            `none`"
        );
    }
}
