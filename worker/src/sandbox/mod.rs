//! What a confined command has of this machine: the system, the toolchains of
//! its `PATH`, the caches of build tools, and what an agent signs in with
//! (`isolation.md` 9).
//!
//! Everything else of the home and of the machine is not there. A cache or toolchain
//! that steps can write is left out: it would be trusted by the commands of others.

mod agent;
mod cache;
mod connect;
mod explain;
mod home;
mod image;
mod provided;
mod scene;
mod system;
mod toolchain;
mod trial;
mod words;

pub(crate) use agent::{AgentState, TakenBack, folder_variables};
pub(crate) use cache::Cache;
pub(crate) use connect::connect;
pub use explain::{Explanation, Limits, Listed, Reach};
pub(crate) use home::PrivateHome;
pub(crate) use image::ImageSystem;
pub use provided::ProvideError;
pub(crate) use provided::provide;
pub(crate) use scene::{Scene, Seed, Stack, set, set_home};
pub use trial::{TrialError, try_command};
pub(crate) use words::paths_named_by;

use crate::environment;
use crate::settings::{Settings, StepFolders, outside, path_of};
use crate::supervisor::confine::image::Image;
use premath_kernel::policy::sandbox::SandboxMode;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Why something may be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReadReason {
    /// It belongs to the operating system.
    System,
    /// It belongs to a folder of the `PATH`.
    Path,
    /// A command of the settings names it.
    Command,
    /// The key `read` or `write` of `[sandbox]` names it.
    Setting,
}

impl ReadReason {
    /// Returns the source in a few words.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Path => "PATH",
            Self::Command => "a command of the settings",
            Self::Setting => "[sandbox]",
        }
    }
}

/// What of the machine a confined command may read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HostAccess {
    /// Files and folders, without links on the way, with the reason.
    pub read: BTreeMap<PathBuf, ReadReason>,
    /// Links of the system, with their texts.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// What is in them and is hidden.
    pub hidden: Vec<PathBuf>,
    /// The caches of build tools.
    pub caches: Vec<Cache>,
    /// Folders of caches and toolchains that are left out, for steps can write them.
    pub left_out: BTreeSet<PathBuf>,
    /// Variables that say where a toolchain is.
    pub variables: Vec<(&'static str, OsString)>,
    /// The image that the system is of, where it is not the machine's.
    pub image: Option<ImageSystem>,
}

/// The arguments of `HostAccess::find`.
#[derive(Clone, Debug)]
pub(crate) struct Search<'a> {
    /// The home of the user.
    pub home: Option<&'a Path>,
    /// The variable `PATH` of the commands, without folders that steps write.
    pub path: OsString,
    /// What steps write: no cache or toolchain is taken from there.
    pub steps: StepFolders,
    /// Whether commands have the caches; without a layer over them a tool that writes
    /// its cache fails.
    pub has_caches: bool,
    /// Looks a variable up.
    pub variable: fn(&str) -> Option<PathBuf>,
    /// The commands of the settings.
    pub commands: Vec<String>,
    /// What a person added by `read`.
    pub read: Vec<PathBuf>,
    /// The image whose system takes the place of the machine's, with its
    /// toolchains.
    pub image: Option<&'a Image>,
}

impl<'a> Search<'a> {
    /// Returns what a batch searches the machine by for what its commands may read.
    pub(crate) fn of(settings: &'a Settings) -> Self {
        let hooks = &settings.hooks;
        let of_hooks = [&hooks.boot, &hooks.stop, &hooks.startup];
        let mut commands: Vec<String> = of_hooks.into_iter().flatten().cloned().collect();
        commands.push(hooks.verify.clone());
        commands.extend(settings.setup.iter().map(|setup| setup.command.clone()));
        commands.extend(settings.landing.check.clone());
        let own_checks = settings.own_checks.values();
        commands.extend(own_checks.map(|check| check.command.clone()));
        commands.extend(settings.work.all().map(|work| work.command.clone()));
        let path = environment::path(settings.inherited(), &settings.environment);
        let steps = StepFolders::of(&settings.roots.repository);
        Self {
            home: settings.sandbox.home.as_deref(),
            path: outside(&path.unwrap_or_default(), &steps),
            steps,
            has_caches: settings.sandbox.choice.mode.has_view(),
            variable: path_of,
            commands,
            read: settings.sandbox.read.clone(),
            image: settings.sandbox.image.as_ref(),
        }
    }
}

