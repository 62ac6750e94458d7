//! What a batch that began now would do, from what it would read. Nothing is
//! written, and no lock is taken.

use super::holder::is_alive;
use super::knowledge::{Knowledge, filed_since};
use super::{BatchError, Opening, set_aside};
use crate::lanes::LanePlace;
use crate::settings::Settings;
use premath_kernel::failure::FailureClass;
use premath_kernel::issue::Issue;
use premath_kernel::issue::graph::Scope;
use premath_kernel::json::id::{IssueId, WorkerName};
use premath_kernel::json::stamp::Stamp;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::until::Until;
use premath_kernel::policy::window::DayWindow;
use premath_kernel::record::live::{LiveBatch, millis};
use premath_kernel::record::plan::{
    BatchPlan, PastPace, PlanScope, PlanTerms, PlannedAgent, PlannedLanding, PlannedLane,
    PlannedPolicy, PlannedRefusal, schedule,
};
use premath_kernel::record::trajectory::OpenBatch;
use premath_memory::live::LiveFolder;
use premath_memory::{IssueMemory, MemoryView, StoreError, Trajectory, clock};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// The lanes of a batch that is planned, and how long they continue.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCrew {
    /// The worktrees of the lanes, in order.
    pub(crate) lanes: Vec<LanePlace>,
    /// The prefix of worker ids.
    pub(crate) prefix: String,
    /// How many dispatches a lane gets.
    pub(crate) rounds: Option<u64>,
    /// How many attempts a dispatch has.
    pub(crate) steps_per_dispatch: u64,
    /// When the batch ends where nothing is left to do.
    pub(crate) until: Until,
    /// The hours in which attempts begin.
    pub(crate) window: Option<DayWindow>,
    /// Whether an interrupted batch is not resumed.
    pub(crate) afresh: bool,
}

impl PlannedCrew {
    fn workers(&self) -> Vec<WorkerName> {
        let numbers = 1..=self.lanes.len();
        let name = |number| format!("{}.{number}", self.prefix).into();
        numbers.map(name).collect()
    }
}

/// Plans a batch; `refusals` are those that were found before.
///
/// # Errors
///
/// [`BatchError`] where issue memory or trajectory cannot be read.
pub(crate) fn planned(
    mut settings: Settings,
    crew: &PlannedCrew,
    mut refusals: Vec<PlannedRefusal>,
) -> Result<BatchPlan, BatchError> {
    let worktrees: Vec<PathBuf> = crew.lanes.iter().map(|l| l.worktree.clone()).collect();
    settings.settle_landing(&worktrees)?;
    settings.settle_warmth(&worktrees)?;
    let memory = IssueMemory::open(&settings.roots.issues, &super::opening::open_options())?;
    let rows = Trajectory::open(&settings.roots.trajectory)?.rows()?;
    let knowledge = Knowledge::of(&rows);
    let opening = Opening::Coordinator {
        afresh: crew.afresh,
    };
    let resumed = opening.resumed(&knowledge, &settings.digest(&worktrees));
    let cycle = memory.diagnose(Scope::Active)?.cycle_path;
    if let Some(path) = cycle.filter(|_| resumed.is_none()) {
        let path = path.iter().map(ToString::to_string).collect();
        refusals.push(PlannedRefusal {
            failure_class: Some(FailureClass::DependencyCycle),
            text: BatchError::Cycle(path).to_string(),
        });
    }
    let left_out = left_out(resumed, &knowledge, &memory)?;
    let resumed_id = resumed.map(|open| &open.batch_id);
    let set_aside = set_aside(&rows, &memory, (settings.set_aside_after, resumed_id))?;
    let workers = crew.workers();
    let seen = clock::observe();
    let batches = running(&settings)?;
    let schedule = memory.view(|view| {
        let issues: Vec<&Issue> = view.rows().map(|row| &row.issue).collect();
        let scope = PlanScope {
            selection: &settings.selection,
            assignees: &settings.assignees,
            left_out: &left_out,
            set_aside: &set_aside,
            waits: crew.until != Until::Idle,
            workers: &workers,
            attempts_per_lane: crew
                .rounds
                .map(|n| n.saturating_mul(crew.steps_per_dispatch)),
            batches: &batches,
            seen: &seen,
            title: &|id| title(&view, id),
        };
        schedule(&issues, &scope)
    })?;
    let pace = PastPace::of(&rows);
    Ok(BatchPlan {
        at: Stamp::at(seen.moment.wall),
        issues_path: settings.roots.issues.to_string_lossy().into_owned(),
        resumes: resumed.map(|open| open.batch_id.clone()),
        refusals,
        terms: terms(&settings, crew, seen.moment.wall),
        lanes: lanes(&settings, crew, &schedule.first),
        estimate: pace.estimate(schedule.order.len() as u64, schedule.rounds),
        order: schedule.order,
        never: schedule.never,
    })
}

