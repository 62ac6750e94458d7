//! Verifications that begin with build state: what the verify command leaves on
//! the operator's base is a layer below the checkout, and what a verification
//! itself writes goes to a layer that is thrown away (`isolation.md` 4).
//!
//! Nothing that a step wrote gets into the layer: it is made before the first
//! step, on the commit that the operator had checked out.

use super::Lane;
use super::boot::BootError;
use super::command::Phase;
use crate::batch::{BaseVerdict, WarmState};
use crate::environment;
use crate::interrupt::LOOK;
use crate::sandbox::{Seed, Stack};
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Status;
use premath_kernel::json::canonical;
use premath_kernel::policy::landing::LandingMode;
use premath_memory::cause::chain;
use premath_memory::roots::WarmRoots;
use premath_memory::{StoreError, WarmBuild, artifact, clock};
use premath_worktree::ownership::is_provisioned;
use premath_worktree::removal::{Guard, remove_owned};
use premath_worktree::tree::{Layer, is_untouched};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// The least number of open issues: the layer and the last commit's own
/// verification cost two verifications without build state, and whether the
/// command runs over the layer costs one with it.
const ISSUES_MIN: usize = 3;

/// The classes of commands that did not end by themselves, or did not begin:
/// what they leave may be torn.
const CUT: [FailureClass; 4] = [
    FailureClass::StepInterrupted,
    FailureClass::GateTimeout,
    FailureClass::SandboxUnavailable,
    FailureClass::ResourceExceeded,
];

/// How a lane's verifications see their checkout.
#[derive(Clone, Debug)]
pub(crate) struct WarmSite {
    /// Where every command sees it: build tools know files by their paths.
    pub(crate) at: PathBuf,
    /// The build state; none while it is being made.
    state: Option<Arc<WarmState>>,
    /// Whether the commit that the checkout is at may be seen over it.
    is_used: bool,
}

/// How the verify command ended on the base.
enum BaseRun {
    Passed,
    Failed,
    /// It did not end by itself, or did not begin.
    Cut,
}

/// What a layer is of, and what is in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    /// The digest of what it rests on.
    key: String,
    roots: Vec<String>,
    newest: i64,
    digest: String,
    /// Whether the command passed on the base without it.
    passed: bool,
    /// Whether the command passes there over it too; `None` if that was not tried.
    repeats: Option<bool>,
}

impl Record {
    fn read(path: &Path) -> Result<Option<Self>, StoreError> {
        let bytes = artifact::read(path)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn write(&self, path: &Path) -> Result<(), StoreError> {
        artifact::overwrite(path, &serde_json::to_vec(self).unwrap_or_default())
    }

    fn layer(self) -> Layer {
        Layer {
            roots: self.roots,
            newest: self.newest,
            digest: self.digest,
        }
    }
}

pub(crate) fn failed<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + use<'a> {
    move |source| StoreError::Io {
        operation,
        path: path.to_path_buf(),
        source,
    }
}

impl Lane {
    /// Makes sure of the build state of the operator's base, where verifications
    /// begin with it. Where it cannot be had they begin without it.
    ///
    /// # Errors
    ///
    /// [`BootError`] where the lane cannot continue.
    pub(crate) fn warm_up(&mut self) -> Result<(), BootError> {
        // What landed before an earlier batch was cut may have been verified
        // with it, whatever this one does.
        self.take_up_tip()?;
        if !self.is_warm_wanted()? {
            return Ok(());
        }
        let batch = self.batch.clone();
        let mut known = batch.warmth.state();
        let state = match &*known {
            Some(state) => state.clone(),
            None => {
                let made = self.find_or_make()?;
                known.insert(made).clone()
            }
        };
        drop(known);
        self.site.warm = state.map(|state| WarmSite {
            at: self.warm_roots().at,
            state: Some(state),
            is_used: false,
        });
        Ok(())
    }

    /// Deletes a folder beside the repository that a command wrote.
    pub(crate) fn discard(&self, folder: &Path) -> Result<(), StoreError> {
        let repository = &*self.batch.settings.roots.repository;
        let guard = Guard::outside([repository, self.tree.common_folder()]);
        let removed = guard.and_then(|guard| {
            remove_owned(folder, &guard).map_err(|error| io::Error::other(chain(&error)))
        });
        removed.map_err(failed("remove", folder))
    }

