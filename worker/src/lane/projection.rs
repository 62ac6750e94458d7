//! A step's session and feature, as its lane shows them.

use super::Lane;
use premath_kernel::authority::{StepIdentity, lineage};
use premath_kernel::json::id::IssueId;
use premath_kernel::json::reference::{self, RefSet};
use premath_kernel::record::feature::{FeatureLedger, FeatureStatus, FeatureWrite};
use premath_kernel::record::session::{SessionState, SessionStep, SessionWrite, StepWrite};
use premath_memory::projection::{ProjectionError, PublishedCopy};
use premath_memory::{Claimed, clock};

impl Lane {
    pub(crate) fn begin_session(
        &mut self,
        step: &StepIdentity,
        start: SessionStep,
    ) -> Result<(), ProjectionError> {
        // A step is a session of its own, from files.
        self.session = None;
        let write = SessionWrite {
            session_id: Some(step.session_id.clone()),
            state: SessionState::Active,
            issue_id: Some(step.issue_id.clone()),
            summary: Some(format!("working on {}", step.issue_id)),
            next_step: Some("work, verify, gate, close".to_owned()),
            instruction_refs: Some(self.batch.settings.mode.instruction_refs()),
            lineage_refs: Some(self.lineage(&step.issue_id)),
            issues_path: Some(self.batch.memory.path().to_string_lossy().into_owned()),
            worker_id: Some(self.worker_id.clone()),
            batch_id: Some(self.batch.id().to_owned()),
            step: StepWrite::Set(start),
            ..SessionWrite::default()
        };
        self.write_session(write)
    }

    pub(crate) fn lineage(&self, issue_id: &IssueId) -> RefSet {
        lineage::site_lineage(
            issue_id,
            &self.worker_id,
            &self.batch.settings.roots.repository.to_string_lossy(),
            &self.batch.memory.path().to_string_lossy(),
            &self.worktree.to_string_lossy(),
            &self.batch.settings.mode,
        )
    }

    /// Projects the issue's feature; any other that a crash left in progress
    /// is pending again.
    pub(crate) fn feature(
        &mut self,
        claimed: &Claimed,
        status: FeatureStatus,
        verification: Option<&str>,
    ) -> Result<(), ProjectionError> {
        let path = &self.home.ledger;
        let id = claimed.claim.issue_id.as_str();
        let now = clock::now().wall;
        let mut ledger = self.written_ledger.read(path)?;
        let left: Vec<String> = ledger
            .iter()
            .flat_map(|ledger| &ledger.features)
            .filter(|feature| {
                feature.known_status() == Some(FeatureStatus::InProgress)
                    && feature.feature_id != *id
            })
            .map(|feature| feature.feature_id.clone())
            .collect();
        let mut writes: Vec<FeatureWrite> = left
            .into_iter()
            .map(|other| FeatureWrite {
                status: Some(FeatureStatus::Pending),
                ..FeatureWrite::new(other)
            })
            .collect();
        writes.push(FeatureWrite {
            status: Some(status),
            issue_id: Some(id.into()),
            summary: Some(claimed.row.text_of("title")),
            instruction_refs: Some(self.batch.settings.mode.instruction_refs()),
            session_ref: self
                .session
                .as_ref()
                .map(|session| reference::session(&session.session_id)),
            verification_refs: verification.map(|reference| RefSet::from_iter([reference])),
            ..FeatureWrite::new(id)
        });
        for write in writes {
            match FeatureLedger::write(ledger.take(), write, now) {
                Ok(written) => ledger = Some(written),
                Err(source) => {
                    return Err(ProjectionError::Ledger {
                        path: path.clone(),
                        source,
                    });
                }
            }
        }
        match ledger {
            Some(ledger) => {
                let copy = PublishedCopy {
                    worktree: self.roots.worktree(),
                    file: &self.roots.ledger,
                };
                self.written_ledger.write_published(path, copy, ledger)
            }
            None => Ok(()),
        }
    }
}
