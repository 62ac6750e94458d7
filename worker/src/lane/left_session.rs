//! The session of an agent whose attempt failed: the next attempt at the issue in
//! this lane may resume it.

use super::Lane;
use super::confine::KeptHome;
use crate::batch::Batch;
use crate::settings::Work;
use premath_evidence::RunSpending;
use premath_kernel::json::id::IssueId;
use std::path::{Component, Path, PathBuf};

/// A session that an attempt left.
#[derive(Debug)]
pub(super) struct LeftSession {
    issue_id: IssueId,
    provider: String,
    session: String,
    /// What it used so far, in all attempts.
    used: RunSpending,
    /// The private home that holds it, where commands have one.
    pub(super) home: Option<KeptHome>,
}

/// A session that an attempt resumes.
#[derive(Debug)]
pub(crate) struct ResumedSession {
    /// The agent's id of it.
    pub(crate) session: String,
    /// What it used in earlier attempts.
    pub(crate) used: RunSpending,
}

/// Returns the path of a folder from another one, both absolute.
fn from(base: &Path, folder: &Path) -> PathBuf {
    let shared = base.components().zip(folder.components());
    let shared = shared.take_while(|(one, other)| one == other).count();
    let up = base.components().skip(shared).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(folder.components().skip(shared)).collect();
    match path.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => path,
    }
}

impl Lane {
    /// Keeps the session of an attempt that failed, in the place of any other.
    pub(crate) fn leave_session(
        &mut self,
        issue_id: &IssueId,
        provider: &str,
        left: ResumedSession,
    ) {
        let home = self.kept.take();
        if home.is_none() && self.confinement.has_private_home() {
            return;
        }
        self.left = Some(LeftSession {
            issue_id: issue_id.clone(),
            provider: provider.to_owned(),
            session: left.session,
            used: left.used,
            home,
        });
    }

    /// Returns the folder of a session that outlives its attempt, from the repository
    /// root: a command without a private home leaves it in the home of the user.
    pub(crate) fn session_folder(&self, batch: &Batch, work: &Work) -> Option<String> {
        let spec = work.adapter.agent()?.spec();
        if self.confinement.has_private_home() || !spec.is_resumable(&work.command) {
            return None;
        }
        let folder = from(&batch.settings.roots.repository, &self.worktree);
        folder.to_str().map(str::to_owned)
    }

    /// Takes up the session that the last attempt at an issue left here.
    pub(crate) fn take_up_session(
        &mut self,
        issue_id: &IssueId,
        provider: &str,
    ) -> Option<ResumedSession> {
        let is_same =
            |left: &mut LeftSession| left.issue_id == *issue_id && left.provider == provider;
        let left = self.left.take_if(is_same)?;
        self.kept = left.home;
        Some(ResumedSession {
            session: left.session,
            used: left.used,
        })
    }
}
