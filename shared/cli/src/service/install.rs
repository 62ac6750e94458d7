//! `premath service install`.

use super::files::UnitFolder;
use super::{ServiceAnswer, UnitItem, UnitWord, Which, refuse_inside_step};
use crate::answer::Answer;
use crate::error::CliError;
use crate::terminal::plain;
use clap::Args;
use harness_worker::settings::{FileSettings, SettingsError, trusted_path};
use jiff::civil::Time;
use premath_kernel::policy::deadline::StopAt;
use premath_memory::roots::MemoryRoots;
use premath_view::service::{DrainTime, ServiceSchedule, ServiceTerms, timer_file};
use std::path::{Path, PathBuf};

/// The program that a service runs.
const PROGRAM: &str = "harness-coordinator";

/// Arguments of `premath service install`.
///
/// The units have absolute paths, this PATH, and the times of harness.toml: install
/// again after `drain_grace` or `grace` change. A unit that was changed is not
/// overwritten; put changes into a drop-in (`systemctl --user edit`), which stays.
#[derive(Debug, Args)]
pub(super) struct InstallArgs {
    #[command(flatten)]
    which: Which,
    /// Write units of this user; there are no others
    #[arg(long, required = true)]
    user: bool,
    /// Start a batch every day at this local time
    #[arg(long, value_name = "HH:MM", conflicts_with = "forever", value_parser = time_of_day)]
    every_night: Option<Time>,
    /// Run one batch that stays and works on issues as they are added
    #[arg(long)]
    forever: bool,
    /// Run this program [default: harness-coordinator beside premath, or in PATH]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print the units and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Overwrite units that a person changed, or that are another repository's
    #[arg(long)]
    force: bool,
    /// Further flags of harness-coordinator
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

impl InstallArgs {
    pub(super) fn run(self) -> Result<Answer, CliError> {
        refuse_inside_step()?;
        let roots = self.which.roots()?;
        let terms = self.terms(&roots)?;
        let folder = UnitFolder::of_user()?;
        let units = terms.units().map_err(|error| {
            let (what, text) = (error.what, error.text);
            CliError::Usage(format!("no unit of systemd can hold {what}: {text}"))
        })?;
        // A timer that is no more asked for would start the service still.
        let timer = timer_file(&terms.name);
        let is_stale = !units.iter().any(|unit| unit.file == timer);
        let mut files: Vec<&str> = units.iter().map(|unit| unit.file.as_str()).collect();
        if is_stale {
            files.push(&timer);
        }
        for file in &files {
            folder.refuse_foreign(file, &roots.repository, self.force)?;
        }
        let mut items = Vec::new();
        for unit in &units {
            let found = folder.read(&unit.file)?;
            let is_same = found.is_some_and(|found| found.text == unit.text);
            let state = match (is_same, self.dry_run) {
                (true, _) => UnitWord::Unchanged,
                (false, true) => UnitWord::WouldWrite,
                (false, false) => UnitWord::Wrote,
            };
            if state == UnitWord::Wrote {
                folder.write(&unit.file, &unit.text)?;
            }
            items.push(UnitItem {
                path: folder.shown(&unit.file),
                state,
                text: Some(unit.text.clone()),
            });
        }
        let mut commands = vec!["systemctl --user daemon-reload".to_owned()];
        if is_stale && folder.read(&timer)?.is_some() {
            if !self.dry_run {
                folder.delete(&timer)?;
            }
            commands.insert(0, format!("systemctl --user stop {timer}"));
            items.push(UnitItem {
                path: folder.shown(&timer),
                state: match self.dry_run {
                    true => UnitWord::WouldDelete,
                    false => UnitWord::Deleted,
                },
                text: None,
            });
        }
        commands.extend(then(&terms));
        let done = ServiceAnswer {
            name: terms.name,
            units: items,
            commands,
        };
        Ok(done.answer(self.dry_run))
    }

    fn terms(&self, roots: &MemoryRoots) -> Result<ServiceTerms, CliError> {
        let repository = &roots.repository;
        let file = FileSettings::load(None, repository).map_err(SettingsError::from)?;
        let limits = file.limits();
        let schedule = match self.every_night {
            Some(time) => {
                let (hour, minute) = (time.hour().unsigned_abs(), time.minute().unsigned_abs());
                ServiceSchedule::EveryNight(hour, minute)
            }
            None if self.forever => ServiceSchedule::Forever,
            None => ServiceSchedule::ByHand,
        };
        Ok(ServiceTerms {
            name: self.which.name(roots)?,
            repository: text(repository)?,
            program: text(&self.program()?)?,
            flags: self.flags.clone(),
            path: text(Path::new(&trusted_path(repository)))?,
            schedule,
            drain: DrainTime {
                drain_grace: limits.drain_grace,
                grace: limits.grace,
                notify: file.notify_wait(),
            },
        })
    }

    /// Finds the program that is to run.
    fn program(&self) -> Result<PathBuf, CliError> {
        if let Some(program) = &self.program {
            let whole = std::path::absolute(program).map_err(CliError::file("find", program))?;
            return found(&whole).ok_or(CliError::Usage(format!(
                "{} is not there",
                plain(&program.display().to_string())
            )));
        }
        let beside = std::env::current_exe().ok();
        let beside = beside.and_then(|own| Some(own.parent()?.join(PROGRAM)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let in_path = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let mut places = beside
            .into_iter()
            .chain(in_path.map(|folder| folder.join(PROGRAM)));
        places.find_map(|place| found(&place)).ok_or_else(|| {
            CliError::Usage(format!(
                "{PROGRAM} is neither beside premath nor in PATH; name it with --program"
            ))
        })
    }
}

/// Reads a time of day.
fn time_of_day(text: &str) -> Result<Time, &'static str> {
    match text.parse() {
        Ok(StopAt::Clock(time)) => Ok(time),
        Ok(StopAt::Moment(_)) | Err(_) => Err("expected a time of day such as 22:00"),
    }
}

fn found(path: &Path) -> Option<PathBuf> {
    path.is_file().then(|| path.to_path_buf())
}

/// Returns a path as text: a unit holds no other.
fn text(path: &Path) -> Result<String, CliError> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let shown = plain(&path.display().to_string()).into_owned();
        CliError::Usage(format!(
            "no unit of systemd can hold {shown}: it is not UTF-8"
        ))
    })
}

/// Returns the commands that take the units into use.
fn then(terms: &ServiceTerms) -> Vec<String> {
    match terms.enabled() {
        Some(unit) => vec![
            format!("systemctl --user enable --now {unit}"),
            "loginctl enable-linger    # so that it runs while you are logged out".to_owned(),
        ],
        None => vec![format!("systemctl --user start {}.service", terms.name)],
    }
}
