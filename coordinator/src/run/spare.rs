//! Spare worktrees of a batch that runs: made beside the passes, which do not
//! wait for them.

use super::{InboxMessage, Shell};
use crate::machine::{MachineEvent, SpareNews};
use crate::report::Notice;
use crate::spare::SpareSite;
use premath_kernel::json::id::WorkerName;
use premath_memory::Claimed;
use premath_memory::cause::chain;
use std::path::PathBuf;

impl Shell<'_> {
    /// Has a spare worktree made, if there is an issue to work on in it.
    pub(super) fn make_spare(&mut self) {
        let number = self.lanes.len() + 1;
        let worker = WorkerName::from(format!("{}.{number}", self.worker_prefix));
        let has_work = self.batch.has_work_for(&worker).unwrap_or(false);
        let Some(site) = self.spare.as_mut().filter(|_| has_work) else {
            self.feed(MachineEvent::Spare(SpareNews::NotNeeded));
            return;
        };
        let site = site.take();
        self.make_worktree(site);
    }

    /// Has a worktree made for a lane that an operator adds.
    pub(super) fn make_lane(&mut self) {
        match self.spare.as_mut().map(SpareSite::take) {
            Some(site) => self.make_worktree(site),
            None => drop(self.feed(MachineEvent::Spare(SpareNews::Refused))),
        }
    }

    fn make_worktree(&self, site: SpareSite) {
        let send = self.send.clone();
        let made = std::thread::Builder::new()
            .name("spare".to_owned())
            .spawn(move || {
                let _ = send.send(InboxMessage::Spare(site.make()));
            });
        if let Err(error) = made {
            let _ = self.send.send(InboxMessage::Spare(Err(error.to_string())));
        }
    }

    /// Begins to work in a spare worktree.
    pub(super) fn spare_made(&mut self, made: Result<PathBuf, String>) -> MachineEvent<Claimed> {
        let started = made.and_then(|worktree| {
            let place = worktree.display().to_string();
            self.batch.warmth.expect_another();
            let started = self.start_lane(worktree);
            started.map(|()| place).map_err(|error| {
                drop(self.batch.warmth.enter());
                chain(&error)
            })
        });
        match started {
            Ok(place) => {
                tracing::info!(worktree = place, "another worktree is used");
                MachineEvent::Spare(SpareNews::Made)
            }
            Err(why) => {
                let detail = format!("cannot create another worktree: {why}");
                self.reporter.notice(&Notice::Warning { detail: &detail });
                MachineEvent::Spare(SpareNews::Refused)
            }
        }
    }
}
