//! Witness files: what a command or a change was, in a document that rows
//! refer to by its digest (HARNESS-RUNTIME 3.2).

use crate::supervisor::{Exit, ExitCause, StreamReport};
use premath_kernel::json::canonical;
use premath_kernel::json::id::StepId;
use premath_kernel::policy::retry::{CommandEnd, EndCause};
use premath_kernel::record::witness::{StreamFacts, TreeFacts};
pub(crate) use premath_memory::artifact::of_step as file;
use premath_memory::{StoreError, artifact};
use premath_worktree::tree::TreeState;
use serde::Serialize;
use std::path::Path;

/// A witness that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Witness {
    /// `ciwitness://<step>/<phase>/<H of the document>`.
    pub(crate) reference: String,
}

/// Writes a witness document below a folder.
pub(crate) fn write(
    folder: &Path,
    step_id: &StepId,
    phase: &str,
    document: &impl Serialize,
) -> Result<Witness, StoreError> {
    let document = canonical::value_of(document);
    let reference = premath_memory::witness::write(folder, step_id, phase, &document)?;
    Ok(Witness { reference })
}

/// Reads a stream that a command printed; empty if it printed nothing.
pub(crate) fn printed(report: &StreamReport, path: &Path) -> Vec<u8> {
    if report.bytes == 0 {
        return Vec::new();
    }
    artifact::read(path).ok().flatten().unwrap_or_default()
}

pub(crate) fn stream(report: &StreamReport, path: &Path) -> StreamFacts {
    StreamFacts {
        bytes: report.bytes,
        sha256: report.sha256.clone(),
        cut_bytes: report.cut_bytes,
        write_error: report.write_error.clone(),
        path: path.to_string_lossy().into_owned(),
    }
}

/// How a command ended, as a witness says it.
pub(crate) fn end(exit: &Exit) -> CommandEnd {
    CommandEnd {
        cause: match &exit.cause {
            ExitCause::Exited => EndCause::Exited,
            ExitCause::Limit => EndCause::Limit,
            ExitCause::Stopped => EndCause::Stopped,
            ExitCause::Exceeded(_) => EndCause::Exceeded,
            ExitCause::SpawnFailed { .. } => EndCause::SpawnFailed,
        },
        code: exit.code,
        signal: exit.signal,
    }
}

/// What a worktree was, as a witness says it.
pub(crate) fn tree(state: &TreeState) -> TreeFacts {
    TreeFacts {
        head: state.head.clone(),
        tree: state.tree.clone(),
    }
}
