//! How the commands of a lane are confined.
//!
//! Everything that a lane runs for a step is confined: what the agent does, and
//! the setup, hooks and verifications, which run code that it wrote. The push of
//! the landing target is the harness's own, and is not.

mod error;
mod filter;
mod hooks;
mod profile;
mod view;

pub(super) use error::ConfineError;
pub(super) use filter::FilterConfinement;
pub(crate) use hooks::CommandHooks;
use view::CommandPlace;

use super::Lane;
use super::command::{CommandOwner, Phase};
use crate::proxy::Proxy;
use crate::sandbox::{
    AgentState, HostAccess, PrivateHome, Search, Stack, TakenBack, connect, set, set_home,
};
use crate::settings::{Settings, StepFolders, path_of};
use crate::supervisor::confine::landlock::Lists;
use crate::supervisor::confine::namespaces::{CommandBounds, layers};
use crate::supervisor::confine::scratch::{self, Scratch};
use crate::supervisor::{Ceilings, CommandSpec};
use premath_evidence::Agent;
use premath_kernel::policy::network::NetworkFacts;
use premath_kernel::policy::sandbox::{
    SandboxMode, SandboxUnavailable, admitted, exposed, outermost,
};
use premath_memory::private::PrivateFolder;
use premath_memory::projection;
use premath_worktree::tree::Tree;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Devices that programs write to as a matter of course, and the memory that
/// they share; no disk, and nothing that reaches another process's terminal.
const DEVICES: [&str; 9] = [
    "/dev/full",
    "/dev/null",
    "/dev/ptmx",
    "/dev/pts",
    "/dev/random",
    "/dev/shm",
    "/dev/tty",
    "/dev/urandom",
    "/dev/zero",
];

/// What programs read of the kernel, where nothing is mounted. Not all of
/// `/dev`: root could read disks.
const SYSTEM: [&str; 2] = ["/proc", "/sys"];

/// How the commands of a lane are confined.
#[derive(Debug)]
pub(super) struct Confinement {
    mode: SandboxMode,
    host: HostAccess,
    /// What a person opened to be written.
    wished: BTreeSet<PathBuf>,
    /// The home of the user, where a person opened all of it: commands keep it.
    open_home: Option<PathBuf>,
    /// Other worktrees, which are hidden where they are in this one.
    others: Vec<PathBuf>,
    /// The profile's reference.
    reference: String,
    /// Whether the changes of the checkout can be layered over it.
    layers: bool,
    pub(super) warnings: Vec<String>,
}

/// What belongs to one confined command, until it has ended.
#[derive(Debug, Default)]
pub(super) struct Confined {
    /// The reference of the profile; none where it is not confined.
    pub(super) reference: Option<String>,
    agent: AgentState,
    /// With where the earlier contents of the user's sign-in files are saved.
    home: Option<(PrivateHome, PrivateFolder)>,
    proxy: Option<Proxy>,
    hooks: Option<CommandHooks>,
    changes: Option<Changes>,
    /// Last, for the others are in it.
    scratch: Option<Scratch>,
}

/// The private home of an agent that may be run again in its session. It is
/// deleted with this value.
#[derive(Debug)]
pub(super) struct KeptHome {
    agent: AgentState,
    home: PrivateHome,
    scratch: Scratch,
}

impl KeptHome {
    /// Makes everything but the home and the temporary files again. What the agent
    /// signs in with and is configured by is copied again: it may have changed
    /// its own configuration, and another lane may have renewed its tokens.
    fn renewed(mut self) -> std::io::Result<Self> {
        self.home.renew()?;
        self.agent.copy_again_into(&self.home.home())?;
        Ok(self)
    }

    /// Returns the folder that is deleted.
    pub(super) fn whole(&self) -> &Path {
        self.scratch.whole()
    }
}

