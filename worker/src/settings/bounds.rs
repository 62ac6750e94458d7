//! What bounds a batch beside its commands: providers' limits, the breaker,
//! room on the machine, budgets, its end.

use super::file::ConfigError;
use super::keys::HarnessToml;
use super::program::Places;
use super::{LoopFlags, SettingsError, Workforce};
use jiff::tz::TimeZone;
use premath_kernel::policy::admission::AdmissionRule;
use premath_kernel::policy::breaker::BreakerRule;
use premath_kernel::policy::budget::Budget;
use premath_kernel::policy::deadline::{Deadline, StopAt};
use premath_kernel::policy::provider::{LimitLines, ProviderRule};
use premath_kernel::policy::room::RoomRule;
use std::path::PathBuf;
use std::time::Duration;

/// How long a provider is parked whose reset is not said.
const LIMIT_PAUSE: Duration = Duration::from_secs(3_600);

/// The bounds of a batch.
#[derive(Clone, Debug)]
pub struct BatchBounds {
    /// The lanes' providers.
    pub providers: ProviderRule,
    /// When dispatch pauses for what fails alike.
    pub breaker: BreakerRule,
    /// What must be free on the machine.
    pub room: RoomRule,
    /// What the batch may use.
    pub batch: Budget,
    /// What an issue may use, over its attempts in the batch.
    pub issue: Budget,
    /// When the batch is to end.
    pub deadline: Deadline,
}

impl BatchBounds {
    /// Returns the rules of the batch's admission.
    pub(crate) const fn admission(&self) -> AdmissionRule {
        AdmissionRule {
            breaker: self.breaker,
            room: self.room,
            budget: self.batch,
            deadline: self.deadline,
        }
    }
}

/// The keys of `harness.toml` that bound a batch.
#[derive(Clone, Debug, Default)]
pub(super) struct BoundsTable {
    fallback: Vec<String>,
    /// The place of that setting, for an error about an unknown name.
    fallback_at: Option<(PathBuf, usize)>,
    limit_pause: Option<Duration>,
    limit_lines: LimitLines,
    breaker: BreakerRule,
    room: RoomRule,
    batch: Budget,
    issue: Budget,
    stop_at: Option<StopAt>,
    max_duration: Option<Duration>,
}

impl BoundsTable {
    /// Takes the keys of the file.
    pub(super) fn of(toml: &HarnessToml, places: &Places) -> Self {
        let (agent, breaker, budget) = (&toml.agent, &toml.breaker, &toml.budget);
        let (room, usual) = (&toml.supervision, Self::default());
        let failures = breaker
            .failures
            .and_then(|count| u32::try_from(count.0).ok());
        Self {
            fallback: agent.fallback.clone().unwrap_or_default().0,
            fallback_at: places.get("agent.fallback").cloned(),
            limit_pause: agent.limit_pause.map(|period| period.0),
            limit_lines: agent.limit_lines.map(|word| word.0).unwrap_or_default(),
            breaker: BreakerRule {
                failures: failures.unwrap_or(usual.breaker.failures),
                pause: breaker.pause.map_or(usual.breaker.pause, |period| period.0),
            },
            room: RoomRule {
                disk: room.free_disk.map_or(usual.room.disk, |size| size.0),
                memory: room.free_memory.map_or(usual.room.memory, |size| size.0),
                patience: room.room_wait.map_or(usual.room.patience, |wait| wait.0),
            },
            batch: Budget {
                tokens: budget.batch_tokens.map(|count| count.0),
                cost_nano_usd: budget.batch_usd.map(|dollars| dollars.0),
                time: None,
            },
            issue: Budget {
                tokens: budget.issue_tokens.map(|count| count.0),
                cost_nano_usd: budget.issue_usd.map(|dollars| dollars.0),
                time: budget.issue_time.map(|period| period.0),
            },
            stop_at: toml.coordinator.stop_at.map(|word| word.0),
            max_duration: toml.coordinator.max_duration.map(|period| period.0),
        }
    }

