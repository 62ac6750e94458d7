//! `[sandbox]`: how commands are confined, and what they may write beside what
//! is their own.

use super::keys::SandboxKeys;
use super::values::Words;
use super::{
    EnvironmentRules, FileSettings, LoopFlags, SettingsError, StepFolders, absolute, path_of,
};
use crate::environment;
use crate::supervisor::confine::image::{Image, ImageError};
use crate::supervisor::confine::works;
use premath_kernel::policy::sandbox::{SandboxChoice, SandboxMode, SandboxUnavailable, choose};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The sandbox settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sandbox {
    /// What is taken here, and why nothing stronger.
    pub choice: SandboxChoice,
    /// The image of the mode `container`.
    pub image: Option<Image>,
    /// What a person opened to be read.
    pub read: Vec<PathBuf>,
    /// What a person opened to be written.
    pub write: Vec<PathBuf>,
    /// The home of the user.
    pub home: Option<PathBuf>,
}

/// What flags, environment and file ask for.
struct Asked {
    mode: Option<SandboxMode>,
    image: Option<String>,
}

impl Asked {
    /// An image without a mode asks for the mode that has one.
    fn of(flags: &LoopFlags, table: &SandboxKeys) -> Result<Self, SettingsError> {
        let set = |flag: &Option<String>, variable: &str| {
            let set = flag.clone().or_else(|| super::variable_of(variable))?;
            let text = set.trim();
            (!text.is_empty()).then(|| text.to_owned())
        };
        let image = set(&flags.sandbox_image, "PREMATH_SANDBOX_IMAGE");
        let image = image.or_else(|| table.image.clone());
        let mode = match set(&flags.sandbox, "PREMATH_SANDBOX") {
            Some(word) => Some(word.parse().map_err(|error| SettingsError::Value {
                name: "--sandbox",
                detail: format!("{error}"),
            })?),
            None => table.mode.map(|word| word.0),
        };
        let by_image = image.is_some().then_some(SandboxMode::Container);
        Ok(Self {
            mode: mode.or(by_image),
            image,
        })
    }

    /// Takes the mode, or the strongest that works, with the image that it
    /// needs.
    fn settled(
        &self,
        repository: &Path,
    ) -> Result<(SandboxChoice, Option<Image>), SandboxUnavailable> {
        let mut image = None;
        let mut choice = choose(self.mode, |mode| {
            works(mode)?;
            if mode == SandboxMode::Container {
                let obtained = self.obtain(repository);
                image = Some(obtained.map_err(|error| premath_memory::cause::chain(&error))?);
            }
            Ok(())
        })?;
        choice.image = image.as_ref().map(|image: &Image| image.named.clone());
        Ok((choice, image))
    }

    fn obtain(&self, repository: &Path) -> Result<Image, ImageError> {
        let name = self.image.as_deref().ok_or(ImageError::Missing)?;
        let refused = |folder: &Path, detail: &str| ImageError::Cache {
            folder: folder.to_path_buf(),
            detail: detail.to_owned(),
        };
        let cache =
            image_cache().ok_or_else(|| refused(Path::new("~/.cache"), "HOME is not set"))?;
        if cache.starts_with(repository) {
            let detail = "it is in the repository; set XDG_CACHE_HOME to a folder outside";
            return Err(refused(&cache, detail));
        }
        Image::obtain(name, &trusted_path(repository), &cache)
    }
}

