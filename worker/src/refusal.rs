//! What is left on record of a batch that was refused before it began: a witness, a row
//! of the trajectory, and the sessions of its lanes (HARNESS-RUNTIME 3.2).
//!
//! Issue memory is not opened.

use crate::batch::batch_holder;
use crate::settings::{LoopFlags, SettingsError, absolute, roots_of};
use crate::stderr::{failed, say};
use crate::witness;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::record::session::{self, SessionState, SessionWrite};
use premath_kernel::record::trajectory::{StepRow, batch_id, batch_refused_row};
use premath_kernel::record::witness::RefusalWitness;
use premath_memory::cause::chain;
use premath_memory::ignored::exclude_from_status;
use premath_memory::projection::{self, ProjectionError, PublishedCopy};
use premath_memory::roots::{LaneRoots, LaneState, MemoryRoots};
use premath_memory::{Trajectory, TrajectoryFileError, WorktreeLock, clock};
use premath_worktree::tree::Tree;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A lane that would have worked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedLane {
    /// The worker of the lane.
    pub worker_id: WorkerName,
    /// The worktree of the lane.
    pub worktree: PathBuf,
}

/// Says why a batch did not begin, records it where it was refused, and
/// returns the exit code.
pub fn report(flags: &LoopFlags, error: &SettingsError, lanes: &[RefusedLane]) -> u8 {
    record(flags, error, lanes);
    let code = failed(error, error.hint(), error.exit_code());
    let classes = error.refusal_classes();
    if !classes.is_empty() {
        let what = match code {
            crate::exit::REFUSED => "refused before dispatch",
            _ => "failure class",
        };
        say(&format!("{what}: {}", words(&classes)));
    }
    code
}

fn words(classes: &[FailureClass]) -> String {
    let words: Vec<&str> = classes.iter().map(|class| class.as_str()).collect();
    words.join(", ")
}

/// Records a refusal, where the error is one; what cannot be written is
/// reported in the log, because the refusal holds regardless.
fn record(flags: &LoopFlags, error: &SettingsError, lanes: &[RefusedLane]) {
    let classes = error.refusal_classes();
    let Ok(roots) = roots_of(flags) else { return };
    // Where no issue memory is, nothing is created either.
    if classes.is_empty() || !roots.issues.exists() {
        return;
    }
    let now = clock::now().wall;
    let id = batch_id(&batch_holder(clock::this_process().as_ref()), now);
    let mut row = batch_refused_row(&id, &classes, now);
    row.instruction_refs = error.instruction_refs();
    let mut witness = RefusalWitness::new(&row.step_id, &classes, chain(error), Stamp::at(now));
    witness.instruction_ref = row.instruction_refs.iter().next().map(str::to_owned);
    if let SettingsError::Instruction(error) = error {
        witness.classification = error.classification().cloned();
    }
    match witness::write(&roots.witnesses, &row.step_id, "refusal", &witness) {
        Ok(witness) => drop(row.witness_refs.insert(witness.reference)),
        Err(error) => tracing::warn!(%error, "the refusal has no witness"),
    }
    if let Err(error) = write_row(&roots, &row) {
        tracing::warn!(%error, "the refusal has no row");
    }
    for lane in lanes {
        if let Err(error) = write_session(flags, &roots, lane, &classes, &row) {
            tracing::warn!(%error, worktree = %lane.worktree.display(), "the refusal has no session");
        }
    }
}

fn write_row(roots: &MemoryRoots, row: &StepRow) -> Result<(), TrajectoryFileError> {
    Trajectory::open(&roots.trajectory)?.append(row)
}

/// Writes a lane's session, unless the worktree is in use or has an interrupted
/// step to recover.
fn write_session(
    flags: &LoopFlags,
    roots: &MemoryRoots,
    lane: &RefusedLane,
    classes: &[FailureClass],
    row: &StepRow,
) -> Result<(), ProjectionError> {
    let worktree = absolute(&lane.worktree);
    let Ok(tree) = Tree::open_in(&roots.repository, &worktree) else {
        return Ok(());
    };
    let _lock = WorktreeLock::acquire_in(tree.git_folder(), Duration::ZERO)?;
    let published = session_path(flags, &worktree)?;
    let state = LaneState::at(&roots.repository, &worktree);
    state.prepare()?;
    let prior = projection::read_session(&state.session)?;
    if prior.as_ref().is_some_and(|session| session.step.is_some()) {
        return Ok(());
    }
    let write = SessionWrite {
        state: SessionState::Stopped,
        issue_id: Some(IssueId::default()),
        summary: Some(format!("refused before dispatch: {}", words(classes))),
        next_step: Some("correct the batch's authorisation".to_owned()),
        instruction_refs: Some(row.instruction_refs.clone()),
        witness_refs: Some(row.witness_refs.clone()),
        issues_path: Some(roots.issues.to_string_lossy().into_owned()),
        issues_snapshot_ref: Some(String::new()),
        worker_id: Some(lane.worker_id.clone()),
        ..SessionWrite::default()
    };
    let session = session::write(prior, write, clock::now().wall);
    let copy = PublishedCopy {
        worktree: &worktree,
        file: &published,
    };
    projection::write_published(&state.session, copy, &session)
}

fn session_path(flags: &LoopFlags, worktree: &Path) -> Result<PathBuf, ProjectionError> {
    let mut roots = LaneRoots::at(worktree);
    if let Some(path) = &flags.session_path {
        roots.session = worktree.join(path);
    }
    roots.prepare()?;
    exclude_from_status(worktree)?;
    Ok(roots.session)
}