fn title(view: &MemoryView<'_>, id: &str) -> String {
    let row = view.row(id);
    row.map_or_else(String::new, |row| row.text_of("title"))
}

/// Returns the issues that the batch which is resumed does not take.
fn left_out(
    resumed: Option<&OpenBatch>,
    knowledge: &Knowledge,
    memory: &IssueMemory,
) -> Result<BTreeSet<IssueId>, StoreError> {
    let Some(open) = resumed else {
        return Ok(BTreeSet::new());
    };
    let filed = filed_since(memory, open.started_at.time())?;
    let mut left_out = knowledge.used_up(&open.batch_id);
    left_out.extend(filed.left_for_later().iter().cloned());
    Ok(left_out)
}

/// Returns the batches that run.
fn running(settings: &Settings) -> Result<Vec<LiveBatch>, StoreError> {
    let mut batches = LiveFolder::of(&settings.roots).read()?;
    batches.retain(|live| live.ended_at.is_none() && is_alive(&live.holder));
    Ok(batches)
}

fn lanes(settings: &Settings, crew: &PlannedCrew, first: &[Option<IssueId>]) -> Vec<PlannedLane> {
    let [own, _] = settings.work.providers();
    let places = crew.lanes.iter().zip(crew.workers()).enumerate();
    places
        .map(|(index, (place, worker_id))| PlannedLane {
            worker_id,
            worktree: place.worktree.to_string_lossy().into_owned(),
            exists: place.exists,
            provider: own
                .get(index % own.len().max(1))
                .cloned()
                .unwrap_or_default(),
            first_issue: first.get(index).cloned().flatten(),
        })
        .collect()
}

fn terms(settings: &Settings, crew: &PlannedCrew, now: jiff::Timestamp) -> PlanTerms {
    let (limits, bounds) = (&settings.limits, &settings.bounds);
    let deadline = bounds.deadline.ends_at(now, Duration::ZERO);
    let (_, usual) = settings.retry.place_of("");
    let policy = |id: &str, digest: &str| PlannedPolicy {
        policy_id: id.to_owned(),
        policy_digest: digest.to_owned(),
    };
    PlanTerms {
        acts_under: (&settings.mode).into(),
        agents: agents(settings),
        verify_command: settings.hooks.verify.clone(),
        turn_policy: policy(settings.turn.policy_id(), settings.turn.policy_digest()),
        retry_policy: policy(settings.retry.policy_id(), settings.retry.policy_digest()),
        attempts: usual.max_attempts,
        sandbox: settings.sandbox.choice.mode,
        sandbox_detail: settings.sandbox.choice.describe(),
        step_limit_ms: millis(limits.step),
        verify_limit_ms: millis(limits.verify),
        rounds: crew.rounds,
        steps_per_dispatch: crew.steps_per_dispatch,
        until: crew.until.as_str(),
        window: crew.window.map(|window| window.to_string()),
        ends_at: deadline.map(Stamp::at),
        batch_budget: bounds.batch.into(),
        issue_budget: bounds.issue.into(),
        landing: landing(settings),
    }
}

fn agents(settings: &Settings) -> Vec<PlannedAgent> {
    let [own, _] = settings.work.providers();
    let all = settings.work.all().enumerate();
    all.map(|(index, work)| PlannedAgent {
        provider: work.provider.clone(),
        adapter: work.adapter.to_string(),
        command: work.command.clone(),
        is_fallback: index >= own.len(),
    })
    .collect()
}

fn landing(settings: &Settings) -> PlannedLanding {
    let rule = &settings.landing;
    let (has_target, merges) = (
        rule.mode != LandingMode::None,
        rule.mode == LandingMode::Merge,
    );
    PlannedLanding {
        mode: rule.mode.as_str(),
        target: has_target.then(|| rule.target.clone()),
        check_command: rule.check.clone().filter(|_| merges),
        push: rule.push.clone().filter(|_| merges),
    }
}