    /// Returns who takes a lane whose own provider is parked.
    pub(super) fn fallback(&self) -> &[String] {
        &self.fallback
    }

    /// Returns the error of a name there that is none.
    pub(super) fn wrong_fallback(&self, detail: String) -> ConfigError {
        let (path, line) = self.fallback_at.clone().unwrap_or_default();
        let detail = format!("`fallback`: {detail}");
        ConfigError::Line { path, line, detail }
    }

    /// Puts flags and keys together; a deadline counts from now.
    pub(super) fn settled(
        self,
        flags: &LoopFlags,
        work: &Workforce,
        now: jiff::Timestamp,
    ) -> Result<BatchBounds, SettingsError> {
        let stop_at = match &flags.stop_at {
            Some(text) => Some(text.parse::<StopAt>().map_err(|error| {
                let detail = error.to_string();
                SettingsError::Value {
                    name: "--stop-at",
                    detail,
                }
            })?),
            None => self.stop_at,
        };
        let max_duration = match &flags.max_duration {
            Some(text) => Some(max_duration(text)?),
            None => self.max_duration,
        };
        let [own, fallback] = work.providers();
        let stop_at = stop_at.map(|stop_at| moment(stop_at, now)).transpose()?;
        Ok(BatchBounds {
            providers: ProviderRule {
                own,
                fallback,
                pause: self.limit_pause.unwrap_or(LIMIT_PAUSE),
                limit_lines: self.limit_lines,
            },
            breaker: self.breaker,
            room: self.room,
            batch: self.batch,
            issue: self.issue,
            deadline: Deadline {
                stop_at,
                max_duration,
                window_end: None,
            },
        })
    }
}

fn max_duration(text: &str) -> Result<Duration, SettingsError> {
    let wrong = |detail: String| SettingsError::Value {
        name: "--max-duration",
        detail,
    };
    let duration = humantime::parse_duration(text).map_err(|error| {
        wrong(format!(
            "invalid duration `{text}`: expected for example 9h or 1h 30m: {error}"
        ))
    })?;
    if duration.is_zero() {
        return Err(wrong("must be greater than 0".to_owned()));
    }
    Ok(duration)
}

