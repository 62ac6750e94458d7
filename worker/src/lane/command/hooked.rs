//! What the hooks of an agent reported, when its command is over.

use super::CommandError;
use crate::lane::confine::CommandHooks;
use premath_evidence::{FoldedStream, HookFault, HookJournal, reconcile};
use premath_kernel::failure::FailureClass;
use premath_kernel::record::witness::HookFacts;
use premath_memory::artifact;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// The hooks of a turn that is over.
#[derive(Debug)]
pub(super) struct HookedTurn {
    journal: HookJournal,
    /// The compressed file of the journal.
    path: PathBuf,
    /// The SHA-256 of what it holds.
    sha256: String,
    faults: Vec<HookFault>,
}

impl HookedTurn {
    /// Ends the hooks of a command.
    pub(super) fn end(hooks: CommandHooks) -> Result<Self, CommandError> {
        let file = hooks.file.clone();
        let (journal, sha256) = hooks.finish().map_err(|source| CommandError::Stream {
            path: file.clone(),
            source,
        })?;
        Ok(Self {
            journal,
            path: artifact::compress(&file)?,
            sha256,
            faults: Vec::new(),
        })
    }

    /// Compares what the hooks reported with the agent's stream.
    pub(super) fn reconcile(&mut self, stream: &FoldedStream) {
        self.faults = reconcile(stream, &self.journal);
    }

    /// Returns the classes of the faults, each once.
    pub(super) fn classes(&self) -> impl Iterator<Item = FailureClass> {
        let classes = self.faults.iter().map(|fault| fault.class);
        classes.collect::<BTreeSet<_>>().into_iter()
    }

    /// Returns what the hooks reported.
    pub(super) fn into_journal(self) -> HookJournal {
        self.journal
    }

    /// Returns what the witness has.
    pub(super) fn facts(&self) -> HookFacts {
        let path = self.path.to_string_lossy().into_owned();
        self.journal.facts(&self.faults, path, self.sha256.clone())
    }
}
