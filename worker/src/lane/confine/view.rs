//! What a command of a lane sees in namespaces of its own.

use super::ConfineError;
use crate::lane::Lane;
use crate::lane::command::Phase;
use crate::sandbox::{PrivateHome, Scene, Seed, Stack};
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces::Loopback;
use std::collections::BTreeSet;
use std::fs::FileType;
use std::io;
use std::path::{Path, PathBuf};

/// What a command has in its place that not every command has.
#[derive(Debug, Default)]
pub(super) struct CommandPlace {
    pub(super) network: Option<Loopback>,
    pub(super) stack: Option<Stack>,
    pub(super) seeds: Vec<Seed>,
}

impl Lane {
    /// Gives a command its view.
    pub(super) fn see(
        &self,
        phase: Phase,
        home: &PrivateHome,
        place: CommandPlace,
        spec: &mut CommandSpec,
    ) -> Result<(), ConfineError> {
        let confinement = &self.confinement;
        let folder = self.folder_of(phase);
        let is_inside = |path: &Path| path != folder && path.starts_with(folder) && path.is_dir();
        let roots = &self.batch.settings.roots;
        let mut covered: Vec<PathBuf> = [roots.issues.parent(), roots.trajectory.parent()]
            .into_iter()
            .flatten()
            .filter(|path| is_inside(path))
            .map(Path::to_path_buf)
            .collect();
        covered.dedup();
        let mut hidden: Vec<PathBuf> = confinement.others.clone();
        hidden.extend(roots.witnesses.parent().map(Path::to_path_buf));
        hidden.retain(|path| is_inside(path));
        let (emptied, secret_folders) = match phase.is_verification() {
            true => (Vec::new(), Vec::new()),
            false => self.secrets(folder, [&covered, &hidden]),
        };
        hidden.extend(secret_folders);
        let (writable, readable) = match phase.is_verification() {
            true => (Vec::new(), Vec::new()),
            false => self.handed_out(phase, folder, !covered.is_empty()),
        };
        let scene = Scene {
            host: &confinement.host,
            wished: &confinement.wished,
            open_home: confinement.open_home.as_deref(),
            folder,
            at: self.seen_by(phase),
            stack: place.stack,
            seeds: place.seeds,
            git: self.git_of(phase),
            covered,
            hidden,
            emptied,
            writable,
            readable,
        };
        scene
            .give(home, place.network, &self.batch.settings.resources, spec)
            .map_err(ConfineError::Scratch)
    }

    /// Returns the files and the folders of a person's own worktree that hold
    /// secrets, where no place of the view is around them or in them.
    fn secrets(&self, folder: &Path, places: [&Vec<PathBuf>; 2]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let own = self.tree.kept_out().secrets();
        let is_apart = |path: &PathBuf| {
            let mut places = places.into_iter().flatten();
            !places.any(|place| path.starts_with(place) || place.starts_with(path))
        };
        let kind = |path: &Path| Ok(std::fs::symlink_metadata(path)?.file_type());
        let found = own.filter_map(|path| seen(folder, path, kind));
        let found: BTreeSet<(PathBuf, bool)> = found.filter(|(path, _)| is_apart(path)).collect();
        let (folders, files): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, is_dir)| *is_dir);
        let paths = |found: Vec<(PathBuf, bool)>| found.into_iter().map(|(path, _)| path).collect();
        (paths(files), paths(folders))
    }

    /// Returns what a command has of the harness's own, to write and to read:
    /// the files of its step, its session and, for the work, the issues.
    pub(super) fn handed_out(
        &self,
        phase: Phase,
        folder: &Path,
        is_covered: bool,
    ) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let mut writable = Vec::new();
        let mut readable = Vec::new();
        let step = &self.roots.step;
        if step.is_dir() && (is_covered || !step.starts_with(folder)) {
            writable.push(step.clone());
        }
        // In another world the lane's own worktree is not there.
        let session = &self.roots.session;
        if !session.starts_with(folder) && session.is_file() {
            readable.push(session.clone());
        }
        // Only the file: a lock beside it could be taken.
        let issues = &self.batch.settings.roots.issues;
        if phase.is_work() && issues.is_file() {
            readable.push(issues.clone());
        }
        (writable, readable)
    }
}

/// Returns the file or folder to hide for a secret of a folder, and whether it is
/// a folder; `None` where nothing is, and behind a symlink, which a command made.
/// A folder on the way that is closed to its owner is hidden whole: a command
/// could open it.
fn seen(
    folder: &Path,
    secret: &Path,
    kind: impl Fn(&Path) -> io::Result<FileType>,
) -> Option<(PathBuf, bool)> {
    let mut here = folder.to_path_buf();
    let mut names = secret.iter().peekable();
    while let Some(name) = names.next() {
        let above = here.clone();
        here.push(name);
        let found = match kind(&here) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return (above != folder).then_some((above, true));
            }
            found => found.ok()?,
        };
        if names.peek().is_none() {
            let is_hidden = found.is_file() || found.is_dir();
            return is_hidden.then_some((here, found.is_dir()));
        }
        if !found.is_dir() {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_a_closed_folder_is_hidden_with_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        std::fs::create_dir_all(at("conf/deep")).unwrap();
        std::fs::write(at("conf/deep/.env"), "A=1").unwrap();
        std::os::unix::fs::symlink("conf", at("link")).unwrap();
        let closed = std::cell::Cell::new(None);
        // Root may enter every folder.
        let kind = |path: &Path| match closed.get() {
            Some(closed) if path != root.path().join(closed) && path.starts_with(at(closed)) => {
                Err(io::ErrorKind::PermissionDenied.into())
            }
            _ => Ok(std::fs::symlink_metadata(path)?.file_type()),
        };
        let hidden = |secret: &str| seen(root.path(), Path::new(secret), kind);
        assert_eq!(
            hidden("conf/deep/.env"),
            Some((at("conf/deep/.env"), false))
        );
        assert_eq!(hidden("conf/deep"), Some((at("conf/deep"), true)));
        for absent in ["conf/.env", "link/deep/.env", "link", "none/.env"] {
            assert_eq!(hidden(absent), None, "{absent}");
        }
        for folder in ["conf/deep", "conf"] {
            closed.set(Some(folder));
            assert_eq!(hidden("conf/deep/.env"), Some((at(folder), true)));
        }
    }
}