/// Returns when a time is next, by this machine's clocks.
fn moment(stop_at: StopAt, now: jiff::Timestamp) -> Result<jiff::Timestamp, SettingsError> {
    let wrong = |detail: String| SettingsError::Value {
        name: "--stop-at",
        detail,
    };
    let zone = match stop_at {
        StopAt::Moment(_) => TimeZone::UTC,
        StopAt::Clock(_) => TimeZone::try_system().map_err(|error| {
            wrong(format!(
                "cannot determine the time zone ({error}); give an RFC 3339 time, or set TZ"
            ))
        })?,
    };
    stop_at
        .next(&now.to_zoned(zone))
        .ok_or_else(|| wrong("the time has passed".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::super::FileSettings;
    use super::*;
    use std::path::Path;

    fn table(text: &str) -> Result<BoundsTable, String> {
        let file = FileSettings::parse(text, Path::new("h.toml"));
        file.map(|file| file.bounds)
            .map_err(|error| error.to_string())
    }

    /// Puts keys and flags together where a command works.
    fn bounds(keys: BoundsTable, flags: &LoopFlags) -> Result<BatchBounds, SettingsError> {
        let work = crate::settings::agent::AgentSelection {
            flags,
            table: &Default::default(),
            bounds: &keys,
            command: Some("work"),
        };
        let work = work.workforce()?;
        keys.settled(flags, &work, now())
    }

    fn now() -> jiff::Timestamp {
        "2026-03-05T21:00:00Z".parse().unwrap()
    }

    #[test]
    fn the_keys_read_as_people_write_them() {
        let text = r#"
[agent]
fallback = ["gemini", "codex"]
limit_pause = "20m"
limit_lines = "park"
[breaker]
failures = 0
pause = "90s"
[supervision]
free_disk = "2GiB"
free_memory = 0
room_wait = "10m"
[budget]
batch_tokens = 2_000_000
batch_usd = 12.50
issue_tokens = 1000
issue_usd = 1
issue_time = "2h"
[coordinator]
stop_at = "2026-03-06T07:00:00Z"
max_duration = "9h"
"#;
        let keys = table(text).unwrap();
        let bounds = bounds(keys, &LoopFlags::default()).unwrap();
        assert_eq!(bounds.providers.own, ["shell"]);
        assert_eq!(bounds.providers.fallback, ["gemini", "codex"]);
        assert_eq!(bounds.providers.pause, Duration::from_secs(1_200));
        assert_eq!(bounds.providers.limit_lines, LimitLines::Park);
        assert_eq!(bounds.breaker.failures, 0);
        assert_eq!((bounds.room.disk.0, bounds.room.memory.0), (2 << 30, 0));
        assert_eq!(bounds.batch.cost_nano_usd, Some(12_500_000_000));
        assert_eq!(bounds.issue.time, Some(Duration::from_secs(7_200)));
        assert_eq!(
            bounds.deadline.left(now(), Duration::ZERO),
            Some(Duration::from_secs(9 * 3_600))
        );
    }

    #[test]
    fn nothing_given_is_what_the_documents_say() {
        let keys = BoundsTable::default();
        let bounds = bounds(keys, &LoopFlags::default()).unwrap();
        assert_eq!(bounds.breaker.failures, 3);
        assert_eq!(bounds.breaker.pause, Duration::from_secs(300));
        assert_eq!(
            (bounds.room.disk.0, bounds.room.memory.0),
            (1 << 30, 512 << 20)
        );
        assert_eq!(bounds.deadline, Deadline::default());
        assert_eq!(
            (bounds.batch, bounds.issue),
            (Budget::default(), Budget::default())
        );
    }

    #[test]
    fn a_wrong_value_says_what_would_be_right() {
        for (text, said) in [
            (
                "[supervision]\nfree_disk = \"much\"\n",
                "`free_disk`: invalid size `much`: expected for example 20GiB, 500MB or 4096",
            ),
            (
                "[budget]\nbatch_usd = -1\n",
                "`batch_usd`: invalid amount `-1`: expected dollars, for example 25 or 0.50",
            ),
            (
                "[budget]\nissue_usd = 0.0\n",
                "`issue_usd`: must be greater than 0",
            ),
            (
                "[coordinator]\nstop_at = \"7am\"\n",
                "`stop_at`: invalid time `7am`: expected a time of day such as 07:00, or an RFC \
                3339 time",
            ),
            ("[breaker]\nfailurs = 3\n", "unknown key `failurs`"),
        ] {
            assert_eq!(table(text).unwrap_err(), format!("h.toml:2: {said}"));
        }
    }

    #[test]
    fn a_flag_wins_over_its_key_and_is_named_where_it_is_wrong() {
        let flags = |stop_at: Option<&str>, max_duration: Option<&str>| LoopFlags {
            stop_at: stop_at.map(str::to_owned),
            max_duration: max_duration.map(str::to_owned),
            ..LoopFlags::default()
        };
        let keys = table("[coordinator]\nmax_duration = \"9h\"\n").unwrap();
        let settled = bounds(keys, &flags(None, Some("1h"))).unwrap();
        assert_eq!(
            settled.deadline.max_duration,
            Some(Duration::from_secs(3_600))
        );
        for (stop_at, max_duration, said) in [
            (Some("7am"), None, "--stop-at: invalid time `7am`"),
            (
                Some("2026-03-05T21:00:00Z"),
                None,
                "--stop-at: the time has passed",
            ),
            (
                None,
                Some("long"),
                "--max-duration: invalid duration `long`",
            ),
            (None, Some("0s"), "--max-duration: must be greater than 0"),
        ] {
            let error = bounds(BoundsTable::default(), &flags(stop_at, max_duration));
            let error = error.unwrap_err().to_string();
            assert!(error.starts_with(said), "{error}");
        }
    }
}
