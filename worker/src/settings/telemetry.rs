//! `[telemetry]`: the receiver of spans and sums.

use super::file::{ConfigError, wrong};
use super::keys::TelemetryKeys;
use super::notify::secret_variable;
use super::program::Places;
use crate::environment::EnvironmentRules;
use crate::post::PostUrl;
use std::time::Duration;

/// What an address looks like: a collector on this machine.
const EXAMPLE: &str = "http://127.0.0.1:4318";

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that may be set: the end of a batch waits for it.
const TIMEOUT_MAX: Duration = Duration::from_secs(60);

/// Where spans and sums are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TelemetrySettings {
    /// The base of the addresses.
    pub(crate) endpoint: PostUrl,
    /// The variable that holds further headers.
    pub(crate) headers_env: Option<String>,
    /// How long a request may take, and the end of the batch waits.
    pub(crate) timeout: Duration,
}

/// The headers for the receiver cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("no batch begins without the headers for the receiver of telemetry: {why}")]
pub struct TelemetryHeadersError {
    pub(crate) why: String,
}

impl TelemetryHeadersError {
    /// Returns what a person can do about it.
    pub(crate) fn hint(&self) -> String {
        "set the variable that headers_env under [telemetry] names to key=value,key=value with \
         percent-encoded values, or delete the key"
            .to_owned()
    }
}

impl TelemetrySettings {
    /// Takes the keys of the file; `None` without an endpoint.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Line`] for a wrong URL, too long a time or the name of a
    /// variable that commands get.
    pub(super) fn of(
        keys: TelemetryKeys,
        environment: &EnvironmentRules,
        places: &Places,
    ) -> Result<Option<Self>, ConfigError> {
        let name = keys.headers_env.as_deref();
        let key = "telemetry.headers_env";
        let headers_env = secret_variable(key, name, "send", environment, places)?;
        let timeout = keys.timeout.map_or(TIMEOUT, |period| period.0);
        if timeout > TIMEOUT_MAX {
            let detail = "`timeout` is longer than 60s".to_owned();
            return Err(wrong(places, "telemetry.timeout", detail));
        }
        let url = keys.otlp_endpoint.as_deref();
        let Some(url) = url.filter(|url| !url.trim().is_empty()) else {
            return Ok(None);
        };
        let refuse = |why: String| {
            let detail = format!("`otlp_endpoint`: {why}");
            wrong(places, "telemetry.otlp_endpoint", detail)
        };
        let endpoint = PostUrl::parse(url, EXAMPLE).map_err(|error| refuse(error.to_string()))?;
        if endpoint.as_str().contains('?') {
            return Err(refuse("expected a base URL without a query".to_owned()));
        }
        Ok(Some(Self {
            endpoint,
            headers_env,
            timeout,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::FileSettings;
    use super::*;
    use std::path::Path;

    fn read(text: &str) -> Result<Option<TelemetrySettings>, String> {
        let file = FileSettings::parse(&format!("[telemetry]\n{text}"), Path::new("h.toml"));
        Ok(file.map_err(|error| error.to_string())?.telemetry)
    }

    #[test]
    fn an_endpoint_is_safe_and_its_headers_come_from_a_variable_of_no_command() {
        let url = "otlp_endpoint = \"http://127.0.0.1:4318\"\n";
        assert_eq!(read("").unwrap(), None);
        let set = read(&format!("{url}headers_env = \"OTLP_KEY\"\n"));
        let set = set.unwrap().unwrap();
        assert_eq!(set.headers_env.as_deref(), Some("OTLP_KEY"));
        assert_eq!(set.timeout, TIMEOUT);
        for (text, expected) in [
            (
                "otlp_endpoint = \"http://example.org\"\n".to_owned(),
                "h.toml:2: `otlp_endpoint`: http is",
            ),
            (
                "otlp_endpoint = \"collector:4318\"\n".to_owned(),
                "h.toml:2: `otlp_endpoint`: expected a URL such as \"http://127.0.0.1:4318\"",
            ),
            (
                "otlp_endpoint = \"https://example.org/?a=b\"\n".to_owned(),
                "h.toml:2: `otlp_endpoint`: expected a base",
            ),
            (
                format!("{url}headers_env = \"OPENAI_API_KEY\"\n"),
                "h.toml:3: `headers_env`: OPENAI_API_KEY passes",
            ),
            (
                format!("{url}timeout = \"2m\"\n"),
                "h.toml:3: `timeout` is longer than 60s",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
