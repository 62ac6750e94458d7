//! What a command sees in namespaces of its own.

use super::{ConfineError, set, set_proxy};
use crate::lane::Lane;
use crate::lane::command::Phase;
use crate::sandbox::PrivateHome;
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces::{Bounds, Loopback, OWN, Place, View};
use premath_worktree::tree::OBJECTS;
use std::path::{Path, PathBuf};

/// Where a command's home is.
const HOME: &str = "/premath/home";

impl Lane {
    /// Gives a command its view.
    pub(super) fn see(
        &self,
        phase: Phase,
        home: &PrivateHome,
        network: Option<Loopback>,
        spec: &mut CommandSpec,
    ) -> Result<(), ConfineError> {
        self.set_home(spec, Path::new(HOME), Path::new("/tmp"));
        for name in ["USER", "LOGNAME"] {
            if !spec.env.iter().any(|(other, _)| other == name) {
                set(spec, name, "premath");
            }
        }
        let mut places = self.host_places(home)?;
        places.extend(self.lane_places(phase, home)?);
        if let Some(network) = &network {
            set_proxy(spec, network);
            if !network.relays.is_empty() {
                let at = Path::new(OWN).join("net");
                places.push(Place::read_only_at(&home.sockets(), &at));
            }
        }
        let resources = &self.batch.settings.resources;
        spec.view = Some(View {
            places,
            network,
            bounds: Bounds {
                processes: resources.processes,
                open_files: resources.open_files,
                file_bytes: resources.disk,
            },
        });
        Ok(())
    }

    /// What a command has of the machine, and its private folders.
    fn host_places(&self, home: &PrivateHome) -> Result<Vec<Place>, ConfineError> {
        let host = &self.confinement.host;
        // Before what may lie in them.
        let mut places = vec![
            Place::fresh(&home.temporary(), Path::new("/tmp")),
            Place::fresh(&home.temporary(), Path::new("/var/tmp")),
            Place::fresh(&home.shared_memory(), Path::new("/dev/shm")),
            Place::fresh(&home.home(), Path::new(HOME)),
        ];
        places.extend(host.links.iter().map(|(at, to)| Place::link(to, at)));
        places.extend(host.read.keys().map(|path| Place::read_only(path)));
        for hidden in host.hidden.iter().filter(|path| host.may_read(path)) {
            places.push(if hidden.is_dir() {
                Place::empty(hidden)
            } else {
                Place::read_only_at(Path::new("/dev/null"), hidden)
            });
        }
        for (number, cache) in host.caches.iter().enumerate() {
            let layer = home.layer(number).map_err(ConfineError::Scratch)?;
            let at = Path::new(HOME).join(cache.at);
            places.push(Place::layered(&cache.folder, &layer, &at));
        }
        let wished = self.confinement.wished.iter().filter(|path| path.exists());
        places.extend(wished.map(|path| Place::writable(path, path)));
        Ok(places)
    }

    /// The lane's own: its files, its git folder, and what the harness hands it.
    fn lane_places(&self, phase: Phase, home: &PrivateHome) -> Result<Vec<Place>, ConfineError> {
        let folder = self.folder_of(phase);
        let mut places = vec![Place::writable(folder, folder)];
        let inside = self.confinement.others.iter();
        let inside = inside.filter(|other| other.starts_with(folder) && other.is_dir());
        places.extend(inside.map(|other| Place::empty(other)));
        places.extend(self.own_places(phase, folder, home));
        if let Some(git) = self.git_of(phase) {
            let at = folder.join(".git");
            if at.is_dir() {
                places.push(Place::writable(&git.folder, &at));
            } else {
                let seen = Path::new(OWN).join("git");
                let file = home.lead_to(&seen).map_err(ConfineError::Scratch)?;
                places.push(Place::read_only_at(&file, &at));
                places.push(Place::writable(&git.folder, &seen));
            }
            for (number, store) in git.objects.iter().enumerate() {
                let at = Path::new(OBJECTS).join(number.to_string());
                places.push(Place::read_only_at(store, &at));
            }
        }
        Ok(places)
    }

    /// What of the harness's own a command has: the files of its step and, for
    /// the work, the issues. In a main checkout the rest is covered.
    fn own_places(&self, phase: Phase, folder: &Path, home: &PrivateHome) -> Vec<Place> {
        let roots = &self.batch.settings.roots;
        let mut places = Vec::new();
        let is_covered = |path: &Path| path.starts_with(folder) && path.is_dir();
        for own in [roots.issues.parent(), roots.trajectory.parent()] {
            let at = own.unwrap_or(folder);
            if at != folder && is_covered(at) {
                places.push(Place::fresh(&home.own(), at));
            }
        }
        places.dedup();
        if let Some(artifacts) = roots.witnesses.parent().filter(|path| is_covered(path)) {
            places.push(Place::empty(artifacts));
        }
        if phase.is_verification() {
            return places;
        }
        let step: &PathBuf = &self.roots.step;
        if step.is_dir() && (!step.starts_with(folder) || !places.is_empty()) {
            places.push(Place::writable(step, step));
        }
        // In another world the lane's own worktree is not there.
        let session = &self.roots.session;
        if !session.starts_with(folder) && session.is_file() {
            places.push(Place::read_only(session));
        }
        // Only the file: a lock beside it could be taken.
        if phase == Phase::Work && roots.issues.is_file() {
            places.push(Place::read_only(&roots.issues));
        }
        places
    }
}
