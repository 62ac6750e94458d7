//! What the commands of a lane may write, and how they are kept to it.
//!
//! Everything that a lane runs for somebody is confined: what the agent does,
//! and the setup, hooks and verifications, which run code that it wrote. The
//! push of the landing target is the harness's own, and is not.

use super::Lane;
use super::command::Phase;
use crate::settings::Settings;
use crate::supervisor::CommandSpec;
use crate::supervisor::confine::bubblewrap::{self, View};
use crate::supervisor::confine::scratch::Scratch;
use premath_kernel::failure::FailureClass;
use premath_kernel::sandbox::{
    SandboxMode, SandboxProfile, SandboxUnavailable, admitted, exposed, outermost,
};
use premath_memory::roots::LaneRoots;
use premath_memory::{StoreError, projection};
use premath_worktree::tree::{Tree, TreeError};
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

/// The variables that say where temporary files go.
const TEMPORARY: [&str; 3] = ["TEMP", "TMP", "TMPDIR"];

/// A command cannot be confined; it is not run then.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConfineError {
    #[error(transparent)]
    Unavailable(#[from] SandboxUnavailable),
    #[error("cannot make a temporary folder for the step")]
    Scratch(#[source] std::io::Error),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ConfineError {
    pub(super) fn class(&self) -> FailureClass {
        match self {
            Self::Unavailable(error) => error.class(),
            Self::Scratch(_) => FailureClass::SandboxUnavailable,
            Self::Tree(error) => error.class(),
            Self::Store(error) => error.class(),
        }
    }
}

/// How the commands of a lane are confined.
#[derive(Debug)]
pub(super) struct Confinement {
    mode: SandboxMode,
    /// `bwrap`, where it confines.
    program: PathBuf,
    /// What is open beside the lane's own: devices, tools, a person's wishes.
    open: BTreeSet<PathBuf>,
    /// What in the lane's own is shut, where the mode can say so.
    shut: Vec<PathBuf>,
    /// The profile's reference.
    reference: String,
    /// The temporary folder of a step, by the step.
    scratch: Option<(String, Scratch)>,
    pub(super) warnings: Vec<String>,
}

impl Confinement {
    /// Finds out how the commands of a lane are confined, and puts the profile
    /// beside the witnesses.
    pub(super) fn of(
        settings: &Settings,
        tree: &Tree,
        worktree: &Path,
        roots: &LaneRoots,
    ) -> Result<Self, ConfineError> {
        let own = own(tree, worktree);
        let memory = memory(settings);
        let left_open = exposed(&own, &memory);
        let mode = settings.sandbox.mode_of_lane(!left_open.is_empty());
        let mut warnings = Vec::new();
        if mode == SandboxMode::Landlock && tree.is_main() {
            let why = "it cannot keep a step out of the git folder of the main checkout; name a linked worktree with --worktree, or let lanes be made with --lanes".to_owned();
            return Err(SandboxUnavailable { mode, why }.into());
        }
        if mode == SandboxMode::Landlock && !left_open.is_empty() {
            let open: Vec<String> = left_open.iter().map(|p| p.display().to_string()).collect();
            warnings.push(format!(
                "this worktree holds {}, which landlock cannot keep from its commands (a linked worktree or bubblewrap can); a change of issue memory is detected and told",
                open.join(" and ")
            ));
        }
        let mut closed = memory.clone();
        closed.extend(tree.others());
        // What a person names may lie in another checkout, but no step may
        // write what the harness itself goes by.
        let wished = admitted(settings.sandbox.write.iter().cloned(), &memory);
        for refused in settings
            .sandbox
            .write
            .iter()
            .filter(|p| !wished.contains(*p))
        {
            warnings.push(format!(
                "`write` of [sandbox] opens {}, which holds issue memory or artifacts; it stays shut",
                refused.display()
            ));
        }
        for gone in wished.iter().filter(|path| !path.exists()) {
            warnings.push(format!(
                "`write` of [sandbox] names {}, which is not there; it opens nothing",
                gone.display()
            ));
        }
        let mut open = admitted(settings.sandbox.tool_state.iter().cloned(), &closed);
        open.extend(wished);
        open.extend(DEVICES.map(PathBuf::from));
        let mut shut: Vec<PathBuf> = left_open.into_iter().map(Path::to_path_buf).collect();
        shut.extend(roots.session.parent().map(Path::to_path_buf));
        let shut = outermost(shut.into_iter().filter(|path| path != worktree));
        let shut: Vec<PathBuf> = match mode {
            SandboxMode::Bubblewrap => shut.into_iter().collect(),
            SandboxMode::Landlock | SandboxMode::None => Vec::new(),
        };
        let profile = profile(mode, &open, &shut, worktree);
        let reference = profile.reference();
        if mode != SandboxMode::None {
            let file = settings.roots.witnesses.join(format!("{reference}.json"));
            projection::write_document(&file, &profile)?;
        }
        let program = match mode {
            SandboxMode::Bubblewrap => {
                bubblewrap::find().map_err(|why| SandboxUnavailable { mode, why })?
            }
            SandboxMode::Landlock | SandboxMode::None => PathBuf::new(),
        };
        Ok(Self {
            mode,
            program,
            open,
            shut,
            reference,
            scratch: None,
            warnings,
        })
    }

    /// Tells whether commands see files elsewhere than they are.
    pub(super) const fn mounts(&self) -> bool {
        false
    }

    /// Removes the temporary folder of the step that is over.
    pub(super) fn end_step(&mut self) {
        self.scratch = None;
    }

    /// Returns the temporary folder of a step.
    fn scratch(&mut self, step_id: &str) -> Result<PathBuf, ConfineError> {
        match &self.scratch {
            Some((of, scratch)) if of == step_id => Ok(scratch.path().to_path_buf()),
            _ => {
                self.scratch = None;
                let scratch = Scratch::make().map_err(ConfineError::Scratch)?;
                let path = scratch.path().to_path_buf();
                self.scratch = Some((step_id.to_owned(), scratch));
                Ok(path)
            }
        }
    }
}

impl Lane {
    /// Confines a command of a step; returns the reference of the profile, and
    /// nothing where it is not confined.
    pub(super) fn confine(
        &mut self,
        phase: Phase,
        step_id: &str,
        spec: &mut CommandSpec,
    ) -> Result<Option<String>, ConfineError> {
        if phase == Phase::Push || self.confinement.mode == SandboxMode::None {
            return Ok(None);
        }
        let scratch = self.confinement.scratch(step_id)?;
        spec.env
            .retain(|(name, _)| !TEMPORARY.iter().any(|temporary| name == temporary));
        for name in TEMPORARY {
            spec.env.push((name.into(), scratch.clone().into()));
        }
        spec.env.sort();
        let mut writable = vec![self.folder_of(phase).to_path_buf()];
        writable.extend(self.git_of(phase).map(|git| git.folder.clone()));
        if self.is_direct() && !phase.is_verification() {
            writable.extend(own(&self.tree, &self.worktree));
        }
        // A step in another world leaves its evidence and requests at home.
        if !phase.is_verification() {
            writable.push(self.roots.step.clone());
        }
        writable.push(scratch.clone());
        writable.extend(self.confinement.open.iter().cloned());
        let writable: Vec<PathBuf> = outermost(writable).into_iter().collect();
        spec.scratch = Some(scratch);
        if self.confinement.mode == SandboxMode::Bubblewrap {
            let view = View {
                writable,
                read_only: self.confinement.shut.clone(),
                reopened: vec![self.roots.step.clone()],
            };
            view.wrap(&self.confinement.program, spec);
        } else {
            spec.writable = Some(writable);
        }
        Ok(Some(self.confinement.reference.clone()))
    }
}

/// What is a lane's own: its files, and in a main worktree all of git's.
fn own(tree: &Tree, worktree: &Path) -> Vec<PathBuf> {
    let mut own = vec![worktree.to_path_buf()];
    if tree.is_main() {
        let git = tree.common_folder();
        own.push(std::fs::canonicalize(git).unwrap_or_else(|_| git.to_path_buf()));
    }
    own
}

/// What the harness itself goes by: issue memory, the trajectory, artifacts.
fn memory(settings: &Settings) -> Vec<PathBuf> {
    let roots = &settings.roots;
    let folders = [
        roots.issues.parent(),
        roots.trajectory.parent(),
        roots.witnesses.parent(),
    ];
    let found: BTreeSet<PathBuf> = folders
        .into_iter()
        .flatten()
        .map(|path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()))
        .collect();
    found.into_iter().collect()
}

/// The profile: a lane's own by name, so that it is the same in every lane and
/// step.
fn profile(
    mode: SandboxMode,
    open: &BTreeSet<PathBuf>,
    shut: &[PathBuf],
    worktree: &Path,
) -> SandboxProfile {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let mut write: BTreeSet<String> = open.iter().map(text).collect();
    for own in ["{worktree}", "{step}", "{git:commit}", "{temporary}"] {
        write.insert(own.to_owned());
    }
    let shut = shut.iter().map(|path| match path.strip_prefix(worktree) {
        Ok(below) => format!("{{worktree}}/{}", below.display()),
        Err(_) => text(path),
    });
    SandboxProfile::new(mode, write, shut.collect())
}