/// The folder that takes what a command changes of the checkout; it is deleted
/// with this value, and never read.
#[derive(Debug)]
struct Changes {
    folder: PathBuf,
    /// The folder in it with the parts of the layer.
    layer: PathBuf,
    /// Whether the caller of the command takes them.
    is_kept: bool,
}

impl Changes {
    /// Makes the empty folders of a layer, in the place of what was there.
    fn make(folder: &Path, is_kept: bool) -> std::io::Result<Self> {
        let apart = scratch::renew(folder)?;
        let changes = Self {
            folder: folder.to_path_buf(),
            // The caller finds them in the folder itself.
            layer: if is_kept { folder.to_path_buf() } else { apart },
            is_kept,
        };
        for part in ["upper", "work"] {
            std::fs::create_dir_all(changes.layer.join(part))?;
        }
        Ok(changes)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        if let Err(error) = scratch::remove(&self.folder) {
            let folder = self.folder.display();
            tracing::warn!(%folder, %error, "what a verification wrote is left");
        }
    }
}

impl Confined {
    /// Takes the hooks, which end before everything else of the command.
    pub(super) const fn take_hooks(&mut self) -> Option<CommandHooks> {
        self.hooks.take()
    }

    /// Takes back what an agent renewed, and returns what the command did with
    /// the network, where a proxy counted it, and its home, where it is kept.
    pub(super) fn end(mut self, is_kept: bool) -> (Option<NetworkFacts>, Option<KeptHome>) {
        if let Some((home, saved)) = &self.home {
            let keep = |file: &Path, contents: (&[u8], &[u8])| {
                let kept = saved.keep_replaced(file, contents);
                kept.map_err(std::io::Error::other)
            };
            for TakenBack { file, kept } in self.agent.take_back(&home.home(), keep) {
                let file = file.display();
                match kept.as_deref().map(Path::display) {
                    Some(kept) => tracing::warn!(
                        %file, %kept, "an agent changed its sign-in file; its earlier content is saved"
                    ),
                    None => tracing::info!(%file, "an agent changed its sign-in file again"),
                }
            }
        }
        let facts = self.proxy.take().map(Proxy::finish);
        drop(self.changes);
        let kept = match (self.home, self.scratch) {
            (Some((home, _)), Some(scratch)) if is_kept => Some(KeptHome {
                agent: self.agent,
                home,
                scratch,
            }),
            _ => None,
        };
        (facts, kept)
    }
}

impl Confinement {
    /// Returns whether commands have homes of their own.
    pub(super) fn has_private_home(&self) -> bool {
        self.mode != SandboxMode::None
    }

    /// Finds out how the commands of a lane are confined, and puts the profile
    /// beside the witnesses.
    pub(super) fn of(
        settings: &Settings,
        tree: &Tree,
        worktree: &Path,
    ) -> Result<Self, ConfineError> {
        let mode = settings.sandbox.choice.mode;
        let memory = memory(settings);
        if mode == SandboxMode::Landlock && tree.is_main() {
            let why = "it cannot protect the git folder of the main checkout; use a linked \
                      worktree with --worktree, or create lanes with --lanes"
                .to_owned();
            return Err(SandboxUnavailable { mode, why }.into());
        }
        let mut warnings = exposure(mode, worktree, &memory);
        // What a person names may be in another checkout, but no step may write
        // what the harness itself goes by.
        let image = settings.sandbox.image_folder();
        keep_image_out(image, worktree)?;
        let mut closed = memory;
        closed.extend(image.map(Path::to_path_buf));
        let wished = admitted(settings.sandbox.write.iter().cloned(), &closed);
        warnings.extend(refused_requests(&settings.sandbox.write, &wished, image));
        let host = host_of(settings, worktree);
        let profile = profile::of(mode, &host, &wished, settings);
        let reference = profile.reference();
        if mode != SandboxMode::None {
            let file = settings.roots.witnesses.join(format!("{reference}.json"));
            projection::write_document(&file, &profile)?;
        }
        let open_home = settings.sandbox.home.clone().filter(|home| {
            let home = std::fs::canonicalize(home).unwrap_or_else(|_| home.clone());
            wished.iter().any(|wished| home.starts_with(wished))
        });
        Ok(Self {
            mode,
            host,
            wished,
            open_home,
            others: tree.others(),
            reference,
            layers: true,
            warnings,
        })
    }

