//! What the lanes of one process share: memory, trajectory, settings, and what
//! the batch knows of its issues.

use crate::interrupt::Interrupt;
use crate::prompt::LastFailure;
use crate::settings::Settings;
use premath_evidence::TurnPolicies;
use premath_kernel::authority::LeaseAuthority;
use premath_kernel::dispatch::{Discoveries, Discovery, awaited_retry, is_follow_up};
use premath_kernel::failure::FailureClass;
use premath_kernel::graph::Scope;
use premath_kernel::handoff::{Handoff, StepEnd};
use premath_kernel::issue::Issue;
use premath_kernel::lease::{self, Claim, ClaimRequest, Holder, LeaseKey, LeaseState, Term};
use premath_kernel::reference::{self, LeaseHandoff};
pub use premath_kernel::trajectory::RecoverAt;
use premath_kernel::trajectory::{
    BatchHistory, BatchHolder, BatchRecord, ClosedIssue, StepRow, action, batch_end_row, batch_id,
    batch_resume_row, batch_start_row, is_settled, take_over_row,
};
use premath_memory::{
    ChangeError, ClaimScope, Claimed, IssueMemory, IssueRow, OpenOptions, StoreError, Trajectory,
    TrajectoryFileError, clock,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// What lanes of one process share.
#[derive(Debug)]
pub struct Batch {
    /// What the batch is run with.
    pub settings: Settings,
    /// Issue memory.
    pub memory: IssueMemory,
    /// The trajectory.
    pub trajectory: Trajectory,
    /// What the person at the keyboard asked for.
    pub interrupt: Interrupt,
    /// The executable that lanes start as their supervisor.
    pub program: PathBuf,
    opened: SystemTime,
    id: String,
    /// Whether the batch has rows of its own in the trajectory.
    recorded: bool,
    resumed: bool,
    knowledge: Mutex<Knowledge>,
}

#[derive(Debug, Default)]
struct Knowledge {
    history: BatchHistory,
    failures: BTreeMap<String, FailedStep>,
    /// Issues that a lane of this process was given and that have no row for
    /// it yet: released, they look claimable before the history knows why not.
    in_hand: BTreeSet<String>,
    /// The highest generation of each issue that has a row: issue memory may
    /// have been taken back to an older version since.
    generations: Arc<BTreeMap<String, u64>>,
    /// What steps of this batch filed.
    discoveries: Discoveries,
}

/// The last step of an issue that failed in this batch.
#[derive(Clone, Debug)]
pub(crate) struct FailedStep {
    pub(crate) step_id: String,
    pub(crate) classes: Vec<String>,
}

/// A batch cannot begin, or issue memory or trajectory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The active issues wait for each other in a circle.
    #[error("the active issues wait for each other in a circle: {}", .0.join(" -> "))]
    Cycle(Vec<String>),
    /// Issue memory.
    #[error(transparent)]
    Memory(#[from] StoreError),
    /// The trajectory.
    #[error(transparent)]
    Trajectory(#[from] TrajectoryFileError),
}

impl BatchError {
    /// Returns the exit code of a loop that could not begin.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Cycle(_) => crate::exit::REFUSED,
            Self::Memory(_) | Self::Trajectory(_) => crate::exit::USAGE,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Cycle(_) => {
                Some("`premath dep remove` takes an edge away; nothing was dispatched".to_owned())
            }
            Self::Memory(error) => error.hint(),
            Self::Trajectory(_) => None,
        }
    }
}

/// How fresh a close is whose row is waited for, and in how many looks.
const FRESH: Duration = Duration::from_secs(1);
const FRESH_LOOKS: u32 = 20;

/// How a batch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// A coordinator's: recorded; resumes one that was cut, unless told not to.
    Coordinator {
        /// Begin afresh.
        afresh: bool,
    },
    /// A single worker's: counted in this process, not recorded.
    Worker,
}

