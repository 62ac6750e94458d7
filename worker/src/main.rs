//! The `harness-worker` binary: one lane alone. Its hidden mode is a lane's
//! supervisor.

mod alone;

use alone::{Alone, AloneOutcome, print_outside_change};
use clap::Parser;
use harness_worker::account;
use harness_worker::arguments::{Arguments, Command};
use harness_worker::batch::{Batch, Opening, RecoverAt, foreign_warning};
use harness_worker::exit;
use harness_worker::gate;
use harness_worker::interrupt::Interrupt;
use harness_worker::lane::{BootError, BootReport, Lane, LanePlan};
use harness_worker::refusal::{self, RefusedLane};
use harness_worker::sandbox::left_out_warning;
use harness_worker::settings::{Settings, SettingsError};
use harness_worker::stderr::{end_message, failed, say};
use harness_worker::step::StepReport;
use harness_worker::supervisor;
use harness_worker::trust;
use premath_kernel::failure::FailureClass;
use premath_kernel::json::canonical::canonical;
use premath_kernel::json::plain::plain;
use premath_kernel::policy::admission::EndedBy;
use premath_kernel::policy::exit::LoopEnd;
use premath_kernel::record::event::{ProviderUse, TipCheck, WORKER_ACTION, WorkerReport};
use premath_memory::{CompactionRule, StoreError, clock};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// From how many steps on verifications begin with build state.
const WARM_STEPS: u64 = 3;

fn main() -> ExitCode {
    if let Some(ended) = supervisor::hidden_mode() {
        return ended;
    }
    let arguments = Arguments::parse();
    // Where it is not raised, folders that lie deep can disable a lane.
    let _ = premath_platform::process::raise_open_files();
    harness_worker::log::begin();
    ExitCode::from(run(&arguments))
}

fn run(arguments: &Arguments) -> u8 {
    if std::env::var_os("PREMATH_STEP_ID").is_some_and(|id| !id.is_empty()) {
        say("error: cannot start a worker inside a step (PREMATH_STEP_ID is set)");
        return exit::USAGE;
    }
    if let Some(Command::Gate(arguments)) = &arguments.command {
        return gate::main(arguments, listen);
    }
    let settings = match settings_of(arguments) {
        Ok(settings) => settings,
        Err(code) => return code,
    };
    let interrupt = Interrupt::new(settings.limits.drain_grace);
    if let Err(error) = listen(interrupt.clone()) {
        return failed(&error, None, exit::USAGE);
    }
    let worktrees = [arguments.worktree_root.clone()];
    let batch = match Batch::open(settings, &worktrees, Opening::Worker, interrupt) {
        Ok(batch) => Arc::new(batch),
        Err(error) => return failed(&error, error.hint(), error.exit_code()),
    };
    let _batch = tracing::error_span!("batch", id = batch.id().as_str()).entered();
    let _lane = tracing::error_span!("lane", worker = arguments.worker_id.as_str()).entered();
    announce(&batch);
    let (mut lane, boot) = match boot(&batch, arguments) {
        Ok(booted) => booted,
        Err(code) => return code,
    };
    let worked = Alone::new(&batch, &arguments.worker_id).work(&mut lane, arguments.max_steps);
    let ended_by = batch.admission().ended_by();
    let tips = finish(&batch, lane, worked.store_lost);
    if worked.reports.is_empty() && !worked.store_lost && ended_by.is_none() {
        say("no issue is ready");
    }
    let end = end_of(&batch, &worked, &tips, ended_by);
    let code = end.exit_code();
    batch.publish_end(code);
    let used = batch.account();
    for line in account::lines(&used, ended_by, clock::now().wall) {
        say(&line);
    }
    if arguments.json {
        let document = WorkerReport {
            action: WORKER_ACTION,
            worker_id: &arguments.worker_id,
            acts_under: (&batch.settings.mode).into(),
            issues_path: batch.memory.path().to_string_lossy().into_owned(),
            count: worked.reports.len(),
            items: worked.reports.iter().map(StepReport::outcome).collect(),
            handoff: boot.handoff.as_ref(),
            ended_by,
            providers: ProviderUse::all(&used, clock::now().wall),
            closes: used.closes(),
            breaker_openings: used.breaker_openings(),
            tip_checks: &tips,
            exit_code: code,
        };
        let _ = writeln!(std::io::stdout(), "{}", canonical(&document));
    }
    code
}

/// Reads the settings and accepts the governing files, or says why the batch is
/// refused.
fn settings_of(arguments: &Arguments) -> Result<Settings, u8> {
    let mut flags = arguments.flags.clone();
    // A worker's own worktree says which repository it belongs to.
    flags
        .repo_root
        .get_or_insert_with(|| arguments.worktree_root.clone());
    let refused = |error: &SettingsError| {
        let lane = RefusedLane {
            worker_id: arguments.worker_id.clone(),
            worktree: arguments.worktree_root.clone(),
        };
        refusal::report(&flags, error, &[lane])
    };
    let settings = Settings::resolve(&flags, clock::now().wall);
    let mut settings = settings.map_err(|error| refused(&error))?;
    // For so few steps it does not pay.
    settings.warm &= arguments.max_steps >= WARM_STEPS;
    let accepted = trust::settle(&flags).map_err(|error| refused(&error))?;
    accepted.iter().for_each(|line| say(&plain(line)));
    Ok(settings)
}

