//! Where a lane's commands run: the worktree for work, and a checkout of its
//! own for verifications. Each has a git folder that its commands may ruin and
//! that the harness never reads.

use super::command::Phase;
use super::warm::WarmSite;
use super::{BootError, Lane};
use crate::sandbox::{ProvideError, provide};
use crate::supervisor::confine::scratch;
use premath_memory::roots::LaneState;
use premath_memory::{StoreError, artifact};
use premath_worktree::checkout::Checkout;
use premath_worktree::ownership::is_provisioned;
use premath_worktree::tree::{
    Base, Filters, Ignored, KeptModules, Manifest, PrivateGit, Tree, TreeError, TreeFault,
    TreeState, modules_digest,
};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What belongs to a lane in one repository.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) state: LaneState,
    repository: PathBuf,
    pub(crate) checkout: Checkout,
    /// The git folder that the worktree's commands see; the repository's own
    /// where absent.
    pub(crate) git: Option<PrivateGit>,
    /// The git folder that a verification's commands see.
    pub(crate) verification_git: Option<PrivateGit>,
    /// The commit that the operator's checkout was at when the lane booted.
    pub(crate) origin: String,
    /// What the operator's filters do, where there are any.
    filters: Option<Arc<Filters>>,
    /// How verifications see the checkout, where they begin with build state.
    pub(crate) warm: Option<WarmSite>,
}

/// What a setup rested on, and what it made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SetupRecord {
    pub(crate) digest: String,
    pub(crate) made: std::collections::BTreeMap<String, String>,
    /// The digest of the git folders of submodules that it made.
    #[serde(default)]
    pub(crate) modules: Option<String>,
}

impl SetupRecord {
    /// Reads a record; one that cannot be read is none.
    pub(crate) fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let bytes = artifact::read(path)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    pub(crate) fn write(&self, path: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec(self).unwrap_or_default();
        artifact::overwrite(path, &text)
    }
}

/// The checkout cannot be put at a commit.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiteError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Provide(#[from] ProvideError),
}

impl From<SiteError> for BootError {
    fn from(error: SiteError) -> Self {
        match error {
            SiteError::Tree(error) => Self::Tree(error),
            SiteError::Store(error) => Self::Store(error),
            SiteError::Provide(error) => Self::Provide(error),
        }
    }
}

impl Site {
    /// Makes sure of what a lane needs in a repository. `repository` holds the
    /// worktree, `state` says where the harness keeps what it knows.
    pub(crate) fn prepare(repository: &Path, state: LaneState) -> Result<Self, BootError> {
        state.prepare()?;
        let checkout = Checkout::prepare(repository, &state.checkout, &state.checkout_git)?;
        let origin = Tree::open(repository)?.base()?.commit;
        Ok(Self {
            state,
            repository: repository.to_path_buf(),
            checkout,
            git: None,
            verification_git: None,
            origin,
            filters: None,
            warm: None,
        })
    }

    /// Has files of the checkout go through filters, from now on.
    pub(crate) fn use_filters(&mut self, filters: Arc<Filters>) -> Result<(), TreeError> {
        self.checkout.use_filters(filters.clone())?;
        self.filters = Some(filters);
        Ok(())
    }

    /// Makes the checkout, in the place of one that was deleted.
    pub(crate) fn make_checkout(&mut self) -> Result<(), TreeError> {
        let state = &self.state;
        let mut made = Checkout::prepare(&self.repository, &state.checkout, &state.checkout_git)?;
        if let Some(filters) = &self.filters {
            made.use_filters(filters.clone())?;
        }
        self.checkout = made;
        Ok(())
    }
}

/// Empties the place of a git folder; returns the folder to make in it.
fn renewed(place: &Path) -> PathBuf {
    // Where it fails, so does making the folder, which says why.
    scratch::renew(place).unwrap_or_else(|_| place.to_path_buf())
}

/// Returns the git folder that is in a place, as [`renewed`] named it.
fn current(place: &Path) -> PathBuf {
    let entries = std::fs::read_dir(place).into_iter().flatten().flatten();
    let named = entries.filter_map(|entry| {
        let number = entry.file_name().to_str()?.parse::<u64>().ok()?;
        Some((number, entry.path()))
    });
    named
        .max()
        .map_or_else(|| place.to_path_buf(), |(_, path)| path)
}

impl Lane {
    /// Returns whether commands see the repository's own git folder: in its
    /// main checkout, which no other folder can be put in the place of.
    pub(crate) fn is_direct(&self) -> bool {
        self.tree.is_main() && !self.confinement.mounts()
    }

