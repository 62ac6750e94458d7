//! The units of systemd that run a batch as a service of a user: their text, and
//! whether a file is still as it was written.

mod escape;
mod progress;
mod state;
mod unit;

pub use escape::Unwritable;
pub use progress::progress;
pub use state::{UnitState, is_sealed, state_of};

use std::time::Duration;

/// When the service runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceSchedule {
    /// When a person starts it.
    ByHand,
    /// Every day at this local time: hour and minute.
    EveryNight(u8, u8),
    /// From login, or boot, on.
    Forever,
}

/// How long a drain takes at most, by its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainTime {
    /// How long running attempts may continue after the drain began.
    pub drain_grace: Duration,
    /// How long their commands get from TERM to KILL.
    pub grace: Duration,
    /// How long the last notification may take.
    pub notify: Duration,
}

impl DrainTime {
    /// For what is put in order after the last command: work that is saved, rows,
    /// the report.
    const ORDER: Duration = Duration::from_secs(120);

    /// The longest time that a unit states in numbers.
    const MOST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

    /// Returns how long systemd waits for the end after it asked for it, in whole
    /// seconds; `None` where that is longer than a year. The limits of commands are
    /// not part of it: attempts that still run when the drain grace is over are
    /// cancelled.
    pub fn total(self) -> Option<Duration> {
        let parts = [self.grace, self.notify, Self::ORDER];
        let mut parts = parts.iter();
        let total = parts.try_fold(self.drain_grace, |sum, part| sum.checked_add(*part))?;
        let whole = Duration::from_secs(total.as_secs().checked_add(1)?);
        (whole <= Self::MOST).then_some(whole)
    }
}

/// What the units of a service are made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceTerms {
    /// The name of the units, without an ending.
    pub name: String,
    /// The repository's root.
    pub repository: String,
    /// The program `harness-coordinator`.
    pub program: String,
    /// Further flags for it.
    pub flags: Vec<String>,
    /// The value of `PATH`.
    pub path: String,
    /// When it runs.
    pub schedule: ServiceSchedule,
    /// How long a drain takes.
    pub drain: DrainTime,
}

/// A unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name of its file.
    pub file: String,
    /// Its text.
    pub text: String,
}

impl ServiceTerms {
    /// Returns the units: the service, and a timer where it runs every night.
    ///
    /// # Errors
    ///
    /// [`Unwritable`]: a path that no unit can hold.
    pub fn units(&self) -> Result<Vec<Unit>, Unwritable> {
        let mut units = vec![Unit {
            file: service_file(&self.name),
            text: state::sealed(&unit::service(self)?),
        }];
        if let ServiceSchedule::EveryNight(hour, minute) = self.schedule {
            units.push(Unit {
                file: timer_file(&self.name),
                text: state::sealed(&unit::timer(self, hour, minute)?),
            });
        }
        Ok(units)
    }

    /// Returns the unit that is enabled; none where the service is started by hand.
    pub fn enabled(&self) -> Option<String> {
        match self.schedule {
            ServiceSchedule::ByHand => None,
            ServiceSchedule::EveryNight(..) => Some(timer_file(&self.name)),
            ServiceSchedule::Forever => Some(service_file(&self.name)),
        }
    }
}

/// Returns the name of a service's unit file.
pub fn service_file(name: &str) -> String {
    format!("{name}.service")
}

/// Returns the name of a timer's unit file.
pub fn timer_file(name: &str) -> String {
    format!("{name}.timer")
}

/// Returns the name of the units for a repository whose folder has this name.
/// Characters that a unit's name cannot have become `-`.
pub fn unit_name(folder: &str) -> String {
    let kept = |c: char| match c {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => c,
        _ => '-',
    };
    let folder: String = folder.chars().take(100).map(kept).collect();
    format!("premath-{folder}")
}

/// Returns whether a name can be that of a unit, without its ending.
pub fn is_unit_name(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ':' | '.');
    !name.is_empty() && name.len() <= 200 && !name.starts_with('.') && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests;
