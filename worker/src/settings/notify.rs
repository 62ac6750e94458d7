//! `[notify]`: the operator's command and webhook for notifications.

use super::file::{ConfigError, wrong};
use super::keys::NotifyKeys;
use super::program::Places;
use crate::environment::{EnvironmentRules, passes};
use crate::post::PostUrl;
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
    pub command: Option<String>,
    /// The webhook.
    pub webhook: Option<WebhookSettings>,
    /// The events that are notified.
    pub events: BTreeSet<NotifyEvent>,
    /// How long each of the two may take.
    pub timeout: Duration,
}

/// Where notifications are posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// The address.
    pub(crate) url: PostUrl,
    /// The variable that holds the secret of the signature.
    pub(crate) secret_env: Option<String>,
}

impl NotifySettings {
    /// Returns the command, where one is set.
    pub(super) fn command(&self) -> Option<&str> {
        self.command.as_deref()
    }

    /// Returns how long one notification takes at most.
    pub(crate) const fn longest(&self) -> Duration {
        let ways = self.command.is_some() as u32 + self.webhook.is_some() as u32;
        self.timeout.saturating_mul(ways)
    }

    /// Takes the keys of the file; `None` where neither command nor webhook is set.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`] for an unknown event, too long a time, a wrong URL or
    /// the name of a variable that commands get.
    pub(super) fn of(
        keys: NotifyKeys,
        environment: &EnvironmentRules,
        places: &Places,
    ) -> Result<Option<Self>, ConfigError> {
        let webhook = WebhookSettings::of(&keys, environment, places)?;
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
        let is_any = command.is_some() || webhook.is_some();
        Ok(is_any.then_some(Self {
            command,
            webhook,
            events,
            timeout,
        }))
    }
}

impl WebhookSettings {
    fn of(
        keys: &NotifyKeys,
        environment: &EnvironmentRules,
        places: &Places,
    ) -> Result<Option<Self>, ConfigError> {
        let name = keys.webhook_secret_env.as_deref();
        let secret_env = secret_variable(
            "notify.webhook_secret_env",
            name,
            "sign",
            environment,
            places,
        )?;
        let Some(url) = keys.webhook.as_deref().filter(|url| !url.trim().is_empty()) else {
            return Ok(None);
        };
        let url = PostUrl::parse(url, "https://example.org/premath")
            .map_err(|error| wrong(places, "notify.webhook", format!("`webhook`: {error}")))?;
        Ok(Some(Self { url, secret_env }))
    }
}

/// Takes the name of a variable that holds a secret, which no command gets.
///
/// # Errors
///
/// [`ConfigError::Line`] where it is not a name, or passes to commands, which could do
/// with it what it is for.
pub(super) fn secret_variable(
    key: &str,
    name: Option<&str>,
    purpose: &str,
    environment: &EnvironmentRules,
    places: &Places,
) -> Result<Option<String>, ConfigError> {
    let Some(name) = name.map(str::trim) else {
        return Ok(None);
    };
    let word = key.rsplit('.').next().unwrap_or(key);
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || !name.chars().all(is_part) {
        let detail = format!("`{word}`: expected the name of a variable");
        return Err(wrong(places, key, detail));
    }
    if passes(name, environment) {
        let detail = format!(
            "`{word}`: {name} passes to the commands of steps, which could {purpose} with it"
        );
        return Err(wrong(places, key, detail));
    }
    Ok(Some(name.to_owned()))
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
    fn a_webhook_has_a_safe_address_and_a_secret_that_no_command_gets() {
        let url = "webhook = \"https://example.org/x\"\n";
        let alone = read(url).unwrap().unwrap();
        assert_eq!((alone.command.as_deref(), alone.longest()), (None, TIMEOUT));
        let signed = format!("{url}webhook_secret_env = \"WEBHOOK_SECRET\"\n");
        let both = read(&format!("{signed}command = 'true'\n"))
            .unwrap()
            .unwrap();
        assert_eq!(both.longest(), 2 * TIMEOUT);
        let webhook = both.webhook.unwrap();
        assert_eq!(webhook.secret_env.as_deref(), Some("WEBHOOK_SECRET"));
        for (text, expected) in [
            (
                "webhook = \"http://example.org\"\n".to_owned(),
                "h.toml:2: `webhook`: http is",
            ),
            (
                "webhook = \"example.org\"\n".to_owned(),
                "h.toml:2: `webhook`: expected a URL such as \"https://example.org/premath\"",
            ),
            (
                format!("{url}webhook_secret_env = \"OPENAI_API_KEY\"\n"),
                "h.toml:3: `webhook_secret_env`: OPENAI_API_KEY passes",
            ),
            (
                format!("{url}webhook_secret_env = \"HOOK\"\n[env]\nallow = [\"HOOK\"]\n"),
                "h.toml:3: `webhook_secret_env`: HOOK passes",
            ),
            (
                format!("{url}webhook_secret_env = \"s3cr3t!\"\n"),
                "h.toml:3: `webhook_secret_env`: expected the name",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
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
