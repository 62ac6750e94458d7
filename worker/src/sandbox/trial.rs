//! A command in the sandbox of a step, to find out why it fails there.

use super::{HostAccess, PrivateHome, ProvideError, Scene, Search, connect, provide};
use crate::environment;
use crate::proxy::ProxyError;
use crate::settings::Settings;
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::namespaces;
use crate::supervisor::confine::scratch::Scratch;
use premath_kernel::policy::network::NetworkPhase;
use premath_kernel::policy::sandbox::{SandboxMode, admitted};
use premath_worktree::checkout::Checkout;
use premath_worktree::tree::{Base, Ignored, Tree, TreeError};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::Path;

/// A trial cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The mode has no view that could be tried.
    #[error(
        "this machine confines commands by `{0}`; only `namespaces` and `container` can be tried"
    )]
    Mode(SandboxMode),
    /// The private folders of the command cannot be made.
    #[error("cannot make the private folders of the command")]
    Scratch(#[source] io::Error),
    /// The proxy cannot be started.
    #[error("cannot start the proxy of the command")]
    Proxy(#[from] ProxyError),
    /// The files cannot be checked out.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A provided file cannot be put in place.
    #[error(transparent)]
    Provide(#[from] ProvideError),
    /// The command was not run.
    #[error("the command was not run: {0}")]
    NotRun(String),
}

/// Runs a command in the sandbox of a step, on the files of the main worktree's
/// HEAD, with the terminal of this process. Returns its exit code; 128 and the
/// number of the signal that ended it.
///
/// # Errors
///
/// [`TrialError`].
pub fn try_command(
    settings: &Settings,
    phase: NetworkPhase,
    command: &[OsString],
) -> Result<u8, TrialError> {
    let mode = settings.sandbox.choice.mode;
    if !mode.has_view() {
        return Err(TrialError::Mode(mode));
    }
    let scratch = Scratch::make().map_err(TrialError::Scratch)?;
    let home = PrivateHome::make(scratch.path()).map_err(TrialError::Scratch)?;
    let repository = &settings.roots.repository;
    let at = |name: &str| scratch.path().join(name);
    let checkout = Checkout::prepare(repository, &at("worktree"), &at("checkout.git"))?;
    let base = Base {
        commit: Tree::open(repository)?.base()?.commit,
        branch: None,
    };
    checkout.put_at(&base.commit, &Ignored::Go(BTreeSet::new()))?;
    if phase == NetworkPhase::Verify {
        provide(&settings.provided, &checkout, &base.commit)?;
    }
    let git = checkout.tree().private_git(&at("step.git"), &base, true)?;
    let host = HostAccess::find(&Search::of(settings));
    let mut closed = vec![repository.join(".premath"), repository.join("artifacts")];
    closed.extend(settings.sandbox.image_folder().map(Path::to_path_buf));
    let wished = admitted(settings.sandbox.write.iter().cloned(), &closed);
    let scene = Scene {
        host: &host,
        wished: &wished,
        open_home: None,
        folder: checkout.folder(),
        at: checkout.folder(),
        stack: None,
        seeds: Vec::new(),
        git: Some(&git),
        covered: Vec::new(),
        hidden: Vec::new(),
        emptied: Vec::new(),
        writable: Vec::new(),
        readable: Vec::new(),
    };
    let (program, args) = match command {
        [program, args @ ..] => (program.clone(), args.to_vec()),
        [] => ("/bin/sh".into(), Vec::new()),
    };
    let mut spec = CommandSpec::new(program);
    spec.args = args;
    spec.cwd = checkout.folder().to_path_buf();
    spec.env = environment::of_command(
        settings.inherited(),
        &settings.environment,
        phase == NetworkPhase::Work,
        &[],
    );
    for (name, value) in &host.variables {
        super::set(&mut spec, name, value);
    }
    let (proxy, network) = connect(settings.network.policy(phase), phase, &home)?;
    scene
        .give(&home, network, &settings.resources, &mut spec)
        .map_err(TrialError::Scratch)?;
    let ended = namespaces::run(spec).map_err(|error| TrialError::NotRun(error.to_string()));
    drop(proxy);
    ended
}
