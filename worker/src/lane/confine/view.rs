//! What a command of a lane sees in namespaces of its own.

use super::ConfineError;
use crate::lane::Lane;
use crate::lane::command::Phase;
use crate::sandbox::{PrivateHome, Scene, Stack};
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces::Loopback;
use std::path::{Path, PathBuf};

impl Lane {
    /// Gives a command its view.
    pub(super) fn see(
        &self,
        phase: Phase,
        home: &PrivateHome,
        (network, stack): (Option<Loopback>, Option<Stack>),
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
            stack,
            git: self.git_of(phase),
            covered,
            hidden,
            emptied,
            writable,
            readable,
        };
        scene
            .give(home, network, &self.batch.settings.resources, spec)
            .map_err(ConfineError::Scratch)
    }

    /// Returns the files and the folders of a person's own worktree that hold
    /// secrets, where no place of the view is around them or in them. What is
    /// behind a symlink that a command made is left out.
    fn secrets(&self, folder: &Path, places: [&Vec<PathBuf>; 2]) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let own = self.tree.kept_out().secrets();
        let is_apart = |path: &PathBuf| {
            let mut places = places.into_iter().flatten();
            !places.any(|place| path.starts_with(place) || place.starts_with(path))
        };
        let is_real = |path: &PathBuf| {
            let above = path.parent().map(std::fs::canonicalize);
            let above = above.and_then(Result::ok);
            above.as_deref() == path.parent()
        };
        let found = own.map(|path| folder.join(path)).filter(is_apart);
        let found = found.filter(is_real).filter_map(|path| {
            let meta = std::fs::symlink_metadata(&path).ok()?;
            (meta.is_file() || meta.is_dir()).then_some((path, meta.is_dir()))
        });
        let (folders, files): (Vec<_>, Vec<_>) = found.partition(|(_, is_dir)| *is_dir);
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
        if phase == Phase::Work && issues.is_file() {
            readable.push(issues.clone());
        }
        (writable, readable)
    }
}