    /// Makes the git folder that the worktree's commands see.
    pub(crate) fn make_git(&mut self, base: &Base) -> Result<(), TreeError> {
        if self.is_direct() {
            self.site.git = None;
            return Ok(());
        }
        let last = self.site.git.clone();
        let state = &self.site.state;
        let made = self.private_git(&self.tree, (&state.step_git, last), base, &state.setup)?;
        self.site.git = Some(made);
        Ok(())
    }

    /// Makes a private git folder in a place, with the git folders of the
    /// submodules that the last setup made; the last one that was there is used
    /// again while nothing but what the harness put there is in it, and no process can
    /// have its files open.
    fn private_git(
        &self,
        tree: &Tree,
        (place, last): (&Path, Option<PrivateGit>),
        base: &Base,
        setup: &Path,
    ) -> Result<PrivateGit, TreeError> {
        let failed = |error: io::Error| TreeError {
            operation: "keep the git folders of submodules",
            worktree: place.to_path_buf(),
            detail: error.to_string(),
            fault: TreeFault::Git,
        };
        let record = SetupRecord::read(setup).ok().flatten();
        let digest = record.and_then(|record| record.modules);
        let mounted = self.confinement.mounts();
        let settings = &self.batch.settings;
        // A person's own worktree may have sockets too.
        let lets_files_out = self.confinement.lets_files_out(settings)
            || mounted && !is_provisioned(self.tree.git_folder());
        let again = last
            .filter(|_| digest.is_none() && !lets_files_out)
            .and_then(|last| tree.private_git_again(last, base, mounted));
        if let Some(git) = again {
            return Ok(git);
        }
        let last = current(place);
        let kept = KeptModules::take(&last, place, digest.as_deref()).map_err(failed)?;
        // Submodules name their git folders by path: it stays what it was.
        let folder = match digest {
            Some(_) => last,
            None => renewed(place),
        };
        let made = tree.private_git(&folder, base, mounted)?;
        kept.put_back(&folder).map_err(failed)?;
        Ok(made)
    }

    /// Puts the checkout for verifications at a commit.
    pub(crate) fn put_checkout_at(&mut self, commit: &str) -> Result<TreeState, SiteError> {
        self.renew_checkout()?;
        // Submodules whose git folders a command changed are made again.
        let is_whole = self.has_modules(&self.site.state.checkout_setup, true)?;
        // An error half-way is mended by looking at all files.
        let is_moved = is_whole
            && self.is_checkout_ours()
            && matches!(self.site.checkout.move_to(commit), Ok(true));
        if !is_moved {
            let tree = self.site.checkout.tree();
            let ignored = self.ignored(tree, &self.site.state.checkout_setup, true)?;
            self.site.checkout.put_at(commit, &ignored)?;
        }
        provide(&self.batch.settings.provided, &self.site.checkout, commit)?;
        self.warm_to(commit);
        let last = self.site.verification_git.clone();
        let checkout = &self.site.checkout;
        let base = Base {
            commit: commit.to_owned(),
            branch: None,
        };
        let state = &self.site.state;
        let (place, setup) = (&state.verification_git, &state.checkout_setup);
        let git = self.private_git(checkout.tree(), (place, last), &base, setup)?;
        let state = checkout.tree().clean_state()?;
        self.site.verification_git = Some(git);
        Ok(state)
    }

    /// Makes the checkout again where a command of a step may have written it: a
    /// reset does not see attributes of files and what a submodule's folder
    /// holds. Where nothing can be mounted every verification writes it, and a
    /// reset must do.
    pub(crate) fn renew_checkout(&mut self) -> Result<(), SiteError> {
        let state = self.site.state.clone();
        if !self.confinement.mounts() || artifact::read(&state.checkout_untouched)?.is_some() {
            return Ok(());
        }
        artifact::remove(&state.checkout_setup)?;
        self.discard(&state.checkout)?;
        self.site.make_checkout()?;
        artifact::overwrite(&state.checkout_untouched, b"")?;
        Ok(())
    }

    /// Returns whether only the harness can have written the checkout since it was
    /// put at a commit, but for commands of [`Lane::touch_checkout`].
    pub(crate) fn is_checkout_ours(&self) -> bool {
        let folder = self.site.checkout.folder();
        self.confinement.is_layered(folder) && !self.confinement.opens_any_of(folder)
    }

    /// Returns whether only the harness can write the worktree while no command
    /// runs in it: it was made for this lane, no other command sees it, and no
    /// process of a command outlives it.
    pub(crate) fn is_worktree_ours(&self) -> bool {
        self.confinement.mounts()
            && !self.confinement.opens_any_of(&self.worktree)
            && is_provisioned(self.tree.git_folder())
    }