impl Batch {
    /// Opens memory and trajectory, and begins or resumes a batch.
    ///
    /// A closed issue whose step has no row gets it here (`contracts.md` 6).
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn open(
        settings: Settings,
        worktrees: &[PathBuf],
        opening: Opening,
        interrupt: Interrupt,
    ) -> Result<Self, BatchError> {
        let options = OpenOptions {
            insist_on_network_filesystem: std::env::var_os("PREMATH_ALLOW_NETWORK_FS")
                .is_some_and(|value| value == "1"),
            ..OpenOptions::default()
        };
        let opened = SystemTime::now();
        let memory = IssueMemory::open(&settings.roots.issues, &options)?;
        let trajectory = Trajectory::open(&settings.roots.trajectory)?;
        let rows = trajectory.rows()?;
        let mut knowledge = Knowledge {
            history: BatchHistory::fold(&rows),
            ..Knowledge::default()
        };
        for row in &rows {
            knowledge.note(row);
        }
        let digest = settings.digest(worktrees);
        let holder = batch_holder(clock::this_process().as_ref());
        let now = clock::now().wall;
        let resumable = match opening {
            Opening::Coordinator { afresh: false } => {
                knowledge.history.resumable(&digest, &is_alive).cloned()
            }
            _ => None,
        };
        // A circle that was there before the batch refuses it before anything
        // is written; one that appeared in its middle holds its members.
        if resumable.is_none()
            && let Some(path) = memory.diagnose(Scope::Active)?.cycle_path
        {
            let path = path.iter().map(ToString::to_string).collect();
            return Err(BatchError::Cycle(path));
        }
        settings.roots.prepare()?;
        let (id, first) = match &resumable {
            Some(open) => (open.batch_id.clone(), batch_resume_row(open, holder, now)),
            None => {
                let id = batch_id(&holder, now);
                let record = BatchRecord {
                    settings_digest: digest,
                    holder,
                };
                (id.clone(), batch_start_row(&id, record, now))
            }
        };
        let recorded = opening != Opening::Worker;
        let batch = Self {
            settings,
            memory,
            trajectory,
            interrupt,
            program: PathBuf::from("/proc/self/exe"),
            opened,
            id,
            recorded,
            resumed: resumable.is_some(),
            knowledge: Mutex::new(knowledge),
        };
        if recorded {
            let stale: Vec<String> = batch
                .knowledge()
                .history
                .abandoned(Some(&batch.id), &is_alive)
                .iter()
                .map(|open| open.batch_id.clone())
                .collect();
            for id in stale {
                batch.record(&batch_end_row(&id, "abandoned", now))?;
            }
            batch.record(&first)?;
        } else {
            batch.knowledge().history.observe(&first);
        }
        if let Some(open) = &resumable {
            batch.take_up_filed(open.started_at.time())?;
        }
        batch.recover_rows(RecoverAt::Start)?;
        batch.release_used_up()?;
        Ok(batch)
    }

    /// Removes what processes that were killed before this batch began left
    /// half-done in the repository's shared git folder.
    pub fn sweep_shared(&self) {
        crate::tree::sweep_shared(&self.settings.roots.repository, self.opened);
    }

