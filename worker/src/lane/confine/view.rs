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
        let (writable, readable) = match phase.is_verification() {
            true => (Vec::new(), Vec::new()),
            false => self.handed_out(phase, folder, !covered.is_empty()),
        };
        let emptied = match phase.is_verification() {
            true => Vec::new(),
            false => self.secrets(folder),
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

    /// Returns the files of a person's own worktree that hold secrets. A file
    /// behind a symlink that a command made is left out.
    fn secrets(&self, folder: &Path) -> Vec<PathBuf> {
        let own = self.tree.kept_out().secrets();
        let found = own.map(|path| folder.join(path)).filter(|path| {
            let is_file = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_file());
            let above = path
                .parent()
                .and_then(|above| std::fs::canonicalize(above).ok());
            is_file && above.as_deref() == path.parent()
        });
        found.collect()
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