/// Says what the batch is run with.
fn announce(batch: &Batch) {
    let settings = &batch.settings;
    say(&plain(&settings.mode.describe()));
    say(&plain(&settings.sandbox.choice.describe()));
    let deadline = settings.bounds.deadline;
    if let Some(at) = deadline.ends_at(clock::now().wall, Duration::ZERO) {
        say(&end_message(at));
    }
    for target_sync in batch.target_sync() {
        let warning = if target_sync.is_warning() {
            "warning: "
        } else {
            ""
        };
        say(&format!("{warning}{}", plain(&target_sync.to_string())));
    }
    let network = settings.network.choice.warning();
    let warnings = [
        foreign_warning(&batch.foreign_rows()),
        batch.own_checks_warning(),
        left_out_warning(settings),
        network,
    ];
    for warning in warnings.into_iter().flatten() {
        say(&format!("warning: {}", plain(&warning)));
    }
}

/// Boots the lane and says what a person should know about it.
fn boot(batch: &Arc<Batch>, arguments: &Arguments) -> Result<(Lane, BootReport), u8> {
    let plan = LanePlan {
        worker_id: arguments.worker_id.clone(),
        worktree: arguments.worktree_root.clone(),
        index: arguments.lane_index,
        tolerate_cycle: false,
    };
    batch.publish();
    let booted = Lane::boot(batch.clone(), &plan);
    let (lane, boot) = booted.map_err(|error| {
        let code = failed(&error, error.hint(), boot_code(&error));
        batch.publish_end(code);
        code
    })?;
    let worker_id = &arguments.worker_id;
    say(&plain(&format!("{worker_id} ready{}", boot.describe())));
    for warning in &boot.warnings {
        say(&format!("warning: {}", plain(warning)));
    }
    if let Some(branch) = &boot.salvage {
        say(&format!("leftover work saved on {branch}"));
    }
    Ok((lane, boot))
}

/// Ends the lane and puts issue memory in order; returns the outcomes of the
/// verifications of last commits.
fn finish(batch: &Batch, mut lane: Lane, store_lost: bool) -> Vec<TipCheck> {
    lane.verify_tip(true);
    let tips = batch.tips();
    tips.iter().for_each(|tip| say(&plain(&tip.to_string())));
    if let Err(error) = lane.finish() {
        say(&format!("the last session was not written: {error}"));
    }
    if !store_lost {
        batch
            .last_outside_changes()
            .iter()
            .for_each(print_outside_change);
        batch.sweep_shared();
        let _ = batch.recover_rows(RecoverAt::End);
        // Another batch may be running: only if it is worthwhile.
        let _ = batch.memory.compact(CompactionRule::WhereItPays);
    }
    tips
}

/// Sums up what the exit code follows from.
fn end_of(
    batch: &Batch,
    worked: &AloneOutcome,
    tips: &[TipCheck],
    ended_by: Option<EndedBy>,
) -> LoopEnd {
    let mut lost = worked.reports.iter().map(|report| &report.lane_lost);
    let endings = batch.endings();
    LoopEnd {
        signal: batch.interrupt.last_signal(),
        store_lost: worked.store_lost,
        refused: false,
        failed: endings.values().any(|(_, ended)| *ended == Some(false)),
        lane_lost: worked.lane_lost || lost.any(Option::is_some),
        missing: is_missing(batch),
        unpushed: is_unpushed(batch),
        tip_fails: tips.iter().any(|tip| !tip.passed),
        ended_by,
    }
}

/// Says what landed of what was closed here; returns whether some did not.
fn is_missing(batch: &Batch) -> bool {
    match batch.check_landing() {
        Ok(None) => false,
        Ok(Some(check)) => {
            say(&format!(
                "{} of {} closed issues landed on {}",
                check.landed,
                check.landed + check.missing.len(),
                plain(&check.target)
            ));
            !check.missing.is_empty()
        }
        Err(error) => {
            failed(&error, error.hint(), exit::FAILED);
            true
        }
    }
}

/// Says why the last push of what landed failed; returns whether it did.
fn is_unpushed(batch: &Batch) -> bool {
    let last = batch.landing.pushes();
    if let Some(failure) = &last.failure {
        say(&plain(&failure.to_string()));
    }
    last.failure.is_some()
}

fn boot_code(error: &BootError) -> u8 {
    match error {
        BootError::Store(StoreError::Corrupt { .. } | StoreError::Missing { .. })
        | BootError::Tree(_)
        | BootError::Foreign { .. } => exit::USAGE,
        error
            if matches!(
                error.class(),
                FailureClass::DependencyCycle | FailureClass::StartupCheckFailed
            ) =>
        {
            exit::REFUSED
        }
        _ => exit::FAILED,
    }
}

fn listen(interrupt: Interrupt) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                interrupt.signal(u64::try_from(signal).unwrap_or(0));
            }
        })
        .map(drop)
}
