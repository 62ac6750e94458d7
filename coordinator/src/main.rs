//! The `harness-coordinator` binary. Its hidden mode is a lane's supervisor.

mod live;
mod worktrees;

use clap::Parser;
use harness_coordinator::arguments::{Arguments, Command};
use harness_coordinator::example;
use harness_coordinator::machine::Allowance;
use harness_coordinator::report::{HumanReporter, JsonReporter, Reporter};
use harness_coordinator::run::{Inbox, Plan, Waker, run};
use harness_worker::exit;
use harness_worker::interrupt::Interrupt;
use harness_worker::lanes::LaneChoice;
use harness_worker::plan;
use harness_worker::refusal::{self, RefusedLane};
use harness_worker::settings::{FileSettings, Settings};
use harness_worker::stderr::{failed, local_zone, say};
use harness_worker::supervisor;
use harness_worker::telemetry;
use harness_worker::trust;
use jiff::Zoned;
use live::LiveReporter;
use premath_cli::Beside;
use premath_kernel::json::plain::plain;
use premath_memory::roots::MemoryRoots;
use premath_memory::{IssueMemory, RepositoryUse, clock};
use premath_view::figures::Viewer;
use premath_view::plan::{document, lines};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;
use worktrees::Watch;

fn main() -> ExitCode {
    if let Some(ended) = supervisor::hidden_mode() {
        return ended;
    }
    let arguments = Arguments::parse();
    // Where it is not raised, folders that lie deep can disable a lane.
    let _ = premath_platform::process::raise_open_files();
    harness_worker::log::begin();
    ExitCode::from(match &arguments.command {
        Some(Command::Example { dir, json }) => show_example(dir.as_deref(), *json),
        None if arguments.dry_run => dry_run(&arguments),
        None => batch(&arguments),
    })
}

fn batch(arguments: &Arguments) -> u8 {
    if std::env::var_os("PREMATH_STEP_ID").is_some_and(|id| !id.is_empty()) {
        say("error: cannot start a batch inside a step (PREMATH_STEP_ID is set)");
        return exit::USAGE;
    }
    let begun = clock::now();
    let planned = settings_of(arguments, begun.wall).and_then(|settings| {
        // Before lanes are made; the batch itself holds another.
        let in_use = RepositoryUse::begin(&settings.roots.repository)
            .map_err(|error| failed(&error, error.hint(), exit::USAGE))?;
        IssueMemory::must_exist(&settings.roots.issues)
            .map_err(|error| failed(&error, error.hint(), exit::USAGE))?;
        let interrupt = Interrupt::new(settings.limits.drain_grace);
        let inbox = listened(&interrupt)?;
        let plan = plan_of(arguments, settings, &interrupt, begun.boot_ms)?;
        Ok((plan, interrupt, inbox, in_use))
    });
    match planned {
        Ok((plan, interrupt, inbox, _in_use)) => {
            let reporter = match arguments.plain {
                true => lines_reporter(arguments.json, arguments.quiet),
                false => reporter(&plan.settings.roots, arguments.json, arguments.quiet),
            };
            perform(plan, interrupt, inbox, reporter)
        }
        Err(code) => code,
    }
}

/// The columns of a plan, as `premath plan` has them without a terminal.
const COLUMNS: usize = 120;

/// Prints what the batch would do.
fn dry_run(arguments: &Arguments) -> u8 {
    let plan = match plan::plan(&arguments.flags, &arguments.crew) {
        Ok(plan) => plan,
        Err(error) => return failed(&error, error.hint(), error.exit_code()),
    };
    let text = match arguments.json {
        true => document(&plan),
        false => lines(
            &plan,
            &Viewer {
                now: plan.at.time(),
                zone: local_zone(),
                width: COLUMNS,
            },
        )
        .join("\n"),
    };
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            exit::FAILED
        }
        _ if plan.refusals.is_empty() => exit::OK,
        _ => exit::REFUSED,
    }
}

/// Reads the settings and accepts the governing files, or says why the batch is
/// refused.
fn settings_of(arguments: &Arguments, now: jiff::Timestamp) -> Result<Settings, u8> {
    let flags = &arguments.flags;
    let refused = |error| refusal::report(flags, &error, &refused_lanes(arguments));
    let settings = Settings::resolve(flags, now).map_err(refused)?;
    telemetry::require_headers(&settings).map_err(refused)?;
    let accepted = trust::settle(flags).map_err(refused)?;
    accepted.iter().for_each(|line| say(&plain(line)));
    Ok(settings)
}

/// Plans the batch: its lanes, and how long they continue.
fn plan_of(
    arguments: &Arguments,
    mut settings: Settings,
    interrupt: &Interrupt,
    started_ms: u64,
) -> Result<Plan, u8> {
    let config = arguments.flags.config.as_deref();
    let file = FileSettings::load(config, &settings.roots.repository)
        .map_err(|error| failed(&error, None, exit::USAGE))?;
    let ends_at = arguments
        .crew
        .window_end(&file.coordinator, clock::now().wall);
    settings.bounds.deadline.window_end =
        ends_at.map_err(|error| failed(&error, error.hint(), error.exit_code()))?;
    let (crew, repository) = (&arguments.crew, &settings.roots.repository);
    let choice = LaneChoice::of(crew, &file, repository);
    let watch = Watch {
        interrupt,
        deadline: settings.bounds.deadline,
        started_ms,
    };
    let worktrees = worktrees::of(choice, &settings, &watch)?;
    let file = file.coordinator;
    settings
        .refuse_shared_projections(worktrees.all.len())
        .map_err(|error| failed(&error, error.hint(), error.exit_code()))?;
    Ok(Plan {
        worktrees: worktrees.all,
        lanes: worktrees.lanes,
        spare: worktrees.site,
        worker_prefix: crew.prefix(file.worker_prefix.as_deref()).to_owned(),
        allowance: Allowance {
            rounds: crew.rounds(file.rounds),
            steps_per_dispatch: crew.steps_per_dispatch(file.max_steps_per_worker),
            stop_on_failure: settings.stop_on_failure,
            until: crew.until(&file),
        },
        window: crew.window(&file),
        new_batch: crew.new_batch,
        left_out: worktrees.left_out,
        started_ms,
        settings,
    })
}