impl HostAccess {
    /// Finds out what is here. The result is the same as long as the files are.
    pub(crate) fn find(search: &Search<'_>) -> Self {
        let mut host = Self::default();
        match search.image {
            None => {
                system::add(&mut host);
                toolchain::add(&mut host, search);
            }
            Some(image) => {
                system::add_machine(&mut host);
                toolchain::add_of_image(&mut host, image);
                host.image = Some(ImageSystem::of(image));
            }
        }
        for command in &search.commands {
            for path in paths_named_by(command) {
                // A path of the system means the image's file.
                if search.image.is_none() || !system::is_of_the_system(&path) {
                    host.reads(&path, ReadReason::Command);
                }
            }
        }
        for path in &search.read {
            host.reads(path, ReadReason::Setting);
        }
        if search.has_caches {
            host.add_caches(cache::find(search.home, search.variable), &search.steps);
        }
        host
    }

    /// Adds caches but for those that steps can write: what one step left there would
    /// decide the verifications of others.
    fn add_caches(&mut self, caches: Vec<Cache>, steps: &StepFolders) {
        for cache in caches {
            match steps.meet(&cache.folder) {
                true => drop(self.left_out.insert(cache.folder)),
                false => self.caches.push(cache),
            }
        }
    }

    /// Adds a file or folder where it is; what can be read already is not added.
    fn reads(&mut self, path: &Path, source: ReadReason) {
        let Ok(path) = std::fs::canonicalize(path) else {
            return;
        };
        if !self.may_read(&path) {
            self.read.insert(path, source);
        }
    }

    /// Returns whether a path is in the list, or below something that is.
    pub(crate) fn may_read(&self, path: &Path) -> bool {
        path.ancestors().any(|above| self.read.contains_key(above))
    }
}

/// Says which caches and toolchains the commands of a batch do without, for steps can
/// write them; `None` where there is none.
pub fn left_out_warning(settings: &Settings) -> Option<String> {
    if settings.sandbox.choice.mode == SandboxMode::None {
        return None;
    }
    let left_out = HostAccess::find(&Search::of(settings)).left_out;
    let names: Vec<String> = left_out
        .iter()
        .map(|folder| folder.display().to_string())
        .collect();
    (!names.is_empty()).then(|| {
        format!(
            "commands have no cache or toolchain of {}: steps can write there, for it is in or \
             around a worktree of the repository; move it elsewhere, and set its variable",
            names.join(", ")
        )
    })
}

#[cfg(test)]
impl<'a> Search<'a> {
    /// Looks for what a home and a path have, where no step writes.
    fn plain(home: &'a Path, path: OsString, variable: fn(&str) -> Option<PathBuf>) -> Self {
        Self {
            home: Some(home),
            path,
            steps: StepFolders::default(),
            has_caches: false,
            variable,
            commands: Vec::new(),
            read: Vec::new(),
            image: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::sync::OnceLock;

    /// A function has no folder of its own to name.
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();

    fn variable(name: &str) -> Option<PathBuf> {
        let at = match name {
            "PIP_CACHE_DIR" => "repo/.cache/pip",
            "CCACHE_DIR" => "lanes",
            "GOMODCACHE" => "link",
            "RUSTUP_HOME" => "repo/rustup",
            "UV_CACHE_DIR" => "uv",
            _ => return None,
        };
        Some(FOLDER.get()?.join(at))
    }

    #[test]
    fn no_cache_or_toolchain_is_taken_from_where_steps_write() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for there in [
            "repo/.cache/pip",
            "repo/rustup/toolchains/x/bin",
            "lanes/one/mod",
            "uv",
            "home/.cargo/bin",
            "home/.cargo/registry",
        ] {
            fs::create_dir_all(root.join(there)).unwrap();
        }
        std::os::unix::fs::symlink("lanes/one/mod", root.join("link")).unwrap();
        let root = FOLDER.get_or_init(|| root);
        let at = |name: &str| root.join(name);
        let home = at("home");
        let mut search = Search {
            steps: StepFolders::at(&[at("repo"), at("lanes/one")]),
            has_caches: true,
            ..Search::plain(&home, at("home/.cargo/bin").into(), variable)
        };
        let host = HostAccess::find(&search);
        let caches: Vec<&Path> = host.caches.iter().map(|cache| &*cache.folder).collect();
        assert_eq!(caches, [at("home/.cargo/registry"), at("uv")]);
        assert!(host.may_read(&at("home/.cargo/bin")));
        assert!(!host.may_read(&at("repo/rustup/toolchains/x")));
        assert!(host.variables.is_empty(), "{:?}", host.variables);
        let left_out = ["lanes", "lanes/one/mod", "repo/.cache/pip", "repo/rustup"];
        assert_eq!(host.left_out, left_out.map(at).into());
        search.has_caches = false;
        let host = HostAccess::find(&search);
        assert!(host.caches.is_empty());
        assert_eq!(host.left_out, [at("repo/rustup")].into());
    }
}
