//! How commands are confined: the modes, which of them is taken, and the paths
//! that a confined command may write.

use crate::failure::FailureClass;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// How commands are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// By namespaces: a view of files, processes and network of its own.
    Namespaces,
    /// By namespaces too; the system folders of the view are those of a
    /// container image.
    Container,
    /// By the kernel's Landlock: a list of what may be written.
    Landlock,
    /// Commands are not confined.
    None,
}

impl SandboxMode {
    /// The modes tried by default, the strongest first.
    pub(crate) const BY_STRENGTH: [Self; 2] = [Self::Namespaces, Self::Landlock];

    /// Every mode, in the order in which messages list them.
    const ALL: [Self; 4] = [
        Self::Namespaces,
        Self::Container,
        Self::Landlock,
        Self::None,
    ];

    /// Returns whether a command has a view of its own: files, processes and
    /// network that are made for it.
    pub const fn has_view(self) -> bool {
        matches!(self, Self::Namespaces | Self::Container)
    }

    /// Returns the text used in settings.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::Container => "container",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

impl fmt::Display for SandboxMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word is not a sandbox mode.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid sandbox mode `{0}`: expected `namespaces`, `container`, `landlock` or `none`")]
pub struct UnknownSandbox(pub String);

impl FromStr for SandboxMode {
    type Err = UnknownSandbox;

    fn from_str(text: &str) -> Result<Self, UnknownSandbox> {
        // What the mode was called by the program that made the namespaces.
        if text == "bubblewrap" {
            return Ok(Self::Namespaces);
        }
        Self::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownSandbox(text.to_owned()))
    }
}

/// The way that was asked for does not work here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the sandbox `{mode}` does not work here: {why}")]
pub struct SandboxUnavailable {
    /// The mode that was requested.
    pub mode: SandboxMode,
    /// Why it does not work.
    pub why: String,
}

impl SandboxUnavailable {
    /// Returns the failure class.
    pub const fn class(&self) -> FailureClass {
        FailureClass::SandboxUnavailable
    }
}

/// A container image, by the name in the settings and by its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerImage {
    /// The name.
    pub name: String,
    /// The image id that podman or docker reports: 64 hexadecimal digits.
    pub id: String,
}

impl ContainerImage {
    /// How many digits of an id are shown to people.
    const SHOWN: usize = 12;

    /// Returns the image with the start of its id.
    pub(crate) fn describe(&self) -> String {
        let short = self.id.get(..Self::SHOWN).unwrap_or(&self.id);
        format!("{} ({short})", self.name)
    }
}

/// The way that is taken, and why no stronger one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxChoice {
    /// The way.
    pub mode: SandboxMode,
    /// The image of the mode `container`.
    pub image: Option<ContainerImage>,
    /// The modes tried before it, each with the reason why it does not work.
    pub missing: Vec<SandboxUnavailable>,
}

impl SandboxChoice {
    /// Says in a line how commands are confined.
    pub fn describe(&self) -> String {
        let what = match self.mode {
            SandboxMode::Namespaces => {
                "commands are confined by namespaces: system, worktree and a private home are \
                visible"
            }
            SandboxMode::Container => {
                "commands are confined by namespaces: the system of an image, worktree and a \
                private home are visible"
            }
            SandboxMode::Landlock => {
                "commands are confined by landlock: system, worktree and a private home are \
                readable; the network is open"
            }
            SandboxMode::None => {
                "commands are not confined, as requested; changes of the issue store are detected \
                and reported"
            }
        };
        let missing = self.missing.iter();
        let why: String = missing
            .map(|missing| format!(" (no {}: {})", missing.mode, missing.why))
            .collect();
        let image = self.image.as_ref();
        let image = image.map_or_else(String::new, |image| format!("; image {}", image.describe()));
        format!("{what}{image}{why}")
    }
}

/// Takes the way that was asked for, or the strongest that works; `works`
/// returns why one does not work, and is called no more often than needed.
///
/// # Errors
///
/// [`SandboxUnavailable`] where one was asked for that does not work: it is
/// never exchanged for a weaker one. The same if none works and `none` was not
/// requested.
pub fn choose(
    asked: Option<SandboxMode>,
    mut works: impl FnMut(SandboxMode) -> Result<(), String>,
) -> Result<SandboxChoice, SandboxUnavailable> {
    let taken = |mode, missing| {
        Ok(SandboxChoice {
            mode,
            image: None,
            missing,
        })
    };
    match asked {
        Some(SandboxMode::None) => return taken(SandboxMode::None, Vec::new()),
        Some(mode) => {
            works(mode).map_err(|why| SandboxUnavailable { mode, why })?;
            return taken(mode, Vec::new());
        }
        None => {}
    }
    let mut missing: Vec<SandboxUnavailable> = Vec::new();
    for mode in SandboxMode::BY_STRENGTH {
        match works(mode) {
            Ok(()) => return taken(mode, missing),
            Err(why) => missing.push(SandboxUnavailable { mode, why }),
        }
    }
    let mode = SandboxMode::Namespaces;
    let why: Vec<String> = missing
        .iter()
        .map(|missing| match missing.mode == mode {
            true => missing.why.clone(),
            false => format!("nor does `{}`: {}", missing.mode, missing.why),
        })
        .collect();
    let why = why.join("; ");
    Err(SandboxUnavailable { mode, why })
}

