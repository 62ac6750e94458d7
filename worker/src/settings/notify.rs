//! `[notify]`: the operator's command for notifications.

use super::file::{ConfigError, wrong};
use super::keys::NotifyKeys;
use super::program::Places;
use premath_kernel::record::notification::NotifyEvent;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a notification command may run.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a notification command may run: the end of a batch waits for
/// the last one.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// What is notified, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifySettings {
    /// The command, as a shell reads it.
    pub command: String,
    /// The events that it is run for.
    pub events: BTreeSet<NotifyEvent>,
    /// How long it may run.
    pub timeout: Duration,
}

impl NotifySettings {
    /// Returns how long one notification takes at most.
    pub(super) const fn longest(&self) -> Duration {
        self.timeout
    }

    /// Takes the keys of the file; `None` where no command is set.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`] for an unknown event or too long a time.
    pub(super) fn of(keys: NotifyKeys, places: &Places) -> Result<Option<Self>, ConfigError> {
        let events = match keys.events {
            None => NotifyEvent::ALL.into_iter().collect(),
            Some(words) => {
                let events = words.0.iter().map(|word| word.parse::<NotifyEvent>());
                events
                    .collect::<Result<BTreeSet<_>, _>>()
                    .map_err(|error| wrong(places, "notify.events", format!("`events`: {error}")))?
            }
        };
        let timeout = keys.timeout.map_or(TIMEOUT, |period| period.0);
        if timeout > TIMEOUT_MAX {
            let detail = "`timeout` is longer than 60s".to_owned();
            return Err(wrong(places, "notify.timeout", detail));
        }
        let command = keys.command.filter(|command| !command.trim().is_empty());
        Ok(command.map(|command| Self {
            command,
            events,
            timeout,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileSettings;
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<Option<NotifySettings>, String> {
        let file = FileSettings::parse(&format!("[notify]\n{text}"), Path::new("h.toml"));
        let file = file.map_err(|error| error.to_string())?;
        Ok(file.notify)
    }

    #[test]
    fn every_event_is_notified_unless_some_are_selected() {
        assert_eq!(read(""), Ok(None));
        let all = read("command = 'mail me'\n").unwrap().unwrap();
        assert_eq!(all.events.len(), NotifyEvent::ALL.len());
        assert_eq!(all.timeout, TIMEOUT);
        let some =
            read("command = 'mail me'\nevents = [\"done\", \"blocked\"]\ntimeout = \"2s\"\n");
        let some = some.unwrap().unwrap();
        let events: Vec<NotifyEvent> = some.events.into_iter().collect();
        assert_eq!(events, [NotifyEvent::Done, NotifyEvent::Blocked]);
        assert_eq!(some.timeout, Duration::from_secs(2));
    }

    #[test]
    fn a_wrong_value_is_named_with_its_line() {
        for (text, expected) in [
            (
                "events = [\"ended\"]\n",
                "h.toml:2: `events`: unknown event `ended`",
            ),
            (
                "timeout = \"2m\"\n",
                "h.toml:2: `timeout` is longer than 60s",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
