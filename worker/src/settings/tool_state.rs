//! What well-known tools keep in the home, and must be able to write to work
//! at all: agents their own state, build tools what they fetched.
//!
//! Nothing stands here that is run or read as settings by a person's own shell
//! or git: `~/.cargo/bin`, `~/.config` as a whole, `~/.local/bin`, `~/.ssh`.

use std::path::{Path, PathBuf};

/// One tool's folder, and what in it is written.
struct ToolState {
    /// The variable that moves the folder.
    variable: Option<&'static str>,
    /// Where it is without the variable, from the home.
    home: &'static str,
    /// What of it is open; all of it where empty.
    parts: &'static [&'static str],
}

const fn whole(home: &'static str) -> ToolState {
    ToolState {
        variable: None,
        home,
        parts: &[],
    }
}

const fn moved(variable: &'static str, home: &'static str) -> ToolState {
    ToolState {
        variable: Some(variable),
        home,
        parts: &[],
    }
}

/// The table.
const KNOWN: &[ToolState] = &[
    // Agents: sessions, logs, sign-in tokens that they renew.
    moved("CLAUDE_CONFIG_DIR", ".claude"),
    whole(".claude.json"),
    moved("CODEX_HOME", ".codex"),
    whole(".gemini"),
    whole(".local/share/opencode"),
    whole(".local/state/opencode"),
    whole(".config/opencode"),
    // What can be fetched again: pip, uv, go, yarn, playwright and many more.
    moved("XDG_CACHE_HOME", ".cache"),
    // Sources of crates, and the locks that cargo takes around them; not `bin`.
    ToolState {
        variable: Some("CARGO_HOME"),
        home: ".cargo",
        parts: &[
            "registry",
            "git",
            ".package-cache",
            ".package-cache-mutate",
            ".global-cache",
        ],
    },
    // Packages and metadata.
    moved("NPM_CONFIG_CACHE", ".npm"),
    whole(".local/share/pnpm/store"),
    whole(".bun/install/cache"),
    moved("GOMODCACHE", "go/pkg"),
    moved("GRADLE_USER_HOME", ".gradle"),
    whole(".m2/repository"),
    moved("NUGET_PACKAGES", ".nuget/packages"),
    // Which configurations mise has seen; it writes that at every run.
    moved("MISE_STATE_DIR", ".local/state/mise"),
];

/// Returns what of the table is there, with links resolved, sorted.
pub(super) fn find(
    home: Option<&Path>,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = KNOWN
        .iter()
        .filter_map(|known| {
            let moved = known.variable.and_then(&variable);
            let folder = moved.filter(|path| path.is_absolute());
            Some((
                folder.or_else(|| Some(home?.join(known.home)))?,
                known.parts,
            ))
        })
        .flat_map(|(folder, parts)| match parts {
            [] => vec![folder],
            parts => parts.iter().map(|part| folder.join(part)).collect(),
        })
        .filter_map(|path| std::fs::canonicalize(path).ok())
        .collect();
    found.sort();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_found_where_a_variable_moved_it_too() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let home = root.join("home");
        for there in [
            "home/.cargo/registry",
            "home/.cargo/bin",
            "home/.npm",
            "elsewhere/git",
        ] {
            std::fs::create_dir_all(root.join(there)).unwrap();
        }
        assert_eq!(
            find(Some(&home), |_| None),
            [home.join(".cargo/registry"), home.join(".npm")]
        );
        let cargo = |name: &str| (name == "CARGO_HOME").then(|| root.join("elsewhere"));
        assert_eq!(
            find(Some(&home), cargo),
            [root.join("elsewhere/git"), home.join(".npm")]
        );
        assert!(find(None, |_| None).is_empty());
    }

    #[test]
    fn nothing_that_a_persons_own_shell_runs_is_in_the_table() {
        for known in KNOWN {
            for shut in [
                ".cargo/bin",
                ".config",
                ".local/bin",
                ".local",
                ".ssh",
                ".bashrc",
            ] {
                assert!(!Path::new(shut).starts_with(known.home) || !known.parts.is_empty());
            }
        }
    }
}
