//! The worktrees that a batch works in: a person's own, or lanes that are made
//! for it.

use harness_coordinator::spare::{self, SpareSite};
use harness_worker::exit;
use harness_worker::interrupt::{Interrupt, Level};
use harness_worker::settings::{FileSettings, Settings};
use harness_worker::stderr::{failed, say};
use premath_kernel::json::plain::plain;
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::deadline::Deadline;
use premath_kernel::policy::landing::LandingMode;
use premath_memory::clock;
use premath_worktree::provision::{
    LaneOutcome, Provision, ProvisionError, ProvisionResult, lane_name,
};
use premath_worktree::tree::is_worktree_of;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the command line reports about worktrees.
pub(crate) struct Choice<'a> {
    pub(crate) named: &'a [PathBuf],
    pub(crate) lanes: Option<usize>,
}

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
    /// How many lanes could not be created.
    pub(crate) left_out: usize,
    /// Where further ones are made, if the harness makes them.
    pub(crate) site: Option<SpareSite>,
}

/// The worktrees that are named, or those that are made.
pub(crate) fn of(
    choice: &Choice<'_>,
    file: &FileSettings,
    settings: &Settings,
    watch: &Watch<'_>,
) -> Result<BatchWorktrees, u8> {
    let repository = &settings.roots.repository;
    let named = match choice.lanes {
        Some(_) => Vec::new(),
        None => named(choice, &file.coordinator.worktrees, repository),
    };
    let count = choice.lanes.or(file.worktrees.count);
    match count {
        Some(count) if named.is_empty() => made(count, file, settings, watch),
        _ => match checked(named, repository) {
            Ok(worktrees) => Ok(BatchWorktrees {
                lanes: worktrees.len(),
                all: worktrees,
                left_out: 0,
                site: None,
            }),
            Err(detail) => {
                say(&format!("error: {}", plain(&detail)));
                say(
                    "hint: create lanes with --lanes 2 or count under [worktrees] in harness.toml, \
                    or name your own with --worktree, PREMATH_WORKTREES or worktrees under \
                    [coordinator]",
                );
                Err(exit::USAGE)
            }
        },
    }
}

/// The worktrees of a batch as far as they are there; nothing is made.
pub(crate) fn there(choice: &Choice<'_>, file: &FileSettings, repository: &Path) -> Vec<PathBuf> {
    let named = match choice.lanes {
        Some(_) => Vec::new(),
        None => named(choice, &file.coordinator.worktrees, repository),
    };
    match choice.lanes.or(file.worktrees.count) {
        Some(count) if named.is_empty() => (1..=count)
            .map(|number| root(file, repository).join(lane_name(number)))
            .filter_map(|lane| std::fs::canonicalize(lane).ok())
            .collect(),
        _ => checked(named, repository).unwrap_or_default(),
    }
}

/// The folder of the lanes that are made.
fn root(file: &FileSettings, repository: &Path) -> PathBuf {
    let name = repository.file_name().unwrap_or_default();
    let root = file.worktrees.root.as_deref().unwrap_or("../{repo}-lanes");
    repository.join(root.replace("{repo}", &name.to_string_lossy()))
}

/// Makes sure of so many lanes, and says what was not as it should be.
fn made(
    count: usize,
    file: &FileSettings,
    settings: &Settings,
    watch: &Watch<'_>,
) -> Result<BatchWorktrees, u8> {
    let repository = &settings.roots.repository;
    let root = root(file, repository);
    let provision = Provision {
        repository: repository.clone(),
        spare: spare::kept(repository, &root, settings.verify_slots, count),
        root,
        count,
        target: (settings.landing.mode != LandingMode::None)
            .then(|| settings.landing.target.clone()),
    };
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
    let there = outcomes.into_iter().filter(LaneOutcome::is_lane);
    let all: Vec<PathBuf> = there.map(|lane| lane.worktree).collect();
    Ok(BatchWorktrees {
        site: Some(SpareSite::after(provision, count + all.len() - lanes)),
        all,
        lanes,
        left_out: count - lanes,
    })
}

/// The worktrees that were named: by flags, environment, or `harness.toml`.
fn named(choice: &Choice<'_>, configured: &[PathBuf], repository: &Path) -> Vec<PathBuf> {
    let variable = std::env::var("PREMATH_WORKTREES").unwrap_or_default();
    if !choice.named.is_empty() {
        choice.named.to_vec()
    } else if !variable.trim().is_empty() {
        variable
            .split(',')
            .map(str::trim)
            .filter(|path| !path.is_empty())
            .map(PathBuf::from)
            .collect()
    } else {
        configured
            .iter()
            .map(|path| repository.join(path))
            .collect()
    }
}

/// Worktrees made absolute and sorted: each once, each of this repository.
fn checked(named: Vec<PathBuf>, repository: &Path) -> Result<Vec<PathBuf>, String> {
    if named.is_empty() {
        return Err("no worktree to work in".to_owned());
    }
    let mut all = Vec::new();
    for path in named {
        let full = std::fs::canonicalize(&path)
            .map_err(|error| format!("worktree {}: {error}", path.display()))?;
        if !is_worktree_of(repository, &full) {
            return Err(format!(
                "worktree {} is not one of the repository {}",
                path.display(),
                repository.display()
            ));
        }
        all.push(full);
    }
    all.sort();
    if let Some(twice) = all.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("worktree {} is named twice", twice[0].display()));
    }
    Ok(all)
}