    fn warm_roots(&self) -> WarmRoots {
        WarmRoots::at(&self.batch.settings.roots.repository)
    }

    /// Returns whether verifications are to begin with build state. Branches
    /// that each stay where they are have no last commit that could be verified
    /// without it.
    fn is_warm_wanted(&self) -> Result<bool, BootError> {
        let settings = &self.batch.settings;
        let can_be = settings.warm
            && settings.landing.mode != LandingMode::Branch
            && self.confinement.is_layered(&self.site.state.checkout);
        if !can_be {
            return Ok(false);
        }
        let count = self.batch.memory.view(|view| {
            let open = view
                .rows()
                .filter(|row| row.issue.status == Status::Open)
                .filter(|row| settings.selection.admits(&row.issue));
            open.take(ISSUES_MIN).count()
        })?;
        Ok(count == ISSUES_MIN)
    }

    /// Finds the layer that an earlier batch made of the same, or makes it;
    /// `None` if none is available, or it is empty.
    fn find_or_make(&mut self) -> Result<Option<Arc<WarmState>>, BootError> {
        let common = self.tree.common_folder().to_path_buf();
        let roots = self.warm_roots();
        let key = self.warm_key()?;
        let Some(build) = self.await_build(&common)? else {
            return Ok(None);
        };
        if let Some(in_use) = build.shared(&common)?
            && let Some(record) = self.recorded(&roots, &key)?
        {
            if record.repeats == Some(false) {
                self.warn_of_single_run();
                return Ok(None);
            }
            return Ok(self.state_of(&roots, record.layer(), in_use));
        }
        // Another harness verifies over one of another base.
        let Some(in_use) = build.alone(&common)? else {
            tracing::info!("another batch uses the build state of another base");
            return Ok(None);
        };
        let Some(record) = self.make_layer(&roots, key)? else {
            return Ok(None);
        };
        in_use.share().map_err(failed("share", &roots.layer))?;
        let state = self.state_of(&roots, record.clone().layer(), in_use);
        if record.passed {
            let base = self.site.origin.clone();
            let passed = Some(BaseVerdict::Passed);
            self.batch.bases.lock().note(base, passed);
        }
        match state {
            Some(state) if record.passed => self.tried(&roots, record, state),
            state => Ok(state),
        }
    }

    /// Returns build state with which the command passes on the base, as it did
    /// there without. A command that cannot run twice would fail for each step.
    fn tried(
        &mut self,
        roots: &WarmRoots,
        mut record: Record,
        state: Arc<WarmState>,
    ) -> Result<Option<Arc<WarmState>>, BootError> {
        self.site.warm = Some(WarmSite {
            at: roots.at.clone(),
            state: Some(state.clone()),
            is_used: false,
        });
        let origin = self.site.origin.clone();
        let ran = match self.put_checkout_at(&origin) {
            Ok(_) => self.run_verification(Phase::Verify(0)),
            Err(error) => Err(error.into()),
        };
        self.site.warm = None;
        match ran? {
            BaseRun::Passed => record.repeats = Some(true),
            BaseRun::Failed => record.repeats = Some(false),
            BaseRun::Cut => return Ok(None),
        }
        record.write(&roots.record)?;
        if record.repeats == Some(true) {
            return Ok(Some(state));
        }
        self.warn_of_single_run();
        Ok(None)
    }

    fn warn_of_single_run(&mut self) {
        self.confinement.warnings.push(
            "the verify command passes on the base, but fails over the build state that it left \
             there; verifications begin without build state, as with `warm = false` under [verify]"
                .to_owned(),
        );
    }

    fn state_of(
        &self,
        roots: &WarmRoots,
        layer: Layer,
        in_use: premath_memory::WarmUse,
    ) -> Option<Arc<WarmState>> {
        let is_any = !layer.roots.is_empty();
        is_any.then(|| {
            let caches = layer.caches(&roots.layer).unwrap_or_else(|error| {
                tracing::warn!(%error, "steps begin without the caches of the base");
                Vec::new()
            });
            Arc::new(WarmState {
                base: self.site.origin.clone(),
                folder: roots.layer.clone(),
                layer,
                caches,
                _in_use: in_use,
            })
        })
    }

