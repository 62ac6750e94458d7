//! Issue memory from which issues are claimed.

use crate::figure::{Wrong, timed};
use crate::scratch;
use premath_kernel::authority::{LeaseAuthority, MutationMode};
use premath_kernel::issue::lease::{AssigneeRule, ClaimRequest, Term};
use premath_memory::{ClaimScope, IssueMemory, OpenOptions, clock};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// Issue memory from which issues are claimed, as lanes do it.
pub(crate) struct Claimer {
    pub(crate) memory: IssueMemory,
    authority: LeaseAuthority,
    pub(crate) claimed: Vec<String>,
}

impl Claimer {
    pub(crate) fn on(folder: &Path, count: usize) -> Result<Self, Wrong> {
        let path = folder.join("issues.jsonl");
        scratch::issues(&path, count, |_| None)?;
        let mode = MutationMode::human_override("benchmark", None, clock::now().wall)?;
        Ok(Self {
            memory: IssueMemory::open(&path, &OpenOptions::default())?,
            authority: mode.lease_authority(),
            claimed: Vec::new(),
        })
    }

    /// Claims issues one by one; returns the rows that were written and how
    /// many a second it were.
    pub(crate) fn claim(
        &mut self,
        count: usize,
        threads: usize,
    ) -> Result<(Vec<String>, f64), Wrong> {
        let before = fs::metadata(self.memory.path())?.len();
        let (ids, elapsed) = timed(|| {
            std::thread::scope(|scope| {
                let workers: Vec<_> = (0..threads)
                    .map(|thread| {
                        let share = (count + thread) / threads;
                        let this = &*self;
                        scope.spawn(move || this.claim_some(&format!("lane-{thread}"), share))
                    })
                    .collect();
                let mut ids = Vec::new();
                for worker in workers {
                    let claimed = worker.join();
                    ids.extend(claimed.map_err(|_| Wrong::because("a thread panicked"))??);
                }
                Ok(ids)
            })
        })?;
        self.claimed.extend(ids);
        let written = fs::read(self.memory.path())?;
        let written = &written[usize::try_from(before)?..];
        let lines: Vec<String> = String::from_utf8_lossy(written)
            .split_inclusive('\n')
            .map(str::to_owned)
            .collect();
        if lines.len() != count {
            return Err(Wrong::because(format!(
                "{count} claims wrote {} rows",
                lines.len()
            )));
        }
        Ok((lines, count as f64 / elapsed.as_secs_f64()))
    }

    /// Claims issues one by one; returns their ids.
    pub(crate) fn claim_some(&self, worker: &str, count: usize) -> Result<Vec<String>, Wrong> {
        let scope = ClaimScope::default();
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            let wish = ClaimRequest {
                generation_floor: 0,
                claimant: worker.to_owned(),
                lease_id: None,
                term: Term::Ttl(Duration::from_secs(3_600)),
                assignees: AssigneeRule::default(),
                holder: clock::this_process(),
            };
            let claims = self
                .memory
                .claim_next(&self.authority, vec![wish], &scope)?;
            let claimed = claims.into_iter().flatten().next();
            let claimed = claimed.ok_or_else(|| Wrong::because("there was nothing to claim"))?;
            ids.push(claimed.claim.issue_id.into());
        }
        Ok(ids)
    }
}