/// Returns the lanes of a batch that is refused, as far as they can be
/// determined.
fn refused_lanes(arguments: &Arguments) -> Vec<RefusedLane> {
    let root = arguments
        .flags
        .repo_root
        .as_deref()
        .unwrap_or(Path::new("."));
    let Ok(roots) = MemoryRoots::discover(root) else {
        return Vec::new();
    };
    let config = arguments.flags.config.as_deref();
    let Ok(file) = FileSettings::load(config, &roots.repository) else {
        return Vec::new();
    };
    let choice = LaneChoice::of(&arguments.crew, &file, &roots.repository);
    let found = choice.there(&roots.repository);
    let of_file = file.coordinator.worker_prefix.as_deref();
    let prefix = arguments.crew.prefix(of_file);
    found
        .into_iter()
        .zip(1..)
        .map(|(worktree, number)| RefusedLane {
            worker_id: format!("{prefix}.{number}").into(),
            worktree,
        })
        .collect()
}

/// Has signals reach a batch that is yet to run.
fn listened(interrupt: &Interrupt) -> Result<Inbox, u8> {
    let (inbox, waker) = Inbox::new();
    listen(interrupt.clone(), waker).map_err(|error| failed(&error, None, exit::USAGE))?;
    Ok(inbox)
}

/// Runs a plan with a reporter.
fn perform(plan: Plan, interrupt: Interrupt, inbox: Inbox, mut reporter: Box<dyn Reporter>) -> u8 {
    let ran = run(plan, interrupt, inbox, &mut *reporter);
    // The terminal is as it was before an error is printed.
    drop(reporter);
    match ran {
        Ok(summary) => summary.exit_code,
        Err(error) => failed(&error, error.hint(), error.exit_code()),
    }
}

/// Returns the reporter: the live view on a terminal.
fn reporter(roots: &MemoryRoots, json: bool, is_quiet: bool) -> Box<dyn Reporter> {
    let view = (!json && !is_quiet).then(|| Beside::of(roots)).flatten();
    match view {
        Some(view) => Box::new(LiveReporter::new(view, wall)),
        None => lines_reporter(json, is_quiet),
    }
}

fn wall() -> Zoned {
    clock::now().wall.to_zoned(local_zone())
}

fn lines_reporter(json: bool, is_quiet: bool) -> Box<dyn Reporter> {
    if json {
        return Box::new(JsonReporter::new(std::io::stdout(), || clock::now().wall));
    }
    let reporter = HumanReporter::new(std::io::stdout(), std::io::stderr(), wall);
    Box::new(reporter.quiet(is_quiet))
}

/// Prints a line of the result: with `--json`, whose lines are alone on stdout, on
/// stderr.
fn print(text: &str, json: bool) {
    match json {
        true => say(text),
        false => drop(writeln!(std::io::stdout(), "{text}")),
    }
}

fn show_example(dir: Option<&Path>, json: bool) -> u8 {
    let prepared = match example::set_up(dir) {
        Ok(prepared) => prepared,
        Err(error) => return failed(&error, error.hint(), exit::USAGE),
    };
    print(
        &format!("example created in {}", prepared.repository.display()),
        json,
    );
    let interrupt = Interrupt::new(prepared.plan.settings.limits.drain_grace);
    let inbox = match listened(&interrupt) {
        Ok(inbox) => inbox,
        Err(code) => return code,
    };
    let repository = prepared.repository.clone();
    let rule = prepared.plan.settings.landing.clone();
    let reporter = reporter(&prepared.plan.settings.roots, json, false);
    let code = perform(prepared.plan, interrupt, inbox, reporter);
    if code > exit::FAILED {
        return code;
    }
    match example::compare(&repository, &rule) {
        Ok(outcome) => {
            let (issues, landed) = (outcome.issues, outcome.landing.landed);
            let target = &outcome.landing.target;
            print(
                &format!(
                    "all {issues} issues ended as expected; the {landed} closed ones are landed on \
                {target}"
                ),
                json,
            );
            print(
                &format!(
                    "files: {} (.premath/issues.jsonl, .premath/harness_trajectory.jsonl, artifacts/)",
                    repository.display()
                ),
                json,
            );
            print("review what landed there:", json);
            print(&format!("  git log --first-parent {target}"), json);
            print(&format!("  git diff main...{target}"), json);
            exit::OK
        }
        Err(differences) => {
            for difference in differences {
                say(&format!("unexpected: {}", plain(&difference)));
            }
            exit::FAILED
        }
    }
}

fn listen(interrupt: Interrupt, waker: Waker) -> std::io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for signal in signals.forever() {
                interrupt.signal(u64::try_from(signal).unwrap_or(0));
                waker.wake();
            }
        })
        .map(drop)
}
