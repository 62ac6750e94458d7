//! What one command has in namespaces of its own: the machine's part, its
//! private folders, and the worktree that it works in.

use super::{HostAccess, PrivateHome, ReadReason, folder_variables};
use crate::environment::PROXY_PORT;
use crate::settings::Resources;
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces::{CommandBounds, Loopback, OWN, View, ViewEntry};
use premath_kernel::policy::network::variables;
use premath_worktree::tree::{LFS_OBJECTS, OBJECTS, PrivateGit};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

/// Where a command's home is.
pub(super) const HOME: &str = "/premath/home";

/// What a command works with.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    /// What of the machine it has.
    pub(crate) host: &'a HostAccess,
    /// What a person opened to be written.
    pub(crate) wished: &'a BTreeSet<PathBuf>,
    /// The home of the user, where a person opened all of it.
    pub(crate) open_home: Option<&'a Path>,
    /// Where it runs, and what it may write.
    pub(crate) folder: &'a Path,
    /// Where it sees that folder.
    pub(crate) at: &'a Path,
    /// What it sees there instead, where its changes are thrown away.
    pub(crate) stack: Option<Stack>,
    /// Caches in `folder` that it begins with.
    pub(crate) seeds: Vec<Seed>,
    /// The git folder that it sees.
    pub(crate) git: Option<&'a PrivateGit>,
    /// Folders in `folder` in whose place it sees an empty one of its own.
    pub(crate) covered: Vec<PathBuf>,
    /// Folders in `folder` in whose place it sees one that stays empty.
    pub(crate) hidden: Vec<PathBuf>,
    /// Files in `folder` that it sees empty.
    pub(crate) emptied: Vec<PathBuf>,
    /// What it may write beside that.
    pub(crate) writable: Vec<PathBuf>,
    /// What it may read beside that.
    pub(crate) readable: Vec<PathBuf>,
}

/// Folders above each other that a command sees as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The folders, the first over the others; none of them is changed.
    pub(crate) lower: Vec<PathBuf>,
    /// The folder that takes the changes.
    pub(crate) changes: PathBuf,
}

/// A cache that a command begins with: what it changes is thrown away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seed {
    /// The folder with the files; it is not changed.
    pub(crate) lower: PathBuf,
    /// Where the command sees it.
    pub(crate) at: PathBuf,
}