    /// Returns the batch's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Tells whether a batch that was cut goes on here.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn knowledge(&self) -> MutexGuard<'_, Knowledge> {
        self.knowledge
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row, a step's only where it has none yet, and takes note.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn record(&self, row: &StepRow) -> Result<(), TrajectoryFileError> {
        let new = if row.action == action::WORKER_LOOP {
            self.trajectory.append_if_absent(row)?
        } else {
            self.trajectory.append(row)?;
            true
        };
        let mut knowledge = self.knowledge();
        if new {
            knowledge.history.observe(row);
            knowledge.note(row);
        }
        if row.action == action::WORKER_LOOP
            && let Some(issue_id) = &row.issue_id
        {
            knowledge.in_hand.remove(issue_id);
        }
        Ok(())
    }

    /// Takes note of an issue that a step filed.
    pub(crate) fn note_filed(&self, filed: &Issue, parent: &str) {
        // One that was there before is as it was.
        if filed.lease_generation > 0 || self.attempts(&filed.id) > 0 {
            return;
        }
        self.knowledge().discoveries.note(Discovery {
            issue_id: filed.id.to_string(),
            parent: parent.to_owned(),
            follow_up: is_follow_up(filed),
        });
    }

    /// Takes up what a batch that was cut had filed since it began.
    fn take_up_filed(&self, began: jiff::Timestamp) -> Result<(), StoreError> {
        let discoveries = self.memory.view(|view| {
            let since = |row: &IssueRow| {
                premath_kernel::time::parse(&row.text_of("created_at"))
                    .is_some_and(|at| at >= began)
            };
            let found = |row: &IssueRow| Discovery::of(&row.issue).filter(|_| since(row));
            Discoveries::of(view.rows().filter_map(found))
        })?;
        self.knowledge().discoveries = discoveries;
        Ok(())
    }

    /// Takes note that a claim was given back without a step, so that another
    /// lane may have it.
    pub fn put_down(&self, claim: &Claim) {
        self.knowledge().in_hand.remove(&claim.issue_id);
    }

    /// Closes the batch in the trajectory.
    ///
    /// # Errors
    ///
    /// [`TrajectoryFileError`].
    pub fn end(&self, result_class: &str) -> Result<(), TrajectoryFileError> {
        if self.recorded {
            self.record(&batch_end_row(&self.id, result_class, clock::now().wall))?;
        }
        Ok(())
    }

    /// Returns how many attempts of an issue failed by themselves so far.
    pub fn attempts(&self, issue_id: &str) -> u32 {
        self.knowledge()
            .history
            .batch(&self.id)
            .map_or(0, |batch| batch.attempts(issue_id))
    }

    /// Returns the issues that are not to be dispatched again in this batch.
    pub fn used_up(&self) -> BTreeSet<String> {
        self.knowledge()
            .history
            .batch(&self.id)
            .map(|batch| batch.used_up().into_iter().map(str::to_owned).collect())
            .unwrap_or_default()
    }

    /// Returns, by issue, whether its last step in this batch ended well.
    pub fn endings(&self) -> BTreeMap<String, (u32, Option<bool>)> {
        self.knowledge()
            .history
            .batch(&self.id)
            .map(|batch| {
                batch
                    .issues()
                    .iter()
                    .map(|(id, record)| (id.clone(), (record.attempts(), record.ended_well())))
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Returns the last failure of an issue with the end of what was said, for
    /// the prompt of the next attempt.
    pub(crate) fn last_failure(&self, issue_id: &str) -> Option<LastFailure> {
        let failed = self.knowledge().failures.get(issue_id).cloned()?;
        let end_of = |extension: &str| {
            ["verify", "work"]
                .iter()
                .map(|phase| {
                    crate::witness::file(
                        &self.settings.roots.streams,
                        &failed.step_id,
                        phase,
                        extension,
                    )
                })
                .find_map(|path| premath_memory::artifact::read(&path).ok().flatten())
                .map(|bytes| tail(&bytes))
                .unwrap_or_default()
        };
        Some(LastFailure {
            stdout: end_of("stdout"),
            stderr: end_of("stderr"),
            step_id: failed.step_id,
            classes: failed.classes,
        })
    }

    /// Returns the authority for lease operations.
    pub fn lease_authority(&self) -> LeaseAuthority {
        self.settings.mode.lease_authority()
    }

    /// Returns the policies that turns are bound to.
    pub(crate) fn policies(&self) -> TurnPolicies {
        TurnPolicies {
            mutation: self.settings.mode.policy_digest(),
            governance: self.settings.retry.policy_digest().to_owned(),
        }
    }

    /// Claims the next issue for each worker, in one transaction, and records
    /// whose lease was taken over.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn claim_next(&self, workers: &[String]) -> Result<Vec<Option<Claimed>>, BatchError> {
        let wishes = workers.iter().map(|worker| self.wish(worker)).collect();
        let scope = ClaimScope {
            selection: self.settings.selection.clone(),
            left_out: self.left_out(),
            generation_floors: self.knowledge().generations.clone(),
        };
        let claims = self
            .memory
            .claim_next(&self.lease_authority(), wishes, &scope)
            .map_err(|error| match error {
                premath_memory::ChangeError::Store(error) => error,
                // A wish of ours is well-formed; whatever else is said of it is
                // about the file.
                other => StoreError::Io {
                    operation: "claim in",
                    path: self.memory.path().to_path_buf(),
                    source: std::io::Error::other(other.to_string()),
                },
            })?;
        for claimed in claims.iter().flatten() {
            let issue_id = claimed.claim.issue_id.clone();
            self.knowledge().in_hand.insert(issue_id);
            if let Some(before) = &claimed.claim.taken_over {
                let issue = &claimed.claim.issue_id;
                let step = format!("{}.{issue}.{}", before.owner, before.generation);
                // A step that could still say how it ended has its row.
                if self.trajectory.has_step(&step)? {
                    continue;
                }
                let mut row = take_over_row(
                    Some(&self.id),
                    &step,
                    issue,
                    before.generation,
                    clock::now().wall,
                );
                if !before.holder_dead {
                    row.failure_classes = vec![FailureClass::LeaseStale.as_str().to_owned()];
                    row.result_class = "retry_needed_lease_stale".to_owned();
                }
                self.record(&row)?;
            }
        }
        Ok(claims)
    }

    /// Returns the issues that no claim of this batch takes now.
    fn left_out(&self) -> BTreeSet<String> {
        let mut left_out = self.used_up();
        let knowledge = self.knowledge();
        left_out.extend(knowledge.in_hand.iter().cloned());
        left_out.extend(knowledge.discoveries.left_for_later().iter().cloned());
        left_out
    }

    /// Returns when the first ready issue that this batch would take, were it
    /// not for its retry time, may be claimed. One that the batch has not
    /// touched is waited for a day at most.
    ///
    /// # Errors
    ///
    /// [`StoreError`].
    pub fn next_retry(&self, worker: &str) -> Result<Option<jiff::Timestamp>, StoreError> {
        let left_out = self.left_out();
        let touched = self.endings();
        let wish = self.wish(worker);
        let seen = clock::observe();
        self.memory.view(|view| {
            view.ready()
                .filter(|row| {
                    self.settings.selection.admits(&row.issue) && !left_out.contains(&*row.issue.id)
                })
                .filter_map(|row| {
                    let touched = touched.contains_key(&*row.issue.id);
                    awaited_retry(&row.issue, touched, &wish, &seen)
                })
                .min()
        })
    }

    /// What a worker wishes for.
    pub fn wish(&self, worker: &str) -> ClaimRequest {
        ClaimRequest {
            claimant: worker.to_owned(),
            lease_id: None,
            term: Term::Ttl(self.settings.lease_ttl),
            assignees: self.settings.assignees.clone(),
            holder: clock::this_process(),
            generation_floor: 0,
        }
    }

    /// Gives back the stale leases of issues that this batch leaves alone: an
    /// issue that failed is never held by nobody's lease.
    fn release_used_up(&self) -> Result<(), BatchError> {
        let seen = clock::observe();
        let used_up = self.used_up();
        let held: Vec<(String, LeaseKey)> = self.memory.view(|view| {
            view.leased()
                .filter(|row| {
                    used_up.contains(&*row.issue.id)
                        && lease::state(Some(&row.issue), &seen) == LeaseState::Stale
                })
                .filter_map(|row| {
                    let held = row.issue.lease.as_ref()?;
                    let key = LeaseKey {
                        lease_id: Some(held.lease_id.to_string()),
                        owner: Some(held.owner.to_string()),
                        generation: Some(row.issue.lease_generation),
                    };
                    Some((row.issue.id.to_string(), key))
                })
                .collect()
        })?;
        for (issue_id, key) in held {
            let released = self
                .memory
                .release(&self.lease_authority(), &issue_id, key, None);
            match released {
                Ok(_) | Err(ChangeError::Refused(_) | ChangeError::Invalid(_)) => {}
                Err(ChangeError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Gives closed issues whose step has no row the row that a killed worker
    /// could not write any more.
    ///
    /// A worker that lives writes its row right after its close, and knows
    /// more: while another batch runs, fresh closes are left to it.
    ///
    /// # Errors
    ///
    /// [`BatchError`].
    pub fn recover_rows(&self, at: RecoverAt) -> Result<(), BatchError> {
        if at == RecoverAt::End {
            // A worker elsewhere that closed something just now writes its row
            // in the next instant.
            for _ in 0..FRESH_LOOKS {
                if self.missing_rows(Duration::ZERO)? == self.missing_rows(FRESH)? {
                    break;
                }
                std::thread::sleep(FRESH / FRESH_LOOKS);
            }
        }
        self.recover(at)
    }

    /// Counts the closed issues without a row that were closed longer ago than
    /// a grace.
    fn missing_rows(&self, grace: Duration) -> Result<usize, StoreError> {
        let now = clock::now().wall;
        self.memory.view(|view| {
            view.rows()
                .filter(|row| {
                    row.issue.closed_by_step.as_deref().is_some_and(|step| {
                        !self.trajectory.has_step(step).unwrap_or(true)
                            && is_settled(&row.text_of("closed_at"), grace, now)
                    })
                })
                .count()
        })
    }

    fn recover(&self, at: RecoverAt) -> Result<(), BatchError> {
        let others = self
            .knowledge()
            .history
            .open()
            .iter()
            .any(|open| open.batch_id != self.id && is_alive(&open.holder));
        let grace = at.grace(others);
        let now = clock::now().wall;
        let closed: Vec<ClosedIssue> = self.memory.view(|view| {
            view.rows()
                .filter_map(|row| {
                    let step = row.issue.closed_by_step.as_deref()?;
                    if !grace.is_zero()
                        && !self.trajectory.has_step(step).unwrap_or(false)
                        && !is_settled(&row.text_of("closed_at"), grace, now)
                    {
                        return None;
                    }
                    row.issue.status.is_terminal().then(|| ClosedIssue {
                        step_id: step.to_owned(),
                        issue_id: row.issue.id.to_string(),
                        assignee: row.issue.assignee.to_string(),
                        status: row.issue.status.as_str().to_owned(),
                        generation: row.issue.lease_generation,
                    })
                })
                .collect()
        })?;
        for closed in closed {
            if self.trajectory.has_step(&closed.step_id)? {
                continue;
            }
            let prefix = &self.settings.witness_prefix;
            self.record(&closed.recovered_row(&self.id, prefix, clock::now().wall))?;
        }
        Ok(())
    }

    /// Classifies the state of a claim's issue as memory has it now, and names
    /// the lease reference for it.
    pub(crate) fn handoff(
        &self,
        claim: &Claim,
        end: StepEnd,
        worker_id: &str,
    ) -> Result<(Handoff, String), StoreError> {
        self.memory.view(|view| {
            let issue = view.issue(&claim.issue_id);
            let handoff = premath_kernel::handoff::classify(issue, claim, end, &clock::observe());
            let (lease_id, lease_owner) =
                premath_kernel::handoff::lease_named(issue, claim, &handoff, end);
            let reference = reference::lease_handoff(&LeaseHandoff {
                assignee: issue.map_or("", |issue| &issue.assignee),
                issue_id: &claim.issue_id,
                lease_action: handoff.action,
                lease_id,
                lease_owner,
                lease_state: handoff.state.as_str(),
                status: issue.map_or("", |issue| issue.status.as_str()),
                worker_id,
            });
            (handoff, reference)
        })
    }
}

impl Knowledge {
    fn note(&mut self, row: &StepRow) {
        let Some(issue_id) = &row.issue_id else {
            return;
        };
        if let Some(generation) = row.generation {
            let known = Arc::make_mut(&mut self.generations)
                .entry(issue_id.clone())
                .or_default();
            *known = generation.max(*known);
        }
        if row.action != action::WORKER_LOOP {
            return;
        }
        if row.succeeded() {
            self.failures.remove(issue_id);
        } else {
            self.failures.insert(
                issue_id.clone(),
                FailedStep {
                    step_id: row.step_id.clone(),
                    classes: row.failure_classes.clone(),
                },
            );
        }
    }
}

/// The last 4 KiB of an output, from a line's start.
fn tail(bytes: &[u8]) -> String {
    const KEPT: usize = 4 << 10;
    let cut = bytes.len().saturating_sub(KEPT);
    let mut end = &bytes[cut..];
    if cut > 0
        && let Some(line) = end.iter().position(|byte| *byte == b'\n')
    {
        end = &end[line + 1..];
    }
    String::from_utf8_lossy(end)
        .chars()
        .filter(|c| !c.is_control() || matches!(c, '\n' | '\t'))
        .collect()
}

fn batch_holder(holder: Option<&Holder>) -> BatchHolder {
    BatchHolder {
        host: clock::host_name().to_owned(),
        boot_id: holder.map_or_else(String::new, |holder| holder.boot_id.to_string()),
        pid: std::process::id(),
        started: holder.map_or(0, |holder| holder.started),
        pid_ns: holder.and_then(|holder| holder.pid_ns.as_deref().map(str::to_owned)),
    }
}

/// Tells whether a batch's coordinator may still run, as far as can be seen.
fn is_alive(holder: &BatchHolder) -> bool {
    holder.may_live(clock::this_process().as_ref(), &clock::life)
}