    /// Records that a command may write the checkout, before it starts. The setup
    /// of the operator's base may: what it leaves is meant to stay.
    pub(crate) fn touch_checkout(&self, phase: Phase, head: &str) -> Result<(), StoreError> {
        if phase.is_verification() && self.stack_of(phase).is_none() {
            self.site.checkout.forget();
        }
        let is_operators = phase == Phase::VerifySetup && head == self.site.origin;
        if !phase.is_verification() || self.stack_of(phase).is_some() || is_operators {
            return Ok(());
        }
        artifact::remove(&self.site.state.checkout_untouched)
    }

    /// Returns whether the git folders of submodules are as the last setup left
    /// them, in the lane or for its checkout.
    pub(crate) fn has_modules(&self, record: &Path, is_checkout: bool) -> Result<bool, StoreError> {
        let state = &self.site.state;
        let git = match is_checkout {
            true => &state.verification_git,
            false => &state.step_git,
        };
        let setup = SetupRecord::read(record)?;
        let Some(digest) = setup.and_then(|setup| setup.modules) else {
            return Ok(true);
        };
        Ok(modules_digest(&current(git)).ok().flatten() == Some(digest))
    }

    /// Says which ignored files stay: those that a setup made and that are as it
    /// left them. Where one is not, the setup is to be run again.
    fn ignored(
        &self,
        tree: &Tree,
        record: &Path,
        is_checkout: bool,
    ) -> Result<Ignored, StoreError> {
        if !self.has_modules(record, is_checkout)? {
            artifact::remove(record)?;
        }
        let Some(setup) = SetupRecord::read(record)? else {
            return Ok(Ignored::Go(std::collections::BTreeSet::new()));
        };
        let made = setup.made.len();
        let kept = tree.unchanged(&Manifest(setup.made));
        if kept.len() < made {
            artifact::remove(record)?;
        }
        Ok(Ignored::Go(kept))
    }

    /// Puts a worktree of the harness's own at a commit, and deletes what steps
    /// left in it; in a person's own worktree ignored files stay.
    pub(crate) fn reset(&self, base: &Base) -> Result<(), TreeError> {
        let ignored = self.ignored_of_lane();
        self.tree.reset(base, &ignored)
    }

    /// Does the same after a step that succeeded, by what was seen of its work.
    pub(crate) fn reset_after_work(&self, base: &Base) -> Result<(), TreeError> {
        if !self.is_worktree_ours() {
            return self.reset(base);
        }
        self.tree.reset_as_seen(base, &self.ignored_of_lane())
    }

    fn ignored_of_lane(&self) -> Ignored {
        if is_provisioned(self.tree.git_folder()) {
            let ignored = self.ignored(&self.tree, &self.site.state.setup, false);
            ignored.unwrap_or_else(|error| {
                tracing::warn!(%error, "the record of the setup cannot be read");
                Ignored::Go(std::collections::BTreeSet::new())
            })
        } else {
            Ignored::Stay
        }
    }

    /// Returns the worktree that a command of a phase runs in.
    pub(crate) fn tree_of(&self, phase: Phase) -> &Tree {
        if phase.is_verification() {
            self.site.checkout.tree()
        } else {
            &self.tree
        }
    }

    /// Returns the folder that a command of a phase runs in.
    pub(crate) fn folder_of(&self, phase: Phase) -> &Path {
        if phase.is_verification() {
            self.site.checkout.folder()
        } else {
            &self.worktree
        }
    }

    /// Returns where a command of a phase sees its folder.
    pub(crate) fn seen_by(&self, phase: Phase) -> &Path {
        match &self.site.warm {
            Some(warm) if phase.is_verification() => &warm.at,
            _ => self.folder_of(phase),
        }
    }

    /// Returns the git folder that a command of a phase sees.
    pub(crate) fn git_of(&self, phase: Phase) -> Option<&PrivateGit> {
        if phase.is_verification() {
            self.site.verification_git.as_ref()
        } else {
            self.site.git.as_ref()
        }
    }

    /// Makes the `.git` file of a command's folder lead to its git folder, where
    /// that is not mounted over it.
    pub(crate) fn link_git_folder(&self, phase: Phase) -> Result<(), TreeError> {
        match self.git_of(phase) {
            Some(git) if !self.confinement.mounts() && phase != Phase::Push => {
                self.tree_of(phase).point_git_file_at(&git.folder)
            }
            _ => Ok(()),
        }
    }

    /// Puts the `.git` file back: a git that is started there by hand must not
    /// meet settings that a step wrote.
    pub(crate) fn unlink_git_folder(&self, phase: Phase) -> Result<(), TreeError> {
        match self.git_of(phase) {
            Some(_) if !self.confinement.mounts() => self.tree_of(phase).restore_git_file(),
            _ => Ok(()),
        }
    }
}