impl Scene<'_> {
    /// Gives a command its view, and the variables that go with it.
    ///
    /// # Errors
    ///
    /// What the system says about the private folders.
    pub(crate) fn give(
        &self,
        home: &PrivateHome,
        network: Option<Loopback>,
        resources: &Resources,
        spec: &mut CommandSpec,
    ) -> io::Result<()> {
        set_home(spec, self.open_home, Path::new(HOME), Path::new("/tmp"));
        for name in ["USER", "LOGNAME"] {
            if !spec.env.iter().any(|(other, _)| other == name) {
                set(spec, name, "premath");
            }
        }
        let mut places = self.of_the_machine(home)?;
        places.extend(self.of_the_worktree(home)?);
        if let Some(image) = &self.host.image {
            image.put_below(&mut places, home)?;
        }
        if let Some(network) = &network {
            if network.relays.iter().any(|relay| relay.port == PROXY_PORT) {
                for (name, value) in variables(PROXY_PORT) {
                    set(spec, name, value);
                }
            }
            if !network.relays.is_empty() {
                let at = Path::new(OWN).join("net");
                places.push(ViewEntry::read_only_at(&home.sockets(), &at));
            }
        }
        spec.view = Some(View {
            places,
            network,
            bounds: CommandBounds {
                // Above what is watched, so that the watch says what it was.
                processes: resources.processes.map(|most| most + most / 4 + 16),
                open_files: resources.open_files,
                file_bytes: resources.disk,
            },
        });
        Ok(())
    }

    fn of_the_machine(&self, home: &PrivateHome) -> io::Result<Vec<ViewEntry>> {
        let host = self.host;
        // Before what may be in them.
        let mut places = vec![
            ViewEntry::fresh(&home.temporary(), Path::new("/tmp")),
            ViewEntry::fresh(&home.temporary(), Path::new("/var/tmp")),
            ViewEntry::fresh(&home.shared_memory(), Path::new("/dev/shm")),
            ViewEntry::fresh(&home.home(), Path::new(HOME)),
        ];
        places.extend(host.links.iter().map(|(at, to)| ViewEntry::link(to, at)));
        let is_in_open = |path: &Path| self.wished.iter().any(|open| path.starts_with(open));
        let (in_open, apart): (Vec<_>, Vec<_>) =
            host.read.iter().partition(|(path, _)| is_in_open(path));
        places.extend(apart.iter().map(|(path, _)| ViewEntry::read_only(path)));
        for hidden in host
            .hidden
            .iter()
            .filter(|path| host.may_read(path) && path.exists())
        {
            places.push(if hidden.is_dir() {
                ViewEntry::empty(hidden)
            } else {
                ViewEntry::read_only_at(Path::new("/dev/null"), hidden)
            });
        }
        for (number, cache) in host.caches.iter().enumerate() {
            let layer = home.layer(number)?;
            let at = Path::new(HOME).join(cache.at);
            places.push(ViewEntry::layered(&cache.folder, &layer, &at));
        }
        let wished = self.wished.iter().filter(|path| path.exists());
        places.extend(wished.map(|path| ViewEntry::writable(path, path)));
        // In a folder that may be written the programs stay as they are: a step
        // could change what verifies it.
        let programs = in_open.into_iter().filter(|(path, reason)| {
            **reason != ReadReason::Setting && !self.wished.contains(*path)
        });
        places.extend(programs.map(|(path, _)| ViewEntry::read_only(path)));
        Ok(places)
    }

    fn of_the_worktree(&self, home: &PrivateHome) -> io::Result<Vec<ViewEntry>> {
        let mut places = vec![match &self.stack {
            Some(stack) => ViewEntry::stacked(&stack.lower, &stack.changes, self.at),
            None => ViewEntry::writable(self.folder, self.at),
        }];
        // Their layers are numbered after those of the machine's caches.
        for (number, seed) in self.seeds.iter().enumerate() {
            let layer = home.layer(self.host.caches.len() + number)?;
            places.push(ViewEntry::seeded(&seed.lower, &layer, &seed.at));
        }
        places.extend(self.hidden.iter().map(|path| ViewEntry::empty(path)));
        if !self.emptied.is_empty() {
            let empty = home.empty_file()?;
            let emptied = self.emptied.iter();
            places.extend(emptied.map(|path| ViewEntry::read_only_at(&empty, path)));
        }
        let own = home.own();
        places.extend(self.covered.iter().map(|path| ViewEntry::fresh(&own, path)));
        places.extend(
            self.writable
                .iter()
                .map(|path| ViewEntry::writable(path, path)),
        );
        places.extend(self.readable.iter().map(|path| ViewEntry::read_only(path)));
        let Some(git) = self.git else {
            return Ok(places);
        };
        let at = self.at.join(".git");
        if self.folder.join(".git").is_dir() {
            places.push(ViewEntry::writable(&git.folder, &at));
        } else {
            let seen = Path::new(OWN).join("git");
            let file = home.write_git_file(&seen)?;
            places.push(ViewEntry::read_only_at(&file, &at));
            places.push(ViewEntry::writable(&git.folder, &seen));
        }
        for (number, store) in git.objects.iter().enumerate() {
            let at = Path::new(OBJECTS).join(number.to_string());
            places.push(ViewEntry::read_only_at(store, &at));
            // What the store borrows from itself is in the list too, and is not
            // where the store says.
            if store.join("info/alternates").exists() {
                places.push(ViewEntry::empty(&at.join("info")));
            }
        }
        if let Some(lfs) = &git.lfs {
            places.push(ViewEntry::read_only_at(lfs, Path::new(LFS_OBJECTS)));
        }
        Ok(places)
    }
}

/// Sets a variable of a command, in the place of an inherited one.
pub(crate) fn set(spec: &mut CommandSpec, name: &str, value: impl Into<OsString>) {
    spec.env.retain(|(other, _)| other != name);
    spec.env.push((name.into(), value.into()));
}

/// Sets where a command's home and temporary folder are.
pub(crate) fn set_home(spec: &mut CommandSpec, open: Option<&Path>, home: &Path, temporary: &Path) {
    for name in ["TEMP", "TMP", "TMPDIR"] {
        set(spec, name, temporary);
    }
    if let Some(open) = open {
        return set(spec, "HOME", open);
    }
    spec.env
        .retain(|(name, _)| !folder_variables().any(|folder| name == folder));
    set(spec, "HOME", home);
    set(spec, "CARGO_HOME", home.join(".cargo"));
}