    /// Returns the profile's reference.
    pub(super) fn profile(&self) -> &str {
        &self.reference
    }

    /// Returns whether a person opened a folder to every command.
    pub(super) fn is_open(&self, folder: &Path) -> bool {
        self.wished.iter().any(|wished| folder.starts_with(wished))
    }

    /// Returns whether a person opened anything of a folder to every command.
    pub(super) fn opens_any_of(&self, folder: &Path) -> bool {
        self.is_open(folder) || self.wished.iter().any(|wished| wished.starts_with(folder))
    }

    /// Returns whether an open file of a command can reach a process that outlives it:
    /// by a socket that the command sees, or in a folder that all commands write. Without
    /// a view that is of no matter: there are no unix sockets (`landlock`), or such a
    /// process reaches the files by path (`none`).
    pub(super) fn lets_files_out(&self, settings: &Settings) -> bool {
        let opens = !settings.sandbox.read.is_empty() || !self.wished.is_empty();
        self.mounts() && (settings.network.is_open() || opens)
    }

    /// Tries whether the changes of verifications can be layered over their checkout.
    /// Where they cannot, each writes it, and it is made again for the next one.
    pub(super) fn try_layers(&mut self, checkout: &Path, changes: &Path) {
        if !self.is_layered(checkout) {
            return;
        }
        let made = Changes::make(changes, false).map_err(|error| error.to_string());
        if let Err(why) = made.and_then(|made| layers(checkout, &made.layer)) {
            self.layers = false;
            self.warnings.push(format!(
                "nothing can be layered over {} ({why}): the checkout is made again for each \
                 verification, without build state",
                checkout.display()
            ));
        }
    }

    /// Returns whether what verifications change of their checkout goes to a layer,
    /// which is deleted.
    pub(super) fn is_layered(&self, checkout: &Path) -> bool {
        self.mounts() && self.layers && !self.is_open(checkout)
    }

    /// Returns whether commands see files elsewhere than they are.
    pub(super) const fn mounts(&self) -> bool {
        self.mode.has_view()
    }
}

impl Lane {
    /// Confines a command of a step.
    pub(super) fn confine(
        &self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
        (spec, kept): (&mut CommandSpec, Option<KeptHome>),
    ) -> Result<Confined, ConfineError> {
        let confinement = &self.confinement;
        if phase == Phase::Push || confinement.mode == SandboxMode::None {
            return self.free(phase, command, owner, spec);
        }
        let private = match kept {
            Some(kept) => kept.renewed().map_err(ConfineError::Scratch)?,
            None => self.private_home(phase, command, owner)?,
        };
        let KeptHome {
            agent,
            home,
            scratch,
        } = private;
        let hooks = self.hooks_of(phase, command, owner, (&scratch, spec))?;
        spec.scratch.push(scratch.whole().to_path_buf());
        let mut place = CommandPlace::default();
        if confinement.mounts() {
            place.seeds = self.seeds_of(phase);
        }
        let mut stack = self.stack_of(phase);
        let mut changes = None;
        if let Some(stack) = &mut stack {
            let made = Changes::make(&stack.changes, phase == Phase::Warm);
            let made = changes.insert(made.map_err(ConfineError::Scratch)?);
            stack.changes.clone_from(&made.layer);
        }
        spec.ceilings = self.ceilings(phase, &home, place.seeds.len(), stack.as_ref());
        let mut proxy = None;
        if confinement.mounts() {
            let network_phase = phase.network();
            let policy = self.batch.settings.network.policy(network_phase);
            (proxy, place.network) = connect(policy, network_phase, &home)?;
            place.stack = stack;
            self.see(phase, &home, place, spec)?;
            if let (Some(hooks), Some(view)) = (&hooks, &mut spec.view) {
                view.places.extend(hooks.entries());
            }
        } else {
            let hooks = hooks.as_ref().map(CommandHooks::readable);
            self.open_by_landlock(phase, &home, hooks.unwrap_or_default(), spec);
        }
        self.set_variables(spec);
        Ok(Confined {
            reference: Some(confinement.reference.clone()),
            agent,
            home: Some((home, PrivateFolder::of(&self.batch.settings.roots))),
            proxy,
            hooks,
            changes,
            scratch: Some(scratch),
        })
    }

