//! The values of `harness.toml`, with file and line where one does not fit.

use super::file::ConfigError;
use premath_kernel::policy::retry::Backoff;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads values of one file, and says where one does not fit.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Reader<'_> {
    pub(super) fn at(&self, offset: usize, detail: String) -> ConfigError {
        let (path, line) = self.place(offset);
        ConfigError::Line { path, line, detail }
    }

    /// Returns the file and the line, from 1, of an offset.
    pub(super) fn place(&self, offset: usize) -> (PathBuf, usize) {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        (self.path.to_path_buf(), line)
    }

    pub(super) fn unknown(&self, offset: usize, key: &str, known: &[&str]) -> ConfigError {
        let near = known
            .iter()
            .map(|name| (strsim::damerau_levenshtein(key, name), *name))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let rest = match near {
            Some((_, name)) => format!("did you mean `{name}`?"),
            None => format!("expected one of {}", known.join(", ")),
        };
        self.at(offset, format!("unknown key `{key}`; {rest}"))
    }

    pub(super) fn wrong(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        expected: &str,
    ) -> ConfigError {
        // A number has the right type, so that only its value tells.
        let found = match value.get_ref() {
            DeValue::Integer(number) => format!("`{}`", number.as_str()),
            other => format!("of type {}", other.type_str()),
        };
        self.at(
            value.span().start,
            format!("`{key}` is {expected}, not {found}"),
        )
    }

    pub(super) fn table<'v, 't>(
        &self,
        key: &str,
        value: &'v Spanned<DeValue<'t>>,
    ) -> Result<&'v DeTable<'t>, ConfigError> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(table),
            _ => Err(self.wrong(key, value, "a table")),
        }
    }

    pub(super) fn text(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<String, ConfigError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.wrong(key, value, "a text in quotes")),
        }
    }

    /// A text that is one of a few words.
    pub(super) fn word<T>(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<T, ConfigError>
    where
        T: FromStr,
        T::Err: Display,
    {
        let word = self.text(key, value)?.parse();
        word.map_err(|error: T::Err| self.at(value.span().start, format!("`{key}`: {error}")))
    }

    /// A list of texts, or one text with commas.
    pub(super) fn words(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Vec<String>, ConfigError> {
        match value.get_ref() {
            DeValue::String(text) => Ok(super::split(text)),
            DeValue::Array(list) => list.iter().map(|item| self.text(key, item)).collect(),
            _ => Err(self.wrong(key, value, "a list of texts")),
        }
    }

    pub(super) fn count(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<u64, ConfigError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => {
                u64::from_str_radix(&number.as_str().replace('_', ""), number.radix()).ok()
            }
            _ => None,
        };
        number
            .filter(|number| *number > 0)
            .ok_or_else(|| self.wrong(key, value, "a whole number above 0"))
    }

    pub(super) fn boolean(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<bool, ConfigError> {
        match value.get_ref() {
            DeValue::Boolean(is_set) => Ok(*is_set),
            _ => Err(self.wrong(key, value, "true or false")),
        }
    }

    /// A whole number from 0 to a bound.
    pub(super) fn number(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
        most: u64,
    ) -> Result<u64, ConfigError> {
        let number = match value.get_ref() {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => None,
        };
        let expected = format!("a whole number from 0 to {most}");
        number
            .filter(|number| *number <= most)
            .ok_or_else(|| self.wrong(key, value, &expected))
    }

    /// A duration that is not nothing.
    pub(super) fn span(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Duration, ConfigError> {
        let duration = self.duration(key, value)?;
        if duration.is_zero() {
            return Err(self.at(value.span().start, format!("`{key}` must be above 0")));
        }
        Ok(duration)
    }

    pub(super) fn duration(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Duration, ConfigError> {
        let text = self.text(key, value)?;
        humantime::parse_duration(&text).map_err(|error| {
            self.at(
                value.span().start,
                format!("`{key}` is a duration such as \"45m\" or \"1h 30m\": {error}"),
            )
        })
    }

    pub(super) fn backoff(
        &self,
        key: &str,
        value: &Spanned<DeValue<'_>>,
    ) -> Result<Backoff, ConfigError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Ok(Backoff::Fixed(self.duration(key, value)?));
        };
        let (mut base, mut cap) = (None, None);
        for (name, value) in table {
            match name.get_ref().as_ref() {
                "base" => base = Some(self.duration("base", value)?),
                "cap" => cap = Some(self.duration("cap", value)?),
                other => {
                    return Err(self.unknown(name.span().start, other, &["base", "cap"]));
                }
            }
        }
        match (base, cap) {
            (Some(base), Some(cap)) => Ok(Backoff::Exponential { base, cap }),
            _ => Err(self.wrong(
                key,
                value,
                "a duration, or { base = \"15s\", cap = \"10m\" }",
            )),
        }
    }
}
