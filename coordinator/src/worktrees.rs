//! The worktrees that a batch works in: a person's own, or lanes that are made
//! for it.

use harness_coordinator::report::DisabledLane;
use harness_coordinator::spare::{self, SpareSite};
use harness_worker::exit;
use harness_worker::interrupt::{Interrupt, Level};
use harness_worker::lanes::{LaneChoice, NO_LANES_HINT, checked};
use harness_worker::programs;
use harness_worker::settings::Settings;
use harness_worker::stderr::{failed, say};
use premath_kernel::failure::FailureClass;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::deadline::Deadline;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::program::ProgramVerdict;
use premath_memory::clock;
use premath_worktree::provision::{LaneOutcome, Provision, ProvisionError, ProvisionResult};
use std::path::PathBuf;
use std::time::Duration;

/// What ends a batch while its lanes are made.
pub(crate) struct Watch<'a> {
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) deadline: Deadline,
    /// The start time, in milliseconds of CLOCK_BOOTTIME.
    pub(crate) started_ms: u64,
}

impl Watch<'_> {
    fn reached(&self) -> Option<EndedBy> {
        let now = clock::now();
        let ran = Duration::from_millis(now.boot_ms.saturating_sub(self.started_ms));
        self.deadline.reached(now.wall, ran).map(EndedBy::from)
    }

    fn may_continue(&self) -> bool {
        self.interrupt.level() == Level::None && self.reached().is_none()
    }

    /// Reports why lanes cannot be created; returns the exit code.
    fn failed(&self, error: &ProvisionError) -> u8 {
        if !matches!(error, ProvisionError::Cut { .. }) {
            return failed(error, error.hint(), exit::USAGE);
        }
        if let Some(signal) = self.interrupt.last_signal() {
            say(&format!("interrupted: {error}"));
            return exit::of_signal(signal);
        }
        let by = self.reached().map_or("the end reached", EndedBy::reached);
        say(&format!("error: {by}: {error}"));
        exit::FAILED
    }
}

/// The worktrees of a batch.
pub(crate) struct BatchWorktrees {
    /// Those of the lanes, then the spare ones that are there.
    pub(crate) all: Vec<PathBuf>,
    /// How many lanes there are.
    pub(crate) lanes: usize,
    /// The lanes that could not be created.
    pub(crate) left_out: Vec<DisabledLane>,
    /// Where further ones are made, if the harness makes them.
    pub(crate) site: Option<SpareSite>,
}

/// The worktrees that are named, or those that are made.
pub(crate) fn of(
    choice: LaneChoice,
    settings: &Settings,
    watch: &Watch<'_>,
) -> Result<BatchWorktrees, u8> {
    let named = match choice {
        LaneChoice::Made { count, root } => return made(count, root, settings, watch),
        LaneChoice::Named(named) => named,
    };
    match checked(named, &settings.roots.repository) {
        Ok(worktrees) => Ok(BatchWorktrees {
            lanes: worktrees.len(),
            all: worktrees,
            left_out: Vec::new(),
            site: None,
        }),
        Err(detail) => {
            say(&format!("error: {}", plain(&detail)));
            say(&format!("hint: {NO_LANES_HINT}"));
            Err(exit::USAGE)
        }
    }
}

/// Looks for commands whose program is in the main worktree and not in lanes.
fn require_programs(provision: &Provision, settings: &Settings) -> Result<(), u8> {
    let found = programs::absent(provision, settings);
    for absent in found.map_err(|error| failed(&error, error.hint(), exit::USAGE))? {
        match absent.verdict {
            ProgramVerdict::Accept => {}
            ProgramVerdict::Warn => say(&format!("warning: {}", absent.text)),
            ProgramVerdict::Refuse => {
                say(&format!("error: {}", absent.text));
                say("hint: commit it, or make it in lanes by `setup_cmd`");
                return Err(exit::USAGE);
            }
        }
    }
    Ok(())
}

/// Makes sure of so many lanes, and says what was not as it should be.
fn made(
    count: usize,
    root: PathBuf,
    settings: &Settings,
    watch: &Watch<'_>,
) -> Result<BatchWorktrees, u8> {
    let repository = &settings.roots.repository;
    let provision = Provision {
        repository: repository.clone(),
        spare: spare::kept(repository, &root, settings.verify_slots, count),
        root,
        count,
        target: (settings.landing.mode != LandingMode::None)
            .then(|| settings.landing.target.clone()),
    };
    require_programs(&provision, settings)?;
    let outcomes = provision
        .ready(|| watch.may_continue())
        .map_err(|error| watch.failed(&error))?;
    for outcome in &outcomes {
        let what = match &outcome.result {
            ProvisionResult::Kept => continue,
            ProvisionResult::Made => "created".to_owned(),
            ProvisionResult::Repaired(why) => format!("repaired: {why}"),
            ProvisionResult::Remade(why) => format!("deleted and recreated: {why}"),
            ProvisionResult::Removed => "removed, not needed".to_owned(),
            ProvisionResult::Surplus(why) => format!("not needed, but kept: {why}"),
            ProvisionResult::Refused(why) => format!("error: cannot create a lane: {why}"),
        };
        let place = outcome.worktree.display().to_string();
        say(&format!("worktree {}: {}", plain(&place), plain(&what)));
    }
    let lanes = outcomes.iter().take(count).filter(|lane| lane.is_lane());
    let lanes = lanes.count();
    if lanes == 0 {
        say("error: no lane is usable");
        return Err(exit::USAGE);
    }
    let refused = outcomes.iter().take(count).filter(|lane| !lane.is_lane());
    let left_out = refused.map(left_out).collect();
    let there = outcomes.into_iter().filter(LaneOutcome::is_lane);
    let all: Vec<PathBuf> = there.map(|lane| lane.worktree).collect();
    Ok(BatchWorktrees {
        site: Some(SpareSite::after(provision, count + all.len() - lanes)),
        all,
        lanes,
        left_out,
    })
}

/// Returns a lane that could not be created, with the reason.
fn left_out(outcome: &LaneOutcome) -> DisabledLane {
    let worktree = &outcome.worktree;
    let why = match &outcome.result {
        ProvisionResult::Refused(why) => why.as_str(),
        _ => "it is not usable",
    };
    let name = worktree.file_name().unwrap_or(worktree.as_os_str());
    DisabledLane {
        name: name.to_string_lossy().into_owned(),
        class: FailureClass::WorktreeInvalid,
        detail: format!("cannot create the lane {}: {why}", worktree.display()),
        hint: None,
    }
}