    /// Makes the private home of a command, with what an agent in it signs in
    /// with.
    fn private_home(
        &self,
        phase: Phase,
        command: &str,
        owner: &CommandOwner<'_>,
    ) -> Result<KeptHome, ConfineError> {
        let scratch = Scratch::make().map_err(ConfineError::Scratch)?;
        let home = PrivateHome::make(scratch.path()).map_err(ConfineError::Scratch)?;
        let mut agent = AgentState::default();
        if phase.is_work() {
            let known = owner.task.and_then(|task| task.agent);
            let users = self.batch.settings.sandbox.home.as_deref();
            agent = AgentState::of(known, command, users, path_of);
            agent
                .copy_into(&home.home())
                .map_err(ConfineError::Scratch)?;
        }
        Ok(KeptHome {
            agent,
            home,
            scratch,
        })
    }

    /// Sets the variables of the machine, and those by which agents learn that they
    /// are confined.
    fn set_variables(&self, spec: &mut CommandSpec) {
        for (name, value) in &self.confinement.host.variables {
            set(spec, name, value);
        }
        for agent in Agent::ALL {
            for name in agent.spec().confined_variables {
                set(spec, name, "1");
            }
        }
        spec.env.sort();
    }

    /// Opens what a command may write, where nothing is mounted.
    fn open_by_landlock(
        &self,
        phase: Phase,
        home: &PrivateHome,
        hooks: Vec<PathBuf>,
        spec: &mut CommandSpec,
    ) {
        let open = self.confinement.open_home.as_deref();
        set_home(spec, open, &home.home(), &home.temporary());
        let mut writable = vec![self.folder_of(phase).to_path_buf()];
        writable.extend(self.git_of(phase).map(|git| git.folder.clone()));
        // A step in another world leaves its evidence and requests at home.
        if !phase.is_verification() {
            writable.push(self.roots.step.clone());
        }
        writable.extend([home.home(), home.temporary()]);
        writable.extend(self.confinement.wished.iter().cloned());
        writable.extend(DEVICES.map(PathBuf::from));
        let host = &self.confinement.host;
        let mut readable: Vec<PathBuf> = host.read.keys().cloned().collect();
        readable.extend(SYSTEM.map(PathBuf::from));
        readable.extend(hooks);
        if let Some(git) = self.git_of(phase) {
            readable.extend(git.objects.iter().cloned());
            readable.extend(git.lfs.clone());
        }
        if !phase.is_verification() {
            let (_, handed_out) = self.handed_out(phase, self.folder_of(phase), false);
            readable.extend(handed_out);
        }
        let writable = outermost(writable);
        spec.lists = Some(Lists::new(
            writable.iter().map(PathBuf::as_path),
            readable.iter().map(PathBuf::as_path),
        ));
        let resources = &self.batch.settings.resources;
        spec.bounds = CommandBounds {
            processes: None,
            open_files: resources.open_files,
            file_bytes: resources.disk,
        };
    }

