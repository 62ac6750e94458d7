//! Plans a batch by the flags that would begin it; it changes nothing.

use crate::batch::{BatchError, PlannedCrew, planned};
use crate::lanes::{LaneChoice, NO_LANES_HINT};
use crate::settings::{ConfigError, CrewFlags, FileSettings, LoopFlags, Settings, SettingsError};
use crate::{exit, programs, telemetry, trust};
use premath_kernel::failure::FailureClass;
use premath_kernel::policy::landing::LandingMode;
use premath_kernel::policy::program::ProgramVerdict;
use premath_kernel::record::plan::{BatchPlan, PlannedRefusal};
use premath_memory::cause;
use premath_memory::clock;
use premath_worktree::landing::{Landing, LandingError};
use premath_worktree::provision::Provision;

/// A batch that cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The settings do not fit together, or authorise no batch.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The configuration file cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// There is no lane.
    #[error("{0}")]
    Lanes(String),
    /// Work cannot land.
    #[error(transparent)]
    Landing(#[from] LandingError),
    /// Issue memory or trajectory cannot be read.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

impl PlanError {
    /// Returns the exit code of the batch that would be refused so.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Settings(error) => error.exit_code(),
            Self::Config(_) | Self::Lanes(_) | Self::Landing(_) => exit::USAGE,
            Self::Batch(error) => error.exit_code(),
        }
    }

    /// Returns the failure class, where it has one.
    pub fn class(&self) -> Option<FailureClass> {
        match self {
            Self::Settings(error) => error.refusal_classes().first().copied(),
            Self::Landing(error) => Some(error.class()),
            Self::Config(_) | Self::Lanes(_) | Self::Batch(_) => None,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Settings(error) => error.hint(),
            Self::Config(_) => None,
            Self::Lanes(_) => Some(NO_LANES_HINT.to_owned()),
            Self::Landing(error) => error.hint(),
            Self::Batch(error) => error.hint(),
        }
    }
}

/// Plans the batch that these flags would begin.
///
/// # Errors
///
/// [`PlanError`].
pub fn plan(flags: &LoopFlags, crew: &CrewFlags) -> Result<BatchPlan, PlanError> {
    let now = clock::now().wall;
    let mut settings = Settings::resolve(flags, now)?;
    telemetry::require_headers(&settings)?;
    let mut refusals = match trust::look(flags) {
        Ok(()) => Vec::new(),
        Err(error) => vec![PlannedRefusal {
            failure_class: error.refusal_classes().first().copied(),
            text: cause::chain(&error),
        }],
    };
    let file = FileSettings::load(flags.config.as_deref(), &settings.roots.repository)?;
    let repository = &settings.roots.repository;
    let choice = LaneChoice::of(crew, &file, repository);
    refusals.extend(absent_program(&choice, &settings));
    let places = choice.places(repository);
    let lanes = places.map_err(PlanError::Lanes)?;
    settings.refuse_shared_projections(lanes.len())?;
    Landing::look(settings.landing.clone(), repository.clone())?;
    let file = &file.coordinator;
    settings.bounds.deadline.window_end = crew.window_end(file, now)?;
    let crew = PlannedCrew {
        lanes,
        prefix: crew.prefix(file.worker_prefix.as_deref()).to_owned(),
        rounds: crew.rounds(file.rounds),
        steps_per_dispatch: crew.steps_per_dispatch(file.max_steps_per_worker),
        until: crew.until(file),
        window: crew.window(file),
        afresh: crew.new_batch,
    };
    Ok(planned(settings, &crew, refusals)?)
}

/// Returns the refusal of a batch whose lanes would be made without a program that its
/// commands need, or cannot be made.
fn absent_program(choice: &LaneChoice, settings: &Settings) -> Option<PlannedRefusal> {
    let LaneChoice::Made { count, root } = choice else {
        return None;
    };
    let provision = Provision {
        repository: settings.roots.repository.clone(),
        root: root.clone(),
        count: *count,
        spare: Vec::new(),
        target: (settings.landing.mode != LandingMode::None)
            .then(|| settings.landing.target.clone()),
    };
    let text = match programs::absent(&provision, settings) {
        Ok(found) => {
            let mut found = found.into_iter();
            found
                .find(|absent| absent.verdict == ProgramVerdict::Refuse)?
                .text
        }
        Err(error) => cause::chain(&error),
    };
    Some(PlannedRefusal {
        failure_class: None,
        text,
    })
}