    /// Waits until no other harness makes the layer; `None` where the batch is
    /// to end, or it takes longer than a verification may.
    fn await_build(&self, common: &Path) -> Result<Option<WarmBuild>, BootError> {
        if let Some(build) = WarmBuild::try_acquire(common)? {
            return Ok(Some(build));
        }
        let began = Instant::now();
        let interrupt = &self.batch.interrupt;
        let waker = interrupt.clone();
        let wait = WarmBuild::wait(common, move || waker.wake())?;
        loop {
            let seen = interrupt.changes();
            if let Some(build) = wait.take()? {
                return Ok(Some(build));
            }
            let is_over = began.elapsed() > self.batch.settings.limits.verify;
            if is_over || interrupt.level() > crate::interrupt::Level::None {
                return Ok(None);
            }
            interrupt.wait_since(seen, LOOK);
        }
    }

    /// Returns the digest of what the layer rests on.
    fn warm_key(&self) -> Result<String, BootError> {
        let settings = &self.batch.settings;
        let setup = settings.setup.as_ref();
        let provided = settings.provided.iter();
        let provided: Vec<_> = provided
            .map(|file| (&file.path, canonical::sha256_hex(&file.content)))
            .collect();
        let variables = environment::digests(settings.inherited(), &settings.environment);
        // What a loss of power leaves of the files is not looked at.
        let boot = clock::this_process().map(|process| process.boot_id);
        Ok(canonical::digest(&json!({
            "tree": self.tree.tree_of(&self.site.origin)?,
            "command": settings.hooks.verify,
            "setup": setup.map(|setup| &setup.command),
            "sandbox": self.confinement.profile(),
            "at": self.warm_roots().at,
            "provided": provided,
            "variables": variables,
            "boot": boot,
            "version": env!("CARGO_PKG_VERSION"),
        })))
    }

    /// Returns the layer that was made of the same, where it is whole and was
    /// tried.
    fn recorded(&self, roots: &WarmRoots, key: &str) -> Result<Option<Record>, BootError> {
        let is_tried = |record: &Record| {
            let is_empty = record.roots.is_empty();
            is_empty || !record.passed || record.repeats.is_some()
        };
        let record = Record::read(&roots.record)?;
        let record = record.filter(|record| record.key == key && is_tried(record));
        Ok(record.filter(|record| {
            record.roots.is_empty() || is_untouched(&roots.layer, &record.clone().layer())
        }))
    }

    /// Verifies the operator's base for the build state that it leaves. It need
    /// not pass: what it leaves is the base's in any case.
    fn make_layer(&mut self, roots: &WarmRoots, key: String) -> Result<Option<Record>, BootError> {
        roots.prepare()?;
        artifact::remove(&roots.record)?;
        self.discard(&roots.layer)?;
        self.site.warm = Some(WarmSite {
            at: roots.at.clone(),
            state: None,
            is_used: false,
        });
        let made = self.run_on_base();
        let passed = matches!(made, Ok(BaseRun::Passed));
        self.site.warm = None;
        let changes = self.site.state.changes.clone();
        let layer = match made {
            Ok(BaseRun::Passed | BaseRun::Failed) => {
                match self.site.checkout.tree().keep_layer(&changes.join("upper")) {
                    Ok(layer) => Some(layer),
                    Err(error) => {
                        tracing::warn!(%error, "the build state of the base is not kept");
                        None
                    }
                }
            }
            Ok(BaseRun::Cut) => None,
            Err(error) => {
                self.discard(&changes)?;
                return Err(error);
            }
        };
        let Some(layer) = layer else {
            self.discard(&changes)?;
            return Ok(None);
        };
        fs::rename(changes.join("upper"), &roots.layer).map_err(failed("make", &roots.layer))?;
        self.discard(&changes)?;
        let record = Record {
            key,
            roots: layer.roots,
            newest: layer.newest,
            digest: layer.digest,
            passed,
            repeats: None,
        };
        record.write(&roots.record)?;
        Ok(Some(record))
    }

    /// Makes the checkout ready on the base, and runs the verify command there.
    fn run_on_base(&mut self) -> Result<BaseRun, BootError> {
        match self.set_up_on_base() {
            // Each step will report it.
            Err(BootError::Command(_)) => return Ok(BaseRun::Cut),
            ready => ready?,
        }
        self.run_verification(Phase::Warm)
    }