    /// Returns what all processes of a command together may use.
    fn ceilings(
        &self,
        phase: Phase,
        home: &PrivateHome,
        seeds: usize,
        stack: Option<&Stack>,
    ) -> Ceilings {
        let resources = &self.batch.settings.resources;
        let mut ceilings = Ceilings::default();
        ceilings.memory = resources.memory;
        ceilings.processes = resources.processes;
        ceilings.disk = resources.disk;
        // Of a stack the changes are measured, and not what the kernel works in.
        let changes = stack.map(|stack| stack.changes.join("upper"));
        let mut folders = vec![changes.unwrap_or_else(|| self.folder_of(phase).to_path_buf())];
        folders.extend(self.git_of(phase).map(|git| git.folder.clone()));
        let layers = match self.confinement.mounts() {
            true => self.confinement.host.caches.len() + seeds,
            false => 0,
        };
        folders.extend(home.written(layers));
        ceilings.measure(folders.iter().map(PathBuf::as_path));
        ceilings
    }
}

/// Returns what of the machine the commands of a worktree may read. It can be one of
/// another repository, whose steps then write its worktrees.
fn host_of(settings: &Settings, worktree: &Path) -> HostAccess {
    if settings.sandbox.choice.mode == SandboxMode::None {
        return HostAccess::default();
    }
    let mut search = Search::of(settings);
    search.steps.extend(StepFolders::of(worktree));
    HostAccess::find(&search)
}

/// Refuses a worktree that holds the files of the image: its commands would
/// write them.
fn keep_image_out(image: Option<&Path>, worktree: &Path) -> Result<(), SandboxUnavailable> {
    match image {
        Some(image) if image.starts_with(worktree) => Err(SandboxUnavailable {
            mode: SandboxMode::Container,
            why: format!(
                "the files of the image are in the worktree {}; set XDG_CACHE_HOME to a folder \
                outside",
                worktree.display()
            ),
        }),
        _ => Ok(()),
    }
}

/// Says what a mode without mounts leaves open.
fn exposure(mode: SandboxMode, worktree: &Path, memory: &[PathBuf]) -> Vec<String> {
    let own = [worktree.to_path_buf()];
    let open: Vec<String> = exposed(&own, memory)
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    if mode != SandboxMode::Landlock || open.is_empty() {
        return Vec::new();
    }
    vec![format!(
        "this worktree holds {}, which landlock cannot hide from its commands; use a linked \
        worktree or namespaces. A change of the issue store is detected and reported",
        open.join(" and ")
    )]
}

/// Says what a person opened that stays shut, or is not there.
fn refused_requests(
    asked: &[PathBuf],
    wished: &BTreeSet<PathBuf>,
    image: Option<&Path>,
) -> Vec<String> {
    let holds = |path: &Path| match image {
        Some(image) if image.starts_with(path) || path.starts_with(image) => {
            "the files of the image"
        }
        _ => "the issue store or artifacts",
    };
    let refused = asked.iter().filter(|path| !wished.contains(*path));
    let refused = refused.map(|path| {
        format!(
            "`write` of [sandbox] names {}, which holds {}; it stays read-only",
            path.display(),
            holds(path)
        )
    });
    let gone = wished.iter().filter(|path| !path.exists()).map(|path| {
        format!(
            "`write` of [sandbox] names {}, which does not exist; ignored",
            path.display()
        )
    });
    refused.chain(gone).collect()
}

/// What the harness itself goes by: issue memory, the trajectory, artifacts.
fn memory(settings: &Settings) -> Vec<PathBuf> {
    let roots = &settings.roots;
    let private = roots.repository.join(".premath");
    let folders = [
        roots.issues.parent(),
        roots.trajectory.parent(),
        roots.witnesses.parent(),
        // Its own, where issue memory and the trajectory are elsewhere.
        Some(&*private),
    ];
    let found: BTreeSet<PathBuf> = folders
        .into_iter()
        .flatten()
        .map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
        .collect();
    found.into_iter().collect()
}