/// Returns where the files of container images are kept, by `XDG_CACHE_HOME` and
/// `HOME`.
pub fn image_cache() -> Option<PathBuf> {
    let cache = path_of("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(home()?.join(".cache")))?;
    Some(cache.join("premath/images"))
}

/// Returns the folders of PATH whose programs may run unconfined.
pub fn trusted_path(repository: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    outside(&path, &StepFolders::of(repository))
}

/// Returns the absolute folders of a path that are in no folder of steps. A step may
/// have written there: a program that would run unconfined, or a link to a file that
/// a later step would then read.
pub(crate) fn outside(path: &OsStr, steps: &StepFolders) -> OsString {
    let folders = std::env::split_paths(path);
    let folders = folders.filter(|folder| folder.is_absolute() && !steps.hold(folder));
    std::env::join_paths(folders).unwrap_or_default()
}

fn home() -> Option<PathBuf> {
    path_of("HOME").filter(|home| home.is_absolute())
}

impl Sandbox {
    /// Takes the mode of flag, environment or file, or the strongest that works.
    pub(super) fn resolve(
        flags: &LoopFlags,
        file: &FileSettings,
        root: &Path,
    ) -> Result<Self, SettingsError> {
        let (choice, image) = Asked::of(flags, &file.sandbox)?.settled(root)?;
        let home = home();
        let expanded = |name: &'static str, list: &Option<Words>| {
            let path = |text: &String| {
                let path = expand(text, home.as_deref(), root).ok_or(SettingsError::Value {
                    name,
                    detail: format!("cannot resolve `{text}`: HOME is not set"),
                })?;
                Ok(std::fs::canonicalize(&path).unwrap_or(path))
            };
            let list = list.iter().flat_map(|words| &words.0);
            list.map(path)
                .collect::<Result<Vec<PathBuf>, SettingsError>>()
        };
        let mut read = expanded("`read` of [sandbox]", &file.sandbox.read)?;
        let mut write = expanded("`write` of [sandbox]", &file.sandbox.write)?;
        read.extend(named_by("PREMATH_SANDBOX_READ"));
        write.extend(named_by("PREMATH_SANDBOX_WRITE"));
        Ok(Self {
            choice,
            image,
            read,
            write,
            home,
        })
    }

    /// Looks how the commands of a repository would be confined, by environment
    /// and file. No image is pulled or unpacked for it.
    ///
    /// # Errors
    ///
    /// [`SandboxUnavailable`].
    pub fn look(repository: &Path) -> Result<SandboxChoice, SandboxUnavailable> {
        let file = FileSettings::load(None, repository).unwrap_or_default();
        let asked = Asked::of(&LoopFlags::default(), &file.sandbox);
        match asked {
            Ok(Asked {
                mode: Some(mode @ SandboxMode::Container),
                image,
            }) => {
                let mut found = None;
                let name = image.unwrap_or_default();
                let mut choice = choose(Some(mode), |mode| {
                    works(mode)?;
                    let looked = Image::look(&name, &trusted_path(repository));
                    found = Some(looked.map_err(|error| premath_memory::cause::chain(&error))?);
                    Ok(())
                })?;
                choice.image = found;
                Ok(choice)
            }
            Ok(Asked { mode, .. }) => choose(mode, works),
            Err(_) => choose(None, works),
        }
    }

    /// Returns what commands inherit before any rule.
    pub(crate) fn inherited(&self, rules: &EnvironmentRules) -> Vec<(OsString, OsString)> {
        let image = self.image.as_ref();
        environment::inherited(image.map(|image| image.variables.as_slice()), rules)
    }

    /// Returns the folder of the image's files, which no command may write.
    pub(crate) fn image_folder(&self) -> Option<&Path> {
        let image = self.image.as_ref()?;
        image.files.folder().parent()
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
    fn no_program_is_taken_from_a_worktree() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["repo/bin", "lanes/one/bin", "tools"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink("repo/bin", at("link")).unwrap();
        let path = [
            "repo/bin",
            "link",
            "tools",
            "lanes/one/bin",
            "tools/../repo/bin",
            "absent",
        ];
        let path = std::env::join_paths(path.map(at)).unwrap();
        let steps = StepFolders::at(&[at("repo"), at("lanes/one")]);
        let kept = outside(&path, &steps);
        let kept: Vec<PathBuf> = std::env::split_paths(&kept).collect();
        assert_eq!(kept, [at("tools"), at("absent")]);
        let none = StepFolders::default();
        assert_eq!(outside(OsStr::new("bin:.:/usr/bin:"), &none), "/usr/bin");
    }

    #[test]
    fn an_image_asks_for_the_mode_that_has_one() {
        let asked = |mode: Option<&str>, image: Option<&str>, text: &str| {
            let flags = LoopFlags {
                sandbox: mode.map(str::to_owned),
                sandbox_image: image.map(str::to_owned),
                ..LoopFlags::default()
            };
            let file = FileSettings::parse(text, Path::new("h.toml")).unwrap();
            let asked = Asked::of(&flags, &file.sandbox).unwrap();
            (asked.mode, asked.image)
        };
        let container = Some(SandboxMode::Container);
        let table = "[sandbox]\nimage = \"debian:12\"\n";
        let debian = Some("debian:12".to_owned());
        assert_eq!(asked(None, None, table), (container, debian.clone()));
        assert_eq!(
            asked(Some("landlock"), None, table),
            (Some(SandboxMode::Landlock), debian)
        );
        assert_eq!(
            asked(None, Some("alpine"), table),
            (container, Some("alpine".to_owned()))
        );
        assert_eq!(
            asked(Some("container"), None, ""),
            (container, None),
            "refused later: no image is set"
        );
        assert_eq!(asked(None, None, ""), (None, None));
    }

    #[test]
    fn the_mode_that_is_configured_is_the_one_that_is_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        for mode in [SandboxMode::None, SandboxMode::Landlock] {
            let text = format!("[sandbox]\nmode = \"{mode}\"\n");
            std::fs::write(folder.path().join("harness.toml"), text).unwrap();
            let looked = Sandbox::look(folder.path());
            assert_eq!(looked, choose(Some(mode), works));
        }
    }

    #[test]
    fn the_table_is_read_and_a_wrong_word_is_named() {
        let parse = |text: &str| FileSettings::parse(text, Path::new("h.toml"));
        let file = parse("[sandbox]\nmode = \"none\"\nwrite = [\"~/.gradle\"]\n").unwrap();
        assert_eq!(file.sandbox.mode.unwrap().0, SandboxMode::None);
        assert_eq!(file.sandbox.write.unwrap().0, ["~/.gradle"]);
        let error = parse("[sandbox]\nmode = \"chroot\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "h.toml:2: `mode`: invalid sandbox mode `chroot`: expected `namespaces`, `container`, \
            `landlock` or `none`"
        );
    }
}