    fn run_verification(&mut self, phase: Phase) -> Result<BaseRun, BootError> {
        let command = self.batch.settings.hooks.verify.clone();
        let ran = self.on_boot(phase, |lane, owner| {
            let ran = lane.run(phase, &command, owner, None, None);
            ran.map(Some)
        });
        let is_cut = |class: &String| CUT.iter().any(|cut| class == cut.as_str());
        match ran {
            Ok(()) => Ok(BaseRun::Passed),
            Err(BootError::Command(failed)) if failed.classes.iter().any(is_cut) => {
                Ok(BaseRun::Cut)
            }
            Err(BootError::Command(_)) => Ok(BaseRun::Failed),
            Err(error) => Err(error),
        }
    }

    fn set_up_on_base(&mut self) -> Result<(), BootError> {
        let origin = self.site.origin.clone();
        self.put_checkout_at(&origin)?;
        self.on_boot(Phase::VerifySetup, |lane, owner| {
            lane.set_up(Phase::VerifySetup, owner, None)
        })?;
        self.put_checkout_at(&origin)?;
        Ok(())
    }

    /// Makes the checkout ready to be seen over the layer, where the commit that
    /// it is at fits it.
    pub(crate) fn warm_to(&mut self, commit: &str) {
        let tree = self.site.checkout.tree();
        let provided = self.batch.settings.provided.iter();
        let provided: Vec<&Path> = provided.map(|file| &*file.path).collect();
        let Some(warm) = &self.site.warm else {
            return;
        };
        let made = match &warm.state {
            None => tree.date(commit, 0, &provided).map(|()| false),
            Some(state) => tree
                .fits(&state.layer, &state.base, commit)
                .and_then(|fits| {
                    if fits {
                        tree.date(&state.base, state.layer.newest, &provided)?;
                    }
                    Ok(fits)
                }),
        };
        let is_used = made.unwrap_or_else(|error| {
            tracing::warn!(%error, "the verification begins without build state");
            false
        });
        if let Some(warm) = &mut self.site.warm {
            warm.is_used = is_used;
        }
    }

    /// Verifies the commit that the checkout is at without build state.
    pub(crate) fn leave_build_state(&mut self) {
        if let Some(warm) = &mut self.site.warm {
            warm.is_used = false;
        }
    }

    /// Returns whether a verification of the commit that the checkout is at
    /// begins with build state.
    pub(crate) fn is_warm(&self) -> bool {
        self.site.warm.as_ref().is_some_and(|warm| warm.is_used)
    }

    /// Returns the caches of the base that the work of a step begins with, each
    /// with its place, which is made. In a person's own worktree there are none:
    /// what is left in a cache would be lost. There are none either where
    /// verifications have files that the work does not see: a build may have put
    /// what they hold into the caches.
    pub(crate) fn seeds_of(&self, phase: Phase) -> Vec<Seed> {
        let state = self.site.warm.as_ref().and_then(|warm| warm.state.as_ref());
        let may_see = phase.is_work()
            && self.batch.settings.provided.is_empty()
            && is_provisioned(self.tree.git_folder());
        let Some(state) = state.filter(|_| may_see) else {
            return Vec::new();
        };
        let has_place = |cache: &&String| {
            self.tree.make_way_for(cache).unwrap_or_else(|error| {
                tracing::warn!(%error, "the work begins without a cache of the base");
                false
            })
        };
        let caches = state.caches.iter().filter(has_place);
        let seeds = caches.map(|cache| Seed {
            lower: state.folder.join(cache),
            at: self.seen_by(phase).join(cache),
        });
        seeds.collect()
    }

    /// Returns what a verification sees in the place of the checkout, where its
    /// changes are thrown away: so the next one finds nothing of this one's. A
    /// setup writes the checkout itself.
    pub(crate) fn stack_of(&self, phase: Phase) -> Option<Stack> {
        let checkout = self.site.checkout.folder().to_path_buf();
        let is_stacked = phase.is_verification()
            && phase != Phase::VerifySetup
            && self.confinement.is_layered(&checkout);
        if !is_stacked {
            return None;
        }
        let mut lower = vec![checkout];
        let is_cold = matches!(phase, Phase::Warm | Phase::Tip);
        if let Some(warm) = self
            .site
            .warm
            .as_ref()
            .filter(|warm| warm.is_used && !is_cold)
        {
            lower.extend(warm.state.as_ref().map(|state| state.folder.clone()));
        }
        Some(Stack {
            lower,
            changes: self.site.state.changes.clone(),
        })
    }
}