/// Keeps of the paths that are wanted beside a lane's own those that neither
/// hold nor are in anything closed: the narrower denial wins, and a list of
/// what is open cannot say "but not this".
pub fn admitted(
    wanted: impl IntoIterator<Item = PathBuf>,
    closed: &[PathBuf],
) -> BTreeSet<PathBuf> {
    let meets = |path: &Path| {
        closed
            .iter()
            .any(|closed| closed.starts_with(path) || path.starts_with(closed))
    };
    wanted.into_iter().filter(|path| !meets(path)).collect()
}

/// Leaves out what is below another path of the list: it is open with it, and a
/// command could put a link in its place.
pub fn outermost(paths: impl IntoIterator<Item = PathBuf>) -> BTreeSet<PathBuf> {
    // In this order a folder comes just before all that is below it.
    let sorted: BTreeSet<PathBuf> = paths.into_iter().collect();
    let mut kept: Vec<PathBuf> = Vec::new();
    for path in sorted {
        if !kept.last().is_some_and(|above| path.starts_with(above)) {
            kept.push(path);
        }
    }
    kept.into_iter().collect()
}

/// Returns what is closed and yet is in a path that is open.
pub fn exposed<'a>(open: &[PathBuf], closed: &'a [PathBuf]) -> Vec<&'a Path> {
    closed
        .iter()
        .filter(|closed| open.iter().any(|open| closed.starts_with(open)))
        .map(PathBuf::as_path)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn the_strongest_that_works_is_taken_by_default() {
        let all = choose(None, |_| Ok(())).unwrap();
        assert_eq!(all.mode, SandboxMode::Namespaces);
        let second = choose(None, |mode| match mode {
            SandboxMode::Namespaces => Err("they are switched off".to_owned()),
            _ => Ok(()),
        })
        .unwrap();
        assert_eq!(second.mode, SandboxMode::Landlock);
        assert!(
            second
                .describe()
                .ends_with("(no namespaces: they are switched off)")
        );
    }

    #[test]
    fn a_batch_without_confinement_is_asked_for_by_name_alone() {
        let refused = choose(None, |mode| Err(format!("no {mode}"))).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "the sandbox `namespaces` does not work here: no namespaces; nor does `landlock`: no landlock"
        );
        let none = choose(Some(SandboxMode::None), |_| Err(String::new())).unwrap();
        assert_eq!(none.mode, SandboxMode::None);
        assert!(none.describe().contains("as requested"));
    }

    #[test]
    fn what_was_asked_for_is_never_exchanged_for_less() {
        let refused = choose(Some(SandboxMode::Namespaces), |mode| match mode {
            SandboxMode::Namespaces => Err("they are switched off".to_owned()),
            _ => Ok(()),
        });
        assert_eq!(
            refused.unwrap_err().to_string(),
            "the sandbox `namespaces` does not work here: they are switched off"
        );
        assert_eq!("bubblewrap".parse(), Ok(SandboxMode::Namespaces));
    }

    #[test]
    fn a_container_is_taken_only_where_it_is_asked_for() {
        let mut choice = choose(Some(SandboxMode::Container), |_| Ok(())).unwrap();
        assert_eq!("container".parse(), Ok(choice.mode));
        assert!(choice.mode.has_view());
        choice.image = Some(ContainerImage {
            name: "debian:12".to_owned(),
            id: "0123456789abcdef".repeat(4),
        });
        let text = choice.describe();
        assert!(text.ends_with("; image debian:12 (0123456789ab)"), "{text}");
        let default = choose(None, |mode| match mode {
            SandboxMode::Container => Ok(()),
            mode => Err(format!("no {mode}")),
        });
        assert!(default.is_err());
    }

    #[test]
    fn a_path_that_holds_or_is_in_what_is_closed_is_not_admitted() {
        let closed = paths(&["/h/u/.cache/work/repo", "/h/u/lanes/b"]);
        let wanted = paths(&[
            "/h/u/.cache",
            "/h/u/.cargo/registry",
            "/h/u/lanes/b/target",
            "/h/u/.cache/work/repo",
            "/h/u/lanes/bc",
        ]);
        assert_eq!(
            admitted(wanted, &closed),
            paths(&["/h/u/.cargo/registry", "/h/u/lanes/bc"])
                .into_iter()
                .collect()
        );
    }

    #[test]
    fn what_is_below_another_path_is_left_out() {
        assert_eq!(
            outermost(paths(&["/a/b", "/a", "/a.b/c", "/ab", "/a/c/d"])),
            paths(&["/a", "/a.b/c", "/ab"]).into_iter().collect()
        );
    }

    #[test]
    fn what_is_closed_within_an_open_path_is_exposed() {
        let closed = paths(&["/w/.premath", "/x"]);
        assert_eq!(
            exposed(&paths(&["/w"]), &closed),
            [Path::new("/w/.premath")]
        );
        assert!(exposed(&paths(&["/w2"]), &closed).is_empty());
    }
}
