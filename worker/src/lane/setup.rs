//! A worktree made ready to work in, again only where what it rests on changed.

use super::Lane;
use super::command::{CommandError, CommandOwner, Phase, Ran};
use super::site::{SetupRecord, SiteError};
use super::watch::LeaseWatch;
use crate::settings::Setup;
use premath_kernel::json::canonical;
use premath_kernel::record::boundary::Boundary;
use premath_worktree::tree::{Manifest, Tree, TreeError, modules_digest};
use serde_json::{Map, Value, json};

impl Lane {
    /// Runs the setup command in the worktree or, for the phase
    /// [`Phase::VerifySetup`], in the checkout for verifications, where it never
    /// passed on files like these; `None` where there is nothing to do.
    pub(crate) fn set_up(
        &mut self,
        phase: Phase,
        owner: &CommandOwner<'_>,
        watch: Option<&mut LeaseWatch>,
    ) -> Result<Option<Ran>, CommandError> {
        let Some(setup) = self.setup().cloned() else {
            return Ok(None);
        };
        let digest = setup_digest(&setup, self.tree_of(phase), "HEAD")?;
        let record = match phase {
            Phase::VerifySetup => self.site.state.checkout_setup.clone(),
            _ => self.site.state.setup.clone(),
        };
        if SetupRecord::read(&record)?.is_some_and(|last| last.digest == digest) {
            return Ok(None);
        }
        let ran = self.run(phase, &setup.command, owner, None, watch)?;
        if ran.passed() {
            let made = self.tree_of(phase).manifest()?.0;
            let git = self.git_of(phase).map(|git| git.folder.clone());
            let modules = git.and_then(|git| modules_digest(&git).ok().flatten());
            let made = SetupRecord {
                digest,
                made,
                modules,
            };
            made.write(&record)?;
            self.batch.reached(Boundary::SetUp);
        }
        Ok(Some(ran))
    }

    /// Returns whether the checkout has what the setup makes of a commit's files,
    /// unchanged since the setup passed there.
    pub(crate) fn is_checkout_set_up(&mut self, commit: &str) -> Result<bool, SiteError> {
        self.renew_checkout()?;
        let record = &self.site.state.checkout_setup;
        let (Some(setup), Some(last)) = (self.setup(), SetupRecord::read(record)?) else {
            return Ok(false);
        };
        let tree = self.site.checkout.tree();
        Ok(last.digest == setup_digest(setup, tree, commit)?
            && self.has_modules(record, true)?
            && tree.unchanged(&Manifest(last.made.clone())).len() == last.made.len())
    }
}

/// Returns the digest of what a setup rests on: its command, what a commit has at the paths
/// that it reads, and the commits of its submodules.
fn setup_digest(setup: &Setup, tree: &Tree, commit: &str) -> Result<String, TreeError> {
    let mut inputs = Map::new();
    for input in &setup.inputs {
        let content = tree.committed(commit, input)?;
        inputs.insert(input.to_string_lossy().into_owned(), content.into());
    }
    Ok(canonical::digest(&json!({
        "command": setup.command,
        "inputs": Value::Object(inputs),
        "submodules": tree.submodules_of(commit)?,
    })))
}
